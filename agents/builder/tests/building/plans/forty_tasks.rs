//! Forty tasks on four loops that meet every failure there is, in the order that each seed gives it.

mod plan;
mod reference;
mod world;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_builder::decide::order::claimable;
use ropewalk_builder::decide::readiness::edges;
use ropewalk_builder::decide::step::{self, Step, StopLimits};
use ropewalk_builder::machine::task::{Input, apply};
use ropewalk_gate::checks::GateCheck;
use ropewalk_schemas::agent::AgentState;
use ropewalk_schemas::attempt::{Attempt, AttemptState, FailureClass, Verdict};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::lease::LeaseState;
use ropewalk_schemas::task::{Task, TaskState, WaitReason};
use ropewalk_schemas::{ComponentName, Payload, SpecId, Subject};
use ropewalk_tests::soak;

use crate::world::project::{OpenProject, Project, request, task};
use plan::HELD;
use reference::{Stretch, makespan};
use world::World;

/// So many timings are played, where nobody asks for more.
const SEEDS: u32 = 3;
/// So many at the same time.
const SIDE_BY_SIDE: usize = 3;
/// The loops of the build.
const LOOPS: usize = 4;
/// Where the tasks end, and the failures on the way there.
const EXPECTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tables/forty_tasks.txt");
/// How long nothing may move before the test gives up.
const PATIENCE: Duration = Duration::from_mins(1);
/// The store is looked at so often, whatever happens.
const LOOK_AT_LEAST: Duration = Duration::from_millis(150);
/// Loops look by themselves so often.
const LOOK_EVERY: TimeDelta = TimeDelta::seconds(2);

#[test]
fn soak_forty_tasks_that_meet_every_failure_end_in_one_outcome_whatever_the_timing() {
    let (first, last) = seeds();
    let next = AtomicU64::new(first);
    let trees: Mutex<BTreeMap<String, u64>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                let mut runtime = tokio::runtime::Builder::new_multi_thread();
                let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed > last {
                        return;
                    }
                    let tree = runtime.block_on(play(seed));
                    trees.lock().unwrap().insert(tree, seed);
                }
            });
        }
    });
    let trees = trees.into_inner().unwrap();
    assert_eq!(
        trees.len(),
        1,
        "one outcome, whatever the timing: {trees:?}"
    );
}

/// All of them, or the one that `FORTY_TASKS_SEED` names.
fn seeds() -> (u64, u64) {
    let Some(seed) = std::env::var_os("FORTY_TASKS_SEED") else {
        let timings = soak::count("ROPEWALK_SOAK_TIMINGS", SEEDS).unwrap();
        return (1, u64::from(timings));
    };
    let seed = seed.to_str().unwrap().parse().unwrap();
    (seed, seed)
}

/// Plays one timing and returns the tree that was built.
async fn play(seed: u64) -> String {
    // Nothing here is to survive a power cut, so the disk is left out where that can be.
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    let project = Project::new_in(&place, &plan::script());
    let directory = project.directory.path().join("world");
    let world = World::new(seed, &directory);
    let project = project
        .with_files(&plan::FILES)
        .at_the_time_of(&world.clock)
        .paced_by(Arc::clone(&world) as _)
        .with_programs(directory.join("bin"))
        .with(|options| {
            options.loops = LOOPS;
            options.lease = Duration::from_hours(9);
            options.gate.checks = vec![GateCheck {
                name: "limit".to_owned(),
                command: world::limit(&directory),
                kind: None,
                level: None,
                timeout: Duration::from_secs(5),
            }];
        });
    let open = project.open().await;
    let spec = open.approve(plan::tasks(&directory)).await;
    let mut run = Run {
        seed,
        directory: &directory,
        world: &world,
        open: &open,
        spec,
        answers: HashMap::new(),
        resumed: None,
        rests: HashMap::new(),
        rested: None,
    };
    run.play_out().await;
    let tree = open.git(&["rev-parse", "build/habits^{tree}"]);
    world.end();
    open.close().await;
    tree
}

/// One timing under way.
struct Run<'a> {
    seed: u64,
    directory: &'a Path,
    world: &'a World,
    open: &'a OpenProject,
    spec: SpecId,
    /// When the person answers, by task; gone once it is answered, and noted in `rests`.
    answers: HashMap<String, DateTime<Utc>>,
    resumed: Option<DateTime<Utc>>,
    /// From when on the next attempt at a task could begin, by task and attempt.
    rests: HashMap<(String, u32), DateTime<Utc>>,
    /// Whether nothing but questions was left once.
    rested: Option<DateTime<Utc>>,
}

impl Run<'_> {
    async fn play_out(&mut self) {
        let mut moved = std::time::Instant::now();
        let mut looked = moved;
        let mut quiet = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(3)).await;
            let waited = moved.elapsed();
            // Cheap to ask; the store is asked only when everybody seems to wait, and now and then.
            if !self.loops_are_idle() && looked.elapsed() < LOOK_AT_LEAST {
                quiet = 0;
                continue;
            }
            looked = std::time::Instant::now();
            let (build, tasks) = self.look().await;
            if build
                .as_ref()
                .is_some_and(|build| build.completed_at.is_some())
            {
                let build = build.unwrap();
                assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
                return;
            }
            assert!(
                waited < PATIENCE,
                "seed {}: {build:#?} {tasks:#?}",
                self.seed
            );
            let still = match &build {
                Some(build) => self.is_still(build, &tasks).await,
                None => false,
            };
            quiet = if still { quiet + 1 } else { 0 };
            // Twice, so that nobody was just between two steps.
            if quiet >= 2 {
                quiet = 0;
                if self.step(&build.unwrap(), &tasks).await {
                    moved = std::time::Instant::now();
                }
            } else if waited > Duration::from_millis(400) && self.loops_are_idle() {
                // What came due is seen at the next look of a loop.
                self.world.reach(self.world.clock.now() + LOOK_EVERY);
            }
        }
    }

    async fn look(&mut self) -> (Option<Build>, Vec<Task>) {
        let build = self.open.build(self.spec).await;
        let tasks = match &build {
            Some(build) => self.open.tasks(build.id).await,
            None => Vec::new(),
        };
        for task in &tasks {
            if let Some(due) = task.not_before {
                let key = (task.id.to_string(), task.attempts);
                self.rests.insert(key, due);
            }
        }
        let ended = |name: &str| {
            let task = tasks.iter().find(|task| task.id.as_str() == name);
            task.is_some_and(|task| task.state == TaskState::Complete)
        };
        if ended(HELD.1) {
            self.world.release(&format!("model {} 1", HELD.0));
        }
        let limited = tasks.iter().find(|task| task.id.as_str() == plan::LIMIT);
        if limited.is_some_and(|task| !task.state.is_active() || task.attempts > 1) {
            self.world.release("limit");
        }
        (build, tasks)
    }

    fn busy_loops(&self) -> usize {
        let components = self.open.services.registry.snapshot();
        components
            .iter()
            .filter(|component| component.name.as_str().starts_with("loop-"))
            .filter(|component| component.state == AgentState::Active)
            .count()
    }

    fn loops_are_idle(&self) -> bool {
        self.busy_loops() == self.world.waiting().0
    }

    /// Says that everybody waits for the world.
    async fn is_still(&self, build: &Build, tasks: &[Task]) -> bool {
        let (waiting, _) = self.world.waiting();
        let active = tasks.iter().filter(|task| task.state.is_active()).count();
        let settled = matches!(build.state, BuildState::Running | BuildState::Paused)
            && step::next(build, tasks, &StopLimits::default(), self.world.clock.now())
                == Step::Continue
            && edges(tasks).into_iter().all(|(id, edges)| {
                let task = task(tasks, id.as_str());
                let settled = apply(task, Input::Edges(edges), self.world.clock.now());
                settled.is_ok_and(|(settled, _)| settled == *task)
            });
        if self.busy_loops() != waiting || active != waiting || !settled {
            return false;
        }
        let anybody = ComponentName::parse("loop-1").unwrap();
        let now = self.world.clock.now();
        let free = build.state == BuildState::Running && waiting < LOOPS;
        let claims = free && !claimable(tasks, &anybody, now).is_empty();
        let due = |task: &Task| match task.waiting_for {
            Some(WaitReason::Quota) => task.not_before.is_none_or(|due| due <= now),
            _ => false,
        };
        let wakes = tasks
            .iter()
            .any(|task| task.state == TaskState::Waiting && due(task));
        !claims && !wakes && !self.a_lock_is_free(tasks).await && self.nothing_is_under_way().await
    }

    async fn a_lock_is_free(&self, tasks: &[Task]) -> bool {
        let waits = |task: &&Task| {
            task.state == TaskState::Waiting && task.waiting_for == Some(WaitReason::Lock)
        };
        if !tasks.iter().any(|task| waits(&task)) {
            return false;
        }
        let held = self.open.held_locks().await;
        tasks.iter().filter(waits).any(|task| {
            !held
                .iter()
                .any(|lease| lease.state == LeaseState::Granted && lease.path == task.block.file)
        })
    }

    async fn nothing_is_under_way(&self) -> bool {
        let store = &self.open.services.store;
        store.open_deliveries(None, 0, 1).await.unwrap().is_empty()
    }

    /// Lets the next thing come to pass; says whether there was one.
    async fn step(&mut self, build: &Build, tasks: &[Task]) -> bool {
        self.consider(tasks);
        let (_, sleeper) = self.world.waiting();
        let now = self.world.clock.now();
        let rest = tasks
            .iter()
            .filter(|task| matches!(task.state, TaskState::Ready | TaskState::Waiting))
            .filter_map(|task| task.not_before)
            .filter(|due| *due > now)
            .min();
        let answer = self.answers.values().min().copied();
        if let Some(due) = [sleeper, rest, answer].into_iter().flatten().min() {
            self.world.reach(due);
            self.answer_what_is_due(tasks).await;
            return true;
        }
        if self.world.waiting().0 > 0 || build.state != BuildState::Paused {
            return false;
        }
        self.at_rest(build, tasks).await;
        true
    }

    /// Lets the person think about a change to a test, once it is asked about.
    fn consider(&mut self, tasks: &[Task]) {
        for task in tasks {
            let asks =
                task.state == TaskState::Waiting && task.waiting_for == Some(WaitReason::Person);
            let name = task.id.to_string();
            if asks && !self.answers.contains_key(&name) {
                let thinks = self.world.draw(&format!("person {name}"), 30, 200);
                self.answers.insert(name, self.world.clock.now() + thinks);
            }
        }
    }

    async fn answer_what_is_due(&mut self, tasks: &[Task]) {
        let now = self.world.clock.now();
        let due: Vec<String> = self
            .answers
            .extract_if(|_, at| *at <= now)
            .map(|(task, _)| task)
            .collect();
        for name in due {
            let task = tasks.iter().find(|task| task.id.as_str() == name).unwrap();
            self.rests.insert((name.clone(), task.attempts), now);
            self.open.answer(&name, "allow").await;
        }
    }

    /// Nothing moves by itself: first the missing tool is brought, then the outcome is looked at and the rest left out.
    async fn at_rest(&mut self, build: &Build, tasks: &[Task]) {
        let held = tasks
            .iter()
            .find(|task| task.waiting_for == Some(WaitReason::Check));
        if let Some(held) = held {
            assert_eq!(self.resumed, None, "one resume is enough");
            let now = self.world.clock.now();
            self.resumed = Some(now);
            self.rests.insert((held.id.to_string(), held.attempts), now);
            bring_tool(self.directory);
            let resume = Payload::BuildResume(request(build.id));
            self.open.emit(Subject::build(build.id), resume).await;
            return;
        }
        assert_eq!(self.rested, None, "seed {}: {build:#?}", self.seed);
        self.rested = Some(self.world.clock.now());
        self.check(build, tasks).await;
        self.world.instant.store(true, Ordering::SeqCst);
        for task in tasks.iter().filter(|task| task.state == TaskState::Failed) {
            self.open.answer(task.id.as_str(), "skip").await;
        }
    }

    /// Holds the outcome against the committed table, the evidence and the reference.
    async fn check(&self, build: &Build, tasks: &[Task]) {
        let mut lines = Vec::new();
        let mut attempts = HashMap::new();
        for task in tasks {
            let tried = self.open.attempts(build.id, task.id.as_str()).await;
            lines.push(outcome(task, &tried));
            attempts.insert(task.id.to_string(), tried);
        }
        lines.push(String::new());
        let found = lines.join("\n");
        if std::env::var_os("UPDATE_TABLES").is_some() {
            std::fs::write(EXPECTED, &found).unwrap();
        }
        let expected = std::fs::read_to_string(EXPECTED).unwrap();
        assert_eq!(found, expected, "seed {}", self.seed);
        let failed = tasks.iter().filter(|task| task.state == TaskState::Failed);
        assert!(failed.count() <= 3);
        self.check_evidence(build, tasks).await;
        let (ours, reference) = self.spans(tasks, &attempts);
        let limit = reference + reference * 15 / 100;
        assert!(
            ours <= limit,
            "seed {}: {ours} ms against {reference} ms of a list scheduler",
            self.seed
        );
    }

    async fn check_evidence(&self, build: &Build, tasks: &[Task]) {
        let evidence = self.open.evidence(build.id).await;
        for task in tasks
            .iter()
            .filter(|task| task.state == TaskState::Complete)
        {
            let seen = evidence.iter().any(|seen| {
                Some(&seen.commit) == task.commit.as_ref()
                    && seen.task.as_ref() == Some(&task.id)
                    && seen.verdict == Verdict::Passed
                    && !seen.checks.is_empty()
            });
            assert!(seen, "seed {}: `{}` without evidence", self.seed, task.id);
        }
    }

    /// Returns how long the attempts took together, and how long a list scheduler takes for the same.
    fn spans(&self, tasks: &[Task], attempts: &HashMap<String, Vec<Attempt>>) -> (i64, i64) {
        let all = || attempts.values().flatten();
        let begun = all().map(|attempt| attempt.started_at).min().unwrap();
        let ended = all().filter_map(|attempt| attempt.ended_at).max().unwrap();
        let mut stretches = HashMap::new();
        for (task, tried) in attempts {
            let list: Vec<Stretch> = tried
                .iter()
                .map(|one| self.stretch(task, one, begun))
                .collect();
            stretches.insert(task.clone(), list);
        }
        let ends = tasks.iter().map(|task| (task.id.to_string(), task.state));
        let fresh: Vec<Task> = tasks.iter().map(planned).collect();
        let reference = makespan(fresh, &stretches, &ends.collect(), LOOPS);
        ((ended - begun).num_milliseconds(), reference)
    }

    fn stretch(&self, task: &str, attempt: &Attempt, begun: DateTime<Utc>) -> Stretch {
        let ended = attempt.ended_at.unwrap();
        // One that ended with its last try refused began no other one after it.
        let tries = [attempt.latest_try(), attempt.latest_try() - 1];
        let rests = |number: u32| self.rests.get(&(task.to_owned(), number)).copied();
        let rest = tries.into_iter().find_map(rests).unwrap_or(ended);
        // What a person or the end of everything else decides comes at its own time; a pause comes after the attempt.
        let person = matches!(task, "T-10" | "T-11");
        Stretch {
            millis: (ended - attempt.started_at).num_milliseconds(),
            rest: if person {
                0
            } else {
                (rest - ended).num_milliseconds().max(0)
            },
            not_before: if person {
                (rest - begun).num_milliseconds()
            } else {
                0
            },
        }
    }
}

/// Tells how a task ended and what failed on the way, or was held.
fn outcome(task: &Task, tried: &[Attempt]) -> String {
    let mut steps = Vec::new();
    for attempt in tried {
        let refused = attempt.tries.iter().map(|one| one.failure.class);
        steps.extend(refused.map(class_name));
        steps.push(match (&attempt.failure, attempt.state) {
            (_, AttemptState::Landed) => "landed".to_owned(),
            (Some(failure), _) => class_name(failure.class),
            (None, state) => state.to_string(),
        });
    }
    format!("{} {}: {}", task.id, task.state, steps.join(", "))
}

fn class_name(class: FailureClass) -> String {
    let class = serde_json::to_value(class).unwrap();
    class.as_str().unwrap().to_owned()
}

/// A task as it was before the build.
fn planned(task: &Task) -> Task {
    Task {
        state: TaskState::Pending,
        reason: None,
        blocked_by: Vec::new(),
        not_before: None,
        assigned_to: None,
        ..task.clone()
    }
}

fn bring_tool(directory: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let tool = directory.join("bin").join(plan::TOOL);
    std::fs::write(&tool, "#!/bin/sh\ngrep -q \"$1\" \"$2\"\n").unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
}
