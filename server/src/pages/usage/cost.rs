//! Draws what was used day by day, as a picture that is made here.

use chrono::{Days, NaiveDate};
use ropewalk_desk::views::usage::UsageRow;
use ropewalk_schemas::amount::counted;
use ropewalk_schemas::model_call::Usage;

/// The size of the picture, and where its bars stand.
const WIDTH: u64 = 920;
const LEFT: u64 = 92;
const RIGHT: u64 = 12;
const TOP: u64 = 16;
const HEIGHT: u64 = 140;
/// The most days that are drawn, the last ones.
const MOST_DAYS: u64 = 90;
/// The least that is still seen.
const LOWEST: u64 = 2;
/// The widest bar.
const WIDEST: u64 = 48;

/// What is drawn of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// Dollars, as far as prices are known.
    Money,
    /// Tokens, in and out.
    Tokens,
}

/// A picture of days.
pub(super) struct Cost {
    pub(super) called: &'static str,
    pub(super) bars: Vec<Bar>,
    /// What the highest bar says.
    pub(super) most: String,
    pub(super) first: String,
    pub(super) last: String,
}

/// A day.
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) x: u64,
    pub(super) y: u64,
    pub(super) width: u64,
    pub(super) height: u64,
}

impl Cost {
    /// The size of the picture.
    pub(super) const WIDTH: u64 = WIDTH;
    pub(super) const HEIGHT: u64 = TOP + HEIGHT + 24;
    pub(super) const LEFT: u64 = LEFT;
    pub(super) const RIGHT: u64 = WIDTH - RIGHT;
    pub(super) const TOP: u64 = TOP;
    pub(super) const GROUND: u64 = TOP + HEIGHT;

    /// Draws the days of `rows`, to the last of them; nothing where none has anything of the measure.
    pub(super) fn of(rows: &[UsageRow], measure: Measure) -> Option<Self> {
        let days: Vec<(NaiveDate, &Usage)> = rows.iter().filter_map(day).collect();
        let last = days.iter().map(|(day, _)| *day).max()?;
        let earliest = last.checked_sub_days(Days::new(MOST_DAYS - 1))?;
        let shown = days.into_iter().filter(|(day, _)| *day >= earliest);
        let shown: Vec<(NaiveDate, &Usage)> = shown.collect();
        let first = shown.iter().map(|(day, _)| *day).min()?;
        let highest = shown.iter().max_by_key(|(_, usage)| measure.of(usage))?.1;
        let most = measure.of(highest);
        if most == 0 {
            return None;
        }
        let between = |day: NaiveDate| u64::try_from((day - first).num_days()).unwrap_or(0);
        let count = between(last) + 1;
        let room = (WIDTH - LEFT - RIGHT) / count;
        let width = (room * 4 / 5).clamp(1, WIDEST);
        let bars = shown.iter().map(|(day, usage)| {
            let value = u128::from(measure.of(usage)) * u128::from(HEIGHT) / u128::from(most);
            let height = u64::try_from(value).unwrap_or(HEIGHT).max(LOWEST);
            Bar {
                label: label(*day, usage),
                x: LEFT + between(*day) * (WIDTH - LEFT - RIGHT) / count + (room - width) / 2,
                y: Self::GROUND - height,
                width,
                height,
            }
        });
        Some(Self {
            called: measure.called(),
            bars: bars.collect(),
            most: measure.in_words(highest),
            first: first.to_string(),
            last: last.to_string(),
        })
    }
}

impl Measure {
    const fn of(self, usage: &Usage) -> u64 {
        match self {
            Self::Money => usage.known_micro_usd,
            Self::Tokens => usage.spending().tokens,
        }
    }

    const fn called(self) -> &'static str {
        match self {
            Self::Money => "Money by day",
            Self::Tokens => "Tokens by day",
        }
    }

    fn in_words(self, usage: &Usage) -> String {
        match self {
            Self::Money => usage.spending().money(),
            Self::Tokens => usage.spending().tokens.to_string(),
        }
    }
}

/// Reads which day a row is for.
fn day(row: &UsageRow) -> Option<(NaiveDate, &Usage)> {
    let day = row.usage.key.as_deref()?.parse().ok()?;
    Some((day, &row.usage))
}

fn label(day: NaiveDate, usage: &Usage) -> String {
    let spent = usage.spending();
    let (money, calls) = (spent.money(), counted(spent.calls, "call"));
    let tokens = counted(spent.tokens, "token");
    format!("{day}: {money}, {tokens} in {calls}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(day: &str, micro_usd: u64, tokens: u64) -> UsageRow {
        UsageRow::from(Usage {
            key: Some(day.to_owned()),
            calls: 2,
            input_tokens: tokens,
            known_micro_usd: micro_usd,
            ..Usage::default()
        })
    }

    #[test]
    fn each_day_has_a_bar_as_high_as_it_cost_and_days_without_use_are_gaps() {
        let rows = [
            row("2026-03-01", 500_000, 10),
            row("2026-03-02", 2_000_000, 40),
            row("2026-03-04", 0, 4),
        ];
        let drawn = Cost::of(&rows, Measure::Money).unwrap();
        let heights: Vec<u64> = drawn.bars.iter().map(|bar| bar.height).collect();
        assert_eq!(heights, [HEIGHT / 4, HEIGHT, LOWEST]);
        let steps: Vec<u64> = drawn
            .bars
            .windows(2)
            .map(|two| two[1].x - two[0].x)
            .collect();
        assert_eq!(steps, [204, 408]);
        assert_eq!(
            drawn.bars[1].label,
            "2026-03-02: $2.00, 40 tokens in 2 calls"
        );
        assert_eq!(
            (drawn.most.as_str(), drawn.last.as_str()),
            ("$2.00", "2026-03-04")
        );
        let tokens = Cost::of(&rows, Measure::Tokens).unwrap();
        assert_eq!(
            (tokens.most.as_str(), tokens.bars[0].height),
            ("40", HEIGHT / 4)
        );
        assert!(Cost::of(&[row("2026-03-01", 0, 10)], Measure::Money).is_none());
        assert!(Cost::of(&[], Measure::Tokens).is_none());
    }

    #[test]
    fn only_the_last_days_are_drawn_and_each_is_seen() {
        let begin = NaiveDate::from_ymd_opt(2020, 1, 1).unwrap();
        let day = |number| {
            begin
                .checked_add_days(Days::new(number))
                .unwrap()
                .to_string()
        };
        let rows: Vec<UsageRow> = (0..400).map(|number| row(&day(number), 1, 1)).collect();
        let drawn = Cost::of(&rows, Measure::Money).unwrap();
        assert_eq!(drawn.bars.len() as u64, MOST_DAYS);
        assert!(
            drawn
                .bars
                .iter()
                .all(|bar| bar.width > 0 && bar.x + bar.width <= Cost::RIGHT)
        );
    }
}
