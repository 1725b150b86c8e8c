//! Reads questions and answers that were stored when a label was all that a choice had.
//!
//! This is the one place where a label means something, and only in what was written before choices had ids: a row
//! whose choices have none, an event of the first version.

use serde_json::{Value, json};

use crate::ids::{ChoiceId, ContentHash};

/// The labels that an answer could be, by trigger, with the ids that stand for them now.
const LABELS: [(&str, &[(&str, &str)]); 18] = [
    (
        "spec_complete",
        &[
            ("Yes, start building!", "start"),
            ("Let me review the spec first", "later"),
        ],
    ),
    (
        "task_complexity_exceeded",
        &[
            ("Continue, it's worth it", "continue"),
            ("Simplify the approach", "simplify"),
            ("Pause and let's discuss", "pause"),
            ("Skip for now", "skip"),
        ],
    ),
    (
        "milestone_reached",
        &[
            ("Keep going!", "keep-going"),
            ("Take a break, save progress", "pause"),
        ],
    ),
    (
        "task_failed_repeatedly",
        &[
            ("Try this...", "guide"),
            ("Skip this task", "skip"),
            ("Rethink the approach with me", "rethink"),
            ("I'll fix this manually", "manual"),
        ],
    ),
    (
        "protected_files",
        &[
            ("Allow this change", "allow"),
            ("Keep them as they are", "keep"),
        ],
    ),
    (
        "branch_moved",
        &[
            ("Build on top of it", "build-on-top"),
            ("Keep my commits on a branch of their own", "own-branch"),
            ("Stop this build", "stop"),
        ],
    ),
    (
        "build_finished",
        &[
            ("Merge it", "merge"),
            ("Open a pull request", "pull-request"),
            ("Leave it", "leave"),
        ],
    ),
    (
        "landing_refused",
        &[("Try again", "try-again"), ("Leave it", "leave")],
    ),
    (
        "budget_exceeded",
        &[
            ("Raise it by half", "half"),
            ("Raise it by as much again", "double"),
            ("Stop the build", "stop"),
        ],
    ),
    (
        "validation_level_needed",
        &[
            ("Quick", "quick"),
            ("Standard", "standard"),
            ("Thorough", "thorough"),
            ("Comprehensive", "comprehensive"),
            ("Release", "release"),
        ],
    ),
    (
        "multiple_failures",
        &[
            ("Fix all critical first, then warnings", "fix-critical"),
            ("Fix all before proceeding", "fix-all"),
        ],
    ),
    (
        "security_vulnerability",
        &[
            ("Fix it now", "fix"),
            ("I'll handle manually", "manual"),
            ("Accept the risk (not recommended)", "accept"),
        ],
    ),
    (
        "coverage_below_threshold",
        &[
            ("Yes, generate more tests", "add-tests"),
            ("Coverage is acceptable", "accept"),
        ],
    ),
    ("validation_passed", &[("Approved! Deploy it", "seen")]),
    ("weekly_summary", &[("Looks good, continue", "seen")]),
    (
        "task_stuck",
        &[("wait", "wait"), ("skip", "skip"), ("retry", "retry")],
    ),
    (
        "change_requested",
        &[
            ("Wait until it is merged", "wait"),
            ("Go on with its commits", "go-on"),
            ("Refuse the change", "refuse"),
        ],
    ),
    (
        "decision_needed",
        &[("Try again", "retry"), ("Leave it", "leave")],
    ),
];

/// The choice behind whose label somebody wrote words of their own, by trigger, with the id that stands for it now.
const WITH_WORDS: (&str, &str, &str) = ("task_failed_repeatedly", "Try this...", "guide");

/// Finds the id that stands for a label of `trigger`.
fn id_of(trigger: &str, label: &str) -> Option<&'static str> {
    let (_, labels) = LABELS.iter().find(|(name, _)| *name == trigger)?;
    let (_, id) = labels
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(label.trim()))?;
    Some(id)
}

/// Finds the id that stands for a label of `trigger` with words behind it, and these.
fn with_words<'answer>(
    trigger: &str,
    answer: &'answer str,
) -> Option<(&'static str, &'answer str)> {
    let (asked, label, id) = WITH_WORDS;
    let words = answer.trim().strip_prefix(label)?;
    let words = words.trim_start_matches([':', ' ', '\u{2026}']).trim();
    (trigger == asked && !words.is_empty()).then_some((id, words))
}

/// Gives a stored question the ids of its choices, default and answer, if it has none.
pub(super) fn question(stored: &mut Value) {
    let trigger = text(stored, "trigger").unwrap_or_default();
    bind_to_revision(stored, &trigger);
    let Some(choices) = stored.get_mut("choices").and_then(Value::as_array_mut) else {
        return;
    };
    if choices.iter().all(|choice| choice.get("id").is_some()) {
        return;
    }
    let labels: Vec<String> = choices
        .iter()
        .map(|choice| text(choice, "label").unwrap_or_default())
        .collect();
    let made = ChoiceId::of_labels(labels.iter().map(String::as_str));
    let mut ids: Vec<(String, String)> = Vec::new();
    for ((choice, label), made) in choices.iter_mut().zip(labels).zip(made) {
        let id = id_of(&trigger, &label).unwrap_or(made.as_str());
        choice["id"] = json!(id);
        ids.push((label, id.to_owned()));
    }
    let id = |label: &str| {
        ids.iter()
            .find(|(known, _)| known == label)
            .map(|(_, id)| id.clone())
    };
    if let Some(default) = text(stored, "default")
        && let Some(fields) = stored.as_object_mut()
    {
        fields.remove("default");
        fields.extend(id(&default).map(|id| ("default".to_owned(), json!(id))));
    }
    if let Some(answer) = stored.get_mut("answer")
        && let Some(said) = text(answer, "text")
    {
        if let Some(id) = id(&said) {
            answer["choice"] = json!(id);
        } else if let Some((id, words)) = with_words(&trigger, &said) {
            answer["choice"] = json!(id);
            answer["text"] = json!(words);
        }
    }
}

/// Gives the data of an answer its choice, if it is one of the labels of its trigger.
pub(crate) fn answered(data: &mut Value) {
    let trigger = text(data, "trigger").unwrap_or_default();
    let answer = text(data, "answer").unwrap_or_default();
    if let Some(id) = id_of(&trigger, &answer) {
        data["choice"] = json!(id);
    } else if let Some((id, words)) = with_words(&trigger, &answer) {
        data["choice"] = json!(id);
        data["answer"] = json!(words);
    }
}

/// A question whether to build told its revision and hash in its context alone: `Revision 2, hash 9f…, expected …`.
fn bind_to_revision(stored: &mut Value, trigger: &str) {
    if trigger != "spec_complete" || stored.get("content").is_some() {
        return;
    }
    let context = text(stored, "context").unwrap_or_default();
    let told = context.lines().find_map(|line| {
        let (revision, rest) = line.strip_prefix("Revision ")?.split_once(", hash ")?;
        let (hash, _) = rest.split_once(',')?;
        let revision: u32 = revision.parse().ok()?;
        Some((revision, ContentHash::parse(hash).ok()?))
    });
    if let Some((revision, hash)) = told {
        stored["content"] = json!({ "kind": "revision", "revision": revision, "hash": hash });
    }
}

fn text(value: &Value, field: &str) -> Option<String> {
    value.get(field).and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use crate::payload::Payload;
    use crate::question::{Content, Question};

    use super::*;

    /// A row as the version before wrote it.
    fn row(trigger: &str, labels: &[&str]) -> Value {
        let choices: Vec<Value> = labels
            .iter()
            .map(|label| json!({ "label": label, "recommended": false }))
            .collect();
        json!({
            "id": "01970000-0000-7000-8000-000000000001", "kind": "blocking", "trigger": trigger, "agent": "build",
            "text": "What now?", "context": "", "choices": choices, "free_text": true, "consequential": false,
            "about": { "kind": "nothing" }, "state": "pending",
            "correlation_id": "01970000-0000-7000-8000-000000000002", "asked_at": "2026-11-22T12:00:00Z",
        })
    }

    fn ids(question: &Question) -> Vec<&str> {
        question
            .choices
            .iter()
            .map(|choice| choice.id.as_str())
            .collect()
    }

    #[test]
    fn an_open_question_of_the_version_before_has_the_ids_of_its_labels() {
        let stored = row(
            "task_failed_repeatedly",
            &[
                "Try this...",
                "Skip this task",
                "Rethink the approach with me",
            ],
        );
        let question: Question = serde_json::from_value(stored).unwrap();
        assert_eq!(ids(&question), ["guide", "skip", "rethink"]);
        // What is written back has its ids and is read as it stands.
        let again: Question =
            serde_json::from_value(serde_json::to_value(&question).unwrap()).unwrap();
        assert_eq!(again, question);
    }

    #[test]
    fn a_question_that_a_model_wrote_gets_ids_of_its_own_words() {
        let mut stored = row("multiple_architectures", &["Plain text", "Database file"]);
        stored["default"] = json!("Plain text");
        stored["state"] = json!("answered");
        stored["answer"] = json!({
            "text": "Database file", "by": "ada", "channel": "cli", "at": "2026-11-22T12:00:00Z",
        });
        let question: Question = serde_json::from_value(stored).unwrap();
        assert_eq!(ids(&question), ["plain-text", "database-file"]);
        assert_eq!(question.default.unwrap().as_str(), "plain-text");
        assert_eq!(
            question.answer.unwrap().choice.unwrap().as_str(),
            "database-file"
        );
    }

    #[test]
    fn labels_are_only_read_where_there_are_no_ids() {
        let mut stored = row("build_finished", &["Leave it", "Merge it"]);
        stored["choices"][0]["id"] = json!("merge");
        stored["choices"][1]["id"] = json!("leave");
        let question: Question = serde_json::from_value(stored).unwrap();
        assert_eq!(ids(&question), ["merge", "leave"]);
    }

    #[test]
    fn the_hash_that_a_question_showed_becomes_a_field() {
        let hash = ContentHash::of(b"plan");
        let mut stored = row("spec_complete", &["Yes, start building!"]);
        stored["context"] = json!(format!(
            "Yes approves it.\nRevision 2, hash {hash}, expected cost 1 to 2 tokens."
        ));
        let question: Question = serde_json::from_value(stored).unwrap();
        assert_eq!(
            question.content,
            Some(Content::Revision { revision: 2, hash })
        );
    }

    #[test]
    fn an_answer_of_the_first_version_means_what_it_meant() {
        let data = |answer: &str| {
            json!({
                "question_id": "01970000-0000-7000-8000-000000000001", "trigger": "build_finished", "answer": answer,
                "answered_by": "ada", "channel": "cli", "about": { "kind": "nothing" },
            })
        };
        let choice = |version: u32, answer: &str| match Payload::decode(
            "question.answered",
            version,
            &data(answer),
        ) {
            Ok(Payload::QuestionAnswered(answered)) => answered.choice.map(String::from),
            other => panic!("{other:?}"),
        };
        assert_eq!(choice(1, "Merge it").as_deref(), Some("merge"));
        assert_eq!(choice(1, "merge it").as_deref(), Some("merge"));
        assert_eq!(choice(1, "something else"), None);
        // Since the second version an answer names its choice, and a label means nothing.
        assert_eq!(choice(2, "Merge it"), None);
    }

    #[test]
    fn words_behind_a_label_are_those_of_its_choice() {
        let answers = [
            ("Try this...: use TEXT", Some("guide"), "use TEXT"),
            ("Try this... use TEXT", Some("guide"), "use TEXT"),
            ("Try this...", Some("guide"), "Try this..."),
            // Words alone may say anything.
            ("use TEXT", None, "use TEXT"),
        ];
        for (answer, choice, words) in answers {
            let data = json!({
                "question_id": "01970000-0000-7000-8000-000000000001", "trigger": "task_failed_repeatedly", "answer": answer,
                "answered_by": "ada", "channel": "cli", "about": { "kind": "nothing" },
            });
            let Ok(Payload::QuestionAnswered(told)) =
                Payload::decode("question.answered", 1, &data)
            else {
                panic!("{answer}");
            };
            let mut stored = row("task_failed_repeatedly", &["Try this...", "Skip this task"]);
            stored["state"] = json!("answered");
            stored["answer"] = json!({
                "text": answer, "by": "ada", "channel": "cli", "at": "2026-11-22T12:00:00Z",
            });
            let question: Question = serde_json::from_value(stored).unwrap();
            let kept = question.answer.unwrap();
            for (chosen, said) in [(told.choice, told.answer), (kept.choice, kept.text)] {
                let chosen = chosen.map(String::from);
                assert_eq!(
                    (chosen.as_deref(), said.as_str()),
                    (choice, words),
                    "{answer}"
                );
            }
        }
    }

    #[test]
    fn every_id_is_one() {
        for (trigger, labels) in LABELS {
            for (label, id) in labels {
                assert!(ChoiceId::parse(id).is_ok(), "{trigger}: {label}: {id}");
            }
        }
        let (trigger, label, id) = WITH_WORDS;
        assert_eq!(id_of(trigger, label), Some(id));
    }
}
