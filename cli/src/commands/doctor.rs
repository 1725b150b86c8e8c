//! Verb `doctor`: checks everything that a run needs, and says how to mend what is missing.

mod confinement;
mod untried;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use ropewalk_config::{Config, Environment, LoadedConfig, PROJECT_FILE};
use ropewalk_desk::health::{Finding, Fitness};
use ropewalk_desk::phones;
use ropewalk_desk::views::{agent, alert, dead_letter};
use ropewalk_runtime::Clock;
use ropewalk_schemas::RepoPath;
use ropewalk_schemas::agent::Component;
use ropewalk_schemas::amount::{counted, counted_as};
use ropewalk_server::Checkup;
use ropewalk_store::{Health, Location, Store};
use ropewalk_telegram::TelegramClient;
use ropewalk_workspace::{Git, UserRepository};
use tokio::runtime::Handle;
use untried::untried;

use crate::app::App;
use crate::error::CliError;
use crate::project::{self, Project};
use crate::wiring::{self, Gone, Role};

/// How many dead letters are counted.
const LETTERS: u32 = 1_000;

/// So many bytes are written to see whether a file can be.
const PROBE_BYTES: usize = 16 * 1024;

/// A project file is no longer than this: 1 MiB.
const MOST_BYTES: usize = 1024 * 1024;

/// A state with less room than this holds few checkouts: 512 MiB.
const LITTLE_ROOM: u64 = 512 * 1024 * 1024;

/// What the check of the gate is called.
const GATE: &str = "gate";

/// Takes no arguments of its own.
#[derive(Debug, Args)]
pub struct Doctor {}

/// Says how something is of which an error tells that it is not as it has to be.
fn finding(check: &str, outcome: Result<String, CliError>) -> Finding {
    match outcome {
        Ok(detail) => Finding::new(check, Fitness::Ok, detail),
        Err(error) => Finding::new(check, Fitness::Fail, error),
    }
}

impl Doctor {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let project = app.project();
        let is_readable = project.is_ok();
        let mut findings = examine(project, &app.environment).await;
        let trusted = (!is_readable).then(|| as_last_trusted(app)).flatten();
        if let Some(project) = &trusted {
            findings.extend(examine_place(project, &app.environment).await);
        }
        app.output
            .list(&findings, ["check", "verdict", "detail"], |finding| {
                [
                    finding.check.clone(),
                    finding.verdict.as_str().to_owned(),
                    finding.detail.clone(),
                ]
            })?;
        let failed = findings
            .iter()
            .filter(|finding| finding.verdict == Fitness::Fail)
            .count();
        if failed == 0 {
            return Ok(());
        }
        let tried = format!("{failed} of {} checks failed", findings.len());
        let text = if is_readable {
            (tried, "mend what they name")
        } else {
            // What the configuration says besides leads nowhere, and is not looked at.
            let untried = untried(&findings, trusted.as_ref()).join(", ");
            let tried = format!("{tried}, and these were not tried: {untried}");
            (tried, "mend what failed, then try again")
        };
        Err(CliError::refused("doctor", text))
    }
}

/// Finds the project whose configuration is refused as somebody trusted it last.
fn as_last_trusted(app: &App) -> Option<Project> {
    let directory = app.directory().ok()?;
    let loaded =
        Config::load_as_last_trusted(&directory, &app.environment, &app.global.set).ok()?;
    loaded.project_file.as_ref()?;
    Project::of(loaded, &app.environment).ok()
}

/// Looks at what holds whatever a configuration says that nobody has trusted or that cannot be read: where the project lies,
/// and what this machine has.
async fn examine_place(project: &Project, environment: &Environment) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Ok(git) = wiring::git(environment).await {
        findings.extend(repository(project, &git).await.0);
    }
    findings.extend(people(project));
    findings.extend(state_and_store(project).await);
    findings.extend(confinement::sandbox(project, environment).await);
    findings
}

/// Returns what looks at everything that a run of the project needs that `load` reads.
pub(crate) fn checkup(
    environment: Environment,
    load: impl Fn() -> Result<Project, CliError> + Send + Sync + 'static,
) -> Checkup {
    Arc::new(move || {
        let (project, environment) = (load(), environment.clone());
        Box::pin(async move {
            // It reads files and starts programs, so that a thread of its own keeps nobody from being answered.
            let look = move || Handle::current().block_on(examine(project, &environment));
            let looked = tokio::task::spawn_blocking(look).await;
            looked.unwrap_or_else(|error| vec![Finding::new("doctor", Fitness::Fail, error)])
        })
    })
}

/// Looks at everything that a run of `project` needs.
pub(crate) async fn examine(
    project: Result<Project, CliError>,
    environment: &Environment,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let git = wiring::git(environment).await.map_err(CliError::from);
    findings.push(finding(
        "git",
        git.as_ref()
            .map(|_| "found, new enough".to_owned())
            .map_err(Clone::clone),
    ));
    let project = match project {
        Ok(project) => project,
        Err(error) => {
            findings.push(Finding::new("config", Fitness::Fail, error));
            return findings;
        }
    };
    findings.push(Finding::new("config", Fitness::Ok, source(&project.loaded)));
    let exposed = project.loaded.exposed().into_iter();
    findings.extend(exposed.map(|told| Finding::new("config", Fitness::Warn, told)));
    if let Ok(git) = &git {
        let (found, user) = repository(&project, git).await;
        findings.extend(found);
        if let Some(user) = user {
            let gate = gate(&project, git, &user).await;
            findings.push(gate.unwrap_or_else(|error| Finding::new(GATE, Fitness::Fail, error)));
        }
    }
    findings.extend(people(&project));
    findings.extend(state_and_store(&project).await);
    let bus = wiring::check_bus(&project.config().bus.transport, environment).await;
    findings.push(finding("bus", bus));
    let login = wiring::check_login(&project, environment).transpose();
    findings.extend(login.map(|login| finding("bus login", login)));
    findings.extend(telegram(&project, environment).await);
    findings.extend(models(&project, environment));
    findings.extend(confinement::sandbox(&project, environment).await);
    findings
}

fn source(loaded: &LoadedConfig) -> String {
    loaded.project_file.as_ref().map_or_else(
        || "no project file".to_owned(),
        |file| file.display().to_string(),
    )
}

/// Looks at the repository, for what checkouts of it leave out, and for conventions that no model reads to the end.
async fn repository(project: &Project, git: &Git) -> (Vec<Finding>, Option<UserRepository>) {
    match inspected(project, git).await {
        Ok((findings, user)) => (findings, Some(user)),
        Err(error) => (vec![Finding::new("repository", Fitness::Fail, error)], None),
    }
}

async fn inspected(
    project: &Project,
    git: &Git,
) -> Result<(Vec<Finding>, UserRepository), CliError> {
    let user = UserRepository::inspect(git, &project.locations.repository).await?;
    user.require_commit(git).await?;
    let kind = if user.bare {
        "a bare repository"
    } else {
        "a repository"
    };
    let detail = format!("{} is {kind}", user.path.display());
    let left_out = wiring::without_submodules(git, &user).await?;
    let clipped = wiring::clipped_conventions(git, &user).await?;
    let warn = |check, told| Finding::new(check, Fitness::Warn, told);
    let mut findings = vec![Finding::new("repository", Fitness::Ok, detail)];
    findings.extend(left_out.map(|told| warn("submodules", told)));
    findings.extend(clipped.map(|told| warn("conventions", told)));
    Ok((findings, user))
}

/// Looks whether a gate judges besides the tasks' own checks, and whether a build has the one that is written here.
async fn gate(project: &Project, git: &Git, user: &UserRepository) -> Result<Finding, CliError> {
    let commands = project.config().gate.commands.len();
    if commands == 0 {
        let told = "no command: each task is judged by its own check alone; `[[gate.commands]]` takes the command of your tests";
        return Ok(Finding::new(GATE, Fitness::Warn, told));
    }
    let path: Vec<RepoPath> = RepoPath::parse(PROJECT_FILE).into_iter().collect();
    let committed = user.read_small_files(git, &path, MOST_BYTES).await?;
    let committed = committed.into_iter().next().flatten();
    let written = project.loaded.project_file.as_ref();
    let written = written.and_then(|file| std::fs::read(file).ok());
    if committed.is_some() && committed != written {
        let told = format!(
            "`{PROJECT_FILE}` is not what was committed last, and a build has the gate of the commit that it begins from: commit it"
        );
        return Ok(Finding::new(GATE, Fitness::Warn, told));
    }
    Ok(Finding::new(
        GATE,
        Fitness::Ok,
        counted(commands, "command"),
    ))
}

/// Looks whether each right is somebody's, where people are named.
fn people(project: &Project) -> Option<Finding> {
    const CHECK: &str = "people";
    let people = &project.people;
    if !people.are_named() {
        return None;
    }
    if let Some(told) = people.unheld_told() {
        return Some(Finding::new(CHECK, Fitness::Warn, told));
    }
    let of_all = counted_as(people.all().len(), "person", "people");
    let detail = format!("{of_all}, and each right is somebody's");
    Some(Finding::new(CHECK, Fitness::Ok, detail))
}

async fn state_and_store(project: &Project) -> Vec<Finding> {
    let state = project.state();
    let mut findings = Vec::new();
    let clock = Clock::system();
    // A project that never ran has neither, and a check should not make them.
    if !state.exists() {
        let detail = format!("{} is made at the first start", state.display());
        findings.push(Finding::new("state", writable_above(project), detail));
        findings.push(finding(
            "store",
            wiring::location(project).map(|_| "made at the first start".to_owned()),
        ));
        return findings;
    }
    if let Err(error) = project::check(&project.locations) {
        findings.push(Finding::new("state", Fitness::Fail, error));
        return findings;
    }
    findings.push(writable(project));
    match store(project, &clock).await {
        Ok((store, detail)) => {
            findings.push(parts(project, &store, &clock).await);
            findings.push(alerts(&store).await);
            findings.extend(phones(project, &store).await);
            findings.push(unhandled(&store).await);
            let closed = store.close().await.map_err(CliError::from);
            findings.push(finding("store", closed.map(|()| detail)));
        }
        Err(error) => findings.push(Finding::new("store", Fitness::Fail, error)),
    }
    findings
}

async fn store(project: &Project, clock: &Clock) -> Result<(Store, String), CliError> {
    let location = wiring::location(project)?;
    let store = Store::open(&location, clock.clone()).await?;
    match store.check().await? {
        Health::Intact => {}
        Health::Damaged(finding) => {
            let text = (
                format!("the database is damaged ({finding})"),
                "restore the newest backup",
            );
            return Err(CliError::refused("store", text));
        }
    }
    // A change that is taken back need not reach the disk.
    if let Location::Sqlite(file) = &location
        && let Some(folder) = file.parent()
    {
        try_file(folder).map_err(|error| CliError::file(folder, &error))?;
    }
    store.try_write().await?;
    let counts = store.statistics().await?;
    let detail = format!(
        "intact: {}, {}",
        counted(store.count_events().await?, "event"),
        counted_as(counts.open_deliveries, "open delivery", "open deliveries"),
    );
    Ok((store, detail))
}

/// Looks whether the bot, where one is set up, has anybody to tell.
async fn phones(project: &Project, store: &Store) -> Option<Finding> {
    project.config().telegram.token_variable.as_ref()?;
    let told = |verdict, detail: String| Some(Finding::new("phones", verdict, detail));
    let (mut linked, people) = (0_usize, project.people.all());
    for person in &people {
        match phones::chat(store, &project.people, &person.name).await {
            Ok(chat) => linked += usize::from(chat.is_some()),
            Err(problem) => return told(Fitness::Fail, problem.to_string()),
        }
    }
    let strangers = match phones::strangers(store, &project.people).await {
        Ok(strangers) => strangers,
        Err(problem) => return told(Fitness::Fail, problem.to_string()),
    };
    let strangers: Vec<String> = strangers.iter().map(|name| format!("`{name}`")).collect();
    let strangers = strangers.join(", ");
    if linked == 0 {
        let of_them = match strangers.as_str() {
            "" => String::new(),
            names => format!(" but that of {names}, who is nobody in `[people]`"),
        };
        let detail = format!(
            "the bot tells nobody, since no phone is linked{of_them}; say `ropewalk people link`"
        );
        return told(Fitness::Warn, detail);
    }
    let of_all = counted_as(people.len(), "person", "people");
    let detail = format!("{linked} of {of_all} linked");
    if strangers.is_empty() {
        return told(Fitness::Ok, detail);
    }
    let detail = format!(
        "{detail}; a chat is linked to {strangers}, who is nobody in `[people]` and hears nothing; name that person \
         there, or link the chat to somebody by `ropewalk people link`"
    );
    told(Fitness::Warn, detail)
}

/// Looks for parts that were not stopped and give no sign of life, and where processes share the roles, for those that
/// nobody runs.
async fn parts(project: &Project, store: &Store, clock: &Clock) -> Finding {
    const CHECK: &str = "agents";
    let parts = match agent::list(store, false).await {
        Ok(parts) => parts,
        Err(problem) => return Finding::new(CHECK, Fitness::Fail, problem),
    };
    let limit = project.config().monitor.component_down_seconds;
    let limit = Duration::from_secs(limit.into());
    let gone = match Gone::of(project, &parts) {
        Ok(gone) => gone,
        Err(error) => return Finding::new(CHECK, Fitness::Fail, error),
    };
    let (silent, running): (Vec<&Component>, Vec<&Component>) = parts
        .iter()
        .partition(|part| gone.has(part) || agent::is_silent(part, limit, clock.now()));
    let mut told = Vec::new();
    if !silent.is_empty() {
        let silent = silent
            .iter()
            .map(|part| format!("`{}` of {}", part.name, part.process));
        told.push(format!(
            "no sign of life of {}; start what is missing, `ropewalk agent list` shows all",
            silent.collect::<Vec<_>>().join(", ")
        ));
    }
    let roles: BTreeSet<&str> = running.iter().map(|part| part.role.as_str()).collect();
    if !roles.is_empty() && wiring::check_shared(project).is_ok() {
        let missing = Role::missing(&roles);
        if !missing.is_empty() {
            told.push(format!(
                "others run, and nobody runs `{}`; start `ropewalk agent {}`",
                missing.join("`, `"),
                missing.join(" ")
            ));
        }
    }
    if told.is_empty() {
        return Finding::new(CHECK, Fitness::Ok, format!("{} parts run", running.len()));
    }
    Finding::new(CHECK, Fitness::Warn, told.join("; "))
}

/// Shows the alerts that stand.
async fn alerts(store: &Store) -> Finding {
    match alert::list(store, false).await {
        Ok(alerts) if alerts.is_empty() => Finding::new("alerts", Fitness::Ok, "none stands"),
        Ok(alerts) => {
            let lines: Vec<&str> = alerts.iter().map(|alert| alert.message.as_str()).collect();
            Finding::new("alerts", Fitness::Warn, lines.join("; "))
        }
        Err(problem) => Finding::new("alerts", Fitness::Fail, problem),
    }
}

/// Looks for what could not be handled.
async fn unhandled(store: &Store) -> Finding {
    const CHECK: &str = "dead letters";
    match dead_letter::list(store, LETTERS).await {
        Ok(letters) => match letters.first() {
            None => Finding::new(CHECK, Fitness::Ok, "everything was handled"),
            Some(newest) => {
                let many = if letters.len() < LETTERS as usize {
                    counted(letters.len() as u64, "event")
                } else {
                    format!("{LETTERS} events or more")
                };
                let detail = format!(
                    "{many} could not be handled, `{}` last; `ropewalk dead-letter list` shows why, and \
                     `ropewalk dead-letter replay ID` has one handled again",
                    newest.id
                );
                Finding::new(CHECK, Fitness::Warn, detail)
            }
        },
        Err(problem) => Finding::new(CHECK, Fitness::Fail, problem),
    }
}

/// Looks whether the state takes a file, and has room for more.
fn writable(project: &Project) -> Finding {
    const CHECK: &str = "state";
    let state = project.state();
    let free = try_file(state).and_then(|()| free_bytes(state));
    match free {
        Ok(free) if free < LITTLE_ROOM => {
            let detail = format!(
                "{} has {} MiB free, and checkouts, checks and backups take more; make room",
                state.display(),
                free >> 20
            );
            Finding::new(CHECK, Fitness::Warn, detail)
        }
        Ok(_) => Finding::new(
            CHECK,
            Fitness::Ok,
            format!("{} is writable", state.display()),
        ),
        Err(error) => Finding::new(CHECK, Fitness::Fail, CliError::file(state, &error)),
    }
}

/// Writes a small file to the disk, and removes it.
fn try_file(directory: &Path) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    let written = file.write_all(&[1; PROBE_BYTES]);
    let written = written.and_then(|()| file.as_file().sync_all());
    // The error itself names a temporary file.
    written.map_err(|error| error.kind().into())
}

fn free_bytes(directory: &Path) -> io::Result<u64> {
    let disk = nix::sys::statvfs::statvfs(directory)?;
    Ok(disk.blocks_available().saturating_mul(disk.fragment_size()))
}

fn writable_above(project: &Project) -> Fitness {
    let nearest = project.state().ancestors().find(|path| path.exists());
    match nearest.map(tempfile::NamedTempFile::new_in) {
        Some(Ok(_)) => Fitness::Ok,
        _ => Fitness::Fail,
    }
}

/// Asks Telegram whether it knows the bot, where one is set up, and how it brings updates, where it does.
async fn telegram(project: &Project, environment: &Environment) -> Vec<Finding> {
    let client = match wiring::telegram(project, environment, &Clock::system()) {
        Ok(Some(client)) => client,
        Ok(None) => return Vec::new(),
        Err(error) => return vec![Finding::new("telegram", Fitness::Fail, error)],
    };
    let named = client.name().await;
    let named = named
        .map(|name| format!("`@{name}` answers"))
        .map_err(|error| {
            let next = if error.was_answered() {
                "check the token of `telegram.token_variable`, and `telegram.api_url`"
            } else {
                "check the network from here, and `telegram.api_url`"
            };
            CliError::refused(
                "telegram",
                (format!("the bot does not answer: {error}"), next),
            )
        });
    let is_known = named.is_ok();
    let mut findings = vec![finding("telegram", named)];
    if is_known {
        findings.extend(webhook(project, &client).await);
    }
    findings
}

/// Looks at how Telegram brings updates: it tells what became of the last one.
async fn webhook(project: &Project, client: &TelegramClient) -> Option<Finding> {
    let told = |verdict, detail: String| Finding::new("telegram webhook", verdict, detail);
    let hooked = match client.hooked().await {
        Ok(hooked) => hooked,
        Err(error) => {
            return Some(told(Fitness::Warn, format!("cannot be looked at: {error}")));
        }
    };
    let wanted = project.config().telegram.webhook.as_ref();
    Some(match (wanted, hooked) {
        (None, None) => return None,
        (None, Some(hooked)) => {
            let detail = format!(
                "Telegram brings updates to {}, until `ropewalk up` asks for them",
                hooked.address
            );
            told(Fitness::Warn, detail)
        }
        (Some(wanted), Some(hooked)) if hooked.address == *wanted => match hooked.error {
            Some(error) if hooked.waiting > 0 => {
                let detail = format!(
                    "{} updates wait, and the last was not taken: {error}; look at what leads {wanted} to `server.address`, and at `server.hosts`",
                    hooked.waiting
                );
                told(Fitness::Fail, detail)
            }
            _ => told(Fitness::Ok, format!("Telegram brings updates to {wanted}")),
        },
        (Some(wanted), _) => {
            let detail = format!(
                "Telegram brings nothing to {wanted} yet; `ropewalk up` tells it to at its start"
            );
            told(Fitness::Warn, detail)
        }
    })
}

fn models(project: &Project, environment: &Environment) -> Vec<Finding> {
    wiring::check_models(project, environment, &Clock::system())
        .into_iter()
        .flat_map(|check| {
            let name = format!("model {}", check.provider);
            let outcome = check
                .fault
                .map_or_else(|| Ok("key and description are there".to_owned()), Err);
            let prices = check.prices.into_iter();
            let provider = check.provider;
            let prices: Vec<Finding> = prices
                .map(|(model, told)| price(&format!("{provider}/{model}"), told))
                .collect();
            std::iter::once(finding(&name, outcome)).chain(prices)
        })
        .collect()
}

/// Says what is known of the price of a model.
fn price(model: &str, told: Option<String>) -> Finding {
    let name = format!("price {model}");
    match told {
        Some(told) => Finding::new(&name, Fitness::Ok, told),
        None => Finding::new(
            &name,
            Fitness::Warn,
            "unknown: budgets in dollars cannot count it, so bound it by tokens, or say what it costs by `prices` of its provider",
        ),
    }
}
