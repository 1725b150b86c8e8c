//! Turns usage into money, where the price is known.

use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::reply::Usage;

/// Is an amount of money in millionths of a US dollar.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Cost {
    /// Millionths of a US dollar.
    pub micro_usd: u64,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.micro_usd = self.micro_usd.saturating_add(other.micro_usd);
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), |mut sum, cost| {
            sum += cost;
            sum
        })
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dollars, rest) = (self.micro_usd / 1_000_000, self.micro_usd % 1_000_000);
        write!(formatter, "${dollars}.{:04}", rest / 100)
    }
}

/// Is what a model costs, in US dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// The model, or the beginning of its name followed by `*`.
    pub model: String,
    /// Per million tokens read.
    pub input: f64,
    /// Per million tokens written.
    pub output: f64,
    /// Per million tokens read from the cache; `input` if the provider grants no discount.
    pub cache_read: Option<f64>,
    /// Per million tokens put into the cache; `input` if the provider takes nothing extra.
    pub cache_write: Option<f64>,
}

impl Price {
    /// Returns how much of `model` the pattern spells out, if it matches.
    fn match_length(&self, model: &str) -> Option<usize> {
        match self.model.strip_suffix('*') {
            Some(beginning) => model.starts_with(beginning).then_some(beginning.len()),
            // An exact name beats the same name with a star.
            None => (self.model == model).then_some(self.model.len() + 1),
        }
    }

    /// Says whether it is about every model that `other` is about.
    fn covers(&self, other: &Self) -> bool {
        self.match_length(&other.model).is_some()
    }

    fn cost(&self, usage: &Usage) -> Cost {
        let parts = [
            (self.input, usage.input_tokens),
            (self.output, usage.output_tokens),
            (
                self.cache_read.unwrap_or(self.input),
                usage.cache_read_tokens,
            ),
            (
                self.cache_write.unwrap_or(self.input),
                usage.cache_write_tokens,
            ),
        ];
        let pico_usd: u128 = parts
            .iter()
            .map(|(price, tokens)| pico_usd_per_token(*price) * u128::from(*tokens))
            .sum();
        // Rounded up: a budget may end early by a fraction, never late.
        Cost {
            micro_usd: u64::try_from(pico_usd.div_ceil(1_000_000)).unwrap_or(u64::MAX),
        }
    }
}

/// Returns a price exactly: one dollar per million tokens is a million millionths of a micro-dollar per token.
fn pico_usd_per_token(usd_per_million: f64) -> u128 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "prices are small and not negative; `as` saturates in any case"
    )]
    let pico = (usd_per_million * 1e6).round() as u64;
    u128::from(pico)
}

/// Knows the prices of a provider's models.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct PriceTable(pub Vec<Price>);

impl PriceTable {
    /// Returns what `usage` of `model` costs by the closest entry; an unknown price is `None`, never zero.
    pub fn cost(&self, model: &str, usage: &Usage) -> Option<Cost> {
        self.0
            .iter()
            .filter_map(|price| Some((price.match_length(model)?, price)))
            .max_by_key(|(length, _)| *length)
            .map(|(_, price)| price.cost(usage))
    }

    /// Says whether the price of `model` is known.
    pub fn knows(&self, model: &str) -> bool {
        let mut prices = self.0.iter();
        prices.any(|price| price.match_length(model).is_some())
    }

    /// Lays these prices over others: those count where these know none.
    #[must_use]
    pub fn over(&self, others: &Self) -> Self {
        let is_covered = |other: &&Price| self.0.iter().any(|price| price.covers(other));
        let left = others.0.iter().filter(|other| !is_covered(other));
        Self(self.0.iter().chain(left).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(model: &str, input: f64, cache_read: Option<f64>) -> Price {
        Price {
            model: model.to_owned(),
            input,
            output: 10.0,
            cache_read,
            cache_write: None,
        }
    }

    #[test]
    fn the_closest_entry_sets_the_price() {
        let table = PriceTable(vec![
            price("big*", 2.0, None),
            price("big-mini*", 0.25, Some(0.025)),
            price("big-mini", 1.0, None),
        ]);
        let usage = Usage {
            input_tokens: 100,
            output_tokens: 20,
            cache_read_tokens: 3,
            cache_write_tokens: 1,
        };
        let cases = [
            ("big", Some(200 + 200 + 6 + 2)),
            // 25 + 200 + 0.075 + 0.25, rounded up.
            ("big-mini-2026", Some(226)),
            ("big-mini", Some(100 + 200 + 3 + 1)),
            ("small", None),
        ];
        for (model, micro_usd) in cases {
            let cost = table.cost(model, &usage);
            assert_eq!(cost.map(|cost| cost.micro_usd), micro_usd, "{model}");
        }
    }

    #[test]
    fn a_price_that_is_laid_over_others_counts_wherever_it_is_known() {
        let below = PriceTable(vec![
            price("big*", 2.0, None),
            price("big-mini*", 3.0, None),
            price("big-mini-1", 4.0, None),
            price("small", 5.0, None),
        ]);
        let cases = [
            ("big-mini*", [Some(2), Some(9), Some(9), Some(5)]),
            ("big*", [Some(9), Some(9), Some(9), Some(5)]),
            ("big-mini", [Some(2), Some(9), Some(4), Some(5)]),
            ("big-mini-1", [Some(2), Some(3), Some(9), Some(5)]),
            ("*", [Some(9), Some(9), Some(9), Some(9)]),
            ("other", [Some(2), Some(3), Some(4), Some(5)]),
        ];
        let usage = Usage {
            input_tokens: 1,
            ..Usage::default()
        };
        for (model, expected) in cases {
            let both = PriceTable(vec![price(model, 9.0, None)]).over(&below);
            let found = ["big", "big-mini", "big-mini-1", "small"].map(|model| {
                let cost = both.cost(model, &usage);
                cost.map(|cost| cost.micro_usd)
            });
            assert_eq!(found, expected, "{model}");
        }
        assert!(!below.knows("tiny") && below.knows("big-9"));
    }

    #[test]
    fn costs_add_up_and_read_as_dollars() {
        let sum: Cost = [1_500_000, 250_100]
            .map(|micro_usd| Cost { micro_usd })
            .into_iter()
            .sum();
        assert_eq!(sum.to_string(), "$1.7501");
    }
}
