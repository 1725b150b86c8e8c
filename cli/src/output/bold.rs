//! Shows `**words**` in bold as they come, where a terminal may be coloured.

const MARK: char = '*';
pub(super) const ON: &str = "\x1b[1m";
pub(super) const OFF: &str = "\x1b[22m";

/// Takes the marks away where a text is told in a line; in what stands as code they mean something else.
pub(super) fn unmarked(text: &str) -> String {
    let pieces = text.split('`').enumerate();
    let pieces: Vec<String> = pieces
        .map(|(at, piece)| match at % 2 {
            0 => piece.replace("**", ""),
            _ => piece.to_owned(),
        })
        .collect();
    pieces.join("`")
}

/// Where between the marks a text is.
#[derive(Debug, Default)]
pub(super) struct BoldState {
    styled: bool,
    is_on: bool,
    /// Whether the last letter was a mark whose second one may still come.
    is_half: bool,
}

impl BoldState {
    /// Begins a text; one that is not `styled` is shown as it is.
    pub(super) const fn new(styled: bool) -> Self {
        Self {
            styled,
            is_on: false,
            is_half: false,
        }
    }

    /// Returns the next piece as it is shown.
    pub(super) fn show(&mut self, text: &str) -> String {
        if !self.styled {
            return text.to_owned();
        }
        let mut shown = String::with_capacity(text.len());
        for letter in text.chars() {
            match (letter, self.is_half) {
                (MARK, false) => self.is_half = true,
                (MARK, true) => {
                    self.is_half = false;
                    self.is_on = !self.is_on;
                    shown.push_str(if self.is_on { ON } else { OFF });
                }
                (_, half) => {
                    if half {
                        self.is_half = false;
                        shown.push(MARK);
                    }
                    shown.push(letter);
                }
            }
        }
        shown
    }

    /// Returns what the end of the text still has to show, so that nothing after it is bold.
    pub(super) fn end(&mut self) -> String {
        let mark = if std::mem::take(&mut self.is_half) {
            "*"
        } else {
            ""
        };
        let off = if std::mem::take(&mut self.is_on) {
            OFF
        } else {
            ""
        };
        format!("{mark}{off}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_words_are_bold_however_the_text_is_cut() {
        let rows = [
            (vec!["a **b", "** c"], "a \u{1b}[1mb\u{1b}[22m c"),
            (vec!["a *", "*b*", "* c"], "a \u{1b}[1mb\u{1b}[22m c"),
            (vec!["* one\n* two"], "* one\n* two"),
            (vec!["2 * 3 *"], "2 * 3 *"),
            (vec!["**open"], "\u{1b}[1mopen\u{1b}[22m"),
        ];
        for (pieces, expected) in rows {
            let mut bold = BoldState::new(true);
            let mut shown: String = pieces.iter().map(|piece| bold.show(piece)).collect();
            shown.push_str(&bold.end());
            assert_eq!(shown, expected, "{pieces:?}");
        }
        let mut plain = BoldState::new(false);
        assert_eq!(plain.show("**a**") + &plain.end(), "**a**");
    }
}
