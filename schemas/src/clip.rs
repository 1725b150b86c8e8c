//! Shortens texts that are too long to be shown or kept whole, and lets the reader see that they were.
//!
//! Pure. A letter is a Unicode scalar value. No cut falls inside of what is read as one sign (a letter with its accents, a
//! family of faces), unless that alone is too long.

use std::borrow::Cow;

use unicode_segmentation::GraphemeCursor;

/// Keeps the beginning of a text: at most `most` letters, the last of them `…` where something is missing.
pub fn letters(text: &str, most: usize) -> Cow<'_, str> {
    if text.char_indices().nth(most).is_none() {
        return Cow::Borrowed(text);
    }
    let kept = text.char_indices().nth(most.saturating_sub(1));
    let kept = &text[..sign_before(text, kept.map_or(0, |(end, _)| end))];
    Cow::Owned(format!("{}…", kept.trim_end()))
}

/// Writes a text on one line and keeps the beginning of that, as [`letters`] does.
pub fn line(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    letters(&line, most).into_owned()
}

/// Writes a text on one line and keeps whole words from the beginning of that: at most `most` letters, the last of them `…`
/// where something is missing. Of a first word that is longer the beginning is kept.
pub fn words(text: &str, most: usize) -> String {
    let whole = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let kept = letters(&whole, most).into_owned();
    if kept == whole {
        return whole;
    }
    let begun = kept.strip_suffix('…').unwrap_or(&kept);
    let is_between = whole[begun.len()..].starts_with(' ');
    let end = match begun.rfind(' ') {
        Some(end) if !is_between => end,
        _ => begun.len(),
    };
    format!("{}…", &begun[..end])
}

/// Keeps as many whole lines from the beginning as `most` letters hold, and says `[…]` on a line of its own where others
/// are missing. Of a first line that is longer the beginning is kept.
pub fn lines(text: &str, most: usize) -> Cow<'_, str> {
    let Some((end, _)) = text.char_indices().nth(most) else {
        return Cow::Borrowed(text);
    };
    let kept = &text[..sign_before(text, end)];
    let whole = kept.rfind('\n').map_or(kept, |line| &kept[..line]);
    Cow::Owned(format!("{}\n[…]", whole.trim_end()))
}

/// Keeps the end of a text: at most `most` letters, the first of them `…` where something is missing.
pub fn end(text: &str, most: usize) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= most {
        return Cow::Borrowed(text);
    }
    let begin = text.char_indices().nth(count + 1 - most.max(1));
    let kept = begin.map_or("", |(begin, _)| &text[sign_behind(text, begin)..]);
    Cow::Owned(format!("…{}", kept.trim_start()))
}

/// Which end of a text says more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Its beginning, which gets three quarters.
    Head,
    /// Its end, which gets three quarters: test runners say last what is wrong.
    Tail,
    /// Neither.
    Even,
}

/// Keeps beginning and end of a text, at most `most` bytes with what is said between them of the rest.
pub fn ends(text: &str, most: usize, weight: Weight) -> Cow<'_, str> {
    /// More than is said of what is left out.
    const SAID: usize = 48;
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let room = most.saturating_sub(SAID);
    let head = match weight {
        Weight::Head => room / 4 * 3,
        Weight::Tail => room / 4,
        Weight::Even => room / 2,
    };
    let head = sign_before(text, text.floor_char_boundary(head));
    let tail = text.ceil_char_boundary(text.len() - (room - head));
    let tail = sign_behind(text, tail);
    Cow::Owned(format!(
        "{}\n[… {} bytes left out …]\n{}",
        &text[..head],
        tail - head,
        &text[tail..]
    ))
}

/// Returns the last place of a text up to `place`, which parts two letters, that parts two signs too; `place` itself where
/// the first sign alone is longer.
pub fn sign_before(text: &str, place: usize) -> usize {
    let mut cursor = GraphemeCursor::new(place, text.len(), true);
    if matches!(cursor.is_boundary(text, 0), Ok(true)) {
        return place;
    }
    match cursor.prev_boundary(text, 0) {
        Ok(Some(begin)) if begin > 0 => begin,
        _ => place,
    }
}

/// Returns the first place of a text from `place` on that parts two signs; `place` itself where the last sign alone is longer.
fn sign_behind(text: &str, place: usize) -> usize {
    let mut cursor = GraphemeCursor::new(place, text.len(), true);
    if matches!(cursor.is_boundary(text, 0), Ok(true)) {
        return place;
    }
    match cursor.next_boundary(text, 0) {
        Ok(Some(end)) if end < text.len() => end,
        _ => place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_left_as_it_is() {
        let text = "öne\ntwo";
        for kept in [
            letters(text, 7),
            lines(text, 7),
            end(text, 7),
            ends(text, 8, Weight::Even),
        ] {
            assert!(matches!(kept, Cow::Borrowed(same) if same == text));
        }
        assert_eq!(line(" öne\n two ", 7), "öne two");
    }

    #[test]
    fn what_is_too_long_is_cut_between_letters_and_says_so() {
        assert_eq!(letters("öööö", 3), "öö…");
        assert_eq!(letters("one two", 5), "one…", "no blank before the mark");
        assert_eq!(letters("ö", 0), "…");
        assert_eq!(line("one\n two three", 8), "one two…");
        for (most, expected) in [
            (11, "one two-six"),
            (10, "one…"),
            (5, "one…"),
            (4, "one…"),
            (3, "on…"),
        ] {
            assert_eq!(words("one\n two-six", most), expected, "{most}");
        }
        assert_eq!(lines("one\ntwo\nthree", 9), "one\ntwo\n[…]");
        assert_eq!(lines("ööööö", 4), "öööö\n[…]");
        assert_eq!(end("öööö", 3), "…öö");
        assert_eq!(end("one two", 4), "…two");
        assert_eq!(end("ö one", 1), "…");
    }

    #[test]
    fn no_cut_falls_inside_of_what_is_read_as_one_sign() {
        let family = "👨\u{200d}👩\u{200d}👧";
        let text = format!("ab{family}c");
        for most in 4..8 {
            assert_eq!(letters(&text, most), "ab…", "{most}");
            assert_eq!(lines(&text, most - 1), "ab\n[…]", "{most}");
        }
        assert_eq!(letters("ne\u{301}e", 3), "n…");
        assert_eq!(end(&text, 4), "…c");
        let text = format!("{}{}", family.repeat(20), "x".repeat(8));
        let kept = ends(&text, 98, Weight::Even);
        let (head, _) = kept.split_once("\n[").unwrap();
        assert!(
            head.is_empty() || head.replace(family, "").is_empty(),
            "{head:?}"
        );
        // A sign without an end is cut all the same.
        let marks = format!("a{}", "\u{301}".repeat(9));
        assert_eq!(letters(&marks, 5).chars().count(), 5);
    }

    #[test]
    fn both_ends_fit_into_the_bound_by_their_weight() {
        let text = format!("head é{}é tail", "é".repeat(10_000));
        for (weight, head) in [
            (Weight::Head, 714),
            (Weight::Tail, 238),
            (Weight::Even, 476),
        ] {
            let kept = ends(&text, 1_000, weight);
            assert!(kept.len() <= 1_000 && kept.ends_with("é tail"), "{kept}");
            let begin = kept.split_once("\n[… ").unwrap().0;
            assert!(begin.starts_with("head é") && begin.len().abs_diff(head) < 2);
        }
    }
}
