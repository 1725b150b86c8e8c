//! An attempt whose conversation grows too long twice, and the end of the program at each of its calls.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use ropewalk_engine::llm::ModelError;
use ropewalk_schemas::SpecId;
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_store::Query;
use serde_json::{Value, json};

use crate::world::listener::{Fault, Hold, Pace};
use crate::world::project::{OpenProject, Project};

/// The steps of the agent before it says that it is done.
const STEPS: usize = 10;

/// An agent that thinks aloud for four thousand tokens before each line that it writes.
fn project(pace: Arc<dyn Pace>) -> Project {
    let mut script = "- { agent: compaction, reply: { text: Lines were written. } }\n".to_owned();
    let thought = "x".repeat(16_000);
    for step in 1..=STEPS {
        let input = json!({ "command": format!("echo line-{step} >> lines.txt") });
        let tools = json!([{ "name": "bash", "input": input }]);
        let reply = format!("{{ text: {thought}, tools: {tools} }}");
        writeln!(script, "- {{ agent: build, turn: {step}, reply: {reply} }}").unwrap();
    }
    script +=
        "- { agent: build, reply: { tools: [{ name: finish, input: { summary: Done. } }] } }\n";
    Project::new(&script)
        .paced_by(pace)
        .compacting(25_000)
        .with(|options| {
            options.loops = 1;
            options.tries.backoff = Duration::from_millis(20);
        })
}

async fn approve(open: &OpenProject) -> SpecId {
    let plan = json!([{
        "id": "T-1", "phase": "api", "action": "CREATE", "file": "lines.txt",
        "validation": { "command": format!("grep -q line-{STEPS} lines.txt"), "expected": "exit 0" },
    }]);
    open.approve(plan).await
}

/// Runs the build, and ends the program while it waits for the call `ended_at`, if that is one. Returns the tree that
/// the build came to, the keys of the calls that were paid, and how often the model was asked.
async fn play(ended_at: Option<usize>) -> (String, Vec<String>, usize) {
    let hold = Hold::new();
    let project = project(Arc::new(hold.clone()));
    let mut open = project.open().await;
    let spec = approve(&open).await;
    if let Some(ended_at) = ended_at {
        for _ in 1..ended_at {
            hold.called().await;
            hold.let_go();
        }
        hold.called().await;
        open.crash().await;
        open = project.open().await;
    }
    for _ in 0..3 * STEPS {
        hold.let_go();
    }
    outcome(&project, open, spec).await
}

/// Waits for the end of the build. Returns what [`play`] does.
async fn outcome(
    project: &Project,
    open: OpenProject,
    spec: SpecId,
) -> (String, Vec<String>, usize) {
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let tree = open.git(&["rev-parse", "build/habits^{tree}"]);
    let calls = open.services.store.list::<ModelCall>(Query::new()).await;
    let calls = calls.unwrap().into_iter().map(|row| row.record);
    let paths = calls.map(|call| {
        let (_, place) = call.key.split_once("/T-1/").unwrap();
        place.to_owned()
    });
    let mut paid: Vec<String> = paths.collect();
    paid.sort();
    open.close().await;
    (tree, paid, project.calls())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_ends_at_each_call_of_an_attempt_with_two_summaries_and_nothing_is_paid_twice()
{
    let (tree, paid, calls) = play(None).await;
    let summaries = paid.iter().filter(|key| key.ends_with("/summary"));
    assert_eq!(summaries.count(), 2, "{paid:?}");
    assert_eq!((paid.len(), calls), (STEPS + 3, STEPS + 3));
    for ended_at in 1..=calls {
        let again = play(Some(ended_at)).await;
        // The call that waited when the program ended is the only one that was asked again.
        assert_eq!(again, (tree.clone(), paid.clone(), calls + 1), "{ended_at}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_breaks_off_after_a_summary_is_asked_for_again_and_nothing_is_paid_twice() {
    let (tree, paid, calls) = play(None).await;
    for fault in [
        Fault::of(|call| (call == 9).then_some(ModelError::Truncated)),
        Fault::of(|call| (call == 11).then_some(ModelError::Truncated)),
    ] {
        let project = project(fault);
        let open = project.open().await;
        let spec = approve(&open).await;
        let again = outcome(&project, open, spec).await;
        assert_eq!(again, (tree.clone(), paid.clone(), calls + 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_said_holds_where_its_words_made_room_after_a_kill_too() {
    let said = "One line for each step.";
    let thought = "x".repeat(16_000);
    let rule = |attempt: usize, turn: usize, text: &str, tool: &str, input: &Value| {
        let tools = json!([{ "name": tool, "input": input }]);
        let reply = format!("{{ text: {text}, tools: {tools} }}");
        format!("- {{ agent: build, attempt: {attempt}, turn: {turn}, reply: {reply} }}\n")
    };
    let mut script = "- { agent: compaction, reply: { text: Lines were written. } }\n".to_owned();
    // Nothing is written yet.
    script += &rule(1, 1, "Done", "finish", &json!({ "summary": said }));
    for step in 1..=STEPS {
        let input = json!({ "command": format!("echo line-{step} >> lines.txt") });
        script += &rule(2, step, &thought, "bash", &input);
    }
    script += &rule(2, STEPS + 1, "Done", "finish", &json!({}));
    let hold = Hold::new();
    let project = Project::new(&script).held_by(&hold).compacting(25_000);
    let open = project.open().await;
    let spec = approve(&open).await;
    let last = ("build", 2, u32::try_from(STEPS + 1).unwrap());
    let told = loop {
        hold.called().await;
        let told = project.requests("T-1").pop().unwrap();
        let key = told.script.as_ref().unwrap();
        if (key.agent.as_str(), key.attempt, key.turn) == last {
            break told.text();
        }
        hold.let_go();
    };
    assert!(!told.contains(said), "its words are gone: {told}");
    assert!(told.contains("your summary is kept"), "{told}");
    open.crash().await;
    let open = project.open().await;
    for _ in 0..STEPS {
        hold.let_go();
    }
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let attempts = open.attempts(build.id, "T-1").await;
    assert_eq!(attempts.last().unwrap().summary.as_deref(), Some(said));
    open.close().await;
}
