//! Shows a text while it comes: marked words in bold, and no word broken at the end of a line of the terminal.

use ratatui::text::Span;

use super::bold::{BoldState, OFF, ON};

const ESCAPE: char = '\u{1b}';
/// Goes back by a column.
const BACK: &str = "\u{8}";
/// How many columns a tab takes at most.
const TAB: usize = 8;

/// A text on its way to people.
#[derive(Debug)]
pub struct Prose {
    bold: BoldState,
    /// How many columns of a line are filled; none where nobody says how many there are.
    most: Option<usize>,
    line: LineState,
}

impl Prose {
    /// Begins a text where so many columns of the line are taken; one that is not `styled` has its marks as they are.
    pub fn new(styled: bool, column: usize) -> Self {
        Self::within(super::width().map(usize::from), styled, column)
    }

    fn within(width: Option<usize>, styled: bool, column: usize) -> Self {
        Self {
            bold: BoldState::new(styled),
            // Where a terminal is once its last column is filled, each says otherwise.
            most: width.and_then(|width| width.checked_sub(1)),
            line: LineState {
                column,
                ..LineState::default()
            },
        }
    }

    /// Returns the next piece as it is shown.
    pub(super) fn show(&mut self, text: &str) -> String {
        let shown = self.bold.show(text);
        self.wrapped(&shown)
    }

    /// Returns what the end of the text still has to show; whatever is shown then begins on the next line.
    pub(super) fn end(&mut self) -> String {
        let shown = self.bold.end();
        let shown = self.wrapped(&shown);
        self.line = LineState::default();
        shown
    }

    fn wrapped(&mut self, text: &str) -> String {
        let Some(most) = self.most else {
            return text.to_owned();
        };
        let mut shown = String::with_capacity(text.len());
        for letter in text.chars() {
            self.line.put(letter, most, &mut shown);
        }
        shown
    }
}

/// The line on which a text goes on.
#[derive(Debug, Default)]
struct LineState {
    /// How many columns are taken.
    column: usize,
    /// The word at its end, which may go on, with what makes it bold.
    word: String,
    /// How many columns of the line the word takes.
    taken: usize,
    /// Whether the word began in bold.
    began_bold: bool,
    /// Whether what follows is bold.
    is_bold: bool,
    /// What has come of a sequence that begins or ends bold words.
    sequence: String,
}

impl LineState {
    /// Adds a letter to what is shown.
    fn put(&mut self, letter: char, most: usize, shown: &mut String) {
        match letter {
            _ if letter == ESCAPE || !self.sequence.is_empty() => self.put_style(letter, shown),
            '\n' => {
                shown.push(letter);
                *self = Self {
                    is_bold: self.is_bold,
                    ..Self::default()
                };
            }
            ' ' | '\t' => self.put_blank(letter, most, shown),
            _ => self.put_sign(letter, most, shown),
        }
    }

    fn put_style(&mut self, letter: char, shown: &mut String) {
        self.begin_word();
        shown.push(letter);
        self.sequence.push(letter);
        if letter == 'm' {
            self.is_bold = self.sequence == ON;
            self.word.push_str(&self.sequence);
            self.sequence.clear();
        }
    }

    fn put_blank(&mut self, letter: char, most: usize, shown: &mut String) {
        let size = match letter {
            '\t' => TAB - self.column % TAB,
            _ => 1,
        };
        self.word.clear();
        self.taken = 0;
        if self.column + size > most {
            // What follows begins a line.
            self.column = most;
        } else {
            self.column += size;
            shown.push(letter);
        }
    }

    fn put_sign(&mut self, letter: char, most: usize, shown: &mut String) {
        self.begin_word();
        let size = self.grows_by(letter);
        if self.column + size > most && self.taken < self.column {
            self.take_to_next_line(shown);
        }
        shown.push(letter);
        self.word.push(letter);
        self.column += size;
        self.taken += size;
        if self.column > most {
            // A word that no line holds the terminal breaks by itself.
            // A wide letter goes to the next line whole.
            self.column = if self.column > most + 1 { size } else { 0 };
            // It moves no more, however long it becomes.
            self.word.clear();
            self.word.push(letter);
            self.taken = self.column;
        }
    }

    /// Returns by how many columns the word grows with a letter, which may only change how the one before looks.
    fn grows_by(&self, letter: char) -> usize {
        let before = Span::raw(self.word.as_str()).width();
        let grown = format!("{}{letter}", self.word);
        Span::raw(grown).width().saturating_sub(before)
    }

    fn begin_word(&mut self) {
        if self.word.is_empty() && self.sequence.is_empty() {
            self.began_bold = self.is_bold;
        }
    }

    /// Wipes what stands of the word, and writes it on the next line.
    fn take_to_next_line(&mut self, shown: &mut String) {
        shown.push_str(&BACK.repeat(self.taken));
        shown.push_str(&" ".repeat(self.taken));
        shown.push('\n');
        if self.began_bold != self.is_bold {
            shown.push_str(if self.began_bold { ON } else { OFF });
        }
        shown.push_str(&self.word);
        self.column = self.taken;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines that stand on a terminal which is shown this.
    fn screen(shown: &str) -> Vec<String> {
        let mut lines = vec![Vec::new()];
        let mut column = 0;
        for letter in shown.chars() {
            let line: &mut Vec<char> = lines.last_mut().unwrap();
            match letter {
                '\n' => lines.push(Vec::new()),
                '\u{8}' => {}
                _ if column < line.len() => line[column] = letter,
                _ => line.push(letter),
            }
            column = match letter {
                '\n' => 0,
                '\u{8}' => column - 1,
                _ => column + 1,
            };
        }
        let lines = lines.iter().map(String::from_iter);
        lines.map(|line| line.trim_end().to_owned()).collect()
    }

    fn told(width: Option<usize>, column: usize, pieces: &[&str]) -> Vec<String> {
        let mut prose = Prose::within(width, false, column);
        let shown: String = pieces.iter().map(|piece| prose.show(piece)).collect();
        screen(&(shown + &prose.end()))
    }

    #[test]
    fn no_word_is_broken_however_it_comes() {
        for pieces in [
            &["one two escapes four five"][..],
            &["one two esc", "ap", "es four fi", "ve"],
            &["one two", " ", "escapes", " four five"],
        ] {
            let expected = ["one two", "escapes four", "five"];
            assert_eq!(told(Some(14), 0, pieces), expected, "{pieces:?}");
        }
        // What asks for the text stands there before it.
        assert_eq!(told(Some(14), 10, &["one two"]), ["one", "two"]);
        let paragraphs = ["one two", "", "later on"];
        assert_eq!(told(Some(9), 0, &[&paragraphs.join("\n")]), paragraphs);
        assert_eq!(told(None, 0, &["one two three"]), ["one two three"]);
    }

    #[test]
    fn a_word_that_goes_to_the_next_line_is_bold_there_as_it_was() {
        let mut prose = Prose::within(Some(10), true, 0);
        let shown = prose.show("say **two words** on") + &prose.end();
        let (before, after) = shown.rsplit_once('\n').unwrap();
        assert!(before.starts_with(&format!("say {ON}two")), "{shown:?}");
        assert_eq!(after, format!("words{OFF} on"));
        // Its end was there before it turned out not to fit.
        let mut prose = Prose::within(Some(10), true, 0);
        let shown = prose.show("**ab cdefgh**.") + &prose.end();
        assert!(shown.ends_with(&format!("\n{ON}cdefgh{OFF}.")), "{shown:?}");
    }

    #[test]
    fn a_word_that_no_line_holds_is_left_to_the_terminal() {
        let long = "x".repeat(25);
        let expected = ["a".to_owned(), format!("{long} b")];
        assert_eq!(told(Some(10), 0, &["a ", &long, " b"]), expected);
    }
}
