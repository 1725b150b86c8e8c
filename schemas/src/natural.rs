//! Orders names as people count: `T-2` comes before `T-10`.

use std::cmp::Ordering;

/// A name that is compared by its words and numbers; no two different names are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NaturalName<'a>(pub &'a str);

impl Ord for NaturalName<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let (mut one, mut two) = (self.0, other.0);
        while !one.is_empty() && !two.is_empty() {
            let (first, second);
            (first, one) = run(one);
            (second, two) = run(two);
            let order = runs(first, second);
            if order.is_ne() {
                return order;
            }
        }
        // `T-1` and `T-01` count the same.
        one.len().cmp(&two.len()).then(self.0.cmp(other.0))
    }
}

impl PartialOrd for NaturalName<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Splits the digits, or what is none, from the beginning of a text.
fn run(text: &str) -> (&str, &str) {
    let digits = text.starts_with(|first: char| first.is_ascii_digit());
    let end = text.find(|next: char| next.is_ascii_digit() != digits);
    text.split_at(end.unwrap_or(text.len()))
}

fn runs(one: &str, two: &str) -> Ordering {
    let is_number = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    if !(is_number(one) && is_number(two)) {
        return one.cmp(two);
    }
    let (one, two) = (one.trim_start_matches('0'), two.trim_start_matches('0'));
    one.len().cmp(&two.len()).then(one.cmp(two))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count() {
        let order = [
            "",
            "2",
            "10",
            "A",
            "A1",
            "A1-B",
            "A-1",
            "T-01",
            "T-1",
            "T-002",
            "T-9a",
            "T-10",
            "T-10.2",
            "T-10.10",
            "T-99999999999999999999998",
            "T-99999999999999999999999",
            "U",
        ];
        for (at, one) in order.iter().enumerate() {
            for (other_at, other) in order.iter().enumerate() {
                assert_eq!(
                    NaturalName(one).cmp(&NaturalName(other)),
                    at.cmp(&other_at),
                    "{one} {other}"
                );
            }
        }
    }
}
