//! Processes of their own that publish into one store at the same time.

use std::io::{BufRead, BufReader, Write as _, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use ropewalk_bus::Poker;
use ropewalk_runtime::Clock;
use ropewalk_store::{Location, Store};

use crate::cases::mixed_event;
use crate::support::{World, commit};

/// Names the state directory to a publisher; absent in an ordinary run.
const DIRECTORY: &str = "ROPEWALK_BUS_TEST_DIRECTORY";
/// Names its part of the events to a publisher.
const PART: &str = "ROPEWALK_BUS_TEST_PART";
/// How a publisher says that it stands ready.
const READY: &str = "ready to publish";
/// How a publisher names what it has published.
const PUBLISHED: &str = "published ";

#[tokio::test]
async fn child_that_publishes_when_it_is_told_to() -> Result<()> {
    let (Some(directory), Some(part)) = (std::env::var_os(DIRECTORY), std::env::var_os(PART))
    else {
        return Ok(());
    };
    let directory = PathBuf::from(directory);
    let part: u8 = part.to_string_lossy().parse()?;
    let world = World::embedded()?;
    let location = Location::Sqlite(directory.join("ropewalk.db"));
    let store = Store::open(&location, Clock::system()).await?;
    writeln!(stdout(), "\n{READY}")?;
    stdin().read_line(&mut String::new())?;
    let mut cause = None;
    for number in (part..40).step_by(3) {
        let mut event = mixed_event(&world, number)?;
        event.causation_id = cause;
        cause = Some(event.id);
        let id = event.id;
        commit(&store, [event]).await?;
        Poker::poke(&directory)?;
        writeln!(stdout(), "\n{PUBLISHED}{id}")?;
    }
    store.close().await?;
    Ok(())
}

fn start(directory: &Path, part: usize) -> Result<Child> {
    let child = Command::new(std::env::current_exe()?)
        .args([
            "--exact",
            "publishers::child_that_publishes_when_it_is_told_to",
        ])
        .arg("--nocapture")
        .env(DIRECTORY, directory)
        .env(PART, part.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    Ok(child)
}

/// Lets three processes publish forty events into the store of `directory`; answers the ids that they name.
pub(crate) fn publish_at_once(directory: &Path) -> Result<Vec<String>> {
    let mut publishers = Vec::new();
    for part in 0..3 {
        let mut child = start(directory, part)?;
        let lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        publishers.push((child, lines));
    }
    for (_, lines) in &mut publishers {
        let ready = lines
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line == READY);
        ensure!(ready, "a publisher did not start");
    }
    for (child, _) in &mut publishers {
        let mut input = child.stdin.take().context("no input")?;
        writeln!(input, "go")?;
    }
    let mut published = Vec::new();
    for (mut child, lines) in publishers {
        let lines = lines.map_while(Result::ok);
        published.extend(lines.filter_map(|line| Some(line.strip_prefix(PUBLISHED)?.to_owned())));
        ensure!(child.wait()?.success(), "a publisher failed");
    }
    Ok(published)
}
