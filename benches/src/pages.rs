//! Pages over a store of 1,000,000 events, 1,000 ideas, 10,000 tasks and 100,000 calls of models: how long each takes, and how long a browser draws
//! the graph of 500 tasks.

mod connections;
mod fill;
pub(crate) mod listeners;
mod served;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use ropewalk_tests::servers::node_modules;

use crate::disk;
use crate::figure::{Figure, Goal};
use crate::raw::store::RawStore;
use crate::sample::Times;
use fill::{PageKeys, TASKS};
use served::ServerFixture;

const EVENTS: usize = 1_000_000;
/// How often each page is asked for.
const REQUESTS: usize = 100;
/// The time between two requests, so that nobody is told to come back later.
const PAUSE: Duration = Duration::from_millis(5);
/// What is served from memory, and no page.
const RAW: &str = "/static/icon.svg";

/// Measures the pages.
pub(crate) async fn run() -> Result<Vec<Figure>> {
    let directory = disk::directory()?;
    disk::tables(directory.path()).await?;
    let mut filler = RawStore::open(directory.path()).await?;
    filler.fill(EVENTS).await?;
    filler.close().await?;
    let (served, keys) = ServerFixture::open(directory.path()).await?;
    let raw = times(&served, RAW).await?.millis(50)?;
    let mut figures = Vec::new();
    for (path, name) in paths(keys) {
        let times = times(&served, &path).await?;
        let figure = Figure::cost(format!("page of {name}, p50"), "ms", times.millis(50)?)
            .beside(raw, "a file of the same server")
            .p99(times.millis(99)?);
        figures.push(figure.goal(Goal::Value(5.0)));
    }
    let drawn = draw(&served.link, &format!("/builds/{}", keys.build)).await?;
    let name = format!("a browser draws the graph of {TASKS} tasks, p50");
    figures.push(Figure::cost(name, "ms", drawn).goal(Goal::Value(300.0)));
    served.close().await?;
    Ok(figures)
}

fn paths(keys: PageKeys) -> Vec<(String, String)> {
    let page = |path: &str, name: &str| (path.to_owned(), name.to_owned());
    let PageKeys {
        build,
        planned,
        ended,
        attempt,
        spec,
        question,
        lesson,
    } = keys;
    vec![
        page("/", "the board, 1,000 ideas"),
        page("/ideas/idea-0", "an idea"),
        page(
            &format!("/specifications/{spec}"),
            "a specification of 30 tasks",
        ),
        page(
            &format!("/specifications/{spec}/lines"),
            "its lines, to comment on",
        ),
        page("/questions", "the inbox, 50 questions open"),
        page(&format!("/questions/{question}"), "a question"),
        page("/builds", "builds"),
        page(&format!("/builds/{planned}"), "a build of 30 tasks"),
        page(
            &format!("/builds/{build}"),
            &format!("a build of {TASKS} tasks"),
        ),
        page(
            &format!("/builds/{build}/difference"),
            "what it changed, 2,000 lines, without git",
        ),
        page(
            &format!("/builds/{ended}/landing"),
            "what landing comes to, without git",
        ),
        page(&format!("/builds/{build}/tasks/T-007"), "a task"),
        page(
            &format!("/builds/{planned}/tasks/T-007"),
            "a task that is worked on",
        ),
        page(
            &format!("/builds/{planned}/tasks/T-007/attempts/{attempt}"),
            "a transcript of 800 kB",
        ),
        page(
            "/health",
            "what a check of everything found, without looking",
        ),
        page("/running", "what runs, and 630 owned files"),
        page("/knowledge", "what was learned, 500 lessons"),
        page(&format!("/knowledge/{lesson}"), "a lesson, used 20 times"),
        page("/usage", "use, 100,000 calls"),
        page("/usage?idea=idea-0", "use of an idea"),
        page("/events", "events, 1,000,000 of them"),
        page("/events/500000", "an event"),
        page("/find?words=idea+number+7", "what is found of three words"),
    ]
}

async fn times(served: &ServerFixture, path: &str) -> Result<Times> {
    let mut times = Times::default();
    for number in 0..REQUESTS + 5 {
        tokio::time::sleep(PAUSE).await;
        let begun = Instant::now();
        served.read(path).await?;
        // The first ones fill caches.
        if number >= 5 {
            times.add(begun.elapsed());
        }
    }
    Ok(times)
}

/// Returns how long a browser takes to lay out and paint a page with a graph, the load of its bytes left out.
async fn draw(link: &str, path: &str) -> Result<f64> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/pages/draw.cjs");
    let modules = node_modules()?;
    let (link, path) = (link.to_owned(), path.to_owned());
    let walk = move || {
        Command::new("node")
            .arg(script)
            .args([link, path])
            .env("NODE_PATH", modules)
            .output()
    };
    let drawn = tokio::task::spawn_blocking(walk).await?.context("`node`")?;
    let told = String::from_utf8_lossy(&drawn.stderr);
    ensure!(drawn.status.success(), "the browser failed: {told}");
    let text = String::from_utf8(drawn.stdout)?;
    text.trim().parse().context("no time was told")
}
