//! Reads commits, trees, files and differences out of the clone.

use chrono::{DateTime, Utc};
use ropewalk_schemas::{CommitId, RepoPath};

use crate::commit::{ChangeKind, ChangedFile, ChangedLines, LoggedCommit};
use crate::git::Call;
use crate::{Git, GitError, LocalClone};

/// The most of a difference that is shown.
const DIFF_LIMIT_BYTES: usize = 256 * 1024;
/// Separates the fields of a log entry; git strips it from no field, so the free texts come last.
const LOG_FORMAT: &str =
    "--format=%H%x1f%T%x1f%P%x1f%an%x1f%ct%x1f%s%x1f%(trailers:only=true,unfold=true)";

/// A difference as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// The unified difference, its middle left out when it is long.
    pub text: String,
    /// Says that something was left out.
    pub truncated: bool,
}

/// What a name in a tree stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A file.
    Plain,
    /// A file that may be run.
    Executable,
    /// A symbolic link.
    Link,
    /// A commit of another repository.
    Submodule,
}

/// A file in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// The path from the root of the repository.
    pub path: String,
    /// What it is.
    pub kind: FileKind,
}

/// A file in a tree with what it holds; links and submodules are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// The path from the root of the repository.
    pub path: String,
    /// The id of its content: equal contents have one.
    pub id: String,
    /// How long it is.
    pub bytes: u64,
}

impl LocalClone {
    /// Returns the id of the tree of `commit`.
    pub async fn tree_of(&self, commit: &CommitId) -> Result<String, GitError> {
        if let Some(tree) = self.known().tree(commit) {
            return Ok(tree);
        }
        let call = self
            .call(["rev-parse", "--verify", "--quiet"])
            .argument(format!("{commit}^{{tree}}"));
        let output = self.git().try_run(call).await?;
        match output.code {
            0 => Ok(output.line()),
            _ => Err(GitError::UnknownCommit(commit.to_string())),
        }
    }

    /// Says when `commit` was made.
    pub async fn committed_at(&self, commit: &CommitId) -> Result<DateTime<Utc>, GitError> {
        let call = self
            .call(["log", "-1", "--no-show-signature", "--format=%ct"])
            .argument(commit.as_str());
        let output = self.git().run(call).await?;
        let seconds = output.line().parse().ok();
        seconds
            .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
            .ok_or_else(|| GitError::unreadable("log", &output.stdout))
    }

    /// Says that `ancestor` is in the history of `descendant`, or is it.
    pub async fn is_ancestor(
        &self,
        ancestor: &CommitId,
        descendant: &CommitId,
    ) -> Result<bool, GitError> {
        if self.known().leads_to(ancestor, descendant) {
            return Ok(true);
        }
        let call = self.call([
            "merge-base",
            "--is-ancestor",
            ancestor.as_str(),
            descendant.as_str(),
        ]);
        let output = self.git().try_run(call).await?;
        match output.code {
            0 => Ok(true),
            1 => Ok(false),
            _ => Err(output.failure("merge-base".to_owned())),
        }
    }

    /// Finds where the histories of two commits parted; none where they have nothing in common, or more than one such place.
    pub async fn merge_base(
        &self,
        one: &CommitId,
        other: &CommitId,
    ) -> Result<Option<CommitId>, GitError> {
        let call = self.call(["merge-base", "--all", one.as_str(), other.as_str()]);
        let output = self.git().try_run(call).await?;
        match output.code {
            0 if output.line().lines().count() > 1 => Ok(None),
            0 => output.object("merge-base").map(Some),
            1 => Ok(None),
            _ => Err(output.failure("merge-base".to_owned())),
        }
    }

    /// Shows what changed in `paths` from `before` to `after`, commits or trees, bounded in size; no paths mean all.
    pub async fn diff_of(
        &self,
        before: &str,
        after: &str,
        paths: &[&str],
    ) -> Result<Diff, GitError> {
        let mut call = self
            .call([
                "diff",
                "--no-color",
                "--no-ext-diff",
                "--no-textconv",
                "--find-renames",
            ])
            .argument("--end-of-options")
            .argument(before)
            .argument(after)
            .argument("--")
            .cut_at(DIFF_LIMIT_BYTES);
        for path in paths {
            call = call.argument(*path);
        }
        let output = self.git().run(call).await?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(Diff {
            text,
            truncated: output.truncated,
        })
    }

    /// Lists the files that differ between two commits, where that was found out already and they are few.
    pub(crate) fn known_difference(
        &self,
        before: &CommitId,
        after: &CommitId,
    ) -> Option<Vec<ChangedFile>> {
        self.known().differing(&(before.clone(), after.clone()))
    }

    /// Lists the files that differ between `before` and `after`, commits or trees, in path order.
    pub async fn changed_files(
        &self,
        before: &str,
        after: &str,
    ) -> Result<Vec<ChangedFile>, GitError> {
        // Full ids only: a name may mean something else the next time.
        let pair = match (before.parse(), after.parse()) {
            (Ok(before), Ok(after)) => Some((before, after)),
            _ => None,
        };
        let known = pair.as_ref().and_then(|pair| self.known().differing(pair));
        if let Some(files) = known {
            return Ok(files);
        }
        let call = self
            .call([
                "diff-tree",
                "-r",
                "-z",
                "--no-renames",
                "--name-status",
                "--ignore-submodules=none",
            ])
            .argument("--end-of-options")
            .argument(before)
            .argument(after);
        let output = self.git().run(call).await?;
        let mut fields = output.fields();
        let mut files = Vec::new();
        while let Some(status) = fields.next() {
            let kind = match status {
                b"A" => ChangeKind::Added,
                b"D" => ChangeKind::Deleted,
                _ => ChangeKind::Modified,
            };
            let path = fields
                .next()
                .ok_or_else(|| GitError::unreadable("diff-tree", status))?;
            files.push(ChangedFile {
                path: String::from_utf8_lossy(path).into_owned(),
                kind,
            });
        }
        files.sort();
        if let Some(pair) = pair {
            self.known().difference(pair, &files);
        }
        Ok(files)
    }

    /// Counts the lines that differ between two commits, file by file, in path order.
    pub async fn changed_lines(
        &self,
        before: &str,
        after: &str,
    ) -> Result<Vec<ChangedLines>, GitError> {
        let call = self
            .call(["diff-tree", "-r", "-z", "--no-renames", "--numstat"])
            .argument("--end-of-options")
            .argument(before)
            .argument(after);
        let output = self.git().run(call).await?;
        let line = |field: &[u8]| {
            let text = String::from_utf8_lossy(field);
            let mut columns = text.splitn(3, '\t');
            let mut count = || columns.next().map(|count| count.parse().ok());
            let (came, went) = (count()?, count()?);
            Some(ChangedLines {
                path: columns.next()?.to_owned(),
                lines: came.zip(went),
            })
        };
        let lines = output.fields().map(|field| {
            line(field).ok_or_else(|| GitError::unreadable("diff-tree --numstat", field))
        });
        lines.collect()
    }

    /// Reads a file of `commit`; `None` when the commit has no file of that name.
    pub async fn read_file(
        &self,
        commit: &CommitId,
        path: &str,
    ) -> Result<Option<Vec<u8>>, GitError> {
        Ok(self.read_files(commit, &[path]).await?.pop().flatten())
    }

    /// Reads several files of `commit` in one call, in the order of `paths`.
    pub async fn read_files(
        &self,
        commit: &CommitId,
        paths: &[&str],
    ) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        let places: Vec<(&CommitId, &str)> = paths.iter().map(|path| (commit, *path)).collect();
        self.read_places(&places).await
    }

    /// Reads files of `commit`, in the order of `paths`; what is larger than `most_bytes` is none, as what is not there.
    pub async fn read_small_files(
        &self,
        commit: &CommitId,
        paths: &[RepoPath],
        most_bytes: usize,
    ) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        let calls = (self.call(CHECK_FILES), self.call(CAT_FILES));
        read_small_blobs(self.git(), calls, (commit.as_str(), paths), most_bytes).await
    }

    /// Reads files of several commits in one call, in the order of `places`.
    pub async fn read_places(
        &self,
        places: &[(&CommitId, &str)],
    ) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        // A line end in a name would be taken for the next name.
        let names: Vec<String> = places
            .iter()
            .filter(|(_, path)| !path.contains('\n'))
            .map(|(commit, path)| format!("{commit}:{path}\n"))
            .collect();
        let mut found = self.read_objects(names.concat()).await?.into_iter();
        Ok(places
            .iter()
            .map(|(_, path)| {
                if path.contains('\n') {
                    None
                } else {
                    found.next().flatten()
                }
            })
            .collect())
    }

    /// Reads the blobs that `names` names, one a line; what is missing or no blob is `None`.
    pub(crate) async fn read_objects(
        &self,
        names: String,
    ) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        read_blobs(self.git(), self.call(CAT_FILES), names).await
    }

    /// Lists the files of `commit` below the directory `prefix`; an empty prefix means all.
    pub async fn list_files(
        &self,
        commit: &CommitId,
        prefix: &str,
    ) -> Result<Vec<FileEntry>, GitError> {
        let mut call = self.call(["ls-tree", "-r", "-z", "--full-tree", commit.as_str(), "--"]);
        if !prefix.is_empty() {
            call = call.argument(prefix);
        }
        let output = self.git().run(call).await?;
        output
            .fields()
            .map(|field| entry(field).ok_or_else(|| GitError::unreadable("ls-tree", field)))
            .collect()
    }

    /// Lists the symbolic links of `commit` with where they lead, as they are written.
    pub async fn list_links(&self, commit: &CommitId) -> Result<Vec<(String, String)>, GitError> {
        let files = self.list_files(commit, "").await?.into_iter();
        let links: Vec<String> = files
            .filter(|file| file.kind == FileKind::Link)
            .map(|file| file.path)
            .collect();
        let paths: Vec<&str> = links.iter().map(String::as_str).collect();
        let targets = self.read_files(commit, &paths).await?.into_iter();
        let text = |target: Option<Vec<u8>>| {
            String::from_utf8_lossy(&target.unwrap_or_default()).into_owned()
        };
        Ok(links.into_iter().zip(targets.map(text)).collect())
    }

    /// Lists the files of `commit` with their sizes, in path order.
    pub async fn list_blobs(&self, commit: &CommitId) -> Result<Vec<Blob>, GitError> {
        let call = self.call(["ls-tree", "-r", "-z", "-l", "--full-tree", commit.as_str()]);
        let output = self.git().run(call).await?;
        Ok(output.fields().filter_map(blob).collect())
    }

    /// Tells the commits after `before` up to `after`, oldest first.
    pub async fn log(
        &self,
        before: Option<&CommitId>,
        after: &CommitId,
    ) -> Result<Vec<LoggedCommit>, GitError> {
        let mut call = self
            .call([
                "log",
                "-z",
                "--reverse",
                "--topo-order",
                "--no-show-signature",
                LOG_FORMAT,
            ])
            .argument(after.as_str());
        if let Some(before) = before {
            call = call.argument(format!("^{before}"));
        }
        let output = self.git().run(call.argument("--")).await?;
        output
            .fields()
            .map(|field| logged(field).ok_or_else(|| GitError::unreadable("log", field)))
            .collect()
    }
}

/// What [`read_blobs`] calls.
pub(crate) const CAT_FILES: [&str; 2] = ["cat-file", "--batch=%(objecttype) %(objectsize)"];

/// What [`read_small_blobs`] calls before.
pub(crate) const CHECK_FILES: [&str; 2] = ["cat-file", "--batch-check=%(objecttype) %(objectsize)"];

/// Reads files of a commit by two calls, in the order of `paths`; what is larger than `most_bytes` is none.
pub(crate) async fn read_small_blobs(
    git: &Git,
    (check, read): (Call<'_>, Call<'_>),
    (commit, paths): (&str, &[RepoPath]),
    most_bytes: usize,
) -> Result<Vec<Option<Vec<u8>>>, GitError> {
    let names: Vec<String> = paths
        .iter()
        .map(|path| format!("{commit}:{path}\n"))
        .collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let sizes = git.run(check.stdin(names.concat())).await?;
    let sizes = String::from_utf8_lossy(&sizes.stdout).into_owned();
    let is_small = |line: &str| {
        let size = line
            .strip_prefix("blob ")
            .and_then(|size| size.parse().ok());
        size.is_some_and(|size: usize| size <= most_bytes)
    };
    let small: Vec<bool> = sizes.lines().map(is_small).collect();
    if small.len() != names.len() {
        return Err(GitError::unreadable("cat-file", sizes.as_bytes()));
    }
    let wanted = names.iter().zip(&small).filter(|(_, small)| **small);
    let wanted: String = wanted.map(|(name, _)| name.as_str()).collect();
    let mut found = read_blobs(git, read, wanted).await?.into_iter();
    let placed = small.into_iter();
    let placed = placed.map(|small| if small { found.next().flatten() } else { None });
    Ok(placed.collect())
}

/// Reads by `call` the blobs that `names` names, one a line; what is missing or no blob is `None`.
pub(crate) async fn read_blobs(
    git: &Git,
    call: Call<'_>,
    names: String,
) -> Result<Vec<Option<Vec<u8>>>, GitError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let expected = names.lines().count();
    let output = git.run(call.stdin(names)).await?;
    let blobs =
        batch(&output.stdout).ok_or_else(|| GitError::unreadable("cat-file", &output.stdout))?;
    if blobs.len() == expected {
        Ok(blobs)
    } else {
        Err(GitError::unreadable("cat-file", &output.stdout))
    }
}

fn batch(mut bytes: &[u8]) -> Option<Vec<Option<Vec<u8>>>> {
    let mut blobs = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let header = String::from_utf8_lossy(&bytes[..end]).into_owned();
        bytes = &bytes[end + 1..];
        let (kind, size) = header.rsplit_once(' ')?;
        if size == "missing" || size == "ambiguous" {
            blobs.push(None);
            continue;
        }
        let size: usize = size.parse().ok()?;
        let content = bytes.get(..size)?;
        blobs.push((kind == "blob").then(|| content.to_vec()));
        bytes = bytes.get(size + 1..)?;
    }
    Some(blobs)
}

fn entry(field: &[u8]) -> Option<FileEntry> {
    let text = String::from_utf8_lossy(field);
    let (header, path) = text.split_once('\t')?;
    let kind = match header.split(' ').next()? {
        "120000" => FileKind::Link,
        "160000" => FileKind::Submodule,
        "100755" => FileKind::Executable,
        _ => FileKind::Plain,
    };
    Some(FileEntry {
        path: path.to_owned(),
        kind,
    })
}

fn blob(field: &[u8]) -> Option<Blob> {
    let text = String::from_utf8_lossy(field);
    let (header, path) = text.split_once('\t')?;
    let fields: Vec<&str> = header.split_whitespace().collect();
    let ["100644" | "100755" | "100664", "blob", id, bytes] = fields[..] else {
        return None;
    };
    Some(Blob {
        path: path.to_owned(),
        id: id.to_owned(),
        bytes: bytes.parse().ok()?,
    })
}

fn logged(field: &[u8]) -> Option<LoggedCommit> {
    let text = String::from_utf8_lossy(field);
    let mut parts = text.splitn(7, '\u{1f}');
    Some(LoggedCommit {
        id: parts.next()?.trim().parse().ok()?,
        tree: parts.next()?.to_owned(),
        parents: parts
            .next()?
            .split_whitespace()
            .filter_map(|id| id.parse().ok())
            .collect(),
        author: parts.next()?.to_owned(),
        committed_at: DateTime::from_timestamp(parts.next()?.parse().ok()?, 0)?,
        subject: parts.next()?.to_owned(),
        trailers: parts
            .next()?
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
            .collect(),
    })
}
