//! That the branch of a finished build is brought into the one that it began from: noted here, done by the build agent.

use std::sync::Arc;

use futures::future::BoxFuture;
use ropewalk_coordination::ownership;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::amount::and_more;
use ropewalk_schemas::attempt::Evidence;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::fulfilment::Fulfilment;
use ropewalk_schemas::illegal;
use ropewalk_schemas::person::Right;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::wish::{BranchWish, Wish};
use ropewalk_schemas::{BuildId, CommitId, RepoPath};
use ropewalk_store::{ChangeSet, CommitError, ReadError, Store};
use schemars::JsonSchema;
use serde::Serialize;

use crate::people::{PermissionError, Person};
use crate::views::review::{self, ObjectionView, UNREVIEWED};
use crate::views::trace::{Trace, lacks_gate};

/// What is said of the gate where a project has none.
pub const NO_GATE: &str =
    "the project has none (`[gate]`): nothing was run but the own checks of the tasks";
/// How many tasks are named that a landing would bring.
const NAMED: usize = 12;

/// Says why a build is not landed on a wish.
#[derive(Debug, thiserror::Error)]
pub enum LandingError {
    /// The person may not do this.
    #[error(transparent)]
    Forbidden(#[from] PermissionError),
    /// It was landed before.
    #[error("build `{build}` was landed already, as `{commit}`")]
    Already {
        /// The build.
        build: BuildId,
        /// The head that had it.
        commit: CommitId,
    },
    /// The build has not reached its goal.
    #[error("build `{build}` is {state}")]
    Unfinished {
        /// The build.
        build: BuildId,
        /// Its state.
        state: BuildState,
        /// What holds where nothing lets it go on any more: who does so instead, or why nobody does.
        instead: Option<String>,
    },
    /// It was wanted of other commits than those that the branches have.
    #[error("build `{build}` or `{into}` has moved on since that was shown")]
    Moved {
        /// The build.
        build: BuildId,
        /// The branch that it would come into.
        into: String,
    },
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// What a person wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    /// It is landed, as the configuration shapes it; what stands against that is asked about.
    Land,
    /// A task of the build resolves the conflicts with the branch that it began from, and then it is asked again.
    Resolve,
}

impl Landing {
    /// Returns what the build agent is to do.
    pub const fn wish(self) -> BranchWish {
        match self {
            Self::Land => BranchWish::Merge,
            Self::Resolve => BranchWish::Resolve,
        }
    }
}

/// What landing a build would come to, as its branch and the one that it began from stand now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LandingView {
    /// The build.
    pub build: BuildId,
    /// The branch that it would come into.
    pub into: String,
    /// The head of the build's branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<CommitId>,
    /// The head of the branch that it would come into; none where it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub onto: Option<CommitId>,
    /// What would become of that branch, said after its name; none where it is refused.
    pub comes_to: Option<String>,
    /// Whether a gate has to see it first, since none has seen it so.
    pub gate: bool,
    /// The folder of the idea, where its documents come along.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documents: Option<RepoPath>,
    /// Why it cannot be landed.
    pub refusal: Option<String>,
    /// Both sides of what could not be joined.
    pub conflicts: Option<String>,
    /// What the review of the build holds against it, which refuses nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<ObjectionView>,
}

/// Tells what landing a build would come to, or why nobody can say.
pub type Landings =
    Arc<dyn Fn(Build) -> BoxFuture<'static, Result<LandingView, String>> + Send + Sync>;

impl LandingView {
    /// Says what would become of the branch that it would come into, and what comes along; or why nothing can.
    pub fn in_words(&self) -> String {
        let Some(comes_to) = &self.comes_to else {
            let refusal = self.refusal.as_deref().unwrap_or("nobody can say why");
            return format!("It cannot be landed as it stands: {refusal}.");
        };
        let gate = if self.gate {
            ", once a gate has seen what that comes to"
        } else {
            ""
        };
        let documents = self.documents.as_ref().map_or_else(String::new, |folder| {
            format!(" The documents of the idea come along in `{folder}`; `build.without_ideas` leaves them out.")
        });
        format!("`{}` {comes_to}{gate}.{documents}", self.into)
    }

    /// Refuses what was wanted of another state of the branches than this: a yes holds for what was shown.
    pub fn check_shown(&self, from: Option<&str>, onto: Option<&str>) -> Result<(), LandingError> {
        let is_same = |shown: Option<&str>, now: &Option<CommitId>| {
            shown.is_none_or(|shown| now.as_ref().is_some_and(|now| now.as_str() == shown))
        };
        if is_same(from, &self.from) && is_same(onto, &self.onto) {
            return Ok(());
        }
        Err(LandingError::Moved {
            build: self.build,
            into: self.into.clone(),
        })
    }
}

/// Returns whether `build` can be landed.
pub fn admits(build: &Build) -> Result<(), LandingError> {
    match (&build.merged, build.state) {
        (Some(commit), _) => Err(LandingError::Already {
            build: build.id,
            commit: commit.clone(),
        }),
        (None, BuildState::Succeeded) => Ok(()),
        (None, state) => Err(LandingError::Unfinished {
            build: build.id,
            state,
            instead: illegal::revive(build, "go on")
                .err()
                .and_then(|refused| refused.instead),
        }),
    }
}

/// Returns the lines that say what no gate stands for in `whole`, which was seen of a build: that none had a part in it, and which
/// checks count on the word of a person. Who lands it should take neither for the word of the project. Empty where there is no such
/// thing, or nobody has looked.
pub fn gate_lines(whole: Option<&Evidence>, tasks: &[Task]) -> String {
    let Some(whole) = whole else {
        return String::new();
    };
    let none = lacks_gate(whole, tasks).then(|| NO_GATE.to_owned());
    let unproven = whole.unproven().map(|run| {
        let name = &run.name;
        format!("nobody has seen that `{name}` can fail, and a person said that its tests count")
    });
    let lines = none.into_iter().chain(unproven);
    let lines: Vec<String> = lines.map(|line| format!("\n**Gate:** {line}")).collect();
    lines.concat()
}

/// Says in a few paragraphs what landing `build` comes to: from where to where, what was done and shown of it, what its
/// review holds against it, and by which tasks.
pub async fn prospect(store: &Store, build: &Build) -> Result<String, ReadError> {
    let trace = Trace::load(store, build).await?;
    let shown = Fulfilment::summed_up(&trace.fulfilments(), trace.tasks());
    let gate = gate_lines(trace.newest_of_whole(), trace.tasks());
    let tasks = trace.into_tasks();
    let at = build.head.as_ref();
    let at = at.map_or_else(String::new, |head| format!(" at `{}`", head.short()));
    let (branch, target) = (&build.branch, &build.target);
    let others = match &comes_along(store, build).await?[..] {
        [] => String::new(),
        branches => {
            let branches: Vec<String> = branches
                .iter()
                .map(|branch| format!("`{branch}`"))
                .collect();
            let branches = branches.join(" and ");
            format!(" It builds on {branches}: what it holds of that comes along.")
        }
    };
    let of = |state| tasks.iter().filter(move |task| task.state == state);
    let [complete, failed, skipped] =
        [TaskState::Complete, TaskState::Failed, TaskState::Skipped].map(|state| of(state).count());
    let landed = of(TaskState::Complete).take(NAMED);
    let mut lines: Vec<String> = landed
        .map(|task| format!("• {} {}", task.id, task.block.in_words()))
        .collect();
    lines.extend(and_more(complete, NAMED).map(|more| format!("• {more}")));
    let objections = review::objections(store, build).await?.into_iter();
    let objections: Vec<String> = objections
        .map(|objection| format!("\n**But:** {}", objection.told))
        .collect();
    let unseen = if review::is_unreviewed(store, build).await? {
        format!("\n**But:** {UNREVIEWED}")
    } else {
        String::new()
    };
    let objections = objections.concat();
    Ok(format!(
        "`{branch}`{at} goes into `{target}`; where no gate has seen what that comes to, one sees it first.{others}\n\n\
         **Tasks:** {complete} complete, {failed} failed, {skipped} skipped\n**Requirements:** {shown}{gate}{objections}{unseen}\n\n{}",
        lines.join("\n")
    ))
}

/// Lists the branches that a build builds on and that have not landed by themselves: what it holds of them comes along.
pub async fn comes_along(store: &Store, build: &Build) -> Result<Vec<String>, ReadError> {
    let mut branches = Vec::new();
    for followed in &build.follows {
        let other = ownership::successor_of(store, followed.build).await?;
        let other = other.filter(|other| other.merged.is_none());
        branches.extend(other.map(|other| other.branch.clone()));
    }
    Ok(branches)
}

/// Notes what `person` wants; `build.merged` or a question follows. Whoever builds has to be woken.
pub async fn land(
    context: &Context,
    build: &Build,
    landing: Landing,
    person: &Person,
) -> Result<(), LandingError> {
    person.demand(Right::Land)?;
    admits(build)?;
    let mut changes = ChangeSet::new();
    changes.put(&Wish {
        build: build.id,
        what: landing.wish(),
        by: person.name.to_string(),
        cause: context.cause(),
        at: context.now(),
    });
    context.store.commit(changes).await?;
    Ok(())
}
