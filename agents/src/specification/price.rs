//! Estimates what a build will cost, from what builds of this project have cost (design §3 invariant 13).

use ropewalk_schemas::amount::counted;
use ropewalk_schemas::specification::Price;

/// What a task is expected to use as long as no build has run.
const UNKNOWN_TASK_TOKENS: (u64, u64) = (5_000, 60_000);

/// What one landed task has used over all its attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskCost {
    /// Tokens, in and out.
    pub tokens: u64,
    /// Millionths of a dollar; none when the price of a call is unknown.
    pub micro_usd: Option<u64>,
}

/// Estimates the price of `tasks` tasks: from the cheaper to the dearer quarter of the tasks that landed before.
pub fn estimate(tasks: usize, history: &[TaskCost]) -> Price {
    let count = u64::try_from(tasks).unwrap_or(u64::MAX);
    if history.is_empty() {
        let (low, high) = UNKNOWN_TASK_TOKENS;
        return Price {
            tokens_low: count.saturating_mul(low),
            tokens_high: count.saturating_mul(high),
            micro_usd_low: None,
            micro_usd_high: None,
            basis: format!(
                "no task has landed in this project yet; {low} to {high} tokens for each of {} are assumed",
                counted(tasks, "task")
            ),
        };
    }
    let (tokens_low, tokens_high) = quarters(history.iter().map(|cost| cost.tokens).collect());
    let dollars: Option<Vec<u64>> = history.iter().map(|cost| cost.micro_usd).collect();
    let dollars = dollars.map(quarters);
    Price {
        tokens_low: count.saturating_mul(tokens_low),
        tokens_high: count.saturating_mul(tokens_high),
        micro_usd_low: dollars.map(|(low, _)| count.saturating_mul(low)),
        micro_usd_high: dollars.map(|(_, high)| count.saturating_mul(high)),
        basis: format!(
            "{} that landed in this project; {} now",
            counted(history.len(), "task"),
            counted(tasks, "task")
        ),
    }
}

/// Returns the values at one and at three quarters of the sorted values.
fn quarters(mut values: Vec<u64>) -> (u64, u64) {
    values.sort_unstable();
    let last = values.len().saturating_sub(1);
    let at = |index: usize| values.get(index).copied().unwrap_or_default();
    (at(last / 4), at(last - last / 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(tokens: u64, micro_usd: Option<u64>) -> TaskCost {
        TaskCost { tokens, micro_usd }
    }

    #[test]
    fn without_history_the_range_is_stated_and_no_dollar_is_claimed() {
        let one = estimate(1, &[]).basis;
        assert!(one.ends_with("for each of 1 task are assumed"), "{one}");
        let price = estimate(12, &[]);
        assert_eq!((price.tokens_low, price.tokens_high), (60_000, 720_000));
        assert_eq!((price.micro_usd_low, price.micro_usd_high), (None, None));
        assert!(price.basis.contains("no task has landed"));
    }

    #[test]
    fn history_gives_the_middle_half_and_one_unknown_price_makes_all_unknown() {
        let history: Vec<TaskCost> = (1..=9)
            .map(|number| cost(number * 100, Some(number)))
            .collect();
        let price = estimate(2, &history);
        assert_eq!((price.tokens_low, price.tokens_high), (600, 1_400));
        assert_eq!(
            (price.micro_usd_low, price.micro_usd_high),
            (Some(6), Some(14))
        );
        let unknown = estimate(2, &[cost(10, Some(1)), cost(20, None)]);
        assert_eq!(
            (
                unknown.tokens_low,
                unknown.tokens_high,
                unknown.micro_usd_low
            ),
            (20, 40, None)
        );
    }
}
