//! Strikes secrets out of words that come piece by piece.

use super::{SecretSet, known, strike};

/// Words as they are spoken; one that may be the beginning of a secret is held back until it is clear.
#[derive(Debug, Default)]
pub struct SecretFilter {
    held: String,
}

impl SecretFilter {
    /// Takes the next piece, and returns what can be shown by now.
    pub fn hear(&mut self, piece: &str) -> String {
        let Some(known) = known() else {
            return piece.to_owned();
        };
        self.held.push_str(piece);
        let rest = self.held.split_off(clear(&self.held, &known));
        let clear = std::mem::replace(&mut self.held, rest);
        strike(&clear).into_owned()
    }

    /// Returns what was held back until the end.
    pub fn end(&mut self) -> String {
        strike(&std::mem::take(&mut self.held)).into_owned()
    }
}

/// Returns how much of `text` no next piece can make a part of a secret.
fn clear(text: &str, known: &SecretSet) -> usize {
    let begins = |from: &usize| {
        let rest = &text[*from..];
        let mut forms = known.forms.iter();
        forms.any(|form| form.len() > rest.len() && form.starts_with(rest))
    };
    let longest = known.forms.iter().map(String::len).max();
    let least = text.len().saturating_sub(longest.unwrap_or_default());
    let open = (least..text.len())
        .filter(|from| text.is_char_boundary(*from))
        .find(begins);
    let open = open.unwrap_or(text.len());
    // A secret that is whole is no beginning of another one that it overlaps.
    let whole = known
        .finder
        .find_iter(text)
        .find(|found| found.start() < open && open < found.end());
    whole.map_or(open, |found| found.end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::keep;

    #[test]
    fn a_secret_that_comes_in_pieces_is_never_shown() {
        keep(["spoken-canary-9", "spoken-canary-9-and-longer"]);
        let text =
            "ordinary words, spoken softly: spoken-canary-9! spoken-canary-9-and-longer spoken-";
        let expected = "ordinary words, spoken softly: [secret]! [secret] spoken-";
        for size in 1..30 {
            let mut spoken = SecretFilter::default();
            let letters: Vec<char> = text.chars().collect();
            let mut shown = String::new();
            for piece in letters.chunks(size) {
                shown.push_str(&spoken.hear(&piece.iter().collect::<String>()));
            }
            shown.push_str(&spoken.end());
            assert_eq!(shown, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn what_begins_no_secret_is_shown_at_once() {
        keep(["spoken-canary-9"]);
        let mut spoken = SecretFilter::default();
        assert_eq!(spoken.hear("walks é"), "walks é");
        assert_eq!(spoken.hear("walks spok"), "walks ");
        assert_eq!(spoken.hear("es."), "spokes.");
        assert_eq!(spoken.end(), "");
    }
}
