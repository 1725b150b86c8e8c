//! Spawns the tasks of a process by name, watches them and drains them.

use std::any::Any;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tracing::{error, warn};

use crate::secrets;
use crate::shutdown::Shutdown;

/// Names a task that ended by a panic, and what it said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("task `{name}` crashed: {message}")]
pub struct TaskFailure {
    /// The name given at [`Supervisor::spawn`].
    pub name: &'static str,
    /// The panic message.
    pub message: String,
}

/// How often a part that crashes is started again, and when that is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restarts {
    /// With so many crashes in a row it is given up.
    pub crashes: u32,
    /// How long it rests after the first; twice as long after each further one.
    pub rest: Duration,
    /// Who ran for so long has recovered: the next crash is a first one.
    pub steady: Duration,
}

impl Default for Restarts {
    fn default() -> Self {
        Self {
            crashes: 5,
            rest: Duration::from_secs(1),
            steady: Duration::from_mins(10),
        }
    }
}

impl Restarts {
    /// Returns how long a part rests that crashed so often in a row; `None` once it is given up.
    pub fn rest_after(&self, crashes: u32) -> Option<Duration> {
        let doublings = crashes.saturating_sub(1).min(16);
        (crashes < self.crashes).then(|| self.rest * (1 << doublings))
    }
}

/// Tells of a crash, and how long the part rests; `None` when it is given up.
pub type CrashHandler =
    Box<dyn Fn(String, Option<Duration>) -> BoxFuture<'static, ()> + Send + Sync>;

/// Spawns named tasks; a crashed one begins the shutdown, so that a process never limps on half dead.
#[derive(Debug, Clone)]
pub struct Supervisor {
    tracker: TaskTracker,
    shutdown: Shutdown,
    failure: Arc<Mutex<Option<TaskFailure>>>,
    /// How many tasks of a name run.
    running: Arc<Mutex<BTreeMap<&'static str, usize>>>,
}

impl Supervisor {
    /// Returns a supervisor whose tasks watch `shutdown`.
    pub fn new(shutdown: Shutdown) -> Self {
        Self {
            tracker: TaskTracker::new(),
            shutdown,
            failure: Arc::default(),
            running: Arc::default(),
        }
    }

    /// Returns the shutdown that the tasks of this supervisor watch.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Spawns `task` under `name`; it must end by itself after a soft stop, and is dropped at a hard one.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.watch(name, Self::guard(name, task));
    }

    /// Spawns what `start` makes and, when that crashes, makes it again after a rest; the last crash ends the process.
    pub fn spawn_again(
        &self,
        name: &'static str,
        restarts: Restarts,
        start: impl Fn() -> BoxFuture<'static, ()> + Send + 'static,
        tell: CrashHandler,
    ) {
        let stop = self.shutdown.soft().clone();
        self.watch(name, async move {
            let mut crashes = 0;
            loop {
                let began = Instant::now();
                let Err(crash) = Self::guard(name, start()).await else {
                    return Ok(());
                };
                if began.elapsed() >= restarts.steady {
                    crashes = 0;
                }
                crashes += 1;
                let rest = restarts.rest_after(crashes);
                tell(crash.message.clone(), rest).await;
                let Some(rest) = rest else {
                    return Err(crash);
                };
                tokio::select! {
                    () = stop.cancelled() => return Ok(()),
                    () = tokio::time::sleep(rest) => {}
                }
            }
        });
    }

    /// As [`Supervisor::spawn_again`], by the usual rests, for what looks after a process and is shown in the log alone.
    pub fn keep<Work>(&self, name: &'static str, start: impl Fn() -> Work + Send + 'static)
    where
        Work: Future<Output = ()> + Send + 'static,
    {
        let tell: CrashHandler = Box::new(move |message, rest| {
            let then = match rest {
                Some(rest) => format!("is started again in {rest:?}"),
                None => "has crashed too often, the program ends".to_owned(),
            };
            error!(task.name = name, "`{name}` crashed and {then}: {message}");
            async {}.boxed()
        });
        let start = move || start().boxed();
        self.spawn_again(name, Restarts::default(), start, tell);
    }

    fn watch(
        &self,
        name: &'static str,
        watched: impl Future<Output = Result<(), TaskFailure>> + Send + 'static,
    ) {
        let shutdown = self.shutdown.clone();
        let failure = Arc::clone(&self.failure);
        let running = TaskCount::begin(&self.running, name);
        self.tracker.spawn(async move {
            let _running = running;
            let outcome = tokio::select! {
                outcome = watched => outcome,
                () = shutdown.hard().cancelled() => Ok(()),
            };
            if let Err(crash) = outcome {
                error!(task.name = name, "{crash}");
                lock(&failure).get_or_insert(crash);
                shutdown.begin();
            }
        });
    }

    /// Runs `work` to its end inside the caller's task; a panic becomes an error instead of unwinding.
    pub async fn guard<T>(
        name: &'static str,
        work: impl Future<Output = T>,
    ) -> Result<T, TaskFailure> {
        let caught = AssertUnwindSafe(work).catch_unwind().await;
        caught.map_err(|panic| TaskFailure {
            name,
            message: message(panic.as_ref()),
        })
    }

    /// Returns the names of the tasks that run, in order, each once.
    pub fn running(&self) -> Vec<&'static str> {
        lock(&self.running).keys().copied().collect()
    }

    /// Waits until every task has ended, at most `deadline`; then aborts what is left, waits for that and names it.
    ///
    /// Errors: the first crash of a task, if any.
    pub async fn drain(&self, deadline: Duration) -> Result<Vec<&'static str>, TaskFailure> {
        self.tracker.close();
        let mut late = Vec::new();
        let ended = tokio::time::timeout(deadline, self.tracker.wait()).await;
        if ended.is_err() {
            late = self.running();
            warn!(tasks = ?late, "these did not end in {deadline:?} and are cut off");
            self.shutdown.abort();
            self.tracker.wait().await;
        }
        lock(&self.failure).take().map_or(Ok(late), Err)
    }
}

/// One task in the count, for as long as it runs.
struct TaskCount {
    all: Arc<Mutex<BTreeMap<&'static str, usize>>>,
    name: &'static str,
}

impl TaskCount {
    fn begin(all: &Arc<Mutex<BTreeMap<&'static str, usize>>>, name: &'static str) -> Self {
        *lock(all).entry(name).or_default() += 1;
        Self {
            all: Arc::clone(all),
            name,
        }
    }
}

impl Drop for TaskCount {
    fn drop(&mut self) {
        let mut all = lock(&self.all);
        if let Entry::Occupied(mut count) = all.entry(self.name) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns what a panic said, without secrets: it goes into rows and answers.
fn message(panic: &(dyn Any + Send)) -> String {
    let said = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    secrets::strike(said.unwrap_or("panic without a message")).into_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_crashed_task_begins_the_shutdown_and_is_named() {
        let supervisor = Supervisor::new(Shutdown::new());
        supervisor.spawn("healthy", {
            let stop = supervisor.shutdown().soft().clone();
            async move { stop.cancelled().await }
        });
        supervisor.spawn("broken", async { panic!("out of rope") });
        let failure = supervisor.drain(Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(
            failure,
            TaskFailure {
                name: "broken",
                message: "out of rope".to_owned()
            }
        );
    }

    #[test]
    fn each_rest_is_twice_as_long_and_the_last_crash_has_none() {
        let restarts = Restarts::default();
        let rests: Vec<Option<u64>> = (1..=6)
            .map(|crashes| Some(restarts.rest_after(crashes)?.as_secs()))
            .collect();
        assert_eq!(rests, [Some(1), Some(2), Some(4), Some(8), None, None]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_crashes_is_started_again_until_it_is_given_up() {
        let supervisor = Supervisor::new(Shutdown::new());
        let told: Arc<Mutex<Vec<Option<u64>>>> = Arc::default();
        let heard = Arc::clone(&told);
        let crashed: CrashHandler = Box::new(move |message, rest| {
            assert_eq!(message, "out of rope");
            let rest = rest.map(|rest| rest.as_secs());
            heard.lock().unwrap().push(rest);
            Box::pin(async {})
        });
        let start = || async { panic!("out of rope") }.boxed();
        supervisor.spawn_again("part", Restarts::default(), start, crashed);
        supervisor.shutdown().soft().cancelled().await;
        let failure = supervisor.drain(Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(failure.name, "part");
        let told = told.lock().unwrap().clone();
        assert_eq!(told, [Some(1), Some(2), Some(4), Some(8), None]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_looks_after_a_process_begins_anew_and_ends_with_it() {
        let supervisor = Supervisor::new(Shutdown::new());
        let begun: Arc<AtomicU32> = Arc::default();
        let stop = supervisor.shutdown().soft().clone();
        let count = Arc::clone(&begun);
        supervisor.keep("backups", move || {
            let (count, stop) = (Arc::clone(&count), stop.clone());
            async move {
                assert_ne!(count.fetch_add(1, Ordering::Relaxed), 0, "out of rope");
                stop.cancelled().await;
            }
        });
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(begun.load(Ordering::Relaxed), 2);
        supervisor.shutdown().begin();
        assert_eq!(supervisor.drain(Duration::from_secs(5)).await, Ok(vec![]));
    }

    #[tokio::test]
    async fn a_task_that_ignores_the_drain_is_aborted_at_the_deadline() {
        let supervisor = Supervisor::new(Shutdown::new());
        supervisor.spawn("deaf", std::future::pending());
        supervisor.spawn("healthy", {
            let stop = supervisor.shutdown().soft().clone();
            async move { stop.cancelled().await }
        });
        assert_eq!(supervisor.running(), ["deaf", "healthy"]);
        supervisor.shutdown().begin();
        assert_eq!(
            supervisor.drain(Duration::from_millis(10)).await,
            Ok(vec!["deaf"])
        );
        assert!(supervisor.running().is_empty());
    }
}
