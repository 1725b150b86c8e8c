//! A task of the build resolves what stands against landing it.

use std::collections::BTreeSet;
use std::time::Duration;

use ropewalk_builder::Shape;
use ropewalk_builder::land::LandRequest;
use ropewalk_desk::builds::landing::{self, Landing, LandingError};
use ropewalk_desk::people::Person;
use ropewalk_runtime::Clock;
use ropewalk_schemas::advice::Advice;
use ropewalk_schemas::attempt::{AttemptState, Failure, FailureClass, Verdict};
use ropewalk_schemas::build::{Build, BuildState, Predecessor};
use ropewalk_schemas::lease::Ownership;
use ropewalk_schemas::person::Right;
use ropewalk_schemas::task::{Action, Task, TaskState};
use ropewalk_schemas::wait::Wait;
use ropewalk_schemas::{BuildId, CommitId, RepoPath, SpecId, TaskId, UserSlug};
use ropewalk_store::{ChangeSet, Query};
use serde_json::{Value, json};

use crate::plans::two_builds::update;
use crate::world::project::{OpenProject, Project, git, task, writes, writes_after};
use crate::world::script::{Step, append_and_meet, steps};

const MARKS: &str = "<<<<<<< ours\ngood\n=======\nmine\n>>>>>>> theirs\n";

/// A project whose builder writes `a.txt`, and `resolved` into it where it is to resolve a conflict.
fn project(resolved: &str) -> Project {
    let rules = [
        writes("T-1", "a.txt", "good\n", None),
        writes("MERGE-1", "a.txt", resolved, None),
    ];
    Project::new(&rules.concat()).with(|options| options.tries.tries = 1)
}

/// A task that writes `a.txt`.
fn plan() -> Value {
    json!([{
        "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt",
        "validation": { "command": "grep -q good a.txt", "expected": "exit 0" },
    }])
}

/// A build that has succeeded, whose target holds another `a.txt` meanwhile, and a file beside it.
async fn in_conflict(project: &Project) -> (OpenProject, Build) {
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    std::fs::write(project.repo().join("a.txt"), "mine\n").unwrap();
    std::fs::write(project.repo().join("beside.txt"), "beside\n").unwrap();
    open.git(&["add", "."]);
    open.git(&["commit", "-q", "-m", "mine"]);
    (open, build)
}

/// Answers that the branch be merged, and that a task resolve what stands against it.
async fn let_it_be_resolved(open: &OpenProject, build: &Build) {
    open.answer_about_build("merge").await;
    open.until(build.spec, |build, _| {
        let reason = build.reason.as_deref().unwrap_or_default();
        reason.starts_with("not landed") && build.question.is_some()
    })
    .await;
    open.answer_about_build("resolve").await;
}

/// Waits until the task that resolves is in a state and the build rests.
async fn resolved(open: &OpenProject, build: &Build, wanted: TaskState) -> (Build, Task) {
    let (build, tasks) = open
        .until(build.spec, |build, tasks| {
            let rests = matches!(build.state, BuildState::Succeeded | BuildState::Paused);
            rests
                && tasks
                    .iter()
                    .any(|task| task.joins.is_some() && task.state == wanted)
        })
        .await;
    (build, task(&tasks, "MERGE-1").clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_resolves_a_conflict_under_the_gate_and_the_branch_lands() {
    let project = project("good\nmine\n");
    let (open, build) = in_conflict(&project).await;
    for _ in 0..12 {
        open.git(&["commit", "-q", "--allow-empty", "-m", "mine again"]);
    }
    let (ours, theirs) = (
        build.head.clone().unwrap(),
        open.git(&["rev-parse", "main"]),
    );
    let_it_be_resolved(&open, &build).await;
    let (build, merge) = resolved(&open, &build, TaskState::Complete).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let commit = merge.commit.unwrap();
    let parents = open.git(&["show", "-s", "--format=%P", commit.as_str()]);
    assert_eq!(parents, format!("{ours} {theirs}"));
    let seen = open.evidence(build.id).await;
    let of_merge = seen.iter().find(|seen| seen.commit == commit).unwrap();
    assert_eq!(of_merge.verdict, Verdict::Passed);
    let told = project.prompts("MERGE-1").concat();
    let theirs_told = format!("- {} mine", &theirs[..12]);
    let older = "- and 1 older";
    for part in ["<<<<<<<", "good", "mine", "a.txt", &theirs_told, older] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let notes = merge.block.notes.unwrap();
    let (_, sides) = notes.split_once("\n\n").unwrap();
    assert!(
        sides.find("good") < sides.find("mine"),
        "ours above theirs, as in the checkout: {notes}"
    );
    open.answer_about_build("merge").await;
    let (build, _) = open
        .until(build.spec, |build, _| build.merged.is_some())
        .await;
    assert_eq!(
        open.git(&["rev-parse", "main"]),
        build.merged.unwrap().as_str()
    );
    assert_eq!(open.git(&["show", "main:a.txt"]), "good\nmine");
    assert_eq!(open.git(&["show", "main:beside.txt"]), "beside");
    assert_eq!(open.git(&["status", "--porcelain"]), "");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_person_allows_of_a_joined_test_lands_as_it_was_shown() {
    let (good, mine) = ("test -f a.txt\ngood\n", "test -f a.txt\nmine\n");
    let rules = [
        writes("T-1", "tests/check.sh", good, None),
        writes(
            "MERGE-1",
            "tests/check.sh",
            "test -f a.txt\ngood mine\n",
            None,
        ),
    ];
    let clock = Clock::manual(Clock::system().now());
    let project = Project::new(&rules.concat())
        .with_files(&[("tests/check.sh", "test -f a.txt\n")])
        .at_the_time_of(&clock);
    let open = project.open().await;
    let plan = json!([{
        "id": "T-1", "phase": "api", "action": "UPDATE", "file": "tests/check.sh",
        "validation": { "command": "grep -q good tests/check.sh", "expected": "exit 0" },
    }]);
    let spec = open.approve(plan).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    std::fs::write(project.repo().join("tests/check.sh"), mine).unwrap();
    open.git(&["commit", "-q", "-a", "-m", "mine"]);
    let_it_be_resolved(&open, &build).await;
    let (build, _) = resolved(&open, &build, TaskState::Waiting).await;
    clock.advance(Duration::from_mins(5));
    open.answer("MERGE-1", "allow").await;
    let (_, merge) = resolved(&open, &build, TaskState::Complete).await;
    assert_eq!(merge.attempts, 1, "the try that was shown");
    assert_eq!(
        project.prompts("MERGE-1").len(),
        1,
        "no model is asked again"
    );
    let landed = open.git(&["show", "build/habits:tests/check.sh"]);
    assert_eq!(landed, "test -f a.txt\ngood mine");
    open.close().await;
}

const GATE: &str =
    "[[gate.commands]]\nname = \"tests\"\ncommand = \"python3 -m unittest -v test_calc\"\n";

/// Writes a module with these functions of one argument, and their tests.
fn calc(functions: &[(&str, &str)], tests: &[(&str, &str)]) -> [(&'static str, String); 2] {
    let function =
        |(name, returned): &(&str, &str)| format!("def {name}(x):\n    return {returned}\n\n\n");
    let test = |(name, lines): &(&str, &str)| format!("    def test_{name}(self):\n{lines}\n");
    let product: Vec<String> = functions.iter().map(function).collect();
    let tests: Vec<String> = tests.iter().map(test).collect();
    let head = "import unittest\nimport calc\n\n\nclass Calc(unittest.TestCase):\n";
    [
        ("calc.py", product.concat()),
        ("test_calc.py", format!("{head}{}", tests.concat())),
    ]
}

fn writing(files: &[(&'static str, String)]) -> Step<'static> {
    let lines: Vec<String> = files
        .iter()
        .map(|(path, text)| format!("cat > {path} <<'END'\n{text}END\n"))
        .collect();
    Step::Shell(lines.concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_joins_branches_answers_to_the_tests_of_both() {
    // What stays as it was behind a name that changes keeps git from joining what both branches put there.
    let same = (
        "same",
        "        self.assertEqual(calc.same(2), 2)\n        self.assertTrue(calc)\n",
    );
    let equal = (
        "equal",
        "        self.assertEqual(calc.equal(2), 2)\n        self.assertTrue(calc)\n",
    );
    let double = ("double", "        self.assertEqual(calc.double(2), 4)\n");
    let triple = ("triple", "        self.assertEqual(calc.triple(2), 6)\n");
    let emptied = (
        "triple",
        "        return\n        self.assertEqual(calc.triple(2), 6)\n",
    );
    let of_both = |name: &'static str, returned: &'static str| {
        [(name, "x"), ("double", "2 * x"), ("triple", returned)]
    };
    let ours = calc(&[("same", "x"), ("double", "2 * x")], &[same, double]);
    let theirs = calc(&[("same", "x"), ("triple", "3 * x")], &[same, triple]);
    // What our branch left as it was has another name there.
    let renamed = calc(&[("equal", "x"), ("triple", "3 * x")], &[equal, triple]);
    let rows = [
        (
            &theirs,
            calc(&of_both("same", "3 * x"), &[same, double, triple]),
            None,
        ),
        (
            &theirs,
            calc(&of_both("same", "0"), &[same, double, emptied]),
            Some("holds only with `test_calc.py` as it was changed"),
        ),
        (
            &renamed,
            calc(&of_both("equal", "3 * x"), &[equal, double, triple]),
            None,
        ),
        (
            &renamed,
            calc(&of_both("equal", "3 * x"), &[equal, triple]),
            Some("`test_calc.py` is an existing test, which loses or changes 2 lines"),
        ),
    ];
    for (theirs, both, why) in rows {
        let rules = [
            steps("T-1", &[writing(&ours)]),
            steps("MERGE-1", &[writing(&both)]),
        ];
        let before = calc(&[("same", "x")], &[same]);
        let project = Project::new(&rules.concat()).with_files(&[
            ("ropewalk.toml", GATE),
            (before[0].0, &before[0].1),
            (before[1].0, &before[1].1),
        ]);
        let open = project.open().await;
        let plan = json!([{
            "id": "T-1", "phase": "api", "action": "UPDATE", "file": "calc.py", "more_files": ["test_calc.py"],
            "validation": { "command": "grep -q double calc.py", "expected": "exit 0" },
        }]);
        let spec = open.approve(plan).await;
        let (build, _) = open.ended(spec).await;
        assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
        for (path, text) in theirs {
            std::fs::write(project.repo().join(path), text).unwrap();
        }
        open.git(&["commit", "-q", "-a", "-m", "mine"]);
        let_it_be_resolved(&open, &build).await;
        let state = match why {
            Some(_) => TaskState::Waiting,
            None => TaskState::Complete,
        };
        let (_, merge) = resolved(&open, &build, state).await;
        let reason = merge.reason.unwrap_or_default();
        assert!(why.is_none_or(|why| reason.contains(why)), "{reason}");
        open.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_come_in_by_another_way_is_no_models_to_join() {
    let place = tempfile::tempdir().unwrap();
    let (begun, go) = (place.path().join("begun"), place.path().join("go"));
    let script = steps("T-1", &[append_and_meet("good", "a.txt", &begun, &go)]);
    let project = Project::new(&script);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, tasks) = open
        .until(spec, |_, tasks| tasks[0].state == TaskState::Working)
        .await;
    // What it is to join, its branch stands on already.
    let mut block = task(&tasks, "T-1").block.clone();
    block.id = TaskId::parse("MERGE-1").unwrap();
    block.action = Action::Update;
    let merge = Task {
        joins: build.base.clone(),
        ..Task::planned(build.id, 2, block)
    };
    let mut changes = ChangeSet::new();
    changes.insert(&merge);
    open.services.store.commit(changes).await.unwrap();
    std::fs::write(&go, "").unwrap();
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let merge = task(&tasks, "MERGE-1");
    assert_eq!((merge.state, merge.tries), (TaskState::Complete, 0));
    assert!(project.prompts("MERGE-1").is_empty(), "no model was asked");
    assert!(merge.failures.is_empty(), "{:?}", merge.failures);
    open.close().await;
}

/// Makes a branch beside the one that is built on, in which these files are others; returns its commit.
fn branch_with(project: &Project, name: &str, files: &[(&str, &str)]) -> CommitId {
    let repo = project.repo();
    git(&repo, &["checkout", "-q", "-b", name]);
    for (path, content) in files {
        std::fs::write(repo.join(path), content).unwrap();
    }
    git(&repo, &["commit", "-q", "-a", "-m", name]);
    let commit = git(&repo, &["rev-parse", name]);
    git(&repo, &["checkout", "-q", "main"]);
    CommitId::parse(&commit).unwrap()
}

/// A task that joins a commit into its build, planned by nobody.
fn joining(id: &str, number: u32, other: &CommitId, like: &Task) -> Task {
    let mut block = like.block.clone();
    block.id = TaskId::parse(id).unwrap();
    Task {
        joins: Some(other.clone()),
        ..Task::planned(like.build, number, block)
    }
}

/// Waits until `T-1` has landed and another task works; returns how they are then.
async fn one_of_two_landed(open: &OpenProject, spec: SpecId, other: &str) -> Vec<Task> {
    let (_, tasks) = open
        .until(spec, |_, tasks| {
            let landed = task(tasks, "T-1").state == TaskState::Complete;
            landed && task(tasks, other).state == TaskState::Working
        })
        .await;
    tasks
}

/// Lets a task that joins `side` work while another one lands `b.txt`, and the build end. It writes `a.txt`, and `b.txt` once that
/// has landed.
async fn joined_beside(
    side: &[(&str, &str)],
) -> (Project, OpenProject, CommitId, (Build, Vec<Task>)) {
    let place = tempfile::tempdir().unwrap();
    let [begun, landed] = ["begun", "landed"].map(|name| place.path().join(name));
    let resolves = format!(
        "printf 'good\\nmine\\n' > a.txt; if [ -e {landed} ]; then printf 'fine\\nmine\\n' > b.txt; fi; \
         touch {begun}; until [ -e {landed} ]; do sleep 0.02; done",
        begun = begun.display(),
        landed = landed.display()
    );
    let rules = [
        writes("T-1", "a.txt", "good\n", None),
        writes_after("T-2", "b.txt", "T-2 is fine\n", &begun),
        steps("MERGE-1", &[Step::Shell(resolves)]),
    ];
    let project = Project::new(&rules.concat()).with_files(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    let other = branch_with(&project, "side", side);
    let open = project.open().await;
    let mut first = update("T-1", "a.txt");
    first["validation"]["command"] = json!("grep -q good a.txt");
    let mut second = update("T-2", "b.txt");
    second["validation"]["command"] = json!("grep -q fine b.txt");
    let spec = open.approve(json!([first, second])).await;
    let tasks = one_of_two_landed(&open, spec, "T-2").await;
    let mut changes = ChangeSet::new();
    changes.insert(&joining("MERGE-1", 3, &other, task(&tasks, "T-1")));
    open.services.store.commit(changes).await.unwrap();
    // It lands when the one that joins has begun.
    open.until(spec, |_, tasks| {
        task(tasks, "T-2").state == TaskState::Complete
    })
    .await;
    std::fs::write(&landed, "").unwrap();
    let ended = open.ended(spec).await;
    assert_eq!(ended.0.state, BuildState::Succeeded, "{:?}", ended.0.reason);
    (project, open, other, ended)
}

/// Says how the attempts at `MERGE-1` ended, in the order in which they began.
async fn ends(open: &OpenProject, build: &Build) -> Vec<AttemptState> {
    let mut attempts = open.attempts(build.id, "MERGE-1").await;
    attempts.sort_by_key(|attempt| attempt.started_at);
    attempts.iter().map(|attempt| attempt.state).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_lands_beside_a_task_that_joins_goes_along_and_no_model_is_asked_again() {
    let (project, open, other, (build, tasks)) = joined_beside(&[("a.txt", "mine\n")]).await;
    assert_eq!(ends(&open, &build).await, [AttemptState::Landed]);
    assert_eq!(project.prompts("MERGE-1").len(), 1);
    let beside = task(&tasks, "T-2").commit.clone().unwrap();
    let merge = task(&tasks, "MERGE-1").commit.clone().unwrap();
    let parents = open.git(&["show", "-s", "--format=%P", merge.as_str()]);
    assert_eq!(parents, format!("{beside} {other}"));
    let seen = open.evidence(build.id).await;
    let of_merge = seen.iter().find(|seen| seen.commit == merge).unwrap();
    assert_eq!(of_merge.verdict, Verdict::Passed);
    assert_eq!(open.git(&["show", "build/habits:a.txt"]), "good\nmine");
    assert_eq!(open.git(&["show", "build/habits:b.txt"]), "T-2 is fine");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_lands_against_the_other_branch_is_resolved_with_the_rest_and_counted() {
    let side = [("a.txt", "mine\n"), ("b.txt", "mine\n")];
    let (_project, open, _, (build, tasks)) = joined_beside(&side).await;
    let expected = [
        AttemptState::Failed,
        AttemptState::Interrupted,
        AttemptState::Landed,
    ];
    assert_eq!(ends(&open, &build).await, expected);
    let merge = task(&tasks, "MERGE-1");
    assert_eq!(merge.rebases, 1, "it does not go on for ever");
    let failure = merge.failures.last().unwrap();
    assert_eq!(failure.class, FailureClass::Conflict, "{}", failure.error);
    let files: Vec<&str> = merge.block.files().map(RepoPath::as_str).collect();
    assert_eq!(files, ["a.txt", "b.txt"], "no mark stays in any");
    assert_eq!(open.git(&["show", "build/habits:a.txt"]), "good\nmine");
    assert_eq!(open.git(&["show", "build/habits:b.txt"]), "fine\nmine");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_tasks_that_need_what_the_other_one_joins_one_asks_and_neither_waits_for_ever() {
    let place = tempfile::tempdir().unwrap();
    let [begun, go] = ["begun", "go"].map(|name| place.path().join(name));
    let rules = [
        writes("T-1", "a.txt", "good\n", None),
        steps("T-2", &[append_and_meet("T-2", "b.txt", &begun, &go)]),
    ];
    let project = Project::new(&rules.concat())
        .with(|options| options.loops = 3)
        .with_files(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    // Each stands against what has landed.
    let [one, two] = ["one", "two"].map(|name| branch_with(&project, name, &[("a.txt", name)]));
    let open = project.open().await;
    let mut first = update("T-1", "a.txt");
    first["validation"]["command"] = json!("grep -q good a.txt");
    let plan = json!([first, update("T-2", "b.txt")]);
    let spec = open.approve(plan).await;
    let tasks = one_of_two_landed(&open, spec, "T-2").await;
    let build = open.build(spec).await.unwrap();
    // The file of each comes from where the other one's branch is.
    let mut changes = ChangeSet::new();
    for (id, number, file, joins, from) in [
        ("MERGE-1", 3, "c.txt", &one, &two),
        ("MERGE-2", 4, "d.txt", &two, &one),
    ] {
        let path = RepoPath::parse(file).unwrap();
        changes.put(&Ownership {
            path: path.clone(),
            build: build.id,
            since: open.context.now(),
            ended: false,
            after: Some(Predecessor {
                build: BuildId(open.services.ids.next()),
                commit: from.clone(),
            }),
        });
        let mut joining = joining(id, number, joins, task(&tasks, "T-1"));
        joining.block.file = path;
        joining.earlier_failures.push(Failure {
            class: FailureClass::Conflict,
            error: "the head changed the same lines".to_owned(),
            attempt: 1,
            fingerprint: String::new(),
        });
        changes.insert(&joining);
    }
    open.services.store.commit(changes).await.unwrap();
    let in_state = |tasks: &[Task], state: TaskState| {
        let mut joining = tasks.iter().filter(|task| task.joins.is_some());
        joining.find(|task| task.state == state).cloned()
    };
    let (_, tasks) = open
        .until(spec, |_, tasks| {
            in_state(tasks, TaskState::Failed).is_some()
                && in_state(tasks, TaskState::Blocked).is_some()
        })
        .await;
    let asks = in_state(&tasks, TaskState::Failed).unwrap();
    let waits = in_state(&tasks, TaskState::Blocked).unwrap();
    assert_eq!(waits.block.depends_on, std::slice::from_ref(&asks.id));
    assert_eq!(asks.failures.last().unwrap().class, FailureClass::Conflict);
    // Where that one is left out, the other one asks as well.
    open.answer(asks.id.as_str(), "skip").await;
    open.until(spec, |_, tasks| {
        in_state(tasks, TaskState::Failed).is_some_and(|task| task.id == waits.id)
    })
    .await;
    open.answer(waits.id.as_str(), "skip").await;
    std::fs::write(&go, "").unwrap();
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let left = open.services.store.count::<Wait>(Query::new()).await;
    assert_eq!(left.unwrap(), 0);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conflict_marks_that_are_left_behind_never_land() {
    let project = project(MARKS);
    let (open, build) = in_conflict(&project).await;
    let (head, main) = (build.head.clone(), open.git(&["rev-parse", "main"]));
    let_it_be_resolved(&open, &build).await;
    let (build, merge) = resolved(&open, &build, TaskState::Failed).await;
    let failure = merge.failures.last().unwrap();
    assert_eq!(
        failure.class,
        FailureClass::ValidationFailed,
        "{}",
        failure.error
    );
    assert_eq!((build.head, merge.commit), (head, None));
    assert_eq!(open.git(&["rev-parse", "main"]), main);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_verb_that_meets_a_conflict_offers_the_same() {
    let project = project("good\nmine\n");
    let (open, build) = in_conflict(&project).await;
    let lander = project.lander().await;
    let request = LandRequest {
        build: build.id,
        into: None,
        push: None,
        shape: Shape::default(),
        by: "ada".to_owned(),
    };
    let refused = lander.land(&open.context, &request).await.unwrap_err();
    let offer = format!("`ropewalk build land {} --resolve`", build.id);
    let next = refused.next().unwrap_or_default();
    assert!(next.contains(&offer), "{next}");
    let ada = Person {
        name: UserSlug::parse("ada").unwrap(),
        roles: BTreeSet::new(),
        rights: BTreeSet::from([Right::Land]),
    };
    landing::land(&open.context, &build, Landing::Resolve, &ada)
        .await
        .unwrap();
    let (build, _) = resolved(&open, &build, TaskState::Complete).await;
    lander.land(&open.context, &request).await.unwrap();
    assert_eq!(open.git(&["show", "main:a.txt"]), "good\nmine");
    let build = open.build(build.spec).await.unwrap();
    let late = landing::land(&open.context, &build, Landing::Resolve, &ada).await;
    assert!(
        matches!(late, Err(LandingError::Already { .. })),
        "{late:?}"
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_marks_can_show_is_not_offered_to_a_task() {
    let project = project("good\n").with_files(&[("a.txt", "before\n")]);
    let (open, build) = in_conflict(&project).await;
    open.git(&["rm", "-q", "a.txt"]);
    open.git(&["commit", "-q", "-m", "away with it"]);
    open.answer_about_build("merge").await;
    open.until(build.spec, |build, _| {
        let reason = build.reason.as_deref().unwrap_or_default();
        reason.starts_with("not landed") && build.question.is_some()
    })
    .await;
    let [question] = open.questions("landing_refused").await.try_into().unwrap();
    let choices = question.choices.iter().map(|choice| choice.id.as_str());
    assert_eq!(choices.collect::<Vec<_>>(), ["try-again", "leave"]);
    open.close().await;
}
