//! The world around a simulated build: models and gates take the time that the seed gives them, and nothing else does.
//!
//! The clock stands while anything works. It moves when every attempt waits for the world, to the next thing that
//! comes to pass.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_engine::llm::{ModelError, ScriptKey};
use ropewalk_runtime::Clock;
use tokio::sync::oneshot;

use super::plan::{CUT, HELD, LIMIT, QUOTA, name};
use crate::world::listener::Pace;

/// What a command says before the name of its task once it is through its gate.
pub(crate) const TOOK: &str = "through ";

/// Something that waits for the world.
struct Sleeper {
    label: String,
    /// When it goes on; none when something else must happen first.
    due: Option<DateTime<Utc>>,
    wake: oneshot::Sender<()>,
}

/// The world.
pub(crate) struct World {
    pub(crate) clock: Clock,
    seed: u64,
    directory: PathBuf,
    sleepers: Mutex<Vec<Sleeper>>,
    refused: Mutex<HashSet<String>>,
    /// The ends of gates that were asked at and not left: a line is lost with the last end that is open.
    gates: Mutex<HashMap<String, File>>,
    /// Once nothing is measured any more, nobody waits.
    pub(crate) instant: AtomicBool,
}

impl World {
    /// Makes a world in `directory`, with a way to ask it for every gate.
    pub(crate) fn new(seed: u64, directory: &Path) -> Arc<Self> {
        let start = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        std::fs::create_dir_all(directory.join("bin")).unwrap();
        let gates = (1..=40).map(|number| directory.join(format!("gate-{}", name(number))));
        let made = Command::new("mkfifo")
            .arg(directory.join("asked"))
            .args(gates)
            .status();
        assert!(made.unwrap().success());
        let world = Arc::new(Self {
            clock: Clock::manual(start),
            seed,
            directory: directory.to_owned(),
            sleepers: Mutex::default(),
            refused: Mutex::default(),
            gates: Mutex::default(),
            instant: AtomicBool::new(false),
        });
        world.listen();
        world
    }

    /// Draws a number of seconds for `label`.
    pub(crate) fn draw(&self, label: &str, from: u64, to: u64) -> TimeDelta {
        let mut hasher = DefaultHasher::new();
        (self.seed, label).hash(&mut hasher);
        let seconds = from + hasher.finish() % (to - from);
        TimeDelta::seconds(i64::try_from(seconds).unwrap())
    }

    /// Returns how many wait, and when the first of them goes on.
    pub(crate) fn waiting(&self) -> (usize, Option<DateTime<Utc>>) {
        let sleepers = self.sleepers.lock().unwrap();
        (
            sleepers.len(),
            sleepers.iter().filter_map(|sleeper| sleeper.due).min(),
        )
    }

    /// Moves the clock to `time` and lets everybody go on whose time has come.
    pub(crate) fn reach(&self, time: DateTime<Utc>) {
        let ahead = (time - self.clock.now()).to_std().unwrap_or_default();
        self.clock.advance(ahead);
        let now = self.clock.now();
        self.wake(|sleeper| sleeper.due.is_some_and(|due| due <= now));
    }

    /// Lets go on what waited for `label` alone.
    pub(crate) fn release(&self, label: &str) {
        self.wake(|sleeper| sleeper.due.is_none() && sleeper.label == label);
    }

    /// Ends the thread that listens.
    pub(crate) fn end(&self) {
        self.instant.store(true, Ordering::SeqCst);
        self.say("asked", "end");
    }

    fn wake(&self, chosen: impl Fn(&Sleeper) -> bool) {
        let mut sleepers = self.sleepers.lock().unwrap();
        let (woken, left): (Vec<Sleeper>, Vec<Sleeper>) =
            sleepers.drain(..).partition(|sleeper| chosen(sleeper));
        *sleepers = left;
        drop(sleepers);
        for sleeper in woken {
            // Nobody hears it when its gate ran into the time limit.
            sleeper.wake.send(()).unwrap_or_default();
        }
    }

    fn sleep(&self, label: String, due: Option<DateTime<Utc>>) -> oneshot::Receiver<()> {
        let (wake, woken) = oneshot::channel();
        let sleeper = Sleeper { label, due, wake };
        self.sleepers.lock().unwrap().push(sleeper);
        woken
    }

    fn open(&self, name: &str) -> File {
        // Opened for both, so that neither side waits for the other to come.
        let mut options = OpenOptions::new();
        let path = self.directory.join(name);
        options.read(true).write(true).open(path).unwrap()
    }

    fn say(&self, to: &str, line: &str) {
        writeln!(self.open(to), "{line}").unwrap();
    }

    /// Hears which gate runs, and answers it when its time has come.
    fn listen(self: &Arc<Self>) {
        let world = Arc::clone(self);
        let asked = BufReader::new(self.open("asked"));
        std::thread::spawn(move || {
            let mut count = 0;
            for line in asked.lines() {
                let line = line.unwrap();
                if line == "end" {
                    break;
                }
                if line == "limit" {
                    drop(world.sleep(line, None));
                    continue;
                }
                let mut gates = world.gates.lock().unwrap();
                // One whose command was ended in between holds a line that is not for the next.
                let left = gates.remove(line.trim_start_matches(TOOK));
                drop(left);
                if line.starts_with(TOOK) {
                    continue;
                }
                count += 1;
                let gate = world.open(&format!("gate-{line}"));
                gates.insert(line.clone(), gate.try_clone().unwrap());
                drop(gates);
                let answer = Arc::clone(&world);
                std::thread::spawn(move || answer.gate(&line, count, gate));
            }
        });
    }

    fn gate(&self, task: &str, count: u32, mut gate: File) {
        if !self.instant.load(Ordering::SeqCst) {
            let due = self.clock.now() + self.draw(&format!("gate {task} {count}"), 5, 60);
            let woken = self.sleep(format!("gate {task}"), Some(due));
            drop(woken.blocking_recv());
        }
        writeln!(gate, "go").unwrap();
    }
}

#[async_trait]
impl Pace for World {
    async fn before(&self, key: &ScriptKey) -> Result<(), ModelError> {
        if key.turn != 1 {
            return Ok(());
        }
        let label = format!("model {} {}", key.task, key.attempt);
        let held = key.task == HELD.0 && key.attempt == 1;
        let due = self.clock.now() + self.draw(&label, 20, 300);
        let woken = self.sleep(label, (!held).then_some(due));
        drop(woken.await);
        let refusal = match key.task.as_str() {
            QUOTA => ModelError::RateLimited {
                message: "the quota is used up".to_owned(),
                retry_after: Some(Duration::from_mins(4)),
            },
            CUT => ModelError::Truncated,
            _ => return Ok(()),
        };
        let is_first = self.refused.lock().unwrap().insert(key.task.clone());
        if is_first { Err(refusal) } else { Ok(()) }
    }
}

/// Returns the command that runs into its time limit, telling `world` when it begins to.
pub(crate) fn limit(world: &Path) -> String {
    format!(
        "if grep -qs slow {LIMIT}.txt; then echo limit > {}/asked; sleep 60; fi",
        world.display()
    )
}
