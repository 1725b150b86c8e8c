//! Holders of a lock that are stopped for longer than their lease, and go on.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ropewalk_coordination::judge::Judge;
use ropewalk_coordination::locks::{self, LockRequest};
use ropewalk_runtime::{Clock, Ids};
use ropewalk_schemas::lease::{Holder, Lease};
use ropewalk_schemas::timer::Timer;
use ropewalk_schemas::{ComponentName, Event, Payload, Priority, RepoPath, Subject, TaskId};
use ropewalk_store::{ChangeSet, CommitError, Location, Query, Store, Versioned};
use ropewalk_tests::soak::count;

use crate::ledger;

/// Names the database to the child; absent in an ordinary run.
const DATABASE: &str = "ROPEWALK_TEST_LEASES";
/// Names the file that the child locks.
const FILE: &str = "ROPEWALK_TEST_FILE";
/// How long a lease holds.
const TTL: Duration = Duration::from_millis(300);
/// How many holders live at once.
const AT_ONCE: u32 = 20;

fn request(ids: &Ids, file: &str) -> anyhow::Result<LockRequest> {
    Ok(LockRequest {
        holder: Holder {
            build: ids.next().into(),
            task: TaskId::parse("T-001")?,
            attempt: ids.next().into(),
            loop_name: ComponentName::parse("loop-1")?,
        },
        files: vec![RepoPath::parse(file)?],
        ttl: TTL,
        reason: "a trial".to_owned(),
        since: Clock::system().now(),
    })
}

/// Returns what makes the events of locks that end.
fn announcer(ids: &Ids) -> anyhow::Result<impl Fn(Subject, Payload) -> Event> {
    let source = ComponentName::parse("trial")?;
    Ok(move |subject, payload| Event {
        id: ids.next().into(),
        source: source.clone(),
        subject,
        time: Clock::system().now(),
        correlation_id: ids.next().into(),
        causation_id: None,
        hop: 0,
        traceparent: None,
        priority: Priority::DEFAULT,
        payload,
    })
}

async fn take(store: &Store, request: &LockRequest) -> anyhow::Result<Vec<Versioned<Lease>>> {
    let mut changes = ChangeSet::new();
    locks::acquire(&mut changes, request, Clock::system().now());
    store.commit(changes).await?;
    Ok(locks::held_by(store, request.holder.attempt).await?)
}

/// Lands a work: in one transaction with the check that the lock still holds.
async fn land(store: &Store, held: &[Versioned<Lease>], what: &str) -> Result<(), CommitError> {
    let mut changes = ChangeSet::new();
    locks::fence(&mut changes, held);
    let ids = Ids::system(Clock::system());
    let timer = Timer {
        id: ids.next().into(),
        name: what.to_owned(),
        target: String::new(),
        due: Clock::system().now(),
        cron: None,
        correlation_id: ids.next().into(),
    };
    changes.insert(&timer);
    store.commit(changes).await.map(drop)
}

#[tokio::test]
async fn child_that_holds_a_lock_until_it_is_told_to_land() -> anyhow::Result<()> {
    let Some(database) = std::env::var_os(DATABASE) else {
        return Ok(());
    };
    let file = std::env::var_os(FILE).context("no file was named")?;
    let file = file.to_str().context("the file has no UTF-8 name")?;
    let store = Store::open(&Location::Sqlite(PathBuf::from(database)), Clock::system()).await?;
    let request = request(&Ids::system(Clock::system()), file)?;
    let held = take(&store, &request).await?;
    writeln!(std::io::stdout(), "\nheld")?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let answer = match land(&store, &held, &format!("late {file}")).await {
        Ok(()) => "landed",
        Err(CommitError::Fenced { .. }) => "fenced",
        Err(error) => return Err(error.into()),
    };
    writeln!(std::io::stdout(), "\n{answer}")?;
    Ok(())
}

/// A child that holds a lock.
struct Late {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Late {
    fn start(database: &Path, file: &str) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([
                "--exact",
                "leases::child_that_holds_a_lock_until_it_is_told_to_land",
            ])
            .arg("--nocapture")
            .env(DATABASE, database)
            .env(FILE, file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let said = BufReader::new(child.stdout.take().context("a pipe")?);
        Ok(Self { child, said })
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        Ok(kill(
            Pid::from_raw(i32::try_from(self.child.id())?),
            signal,
        )?)
    }

    /// Waits for one of `words` on a line of its own.
    fn says(&mut self, words: &[&str]) -> anyhow::Result<String> {
        let mut line = String::new();
        while self.said.read_line(&mut line)? > 0 {
            if words.contains(&line.trim()) {
                return Ok(line.trim().to_owned());
            }
            line.clear();
        }
        anyhow::bail!("the holder ended without a word of {words:?}")
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn soak_a_holder_that_was_stopped_for_too_long_lands_nothing() -> anyhow::Result<()> {
    let trials = count("ROPEWALK_SOAK_PAUSES", 20)?;
    let directory = tempfile::tempdir()?;
    let database = directory.path().join("ropewalk.db");
    let store = Store::open(&Location::Sqlite(database.clone()), Clock::system()).await?;
    let ids = Ids::system(Clock::system());
    let (mut expected, mut fenced) = (Vec::new(), 0);
    for first in (0..trials).step_by(AT_ONCE as usize) {
        let numbers = first..(first + AT_ONCE).min(trials);
        let files: Vec<String> = numbers.map(|number| format!("src/{number}.rs")).collect();
        let mut late: Vec<Late> = files
            .iter()
            .map(|file| Late::start(&database, file))
            .collect::<anyhow::Result<_>>()?;
        for holder in &mut late {
            holder.says(&["held"])?;
            holder.signal(Signal::SIGSTOP)?;
        }
        expire(&store, &ids, files.len()).await?;
        // Somebody else does the work meanwhile.
        for file in &files {
            let request = request(&ids, file)?;
            let held = take(&store, &request).await?;
            land(&store, &held, &format!("next {file}")).await?;
            expected.push(format!("next {file}"));
            let mut changes = ChangeSet::new();
            locks::release(&mut changes, &held, &announcer(&ids)?);
            store.commit(changes).await?;
        }
        for holder in &mut late {
            holder.signal(Signal::SIGCONT)?;
            holder
                .child
                .stdin
                .take()
                .context("a pipe")?
                .write_all(b"land\n")?;
            assert_eq!(holder.says(&["landed", "fenced"])?, "fenced");
            fenced += 1;
        }
    }
    assert_eq!(fenced, trials);
    let landed = store.list::<Timer>(Query::new()).await?;
    let landed: Vec<String> = landed.iter().map(|timer| timer.name.clone()).collect();
    ledger::check("works that landed", &expected, &landed)?;
    println!("{trials} holders stopped for longer than {TTL:?}: 0 stale landings");
    Ok(store.close().await?)
}

/// Judges until as many leases as were taken are found dead, and ends them.
async fn expire(store: &Store, ids: &Ids, wanted: usize) -> anyhow::Result<()> {
    let (mut judge, began, mut ended) = (Judge::new(), Instant::now(), 0);
    while ended < wanted {
        ensure!(
            began.elapsed() < Duration::from_secs(30),
            "{ended} of {wanted} leases ended"
        );
        tokio::time::sleep(TTL / 10).await;
        let leases = locks::all_held(store).await?;
        let dead = judge.observe(&leases, began.elapsed());
        if dead.is_empty() {
            continue;
        }
        ended += dead.len();
        let mut changes = ChangeSet::new();
        locks::expire(&mut changes, &dead, &announcer(ids)?);
        store.commit(changes).await?;
    }
    ensure!(began.elapsed() >= TTL, "a lease ended before its time");
    Ok(())
}
