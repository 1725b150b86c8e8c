//! How long a conversation waits until the model is told of the repository: the first time, and after a change of one file.
//! And how long that is what it is told.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use ropewalk_agents::ideation::{Ideation, IdeationOptions};
use ropewalk_agents::places::Places;
use ropewalk_agents::repository::Repository;
use ropewalk_bus::TransportOptions;
use ropewalk_config::{Prompts, QuestionTemplates, StackProfiles};
use ropewalk_desk::ideas::{self, Opening};
use ropewalk_engine::llm::{
    Model, ModelError, ModelRequest, PriceTable, ReplyStream, Script, ScriptedModel,
};
use ropewalk_engine::{CurrentValue, Engine, ModelEntry, Models};
use ropewalk_gate::project::Machine;
use ropewalk_orchestrator::questions::Deadlines;
use ropewalk_orchestrator::{Agent as _, Context, Services};
use ropewalk_schemas::{ComponentName, Event, EventPattern, UserSlug};
use ropewalk_store::EventFilter;
use ropewalk_workspace::{
    CommandRunner, Environment, Git, Identity, LocalClone, LocalCloneOptions,
};
use tokio_util::sync::CancellationToken;

use crate::building;
use crate::disk;
use crate::figure::{Figure, Goal};
use crate::sample::{Times, millis};

/// The files of the repository.
const FILES: usize = 50_000;
/// How often one of them changes.
const CHANGES: usize = 5;
/// A model that has nothing to say.
const SCRIPT: &str =
    "- {agent: ideation, reply: {text: Well., tools: [{name: reply, input: {}}]}}\n";
/// What is told of the repository stands behind this, as a document.
const HEADING: &str = "## The Repository";
/// The most that is told of it, in bytes.
const MOST_BYTES: f64 = 24.0 * 1024.0;
const OPENING: &str =
    "Whoever reads so many parts cannot tell where each number comes from, and gives up.";

/// Measures both in a repository of 50,000 files.
pub(crate) async fn run() -> Result<Vec<Figure>> {
    let directory = disk::directory()?;
    let (repo, state) = (
        directory.path().join("repo"),
        directory.path().join("state"),
    );
    building::repository(&repo, FILES)?;
    std::fs::create_dir_all(&state)?;
    let world = disk::world(&state, TransportOptions::Embedded).await?;
    let services = world.services.clone();
    let places = Places {
        repo: repo.clone(),
        state,
    };
    let told = Arc::new(AtomicUsize::new(0));
    let agent = agent(&services, places, Arc::clone(&told)).await?;
    let message = message(&services).await?;
    let context = Context::new(&services, ComponentName::parse("ideation")?).caused_by(&message);
    let begun = Instant::now();
    drop(agent.handle(&message, &context).await?);
    let cold = begun.elapsed();
    let mut times = Times::default();
    for number in 0..CHANGES {
        change(&repo, number)?;
        let begun = Instant::now();
        // Nothing of it is committed, so that each round is the same message.
        drop(agent.handle(&message, &context).await?);
        times.add(begun.elapsed());
    }
    world.close().await?;
    let told = told.load(Ordering::SeqCst);
    ensure!(told > 0, "the model was told nothing of the repository");
    let name = |when: &str| format!("a repository of {FILES} files is told to a model, {when}");
    let warm = Figure::cost(
        name("after a change of one file, p50"),
        "ms",
        times.millis(50)?,
    );
    Ok(vec![
        warm.goal(Goal::Value(2_000.0)),
        Figure::cost(
            name("the first time, with its checkout"),
            "ms",
            millis(cold),
        ),
        Figure::cost(name("its digest"), "bytes", f64::from(u32::try_from(told)?))
            .goal(Goal::Value(MOST_BYTES)),
    ])
}

/// Plays a script, and measures what it is told of the repository.
struct Listener {
    model: ScriptedModel,
    told: Arc<AtomicUsize>,
}

#[async_trait]
impl Model for Listener {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<ReplyStream, ModelError> {
        let (_, behind) = request.system.split_once(HEADING).unwrap_or_default();
        let (_, document) = behind.split_once("<document>").unwrap_or_default();
        let (digest, _) = document.split_once("</document>").unwrap_or_default();
        self.told.store(digest.len(), Ordering::SeqCst);
        self.model.stream(request, cancel).await
    }
}

async fn agent(services: &Services, places: Places, told: Arc<AtomicUsize>) -> Result<Ideation> {
    let variables: Vec<_> = std::env::vars_os().collect();
    let environment = Environment::from_pairs(variables);
    let clone = LocalCloneOptions {
        user_repository: places.repo.clone(),
        state: places.state.clone(),
        identity: Identity::default(),
    };
    let clone = LocalClone::open_or_create(Git::open(&environment).await?, clone).await?;
    let machine = Machine {
        stacks: StackProfiles::shipped()?,
        runner: CommandRunner::new(environment),
        package_managers: Vec::new(),
    };
    let models = Models::all(ModelEntry {
        model: Arc::new(Listener {
            model: ScriptedModel::new(Script::parse(SCRIPT)?, services.clock.clone()),
            told,
        }),
        name: "scripted".to_owned(),
        prices: PriceTable::default(),
        window_tokens: None,
        sees_images: true,
    });
    Ok(Ideation::new(IdeationOptions {
        engine: Engine::new(services.store.clone(), models, services.clock.clone()),
        prompts: Prompts::shipped()?,
        templates: QuestionTemplates::shipped()?,
        deadlines: Deadlines::default(),
        places,
        repository: Some(Repository::new(clone, machine, CurrentValue::default())),
        phones: None,
    })?)
}

/// Begins an idea, and returns its first message.
async fn message(services: &Services) -> Result<Event> {
    let person = Context::new(services, ComponentName::parse("cli")?);
    let opening = Opening {
        user: UserSlug::parse("ada")?,
        title: Some("Parts".to_owned()),
        text: OPENING.to_owned(),
        slug: None,
        kind: None,
        whole: false,
    };
    ideas::start(&person, opening).await?;
    let filter = EventFilter {
        pattern: Some(EventPattern::of("ideation.message")),
        ..EventFilter::default()
    };
    let event = services.store.events(&filter).await?.pop();
    let event = event.context("no message")?.event;
    Ok(Event::try_from(event.as_ref())?)
}

/// Changes one file and commits that.
fn change(repo: &Path, number: usize) -> Result<()> {
    let text = format!("pub fn part_{number}() -> u32 {{ 1 }}\npub fn more_{number}() {{}}\n");
    std::fs::write(repo.join(format!("src/part_0/file_{number}.rs")), text)?;
    let status = Command::new("git")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args([
            "-c",
            "commit.gpgsign=false",
            "commit",
            "-q",
            "-a",
            "-m",
            "change",
        ])
        .current_dir(repo)
        .status()
        .context("git is missing")?;
    ensure!(status.success(), "git commit failed");
    Ok(())
}
