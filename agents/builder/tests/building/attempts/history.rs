//! What commands of an attempt and of its gate see of what was before: a repository that nothing done to it matters in.

use ropewalk_schemas::attempt::FailureClass;
use ropewalk_schemas::build::BuildState;
use serde_json::{Value, json};

use crate::world::project::{Project, git, task, writes};
use crate::world::script::{Step, steps};

fn plan(tasks: &[(&str, &str, &str)]) -> Value {
    let task = |(id, file, validation): &(&str, &str, &str)| {
        json!({
            "id": id, "phase": "api", "action": "CREATE", "file": file,
            "validation": { "command": validation, "expected": "exit 0" },
        })
    };
    tasks.iter().map(task).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn build_tools_find_version_and_history_in_slot_and_gate() {
    let version = "git describe --tags --dirty";
    let look = "git log --format=%s > a.txt && git blame README.md | wc -l >> a.txt && git describe --tags >> a.txt \
                && git add a.txt && git commit -q -m mine && git tag v9 && echo x > $TMPDIR/scratch";
    let validation = format!(
        "{version} | grep -q '^v1.0-1-g[0-9a-f]*$' && test -z \"$(git status --short)\" && ! git tag | grep v9"
    );
    let script = steps("T-1", &[Step::Shell(look.to_owned())]);
    let project = Project::new(&script);
    git(&project.repo(), &["tag", "v1.0"]);
    let open = project.open().await;
    let spec = open.approve(plan(&[("T-1", "a.txt", &validation)])).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(
        build.state,
        BuildState::Succeeded,
        "{:?}",
        tasks[0].failures
    );
    let said = open.git(&["show", "build/habits:a.txt"]);
    let said: Vec<&str> = said.lines().map(str::trim).collect();
    assert_eq!(said[..3], ["The build so far", "begin", "1"]);
    assert!(said[3].starts_with("v1.0-1-g"), "{said:?}");
    let files = open.git(&["ls-tree", "-r", "--name-only", "build/habits"]);
    assert!(
        !files.contains("scratch") && !files.contains(".git"),
        "{files}"
    );
    assert!(open.git(&["tag"]) == "v1.0");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hijacked_repository_of_a_slot_reaches_neither_candidate_nor_gate() {
    let arm = "printf '#!/bin/sh\\ntouch %s/mark\\n' \"$TMPDIR\" > .git/evil && chmod +x .git/evil \
               && git config core.fsmonitor $PWD/.git/evil && git config core.hooksPath $PWD/.git \
               && cp .git/evil .git/post-index-change && echo '*.txt filter=evil' > .git/info-attributes \
               && rm -rf .git/objects && ln -s /etc .git/objects && echo good > a.txt";
    let script = steps("T-1", &[Step::Shell(arm.to_owned())]);
    let second = "git log -1 --format=%s > b.txt; git config core.fsmonitor >> b.txt; true";
    let script = script + &steps("T-2", &[Step::Shell(second.to_owned())]);
    let project = Project::new(&script).with(|options| options.loops = 1);
    let open = project.open().await;
    let tasks = plan(&[
        ("T-1", "a.txt", "git status --short && grep -q good a.txt"),
        ("T-2", "b.txt", "test -s b.txt"),
    ]);
    let spec = open.approve(tasks).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(
        build.state,
        BuildState::Succeeded,
        "{:?}",
        tasks[0].failures
    );
    assert_eq!(
        open.git(&["show", "build/habits:b.txt"]),
        "The build so far"
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stray_file_that_stays_after_it_was_told_is_left_out_and_ends_nothing() {
    let write =
        writes("T-1", "a.txt", "good\n", None).replace("printf", "echo > scratch.py; printf");
    let again = "- agent: build\n  task: T-1\n  reply:\n    tools:\n      - name: finish\n        input: { summary: \"Done.\" }\n";
    let project = Project::new(&(write + again));
    let open = project.open().await;
    let spec = open
        .approve(plan(&[("T-1", "a.txt", "grep -q good a.txt")]))
        .await;
    let (build, tasks) = open.ended(spec).await;
    let done = task(&tasks, "T-1");
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", done.failures);
    let classes: Vec<FailureClass> = done.failures.iter().map(|one| one.class).collect();
    assert_eq!((classes, done.tries), (vec![FailureClass::OutOfScope], 0));
    let files = open.git(&["ls-tree", "-r", "--name-only", "build/habits"]);
    assert!(
        files.contains("a.txt") && !files.contains("scratch.py"),
        "{files}"
    );
    open.close().await;
}
