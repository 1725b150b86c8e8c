//! Confirms, weighs and drops lessons.

use chrono::{DateTime, Utc};
use ropewalk_config::Trigger;
use ropewalk_config::questions::choice::{GotchaCandidate, PatternDetected};
use ropewalk_knowledge::{Effect, confirm as confirmed, deprecate, reinforce};
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::KnowledgeId;
use ropewalk_schemas::knowledge::{Injection, KnowledgeItem, KnowledgeKind};
use ropewalk_schemas::payload::QuestionAnswered;
use ropewalk_schemas::question::About;
use ropewalk_store::ChangeSet;

use super::ledger::Ledger;
use crate::improvement::context::ReviewedBuild;
use crate::improvement::decide;

/// Confirms the lessons that a build recorded or saw again; returns its gotchas. What its review alone supposed, another review of the
/// same build confirms no more than the first.
pub(super) fn confirm(
    ledger: &mut Ledger,
    reviewed: &ReviewedBuild,
    now: DateTime<Utc>,
) -> Vec<KnowledgeId> {
    let mut gotchas = Vec::new();
    for lesson in &reviewed.lessons {
        let is_shown = lesson.may_be_told() || lesson.occurrences() >= 2;
        if is_shown {
            ledger.step(lesson.id, |row| confirmed(row, now).ok());
        }
        if lesson.kind == KnowledgeKind::Gotcha {
            gotchas.push(lesson.id);
        }
    }
    gotchas
}

/// Weighs the lessons that the tasks carried by how the tasks fared; returns how many tasks were kept from a failure.
pub(super) fn weigh(
    ledger: &mut Ledger,
    reviewed: &ReviewedBuild,
    now: DateTime<Utc>,
    notes: &mut Vec<String>,
) -> usize {
    let injections = reviewed.injections.iter();
    let uses = decide::uses(injections.map(|row| (row.item, reviewed.effect(row))));
    let mut prevented = 0;
    for (item, seen) in uses {
        let Some(effect) = decide::prevailing(seen) else {
            continue;
        };
        let tasks = tasks_with(reviewed, item, effect);
        let reason = match effect {
            Effect::PreventedFailure => {
                prevented += seen.helped;
                let source = reviewed.carried.iter().find(|row| row.id == item);
                let source = source
                    .map(|row| row.evidence.join(", "))
                    .unwrap_or_default();
                notes.push(format!(
                    "{tasks} passed with gotcha `{item}` (from {source}), where one had failed without it"
                ));
                format!(
                    "{tasks} carried it and passed at the first try, where one had failed without it"
                )
            }
            Effect::DidNotHelp => format!("{tasks} carried it and made its mistake all the same"),
        };
        ledger.step(item, |row| {
            row.is_usable()
                .then(|| reinforce(row, effect, &reason, now))
        });
    }
    prevented
}

/// Names the tasks of which it is known what the lesson did for them.
fn tasks_with(reviewed: &ReviewedBuild, item: KnowledgeId, effect: Effect) -> String {
    let rows = reviewed.injections.iter();
    let tasks: Vec<String> = rows
        .filter(|row| row.item == item && reviewed.effect(row) == Some(effect))
        .map(|row| format!("`{}`", row.task))
        .collect();
    tasks.join(", ")
}

/// Writes down what the uses came to in tasks that have ended.
pub(super) fn write_down_uses(changes: &mut ChangeSet, reviewed: &ReviewedBuild) {
    for row in &reviewed.injections {
        let ended = reviewed
            .task(&row.task)
            .is_some_and(|task| task.state.is_final());
        let effect = reviewed.effect(row);
        let after = Injection {
            build: Some(reviewed.build.id),
            helped: effect.map(|effect| effect == Effect::PreventedFailure),
            ..row.record.clone()
        };
        if ended && after != row.record {
            changes.update(row, &after);
        }
    }
}

/// Does what people said about a lesson.
pub(super) async fn answered(
    answer: &QuestionAnswered,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let About::Knowledge { item } = answer.about else {
        return Ok(changes);
    };
    let Some(row) = context
        .store
        .get::<KnowledgeItem>(&item.to_string())
        .await?
    else {
        return Ok(changes);
    };
    let mut ledger = Ledger::open([&row]);
    let (now, by) = (context.now(), &answer.answered_by);
    match said(answer) {
        Some(LessonVerdict::Holds) => ledger.step(item, |row| confirmed(row, now).ok()),
        Some(LessonVerdict::DoesNotHold) => {
            ledger.step(item, |row| deprecate(row, &answer.answer, by, now).ok());
        }
        None => return Ok(changes),
    }
    ledger.close(&mut changes, context);
    Ok(changes)
}

/// What a person said about a lesson.
enum LessonVerdict {
    Holds,
    DoesNotHold,
}

/// Reads the answer to a question about a lesson; the other choices wait for whoever asks it.
fn said(answer: &QuestionAnswered) -> Option<LessonVerdict> {
    let choice = answer.choice.as_ref();
    match Trigger::parse(&answer.trigger)? {
        Trigger::GotchaCandidate => match GotchaCandidate::of(choice)? {
            GotchaCandidate::Add => Some(LessonVerdict::Holds),
            GotchaCandidate::ProjectOnly | GotchaCandidate::Reword => None,
        },
        Trigger::PatternDetected => match PatternDetected::of(choice)? {
            PatternDetected::Add => Some(LessonVerdict::Holds),
            PatternDetected::Reject => Some(LessonVerdict::DoesNotHold),
            PatternDetected::Refine | PatternDetected::Examples => None,
        },
        _ => None,
    }
}
