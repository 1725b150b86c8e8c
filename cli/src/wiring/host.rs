//! Runs agents in this process: lock, store, bus, models, engine, agents, and the socket that others poke.

use std::sync::Arc;
use std::time::Duration;

use ropewalk_agents::monitor::MonitorOptions;
use ropewalk_agents::monitor::deputy::Deputy;
use ropewalk_bus::{LiveRelay, Poker, Services as BusServices, SharingOptions, SocketHome};
use ropewalk_config::Environment;
use ropewalk_config::settings::PolicySettings;
use ropewalk_engine::{CurrentValue, Engine, Models};
use ropewalk_orchestrator::{Agent, Context, Frame, Registry, Services};
use ropewalk_runtime::{Clock, Ids, Supervisor};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::{ComponentName, Slug};
use ropewalk_server::Checkup;
use ropewalk_store::{Instance, InstanceLock, Location, StartAt, Store, Subscription};
use ropewalk_telegram::TelegramClient;
use ropewalk_workspace::{Git, Sandbox};
use tracing::{error, warn};

use super::again::Again;
use super::agents::{self, Crew, Parts};
use super::follow::Follower;
use super::processes::{self, Place};
use super::sandbox::Confinement;
use super::serving::Doors;
use super::{
    backups, enter_state, models, notices, open_project, retention, sandbox, serving, transport,
};
use crate::app::App;
use crate::error::CliError;
use crate::interrupts::{Interrupts, Turn};
use crate::project::{self, Project};

/// How long work in hand may take after a stop was asked for.
const DRAIN: Duration = Duration::from_secs(8);
/// How long a broker may take for what is committed already.
const FLUSH: Duration = Duration::from_secs(2);

/// A process that runs agents: the only one on a state directory, or one of several that share the work.
pub struct Host {
    /// What every agent works with.
    pub services: Services,
    /// The tasks of this process.
    pub supervisor: Supervisor,
    /// The project.
    pub project: Project,
    interrupts: Interrupts,
    right: Right,
    git: Git,
    follower: Follower,
    /// The bot by which this process tells or listens.
    telegram: Option<TelegramClient>,
}

/// What lets this process consume.
struct Right {
    lock: InstanceLock,
    /// Where others do, too.
    place: Option<Place>,
}

/// What a process is for.
struct Scope<'a> {
    crew: Crew,
    /// The build that it does again.
    again: Option<&'a Again>,
    /// The one idea that it works on; none for all of them.
    only: Option<Slug>,
}

impl Scope<'_> {
    /// All that the agents of `crew` find to do.
    const fn of(crew: Crew) -> Self {
        Self {
            crew,
            again: None,
            only: None,
        }
    }
}

impl Host {
    /// Returns whether the commands of models and gates are confined.
    pub fn is_confined(&self) -> bool {
        self.follower.is_confined
    }

    /// Starts every agent.
    pub async fn start(app: &App, project: Project) -> Result<Self, CliError> {
        Self::start_crew(app, project, Crew::Everyone).await
    }

    /// Starts the agents of `crew`; a signal meanwhile, or before, ends that, and all of them later.
    pub async fn start_crew(app: &App, project: Project, crew: Crew) -> Result<Self, CliError> {
        Self::start_as(app, project, Scope::of(crew)).await
    }

    /// Starts the agents of `crew` for a verb about `idea`; what waits of other ideas is left to the next start.
    pub async fn start_for(
        app: &App,
        project: Project,
        (crew, idea): (Crew, Slug),
    ) -> Result<Self, CliError> {
        let scope = Scope {
            only: Some(idea),
            ..Scope::of(crew)
        };
        Self::start_as(app, project, scope).await
    }

    /// Starts those that do a build again.
    pub async fn start_again(app: &App, project: Project, again: &Again) -> Result<Self, CliError> {
        let scope = Scope {
            again: Some(again),
            ..Scope::of(Crew::Replay)
        };
        Self::start_as(app, project, scope).await
    }

    async fn start_as(app: &App, project: Project, scope: Scope<'_>) -> Result<Self, CliError> {
        let (environment, interrupts) = (&app.environment, app.interrupts.clone());
        let supervisor = Supervisor::new(interrupts.shutdown_of_part());
        let begun = tokio::select! {
            begun = Box::pin(begin(&project, environment, &scope, &supervisor)) => begun,
            () = supervisor.shutdown().soft().cancelled() => Err(CliError::Cancelled),
        };
        match begun {
            Ok((services, right, (git, follower, telegram))) => Ok(Self {
                services,
                supervisor,
                project,
                interrupts,
                right,
                git,
                follower,
                telegram,
            }),
            Err(error) => {
                supervisor.shutdown().abort();
                // The first error is the one to tell.
                drop(supervisor.drain(DRAIN).await);
                Err(error)
            }
        }
    }

    /// Returns a context in which a person begins a chain of events.
    pub fn context(&self, source: ComponentName) -> Context {
        Context::new(&self.services, source)
    }

    /// Asks other models, and judges by other rules, as soon as what `load` reads names others.
    pub fn follow(
        &self,
        environment: &Environment,
        load: impl Fn() -> Result<Project, CliError> + Send + Sync + 'static,
    ) {
        let follower = self.follower.clone();
        follower.begin(&self.project, environment, load, &self.supervisor);
    }

    /// Serves the API behind `doors`, where `checkup` looks at everything that a run needs; returns what people are told of
    /// it.
    pub(crate) fn serve(
        &self,
        doors: Doors,
        environment: &Environment,
        checkup: Checkup,
    ) -> Result<String, CliError> {
        let (services, supervisor) = (&self.services, &self.supervisor);
        let hook = notices::hook(
            &self.project,
            (environment, &self.git),
            self.telegram.clone(),
            (services, supervisor),
        )?;
        serving::serve(
            doors,
            &self.project,
            (&self.git, hook, checkup),
            (services, supervisor),
        )
    }

    /// Begins a turn of a conversation, which the next interrupt ends.
    pub fn turn(&self) -> Turn {
        self.interrupts.turn()
    }

    /// Waits until a signal, a crash or the loss of the lock asks for the end.
    pub async fn stopped(&self) {
        self.supervisor.shutdown().soft().cancelled().await;
    }

    /// Stops taking work, lets what is in hand end, and closes the store.
    pub async fn drain(self) -> Result<(), CliError> {
        // What a broker does not get now it gets at the next start.
        drop(tokio::time::timeout(FLUSH, self.services.bus.flush()).await);
        self.supervisor.shutdown().begin();
        let drained = self.supervisor.drain(DRAIN).await;
        let refusal = self.services.store.refusal();
        let closed = self.services.store.close().await;
        // Nothing could be closed in order then, either.
        if let Some(refusal) = refusal {
            return Err(refusal.into());
        }
        drained?;
        if let Some(taken) = self.right.lock.taken() {
            return Err(taken.into());
        }
        closed?;
        self.interrupts.outcome()
    }
}

async fn begin(
    project: &Project,
    environment: &Environment,
    scope: &Scope<'_>,
    supervisor: &Supervisor,
) -> Result<(Services, Right, (Git, Follower, Option<TelegramClient>)), CliError> {
    let Scope { crew, again, only } = scope;
    let again = *again;
    let clock = Clock::system();
    let ids = Ids::system(clock.clone());
    // Whatever can be refused is refused before anything is made.
    let location = open_project::location(project)?;
    if crew.shares() {
        transport::check_shared(project)?;
    }
    let models = models_of(project, environment, &clock, again)?;
    let confinement = sandbox::confinement(project, environment).await?;
    warn_of(&confinement, crew);
    let git = super::git(environment).await?;
    enter_state(&project.locations)?;
    let mut right = enter(project, &location, crew).await?;
    let store = open_store(project, (&location, &clock), &mut right).await?;
    watch(&right.lock, supervisor);
    watch_store(&store, supervisor);
    let bus_services = BusServices {
        clock: clock.clone(),
        ids: ids.clone(),
        supervisor: supervisor.clone(),
    };
    let place = right.place.as_ref();
    let taken = (sharing(project, place), only.clone());
    let bus = transport::bus(project, environment, &store, bus_services, taken).await?;
    let brake = super::halt::brake(&store, &clock, supervisor).await?;
    let engine = Engine::new(store.clone(), models, clock.clone()).held_by(brake.clone());
    let engine = looked_after(project, remembering(engine, again), supervisor)?;
    let policy = CurrentValue::new(project.config().policy.as_ref().clone());
    let follower = follower(project, (&engine, &policy), &confinement, &clock);
    let process = place.map(|place| place.number);
    processes::end_orphans(project.state(), process).await;
    let registry = registry(project, &clock, process);
    let services = Services {
        store,
        bus,
        clock,
        ids,
        registry,
    };
    let mut agents = agents::agents(
        crew,
        Parts {
            project,
            environment,
            git: git.clone(),
            engine,
            policy,
            brake,
            process,
            sandbox: confinement.sandbox,
            order: again.map_or_else(Vec::new, |again| again.order.clone()),
        },
    )
    .await?;
    let telegram = bot(project, environment, crew, &services.clock)?;
    let bot = telegram.as_ref();
    agents.extend(telling(project, (environment, &git), (crew, bot), &services).await?);
    subscribe(&services, &agents).await?;
    Frame::start(&services, agents, supervisor).await?;
    if let Some(bot) = bot.filter(|_| crew.chats()) {
        notices::serve_bot(project, &git, bot, (&services, supervisor))?;
    }
    if !crew.shares() {
        let home = SocketHome::new(project.state(), environment.runtime_home());
        Poker::listen(&services.bus, &home, supervisor)?;
        LiveRelay::serve(&services.bus, &home, supervisor)?;
    }
    begin_upkeep(project, crew, &services, supervisor)?;
    Ok((services, right, (git, follower, telegram)))
}

/// Returns as whom this process takes deliveries, where others take them, too.
fn sharing(project: &Project, place: Option<&Place>) -> Option<SharingOptions> {
    place.map(|place| SharingOptions::new(processes::name(project.state(), Some(place.number))))
}

/// Makes the registry of the parts of this process.
fn registry(project: &Project, clock: &Clock, process: Option<u32>) -> Registry {
    let registry = Registry::new(clock.clone(), &processes::shown(std::process::id()))
        .counting(processes::suspects(project.state(), process));
    match process {
        Some(number) => registry.numbered(number),
        None => registry,
    }
}

/// Says what has to be known of how commands are confined; of what is not hidden from them nobody hears with each verb.
fn warn_of(confinement: &Confinement, crew: &Crew) {
    if let Some(warning) = &confinement.warning {
        warn!("{warning}");
    }
    let sandbox = confinement.sandbox.as_ref();
    let sandbox = sandbox.filter(|_| !crew.is_hosted_by_verb());
    if let Some(unsearched) = sandbox.and_then(Sandbox::unsearched) {
        warn!("{unsearched}");
    }
}

fn follower(
    project: &Project,
    (engine, policy): (&Engine, &CurrentValue<PolicySettings>),
    confinement: &Confinement,
    clock: &Clock,
) -> Follower {
    Follower {
        engine: engine.clone(),
        policy: policy.clone(),
        is_confined: confinement.sandbox.is_some(),
        warning: confinement.warning.clone(),
        people: project.config().people.as_ref().clone(),
        clock: clock.clone(),
    }
}

/// Returns the bot, where one is set up and this process tells or listens by it.
fn bot(
    project: &Project,
    environment: &Environment,
    crew: &Crew,
    clock: &Clock,
) -> Result<Option<TelegramClient>, CliError> {
    if crew.tells() || crew.chats() {
        return notices::telegram(project, environment, clock);
    }
    Ok(None)
}

/// Makes those that tell people what happens, and what does again that which the bot could not do.
async fn telling(
    project: &Project,
    (environment, git): (&Environment, &Git),
    (crew, bot): (&Crew, Option<&TelegramClient>),
    services: &Services,
) -> Result<Vec<Arc<dyn Agent>>, CliError> {
    let mut agents = Vec::new();
    if crew.tells() {
        agents.extend(notices::begin(project, environment, bot, services).await?);
    }
    if let Some(bot) = bot.filter(|_| crew.chats()) {
        agents.push(notices::left_updates(project, git, bot, services)?);
    }
    Ok(agents)
}

/// Makes the models of every role; those of a build that is done again know no answer.
fn models_of(
    project: &Project,
    environment: &Environment,
    clock: &Clock,
    again: Option<&Again>,
) -> Result<Models, CliError> {
    match again {
        Some(again) => again.models(project),
        None => models::models(project, environment, clock),
    }
}

/// Lets `engine` remember what was answered when a build was done first.
fn remembering(engine: Engine, again: Option<&Again>) -> Engine {
    match again {
        Some(again) => engine.remembering(again.past.clone()),
        None => engine,
    }
}

/// Takes the right to consume.
async fn enter(project: &Project, location: &Location, crew: &Crew) -> Result<Right, CliError> {
    let instance = if crew.shares() {
        Instance::Sharing
    } else {
        Instance::Alone
    };
    let lock = InstanceLock::acquire_for(location, project.state(), instance).await?;
    let place = match instance {
        Instance::Alone => None,
        Instance::Sharing => Some(Place::take(project.state())?),
    };
    Ok(Right { lock, place })
}

/// Opens the store of a project, whose state is its repository's own from then on.
async fn open_store(
    project: &Project,
    (location, clock): (&Location, &Clock),
    right: &mut Right,
) -> Result<Store, CliError> {
    let store = Store::open_holding(location, clock.clone(), &mut right.lock).await?;
    project::claim(&project.locations)?;
    Ok(store)
}

/// Stops the work of this process when another one has taken its right; none of it could be committed any more.
fn watch(lock: &InstanceLock, supervisor: &Supervisor) {
    let (lost, shutdown) = (lock.lost(), supervisor.shutdown().clone());
    supervisor.spawn("instance-lock", async move {
        tokio::select! {
            () = shutdown.soft().cancelled() => {}
            () = lost => {
                error!("another process has taken over the database, stopping");
                shutdown.begin();
            }
        }
    });
}

/// Stops this process when nothing that it does can be stored any more.
fn watch_store(store: &Store, supervisor: &Supervisor) {
    let (refusing, shutdown) = (store.refusing(), supervisor.shutdown().clone());
    supervisor.spawn("store-refusal", async move {
        tokio::select! {
            () = shutdown.soft().cancelled() => {}
            why = refusing => {
                error!("{}, stopping", Words::of(&why));
                shutdown.begin();
            }
        }
    });
}

/// Keeps an engine to the budgets of the project and its conversations to their bound, and looks after its providers while
/// they are away.
fn looked_after(
    project: &Project,
    engine: Engine,
    supervisor: &Supervisor,
) -> Result<Engine, CliError> {
    let budgets = ropewalk_builder::budgets(&project.config().budget);
    let engine = models::compacting(engine.with_budgets(budgets), project)?;
    let (watched, stop) = (engine.clone(), supervisor.shutdown().soft().clone());
    supervisor.keep("outages", move || {
        let (watched, stop) = (watched.clone(), stop.clone());
        async move { watched.watch_outages(stop).await }
    });
    Ok(engine)
}

/// Begins to back up and to forget, and among several processes to see that a monitor is left.
fn begin_upkeep(
    project: &Project,
    crew: &Crew,
    services: &Services,
    supervisor: &Supervisor,
) -> Result<(), CliError> {
    backups::daily(
        services.store.clone(),
        project.state(),
        services.clock.clone(),
        supervisor,
    );
    retention::daily(
        (services.store.clone(), project.state().to_owned()),
        project.config().store.events_days,
        services.clock.clone(),
        supervisor,
    );
    if crew.shares() {
        let options = MonitorOptions::from(&project.config().monitor);
        let context = Context::new(services, ComponentName::parse("deputy")?);
        let stop = supervisor.shutdown().soft().clone();
        supervisor.keep("deputy", move || {
            Deputy::new(options.clone()).run(context.clone(), stop.clone())
        });
    }
    Ok(())
}

/// Lets agents that are new to a project begin with its first event, so that what verbs recorded before the first
/// start is not lost on them; but for those who tell people what happens, for whom that is no news.
async fn subscribe(services: &Services, agents: &[Arc<dyn Agent>]) -> Result<(), CliError> {
    for agent in agents.iter().filter(|agent| !agent.begins_now()) {
        let profile = agent.profile();
        let subscription = Subscription {
            name: profile.role,
            patterns: profile.patterns,
            from: StartAt::Beginning,
        };
        services.store.subscribe(&subscription).await?;
    }
    Ok(())
}
