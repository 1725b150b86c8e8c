//! Tells the history of a commit to a reader: its log, one commit with its difference, who wrote which line.

use ropewalk_schemas::{CommitId, RepoPath};

use super::read::Diff;
use crate::git::Call;
use crate::{GitError, LocalClone};

/// The most that is told in one answer.
const LIMIT_BYTES: usize = 48 * 1024;
/// One line a commit: abbreviated id, day, author, subject.
const LINE: &str = "--format=%h %cs %an: %s";

impl LocalClone {
    /// Tells the newest `count` commits up to `commit`, a line each; with a path those that changed it.
    pub async fn log_lines(
        &self,
        commit: &CommitId,
        path: Option<&RepoPath>,
        count: usize,
    ) -> Result<String, GitError> {
        let call = self
            .call(["log", "--no-color", "--no-show-signature", LINE])
            .argument(format!("--max-count={count}"))
            .argument(commit.as_str());
        let output = self.git().run(about(call, path)).await?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Shows one commit with its message and what it changed, bounded in size.
    pub async fn show_commit(
        &self,
        commit: &CommitId,
        path: Option<&RepoPath>,
    ) -> Result<Diff, GitError> {
        let call = self
            .call(["show", "--no-color", "--no-show-signature", "--no-ext-diff"])
            .argument("--no-textconv")
            .argument("--stat")
            .argument("--patch")
            .argument("--format=commit %H%nAuthor: %an%nDate: %cI%n%n%B")
            .argument(commit.as_str());
        let output = self.git().run(about(call, path)).await?;
        Ok(Diff {
            text: String::from_utf8_lossy(&output.stdout).into_owned(),
            truncated: output.truncated,
        })
    }

    /// Says for the lines `first` to `last` of a file, from 1, which commit wrote them last, and when.
    ///
    /// What git refuses, such as lines that the file does not have, is [`GitError::Failed`].
    pub async fn blame_lines(
        &self,
        commit: &CommitId,
        path: &RepoPath,
        (first, last): (usize, usize),
    ) -> Result<String, GitError> {
        let call = self
            .call(["blame", "--date=short", "-L"])
            .argument(format!("{first},{last}"))
            .argument(commit.as_str());
        let output = self.git().run(about(call, Some(path))).await?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Bounds the answer of a call, and its question to a path where there is one.
fn about<'a>(call: Call<'a>, path: Option<&'a RepoPath>) -> Call<'a> {
    let call = call.argument("--").cut_at(LIMIT_BYTES);
    match path {
        Some(path) => call.argument(path.as_str()),
        None => call,
    }
}
