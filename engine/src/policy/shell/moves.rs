//! Follows to which directories a text goes, and for which of its parts that may count.

use std::ops::Range;

use tree_sitter::Node;

use super::word::Word;

/// Is where something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// At this byte of the line.
    At(usize),
    /// Where it runs is not known: it is called from elsewhere.
    Anywhere,
}

/// Is a change of the directory.
#[derive(Debug)]
pub(super) struct Move {
    /// The directory that the text is in behind it.
    pub(super) to: Destination,
    /// The bytes for which it may count.
    pub(super) reach: Range<usize>,
}

impl Move {
    /// Says whether what stands at `place` may run behind it.
    pub(super) fn may_count_at(&self, place: Place) -> bool {
        match place {
            Place::At(at) => self.reach.contains(&at),
            Place::Anywhere => true,
        }
    }
}

/// Is what a part of a text means for the directories of those in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Enclosure {
    /// Nothing.
    Plain,
    /// They are left at this byte.
    Closed(usize),
    /// What begins at this byte may run again.
    Repeated(usize),
    /// What begins at this byte runs where it is called.
    Called(usize),
}

/// Is what lies around a part of a text, from the outermost.
#[derive(Debug, Default)]
pub(super) struct Surroundings(Vec<Enclosure>);

impl Surroundings {
    /// Goes into the parts of `node`.
    pub(super) fn enter(&mut self, node: Node<'_>) {
        self.0.push(match node.kind() {
            "subshell" | "command_substitution" | "process_substitution" => {
                Enclosure::Closed(node.end_byte())
            }
            "for_statement" | "c_style_for_statement" | "while_statement" => {
                Enclosure::Repeated(node.start_byte())
            }
            "function_definition" => Enclosure::Called(node.start_byte()),
            _ => Enclosure::Plain,
        });
    }

    /// Leaves the part that was entered last.
    pub(super) fn leave(&mut self) {
        self.0.pop();
    }

    /// Returns where a part runs that begins at this byte.
    pub(super) fn place(&self, at: usize) -> Place {
        let is_called = |one: &Enclosure| matches!(one, Enclosure::Called(_));
        if self.0.iter().any(is_called) {
            Place::Anywhere
        } else {
            Place::At(at)
        }
    }

    /// Returns the change that a command makes which ends at this byte.
    pub(super) fn change(&self, to: Destination, at: usize) -> Move {
        let mut one = Move {
            to,
            reach: at..usize::MAX,
        };
        let mut around = self.0.iter().rev();
        for enclosure in around.by_ref() {
            match *enclosure {
                Enclosure::Plain => {}
                Enclosure::Closed(end) => {
                    one.reach.end = end;
                    break;
                }
                // How often it is made is not known.
                Enclosure::Repeated(start) | Enclosure::Called(start) => {
                    one.to.repeat();
                    one.reach.start = start;
                }
            }
        }
        // Neither is it where a function may call itself from there.
        if around.any(|enclosure| matches!(enclosure, Enclosure::Called(_))) {
            one.to.repeat();
        }
        one
    }
}

/// Is where a `cd` leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// To where the line has been: to no other directory, unless the line says itself where it has been.
    Back,
    /// To this one, where it is known.
    To(Option<String>),
}

impl Destination {
    /// Takes in that it is gone to nobody knows how often.
    fn repeat(&mut self) {
        if let Self::To(to) = self {
            *to = None;
        }
    }
}

/// Returns where a `cd` with these words leads.
pub(super) fn destination(words: &[Word]) -> Destination {
    let mut rest = words.iter();
    let mut to = rest.next();
    while let Some(word) = to.filter(|word| word.is_fixed) {
        match word.text.as_str() {
            "--" => {
                to = rest.next();
                break;
            }
            // A later `popd` goes there, from wherever it is.
            "-n" => return Destination::To(None),
            text if is_turn(text) => return Destination::Back,
            text if text.starts_with('-') && text != "-" => to = rest.next(),
            _ => break,
        }
    }
    if to.is_some_and(|word| word.is_fixed && word.text == "-") {
        Destination::Back
    } else {
        Destination::To(to.and_then(known))
    }
}

/// Returns the directory that a word names.
pub(super) fn known(word: &Word) -> Option<String> {
    let is_known = word.is_fixed && !word.is_pattern && !word.text.is_empty();
    Some(word.text.clone()).filter(|_| is_known)
}

/// Says whether a `cd` may look for a directory of this name elsewhere than in the present one.
pub(super) fn is_searched(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or_default();
    !matches!(first, "" | "." | "..")
}

/// Says whether a text names a directory of those where the line has been, as `pushd +1` does.
fn is_turn(text: &str) -> bool {
    let number = text.strip_prefix(['-', '+']);
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}
