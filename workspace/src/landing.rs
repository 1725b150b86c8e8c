//! Puts a candidate on top of a head in memory, or shows both sides of what stands against it.

mod attributes;
mod hunks;
mod notes;

use chrono::DateTime;
use ropewalk_schemas::CommitId;

use crate::{GitError, LocalClone};
use attributes::Attributes;
pub use notes::{Notes, Side};

/// A person or a model reads the sides; this much of each is enough to decide.
const SIDE_LIMIT_BYTES: usize = 64 * 1024;

/// What became of a rebase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebase {
    /// The candidate stands on the head now.
    Rebased(RebasedCandidate),
    /// Both changed the same place.
    Conflict(Vec<ConflictFile>),
}

/// A candidate on top of the head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebasedCandidate {
    /// The commit; the candidate itself when it stood there already.
    pub commit: CommitId,
    /// The id of its tree.
    pub tree: String,
    /// Says that the tree is another than the one that was checked, so that it has to be checked again.
    pub tree_changed: bool,
}

/// A file that the head and the candidate changed differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictFile {
    /// The path from the root of the repository.
    pub path: String,
    /// The text before both; `None` where there is none.
    pub base: Option<String>,
    /// The text at the head.
    pub head: Option<String>,
    /// The text in the candidate.
    pub candidate: Option<String>,
    /// The places that stand against each other, with conflict markers and a few lines around; `None` where there are
    /// none, as in a file that one side deleted or that is no text.
    pub hunks: Option<String>,
}

impl ConflictFile {
    /// Shows what stands against each other, under the name of the file.
    pub fn shown(&self) -> String {
        let hunks = match (&self.hunks, &self.head, &self.candidate) {
            (Some(hunks), _, _) => hunks.as_str(),
            (None, Some(_), Some(_)) => {
                "[both sides changed it, and it cannot be joined by lines]\n"
            }
            (None, _, _) => "[one side deleted it]\n",
        };
        format!("--- {} ---\n{hunks}", self.path)
    }
}

/// What joining two trees comes to.
pub(crate) enum MergedTrees {
    /// The id of the tree that holds both.
    Clean(String),
    /// Both changed the same place.
    Conflict {
        /// The id of the tree whose files bear marks there.
        marked: String,
        /// Both sides.
        files: Vec<ConflictFile>,
    },
}

impl LocalClone {
    /// Puts the one commit `candidate` on top of `head`, as of the same time; nothing but objects is written.
    pub async fn rebase(&self, candidate: &CommitId, head: &CommitId) -> Result<Rebase, GitError> {
        let call = self.call([
            "show",
            "--no-patch",
            "--no-show-signature",
            "--format=%T%n%P%n%ct%n%B",
        ]);
        let output = self
            .git()
            .run(call.argument(candidate.as_str()).argument("--"))
            .await?;
        let text = String::from_utf8_lossy(&output.stdout);
        let unreadable = || GitError::unreadable("show", &output.stdout);
        let [tree, parents, when, message] = text.splitn(4, '\n').collect::<Vec<_>>()[..] else {
            return Err(unreadable());
        };
        let when = when.parse().ok();
        let when = when.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
        let when = when.ok_or_else(unreadable)?;
        if parents == head.as_str() {
            let rebased = RebasedCandidate {
                commit: candidate.clone(),
                tree: tree.to_owned(),
                tree_changed: false,
            };
            return Ok(Rebase::Rebased(rebased));
        }
        match self.merge_trees(head, candidate, None).await? {
            MergedTrees::Clean(merged) => {
                let parents = std::slice::from_ref(head);
                let message = format!("{}\n", message.trim_end());
                let commit = self.commit_text(&merged, parents, message, when).await?;
                let tree_changed = merged != tree;
                Ok(Rebase::Rebased(RebasedCandidate {
                    commit,
                    tree: merged,
                    tree_changed,
                }))
            }
            MergedTrees::Conflict { files, .. } => Ok(Rebase::Conflict(files)),
        }
    }

    /// Joins the trees of two commits in memory, by the attributes of `ours`, as `git merge` does in a checkout of it.
    ///
    /// A merge driver that a repository brings along is a program, and none is configured here: only what is built into
    /// git is used. What stands against each other among `notes` is settled.
    pub(crate) async fn merge_trees(
        &self,
        ours: &CommitId,
        theirs: &CommitId,
        notes: Option<&Notes>,
    ) -> Result<MergedTrees, GitError> {
        let call = self
            .call(["merge-tree", "--write-tree", "-z", "--no-messages"])
            .argument(ours.as_str())
            .argument(theirs.as_str());
        let attributes = Attributes::read(self, ours, theirs).await?;
        let call = match &attributes {
            Some(attributes) => attributes.apply(call),
            None => call,
        };
        let output = self.git().try_run(call).await?;
        let mut fields = output.fields();
        let merged = fields
            .next()
            .map(|field| String::from_utf8_lossy(field).into_owned());
        match (output.code, merged) {
            (0, Some(merged)) => Ok(MergedTrees::Clean(merged)),
            (1, Some(merged)) => {
                let sides = Sides::parse(fields)
                    .ok_or_else(|| GitError::unreadable("merge-tree", &output.stdout))?;
                let (marked, sides) = match notes {
                    Some(notes) => self.settle(merged, sides, notes).await?,
                    None => (merged, sides),
                };
                if sides.is_empty() {
                    return Ok(MergedTrees::Clean(marked));
                }
                let files = self.conflicts(&marked, sides).await?;
                Ok(MergedTrees::Conflict { marked, files })
            }
            _ => Err(output.failure("merge-tree".to_owned())),
        }
    }

    async fn conflicts(
        &self,
        merged: &str,
        sides: Vec<Sides>,
    ) -> Result<Vec<ConflictFile>, GitError> {
        let mut names = String::new();
        for file in &sides {
            for blob in &file.blobs {
                // `:` names nothing, so that every file has the same number of lines.
                names.push_str(blob.as_ref().map_or(":", |entry| &entry.blob));
                names.push('\n');
            }
            names.push_str(&[merged, &file.path].join(":"));
            names.push('\n');
        }
        let texts = self.read_objects(names).await?;
        let text = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(side);
        Ok(sides
            .into_iter()
            .zip(texts.chunks_exact(4))
            .map(|(file, texts)| ConflictFile {
                path: file.path,
                base: text(&texts[0]),
                head: text(&texts[1]),
                candidate: text(&texts[2]),
                hunks: texts[3].as_deref().and_then(hunks::hunks),
            })
            .collect())
    }
}

/// The blobs of a conflicted file: base, head, candidate.
struct Sides {
    path: String,
    blobs: [Option<SideEntry>; 3],
}

/// A file as a tree has it.
struct SideEntry {
    mode: String,
    blob: String,
}

impl Sides {
    /// Reads the `<mode> <blob> <stage>\t<path>` entries of `merge-tree`.
    fn parse<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Option<Vec<Self>> {
        let mut files: Vec<Self> = Vec::new();
        for field in fields {
            let text = String::from_utf8_lossy(field);
            let (header, path) = text.split_once('\t')?;
            let [mode, blob, stage] = header.split(' ').collect::<Vec<_>>()[..] else {
                return None;
            };
            let position = stage.parse::<usize>().ok()?.checked_sub(1)?;
            if files.last().is_none_or(|file| file.path != path) {
                files.push(Self {
                    path: path.to_owned(),
                    blobs: [None, None, None],
                });
            }
            *files.last_mut()?.blobs.get_mut(position)? = Some(SideEntry {
                mode: mode.to_owned(),
                blob: blob.to_owned(),
            });
        }
        Some(files)
    }
}

fn side(bytes: &[u8]) -> String {
    let kept = &bytes[..bytes.len().min(SIDE_LIMIT_BYTES)];
    let mut text = String::from_utf8_lossy(kept).into_owned();
    if kept.len() < bytes.len() {
        text.push_str("\n[the rest is left out]\n");
    }
    text
}
