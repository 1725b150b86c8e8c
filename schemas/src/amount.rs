//! Tells numbers of things to people.

use std::fmt::Display;

/// Says so many of what `noun` names: `1 task`, `3 tasks`. For nouns whose plural ends in `s`.
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let end = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{end}")
}

/// Says so many of something whose plural has a form of its own: `1 delivery`, `3 deliveries`.
pub fn counted_as<N: Copy + Display + PartialEq + From<u8>>(
    number: N,
    one: &str,
    more: &str,
) -> String {
    let noun = if number == N::from(1) { one } else { more };
    format!("{number} {noun}")
}

/// Says how many of a list of `all` are left out behind the `shown` ones: `and 3 more`; nothing where none are.
pub fn and_more(all: usize, shown: usize) -> Option<String> {
    let more = all.saturating_sub(shown);
    (more > 0).then(|| format!("and {more} more"))
}

/// Says how large something is, in the largest unit of which it has one: `20 MiB`, `1.5 KiB`, `1 byte`.
pub fn size(bytes: u64) -> String {
    const KIBI: u64 = 1024;
    let (unit, called) = match bytes {
        0..1024 => return counted(bytes, "byte"),
        1024..1_048_576 => (KIBI, "KiB"),
        _ => (KIBI * KIBI, "MiB"),
    };
    let tenths = bytes % unit * 10 / unit;
    match tenths {
        0 => format!("{} {called}", bytes / unit),
        tenths => format!("{}.{tenths} {called}", bytes / unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_told_as_one() {
        let told = [0_u64, 1, 2].map(|number| counted(number, "task"));
        assert_eq!(told, ["0 tasks", "1 task", "2 tasks"]);
        let told = [0_u64, 1, 2].map(|number| counted_as(number, "delivery", "deliveries"));
        assert_eq!(told, ["0 deliveries", "1 delivery", "2 deliveries"]);
    }

    #[test]
    fn what_is_left_out_of_a_list_is_told_by_its_number() {
        for (all, told) in [
            (0, None),
            (3, None),
            (4, Some("and 1 more")),
            (20, Some("and 17 more")),
        ] {
            assert_eq!(and_more(all, 3).as_deref(), told, "{all}");
        }
    }

    #[test]
    fn sizes_are_told_in_the_unit_that_fits() {
        for (bytes, told) in [
            (1, "1 byte"),
            (1_023, "1023 bytes"),
            (1_024, "1 KiB"),
            (1_536, "1.5 KiB"),
            (1_048_576, "1 MiB"),
            (20_971_520, "20 MiB"),
        ] {
            assert_eq!(size(bytes), told);
        }
    }
}
