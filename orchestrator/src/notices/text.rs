//! Writes what people are told: one template for each matter, with the counts that stand in the store.

use ropewalk_schemas::alert::Severity;
use ropewalk_schemas::amount::counted;
use ropewalk_schemas::attempt::FailureClass;
use ropewalk_schemas::build::{Build, BuildState, StopCause, TaskCounts};
use ropewalk_schemas::clip;
use ropewalk_schemas::notice::NoticeText;
use ropewalk_schemas::payload::{
    BuildCompleted, BuildPaused, SpecRevisionRefused, TaskCompleted, TaskFailed, TaskSkipped,
};
use ropewalk_schemas::question::{Choice, Content, Question, QuestionState};

use crate::questions::default_of;

/// The most bytes of what is quoted of others.
const QUOTED: usize = 1_500;
/// The most letters of what a task comes to.
const TITLE: usize = 120;

/// Writes a text of a title, paragraphs and what is best done.
pub(super) fn text(
    title: impl Into<String>,
    paragraphs: impl IntoIterator<Item = String>,
    recommendation: Option<String>,
) -> NoticeText {
    let paragraphs: Vec<String> = paragraphs
        .into_iter()
        .map(|paragraph| paragraph.trim().to_owned())
        .filter(|paragraph| !paragraph.is_empty())
        .collect();
    NoticeText {
        title: title.into(),
        body: paragraphs.join("\n\n"),
        recommendation,
    }
}

/// Puts before a title how bad it is; a warning is one by what it says.
pub(super) fn ranked(title: String, severity: Option<Severity>) -> String {
    match severity {
        Some(Severity::Critical) => format!("Critical: {title}"),
        Some(Severity::Error) => format!("Error: {title}"),
        Some(Severity::Warning) | None => title,
    }
}

/// Puts a question: what is asked, what happens by each choice, what is recommended, and by when.
pub(super) fn question(question: &Question) -> NoticeText {
    let about = question.idea.as_ref();
    let about = about.map_or_else(String::new, |idea| format!(" about `{idea}`"));
    let title = match question.reminded_at {
        Some(_) => format!("Still waiting for an answer{about}"),
        None => format!("Question{about}"),
    };
    let content = question.content.as_ref().map(bound);
    let choices: Vec<String> = question.choices.iter().map(meaning).collect();
    let when = question.due_at.map_or_else(
        || "It waits until somebody answers.".to_owned(),
        |due| unanswered(question, &due.format("%Y-%m-%d %H:%M UTC").to_string()),
    );
    let recommended = question.choices.iter().find(|choice| choice.recommended);
    text(
        title,
        [
            question.text.clone(),
            question.context.clone(),
            content.unwrap_or_default(),
            choices.join("\n"),
            when,
        ],
        recommended.map(|choice| choice.label.clone()),
    )
}

/// Says of a message that another one asks by now.
pub(super) fn asked_again(question: &Question) -> NoticeText {
    text("Asked again below", [question.text.clone()], None)
}

/// Says what became of a question.
pub(super) fn closed(question: &Question) -> NoticeText {
    let title = match (&question.answer, question.state) {
        (Some(answer), QuestionState::Answered) => format!(
            "Answered by {} over {}: {}",
            answer.by,
            answer.channel,
            quoted(&question.answer_in_words(answer))
        ),
        (Some(answer), _) => {
            let taken = quoted(&question.answer_in_words(answer));
            format!("Taken by default: {taken}")
        }
        (None, _) => question.without_answer(),
    };
    text(title, [question.text.clone()], None)
}

/// Says what an answer binds to that takes it; a choice is one, and no word such as "yes".
fn bound(content: &Content) -> String {
    match content {
        Content::Revision { revision, hash } => {
            format!(
                "The choice that approves it holds for revision {revision} with the hash {hash} alone."
            )
        }
        // What it is stands in the question, as a block in which no mark counts.
        Content::Call { tool, .. } => {
            format!(
                "A choice that allows it holds for this very call of {tool}, or for its rule in this build."
            )
        }
        Content::Files { changes, .. } => {
            let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
            let paths = paths.join(", ");
            format!("The choice that allows them holds for these changes alone: {paths}")
        }
    }
}

fn meaning(choice: &Choice) -> String {
    let meaning = [
        choice.description.as_deref(),
        choice.implications.as_deref(),
    ];
    let meaning: Vec<&str> = meaning.into_iter().flatten().collect();
    if meaning.is_empty() {
        return format!("• {}", choice.label);
    }
    format!("• {}: {}", choice.label, meaning.join("; "))
}

fn unanswered(question: &Question, when: &str) -> String {
    let label = default_of(question).and_then(|default| {
        let choice = question.choices.iter().find(|choice| choice.id == default);
        choice.map(|choice| choice.label.clone())
    });
    match label {
        Some(label) => format!("Unanswered, it takes \"{label}\" at {when}."),
        None => format!("Unanswered, it is over at {when}."),
    }
}

/// Says that nothing follows from an answer that asked for another revision, or approved one.
pub(super) fn not_revised(refused: &SpecRevisionRefused) -> NoticeText {
    text(
        format!(
            "Nothing follows for the plan of `{}` from what {} answered",
            refused.idea_slug, refused.requested_by
        ),
        [quoted(&refused.reason)],
        Some("do what the reason says, or ask again once it can be done".to_owned()),
    )
}

/// Says that a build stands still.
pub(super) fn paused(paused: &BuildPaused) -> NoticeText {
    text(
        format!("The build of `{}` stands still", paused.idea_slug),
        [paused.detail.clone(), counts(&paused.counts)],
        Some("see what it waits for with status".to_owned()),
    )
}

/// Says how a build ended, of which `build` is what is stored by now.
pub(super) fn completed(completed: &BuildCompleted, build: Option<&Build>) -> NoticeText {
    let idea = &completed.idea_slug;
    let stop = build.and_then(|build| build.stop);
    let (title, recommendation) = match completed.status {
        BuildState::Succeeded => (
            format!("The build of `{idea}` succeeded"),
            Some("look at its branch, then answer what is asked about it".to_owned()),
        ),
        BuildState::Stopped if build.is_some_and(|build| build.continued_by.is_some()) => (
            format!("The build of `{idea}` gave way to that of a later revision"),
            None,
        ),
        BuildState::Stopped if stop == Some(StopCause::Abandoned) => {
            (format!("The build of `{idea}` has ended for good"), None)
        }
        BuildState::Stopped if stop == Some(StopCause::Person) => (
            format!("The build of `{idea}` is stopped"),
            Some("let it go on with resume, if it is wanted after all".to_owned()),
        ),
        // All tasks did what they should, and together it does not hold: there is none to try again.
        status @ BuildState::Failed if completed.counts.are_all_done() => (
            format!("The build of `{idea}` is {status}"),
            Some(format!(
                "say what to mend with `ropewalk spec revise {idea} WORDS`: once you approve that, it is done on top of what landed"
            )),
        ),
        status => (
            format!("The build of `{idea}` is {status}"),
            Some("answer what it asked, or let it go on with resume".to_owned()),
        ),
    };
    let minutes = completed.duration_seconds.div_ceil(60);
    let facts = format!(
        "{}\nBranch {}, {minutes} min of work.",
        counts(&completed.counts),
        completed.branch
    );
    let reason = completed.reason.clone().unwrap_or_default();
    text(title, [reason, facts], recommendation)
}

/// Says that a task is complete, and whether half of all are with it. Its work is on the branch of the build; that it has landed
/// is said of that branch alone.
pub(super) fn landed(done: &TaskCompleted, is_half: bool) -> NoticeText {
    let (task, idea, counts) = (&done.task_id, &done.idea_slug, done.counts);
    if !is_half {
        return text(format!("Task {task} of `{idea}` is complete"), [], None);
    }
    text(
        format!("Half of `{idea}` is done"),
        [format!(
            "Task {task} is complete, {} of {} are.",
            counts.complete,
            counted(counts.total, "task")
        )],
        None,
    )
}

/// Says that a task was left out.
pub(super) fn skipped(skipped: &TaskSkipped, title: Option<&str>) -> NoticeText {
    let TaskSkipped {
        task_id,
        idea_slug,
        skipped_by,
        ..
    } = skipped;
    let headline = format!("Task {task_id} of `{idea_slug}` was left out by {skipped_by}");
    text(entitled(headline, title), [quoted(&skipped.reason)], None)
}

/// Adds to what became of a task what it was to come to.
fn entitled(headline: String, title: Option<&str>) -> String {
    match title {
        Some(title) => format!("{headline}: {}", clip::line(title, TITLE)),
        None => headline,
    }
}

/// Says that a task failed for good.
pub(super) fn failed(failed: &TaskFailed, title: Option<&str>) -> NoticeText {
    let error = quoted(&failed.error);
    let around = match (failed.blocked, failed.continuing) {
        (0, 0) => String::new(),
        (blocked, continuing) => {
            format!("{blocked} blocked by it, {continuing} go on without it.")
        }
    };
    let how = match failed.category {
        FailureClass::Blocked => "cannot be done as it stands",
        _ => "failed",
    };
    let headline = format!("Task {} of `{}` {how}", failed.task_id, failed.idea_slug);
    text(
        entitled(headline, title),
        [error, around],
        failed.recommended.clone(),
    )
}

fn counts(counts: &TaskCounts) -> String {
    let mut told = vec![
        format!("{} completed", counts.complete),
        format!("{} failed", counts.failed),
        format!("{} blocked", counts.blocked),
    ];
    if counts.skipped > 0 {
        told.push(format!("{} skipped", counts.skipped));
    }
    format!("{} of {}.", told.join(", "), counted(counts.total, "task"))
}

/// Cuts what others wrote to what fits a message.
pub(super) fn quoted(text: &str) -> String {
    let text = text.trim();
    let Some((end, _)) = text.char_indices().find(|(index, _)| *index >= QUOTED) else {
        return text.to_owned();
    };
    let end = clip::sign_before(text, end);
    format!("{}…", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {

    use ropewalk_schemas::{BuildId, ContentHash, Slug, SpecId, TaskId};
    use uuid::Uuid;

    use super::*;

    fn ended(status: BuildState, counts: TaskCounts) -> BuildCompleted {
        BuildCompleted {
            build_id: BuildId(Uuid::nil()),
            spec_id: SpecId(Uuid::nil()),
            idea_slug: Slug::parse("walks").unwrap(),
            status,
            reason: Some("the whole-build check failed".to_owned()),
            counts,
            duration_seconds: 61,
            quote: None,
            spent: None,
            branch: "build/walks".to_owned(),
            commits: Vec::new(),
        }
    }

    #[test]
    fn a_build_that_was_stopped_is_told_with_what_can_be_done_about_it_and_no_more() {
        let id = Uuid::nil();
        for (stop, next, title, best) in [
            (
                "amended",
                Some(id),
                "gave way to that of a later revision",
                None,
            ),
            ("abandoned", None, "has ended for good", None),
            (
                "person",
                None,
                "is stopped",
                Some("let it go on with resume, if"),
            ),
            (
                "failures",
                None,
                "is stopped",
                Some("answer what it asked, or"),
            ),
        ] {
            let build: Build = serde_json::from_value(serde_json::json!({
                "id": id, "spec": id, "revision": 1, "hash": ContentHash::of(b"spec"), "idea": "walks", "user": "ada",
                "state": "stopped", "stop": stop, "continued_by": next, "pause_requested": false, "branch": "build/walks",
                "target": "main", "priority": 5, "working_ms": 0, "correlation_id": id,
                "created_at": "2026-03-01T08:00:00Z",
            }))
            .unwrap();
            let counts = TaskCounts::default();
            let told = completed(&ended(BuildState::Stopped, counts), Some(&build));
            assert!(told.title.ends_with(title), "{stop}: {told:?}");
            let found = told.recommendation.as_deref();
            assert_eq!(found.is_some(), best.is_some(), "{stop}: {told:?}");
            let begins = best.unwrap_or_default();
            assert!(
                found.unwrap_or_default().starts_with(begins),
                "{stop}: {told:?}"
            );
        }
    }

    #[test]
    fn a_task_that_leaves_no_other_waiting_is_told_without_counts() {
        let left = |blocked, continuing| TaskFailed {
            build_id: BuildId(Uuid::nil()),
            task_id: TaskId::parse("T-002").unwrap(),
            idea_slug: Slug::parse("walks").unwrap(),
            attempt: 1,
            category: FailureClass::ValidationFailed,
            error: "the list is empty".to_owned(),
            will_retry: false,
            blocked,
            continuing,
            recommended: None,
        };
        assert_eq!(failed(&left(0, 0), None).body, "the list is empty");
        let told = failed(&left(1, 0), None).body;
        assert!(
            told.ends_with("1 blocked by it, 0 go on without it."),
            "{told}"
        );
    }

    #[test]
    fn a_build_that_fails_as_a_whole_asks_for_what_to_mend_and_for_no_other_try() {
        let told = |complete, failed| {
            let counts = TaskCounts {
                total: 2,
                complete,
                failed,
                ..TaskCounts::default()
            };
            completed(&ended(BuildState::Failed, counts), None)
        };
        let recommended = |told: NoticeText| told.recommendation.unwrap();
        assert!(recommended(told(2, 0)).contains("`ropewalk spec revise walks WORDS`"));
        assert!(recommended(told(1, 1)).contains("resume"));
    }

    #[test]
    fn what_an_answer_binds_to_is_said_of_its_choice_and_of_no_yes() {
        let hash = ContentHash::of(b"spec");
        let revision = serde_json::json!({ "kind": "revision", "revision": 2, "hash": hash });
        let call = serde_json::json!({
            "kind": "call", "tool": "run", "subject": "make deploy", "rule": "deploying",
        });
        let files = serde_json::json!({
            "kind": "files", "candidate": "a".repeat(40), "changes": [{ "path": "ci.yml" }],
        });
        for (content, part) in [
            (revision, "revision 2"),
            (call, "of run"),
            (files, "ci.yml"),
        ] {
            let content: Content = serde_json::from_value(content).unwrap();
            let told = bound(&content);
            assert!(told.contains("choice") && told.contains(part), "{told}");
            assert!(!told.to_lowercase().contains("yes"), "{told}");
        }
    }

    #[test]
    fn a_task_that_was_handed_back_is_not_told_as_one_that_failed() {
        for (category, title) in [
            (
                FailureClass::Blocked,
                "Task T-002 of `walks` cannot be done as it stands",
            ),
            (
                FailureClass::ValidationFailed,
                "Task T-002 of `walks` failed",
            ),
        ] {
            let left = TaskFailed {
                build_id: BuildId(Uuid::nil()),
                task_id: TaskId::parse("T-002").unwrap(),
                idea_slug: Slug::parse("walks").unwrap(),
                attempt: 3,
                category,
                error: "which colour?".to_owned(),
                will_retry: false,
                blocked: 1,
                continuing: 2,
                recommended: None,
            };
            assert_eq!(failed(&left, None).title, title);
            let told = failed(&left, Some("Colour the\nroofs"));
            assert_eq!(told.title, format!("{title}: Colour the roofs"));
        }
    }
}
