//! Fills a store with so much of everything that pages show as one ever gets.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_schemas::attempt::Attempt;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::idea::{Idea, Message, Session};
use ropewalk_schemas::job_event::{JobEvent, Passage};
use ropewalk_schemas::knowledge::{Injection, KnowledgeItem};
use ropewalk_schemas::lease::Ownership;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::question::{About, Question};
use ropewalk_schemas::specification::{Revision, Specification};
use ropewalk_schemas::task::{Action, Task, TaskBlock, Validation};
use ropewalk_schemas::{
    AttemptId, BuildId, ContentHash, KnowledgeId, QuestionId, RepoPath, SpecId,
};
use ropewalk_store::{ChangeSet, Query, Record, Store};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::words::{Words, task_id};

/// How many ideas there are.
const IDEAS: usize = 1_000;
/// How many messages the first of them has.
const MESSAGES: usize = 40;
/// How many builds there are.
const BUILDS: usize = 20;
/// Which of them has ended and could be landed.
const ENDED: usize = 1;
/// How many tasks each build has.
pub(super) const TASKS: usize = 500;
/// How many tasks a specification has, as many as one of the largest.
const PLANNED: usize = 30;
/// How many files each build owns.
const OWNED: usize = 30;
/// How many steps the model took at a task, and how long what it read each time is.
const STEPS: usize = 200;
const READ_BYTES: usize = 4_000;
/// How many questions there are, and how many of them are open.
const QUESTIONS: usize = 1_000;
const OPEN: usize = 50;
/// How many lessons there are, and how often each was used.
const LESSONS: usize = 500;
const USES: usize = 20;
/// How many calls of models there are, and on how many days.
const CALLS: usize = 100_000;
const DAYS: usize = 90;
/// How many rows are committed together.
const AT_ONCE: usize = 2_000;

/// What there is a page of.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageKeys {
    /// A build of very many tasks.
    pub(super) build: BuildId,
    /// A build of as many tasks as are planned for one idea at most.
    pub(super) planned: BuildId,
    /// A build that could be landed.
    pub(super) ended: BuildId,
    /// An attempt at task `T-007` of the planned one.
    pub(super) attempt: AttemptId,
    /// The specification of it.
    pub(super) spec: SpecId,
    /// A question.
    pub(super) question: QuestionId,
    /// A lesson.
    pub(super) lesson: KnowledgeId,
}

/// Stores everything, transcripts in `state`; returns what there is a page of.
pub(super) async fn fill(store: &Store, state: &Path, words: &Words) -> Result<PageKeys> {
    ideas(store, words).await?;
    let spec = specification(store, words).await?;
    let mut builds = Vec::new();
    for number in 0..BUILDS {
        builds.push(build(store, words, (number, spec), TASKS).await?);
    }
    let planned = build(store, words, (BUILDS, spec), PLANNED).await?;
    builds.push(planned);
    let attempt = attempt(store, state, words, planned).await?;
    put(store, QUESTIONS, |number| question(words, number)).await?;
    lessons(store, words, spec).await?;
    let call = |number| call(words, number, &builds);
    put::<ModelCall>(store, CALLS, call).await?;
    for build in &builds {
        own(store, words, *build).await?;
    }
    let one = || Query::new().limit(1);
    let questions = store.list::<Question>(one()).await?;
    let lessons = store.list::<KnowledgeItem>(one()).await?;
    Ok(PageKeys {
        build: *builds.first().context("no build")?,
        planned,
        ended: *builds.get(ENDED).context("no build has ended")?,
        attempt,
        spec,
        question: questions.first().context("no question")?.id,
        lesson: lessons.first().context("no lesson")?.id,
    })
}

/// Has a build own files that no other one owns.
async fn own(store: &Store, words: &Words, build: BuildId) -> Result<()> {
    let mut changes = ChangeSet::new();
    for number in 0..OWNED {
        let owned: Ownership = row(json!({
            "path": format!("src/{build}/part_{number}.rs"), "build": build, "since": words.clock.now(),
        }))?;
        changes.insert(&owned);
    }
    store.commit(changes).await?;
    Ok(())
}

/// Stores so many rows, each as `make` makes it.
async fn put<R: Record>(
    store: &Store,
    count: usize,
    make: impl Fn(usize) -> Result<R>,
) -> Result<()> {
    for begin in (0..count).step_by(AT_ONCE) {
        let mut changes = ChangeSet::new();
        for number in begin..count.min(begin + AT_ONCE) {
            changes.insert(&make(number)?);
        }
        store.commit(changes).await?;
    }
    Ok(())
}

/// Reads a row as it is written.
fn row<R: DeserializeOwned>(written: Value) -> Result<R> {
    let what = std::any::type_name::<R>();
    serde_json::from_value(written).context(what)
}

/// Names the idea that something is of.
fn slug(number: usize) -> String {
    format!("idea-{}", number % IDEAS)
}

/// Stores ideas, each with its session.
async fn ideas(store: &Store, words: &Words) -> Result<()> {
    let mut changes = ChangeSet::new();
    for number in 0..IDEAS {
        let (session, chain) = (words.ids.next(), words.ids.next());
        let (slug, now) = (slug(number), words.clock.now());
        let idea: Idea = row(json!({
            "slug": slug, "user": "ada", "title": format!("Idea number {number}"), "state": "captured",
            "session": session, "correlation_id": chain, "created_at": now,
        }))?;
        let artifact = json!({
            "kind": "problem", "summary": "It is forgotten.", "content": "Nobody knows where.", "confidence": 0.6,
        });
        let session: Session = row(json!({
            "id": session, "idea": slug, "user": "ada", "phase": "exploring",
            "signals": { "confidence": 0.5, "artifacts": [artifact] },
            "correlation_id": chain, "created_at": now, "updated_at": now,
        }))?;
        changes.insert(&idea).insert(&session);
        if number == 0 {
            converse(&mut changes, words, &session)?;
        }
    }
    store.commit(changes).await?;
    Ok(())
}

/// Adds what was said of an idea: a person's words and an agent's in turns, with what Markdown marks in them.
fn converse(changes: &mut ChangeSet, words: &Words, session: &Session) -> Result<()> {
    let said = "**Habits** are kept in `habits.toml`:\n\n- each has a name;\n- each has a day.\n\n> It is forgotten.\n\n".repeat(5);
    for number in 0..MESSAGES {
        let author = ["person", "agent"][number % 2];
        let message: Message = row(json!({
            "id": words.ids.next(), "session": session.id, "author": author, "text": said, "at": words.clock.now(),
        }))?;
        changes.insert(&message);
    }
    Ok(())
}

/// Stores the specification of the first idea, with a plan.
async fn specification(store: &Store, words: &Words) -> Result<SpecId> {
    let (id, now) = (SpecId(words.ids.next()), words.clock.now());
    let hash = ContentHash::of(b"new");
    let spec: Specification = row(json!({
        "id": id, "idea": slug(0), "user": "ada", "state": "generated", "revision": 1, "hash": hash,
        "complexity": "complex", "requested_by": "ada", "correlation_id": words.ids.next(),
        "created_at": now, "updated_at": now,
    }))?;
    let tasks: Vec<TaskBlock> = (1..=PLANNED).map(planned).collect::<Result<_>>()?;
    let revision: Revision = row(json!({
        "spec": id, "number": 1, "hash": hash, "at": now, "tasks": tasks,
        "document": { "title": "Walks", "objective": "Walk." },
    }))?;
    let mut changes = ChangeSet::new();
    changes.insert(&spec).insert(&revision);
    store.commit(changes).await?;
    Ok(id)
}

/// Stores a build with so many tasks: a hundred that need nothing, and others that need two of those before them.
async fn build(
    store: &Store,
    words: &Words,
    (number, spec): (usize, SpecId),
    tasks: usize,
) -> Result<BuildId> {
    let build: Build = row(json!({
        "id": words.ids.next(), "spec": spec, "revision": 1, "hash": ContentHash::of(b"new"),
        "idea": slug(number), "user": "ada", "state": if number == ENDED { "succeeded" } else { "running" }, "pause_requested": false,
        "branch": format!("build/{}", slug(number)), "target": "main", "priority": 5, "working_ms": 0,
        "correlation_id": words.ids.next(), "created_at": words.clock.now(),
    }))?;
    let mut changes = ChangeSet::new();
    changes.insert(&build);
    for lane in 1..=tasks {
        let number = u32::try_from(lane)?;
        changes.insert(&Task::planned(build.id, number, planned(lane)?));
    }
    store.commit(changes).await?;
    Ok(build.id)
}

fn planned(lane: usize) -> Result<TaskBlock> {
    let file = RepoPath::parse(&format!("src/part_{lane}.rs"))?;
    let check = Validation::passes("cargo test");
    let mut block = TaskBlock::new(task_id(lane)?, "core", Action::Create, file, check);
    if lane > 100 {
        block.depends_on = vec![task_id(lane % 100 + 1)?, task_id(lane - 100)?];
    }
    Ok(block)
}

/// Stores an attempt at a task, and what its model said and did.
async fn attempt(store: &Store, state: &Path, words: &Words, build: BuildId) -> Result<AttemptId> {
    let task = task_id(7)?;
    let attempt: Attempt = row(json!({
        "id": words.ids.next(), "build": build, "task": task, "number": 1, "loop_name": "loop-1", "state": "working", "token": 1,
        "base": "5".repeat(40), "tokens": 4_321, "started_at": words.clock.now(),
    }))?;
    let mut changes = ChangeSet::new();
    changes.insert(&attempt);
    store.commit(changes).await?;
    let mut lines = String::new();
    for step in 0..STEPS {
        let item = format!("call-{step}");
        let input = json!({ "path": format!("src/part_{step}.rs") });
        let output = "let kept = 1;\n".repeat(READ_BYTES / 14);
        let name = || "read".to_owned();
        let began = JobEvent::ToolStarted {
            item: item.clone(),
            name: name(),
            input,
        };
        let metadata = Value::Null;
        let ended = JobEvent::ToolEnded {
            item,
            name: name(),
            output,
            is_error: false,
            metadata,
        };
        for event in [began, ended] {
            let passage = Passage {
                attempt: attempt.id,
                task: task.clone(),
                at: words.clock.now(),
                event,
            };
            writeln!(lines, "{}", serde_json::to_string(&passage)?)?;
        }
    }
    let file = state.join(Passage::file(attempt.id));
    std::fs::create_dir_all(file.parent().context("a transcript lies in no directory")?)?;
    std::fs::write(file, lines)?;
    Ok(attempt.id)
}

/// Makes a question; the first ones are open.
fn question(words: &Words, number: usize) -> Result<Question> {
    let now = words.clock.now();
    let is_open = number < OPEN;
    let choice = |id: &str| json!({ "id": id, "label": id, "recommended": id == "yes", "with_words": false });
    let answer = json!({
        "choice": "yes", "text": "yes", "by": "ada", "channel": "cli", "at": now,
    });
    row(json!({
        "id": words.ids.next(), "kind": "clarifying", "trigger": "problem_statement_vague", "agent": "ideation",
        "text": format!("Which of the {number} ways?"), "context": "Both can be had.",
        "choices": [choice("yes"), choice("no")], "free_text": true, "consequential": false,
        "about": About::Nothing, "idea": slug(number), "correlation_id": words.ids.next(), "asked_at": now,
        "state": if is_open { "pending" } else { "answered" },
        "answer": if is_open { Value::Null } else { answer },
    }))
}

/// Stores lessons, each with its uses.
async fn lessons(store: &Store, words: &Words, spec: SpecId) -> Result<()> {
    for number in 0..LESSONS {
        let now = words.clock.now();
        let item: KnowledgeItem = row(json!({
            "id": words.ids.next(), "kind": "gotcha", "content": format!("Mind gap number {number}."),
            "confidence": 0.8, "executions": ["a", "b", "c"], "ideas": [slug(number)], "discovered_by": "build",
            "state": "confirmed", "injections": USES, "created_at": now, "updated_at": now,
        }))?;
        let mut changes = ChangeSet::new();
        changes.insert(&item);
        for usage in 1..=USES {
            let usage: Injection = row(json!({
                "item": item.id, "spec": spec, "task": task_id(usage)?, "held_out": false,
                "helped": usage % 3 == 0, "at": now,
            }))?;
            changes.insert(&usage);
        }
        store.commit(changes).await?;
    }
    Ok(())
}

/// Makes a call, of one of the builds and on one of the days before this one.
fn call(words: &Words, number: usize, builds: &[BuildId]) -> Result<ModelCall> {
    let build = builds.get(number % builds.len().max(1));
    let days = TimeDelta::days(i64::try_from(number % DAYS)?);
    let at: DateTime<Utc> = words.clock.now() - days;
    row(json!({
        "key": format!("call-{number}"), "role": "build", "model": format!("model-{}", number % 4), "provider": "p",
        "reply": null, "idea": slug(number), "build": build, "input_tokens": 1_000, "output_tokens": 100,
        "cache_read_tokens": 500, "micro_usd": 2_000, "at": at,
    }))
}
