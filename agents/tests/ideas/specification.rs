//! Specification: documents, tasks, lessons, approval, questions.

use std::collections::BTreeSet;

use chrono::DateTime;
use ropewalk_desk::people::Person;
use ropewalk_desk::specifications::{self, ApproveError, RequestError};
use ropewalk_orchestrator::questions;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::document::{spec_md, tasks_md};
use ropewalk_schemas::knowledge::{Injection, KnowledgeItem, KnowledgeKind, KnowledgeState};
use ropewalk_schemas::lease::Ownership;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::specification::{Complexity, SpecState};
use ropewalk_schemas::task::{Action, TaskState};
use ropewalk_schemas::{
    BuildId, ComponentName, ContentHash, KnowledgeId, Payload, Priority, RepoPath, SpecId, UserSlug,
};
use ropewalk_store::{ChangeSet, Query};
use ropewalk_world::questions::means_nothing;
use serde_json::{Value, json};

use super::world::{IdeaWorld, user};

pub(crate) const README: (&str, &str) = (
    "README.md",
    "# Pets\n\nOwners find sitters for their pets nearby.\n",
);
pub(crate) const BRIEF: (&str, &str) = (
    "planning/brief.md",
    "# Brief\n\nA marketplace where owners book sitters.\n",
);

fn requirement(id: &str) -> Value {
    json!({ "id": id, "text": format!("{id} holds"), "priority": "must", "acceptance": "it does", "source": "planning/brief.md" })
}

fn task(id: &str, phase: &str, action: &str, file: &str, depends_on: &[&str]) -> Value {
    json!({
        "id": id, "phase": phase, "action": action, "file": file, "depends_on": depends_on,
        "requirements": [{ "id": "FR-1", "text": "it holds" }],
        "validation": { "command": format!("grep -qs 'made by {id}' {file}"), "expected": "exit 0" },
    })
}

pub(crate) fn plan(title: &str, tasks: &[Value]) -> Value {
    json!({
        "document": {
            "title": title, "objective": "Owners book sitters", "success_criteria": ["a booking is kept"],
            "requirements": [requirement("FR-1")],
        },
        "tasks": tasks,
    })
}

pub(crate) fn small_plan(title: &str) -> Value {
    let files = ["src/a.rs", "src/b.rs", "src/c.rs"];
    let tasks: Vec<Value> = files
        .iter()
        .enumerate()
        .map(|(index, file)| task(&format!("T-00{}", index + 1), "types", "CREATE", file, &[]))
        .collect();
    plan(title, &tasks)
}

/// Writes a rule that submits `value` when the rest of the rule matches.
pub(crate) fn rule(condition: &str, value: &Value) -> String {
    format!(
        "- {{agent: specification, {condition}, reply: {{tools: [{{name: specification, input: {value}}}]}}}}\n"
    )
}

fn lesson(number: u128, glob: &str, confidence: f64) -> KnowledgeItem {
    let at = chrono::DateTime::UNIX_EPOCH;
    KnowledgeItem {
        id: KnowledgeId(uuid::Uuid::from_u128(number)),
        kind: KnowledgeKind::Gotcha,
        content: format!("lesson {number} at {confidence}"),
        globs: vec![glob.to_owned()],
        action: Some(Action::Create),
        topics: Vec::new(),
        confidence,
        executions: BTreeSet::new(),
        ideas: BTreeSet::new(),
        evidence: Vec::new(),
        discovered_by: ComponentName::parse("build").unwrap(),
        state: KnowledgeState::Confirmed,
        superseded_by: None,
        injections: 0,
        created_at: at,
        updated_at: at,
    }
}

fn alone(user: &UserSlug) -> Person {
    Person::alone(user.clone())
}

fn hash(text: &str) -> ContentHash {
    ContentHash::of(text.as_bytes())
}

#[tokio::test]
async fn without_readme_and_brief_there_is_no_specification_and_it_says_so() {
    let world = IdeaWorld::new(&rule("idea: pets", &small_plan("Pets"))).await;
    let idea = world
        .idea("pets", &[README, ("development.md", "Written in Rust.\n")])
        .await;
    let refused = world.spec(world.specify(&idea).await).await;
    assert_eq!(refused.state, SpecState::Rejected);
    let reason = refused.reason.unwrap();
    let needs = "a specification needs planning/brief.md; `ropewalk idea done pets` has it written of what was said so far, \
         `ropewalk idea chat pets` says more, or write it yourself";
    assert!(reason.contains(needs), "{reason}");
    assert!(!world.folder("pets").root().join("build").exists());
    assert!(!world.types().await.contains(&"spec.generated"));

    world
        .folder("pets")
        .write(
            "planning/brief.md",
            "# Brief\n\n## Problem\n\n[Describe it]\n",
        )
        .unwrap();
    let refused = world.spec(world.specify(&idea).await).await;
    assert_eq!(
        refused.state,
        SpecState::Rejected,
        "an untouched template is no brief"
    );

    world.folder("pets").write(BRIEF.0, BRIEF.1).unwrap();
    let spec = world.specify(&idea).await;
    assert_eq!(world.spec(spec).await.state, SpecState::Generated);
    let text = world.folder("pets").read("build/spec.md").unwrap().unwrap();
    let (header, document) = spec_md::parse(&text).unwrap();
    assert_eq!(
        (header.id, header.revision, header.status),
        (spec, 1, SpecState::Generated)
    );
    assert_eq!(
        document.context_read,
        [
            "ideas/pets/README.md",
            "ideas/pets/planning/brief.md",
            "ideas/pets/development.md"
        ]
    );
    for absent in [
        "target-users.md",
        "problem-solution.md",
        "planning/mvp-scope.md",
        "research/market.md",
    ] {
        assert!(
            document
                .missing_inputs
                .contains(&format!("ideas/pets/{absent}")),
            "{absent}"
        );
    }
}

#[tokio::test]
async fn a_specification_without_a_name_is_sent_back_and_then_refused() {
    let world = IdeaWorld::new(&rule("attempt: 1", &small_plan("unknown"))).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let script = format!(
        "{}{}",
        rule("attempt: 1", &small_plan("unknown")),
        rule(
            "attempt: 2, contains: 'a title of its own'",
            &small_plan("Pets")
        )
    );
    let mended = IdeaWorld::new(&script).await;
    let mended_idea = mended.idea("pets", &[README, BRIEF]).await;
    let spec = mended.specify(&mended_idea).await;
    assert_eq!(mended.revision(spec, 1).await.document.title, "Pets");

    // A second attempt has no answer in the script of the first world: what cannot be made is refused with a reason.
    let spec = world.spec(world.specify(&idea).await).await;
    assert_eq!(spec.state, SpecState::Rejected);
    assert!(spec.reason.unwrap().contains("no rule of the script"));
}

#[tokio::test]
async fn a_submission_that_cannot_be_kept_ends_with_a_reason_that_is_stored_and_one_paid_call() {
    let mut endless = small_plan("Pets");
    endless["document"]["objective"] = json!("x".repeat(2_000_000));
    let world = IdeaWorld::new(&rule("idea: pets", &endless)).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.spec(world.specify(&idea).await).await;
    assert_eq!(spec.state, SpecState::Rejected);
    let reason = spec.reason.unwrap();
    assert!(reason.contains("more than 1048576 bytes"), "{reason}");
    let calls = world.store().list::<ModelCall>(Query::new()).await.unwrap();
    assert_eq!(calls.len(), 1);
    assert!(calls[0].output_tokens > 1_000_000 / 4 && calls[0].reply.is_null());
}

/// The build that owns the router in [`sitters`].
pub(crate) const OWNER: BuildId = BuildId(uuid::Uuid::from_u128(99));

/// A plan with one stored entity, one API and tests, written out of order.
fn sitters_plan() -> Value {
    let mut submitted = plan(
        "Sitters",
        &[
            task(
                "T-api",
                "api",
                "CREATE",
                "server/routes/sitters.ts",
                &["T-types"],
            ),
            task("T-router", "api", "UPDATE", "server/api.ts", &["T-api"]),
            task("T-types", "types", "CREATE", "types/sitters.ts", &["T-sql"]),
            task(
                "T-tests",
                "tests",
                "CREATE",
                "tests/sitters.test.ts",
                &["T-api"],
            ),
            task(
                "T-sql",
                "database",
                "CREATE",
                "database/migrations/003_sitters.sql",
                &[],
            ),
            task(
                "T-sql-2",
                "database",
                "CREATE",
                "database/migrations/004_bookings.sql",
                &["T-router"],
            ),
        ],
    );
    submitted["document"]["modified_files"] =
        json!([{ "path": "server/api.ts", "purpose": "Mount the routes" }]);
    submitted
}

/// A web project with a foreign build on its router and thirteen lessons, and its specification.
async fn sitters() -> (IdeaWorld, SpecId) {
    let script = rule(
        "contains: ['Web application in TypeScript', 'has the number 003']",
        &sitters_plan(),
    );
    let files = [
        ("package.json", "{}"),
        ("tsconfig.json", "{}"),
        ("server/api.ts", "export {}\n"),
        ("database/migrations/002_pets.sql", "select 1;\n"),
    ];
    let world = IdeaWorld::with(&script, &files, false).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let mut changes = ChangeSet::new();
    for number in 1..=9_u32 {
        changes.insert(&lesson(
            u128::from(number),
            "*.sql",
            0.7 + f64::from(number) / 100.0,
        ));
    }
    changes.insert(&lesson(10, "*.sql", 0.65));
    for number in 11..=13 {
        changes.insert(&lesson(number, "*.py", 0.95));
    }
    let path = RepoPath::parse("server/api.ts").unwrap();
    changes.insert(&Ownership {
        path,
        build: OWNER,
        since: world.clock.now(),
        ended: false,
        after: None,
    });
    changes.insert(&foreign());
    world.store().commit(changes).await.unwrap();
    let spec = world.specify(&idea).await;
    (world, spec)
}

/// A build of another specification.
pub(crate) fn foreign() -> Build {
    let build = json!({
        "id": OWNER, "spec": OWNER, "revision": 1, "hash": ContentHash::of(b"boats"), "idea": "boats",
        "user": "ann", "state": "running", "pause_requested": false, "branch": "build/boats", "target": "main",
        "priority": 5, "working_ms": 0, "correlation_id": OWNER, "created_at": DateTime::UNIX_EPOCH,
    });
    serde_json::from_value(build).unwrap()
}

#[tokio::test]
async fn tasks_come_in_order_and_name_the_owner_of_a_shared_file() {
    let (world, spec) = sitters().await;
    let revision = world.revision(spec, 1).await;
    let order: Vec<&str> = revision.tasks.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(
        order,
        [
            "T-sql", "T-types", "T-api", "T-router", "T-sql-2", "T-tests"
        ]
    );
    let router = revision
        .tasks
        .iter()
        .find(|task| task.id.as_str() == "T-router")
        .unwrap();
    assert_eq!(router.action, Action::Update);
    assert!(router.notes.as_ref().unwrap().contains(&OWNER.to_string()));
    let modified = &revision.document.modified_files[0];
    assert_eq!(modified.owner, Some(OWNER.to_string()));
}

#[tokio::test]
async fn a_task_carries_the_five_surest_lessons_that_match_and_no_other() {
    let (world, spec) = sitters().await;
    for task in world.revision(spec, 1).await.tasks {
        let ids: Vec<u128> = task
            .gotchas
            .iter()
            .map(|lesson| lesson.id.unwrap().0.as_u128())
            .collect();
        let expected: &[u128] = if task.phase == "database" {
            &[9, 8, 7, 6, 5]
        } else {
            &[]
        };
        assert_eq!(ids, expected, "{}", task.id);
    }
    let of_spec = Query::new().equal("spec", spec.to_string());
    let uses = world.store().list::<Injection>(of_spec).await.unwrap();
    assert_eq!(uses.len(), 10);
    let surest = lesson(9, "", 0.0).id.to_string();
    let item = world
        .store()
        .get::<KnowledgeItem>(&surest)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(item.injections, 2);
}

#[tokio::test]
async fn tasks_md_survives_a_round_trip_and_agrees_with_the_event() {
    let (world, spec) = sitters().await;
    let text = world
        .folder("pets")
        .read("build/tasks.md")
        .unwrap()
        .unwrap();
    let read = tasks_md::parse(&text).unwrap();
    assert_eq!(read.to_string(), text);
    let generated = world
        .payloads()
        .await
        .into_iter()
        .find_map(|payload| match payload {
            Payload::SpecGenerated(generated) => Some(generated),
            _ => None,
        });
    let generated = generated.unwrap();
    assert_eq!(
        (
            generated.task_count,
            generated.gotchas_injected,
            generated.revision
        ),
        (6, 10, 1)
    );
    assert_eq!((read.header().total, read.entries().len()), (6, 6));
    for entry in read.entries() {
        let block = &entry.block;
        assert_eq!(entry.progress.status, TaskState::Pending, "{}", block.id);
        assert!(block.files().count() <= 3, "{}", block.id);
        assert!(!block.requirements.is_empty(), "{}", block.id);
        assert!(!block.validation.command.is_empty(), "{}", block.id);
        let lines = [
            format!("id: {}", block.id),
            format!("phase: {}", block.phase),
            format!("file: {}", block.file),
        ];
        assert!(lines.iter().all(|line| text.contains(line)), "{lines:?}");
    }
    assert_eq!(Some(generated.hash), world.spec(spec).await.hash);
}

/// A specification whose second revision was asked for, and the hashes of both.
async fn revised() -> (IdeaWorld, SpecId, [ContentHash; 2]) {
    let script = format!(
        "{}{}",
        rule("task: revision-1", &small_plan("Pets")),
        rule(
            r#"task: revision-2, contains: ['Fewer words', '"title":"Pets"']"#,
            &small_plan("Pets again")
        )
    );
    let world = IdeaWorld::new(&script).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    let first = world.spec(spec).await.hash.unwrap();
    specifications::revise(&world.person(), spec, &user("ann"), "Fewer words")
        .await
        .unwrap();
    assert!(
        world.open_questions().await.is_empty(),
        "what was asked about revision 1 is closed"
    );
    assert_eq!(world.settle().await, []);
    let second = world.spec(spec).await.hash.unwrap();
    (world, spec, [first, second])
}

#[tokio::test]
async fn what_is_not_generated_cannot_be_approved_and_is_asked_for_once() {
    let world = IdeaWorld::new(&rule("idea: pets", &small_plan("Pets"))).await;
    let person = world.person();
    let (ann, bob) = (user("ann"), user("bob"));
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let nothing = SpecId(uuid::Uuid::nil());
    let unknown = specifications::approve(
        &person,
        nothing,
        &hash("x"),
        &alone(&ann),
        Priority::DEFAULT,
    )
    .await;
    assert!(matches!(unknown, Err(ApproveError::Unknown(_))));
    let (one, other) = tokio::join!(
        specifications::request(&person, &idea, &ann, Complexity::Simple),
        specifications::request(&person, &idea, &bob, Complexity::Simple),
    );
    let (spec, refused) = match (one, other) {
        (Ok(spec), Err(refused)) | (Err(refused), Ok(spec)) => (spec, refused),
        both => panic!("exactly one is taken: {both:?}"),
    };
    assert!(matches!(refused, RequestError::OnItsWay { .. }));
    let early = specifications::approve(&person, spec, &hash("x"), &alone(&ann), Priority::DEFAULT)
        .await
        .unwrap_err();
    assert!(
        early
            .to_string()
            .contains("is draft, and only a generated one"),
        "{early}"
    );
}

#[tokio::test]
async fn only_the_newest_hash_is_approved_and_only_once() {
    let (world, spec, [first, second]) = revised().await;
    let person = world.person();
    let (ann, bob) = (user("ann"), user("bob"));
    assert_ne!(first, second);
    let stale = specifications::approve(&person, spec, &first, &alone(&ann), Priority::DEFAULT)
        .await
        .unwrap_err();
    let stale = Words::of(&stale).to_string();
    assert!(
        stale.contains("revision 2") && !stale.contains(second.as_str()),
        "{stale}"
    );

    let (first_person, second_person) = (alone(&ann), alone(&bob));
    let (one, other) = tokio::join!(
        specifications::approve(&person, spec, &second, &first_person, Priority::DEFAULT),
        specifications::approve(&person, spec, &second, &second_person, Priority::DEFAULT),
    );
    let (approved, refused) = match (one, other) {
        (Ok(approved), Err(refused)) | (Err(refused), Ok(approved)) => (approved, refused),
        both => panic!("exactly one is accepted: {both:?}"),
    };
    let record = world.spec(spec).await;
    let approval = record.approval.unwrap();
    assert!(
        refused
            .to_string()
            .contains(&format!("already approved by {}", approval.by))
    );
    assert_eq!((record.state, approval.revision), (SpecState::Approved, 2));
    assert_eq!(approval.hash, second);
    assert!(approval.price.unwrap().basis.contains("no task has landed"));
    let events = world.payloads().await;
    let approvals: Vec<&Payload> = events
        .iter()
        .filter(|payload| payload.event_type() == "spec.approved")
        .collect();
    assert!(matches!(
        approvals[..],
        [Payload::SpecApproved(event)] if event.hash == second && event.price == approved.price
    ));
    assert!(world.open_questions().await.is_empty());
    let late = specifications::reject(&person, spec, &alone(&ann), Some("changed my mind"))
        .await
        .unwrap_err();
    assert!(late.to_string().contains("cannot be rejected"), "{late}");
}

#[tokio::test]
async fn a_yes_to_the_question_approves_the_hash_that_it_showed() {
    let world = IdeaWorld::new(&rule("idea: pets", &small_plan("Pets"))).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    let open = world.open_questions().await;
    let [question] = &open[..] else {
        panic!("one question is expected: {open:?}")
    };
    let record = world.spec(spec).await;
    assert!(question.consequential && question.default.is_none());
    assert!(means_nothing(question), "nothing here reads a label");
    assert!(
        question
            .context
            .contains(record.hash.as_ref().unwrap().as_str())
    );
    assert!(
        question.context.contains("15000 to 180000 tokens"),
        "{}",
        question.context
    );
    let defaults = questions::answer_defaults(&world.person(), "ann", "cli")
        .await
        .unwrap();
    assert_eq!(defaults, [], "no default approves");

    questions::answer(&world.person(), question.id, "1", "bob", "cli")
        .await
        .unwrap();
    assert_eq!(world.settle().await, []);
    let record = world.spec(spec).await;
    assert_eq!(record.state, SpecState::Approved);
    assert_eq!(record.approval.unwrap().by, user("bob"));
    assert!(world.types().await.contains(&"spec.approved"));
}

#[tokio::test]
async fn a_model_that_asks_again_what_was_answered_is_refused() {
    let question = json!({ "question": { "type": "blocking", "text": "Why?" } });
    let world = IdeaWorld::new(&rule("idea: pets", &question)).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    let asked = world.open_questions().await.remove(0);
    assert_eq!(asked.trigger, "requirement_ambiguous");
    questions::answer(&world.person(), asked.id, "Because.", "ann", "cli")
        .await
        .unwrap();
    assert_eq!(world.settle().await, []);
    let record = world.spec(spec).await;
    assert_eq!(record.state, SpecState::Rejected);
    assert!(record.reason.unwrap().contains("`Because.`"));
}

#[tokio::test]
async fn the_rehearsal_goes_from_the_first_word_to_a_plan_by_itself() {
    let script = ropewalk_config::rehearsal::file("model.yaml").unwrap();
    let world = IdeaWorld::with(script, &[], true).await;
    for (slug, tasks) in [("habit-streaks", 8), ("bill-calendar", 6)] {
        let opening =
            "I keep a few things in a text file by hand and always get the end of February wrong.";
        let session = world.begin(slug, opening).await.session;
        for text in ["first features", "evidence", "write the brief"] {
            world.say(session, text).await;
        }
        for question in world.open_questions().await {
            if question.trigger == "multiple_architectures" {
                questions::answer(&world.person(), question.id, "plain-text", "ann", "script")
                    .await
                    .unwrap();
            }
        }
        assert_eq!(world.settle().await, []);
        let specs = world
            .store()
            .list(Query::new().equal("idea", slug))
            .await
            .unwrap();
        let spec: &ropewalk_schemas::specification::Specification = &specs[0];
        assert_eq!(
            spec.state,
            SpecState::Generated,
            "{slug}: {:?}",
            spec.reason
        );
        let revision = world.revision(spec.id, 1).await;
        assert_eq!(revision.tasks.len(), tasks, "{slug}");
        let steps = revision
            .tasks
            .iter()
            .map(|task| task.id.as_str())
            .collect::<Vec<_>>();
        assert!(steps.is_sorted(), "{slug}: {steps:?}");
    }
}
