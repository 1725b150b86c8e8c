//! What two projects came to, without what differs between any two, so that it can be compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ropewalk_schemas as schemas;
use ropewalk_store::{EventFilter, Query, ReadError, Record, Store, records};
use ropewalk_tests::likeness::{kept, plain};
use ropewalk_tests::repository::git;

/// The event that comes with the time, however little is done.
pub const TIMER: &str = "schedule.due";

/// Lines by what they are of.
pub type Lines = BTreeMap<String, Vec<String>>;

/// Says why there is nothing to compare.
#[derive(Debug, thiserror::Error)]
pub enum LikenessError {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A row cannot be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Git does not say it.
    #[error(transparent)]
    Git(#[from] std::io::Error),
    /// There are other tables than are read.
    #[error("{read:?} are read, and there are {known:?}")]
    Tables {
        /// Those that are read.
        read: BTreeSet<String>,
        /// Those that there are.
        known: BTreeSet<String>,
    },
}

/// Returns the events of each entity in order, without those that come with the time.
pub async fn events(store: &Store, surfaces: &[&str]) -> Result<Lines, LikenessError> {
    let filter = EventFilter {
        limit: Some(1_000_000),
        ..EventFilter::default()
    };
    let mut events = Lines::new();
    for stored in store.events(&filter).await? {
        let event = &stored.event;
        if event.event_type == TIMER {
            continue;
        }
        let told = kept(event.data.clone(), surfaces);
        let of = plain(&event.subject.to_string(), surfaces);
        let line = format!("{} {told}", event.event_type);
        events.entry(of).or_default().push(line);
    }
    Ok(events)
}

/// Returns the rows of every table.
pub async fn rows(store: &Store, surfaces: &[&str]) -> Result<Lines, LikenessError> {
    let mut all = Lines::new();
    macro_rules! of {
        ($($record:ty),* $(,)?) => { $( all.extend(table::<$record>(store, surfaces).await?); )* };
    }
    of!(
        schemas::idea::Idea,
        schemas::idea::Session,
        schemas::idea::Message,
        schemas::specification::Specification,
        schemas::specification::Revision,
        schemas::build::Build,
        schemas::task::Task,
        schemas::attempt::Attempt,
        schemas::attempt::Evidence,
        schemas::lease::Lease,
        schemas::lease::Ownership,
        schemas::wait::Wait,
        schemas::question::Question,
        schemas::knowledge::KnowledgeItem,
        schemas::knowledge::Injection,
        schemas::review::Review,
        schemas::agent::Component,
        schemas::alert::Alert,
        schemas::model_call::ModelCall,
        schemas::timer::Timer,
        schemas::deaths::Deaths,
        schemas::outage::Outage,
        schemas::halt::Halt,
        schemas::wish::Wish,
        schemas::keyed_request::KeyedRequest,
        schemas::notice::Notice,
        schemas::phone::Phone,
    );
    let known = records::TABLES.iter().map(|table| table.name.to_owned());
    let known: BTreeSet<String> = known.collect();
    let read: BTreeSet<String> = all.keys().cloned().collect();
    if read != known {
        return Err(LikenessError::Tables { read, known });
    }
    Ok(all)
}

async fn table<R: Record>(
    store: &Store,
    surfaces: &[&str],
) -> Result<Option<(String, Vec<String>)>, LikenessError> {
    let mut lines = Vec::new();
    for row in store.list::<R>(Query::new()).await? {
        lines.push(kept(serde_json::to_value(&row.record)?, surfaces));
    }
    lines.sort();
    Ok(Some((R::TABLE.name.to_owned(), lines)))
}

/// Returns what a branch holds: the messages of its commits in order, its files, and what is in those of an idea.
pub fn branch(repository: &Path, branch: &str) -> Result<Lines, LikenessError> {
    let log = git(
        repository,
        &["log", "--first-parent", "--format=%s", branch],
    )?;
    let mut held = Lines::from([(
        "commits".to_owned(),
        log.lines().map(str::to_owned).collect(),
    )]);
    let files = git(repository, &["ls-tree", "-r", "--name-only", branch])?;
    for file in files.lines() {
        let text = git(repository, &["show", &format!("{branch}:{file}")])?;
        // Documents of an idea name ids, hashes and times.
        let text = if file.starts_with("ideas/") {
            plain(&text, &[])
        } else {
            text
        };
        held.insert(file.to_owned(), vec![text]);
    }
    Ok(held)
}

/// Fails with what stands on one side alone.
///
/// # Panics
///
/// Where there is any.
pub fn assert_alike(what: &str, one: &Lines, other: &Lines) {
    let mut apart = Vec::new();
    for name in one.keys().chain(other.keys()).collect::<BTreeSet<_>>() {
        let [one, other] = [one, other].map(|side| side.get(name).cloned().unwrap_or_default());
        if one == other {
            continue;
        }
        let only = |side: &[String], of: &[String]| -> Vec<String> {
            let alone = side.iter().filter(|line| !of.contains(line));
            alone.cloned().collect()
        };
        apart.push(format!(
            "{name}: {} and {}\n  only here: {:#?}\n  only there: {:#?}",
            one.len(),
            other.len(),
            only(&one, &other),
            only(&other, &one)
        ));
    }
    assert!(apart.is_empty(), "{what}: {}", apart.join("\n"));
}
