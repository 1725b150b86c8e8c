//! A provider that does everything that providers do wrong, turn after turn: the files come out right, and memory stays flat.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use ropewalk_engine::{
    AgentMode, Engine, EngineError, Job, Limits, ModelEntry, ModelRole, Models, SilentObserver,
    UsageScope, Workbench, WorkbenchOptions, tools_of,
};
use ropewalk_llm::{Message, PriceTable, ProviderConfig, ScriptKey, build};
use ropewalk_runtime::Clock;
use ropewalk_schemas::RepoPath;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_store::{Location, Query, Store};
use ropewalk_workspace::{CommandRunner, Environment};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// So many calls are one job: what breaks off is gone through again from the beginning of its job.
const CALLS_OF_JOB: usize = 20;
/// How often the model answers: in ten jobs, each with its calls and one answer more.
const TURNS: usize = 10 * (CALLS_OF_JOB + 1);
/// So much more memory may be in use after all of them than after a quarter.
const GROWTH_BYTES: u64 = 48 * 1024 * 1024;

/// Stands before the number of the first turn of a job.
const FROM: &str = "Write the parts from ";

/// What the provider does wrong before it answers.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Limited,
    Overloaded,
    Hangs,
    /// The connection ends after so many bytes.
    Cut(usize),
}

/// Says what goes wrong at a turn, from 0, before the answer comes.
fn faults(turn: usize) -> Vec<Fault> {
    let mut faults = Vec::new();
    match turn % 5 {
        0 => faults.push(Fault::Limited),
        1 => faults.push(Fault::Overloaded),
        2 if turn % 100 == 2 => faults.push(Fault::Hangs),
        _ => {}
    }
    // Over all turns the cut wanders over the whole answer, its head among it.
    faults.push(Fault::Cut(turn * (answer(turn).len() - 1) / TURNS));
    faults
}

/// Says that the arguments of the call are no JSON at a turn.
fn is_broken(turn: usize) -> bool {
    turn % 5 == 4 && !ends_job(turn)
}

/// Says that the model has no more to do in its job.
fn ends_job(turn: usize) -> bool {
    turn % (CALLS_OF_JOB + 1) == CALLS_OF_JOB
}

fn file(turn: usize) -> String {
    format!("parts/{turn:03}.txt")
}

fn content(turn: usize) -> String {
    format!("part {turn}: 🪢 \"quoted\" \\ and é\n")
}

/// Returns the whole answer at a turn, head and all.
fn answer(turn: usize) -> Vec<u8> {
    let event = |value: &Value| format!("event: x\ndata: {value}\n\n");
    let mut body = event(
        &json!({ "type": "message_start", "message": { "id": "m", "model": "m",
        "content": [], "usage": { "input_tokens": 10, "output_tokens": 1 } } }),
    );
    let delta = |index: u32, delta: &Value| {
        event(&json!({ "type": "content_block_delta", "index": index, "delta": delta }))
    };
    let begin = |index: u32, block: &Value| {
        event(&json!({ "type": "content_block_start", "index": index, "content_block": block }))
    };
    let end = |index: u32| event(&json!({ "type": "content_block_stop", "index": index }));
    body += &begin(0, &json!({ "type": "text", "text": "" }));
    body += &delta(
        0,
        &json!({ "type": "text_delta", "text": format!("step {turn}") }),
    );
    body += &end(0);
    let stop = if ends_job(turn) {
        "end_turn"
    } else {
        let arguments = json!({ "path": file(turn), "content": content(turn) }).to_string();
        let written = if is_broken(turn) {
            format!("{{\"path\": \"{}\", \"content\": \"par", file(turn))
        } else {
            arguments
        };
        let call = json!({ "type": "tool_use", "id": format!("call_{turn}"), "name": "write", "input": {} });
        body += &begin(1, &call);
        let letters: Vec<char> = written.chars().collect();
        for piece in letters.chunks(12) {
            let piece: String = piece.iter().collect();
            body += &delta(
                1,
                &json!({ "type": "input_json_delta", "partial_json": piece }),
            );
        }
        body += &end(1);
        "tool_use"
    };
    body += &event(
        &json!({ "type": "message_delta", "delta": { "stop_reason": stop },
        "usage": { "output_tokens": 20 } }),
    );
    body += &event(&json!({ "type": "message_stop" }));
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body.into_bytes()].concat()
}

/// What the emulator has done.
#[derive(Default)]
struct EmulatorState {
    /// Requests by turn.
    requests: BTreeMap<usize, usize>,
    /// Connections that hang.
    hanging: Vec<TcpStream>,
    /// Where answers were cut.
    cuts: BTreeSet<usize>,
}

/// Serves for as long as the process lives; returns the address.
fn serve(done: Arc<Mutex<EmulatorState>>) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}", listener.local_addr()?);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            // Who has gone away needs no answer.
            drop(respond(stream, &mut done));
        }
    });
    Ok(address)
}

/// Says which turn is asked for: the first one of the job, and one more for each result.
fn turn_of(request: &str) -> Option<usize> {
    let (_, first) = request.split_once(FROM)?;
    let first = first.split(' ').next()?.parse::<usize>().ok()?;
    Some(first + request.matches("\"tool_result\"").count())
}

fn respond(mut stream: TcpStream, done: &mut EmulatorState) -> Result<()> {
    let request = read(&mut stream)?;
    let turn = turn_of(&request).context("no turn")?;
    let request = done.requests.entry(turn).or_default();
    let fault = faults(turn).get(*request).copied();
    *request += 1;
    let page = |status: &str, kind: &str| {
        let body =
            json!({ "type": "error", "error": { "type": kind, "message": "not now" } }).to_string();
        format!(
            "HTTP/1.1 {status}\r\nretry-after: 2\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
    };
    match fault {
        None => stream.write_all(&answer(turn))?,
        Some(Fault::Limited) => {
            stream.write_all(page("429 Too Many Requests", "rate_limit_error").as_bytes())?;
        }
        Some(Fault::Overloaded) => {
            stream.write_all(page("529 Overloaded", "overloaded_error").as_bytes())?;
        }
        Some(Fault::Hangs) => done.hanging.push(stream),
        Some(Fault::Cut(end)) => {
            done.cuts.insert(end);
            stream.write_all(&answer(turn)[..end])?;
        }
    }
    Ok(())
}

/// Reads a request to its end.
fn read(stream: &mut TcpStream) -> Result<String> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut bytes = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let count = stream.read(&mut piece)?;
        ensure!(count > 0, "the request was cut");
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse::<usize>().ok())?
        });
        if body.len() >= length.context("a length")? {
            return Ok(body.to_owned());
        }
    }
}

/// Begins with the files as they were before the attempt, as a slot does.
fn job(directory: &Path, first: usize) -> Result<Job> {
    let slot = slot(directory, first);
    if slot.exists() {
        std::fs::remove_dir_all(&slot)?;
    }
    std::fs::create_dir_all(&slot)?;
    let writable = (0..TURNS).map(|turn| RepoPath::parse(&file(turn)));
    let bench = Workbench::open(WorkbenchOptions {
        writable: writable.collect::<Result<_, _>>()?,
        runner: CommandRunner::new(Environment::from_pairs([("PATH", "/usr/bin:/bin")])),
        ..WorkbenchOptions::looking(slot, directory.join("spill"))
    })?;
    Ok(Job {
        journal_key: format!("attempt/{first}"),
        role: ModelRole::Build,
        script: ScriptKey::default(),
        scope: UsageScope::default(),
        system: "You build.".to_owned(),
        messages: vec![Message::user(format!("{FROM}{first} on."))],
        tools: tools_of(AgentMode::Implement, &bench)?,
        submission: None,
        limits: Limits {
            turns: 2 * u32::try_from(CALLS_OF_JOB)?,
            ..Limits::default()
        },
    })
}

/// Returns how much memory this process has in use.
fn resident_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(kilobytes.context("VmRSS")?.parse::<u64>()? * 1024)
}

/// Returns where the files of a job are.
fn slot(directory: &Path, first: usize) -> PathBuf {
    directory.join(format!("slot-{first}"))
}

/// Asks on and on; a reply that broke off ends a run, and the next one goes on from the journal. Returns how often that
/// was, and how much memory was in use after a quarter of the jobs.
async fn until_done(engine: &Engine, directory: &Path) -> Result<(usize, u64)> {
    let cancel = CancellationToken::new();
    let (mut broke_off, mut early) = (0, 0);
    for first in (0..TURNS).step_by(CALLS_OF_JOB + 1) {
        loop {
            let job = job(directory, first)?;
            match engine.run(&job, &cancel, &SilentObserver).await {
                Ok(_) => break,
                Err(EngineError::Model(_)) => broke_off += 1,
                Err(error) => bail!("it ended with {error}"),
            }
            ensure!(broke_off < 2 * TURNS, "it never comes to an end");
        }
        if early == 0 && first > TURNS / 4 {
            early = resident_bytes()?;
        }
    }
    Ok((broke_off, early))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_turns_of_a_provider_that_does_everything_wrong_give_the_right_files_in_flat_memory()
-> Result<()> {
    let done = Arc::new(Mutex::new(EmulatorState::default()));
    let clock = Clock::manual(chrono::DateTime::UNIX_EPOCH);
    let mut config = ProviderConfig::shipped("anthropic")?;
    config.base_url = serve(done.clone())?;
    // Longer than a busy machine stands still: whoever is taken for hanging is asked once too often.
    config.timeouts.idle_seconds = 6;
    let model = build(&config, Some("k".into()), None, &clock)?;
    let directory = tempfile::tempdir()?;
    let location = Location::Sqlite(directory.path().join("store.db"));
    let store = Store::open(&location, Clock::system()).await?;
    let models = Models::all(ModelEntry {
        model,
        name: "m".to_owned(),
        prices: PriceTable::default(),
        window_tokens: None,
        sees_images: true,
    });
    let engine = Engine::new(store.clone(), models, Clock::system());
    let time = async {
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            clock.advance(Duration::from_millis(200));
        }
    };
    let (broke_off, early) = tokio::select! {
        ended = until_done(&engine, directory.path()) => ended?,
        () = time => bail!("time has no end"),
    };

    for turn in (0..TURNS).filter(|turn| !ends_job(*turn)) {
        let slot = slot(directory.path(), turn - turn % (CALLS_OF_JOB + 1));
        let found = std::fs::read_to_string(slot.join(file(turn)));
        if is_broken(turn) {
            ensure!(
                found.is_err(),
                "{turn} was written by arguments that are no JSON"
            );
        } else {
            assert_eq!(found?, content(turn), "{turn}");
        }
    }
    let calls = store.list::<ModelCall>(Query::new()).await?;
    let kept = calls.iter().filter(|call| call.refusal.is_none()).count();
    assert_eq!(kept, TURNS, "every answer is paid once");
    store.close().await?;
    let done = done.lock().unwrap_or_else(PoisonError::into_inner);
    for (turn, requests) in &done.requests {
        // An answer that is cut behind its last word and its reason is whole.
        let missing = usize::from(*turn > TURNS * 9 / 10);
        let most = faults(*turn).len() + 1;
        ensure!(
            (most - missing..=most).contains(requests),
            "{turn}: {requests}"
        );
    }
    assert_eq!(done.requests.len(), TURNS);
    ensure!(done.cuts.len() > TURNS / 2 && done.hanging.len() > TURNS / 100);
    ensure!(broke_off > 50, "only {broke_off} replies broke off");
    let after = resident_bytes()?;
    ensure!(
        after < early + GROWTH_BYTES,
        "{early} bytes after a quarter of the turns, {after} in the end"
    );
    Ok(())
}
