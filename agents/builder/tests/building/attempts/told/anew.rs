//! What a model is told that works on a task after somebody else did, or after its own conversation came to an end: all that
//! was tried and said, and why it did not hold.

use std::path::Path;
use std::time::Duration;

use ropewalk_coordination::locks;
use ropewalk_schemas::attempt::{AttemptState, FailureClass};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{CommitId, SpecId};
use ropewalk_store::ChangeSet;
use serde_json::{Value, json};

use super::{holds, lacks};
use crate::world::project::{OpenProject, Project, git, task};

/// What the gate refuses at first, and what is said of it.
const FIRST: &str = "Wrote the first line.";
const REFUSED: &str = "the line is bad, says the check";

fn plan() -> Value {
    let check = format!("if grep bad a.txt; then echo '{REFUSED}'; exit 1; fi; grep good a.txt");
    json!([{
        "id": "T-1", "phase": "api", "action": "UPDATE", "file": "a.txt",
        "validation": { "command": check, "expected": "exit 0" },
    }])
}

/// A rule: what the agent does at a turn of a try.
fn rule(attempt: u32, turn: u32, reply: &Value) -> String {
    let rule = json!({ "agent": "build", "task": "T-1", "attempt": attempt, "turn": turn, "reply": reply });
    format!("- {rule}\n")
}

fn shell(line: &str) -> Value {
    json!({ "tools": [{ "name": "bash", "input": { "command": line } }] })
}

fn finish(summary: &str) -> Value {
    json!({ "tools": [{ "name": "finish", "input": { "summary": summary } }] })
}

/// A first try that the gate refuses.
fn refused() -> String {
    rule(1, 1, &shell("echo bad > a.txt")) + &rule(1, 2, &finish(FIRST))
}

/// A try that the gate takes.
fn taken(attempt: u32) -> String {
    rule(attempt, 1, &shell("echo good > a.txt")) + &rule(attempt, 2, &finish("Done."))
}

fn project(rules: &[String]) -> Project {
    Project::new(&rules.concat())
        .with_files(&[("a.txt", "a\n")])
        .with(|options| options.tries.backoff = Duration::from_millis(20))
}

/// Opens a project on the plan, and waits until its model was asked so many times.
async fn asked(project: &Project, times: usize) -> (OpenProject, SpecId, Build) {
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, _) = open
        .until(spec, |_, _| project.requests("T-1").len() == times)
        .await;
    (open, spec, build)
}

async fn succeeded(open: OpenProject, spec: SpecId) {
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    open.close().await;
}

/// Lets the head of a build go on, as a landing does, to a commit of other words in the file.
async fn move_head(project: &Project, open: &OpenProject, build: &Build) {
    let clone = project.state().join("repository.git");
    let aside = project.directory.path().join("aside");
    let (tree, head) = (aside.to_str().unwrap(), build.head.as_ref().unwrap());
    git(
        &clone,
        &["worktree", "add", "-q", "--detach", tree, head.as_str()],
    );
    std::fs::write(aside.join("a.txt"), "theirs\n").unwrap();
    git(&aside, &["commit", "-q", "-a", "-m", "theirs"]);
    let theirs = git(&aside, &["rev-parse", "HEAD"]);
    git(&clone, &["worktree", "remove", "--force", tree]);
    let theirs: CommitId = theirs.parse().unwrap();
    open.change_build(build.id, |build| build.head = Some(theirs.clone()))
        .await;
}

fn held(reply: &Value, until: &Path) -> Value {
    let mut reply = reply.clone();
    reply["until"] = json!(until);
    reply
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_conflict_a_prompt_holds_the_earlier_work_its_summary_and_all_failures() {
    let signals = tempfile::tempdir().unwrap();
    let go = signals.path().join("go");
    let rules = [
        refused(),
        rule(2, 1, &held(&shell("echo good of mine > a.txt"), &go)),
        rule(2, 2, &finish("Wrote the good line.")),
        taken(3),
    ];
    let project = project(&rules);
    let (open, spec, build) = asked(&project, 3).await;
    move_head(&project, &open, &build).await;
    std::fs::write(&go, "").unwrap();
    open.until(spec, |_, _| project.prompts("T-1").len() == 3)
        .await;
    let failed = open.attempts(build.id, "T-1").await.remove(0);
    assert_eq!(failed.failure.unwrap().class, FailureClass::Conflict);
    let told = project.prompts("T-1").remove(2);
    holds(
        &told,
        &[
            "### Try 1: VALIDATION_FAILED",
            REFUSED,
            "### Try 2: CONFLICT",
            "the head changed the same lines",
            "## What Was Tried Before",
            "Its agent said: Wrote the good line.",
            "Your checkout does not hold it",
            "-a\n+good of mine\n",
        ],
    );
    lacks(&told, &["Earlier Work", FIRST]);
    succeeded(open, spec).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_full_context_a_prompt_holds_the_newest_work_its_summary_and_all_failures() {
    let summed_up =
        json!({ "agent": "compaction", "reply": { "text": "Eight lines were added." } });
    let steps = (1..=8).map(|step| rule(2, step, &shell(&format!("echo line-{step} >> a.txt"))));
    let full = json!({ "error": { "kind": "context_overflow", "message": "too many tokens" } });
    let rules = [
        format!("- {summed_up}\n"),
        refused(),
        steps.collect(),
        rule(2, 9, &full),
        taken(3),
    ];
    let project = project(&rules).compacting(1_000_000);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, _) = open
        .until(spec, |_, _| project.prompts("T-1").len() == 3)
        .await;
    let failed = open.attempts(build.id, "T-1").await.remove(0);
    assert_eq!(failed.failure.unwrap().class, FailureClass::ContextFull);
    let told = project.prompts("T-1").remove(2);
    holds(
        &told,
        &[
            "### Try 1: VALIDATION_FAILED",
            REFUSED,
            "### Try 2: CONTEXT_FULL",
            "## What Was Tried Before",
            "Its agent said: Eight lines were added.",
            "Your checkout does not hold it",
            "-a\n+bad\n+line-1\n",
            "+line-8\n",
        ],
    );
    lacks(&told, &["Earlier Work"]);
    succeeded(open, spec).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_lost_lock_the_same_conversation_goes_on_with_all_that_was_said_and_failed() {
    let signals = tempfile::tempdir().unwrap();
    let go = signals.path().join("go");
    let rules = [
        refused(),
        rule(2, 1, &held(&shell("echo good > a.txt"), &go)),
        rule(2, 2, &finish("Done.")),
    ];
    let project = project(&rules);
    let (open, spec, build) = asked(&project, 3).await;
    let store = &open.services.store;
    let announce = |subject, payload| open.context.event(subject, payload);
    let mut changes = ChangeSet::new();
    let lost = locks::all_held(store).await.unwrap();
    locks::revoke(&mut changes, &lost, "others need it", &announce);
    store.commit(changes).await.unwrap();
    open.until(spec, |_, _| project.requests("T-1").len() == 4)
        .await;
    let attempts = open.attempts(build.id, "T-1").await;
    assert_eq!(attempts.len(), 2, "{attempts:?}");
    assert_eq!(attempts[0].state, AttemptState::Interrupted);
    let kept = attempts[0]
        .preserve_ref
        .as_deref()
        .expect("its work is kept");
    let clone = project.state().join("repository.git");
    assert_eq!(git(&clone, &["show", &format!("{kept}:a.txt")]), "bad");
    let told = project.requests("T-1").remove(3).text();
    holds(
        &told,
        &[
            "# BUILD TASK: T-1",
            "echo bad > a.txt",
            FIRST,
            "Not taken: VALIDATION_FAILED",
            REFUSED,
        ],
    );
    // What the conversation itself holds is not told a second time.
    lacks(&told, &["What Went Wrong Before", "What Was Tried Before"]);
    std::fs::write(&go, "").unwrap();
    succeeded(open, spec).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_begun_anew_holds_what_was_asked_and_answered_in_the_one_before() {
    let question = json!({
        "question": "Good or better?", "why": "a.txt does not say.",
        "options": [{ "label": "good", "meaning": "one word" }, { "label": "better" }],
    });
    let asks = json!({ "tools": [{ "name": "ask", "input": question }] });
    let summed_up = json!({ "agent": "compaction", "reply": { "text": "A person was asked." } });
    let full = json!({ "error": { "kind": "context_overflow", "message": "too many tokens" } });
    let rules = [
        format!("- {summed_up}\n"),
        rule(1, 1, &asks),
        rule(1, 2, &full),
        taken(2),
    ];
    let project = project(&rules).compacting(1_000_000);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let waits = |_: &Build, tasks: &[Task]| task(tasks, "T-1").state == TaskState::Waiting;
    let (build, _) = open.until(spec, waits).await;
    open.answer("T-1", "good").await;
    open.until(spec, |build, _| build.state == BuildState::Succeeded)
        .await;
    let attempts = open.attempts(build.id, "T-1").await;
    let rounds: Vec<u32> = attempts.iter().map(|one| one.round).collect();
    assert_eq!(rounds, [1, 1, 2], "{attempts:?}");
    let prompts = project.prompts("T-1");
    let of_it = [
        "## What Was Asked and Answered",
        "- Asked: The model of task T-1 asks: Good or better?\n  ada answered: good - one word",
    ];
    // The first one holds it where it was asked.
    let (last, before) = prompts.split_last().unwrap();
    for earlier in before {
        lacks(earlier, &of_it);
    }
    holds(last, &of_it);
    let asked = open.questions("multiple_implementations").await;
    assert_eq!(asked.len(), 1, "nothing is asked again");
    open.close().await;
}
