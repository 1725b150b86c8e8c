//! What counts as progress of a job, and what is only life.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use ropewalk_engine::{AgentMode, JobEvent, Observer, tools_of};
use tokio_util::sync::CancellationToken;

use crate::support::{ScriptedEngine, job, workbench};

/// Counts what was told.
#[derive(Default)]
struct Watcher {
    steps: AtomicUsize,
    calls: AtomicUsize,
}

impl Observer for Watcher {
    fn see(&self, event: JobEvent) {
        let counter = match event {
            JobEvent::ToolStarted { .. } => &self.calls,
            JobEvent::Progressed => &self.steps,
            _ => return,
        };
        counter.fetch_add(1, Ordering::SeqCst);
    }
}

/// Returns how many calls ran and how many steps forward they were.
async fn watched(script: &str) -> anyhow::Result<(usize, usize)> {
    let scripted = ScriptedEngine::new(script).await?;
    let bench = workbench(&scripted)?;
    let lines: Vec<String> = (1..=40).map(|line| format!("line {line}\n")).collect();
    std::fs::write(
        scripted.directory.path().join("slot/notes.txt"),
        lines.concat(),
    )?;
    let job = job(tools_of(AgentMode::Implement, &bench)?);
    let watcher = Watcher::default();
    let cancel = CancellationToken::new();
    scripted.engine().run(&job, &cancel, &watcher).await?;
    let count = |count: AtomicUsize| count.into_inner();
    Ok((count(watcher.calls), count(watcher.steps)))
}

#[tokio::test]
async fn an_agent_that_chatters_and_runs_commands_to_the_same_end_makes_no_progress()
-> anyhow::Result<()> {
    let script = r#"
- { turn: 1, reply: { text: I look around., tools: [{ name: bash, input: { command: "echo 1 passed" } }] } }
- { turn: 2, reply: { text: And again., tools: [{ name: bash, input: { command: "sleep 0; echo 2 passed" } }] } }
- { turn: 3, reply: { text: Once more., tools: [{ name: bash, input: { command: "echo 37 passed" } }] } }
- { turn: 4, reply: { text: I am thinking. } }
"#;
    assert_eq!(watched(script).await?, (3, 1));
    Ok(())
}

#[tokio::test]
async fn a_changed_file_a_new_result_and_a_part_read_first_are_progress() -> anyhow::Result<()> {
    let script = r#"
- { turn: 1, reply: { tools: [{ name: read, input: { path: notes.txt, offset: 1, limit: 20 } }] } }
- { turn: 2, reply: { tools: [{ name: read, input: { path: notes.txt, offset: 5, limit: 10 } }] } }
- { turn: 3, reply: { tools: [{ name: read, input: { path: notes.txt, offset: 15, limit: 10 } }] } }
- { turn: 4, reply: { tools: [{ name: write, input: { path: src/lib.rs, content: "one\n" } }] } }
- { turn: 5, reply: { tools: [{ name: write, input: { path: src/lib.rs, content: "one\n" } }] } }
- { turn: 6, reply: { tools: [{ name: bash, input: { command: "cat src/lib.rs" } }] } }
- { turn: 7, reply: { tools: [{ name: bash, input: { command: "cat src/lib.rs; false" } }] } }
- { turn: 8, reply: { tools: [{ name: write, input: { path: elsewhere, content: "one\n" } }] } }
- { turn: 9, reply: { text: Done. } }
"#;
    // Not the part that was read before, not the write that changed nothing, not the refused one.
    assert_eq!(watched(script).await?, (8, 5));
    Ok(())
}

/// Notes what was heard of calls, in order.
#[derive(Default)]
struct CallLog(Mutex<Vec<&'static str>>);

impl Observer for CallLog {
    fn see(&self, event: JobEvent) {
        let what = match event {
            JobEvent::ToolStarted { .. } => "started",
            JobEvent::ToolUpdated { text, .. } if text.starts_with("line") => "updated",
            JobEvent::ToolEnded { .. } => "ended",
            _ => return,
        };
        let heard = self.0.lock();
        heard.unwrap_or_else(PoisonError::into_inner).push(what);
    }
}

#[tokio::test]
async fn a_tool_is_heard_before_it_has_ended() -> anyhow::Result<()> {
    let script = r#"
- { turn: 1, reply: { tools: [{ name: bash, input: { command: "for n in 1 2 3; do echo line $n; sleep 1; done" } }] } }
- { turn: 2, reply: { text: Done. } }
"#;
    let scripted = ScriptedEngine::new(script).await?;
    let job = job(tools_of(AgentMode::Implement, &workbench(&scripted)?)?);
    let heard = CallLog::default();
    let cancel = CancellationToken::new();
    scripted.engine().run(&job, &cancel, &heard).await?;
    let heard = heard.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    let updates = heard.iter().filter(|what| **what == "updated").count();
    assert!((1..=3).contains(&updates), "{heard:?}");
    assert_eq!(
        (heard.first(), heard.last()),
        (Some(&"started"), Some(&"ended"))
    );
    Ok(())
}
