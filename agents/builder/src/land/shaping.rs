//! Makes of a build's work what is to be landed: one commit, or without the folder of its idea.

use ropewalk_desk::builds::landed_up_to;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::specification::Revision;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{CommitId, RepoPath, clip};
use ropewalk_store::{ReadError, revision_key};
use ropewalk_workspace::clone::FileChange;
use ropewalk_workspace::commit::NewCommit;
use ropewalk_workspace::{CommitMessage, GitError, LocalClone};

use super::{Joint, LandError, Way};
use crate::context::Plan;
use crate::decide::commit_message::{SUBJECT_LETTERS, body, requirements, subject};

/// Returns the commit that the branch is to have, made of `joined`, which holds both; the tip of the branch itself where
/// nothing would be new in it.
pub(super) async fn shape(
    clone: &LocalClone,
    context: &Context,
    plan: &Plan,
    (joined, message): (&CommitId, CommitMessage),
    joint: Joint<'_>,
) -> Result<(CommitId, Way), LandError> {
    let tree = if joint.shape.without_ideas {
        without_ideas(clone, plan, joined, joint.tip).await?
    } else {
        clone.tree_of(joined).await?
    };
    if tree == clone.tree_of(joint.tip).await? {
        return Ok((joint.tip.clone(), Way::Contained));
    }
    let (message, parents, way) = if joint.shape.squash {
        let message = summed_up(context, plan).await?;
        (message, vec![joint.tip.clone()], Way::Squash)
    } else {
        let parents = vec![joint.tip.clone(), joint.head.clone()];
        (message, parents, Way::Merge)
    };
    let new = NewCommit {
        tree: &tree,
        parents: &parents,
        message: &message,
        when: context.now(),
    };
    Ok((clone.create_commit(new).await?, way))
}

/// Makes the tree of `joined` with the folder of the idea as the branch has it, which is mostly not at all.
async fn without_ideas(
    clone: &LocalClone,
    plan: &Plan,
    joined: &CommitId,
    tip: &CommitId,
) -> Result<String, GitError> {
    let folder = RepoPath::of_idea(&plan.build.idea);
    let mut changes = Vec::new();
    for file in clone.list_files(joined, folder.as_str()).await? {
        let Ok(path) = RepoPath::parse(&file.path) else {
            continue;
        };
        changes.push(match clone.read_file(tip, &file.path).await? {
            Some(content) => FileChange::Write { path, content },
            None => FileChange::Remove(path),
        });
    }
    clone.create_tree(joined, &changes).await
}

/// Tells in one message what the commits of the build tell: nothing else of it may come along.
async fn summed_up(context: &Context, plan: &Plan) -> Result<CommitMessage, ReadError> {
    let (build, store) = (&plan.build, &context.store);
    let key = revision_key(build.spec, build.revision);
    let revision = store.get::<Revision>(&key).await?;
    let title = revision.map(|revision| clip::line(&revision.document.title, SUBJECT_LETTERS));
    let title = title.filter(|title| !title.is_empty());
    let landed = landed_up_to(store, build).await?;
    let tasks = plan.tasks.iter().map(|task| &task.record);
    let done: Vec<&Task> = tasks
        .filter(|task| task.state == TaskState::Complete)
        .collect();
    let told = done.iter().map(|task| {
        let said = landed.get(&task.id);
        let said = said.and_then(|attempt| attempt.summary.as_deref());
        let (subject, body) = (subject(task), body(&task.block, said));
        format!("{subject}\n\n{body}").trim_end().to_owned()
    });
    let told: Vec<String> = told.collect();
    let mut message =
        CommitMessage::new(title.unwrap_or_else(|| format!("{}: land the build", build.idea)))
            .with_body(told.join("\n\n"));
    for id in requirements(done.iter().map(|task| &task.block)) {
        message = message.with_trailer("Ropewalk-Requirement", id.as_str());
    }
    Ok(message.with_trailer("Ropewalk-Execution", build.id.to_string()))
}
