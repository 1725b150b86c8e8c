//! Hears what a person says in a conversation: lines of a pipe or a file, or what is typed and pasted at a terminal.

use std::io::{Error, ErrorKind, Result};
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// What follows a line so soon was pasted with it.
const BREATH: Duration = Duration::from_millis(50);
/// What some terminals put around a block that is pasted.
const PASTED: [&str; 2] = ["\u{1b}[200~", "\u{1b}[201~"];
/// So many bytes of a line a terminal keeps, and says nothing of the rest.
pub(super) const TERMINAL_LINE: usize = 4095;
/// The most lines that are looked through for what was not heard.
const MOST_LEFT: usize = 1000;

/// What was heard.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Utterance {
    /// A message.
    Message(String),
    /// A word with a stroke before it, `/help`, which is meant for a program.
    Order(String),
    /// A message of which the terminal has cut a line.
    Cut,
    /// Nothing more comes.
    End,
}

/// Hears one message after the other.
pub(super) struct Listener<Input> {
    input: Input,
    /// Whether a person types: what comes in the same breath is one message, since a block is pasted as one.
    terminal: bool,
    /// A line that has not come whole yet.
    begun: Vec<u8>,
}

impl<Input: AsyncBufRead + Unpin> Listener<Input> {
    pub(super) const fn new(input: Input, terminal: bool) -> Self {
        Self {
            input,
            terminal,
            begun: Vec::new(),
        }
    }

    /// Waits for what is said next.
    pub(super) async fn next(&mut self) -> Result<Utterance> {
        let Some(first) = self.line().await? else {
            return Ok(Utterance::End);
        };
        if !self.terminal {
            return text(first).map(Utterance::Message);
        }
        let mut is_cut = first.len() >= TERMINAL_LINE;
        let mut block = first;
        let [begin, end] = PASTED.map(str::as_bytes);
        loop {
            // Between the marks there is nothing to guess.
            let is_open = contains(&block, begin) && !contains(&block, end);
            let breath = if is_open { Duration::MAX } else { BREATH };
            let next = tokio::time::timeout(breath, self.line()).await;
            let Ok(Some(line)) = next.unwrap_or(Ok(None)) else {
                break;
            };
            is_cut |= line.len() >= TERMINAL_LINE;
            block.push(b'\n');
            block.extend(line);
        }
        if is_cut {
            return Ok(Utterance::Cut);
        }
        let [begin, end] = PASTED;
        let text = text(block)?.replace(begin, "").replace(end, "");
        Ok(order(&text))
    }

    /// Returns the lines that have come and were not heard.
    pub(super) async fn left(&mut self) -> Vec<String> {
        let mut left = Vec::new();
        while left.len() < MOST_LEFT
            && let Ok(Ok(Some(line))) = tokio::time::timeout(BREATH, self.line()).await
        {
            let line = String::from_utf8_lossy(&line).trim().to_owned();
            left.extend((!line.is_empty()).then_some(line));
        }
        left
    }

    /// Waits for a line, without its end; whoever waits no longer loses nothing of it.
    async fn line(&mut self) -> Result<Option<Vec<u8>>> {
        self.input.read_until(b'\n', &mut self.begun).await?;
        let mut line = std::mem::take(&mut self.begun);
        if line.is_empty() {
            return Ok(None);
        }
        for end in [b'\n', b'\r'] {
            line.pop_if(|last| *last == end);
        }
        Ok(Some(line))
    }
}

/// Refuses what is no text: of one with U+0000 the store would keep another.
fn text(bytes: Vec<u8>) -> Result<String> {
    if bytes.contains(&0) {
        return Err(Error::new(ErrorKind::InvalidData, "it is binary"));
    }
    String::from_utf8(bytes).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}

fn contains(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|part| part == wanted)
}

/// Tells a message from a word that is meant for a program; with two strokes it is a message that begins with one.
fn order(text: &str) -> Utterance {
    let is_word = |rest: &str| {
        !rest.is_empty() && !rest.contains(|one: char| one == '/' || one.is_whitespace())
    };
    let said = text.trim();
    if said.strip_prefix('/').is_some_and(is_word) {
        return Utterance::Order(said.to_owned());
    }
    let literal = said.strip_prefix("//").filter(|rest| is_word(rest));
    Utterance::Message(literal.map_or_else(|| text.to_owned(), |word| format!("/{word}")))
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    async fn heard(text: &[u8], terminal: bool) -> Vec<Utterance> {
        let mut listener = Listener::new(BufReader::new(text), terminal);
        let mut heard = Vec::new();
        loop {
            match listener.next().await.unwrap() {
                Utterance::End => return heard,
                said => heard.push(said),
            }
        }
    }

    fn message(text: &str) -> Utterance {
        Utterance::Message(text.to_owned())
    }

    #[tokio::test]
    async fn each_line_of_a_pipe_is_a_message_whatever_it_is() {
        let long = "x".repeat(2 * TERMINAL_LINE);
        let text = format!("one\r\n\n/help\n{long}");
        let expected = ["one", "", "/help", &long].map(message);
        assert_eq!(heard(text.as_bytes(), false).await, expected);
        for broken in [&b"\xff\n"[..], b"a\0b\n"] {
            let mut broken = Listener::new(BufReader::new(broken), false);
            assert!(broken.next().await.is_err());
        }
    }

    #[tokio::test]
    async fn at_a_terminal_a_breath_is_a_message_and_a_line_that_was_cut_is_none() {
        let cut = "ä".repeat(TERMINAL_LINE);
        let cut = [b"before\n", &cut.as_bytes()[..TERMINAL_LINE], b"\nafter\n"].concat();
        let whole = "x".repeat(TERMINAL_LINE - 1);
        let cases: [(&[u8], Utterance); 8] = [
            (b"one\n\ntwo\n", message("one\n\ntwo")),
            (b"\x1b[200~one\ntwo\x1b[201~\n", message("one\ntwo")),
            (&cut, Utterance::Cut),
            (whole.as_bytes(), message(&whole)),
            (b"/help\n", Utterance::Order("/help".to_owned())),
            (b"//help\n", message("/help")),
            (b"/usr/bin\n", message("/usr/bin")),
            (b"// a remark\n", message("// a remark")),
        ];
        for (text, expected) in cases {
            assert_eq!(heard(text, true).await, [expected]);
        }
    }

    #[tokio::test]
    async fn what_came_and_was_not_heard_is_left() {
        let mut listener = Listener::new(BufReader::new(&b"one\ntwo\n\nthree"[..]), false);
        assert_eq!(listener.next().await.unwrap(), message("one"));
        assert_eq!(listener.left().await, ["two", "three"]);
        assert_eq!(listener.next().await.unwrap(), Utterance::End);
    }
}
