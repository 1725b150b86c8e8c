//! Does what people answered to the questions of a build.

use ropewalk_config::Trigger;
use ropewalk_config::questions::choice::{
    BranchMoved, BranchRefused, BuildFinished, BuildHeld, CheckHeld, LandingRefused,
    ProtectedFiles, TaskFailedRepeatedly, TaskInterrupted,
};
use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::StopCause;
use ropewalk_schemas::payload::QuestionAnswered;
use ropewalk_schemas::question::{About, Content, Question};
use ropewalk_schemas::task::{KeptWork, Task};
use ropewalk_schemas::wish::{BranchWish, Wish};
use ropewalk_schemas::{BuildId, ChoiceId, Payload, TaskId};
use ropewalk_store::{ChangeSet, Versioned};

use super::{control, wishes};
use crate::SharedState;
use crate::budget;
use crate::context;
use crate::context::consents::{self, all_refusals, said_of};
use crate::effects::Scene;
use crate::error::BuilderError;
use crate::machine::build::{self, STOP_REQUESTED};
use crate::machine::task::Input;
use crate::scheduler::verdicts;
use crate::scheduler::work::{self, Work};

/// Handles an answer; answers to the questions of others are none of ours.
pub(super) async fn answered(
    shared: &SharedState,
    context: &Context,
    answer: &QuestionAnswered,
) -> Result<ChangeSet, BuilderError> {
    let Some(trigger) = Trigger::parse(&answer.trigger) else {
        return Ok(ChangeSet::new());
    };
    match &answer.about {
        About::Task { build, task } => {
            about_task(shared, context, trigger, (*build, task), answer).await
        }
        About::Build { build } => about_build(shared, context, trigger, *build, answer).await,
        _ => Ok(ChangeSet::new()),
    }
}

async fn about_task(
    shared: &SharedState,
    context: &Context,
    trigger: Trigger,
    (build, task): (BuildId, &TaskId),
    answer: &QuestionAnswered,
) -> Result<ChangeSet, BuilderError> {
    match trigger {
        Trigger::TaskFailedRepeatedly | Trigger::TaskInterrupted => {
            standing_task(shared, context, trigger, (build, task), answer).await
        }
        Trigger::ProtectedFiles => protected(shared, context, build, task, answer).await,
        Trigger::MultipleImplementations | Trigger::MissingContext => {
            let about = (build, task);
            if asked_still(context, about, answer).await?.is_none() {
                return Ok(ChangeSet::new());
            }
            control::apply(shared, context, about, Input::Answer, None).await
        }
        Trigger::CheckHeld => check_held(shared, context, build, task, answer).await,
        Trigger::BudgetExceeded => {
            budget::answered(shared, context, build, Some(task), answer).await
        }
        Trigger::TaskComplexityExceeded => wishes::heard(shared, context, trigger, answer).await,
        _ => Ok(ChangeSet::new()),
    }
}

async fn about_build(
    shared: &SharedState,
    context: &Context,
    trigger: Trigger,
    build: BuildId,
    answer: &QuestionAnswered,
) -> Result<ChangeSet, BuilderError> {
    match trigger {
        Trigger::BranchMoved => branch_moved(shared, context, build, answer).await,
        Trigger::BranchRefused => branch_refused(shared, context, build, answer).await,
        Trigger::BuildHeld => build_held(shared, context, build, answer).await,
        Trigger::BuildFinished | Trigger::LandingRefused => {
            finished(shared, context, trigger, build, answer).await
        }
        Trigger::ValidationLevelNeeded => {
            verdicts::level_chosen(context, build, answer.choice.as_ref()).await
        }
        Trigger::SecurityVulnerability | Trigger::BlindCheck | Trigger::MultipleFailures => {
            verdicts::answered(shared, context, trigger, build, answer).await
        }
        Trigger::BudgetExceeded => budget::answered(shared, context, build, None, answer).await,
        Trigger::MilestoneReached => wishes::heard(shared, context, trigger, answer).await,
        _ => Ok(ChangeSet::new()),
    }
}

/// What a person wants of a task that stands.
enum Fate {
    Retry { guidance: Option<String> },
    Skip,
    Leave { told: String },
}

impl Fate {
    fn of(trigger: Trigger, answer: &QuestionAnswered) -> Self {
        let by = &answer.answered_by;
        let choice = answer.choice.as_ref();
        let guided = || Self::Retry {
            guidance: Some(answer.answer.clone()),
        };
        // Words alone were taken before choices had ids. They may say anything, and another round is paid for.
        let unclear = || Self::Leave {
            told: format!("left failed: what {by} answered is none of the choices"),
        };
        if trigger == Trigger::TaskInterrupted {
            return match TaskInterrupted::of(choice) {
                Some(TaskInterrupted::Again) => Self::Retry { guidance: None },
                Some(TaskInterrupted::Skip) => Self::Skip,
                Some(TaskInterrupted::Guide) => guided(),
                None => unclear(),
            };
        }
        match TaskFailedRepeatedly::of(choice) {
            Some(TaskFailedRepeatedly::Skip) => Self::Skip,
            Some(TaskFailedRepeatedly::Manual) => Self::Leave {
                told: format!("{by} fixes it manually"),
            },
            Some(TaskFailedRepeatedly::Leave) => Self::Leave {
                told: match answer.why() {
                    Some(why) => format!("left failed by {by}: {why}"),
                    None => format!("left failed by {by}"),
                },
            },
            // The planner does, and what comes of it is a revision.
            Some(TaskFailedRepeatedly::Rethink) => Self::Leave {
                told: format!("{by} thinks it through with the planner"),
            },
            Some(TaskFailedRepeatedly::Guide) => guided(),
            None => unclear(),
        }
    }
}

/// Does what a person said of a task that failed, or that stood still.
async fn standing_task(
    shared: &SharedState,
    context: &Context,
    trigger: Trigger,
    (build, task): (BuildId, &TaskId),
    answer: &QuestionAnswered,
) -> Result<ChangeSet, BuilderError> {
    if asked_still(context, (build, task), answer).await?.is_none() {
        return Ok(ChangeSet::new());
    }
    let about = (build, task);
    match Fate::of(trigger, answer) {
        Fate::Skip => {
            let by = &answer.answered_by;
            let why = answer.why().unwrap_or("the answer to its question");
            control::skip(shared, context, build, task, by, why).await
        }
        Fate::Leave { told } => {
            control::apply(shared, context, about, Input::Leave { told }, None).await
        }
        Fate::Retry { guidance } => {
            let input = Input::Retry { guidance };
            let revive = build::Input::Revive { express: false };
            control::apply(shared, context, about, input, Some(revive)).await
        }
    }
}

/// Returns the task that still waits for an answer; one that comes after it moved on by other ways changes nothing.
async fn asked_still(
    context: &Context,
    (build, task): (BuildId, &TaskId),
    answer: &QuestionAnswered,
) -> Result<Option<Versioned<Task>>, BuilderError> {
    let row = context::task(&context.store, build, task).await?;
    Ok(row.filter(|row| row.question == Some(answer.question_id)))
}

/// With a yes the kept work goes to the gate as it was shown, without a model, unless a model has to hear what was said with it;
/// with a no it is done without.
async fn protected(
    shared: &SharedState,
    context: &Context,
    build: BuildId,
    task: &TaskId,
    answer: &QuestionAnswered,
) -> Result<ChangeSet, BuilderError> {
    let Some(row) = asked_still(context, (build, task), answer).await? else {
        return Ok(ChangeSet::new());
    };
    let key = answer.question_id.to_string();
    let asked = context.store.get::<Question>(&key).await?;
    let bound = asked.and_then(|row| row.record.content);
    let overruled = all_refusals(bound.as_ref());
    let said = said_of(bound.as_ref(), answer.answer.trim());
    let choice = ProtectedFiles::of(answer.choice.as_ref());
    let input = match choice {
        Some(ProtectedFiles::Allow | ProtectedFiles::AllowAnd) => Input::Allow {
            shown: shown(context, &row, bound).await?,
            overruled,
            // A model that has to hear it is told of the yes as well, as of all that was allowed.
            told: said.filter(|_| choice == Some(ProtectedFiles::AllowAnd)),
        },
        Some(ProtectedFiles::Guide | ProtectedFiles::Keep) | None => {
            let answers = consents::answers(&context.store, &row).await?;
            let mut told = consents::refusals(bound.as_ref(), &answers.allowed_before());
            told.extend(said.filter(|_| choice == Some(ProtectedFiles::Guide)));
            Input::Forbid { overruled, told }
        }
    };
    control::apply(shared, context, (build, task), input, None).await
}

/// Returns the work that a question has shown; one that was asked before it showed any has none.
async fn shown(
    context: &Context,
    task: &Task,
    asked: Option<Content>,
) -> Result<Option<KeptWork>, BuilderError> {
    let Some(Content::Files { candidate, .. }) = asked else {
        return Ok(None);
    };
    let attempts = context::attempts_at(&context.store, task.build, &task.id).await?;
    let made = attempts
        .iter()
        .find(|attempt| attempt.candidate.as_ref() == Some(&candidate));
    Ok(Some(KeptWork {
        granted: made.map_or_else(Vec::new, |attempt| attempt.granted.clone()),
        candidate,
    }))
}

/// Lets a task whose check could not run be checked again, or leaves it out.
async fn check_held(
    shared: &SharedState,
    context: &Context,
    build: BuildId,
    task: &TaskId,
    answer: &QuestionAnswered,
) -> Result<ChangeSet, BuilderError> {
    if asked_still(context, (build, task), answer).await?.is_none() {
        return Ok(ChangeSet::new());
    }
    match CheckHeld::of(answer.choice.as_ref()) {
        Some(CheckHeld::Again) => {
            control::apply(shared, context, (build, task), Input::Recheck, None).await
        }
        Some(CheckHeld::Skip) => {
            let by = &answer.answered_by;
            let why = answer.why().unwrap_or("its check could not run");
            control::skip(shared, context, build, task, by, why).await
        }
        None => Ok(ChangeSet::new()),
    }
}

/// Stops a build whose branch somebody moved, or notes how it is to go on.
async fn branch_moved(
    shared: &SharedState,
    context: &Context,
    build: BuildId,
    answer: &QuestionAnswered,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    let by = &answer.answered_by;
    let what = match BranchMoved::of(answer.choice.as_ref()) {
        Some(BranchMoved::Stop) => {
            if let Some(build) = context::build(&context.store, build).await? {
                let scene = Scene::new(shared, context, &build);
                let input = build::Input::Stop {
                    why: StopCause::Person,
                    told: format!("{STOP_REQUESTED} by {by}: its branch was moved"),
                };
                control::steer(&scene, &mut changes, &build, input).await?;
            }
            return Ok(changes);
        }
        Some(BranchMoved::BuildOnTop) => BranchWish::BuildOnTop,
        Some(BranchMoved::OwnBranch) => BranchWish::OwnBranch,
        None => return Ok(changes),
    };
    changes.put(&wish(context, build, what, by));
    Ok(changes)
}

/// Lets what is done for a build be done again, or stops it; one that moved on by other ways is left alone.
async fn build_held(
    shared: &SharedState,
    context: &Context,
    id: BuildId,
    answer: &QuestionAnswered,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    let held = context::build(&context.store, id).await?;
    let Some(build) = held.filter(|build| build.question == Some(answer.question_id)) else {
        return Ok(changes);
    };
    let input = match BuildHeld::of(answer.choice.as_ref()) {
        Some(BuildHeld::Again) => {
            let works = [Work::Ground, Work::Check];
            work::count_anew(context, &mut changes, id, &works).await?;
            build::Input::Resume
        }
        Some(BuildHeld::Stop) => build::Input::Stop {
            why: StopCause::Person,
            told: format!("{STOP_REQUESTED} by {}: it was held", answer.answered_by),
        },
        None => return Ok(changes),
    };
    let scene = Scene::new(shared, context, &build);
    control::steer(&scene, &mut changes, &build, input).await?;
    Ok(changes)
}

/// Lets a build try again to publish its branch, or stops it; of one that has ended the branch is left where it is.
async fn branch_refused(
    shared: &SharedState,
    context: &Context,
    build: BuildId,
    answer: &QuestionAnswered,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    let Some(build) = context::build(&context.store, build).await? else {
        return Ok(changes);
    };
    let by = &answer.answered_by;
    let input = match BranchRefused::of(answer.choice.as_ref()) {
        Some(BranchRefused::TryAgain) => {
            let works = [Work::Publication];
            work::count_anew(context, &mut changes, build.id, &works).await?;
            build::Input::SettleBranch
        }
        Some(BranchRefused::Stop) if !build.state.has_ended() || build.gives_way() => {
            build::Input::Stop {
                why: StopCause::Person,
                told: format!("{STOP_REQUESTED} by {by}: its branch was refused"),
            }
        }
        Some(BranchRefused::Stop) => build::Input::Heed {
            told: Some(format!("its branch is left as it is by {by}")),
        },
        None => return Ok(changes),
    };
    let scene = Scene::new(shared, context, &build);
    control::steer(&scene, &mut changes, &build, input).await?;
    Ok(changes)
}

/// Returns the build whose branch an answer wants tried again; nothing else brings that on where the build has ended.
pub(crate) fn wants_publication(payload: &Payload) -> Option<BuildId> {
    let Payload::QuestionAnswered(answer) = payload else {
        return None;
    };
    let About::Build { build } = answer.about else {
        return None;
    };
    let is_about_it = Trigger::parse(&answer.trigger) == Some(Trigger::BranchRefused);
    let choice = BranchRefused::of(answer.choice.as_ref());
    (is_about_it && matches!(choice, Some(BranchRefused::TryAgain))).then_some(build)
}

/// Notes what a person wants of the branch of a build; git and gate are for the scheduler.
fn wish(context: &Context, build: BuildId, what: BranchWish, by: &str) -> Wish {
    Wish {
        build,
        what,
        by: by.to_owned(),
        cause: context.cause(),
        at: context.now(),
    }
}

/// What a person wants of the branch of a build that has ended.
enum BranchDecision {
    /// The scheduler does it.
    Done(BranchWish),
    /// They do it themselves.
    PullRequest,
    Nothing,
}

impl BranchDecision {
    fn of(trigger: Trigger, choice: Option<&ChoiceId>) -> Option<Self> {
        if trigger == Trigger::LandingRefused {
            return LandingRefused::of(choice).map(|choice| match choice {
                LandingRefused::TryAgain => Self::Done(BranchWish::Merge),
                LandingRefused::Resolve => Self::Done(BranchWish::Resolve),
                LandingRefused::Leave => Self::Nothing,
            });
        }
        BuildFinished::of(choice).map(|choice| match choice {
            BuildFinished::Merge => Self::Done(BranchWish::Merge),
            BuildFinished::PullRequest => Self::PullRequest,
            BuildFinished::Leave => Self::Nothing,
        })
    }
}

/// Merges the branch or leaves it, as the person wants; what is asked for and cannot be done is asked about again.
async fn finished(
    shared: &SharedState,
    context: &Context,
    trigger: Trigger,
    build: BuildId,
    answer: &QuestionAnswered,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    let Some(row) = context::build(&context.store, build).await? else {
        return Ok(changes);
    };
    let told = match BranchDecision::of(trigger, answer.choice.as_ref()) {
        None => return Ok(changes),
        Some(BranchDecision::Done(what)) => {
            if row.merged.is_none() {
                changes.put(&wish(context, build, what, &answer.answered_by));
            }
            return Ok(changes);
        }
        Some(BranchDecision::PullRequest) => Some(format!(
            "you chose a pull request: `git push origin {}`, then open it where the repository is hosted",
            row.branch
        )),
        // Its files stay its own, since it may be landed later.
        Some(BranchDecision::Nothing) => None,
    };
    let scene = Scene::new(shared, context, &row);
    control::steer(&scene, &mut changes, &row, build::Input::Heed { told }).await?;
    Ok(changes)
}
