//! Two builds that want one file: ownership, change requests, and the follower that builds on what the other one did.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use ropewalk_schemas::attempt::Attempt;
use ropewalk_schemas::build::{Build, BuildState, StopCause};
use ropewalk_schemas::lease::Ownership;
use ropewalk_schemas::payload::{BuildMerged, BuildPriority, ChangeDecided, IdeaAbandoned};
use ropewalk_schemas::task::{ChangeRequestState, Task, TaskState, WaitReason};
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{BuildId, CommitId, Payload, Priority, RepoPath, Subject, TaskId};
use ropewalk_store::{Query, Versioned};
use serde_json::{Value, json};

use crate::world::project::{OpenProject, PATIENCE, Project, git, task};
use crate::world::script::{append, append_and_meet, meet, steps};

pub(crate) fn update(id: &str, file: &str) -> Value {
    json!({
        "id": id, "phase": "api", "action": "UPDATE", "file": file,
        "validation": { "command": format!("grep -q {id} {file}"), "expected": "exit 0" },
    })
}

pub(crate) fn create(id: &str, file: &str) -> Value {
    let mut plan = update(id, file);
    plan["action"] = json!("CREATE");
    plan
}

/// Merges the branch of a build as a person does.
pub(crate) async fn land(open: &OpenProject, project: &Project, build: &Build) {
    open.git(&["merge", "-q", "--no-ff", "-m", "land it", &build.branch]);
    let merged = BuildMerged {
        build_id: build.id,
        idea_slug: build.idea.clone(),
        into: "main".to_owned(),
        commit_id: CommitId::parse(&git(&project.repo(), &["rev-parse", "main"])).unwrap(),
        merged_by: "ada".to_owned(),
    };
    let subject = Subject::build(build.id);
    open.emit(subject, Payload::BuildMerged(merged)).await;
}

async fn waits_of(open: &OpenProject, build: BuildId, id: &str) -> Vec<Wait> {
    let query = Query::new().equal("waiter", format!("task/{build}/{id}"));
    let found = open.services.store.list::<Wait>(query).await.unwrap();
    found.into_iter().map(Versioned::into_inner).collect()
}

async fn all_waits(open: &OpenProject) -> Vec<Wait> {
    let found = open.services.store.list::<Wait>(Query::new()).await;
    let found = found.unwrap().into_iter();
    found.map(Versioned::into_inner).collect()
}

pub(crate) async fn owner(open: &OpenProject, file: &str) -> Option<Ownership> {
    let rows = open.services.store.list::<Ownership>(Query::new()).await;
    let mut rows = rows.unwrap().into_iter().map(Versioned::into_inner);
    rows.find(|row| row.path.as_str() == file && !row.ended)
}

async fn count(open: &OpenProject, event: &str) -> usize {
    let events = open.events().await;
    events.iter().filter(|found| found.0 == event).count()
}

fn contains(project: &Project, head: &CommitId, ancestor: &CommitId) -> bool {
    let clone = project.state().join("repository.git");
    let base = git(&clone, &["merge-base", head.as_str(), ancestor.as_str()]);
    base == ancestor.as_str()
}

/// Checks that a build stands on the head of another one, seen by the gate, and says so.
pub(crate) async fn check_follows(
    open: &OpenProject,
    project: &Project,
    build: BuildId,
    other: &Build,
) {
    let row = open.services.store.get::<Build>(&build.to_string()).await;
    let row = row.unwrap().unwrap();
    let [followed] = &row.follows[..] else {
        panic!("it follows one build: {:?}", row.follows)
    };
    assert_eq!(followed.build, other.id);
    let head = row.head.as_ref().unwrap();
    assert!(contains(project, head, &followed.commit));
    let clone = project.state().join("repository.git");
    let merges = git(&clone, &["rev-list", "--merges", head.as_str()]);
    let evidence = open.evidence(build).await;
    for merge in merges.lines() {
        let seen = evidence
            .iter()
            .any(|seen| seen.commit.as_str() == merge && seen.task.is_none());
        assert!(seen, "{merge} was checked as a whole");
    }
    assert!(!merges.is_empty());
}

fn span(attempts: &[Attempt]) -> (DateTime<Utc>, DateTime<Utc>) {
    (
        attempts[0].started_at,
        attempts.last().unwrap().ended_at.unwrap(),
    )
}

fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().skip(1).collect();
    lines.sort_unstable();
    lines
}

/// Returns whether each of two tasks began before the other one had ended.
fn overlap(one: &[Attempt], other: &[Attempt]) -> bool {
    span(one).0 < span(other).1 && span(other).0 < span(one).1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disjoint_files_overlap_and_one_file_is_changed_by_one_after_the_other() {
    let signals = tempfile::tempdir().unwrap();
    let [a, b, go] = ["a", "b", "go"].map(|name| signals.path().join(name));
    let script = [
        steps("A", &[append_and_meet("A", "a.ts", &a, &b), meet(&go)]),
        steps("B", &[append_and_meet("B", "b.ts", &b, &a), meet(&go)]),
        steps("C", &[append("C", "a.ts")]),
        steps("D", &[append("D", "b.ts")]),
    ];
    let project = Project::new(&script.concat())
        .with(|options| options.loops = 3)
        .with_files(&[("a.ts", "a\n"), ("b.ts", "b\n")]);
    let open = project.open().await;
    let first = open
        .approve(json!([
            update("A", "a.ts"),
            update("B", "b.ts"),
            update("C", "a.ts")
        ]))
        .await;
    open.until(first, |_, tasks| {
        tasks
            .iter()
            .filter(|task| task.state == TaskState::Working)
            .count()
            == 2
    })
    .await;
    let second = open.approve(json!([update("D", "b.ts")])).await;
    std::fs::write(&go, "").unwrap();
    let (one, tasks) = open.ended(first).await;
    assert_eq!(one.state, BuildState::Succeeded, "{:?}", one.reason);
    let (_, waiting) = open
        .until(second, |_, tasks| {
            tasks
                .iter()
                .any(|task| task.waiting_for == Some(WaitReason::Owner))
        })
        .await;
    assert_eq!(task(&waiting, "D").attempts, 0);
    land(&open, &project, &one).await;
    let (two, done) = open.ended(second).await;
    assert_eq!(two.state, BuildState::Succeeded, "{:?}", two.reason);
    land(&open, &project, &two).await;
    for (file, expected) in [("a.ts", ["A", "C"]), ("b.ts", ["B", "D"])] {
        assert_eq!(
            lines(&open.git(&["show", &format!("main:{file}")])),
            expected
        );
    }
    let (a, b, c) = (
        open.attempts(one.id, "A").await,
        open.attempts(one.id, "B").await,
        open.attempts(one.id, "C").await,
    );
    let d = open.attempts(two.id, "D").await;
    assert!(overlap(&a, &b), "A and B overlap");
    assert!(span(&c).0 >= span(&a).1, "C begins when A has ended");
    assert!(span(&d).0 >= span(&b).1, "D begins when B has ended");
    let commit = |tasks: &[Task], id: &str| task(tasks, id).commit.clone().unwrap();
    assert!(contains(&project, &c[0].base, &commit(&tasks, "A")));
    assert!(contains(
        &project,
        &d.last().unwrap().base,
        &commit(&tasks, "B")
    ));
    check_follows(&open, &project, two.id, &one).await;
    for tasks in [&tasks, &done] {
        assert!(
            tasks.iter().all(|task| task.failures.is_empty()),
            "nothing failed for a busy file"
        );
    }
    assert!(all_waits(&open).await.is_empty());
    open.close().await;
}

/// Waits until a task waits for no lock, which is within a tick of its release.
async fn lock_is_no_longer_waited_for(open: &OpenProject, build: BuildId, task: &str) {
    let released = Instant::now();
    let is_lease = |wait: &Wait| matches!(wait.resource, Resource::Lease { .. });
    while waits_of(open, build, task).await.iter().any(is_lease) {
        assert!(released.elapsed() < PATIENCE, "the wait outlives the lock");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_does_other_work_while_a_task_waits_for_the_file_of_an_urgent_build() {
    let signals = tempfile::tempdir().unwrap();
    let signal = |name: &str| signals.path().join(name);
    let script = [
        steps(
            "FIX",
            &[append_and_meet(
                "FIX",
                "habits.ts",
                &signal("fix"),
                &signal("go"),
            )],
        ),
        steps("STREAKS", &[append("STREAKS", "streaks.ts")]),
        steps("HABITS", &[append("HABITS", "habits.ts")]),
        steps("BADGE", &[append("BADGE", "badge.ts")]),
    ];
    let project = Project::new(&script.concat()).with_files(&[
        ("streaks.ts", "s\n"),
        ("habits.ts", "h\n"),
        ("badge.ts", "b\n"),
    ]);
    let open = project.open().await;
    let urgent = Priority::new(1).unwrap();
    let fixing = open
        .store_plan(json!([update("FIX", "habits.ts")]), None, urgent)
        .await;
    open.until(fixing, |_, tasks| tasks[0].state == TaskState::Working)
        .await;
    let streaks = open
        .approve(json!([
            update("STREAKS", "streaks.ts"),
            update("HABITS", "habits.ts"),
            update("BADGE", "badge.ts")
        ]))
        .await;
    let (build, tasks) = open
        .until(streaks, |_, tasks| {
            let done = |id| task(tasks, id).state == TaskState::Complete;
            task(tasks, "HABITS").state == TaskState::Waiting && done("BADGE") && done("STREAKS")
        })
        .await;
    assert_eq!(task(&tasks, "HABITS").attempts, 0);
    let fix = open.build(fixing).await.unwrap();
    let waits = waits_of(&open, build.id, "HABITS").await;
    let lock = waits
        .iter()
        .find(|wait| matches!(&wait.resource, Resource::Lease { path } if path.as_str() == "habits.ts"))
        .expect("a wait for the lock");
    let holder = lock.holder.as_ref().expect("a holder").to_string();
    assert_eq!(holder, format!("task/{}/FIX", fix.id));
    assert!(
        waits
            .iter()
            .any(|wait| wait.holder == Some(Party::Build { build: fix.id }))
    );

    std::fs::write(signal("go"), "").unwrap();
    open.until(fixing, |_, tasks| tasks[0].state == TaskState::Complete)
        .await;
    lock_is_no_longer_waited_for(&open, build.id, "HABITS").await;
    let (fix, fixed) = open.ended(fixing).await;
    land(&open, &project, &fix).await;
    let (build, _) = open.ended(streaks).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let habits = open.attempts(build.id, "HABITS").await;
    assert_eq!(habits.len(), 1);
    let fix_commit = task(&fixed, "FIX").commit.clone().unwrap();
    assert!(contains(&project, &habits[0].base, &fix_commit));
    check_follows(&open, &project, build.id, &fix).await;
    land(&open, &project, &build).await;
    assert_eq!(
        lines(&open.git(&["show", "main:habits.ts"])),
        ["FIX", "HABITS"]
    );
    assert!(all_waits(&open).await.is_empty());
    open.close().await;
}

/// Build 1 owns a file and still works; build 2 wants to change it, and to make one that nobody owns.
struct Contest {
    project: Project,
    go: PathBuf,
}

impl Contest {
    fn new(signals: &Path) -> Self {
        let signal = |name: &str| signals.join(name);
        let script = [
            steps(
                "MAKE",
                &[
                    append("session", "types/session.ts"),
                    append("MAKE", "types/session.ts"),
                ],
            ),
            steps("AGAIN", &[append("AGAIN", "types/session.ts")]),
            steps(
                "HOLD",
                &[append_and_meet(
                    "HOLD",
                    "hold.ts",
                    &signal("hold"),
                    &signal("go"),
                )],
            ),
            steps(
                "NEW",
                &[append("new", "utils/new.ts"), append("NEW", "utils/new.ts")],
            ),
            steps("SESSION", &[append("SESSION", "types/session.ts")]),
        ];
        let script = script
            .concat()
            .replace("echo session", "mkdir -p types; echo session");
        let script = script.replace("echo new", "mkdir -p utils; echo new");
        let project = Project::new(&script)
            .with(|options| options.loops = 3)
            .with_files(&[("hold.ts", "h\n")])
            .watched();
        Self {
            project,
            go: signal("go"),
        }
    }

    /// Goes as far as build 2 can come alone.
    async fn begin(
        &self,
        open: &OpenProject,
    ) -> (Build, ropewalk_schemas::SpecId, ropewalk_schemas::SpecId) {
        let mut again = update("AGAIN", "types/session.ts");
        again["depends_on"] = json!(["MAKE"]);
        let first = open
            .approve(json!([
                create("MAKE", "types/session.ts"),
                again,
                update("HOLD", "hold.ts")
            ]))
            .await;
        // Inside the owning build a lock is enough.
        let (one, _) = open
            .until(first, |_, tasks| {
                task(tasks, "AGAIN").state == TaskState::Complete
                    && task(tasks, "HOLD").state == TaskState::Working
            })
            .await;
        let second = open
            .approve(json!([
                create("NEW", "utils/new.ts"),
                update("SESSION", "types/session.ts")
            ]))
            .await;
        let (two, tasks) = open
            .until(second, |_, tasks| {
                task(tasks, "NEW").state == TaskState::Complete
                    && task(tasks, "SESSION").state == TaskState::Waiting
            })
            .await;
        assert_eq!(owner(open, "utils/new.ts").await.unwrap().build, two.id);
        assert_eq!(owner(open, "types/session.ts").await.unwrap().build, one.id);
        let waiting = task(&tasks, "SESSION");
        assert_eq!(waiting.waiting_for, Some(WaitReason::Owner));
        let reason = waiting.reason.as_deref().unwrap();
        assert!(reason.contains(&one.id.to_string()), "{reason}");
        let requests: Vec<_> = waiting
            .change_requests
            .iter()
            .map(|request| (request.owner, request.state))
            .collect();
        assert_eq!(requests, [(one.id, ChangeRequestState::Requested)]);
        assert_eq!(count(open, "change.requested").await, 1);
        let waits = waits_of(open, two.id, "SESSION").await;
        let [wait] = &waits[..] else {
            panic!("one wait, not {waits:?}")
        };
        assert_eq!(wait.holder, Some(Party::Build { build: one.id }));
        let asked = async {
            while open.open_question("SESSION").await.is_none() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, asked)
            .await
            .expect("nobody is asked");
        (one, first, second)
    }

    fn let_go(&self) {
        std::fs::write(&self.go, "").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approved_change_is_made_once_on_top_of_what_the_owner_has() {
    let signals = tempfile::tempdir().unwrap();
    let contest = Contest::new(signals.path());
    let open = contest.project.open().await;
    let (one, first, second) = contest.begin(&open).await;
    open.answer("SESSION", "go-on").await;
    let (two, tasks) = open.ended(second).await;
    assert_eq!(two.state, BuildState::Succeeded, "{:?}", two.reason);
    assert_eq!(count(&open, "change.decided").await, 1);
    let done = task(&tasks, "SESSION");
    let [request] = &done.change_requests[..] else {
        panic!("one request, not {:?}", done.change_requests)
    };
    assert_eq!(request.state, ChangeRequestState::Applied);
    assert_eq!(request.commit, done.commit);
    let text = open.git(&["show", &format!("{}:types/session.ts", two.branch)]);
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        ["session", "MAKE", "AGAIN", "SESSION"]
    );
    assert_eq!(
        owner(&open, "types/session.ts").await.unwrap().build,
        two.id
    );
    check_follows(&open, &contest.project, two.id, &one).await;
    contest.let_go();
    let (one, _) = open.ended(first).await;
    assert_eq!(one.state, BuildState::Succeeded, "{:?}", one.reason);
    // Ownership ends with the merge.
    for build in [&one, &two] {
        land(&open, &contest.project, build).await;
    }
    open.settled().await;
    for file in ["types/session.ts", "utils/new.ts", "hold.ts"] {
        assert!(owner(&open, file).await.is_none(), "{file}");
    }
    assert!(all_waits(&open).await.is_empty());
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_change_leaves_its_task_blocked_with_that_reason() {
    let signals = tempfile::tempdir().unwrap();
    let contest = Contest::new(signals.path());
    let open = contest.project.open().await;
    let (one, _, second) = contest.begin(&open).await;
    open.answer("SESSION", "refuse").await;
    let (two, tasks) = open
        .until(second, |_, tasks| {
            task(tasks, "SESSION").state == TaskState::Blocked
        })
        .await;
    let blocked = task(&tasks, "SESSION");
    assert!(
        blocked
            .reason
            .as_deref()
            .unwrap()
            .contains("`ada` answered"),
        "{:?}",
        blocked.reason
    );
    assert_eq!(
        blocked.change_requests[0].state,
        ChangeRequestState::Rejected
    );
    assert!(waits_of(&open, two.id, "SESSION").await.is_empty());
    assert_eq!(
        owner(&open, "types/session.ts").await.unwrap().build,
        one.id
    );
    assert_eq!(open.attempts(two.id, "SESSION").await.len(), 0);
    contest.let_go();
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abandoned_build_gives_its_files_back_and_ends_the_waits_for_them() {
    let signals = tempfile::tempdir().unwrap();
    let contest = Contest::new(signals.path());
    let open = contest.project.open().await;
    let (one, first, second) = contest.begin(&open).await;
    let stop = crate::world::project::request(one.id);
    open.emit(Subject::build(one.id), Payload::BuildStop(stop))
        .await;
    // It may come back, so what it owns stays its own, and who waits is told that it stands still.
    open.ended(first).await;
    let told = format!("which the stopped build `{}` owns", one.id);
    let (_, tasks) = open
        .until(second, |_, tasks| {
            let reason = task(tasks, "SESSION").reason.as_deref();
            reason.is_some_and(|reason| reason.contains(&told))
        })
        .await;
    assert_eq!(task(&tasks, "SESSION").attempts, 0);
    assert_eq!(
        owner(&open, "types/session.ts").await.unwrap().build,
        one.id
    );
    let given_up = IdeaAbandoned {
        idea_slug: one.idea.clone(),
        abandoned_by: one.user.clone(),
        reason: None,
    };
    let subject = Subject::idea(&one.idea);
    open.emit(subject, Payload::IdeaAbandoned(given_up)).await;
    for spec in [first, second] {
        let abandoned = Some(StopCause::Abandoned);
        let (build, _) = open
            .until(spec, |build, _| {
                build.stop == abandoned && build.completed_at.is_some()
            })
            .await;
        assert_eq!(build.state, BuildState::Stopped);
    }
    for file in ["types/session.ts", "utils/new.ts"] {
        assert!(owner(&open, file).await.is_none(), "{file}");
    }
    assert!(all_waits(&open).await.is_empty());
    assert!(open.open_question("SESSION").await.is_none());
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_no_longer_owns_a_file_decides_nothing_about_it() {
    let signals = tempfile::tempdir().unwrap();
    let contest = Contest::new(signals.path());
    let open = contest.project.open().await;
    let (one, _, second) = contest.begin(&open).await;
    let two = open.build(second).await.unwrap();
    let stranger = BuildId(open.services.ids.next());
    for approved in [true, false] {
        let decided = ChangeDecided {
            build_id: two.id,
            task_id: TaskId::parse("SESSION").unwrap(),
            owner: stranger,
            file: RepoPath::parse("types/session.ts").unwrap(),
            approved,
            reason: "as it was".to_owned(),
        };
        let subject = Subject::build(two.id);
        open.emit(subject, Payload::ChangeDecided(decided)).await;
        open.settled().await;
        let (_, tasks) = open
            .until(second, |_, tasks| {
                task(tasks, "SESSION").state == TaskState::Waiting
            })
            .await;
        let requests = &task(&tasks, "SESSION").change_requests;
        let open_ones = requests
            .iter()
            .filter(|request| request.state == ChangeRequestState::Requested);
        assert_eq!(
            open_ones.map(|request| request.owner).collect::<Vec<_>>(),
            [one.id]
        );
        assert_eq!(
            owner(&open, "types/session.ts").await.unwrap().build,
            one.id
        );
    }
    assert_eq!(open.attempts(two.id, "SESSION").await.len(), 0);
    contest.let_go();
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_that_becomes_more_urgent_than_the_owner_goes_first() {
    let signals = tempfile::tempdir().unwrap();
    let contest = Contest::new(signals.path());
    let open = contest.project.open().await;
    let (one, _, second) = contest.begin(&open).await;
    let build_id = open.build(second).await.unwrap().id;
    let wish = Payload::BuildPriority(BuildPriority {
        build_id,
        priority: Priority::URGENT,
        requested_by: "ada".to_owned(),
    });
    open.emit(Subject::build(build_id), wish).await;
    let (two, _) = open.ended(second).await;
    assert_eq!(two.state, BuildState::Succeeded, "{:?}", two.reason);
    let decided = open.events().await;
    let preempts = |data: &Value| data["verdict"] == "preempt";
    assert!(decided.iter().any(|(_, data)| preempts(data)));
    let file = owner(&open, "types/session.ts").await.unwrap();
    assert_eq!(file.build, two.id);
    check_follows(&open, &contest.project, two.id, &one).await;
    contest.let_go();
    open.close().await;
}
