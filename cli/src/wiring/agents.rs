//! Makes the agents of this process from the configuration.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use ropewalk_agents::ideation::{Ideation, IdeationOptions};
use ropewalk_agents::improvement::{Improvement, ImprovementOptions};
use ropewalk_agents::monitor::{Monitor, MonitorOptions};
use ropewalk_agents::pm::{Pm, PmOptions};
use ropewalk_agents::repository::Repository;
use ropewalk_agents::specification::{LessonOptions, SpecificationOptions, SpecificationWriter};
use ropewalk_builder::land::Lander;
use ropewalk_builder::{BuildAgent, BuildOptions, BuildParts};
use ropewalk_config::settings::{CountPatterns, PolicySettings};
use ropewalk_config::{Config, Environment, Prompts, QuestionTemplates, stack::StackProfiles};
use ropewalk_engine::conventions::{self, Conventions};
use ropewalk_engine::{CurrentValue, Engine, SearchPort};
use ropewalk_gate::project::Machine;
use ropewalk_gate::runner::{GateRunner, RunnerParts};
use ropewalk_gate::shell::Shell;
use ropewalk_orchestrator::Agent;
use ropewalk_orchestrator::questions::{Deadlines, QuestionService};
use ropewalk_runtime::Brake;
use ropewalk_schemas::{RepoPath, TaskId};
use ropewalk_workspace::{
    CleanPool, CommandRunner, Git, GitError, Identity, LocalClone, LocalCloneOptions, Sandbox,
    UserRepository,
};
use tracing::warn;

use super::{processes, search};
use crate::error::CliError;
use crate::project::Project;
use crate::scripted::{Person, Script};

/// What an agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Role {
    /// Talks about ideas until they are complete.
    Ideation,
    /// Writes specifications.
    Specification,
    /// Builds what was approved.
    Build,
    /// Learns from what was built.
    Improvement,
    /// Watches tasks, waits and the other processes.
    Monitor,
    /// Decides what stands in the way of builds.
    Pm,
    /// Asks people, reminds them and takes their answers.
    Questions,
    /// Tells people what happens, in the ways that `[notices]` switches on.
    Notify,
    /// Takes what people say and press in Telegram.
    Telegram,
    /// Serves the API.
    Server,
}

impl Role {
    /// Returns whether work waits while nobody runs it.
    const fn is_needed(self) -> bool {
        !matches!(self, Self::Notify | Self::Telegram | Self::Server)
    }

    /// Names the roles that have to run somewhere and are none of those that are `running`.
    pub(crate) fn missing(running: &BTreeSet<&str>) -> Vec<String> {
        let needed = Self::value_variants()
            .iter()
            .filter(|role| role.is_needed());
        let names = needed.filter_map(|role| Some(role.to_possible_value()?.get_name().to_owned()));
        names
            .filter(|name| !running.contains(name.as_str()))
            .collect()
    }
}

/// Which agents a process runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Crew {
    /// All of them.
    Everyone,
    /// Those that a conversation needs.
    Ideation,
    /// Those that writing a specification needs.
    Specification,
    /// Those that a text needs to become a specification.
    Text,
    /// Those that do a build again.
    Replay,
    /// Those of these roles, beside other processes that run the same or other ones.
    Roles(Vec<Role>),
}

impl Crew {
    /// Returns whether other processes run agents on the same truth.
    pub(super) const fn shares(&self) -> bool {
        matches!(self, Self::Roles(_))
    }

    /// Returns whether it ends with the verb that somebody waits for.
    pub(super) const fn is_hosted_by_verb(&self) -> bool {
        matches!(
            self,
            Self::Ideation | Self::Specification | Self::Text | Self::Replay
        )
    }

    /// Returns whether its process serves the API.
    pub(crate) fn serves(&self) -> bool {
        self.has(Role::Server)
    }

    /// Returns whether its process tells people what happens.
    pub(super) fn tells(&self) -> bool {
        self.has(Role::Notify)
    }

    /// Returns whether its process takes what people say in Telegram.
    pub(super) fn chats(&self) -> bool {
        self.has(Role::Telegram)
    }

    fn has(&self, role: Role) -> bool {
        match self {
            Self::Everyone => true,
            Self::Ideation => matches!(role, Role::Questions | Role::Ideation),
            Self::Specification => matches!(role, Role::Questions | Role::Specification),
            Self::Text => Self::Ideation.has(role) || Self::Specification.has(role),
            Self::Replay => matches!(role, Role::Questions | Role::Build),
            Self::Roles(roles) => roles.contains(&role),
        }
    }
}

/// What agents are made of.
pub(super) struct Parts<'a> {
    pub(super) project: &'a Project,
    pub(super) environment: &'a Environment,
    pub(super) git: Git,
    pub(super) engine: Engine,
    /// What models may do with their tools, as it is now.
    pub(super) policy: CurrentValue<PolicySettings>,
    pub(crate) brake: Brake,
    /// The number of this process, where others run on the same state.
    pub(super) process: Option<u32>,
    /// What confines commands.
    pub(super) sandbox: Option<Sandbox>,
    /// The order in which tasks are built; none for any that fits.
    pub(super) order: Vec<TaskId>,
}

/// Makes the agents of `crew`.
pub(super) async fn agents(crew: &Crew, parts: Parts<'_>) -> Result<Vec<Arc<dyn Agent>>, CliError> {
    let toolkit = Toolkit::new(parts)?;
    let mut agents: Vec<Arc<dyn Agent>> = Vec::new();
    if crew.has(Role::Questions) {
        agents.push(Arc::new(QuestionService::new(toolkit.deadlines)?));
    }
    let with_code = [Role::Specification, Role::Build, Role::Improvement];
    let with_code = with_code.into_iter().any(|role| crew.has(role));
    let clone = if with_code || crew.has(Role::Ideation) {
        toolkit.clone_repository().await?
    } else {
        None
    };
    let machine = toolkit.machine();
    let policy = toolkit.parts.policy.clone();
    let search = match &clone {
        Some(_) => toolkit.search(crew)?,
        None => None,
    };
    let repository = clone
        .clone()
        .map(|clone| Repository::new(clone, machine, policy).searching(search.clone()));
    if crew.has(Role::Ideation) {
        agents.push(Arc::new(toolkit.ideation(repository.clone())?));
    }
    if with_code {
        let none = || GitError::NoCommit(toolkit.parts.project.locations.repository.clone());
        let (clone, repository) = clone.zip(repository).ok_or_else(none)?;
        if crew.has(Role::Specification) {
            agents.push(Arc::new(toolkit.specification(repository.clone())?));
        }
        if crew.has(Role::Build) {
            agents.push(Arc::new(toolkit.build(&clone, search)?));
        }
        if crew.has(Role::Improvement) {
            agents.push(Arc::new(toolkit.improvement(repository)?));
        }
    }
    if crew.has(Role::Monitor) {
        agents.push(Arc::new(toolkit.monitor()?));
    }
    if crew.has(Role::Pm) {
        agents.push(Arc::new(toolkit.pm()?));
    }
    if *crew == Crew::Everyone {
        agents.extend(toolkit.person()?);
    }
    Ok(agents)
}

/// Makes what lands builds, for a verb that does so beside whatever process runs the agents.
pub(crate) async fn lander(
    project: &Project,
    environment: &Environment,
    brake: Brake,
) -> Result<Lander, CliError> {
    let git = super::git(environment).await?;
    let clone = open_clone(project, git).await?;
    let confinement = super::confinement(project, environment).await?;
    let runner = CommandRunner::new(super::command_environment(project, environment));
    let runner = runner.confined(confinement.sandbox).held_by(brake);
    let config = project.config();
    let options = BuildOptions::from_config(config, deadlines(config));
    Ok(Lander::new(clone, runner, &options))
}

/// Refuses a repository without a commit, on which nothing can be planned; writes nothing.
pub(crate) async fn require_commit(project: &Project, git: &Git) -> Result<(), CliError> {
    let user = UserRepository::inspect(git, &project.locations.repository).await?;
    Ok(user.require_commit(git).await?)
}

/// Opens the local clone of a project.
pub(crate) async fn open_clone(project: &Project, git: Git) -> Result<LocalClone, GitError> {
    let options = LocalCloneOptions {
        user_repository: project.locations.repository.clone(),
        state: project.state().to_owned(),
        identity: Identity::default(),
    };
    LocalClone::open_or_create(git, options).await
}

/// What several agents share.
struct Toolkit<'a> {
    parts: Parts<'a>,
    prompts: Prompts,
    stacks: StackProfiles,
    templates: QuestionTemplates,
    deadlines: Deadlines,
}

impl<'a> Toolkit<'a> {
    fn new(parts: Parts<'a>) -> Result<Self, CliError> {
        let deadlines = deadlines(parts.project.config());
        Ok(Self {
            parts,
            prompts: Prompts::shipped()?,
            stacks: StackProfiles::shipped()?,
            templates: QuestionTemplates::shipped()?,
            deadlines,
        })
    }

    fn config(&self) -> &Config {
        self.parts.project.config()
    }

    /// Opens the local clone, and says once what is unusual about the repository; none while that has no commit.
    async fn clone_repository(&self) -> Result<Option<LocalClone>, CliError> {
        let clone = match open_clone(self.parts.project, self.parts.git.clone()).await {
            Ok(clone) => clone,
            Err(GitError::NoCommit(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if let Some(notice) = notice(&clone).await? {
            warn!("{notice}");
        }
        Ok(Some(clone))
    }

    /// Makes what searches the web for models, where that is configured.
    fn search(&self, crew: &Crew) -> Result<Option<Arc<dyn SearchPort>>, CliError> {
        let (project, environment) = (self.parts.project, self.parts.environment);
        search::port(crew.is_hosted_by_verb(), project, environment)
    }

    /// Makes what runs commands: confined, and none while everything is stopped.
    fn runner(&self, environment: ropewalk_workspace::Environment) -> CommandRunner {
        CommandRunner::new(environment)
            .confined(self.parts.sandbox.clone())
            .held_by(self.parts.brake.clone())
    }

    /// Says what plans are made for: stacks, tools, who may install.
    fn machine(&self) -> Machine {
        let environment = super::child_environment(self.parts.environment);
        Machine {
            stacks: self.stacks.clone(),
            runner: self.runner(environment),
            package_managers: self.config().build.package_managers.clone(),
        }
    }

    /// Conversations go on before there is a commit; they are about no code then.
    fn ideation(&self, repository: Option<Repository>) -> Result<Ideation, CliError> {
        let has_bot = self.config().telegram.token_variable.is_some();
        let options = IdeationOptions {
            engine: self.parts.engine.clone(),
            prompts: self.prompts.clone(),
            templates: self.templates.clone(),
            deadlines: self.deadlines,
            places: self.parts.project.places(),
            repository,
            phones: has_bot.then(|| (*self.parts.project.people).clone()),
        };
        Ok(Ideation::new(options)?)
    }

    fn specification(&self, repository: Repository) -> Result<SpecificationWriter, CliError> {
        let knowledge = &self.config().knowledge;
        let environment = super::command_environment(self.parts.project, self.parts.environment);
        let runner = self.runner(environment);
        let clone = repository.local_clone();
        let building = BuildOptions::from_config(self.config(), self.deadlines);
        let options = SpecificationOptions {
            shell: Shell::of(&runner),
            gate: Arc::new(GateRunner::new(RunnerParts {
                clone: clone.clone(),
                runner,
                at_once: 1,
                pool: CleanPool::for_plans(clone.clone()),
                gate: building.gate,
                validation_timeout: building.validation_timeout,
                package_managers: building.package_managers,
            })),
            own_runner: self.config().gate.counts != CountPatterns::default(),
            engine: self.parts.engine.clone(),
            prompts: self.prompts.clone(),
            templates: self.templates.clone(),
            stacks: self.stacks.clone(),
            deadlines: self.deadlines,
            places: self.parts.project.places(),
            repository,
            auto_generate: self.config().specification.auto_generate,
            repairs: self.config().specification.repairs,
            lessons: LessonOptions {
                minimum: knowledge.spec_minimum,
                per_task: knowledge.per_task as usize,
                hold_out: knowledge.hold_out,
            },
        };
        Ok(SpecificationWriter::new(options)?)
    }

    fn build(
        &self,
        repository: &LocalClone,
        search: Option<Arc<dyn SearchPort>>,
    ) -> Result<BuildAgent, CliError> {
        let environment = super::command_environment(self.parts.project, self.parts.environment);
        let owner = processes::name(self.parts.project.state(), self.parts.process);
        let parts = BuildParts {
            engine: self.parts.engine.clone(),
            clone: repository.clone(),
            runner: self.runner(environment).owned_by(owner),
            prompts: self.prompts.clone(),
            stacks: self.stacks.clone(),
            questions: self.templates.clone(),
            state: self.parts.project.state().to_owned(),
            options: BuildOptions {
                order: self.parts.order.clone(),
                search,
                policy: self.parts.policy.clone(),
                ..BuildOptions::from_config(self.config(), self.deadlines)
            },
            process: self.parts.process,
        };
        Ok(BuildAgent::new(parts)?)
    }

    fn improvement(&self, repository: Repository) -> Result<Improvement, CliError> {
        let options = ImprovementOptions {
            engine: self.parts.engine.clone(),
            prompts: self.prompts.clone(),
            templates: self.templates.clone(),
            deadlines: self.deadlines,
            repository,
        };
        Ok(Improvement::new(options)?)
    }

    fn monitor(&self) -> Result<Monitor, CliError> {
        let options = MonitorOptions::from(&self.config().monitor);
        Ok(Monitor::new(options)?)
    }

    fn pm(&self) -> Result<Pm, CliError> {
        let (pm, monitor) = (&self.config().pm, &self.config().monitor);
        let options = PmOptions::new(pm, monitor, self.templates.clone(), self.deadlines);
        Ok(Pm::new(options)?)
    }

    /// Lets the scripted person of a rehearsal take part, where the configuration names one.
    fn person(&self) -> Result<Option<Arc<dyn Agent>>, CliError> {
        let project = self.parts.project;
        let Some(path) = &self.config().rehearsal.person else {
            return Ok(None);
        };
        let path = project.file("rehearsal.person", path)?;
        let text = std::fs::read_to_string(&path).map_err(|error| CliError::file(&path, &error))?;
        let script = Script::parse(&text).map_err(CliError::failed)?;
        let person = Person::new(project.user.clone(), script).map_err(CliError::failed)?;
        Ok(Some(Arc::new(person)))
    }
}

/// Says what is unusual about the user's repository, in one line.
pub(crate) async fn notice(clone: &LocalClone) -> Result<Option<String>, CliError> {
    let path = clone.user().path.display();
    if clone.user().bare {
        return Ok(Some(format!(
            "`{path}` is a bare repository; builds land on branches in it"
        )));
    }
    let dirty = clone.user_is_dirty().await?;
    Ok(dirty.then(|| {
        format!("`{path}` has changes that are not committed; builds begin with its last commit")
    }))
}

/// Names the submodules of a repository, which no checkout of a build has; none where there is none.
pub(crate) async fn without_submodules(
    git: &Git,
    repository: &UserRepository,
) -> Result<Option<String>, CliError> {
    let paths = repository.submodules(git).await?;
    Ok((!paths.is_empty()).then(|| {
        format!(
            "checkouts of builds and of their gate leave out what lies in git submodules: `{}`",
            paths.join("`, `")
        )
    }))
}

/// Says where the conventions of a directory are longer than models are told.
pub(crate) async fn clipped_conventions(
    git: &Git,
    repository: &UserRepository,
) -> Result<Option<String>, CliError> {
    let mut longest: Option<(usize, RepoPath)> = None;
    for path in repository.files_named(git, &conventions::NAMES).await? {
        let Ok(path) = RepoPath::parse(&path) else {
            continue;
        };
        // What holds for the whole is told for itself.
        let mut written = if path.as_str().contains('/') {
            Conventions::beside(std::iter::once(&path))
        } else {
            Conventions::of_the_whole()
        };
        while !written.wanted().is_empty() {
            let wanted = written.wanted();
            let read = repository.read_small_files(git, &wanted, conventions::MOST_BYTES);
            written.take(read.await?);
        }
        let Some(told) = written.told() else { continue };
        let letters = told.too_many_letters().unwrap_or(0);
        if letters > longest.as_ref().map_or(0, |(most, _)| *most) {
            longest = Some((letters, told.path));
        }
    }
    Ok(longest.map(|(letters, path)| {
        format!(
            "`{path}`, with what it names and what stands above it below the root, has {letters} letters; models are told the first \
             {}: shorten them, or move what is needed in one place only into a file of that directory",
            conventions::TOLD_LETTERS
        )
    }))
}

fn deadlines(config: &Config) -> Deadlines {
    let questions = &config.questions;
    let hours = |hours: u32| Duration::from_hours(u64::from(hours));
    Deadlines {
        reminder: Duration::from_mins(u64::from(questions.reminder_minutes)),
        clarifying: hours(questions.clarifying_hours),
        repeat: hours(questions.repeat_hours),
        confirming: hours(questions.confirming_hours),
        dismissal: hours(questions.dismiss_days.saturating_mul(24)),
    }
}
