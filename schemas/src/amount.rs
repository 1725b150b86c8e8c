//! Tells numbers of things to people.

use std::fmt::Display;

/// Says so many of what `noun` names: `1 task`, `3 tasks`. For nouns whose plural ends in `s`.
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let end = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_told_as_one() {
        let told = [0_u64, 1, 2].map(|number| counted(number, "task"));
        assert_eq!(told, ["0 tasks", "1 task", "2 tasks"]);
    }
}
