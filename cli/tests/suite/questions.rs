//! Questions from the terminal: order, answers, and what "all with defaults" leaves alone (V22, V21).

use std::process::Command as Process;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_schemas::question::{
    About, Choice, ChoiceWords, Content, FileChange, Question, QuestionKind, QuestionState,
};
use ropewalk_schemas::{BuildId, ChoiceId, CommitId, ComponentName, CorrelationId, QuestionId};
use serde_json::Value;
use uuid::Uuid;

use crate::world::World;

/// Returns an open question with the choices `go` and `wait`; the higher its number, the later it was asked.
pub(crate) fn question(
    number: u8,
    kind: QuestionKind,
    default: bool,
    consequential: bool,
) -> Question {
    let asked_at = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_000 + i64::from(number));
    let choice = |id: &str, label: &str| Choice::new(ChoiceId::parse(id).unwrap(), label);
    Question {
        id: QuestionId(Uuid::from_u128(
            0x0197_0000_0000_7000_8000_0000_0000_0000 + u128::from(number),
        )),
        kind,
        trigger: format!("trigger-{number}"),
        agent: ComponentName::parse("specification").unwrap(),
        text: format!("question {number}?"),
        context: String::new(),
        choices: vec![choice("go", "Yes, go on"), choice("wait", "No, wait")],
        free_text: false,
        default: default.then(|| ChoiceId::parse("go").unwrap()),
        consequential,
        content: None,
        about: About::Nothing,
        topic: None,
        idea: None,
        state: QuestionState::Pending,
        answer: None,
        late: Vec::new(),
        closed_because: None,
        reused_from: None,
        correlation_id: CorrelationId(Uuid::nil()),
        asked_at,
        due_at: None,
        reminded_at: None,
    }
}

/// Puts one question of every kind into the store, the blocking one last.
fn asked(world: &World) -> Vec<Question> {
    let questions = vec![
        question(1, QuestionKind::Clarifying, true, false),
        question(2, QuestionKind::Confirming, true, false),
        question(3, QuestionKind::Confirming, true, true),
        question(4, QuestionKind::Educational, false, false),
        question(5, QuestionKind::Preference, false, false),
        question(6, QuestionKind::Celebratory, false, false),
        question(7, QuestionKind::Blocking, true, false),
    ];
    world.run("question list");
    world.commit(|changes| {
        for question in &questions {
            changes.insert(question);
        }
    });
    questions
}

fn states(world: &World) -> Vec<(String, String)> {
    let listed = world.json("question list --all");
    let mut states: Vec<(String, String)> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|question| {
            let field = |name: &str| question[name].as_str().unwrap().to_owned();
            (field("trigger"), field("state"))
        })
        .collect();
    states.sort();
    states
}

#[test]
fn an_answer_that_is_missing_is_asked_for_with_all_that_would_be_one() {
    let world = World::scripted();
    let questions = asked(&world);
    let said = world.refused(&format!("question answer {}", questions[0].id), 3);
    let expected = "an answer is missing; add `go` (Yes, go on) or `wait` (No, wait)";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn all_with_defaults_answers_the_safe_ones_and_no_other() {
    let world = World::scripted();
    asked(&world);
    let answered = world.json("question answer --all-defaults");
    assert_eq!(answered.as_array().unwrap().len(), 2, "{answered}");
    let expected = [
        "answered", "answered", "pending", "pending", "pending", "pending", "pending",
    ];
    let found: Vec<String> = states(&world).into_iter().map(|(_, state)| state).collect();
    assert_eq!(found, expected);
    let events = world.json("event list --type question.answered");
    let events = events.as_array().unwrap();
    assert_eq!(events.len(), 2);
    for event in events {
        assert_eq!(event["data"]["answered_by"], "ada");
        assert_eq!(event["data"]["channel"], "cli");
    }
    assert_eq!(
        world.json("question answer --all-defaults"),
        Value::Array(Vec::new())
    );
}

#[test]
fn questions_come_by_urgency_then_by_impact_and_older_before_newer() {
    let world = World::scripted();
    asked(&world);
    let listed = world.json("question list");
    let order: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|question| question["trigger"].as_str().unwrap())
        .collect();
    // The third one would spend, so more follows from it than from the second.
    let numbers = [7, 1, 3, 2, 4, 5, 6].map(|number| format!("trigger-{number}"));
    assert_eq!(order, numbers);
}

#[test]
fn an_answer_is_taken_once_and_names_who_was_first() {
    let world = World::scripted();
    let questions = asked(&world);
    let id = questions[6].id;
    let wrong = world.refused(&format!("question answer {id} perhaps"), 1);
    let choices = "`go` (Yes, go on) or `wait` (No, wait)";
    assert!(
        wrong.contains("decides nothing") && wrong.contains(choices),
        "{wrong}"
    );
    let missing = world.refused(&format!("question answer {id}"), 3);
    assert!(missing.contains(choices), "{missing}");
    let shown = world.run(&format!("question show {id}"));
    assert!(shown.contains("  2. wait: No, wait"), "{shown}");
    // The second choice by its number, the question by the end of its id.
    let end = id.to_string().chars().rev().take(8).collect::<Vec<_>>();
    let end: String = end.into_iter().rev().collect();
    let answered = world.json(&format!("question answer {end} 2"));
    assert_eq!(
        (&answered["choice"], &answered["answer"]),
        (&"wait".into(), &"No, wait".into())
    );
    let second = world.refused(&format!("question answer {id} go"), 1);
    assert!(
        second.contains("already answered by ada over cli"),
        "{second}"
    );
    // What came too late is kept beside the answer.
    let kept = world.json(&format!("question show {id}"));
    assert_eq!(kept["late"][0]["choice"], "go");
    assert_eq!(kept["choices"][0]["id"], "go");
    let shown = world.run(&format!("question show {id}"));
    assert!(
        shown.contains("answered: No, wait") && shown.contains("too late: Yes, go on"),
        "{shown}"
    );
}

#[test]
fn an_answer_that_says_why_is_shown_with_what_was_chosen() {
    let world = World::scripted();
    world.run("question list");
    let mut asked = question(1, QuestionKind::Blocking, false, true);
    asked.choices.push(Choice {
        words: ChoiceWords::Optional,
        ..Choice::new(ChoiceId::parse("skip").unwrap(), "Skip it")
    });
    world.commit(|changes| {
        changes.insert(&asked);
    });
    world.run(&format!(
        "question answer {} skip: nobody wants it",
        asked.id
    ));
    for verb in [
        format!("question show {}", asked.id),
        "question list --all".to_owned(),
    ] {
        let told = world.run(&verb);
        let expected = "answered: Skip it: nobody wants it";
        assert!(told.contains(expected), "{verb}: {told}");
    }
}

#[test]
fn a_list_says_what_is_asked_and_what_would_be_an_answer() {
    let world = World::scripted();
    world.run("question list");
    let mut asked = question(1, QuestionKind::Blocking, false, true);
    asked.text = format!("**Which** way?\nThe {} goes on.", "river ".repeat(30));
    asked.choices.push(Choice {
        words: ChoiceWords::Required,
        ..Choice::new(ChoiceId::parse("change").unwrap(), "Another way")
    });
    asked.choices.push(Choice {
        words: ChoiceWords::Optional,
        ..Choice::new(ChoiceId::parse("skip").unwrap(), "Skip it")
    });
    let mut open = question(2, QuestionKind::Preference, false, false);
    open.free_text = true;
    world.commit(|changes| {
        changes.insert(&asked);
        changes.insert(&open);
    });
    let listed = world.run("question list");
    for told in [
        "Which way? The river river",
        "river…  go | wait | change WORDS | skip[: WORDS]  ",
        "question 2?",
        "go | wait | WORDS  ",
    ] {
        assert!(listed.contains(told), "{told}: {listed}");
    }
}

#[test]
fn who_answers_hears_what_follows_and_where_it_is_told() {
    let world = World::scripted();
    world.run("question list");
    let id = BuildId(Uuid::from_u128(0x0197_0000_0000_7000_8000_0000_1234_5678));
    let choice = |id: &str| Choice::new(ChoiceId::parse(id).unwrap(), id);
    let landing = |number| Question {
        trigger: "build_finished".to_owned(),
        about: About::Build { build: id },
        choices: vec![choice("merge"), choice("leave")],
        ..question(number, QuestionKind::Confirming, false, true)
    };
    let asked = [
        landing(1),
        landing(2),
        question(3, QuestionKind::Preference, false, false),
    ];
    world.commit(|changes| {
        for question in &asked {
            changes.insert(question);
        }
    });
    let answered = |number: usize, choice: &str| {
        let line = format!("question answer {} {choice}", asked[number].id);
        world.json(&line)["next"].clone()
    };
    let merged = answered(0, "merge").to_string();
    assert!(merged.contains("merges the branch"), "{merged}");
    assert!(
        merged.contains("`ropewalk build show 12345678`"),
        "{merged}"
    );
    let left = answered(1, "leave").to_string();
    assert!(!left.contains("merge"), "{left}");
    assert!(left.contains("`ropewalk build show 12345678`"), "{left}");
    assert_eq!(answered(2, "go"), Value::Null);
}

#[test]
fn the_commit_that_a_yes_holds_for_is_seen_by_the_command_that_is_told() {
    let world = World::scripted();
    world.run("question list");
    // As builds keep work: in a repository of the state, of which the user's knows nothing.
    let kept = world.state().join("repository.git");
    let kept = kept.to_str().unwrap();
    world.git(&["init", "--quiet", "--bare", kept]);
    let nothing = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
    let commit = world.git(&["--git-dir", kept, "commit-tree", "-m", "kept work", nothing]);
    let mut asked = question(1, QuestionKind::Blocking, false, true);
    asked.content = Some(Content::Files {
        candidate: CommitId::parse(&commit).unwrap(),
        changes: vec![FileChange {
            path: "tests/check.sh".to_owned(),
            before: None,
            after: None,
        }],
    });
    world.commit(|changes| {
        changes.insert(&asked);
    });
    let shown = world.run(&format!("question show {}", asked.id));
    let (_, command) = shown.split_once("`git ").unwrap();
    let (command, _) = command.split_once('`').unwrap();
    // As whoever copies it from a terminal.
    let mut shell = Process::new("sh");
    let shell = shell.args(["-c", &format!("git {command}")]);
    let shell = shell.current_dir(world.repository());
    let seen = shell.output().unwrap();
    let seen = String::from_utf8_lossy(&seen.stdout);
    assert!(seen.contains("kept work"), "{command}: {seen}");
}

#[test]
fn what_people_read_of_a_kind_is_a_plain_word() {
    let world = World::scripted();
    let questions = asked(&world);
    let shown = world.run(&format!("question show {}", questions[5].id));
    let listed = world.run("question list");
    for said in [&shown, &listed] {
        assert!(
            said.contains("milestone") && !said.contains("celebratory"),
            "{said}"
        );
    }
}

#[test]
fn a_beginning_that_fits_several_ids_is_refused() {
    let world = World::scripted();
    let questions = asked(&world);
    let said = world.refused("question show 019700", 1);
    assert!(said.contains("fits 7 of them: "), "{said}");
    // Five are enough to see how they differ.
    let named = questions.iter().map(|question| question.id.to_string());
    let named = named.filter(|id| said.contains(id.as_str())).count();
    assert_eq!(named, 5, "{said}");
    for told in ["2 more", "ropewalk question list"] {
        assert!(said.contains(told), "{said}");
    }
}
