//! Verb `rehearse`: takes two scripted ideas through every agent to verified branches.

mod lay;
mod report;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ropewalk_config::settings::Transport;
use ropewalk_config::{Config, Environment};
use ropewalk_runtime::Clock;
use ropewalk_schemas::Slug;
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::specification::SpecState;
use ropewalk_store::{EventFilter, Location, Query, ReadError, Store};
use serde::Serialize;
use serde_json::Value;

use report::IdeaReport;

use crate::app::App;
use crate::commands::doctor;
use crate::error::CliError;
use crate::output::Output;
use crate::progress::Progress;
use crate::project::Project;
use crate::scripted::Script;
use crate::wiring::Host;

/// The most characters of a line of progress.
const LINE: usize = 140;

/// What `rehearse` was asked for.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The bus: `embedded`, `nats` (a nats-server from PATH) or `nats://HOST:PORT`.
    #[arg(long, default_value = "embedded", value_parser = crate::values::bus)]
    bus: String,
    /// The store: `sqlite`, or the address of an empty database, `postgres://USER@HOST:PORT/DATABASE`.
    #[arg(long, default_value = "sqlite", value_parser = crate::values::store)]
    store: String,
    /// The folder to rehearse in; by default a fresh one in the folder for temporary files.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Serve the pages meanwhile, go slowly enough to follow, and stay until Ctrl-C.
    #[arg(long)]
    watch: bool,
}

/// How a rehearsal went.
#[derive(Debug, Clone, Serialize)]
struct Report {
    ok: bool,
    dir: PathBuf,
    repo: PathBuf,
    bus: String,
    store: String,
    duration_ms: u128,
    events: usize,
    ideas: Vec<IdeaReport>,
}

/// What is said once where no sandbox works.
const UNCONFINED: &str = "nothing confines the commands of this rehearsal: they run with your rights, which only scripted models may; \
                          `ropewalk doctor` says why";

/// Lays the folder, runs every agent in it until the last idea is reviewed, and reports.
pub async fn run(arguments: Arguments, app: &App) -> Result<(), CliError> {
    let (environment, output) = (&app.environment, &app.output);
    let began = Instant::now();
    // Whatever can be refused is refused before anything is laid.
    let git = crate::wiring::git(environment).await?;
    crate::wiring::check_rust(environment).await?;
    let transport = Transport::try_from(arguments.bus.clone()).map_err(CliError::failed)?;
    crate::wiring::check_bus(&transport, environment).await?;
    let store = check_store(&arguments.store).await?;
    let directory = directory(arguments.dir.as_deref())?;
    lay::lay(&directory, &git, &arguments.bus, &arguments.store)
        .await
        .map_err(|error| CliError::advised("failed", error))?;
    let host = start(&arguments, &directory, app).await?;
    if !host.is_confined() {
        output.note(UNCONFINED)?;
    }
    let progress = Progress::start(output, &format!("rehearsing in {}", directory.display()));
    let slugs = ideas(&directory)?;
    let ended = follow(&host, &slugs, &progress).await;
    let ideas = host_report(&host.services.store, &slugs).await?;
    let events = count_events(&host.services.store).await?;
    progress.finish();
    let ok = ideas.len() == slugs.len() && ideas.iter().all(is_done_well);
    if arguments.watch && ended.is_ok() {
        let outcome = if ok {
            "the rehearsal succeeded".to_owned()
        } else {
            missed(&ideas).0
        };
        output.note(&format!("{outcome}; its pages stay until Ctrl-C"))?;
        host.stopped().await;
    }
    let drained = host.drain().await;
    ended?;
    drained?;
    let report = Report {
        ok,
        repo: directory.join("repo"),
        dir: directory,
        bus: arguments.bus,
        store,
        duration_ms: began.elapsed().as_millis(),
        events,
        ideas,
    };
    tell(&report, output)
}

/// Starts every agent; where somebody watches, with a model that takes its time, and pages.
async fn start(arguments: &Arguments, directory: &Path, app: &App) -> Result<Host, CliError> {
    let environment = &app.environment;
    if !arguments.watch {
        let project = own_project(directory, environment, &[])?;
        return Host::start(app, project).await;
    }
    lay::slow(directory).map_err(|error| CliError::advised("failed", error))?;
    // Whatever else listens here is not in the way of a free port.
    let address = ["server.address=127.0.0.1:0".to_owned()];
    let project = own_project(directory, environment, &address)?;
    let doors = crate::wiring::doors(&project).await?;
    let host = Host::start(app, project).await?;
    if let Some(doors) = doors {
        let (directory, own) = (directory.to_owned(), environment.clone());
        let load = move || Project::load(&directory, &address, &own);
        let checkup = doctor::checkup(environment.clone(), load);
        app.output.note(&host.serve(doors, environment, checkup)?)?;
    }
    Ok(host)
}

/// Loads what was just laid, and trusts it, and sends spans where the configuration says; who has no home for such a word has to give it again later.
fn own_project(
    directory: &Path,
    environment: &Environment,
    overrides: &[String],
) -> Result<Project, CliError> {
    let loaded = Config::load_whoever_wrote_it(directory, environment, overrides)?;
    if let Some(request) = &loaded.trust {
        drop(request.trust(environment, &Clock::system().now().to_rfc3339()));
    }
    let project = Project::of(loaded, environment)?;
    crate::wiring::begin_traces(&project, environment)?;
    Ok(project)
}

/// Checks that a database on a server answers and holds no ideas yet; returns how the store is shown.
async fn check_store(text: &str) -> Result<String, CliError> {
    let location = Location::parse(text, Path::new(""))?;
    if let Location::Sqlite(_) = location {
        return Ok(text.to_owned());
    }
    let store = Store::open(&location, Clock::system()).await?;
    let ideas = store.count::<Idea>(Query::new()).await;
    store.close().await?;
    if ideas? > 0 {
        let text = (
            format!("`{location}` holds ideas already"),
            "name an empty database",
        );
        return Err(CliError::refused("store", text));
    }
    Ok(location.to_string())
}

/// Returns the folder, absolute; a default one is fresh and kept.
fn directory(wanted: Option<&Path>) -> Result<PathBuf, CliError> {
    match wanted {
        Some(wanted) => std::path::absolute(wanted).map_err(CliError::failed),
        None => tempfile::Builder::new()
            .prefix("ropewalk-rehearsal-")
            .tempdir()
            .map(tempfile::TempDir::keep)
            .map_err(|error| {
                let text = (
                    format!("no folder can be made: {error}"),
                    "name one with `--dir`, or set `TMPDIR` to a writable place",
                );
                CliError::refused("file", text)
            }),
    }
}

fn ideas(directory: &Path) -> Result<Vec<Slug>, CliError> {
    let text = std::fs::read_to_string(directory.join("person.yaml")).map_err(CliError::failed)?;
    let script = Script::parse(&text).map_err(CliError::failed)?;
    Ok(script.ideas.into_iter().map(|idea| idea.slug).collect())
}

/// Waits until every idea is reviewed or one can go no further; shows what happens meanwhile.
async fn follow(host: &Host, slugs: &[Slug], progress: &Progress) -> Result<(), CliError> {
    let store = &host.services.store;
    let mut feed = store.feed();
    let mut shown = 0;
    loop {
        shown = show_events(store, shown, progress).await?;
        let reports = host_report(store, slugs).await?;
        let all_reviewed =
            reports.len() == slugs.len() && reports.iter().all(|idea| idea.review.is_some());
        if all_reviewed || reports.iter().any(is_stuck) {
            return Ok(());
        }
        tokio::select! {
            _ = feed.next() => {}
            () = tokio::time::sleep(Duration::from_millis(500)) => {}
            () = host.stopped() => return Err(CliError::Cancelled),
        }
    }
}

/// Shows every event after `shown` and returns the last one's position.
async fn show_events(store: &Store, shown: i64, progress: &Progress) -> Result<i64, ReadError> {
    let filter = EventFilter {
        after_sequence: Some(shown),
        ..EventFilter::default()
    };
    let mut last = shown;
    for stored in store.events(&filter).await? {
        if let Some(headline) = headline(
            &stored.event.event_type,
            stored.event.subject.as_str(),
            &stored.event.data,
        ) {
            progress.say(&headline);
        }
        last = stored.sequence;
    }
    Ok(last)
}

/// Says what happened in one line for people; `None` for what only the machinery cares about.
fn headline(event_type: &str, subject: &str, data: &Value) -> Option<String> {
    let text = |name: &str| {
        data.get(name)
            .and_then(Value::as_str)
            .map(|text| text.lines().next().unwrap_or(text))
    };
    let detail = match event_type {
        "lock.released" | "schedule.due" | "ideation.started" | "knowledge.reinforced" => {
            return None;
        }
        "ideation.phase_changed" => text("to"),
        "artifact.saved" => text("path"),
        "question.asked" => text("text"),
        "question.answered" => text("answer"),
        "knowledge.recorded" => text("content"),
        "lock.extended" | "question.superseded" | "question.dismissed" => text("reason"),
        "task.failed" => text("category"),
        "build.completed" => text("status"),
        _ => None,
    };
    // The id of a question tells nobody anything.
    let last = subject.rsplit('/').next();
    let about = text("idea_slug").or(last.filter(|_| !subject.starts_with("question/")));
    let about = about.map(|about| format!(" {about}")).unwrap_or_default();
    let task = text("task_id")
        .map(|task| format!(" {task}"))
        .unwrap_or_default();
    let detail = detail
        .map(|detail| format!(": {detail}"))
        .unwrap_or_default();
    let short: String = format!("{event_type}{about}{task}{detail}")
        .chars()
        .take(LINE)
        .collect();
    Some(short)
}

async fn host_report(store: &Store, slugs: &[Slug]) -> Result<Vec<IdeaReport>, ReadError> {
    let mut reports = Vec::new();
    for slug in slugs {
        reports.extend(report::idea(store, slug).await?);
    }
    Ok(reports)
}

async fn count_events(store: &Store) -> Result<usize, ReadError> {
    Ok(usize::try_from(store.count_events().await?).unwrap_or(usize::MAX))
}

fn is_done_well(idea: &IdeaReport) -> bool {
    idea.review.is_some()
        && idea
            .build
            .as_ref()
            .is_some_and(|build| build.state == BuildState::Succeeded)
}

/// Returns whether nothing will happen to `idea` any more though it is not reviewed.
fn is_stuck(idea: &IdeaReport) -> bool {
    let refused = idea.spec_state == Some(SpecState::Rejected);
    let waits = idea
        .build
        .as_ref()
        .is_some_and(|build| build.state == BuildState::Paused);
    refused || waits
}

fn tell(report: &Report, output: &Output) -> Result<(), CliError> {
    if output.is_json() {
        output.object(report)?;
    } else {
        for idea in &report.ideas {
            output.line(&summary(idea))?;
        }
        output.line(&format!(
            "{} events in {:.1} s; look around with `cd {}`, then `ropewalk build list` or `ropewalk event list`",
            report.events,
            seconds(report.duration_ms),
            report.dir.display()
        ))?;
    }
    if report.ok {
        Ok(())
    } else {
        Err(CliError::Failed(missed(&report.ideas).into()))
    }
}

/// Says that the goal was missed, and why as far as the ideas know.
fn missed(ideas: &[IdeaReport]) -> (String, &'static str) {
    let reasons: Vec<&str> = ideas
        .iter()
        .filter_map(|idea| idea.build.as_ref()?.reason.as_deref())
        .collect();
    let why = if reasons.is_empty() {
        String::new()
    } else {
        format!(": {}", reasons.join(", "))
    };
    (
        format!("the rehearsal did not reach its goal{why}"),
        "its folder is kept",
    )
}

fn summary(idea: &IdeaReport) -> String {
    let Some(build) = &idea.build else {
        return format!("{}: not built", idea.slug);
    };
    format!(
        "{}: {} on {}, {} commits in {} attempts",
        idea.slug,
        build.state,
        build.branch,
        build.commits.len(),
        build.attempts
    )
}

fn seconds(milliseconds: u128) -> f64 {
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(u64::MAX)).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn progress_names_the_idea_the_task_and_what_matters() {
        let failed =
            json!({ "idea_slug": "habits", "task_id": "T-002", "category": "VALIDATION_FAILED" });
        let asked = json!({ "idea_slug": "habits", "text": "How?\nPlease say." });
        let closed = json!({ "question_id": "1", "reason": "the branch was landed" });
        let cases = [
            (
                "task.failed",
                &failed,
                Some("task.failed habits T-002: VALIDATION_FAILED"),
            ),
            (
                "question.asked",
                &asked,
                Some("question.asked habits: How?"),
            ),
            ("build.started", &json!({}), Some("build.started 1")),
            (
                "question.superseded",
                &closed,
                Some("question.superseded: the branch was landed"),
            ),
            ("lock.released", &failed, None),
        ];
        for (event_type, data, expected) in cases {
            let (family, _) = event_type.split_once('.').unwrap();
            let family = if family == "question" {
                family
            } else {
                "build"
            };
            assert_eq!(
                headline(event_type, &format!("{family}/1"), data).as_deref(),
                expected,
                "{event_type}"
            );
        }
    }
}
