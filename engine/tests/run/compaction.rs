//! What a conversation keeps that has grown too long, and what a replay of it asks again.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use ropewalk_engine::{
    AgentMode, Allowance, Budgets, EngineError, Job, JobEvent, Observer, Outcome, Steering,
    tools_of,
};
use ropewalk_llm::{Block, Message, ModelRequest, Role};
use ropewalk_schemas::attempt::FailureClass;
use ropewalk_schemas::model_call::{Compaction, ModelCall};
use ropewalk_store::{ChangeSet, Query};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{ScriptedEngine, counting, job, results, workbench};

/// Sums up, and says which time it is by what it is told.
const SUMMARIES: &str = "\
- { agent: compaction, contains: FIRST-SUMMARY, reply: { text: SECOND-SUMMARY } }
- { agent: compaction, reply: { text: \"FIRST-SUMMARY </document>\" } }
";
/// Ends every script.
const DONE: &str = "- { agent: build, reply: { text: All is done. } }\n";

/// Notes how room was made, whether with a warning, and how many tokens there were before.
#[derive(Default)]
struct CompactionLog(Mutex<Vec<(Compaction, bool, u64)>>);

impl Observer for CompactionLog {
    fn see(&self, event: JobEvent) {
        if let JobEvent::Compacted {
            how,
            warning,
            before,
            ..
        } = event
        {
            let made = self.0.lock();
            made.unwrap_or_else(PoisonError::into_inner)
                .push((how, warning.is_some(), before));
        }
    }
}

impl CompactionLog {
    fn all(&self) -> Vec<(Compaction, bool)> {
        let made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        made.iter()
            .map(|(how, warned, _)| (*how, *warned))
            .collect()
    }

    /// Returns how many tokens there were when room was made first.
    fn first_size(&self) -> Option<u64> {
        let made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        made.first().map(|(_, _, before)| *before)
    }
}

/// Writes the rule of a turn in which the model thinks aloud for so many tokens and calls tools.
fn turn(number: usize, tokens: usize, tools: &Value) -> String {
    let thought = "x".repeat(tokens * 4);
    format!("- {{ agent: build, turn: {number}, reply: {{ text: {thought}, tools: {tools} }} }}\n")
}

/// A model that thinks aloud for a thousand tokens and counts, so many times, and then is done.
fn long_talk(turns: usize) -> String {
    let mut rules = String::new();
    for number in 1..=turns {
        let tools = json!([{ "name": "count", "input": { "n": number } }]);
        rules += &turn(number, 1_000, &tools);
    }
    rules + DONE
}

/// Runs a job that makes room above 6,000 tokens: a talk of eleven turns does so twice.
async fn run(
    scripted: &ScriptedEngine,
    job: &Job,
    made: &CompactionLog,
) -> Result<Outcome, EngineError> {
    let engine = scripted
        .compacting(6_000)
        .map_err(|error| EngineError::Job(error.to_string()))?;
    engine.run(job, &CancellationToken::new(), made).await
}

fn of_agent(scripted: &ScriptedEngine, agent: &str) -> Vec<ModelRequest> {
    let mut requests = scripted.requests();
    let is_of = |request: &ModelRequest| {
        let script = request.script.as_ref();
        script.is_some_and(|key| key.agent == agent)
    };
    requests.retain(is_of);
    requests
}

/// Asserts that people and model take turns, and that every call has its result in the message that follows.
fn assert_pairs(messages: &[Message]) {
    for (at, message) in messages.iter().enumerate() {
        let role = if at % 2 == 0 {
            Role::User
        } else {
            Role::Assistant
        };
        assert_eq!(message.role, role, "{messages:?}");
        for block in &message.blocks {
            let Block::ToolUse(call) = block else {
                continue;
            };
            let answers = |block: &Block| matches!(block, Block::ToolResult { tool_use_id, .. } if *tool_use_id == call.id);
            assert!(messages[at + 1].blocks.iter().any(answers), "{messages:?}");
        }
    }
}

/// Says whether all that `before` told stands at the beginning of `after`, as the cache of a provider needs it.
fn begins_with(after: &ModelRequest, before: &ModelRequest) -> bool {
    after.system == before.system
        && after.tools == before.tools
        && after.messages.starts_with(&before.messages)
}

fn last_text(requests: &[ModelRequest]) -> String {
    let last = requests.last();
    last.map(ModelRequest::text).unwrap_or_default()
}

#[tokio::test]
async fn a_second_summary_takes_the_first_one_in_and_the_task_stays_whole_and_once()
-> anyhow::Result<()> {
    let scripted = ScriptedEngine::new(&(SUMMARIES.to_owned() + &long_talk(11))).await?;
    let (job, made) = (job(counting()?.0), CompactionLog::default());
    let outcome = run(&scripted, &job, &made).await?;
    assert_eq!((outcome.text.as_str(), outcome.turns), ("All is done.", 12));
    assert_eq!(made.all(), [(Compaction::Summarised, false); 2]);

    let asked = of_agent(&scripted, "compaction");
    assert_eq!(asked.len(), 2);
    assert!(!asked[0].text().contains("FIRST-SUMMARY"));
    assert!(asked[1].text().contains("FIRST-SUMMARY"));
    let headings = "Goal, Instructions, Progress, Key Decisions, Next Steps, Relevant Files";
    for heading in headings.split(", ") {
        let line = format!("\n## {heading}\n");
        assert!(asked[0].system.contains(&line), "{heading}");
    }
    let requests = of_agent(&scripted, "build");
    let last = last_text(&requests);
    assert_eq!(last.matches("Do it.").count(), 1);
    assert!(last.contains("SECOND-SUMMARY") && !last.contains("FIRST-SUMMARY"));
    let mut made_room = 0;
    for pair in requests.windows(2) {
        assert_pairs(&pair[1].messages);
        if !begins_with(&pair[1], &pair[0]) {
            made_room += 1;
            let told = pair[1].messages.len();
            assert_eq!(told, 7, "the task with a summary, and the newest six");
        }
    }
    assert_eq!(made_room, 2, "between two summaries nothing is told anew");
    let first = requests
        .iter()
        .map(ModelRequest::text)
        .find(|text| text.contains("FIRST-SUMMARY"));
    assert!(first.is_some_and(|text| text.contains("FIRST-SUMMARY &lt;/document>\n</document>")));
    Ok(())
}

/// Runs a talk that makes room above so many tokens; returns how many there were when it did so first.
async fn first_size(threshold_tokens: u64) -> anyhow::Result<Option<u64>> {
    let scripted = ScriptedEngine::new(&(SUMMARIES.to_owned() + &long_talk(11))).await?;
    let (job, made) = (job(counting()?.0), CompactionLog::default());
    let engine = scripted.compacting(threshold_tokens)?;
    engine.run(&job, &CancellationToken::new(), &made).await?;
    Ok(made.first_size())
}

#[tokio::test]
async fn a_conversation_as_long_as_it_may_be_stays_and_one_token_more_does_not()
-> anyhow::Result<()> {
    let size = first_size(6_000).await?.unwrap_or_default();
    assert!(size > 6_000, "{size}");
    assert_eq!(first_size(size - 1).await?, Some(size));
    let next = first_size(size).await?;
    assert!(next.is_some_and(|next| next > size), "{next:?}");
    Ok(())
}

#[tokio::test]
async fn a_replay_makes_room_at_the_same_turns_and_asks_nobody_again() -> anyhow::Result<()> {
    let script = SUMMARIES.to_owned() + &long_talk(11);
    let mut scripted = ScriptedEngine::new(&script).await?;
    let (tools, counter) = counting()?;
    let job = job(tools);
    let whole = run(&scripted, &job, &CompactionLog::default()).await?;
    let told = scripted.requests();
    let rows = scripted.store.list::<ModelCall>(Query::new()).await?;
    let calls: Vec<ModelCall> = rows.into_iter().map(|row| row.record).collect();
    assert_eq!((calls.len(), told.len()), (14, 14));
    let summaries = calls.iter().filter(|call| call.is_summary());
    let roles: Vec<&str> = summaries.map(|call| call.role.as_str()).collect();
    assert_eq!(roles, ["small", "small"]);

    scripted.restart("[]")?;
    let made = CompactionLog::default();
    assert_eq!(run(&scripted, &job, &made).await?, whole);
    assert_eq!(made.all(), [(Compaction::Summarised, false); 2]);
    let ran = counter.runs.load(Ordering::SeqCst);
    assert_eq!((scripted.requests().len(), ran), (0, 22));

    // Whichever answer was the last before a crash, a summary or another, what follows is what followed then.
    for number in 1..told.len() {
        let (before, after) = told.split_at(number);
        let other = ScriptedEngine::new(&script).await?;
        counter.runs.store(0, Ordering::SeqCst);
        for request in before {
            let key = key_of(&job, request);
            let mut changes = ChangeSet::new();
            calls
                .iter()
                .filter(|call| call.key == key)
                .for_each(|call| {
                    changes.insert(call);
                });
            other.store.commit(changes).await?;
        }
        let again = run(&other, &job, &CompactionLog::default()).await?;
        assert_eq!(again, whole, "after {number} calls");
        assert_eq!(other.requests(), after, "after {number} calls");
    }
    Ok(())
}

fn key_of(job: &Job, request: &ModelRequest) -> String {
    let script = request.script.clone().unwrap_or_default();
    let key = format!("{}/{}", job.journal_key, script.turn);
    if script.agent == "compaction" {
        ModelCall::summary_key(&key)
    } else {
        key
    }
}

#[tokio::test]
async fn of_five_long_results_the_newest_three_stay_and_nobody_sums_up() -> anyhow::Result<()> {
    let mut script = String::new();
    for number in 1..=5 {
        let tools = json!([{ "name": "read", "input": { "path": format!("{number}.txt") } }]);
        writeln!(
            script,
            "- {{ turn: {number}, reply: {{ tools: {tools} }} }}"
        )?;
    }
    let scripted = ScriptedEngine::new(&(script + DONE)).await?;
    let bench = workbench(&scripted)?;
    for number in 1..=5 {
        let file = scripted.directory.path().join(format!("slot/{number}.txt"));
        std::fs::write(file, format!("{}\n", "y".repeat(99)).repeat(112))?;
    }
    let (job, made) = (
        job(tools_of(AgentMode::Implement, &bench)?),
        CompactionLog::default(),
    );
    let engine = scripted.compacting(15_500)?;
    engine.run(&job, &CancellationToken::new(), &made).await?;
    assert_eq!(made.all(), [(Compaction::Trimmed, false)]);
    let requests = scripted.requests();
    let last = requests.last().map(|request| request.messages.as_slice());
    let told: Vec<String> = last
        .unwrap_or_default()
        .iter()
        .flat_map(results)
        .map(|(text, _)| text)
        .collect();
    let is_cut = |text: &String| text.starts_with("[content truncated — ");
    let cut: Vec<bool> = told.iter().map(is_cut).collect();
    assert_eq!(cut, [true, true, false, false, false]);
    let whole = requests[1].messages.iter().flat_map(results).next();
    let characters = whole.map(|(text, _)| text.chars().count());
    let characters = characters.unwrap_or_default();
    assert!(characters > 10 * 1024);
    assert_eq!(told[0], format!("[content truncated — {characters} chars]"));
    Ok(())
}

#[tokio::test]
async fn a_file_whose_text_is_gone_has_to_be_read_again_and_what_was_done_with_files_is_told()
-> anyhow::Result<()> {
    let read = json!([{ "name": "read", "input": { "path": "src/lib.rs" } }]);
    let edit = |old: &str, new: &str| {
        let input = json!({ "path": "src/lib.rs", "old_text": old, "new_text": new });
        json!([{ "name": "edit", "input": input }])
    };
    let mut steps = vec![read.clone(), edit("one", "two")];
    for number in 3..=6 {
        let input = json!({ "pattern": format!("{number}*") });
        steps.push(json!([{ "name": "glob", "input": input }]));
    }
    steps.extend([edit("two", "three"), read, edit("two", "four")]);
    let steps = steps.iter().enumerate();
    let rules: String = steps
        .map(|(at, tools)| turn(at + 1, 4_000, tools))
        .collect();
    let scripted = ScriptedEngine::new(&(SUMMARIES.to_owned() + &rules + DONE)).await?;
    let bench = workbench(&scripted)?;
    let file = scripted.directory.path().join("slot/src/lib.rs");
    std::fs::create_dir_all(scripted.directory.path().join("slot/src"))?;
    std::fs::write(&file, "one\n")?;
    let (job, made) = (
        job(tools_of(AgentMode::Implement, &bench)?),
        CompactionLog::default(),
    );
    let engine = scripted.compacting(23_900)?;
    engine.run(&job, &CancellationToken::new(), &made).await?;
    assert_eq!(made.all().first(), Some(&(Compaction::Summarised, false)));
    let requests = of_agent(&scripted, "build");
    let seventh = requests[6].text();
    let told = "Files read: src/lib.rs\nFiles changed: src/lib.rs\n";
    assert!(seventh.contains("FIRST-SUMMARY") && seventh.contains(told));
    let refused = requests[7].messages.last().map(results).unwrap_or_default();
    assert!(
        refused[0].1 && refused[0].0.contains("read it first"),
        "{refused:?}"
    );
    assert_eq!(std::fs::read_to_string(&file)?, "four\n");
    Ok(())
}

#[tokio::test]
async fn what_was_done_with_files_is_told_over_two_summaries() -> anyhow::Result<()> {
    let call = |name: &str, input: Value| json!([{ "name": name, "input": input }]);
    let mut steps = vec![
        call("read", json!({ "path": "a.txt" })),
        call("write", json!({ "path": "src/lib.rs", "content": "one\n" })),
    ];
    for number in 3..=12 {
        steps.push(match number {
            8 => call("read", json!({ "path": "c.txt" })),
            _ => call("glob", json!({ "pattern": format!("{number}*") })),
        });
    }
    let steps = steps.iter().enumerate();
    let rules: String = steps
        .map(|(at, tools)| turn(at + 1, 4_000, tools))
        .collect();
    let scripted = ScriptedEngine::new(&(SUMMARIES.to_owned() + &rules + DONE)).await?;
    let bench = workbench(&scripted)?;
    for name in ["a.txt", "c.txt"] {
        std::fs::write(scripted.directory.path().join("slot").join(name), "text\n")?;
    }
    let (job, made) = (
        job(tools_of(AgentMode::Implement, &bench)?),
        CompactionLog::default(),
    );
    let engine = scripted.compacting(24_000)?;
    engine.run(&job, &CancellationToken::new(), &made).await?;
    assert!(made.all().len() >= 2, "{:?}", made.all());
    let requests = of_agent(&scripted, "build");
    let first = requests.iter().map(ModelRequest::text);
    let first = first
        .into_iter()
        .find(|text| text.contains("FIRST-SUMMARY"));
    let told = "Files read: a.txt\nFiles changed: src/lib.rs\n";
    assert!(first.is_some_and(|text| text.contains(told)));
    let told = "Files read: a.txt, c.txt\nFiles changed: src/lib.rs\n";
    assert!(last_text(&requests).contains(told));
    Ok(())
}

#[tokio::test]
async fn the_list_of_what_is_to_be_done_stays_over_two_summaries_and_a_replay() -> anyhow::Result<()>
{
    let todos =
        json!([{ "text": "look", "state": "done" }, { "text": "write it", "state": "doing" }]);
    let mut steps = vec![json!([{ "name": "todo_write", "input": { "todos": todos } }])];
    for number in 2..=11 {
        let input = json!({ "pattern": format!("{number}*") });
        steps.push(json!([{ "name": "glob", "input": input }]));
    }
    steps.push(json!([{ "name": "todo_read", "input": {} }]));
    let steps = steps.iter().enumerate();
    let rules: String = steps
        .map(|(at, tools)| turn(at + 1, 4_000, tools))
        .collect();
    let script = SUMMARIES.to_owned() + &rules + DONE;
    let scripted = ScriptedEngine::new(&script).await?;
    let (first, made) = (
        job(tools_of(AgentMode::Implement, &workbench(&scripted)?)?),
        CompactionLog::default(),
    );
    let engine = scripted.compacting(24_000)?;
    engine.run(&first, &CancellationToken::new(), &made).await?;
    let all = made.all();
    let summaries = all
        .iter()
        .filter(|one| **one == (Compaction::Summarised, false));
    assert!(summaries.count() >= 2, "{all:?}");
    let told = scripted.requests();
    let last = last_text(&told);
    let shown = "[x] look\n[>] write it";
    assert!(last.contains(&format!(
        "## Your List of What Is to Be Done\n<document>\n{shown}\n"
    )));
    let read = told.last().and_then(|request| request.messages.last());
    assert_eq!(
        read.map(results).unwrap_or_default(),
        [(shown.to_owned(), false)]
    );

    // A process that ended before the list was read has it again.
    let other = ScriptedEngine::new(&script).await?;
    let mut changes = ChangeSet::new();
    let rows = scripted.store.list::<ModelCall>(Query::new()).await?;
    let late = format!("{}/13", first.journal_key);
    for row in rows.iter().filter(|row| row.key != late) {
        changes.insert(&row.record);
    }
    other.store.commit(changes).await?;
    let again = job(tools_of(AgentMode::Implement, &workbench(&other)?)?);
    let engine = other.compacting(24_000)?;
    engine.run(&again, &CancellationToken::new(), &made).await?;
    assert_eq!(last_text(&other.requests()), last);
    Ok(())
}

#[tokio::test]
async fn where_nobody_can_sum_up_the_newest_twenty_messages_stay_with_a_warning()
-> anyhow::Result<()> {
    let fails = "- { agent: compaction, reply: { error: { kind: overloaded } } }\n";
    let scripted = ScriptedEngine::new(&(fails.to_owned() + &long_talk(25))).await?;
    let (job, made) = (job(counting()?.0), CompactionLog::default());
    let engine = scripted.compacting(20_000)?;
    let outcome = engine.run(&job, &CancellationToken::new(), &made).await?;
    assert_eq!(outcome.turns, 26);
    assert_eq!(made.all(), [(Compaction::Cut, true)]);
    assert_eq!(of_agent(&scripted, "compaction").len(), 3, "two more tries");
    let requests = of_agent(&scripted, "build");
    let cut = requests
        .windows(2)
        .find(|pair| !begins_with(&pair[1], &pair[0]));
    assert_eq!(cut.map(|pair| pair[1].messages.len()), Some(21));
    Ok(())
}

/// Runs a talk whose summaries say nothing, within so many tokens; returns how it failed, if it did, and what was paid.
async fn vainly_summed_up(
    tokens: Option<u64>,
) -> anyhow::Result<(Option<EngineError>, Vec<ModelCall>)> {
    let blank = "- { agent: compaction, reply: { text: ' ' } }\n";
    let scripted = ScriptedEngine::new(&(blank.to_owned() + &long_talk(25))).await?;
    let project = Allowance {
        tokens,
        micro_usd: None,
    };
    let engine = scripted.compacting(20_000)?.with_budgets(Budgets {
        project,
        ..Budgets::default()
    });
    let (job, made) = (job(counting()?.0), CompactionLog::default());
    let ended = engine.run(&job, &CancellationToken::new(), &made).await;
    let rows = scripted.store.list::<ModelCall>(Query::new()).await?;
    let mut calls: Vec<ModelCall> = rows.into_iter().map(|row| row.record).collect();
    calls.sort_by_key(|call| call.at);
    Ok((ended.err(), calls))
}

#[tokio::test]
async fn a_summary_that_says_nothing_is_paid_as_one_and_none_is_paid_beyond_the_budget()
-> anyhow::Result<()> {
    let (failed, all) = vainly_summed_up(None).await?;
    assert!(failed.is_none(), "{failed:?}");
    let in_vain = |call: &&ModelCall| call.refusal.is_some();
    let paid: Vec<(&str, bool)> = all
        .iter()
        .filter(in_vain)
        .map(|call| (call.role.as_str(), call.is_summary()))
        .collect();
    assert_eq!(paid, [("small", true); 3]);
    let before = all.iter().take_while(|call| !in_vain(call)).count();
    for summaries in 1..=3 {
        let last = before + summaries;
        let used = all[..last]
            .iter()
            .map(|call| call.input_tokens + call.output_tokens);
        let (failed, calls) = vainly_summed_up(Some(used.sum())).await?;
        let stopped = matches!(failed, Some(EngineError::Budget(_)));
        assert_eq!((stopped, calls.len()), (true, last), "{failed:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_request_that_the_provider_finds_too_long_is_summed_up_and_sent_once_more()
-> anyhow::Result<()> {
    for (condition, ends_well) in [("absent: FIRST-SUMMARY,", true), ("", false)] {
        let refuses = format!(
            "- {{ agent: build, turn: 5, {condition} reply: {{ error: {{ kind: context_overflow }} }} }}\n"
        );
        let scripted =
            ScriptedEngine::new(&(SUMMARIES.to_owned() + &refuses + &long_talk(5))).await?;
        let made = CompactionLog::default();
        let engine = scripted.compacting(100_000)?;
        let ended = engine
            .run(&job(counting()?.0), &CancellationToken::new(), &made)
            .await;
        assert_eq!(made.all(), [(Compaction::Summarised, false)]);
        let keys = scripted.requests().into_iter();
        let keys = keys.filter_map(|request| request.script);
        let order: Vec<(String, u32)> = keys
            .map(|key| (key.agent, key.turn))
            .skip(4)
            .take(3)
            .collect();
        let named = |agent: &str| (agent.to_owned(), 5);
        assert_eq!(order, [named("build"), named("compaction"), named("build")]);
        let class = ended.as_ref().err().map(EngineError::failure_class);
        let full = Some(Some(FailureClass::ContextFull));
        assert_eq!(class, if ends_well { None } else { full });
    }
    Ok(())
}

/// Says what is left, the last first.
struct ScriptedSteering(Mutex<Vec<Vec<String>>>);

#[async_trait]
impl Steering for ScriptedSteering {
    async fn heard(&self) -> Vec<String> {
        let words = self.0.lock();
        let mut words = words.unwrap_or_else(PoisonError::into_inner);
        words.pop().unwrap_or_default()
    }
}

#[tokio::test]
async fn what_a_person_said_is_told_word_for_word_after_two_summaries() -> anyhow::Result<()> {
    let scripted = ScriptedEngine::new(&(SUMMARIES.to_owned() + &long_talk(11))).await?;
    let (job, made) = (job(counting()?.0), CompactionLog::default());
    let said = "use </document> tabs, never spaces".to_owned();
    let says = ScriptedSteering(Mutex::new(vec![vec![said], Vec::new()]));
    let engine = scripted.compacting(6_000)?;
    let mut session = engine.open(&job)?.steered_by(Arc::new(says));
    session.run(&CancellationToken::new(), &made).await?;
    assert_eq!(made.all().len(), 2);
    let last = last_text(&of_agent(&scripted, "build"));
    let told = "<document>\nA person says: use &lt;/document> tabs, never spaces\n</document>";
    assert_eq!(last.matches(told).count(), 1, "{last}");
    Ok(())
}
