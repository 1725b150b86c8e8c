//! Lays the ground of a build: base, branch, the idea folder as its first commit.

mod carrying;
mod folder;

use ropewalk_desk::builds::forerunners;
use ropewalk_gate::GateError;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::{Build, BuildState, Predecessor};
use ropewalk_schemas::payload::BuildStarted;
use ropewalk_schemas::{BuildId, CommitId, Payload, Subject};
use ropewalk_store::{ChangeSet, Versioned, retry_on_conflict};
use ropewalk_workspace::clone::FileChange;
use ropewalk_workspace::commit::NewCommit;
use ropewalk_workspace::{CommitMessage, GitError};
use tracing::info;

use super::settle::{self, settle};
use super::{publish, verdicts};
use crate::SharedState;
use crate::context::{self, Plan, builds_in, of_build};
use crate::error::BuilderError;
use crate::machine::build::{Input, apply_alone};

/// Lays the ground of a build and lets it run.
pub(crate) async fn prime(
    shared: &SharedState,
    context: &Context,
    id: BuildId,
) -> Result<(), BuilderError> {
    retry_on_conflict!(BuilderError, id, {
        let Some(build) = context::build(&context.store, id).await? else {
            return Ok(Some(()));
        };
        let context = of_build(context, &build);
        if carrying::waits(shared, &context, &build).await? {
            return Ok(Some(()));
        }
        match build.state {
            BuildState::Queued => {
                let priming = apply_alone(&build, Input::Prime, context.now())?;
                let mut changes = ChangeSet::new();
                changes.update(&build, &priming);
                context.store.commit(changes).await?;
                return Ok(None);
            }
            BuildState::Priming | BuildState::Running if build.head.is_none() => {
                carrying::carry(shared, &context, &build).await?;
                match lay(shared, &context, &build).await {
                    Ok(ground) => begin(shared, &context, &build, ground).await?,
                    Err(error) if is_lasting(&error) => {
                        give_up(shared, &context, id, error.to_string()).await?;
                    }
                    Err(error) => return Err(error),
                }
            }
            _ => {}
        }
        Ok(Some(()))
    })?;
    // First, so that a branch which cannot be there is asked about as early as can be. One that cannot be moved now, since somebody
    // looks at it, keeps nobody from working.
    let published = publish::publish(shared, context, id).await;
    settle(shared, context, id).await?;
    shared.signals.wake_loops();
    published
}

/// What a build begins with.
struct Ground {
    branch: String,
    target: String,
    base: CommitId,
    head: CommitId,
    /// Where the branch is already, when it goes on from an earlier build.
    published: Option<CommitId>,
    /// The builds whose work is in it.
    follows: Vec<Predecessor>,
}

async fn lay(
    shared: &SharedState,
    context: &Context,
    build: &Build,
) -> Result<Ground, BuilderError> {
    let user = shared.clone.fetch().await?;
    if let Some(ground) = go_on(shared, context, build).await? {
        return Ok(ground);
    }
    let branch = free_branch(shared, context, build).await?;
    let base = user.commit;
    // Read now, so that a build whose gate cannot be known does not begin.
    shared.gate.gate_at(Some(&base)).await?;
    let files = folder::files(shared, context, build, &base).await?;
    let head = commit_files(shared, build, &base, &files).await?;
    Ok(Ground {
        branch,
        target: user.branch.unwrap_or_else(|| build.target.clone()),
        base,
        head,
        published: None,
        follows: build.follows.clone(),
    })
}

/// Goes on from the build of an earlier revision, unless that was merged and so is where every build begins.
async fn go_on(
    shared: &SharedState,
    context: &Context,
    build: &Build,
) -> Result<Option<Ground>, BuilderError> {
    let before = forerunners(&context.store, build).await?.pop();
    let Some(before) = before.filter(|before| before.merged.is_none()) else {
        return Ok(None);
    };
    let (Some(base), Some(head)) = (before.base.clone(), before.head.clone()) else {
        return Ok(None);
    };
    shared.gate.gate_at(Some(&base)).await?;
    let files = folder::files(shared, context, build, &head).await?;
    let head = commit_files(shared, build, &head, &files).await?;
    Ok(Some(Ground {
        branch: before.branch.clone(),
        target: before.target.clone(),
        base,
        head,
        published: before.published.clone(),
        // What ran when it gave way may have joined more.
        follows: before.follows.clone(),
    }))
}

async fn commit_files(
    shared: &SharedState,
    build: &Build,
    base: &CommitId,
    files: &[FileChange],
) -> Result<CommitId, BuilderError> {
    if files.is_empty() {
        return Ok(base.clone());
    }
    let tree = shared.clone.create_tree(base, files).await?;
    if tree == shared.clone.tree_of(base).await? {
        return Ok(base.clone());
    }
    let subject = match build.revision {
        ..=1 => format!("ideas: add {}", build.idea),
        later => format!("ideas: bring {} to revision {later}", build.idea),
    };
    let message = CommitMessage::new(subject)
        .with_body("The idea and its specification travel with the code that is built from them.")
        .with_trailer("Ropewalk-Execution", build.id.to_string());
    let commit = NewCommit {
        tree: &tree,
        parents: std::slice::from_ref(base),
        message: &message,
        // The same time at every try, so that a repetition makes the same commit.
        when: build.created_at,
    };
    Ok(shared.clone.create_commit(commit).await?)
}

/// Returns a branch that neither another build nor the user's repository has.
async fn free_branch(
    shared: &SharedState,
    context: &Context,
    build: &Build,
) -> Result<String, BuilderError> {
    let others: Vec<String> = builds_in(&context.store, BuildState::ALL)
        .await?
        .into_iter()
        .filter(|other| other.id != build.id)
        .map(|other| other.branch.clone())
        .collect();
    let mut number = 1_u32;
    loop {
        let branch = match number {
            1 => format!("build/{}", build.idea),
            _ => format!("build/{}-{number}", build.idea),
        };
        let taken = others.contains(&branch) || shared.clone.user_branch(&branch).await?.is_some();
        if !taken {
            return Ok(branch);
        }
        number += 1;
    }
}

async fn begin(
    shared: &SharedState,
    context: &Context,
    build: &Versioned<Build>,
    ground: Ground,
) -> Result<(), BuilderError> {
    let Some(plan) = Plan::load(&context.store, build.id).await? else {
        return Ok(());
    };
    let mut running = apply_alone(build, Input::Begin, context.now())?;
    running.branch = ground.branch;
    running.target = ground.target;
    running.base = Some(ground.base);
    running.head = Some(ground.head);
    running.published = ground.published;
    running.follows = ground.follows;
    running.started_at = Some(context.now());
    let mut changes = ChangeSet::new();
    let started = context.event(
        Subject::build(build.id),
        Payload::BuildStarted(BuildStarted {
            build_id: build.id,
            spec_id: build.spec,
            idea_slug: build.idea.clone(),
            task_count: u32::try_from(plan.tasks.len()).unwrap_or(u32::MAX),
            branch: running.branch.clone(),
        }),
    );
    running.cause = Some(started.id);
    verdicts::ask_level(shared, context, &mut changes, &running).await?;
    changes.update(build, &running);
    changes.emit(started);
    info!(build.id = %build.id, "build `{}` of `{}` runs on `{}`", build.id, build.idea, running.branch);
    context.store.commit(changes).await?;
    Ok(())
}

/// Trying again does not help against a repository that is not one, nor against a gate that cannot be read.
fn is_lasting(error: &BuilderError) -> bool {
    match error {
        BuilderError::Gate(GateError::BaseGate(_)) => true,
        BuilderError::Git(error) | BuilderError::Gate(GateError::Git(error)) => matches!(
            error,
            GitError::NoCommit(_)
                | GitError::NotARepository { .. }
                | GitError::DamagedClone { .. }
                | GitError::SecretHeld(_)
        ),
        _ => false,
    }
}

async fn give_up(
    shared: &SharedState,
    context: &Context,
    id: BuildId,
    reason: String,
) -> Result<(), BuilderError> {
    let Some(plan) = Plan::load(&context.store, id).await? else {
        return Ok(());
    };
    let mut changes = ChangeSet::new();
    let tasks = plan.records();
    let failed = settle::fail(shared, context, &mut changes, &plan.build, &tasks, reason).await?;
    changes.update(&plan.build, &failed);
    context.store.commit(changes).await?;
    Ok(())
}
