//! Missing packages: installed by whom the project allows, in slots and in the gate, and by nobody else.

mod cache;

use std::path::{Path, PathBuf};
use std::process::Command;

use ropewalk_config::settings::PackageManager;
use ropewalk_schemas::SpecId;
use ropewalk_schemas::attempt::{Evidence, FailureClass, Verdict};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::task::{Task, TaskState};
use serde_json::{Value, json};

use crate::world::patience::exists;
use crate::world::project::{OpenProject, Project, git, task, writes};

const MANIFEST: &str = r#"{
  "name": "habits", "version": "1.0.0", "private": true,
  "scripts": { "postinstall": "touch scripted" },
  "dependencies": { "left": "file:vendor/left" }
}"#;
const LOCK: &str = r#"{
  "name": "habits", "version": "1.0.0", "lockfileVersion": 3, "requires": true,
  "packages": {
    "": { "name": "habits", "version": "1.0.0", "dependencies": { "left": "file:vendor/left" } },
    "node_modules/left": { "resolved": "vendor/left", "link": true },
    "vendor/left": { "version": "1.0.0" }
  }
}"#;
const PACKAGE: (&str, &str) = (
    "vendor/left/package.json",
    r#"{ "name": "left", "version": "1.0.0", "main": "index.js" }"#,
);
const MODULE: (&str, &str) = ("vendor/left/index.js", "module.exports = 'good';\n");
const IGNORED: (&str, &str) = (".gitignore", "node_modules/\n");
/// What the task writes; it needs the package.
const USE: &str = "console.log(require('left'));\n";

/// A project whose task needs a package that lies in no checkout.
fn node(files: &[(&str, &str)], managers: &[PackageManager]) -> Project {
    Project::new(&writes("T-1", "use.js", USE, None))
        .with_files(files)
        .with(|options| managers.clone_into(&mut options.package_managers))
}

/// The files of a project that locks the package.
const LOCKED: [(&str, &str); 5] = [
    ("package.json", MANIFEST),
    ("package-lock.json", LOCK),
    PACKAGE,
    MODULE,
    IGNORED,
];

fn locked(managers: &[PackageManager]) -> Project {
    node(&LOCKED, managers)
}

/// Runs the file of the task; a script that an install ran would be seen.
fn plan() -> Value {
    json!({
        "id": "T-1", "phase": "api", "action": "CREATE", "file": "use.js",
        "validation": { "command": "test ! -e scripted && node use.js", "expected": "contains good" },
    })
}

/// A project whose agent writes the rest when it is told that something is missing still, beside the package alone.
fn going_on(files: &[(&str, &str)]) -> Project {
    let more = format!("{USE}// more\n");
    let more = writes("T-1", "use.js", &more, Some("Not taken"))
        .replace("printf %s", "test -e node_modules/left && printf %s");
    Project::new(&(more + &writes("T-1", "use.js", USE, None)))
        .with_files(files)
        .with(|options| options.package_managers = vec![PackageManager::Npm])
}

/// Wants what the agent of such a project writes at last.
fn wants_more() -> Value {
    let mut plan = plan();
    plan["validation"]["command"] = json!("test ! -e scripted && node use.js && grep more use.js");
    plan
}

async fn given_up(open: &OpenProject, spec: SpecId) -> (Build, Task) {
    let (build, tasks) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let failed = task(&tasks, "T-1").clone();
    assert_eq!(failed.state, TaskState::Failed, "{:?}", failed.reason);
    (build, failed)
}

fn of_task<'a>(evidence: &'a [Evidence], id: &str) -> Vec<&'a Evidence> {
    let of = |seen: &&Evidence| seen.task.as_ref().is_some_and(|task| task.as_str() == id);
    evidence.iter().filter(of).collect()
}

/// Lists the installs that evidence names: which, how it ended, and what was run.
fn installs(evidence: &Evidence) -> Vec<(&str, Option<i32>, &str)> {
    let told = evidence
        .installs
        .iter()
        .map(|run| (run.name.as_str(), run.exit_code, run.command.as_str()));
    told.collect()
}

const CI: &str = "npm ci --ignore-scripts --no-audit --no-fund";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_installs_who_is_not_allowed() {
    for managers in [&[][..], &[PackageManager::Pip]] {
        let project = locked(managers);
        let open = project.open().await;
        let spec = open.approve(json!([plan()])).await;
        let (build, failed) = given_up(&open, spec).await;
        assert_eq!((failed.attempts, failed.installs), (1, 0), "{managers:?}");
        assert_eq!(failed.failures[0].class, FailureClass::MissingDependency);
        let question = open.open_question("T-1").await.unwrap();
        let told = format!("{}{}", question.text, question.context);
        assert!(told.contains("`build.package_managers`"), "{told}");
        let evidence = open.evidence(build.id).await;
        assert!(evidence.iter().all(|seen| seen.installs.is_empty()));
        open.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_gate_misses_is_installed_and_the_same_work_passes_without_a_model() {
    let project = locked(&[PackageManager::Npm]);
    let open = project.open().await;
    let spec = open.approve(json!([plan()])).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let done = task(&tasks, "T-1");
    assert_eq!((done.attempts, done.installs, done.tries), (2, 1, 0));
    let [missed, landed] = open.attempts(build.id, "T-1").await.try_into().unwrap();
    assert_eq!(missed.candidate, landed.candidate);
    assert_eq!(landed.summary.as_deref(), Some("Done."));
    let requests = project.requests("T-1");
    assert_eq!(requests.len(), 2, "to write it and to hand it in");
    let told = requests[1].text();
    assert!(!told.contains("npm ci"), "{told}");
    let evidence = open.evidence(build.id).await;
    let of_tries: Vec<_> = of_task(&evidence, "T-1")
        .into_iter()
        .map(|seen| (seen.verdict, installs(seen)))
        .collect();
    let npm = ("install npm", Some(0), CI);
    let expected = [(Verdict::Failed, vec![]), (Verdict::Passed, vec![npm])];
    assert_eq!(of_tries, expected);
    let whole = evidence.iter().find(|seen| seen.task.is_none()).unwrap();
    assert_eq!(
        (whole.verdict, installs(whole)),
        (Verdict::Passed, vec![npm])
    );
    assert!(whole.installs[0].output.contains("added 1 package"));
    let changed = open.git(&["diff", "--name-only", "build/habits~", "build/habits"]);
    assert_eq!(changed, "use.js", "and nothing that an install left");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_works_beside_the_packages_that_its_task_missed() {
    let files = [("package.json", MANIFEST), PACKAGE, MODULE, IGNORED];
    let project = going_on(&files);
    let open = project.open().await;
    let spec = open.approve(json!([wants_more()])).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let done = task(&tasks, "T-1");
    assert_eq!((done.attempts, done.installs, done.tries), (3, 1, 1));
    assert_eq!(
        open.git(&["show", "build/habits:use.js"]),
        format!("{USE}// more")
    );
    // What the gate found beside the packages is told in the conversation that made the work.
    let requests = project.requests("T-1");
    assert_eq!(requests.len(), 4);
    let told = requests[2].text();
    for part in ["Not taken: VALIDATION_FAILED", "run in the checkout: `npm"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let evidence = open.evidence(build.id).await;
    let passed = of_task(&evidence, "T-1").pop().unwrap();
    assert!(
        installs(passed)[0]
            .2
            .starts_with("npm install --ignore-scripts")
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_passed_beside_packages_is_not_taken_for_passed_without_them() {
    let project = locked(&[PackageManager::Npm]);
    let open = project.open().await;
    let mut again = plan();
    again["id"] = json!("T-2");
    again["action"] = json!("VERIFY");
    again["depends_on"] = json!(["T-1"]);
    let spec = open.approve(json!([plan(), again])).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let verified = task(&tasks, "T-2");
    assert_eq!((verified.attempts, verified.installs), (2, 1));
    let evidence = open.evidence(build.id).await;
    let tries = of_task(&evidence, "T-2");
    assert_eq!(tries[0].verdict, Verdict::Failed);
    assert_eq!(tries[0].tree, of_task(&evidence, "T-1")[1].tree);
    assert_eq!(installs(tries[1]), [("install npm", Some(0), CI)]);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_install_that_fails_twice_ends_the_task_with_its_question() {
    let gone = MANIFEST.replace("file:vendor/left", "file:vendor/gone.tgz");
    let project = node(&[("package.json", &gone), IGNORED], &[PackageManager::Npm]);
    let open = project.open().await;
    let spec = open.approve(json!([plan()])).await;
    let (build, failed) = given_up(&open, spec).await;
    assert_eq!((failed.attempts, failed.installs, failed.tries), (3, 2, 0));
    let classes: Vec<_> = failed
        .failures
        .iter()
        .map(|failure| failure.class)
        .collect();
    assert_eq!(classes, [FailureClass::MissingDependency; 3]);
    for failure in &failed.failures[1..] {
        assert!(
            failure.error.contains("`install npm` ended with exit code"),
            "{}",
            failure.error
        );
        assert!(failure.error.contains("gone.tgz"), "{}", failure.error);
    }
    // Another install alone would meet it again, so that its model is told.
    let prompts = project.prompts("T-1");
    let [_, told] = &prompts[..] else {
        panic!("{prompts:?}");
    };
    for part in ["Not taken: MISSING_DEPENDENCY", "gone.tgz", "It failed:"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let evidence = open.evidence(build.id).await;
    let last = of_task(&evidence, "T-1").pop().unwrap();
    assert!(last.installs[0].exit_code.is_some_and(|code| code != 0));
    assert!(
        last.checks.is_empty(),
        "nothing is checked beside half of the packages"
    );
    let question = open.open_question("T-1").await.unwrap();
    assert!(question.text.contains("gone.tgz"), "{}", question.text);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_install_that_changes_files_of_the_project_is_undone_and_told() {
    let files = [
        ("package.json", MANIFEST),
        ("package-lock.json", LOCK),
        PACKAGE,
        MODULE,
        // `npm ci` throws away what it finds there.
        ("node_modules/kept.txt", "kept\n"),
    ];
    let project = node(&files, &[PackageManager::Npm]);
    let open = project.open().await;
    let spec = open.approve(json!([plan()])).await;
    let (build, failed) = given_up(&open, spec).await;
    let error = &failed.failures.last().unwrap().error;
    assert!(
        error.contains("changed 1 files that belong to the project"),
        "{error}"
    );
    assert!(error.contains("`node_modules/kept.txt`"), "{error}");
    assert!(project.prompts("T-1")[1].contains("`node_modules/kept.txt`"));
    for attempt in open.attempts(build.id, "T-1").await {
        let candidate = attempt.candidate.unwrap();
        let base = attempt.base;
        let state = project.state().join("repository.git");
        let pair = [base.as_str(), candidate.as_str()];
        let changed = git(&state, &["diff", "--name-only", pair[0], pair[1]]);
        assert_eq!(
            changed, "use.js",
            "the agent is not taken for the installer"
        );
    }
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_after_an_install_was_decided_costs_no_second_one() {
    let signals = tempfile::tempdir().unwrap();
    let [installed, go] = ["installed", "go"].map(|name| signals.path().join(name));
    let project = locked(&[PackageManager::Npm]);
    let open = project.open().await;
    // The look after the install ends only after the crash.
    let mut plan = plan();
    plan["validation"]["command"] = json!(format!(
        "node use.js && {{ touch {}; until [ -e {} ]; do sleep 0.02; done; }}",
        installed.display(),
        go.display()
    ));
    let spec = open.approve(json!([plan])).await;
    exists(&installed).await;
    open.crash().await;
    std::fs::write(&go, "").unwrap();
    let open = project.open().await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let done = task(&tasks, "T-1");
    assert_eq!((done.installs, done.failures.len()), (1, 1));
    assert_eq!(project.calls(), 2, "no model is asked again");
    let events = open.events().await;
    let failed = events.iter().filter(|(kind, _)| kind == "task.failed");
    assert_eq!(failed.count(), 1);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packages_of_python_are_found_by_slot_and_gate() {
    let tools = tempfile::tempdir().unwrap();
    let programs = python(tools.path());
    let rules = writes("T-1", "use.py", "import left\nprint(left.WORD)\n", None);
    let project = Project::new(&rules)
        .with_programs(programs.clone())
        .with(|options| options.package_managers = vec![PackageManager::Pip]);
    wheel(&programs, &project.repo());
    // A file of that name beside the manifest is not the program that installs.
    let project = project.with_files(&[
        ("requirements.txt", "./vendor/left-1.0-py3-none-any.whl\n"),
        ("pip.py", "raise SystemExit('not the installer')\n"),
    ]);
    let open = project.open().await;
    let spec = open
        .approve(json!([{
            "id": "T-1", "phase": "api", "action": "CREATE", "file": "use.py",
            "validation": { "command": "python3 use.py", "expected": "contains good" },
        }]))
        .await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(task(&tasks, "T-1").installs, 1);
    let evidence = open.evidence(build.id).await;
    let passed = of_task(&evidence, "T-1").pop().unwrap();
    let [("install pip", Some(0), command)] = installs(passed)[..] else {
        panic!("{:?}", passed.installs);
    };
    assert!(command.contains("--only-binary :all:"), "{command}");
    let changed = open.git(&["diff", "--name-only", "build/habits~", "build/habits"]);
    assert_eq!(changed, "use.py");
    open.close().await;
}

/// Makes a Python that has pip, whatever the machine has.
fn python(place: &Path) -> PathBuf {
    let made = Command::new("python3")
        .args(["-m", "venv"])
        .arg(place)
        .status();
    assert!(made.unwrap().success(), "python3 can make a venv");
    place.join("bin")
}

/// Puts a package for Python into the repository.
fn wheel(programs: &Path, repo: &Path) {
    const MAKE: &str = "
import os, zipfile
os.makedirs('vendor')
with zipfile.ZipFile('vendor/left-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('left.py', 'WORD = \"good\"\\n')
    info = 'left-1.0.dist-info/'
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: left\\nVersion: 1.0\\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(info + 'RECORD', 'left.py,,\\n')
";
    let made = Command::new(programs.join("python3"))
        .args(["-c", MAKE])
        .current_dir(repo)
        .status();
    assert!(made.unwrap().success(), "a wheel is a zip file");
}
