//! Makes of a build's work what is to be landed: one commit, or without the folder of its idea.

use std::fmt::Write as _;

use ropewalk_orchestrator::Context;
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::{CommitId, RepoPath};
use ropewalk_workspace::clone::FileChange;
use ropewalk_workspace::commit::NewCommit;
use ropewalk_workspace::{CommitMessage, GitError, LocalClone};

use super::{Joint, Way};
use crate::context::Plan;

/// Returns the commit that the branch is to have, made of `joined`, which holds both; the tip of the branch itself where
/// nothing would be new in it.
pub(super) async fn shape(
    clone: &LocalClone,
    context: &Context,
    plan: &Plan,
    (joined, message): (&CommitId, CommitMessage),
    joint: Joint<'_>,
) -> Result<(CommitId, Way), GitError> {
    let tree = if joint.shape.without_ideas {
        without_ideas(clone, plan, joined, joint.tip).await?
    } else {
        clone.tree_of(joined).await?
    };
    if tree == clone.tree_of(joint.tip).await? {
        return Ok((joint.tip.clone(), Way::Contained));
    }
    let (message, parents, way) = if joint.shape.squash {
        (summed_up(plan), vec![joint.tip.clone()], Way::Squash)
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

/// Tells in one message what the commits of the build tell.
fn summed_up(plan: &Plan) -> CommitMessage {
    let build = &plan.build;
    let mut body = String::new();
    for task in &plan.tasks {
        if task.state == TaskState::Complete {
            let what = task.block.title().unwrap_or(task.block.file.as_str());
            // A string takes whatever is written.
            writeln!(body, "- {}: {what}", task.id).ok();
        }
    }
    CommitMessage::new(format!("{}: land the build", build.idea))
        .with_body(body)
        .with_trailer("Ropewalk-Execution", build.id.to_string())
}
