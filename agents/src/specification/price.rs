//! Estimates what a build will cost, from what builds of this project have cost (design §3 invariant 13).

use ropewalk_schemas::amount::counted;
use ropewalk_schemas::specification::Price;

/// What a task is expected to use as long as no build has run, beside what it reads.
const UNKNOWN_TASK_TOKENS: (u64, u64) = (5_000, 60_000);
/// So much of a file is read: a longer one is outlined, and read where that leads.
const READ_BYTES: u64 = 64 * 1024;
/// So many bytes of code are a token.
const BYTES_PER_TOKEN: u64 = 4;
/// What was read goes along with so many requests: a task is done in three where nothing goes wrong, one that looks, one that
/// writes, one that hands in. Two tasks on files of 95 and 107 KB used 143,000 tokens in six.
const REQUESTS: u64 = 3;

/// What one landed task has used over all its attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskCost {
    /// Tokens, in and out.
    pub tokens: u64,
    /// Millionths of a dollar; none when the price of a call is unknown.
    pub micro_usd: Option<u64>,
}

/// Estimates the price of `tasks`, of each of which is given how many bytes the files have that it reads: from the cheaper to the
/// dearer quarter of the tasks that landed before, whose reading is in what they used.
pub fn estimate(tasks: &[Vec<u64>], history: &[TaskCost]) -> Price {
    let count = u64::try_from(tasks.len()).unwrap_or(u64::MAX);
    if history.is_empty() {
        let (low, high) = UNKNOWN_TASK_TOKENS;
        let read: u64 = tasks
            .iter()
            .flatten()
            .map(|bytes| read_tokens(*bytes))
            .sum();
        let reading = match read {
            0 => String::new(),
            read => format!(
                ", and {} to {} for what they read",
                rounded(read),
                rounded(read.saturating_mul(REQUESTS))
            ),
        };
        return Price {
            tokens_low: rounded(count.saturating_mul(low).saturating_add(read)),
            tokens_high: rounded(
                count
                    .saturating_mul(high)
                    .saturating_add(read.saturating_mul(REQUESTS)),
            ),
            micro_usd_low: None,
            micro_usd_high: None,
            basis: format!(
                "no task has landed in this project yet; {low} to {high} tokens for each of {}{reading} are assumed",
                counted(tasks.len(), "task")
            ),
        };
    }
    let (tokens_low, tokens_high) = quarters(history.iter().map(|cost| cost.tokens).collect());
    let dollars: Option<Vec<u64>> = history.iter().map(|cost| cost.micro_usd).collect();
    let dollars = dollars.map(quarters);
    let of_all = |one: u64| rounded(count.saturating_mul(one));
    Price {
        tokens_low: of_all(tokens_low),
        tokens_high: of_all(tokens_high),
        micro_usd_low: dollars.map(|(low, _)| of_all(low)),
        micro_usd_high: dollars.map(|(_, high)| of_all(high)),
        basis: format!(
            "{} that landed in this project; {} now",
            counted(history.len(), "task"),
            counted(tasks.len(), "task")
        ),
    }
}

/// Rounds to two significant digits: no estimate knows more.
fn rounded(value: u64) -> u64 {
    let mut unit = 1;
    while value / unit >= 100 {
        unit *= 10;
    }
    value.saturating_add(unit / 2) / unit * unit
}

fn read_tokens(bytes: u64) -> u64 {
    bytes.min(READ_BYTES) / BYTES_PER_TOKEN
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

    /// Returns tasks that read nothing that is there.
    fn tasks(count: usize) -> Vec<Vec<u64>> {
        vec![Vec::new(); count]
    }

    #[test]
    fn without_history_the_range_is_stated_and_no_dollar_is_claimed() {
        let one = estimate(&tasks(1), &[]).basis;
        assert!(one.ends_with("for each of 1 task are assumed"), "{one}");
        let price = estimate(&tasks(12), &[]);
        assert_eq!((price.tokens_low, price.tokens_high), (60_000, 720_000));
        assert_eq!((price.micro_usd_low, price.micro_usd_high), (None, None));
        assert!(price.basis.contains("no task has landed"));
    }

    #[test]
    fn the_first_quote_holds_what_the_tasks_have_to_read() {
        let kilobytes = |sizes: &[u64]| sizes.iter().map(|size| size * 1024).collect::<Vec<_>>();
        let rows = [
            (vec![kilobytes(&[4])], (6_000, 63_000)),
            (vec![kilobytes(&[64])], (21_000, 110_000)),
            // Nobody reads the rest of a file that is longer.
            (vec![kilobytes(&[65])], (21_000, 110_000)),
            (vec![kilobytes(&[4]), Vec::new()], (11_000, 120_000)),
            // What was used for this was 143,000.
            (
                vec![kilobytes(&[95, 107]), kilobytes(&[95, 107])],
                (76_000, 320_000),
            ),
            (vec![vec![u64::MAX]; 2], (43_000, 220_000)),
        ];
        for (tasks, range) in rows {
            let price = estimate(&tasks, &[]);
            assert_eq!((price.tokens_low, price.tokens_high), range, "{tasks:?}");
        }
        let basis = estimate(&[kilobytes(&[4])], &[]).basis;
        assert!(
            basis.ends_with("of 1 task, and 1000 to 3100 for what they read are assumed"),
            "{basis}"
        );
        let landed = [cost(100, None)];
        let read = estimate(&[kilobytes(&[64])], &landed);
        assert_eq!(read, estimate(&tasks(1), &landed), "it is in what was used");
    }

    #[test]
    fn no_more_digits_are_told_than_an_estimate_knows() {
        for (value, told) in [
            (0, 0),
            (99, 99),
            (104, 100),
            (105, 110),
            (10_003, 10_000),
            (120_009, 120_000),
            (995, 1_000),
            (u64::MAX, 18_000_000_000_000_000_000),
        ] {
            assert_eq!(rounded(value), told, "{value}");
        }
    }

    #[test]
    fn history_gives_the_middle_half_and_one_unknown_price_makes_all_unknown() {
        let history: Vec<TaskCost> = (1..=9)
            .map(|number| cost(number * 100, Some(number)))
            .collect();
        let price = estimate(&tasks(2), &history);
        assert_eq!((price.tokens_low, price.tokens_high), (600, 1_400));
        assert_eq!(
            (price.micro_usd_low, price.micro_usd_high),
            (Some(6), Some(14))
        );
        let unknown = estimate(&tasks(2), &[cost(10, Some(1)), cost(20, None)]);
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
