//! What models used and cost: day by day as a picture, by idea, build and model, beside what may be used.

mod cost;

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use ropewalk_config::settings::BudgetSettings;
use ropewalk_desk::views::usage::{self, Scope, UsageRow};
use ropewalk_schemas::clip;
use ropewalk_schemas::model_call::{Spending, Usage, UsageBy};
use ropewalk_store::Store;
use serde::Deserialize;

use super::frame::{Frame, page};
use super::idea;
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::Parameters;
use cost::{Cost, Measure};

/// How many ideas, and how many builds, have a row of their own.
const MOST: u32 = 50;

/// What is counted.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Which {
    idea: Option<String>,
}

#[derive(Template)]
#[template(path = "usage.html")]
struct UsagePage {
    frame: Frame,
    idea: Option<String>,
    whole: Spending,
    budgets: Vec<Budget>,
    pictures: Vec<Cost>,
    tables: Vec<Sums>,
}

/// What may be used, beside what was.
struct Budget {
    of: &'static str,
    used: Option<String>,
    limit: String,
}

/// Sums by what they are for.
struct Sums {
    called: &'static str,
    /// Where the pages of its rows begin, where they have any.
    below: Option<&'static str>,
    rows: Vec<UsageRow>,
    /// What all others used together, where there are others.
    others: Option<UsageRow>,
    /// How those of its rows are called that have another name than their key.
    names: BTreeMap<String, String>,
}

impl Sums {
    fn name_of(&self, key: &str) -> String {
        let known = self.names.get(key).cloned();
        known.unwrap_or_else(|| clip::line(key, 24))
    }
}

/// Shows what was used, for one idea or for all.
pub(super) async fn show(
    State(shared): State<ServerState>,
    frame: Frame,
    Parameters(which): Parameters<Which>,
) -> Result<Response, Problem> {
    let store = &shared.services.store;
    let idea = which.idea.as_deref().map(idea::named).transpose()?;
    let scope = Scope { idea, build: None };
    let days = usage::list(store, UsageBy::Day, &scope).await?;
    let pictures = [Measure::Money, Measure::Tokens];
    let pictures = pictures
        .into_iter()
        .filter_map(|measure| Cost::of(&days, measure));
    let today = shared.services.clock.now().format("%Y-%m-%d").to_string();
    let today = days
        .iter()
        .find(|day| day.usage.key.as_deref() == Some(&today));
    let today = today.map(|day| day.usage.spending()).unwrap_or_default();
    let used: Usage = days.iter().map(|day| &day.usage).sum();
    let whole = used.spending();
    let budgets = match &scope.idea {
        Some(_) => Vec::new(),
        None => budgets(&shared.budget, &today, &whole),
    };
    page(&UsagePage {
        idea: which.idea,
        pictures: pictures.collect(),
        tables: tables(store, &scope, (&used, days)).await?,
        budgets,
        whole,
        frame,
    })
}

async fn tables(
    store: &Store,
    scope: &Scope,
    (whole, mut days): (&Usage, Vec<UsageRow>),
) -> Result<Vec<Sums>, Problem> {
    let (ideas, builds, models) = futures::try_join!(
        usage::largest(store, UsageBy::Idea, scope, MOST),
        usage::largest(store, UsageBy::Build, scope, MOST),
        usage::list(store, UsageBy::Model, scope),
    )?;
    let names = usage::names_of_builds(store, &builds).await?;
    days.reverse();
    let sums = |called, below, rows: Vec<UsageRow>| Sums {
        others: others(whole, &rows),
        called,
        below,
        rows,
        names: BTreeMap::new(),
    };
    Ok(vec![
        sums("Idea", Some("/ideas/"), ideas),
        Sums {
            names,
            ..sums("Build", Some("/builds/"), builds)
        },
        sums("Model", None, models),
        sums("Day", None, days),
    ])
}

/// Returns what was used beside `rows`; nothing where they are all.
fn others(whole: &Usage, rows: &[UsageRow]) -> Option<UsageRow> {
    let left = whole.without(&rows.iter().map(|row| &row.usage).sum());
    (left.calls > 0).then(|| left.into())
}

/// Says which part of the input came from the caches of providers.
fn hit_rate(row: &UsageRow) -> String {
    let rate = row.cache_hit_rate.map(|rate| rate * 100.0);
    rate.map_or_else(String::new, |rate| format!("{rate:.0} %"))
}

/// Lists the limits that are set, with what is used of those that cover all.
fn budgets(limits: &BudgetSettings, today: &Spending, whole: &Spending) -> Vec<Budget> {
    let tokens = |limit: u64| format!("{limit} tokens");
    let money = |limit: f64| format!("${limit:.2}");
    let used = |spent: &Spending| format!("{} tokens, {}", spent.tokens, spent.money());
    let all = [
        (
            "today",
            Some(used(today)),
            limits.day_tokens,
            limits.day_usd,
        ),
        (
            "the project",
            Some(used(whole)),
            limits.project_tokens,
            limits.project_usd,
        ),
        ("each build", None, limits.build_tokens, limits.build_usd),
        ("each task", None, limits.task_tokens, limits.task_usd),
        ("each attempt", None, limits.attempt_tokens, None),
    ];
    let told = all.into_iter().filter_map(|(of, used, most, dollars)| {
        let limits = [most.map(tokens), dollars.map(money)];
        let limits: Vec<String> = limits.into_iter().flatten().collect();
        (!limits.is_empty()).then(|| Budget {
            of,
            used,
            limit: limits.join(", "),
        })
    });
    told.collect()
}
