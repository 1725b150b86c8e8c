//! 10,000 builds that wait for a person: what the process that holds them needs for each.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use ropewalk_schemas::build::{Build, BuildState, PauseReason};
use ropewalk_schemas::payload::SpecApproved;
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{BuildId, ContentHash, Priority, Slug, UserSlug};
use ropewalk_store::{ChangeSet, DeliveryKey, Outcome, Store};

use crate::disk;
use crate::figure::{Figure, Goal};
use crate::process::{Role, text};
use crate::sample::count;
use crate::words::{Words, step, subscription, task_id};

const BUILDS: usize = 10_000;

/// How long a process is left alone before its memory is read.
const SETTLE: Duration = Duration::from_secs(3);

/// Far enough for nothing to come due.
const LATER: Duration = Duration::from_hours(24);

/// Measures the memory of each build.
pub(crate) async fn run() -> Result<Vec<Figure>> {
    let (empty, full) = (disk::directory()?, disk::directory()?);
    disk::tables(empty.path()).await?;
    fill(full.path()).await?;
    let ours =
        memory("idle", text(full.path())?).await? - memory("idle", text(empty.path())?).await?;
    let raw = memory("raw-crowd", &BUILDS.to_string()).await? - memory("raw-crowd", "0").await?;
    let each = |bytes: f64| bytes / count(BUILDS) / 1_024.0;
    let figure = Figure::cost("10,000 waiting builds, memory each", "KiB", each(ours))
        .beside(each(raw), "six tasks on a channel each")
        .goal(Goal::Value(25.0));
    Ok(vec![figure])
}

async fn memory(role: &str, argument: &str) -> Result<f64> {
    let child = Role::start(role, argument)?;
    tokio::time::sleep(SETTLE).await;
    child.memory_bytes()
}

/// Writes the builds, each paused for a person, its wait, and a delivery to be tried again tomorrow.
async fn fill(directory: &Path) -> Result<()> {
    let store = disk::store(directory).await?;
    let words = Words::new();
    let (name, source) = (step(1)?, step(0)?);
    store.subscribe(&subscription(&name, &source)).await?;
    for lanes in (0..BUILDS).collect::<Vec<_>>().chunks(500) {
        let mut changes = ChangeSet::new();
        for lane in lanes {
            let build = build(&words)?;
            changes.insert(&wait(&words, build.id)?).insert(&build);
            changes.emit(words.event(&source, *lane)?);
        }
        let committed = store.commit(changes).await?;
        let sequences = committed.events.iter().map(|event| event.sequence);
        put_off(&store, &words, sequences.collect()).await?;
    }
    store.close().await?;
    Ok(())
}

async fn put_off(store: &Store, words: &Words, sequences: Vec<i64>) -> Result<()> {
    let mut changes = ChangeSet::new();
    for sequence in sequences {
        let key = DeliveryKey {
            sequence,
            subscriber: step(1)?,
        };
        let outcome = Outcome::Retry {
            due: words.clock.now() + LATER,
            error: "it waits for a person".to_owned(),
        };
        changes.close(&key, outcome);
    }
    store.commit(changes).await?;
    Ok(())
}

fn wait(words: &Words, build: BuildId) -> Result<Wait> {
    Ok(Wait {
        waiter: Party::Task {
            build,
            task: task_id(1)?,
        },
        resource: Resource::Person {
            question: words.ids.next().into(),
        },
        holder: None,
        since: words.clock.now(),
    })
}

fn build(words: &Words) -> Result<Build> {
    let hash = "0123456789abcdef".repeat(4);
    let approval = SpecApproved {
        spec_id: words.ids.next().into(),
        idea_slug: Slug::parse("habits")?,
        user_slug: UserSlug::parse("ada")?,
        revision: 1,
        hash: ContentHash::parse(&hash).context("a hash")?,
        approved_by: UserSlug::parse("ada")?,
        priority: Priority::DEFAULT,
        price: None,
    };
    Ok(Build {
        state: BuildState::Paused,
        reason: Some("it waits for a person".to_owned()),
        pause_reason: Some(PauseReason::Person),
        ..Build::queued(
            words.ids.next().into(),
            &approval,
            words.ids.next().into(),
            words.clock.now(),
        )
    })
}
