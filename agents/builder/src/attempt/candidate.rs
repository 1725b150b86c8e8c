//! Moves work between a slot and a commit: the candidate that an attempt makes, and kept work that it goes on from.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use ropewalk_runtime::failpoint;
use ropewalk_schemas::attempt::FailureClass;
use ropewalk_schemas::question::FileChange;
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{BuildId, CommitId, ContentHash, RepoPath};
use ropewalk_workspace::{ChangeKind, ChangedFile, CommitMessage, Rebase, Slot, Snapshot};
use tracing::info;

use super::report::Report;
use super::rows::Rows;
use super::work::Work;
use crate::context::consents;
use crate::decide::commit_message;
use crate::error::BuilderError;
use ropewalk_gate::scope;

/// Makes the candidate commit of what the agent left in the slot.
///
/// Products of tools are left out; files that were not to be touched are kept in, for the gate to see them. The commit is
/// of when the work was handed in, so that a conversation which is gone through again comes to the same one.
pub(super) async fn propose(
    work: &Work<'_>,
    slot: &mut Slot,
    (allowed, when): (&[RepoPath], DateTime<Utc>),
    report: &mut Report,
) -> Result<CommitId, BuilderError> {
    let said = report.summary.as_deref();
    let message = message(&work.claim.task, work.claim.attempt.build, said);
    let was_told = knows_of_strays(work).await?;
    let take = |file: &ChangedFile| {
        let sorted = scope::sort(std::slice::from_ref(file), allowed);
        sorted.products.is_empty() && !(was_told && is_stray(file, allowed))
    };
    failpoint!("build.preserve.before");
    let snapshot = slot.snapshot(&message, when, &take).await?;
    failpoint!("build.preserve.after");
    report.candidate = Some(snapshot.commit.clone());
    report.unkept = unkept(slot, &snapshot, allowed).await?;
    report.preserve_ref = Some(snapshot.preserved.reference);
    let withheld = snapshot.withheld.into_iter();
    report.withheld = withheld.map(|file| file.path).collect();
    Ok(snapshot.commit)
}

/// Says whether the agent was told in this round that it left files behind that it was not to touch: then new ones are
/// left out, since nothing that stands in the repository is changed by them.
async fn knows_of_strays(work: &Work<'_>) -> Result<bool, BuilderError> {
    let rows = work.rows().await?;
    let told = |rows: Rows| {
        let mut failures = rows.task.failures.iter();
        failures.any(|failure| failure.class == FailureClass::OutOfScope)
    };
    Ok(rows.is_some_and(told))
}

/// Says that a file is new and nobody was to make it.
fn is_stray(file: &ChangedFile, allowed: &[RepoPath]) -> bool {
    let sorted = scope::sort(std::slice::from_ref(file), allowed);
    file.kind == ChangeKind::Added && !sorted.outside.is_empty()
}

/// Says which files of the task a commit does not take, and why: whoever is only told that nothing changed looks in vain.
async fn unkept(
    slot: &Slot,
    snapshot: &Snapshot,
    allowed: &[RepoPath],
) -> Result<Vec<String>, BuilderError> {
    let of_task = |path: &str| allowed.iter().any(|file| file.as_str() == path);
    let left_out = snapshot.left_out.iter().map(|file| file.path.as_str());
    let mut lines: Vec<String> = left_out
        .filter(|path| of_task(path))
        .map(|path| format!("`{path}` is in no commit: it is over 64 MiB, or no plain file"))
        .collect();
    let changed = |file: &str| snapshot.changed.iter().any(|changed| changed.path == file);
    let unseen: Vec<&str> = allowed
        .iter()
        .map(RepoPath::as_str)
        .filter(|file| !changed(file))
        .collect();
    let ignored = slot.ignored(&unseen).await?;
    let strays = snapshot.left_out.iter();
    lines.extend(strays.filter(|file| is_stray(file, allowed)).map(|file| {
        let path = &file.path;
        format!("`{path}` is in no commit: it is no file of this task, and `request_file` was not called for it")
    }));
    lines.extend(
        ignored.iter().map(|path| {
            format!("`{path}` is in no commit: a line of a `.gitignore` leaves it out")
        }),
    );
    Ok(lines)
}

/// Writes the message of a task's commit: what its agent said it did, and for which requirements.
fn message(task: &Task, build: BuildId, said: Option<&str>) -> CommitMessage {
    let mut message = CommitMessage::new(commit_message::subject(task))
        .with_body(commit_message::body(&task.block, said))
        .with_trailer("Ropewalk-Task", task.id.as_str());
    for id in commit_message::requirements([&task.block]) {
        message = message.with_trailer("Ropewalk-Requirement", id.as_str());
    }
    message.with_trailer("Ropewalk-Execution", build.to_string())
}

/// Kept work as it lies in a slot.
pub(super) struct LaidWork {
    /// All of it, on the base of the attempt.
    pub(super) commit: CommitId,
    /// The files of which a person refused the change: each is as a commit has it of which they allowed it before, else as the base
    /// has it.
    pub(super) others: BTreeMap<String, Option<CommitId>>,
}

/// Lays out kept work on the base of an attempt, without what a person refused, but with what they allowed before that; none where
/// nothing of it is there then, since it no longer fits or held nothing else.
pub(super) async fn lay_out(
    work: &Work<'_>,
    slot: &mut Slot,
    kept: &CommitId,
) -> Result<Option<LaidWork>, BuilderError> {
    let clone = &work.shared.clone;
    let base = work.base();
    let Rebase::Rebased(rebased) = clone.rebase(kept, &base).await? else {
        info!(task.id = %work.claim.task.id, "kept work no longer fits; beginning anew");
        return Ok(None);
    };
    let answers = consents::answers(&work.context.store, &work.claim.task).await?;
    let allowed = answers.allowed_before();
    let hash = |content: Option<Vec<u8>>| content.as_deref().map(ContentHash::of);
    let of_it = clone.changed_files(base.as_str(), rebased.commit.as_str());
    let (mut left, mut others, mut is_empty) = (Vec::new(), BTreeMap::new(), true);
    for changed in of_it.await? {
        let shown = hash(clone.read_file(kept, &changed.path).await?);
        let is_it = |one: &FileChange| one.path == changed.path && one.after == shown;
        if !answers.refused.iter().any(is_it) {
            is_empty = false;
            continue;
        }
        // A yes holds for the change of what it was shown.
        let before = hash(clone.read_file(&base, &changed.path).await?);
        let mut allowed = allowed.iter().map(|one| (&one.change, &one.candidate));
        let again = allowed.find(|(one, _)| one.path == changed.path && one.before == before);
        is_empty &= again.is_none();
        others.insert(changed.path.clone(), again.map(|(_, at)| at.clone()));
        left.push(changed);
    }
    if is_empty {
        return Ok(None);
    }
    let now = work.context.now();
    slot.lay_over(&rebased.commit, &left, now).await?;
    for (path, at) in &others {
        if let (Some(at), Ok(place)) = (at, RepoPath::parse(path)) {
            match clone.read_file(at, path).await? {
                Some(content) => slot.files()?.write_file(&place, &content)?,
                None => {
                    slot.files()?.remove_file(&place)?;
                }
            }
        }
    }
    Ok(Some(LaidWork {
        commit: rebased.commit,
        others,
    }))
}
