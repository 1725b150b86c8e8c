//! Every figure on every page is that of the store: what is told is worked out again from the rows, and a page that tells
//! another number, or one of which no row knows, is found.

mod finished;
mod reading;
mod things;

use ropewalk_schemas::BuildId;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::lease::Ownership;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::specification::Specification;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{KnowledgeId, RepoPath};
use ropewalk_store::{ChangeSet, EventFilter, Query, Record};
use serde_json::json;

use self::reading::{Expectation, assert_figures, faults, framed, read};
use crate::world::ServerWorld;

/// Stores a build at work, what its models used, what was learned and what is asked; every sum is a number of its own.
async fn fill(world: &ServerWorld) -> BuildId {
    world.specified().await;
    let build = world.built().await;
    for (number, state) in [TaskState::Complete, TaskState::Working]
        .into_iter()
        .chain([TaskState::Pending; 5])
        .enumerate()
    {
        world
            .task(build, &format!("T-{:03}", number + 1), state)
            .await;
    }
    let store = &world.services.store;
    let mut changes = ChangeSet::new();
    for (position, row) in store
        .list::<Task>(Query::new())
        .await
        .unwrap()
        .iter()
        .enumerate()
    {
        let attempts = 11 + u32::try_from(position).unwrap();
        let after = Task {
            attempts,
            ..row.record.clone()
        };
        changes.update(row, &after);
    }
    for (name, day, tokens, cost) in [
        ("one", "2026-03-01", 1_234, 1_560_000),
        ("two", "2026-03-03", 377, 250_000),
    ] {
        changes.insert(&call(build, name, day, (tokens, cost)));
    }
    for number in 0..43 {
        changes.insert(&Ownership {
            path: RepoPath::parse(&format!("src/walks_{number}.rs")).unwrap(),
            build,
            since: world.services.clock.now(),
            ended: false,
            after: None,
        });
    }
    for (confidence, executions, injections) in [(0.83, 4, 19), (0.61, 6, 23)] {
        let item: KnowledgeItem = serde_json::from_value(json!({
            "id": KnowledgeId(world.services.ids.next()), "kind": "gotcha", "content": "Mind the gap.",
            "confidence": confidence, "executions": (0..executions).map(|of| of.to_string()).collect::<Vec<_>>(),
            "ideas": ["walks"], "discovered_by": "build", "state": "confirmed", "injections": injections,
            "created_at": world.services.clock.now(), "updated_at": world.services.clock.now(),
        }))
        .unwrap();
        changes.insert(&item);
    }
    store.commit(changes).await.unwrap();
    build
}

fn call(build: BuildId, name: &str, day: &str, (tokens, cost): (u64, u64)) -> ModelCall {
    let call = json!({
        "key": name, "role": "build", "model": "m", "provider": "p", "reply": null, "idea": "walks", "build": build,
        "input_tokens": tokens, "output_tokens": 3, "micro_usd": cost, "at": format!("{day}T08:00:00Z"),
    });
    serde_json::from_value(call).unwrap()
}

async fn all<R: Record>(world: &ServerWorld) -> Vec<R> {
    let rows = world.services.store.list::<R>(Query::new()).await.unwrap();
    rows.into_iter().map(|row| row.record).collect()
}

/// Returns dollars as people write them.
fn dollars(calls: &[&ModelCall]) -> String {
    let cents: u64 = calls.iter().filter_map(|call| call.micro_usd).sum::<u64>() / 10_000;
    format!("${}.{:02}", cents / 100, cents % 100)
}

fn used(calls: &[&ModelCall]) -> (u64, u64) {
    let read = calls.iter().map(|call| call.input_tokens).sum();
    (read, calls.iter().map(|call| call.output_tokens).sum())
}

/// Returns the row of a table that sums some calls up.
fn row(calls: &[&ModelCall]) -> String {
    let (read, written) = used(calls);
    let (count, money) = (calls.len(), dollars(calls));
    format!(
        "<td data-of=\"Calls\">{count}</td><td data-of=\"Tokens in\">{read}</td><td data-of=\"From cache\">0</td>\
         <td data-of=\"Tokens out\">{written}</td><td data-of=\"Cost\">{money}</td>"
    )
}

/// Works out from the rows what the page of use has to tell.
fn usage(calls: &[&ModelCall]) -> Vec<String> {
    let told = |calls: &[&ModelCall]| {
        let (read, written) = used(calls);
        (dollars(calls), read + written)
    };
    let (money, tokens) = told(calls);
    let mut usage = vec![
        format!(
            "<strong>{money}</strong> <span>{tokens} tokens in {} model calls",
            calls.len()
        ),
        // All are of one idea, one build and one model.
        row(calls),
        row(calls),
        row(calls),
        // The limit is of the configuration; no call is of today.
        format!(
            "<td data-of=\"Limit\">50000 tokens</td><td data-of=\"Used\">0 tokens, {}</td>",
            dollars(&[])
        ),
    ];
    usage.extend(scales(calls));
    // Each call is of another day.
    for call in calls {
        let (money, tokens) = told(&[call]);
        let day = call.at.format("%Y-%m-%d");
        let told = format!("{day}: {money}, {tokens} tokens in 1 call");
        usage.push(row(&[call]));
        // In the picture of money and that of tokens, once for who points at it and once for who has it read.
        usage.extend(std::iter::repeat_n(told, 4));
    }
    usage
}

/// Works out from the rows how far the pictures of the days reach, each of which has a call of its own.
fn scales(calls: &[&ModelCall]) -> Vec<String> {
    let priciest = calls.iter().max_by_key(|call| call.micro_usd).unwrap();
    let longest = calls
        .iter()
        .map(|call| call.input_tokens + call.output_tokens);
    let (money, tokens) = (dollars(&[priciest]), longest.max().unwrap());
    let zero = ">0</text>".to_owned();
    vec![
        format!(">{money}</text>"),
        format!(">{tokens}</text>"),
        zero.clone(),
        zero,
    ]
}

/// Works out from the rows what the page of the build has to tell.
fn of_build(build: &Build, tasks: &[Task], calls: &[&ModelCall], owned: usize) -> Vec<String> {
    let (read, written) = used(calls);
    let (tokens, money) = (read + written, dollars(calls));
    let mut told = vec![
        progress(tasks),
        bar(tasks),
        format!("It owns {owned} files"),
        format!("{tokens} tokens, {money} in {} model calls", calls.len()),
        format!("revision {}", build.revision),
        format!("<dd>{}</dd>", build.priority.get()),
        format!("max=\"10\" value=\"{}\" required", build.priority.get()),
        format!(
            "Fold {} complete task",
            in_state(tasks, TaskState::Complete)
        ),
        "1 is the most urgent, 10 the least".to_owned(),
    ];
    // None of them was attempted, whatever their tries are.
    let none = "<td data-of=\"Restarts\">0</td>".to_owned();
    told.extend(std::iter::repeat_n(none, tasks.len()));
    told
}

fn progress(tasks: &[Task]) -> String {
    format!(
        "{}/{} tasks",
        in_state(tasks, TaskState::Complete),
        tasks.len()
    )
}

/// Returns the bar that shows how far it has come.
fn bar(tasks: &[Task]) -> String {
    let (all, complete) = (tasks.len(), in_state(tasks, TaskState::Complete));
    format!("<progress max=\"{all}\" value=\"{complete}\"")
}

fn in_state(tasks: &[Task], state: TaskState) -> usize {
    tasks.iter().filter(|task| task.state == state).count()
}

/// Works out from the rows how many ideas stand in which column: what is built while more of it waits to be approved is among what
/// is built.
fn columns(ideas: usize, specified: &[Specification], build: &Build) -> Vec<String> {
    let worked_on = specified.iter().filter(|spec| spec.idea == build.idea);
    let worked_on = worked_on.count();
    let columns = [
        ("Talked about", ideas - specified.len()),
        ("Specified", specified.len() - worked_on),
        ("Built", worked_on),
        ("Landed", 0),
    ];
    columns
        .map(|(title, many)| format!("{title} <span class=\"many\">{many}</span>"))
        .to_vec()
}

fn learned(item: &KnowledgeItem) -> String {
    let (confidence, executions) = (item.confidence, item.executions.len());
    let times = item.injections;
    format!("confidence {confidence:.2}, seen in {executions} executions, told {times} times")
}

/// Works out from the rows what each page has to tell.
async fn expected(world: &ServerWorld) -> Vec<Expectation> {
    let (tasks, calls) = (all::<Task>(world).await, all::<ModelCall>(world).await);
    let calls: Vec<&ModelCall> = calls.iter().collect();
    let build = &all::<Build>(world).await[0];
    let owned = all::<Ownership>(world).await.len();
    let (ideas, specified) = (all::<Idea>(world).await, all::<Specification>(world).await);
    let items = all::<KnowledgeItem>(world).await;
    let events = world.services.store.events(&EventFilter::default()).await;
    let positions = events.unwrap().into_iter();
    let positions = positions.map(|event| format!("/events/{0}\">{0}</a>", event.sequence));
    let waiting = in_state(&tasks, TaskState::Pending);
    let mut usage = usage(&calls);
    usage.push(format!("{}, revision {}", build.idea, build.revision));
    let mut board = columns(ideas.len(), &specified, build);
    board.push(progress(&tasks));
    let pages = vec![
        Expectation::at("/", board),
        Expectation::at("/questions", Vec::new()),
        Expectation::at("/builds", vec![progress(&tasks)]),
        Expectation::at(
            format!("/builds/{}", build.id),
            of_build(build, &tasks, &calls, owned),
        ),
        Expectation::at(
            "/running",
            vec![
                format!("{waiting} tasks of the build of walks"),
                // As many are drawn by themselves.
                format!("{} further files, owned by", owned - 40),
            ],
        ),
        Expectation::at("/knowledge", items.iter().map(learned).collect()),
        Expectation::at("/usage", usage),
        Expectation::at("/events", positions.collect()),
    ];
    framed(world, pages).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_figure_on_every_page_is_that_of_the_store_and_another_one_is_found() {
    let world = ServerWorld::new().await;
    let build = fill(&world).await;
    let pages = read(&world, expected(&world).await).await;
    for (page, expected) in &pages {
        assert_figures(page, expected);
    }
    // Rows that come after a page was read are found on each page that tells of them.
    let mut changes = ChangeSet::new();
    changes.insert(&call(build, "three", "2026-03-04", (5, 10_000)));
    world.services.store.commit(changes).await.unwrap();
    world.task(build, "T-008", TaskState::Pending).await;
    let now = expected(&world).await;
    let stale: Vec<&str> = pages
        .iter()
        .zip(&now)
        .filter(|((page, _), now)| !faults(page, now).is_empty())
        .map(|(_, now)| now.path.as_str())
        .collect();
    let of_build = format!("/builds/{build}");
    assert_eq!(
        stale,
        ["/", "/builds", of_build.as_str(), "/running", "/usage"]
    );
    world.stop().await;
}
