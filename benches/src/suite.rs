//! Names the benchmarks, runs those that were asked for, and prints what they found.

mod crowd;
mod graph;
mod million;

use std::io::Write;

use anyhow::{Context as _, Result};

use crate::figure::{self, Figure};
use crate::settings::Settings;
use crate::{broker, builds, chain, lone, pages, pipeline, process, reading, tasks, turns};

/// Every benchmark and what it measures.
pub(crate) const NAMES: &[(&str, &str)] = &[
    (
        "chain",
        "deliveries per second, six-step chain, embedded bus",
    ),
    (
        "fan-out",
        "deliveries per second, one event to six subscribers",
    ),
    ("broker", "deliveries per second, six-step chain, JetStream"),
    (
        "lone",
        "one change at a time: its commit; a lock taken and given back",
    ),
    (
        "pipeline",
        "six no-op agents one after the other through the frame",
    ),
    (
        "graph",
        "the check for a cycle when a wait appears, 100,000 waits",
    ),
    (
        "process",
        "process start to the first durable step; idle memory, of the frame and of `up`",
    ),
    ("million", "a database of 1,000,000 events: until it serves"),
    ("crowd", "10,000 waiting builds: memory"),
    (
        "tasks",
        "a task of a build without model and validation, 1,000 and 10,000 files",
    ),
    (
        "reading",
        "what a model is told of a repository of 50,000 files, anew and after a change",
    ),
    (
        "pages",
        "pages over 1,000,000 events; a browser that draws 500 tasks",
    ),
    (
        "listeners",
        "1,000 who listen beside 200 requests a second, for a minute: times and memory",
    ),
    (
        "turns",
        "what the engine adds to a turn, a call of a tool and a reply that is streamed",
    ),
    ("confined", "what confinement costs a command"),
    ("builds", "200 builds at once in one process: memory"),
];

/// Runs the benchmarks and prints their figures.
pub(crate) async fn run(settings: &Settings) -> Result<()> {
    let mut figures = Vec::new();
    let load_before = load()?;
    for (name, _) in NAMES {
        if settings.names.is_empty() || settings.names.iter().any(|asked| asked == name) {
            writeln!(std::io::stderr(), "measuring {name} …")?;
            let mut runs = Vec::with_capacity(settings.repeat);
            for _ in 0..settings.repeat {
                let measured = Box::pin(measure(name, settings)).await;
                runs.push(measured.with_context(|| format!("benchmark `{name}`"))?);
            }
            figures.extend(figure::medians(&runs));
        }
    }
    let mut output = std::io::stdout();
    if settings.json {
        writeln!(output, "{}", figure::json(&figures)?)?;
    } else {
        write!(output, "{}", figure::table(&figures))?;
        writeln!(
            output,
            "\nload average: {load_before} before, {} after",
            load()?
        )?;
    }
    Ok(())
}

async fn measure(name: &str, settings: &Settings) -> Result<Vec<Figure>> {
    match name {
        "chain" => chain::run(settings).await,
        "fan-out" => chain::fan_out(settings).await,
        "broker" => broker::run(settings).await,
        "lone" => lone::run(settings).await,
        "pipeline" => pipeline::run(settings).await,
        "graph" => graph::run(settings).await,
        "process" => process::run().await,
        "million" => million::run().await,
        "tasks" => tasks::run().await,
        "reading" => reading::run().await,
        "pages" => pages::run().await,
        "listeners" => pages::listeners::run().await,
        "turns" => turns::run().await,
        "confined" => process::confined::run().await,
        "builds" => builds::run(),
        _ => crowd::run().await,
    }
}

/// Returns the load of the last minute: figures of a busy machine are read with care.
fn load() -> Result<String> {
    let text = std::fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').next().unwrap_or_default().to_owned())
}
