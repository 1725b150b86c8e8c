//! Tells the history of a commit to a reader: its log, one commit with its difference, who wrote which line.

use ropewalk_schemas::{CommitId, RepoPath};

use super::read::Diff;
use crate::git::Call;
use crate::{GitError, LocalClone};

/// The most that is told in one answer.
const LIMIT_BYTES: usize = 48 * 1024;
/// One line a commit: abbreviated id, day, author, subject.
const LINE: &str = "--format=%h %cs %an: %s";

/// Which files of a history are told of.
#[derive(Debug, Clone, Copy, Default)]
pub struct HistoryPart<'a> {
    /// The file or directory; all of them where none is named.
    pub path: Option<&'a RepoPath>,
    /// A directory that is left out.
    pub without: Option<&'a RepoPath>,
}

impl LocalClone {
    /// Tells the newest `count` commits up to `commit` that changed such files, a line each.
    pub async fn log_lines(
        &self,
        commit: &CommitId,
        part: HistoryPart<'_>,
        count: usize,
    ) -> Result<String, GitError> {
        let call = self
            .call(["log", "--no-color", "--no-show-signature", LINE])
            .argument(format!("--max-count={count}"))
            .argument(commit.as_str());
        let output = self.git().run(about(call, part)).await?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Shows one commit with its message and what it changed of such files, bounded in size; nothing where it changed none.
    pub async fn show_commit(
        &self,
        commit: &CommitId,
        part: HistoryPart<'_>,
    ) -> Result<Diff, GitError> {
        let call = self
            .call(["show", "--no-color", "--no-show-signature", "--no-ext-diff"])
            .argument("--no-textconv")
            .argument("--stat")
            .argument("--patch")
            .argument("--format=commit %H%nAuthor: %an%nDate: %cI%n%n%B")
            .argument(commit.as_str());
        let output = self.git().run(about(call, part)).await?;
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
        let whole = HistoryPart {
            path: Some(path),
            without: None,
        };
        let output = self.git().run(about(call, whole)).await?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Bounds the answer of a call, and its question to a part of the files.
fn about<'a>(call: Call<'a>, part: HistoryPart<'_>) -> Call<'a> {
    let call = call.argument("--").cut_at(LIMIT_BYTES);
    let path = part.path.map(RepoPath::as_str);
    match (path, part.without) {
        (path, Some(without)) => call
            .with_magic()
            .argument(format!(":(top,literal){}", path.unwrap_or_default()))
            .argument(format!(":(top,exclude,literal){}", without.as_str())),
        (Some(path), None) => call.argument(path),
        (None, None) => call,
    }
}
