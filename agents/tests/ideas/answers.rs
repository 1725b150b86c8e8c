//! What answers about specifications set in motion, and what words alone do not.

use std::time::Duration;

use ropewalk_config::Trigger;
use ropewalk_desk::people::Person;
use ropewalk_desk::specifications;
use ropewalk_orchestrator::Context;
use ropewalk_orchestrator::questions::{self, AskOutcome, Deadlines, QuestionRequest};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::question::{About, Content};
use ropewalk_schemas::specification::SpecState;
use ropewalk_schemas::{BuildId, Payload, Priority, QuestionId, Slug, SpecId, TaskId};
use ropewalk_store::ChangeSet;
use serde_json::json;

use super::specification::{BRIEF, README, rule, small_plan};
use super::world::{IdeaWorld, templates, user};

/// Asks about something of `idea`, as an agent does.
async fn ask(
    world: &IdeaWorld,
    idea: &Slug,
    trigger: Trigger,
    about: About,
    values: &[(&'static str, &str)],
) -> QuestionId {
    let values = values
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()));
    let draft = templates().render(trigger, &values.collect()).unwrap();
    let asking = QuestionRequest::of(draft, about, Some(idea));
    let mut changes = ChangeSet::new();
    let person = world.person();
    let asked = questions::ask(&mut changes, &person, &Deadlines::default(), asking).await;
    let AskOutcome::Open(asked) = asked.unwrap() else {
        panic!("it is asked anew")
    };
    world.store().commit(changes).await.unwrap();
    asked
}

#[tokio::test]
async fn words_to_the_question_whether_to_build_decide_nothing() {
    let world = IdeaWorld::new(&rule("idea: pets", &small_plan("Pets"))).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    let question = world.open_questions().await.remove(0);
    let hash = world.spec(spec).await.hash.unwrap();
    assert_eq!(
        question.content,
        Some(Content::Revision { revision: 1, hash })
    );
    for prose in ["ok, but not yet", "yes", "approve"] {
        let refused = questions::answer(&world.person(), question.id, prose, "ann", "cli").await;
        let told = Words::of(&refused.unwrap_err()).to_string();
        assert!(
            told.contains("decides nothing") && told.contains("`start`"),
            "{told}"
        );
    }
    assert_eq!(world.settle().await, []);
    assert_eq!(world.spec(spec).await.state, SpecState::Generated);
    assert_eq!(world.open_questions().await[0].id, question.id);
}

#[tokio::test]
async fn who_is_asked_whether_to_build_sees_every_line_of_every_check() {
    let mut plan = small_plan("Pets");
    let long = format!("grep -c '{}' src/a.rs", "pets ".repeat(400));
    let lines =
        "# **see** `this`\n\nif true; then\n\tprintf '\u{1b}[8m\u{202e}<!-- x -->'; exit 1\nfi";
    plan["tasks"][0]["validation"]["command"] = long.clone().into();
    plan["tasks"][1]["validation"]["command"] = lines.into();
    let world = IdeaWorld::new(&rule("idea: pets", &plan)).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    assert_eq!(world.spec(spec).await.reason, None);
    let question = world.open_questions().await.remove(0);
    let (_, shown) = question.context.split_once("```sh\n").unwrap();
    // What a terminal or a page would obey is shown.
    let lines = lines
        .replace('\u{1b}', "\u{241b}")
        .replace('\u{202e}', "<U+202E>");
    let expected = format!("# T-001\n{long}\n# T-002\n{lines}\n# T-003\n");
    assert!(shown.starts_with(&expected), "{shown}");
    assert!(shown.ends_with("\n```"), "{shown}");
}

#[tokio::test]
async fn an_answer_that_asks_for_a_change_gets_another_revision() {
    let world = IdeaWorld::new(&rule("idea: pets", &small_plan("Pets"))).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    let first = world.open_questions().await.remove(0);
    let (person, words) = (world.person(), "revise: keep the names of cats too");
    questions::answer(&person, first.id, words, "ann", "cli")
        .await
        .unwrap();
    assert_eq!(world.settle().await, []);
    let record = world.spec(spec).await;
    assert_eq!((record.state, record.revision), (SpecState::Generated, 2));
    assert_eq!(record.feedback, ["keep the names of cats too"]);
    // A yes to the first would approve nothing; the second is asked about anew.
    let late = questions::answer(&person, first.id, "start", "ann", "cli").await;
    assert!(late.is_err());
    assert_ne!(world.open_questions().await[0].id, first.id);
    assert_eq!(world.spec(spec).await.approval, None);
}

#[tokio::test]
async fn an_answer_about_a_plan_that_stands_makes_the_plan_anew() {
    let question = json!({ "type": "clarifying", "text": "Which colour?", "default": "red",
        "options": [{ "id": "red", "label": "Red" }, { "id": "blue", "label": "Blue", "description": "as the sea" }] });
    let mut asking = small_plan("Pets");
    asking["question"] = question;
    let rules = rule("idea: pets, absent: 'The answer: Blue'", &asking)
        + &rule(
            "idea: pets, contains: ['The answer: Blue - as the sea']",
            &small_plan("Pets"),
        );
    for (answer, revision) in [("red", 1), ("blue", 2)] {
        let world = IdeaWorld::new(&rules).await;
        let idea = world.idea("pets", &[README, BRIEF]).await;
        let spec = world.specify(&idea).await;
        let open = world.open_questions().await;
        let colour = open.iter().find(|row| row.text == "Which colour?").unwrap();
        questions::answer(&world.person(), colour.id, answer, "ann", "cli")
            .await
            .unwrap();
        assert_eq!(world.settle().await, []);
        let record = world.spec(spec).await;
        assert_eq!(
            (record.state, record.revision),
            (SpecState::Generated, revision),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn an_answer_beside_a_request_for_a_revision_is_no_second_call() {
    let mut asking = small_plan("Pets");
    asking["question"] = json!({ "type": "clarifying", "text": "Which colour?", "default": "red",
        "options": [{ "id": "red", "label": "Red" }, { "id": "blue", "label": "Blue" }] });
    let slow = rule("task: revision-2", &small_plan("Blue pets"));
    let slow = slow.replace("reply: {", "reply: {delay_ms: 1000, ");
    let world = IdeaWorld::new(&(rule("task: revision-1", &asking) + &slow)).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    let open = world.open_questions().await;
    let colour = open.iter().find(|row| row.text == "Which colour?").unwrap();
    let (person, ann) = (world.person(), user("ann"));
    questions::answer(&person, colour.id, "blue", "ann", "cli")
        .await
        .unwrap();
    specifications::revise(&person, spec, &ann, "Fewer words")
        .await
        .unwrap();
    world.run().await;
    let called = async || (world.calls() == 2).then_some(());
    world.until("the call for revision 2", called).await;
    // Whoever would ask beside it has the time to.
    tokio::time::sleep(Duration::from_millis(300)).await;
    world.clock.advance(Duration::from_secs(2));
    let settled = async || {
        let open = world.store().open_deliveries(None, 0, 1).await.unwrap();
        open.is_empty().then_some(())
    };
    world.until("the end of all deliveries", settled).await;
    let record = world.spec(spec).await;
    assert_eq!((record.state, record.revision), (SpecState::Generated, 2));
    assert_eq!(world.calls(), 2);
    assert_eq!(world.revision(spec, 2).await.answers, [colour.id]);
}

const FAILURES: [(&str, &str); 5] = [
    ("count", "2"),
    ("critical_count", "1"),
    ("critical_list", "- unit: broken"),
    ("warning_count", "1"),
    ("warning_list", "- style: ugly"),
];
const HOLE: [(&str, &str); 6] = [
    ("vuln_type", "injection"),
    ("severity", "high"),
    ("file", "src/a.rs"),
    ("line", "7"),
    ("description", "- unit: broken"),
    ("risk_description", "- style: ugly"),
];
const BLIND: [(&str, &str); 2] = [("check", "tests"), ("finding", "- unit: broken")];
const COVERAGE: [(&str, &str); 3] = [
    ("coverage", "40"),
    ("threshold", "80"),
    ("uncovered_list", "- unit: broken"),
];

#[tokio::test]
async fn what_the_check_of_a_whole_build_found_is_mended_by_another_revision_where_people_want_it()
{
    let (all, count, tests) = (
        "Mend everything that is listed here.",
        "Make the tests in the files that are named count again.",
        "Add tests for the areas listed here.",
    );
    for (trigger, choice, wanted) in [
        (Trigger::MultipleFailures, "fix-all", Some(all)),
        (Trigger::MultipleFailures, "leave", None),
        (
            Trigger::SecurityVulnerability,
            "fix",
            Some("Close this hole."),
        ),
        (Trigger::SecurityVulnerability, "manual", None),
        (Trigger::SecurityVulnerability, "accept", None),
        (Trigger::BlindCheck, "fix", Some(count)),
        (Trigger::BlindCheck, "accept", None),
        (Trigger::CoverageBelowThreshold, "add-tests", Some(tests)),
        (Trigger::CoverageBelowThreshold, "accept", None),
    ] {
        let values: &[(&str, &str)] = match trigger {
            Trigger::MultipleFailures => &FAILURES,
            Trigger::SecurityVulnerability => &HOLE,
            Trigger::BlindCheck => &BLIND,
            _ => &COVERAGE,
        };
        // The second plan is made by a model that is told what to mend, and what was found.
        let told = wanted.unwrap_or("nothing of the kind");
        let again = format!("task: revision-2, contains: ['{told}', '- unit: broken']");
        let script = rule("task: revision-1", &small_plan("Pets"))
            + &rule(&again, &small_plan("Pets, mended"));
        let world = IdeaWorld::new(&script).await;
        let idea = world.idea("pets", &[README, BRIEF]).await;
        let spec = world.specify(&idea).await;
        let (person, id) = built(&world, spec, BuildState::Failed).await;
        let about = About::Build { build: id };
        let asked = ask(&world, &idea, trigger, about, values).await;
        questions::answer(&person, asked, choice, "ann", "cli")
            .await
            .unwrap();
        assert_eq!(world.settle().await, [], "{choice}");
        let record = world.spec(spec).await;
        // A build that stays as it is stands on the plan that was approved.
        let expected = match wanted {
            Some(_) => (SpecState::Generated, 2),
            None => (SpecState::Approved, 1),
        };
        assert_eq!(
            (record.state, record.revision),
            expected,
            "{trigger:?} {choice}"
        );
        if wanted.is_some() {
            let title = world.revision(spec, 2).await.document.title;
            assert_eq!(title, "Pets, mended");
            assert!(record.feedback[0].contains("- unit: broken"), "{record:?}");
        }
    }
}

#[tokio::test]
async fn who_asked_for_a_revision_that_cannot_be_made_now_is_told() {
    for (trigger, choice, values) in [
        (Trigger::MultipleFailures, "fix-all", &FAILURES[..]),
        (Trigger::SecurityVulnerability, "fix", &HOLE),
        (Trigger::CoverageBelowThreshold, "add-tests", &COVERAGE),
    ] {
        let question = json!({ "type": "blocking", "text": "Which colour?", "options": [] });
        let script = rule("task: revision-1", &small_plan("Pets"))
            + &rule("task: revision-2", &json!({ "question": question }));
        let world = IdeaWorld::new(&script).await;
        let idea = world.idea("pets", &[README, BRIEF]).await;
        let spec = world.specify(&idea).await;
        let (person, id) = built(&world, spec, BuildState::Failed).await;
        // Another revision waits for an answer of its own.
        specifications::revise(&person, spec, &user("ann"), "Fewer words")
            .await
            .unwrap();
        assert_eq!(world.settle().await, []);
        let about = About::Build { build: id };
        let asked = ask(&world, &idea, trigger, about, values).await;
        questions::answer(&person, asked, choice, "ann", "cli")
            .await
            .unwrap();
        assert_eq!(world.settle().await, []);
        let events = world.payloads().await;
        let refused = events.iter().find_map(|payload| match payload {
            Payload::SpecRevisionRefused(refused) => Some(refused.clone()),
            _ => None,
        });
        let refused = refused.unwrap();
        assert_eq!(
            (refused.spec_id, refused.question_id, refused.requested_by),
            (spec, asked, user("ann"))
        );
        let told = refused.reason;
        assert!(told.contains("is being written; say it once"), "{told}");
    }
}

#[tokio::test]
async fn rethinking_a_task_is_a_conversation_with_the_planner_that_ends_in_a_revision() {
    let question = json!({ "type": "blocking", "text": "A library or by hand?",
        "options": [{ "id": "library", "label": "A library" }, { "id": "hand", "label": "By hand" }] });
    let rules = rule("task: revision-1", &small_plan("Pets"))
        + &rule(
            "task: revision-2, contains: ['The answer: By hand', 'Think the task `T-002` through']",
            &small_plan("Pets by hand"),
        )
        + &rule(
            "task: revision-2, contains: ['no way to parse', 'Think the task `T-002` through']",
            &json!({ "question": question }),
        );
    let world = IdeaWorld::new(&rules).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    let (person, build) = built(&world, spec, BuildState::Running).await;
    let values = [
        ("attempts", "3"),
        ("task_id", "T-002"),
        ("error_message", "no way to parse"),
        ("attempts_list", "- attempt 1"),
        ("standing", ""),
        ("recommended", ""),
    ];
    let task = TaskId::parse("T-002").unwrap();
    let about = About::Task { build, task };
    let asked = ask(&world, &idea, Trigger::TaskFailedRepeatedly, about, &values).await;
    questions::answer(&person, asked, "rethink", "ann", "cli")
        .await
        .unwrap();
    assert_eq!(world.settle().await, []);
    let record = world.spec(spec).await;
    assert_eq!((record.state, record.revision), (SpecState::Draft, 1));
    let open = world.open_questions().await;
    let way = open
        .iter()
        .find(|row| row.text == "A library or by hand?")
        .unwrap();
    questions::answer(&person, way.id, "hand", "ann", "cli")
        .await
        .unwrap();
    assert_eq!(world.settle().await, []);
    let record = world.spec(spec).await;
    assert_eq!((record.state, record.revision), (SpecState::Generated, 2));
    let approved = record.approval_of_newest();
    assert_eq!(approved, None, "a person approves what came of it");
    let plan = world.revision(spec, 2).await;
    assert_eq!(plan.document.title, "Pets by hand");
}

/// Approves a specification, and lets a build of it run.
pub(crate) async fn built(
    world: &IdeaWorld,
    spec: SpecId,
    state: BuildState,
) -> (Context, BuildId) {
    let hash = world.spec(spec).await.hash.unwrap();
    let (person, ann) = (world.person(), Person::alone(user("ann")));
    specifications::approve(&person, spec, &hash, &ann, Priority::DEFAULT)
        .await
        .unwrap();
    let events = world.payloads().await;
    let approval = events.iter().find_map(|payload| match payload {
        Payload::SpecApproved(approval) => Some(approval.clone()),
        _ => None,
    });
    let now = world.clock.now();
    let id = BuildId(world.services.ids.next());
    let build = Build {
        state,
        completed_at: (state != BuildState::Running).then_some(now),
        ..Build::queued(id, &approval.unwrap(), person.correlation(), now)
    };
    let mut changes = ChangeSet::new();
    changes.insert(&build);
    world.store().commit(changes).await.unwrap();
    (person, id)
}
