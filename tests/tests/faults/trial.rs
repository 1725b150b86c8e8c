//! One trial: a project that is approved, faults while it is built, and the count of what came of it.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use nix::sys::signal::Signal;
use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::review::{Review, ReviewKind};
use ropewalk_store::{DeliveryFilter, DeliveryState, Query, Store};
use ropewalk_tests::namespaces;
use ropewalk_tests::soak::count;

use crate::ledger;
use crate::picture::{TIMER, check_at_rest, events_of, git, landed, store};
use crate::project::{LINES, PATIENCE, Project, TASKS, identity};
use crate::running::{RunningProgram, finish, start};

/// How long one fault may take to happen.
pub(crate) const UNTIL_FAULT: Duration = Duration::from_mins(1);

/// Names the project to copy to a test that runs itself again.
const APPROVED: &str = "ROPEWALK_TEST_APPROVED";

/// Returns how long something stands still: `usually` in `./check`, what the environment says in `./check --soak`.
pub(crate) fn pause(usually: u32) -> anyhow::Result<Duration> {
    let seconds = count("ROPEWALK_SOAK_PAUSE_SECONDS", usually)?;
    Ok(Duration::from_secs(seconds.into()))
}

/// Returns a time below `limit` that looks random and is the same in every run.
pub(crate) fn scatter(number: u32, limit: Duration) -> Duration {
    let hash = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    limit * u32::try_from(hash & 0xffff).unwrap_or_default() / 0x1_0000
}

/// Looks until `look` finds something.
pub(crate) async fn until<T>(
    project: &Project,
    what: &str,
    mut look: impl AsyncFnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let began = Instant::now();
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        let late = began.elapsed() > PATIENCE;
        ensure!(!late, "no {what} in time: {}", project.said());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns a fresh copy of the approved project, on which no `up` ever ran.
pub(crate) fn approved() -> anyhow::Result<Project> {
    let directory = tempfile::tempdir()?;
    copy(shared()?, directory.path())?;
    Ok(Project::at(directory))
}

/// Returns the project that trials copy, made once.
fn shared() -> anyhow::Result<&'static Path> {
    static TEMPLATE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let template = TEMPLATE.get_or_init(|| match std::env::var_os(APPROVED) {
        Some(place) => Ok(place.into()),
        None => template().map_err(|error| format!("{error:#}")),
    });
    let template = template.as_ref().map(PathBuf::as_path);
    template.map_err(|error| anyhow::anyhow!("{error}"))
}

/// Runs a test again where it may mount file systems; answers whether this is that second run.
pub(crate) fn may_mount(test: &str) -> anyhow::Result<bool> {
    if namespaces::are_own() {
        return Ok(true);
    }
    namespaces::run(test, &[(APPROVED, shared()?.as_os_str())])?;
    Ok(false)
}

/// Makes the project that trials copy; it stays in the target directory until the next test run.
fn template() -> anyhow::Result<PathBuf> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("approved-project");
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    let project = Project::new()?;
    project.approve()?;
    copy(project.path(), &place)?;
    Ok(place)
}

/// Copies a folder with all that is in it.
pub(crate) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    let status = Command::new("cp")
        .arg("-a")
        .arg(from.join("."))
        .arg(to)
        .status()?;
    ensure!(status.success(), "cannot copy `{}`", from.display());
    Ok(())
}

impl Project {
    /// Chats the idea into a specification, and returns its id and hash.
    pub(crate) fn specify(&self) -> anyhow::Result<(String, String)> {
        self.verb(
            &["idea", "new", "I want to track habits", "--slug", "habits"],
            "",
        )?;
        let chat = ["idea", "chat", "habits"];
        self.runner.run_with_input(&chat, LINES, PATIENCE)?;
        identity(&self.verb(&["spec", "generate", "habits"], "")?)
    }

    /// Does the same and approves it.
    pub(crate) fn approve(&self) -> anyhow::Result<()> {
        let (id, hash) = self.specify()?;
        self.verb(&["spec", "approve", &id, "--hash", &hash], "")?;
        Ok(())
    }

    /// Runs `up` with a failpoint until the process aborts there; fails when it does not come to that.
    pub(crate) async fn crash_at(&self, plan: &str, more: &[&str]) -> anyhow::Result<()> {
        let arguments = [&["up"], more].concat();
        let mut up = start(&self.runner.failing(plan), &arguments)?;
        let status = end_of(&mut up, UNTIL_FAULT).await;
        let status = status.with_context(|| format!("`{plan}` never happened: {}", self.said()))?;
        let aborted = status.signal() == Some(Signal::SIGABRT as i32);
        ensure!(
            aborted,
            "`{plan}` was to abort, it ended with {status}: {}",
            self.said()
        );
        Ok(())
    }

    /// Starts `up` and kills it `after` that.
    pub(crate) async fn kill_after(&self, after: Duration) -> anyhow::Result<()> {
        let up = start(&self.runner, &["up"])?;
        tokio::time::sleep(after).await;
        self.kill(up).await
    }

    /// Kills `up` and makes sure that it was the kill that ended it.
    pub(crate) async fn kill(&self, mut up: RunningProgram) -> anyhow::Result<()> {
        up.0.kill()?;
        let status = end_of(&mut up, UNTIL_FAULT).await?;
        let killed = status.signal() == Some(Signal::SIGKILL as i32);
        ensure!(killed, "it ended by itself with {status}: {}", self.said());
        Ok(())
    }

    /// Runs `up` to the end of the build and checks what came of all.
    pub(crate) async fn finish_and_check(&self) -> anyhow::Result<()> {
        let finished = finish(&self.runner, self.path(), 1).await;
        finished.with_context(|| self.said())?;
        self.check().await.with_context(|| self.said())
    }

    /// Checks that the whole build happened, once.
    pub(crate) async fn check(&self) -> anyhow::Result<()> {
        self.check_in(store(self.path()).await?).await
    }

    /// Checks the same in a store that lies elsewhere.
    pub(crate) async fn check_in(&self, store: Store) -> anyhow::Result<()> {
        let tasks: Vec<String> = (1..=TASKS).map(|number| format!("T-{number:03}")).collect();
        let commits = landed(&self.repository(), "build/habits")?;
        let commits: Vec<String> = commits.into_iter().map(|commit| commit.task).collect();
        ledger::check("commits", &tasks, &commits)?;
        let attempts = store.list::<Attempt>(Query::new()).await?;
        let landings: Vec<String> = attempts
            .iter()
            .filter(|attempt| attempt.state == AttemptState::Landed)
            .map(|attempt| attempt.task.to_string())
            .collect();
        ledger::check("attempts that landed", &tasks, &landings)?;
        check_events(&store, &tasks).await?;
        check_deliveries(&store).await?;
        let builds = store.list::<Build>(Query::new()).await?;
        let [build] = builds.as_slice() else {
            bail!("{} builds", builds.len());
        };
        assert_eq!(build.state, BuildState::Succeeded);
        assert_eq!(build.head, build.published);
        let branch = git(&self.repository(), &["rev-parse", "build/habits"])?;
        assert_eq!(build.head.as_ref().map(ToString::to_string), Some(branch));
        let reviews = store.list::<Review>(Query::new()).await?;
        let of_builds = reviews
            .iter()
            .filter(|review| review.kind == ReviewKind::Build);
        assert_eq!(of_builds.count(), 1, "reviews of the build");
        check_at_rest(&store).await?;
        Ok(store.close().await?)
    }

    /// Returns the last lines that the program said in the background.
    pub(crate) fn said(&self) -> String {
        let text = fs::read_to_string(self.runner.log()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

/// Checks that what happens once to a build or a task was told once.
async fn check_events(store: &Store, tasks: &[String]) -> anyhow::Result<()> {
    let completed = events_of(store, "task.completed").await?;
    let completed: Vec<String> = completed
        .iter()
        .map(|stored| stored.event.data["task_id"].as_str().unwrap_or_default())
        .map(str::to_owned)
        .collect();
    ledger::check("`task.completed`", tasks, &completed)?;
    for once in ["spec.approved", "build.started", "build.completed"] {
        let found = events_of(store, once).await?;
        ledger::check(
            once,
            &[once.to_owned()],
            &vec![once.to_owned(); found.len()],
        )?;
    }
    Ok(())
}

/// Checks that every delivery that ever was is handled; a timer may fire in the moment of the stop.
async fn check_deliveries(store: &Store) -> anyhow::Result<()> {
    let filter = DeliveryFilter {
        limit: Some(100_000),
        ..DeliveryFilter::default()
    };
    let rows = store.deliveries(&filter).await?;
    ensure!(!rows.is_empty(), "there are no deliveries at all");
    let left: Vec<_> = rows
        .iter()
        .filter(|row| row.state != DeliveryState::Done)
        .filter(|row| row.state != DeliveryState::Open || row.event_type != TIMER)
        .collect();
    ensure!(left.is_empty(), "not handled: {left:?}");
    Ok(())
}

/// Waits for the end of a program.
pub(crate) async fn end_of(
    program: &mut RunningProgram,
    limit: Duration,
) -> anyhow::Result<ExitStatus> {
    let began = Instant::now();
    loop {
        if let Some(status) = program.0.try_wait()? {
            return Ok(status);
        }
        ensure!(began.elapsed() < limit, "it had not ended after {limit:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
