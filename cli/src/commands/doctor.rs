//! Verb `doctor`: checks everything that a run needs, and says how to mend what is missing.

use std::time::Duration;

use clap::Args;
use ropewalk_config::LoadedConfig;
use ropewalk_desk::views::{agent, alert};
use ropewalk_runtime::Clock;
use ropewalk_store::{Health, Store};
use ropewalk_telegram::TelegramClient;
use ropewalk_workspace::UserRepository;
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::project::Project;
use crate::wiring;

/// Takes no arguments of its own.
#[derive(Debug, Args)]
pub struct Doctor {}

/// How one thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    Ok,
    Warn,
    Fail,
}

/// One line of the report.
#[derive(Debug, Serialize)]
struct Finding {
    check: String,
    verdict: Verdict,
    detail: String,
}

impl Finding {
    fn new(check: &str, verdict: Verdict, detail: impl std::fmt::Display) -> Self {
        Self {
            check: check.to_owned(),
            verdict,
            detail: detail.to_string(),
        }
    }

    fn of(check: &str, outcome: Result<String, CliError>) -> Self {
        match outcome {
            Ok(detail) => Self::new(check, Verdict::Ok, detail),
            Err(error) => Self::new(check, Verdict::Fail, error),
        }
    }
}

impl Doctor {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let mut findings = Vec::new();
        let git = wiring::git(&app.environment).await.map_err(CliError::from);
        findings.push(Finding::of(
            "git",
            git.as_ref()
                .map(|_| "found, new enough".to_owned())
                .map_err(Clone::clone),
        ));
        match app.project() {
            Ok(project) => {
                findings.push(Finding::new("config", Verdict::Ok, source(&project.loaded)));
                if let Ok(git) = &git {
                    findings.push(Finding::of("repository", repository(&project, git).await));
                }
                findings.extend(state_and_store(&project).await);
                let bus =
                    wiring::check_bus(&project.config().bus.transport, &app.environment).await;
                findings.push(Finding::of("bus", bus));
                let login = wiring::check_login(&project, &app.environment).transpose();
                findings.extend(login.map(|login| Finding::of("bus login", login)));
                findings.extend(telegram(&project, app).await);
                findings.extend(models(&project, app));
                findings.extend(sandbox(&project, app).await);
            }
            Err(error) => findings.push(Finding::new("config", Verdict::Fail, error)),
        }
        app.output
            .list(&findings, ["check", "verdict", "detail"], |finding| {
                let verdict = match finding.verdict {
                    Verdict::Ok => "ok",
                    Verdict::Warn => "warn",
                    Verdict::Fail => "fail",
                };
                [
                    finding.check.clone(),
                    verdict.to_owned(),
                    finding.detail.clone(),
                ]
            })?;
        let failed = findings
            .iter()
            .filter(|finding| finding.verdict == Verdict::Fail)
            .count();
        if failed == 0 {
            return Ok(());
        }
        let text = (
            format!("{failed} of {} checks failed", findings.len()),
            "mend what they name",
        );
        Err(CliError::refused("doctor", text))
    }
}

fn source(loaded: &LoadedConfig) -> String {
    loaded.project_file.as_ref().map_or_else(
        || "no project file".to_owned(),
        |file| file.display().to_string(),
    )
}

async fn repository(project: &Project, git: &ropewalk_workspace::Git) -> Result<String, CliError> {
    let user = UserRepository::inspect(git, &project.locations.repository).await?;
    let kind = if user.bare {
        "a bare repository"
    } else {
        "a repository"
    };
    Ok(format!("{} is {kind}", user.path.display()))
}

async fn state_and_store(project: &Project) -> Vec<Finding> {
    let state = project.state();
    let mut findings = Vec::new();
    let clock = Clock::system();
    // A project that never ran has neither, and a check should not make them.
    if !state.exists() {
        let detail = format!("{} is made at the first start", state.display());
        findings.push(Finding::new("state", writable_above(project), detail));
        findings.push(Finding::of(
            "store",
            wiring::location(project).map(|_| "made at the first start".to_owned()),
        ));
        return findings;
    }
    findings.push(Finding::of("state", writable(project)));
    match store(project, &clock).await {
        Ok((store, detail)) => {
            findings.push(parts(project, &store, &clock).await);
            findings.push(alerts(&store).await);
            let closed = store.close().await.map_err(CliError::from);
            findings.push(Finding::of("store", closed.map(|()| detail)));
        }
        Err(error) => findings.push(Finding::new("store", Verdict::Fail, error)),
    }
    findings
}

async fn store(project: &Project, clock: &Clock) -> Result<(Store, String), CliError> {
    let store = Store::open(&wiring::location(project)?, clock.clone()).await?;
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
    let counts = store.statistics().await?;
    let detail = format!(
        "intact: {} events, {} open deliveries, {} dead letters",
        counts.events, counts.open_deliveries, counts.dead_letters
    );
    Ok((store, detail))
}

/// Looks for parts that were not stopped and give no sign of life.
async fn parts(project: &Project, store: &Store, clock: &Clock) -> Finding {
    let parts = match agent::list(store, true).await {
        Ok(parts) => parts,
        Err(problem) => return Finding::new("agents", Verdict::Fail, problem),
    };
    let limit = project.config().monitor.component_down_seconds;
    let limit = Duration::from_secs(limit.into());
    let silent: Vec<String> = parts
        .iter()
        .filter(|part| agent::is_silent(part, limit, clock.now()))
        .map(|part| format!("`{}` of {}", part.name, part.process))
        .collect();
    if silent.is_empty() {
        let running = parts.iter().filter(|part| !part.stopped).count();
        return Finding::new("agents", Verdict::Ok, format!("{running} parts run"));
    }
    let detail = format!(
        "no sign of life of {}; start what is missing, `ropewalk agent list` shows all",
        silent.join(", ")
    );
    Finding::new("agents", Verdict::Warn, detail)
}

/// Shows the alerts that stand.
async fn alerts(store: &Store) -> Finding {
    match alert::list(store, false).await {
        Ok(alerts) if alerts.is_empty() => Finding::new("alerts", Verdict::Ok, "none stands"),
        Ok(alerts) => {
            let lines: Vec<&str> = alerts.iter().map(|alert| alert.message.as_str()).collect();
            Finding::new("alerts", Verdict::Warn, lines.join("; "))
        }
        Err(problem) => Finding::new("alerts", Verdict::Fail, problem),
    }
}

fn writable(project: &Project) -> Result<String, CliError> {
    let state = project.state();
    match tempfile::NamedTempFile::new_in(state) {
        Ok(_) => Ok(format!("{} is writable", state.display())),
        Err(error) => Err(CliError::file(state, &error)),
    }
}

fn writable_above(project: &Project) -> Verdict {
    let nearest = project.state().ancestors().find(|path| path.exists());
    match nearest.map(tempfile::NamedTempFile::new_in) {
        Some(Ok(_)) => Verdict::Ok,
        _ => Verdict::Fail,
    }
}

/// Asks Telegram whether it knows the bot, where one is set up, and how it brings updates, where it does.
async fn telegram(project: &Project, app: &App) -> Vec<Finding> {
    let client = match wiring::telegram(project, &app.environment) {
        Ok(Some(client)) => client,
        Ok(None) => return Vec::new(),
        Err(error) => return vec![Finding::new("telegram", Verdict::Fail, error)],
    };
    let named = client.name().await;
    let named = named
        .map(|name| format!("`@{name}` answers"))
        .map_err(|error| {
            let next = "check the token of `telegram.token_variable`, and `telegram.api_url`";
            CliError::refused(
                "telegram",
                (format!("the bot does not answer: {error}"), next),
            )
        });
    let is_known = named.is_ok();
    let mut findings = vec![Finding::of("telegram", named)];
    if is_known {
        findings.extend(webhook(project, &client).await);
    }
    findings
}

/// Looks at how Telegram brings updates: it tells what became of the last one.
async fn webhook(project: &Project, client: &TelegramClient) -> Option<Finding> {
    let finding = |verdict, detail: String| Finding::new("telegram webhook", verdict, detail);
    let hooked = match client.hooked().await {
        Ok(hooked) => hooked,
        Err(error) => {
            return Some(finding(
                Verdict::Warn,
                format!("cannot be looked at: {error}"),
            ));
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
            finding(Verdict::Warn, detail)
        }
        (Some(wanted), Some(hooked)) if hooked.address == *wanted => match hooked.error {
            Some(error) if hooked.waiting > 0 => {
                let detail = format!(
                    "{} updates wait, and the last was not taken: {error}; look at what leads {wanted} to `server.address`, and at `server.hosts`",
                    hooked.waiting
                );
                finding(Verdict::Fail, detail)
            }
            _ => finding(Verdict::Ok, format!("Telegram brings updates to {wanted}")),
        },
        (Some(wanted), _) => {
            let detail = format!(
                "Telegram brings nothing to {wanted} yet; `ropewalk up` tells it to at its start"
            );
            finding(Verdict::Warn, detail)
        }
    })
}

fn models(project: &Project, app: &App) -> Vec<Finding> {
    wiring::check_models(project, &app.environment, &Clock::system())
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
            std::iter::once(Finding::of(&name, outcome)).chain(prices)
        })
        .collect()
}

/// Says what is known of the price of a model.
fn price(model: &str, told: Option<String>) -> Finding {
    let name = format!("price {model}");
    match told {
        Some(told) => Finding::new(&name, Verdict::Ok, told),
        None => Finding::new(
            &name,
            Verdict::Warn,
            "unknown: budgets in dollars cannot count it, so bound it by tokens",
        ),
    }
}

/// Names what confines commands, and what bounds their memory and processes.
async fn sandbox(project: &Project, app: &App) -> Vec<Finding> {
    let found = wiring::confinement(project, &app.environment).await;
    let level = match found {
        Ok(found) => match (found.sandbox, found.warning) {
            (Some(sandbox), _) => {
                let level = Finding::new("sandbox", Verdict::Ok, sandbox.level());
                return vec![level, Finding::new("limits", Verdict::Ok, sandbox.hold())];
            }
            (None, Some(warning)) => {
                return vec![Finding::new("sandbox", Verdict::Warn, warning)];
            }
            (None, None) => Ok("off; every model is scripted".to_owned()),
        },
        Err(error) => Err(error),
    };
    vec![Finding::of("sandbox", level)]
}
