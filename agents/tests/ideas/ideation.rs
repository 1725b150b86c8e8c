//! Ideation: phases, artifacts, questions and answers.

use std::collections::BTreeSet;
use std::time::Duration;

use ropewalk_agents::idea_folder::{BRIEF, README};
use ropewalk_desk::ideas::{self, ChatError, Opening};
use ropewalk_orchestrator::questions;
use ropewalk_schemas::Payload;
use ropewalk_schemas::idea::{IdeaState, Message, Phase};
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::question::{ANSWER_BYTES, About, Question, QuestionKind, QuestionState};
use ropewalk_store::{EventFilter, Query};

use super::world::{IdeaWorld, user};

const OPENING: &str =
    "I want to build a habit tracking app for people who lose count of their streaks every month.";

/// Writes a script in which the replies to the messages of `idea` are these JSON objects, in order.
fn script(idea: &str, replies: &[&str]) -> String {
    let rules: Vec<String> = replies
        .iter()
        .enumerate()
        .map(|(index, reply)| {
            let number = index + 1;
            format!(
                "- {{agent: ideation, idea: {idea}, task: message-{number}, reply: {{tools: [{{name: reply, input: {reply}}}]}}}}"
            )
        })
        .collect();
    rules.join("\n")
}

fn artifact(kind: &str, confidence: f64) -> String {
    format!(
        r#"{{"kind": "{kind}", "summary": "about {kind}", "content": "All about {kind}.", "confidence": {confidence}}}"#
    )
}

fn reply(artifacts: &[String], rest: &str) -> String {
    format!(
        r#"{{"text": "Go on.", "artifacts": [{}]{rest}}}"#,
        artifacts.join(", ")
    )
}

/// Spells a phase as prompts do.
fn heading(phase: Phase) -> String {
    let (first, rest) = phase.as_str().split_at(1);
    first.to_uppercase() + rest
}

#[tokio::test]
async fn a_phase_is_left_only_when_its_gate_is_met_and_one_at_a_time() {
    let sure = |kind: &str| artifact(kind, 0.6);
    let validated = |number: u32| {
        format!(r#", "decisions": [{{"kind": "validation", "summary": "fact {number}"}}]"#)
    };
    let replies = [
        reply(
            &[sure("target-user"), sure("problem")],
            r#", "kind": "venture""#,
        ),
        reply(&[sure("differentiator")], ""),
        // Both the gate of exploring and that of narrowing are met: one step.
        reply(&[sure("solution-concept"), sure("mvp-features")], ""),
        reply(&[], ""),
        reply(&[artifact("problem", 0.65)], ""),
        reply(&[], &validated(1)),
        reply(
            &[],
            r#", "decisions": [{"kind": "validation", "summary": "fact 2"}], "risks": [{"summary": "crowded"}]"#,
        ),
        reply(&[], &validated(3)),
        reply(&[], r#", "confidence": 0.75"#),
        reply(&[], r#", "confidence": 0.76"#),
    ];
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let expected = [
        Phase::Exploring,
        Phase::Exploring,
        Phase::Narrowing,
        Phase::Narrowing,
        Phase::Validating,
        Phase::Validating,
        Phase::Validating,
        Phase::Refining,
        Phase::Refining,
        Phase::Complete,
    ];
    // Each reply is only given to a model that is told the phase in which the reply before it has left the session.
    let told = [&expected[..1], &expected[..]].concat();
    let mut rules = String::new();
    for (rule, phase) in script("habits", &replies).lines().zip(told) {
        let told = format!("idea: habits, contains: 'Phase: {}',", heading(phase));
        rules.push_str(&rule.replacen("idea: habits,", &told, 1));
        rules.push('\n');
    }
    let world = IdeaWorld::new(&rules).await;
    let session = world.begin("habits", OPENING).await.session;
    let mut seen = vec![world.session(session).await.phase];
    for number in 2..=replies.len() {
        world.say(session, &format!("message {number}")).await;
        seen.push(world.session(session).await.phase);
    }
    assert_eq!(seen, expected);
    let entered: Vec<Phase> = world
        .session(session)
        .await
        .phases
        .iter()
        .map(|entry| entry.phase)
        .collect();
    assert_eq!(entered, Phase::ALL, "each phase is entered once, in order");
    let changes: Vec<Phase> = world
        .payloads()
        .await
        .into_iter()
        .filter_map(|payload| match payload {
            Payload::PhaseChanged(changed) => Some(changed.to),
            _ => None,
        })
        .collect();
    assert_eq!(changes, Phase::ALL[1..], "each change is told once");
}

#[tokio::test]
async fn the_next_reply_is_told_the_new_phase() {
    let all = ["target-user", "problem", "solution-concept"].map(|kind| artifact(kind, 0.7));
    let first = reply(&all, "");
    let script = format!(
        "{}\n{}",
        script("habits", &[&first]),
        "- {agent: ideation, task: message-2, contains: ['Phase: Exploring', 'Phase: Narrowing'], reply: {text: 'ok', tools: [{name: reply, input: {}}]}}"
    );
    let world = IdeaWorld::new(&script).await;
    let session = world.begin("habits", OPENING).await.session;
    world.say(session, "What now?").await;
    assert_eq!(
        world.messages(session).await,
        [OPENING, "Go on.", "What now?", "ok"]
    );
}

#[tokio::test]
async fn a_complete_idea_has_its_documents_before_anybody_is_told() {
    let all = [
        "target-user",
        "problem",
        "solution-concept",
        "mvp-features",
        "differentiator",
    ];
    let first = reply(
        &all.map(|kind| artifact(kind, 0.7)),
        r#", "confidence": 0.4"#,
    );
    let lines = r#", "decisions": [{"kind": "validation", "summary": "a"}, {"kind": "validation", "summary": "b"}, {"kind": "validation", "summary": "c"}], "risks": [{"summary": "r"}]"#;
    let brief = reply(&[artifact("brief", 0.7)], r#", "confidence": 0.8"#);
    let world = IdeaWorld::new(&script(
        "habits",
        &[&first, &reply(&[], ""), &reply(&[], lines), &brief],
    ))
    .await;
    let started = world.begin("habits", OPENING).await;
    assert_eq!(
        world.idea_record("habits").await.state,
        IdeaState::Candidate
    );
    for text in ["two", "three"] {
        world.say(started.session, text).await;
    }
    ideas::say(&world.person(), started.session, &user("ann"), "four")
        .await
        .unwrap();
    world.crash().await;
    for document in [
        README,
        BRIEF,
        "target-users.md",
        "problem-solution.md",
        "planning/mvp-scope.md",
    ] {
        assert!(
            world.folder("habits").read(document).unwrap().is_some(),
            "{document}"
        );
    }
    assert!(!world.types().await.contains(&"ideation.completed"));
    assert_eq!(world.settle().await, []);
    assert_eq!(world.idea_record("habits").await.state, IdeaState::Captured);
    let payloads = world.payloads().await;
    let Some(Payload::IdeationCompleted(completed)) = payloads.last() else {
        panic!("the last event is {:?}", payloads.last())
    };
    assert_eq!(
        (
            completed.brief_path.as_str(),
            completed.confidence,
            completed.ready_for_spec
        ),
        (BRIEF, 0.8, true)
    );
    let types = world.types().await;
    let once = |wanted: &str| types.iter().filter(|name| **name == wanted).count();
    assert_eq!(
        (
            once("ideation.started"),
            once("candidate.created"),
            once("ideation.completed")
        ),
        (1, 1, 1)
    );
    assert_eq!(once("artifact.saved"), 6);
    let events = world.store().events(&EventFilter::default()).await.unwrap();
    assert!(
        events
            .iter()
            .all(|stored| stored.event.correlationid == started.correlation)
    );
}

#[tokio::test]
async fn a_vague_idea_asks_and_the_next_message_answers() {
    let placeholders = r#"{"text": "x", "artifacts": [{"kind": "target-user", "summary": "User type 1", "content": "- User type 1\n- User type 2", "confidence": 0.9}, {"kind": "problem", "summary": "TBD", "content": "TBD", "confidence": 0.9}]}"#;
    let script = format!(
        "- {{agent: ideation, idea: sun, task: message-2, contains: ['Their phones die'], reply: {{tools: [{{name: reply, input: {placeholders}}}]}}}}\n{}",
        script("habits", &[r#"{"text": "Served meanwhile."}"#])
    );
    let world = IdeaWorld::new(&script).await;
    world.folder("sun").write(README, "# Sun\n\nA solar phone charger for hikers.\n\n## Problem\n\n[Describe the problem]\n\n## Users\n- User type 1\n").unwrap();
    let session = world
        .begin("sun", "a solar phone charger for hikers")
        .await
        .session;

    let open = world.open_questions().await;
    assert_eq!(open.len(), 1);
    let question = &open[0];
    assert_eq!(
        (question.kind, question.trigger.as_str()),
        (QuestionKind::Blocking, "problem_statement_vague")
    );
    assert!(
        question
            .text
            .contains("\"a solar phone charger for hikers\""),
        "{}",
        question.text
    );
    assert!(question.free_text && !question.context.is_empty());
    assert_eq!(
        (question.about.clone(), question.agent.as_str()),
        (About::Session { session }, "ideation")
    );
    assert_eq!(world.session(session).await.waiting_for, Some(question.id));

    // The agent is free: another session is served while this one waits.
    let other = world.begin("habits", OPENING).await.session;
    assert_eq!(world.messages(other).await[1], "Served meanwhile.");

    world
        .say(
            session,
            "Their phones die on the second day, and they carry three power banks.",
        )
        .await;
    let answered = world
        .store()
        .get::<ropewalk_schemas::question::Question>(&question.id.to_string())
        .await;
    let answered = answered.unwrap().unwrap();
    assert_eq!(answered.state, QuestionState::Answered);
    assert_eq!(answered.answer.as_ref().unwrap().channel, "chat");
    let session = world.session(session).await;
    assert_eq!(
        (session.waiting_for, session.phase),
        (None, Phase::Exploring)
    );
    assert!(
        session.signals.artifacts.is_empty(),
        "placeholders are no artifacts"
    );
    let messages = world.store().list::<Message>(Query::new()).await.unwrap();
    let told: Vec<&str> = messages
        .iter()
        .filter(|message| message.session == session.id)
        .filter_map(|message| message.told.as_deref())
        .collect();
    assert!(!told.is_empty(), "{messages:?}");
    let twice = told.iter().any(|told| told.contains("Their phones die"));
    assert!(!twice, "both stand in the conversation: {told:?}");
}

#[tokio::test]
async fn words_of_somebody_who_was_not_asked_answer_nothing() {
    let replies = [
        r#"{"text": "The first words ask without a model."}"#,
        r#"{"text": "Metres it may be."}"#,
        r#"{"text": "That explains it."}"#,
    ];
    let world = IdeaWorld::new(&script("sun", &replies)).await;
    let session = world
        .begin("sun", "a solar phone charger for hikers")
        .await
        .session;
    let question = world.session(session).await.waiting_for.unwrap();
    world.clock.advance(Duration::from_mins(1));
    ideas::say(&world.person(), session, &user("bob"), "And use metres.")
        .await
        .unwrap();
    assert_eq!(world.settle().await, []);
    assert_eq!(world.session(session).await.waiting_for, Some(question));
    assert_eq!(world.open_questions().await.len(), 1);

    world
        .say(session, "Their phones die on the second day.")
        .await;
    assert_eq!(world.session(session).await.waiting_for, None);
    let answered = world.store().get::<Question>(&question.to_string()).await;
    let answer = answered.unwrap().unwrap().answer.clone().unwrap();
    assert_eq!(
        (answer.by.as_str(), answer.text.as_str()),
        ("ann", "Their phones die on the second day.")
    );
}

#[tokio::test]
async fn what_the_readme_answers_is_not_asked() {
    let world = IdeaWorld::new(&script("well", &[r#"{"text": "Tell me more."}"#])).await;
    let readme = "# Well\n\n## Problem\n\nPeople forget the small habits that keep them well, and notice only weeks later.\n";
    world.folder("well").write(README, readme).unwrap();
    let session = world.begin("well", "a wellness tracker").await.session;
    assert!(world.open_questions().await.is_empty());
    assert_eq!(world.messages(session).await[1], "Tell me more.");
}

#[tokio::test]
async fn a_question_of_the_model_may_be_answered_anywhere_and_once() {
    let asking = r#"{"text": "One thing first.", "question": {"type": "blocking", "text": "Phone or desktop?", "options": [{"label": "Phone"}, {"label": "Desktop"}]}}"#;
    let script = format!(
        "{}\n{}",
        script("habits", &[asking]),
        "- {agent: ideation, task: message-2, contains: 'The person answered: Desktop', reply: {text: 'Desktop it is.', tools: [{name: reply, input: {}}]}}"
    );
    let world = IdeaWorld::new(&script).await;
    let session = world.begin("habits", OPENING).await.session;
    let question = world.session(session).await.waiting_for.unwrap();
    questions::answer(&world.person(), question, "2", "ann", "cli")
        .await
        .unwrap();
    assert_eq!(world.settle().await, []);
    assert_eq!(world.session(session).await.waiting_for, None);
    assert_eq!(
        world.messages(session).await,
        [OPENING, "One thing first.", "Desktop", "Desktop it is."]
    );
}

#[tokio::test]
async fn what_is_said_in_a_conversation_chooses_nothing_of_consequence() {
    let asking = r#"{"text": "One thing first.", "question": {"type": "blocking", "text": "Throw the old list away?", "consequential": true, "options": [{"label": "Yes"}, {"label": "No"}]}}"#;
    let goes_on = r#"{"text": "Choose one of the two."}"#;
    let world = IdeaWorld::new(&script("habits", &[asking, goes_on, goes_on, goes_on])).await;
    let session = world.begin("habits", OPENING).await.session;
    let id = world.session(session).await.waiting_for.unwrap();
    for words in ["1", "Yes", "yes"] {
        world.say(session, words).await;
        let asked = world.store().get::<Question>(&id.to_string()).await;
        let asked = asked.unwrap().unwrap().into_inner();
        assert_eq!(
            (asked.state, asked.answer),
            (QuestionState::Pending, None),
            "{words}"
        );
        assert_eq!(world.session(session).await.waiting_for, Some(id));
    }
}

#[tokio::test]
async fn of_words_that_are_longer_than_an_answer_the_beginning_is_one() {
    let asking = r#"{"text": "One thing first.", "question": {"type": "blocking", "text": "What does it look like?"}}"#;
    let world = IdeaWorld::new(&script("habits", &[asking, r#"{"text": "I see."}"#])).await;
    let session = world.begin("habits", OPENING).await.session;
    let id = world.session(session).await.waiting_for.unwrap();
    let long = "streaks ".repeat(5_000);
    world.say(session, &long).await;
    let asked = world.store().get::<Question>(&id.to_string()).await;
    let answer = asked.unwrap().unwrap().into_inner().answer.unwrap();
    assert_eq!(answer.text, long[..ANSWER_BYTES].trim());
    assert_eq!(world.messages(session).await[2], long.trim());
}

#[tokio::test]
async fn a_model_that_never_submits_still_answers_and_is_heard_once() {
    let world = IdeaWorld::new("- {agent: ideation, reply: {text: 'Just words.'}}").await;
    let mut live = world.services.bus.live().subscribe();
    let session = world.begin("habits", OPENING).await.session;
    assert_eq!(world.messages(session).await, [OPENING, "Just words."]);
    world.say(session, "And now?").await;
    let (mut heard, mut tries) = (Vec::new(), BTreeSet::new());
    for _ in 0..2 {
        let event = live.next().await.unwrap();
        tries.extend(event.data["try"].as_str().map(str::to_owned));
        heard.push((
            event.event_type,
            event.data["text"].as_str().map(str::to_owned),
        ));
    }
    let delta = ("ideation.delta".to_owned(), Some("Just words.".to_owned()));
    assert_eq!(heard, [delta.clone(), delta], "one for each message");
    assert_eq!(
        tries.len(),
        2,
        "who listens tells the words of one try from those of another"
    );
    assert_eq!(
        world.types().await,
        ["ideation.message", "ideation.started", "ideation.message"]
    );
}

#[tokio::test]
async fn a_model_that_cannot_be_asked_is_told_and_loses_no_message() {
    let world = IdeaWorld::new("- {agent: nobody, reply: {text: x}}").await;
    let mut live = world.services.bus.live().subscribe();
    let opening = Opening {
        user: user("ann"),
        title: None,
        text: OPENING.to_owned(),
        slug: None,
        kind: None,
        whole: false,
    };
    let started = ideas::start(&world.person(), opening).await.unwrap();
    let failures = world.settle().await;
    assert!(
        failures[0].to_string().contains("no rule of the script"),
        "{failures:?}"
    );
    assert_eq!(live.next().await.unwrap().event_type, "ideation.failed");
    assert_eq!(world.messages(started.session).await, [OPENING]);
}

#[tokio::test]
async fn a_crash_before_the_commit_asks_the_model_once_and_answers_once() {
    let all = ["target-user", "problem", "solution-concept"].map(|kind| artifact(kind, 0.7));
    let mut world = IdeaWorld::new(&script("habits", &[&reply(&all, "")])).await;
    let opening = Opening {
        user: user("ann"),
        title: None,
        text: OPENING.to_owned(),
        slug: Some("habits".parse().unwrap()),
        kind: None,
        whole: false,
    };
    let started = ideas::start(&world.person(), opening).await.unwrap();
    world.crash().await;
    let before = world.folder("habits").read(README).unwrap();
    assert!(before.is_some() && world.messages(started.session).await.len() == 1);
    world.move_in().await;
    assert_eq!(world.settle().await, []);
    assert_eq!(world.messages(started.session).await, [OPENING, "Go on."]);
    assert_eq!(world.folder("habits").read(README).unwrap(), before);
    assert_eq!(
        world
            .store()
            .count::<ModelCall>(Query::new())
            .await
            .unwrap(),
        1
    );
    let saved = world
        .types()
        .await
        .into_iter()
        .filter(|name| *name == "artifact.saved")
        .count();
    assert_eq!(saved, 3);
}

#[tokio::test]
async fn ideas_of_one_name_are_numbered_and_bad_messages_refused() {
    let world = IdeaWorld::new("[]").await;
    let opening = |text: &str, slug: Option<&str>| Opening {
        user: user("ann"),
        title: Some("Habit tracker".to_owned()),
        text: text.to_owned(),
        slug: slug.map(|slug| slug.parse().unwrap()),
        kind: None,
        whole: false,
    };
    let person = world.person();
    let mut names = Vec::new();
    for _ in 0..3 {
        names.push(
            ideas::start(&person, opening(OPENING, None))
                .await
                .unwrap()
                .idea
                .to_string(),
        );
    }
    assert_eq!(
        names,
        ["habit-tracker", "habit-tracker-2", "habit-tracker-3"]
    );
    let taken = ideas::start(&person, opening(OPENING, Some("habit-tracker"))).await;
    assert!(matches!(taken, Err(ChatError::Taken(_))));
    for unseen in [" \n", "\u{202e}\u{200b}"] {
        let refused = ideas::start(&person, opening(unseen, None)).await;
        assert!(matches!(refused, Err(ChatError::Empty)), "{refused:?}");
    }
    let long = "x".repeat(64 * 1024 + 1);
    assert!(matches!(
        ideas::start(&person, opening(&long, None)).await,
        Err(ChatError::TooLong(_))
    ));
}
