//! Every figure on every page is that of the store: what is told is worked out again from the rows, and a page that tells
//! another number, or one of which no row knows, is found.

mod things;

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_schemas::BuildId;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::lease::Ownership;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::specification::Specification;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{KnowledgeId, RepoPath};
use ropewalk_store::{ChangeSet, EventFilter, Query, Record};
use serde_json::json;

use crate::browser::Browser;
use crate::house::House;

/// What a page has to tell.
struct Expectation {
    path: String,
    told: Vec<String>,
}

/// Stores a build at work, what its models used, what was learned and what is asked; every sum is a number of its own.
async fn fill(house: &House) -> BuildId {
    house.specified().await;
    let build = house.built().await;
    for (number, state) in [TaskState::Complete, TaskState::Working]
        .into_iter()
        .chain([TaskState::Pending; 5])
        .enumerate()
    {
        house
            .task(build, &format!("T-{:03}", number + 1), state)
            .await;
    }
    let store = &house.services.store;
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
    for path in ["src/walks.rs", "src/paths.rs", "a.txt"] {
        changes.insert(&Ownership {
            path: RepoPath::parse(path).unwrap(),
            build,
            since: house.services.clock.now(),
            ended: false,
            after: None,
        });
    }
    for (confidence, executions, injections) in [(0.83, 4, 19), (0.61, 6, 23)] {
        let item: KnowledgeItem = serde_json::from_value(json!({
            "id": KnowledgeId(house.services.ids.next()), "kind": "gotcha", "content": "Mind the gap.",
            "confidence": confidence, "executions": (0..executions).map(|of| of.to_string()).collect::<Vec<_>>(),
            "ideas": ["walks"], "discovered_by": "build", "state": "confirmed", "injections": injections,
            "created_at": house.services.clock.now(), "updated_at": house.services.clock.now(),
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

async fn all<R: Record>(house: &House) -> Vec<R> {
    let rows = house.services.store.list::<R>(Query::new()).await.unwrap();
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

/// Works out from the rows what the page of the build has to tell.
fn of_build(build: &Build, tasks: &[Task], calls: &[&ModelCall], owned: usize) -> Vec<String> {
    let (read, written) = used(calls);
    let (tokens, money) = (read + written, dollars(calls));
    let mut told = vec![
        progress(tasks),
        format!("It owns {owned} files"),
        format!("{tokens} tokens, {money} in {} model calls", calls.len()),
        format!("revision {}", build.revision),
        format!("<dd>{}</dd>", build.priority.get()),
        "1 is the most urgent, 10 the least".to_owned(),
    ];
    let tries = tasks.iter().map(|task| task.attempts);
    told.extend(tries.map(|tries| format!("<td data-of=\"Tries\">{tries}</td>")));
    told
}

fn progress(tasks: &[Task]) -> String {
    format!(
        "{}/{} tasks",
        in_state(tasks, TaskState::Complete),
        tasks.len()
    )
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
async fn expected(house: &House) -> Vec<Expectation> {
    let (tasks, calls) = (all::<Task>(house).await, all::<ModelCall>(house).await);
    let calls: Vec<&ModelCall> = calls.iter().collect();
    let build = &all::<Build>(house).await[0];
    let owned = all::<Ownership>(house).await.len();
    let (ideas, specified) = (all::<Idea>(house).await, all::<Specification>(house).await);
    let questions = all::<Question>(house).await.into_iter();
    let open = questions.filter(|question| question.state == QuestionState::Pending);
    let open = open.count();
    let items = all::<KnowledgeItem>(house).await;
    let events = house.services.store.events(&EventFilter::default()).await;
    let positions = events.unwrap().into_iter();
    let positions = positions.map(|event| format!("/events/{0}\">{0}</a>", event.sequence));
    let waiting = in_state(&tasks, TaskState::Pending);
    let mut usage = usage(&calls);
    usage.push(format!("{}, revision {}", build.idea, build.revision));
    let mut board = columns(ideas.len(), &specified, build);
    board.push(progress(&tasks));
    let pages = [
        ("/".to_owned(), board),
        (
            "/questions".to_owned(),
            vec![format!("aria-label=\"{open} open\">{open}</span>")],
        ),
        ("/builds".to_owned(), vec![progress(&tasks)]),
        (
            format!("/builds/{}", build.id),
            of_build(build, &tasks, &calls, owned),
        ),
        (
            "/running".to_owned(),
            vec![format!("{waiting} tasks of the build of walks")],
        ),
        ("/knowledge".to_owned(), items.iter().map(learned).collect()),
        ("/usage".to_owned(), usage),
        ("/events".to_owned(), positions.collect()),
    ];
    pages.map(|(path, told)| Expectation { path, told }).into()
}

/// Tells what of `expected` does not stand on the page as often as it is to, and which numbers stand there of which
/// nothing is expected.
fn faults(page: &str, expected: &Expectation) -> Vec<String> {
    let mut often: BTreeMap<&str, usize> = BTreeMap::new();
    for told in &expected.told {
        *often.entry(told).or_default() += 1;
    }
    let wrong = often
        .into_iter()
        .filter(|(told, times)| page.matches(told).count() != *times);
    let mut faults: Vec<String> = wrong
        .map(|(told, times)| {
            format!(
                "{}: {} instead of {times} times `{told}`",
                expected.path,
                page.matches(told).count()
            )
        })
        .collect();
    let known: BTreeSet<String> = expected
        .told
        .iter()
        .flat_map(|told| numbers(&visible(told)))
        .collect();
    let (_, main) = page.split_once("<main").unwrap();
    let shown = numbers(&visible(main.split("</main>").next().unwrap()));
    let strange = shown.into_iter().filter(|number| !known.contains(number));
    faults.extend(strange.map(|number| format!("{}: `{number}` is of no row", expected.path)));
    faults
}

/// Returns the text that somebody sees: no tags, no times, no blocks of what was written elsewhere, no picture (its words
/// are expected one by one), no place to choose.
fn visible(markup: &str) -> String {
    let mut text = markup.to_owned();
    for tag in ["time", "pre", "svg", "select"] {
        while let Some(begin) = text.find(&format!("<{tag}")) {
            let close = format!("</{tag}>");
            let end = text[begin..]
                .find(&close)
                .map(|end| begin + end + close.len());
            text.replace_range(begin..end.unwrap_or(text.len()), " ");
        }
    }
    let mut shown = String::new();
    for part in text.split('<') {
        shown.push(' ');
        shown.push_str(part.split_once('>').map_or(part, |(_, rest)| rest));
    }
    shown
}

/// Returns the numbers of a text: what names something, such as `T-001`, is none.
fn numbers(text: &str) -> Vec<String> {
    let trimmed = text
        .split(|letter: char| letter.is_whitespace() || letter == '/')
        .map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric()));
    let is_number = |word: &&str| {
        word.starts_with(|letter: char| letter.is_ascii_digit())
            && word
                .chars()
                .all(|letter| letter.is_ascii_digit() || letter == '.')
    };
    trimmed.filter(is_number).map(str::to_owned).collect()
}

/// Reads each page that something is expected of, and tells its faults.
async fn looked(house: &House) -> Vec<(String, Expectation)> {
    let browser = Browser::new(house).await;
    let mut pages = Vec::new();
    for expected in expected(house).await {
        let answer = browser.read(&expected.path).await;
        assert_eq!(answer.status, 200, "{}", expected.path);
        pages.push((answer.text, expected));
    }
    pages
}

/// Asserts that a page tells what is expected, and that a single figure which is one too large would be found, in
/// whichever place of it.
fn assert_figures(page: &str, expected: &Expectation) {
    assert_eq!(faults(page, expected), Vec::<String>::new());
    for told in &expected.told {
        for (place, _) in page.match_indices(told.as_str()) {
            let mut planted = page.to_owned();
            planted.replace_range(place..place + told.len(), &one_more(told));
            assert!(
                !faults(&planted, expected).is_empty(),
                "`{told}` of {}",
                expected.path
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_figure_on_every_page_is_that_of_the_store_and_another_one_is_found() {
    let house = House::new().await;
    let build = fill(&house).await;
    let pages = looked(&house).await;
    for (page, expected) in &pages {
        assert_figures(page, expected);
    }
    // Rows that come after a page was read are found on each page that tells of them.
    let mut changes = ChangeSet::new();
    changes.insert(&call(build, "three", "2026-03-04", (5, 10_000)));
    house.services.store.commit(changes).await.unwrap();
    house.task(build, "T-008", TaskState::Pending).await;
    let now = expected(&house).await;
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
    house.stop().await;
}

/// Makes the first digit of a text another one.
fn one_more(text: &str) -> String {
    let place = text.find(|letter: char| letter.is_ascii_digit()).unwrap();
    let digit = text.as_bytes()[place] - b'0';
    let other = (digit + 1) % 10;
    format!("{}{other}{}", &text[..place], &text[place + 1..])
}
