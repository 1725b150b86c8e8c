//! Builds approved specifications unattended: claims tasks, runs attempts, gates candidates, lands what passed.
//!
//! The handler only moves records and wakes the workers. One scheduler settles builds (readiness, pauses, ends), primes
//! and checks them as a whole; the loops claim tasks and run attempts.
//!
//! Rooms: `scheduler` (what is done for builds), `loops` and `claim` (who works at what), `attempt` (one try and its ending),
//! `act` (what handlers do), `effects` (a transition as a change set), `ask`; `machine` and `decide` are pure. One more thing
//! that a build can meet is an input of `machine`, its effects, and whoever sends it.

mod act;
mod ask;
mod attempt;
mod budget;
mod claim;
mod context;
mod effects;
mod error;
mod isolation;
mod loops;
mod milestones;
mod outages;
mod processes;
mod scheduler;
mod signals;

pub mod decide;
pub mod land;
pub mod machine;
mod options;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use ropewalk_config::{Prompts, QuestionTemplates, StackProfiles};
use ropewalk_desk::ideas;
use ropewalk_engine::Engine;
use ropewalk_orchestrator::{Agent, AgentError, Context, Profile, Worker};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::{ComponentName, Event, EventPattern, InvalidId, Payload};
use ropewalk_store::ChangeSet;
use ropewalk_workspace::{CleanPool, CommandRunner, LocalClone, SlotPool};

use attempt::survey::Survey;
use isolation::Isolation;
pub use options::{BuildOptions, Shape, budgets};
use processes::{Processes, SPARE_CHECKOUTS};
use ropewalk_gate::project::Machine;
use ropewalk_gate::runner::{GateRunner, RunnerParts};
use signals::Signals;

/// The events that the agent takes.
const TAKES: &[&str] = &[
    "spec.approved",
    "build.pause",
    "build.resume",
    "build.stop",
    "build.merged",
    "build.priority",
    "build.tell",
    "idea.abandoned",
    "task.retry",
    "task.completed",
    "task.skipped",
    "work.assigned",
    "decision.made",
    "lock.released",
    "lock.revoked",
    "change.decided",
    "review.completed",
    "question.answered",
    "question.defaulted",
];
/// How many deliveries are handled at once; each one is short.
const IN_FLIGHT: usize = 16;

/// What the agent is made of.
pub struct BuildParts {
    /// Asks models and runs their tools.
    pub engine: Engine,
    /// The local clone of the user's repository.
    pub clone: LocalClone,
    /// Runs the commands of the gate.
    pub runner: CommandRunner,
    /// The questions it may ask.
    pub questions: QuestionTemplates,
    /// What models are told.
    pub prompts: Prompts,
    /// The stacks that are known, with the tools that models are told of.
    pub stacks: StackProfiles,
    /// The state directory.
    pub state: PathBuf,
    /// What it keeps to.
    pub options: BuildOptions,
    /// The number of this process, where others build on the same state at the same time.
    pub process: Option<u32>,
}

/// The build agent.
pub struct BuildAgent {
    role: ComponentName,
    shared: Arc<SharedState>,
    scheduler: ComponentName,
    loops: Vec<ComponentName>,
}

/// What handler, scheduler and loops share.
pub(crate) struct SharedState {
    engine: Engine,
    clone: LocalClone,
    runner: CommandRunner,
    questions: QuestionTemplates,
    prompts: Prompts,
    survey: Survey,
    state: PathBuf,
    options: BuildOptions,
    processes: Processes,
    slots: SlotPool,
    gate: GateRunner,
    signals: Signals,
    isolation: Isolation,
}

impl SharedState {
    /// Returns the folder of a build's idea in the state directory.
    fn idea_folder(&self, build: &Build) -> PathBuf {
        ideas::folder(&self.state, &build.user, &build.idea)
    }
}

impl BuildAgent {
    /// Makes the agent.
    pub fn new(parts: BuildParts) -> Result<Self, InvalidId> {
        let BuildParts {
            engine,
            clone,
            runner,
            questions,
            prompts,
            stacks,
            state,
            options,
            process,
        } = parts;
        let loops = options.loops.max(1);
        let checkouts = loops + SPARE_CHECKOUTS;
        let processes = Processes::new(process, &state);
        let names: Result<Vec<ComponentName>, InvalidId> = (1..=loops)
            .map(|number| processes.loop_name(number))
            .collect();
        Ok(Self {
            role: ComponentName::parse("build")?,
            scheduler: processes.scheduler()?,
            loops: names?,
            shared: Arc::new(SharedState {
                slots: SlotPool::new(clone.clone(), checkouts),
                gate: GateRunner::new(RunnerParts {
                    clone: clone.clone(),
                    runner: runner.clone(),
                    at_once: loops + 1,
                    pool: CleanPool::for_gates(clone.clone(), checkouts),
                    gate: options.gate.clone(),
                    validation_timeout: options.validation_timeout,
                    package_managers: options.package_managers.clone(),
                }),
                survey: Survey::new(Machine {
                    stacks,
                    runner: runner.clone(),
                    package_managers: options.package_managers.clone(),
                }),
                engine,
                clone,
                runner,
                questions,
                prompts,
                state,
                options,
                signals: Signals::default(),
                isolation: Isolation::default(),
                processes,
            }),
        })
    }
}

#[async_trait]
impl Agent for BuildAgent {
    fn profile(&self) -> Profile {
        Profile {
            role: self.role.clone(),
            patterns: TAKES.iter().map(|name| EventPattern::of(name)).collect(),
            in_flight: IN_FLIGHT,
            schedules: Vec::new(),
        }
    }

    async fn recover(&self, context: &Context) -> Result<(), AgentError> {
        Box::pin(scheduler::recover::run(&self.shared, context)).await?;
        Ok(())
    }

    async fn handle(&self, event: &Event, context: &Context) -> Result<ChangeSet, AgentError> {
        act::handle(&self.shared, event, context).await
    }

    // Whoever misses the call finds the same in the store a little later: the scheduler what runs no more, an attempt
    // at its next renewal that its locks are gone.
    async fn committed(&self, event: &Event, _context: &Context) {
        if let Payload::LockRevoked(lost) = &event.payload {
            self.shared.signals.cancel(lost.attempt_id, &lost.reason);
        }
        if let Some(build) = act::answers::wants_publication(&event.payload) {
            self.shared.signals.owe(build);
        }
        self.shared.signals.wake_scheduler();
        self.shared.signals.wake_loops();
    }

    fn workers(&self) -> Vec<Worker> {
        let scheduler = Arc::clone(&self.shared);
        let mut workers = vec![Worker {
            name: self.scheduler.clone(),
            run: Box::new(move |context, stop| {
                Box::pin(scheduler::run(Arc::clone(&scheduler), context, stop))
            }),
        }];
        for name in &self.loops {
            let shared = Arc::clone(&self.shared);
            workers.push(Worker {
                name: name.clone(),
                run: Box::new(move |context, stop| {
                    Box::pin(loops::run(Arc::clone(&shared), context, stop))
                }),
            });
        }
        workers
    }
}
