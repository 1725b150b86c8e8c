//! An amended specification: what the change does not touch stays built.

use ropewalk_schemas::attempt::FailureClass;
use ropewalk_schemas::build::{BuildState, Predecessor};
use ropewalk_schemas::document::tasks_md::{self, Journal};
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::lease::Ownership;
use ropewalk_schemas::question::QuestionState;
use ropewalk_schemas::task::{TaskBlock, TaskState};
use ropewalk_schemas::{BuildId, SpecId};
use ropewalk_store::Query;
use serde_json::{Value, json};

use crate::plans::lifecycle::write_tasks;
use crate::plans::two_builds::land;
use crate::world::project::{OpenProject, Project, task, writes};

fn plan(second: &str) -> Value {
    let block = |id: &str, file: &str, says: &str, needs: &[&str]| {
        json!({
            "id": id, "phase": "api", "action": "CREATE", "file": file,
            "requirements": [{ "text": format!("say {says}") }],
            "validation": { "command": format!("grep -q {says} {file}"), "expected": "exit 0" },
            "depends_on": needs,
        })
    };
    json!([
        block("T-1", "a.txt", "first", &[]),
        block("T-2", "b.txt", second, &["T-1"]),
        block("T-3", "c.txt", "third", &["T-2"]),
    ])
}

/// Stores and approves the second revision of a specification.
async fn amend(open: &OpenProject, spec: SpecId, tasks: Value) {
    open.amend(spec, 2, tasks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_an_amendment_touches_is_built_again() {
    let rules = [
        writes("T-1", "a.txt", "first\n", None).replace("Done.", "Said it in a.txt, on line 1."),
        writes("T-2", "b.txt", "changed\n", Some("say changed")),
        writes("T-2", "b.txt", "second\n", None),
        writes("T-3", "c.txt", "third\n", None),
    ];
    let project = Project::new(&rules.concat());
    let open = project.open().await;
    let spec = open.approve(plan("second")).await;
    let (first, landed) = open.ended(spec).await;
    assert_eq!(first.state, BuildState::Succeeded, "{:?}", first.reason);
    amend(&open, spec, plan("changed")).await;
    let second = open.newest_build(spec, &first).await;
    assert_eq!(second.state, BuildState::Succeeded, "{:?}", second.reason);
    assert_eq!((second.revision, second.continues), (2, Some(first.id)));
    assert_eq!(second.branch, first.branch);
    assert_eq!(second.base, first.base);
    let tasks = open.tasks(second.id).await;
    for id in ["T-1", "T-3"] {
        let (kept, before) = (task(&tasks, id), task(&landed, id));
        assert_eq!(
            (kept.state, &kept.commit),
            (TaskState::Complete, &before.commit),
            "{id}"
        );
        assert!(open.attempts(second.id, id).await.is_empty(), "{id}");
        assert_eq!(project.prompts(id).len(), 1, "{id} was asked for once");
    }
    for told in project.prompts("T-2") {
        assert!(told.contains("Said it in a.txt, on line 1."), "{told}");
    }
    let again = task(&tasks, "T-2");
    assert_ne!(again.commit, task(&landed, "T-2").commit);
    assert_eq!(open.attempts(second.id, "T-2").await.len(), 1);
    assert_eq!(open.git(&["show", "build/habits:b.txt"]), "changed");
    let from = first.head.as_ref().unwrap().as_str();
    open.git(&["merge-base", "--is-ancestor", from, "build/habits"]);
    let evidence = open.evidence(second.id).await;
    for id in ["T-1", "T-2", "T-3"] {
        let commit = &task(&tasks, id).commit;
        let seen = evidence
            .iter()
            .any(|seen| Some(&seen.commit) == commit.as_ref());
        assert!(seen, "{id} shows what the gate saw");
    }
    let owned = open
        .services
        .store
        .list::<Ownership>(Query::new())
        .await
        .unwrap();
    assert!(
        owned.iter().all(|owned| owned.build == second.id),
        "{owned:?}"
    );
    let ended = open.build(spec).await.unwrap();
    assert_eq!((ended.id, ended.continued_by), (first.id, Some(second.id)));
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_said_and_learned_of_a_kept_task_travels_with_every_later_revision() {
    let rules = [
        writes("T-1", "a.txt", "good\n", Some("Not taken")).replace("Done.", "Said it well."),
        writes("T-1", "a.txt", "type DATEE is unknown\n", None),
        writes("T-2", "b.txt", "third\n", Some("say third")).replace("Done.", "Said the third."),
        writes("T-2", "b.txt", "second\n", Some("say second")),
        writes("T-2", "b.txt", "first\n", None),
    ];
    let plan = |says: &str| {
        json!([
            {
                "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt",
                "validation": { "command": "cat a.txt; grep -q good a.txt", "expected": "exit 0" },
            },
            {
                "id": "T-2", "phase": "api", "action": "CREATE", "file": "b.txt",
                "requirements": [{ "text": format!("say {says}") }],
                "validation": { "command": format!("grep -q {says} b.txt"), "expected": "exit 0" },
                "depends_on": ["T-1"],
            },
        ])
    };
    let project = Project::new(&rules.concat());
    let blocks: Vec<TaskBlock> = serde_json::from_value(plan("first")).unwrap();
    write_tasks(&project, &blocks);
    let open = project.open().await;
    let spec = open.approve(plan("first")).await;
    let (first, _) = open.ended(spec).await;
    assert_eq!(first.state, BuildState::Succeeded, "{:?}", first.reason);
    let began = open.attempts(first.id, "T-1").await[0].started_at;
    let learned = open.services.store.list::<KnowledgeItem>(Query::new());
    let learned = learned.await.unwrap();
    assert_eq!(learned.len(), 1, "{learned:?}");
    let mut before = first;
    // A revision of a revision keeps what it did not do itself.
    for (number, says) in [(2, "second"), (3, "third")] {
        open.amend(spec, number, plan(says)).await;
        let next = open.newest_build(spec, &before).await;
        assert_eq!(next.state, BuildState::Succeeded, "{:?}", next.reason);
        assert!(open.attempts(next.id, "T-1").await.is_empty());
        before = next;
    }
    let told = open.git(&["show", "build/habits:ideas/habits/build/tasks.md"]);
    let told = tasks_md::parse(&told).unwrap();
    let log = told.journal(Journal::ExecutionLog);
    let ends = [" T-1: Said it well.", " T-2: Said the third."];
    assert_eq!(log.len(), ends.len(), "{log:?}");
    for (line, end) in log.iter().zip(ends) {
        assert!(line.ends_with(end), "{log:?}");
    }
    let found = told.journal(Journal::Discoveries);
    assert_eq!(found, [learned[0].content.as_str()]);
    let kept = &told.entries()[0].progress;
    assert_eq!(kept.status, TaskState::Complete);
    // Times are written by the second.
    let started = kept.started_at.map(|at| at.timestamp());
    assert_eq!(started, Some(began.timestamp()));
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_made_nothing_leaves_what_lay_there_before_to_an_amended_task() {
    let one = |says: &str| {
        json!([{
            "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt",
            "requirements": [{ "text": format!("say {says}") }],
            "validation": { "command": format!("grep -q {says} a.txt"), "expected": "exit 0" },
        }])
    };
    let goes_on =
        writes("T-1", "a.txt", "", Some("say changed")).replace("printf %s ''", "echo changed");
    let goes_on = goes_on.replace("> a.txt", ">> a.txt");
    let gives_up = "- agent: build\n  task: T-1\n  contains: \"give up\"\n  turn: 1\n  reply:\n    tools:\n      - name: finish\n        \
                    input: { summary: \"It cannot be.\", blocked: \"say how\" }\n";
    let rules = [
        goes_on,
        gives_up.to_owned(),
        writes("T-1", "a.txt", "half\n", None),
    ];
    let project = Project::new(&rules.concat()).with(|options| options.tries.tries = 1);
    let open = project.open().await;
    let spec = open.approve(one("second")).await;
    let is_failed = |attempts: u32| {
        move |_: &ropewalk_schemas::build::Build, tasks: &[ropewalk_schemas::task::Task]| {
            tasks[0].attempts == attempts && tasks[0].question.is_some()
        }
    };
    open.until(spec, is_failed(1)).await;
    open.answer("T-1", "guide: give up").await;
    let (first, tasks) = open.until(spec, is_failed(2)).await;
    let failure = task(&tasks, "T-1").failures.last().unwrap();
    assert_eq!(failure.class, FailureClass::Blocked);
    amend(&open, spec, one("changed")).await;
    let second = open.newest_build(spec, &first).await;
    assert_eq!(second.state, BuildState::Succeeded, "{:?}", second.reason);
    assert_eq!(open.git(&["show", "build/habits:a.txt"]), "half\nchanged");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_landed_build_owned_is_owned_anew_only_by_who_changes_it() {
    let rules = [
        writes("T-1", "a.txt", "first\n", None),
        writes("T-2", "b.txt", "changed\n", Some("say changed")),
        writes("T-2", "b.txt", "second\n", None),
        writes("T-3", "c.txt", "third\n", None),
    ];
    let project = Project::new(&rules.concat());
    let open = project.open().await;
    let spec = open.approve(plan("second")).await;
    let (first, _) = open.ended(spec).await;
    land(&open, &project, &first).await;
    open.settled().await;
    amend(&open, spec, plan("changed")).await;
    let second = open.newest_build(spec, &first).await;
    assert_eq!(second.state, BuildState::Succeeded, "{:?}", second.reason);
    let rows = open.services.store.list::<Ownership>(Query::new()).await;
    let mut owned: Vec<_> = rows
        .unwrap()
        .iter()
        .map(|row| (row.path.to_string(), row.build, row.ended))
        .collect();
    owned.sort();
    let expected = [
        ("a.txt".to_owned(), first.id, true),
        ("b.txt".to_owned(), second.id, false),
        ("c.txt".to_owned(), first.id, true),
    ];
    assert_eq!(owned, expected);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_amended_build_follows_whom_the_earlier_one_followed_and_ends_its_questions() {
    let rules = [
        writes("T-1", "a.txt", "first\n", None),
        writes("T-2", "b.txt", "changed\n", Some("say changed")),
        writes("T-2", "b.txt", "bad\n", None),
        writes("T-3", "c.txt", "third\n", None),
    ];
    let project = Project::new(&rules.concat());
    let open = project.open().await;
    let spec = open.approve(plan("second")).await;
    let (first, _) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let question = open.open_question("T-2").await.unwrap();
    let followed = Predecessor {
        build: BuildId(open.services.ids.next()),
        commit: first.base.clone().unwrap(),
    };
    open.change_build(first.id, |build| build.follows = vec![followed.clone()])
        .await;
    amend(&open, spec, plan("changed")).await;
    let second = open.newest_build(spec, &first).await;
    assert_eq!(second.state, BuildState::Succeeded, "{:?}", second.reason);
    assert_eq!(second.follows, [followed]);
    let asked = open.questions("task_failed_repeatedly").await;
    assert_eq!(
        (asked[0].id, asked[0].state),
        (question.id, QuestionState::Superseded)
    );
    open.close().await;
}
