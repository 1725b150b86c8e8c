//! Lets a task of a build resolve what stands against another branch: the one that it is to be landed in, or that of a build
//! which it has to build on. The task joins that branch into the one of its build, under the gate, as every task lands.

use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::clip::{self, Weight};
use ropewalk_schemas::task::{
    Action, Expectation, RequirementLine, Task, TaskBlock, TaskState, Validation,
};
use ropewalk_schemas::wish::{BranchWish, Wish};
use ropewalk_schemas::{BuildId, CommitId, RepoPath, TaskId};
use ropewalk_store::{ChangeSet, retry_on_conflict};
use ropewalk_workspace::{
    CommitMessage, ConflictFile, GitError, LocalClone, Merge, Side, shell_word,
};
use tracing::info;

use crate::SharedState;
use crate::context::{self, Plan, of_build};
use crate::effects::Scene;
use crate::error::BuilderError;
use crate::land::can_resolve;
use crate::machine::build::Input;

/// So much of what stands against each other goes into the prompt; the files themselves bear the marks.
const SHOWN_BYTES: usize = 16 * 1024;

/// So many of the commits that came on the other branch are named, the newest.
const NAMED_COMMITS: usize = 12;

/// What stands between a build and another branch.
pub(crate) struct Conflict {
    /// The name of that branch.
    name: String,
    /// Its head.
    other: CommitId,
    files: Vec<ConflictFile>,
    /// The commits of that branch which the build lacks, a line each.
    commits: Vec<String>,
}

impl Conflict {
    /// Gathers what a task is told of it; none where no task could resolve it.
    pub(crate) async fn of(
        clone: &LocalClone,
        name: &str,
        (head, other): (&CommitId, &CommitId),
        files: Vec<ConflictFile>,
    ) -> Result<Option<Self>, GitError> {
        if !can_resolve(&files) {
            return Ok(None);
        }
        let lacking = clone.log(Some(head), other).await?;
        let newest = lacking.iter().rev().take(NAMED_COMMITS);
        let newest = newest.map(|commit| format!("- {} {}", commit.id.short(), commit.subject));
        let older = lacking.len().saturating_sub(NAMED_COMMITS);
        let older = (older > 0).then(|| format!("- and {older} older"));
        Ok(Some(Self {
            name: name.to_owned(),
            other: other.clone(),
            files,
            commits: newest.chain(older).collect(),
        }))
    }

    /// Returns the task of a build that is to resolve it already, if there is one.
    pub(crate) fn task_in<'a>(&self, plan: &'a Plan) -> Option<&'a Task> {
        let is_it = |task: &&Task| {
            let is_over = matches!(task.state, TaskState::Complete | TaskState::Skipped);
            task.joins.as_ref() == Some(&self.other) && !is_over
        };
        plan.tasks.iter().map(|task| &task.record).find(is_it)
    }

    /// Makes a task that resolves it, after all others of the build.
    pub(crate) fn new_task(&self, plan: &Plan) -> Result<Task, BuilderError> {
        let build = &plan.build;
        let number = plan.tasks.iter().map(|task| task.number).max();
        Ok(Task {
            joins: Some(self.other.clone()),
            ..Task::planned(
                build.id,
                number.unwrap_or_default() + 1,
                block(build, free_id(plan)?, self)?,
            )
        })
    }

    /// Describes the task that resolves it, in place of what that had to resolve before.
    pub(crate) fn block_of(&self, build: &Build, task: &Task) -> Result<TaskBlock, BuilderError> {
        Ok(TaskBlock {
            depends_on: task.block.depends_on.clone(),
            ..block(build, task.id.clone(), self)?
        })
    }
}

/// Appends the task and lets the build go on; where nothing stands against the landing any more, or no task could
/// resolve it, the branch is merged, or asked about again.
pub(super) async fn resolve(
    shared: &SharedState,
    context: &Context,
    id: BuildId,
) -> Result<(), BuilderError> {
    retry_on_conflict!(BuilderError, id, {
        let (Some(wish), Some(plan)) = (
            context::wish(&context.store, id).await?,
            Plan::load(&context.store, id).await?,
        ) else {
            return Ok(Some(()));
        };
        let mut changes = ChangeSet::new();
        if let Some(conflict) = conflict(shared, context, &plan.build).await? {
            changes.delete(&wish);
            let context = context.because_of(wish.cause);
            append(shared, &context, &mut changes, &plan, &conflict).await?;
        } else {
            let merge = Wish {
                what: BranchWish::Merge,
                ..wish.record.clone()
            };
            changes.update(&wish, &merge);
        }
        context.store.commit(changes).await?;
        Ok(Some(()))
    })?;
    shared.signals.wake_scheduler();
    Ok(())
}

/// Finds what a task can resolve.
async fn conflict(
    shared: &SharedState,
    context: &Context,
    build: &Build,
) -> Result<Option<Conflict>, BuilderError> {
    let clone = &shared.clone;
    clone.fetch().await?;
    let (Some(other), Some(head)) = (clone.user_branch(&build.target).await?, &build.head) else {
        return Ok(None);
    };
    let message = CommitMessage::new("Try to merge");
    // The other way round than it is landed, as the checkout of the task will show it.
    let notes = context::notes(build, Side::Into);
    let merge = clone
        .merge(&other, head, &notes, &message, context.now())
        .await?;
    Ok(match merge {
        Merge::Conflict(files) => Conflict::of(clone, &build.target, (head, &other), files).await?,
        _ => None,
    })
}

async fn append(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    plan: &Plan,
    conflict: &Conflict,
) -> Result<(), BuilderError> {
    let build = &plan.build;
    let context = of_build(context, build);
    let scene = Scene::new(shared, &context, build);
    let after = match scene.build(changes, Input::Revive { express: true }).await {
        Ok(after) => after,
        Err(BuilderError::Illegal(refused)) => {
            info!(build.id = %build.id, "the wish to resolve conflicts came too late: {refused}");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let task = conflict.new_task(plan)?;
    info!(build.id = %build.id, "task `{}` joins `{}` into `{}`", task.id, build.target, build.branch);
    changes.update(build, &after);
    changes.insert(&task);
    Ok(())
}

fn free_id(plan: &Plan) -> Result<TaskId, BuilderError> {
    let taken = |id: &String| plan.tasks.iter().any(|task| task.id.as_str() == id);
    // One more than there are tasks cannot all be taken.
    let mut names = (1..=plan.tasks.len() + 1).map(|number| format!("MERGE-{number}"));
    let free = names.find(|id| !taken(id)).unwrap_or_default();
    TaskId::parse(&free).map_err(|error| BuilderError::Missing(error.to_string()))
}

/// Describes the task: the conflicted files are its files, and no mark may stay in them.
fn block(build: &Build, id: TaskId, conflict: &Conflict) -> Result<TaskBlock, BuilderError> {
    let files = &conflict.files;
    let paths = files.iter().map(|file| RepoPath::parse(&file.path));
    let paths: Result<Vec<RepoPath>, _> = paths.collect();
    let mut paths = paths
        .map_err(|error| BuilderError::Missing(error.to_string()))?
        .into_iter();
    let Some(first) = paths.next() else {
        return Err(BuilderError::Missing("there is no conflict".to_owned()));
    };
    let names: Vec<_> = files.iter().map(|file| shell_word(&file.path)).collect();
    let (branch, other) = (&build.branch, &conflict.name);
    let text = format!(
        "Join `{other}` into `{branch}`. In your checkout both are joined already but for the places between the marks \
         `<<<<<<<` (as `{branch}` has it), `=======` and `>>>>>>>` (as `{other}` has it): make of each what both sides \
         meant, and leave no mark behind."
    );
    let shown: Vec<String> = files.iter().map(ConflictFile::shown).collect();
    let shown = format!(
        "Commits of `{other}` that `{branch}` lacks (`git show` shows each):\n{}\n\n{}",
        conflict.commits.join("\n"),
        shown.join("\n")
    );
    Ok(TaskBlock {
        id,
        phase: "landing".to_owned(),
        title: Some(format!("join {other} into {branch}")),
        action: Action::Update,
        file: first,
        more_files: paths.collect(),
        read_first: Vec::new(),
        leave_alone: Vec::new(),
        requirements: vec![RequirementLine { id: None, text }],
        gotchas: Vec::new(),
        validation: Validation {
            command: format!("! grep -nE '^(<<<<<<<|>>>>>>>) ' -- {}", names.join(" ")),
            expected: Expectation::ExitZero,
        },
        preserves: false,
        code_template: None,
        depends_on: Vec::new(),
        priority: None,
        estimate_minutes: None,
        notes: Some(clip::ends(&shown, SHOWN_BYTES, Weight::Even).into_owned()),
    })
}
