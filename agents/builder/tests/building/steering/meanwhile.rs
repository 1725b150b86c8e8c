//! A revision that is approved while an earlier one is built.

use std::collections::BTreeSet;
use std::time::Duration;

use ropewalk_desk::builds::{self, SteerError, Wish};
use ropewalk_desk::people::Person;
use ropewalk_desk::views::why;
use ropewalk_schemas::build::{Build, BuildState, StopCause};
use ropewalk_schemas::payload::IdeaAbandoned;
use ropewalk_schemas::person::Right;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{Payload, SpecId, Subject, UserSlug};
use ropewalk_store::Query;
use serde_json::{Value, json};

use super::second_task::retry;
use crate::world::patience::{exists, until};
use crate::world::project::{OpenProject, PATIENCE, Project, task, writes};
use crate::world::script::{append_and_meet, steps};

/// Two tasks that need nothing of each other; the second says `says`.
fn plan(says: &str) -> Value {
    json!([
        {
            "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt",
            "validation": { "command": "grep -q first a.txt", "expected": "exit 0" },
        },
        {
            "id": "T-2", "phase": "api", "action": "CREATE", "file": "b.txt", "more_files": ["c.txt"],
            "requirements": [{ "text": format!("say {says}") }],
            "validation": { "command": format!("grep -q {says} b.txt"), "expected": "exit 0" },
        },
    ])
}

/// Waits until the build of a revision is as wanted.
async fn of_revision(
    open: &OpenProject,
    spec: SpecId,
    revision: u32,
    wanted: impl Fn(&Build) -> bool,
) -> Build {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut feed = open.services.store.feed();
    loop {
        let query = Query::new().equal("spec", spec.to_string());
        let found = open.services.store.list::<Build>(query).await.unwrap();
        let mut found = found.into_iter().map(|row| row.record);
        if let Some(build) = found.find(|build| build.revision == revision && wanted(build)) {
            return build;
        }
        let late = tokio::time::Instant::now() >= deadline;
        assert!(!late, "revision {revision} is never as wanted");
        tokio::time::timeout(Duration::from_millis(100), feed.next())
            .await
            .ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_build_runs_a_revision_lets_the_untouched_go_on_and_ends_the_touched_with_its_work()
{
    let place = tempfile::tempdir().unwrap();
    let (begun, go) = (place.path().join("begun"), place.path().join("go"));
    let untouched = steps("T-1", &[append_and_meet("first", "a.txt", &begun, &go)]);
    let half = place.path().join("half");
    let touched = steps(
        "T-2",
        &[append_and_meet(
            "half",
            "b.txt",
            &half,
            &place.path().join("never"),
        )],
    );
    let again = writes("T-2", "b.txt", "changed\n", Some("say changed"))
        .replace("printf %s", "cp b.txt c.txt; printf %s");
    let project =
        Project::new(&[untouched, again, touched].concat()).with(|options| options.loops = 2);
    let open = project.open().await;
    let spec = open.approve(plan("second")).await;
    let both = |tasks: &[Task]| tasks.iter().all(|task| task.state == TaskState::Working);
    let (first, _) = open.until(spec, |_, tasks| both(tasks)).await;
    exists(&begun).await;
    exists(&half).await;
    open.amend(spec, 2, plan("changed")).await;
    until("what is touched ends", async || {
        let tasks = open.tasks(first.id).await;
        task(&tasks, "T-2").state != TaskState::Working
    })
    .await;
    let tasks = open.tasks(first.id).await;
    assert_eq!(task(&tasks, "T-1").state, TaskState::Working, "it goes on");
    std::fs::write(&go, "").unwrap();
    let second = open.newest_build(spec, &first).await;
    assert_eq!(second.state, BuildState::Succeeded, "{:?}", second.reason);
    let tasks = open.tasks(second.id).await;
    assert_eq!(
        project.prompts("T-1").len(),
        1,
        "its attempt was not begun anew"
    );
    assert!(open.attempts(second.id, "T-1").await.is_empty());
    let kept = task(&tasks, "T-1").commit.clone().unwrap();
    open.git(&["merge-base", "--is-ancestor", kept.as_str(), "build/habits"]);
    assert_eq!(open.git(&["show", "build/habits:a.txt"]), "first");
    assert_eq!(open.git(&["show", "build/habits:b.txt"]), "changed");
    // What was begun lay in the checkout of the attempt that came after it.
    assert_eq!(open.git(&["show", "build/habits:c.txt"]), "half");
    let ended = &open.attempts(first.id, "T-2").await[0];
    assert!(ended.preserve_ref.is_some(), "its work is kept");
    let rows = open
        .services
        .store
        .get::<Build>(&first.id.to_string())
        .await;
    let before = rows.unwrap().unwrap().record;
    assert_eq!(
        (before.state, before.stop),
        (BuildState::Stopped, Some(StopCause::Amended))
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revision_takes_over_what_people_said_and_what_was_made_before_the_last_attempt_asked() {
    let place = tempfile::tempdir().unwrap();
    let (begun, never) = (place.path().join("begun"), place.path().join("never"));
    let asks = "- agent: build\n  task: T-2\n  turn: 1\n  contains: say it well\n  reply:\n    tools:\n      \
                - name: ask\n        input: { question: 'Tabs?', why: '-' }\n";
    let again = writes("T-2", "b.txt", "second\n", Some("say it well"))
        .replace(
            "contains: ",
            "contains: ['The task may have been amended since', ",
        )
        .replace("say it well\"\n", "say it well\"]\n")
        .replace("printf %s", "cp b.txt c.txt; printf %s");
    let rules = [
        writes("T-1", "a.txt", "first\n", None),
        again,
        asks.to_owned(),
        steps("T-2", &[append_and_meet("half", "b.txt", &begun, &never)]),
    ];
    let project = Project::new(&rules.concat()).with(|options| options.loops = 1);
    let open = project.open().await;
    let spec = open.approve(plan("second")).await;
    exists(&begun).await;
    let (first, _) = open.until(spec, |_, _| true).await;
    retry(&open, &first, Some("say it well")).await;
    let waits = |_: &Build, tasks: &[Task]| task(tasks, "T-2").state == TaskState::Waiting;
    open.until(spec, waits).await;
    open.amend(spec, 2, plan("second")).await;
    let second = open.newest_build(spec, &first).await;
    assert_eq!(second.state, BuildState::Succeeded, "{:?}", second.reason);
    assert_eq!(open.git(&["show", "build/habits:c.txt"]), "half");
    let before = open.tasks(first.id).await;
    let left = task(&before, "T-2");
    assert_eq!(
        why::task(&open.build(spec).await.unwrap(), None, left),
        format!("build {} goes on with it", second.id)
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revision_after_one_that_still_waits_goes_on_from_what_runs() {
    let place = tempfile::tempdir().unwrap();
    let (begun, go) = (place.path().join("begun"), place.path().join("go"));
    let rules = [
        steps("T-1", &[append_and_meet("first", "a.txt", &begun, &go)]),
        writes("T-2", "b.txt", "last\n", Some("say last")),
        writes("T-2", "b.txt", "second\n", None),
    ];
    let project = Project::new(&rules.concat()).with(|options| options.loops = 1);
    let open = project.open().await;
    let spec = open.approve(plan("second")).await;
    exists(&begun).await;
    open.amend(spec, 2, plan("changed")).await;
    let waiting = of_revision(&open, spec, 2, |_| true).await;
    let why = waiting.reason.as_deref().unwrap_or_default();
    assert!(why.starts_with("begins when what still runs of"), "{why}");
    open.amend(spec, 3, plan("last")).await;
    let given_up = of_revision(&open, spec, 2, |build| build.completed_at.is_some()).await;
    assert_eq!(
        (given_up.head, given_up.stop),
        (None, Some(StopCause::Amended))
    );
    std::fs::write(&go, "").unwrap();
    let last = of_revision(&open, spec, 3, |build| build.completed_at.is_some()).await;
    assert_eq!(last.state, BuildState::Succeeded, "{:?}", last.reason);
    assert_eq!(last.branch, "build/habits");
    assert_eq!(project.prompts("T-1").len(), 1, "it went on, and was kept");
    assert!(open.attempts(last.id, "T-1").await.is_empty());
    assert_eq!(open.git(&["show", "build/habits:a.txt"]), "first");
    assert_eq!(open.git(&["show", "build/habits:b.txt"]), "last");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_on_for_a_revision_ends_when_its_idea_is_given_up() {
    let place = tempfile::tempdir().unwrap();
    let (begun, never) = (place.path().join("begun"), place.path().join("never"));
    let rule = steps("T-1", &[append_and_meet("first", "a.txt", &begun, &never)]);
    let project = Project::new(&rule).with(|options| options.loops = 1);
    let open = project.open().await;
    let spec = open.approve(plan("second")).await;
    exists(&begun).await;
    open.amend(spec, 2, plan("changed")).await;
    let waiting = of_revision(&open, spec, 2, |_| true).await;
    let given_up = IdeaAbandoned {
        idea_slug: waiting.idea.clone(),
        abandoned_by: waiting.user.clone(),
        reason: None,
    };
    let subject = Subject::idea(&waiting.idea);
    open.emit(subject, Payload::IdeaAbandoned(given_up)).await;
    for revision in [1, 2] {
        let ended = of_revision(&open, spec, revision, |build| build.completed_at.is_some()).await;
        assert_eq!(ended.stop, Some(StopCause::Abandoned), "{revision}");
        let tasks = open.tasks(ended.id).await;
        assert!(tasks.iter().all(|task| task.commit.is_none()));
    }
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_on_for_a_revision_is_stopped_with_its_work_kept_and_the_revision_begins() {
    let place = tempfile::tempdir().unwrap();
    let (begun, never) = (place.path().join("begun"), place.path().join("never"));
    let rules = [
        steps("T-1", &[append_and_meet("first", "a.txt", &begun, &never)]),
        writes("T-2", "b.txt", "changed\n", None),
    ];
    let project = Project::new(&rules.concat()).with(|options| options.loops = 1);
    let open = project.open().await;
    let spec = open.approve(plan("second")).await;
    exists(&begun).await;
    open.amend(spec, 2, plan("changed")).await;
    let first = of_revision(&open, spec, 1, Build::gives_way).await;
    let ada = Person {
        name: UserSlug::parse("ada").unwrap(),
        roles: BTreeSet::new(),
        rights: BTreeSet::from([Right::Stop]),
    };
    builds::steer(&open.context, &first, Wish::Stop, &ada, None)
        .await
        .unwrap();
    let ended = of_revision(&open, spec, 1, |build| build.completed_at.is_some()).await;
    assert_eq!(ended.stop, Some(StopCause::Person));
    assert!(ended.continued_by.is_some());
    let kept = &open.attempts(first.id, "T-1").await[0];
    assert!(kept.preserve_ref.is_some(), "its work is kept");
    // Nothing of the first runs any more, so the revision does what that had begun.
    std::fs::write(&never, "").unwrap();
    let second = of_revision(&open, spec, 2, |build| build.completed_at.is_some()).await;
    assert_eq!(second.state, BuildState::Succeeded, "{:?}", second.reason);
    assert_eq!(open.attempts(second.id, "T-1").await.len(), 1);
    let again = builds::steer(&open.context, &ended, Wish::Stop, &ada, None).await;
    assert!(matches!(again, Err(SteerError::Continued { .. })));
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_refused_before_an_amendment_is_not_told_after_it() {
    let weak = "echo 'ok 1 - works'; echo '1..1'\n";
    let project = Project::new(&writes("T-1", "tests/check.sh", weak, None)).with_files(&[(
        "tests/check.sh",
        "true && echo 'ok 1 - works'; echo '1..1'\n",
    )]);
    let open = project.open().await;
    let plan = |says: &str| {
        json!([{
            "id": "T-1", "phase": "api", "action": "UPDATE", "file": "tests/check.sh",
            "requirements": [{ "text": says }],
            "validation": { "command": "sh tests/check.sh", "expected": "tests >= 1" },
        }])
    };
    let spec = open.approve(plan("one")).await;
    let asks = |tries: u32| {
        move |_: &Build, tasks: &[Task]| {
            tasks[0].state == TaskState::Waiting && tasks[0].attempts == tries
        }
    };
    let (first, _) = open.until(spec, asks(1)).await;
    open.answer("T-1", "guide: Keep it.").await;
    let (_, tasks) = open.until(spec, asks(2)).await;
    assert_eq!(tasks[0].guidance.len(), 2, "{:?}", tasks[0].guidance);
    open.amend(spec, 2, plan("two")).await;
    let second = of_revision(&open, spec, 2, |build| build.state == BuildState::Paused).await;
    assert_ne!(first.id, second.id);
    let said = open.tasks(second.id).await.remove(0).guidance;
    let heard = "Asked about the change of `tests/check.sh`, a person said: Keep it.";
    assert_eq!(said, [heard], "what was refused is asked anew");
    open.close().await;
}
