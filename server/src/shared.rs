//! Holds what every request may use.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{HeaderName, header};
use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_config::settings::{BudgetSettings, Network};
use ropewalk_desk::builds::landing::{self, Landing, LandingView, Landings};
use ropewalk_desk::health::Finding;
use ropewalk_desk::people::{People, Person};
use ropewalk_desk::views::lines::FileLines;
use ropewalk_orchestrator::{Context, Services};
use ropewalk_runtime::Supervisor;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::person::Right;
use ropewalk_schemas::{ComponentName, InvalidId};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::counters::Counters;
use crate::guard::hosts::Hosts;
use crate::guard::proxies::Proxies;
use crate::guard::rate::Rates;
use crate::hook::Hook;
use crate::login::{self, LOGIN, Logins};
use crate::partial_answers::PartialAnswers;
use crate::problem::Problem;

/// Who the events of requests come from.
const SOURCE: &str = "api";
/// How long what a look found is told to whoever asks.
const FRESH: TimeDelta = TimeDelta::seconds(5);
/// Says where the documents of an idea lie.
pub type Folder = Arc<dyn Fn(&Idea) -> PathBuf + Send + Sync>;

/// Tells the lines that a build changed, or why nobody can say.
pub type Changes = Arc<
    dyn Fn(Build) -> Pin<Box<dyn Future<Output = Result<Vec<FileLines>, String>> + Send>>
        + Send
        + Sync,
>;

/// Tells how everything is that a run needs.
pub type Checkup =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Vec<Finding>> + Send>> + Send + Sync>;

/// How much a server holds at once, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// How many connections are served; more wait.
    pub connections: usize,
    /// How many of them come from one address; more are refused.
    pub connections_of_one: usize,
    /// How many listen; more are refused.
    pub streams: usize,
    /// How long an answer may take to begin.
    pub answers: Duration,
}

impl Default for Capacity {
    fn default() -> Self {
        Self {
            connections: 4_096,
            // Who holds as many as may be leaves more than twice as many to everybody else, and a house behind one address, or
            // a proxy that nobody named, has hundreds who listen.
            connections_of_one: 1_280,
            streams: 2_048,
            // Whoever waits longer has long asked again.
            answers: Duration::from_secs(30),
        }
    }
}

/// What a server serves, and to whom.
pub struct Options {
    /// How much it holds at once.
    pub capacity: Capacity,
    /// Everybody who works on the project.
    pub people: People,
    /// Names by which the server is reached beside its own address, each with its port.
    pub hosts: Vec<String>,
    /// The proxies that are believed when they say whom they ask for.
    pub proxies: Vec<Network>,
    /// Where the documents of an idea lie.
    pub folder: Folder,
    /// What tells the lines that a build changed.
    pub changes: Changes,
    /// What tells what landing a build would come to.
    pub landings: Landings,
    /// What looks at everything that a run needs.
    pub checkup: Checkup,
    /// What models may use.
    pub budget: BudgetSettings,
    /// The state directory, where transcripts lie.
    pub state: PathBuf,
    /// The providers of the models that build: the one that is asked, then those that take over.
    pub builds_with: Vec<String>,
    /// After how long without a sign of life a part is called silent.
    pub silent_after: Duration,
    /// What takes that which Telegram brings; without it there is no such address.
    pub hook: Option<Arc<dyn Hook>>,
}

/// What every request may use; cheap to clone.
#[derive(Clone)]
pub(crate) struct ServerState(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) capacity: Capacity,
    pub(crate) services: Services,
    pub(crate) people: People,
    pub(crate) folder: Folder,
    changes: Changes,
    landings: Landings,
    checkup: Checkup,
    /// What was found last, and when; held while somebody looks.
    found: tokio::sync::Mutex<Option<(DateTime<Utc>, Vec<Finding>)>>,
    pub(crate) budget: BudgetSettings,
    pub(crate) state: PathBuf,
    pub(crate) builds_with: Vec<String>,
    pub(crate) silent_after: Duration,
    pub(crate) hook: Option<Arc<dyn Hook>>,
    pub(crate) hosts: Hosts,
    pub(crate) proxies: Proxies,
    pub(crate) counters: Counters,
    /// How the cookie of a login is called: another port is another program.
    pub(crate) cookie: String,
    source: ComponentName,
    /// What models are saying in conversations.
    pub(crate) partial_answers: PartialAnswers,
    /// How many may listen beside those who do.
    pub(crate) streams: Arc<Semaphore>,
    /// Ends when the process is about to.
    pub(crate) stop: CancellationToken,
    logins: Mutex<Logins>,
    /// Where logins outlive the program; held while that is written, so that the newest is written last.
    kept: tokio::sync::Mutex<PathBuf>,
    rates: Mutex<Rates>,
}

impl ServerState {
    /// Returns what landing a build would come to.
    pub(crate) async fn landing(&self, build: &Build) -> Result<LandingView, Problem> {
        let landing = (self.landings)(build.clone()).await;
        landing.map_err(|error| Problem::failed(&error))
    }

    /// Notes that `person` wants a landing of the heads that were `shown`, if any were: that of the build, and that of where
    /// it goes.
    pub(crate) async fn land(
        &self,
        build: &Build,
        landing: Landing,
        person: &Person,
        shown: [Option<String>; 2],
    ) -> Result<(), Problem> {
        person.demand(Right::Land)?;
        if shown.iter().any(Option::is_some) {
            let [from, onto] = shown.each_ref().map(Option::as_deref);
            self.landing(build).await?.check_shown(from, onto)?;
        }
        Ok(landing::land(&self.context(), build, landing, person).await?)
    }

    /// Tells how everything is that a run needs. A look takes a while: who asks meanwhile, or soon after, hears the same.
    pub(crate) async fn examined(&self) -> Vec<Finding> {
        let mut found = self.found.lock().await;
        let is_fresh = |at: DateTime<Utc>| (self.services.clock.now() - at).abs() < FRESH;
        if let Some((_, findings)) = found.as_ref().filter(|(at, _)| is_fresh(*at)) {
            return findings.clone();
        }
        let findings = (self.checkup)().await;
        *found = Some((self.services.clock.now(), findings.clone()));
        findings
    }

    /// Returns the lines that a build changed.
    pub(crate) async fn changed(&self, build: &Build) -> Result<Vec<FileLines>, Problem> {
        let changes = (self.changes)(build.clone()).await;
        changes.map_err(|error| Problem::failed(&error))
    }

    pub(crate) fn new(
        options: Options,
        services: Services,
        address: SocketAddr,
        supervisor: &Supervisor,
    ) -> Result<Self, InvalidId> {
        let kept = options
            .state
            .join(format!("logins-{}.json", address.port()));
        let logins = Logins::read(&kept).unwrap_or_else(|error| {
            warn!("everybody has to log in again: cannot read the logins: {error}");
            Logins::default()
        });
        Ok(Self(Arc::new(Inner {
            capacity: options.capacity,
            hosts: Hosts::new(address, options.hosts),
            proxies: Proxies::new(options.proxies),
            people: options.people,
            folder: options.folder,
            changes: options.changes,
            landings: options.landings,
            checkup: options.checkup,
            found: tokio::sync::Mutex::default(),
            budget: options.budget,
            state: options.state,
            builds_with: options.builds_with,
            silent_after: options.silent_after,
            counters: Counters::default(),
            cookie: format!("ropewalk-{}", address.port()),
            source: ComponentName::parse(SOURCE)?,
            partial_answers: PartialAnswers::start(services.bus.live().subscribe(), supervisor),
            streams: Arc::new(Semaphore::new(options.capacity.streams)),
            stop: supervisor.shutdown().soft().clone(),
            logins: Mutex::new(logins),
            kept: tokio::sync::Mutex::new(kept),
            rates: Mutex::default(),
            hook: options.hook,
            services,
        })))
    }
}

impl std::ops::Deref for ServerState {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Inner {
    /// Returns a context in which a person begins a chain of events.
    pub(crate) fn context(&self) -> Context {
        Context::new(&self.services, self.source.clone())
    }

    /// Returns who is logged in; never held over a wait.
    pub(crate) fn logins(&self) -> MutexGuard<'_, Logins> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the header that lets a browser keep what a login holds.
    pub(crate) fn cookie_of(&self, secret: &str) -> [(HeaderName, String); 1] {
        let (name, lasts) = (&self.cookie, LOGIN.num_seconds());
        let set = format!("{name}={secret}; Path=/; Max-Age={lasts}; HttpOnly; SameSite=Strict");
        [(header::SET_COOKIE, set)]
    }

    /// Logs out whoever has this cookie.
    pub(crate) async fn leave(&self, cookie: &str) {
        self.logins().leave(cookie);
        self.keep_logins().await;
    }

    /// Lets the logins outlive the program; where that fails they end with it.
    pub(crate) async fn keep_logins(&self) {
        let path = self.kept.lock().await;
        let kept = self.logins().kept();
        let to = path.clone();
        let written = tokio::task::spawn_blocking(move || login::write(&to, &kept?)).await;
        if let Err(error) = written.map_err(Into::into).flatten() {
            warn!("logins end with the program: cannot write them: {error}");
        }
    }

    /// Returns how much everybody has asked; never held over a wait.
    pub(crate) fn rates(&self) -> MutexGuard<'_, Rates> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
