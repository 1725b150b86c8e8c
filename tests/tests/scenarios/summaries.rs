//! The program is killed while it waits for each of the calls of an attempt whose conversation is summed up twice: the next
//! one comes to the same commits, and no answer is paid twice.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_store::Query;
use ropewalk_tests::likeness::plain;
use ropewalk_tests::servers::Aimock;
use serde_json::{Value, json};

use crate::fallback::{Project, emulator};
use crate::picture::{at, git, store};
use crate::replay::{replay, requests};
use crate::running::{RunningProgram, start, stop, until_events, until_ready};

/// The steps of the agent before it says that it is done.
const STEPS: u32 = 10;
/// How long the emulator thinks before each answer, in milliseconds.
const THINKS_MS: u32 = 300;
const PATIENCE: Duration = Duration::from_mins(1);

/// Says what a model answers that thinks aloud for four thousand tokens before each line that it writes.
fn conversation() -> Value {
    let profile = json!({ "ttft": THINKS_MS, "tps": 1_000_000 });
    let answer = |matched: Value, response: Value| json!({ "match": matched, "response": response, "streamingProfile": profile, "chunkSize": 20_000 });
    let usage = json!({ "input_tokens": 900, "output_tokens": 4_000, "prompt_tokens": 900,
        "completion_tokens": 4_000, "total_tokens": 4_900 });
    let call = |number: u32, text: &str, tool: &str, arguments: Value| {
        json!({ "usage": usage, "blocks": [
            { "type": "text", "text": text },
            { "type": "toolCall", "id": format!("call_{number}"), "name": tool, "arguments": arguments } ] })
    };
    let summary = json!({ "content": "Lines were written.", "usage": usage });
    let mut fixtures = vec![answer(json!({ "systemMessage": "You sum up" }), summary)];
    let done = call(
        STEPS + 1,
        "Done.",
        "finish",
        json!({ "summary": "Wrote the lines." }),
    );
    let after = |number: u32| json!({ "toolCallId": format!("call_{number}") });
    fixtures.push(answer(after(STEPS), done));
    let thought = "x".repeat(16_000);
    for step in (1..=STEPS).rev() {
        let line = json!({ "command": format!("echo line-{step} >> a.txt") });
        let matched = match step {
            1 => json!({ "toolName": "bash" }),
            step => after(step - 1),
        };
        fixtures.push(answer(matched, call(step, &thought, "bash", line)));
    }
    json!(fixtures)
}

/// Starts the program, which makes room early if it does.
async fn up(project: &Project, makes_room: bool) -> anyhow::Result<RunningProgram> {
    // The script of the small model knows no summary, so that the model of the job is asked for it.
    let switch = format!("compaction.enabled={makes_room}");
    let settings = [
        "compaction.threshold_tokens=25000",
        "build.loops=1",
        &switch,
    ];
    let mut arguments = vec!["up"];
    for setting in settings {
        arguments.extend(["--set", setting]);
    }
    let mut up = start(&project.runner, &arguments)?;
    until_ready(project.path(), &mut up).await?;
    Ok(up)
}

/// What an attempt came to.
#[derive(Debug, PartialEq)]
struct End {
    /// What each commit says, trailers and all, and each file of its tree; ids and times are left out.
    commits: Vec<String>,
    /// The calls that were paid.
    paid: Vec<String>,
    requests: usize,
}

/// Builds, and kills the program while it waits for the answer to the request `killed_at`, if that is one.
async fn play(server: &Aimock, makes_room: bool, killed_at: Option<usize>) -> anyhow::Result<End> {
    let project = Project::new(server, server)?;
    project.approve()?;
    let before = requests(server).await?;
    let mut running = up(&project, makes_room).await?;
    if let Some(killed_at) = killed_at {
        let began = Instant::now();
        while requests(server).await? < before + killed_at {
            ensure!(began.elapsed() < PATIENCE, "no request {killed_at}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        running.0.kill()?;
        let status = running.0.wait()?;
        ensure!(status.code().is_none(), "it was not killed: {status}");
        running = up(&project, makes_room).await?;
    }
    until_events(project.path(), &mut running, "build.completed", 1).await?;
    stop(&mut running).await?;
    let repository = project.path().join("repo");
    let commits = git(&repository, &["rev-list", "--reverse", "main..build/walks"])?;
    let commits = commits.lines().map(|sha| commit(&repository, sha));
    let commits = commits.collect::<anyhow::Result<Vec<_>>>()?;
    let store = store(project.path()).await?;
    let calls = Query::new().equal("task", "T-001");
    let calls = store.list::<ModelCall>(calls).await?;
    store.close().await?;
    let mut paid = Vec::new();
    for call in calls {
        let place = call
            .key
            .split_once("/T-001/")
            .context("a call of the task")?;
        paid.push(place.1.to_owned());
    }
    paid.sort();
    Ok(End {
        commits,
        paid,
        requests: requests(server).await? - before,
    })
}

/// Writes down a commit: who made it, what it says, and its tree. The files of the idea hold times of their approval and of
/// the tasks, all others are told by the hashes of their content.
fn commit(repository: &Path, sha: &str) -> anyhow::Result<String> {
    let says = git(
        repository,
        &["show", "--no-patch", "--format=%an %ae %cn %ce%n%B", sha],
    )?;
    let mut written = plain(&says, &[]);
    let (of_idea, code): (Vec<String>, Vec<String>) = git(repository, &["ls-tree", "-r", sha])?
        .lines()
        .map(str::to_owned)
        .partition(|line| line.contains("\tideas/"));
    for file in of_idea {
        let (told, path) = file.split_once('\t').context("a file has a path")?;
        let (mode, _) = told.split_once(' ').context("a file has a mode")?;
        let text = git(repository, &["show", &format!("{sha}:{path}")])?;
        write!(written, "\n{mode} {path}: {}", plain(&text, &[]))?;
    }
    for file in code {
        written.push('\n');
        written.push_str(&file);
    }
    Ok(written)
}

#[tokio::test]
async fn a_kill_at_each_call_of_an_attempt_with_two_summaries_changes_nothing_and_pays_nothing_twice()
-> anyhow::Result<()> {
    let fixtures = tempfile::tempdir()?;
    let server = emulator(fixtures.path(), "summaries.json", &conversation())?;
    let undisturbed = play(&server, true, None).await?;
    // What is compared is there: the ideas, what the task wrote and by which trailer it is known.
    let told = undisturbed.commits.join("\n");
    for part in ["ideas/", "a.txt", "Ropewalk-Task: T-001"] {
        ensure!(told.contains(part), "{told}");
    }
    let summaries = undisturbed
        .paid
        .iter()
        .filter(|key| key.ends_with("/summary"));
    assert_eq!(summaries.count(), 2, "{undisturbed:?}");
    let calls = STEPS as usize + 3;
    assert_eq!(
        (undisturbed.paid.len(), undisturbed.requests),
        (calls, calls)
    );
    let mut in_flight = 0;
    for killed_at in 1..=calls {
        let mut again = play(&server, true, Some(killed_at)).await?;
        // The request that waited when the program was killed is the only one that was sent again; on a busy machine its
        // answer may have been written down before the kill came.
        let more = again.requests - calls;
        ensure!(more <= 1, "{more} requests more for a kill at {killed_at}");
        in_flight += more;
        again.requests = calls;
        assert_eq!(again, undisturbed, "{killed_at}");
    }
    ensure!(
        in_flight > calls / 2,
        "only {in_flight} kills met a request"
    );
    Ok(())
}

#[tokio::test]
async fn a_build_whose_conversation_was_summed_up_twice_is_done_again_and_nobody_is_asked()
-> anyhow::Result<()> {
    let fixtures = tempfile::tempdir()?;
    let server = emulator(fixtures.path(), "summaries.json", &conversation())?;
    let project = Project::new(&server, &server)?;
    project.approve()?;
    let mut running = up(&project, true).await?;
    until_events(project.path(), &mut running, "build.completed", 1).await?;
    stop(&mut running).await?;
    let asked = requests(&server).await?;
    let place = tempfile::tempdir()?;
    let (output, report) = replay(&project.runner, "walks", &place.path().join("again"))?;
    ensure!(output.status.success(), "{report}");
    assert_eq!(at(&report, "/same")?, true, "{report}");
    assert_eq!(at(&report, "/strayed")?, &Value::Null, "{report}");
    assert_eq!(requests(&server).await?, asked);
    let store = store(&place.path().join("again")).await?;
    let calls = store.list::<ModelCall>(Query::new()).await?;
    store.close().await?;
    let summaries = calls.iter().filter(|call| call.is_summary());
    assert_eq!(summaries.count(), 2);
    Ok(())
}

#[tokio::test]
async fn without_compaction_the_same_conversation_is_never_summed_up() -> anyhow::Result<()> {
    let fixtures = tempfile::tempdir()?;
    let server = emulator(fixtures.path(), "summaries.json", &conversation())?;
    let end = play(&server, false, None).await?;
    let summaries = end.paid.iter().filter(|key| key.ends_with("/summary"));
    assert_eq!(summaries.count(), 0, "{end:?}");
    assert_eq!(end.requests, STEPS as usize + 1);
    Ok(())
}
