//! Makes of an event what people are told, and for whom it is.

use ropewalk_config::questions::Trigger;
use ropewalk_schemas::alert::Severity;
use ropewalk_schemas::amount::counted;
use ropewalk_schemas::build::{Build, BuildState, PauseReason, StopCause};
use ropewalk_schemas::notice::NoticeText;
use ropewalk_schemas::payload::{ReviewCompleted, TaskCompleted};
use ropewalk_schemas::person::Role;
use ropewalk_schemas::question::{About, Question, QuestionState};
use ropewalk_schemas::specification::{SpecState, Specification};
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{
    BuildId, Event, EventPattern, Payload, Slug, SpecId, Subject, TaskId, UserSlug,
};
use ropewalk_store::{EventFilter, Query, ReadError, Store, task_key};

use super::decide::Urgency;
use super::{IDEA_COMPLETE, text};

/// The events that people are told of; what has no line in [`draft`] closes or repeats a notice.
pub(super) const TAKES: [&str; 34] = [
    "halt.begun",
    "halt.lifted",
    IDEA_COMPLETE,
    "spec.requested",
    "spec.generated",
    "spec.revision_refused",
    "spec.rejected",
    "build.started",
    "build.paused",
    "build.merged",
    "build.completed",
    "task.completed",
    "task.skipped",
    "task.failed",
    "work.assigned",
    "lock.extended",
    "alert.stuck_task",
    "alert.stuck_task.escalated",
    "alert.stuck_task.cleared",
    "alert.deadlock",
    "alert.component_down",
    "alert.component_down.cleared",
    "alert.provider_down",
    "alert.provider_down.cleared",
    "alert.slot_retired",
    "review.completed",
    "question.asked",
    "question.reminded",
    "question.answered",
    "question.defaulted",
    "question.dismissed",
    "question.superseded",
    "phone.linked",
    "schedule.due",
];

/// Whose matter something is.
pub(super) enum Audience {
    /// That of everybody: it holds for whatever anybody does, and waits for nobody of a role.
    Everybody,
    /// That of those who have one of the roles.
    Roles(Vec<Role>),
}

/// What is told of an event.
pub(super) struct Draft {
    pub(super) audience: Audience,
    pub(super) urgency: Urgency,
    pub(super) text: NoticeText,
}

/// Returns what is told of an event that puts no question; none where there is nothing to tell.
pub(super) async fn draft(event: &Event, store: &Store) -> Result<Option<Draft>, ReadError> {
    use Urgency::{Blocking, Gathered, Soon};
    if let Some(told) = halt(&event.payload) {
        return Ok(Some(told));
    }
    let (role, urgency, text) = match &event.payload {
        Payload::SpecGenerated(made) if !is_asked_about(made.spec_id, store).await? => (
            Role::Product,
            Soon,
            text::text(
                format!("The specification of `{}` is ready", made.idea_slug),
                [format!(
                    "Revision {} with {}; its hash is {}.",
                    made.revision,
                    counted(made.task_count, "task"),
                    made.hash
                )],
                Some("read it, then approve it or ask for changes".to_owned()),
            ),
        ),
        Payload::SpecRevisionRefused(refused) => (Role::Product, Soon, text::not_revised(refused)),
        Payload::BuildPaused(paused) if paused.reason != PauseReason::Person => {
            (Role::Operations, Soon, text::paused(paused))
        }
        Payload::BuildCompleted(completed) => {
            let build = store.get::<Build>(&completed.build_id.to_string()).await?;
            let told = text::completed(completed, build.as_deref());
            (Role::Product, Soon, told)
        }
        Payload::TaskFailed(failed) if !failed.will_retry => {
            let of = (failed.build_id, &failed.task_id);
            if asks_about_task(of, store).await? {
                return Ok(None);
            }
            let told = text::failed(failed, title_of(of, store).await?.as_deref());
            (Role::Technical, Soon, told)
        }
        Payload::TaskSkipped(skipped) => {
            let title = title_of((skipped.build_id, &skipped.task_id), store).await?;
            (
                Role::Technical,
                Gathered,
                text::skipped(skipped, title.as_deref()),
            )
        }
        Payload::TaskCompleted(done) => {
            let is_half = done.counts.just_reached_half() && !asks_at_half(done, store).await?;
            let (urgency, text) = (Gathered, text::landed(done, is_half));
            let mut roles = vec![Role::Technical];
            // How far the whole has come is no technical matter alone.
            roles.extend(is_half.then_some(Role::Product));
            return Ok(Some(Draft {
                audience: Audience::Roles(roles),
                urgency,
                text,
            }));
        }
        payload => {
            let severity = severity(payload);
            let (role, urgency, (title, body, recommendation)) =
                match (alert(payload), step(payload)) {
                    (Some((role, told)), _) if severity == Some(Severity::Critical) => {
                        (role, Blocking, told)
                    }
                    (Some((role, told)), _) => (role, Soon, told),
                    (None, Some((role, told))) => (role, Gathered, told),
                    (None, None) => return Ok(None),
                };
            let title = text::ranked(title, severity);
            let best = recommended(payload, recommendation, store).await?;
            (role, urgency, text::text(title, [body], best))
        }
    };
    Ok(Some(Draft {
        audience: Audience::Roles(vec![role]),
        urgency,
        text,
    }))
}

/// Returns what everybody is told of a halt, whatever their roles are.
fn halt(payload: &Payload) -> Option<Draft> {
    let (urgency, text) = match payload {
        Payload::HaltBegun(halt) => {
            let best = "no model is asked and no command begins until somebody lets it go on";
            let told = text::text(
                format!("{} stopped everything", halt.by),
                [text::quoted(halt.reason.as_deref().unwrap_or_default())],
                Some(best.to_owned()),
            );
            (Urgency::Blocking, told)
        }
        Payload::HaltLifted(lifted) => {
            let told = text::text(
                format!("{} let everything go on", lifted.by),
                ["It goes on where it stood.".to_owned()],
                None,
            );
            (Urgency::Soon, told)
        }
        _ => return None,
    };
    Some(Draft {
        audience: Audience::Everybody,
        urgency,
        text,
    })
}

/// Returns what is best done, where nobody has done it yet.
async fn recommended(
    payload: &Payload,
    best: Option<&str>,
    store: &Store,
) -> Result<Option<String>, ReadError> {
    if let Payload::ReviewCompleted(review) = payload {
        let command = format!("read it with `ropewalk review show {}`", review.review_id);
        return Ok(Some(command));
    }
    if let Payload::IdeationCompleted(done) = payload {
        let of_idea = Query::new().equal("idea", done.idea_slug.as_str());
        let specs = store.list::<Specification>(of_idea).await?;
        if specs.iter().any(|spec| spec.state != SpecState::Rejected) {
            return Ok(None);
        }
    }
    Ok(best.map(str::to_owned))
}

/// Returns the idea of which an event makes old news that it is complete: what was to follow has been done.
pub(super) fn overtaken(payload: &Payload) -> Option<&Slug> {
    match payload {
        Payload::SpecRequested(requested) => Some(&requested.idea_slug),
        Payload::BuildStarted(started) => Some(&started.idea_slug),
        _ => None,
    }
}

/// Returns who decided what an event tells, and looks for what came of it.
pub(super) async fn awaited_by(
    event: &Event,
    store: &Store,
) -> Result<Option<UserSlug>, ReadError> {
    let name = match &event.payload {
        Payload::BuildMerged(merged) => merged.merged_by.clone(),
        Payload::SpecRejected(rejected) => rejected.rejected_by.clone(),
        Payload::IdeationCompleted(done) => done.user_slug.to_string(),
        Payload::TaskSkipped(skipped) => skipped.skipped_by.clone(),
        Payload::BuildStarted(started) => {
            let spec = started.spec_id.to_string();
            let spec = store.get::<Specification>(&spec).await?;
            let approval = spec.and_then(|spec| spec.approval.clone());
            approval
                .map(|approval| approval.by.to_string())
                .unwrap_or_default()
        }
        _ => return Ok(None),
    };
    Ok(UserSlug::parse(&name).ok())
}

/// Returns who did what an event tells and was answered where they did it, so that they know it; nobody of what came of itself.
pub(super) async fn done_by(event: &Event, store: &Store) -> Result<Option<UserSlug>, ReadError> {
    match &event.payload {
        Payload::HaltBegun(halt) => Ok(Some(halt.by.clone())),
        Payload::HaltLifted(lifted) => Ok(Some(lifted.by.clone())),
        Payload::BuildCompleted(ended) if ended.status == BuildState::Stopped => {
            stopped_by(ended.build_id, store).await
        }
        _ => Ok(None),
    }
}

/// Returns who stopped a build, where somebody did.
async fn stopped_by(build: BuildId, store: &Store) -> Result<Option<UserSlug>, ReadError> {
    let row = store.get::<Build>(&build.to_string()).await?;
    if row.is_none_or(|row| row.stop != Some(StopCause::Person)) {
        return Ok(None);
    }
    let wish = EventFilter {
        pattern: Some(EventPattern::of("build.stop")),
        subject: Some(Subject::build(build)),
        newest_first: true,
        limit: Some(1),
        ..EventFilter::default()
    };
    let wishes = store.events(&wish).await?;
    let wish = wishes.first();
    let wish = wish.and_then(|stored| Event::try_from(stored.event.as_ref()).ok());
    Ok(match wish.map(|wish| wish.payload) {
        Some(Payload::BuildStop(asked)) => UserSlug::parse(&asked.requested_by).ok(),
        _ => None,
    })
}

/// Returns what a task comes to, in a few words; nothing where its plan does not say.
async fn title_of(
    (build, task): (BuildId, &TaskId),
    store: &Store,
) -> Result<Option<String>, ReadError> {
    let task = store.get::<Task>(&task_key(build, task)).await?;
    Ok(task.and_then(|task| task.block.title.clone()))
}

/// A title, a paragraph, and what is best done.
type NoticeWords = (String, String, Option<&'static str>);

/// Returns how bad what an alert tells is, where it was told.
fn severity(payload: &Payload) -> Option<Severity> {
    match payload {
        Payload::StuckTask(told) => told.severity,
        Payload::StuckTaskEscalated(told) => Some(told.severity),
        Payload::DeadlockDetected(told) => told.severity,
        Payload::ComponentDown(told) => told.severity,
        Payload::ProviderDown(told) => told.severity,
        Payload::SlotRetired(told) => told.severity,
        _ => None,
    }
}

/// What somebody should look at.
fn alert(payload: &Payload) -> Option<(Role, NoticeWords)> {
    let told = match payload {
        Payload::StuckTask(stuck) => (
            Role::Technical,
            (
                format!("Task {} makes no progress", stuck.task_id),
                format!(
                    "`{}` has worked on it for {} min without any.",
                    stuck.loop_name, stuck.idle_minutes
                ),
                Some("wait: it is interrupted, and its work kept, if that goes on"),
            ),
        ),
        Payload::StuckTaskEscalated(worse) => (
            Role::Technical,
            (
                worse.message.clone(),
                String::new(),
                Some(
                    "answer what is asked about it, or wait: it is interrupted, and its work kept",
                ),
            ),
        ),
        Payload::DeadlockDetected(found) if !found.resolved => (
            Role::Technical,
            (
                "Tasks wait for each other".to_owned(),
                found.cycle.join(" → "),
                Some("stop one of their builds"),
            ),
        ),
        Payload::ComponentDown(down) => (
            Role::Operations,
            (
                format!("`{}` gives no sign of life", down.component),
                format!("Nothing was heard of it for {} s.", down.silent_seconds),
                Some("start what is missing"),
            ),
        ),
        Payload::ProviderDown(down) => (
            Role::Operations,
            (
                format!("The provider `{}` is away", down.provider),
                text::quoted(&down.error),
                Some("work that needs it goes on by itself when it answers again"),
            ),
        ),
        Payload::SlotRetired(retired) => (
            Role::Operations,
            (
                format!("The checkout {} was put aside", retired.checkout),
                format!("{}; it lies in {}.", retired.reason, retired.place),
                None,
            ),
        ),
        _ => return None,
    };
    Some(told)
}

/// What goes its way.
fn step(payload: &Payload) -> Option<(Role, NoticeWords)> {
    let told = match payload {
        Payload::IdeationCompleted(done) => (
            Role::Product,
            (
                format!("The idea `{}` is complete", done.idea_slug),
                "Its brief is written.".to_owned(),
                Some("ask for its specification"),
            ),
        ),
        Payload::SpecRejected(rejected) => (
            Role::Product,
            (
                format!(
                    "The specification of `{}` was put away by {}",
                    rejected.idea_slug, rejected.rejected_by
                ),
                text::quoted(&rejected.reason),
                None,
            ),
        ),
        Payload::BuildStarted(started) => (
            Role::Product,
            (
                format!("The build of `{}` began", started.idea_slug),
                format!(
                    "{} on {}.",
                    counted(started.task_count, "task"),
                    started.branch
                ),
                None,
            ),
        ),
        Payload::BuildMerged(merged) => (
            Role::Product,
            (
                format!("`{}` is landed", merged.idea_slug),
                format!("In {}, by {}.", merged.into, merged.merged_by),
                None,
            ),
        ),
        Payload::StuckTaskCleared(cleared)
        | Payload::ComponentDownCleared(cleared)
        | Payload::ProviderDownCleared(cleared) => (
            Role::Operations,
            (cleared.message.clone(), String::new(), None),
        ),
        Payload::ReviewCompleted(review) if has_found_nothing(review) => return None,
        Payload::ReviewCompleted(review) => (
            Role::Technical,
            (
                format!("`{}` was reviewed", review.idea_slug),
                format!(
                    "{} and {} found, {} changed.{}",
                    counted(review.patterns_found, "pattern"),
                    counted(review.gotchas_found, "gotcha"),
                    counted(review.improvements_made, "lesson"),
                    objections(review)
                ),
                None,
            ),
        ),
        _ => return of_task(payload),
    };
    Some(told)
}

/// Says whether a review came to nothing that anybody has to know.
const fn has_found_nothing(review: &ReviewCompleted) -> bool {
    let found = review.patterns_found + review.gotchas_found + review.improvements_made;
    found + review.requirements_missed + review.deviations == 0
}

/// Says how much a review holds against its build; nothing where there is nothing.
fn objections(review: &ReviewCompleted) -> String {
    let parts = [
        (review.requirements_missed, "requirement", "missed"),
        (review.deviations, "thing", "worse than planned"),
    ];
    let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
    let told = parts.map(|(count, noun, what)| {
        let counted = counted(count, noun);
        format!(" It holds {counted} for {what}.")
    });
    told.collect()
}

/// What happens to a task.
fn of_task(payload: &Payload) -> Option<(Role, NoticeWords)> {
    let told = match payload {
        Payload::LockExtended(got) => {
            let files: Vec<String> = got.files.iter().map(|file| format!("`{file}`")).collect();
            (
                Role::Technical,
                (
                    format!(
                        "Task {} asked for {} and got it",
                        got.task_id,
                        files.join(", ")
                    ),
                    text::quoted(&got.reason),
                    None,
                ),
            )
        }
        Payload::WorkAssigned(given) => (
            Role::Technical,
            (
                format!("Task {} goes to `{}`", given.task_id, given.to),
                text::quoted(given.reason.as_deref().unwrap_or_default()),
                None,
            ),
        ),
        _ => return None,
    };
    Some(told)
}

/// Returns whether an open question puts the specification to people already.
async fn is_asked_about(spec: SpecId, store: &Store) -> Result<bool, ReadError> {
    let open = Query::new()
        .equal("state", QuestionState::Pending.as_str())
        .equal("trigger", Trigger::SpecComplete.as_str());
    let open = store.list::<Question>(open).await?;
    Ok(open
        .iter()
        .any(|question| question.about == About::Specification { spec }))
}

/// Returns whether an open question tells people already what became of a task.
async fn asks_about_task(
    (build, task): (BuildId, &TaskId),
    store: &Store,
) -> Result<bool, ReadError> {
    let task = store.get::<Task>(&task_key(build, task)).await?;
    let Some(id) = task.and_then(|task| task.question) else {
        return Ok(false);
    };
    let question = store.get::<Question>(&id.to_string()).await?;
    Ok(question.is_some_and(|question| question.state == QuestionState::Pending))
}

/// Returns whether a question tells people already that half of the build is done.
async fn asks_at_half(done: &TaskCompleted, store: &Store) -> Result<bool, ReadError> {
    let asked = Query::new()
        .equal("build", done.build_id)
        .equal("trigger", Trigger::MilestoneReached.as_str());
    Ok(store.count::<Question>(asked).await? > 0)
}
