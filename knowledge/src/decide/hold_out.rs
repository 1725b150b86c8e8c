//! When an item is left out of a task on purpose, to measure what it does.

/// The first use that may be held out, and the most often: one in so many.
const EVERY: u64 = 5;

/// Says whether the next use of an item is held out, after so many uses of it, held out or not.
pub fn holds_out(enabled: bool, uses_before: u64) -> bool {
    enabled && (uses_before + 1).is_multiple_of(EVERY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_the_fifth_use_on_one_in_five_is_held_out() {
        let held: Vec<u64> = (0..16).filter(|before| holds_out(true, *before)).collect();
        assert_eq!(held, [4, 9, 14]);
        assert!((0..16).all(|before| !holds_out(false, before)));
    }
}
