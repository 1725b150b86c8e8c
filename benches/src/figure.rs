//! Holds what was measured and prints it: a table to read, or JSON.

use std::fmt::Write as _;

use serde::Serialize;

/// Says which of two values is the better one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Direction {
    /// A rate.
    Higher,
    /// A time or a size.
    Lower,
}

/// What a figure is held against.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Goal {
    /// The ratio to the raw limit.
    Ratio(f64),
    /// The value itself.
    Value(f64),
    /// Reported only.
    None,
}

/// One measured figure beside the raw limit of the same run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) value: f64,
    pub(crate) raw: Option<f64>,
    /// What the raw limit is, in words.
    pub(crate) raw_is: &'static str,
    pub(crate) better: Direction,
    pub(crate) goal: Goal,
    /// The 99th percentile of ours, where single runs were timed.
    pub(crate) p99: Option<f64>,
}

impl Figure {
    pub(crate) fn rate(
        name: impl Into<String>,
        value: f64,
        raw: f64,
        raw_is: &'static str,
    ) -> Self {
        Self {
            name: name.into(),
            unit: "/s",
            value,
            raw: Some(raw),
            raw_is,
            better: Direction::Higher,
            goal: Goal::None,
            p99: None,
        }
    }

    pub(crate) fn cost(name: impl Into<String>, unit: &'static str, value: f64) -> Self {
        Self {
            name: name.into(),
            unit,
            value,
            raw: None,
            raw_is: "",
            better: Direction::Lower,
            goal: Goal::None,
            p99: None,
        }
    }

    pub(crate) fn beside(mut self, raw: f64, raw_is: &'static str) -> Self {
        self.raw = Some(raw);
        self.raw_is = raw_is;
        self
    }

    pub(crate) fn goal(mut self, goal: Goal) -> Self {
        self.goal = goal;
        self
    }

    pub(crate) fn p99(mut self, p99: f64) -> Self {
        self.p99 = Some(p99);
        self
    }

    /// Returns ours divided by the raw limit.
    pub(crate) fn ratio(&self) -> Option<f64> {
        self.raw
            .filter(|raw| *raw > 0.0)
            .map(|raw| self.value / raw)
    }

    /// Returns whether the goal is met; `None` without a goal.
    pub(crate) fn met(&self) -> Option<bool> {
        let (found, wanted) = match self.goal {
            Goal::Ratio(wanted) => (self.ratio()?, wanted),
            Goal::Value(wanted) => (self.value, wanted),
            Goal::None => return None,
        };
        Some(match self.better {
            Direction::Higher => found >= wanted,
            Direction::Lower => found <= wanted,
        })
    }

    fn goal_text(&self) -> String {
        let sign = match self.better {
            Direction::Higher => '≥',
            Direction::Lower => '≤',
        };
        match self.goal {
            Goal::Ratio(wanted) => format!("{sign} {wanted} × raw"),
            Goal::Value(wanted) => format!("{sign} {} {}", number(wanted), self.unit),
            Goal::None => "–".to_owned(),
        }
    }
}

/// Returns of each figure the run with the median ratio, or the median value where there is no raw limit.
pub(crate) fn medians(runs: &[Vec<Figure>]) -> Vec<Figure> {
    let figures = runs.first().map_or(0, Vec::len);
    (0..figures)
        .filter_map(|index| {
            let mut same: Vec<&Figure> = runs.iter().filter_map(|run| run.get(index)).collect();
            let order = |figure: &Figure| figure.ratio().unwrap_or(figure.value);
            same.sort_by(|one, other| order(one).total_cmp(&order(other)));
            same.get(same.len() / 2).map(|figure| (*figure).clone())
        })
        .collect()
}

/// Returns the figures as a Markdown table.
pub(crate) fn table(figures: &[Figure]) -> String {
    let mut text = String::from(
        "| figure | measured | p99 | raw limit, same run | ratio | goal | met |\n|---|---|---|---|---|---|---|\n",
    );
    for figure in figures {
        let raw = match figure.raw {
            Some(raw) => format!("{} {} ({})", number(raw), figure.unit, figure.raw_is),
            None => "–".to_owned(),
        };
        let met = match figure.met() {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "–",
        };
        // Writing to a string cannot fail.
        writeln!(
            text,
            "| {} | {} {} | {} | {raw} | {} | {} | {met} |",
            figure.name,
            number(figure.value),
            figure.unit,
            figure.p99.map_or_else(|| "–".to_owned(), number),
            figure
                .ratio()
                .map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}")),
            figure.goal_text(),
        )
        .unwrap_or_default();
    }
    text
}

/// Returns the figures as JSON, one object each.
pub(crate) fn json(figures: &[Figure]) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        #[serde(flatten)]
        figure: &'a Figure,
        ratio: Option<f64>,
        met: Option<bool>,
    }
    let lines: Vec<Line<'_>> = figures
        .iter()
        .map(|figure| Line {
            figure,
            ratio: figure.ratio(),
            met: figure.met(),
        })
        .collect();
    serde_json::to_string_pretty(&lines)
}

/// Writes a number with about three digits that matter.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        size if size >= 0.01 || size == 0.0 => 3,
        _ => 5,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_in_the_direction_that_is_better() {
        let rate = Figure::rate("r", 60.0, 100.0, "raw");
        let cost = Figure::cost("c", "ms", 1.4).beside(1.0, "raw");
        let cases = [
            (rate.clone().goal(Goal::Ratio(0.5)), Some(true)),
            (rate.clone().goal(Goal::Ratio(0.7)), Some(false)),
            (rate, None),
            (cost.clone().goal(Goal::Ratio(1.5)), Some(true)),
            (cost.clone().goal(Goal::Ratio(1.3)), Some(false)),
            (cost.clone().goal(Goal::Value(1.4)), Some(true)),
            (cost.goal(Goal::Value(1.0)), Some(false)),
        ];
        for (figure, expected) in cases {
            assert_eq!(figure.met(), expected, "{figure:?}");
        }
    }

    #[test]
    fn of_several_runs_the_one_with_the_median_ratio_is_shown() {
        let run = |value, raw| vec![Figure::rate("r", value, raw, "raw")];
        let runs = [run(90.0, 100.0), run(10.0, 20.0), run(30.0, 100.0)];
        assert_eq!(medians(&runs), run(10.0, 20.0));
    }

    #[test]
    fn numbers_keep_about_three_digits() {
        let cases = [
            (45_123.4, "45123"),
            (12.34, "12.3"),
            (1.234, "1.23"),
            (0.0012, "0.00120"),
        ];
        for (value, expected) in cases {
            assert_eq!(number(value), expected);
        }
    }
}
