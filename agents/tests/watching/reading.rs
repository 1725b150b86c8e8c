//! What a review reads of the work that it is about.

use chrono::TimeDelta;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::payload::{BuildTell, TaskRetry};
use ropewalk_schemas::question::Question;
use ropewalk_schemas::review::{Review, ReviewKind};
use ropewalk_schemas::specification::{Document, Interface, Requirement, Revision};
use ropewalk_schemas::task::{Action, Task, TaskState};
use ropewalk_schemas::{CommitId, Payload, Priority, RequirementId, ReviewId, Subject, document};
use ropewalk_store::ChangeSet;
use serde_json::json;
use uuid::Uuid;

use crate::workshop::{FINDINGS, Workshop, landed};
use crate::world::{attempt_at, build, build_id, noon, task};

#[tokio::test]
async fn a_review_reads_the_tests_first_with_what_shows_each_requirement_and_never_the_idea() {
    let more = [
        ("ideas/habits/README.md", "a secret of the idea\n"),
        ("tests/habits.rs", "assert!(kept);\n"),
    ];
    for (sees, answered) in [
        ("+assert!(kept);\\ndiff --git a/database/1.sql", true),
        ("shown by: two rows with one name are refused", true),
        ("shown by: a thousand rows in a second", true),
        ("in place of FR-0, which holds no longer", true),
        ("- out of scope: sharing", true),
        ("- interface, made by T-001: fn keep()", true),
        ("  leaves alone: the table of days", true),
        ("the whole change, but for `ideas/`;", true),
        ("a secret of the idea", false),
    ] {
        let script = FINDINGS.replace("  reply:", &format!("  contains: \"{sees}\"\n  reply:"));
        let workshop = Workshop::open_with(&script, &more).await;
        let mut task = workshop.built(&[landed(1)]).await;
        task.block.leave_alone = vec!["the table of days".to_owned()];
        workshop.world.put(&task).await;
        let of = build(1);
        let requirement = |id, text: &str, acceptance: &str| Requirement {
            id: RequirementId::parse(id).unwrap(),
            text: text.to_owned(),
            priority: "must".to_owned(),
            acceptance: acceptance.to_owned(),
            source: String::new(),
            replaces: None,
        };
        let unique = "two rows with one name are refused";
        let quick = "a thousand rows in a second";
        let document = Document {
            requirements: vec![Requirement {
                replaces: RequirementId::parse("FR-0").ok(),
                ..requirement("FR-1", "names are unique", unique)
            }],
            quality: vec![requirement("NFR-1", "it is quick", quick)],
            out_of_scope: vec!["sharing".to_owned()],
            interfaces: vec![Interface {
                made_by: Some(task.id.clone()),
                ..Interface::plain("fn keep()")
            }],
            ..Document::default()
        };
        let revision = Revision {
            spec: of.spec,
            number: of.revision,
            hash: document::hash(&document, &[]),
            document,
            tasks: Vec::new(),
            dry_run: None,
            kept: Vec::new(),
            validation: Vec::new(),
            answers: Vec::new(),
            at: noon(),
        };
        workshop.world.put(&revision).await;
        workshop.review().await;
        let review = workshop.only_review().await;
        let by_rules = |note: &String| note.contains("by rules alone");
        assert_ne!(review.notes.iter().any(by_rules), answered, "{sees}");
    }
}

#[tokio::test]
async fn a_review_sees_each_file_whole_or_named_and_is_told_where_to_read_the_others() {
    let line = "a line of forty letters, one of so many\n";
    // Neither is shown beside the other files: one is longer than what git shows at once, one than what is shown in all.
    let more = [
        ("longest.txt", line.repeat(8_000)),
        ("long.txt", line.repeat(5_500)),
        (
            "short.txt",
            format!("{}the last line\n", line.repeat(2_000)),
        ),
    ];
    let more: Vec<(&str, &str)> = more.iter().map(|(path, text)| (*path, &**text)).collect();
    for (sees, answered) in [
        ("b/longest.txt\\n… (left out: too long)", true),
        ("b/long.txt\\n… (left out: 5505 lines)", true),
        ("+the last line\\n", true),
        (
            "but 2 that are named alone, as too long: `read` shows",
            true,
        ),
        ("This is the whole change", false),
    ] {
        let script = FINDINGS.replace("  reply:", &format!("  contains: \"{sees}\"\n  reply:"));
        let workshop = Workshop::open_with(&script, &more).await;
        workshop.built(&[landed(1)]).await;
        workshop.review().await;
        let review = workshop.only_review().await;
        let by_rules = |note: &String| note.contains("by rules alone");
        assert_ne!(review.notes.iter().any(by_rules), answered, "{sees}");
        assert_eq!(review.head, None, "what was left out is read another time");
    }
}

#[tokio::test]
async fn a_review_of_an_amended_build_reads_what_came_since_the_earlier_review() {
    // What the earlier review saw is read again only where there was none.
    for (sees, was_reviewed, answered) in [
        ("+later", true, true),
        ("CREATE TABLE", true, false),
        ("since the review before", true, true),
        ("CREATE TABLE", false, true),
        ("since the review before", false, false),
    ] {
        let script = FINDINGS.replace("  reply:", &format!("  contains: \"{sees}\"\n  reply:"));
        let workshop = Workshop::open(&script).await;
        let task = workshop.built(&[landed(1)]).await;
        let world = &workshop.world;
        let amended = world.list::<Build>().await.remove(0);
        let before = Build {
            id: build_id(2),
            continued_by: Some(amended.id),
            ..amended.clone()
        };
        let amended = Build {
            continues: Some(before.id),
            head: Some(workshop.later(&[("later.txt", "later\n")]).await),
            ..amended
        };
        world.lay(&amended, &[task]).await;
        world.put(&before).await;
        if was_reviewed {
            world
                .put(&review_of(&before, ReviewId(world.services.ids.next())))
                .await;
        }
        workshop.review().await;
        let reviews = world.list::<Review>().await;
        let review = reviews
            .iter()
            .find(|review| review.build == Some(amended.id));
        let by_rules = |note: &String| note.contains("by rules alone");
        let by_rules = review.unwrap().notes.iter().any(by_rules);
        assert_ne!(by_rules, answered, "{sees} {was_reviewed}");
    }
}

#[tokio::test]
async fn a_second_review_reads_what_came_since_with_what_was_put_back() {
    for (sees, answered) in [
        ("since the review before", true),
        ("+later", true),
        ("-# Habits of all\\n+# Habits", true),
        ("CREATE TABLE", false),
    ] {
        let script = answers_who_sees(sees);
        let workshop = Workshop::open_with(&script, &[("README.md", "# Habits of all\n")]).await;
        let task = workshop.built(&[landed(1)]).await;
        let ended = workshop.world.list::<Build>().await.remove(0);
        let later = [("README.md", "# Habits\n"), ("later.txt", "later\n")];
        let head = workshop.later(&later).await;
        let second = second_review(&workshop, &ended, ended.head.clone(), head, &[task]).await;
        assert_eq!(is_by_model(&second), answered, "{sees}: {:?}", second.notes);
    }
}

#[tokio::test]
async fn a_second_review_reads_all_once_a_branch_was_joined_and_nothing_that_only_that_changed() {
    // It does whether or not a model has read the first end.
    for (sees, answered) in [
        ("+resolved", true),
        ("CREATE TABLE", true),
        ("since the review before", false),
        ("+of others", false),
    ] {
        for was_read in [true, false] {
            let workshop = Workshop::open(&answers_who_sees(sees)).await;
            let task = workshop.built(&[landed(1)]).await;
            let ended = workshop.world.list::<Build>().await.remove(0);
            let others = [("others.txt", "of others\n")];
            let resolved = [("src/extra.rs", "resolved\n")];
            let (other, head) = workshop.join(&workshop.base, &others, &resolved).await;
            let read = ended.head.clone().filter(|_| was_read);
            let tasks = [task, joining(other)];
            let second = second_review(&workshop, &ended, read, head.clone(), &tasks).await;
            assert_eq!(is_by_model(&second), answered, "{sees}: {:?}", second.notes);
            assert_eq!(second.head, answered.then_some(head));
            let mut files = second.divergences.iter().map(|one| one.file.as_deref());
            let is_astray = files.any(|file| file == Some("others.txt"));
            assert!(!is_astray, "{:?}", second.divergences);
        }
    }
}

#[tokio::test]
async fn work_that_nobody_read_before_it_was_merged_is_read_once_that_branch_is_joined() {
    // The second is a file that no task names.
    for sees in ["CREATE TABLE", "+of no plan", "+resolved"] {
        let more = [("unplanned.txt", "of no plan\n")];
        let workshop = Workshop::open_with(&answers_who_sees(sees), &more).await;
        let task = workshop.built(&[landed(1)]).await;
        let ended = workshop.world.list::<Build>().await.remove(0);
        let others = [("others.txt", "of others\n")];
        let resolved = [("src/extra.rs", "resolved\n")];
        let (other, head) = workshop.join(&workshop.head, &others, &resolved).await;
        let commit = Some(workshop.head.clone());
        let tasks = [Task { commit, ..task }, joining(other)];
        let second = second_review(&workshop, &ended, None, head, &tasks).await;
        assert!(is_by_model(&second), "{sees}: {:?}", second.notes);
    }
}

/// Lets a model answer whoever tells it so, and nobody else.
fn answers_who_sees(told: &str) -> String {
    FINDINGS.replace("  reply:", &format!("  contains: \"{told}\"\n  reply:"))
}

fn is_by_model(review: &Review) -> bool {
    let by_rules = |note: &String| note.contains("by rules alone");
    !review.notes.iter().any(by_rules)
}

/// A task of the build that joined a branch into it.
fn joining(other: CommitId) -> Task {
    Task {
        state: TaskState::Complete,
        joins: Some(other),
        ..task(1, "T-002", "src/extra.rs", Action::Update)
    }
}

/// Reviews a build that went on to `head` after a review that had read up to `read`.
async fn second_review(
    workshop: &Workshop,
    ended: &Build,
    read: Option<CommitId>,
    head: CommitId,
    tasks: &[Task],
) -> Review {
    let world = &workshop.world;
    let first = Review {
        head: read,
        ..review_of(ended, ReviewId(world.services.ids.next()))
    };
    world.put(&first).await;
    let again = Build {
        head: Some(head),
        completed_at: ended.completed_at.map(|at| at + TimeDelta::minutes(9)),
        ..ended.clone()
    };
    world.lay(&again, tasks).await;
    workshop.review().await;
    let mut reviews = world.list::<Review>().await.into_iter();
    reviews.find(|review| review.id != first.id).unwrap()
}

#[tokio::test]
async fn a_review_of_an_amended_build_compares_no_task_that_was_kept_as_it_landed() {
    let kept = "T-001: complete, kept as it landed in the build before";
    let script = FINDINGS.replace("  reply:", &format!("  contains: \"{kept}\"\n  reply:"));
    let workshop = Workshop::open(&script).await;
    let done = workshop.built(&[]).await;
    let world = &workshop.world;
    let added = Task {
        state: TaskState::Complete,
        ..task(2, "T-002", "later.txt", Action::Create)
    };
    let amended = Build {
        continues: Some(build_id(2)),
        base: Some(workshop.head.clone()),
        head: Some(workshop.later(&[("later.txt", "later\n")]).await),
        ..world.list::<Build>().await.remove(0)
    };
    world.lay(&amended, &[done, added.clone()]).await;
    world.put(&attempt_at(&added, 2, "loop-1")).await;
    workshop.review().await;
    let review = workshop.only_review().await;
    let of_rules: Vec<_> = review
        .divergences
        .iter()
        .filter(|one| one.task.is_some())
        .collect();
    assert!(of_rules.is_empty(), "{of_rules:?}");
    let by_rules = |note: &String| note.contains("by rules alone");
    assert!(!review.notes.iter().any(by_rules), "{:?}", review.notes);
}

fn review_of(build: &Build, id: ReviewId) -> Review {
    Review {
        id,
        kind: ReviewKind::Build,
        idea: build.idea.clone(),
        build: Some(build.id),
        spec: Some(build.spec),
        gotchas: Vec::new(),
        patterns: Vec::new(),
        divergences: Vec::new(),
        metrics: std::collections::BTreeMap::new(),
        notes: Vec::new(),
        ended_at: build.completed_at,
        head: build.head.clone(),
        at: noon(),
    }
}

#[tokio::test]
async fn who_reviews_looks_at_what_the_build_left_and_changes_nothing() {
    let looks = "- {agent: improvement, task: review, turn: 1, contains: 'Look into it where', reply: {tools: [\
        {name: read, input: {path: README.md}}, {name: write, input: {path: a, content: x}}, {name: bash, input: {command: ls}}]}}\n";
    for told in [
        "1\\t# Habits",
        "there is no tool `write` in the mode `review`; the tools are: code_outline, glob, grep, history, ls, read",
        "there is no tool `bash` in the mode `review`",
    ] {
        let told = format!("task: review\n  turn: 2\n  contains: \"{told}\"");
        let script = FINDINGS.replace("task: review", &told);
        let workshop = Workshop::open(&format!("{looks}{script}")).await;
        workshop.built(&[landed(1)]).await;
        workshop.review().await;
        let review = workshop.only_review().await;
        let by_rules = |note: &String| note.contains("by rules alone");
        let notes = &review.notes;
        assert!(!notes.iter().any(by_rules), "{told}: {notes:?}");
        assert_eq!(review.patterns.len(), 1);
    }
}

#[tokio::test]
async fn who_reviews_sees_no_folder_of_ideas() {
    let looks = "- {agent: improvement, task: review, turn: 1, reply: {tools: [\
        {name: ls, input: {}}, {name: grep, input: {pattern: walks}}, {name: history, input: {action: log, path: ideas}}]}}\n";
    let documents = [
        ("ideas/habits/spec.md", "All walks of the plan.\n"),
        ("walks.md", "The walks that were built.\n"),
    ];
    for (told, is_told) in [
        ("walks.md:1:The walks", true),
        ("there is no `ideas` here", true),
        ("ideas/habits/spec.md", false),
    ] {
        let told = format!("task: review\n  turn: 2\n  contains: \"{told}\"");
        let script = FINDINGS.replace("task: review", &told);
        let workshop = Workshop::open_with(&format!("{looks}{script}"), &documents).await;
        workshop.built(&[landed(1)]).await;
        workshop.review().await;
        let notes = workshop.only_review().await.notes;
        let by_rules = notes.iter().any(|note| note.contains("by rules alone"));
        assert_eq!(!by_rules, is_told, "{told}: {notes:?}");
    }
}

#[tokio::test]
async fn a_review_holds_what_people_told_the_tasks() {
    let words = "months begin at midnight of the person";
    // The model answers who tells it so, and nobody else.
    let script = FINDINGS.replace(
        "  reply:",
        &format!("  contains: ['People told them:', 'T-001: {words}']\n  reply:"),
    );
    for (guidance, reviewed) in [(vec![words.to_owned()], true), (Vec::new(), false)] {
        let workshop = Workshop::open(&script).await;
        let task = workshop.built(&[landed(1)]).await;
        let told = Task { guidance, ..task };
        let build = workshop.world.list::<Build>().await.remove(0);
        workshop.world.lay(&build, &[told]).await;
        workshop.review().await;
        let review = workshop.only_review().await;
        let by_rules = |note: &String| note.contains("by rules alone");
        assert_ne!(review.notes.iter().any(by_rules), reviewed);
    }
}

#[tokio::test]
async fn a_review_holds_who_said_what_to_a_task_and_when() {
    // The model answers who tells it all of that, and nobody else.
    let told = json!([
        "T-001 (ada, 2026-11-21T12:05:00Z): months begin at midnight",
        "T-001 (bob, 2026-11-21T12:10:00Z): mind leap years",
        "the answer (eve, 2026-11-21T12:00:00Z): Below Usage",
    ]);
    let script = FINDINGS.replace("  reply:", &format!("  contains: {told}\n  reply:"));
    let workshop = Workshop::open(&script).await;
    let world = &workshop.world;
    let task = workshop.built(&[landed(1)]).await;
    let build = world.list::<Build>().await.remove(0);
    let asked: Question = serde_json::from_value(json!({
        "id": Uuid::from_u128(7), "kind": "blocking", "trigger": "missing_context", "agent": "build",
        "text": "Where does it go?", "context": "", "free_text": true, "consequential": false,
        "about": { "kind": "task", "build": build.id, "task": task.id }, "state": "answered",
        "answer": { "text": "Below Usage", "by": "eve", "channel": "cli", "at": noon() },
        "correlation_id": build.correlation_id, "asked_at": noon(),
    }))
    .unwrap();
    world.put(&asked).await;
    let (midnight, years) = ("months begin at midnight", "mind leap years");
    let tell = Payload::BuildTell(BuildTell {
        build_id: build.id,
        task_id: task.id.clone(),
        said_by: "ada".to_owned(),
        text: format!("{midnight}\n"),
    });
    let retry = Payload::TaskRetry(TaskRetry {
        build_id: build.id,
        task_id: task.id.clone(),
        requested_by: "bob".to_owned(),
        may_resume: false,
        guidance: Some(years.to_owned()),
    });
    for payload in [tell, retry] {
        world.pass(300);
        let context = world.context("cli");
        let context = context.for_claim(build.correlation_id, Priority::URGENT);
        let mut changes = ChangeSet::new();
        changes.emit(context.event(Subject::task(build.id, &task.id), payload));
        world.commit(changes).await;
    }
    let guided = Task {
        guidance: vec![midnight.to_owned(), years.to_owned()],
        ..task
    };
    world.lay(&build, &[guided]).await;
    workshop.review().await;
    let review = workshop.only_review().await;
    let by_rules = |note: &String| note.contains("by rules alone");
    assert!(!review.notes.iter().any(by_rules), "{:?}", review.notes);
}
