//! Builds approved specifications unattended: claims tasks, runs attempts, gates candidates, lands what passed.
//!
//! The handler only moves records and wakes the workers. One steward settles builds (readiness, pauses, ends), primes
//! and checks them as a whole; the loops claim tasks and run attempts.

mod act;
mod ask;
mod attempt;
mod claim;
mod context;
mod court;
mod crowd;
mod ending;
mod join;
mod landing;
mod lessons;
mod loops;
mod milestones;
mod obstacles;
mod prime;
mod prompt;
mod publish;
mod purse;
mod recover;
mod settle;
mod signals;
mod steward;
mod tasks_file;
mod trouble;
mod verdicts;
mod verify;
mod waiting;

pub mod decide;
pub mod gate;
pub mod land;
mod options;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use ropewalk_config::{Prompts, QuestionTemplates};
use ropewalk_engine::Engine;
use ropewalk_orchestrator::{Agent, AgentError, Context, Profile, Worker};
use ropewalk_schemas::{ComponentName, Event, EventPattern, InvalidId};
use ropewalk_store::ChangeSet;
use ropewalk_workspace::{CommandRunner, LocalClone, SlotPool};

use crowd::{Crowd, SPARE_CHECKOUTS};
use gate::house::{GateHouse, GateParts};
pub use options::{BuildOptions, budgets};
use signals::Signals;

/// The events that the agent takes.
const TAKES: &[&str] = &[
    "spec.approved",
    "build.pause",
    "build.resume",
    "build.stop",
    "build.merged",
    "task.retry",
    "task.completed",
    "task.skipped",
    "work.assigned",
    "decision.made",
    "lock.released",
    "lock.revoked",
    "change.decided",
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
    shop: Arc<Shop>,
    steward: ComponentName,
    loops: Vec<ComponentName>,
}

/// What handler, steward and loops share.
pub(crate) struct Shop {
    engine: Engine,
    clone: LocalClone,
    runner: CommandRunner,
    questions: QuestionTemplates,
    prompts: Prompts,
    state: PathBuf,
    options: BuildOptions,
    crowd: Crowd,
    slots: SlotPool,
    house: GateHouse,
    signals: Signals,
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
            state,
            options,
            process,
        } = parts;
        let loops = options.loops.max(1);
        let checkouts = loops + SPARE_CHECKOUTS;
        let crowd = Crowd::new(process, &state);
        let names: Result<Vec<ComponentName>, InvalidId> =
            (1..=loops).map(|number| crowd.loop_name(number)).collect();
        Ok(Self {
            role: ComponentName::parse("build")?,
            steward: crowd.steward()?,
            loops: names?,
            shop: Arc::new(Shop {
                slots: SlotPool::new(clone.clone(), checkouts),
                house: GateHouse::new(GateParts {
                    clone: clone.clone(),
                    runner: runner.clone(),
                    loops,
                    gate: options.gate.clone(),
                    validation_timeout: options.validation_timeout,
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
                crowd,
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
        recover::run(&self.shop, context).await?;
        Ok(())
    }

    async fn handle(&self, event: &Event, context: &Context) -> Result<ChangeSet, AgentError> {
        act::handle(&self.shop, event, context).await
    }

    fn workers(&self) -> Vec<Worker> {
        let steward = Arc::clone(&self.shop);
        let mut workers = vec![Worker {
            name: self.steward.clone(),
            run: Box::new(move |context, stop| Box::pin(steward::run(steward, context, stop))),
        }];
        for name in &self.loops {
            let shop = Arc::clone(&self.shop);
            workers.push(Worker {
                name: name.clone(),
                run: Box::new(move |context, stop| Box::pin(loops::run(shop, context, stop))),
            });
        }
        workers
    }
}
