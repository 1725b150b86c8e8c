//! What a store holds and models used, as programs that watch take it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ropewalk_schemas::model_call::UsageBy;
use ropewalk_schemas::phone::Phone;
use ropewalk_store::{Query, ReadError, Store};
use schemars::JsonSchema;
use serde::Serialize;

use super::usage::{self, Scope, UsageRow};

/// A figure, for each set of labels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// What it says.
    pub help: &'static str,
    /// `gauge`, or `counter` for what only grows.
    pub kind: &'static str,
    /// The figures.
    pub samples: Vec<Sample>,
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sample {
    /// What it is for; nothing where there is one alone.
    pub labels: BTreeMap<&'static str, String>,
    /// The figure.
    pub value: u64,
}

/// Returns the figures of a store; those of models are the sums that `ropewalk usage` shows.
pub async fn list(store: &Store) -> Result<Vec<Metric>, ReadError> {
    let statistics = store.statistics().await?;
    let written = Metric {
        name: "ropewalk_events_total".to_owned(),
        help: "Events written.",
        kind: "counter",
        samples: vec![Sample {
            labels: BTreeMap::new(),
            value: statistics.written,
        }],
    };
    let gauges = [
        (
            "open_deliveries",
            "Deliveries to be handled.",
            statistics.open_deliveries,
        ),
        (
            "dead_letters",
            "Deliveries that failed for good.",
            statistics.dead_letters,
        ),
        (
            "store_bytes",
            "The size of the database.",
            statistics.size_bytes,
        ),
    ];
    let gauges = gauges.map(|(name, help, value)| Metric {
        name: format!("ropewalk_{name}"),
        help,
        kind: "gauge",
        samples: vec![Sample {
            labels: BTreeMap::new(),
            value,
        }],
    });
    let phones = store.list::<Phone>(Query::new()).await?;
    let rows = usage::list(store, UsageBy::Model, &Scope::default()).await?;
    let repeats = repeated(phones.iter().map(|phone| &phone.record));
    let counters = [written, repeats].into_iter().chain(used(&rows));
    Ok(gauges.into_iter().chain(counters).collect())
}

/// Says how often a message of an answer may have arrived twice on the phone of each person; of notices, the list of them
/// says so.
fn repeated<'a>(phones: impl Iterator<Item = &'a Phone>) -> Metric {
    Metric {
        name: "ropewalk_phone_repeats_total".to_owned(),
        help: "Messages of answers that may have arrived twice on a phone.",
        kind: "counter",
        samples: phones
            .map(|phone| Sample {
                labels: BTreeMap::from([("person", phone.person.to_string())]),
                value: phone.repeats.into(),
            })
            .collect(),
    }
}

/// Writes figures as Prometheus reads them, text format 0.0.4.
pub fn text(metrics: &[Metric]) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    for metric in metrics {
        let (name, help, kind) = (&metric.name, metric.help, metric.kind);
        writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}").ok();
        for sample in &metric.samples {
            let labels = sample.labels.iter();
            let labels: Vec<String> = labels
                .map(|(label, value)| format!("{label}=\"{}\"", escaped(value)))
                .collect();
            let labels = match labels.as_slice() {
                [] => String::new(),
                labels => format!("{{{}}}", labels.join(",")),
            };
            writeln!(text, "{name}{labels} {}", sample.value).ok();
        }
    }
    text
}

/// Says what the models used, for each model. Whose price is not known for each call has the known part of it and how many
/// calls lack one.
fn used(rows: &[UsageRow]) -> impl Iterator<Item = Metric> {
    type Sum = fn(&UsageRow) -> u64;
    let sums: [(&str, &str, Sum); 7] = [
        ("calls", "Calls that models answered.", |row| {
            row.usage.calls
        }),
        ("input_tokens", "Tokens in.", |row| row.usage.input_tokens),
        ("output_tokens", "Tokens out.", |row| {
            row.usage.output_tokens
        }),
        (
            "cache_read_tokens",
            "Tokens in that came from a cache of the provider.",
            |row| row.usage.cache_read_tokens,
        ),
        (
            "cache_write_tokens",
            "Tokens in that went into one.",
            |row| row.usage.cache_write_tokens,
        ),
        (
            "cost_micro_usd",
            "What is known of the cost, in millionths of a dollar.",
            |row| row.usage.known_micro_usd,
        ),
        (
            "unpriced_calls",
            "Calls of which nobody knows the price.",
            |row| row.usage.unpriced_calls,
        ),
    ];
    sums.into_iter().map(|(what, help, sum)| Metric {
        name: format!("ropewalk_model_{what}_total"),
        help,
        kind: "counter",
        samples: rows
            .iter()
            .map(|row| Sample {
                labels: BTreeMap::from([("model", row.usage.key.clone().unwrap_or_default())]),
                value: sum(row),
            })
            .collect(),
    })
}

/// Writes a value so that it ends no label.
fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}
