//! A build that ran is done again from its journal: the same commits, and nobody is asked.

mod allowed;

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::Instant;

use anyhow::{Context, ensure};
use ropewalk_runtime::http;
use ropewalk_schemas::TaskId;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::task::Task;
use ropewalk_store::{ChangeSet, Query, Versioned};
use ropewalk_tests::program::Runner;
use ropewalk_tests::repository;
use ropewalk_tests::servers::Aimock;
use serde_json::{Value, json};

use crate::fallback::{Project as Walks, emulator, taken_over};
use crate::picture::{at, git, store};
use crate::project::{LINES, PATIENCE, Project, TASKS, identity, rule};
use crate::running::{finish, start, stop, until_events, until_ready};

fn calls(number: u32, tool: &str, arguments: &Value) -> Value {
    json!({
        "blocks": [{ "type": "toolCall", "id": format!("call_{number}"), "name": tool, "arguments": arguments }],
        "usage": { "input_tokens": 900, "output_tokens": 120, "prompt_tokens": 900,
                   "completion_tokens": 120, "total_tokens": 1020 },
    })
}

/// Says what a model answers that hands in an empty file first, is sent back, looks around and mends it.
fn conversation() -> Value {
    let after = |number: u32| json!({ "toolCallId": format!("call_{number}") });
    let write = |text: &str| json!({ "path": "a.txt", "content": text });
    let look = json!({ "command": "date +%FT%TZ; pwd; cat /proc/sys/kernel/random/uuid; ls" });
    json!([
        { "match": after(5), "response": { "content": "there is no more" } },
        { "match": after(4), "response": calls(5, "finish", &json!({ "summary": "Wrote a walk." })) },
        { "match": after(3), "response": calls(4, "write", &write("a walk\n")) },
        { "match": after(2), "response": calls(3, "bash", &look) },
        { "match": after(1), "response": calls(2, "finish", &json!({ "summary": "Wrote the list." })) },
        { "match": { "toolName": "write" }, "response": calls(1, "write", &write("")) },
    ])
}

/// Returns how many requests an emulator has got.
pub(crate) async fn requests(server: &Aimock) -> anyhow::Result<usize> {
    Ok(journal(server).await?.len())
}

/// Returns the requests that an emulator has got.
async fn journal(server: &Aimock) -> anyhow::Result<Vec<Value>> {
    let client = http::client(http::ClientOptions::default())?;
    let url = format!("{}/__aimock/journal", server.url());
    let journal: Value = client.get(url).send().await?.json().await?;
    let requests = journal.as_array().context("a list of requests")?;
    Ok(requests.clone())
}

/// Replays a build; returns what the program said.
pub(crate) fn replay(runner: &Runner, build: &str, into: &Path) -> anyhow::Result<(Output, Value)> {
    let into = into.display().to_string();
    let output = runner.run(
        &["build", "replay", build, "--into", &into, "--json"],
        PATIENCE,
    )?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let report = serde_json::from_str(&said);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((output, report.with_context(|| format!("{said}{errors}"))?))
}

fn history(repository: &Path, branch: &str) -> anyhow::Result<Vec<String>> {
    let range = format!("main..{branch}");
    let log = git(repository, &["log", "--reverse", "--format=%H", &range])?;
    Ok(log.lines().map(str::to_owned).collect())
}

/// Compares all commits but the last, which holds when the tasks were complete: of that all else is the same.
fn check_same(had: &Path, has: &Path, branch: &str) -> anyhow::Result<()> {
    let (before, after) = (history(had, branch)?, history(has, branch)?);
    assert_eq!(before.len(), after.len());
    assert_eq!(before[..before.len() - 1], after[..after.len() - 1]);
    let files = |repository: &Path| {
        let tree = git(repository, &["ls-tree", "-r", branch])?;
        let others = tree
            .lines()
            .filter(|line| !line.ends_with("build/tasks.md"));
        anyhow::Ok(others.map(str::to_owned).collect::<Vec<_>>())
    };
    assert_eq!(files(had)?, files(has)?);
    Ok(())
}

/// Replaces what the journal of a build holds of its `turn`.
async fn rewrite(
    directory: &Path,
    turn: u32,
    change: impl Fn(&Versioned<ModelCall>, &mut ChangeSet),
) -> anyhow::Result<()> {
    let store = store(directory).await?;
    let calls = store.list::<ModelCall>(Query::new()).await?;
    let end = format!("T-001/1/{turn}");
    let call = calls.iter().find(|call| call.key.ends_with(&end));
    let mut changes = ChangeSet::new();
    change(call.context("the call")?, &mut changes);
    store.commit(changes).await?;
    Ok(store.close().await?)
}

/// Builds what the emulator says.
async fn built(server: &Aimock) -> anyhow::Result<Walks> {
    built_in(Walks::new(server, server)?).await
}

async fn built_in(project: Walks) -> anyhow::Result<Walks> {
    project.approve()?;
    let mut up = start(&project.runner, &["up"])?;
    until_ready(project.path(), &mut up).await?;
    until_events(project.path(), &mut up, "build.completed", 1).await?;
    stop(&mut up).await?;
    Ok(project)
}

/// Lets the task of a build wait for one that joins branches, as where heads stand against each other.
async fn put_behind_a_joining_task(directory: &Path) -> anyhow::Result<()> {
    let store = store(directory).await?;
    let build = store.list::<Build>(Query::new()).await?.remove(0).record;
    let row = store.list::<Task>(Query::new()).await?.remove(0);
    let mut task = row.record.clone();
    let mut block = task.block.clone();
    block.id = TaskId::parse("MERGE-1")?;
    task.block.depends_on.push(block.id.clone());
    let joining = Task {
        joins: build.base,
        ..Task::planned(build.id, 2, block)
    };
    let mut changes = ChangeSet::new();
    changes.update(&row, &task);
    changes.insert(&joining);
    store.commit(changes).await?;
    Ok(store.close().await?)
}

/// A task that joined branches is none of the plan: nothing waits for it when the build is done again.
#[tokio::test]
async fn what_waited_for_a_task_that_joins_is_done_again_without_it() -> anyhow::Result<()> {
    let fixtures = tempfile::tempdir()?;
    let server = emulator(fixtures.path(), "one.json", &conversation())?;
    let project = built(&server).await?;
    put_behind_a_joining_task(project.path()).await?;
    let place = tempfile::tempdir()?;
    let (output, report) = replay(&project.runner, "walks", &place.path().join("again"))?;
    ensure!(output.status.success(), "{report}");
    assert_eq!(at(&report, "/same")?, true, "{report}");
    Ok(())
}

/// Replays a build that succeeded; it comes to the same, and each request is what it was.
fn check_replay(project: &Walks) -> anyhow::Result<()> {
    let builds = project.json("build list")?;
    assert_eq!(at(&builds, "/0/state")?, "succeeded", "{builds}");
    let place = tempfile::tempdir()?;
    let into = place.path().join("again");
    let (output, report) = replay(&project.runner, "walks", &into)?;
    ensure!(output.status.success(), "{report}");
    assert_eq!(at(&report, "/same")?, true, "{report}");
    assert_eq!(at(&report, "/strayed")?, &Value::Null, "{report}");
    check_same(
        &project.path().join("repo"),
        &into.join("repo"),
        "build/walks",
    )
}

/// How long a reply may be depends on the window: with one that has no room for the longest, each request says so again.
#[tokio::test]
async fn a_build_with_a_narrow_window_is_done_again_by_the_same_requests() -> anyhow::Result<()> {
    let fixtures = tempfile::tempdir()?;
    let server = emulator(fixtures.path(), "one.json", &conversation())?;
    let project = Walks::new(&server, &server)?;
    let file = project.path().join("ropewalk.toml");
    let narrow = "[providers.anthropic]\nwindow_tokens = 32768\n";
    let settings = fs::read_to_string(&file)?;
    let narrowed = settings.replace("[providers.anthropic]\n", narrow);
    ensure!(narrowed != settings, "no window to narrow in {settings}");
    fs::write(file, narrowed)?;
    let project = built_in(project).await?;
    // What a window leaves for a reply at least, in place of the longest reply.
    let asked = journal(&server).await?;
    let is_short = |request: &Value| request["body"]["max_tokens"] == 16_384;
    ensure!(asked.iter().any(is_short), "no reply had to be shorter");
    let store = store(project.path()).await?;
    let calls = store.list::<ModelCall>(Query::new().equal("role", "build"));
    let is_cut = calls.await?.iter().any(|call| call.compaction.is_some());
    store.close().await?;
    ensure!(!is_cut, "the window is too narrow for the conversation");
    check_replay(&project)
}

/// Both providers are gone by now.
#[tokio::test]
async fn a_build_that_another_provider_ended_is_done_again_by_the_same_requests()
-> anyhow::Result<()> {
    check_replay(&taken_over().await?)
}

#[tokio::test]
async fn a_build_that_ran_is_done_again_to_the_same_commits_and_nobody_is_asked()
-> anyhow::Result<()> {
    let fixtures = tempfile::tempdir()?;
    let server = emulator(fixtures.path(), "one.json", &conversation())?;
    let project = built(&server).await?;
    let builds = project.json("build list")?;
    assert_eq!(at(&builds, "/0/state")?, "succeeded", "{builds}");
    let build = at(&builds, "/0/id")?.as_str().context("an id")?.to_owned();
    let asked = requests(&server).await?;

    let place = tempfile::tempdir()?;
    let into = place.path().join("again");
    let (output, report) = replay(&project.runner, &build, &into)?;
    ensure!(output.status.success(), "{report}");
    assert_eq!(at(&report, "/same")?, true, "{report}");
    assert_eq!(at(&report, "/strayed")?, &Value::Null, "{report}");
    check_same(
        &project.path().join("repo"),
        &into.join("repo"),
        "build/walks",
    )?;
    assert_eq!(requests(&server).await?, asked);
    let store = store(&into).await?;
    assert_eq!(store.count::<ModelCall>(Query::new()).await?, 5);
    store.close().await?;

    // There is no second replay in the same place.
    let place_taken = into.display().to_string();
    let again = ["build", "replay", &build, "--into", &place_taken];
    let refused = project.runner.run(&again, PATIENCE)?;
    assert_eq!(refused.status.code(), Some(1));

    check_differences(&project, &build, place.path()).await?;
    assert_eq!(requests(&server).await?, asked);
    Ok(())
}

/// Another result of a tool is named, another answer comes to other commits, and a missing one ends the replay.
async fn check_differences(project: &Walks, build: &str, place: &Path) -> anyhow::Result<()> {
    rewrite(project.path(), 4, |row, changes| {
        let mut call = row.record.clone();
        if let Some(asked) = &mut call.asked {
            asked.since[0] = "0".repeat(16);
        }
        changes.update(row, &call);
    })
    .await?;
    let (output, report) = replay(&project.runner, build, &place.join("strayed"))?;
    ensure!(output.status.success(), "{report}");
    assert_eq!(at(&report, "/strayed/task")?, "T-001");
    assert_eq!(at(&report, "/strayed/turn")?, 4);
    let what = at(&report, "/strayed/what")?.as_str().context("a text")?;
    ensure!(what.starts_with("the result of `bash` differs"), "{what}");

    rewrite(project.path(), 4, |row, changes| {
        let mut call = row.record.clone();
        call.reply["blocks"][0]["tool_use"]["input"]["content"] = json!("another walk\n");
        changes.update(row, &call);
    })
    .await?;
    let (output, report) = replay(&project.runner, build, &place.join("other"))?;
    ensure!(!output.status.success(), "{report}");
    assert_eq!(at(&report, "/same")?, false);
    let differs = at(&report, "/differs")?.as_str().context("a text")?;
    ensure!(differs.contains("T-001"), "{differs}");

    rewrite(project.path(), 5, |row, changes| {
        changes.delete(row);
    })
    .await?;
    let (output, report) = replay(&project.runner, build, &place.join("missing"))?;
    ensure!(!output.status.success(), "{report}");
    let differs = at(&report, "/differs")?.as_str().context("a text")?;
    ensure!(
        differs.contains("`T-001`") && differs.contains("turn"),
        "{differs}"
    );
    Ok(())
}

/// Two loops built side by side; the replay does one task after the other, as they landed.
#[tokio::test]
async fn a_build_of_several_loops_is_done_again_in_the_order_in_which_it_landed()
-> anyhow::Result<()> {
    let project = Project::new()?;
    let opening = "I want to build a habit tracking app";
    project.verb(&["idea", "new", opening, "--slug", "habits"], "")?;
    project
        .runner
        .run_with_input(&["idea", "chat", "habits"], LINES, PATIENCE)?;
    let made = project.verb(&["spec", "generate", "habits"], "")?;
    let (id, hash) = identity(&made)?;
    project.verb(&["spec", "approve", &id, "--hash", &hash], "")?;
    finish(&project.runner, project.path(), 1).await?;
    let store = store(project.path()).await?;
    let build = store.list::<Build>(Query::new()).await?.remove(0).record.id;
    store.close().await?;

    let place = tempfile::tempdir()?;
    let into = place.path().join("again");
    let (output, report) = replay(&project.runner, &build.to_string(), &into)?;
    ensure!(output.status.success(), "{report}");
    assert_eq!(at(&report, "/same")?, true, "{report}");
    let commits = at(&report, "/commits")?.as_array().context("commits")?;
    assert_eq!(commits.len(), TASKS + 2);
    check_same(&project.repository(), &into.join("repo"), "build/habits")
}

/// Plans a task for each of two ideas, both on the same file.
fn two_ideas() -> String {
    let mut rules = Vec::new();
    for (idea, task) in [("walks", "T-001"), ("rivers", "T-002")] {
        let check = format!("grep -q {idea} a.txt");
        let plan = json!({
            "document": {
                "title": idea, "context_read": [], "missing_inputs": [], "objective": "Keep a list.",
                "success_criteria": ["it is there"], "out_of_scope": [],
                "requirements": [{ "id": "FR-1", "text": "It is listed.", "priority": "must",
                    "acceptance": "it is there", "source": "planning/brief.md" }],
                "quality": [], "new_files": [], "modified_files": [], "avoid_files": [], "interfaces": [],
                "data": [], "dependencies": [], "gotchas": [], "validation": [check], "risks": [] },
            "tasks": [{ "id": task, "phase": "api", "action": "UPDATE", "file": "a.txt",
                "requirements": [{ "id": "FR-1", "text": "List it." }], "gotchas": [], "depends_on": [],
                "validation": { "command": check, "expected": "exit 0" } }],
        });
        let of_idea = json!({ "agent": "specification", "idea": idea });
        rules.push(rule(&of_idea, "specification", &plan));
        let turn = |turn: u32| json!({ "agent": "build", "task": task, "turn": turn });
        let append = json!({ "command": format!("echo {idea} >> a.txt") });
        rules.push(rule(&turn(1), "bash", &append));
        let done = json!({ "summary": format!("Listed {idea}.") });
        rules.push(rule(&turn(2), "finish", &done));
    }
    Value::Array(rules).to_string()
}

/// The second build wants a file of the first, waits until that is merged, and joins it before it goes on.
#[tokio::test]
async fn a_build_that_joined_the_work_of_another_is_done_again_to_the_same_commits()
-> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().to_owned();
    repository::begin(&path.join("repo"), &[("a.txt", "a\n")])?;
    fs::write(path.join("ropewalk.toml"), repository::SCRIPTED)?;
    fs::write(path.join("script.yaml"), two_ideas())?;
    let project = Walks::at(directory, Runner::new(&path));
    for idea in ["walks", "rivers"] {
        project.begin(idea)?;
    }
    project.specify("walks")?;
    let mut up = start(&project.runner, &["up"])?;
    until_ready(&path, &mut up).await?;
    // The second comes once the first owns the file, or it might own that first.
    project.run("build wait walks --at-most 100")?;
    project.specify("rivers")?;
    until_events(&path, &mut up, "build.started", 2).await?;
    let waits = |show: &Value| show["tasks"][0]["waiting_for"] == "owner";
    let began = Instant::now();
    while !waits(&project.json("build show rivers")?) {
        ensure!(began.elapsed() < PATIENCE, "it does not wait");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    project.run("build land walks")?;
    project.run("build wait rivers --at-most 100")?;
    stop(&mut up).await?;
    let repository = path.join("repo");
    let joins = git(
        &repository,
        &["log", "--merges", "--format=%s", "build/rivers"],
    )?;
    assert_eq!(joins, "Join the head of build/walks");

    let place = tempfile::tempdir()?;
    let into = place.path().join("again");
    let (output, report) = replay(&project.runner, "rivers", &into)?;
    ensure!(output.status.success(), "{report}");
    assert_eq!(at(&report, "/same")?, true, "{report}");
    assert_eq!(at(&report, "/strayed")?, &Value::Null, "{report}");
    let joined = ["log", "--merges", "--format=%H", "build/rivers"];
    assert_eq!(
        git(&repository, &joined)?,
        git(&into.join("repo"), &joined)?
    );
    Ok(())
}
