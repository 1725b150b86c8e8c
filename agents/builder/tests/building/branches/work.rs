//! What is done for a build beside its tasks, where it fails again and again or ended the program too often.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use chrono::DateTime;
use ropewalk_runtime::Clock;
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::deaths::Deaths;
use ropewalk_schemas::question::QuestionState;
use ropewalk_schemas::{BuildId, Payload, SpecId, Subject};
use ropewalk_store::{ChangeSet, Location, Query, Store, Versioned};
use serde_json::{Value, json};

use crate::world::listener::Hold;
use crate::world::project::{LOOK_EVERY, OpenProject, PATIENCE, Project, git, request, writes};

fn one_task() -> Value {
    json!([{
        "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt",
        "validation": { "command": "test -s a.txt", "expected": "exit 0" },
    }])
}

fn project() -> Project {
    Project::new(&writes("T-1", "a.txt", "good\n", None))
}

/// Refuses every push as long as `broken` is there.
fn broken_git(place: &Path) {
    let script = format!(
        "#!/bin/sh\n\
         case \" $* \" in *' push '*)\n\
         if [ -e {place}/broken ]; then echo 'fatal: broken' >&2; exit 128; fi;;\n\
         esac\n\
         PATH=${{PATH#*:}} exec git \"$@\"\n",
        place = place.display()
    );
    std::fs::write(place.join("broken"), "").unwrap();
    std::fs::create_dir(place.join("programs")).unwrap();
    let git = place.join("programs/git");
    std::fs::write(&git, script).unwrap();
    std::fs::set_permissions(&git, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Waits until the alerts about work on builds are as wanted.
async fn until_alerts(open: &OpenProject, wanted: impl Fn(&[Alert]) -> bool) -> Vec<Alert> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let rows = open.services.store.list::<Alert>(Query::new()).await;
        let alerts = rows.unwrap().into_iter().map(Versioned::into_inner);
        let alerts: Vec<Alert> = alerts
            .filter(|alert| alert.cause.starts_with("work/"))
            .collect();
        if wanted(&alerts) {
            return alerts;
        }
        let late = tokio::time::Instant::now() >= deadline;
        assert!(!late, "never as wanted: {alerts:?}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fails_again_and_again_is_shown_on_the_build_and_alerted_until_it_is_done() {
    let place = tempfile::tempdir().unwrap();
    broken_git(place.path());
    let project = project()
        .with_programs(place.path().join("programs"))
        .with(|options| {
            options.tries.backoff = Duration::from_millis(50);
            options.tries.backoff_cap = Duration::from_millis(400);
        });
    let open = project.open().await;
    let spec = open.approve(one_task()).await;
    let (shown, _) = open
        .until(spec, |build, _| {
            let reason = build.reason.as_deref().unwrap_or_default();
            reason.contains("checking the build as a whole failed")
        })
        .await;
    let reason = shown.reason.unwrap();
    assert!(
        reason.contains("checking the build as a whole failed") && reason.contains("broken"),
        "{reason}"
    );
    let cause = format!("work/{}/check", shown.id);
    let of_check = |alert: &&Alert| alert.cause == cause && alert.cleared_at.is_none();
    let alerts = until_alerts(&open, |alerts| alerts.iter().any(|alert| of_check(&alert))).await;
    let alert = alerts.iter().find(of_check).unwrap();
    assert_eq!(alert.build, Some(shown.id));

    std::fs::remove_file(place.path().join("broken")).unwrap();
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded);
    assert_eq!(build.published, build.head);
    let reason = build.reason.unwrap_or_default();
    assert!(!reason.contains("in a row"), "{reason}");
    until_alerts(&open, |alerts| {
        alerts.iter().all(|alert| alert.cleared_at.is_some())
    })
    .await;
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_failed_in_an_earlier_process_is_said_no_more_once_it_is_done() {
    let place = tempfile::tempdir().unwrap();
    broken_git(place.path());
    let project = project()
        .with_programs(place.path().join("programs"))
        .held_by(&Hold::new())
        .with(|options| options.tries.backoff = Duration::from_secs(1));
    let open = project.open().await;
    let spec = open.approve(one_task()).await;
    let (build, _) = open
        .until(spec, |build, _| {
            let reason = build.reason.as_deref().unwrap_or_default();
            reason.contains("publishing the branch failed")
        })
        .await;
    let alerts = until_alerts(&open, |_| true).await;
    assert_eq!(alerts, [], "it has not failed so often yet");
    // What a person decided meanwhile is no word of it, and an earlier program may have told it in words of its own.
    open.change_build(build.id, |build| {
        let mut failing = build.failing.iter_mut();
        let publication = failing.find(|one| one.work == "publication").unwrap();
        publication.shown = "publishing is broken; it is tried again".to_owned();
        build.reason = Some(format!("{}; left by ada", publication.shown));
    })
    .await;
    open.crash().await;

    std::fs::remove_file(place.path().join("broken")).unwrap();
    let open = project.open().await;
    let (build, _) = open
        .until(spec, |build, _| {
            let reason = build.reason.as_deref();
            reason.is_none_or(|reason| !reason.contains("publishing"))
        })
        .await;
    assert_eq!(build.reason.as_deref(), Some("left by ada"));
    assert_eq!(build.state, BuildState::Running);
    assert_eq!(build.published, build.head);
    open.crash().await;
}

/// Changes a build in a store that nobody works on, and has the program have died of `work` on it five times.
async fn die_of(project: &Project, id: BuildId, work: &str, change: impl FnOnce(&mut Build)) {
    let location = Location::parse("sqlite", &project.state()).unwrap();
    let store = Store::open(&location, Clock::system()).await.unwrap();
    let row = store.get::<Build>(&id.to_string()).await.unwrap().unwrap();
    let mut after = row.record.clone();
    change(&mut after);
    let mut changes = ChangeSet::new();
    changes.update(&row, &after);
    changes.put(&Deaths {
        entity: format!("build/{id}/{work}"),
        step: 0,
        count: 5,
        last_at: DateTime::UNIX_EPOCH,
    });
    store.commit(changes).await.unwrap();
    store.close().await.unwrap();
}

async fn deaths(open: &OpenProject) -> Vec<String> {
    let rows = open.services.store.list::<Deaths>(Query::new()).await;
    rows.unwrap()
        .into_iter()
        .map(|row| row.entity.clone())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_whose_publication_ended_the_program_too_often_waits_for_an_answer() {
    for choice in ["try-again", "stop"] {
        let project = project();
        let (open, spec) = asked_about_its_branch(&project).await;
        let [asked] = open.questions("branch_refused").await.try_into().unwrap();
        open.answer_question(asked.id, choice).await;
        open.settled().await;
        if choice == "try-again" {
            open.until(spec, |build, _| build.published == build.head)
                .await;
            assert!(deaths(&open).await.is_empty(), "it is counted anew");
            assert_ne!(open.git(&["branch", "--list", "build/*"]), "");
            open.close().await;
            continue;
        }
        let left = open.build(spec).await.unwrap();
        assert_eq!((left.state, left.question), (BuildState::Succeeded, None));
        open.close().await;
        let open = project.open().await;
        let asked = open.questions("branch_refused").await;
        assert_eq!(asked.len(), 1, "it is left as it is: {asked:?}");
        assert_eq!(deaths(&open).await.len(), 1);
        assert_eq!(open.git(&["branch", "--list", "build/*"]), "");
        open.close().await;
    }
}

/// Has a build succeed whose branch is gone and is not published again, since the program died of that.
async fn asked_about_its_branch(project: &Project) -> (OpenProject, SpecId) {
    let open = project.open().await;
    let spec = open.approve(one_task()).await;
    let (build, _) = open.ended(spec).await;
    open.settled().await;
    open.close().await;
    git(
        &project.repo(),
        &["update-ref", "-d", "refs/heads/build/habits"],
    );
    die_of(project, build.id, "publication", |build| {
        build.published = None;
    })
    .await;
    // Asked once, however often the program starts.
    for _ in 0..2 {
        let open = project.open().await;
        let asked = open.questions("branch_refused").await;
        assert_eq!(asked.len(), 1, "{asked:?}");
        let told = open.build(spec).await.unwrap().reason.unwrap_or_default();
        assert!(told.contains("ended 5 times in a row"), "{told}");
        assert_eq!(deaths(&open).await.len(), 1);
        open.close().await;
    }
    assert_eq!(git(&project.repo(), &["branch", "--list", "build/*"]), "");

    (project.open().await, spec)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ground_that_ended_the_program_too_often_is_laid_again_on_the_word_of_a_person() {
    for choice in [Some("again"), Some("stop"), None] {
        let project = project();
        let open = project.open().await;
        let spec = open.approve(one_task()).await;
        let (build, _) = open.ended(spec).await;
        open.settled().await;
        open.close().await;
        // As it was before its ground was laid, with nothing left to do afterwards.
        die_of(&project, build.id, "ground", |build| {
            build.state = BuildState::Priming;
            build.completed_at = None;
            build.question = None;
            build.head = None;
            build.published = None;
        })
        .await;
        let open = project.open().await;
        let held = open.build(spec).await.unwrap();
        assert_eq!(held.state, BuildState::Paused, "{:?}", held.reason);
        let [asked] = open.questions("build_held").await.try_into().unwrap();
        assert_eq!(held.question, Some(asked.id));
        assert!(
            asked.text.contains("ended 5 times in a row"),
            "{}",
            asked.text
        );
        assert!(deaths(&open).await.is_empty());
        if let Some(choice) = choice {
            open.answer_question(asked.id, choice).await;
        } else {
            let stop = Payload::BuildStop(request(build.id));
            open.emit(Subject::build(build.id), stop).await;
        }
        if choice == Some("again") {
            open.until(spec, |build, _| build.head.is_some()).await;
        } else {
            let (ended, _) = open.ended(spec).await;
            assert_eq!(ended.state, BuildState::Stopped, "{:?}", ended.reason);
            let [asked] = open.questions("build_held").await.try_into().unwrap();
            assert_ne!(asked.state, QuestionState::Pending, "{choice:?}");
        }
        open.close().await;
    }
}
