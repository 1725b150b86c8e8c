//! Checks what providers are said to cost: a wrong price would hold no budget.

use ropewalk_schemas::advice::Words;

use super::Fault;
use crate::settings::{Config, PriceSettings, PriceSourceSettings, ProviderSettings};

/// The most dollars of a million tokens.
const MOST_USD: f64 = 1e6;

/// Returns the first price that cannot be.
pub(super) fn first_fault(config: &Config) -> Option<Fault> {
    config.providers.iter().find_map(|(name, provider)| {
        let (key, reason) = of_provider(provider)?;
        Some((format!("providers.{name}.{key}"), reason))
    })
}

/// Returns the first key of a provider that cannot be, by its name there.
fn of_provider(provider: &ProviderSettings) -> Option<Fault> {
    let prices = &provider.prices;
    match (prices.is_empty(), &provider.priced) {
        (true, None) => return None,
        (true, Some(_)) => {
            let reason = ("dates no price", "add `prices`, or drop it");
            return Some(("priced".to_owned(), reason.into()));
        }
        (false, None) => {
            let next =
                "add `priced = { date = \"…\", source = \"…\" }`, when and where they were read";
            return Some((
                "prices".to_owned(),
                ("have no date and source", next).into(),
            ));
        }
        (false, Some(source)) => {
            if let Some((key, reason)) = of_source(source) {
                return Some((format!("priced.{key}"), reason));
            }
        }
    }
    prices.iter().enumerate().find_map(|(index, price)| {
        let (key, reason) = of_price(price, &prices[..index])?;
        Some((format!("prices[{index}].{key}"), reason))
    })
}

fn of_source(source: &PriceSourceSettings) -> Option<(&'static str, Words)> {
    let day = source.date.parse::<toml_edit::Value>().ok();
    let moment = day.as_ref().and_then(toml_edit::Value::as_datetime);
    if !moment.is_some_and(|day| day.date.is_some() && day.time.is_none()) {
        let reason = format!("`{}` is no day", source.date);
        return Some(("date", (reason, "write it like `2026-11-20`").into()));
    }
    let is_line = !source.source.trim().is_empty() && !source.source.contains(char::is_control);
    let reason = "must be one line that says where the prices stand";
    (!is_line).then(|| ("source", reason.into()))
}

fn of_price(price: &PriceSettings, earlier: &[PriceSettings]) -> Option<(&'static str, Words)> {
    let name = price.model.strip_suffix('*').unwrap_or(&price.model);
    if price.model.is_empty() || name.contains('*') {
        let reason = format!("`{}` names no model", price.model);
        let next = "write its name, or how it begins and one `*` behind that";
        return Some(("model", (reason, next).into()));
    }
    if earlier.iter().any(|other| other.model == price.model) {
        let reason = ("has a price already", "keep one of them");
        return Some(("model", reason.into()));
    }
    let dollars = [
        ("input", Some(price.input)),
        ("output", Some(price.output)),
        ("cache_read", price.cache_read),
        ("cache_write", price.cache_write),
    ];
    dollars
        .into_iter()
        .find(|(_, amount)| amount.is_some_and(|amount| !(0.0..=MOST_USD).contains(&amount)))
        .map(|(key, _)| {
            let reason = "must be an amount of dollars between 0 and 1000000, of a million tokens";
            (key, reason.into())
        })
}

#[cfg(test)]
mod tests {
    use crate::layers::Layers;
    use crate::load::{DEFAULTS, read};
    use crate::origin::Origin;

    use super::*;

    /// What is said of a configuration in which a provider is set up so; empty where it may be.
    fn refusal(provider: &str) -> String {
        let mut layers = Layers::default();
        layers.add_toml(DEFAULTS, &Origin::Default).unwrap();
        let text = format!("[providers.x]\nkind = \"openai\"\n{provider}");
        layers.add_toml(&text, &Origin::Flag).unwrap();
        let read = read(&layers).err();
        read.map(|error| Words::of(&error).to_string())
            .unwrap_or_default()
    }

    const PRICED: &str = "priced = { date = \"2026-11-20\", source = \"https://x.test\" }\n";

    #[test]
    fn a_price_has_a_date_and_a_source() {
        let price = "prices = [{ model = \"a*\", input = 3, output = 0.5, cache_read = 0.1 }]\n";
        assert_eq!(refusal(&format!("{price}{PRICED}")), "");
        // A day need not stand in quotes.
        let bare = PRICED.replace("\"2026-11-20\"", "2026-11-20");
        assert_eq!(refusal(&format!("{price}{bare}")), "");
        let told = refusal(price);
        assert!(
            told.contains("`providers.x.prices`: have no date"),
            "{told}"
        );
        let told = refusal(PRICED);
        assert!(
            told.contains("`providers.x.priced`: dates no price"),
            "{told}"
        );
        for (from, to, part) in [
            ("2026-11-20", "last week", "`last week` is no day"),
            ("2026-11-20", "2026-02-30", "`2026-02-30` is no day"),
            ("2026-11-20", "2026-11-20T10:00:00", "is no day"),
            ("2026-11-20", "12:00:00.5", "is no day"),
            ("https://x.test", " ", "`providers.x.priced.source`"),
            ("https://x.test", "a\\nb", "`providers.x.priced.source`"),
            ("source", "page", "unknown field `page`"),
        ] {
            let told = refusal(&format!("{price}{}", PRICED.replace(from, to)));
            assert!(told.contains(part), "{to}: {told}");
        }
    }

    #[test]
    fn a_price_that_would_hold_no_budget_is_refused() {
        for (prices, part) in [
            (
                "{ model = \"\", input = 1, output = 1 }",
                "`providers.x.prices[0].model`",
            ),
            (
                "{ model = \"a*b\", input = 1, output = 1 }",
                "`a*b` names no model",
            ),
            (
                "{ model = \"a**\", input = 1, output = 1 }",
                "`a**` names no model",
            ),
            (
                "{ model = \"a\", input = -0.1, output = 1 }",
                "`providers.x.prices[0].input`",
            ),
            (
                "{ model = \"a\", input = 1, output = 1e7 }",
                "`providers.x.prices[0].output`",
            ),
            ("{ model = \"a\", input = nan, output = 1 }", "expected f64"),
            (
                "{ model = \"a\", input = 1, output = 1, cache_write = -1 }",
                "].cache_write`",
            ),
            ("{ model = \"a\", input = 1 }", "missing field `output`"),
            (
                "{ model = \"a\", input = 1, output = 1, per = \"k\" }",
                "unknown field `per`",
            ),
            (
                "{ model = \"a\", input = 1, output = 1 }, { model = \"a\", input = 2, output = 1 }",
                "`providers.x.prices[1].model`: has a price already",
            ),
        ] {
            let told = refusal(&format!("prices = [{prices}]\n{PRICED}"));
            assert!(told.contains(part), "{prices}: {told}");
        }
        let both =
            "{ model = \"a\", input = 1, output = 1 }, { model = \"a*\", input = 2, output = 1 }";
        assert_eq!(refusal(&format!("prices = [{both}]\n{PRICED}")), "");
    }
}
