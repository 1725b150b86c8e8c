//! A conversation ends when the person says so, and a text may be the whole of it. A process ends whatever waits.

use ropewalk_desk::ideas::{self, ChatError, Opening};
use ropewalk_schemas::Slug;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::agent::AgentState;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::idea::{Idea, IdeaKind, IdeaState, Phase};
use ropewalk_schemas::question::Question;
use ropewalk_store::{ChangeSet, Query};
use serde_json::json;

use super::specification::{rule, small_plan};
use super::world::{IdeaWorld, user};

const OPENING: &str =
    "I want the table to be printed with borders that I can choose, one style for each table.";

async fn idea(world: &IdeaWorld, slug: &str) -> Idea {
    let found = world.store().get::<Idea>(slug).await.unwrap();
    found.unwrap().record
}

/// Says that this is all of the idea that was begun, and lets what follows come.
async fn end(world: &IdeaWorld) -> Slug {
    let slug = Slug::parse("borders").unwrap();
    ideas::finish(&world.person(), &slug, &user("ann"))
        .await
        .unwrap();
    assert_eq!(world.settle().await, []);
    slug
}

#[tokio::test]
async fn who_says_that_it_is_all_gets_the_brief_whatever_the_phase() {
    let script = "- {agent: ideation, task: message-1, contains: ['Phase: Exploring', 'ropewalk idea done borders'], reply: {text: Which styles?, \
        tools: [{name: reply, input: {kind: feature, artifacts: [{kind: problem, summary: plain tables, content: Tables are plain., confidence: 0.8}]}}]}}\n\
        - {agent: ideation, task: message-2, contains: ['The User Is Done', 'That is all.'], reply: {text: I understood., \
        tools: [{name: reply, input: {artifacts: [{kind: brief, summary: borders, content: 'Borders by style.', confidence: 0.9}]}}]}}\n";
    let world = IdeaWorld::new(script).await;
    let session = world.begin("borders", OPENING).await.session;
    assert_eq!(idea(&world, "borders").await.kind, Some(IdeaKind::Feature));
    let slug = end(&world).await;
    assert_eq!(world.session(session).await.phase, Phase::Complete);
    assert_eq!(idea(&world, "borders").await.state, IdeaState::Captured);
    let brief = world.folder("borders").read("planning/brief.md").unwrap();
    assert!(brief.unwrap().contains("Borders by style."));
    assert!(world.types().await.contains(&"ideation.completed"));
    let again = ideas::finish(&world.person(), &slug, &user("ann")).await;
    assert!(
        matches!(again, Err(ChatError::Complete { .. })),
        "{again:?}"
    );
    let next = Words::of(&again.unwrap_err()).next.unwrap();
    let wanted = "go on with `ropewalk spec generate borders`";
    assert!(next.starts_with(wanted), "{next}");
    let landed: Build = serde_json::from_value(json!({
        "id": world.services.ids.next(), "spec": world.services.ids.next(), "revision": 1,
        "hash": "0".repeat(64), "idea": slug, "user": "ann", "state": "succeeded",
        "pause_requested": false, "branch": "build/borders", "target": "main", "priority": 5,
        "working_ms": 0, "merged": "1".repeat(40), "correlation_id": world.services.ids.next(),
        "created_at": world.clock.now(),
    }))
    .unwrap();
    let mut changes = ChangeSet::new();
    changes.insert(&landed);
    world.store().commit(changes).await.unwrap();
    let again = ideas::finish(&world.person(), &slug, &user("ann")).await;
    let next = Words::of(&again.unwrap_err()).next.unwrap();
    let wanted = format!(
        "for a change say `ropewalk spec revise {} WORDS`",
        landed.spec
    );
    assert!(next.starts_with(&wanted), "{next}");
}

#[tokio::test]
async fn the_brief_of_something_small_ends_it_unless_a_question_comes_along() {
    let reply = |question: &str| {
        format!(
            "reply: {{text: That is it., tools: [{{name: reply, input: {{kind: feature, confidence: 0.9, {question}artifacts: \
             [{{kind: brief, summary: borders, content: 'Borders by style.', confidence: 0.9}}]}}}}]}}}}\n"
        )
    };
    let asked = reply("question: {type: blocking, text: 'Which styles?'}, ");
    for (told, phase, open) in [
        (reply(""), Phase::Complete, 0),
        (asked, Phase::Exploring, 1),
    ] {
        let script = format!("- {{agent: ideation, task: message-1, {told}");
        let world = IdeaWorld::new(&script).await;
        let session = world.begin("borders", OPENING).await.session;
        assert_eq!(world.session(session).await.phase, phase);
        let questions = world.store().list::<Question>(Query::new()).await.unwrap();
        assert_eq!(questions.len(), open);
    }
}

#[tokio::test]
async fn what_was_asked_and_left_open_is_told_when_a_conversation_ends() {
    let script = "- {agent: ideation, task: message-1, reply: {text: One thing first., \
        tools: [{name: reply, input: {kind: feature, artifacts: [{kind: problem, summary: plain tables, content: Tables are plain., confidence: 0.8}], \
        question: {type: blocking, text: 'Round or square?', options: [{label: Round}, {label: Square}]}}}]}}\n\
        - {agent: ideation, task: message-2, contains: ['nobody answered', '- Round or square?'], reply: {text: Left open is the shape., \
        tools: [{name: reply, input: {artifacts: [{kind: brief, summary: borders, content: 'Borders, square by assumption.', confidence: 0.9}]}}]}}\n";
    let world = IdeaWorld::new(script).await;
    let session = world.begin("borders", OPENING).await.session;
    end(&world).await;
    assert_eq!(world.session(session).await.phase, Phase::Complete);
    let brief = world.folder("borders").read("planning/brief.md").unwrap();
    assert!(brief.unwrap().contains("square by assumption"));
}

#[tokio::test]
async fn who_ends_right_after_the_brief_is_answered_without_a_model() {
    let script = "- {agent: ideation, task: message-1, reply: {text: So it is., \
        tools: [{name: reply, input: {kind: feature, artifacts: [{kind: brief, summary: borders, content: 'Borders by style.', confidence: 0.9}]}}]}}\n";
    let world = IdeaWorld::new(script).await;
    let session = world.begin("borders", OPENING).await.session;
    end(&world).await;
    assert_eq!(world.calls(), 1);
    assert_eq!(world.session(session).await.phase, Phase::Complete);
    assert_eq!(idea(&world, "borders").await.state, IdeaState::Captured);
    let brief = world.folder("borders").read("planning/brief.md").unwrap();
    assert!(brief.unwrap().contains("Borders by style."));
    assert!(world.types().await.contains(&"ideation.completed"));
}

#[tokio::test]
async fn a_brief_that_was_recorded_earlier_alone_is_written_anew() {
    let artifact = "artifacts: [{kind: brief, summary: borders, content: 'Borders by style.', confidence: 0.9}]";
    let script = format!(
        "- {{agent: ideation, task: message-1, reply: {{text: So it is., tools: [{{name: reply, input: {{kind: feature, {artifact}}}}}]}}}}\n\
         - {{agent: ideation, task: message-2, reply: {{text: And thin ones., tools: [{{name: reply, input: {{}}}}]}}}}\n\
         - {{agent: ideation, task: message-3, reply: {{text: There it is., tools: [{{name: reply, input: {{{artifact}}}}}]}}}}\n"
    );
    let world = IdeaWorld::new(&script).await;
    let session = world.begin("borders", OPENING).await.session;
    world.say(session, "Thin ones too.").await;
    end(&world).await;
    assert_eq!(world.calls(), 3, "something was said since");
}

#[tokio::test]
async fn a_text_that_is_the_whole_idea_is_its_brief_and_nobody_is_asked() {
    let world = IdeaWorld::new(&rule("idea: borders", &small_plan("Borders"))).await;
    let opening = Opening {
        user: user("ann"),
        title: None,
        text: "# Borders\n\nTables get borders.\n".to_owned(),
        slug: None,
        kind: None,
        whole: true,
    };
    let started = ideas::start(&world.person(), opening).await.unwrap();
    assert_eq!(world.settle().await, []);
    assert_eq!(world.calls(), 0);
    assert_eq!(started.idea.as_str(), "borders");
    assert_eq!(world.session(started.session).await.phase, Phase::Complete);
    let folder = world.folder("borders");
    let text = |path: &str| folder.read(path).unwrap().unwrap();
    assert!(text("planning/brief.md").starts_with("# Borders\n\nTables get borders."));
    assert!(text("README.md").contains("planning/brief.md"));
    assert_eq!(world.open_questions().await, []);
    // Its planner is told of no document that only a longer conversation writes.
    let spec = world.specify(&started.idea).await;
    let document = world.revision(spec, 1).await.document;
    assert_eq!(document.missing_inputs, [""; 0]);
}

#[tokio::test]
async fn a_message_that_waits_while_everything_is_stopped_does_not_hold_the_end() {
    let script = "- {agent: ideation, task: message-1, reply: {text: Which styles?, tools: [{name: reply, input: {}}]}}\n";
    let mut world = IdeaWorld::new(script).await;
    world.brake.set(true);
    world.run().await;
    let opening = Opening {
        user: user("ann"),
        title: None,
        text: OPENING.to_owned(),
        slug: Slug::parse("borders").ok(),
        kind: None,
        whole: false,
    };
    let session = ideas::start(&world.person(), opening)
        .await
        .unwrap()
        .session;
    let taken = async || {
        let shown = world.services.registry.snapshot();
        let taken = shown
            .iter()
            .any(|part| part.role.as_str() == "ideation" && part.state == AgentState::Active);
        taken.then_some(())
    };
    world.until("the message to be taken", taken).await;
    world.restart().await;
    assert_eq!(world.calls(), 0, "a model was asked");
    world.brake.set(false);
    let answered = async || {
        let said = world.messages(session).await;
        said.iter()
            .any(|text| text == "Which styles?")
            .then_some(())
    };
    world.until("the answer", answered).await;
    assert_eq!(world.calls(), 1);
    world.restart().await;
}
