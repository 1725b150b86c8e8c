//! Describes one call of git and its answer.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use ropewalk_schemas::CommitId;

use super::GitError;

/// The most that an answer may have before it is an error: file contents and file lists are far below.
const OUTPUT_LIMIT_BYTES: usize = 64 * 1024 * 1024;
/// Local plumbing ends in milliseconds; this bounds a broken disk.
const TIMEOUT: Duration = Duration::from_mins(2);

/// One call of git.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(super) arguments: Vec<OsString>,
    pub(super) settings: Vec<&'a str>,
    pub(super) directory: Option<&'a Path>,
    pub(super) git_directory: Option<&'a Path>,
    pub(super) work_tree: Option<&'a Path>,
    pub(super) index: Option<&'a Path>,
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) stdin: Option<Vec<u8>>,
    pub(super) timeout: Duration,
    pub(super) output_limit_bytes: usize,
    pub(super) cut: bool,
    pub(super) magic: bool,
}

impl<'a> Call<'a> {
    /// Begins a call with the verb and its arguments.
    pub(crate) fn new<Argument: Into<OsString>>(
        arguments: impl IntoIterator<Item = Argument>,
    ) -> Self {
        Self {
            arguments: arguments.into_iter().map(Into::into).collect(),
            settings: Vec::new(),
            directory: None,
            git_directory: None,
            work_tree: None,
            index: None,
            variables: Vec::new(),
            stdin: None,
            timeout: TIMEOUT,
            output_limit_bytes: OUTPUT_LIMIT_BYTES,
            cut: false,
            magic: false,
        }
    }

    /// Adds an argument.
    pub(crate) fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Lets paths begin with what git does with them, such as `:(exclude,literal)`; whoever names one has to say `literal`.
    pub(crate) fn with_magic(mut self) -> Self {
        self.magic = true;
        self
    }

    /// Adds settings for this call alone.
    pub(crate) fn settings(mut self, settings: &[&'a str]) -> Self {
        self.settings.extend(settings);
        self
    }

    /// Runs in `directory`.
    pub(crate) fn directory(mut self, directory: &'a Path) -> Self {
        self.directory = Some(directory);
        self
    }

    /// Names the repository, so that nothing is searched for.
    pub(crate) fn git_directory(mut self, git_directory: &'a Path) -> Self {
        self.git_directory = Some(git_directory);
        self
    }

    /// Names the working tree and its index.
    pub(crate) fn work_tree(mut self, work_tree: &'a Path, index: &'a Path) -> Self {
        self.work_tree = Some(work_tree);
        self.index = Some(index);
        self
    }

    /// Names an index that belongs to no working tree.
    pub(crate) fn index(mut self, index: &'a Path) -> Self {
        self.index = Some(index);
        self
    }

    /// Adds a variable.
    pub(crate) fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Gives git something to read.
    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Allows more time, for verbs that move a whole repository.
    pub(crate) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Keeps the head and the tail of an answer longer than `limit_bytes` instead of failing.
    pub(crate) fn cut_at(mut self, limit_bytes: usize) -> Self {
        self.output_limit_bytes = limit_bytes;
        self.cut = true;
        self
    }

    /// Returns the verb, for messages.
    pub(super) fn name(&self) -> String {
        self.arguments
            .first()
            .map_or_else(String::new, |verb| verb.to_string_lossy().into_owned())
    }
}

/// What git answered.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    pub(crate) truncated: bool,
}

impl Output {
    /// Turns an answer that is a refusal into an error.
    pub(crate) fn failure(&self, command: String) -> GitError {
        let reason = self.stderr.trim();
        let reason = if reason.is_empty() {
            String::from_utf8_lossy(&self.stdout)
        } else {
            reason.into()
        };
        GitError::Failed {
            command,
            code: self.code,
            reason: last_words(&reason),
        }
    }

    /// Returns the text without the final line end.
    pub(crate) fn line(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end().to_owned()
    }

    /// Reads the answer as one object id.
    pub(crate) fn object(&self, command: &str) -> Result<CommitId, GitError> {
        CommitId::parse(&self.line()).map_err(|_| GitError::unreadable(command, &self.stdout))
    }

    /// Splits a `-z` answer into its fields.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &[u8]> {
        self.stdout
            .split(|byte| *byte == 0)
            .filter(|field| !field.is_empty())
    }
}

/// Joins the last lines of a message into one, short enough for a log line.
fn last_words(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let words = lines[lines.len().saturating_sub(4)..].join("; ");
    words.chars().take(600).collect()
}
