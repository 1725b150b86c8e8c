//! The pages of a build that has ended, and of what leads to it: what it came to, what changed by it, what an attempt said,
//! what landing it comes to, and where its name is found.

use ropewalk_schemas::attempt::{Attempt, AttemptState, Evidence};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::job_event::Passage;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::specification::{Revision, Specification};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{BuildId, ContentHash, SpecId};
use ropewalk_store::ChangeSet;
use serde_json::{Value, json};

use super::reading::{Expectation, assert_pages};
use super::things::change;
use super::{all, bar, call, dollars, in_state, progress, used};
use crate::world::ServerWorld;

/// A run of the check of a task or of the whole, in so many milliseconds, in which so many tests passed.
fn run(duration_ms: u64, passed: u32) -> Value {
    json!({
        "name": "validation", "command": "true", "exit_code": 0, "duration_ms": duration_ms, "output": "",
        "tests": { "passed": passed, "failed": 0, "ignored": 6 },
    })
}

/// Stores two revisions of a specification, its build that has ended with some tasks done and some not, what the gate saw
/// of it, and two attempts of which the last one said something.
async fn fill(world: &ServerWorld) -> (SpecId, BuildId) {
    let (spec, _) = world.specified().await;
    let build = world.built().await;
    for (number, state) in [
        TaskState::Complete,
        TaskState::Complete,
        TaskState::Complete,
        TaskState::Failed,
        TaskState::Failed,
        TaskState::Skipped,
    ]
    .into_iter()
    .enumerate()
    {
        world
            .task(build, &format!("T-{:03}", number + 1), state)
            .await;
    }
    let now = world.services.clock.now();
    change::<Build>(world, |build| {
        let more = json!({
            "spec": spec, "revision": 2, "state": "succeeded", "head": "a".repeat(40), "working_ms": 3_720_000,
            "completed_at": now, "priority": 7,
            "quote": {
                "tokens_low": 500, "tokens_high": 1_000, "micro_usd_low": 1_250_000, "micro_usd_high": 2_750_000,
                "basis": "from 9 builds",
            },
        });
        let more = more.as_object().unwrap().clone();
        build.as_object_mut().unwrap().extend(more);
    })
    .await;
    let mut changes = ChangeSet::new();
    for (number, objective) in [(1, "Count steps."), (2, "Count strides.")] {
        let revision: Revision = serde_json::from_value(json!({
            "spec": spec, "number": number, "hash": ContentHash::of(objective.as_bytes()), "at": now,
            "document": { "title": "Walks", "objective": objective, "requirements": [{
                "id": "FR-1", "text": "It counts.", "priority": "must", "acceptance": "a count is there", "source": "",
            }] },
        }))
        .unwrap();
        changes.insert(&revision);
    }
    let whole: Evidence = serde_json::from_value(json!({
        "build": build, "commit": "a".repeat(40), "tree": "7".repeat(40), "verdict": "passed", "at": now,
        "checks": [run(65_000, 31)],
    }))
    .unwrap();
    changes.insert(&whole);
    changes.insert(&call(build, "one", "2026-03-01", (1_234, 1_560_000)));
    world.services.store.commit(changes).await.unwrap();
    attempts(world, build).await;
    (spec, build)
}

/// Stores two attempts at the first task, one in the first of two hours and one in the last half of the second.
async fn attempts(world: &ServerWorld, build: BuildId) {
    let mut changes = ChangeSet::new();
    let mut last = None;
    for (number, tokens, from, to, state) in [
        (1, 4_321, "08:00", "09:00", "failed"),
        (2, 987, "09:30", "10:00", "landed"),
    ] {
        let attempt: Attempt = serde_json::from_value(json!({
            "id": world.services.ids.next(), "build": build, "task": "T-001", "number": number, "loop_name": "loop",
            "state": state, "token": number, "base": "5".repeat(40), "tokens": tokens,
            "started_at": format!("2026-03-01T{from}:00Z"), "ended_at": format!("2026-03-01T{to}:00Z"),
        }))
        .unwrap();
        changes.insert(&attempt);
        last = Some(attempt.id);
    }
    world.services.store.commit(changes).await.unwrap();
    let passage = json!({
        "attempt": last, "task": "T-001", "at": "2026-03-01T09:31:00Z", "kind": "message_ended", "item": "message",
        "text": "I write.", "calls": [],
        "usage": { "model": "m", "input_tokens": 21, "output_tokens": 34, "micro_usd": 550_000 },
    });
    let file = world.state().join(Passage::file(last.unwrap()));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, format!("{passage}\n")).unwrap();
}

/// Works out from the rows what the page of the build has to tell.
fn of_build(
    build: &Build,
    tasks: &[Task],
    attempts: &[Attempt],
    calls: &[&ModelCall],
) -> Vec<String> {
    let (read, written) = used(calls);
    let tokens = read + written;
    let quote = build.quote.as_ref().unwrap();
    let over = 100 * (tokens - quote.tokens_high) / quote.tokens_high;
    let minutes = build.working_ms / 60_000;
    let mut told = vec![
        progress(tasks),
        bar(tasks),
        format!(
            "Fold {} complete tasks",
            in_state(tasks, TaskState::Complete)
        ),
        format!(
            "<dd>{tokens} tokens, {} in {} model call</dd>",
            dollars(calls),
            calls.len()
        ),
        format!(
            "<dd>{} to {} tokens, $1.25 to $2.75 ({})</dd>",
            quote.tokens_low, quote.tokens_high, quote.basis
        ),
        format!("<dd>{over} % more than was quoted at most</dd>"),
        format!("<dd>{} h {} min</dd>", minutes / 60, minutes % 60),
        format!("revision {}", build.revision),
        format!("<dd>{}</dd>", build.priority.get()),
        "exit 0, 1 min 5 s, 31 passed, 0 failed, 6 ignored".to_owned(),
    ];
    for task in tasks {
        let failed = attempts
            .iter()
            .filter(|one| one.task == task.id && one.state == AttemptState::Failed);
        let restarts = failed.count();
        told.push(format!("<td data-of=\"Restarts\">{restarts}</td>"));
    }
    for attempt in attempts {
        let took = (attempt.ended_at.unwrap() - attempt.started_at).num_minutes();
        let took = if took < 60 {
            format!("{took} min 0 s")
        } else {
            format!("{} h 0 min", took / 60)
        };
        told.push(format!(
            "<title>T-001, try {}: {}, {took}, {} tokens</title>",
            attempt.number, attempt.state, attempt.tokens
        ));
    }
    // The two hours of the attempts, in four parts.
    let ticks = ["0 ms", "30 min 0 s", "1 h 0 min", "1 h 30 min", "2 h 0 min"];
    told.extend(ticks.map(|tick| format!("y=\"14\">{tick}</text>")));
    told
}

/// Returns each line that is numbered, with its number, of a side.
fn numbered(side: &str, numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    let told = |number| {
        format!(
            "data-side=\"{side}\" data-line=\"{number}\"><span class=\"number\">{number}</span>"
        )
    };
    numbers.into_iter().map(told).collect()
}

/// Works out how many lines the documents of the specification have, each of which has its number.
async fn lines(world: &ServerWorld, spec: SpecId) -> Vec<String> {
    let shown = world
        .read(&format!("/api/specifications/{spec}/lines"))
        .await;
    let files = shown["files"].as_array().unwrap().iter();
    let lines = files.flat_map(|file| numbered("new", 1..=file["lines"].as_array().unwrap().len()));
    lines.collect()
}

/// Works out from the rows what each page has to tell.
async fn expected(world: &ServerWorld, spec: SpecId, id: BuildId) -> Vec<Expectation> {
    let build = &all::<Build>(world).await[0];
    let revision = all::<Specification>(world).await[0].revision;
    let (tasks, attempts) = (all::<Task>(world).await, all::<Attempt>(world).await);
    let calls = all::<ModelCall>(world).await;
    let calls: Vec<&ModelCall> = calls.iter().collect();
    let last = attempts.last().unwrap();
    let [complete, failed, skipped] = [TaskState::Complete, TaskState::Failed, TaskState::Skipped]
        .map(|state| in_state(&tasks, state));
    let mut of_lines = lines(world, spec).await;
    of_lines.extend([
        format!(" Revision {revision}, line by line ·"),
        format!("<h1>Revision {revision}, line by line"),
        // Where the one is written that is said without a script.
        "min=\"1\" value=\"1\" required".to_owned(),
    ]);
    // What a build of this world changed begins with its third line.
    let changed = [numbered("new", [3, 4]), numbered("old", [4])].concat();
    vec![
        Expectation::at(
            format!("/builds/{id}"),
            of_build(build, &tasks, &attempts, &calls),
        ),
        Expectation::at(
            format!("/builds/{id}/landing"),
            vec![
                format!("</strong> {complete} complete, {failed} failed, {skipped} skipped"),
                "</strong> 0 met, 1 open (FR-1)".to_owned(),
            ],
        ),
        Expectation::at(format!("/builds/{id}/difference"), changed),
        Expectation::at(
            format!("/builds/{id}/tasks/T-001/attempts/{}", last.id),
            vec![
                format!("Attempt {} at T-001 ", last.number),
                format!("/ attempt {}</p>", last.number),
                format!("What attempt {} at T-001 said", last.number),
                "(m, 21 in, 34 out, $0.5500)".to_owned(),
            ],
        ),
        Expectation::at(format!("/specifications/{spec}/lines"), of_lines),
        Expectation::at(
            format!("/specifications/{spec}/difference"),
            vec![format!("<h1>Revision {} to {revision}</h1>", revision - 1)],
        ),
        Expectation::at(
            "/find?words=walks",
            vec![format!("Build of walks, revision {}", build.revision)],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_figure_around_a_build_that_ended_is_that_of_the_store_and_another_one_is_found() {
    let world = ServerWorld::new().await;
    let (spec, build) = fill(&world).await;
    assert_pages(&world, expected(&world, spec, build).await).await;
    world.stop().await;
}
