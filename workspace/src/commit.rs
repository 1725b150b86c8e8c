//! Holds what a commit says: its message, its author, its place in the history, and what it changes.

use chrono::{DateTime, Utc};
use ropewalk_runtime::{secrets, terminal};
use ropewalk_schemas::CommitId;

/// Who commits; given to git with every call, never read from a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name.
    pub name: String,
    /// The mail address.
    pub email: String,
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            name: "Ropewalk".to_owned(),
            email: "ropewalk@localhost".to_owned(),
        }
    }
}

/// The message of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitMessage {
    /// The first line.
    pub subject: String,
    /// The text below, possibly empty.
    pub body: String,
    /// The trailers in their order, for example `Ropewalk-Task`.
    pub trailers: Vec<(String, String)>,
}

impl CommitMessage {
    /// Begins a message with its first line.
    pub fn new(subject: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            body: String::new(),
            trailers: Vec::new(),
        }
    }

    /// Sets the text below the first line.
    pub fn with_body(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self
    }

    /// Adds a trailer.
    pub fn with_trailer(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.trailers.push((name.into(), value.into()));
        self
    }

    /// Renders the message as git stores it.
    pub(crate) fn text(&self) -> String {
        let mut text = one_line(&self.subject);
        if !self.body.trim().is_empty() {
            text.push_str("\n\n");
            text.push_str(self.body.trim());
        }
        // Trailers are a last paragraph of their own, so that no line of a body can pass for one.
        for (position, (name, value)) in self.trailers.iter().enumerate() {
            text.push_str(if position == 0 { "\n\n" } else { "\n" });
            text.push_str(&[one_line(name), one_line(value)].join(": "));
        }
        text.push('\n');
        // Git ends a message at a NUL, and shows all else to a terminal as it is.
        let text = secrets::strike(&text).replace('\0', " ");
        terminal::visible(&text).into_owned()
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A commit to make of a tree that exists.
#[derive(Debug, Clone)]
pub struct NewCommit<'a> {
    /// The id of the tree.
    pub tree: &'a str,
    /// The commits it follows.
    pub parents: &'a [CommitId],
    /// What it says.
    pub message: &'a CommitMessage,
    /// When it was made, both as author and as committer.
    pub when: DateTime<Utc>,
}

/// A commit as the history tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedCommit {
    /// Its id.
    pub id: CommitId,
    /// The id of its tree.
    pub tree: String,
    /// The commits it follows.
    pub parents: Vec<CommitId>,
    /// Who wrote it.
    pub author: String,
    /// When it was committed.
    pub committed_at: DateTime<Utc>,
    /// The first line of its message.
    pub subject: String,
    /// The trailers of its message.
    pub trailers: Vec<(String, String)>,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its content or mode is another.
    Modified,
    /// It is gone.
    Deleted,
}

/// A file that differs, by its path as git has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChangedFile {
    /// The path from the root of the repository.
    pub path: String,
    /// What happened to it.
    pub kind: ChangeKind,
}

/// How much of a file differs between two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedLines {
    /// The path from the root of the repository.
    pub path: String,
    /// How many lines came and how many went; none where git sees no lines in it.
    pub lines: Option<(u64, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_are_the_last_paragraph_and_stay_on_their_line() {
        let message = CommitMessage::new("add a\nfile")
            .with_body("Ropewalk-Task: T-9\u{1b}[2J\n")
            .with_trailer("Ropewalk-Task", "T-1\nRopewalk-Execution: forged");
        assert_eq!(
            message.text(),
            "add a file\n\nRopewalk-Task: T-9␛[2J\n\nRopewalk-Task: T-1 Ropewalk-Execution: forged\n"
        );
    }
}
