//! Opens a repository, a state directory and the build agent on a script, and approves plans.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use ropewalk_builder::{BuildAgent, BuildOptions, BuildParts};
use ropewalk_bus::TransportOptions;
use ropewalk_config::{Prompts, QuestionTemplates, StackProfiles};
use ropewalk_engine::llm::{PriceTable, Script, ScriptedModel};
use ropewalk_engine::{Engine, ModelEntry, Models};
use ropewalk_orchestrator::{Context, Frame, Services};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::document;
use ropewalk_schemas::payload::SpecApproved;
use ropewalk_schemas::specification::{Document, Revision};
use ropewalk_schemas::task::TaskBlock;
use ropewalk_schemas::{ComponentName, Payload, Priority, Slug, SpecId, Subject, UserSlug};
use ropewalk_store::{ChangeSet, Query, Versioned};
use ropewalk_workspace::{
    CommandRunner, Environment, Git, Identity, LocalClone, LocalCloneOptions,
};
use ropewalk_world::World;
use serde_json::json;

use crate::disk;

/// Files of a directory in the repository that is built in.
const FILES_PER_DIRECTORY: usize = 50;
/// How long builds may take.
const PATIENCE: Duration = Duration::from_mins(8);

/// So many tasks, one after the other, for one idea.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) slug: String,
    pub(crate) tasks: usize,
}

/// A project with its build agent at work.
pub(crate) struct Project {
    pub(crate) world: World,
    context: Context,
}

impl Project {
    /// Makes a repository of `files` files in `directory` and starts `loops` loops that can build `plans` in it.
    pub(crate) async fn open(
        directory: &Path,
        files: usize,
        loops: usize,
        plans: &[Plan],
    ) -> Result<Self> {
        let (repo, state) = (directory.join("repo"), directory.join("state"));
        repository(&repo, files)?;
        std::fs::create_dir_all(&state)?;
        let world = disk::world(&state, TransportOptions::Embedded).await?;
        let services = world.services.clone();
        let script = Script::parse(&script(plans))?;
        let agent = agent(&services, repo, state, loops, script).await?;
        Frame::start(&services, vec![Arc::new(agent)], &world.supervisor).await?;
        let person = ComponentName::parse("cli")?;
        Ok(Self {
            context: Context::new(&services, person),
            world,
        })
    }

    /// Approves a plan.
    pub(crate) async fn approve(&self, plan: &Plan) -> Result<SpecId> {
        let slug = plan.slug.as_str();
        let tasks = (1..=plan.tasks).map(|number| block(slug, number));
        let tasks = tasks.collect::<Result<Vec<TaskBlock>>>()?;
        let text = Document {
            title: slug.to_owned(),
            ..Document::default()
        };
        let spec = SpecId(self.world.services.ids.next());
        let hash = document::hash(&text, &tasks);
        let approval = SpecApproved {
            spec_id: spec,
            idea_slug: Slug::parse(slug)?,
            user_slug: UserSlug::parse("ada")?,
            revision: 1,
            hash: hash.clone(),
            approved_by: UserSlug::parse("ada")?,
            priority: Priority::DEFAULT,
            price: None,
        };
        let revision = Revision {
            spec,
            number: 1,
            hash,
            document: text,
            tasks,
            dry_run: None,
            kept: Vec::new(),
            validation: Vec::new(),
            answers: Vec::new(),
            at: self.context.now(),
        };
        let mut changes = ChangeSet::new();
        changes.insert(&revision);
        let subject = Subject::specification(spec);
        changes.emit(self.context.event(subject, Payload::SpecApproved(approval)));
        self.world.services.store.commit(changes).await?;
        Ok(spec)
    }

    /// Waits until `builds` builds have ended, all of them well.
    pub(crate) async fn ended(&self, builds: usize) -> Result<()> {
        let begun = std::time::Instant::now();
        loop {
            let found: Vec<Versioned<Build>> = self.world.services.store.list(Query::new()).await?;
            let mut ended = found.iter().filter(|build| build.completed_at.is_some());
            if ended.clone().count() == builds {
                let bad = ended.find(|build| build.reason.is_some());
                let why = bad.and_then(|build| build.reason.clone());
                ensure!(why.is_none(), "a build ended badly: {why:?}");
                return Ok(());
            }
            ensure!(begun.elapsed() < PATIENCE, "the builds do not end");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn agent(
    services: &Services,
    repo: PathBuf,
    state: PathBuf,
    loops: usize,
    script: Script,
) -> Result<BuildAgent> {
    let variables: Vec<_> = std::env::vars_os().collect();
    let environment = Environment::from_pairs(variables);
    let clone = LocalCloneOptions {
        user_repository: repo,
        state: state.clone(),
        identity: Identity::default(),
    };
    let models = Models::all(ModelEntry {
        model: Arc::new(ScriptedModel::new(script, services.clock.clone())),
        name: "scripted".to_owned(),
        prices: PriceTable::default(),
        window_tokens: None,
        sees_images: true,
    });
    let parts = BuildParts {
        engine: Engine::new(services.store.clone(), models, services.clock.clone()),
        clone: LocalClone::open_or_create(Git::open(&environment).await?, clone).await?,
        runner: CommandRunner::new(environment),
        questions: QuestionTemplates::shipped()?,
        prompts: Prompts::shipped()?,
        stacks: StackProfiles::shipped()?,
        state,
        options: BuildOptions {
            loops,
            ..BuildOptions::default()
        },
        process: None,
    };
    Ok(BuildAgent::new(parts)?)
}

/// Writes the rules of a model that makes the file of every task at once.
fn script(plans: &[Plan]) -> String {
    let mut rules = String::new();
    for plan in plans {
        for number in 1..=plan.tasks {
            let (slug, file) = (&plan.slug, file(&plan.slug, number));
            let call =
                json!([{ "name": "write", "input": { "path": file, "content": "built\n" } }]);
            let done = json!([{ "name": "finish", "input": { "summary": "Done." } }]);
            for (turn, tools) in [(1, call), (2, done)] {
                let rule = json!({
                    "agent": "build", "idea": slug, "task": format!("T-{number}"), "turn": turn,
                    "reply": { "tools": tools },
                });
                // One JSON value a line is YAML too.
                rules.push_str("- ");
                rules.push_str(&rule.to_string());
                rules.push('\n');
            }
        }
    }
    rules
}

fn file(slug: &str, number: usize) -> String {
    format!("built/{slug}/{number}.txt")
}

fn block(slug: &str, number: usize) -> Result<TaskBlock> {
    let needs: Vec<String> = (number > 1)
        .then(|| format!("T-{}", number - 1))
        .into_iter()
        .collect();
    Ok(serde_json::from_value(json!({
        "id": format!("T-{number}"), "phase": "api", "action": "CREATE",
        "file": file(slug, number),
        "validation": { "command": "true", "expected": "exit 0" },
        "depends_on": needs,
    }))?)
}

/// Makes a repository of `files` small files in one commit.
pub(crate) fn repository(repo: &Path, files: usize) -> Result<()> {
    std::fs::create_dir_all(repo)?;
    for number in 0..files {
        let directory = repo.join(format!("src/part_{}", number / FILES_PER_DIRECTORY));
        if number % FILES_PER_DIRECTORY == 0 {
            std::fs::create_dir_all(&directory)?;
        }
        let mut text = String::new();
        writeln!(text, "pub fn part_{number}() -> u32 {{ {number} }}")?;
        std::fs::write(directory.join(format!("file_{number}.rs")), text)?;
    }
    std::fs::write(repo.join("README.md"), "# A project\n")?;
    for arguments in [
        &["init", "-q", "-b", "main"][..],
        &["add", "."],
        &["commit", "-q", "-m", "begin"],
    ] {
        let status = Command::new("git")
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
            .args(["-c", "commit.gpgsign=false"])
            .args(arguments)
            .current_dir(repo)
            .status()
            .context("git is missing")?;
        ensure!(status.success(), "git {arguments:?} failed");
    }
    Ok(())
}
