//! How tools run inside a job.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ropewalk_engine::{AgentMode, EngineError, SilentObserver, Tool, Toolbox, tools_of};
use tokio_util::sync::CancellationToken;

use crate::support::{Counter, ScriptedEngine, job, workbench};

#[tokio::test]
async fn safe_calls_run_side_by_side_and_others_alone_in_their_order() -> anyhow::Result<()> {
    let calls = ["look", "look", "change", "look"]
        .map(|name| format!("{{ name: {name}, input: {{ n: 1 }} }}"))
        .join(", ");
    let script = format!(
        "- {{ turn: 1, reply: {{ tools: [{calls}] }} }}\n- {{ turn: 2, reply: {{ text: done }} }}"
    );
    let scripted = ScriptedEngine::new(&script).await?;
    let running: Arc<AtomicUsize> = Arc::default();
    let look = Counter::safe("look", &running);
    let change = Counter::alone("change", &running);
    let tools: [Arc<dyn Tool>; 2] = [look.clone(), change.clone()];
    scripted.run(&job(Toolbox::new(tools)?)).await?;
    assert_eq!(look.peak.load(Ordering::SeqCst), 2);
    assert_eq!(change.peak.load(Ordering::SeqCst), 1);
    let told: Vec<String> = scripted
        .last_results()
        .into_iter()
        .map(|(text, _)| text)
        .collect();
    assert_eq!(told.len(), 4);
    assert!(told[2].starts_with("change"));
    assert_eq!(told[3], "look 1 run 3");
    Ok(())
}

#[tokio::test]
async fn of_twelve_safe_calls_eight_run_at_a_time() -> anyhow::Result<()> {
    let calls: Vec<String> = (1..=12)
        .map(|number| format!("{{ name: look, input: {{ n: {number} }} }}"))
        .collect();
    let calls = calls.join(", ");
    let script = format!(
        "- {{ turn: 1, reply: {{ tools: [{calls}] }} }}\n- {{ turn: 2, reply: {{ text: done }} }}"
    );
    let scripted = ScriptedEngine::new(&script).await?;
    let look = Counter::safe("look", &Arc::default());
    scripted
        .run(&job(Toolbox::new([look.clone() as Arc<dyn Tool>])?))
        .await?;
    assert_eq!(look.peak.load(Ordering::SeqCst), 8);
    let told = scripted.last_results().into_iter().enumerate();
    for (at, (text, _)) in told {
        let begins = format!("look {} ", at + 1);
        assert!(text.starts_with(&begins), "{text}");
    }
    assert_eq!(scripted.last_results().len(), 12);
    Ok(())
}

#[tokio::test]
async fn a_tool_that_ends_the_work_ends_it_at_once() -> anyhow::Result<()> {
    let scripted =
        ScriptedEngine::new("- reply: { tools: [{ name: end }, { name: look }] }").await?;
    let running: Arc<AtomicUsize> = Arc::default();
    let look = Counter::safe("look", &running);
    let tools: [Arc<dyn Tool>; 2] = [Counter::alone("end", &running), look.clone()];
    let ended = scripted.run(&job(Toolbox::new(tools)?)).await;
    assert!(matches!(ended, Err(EngineError::Ended { reason }) if reason == "the files are gone"));
    assert_eq!(look.runs.load(Ordering::SeqCst), 0);
    assert_eq!(scripted.requests().len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_task_is_worked_on_with_the_built_in_tools() -> anyhow::Result<()> {
    let scripted = ScriptedEngine::new(
        r#"
- turn: 1
  reply:
    tools:
      - { name: ls }
      - { name: write, input: { path: src/lib.rs, content: "fn one() -> i32 { 2 }\n" } }
      - { name: write, input: { path: Cargo.toml, content: "" } }
- turn: 2
  contains: ["wrote `src/lib.rs`", "`Cargo.toml` is not one of the files"]
  reply:
    tools:
      - { name: edit, input: { path: src/lib.rs, old_text: "{ 2 }", new_text: "{ 1 }" } }
      - { name: bash, input: { command: "cat src/lib.rs" } }
- turn: 3
  contains: "fn one() -> i32 { 1 }"
  reply: { text: Written. }
"#,
    )
    .await?;
    let outcome = scripted
        .run(&job(tools_of(
            AgentMode::Implement,
            &workbench(&scripted)?,
        )?))
        .await?;
    assert_eq!((outcome.text.as_str(), outcome.tool_calls), ("Written.", 5));
    let slot = scripted.directory.path().join("slot");
    assert_eq!(
        std::fs::read_to_string(slot.join("src/lib.rs"))?,
        "fn one() -> i32 { 1 }\n"
    );
    assert!(!slot.join("Cargo.toml").exists());
    let offered: Vec<String> = scripted.requests()[0]
        .tools
        .iter()
        .map(|tool| tool.name.clone())
        .collect();
    assert_eq!(
        offered,
        [
            "bash",
            "code_outline",
            "edit",
            "glob",
            "grep",
            "ls",
            "read",
            "todo_read",
            "todo_write",
            "write"
        ]
    );
    Ok(())
}

#[tokio::test]
async fn cancelling_a_job_ends_its_command_and_all_its_children() -> anyhow::Result<()> {
    let command = "sleep 60 & echo $! > child.new; mv child.new child; sleep 60";
    let scripted = ScriptedEngine::new(&format!(
        "- reply: {{ tools: [{{ name: bash, input: {{ command: '{command}' }} }}] }}"
    ))
    .await?;
    let job = job(tools_of(AgentMode::Implement, &workbench(&scripted)?)?);
    let cancel = CancellationToken::new();
    let engine = scripted.engine();
    let run = engine.run(&job, &cancel, &SilentObserver);
    let child = scripted.directory.path().join("slot/child");
    // Only the file system says that the command is under way.
    // Far below the minute of the command, and far above what a busy machine takes.
    let bound = Duration::from_secs(20);
    let stop = async {
        let deadline = Instant::now() + bound;
        while !child.exists() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let begun = child.exists();
        cancel.cancel();
        (begun, Instant::now())
    };
    let (ended, (begun, cancelled_at)) = tokio::join!(run, stop);
    assert!(begun, "the command never began");
    assert!(matches!(ended, Err(EngineError::Cancelled)));
    assert!(cancelled_at.elapsed() <= bound, "the job ended too late");
    let deadline = Instant::now() + bound;
    let process = format!("/proc/{}/stat", std::fs::read_to_string(&child)?.trim());
    // A dead process may stay listed until it is reaped.
    while std::fs::read_to_string(&process).is_ok_and(|stat| !stat.contains(") Z ")) {
        anyhow::ensure!(Instant::now() < deadline, "the child still runs");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

#[tokio::test]
async fn cancelling_a_job_ends_a_call_of_the_model() -> anyhow::Result<()> {
    let scripted = ScriptedEngine::new("- reply: { text: late, delay_ms: 60000 }").await?;
    let cancel = CancellationToken::new();
    let engine = scripted.engine();
    let job = job(Toolbox::default());
    let run = engine.run(&job, &cancel, &SilentObserver);
    let stop = async {
        while scripted.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (ended, ()) = tokio::join!(run, stop);
    assert!(matches!(ended, Err(EngineError::Cancelled)));
    Ok(())
}
