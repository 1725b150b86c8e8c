//! A world in which two agents live: deliveries are handed to them one by one, in the order of the store.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use ropewalk_agents::idea_folder::IdeaFolder;
use ropewalk_agents::ideation::{Ideation, IdeationOptions};
use ropewalk_agents::improvement::{Improvement, ImprovementOptions};
use ropewalk_agents::places::Places;
use ropewalk_agents::repository::Repository;
use ropewalk_agents::specification::{LessonOptions, SpecificationOptions, SpecificationWriter};
use ropewalk_bus::live::LiveEvents;
use ropewalk_config::settings::{PackageManager, PolicySettings};
use ropewalk_config::stack::StackProfiles;
use ropewalk_config::{Prompts, QuestionTemplates};
use ropewalk_desk::ideas::{Opening, StartedIdea};
use ropewalk_desk::people::People;
use ropewalk_desk::{ideas, specifications};
use ropewalk_engine::llm::{
    Model, ModelError, ModelRequest, PriceTable, ReplyStream, Script, ScriptedModel,
};
use ropewalk_engine::{CurrentValue, Engine, ModelEntry, Models};
use ropewalk_gate::checks::Gate;
use ropewalk_gate::project::Machine;
use ropewalk_gate::runner::{GateRunner, RunnerParts};
use ropewalk_gate::shell::Shell;
use ropewalk_orchestrator::questions::{Deadlines, QuestionService};
use ropewalk_orchestrator::{Agent, AgentError, Context, Frame, Services};
use ropewalk_runtime::{Brake, Clock, Ids, Supervisor};
use ropewalk_schemas::idea::{Idea, Message, Session};
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::specification::{Complexity, Revision, Specification};
use ropewalk_schemas::{
    CommitId, ComponentName, Event, Payload, SessionId, Slug, SpecId, UserSlug,
};
use ropewalk_store::{
    ChangeSet, CommitError, EventFilter, Outcome, Query, StartAt, Store, Subscription, Versioned,
    revision_key,
};
use ropewalk_tests::repository::{git, write};
use ropewalk_workspace::{
    CleanPool, CommandRunner, Environment, Git, Identity, LocalClone, LocalCloneOptions,
};
use ropewalk_world::patience::{self, NeverCame, PATIENCE};
use ropewalk_world::{Plan, World};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Returns the templates of questions, in the words of this run.
pub(crate) fn templates() -> QuestionTemplates {
    ropewalk_world::templates().unwrap()
}

/// A world with both agents, a repository and the model that plays a script.
pub(crate) struct IdeaWorld {
    directory: TempDir,
    pub(crate) clock: Clock,
    pub(crate) services: Services,
    supervisor: Supervisor,
    agents: Vec<Arc<dyn Agent>>,
    script: String,
    calls: Arc<AtomicUsize>,
    system: Arc<Mutex<String>>,
    auto_generate: bool,
    pub(crate) brake: Brake,
    /// What keeps models from tools.
    pub(crate) rules: CurrentValue<PolicySettings>,
    /// Who may be reached by phone, from when agents move in.
    pub(crate) phones: Option<People>,
}

/// Plays a script, counts how often it is asked, and remembers what it is told first.
struct CountingModel {
    model: ScriptedModel,
    calls: Arc<AtomicUsize>,
    system: Arc<Mutex<String>>,
}

#[async_trait]
impl Model for CountingModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<ReplyStream, ModelError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.system.lock().unwrap().clone_from(&request.system);
        self.model.stream(request, cancel).await
    }
}

impl IdeaWorld {
    /// Builds a world around a small repository, whose model plays `script`.
    pub(crate) async fn new(script: &str) -> Self {
        Self::with(script, &[], false).await
    }

    /// Builds a world around a repository with `files` beside a line of code.
    pub(crate) async fn with(script: &str, files: &[(&str, &str)], auto_generate: bool) -> Self {
        let files = [files, &[("notes.sh", "# a repository\n")]].concat();
        Self::around(script, &files, auto_generate).await
    }

    /// Builds a world around a repository that holds no code yet.
    pub(crate) async fn without_code(script: &str) -> Self {
        Self::around(script, &[("docs/wish.md", "Pets.\n")], false).await
    }

    async fn around(script: &str, files: &[(&str, &str)], auto_generate: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        make_repository(&directory.path().join("repo"), files);
        let start: DateTime<Utc> = "2026-03-01T08:00:00Z".parse().unwrap();
        let clock = Clock::manual(start);
        let ids = Ids::seeded(7, clock.clone());
        let World {
            services,
            supervisor,
        } = world(directory.path(), &clock, ids).await;
        let mut world = Self {
            directory,
            clock,
            services,
            supervisor,
            agents: Vec::new(),
            script: script.to_owned(),
            calls: Arc::default(),
            system: Arc::default(),
            auto_generate,
            brake: Brake::default(),
            rules: CurrentValue::default(),
            phones: None,
        };
        world.move_in().await;
        world
    }

    /// Lets new agents take the place of the old ones, as a restart does.
    pub(crate) async fn move_in(&mut self) {
        let engine = self.engine();
        let places = self.places();
        let repository = self.repository().await;
        let ideation = Ideation::new(IdeationOptions {
            engine: engine.clone(),
            prompts: Prompts::shipped().unwrap(),
            templates: templates(),
            deadlines: Deadlines::default(),
            places: places.clone(),
            repository: Some(repository.clone()),
            phones: self.phones.clone(),
        });
        let clone = clone_of(&self.places()).await;
        let gate = GateRunner::new(RunnerParts {
            pool: CleanPool::for_plans(clone.clone()),
            clone,
            runner: CommandRunner::new(environment()),
            at_once: 1,
            gate: Gate::default(),
            validation_timeout: Duration::from_secs(10),
            package_managers: vec![PackageManager::Npm],
        });
        let specification = SpecificationWriter::new(SpecificationOptions {
            engine,
            prompts: Prompts::shipped().unwrap(),
            templates: templates(),
            stacks: StackProfiles::shipped().unwrap(),
            deadlines: Deadlines::default(),
            repository,
            places,
            auto_generate: self.auto_generate,
            shell: Shell::Bash,
            own_runner: false,
            repairs: 4,
            gate: Arc::new(gate),
            lessons: LessonOptions {
                minimum: 0.7,
                per_task: 5,
                hold_out: false,
            },
        });
        self.agents = vec![
            Arc::new(ideation.unwrap()),
            Arc::new(specification.unwrap()),
        ];
        for agent in &self.agents {
            let profile = agent.profile();
            let subscription = Subscription {
                name: profile.role,
                patterns: profile.patterns,
                from: StartAt::Now,
            };
            self.store().subscribe(&subscription).await.unwrap();
        }
    }

    async fn repository(&self) -> Repository {
        let machine = Machine {
            stacks: StackProfiles::shipped().unwrap(),
            runner: CommandRunner::new(environment()),
            package_managers: vec![PackageManager::Npm],
        };
        let clone = clone_of(&self.places()).await;
        Repository::new(clone, machine, self.rules.clone())
    }

    /// Lets the agents work by themselves, with one that reviews and one that keeps the time of questions.
    pub(crate) async fn run(&self) {
        let improvement = Improvement::new(ImprovementOptions {
            engine: self.engine(),
            prompts: Prompts::shipped().unwrap(),
            templates: templates(),
            deadlines: Deadlines::default(),
            repository: self.repository().await,
        });
        let mut agents = self.agents.clone();
        agents.push(Arc::new(improvement.unwrap()));
        let questions = QuestionService::new(Deadlines::default());
        agents.push(Arc::new(questions.unwrap()));
        Frame::start(&self.services, agents, &self.supervisor)
            .await
            .unwrap();
    }

    /// Stops in order and begins anew on what is stored.
    pub(crate) async fn restart(&mut self) {
        self.supervisor.shutdown().begin();
        let late = self.supervisor.drain(PATIENCE).await.unwrap();
        assert!(late.is_empty(), "{late:?} ran on");
        self.store().clone().close().await.unwrap();
        let ids = self.services.ids.clone();
        let world = world(self.directory.path(), &self.clock, ids).await;
        (self.services, self.supervisor) = (world.services, world.supervisor);
        self.move_in().await;
        self.run().await;
    }

    /// Looks until `found` finds something; the clock stands still meanwhile.
    pub(crate) async fn until<T>(&self, what: &str, found: impl AsyncFn() -> Option<T>) -> T {
        let found = patience::until(what, || async { Ok::<_, NeverCame>(found().await) }).await;
        found.unwrap()
    }

    fn engine(&self) -> Engine {
        let script = Script::parse(&self.script).unwrap();
        let entry = ModelEntry {
            model: Arc::new(CountingModel {
                model: ScriptedModel::new(script, self.clock.clone()),
                calls: Arc::clone(&self.calls),
                system: Arc::clone(&self.system),
            }),
            name: "script".to_owned(),
            prices: PriceTable::default(),
            window_tokens: None,
            sees_images: true,
        };
        let engine = Engine::new(self.store().clone(), Models::all(entry), self.clock.clone());
        engine.held_by(self.brake.clone())
    }

    fn places(&self) -> Places {
        Places {
            repo: self.directory.path().join("repo"),
            state: self.directory.path().join("state"),
        }
    }

    /// Returns how often the model was asked.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// Returns the system prompt with which the model was asked last.
    pub(crate) fn system(&self) -> String {
        self.system.lock().unwrap().clone()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.services.store
    }

    /// Speaks as a person at the command line.
    pub(crate) fn person(&self) -> Context {
        Context::new(&self.services, ComponentName::parse("cli").unwrap())
    }

    /// Hands out deliveries until none is open; returns the failures of those that could not be handled.
    pub(crate) async fn settle(&self) -> Vec<AgentError> {
        let mut failures = Vec::new();
        loop {
            let open = self.store().open_deliveries(None, 0, 1).await.unwrap();
            let Some(delivery) = open.into_iter().next() else {
                return failures;
            };
            let agent = self
                .agents
                .iter()
                .find(|agent| agent.profile().role == delivery.key.subscriber);
            let event = Event::try_from(delivery.event).unwrap();
            let context =
                Context::new(&self.services, delivery.key.subscriber.clone()).caused_by(&event);
            loop {
                let (mut changes, outcome) = match agent.unwrap().handle(&event, &context).await {
                    Ok(changes) => (changes, Outcome::Done),
                    Err(error) => {
                        failures.push(error.clone());
                        (
                            ChangeSet::default(),
                            Outcome::Dead {
                                error: error.to_string(),
                            },
                        )
                    }
                };
                changes.close(&delivery.key, outcome);
                match self.store().commit(changes).await {
                    Ok(_) => break,
                    Err(CommitError::Conflict { .. }) => {}
                    Err(error) => panic!("{}: {error}", event.event_type()),
                }
            }
        }
    }

    /// Hands out the first delivery and loses what came of it, as a crash before the commit does.
    pub(crate) async fn crash(&self) {
        let open = self.store().open_deliveries(None, 0, 1).await.unwrap();
        let delivery = open.into_iter().next().unwrap();
        let subscriber = delivery.key.subscriber;
        let agent = self
            .agents
            .iter()
            .find(|agent| agent.profile().role == subscriber);
        let event = Event::try_from(delivery.event).unwrap();
        let context = Context::new(&self.services, subscriber.clone()).caused_by(&event);
        drop(agent.unwrap().handle(&event, &context).await.unwrap());
    }

    /// Commits a file as the user does.
    pub(crate) fn commit_file(&self, path: &str, text: &str) {
        self.commit_saying(path, text, "more");
    }

    /// As [`IdeaWorld::commit_file`], with a message.
    pub(crate) fn commit_saying(&self, path: &str, text: &str, message: &str) {
        let repo = self.places().repo;
        std::fs::write(repo.join(path), text).unwrap();
        git(&repo, &["add", "--all"]).unwrap();
        git(&repo, &["commit", "--quiet", "--message", message]).unwrap();
    }

    /// Commits files beside the branch of the user, or on it, and returns the commit as the clone has it.
    pub(crate) async fn commit_apart(&self, files: &[(String, String)], on_it: bool) -> CommitId {
        let repo = self.places().repo;
        for (path, text) in files {
            let path = repo.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        git(&repo, &["add", "--all"]).unwrap();
        git(&repo, &["commit", "--quiet", "--message=apart"]).unwrap();
        let head = clone_of(&self.places()).await.fetch().await.unwrap();
        if !on_it {
            git(&repo, &["reset", "--quiet", "--hard", "HEAD~1"]).unwrap();
        }
        head.commit
    }

    /// Listens to what passes by and is not kept.
    pub(crate) fn live(&self) -> LiveEvents {
        self.services.bus.live().subscribe()
    }

    /// Returns the state directory.
    pub(crate) fn state(&self) -> PathBuf {
        self.places().state
    }

    /// Begins an idea and waits until it is answered.
    pub(crate) async fn begin(&self, slug: &str, text: &str) -> StartedIdea {
        let opening = Opening {
            user: user("ann"),
            title: None,
            text: text.to_owned(),
            slug: Some(Slug::parse(slug).unwrap()),
            kind: None,
            whole: false,
        };
        let started = ideas::start(&self.person(), opening).await.unwrap();
        assert_eq!(self.settle().await, []);
        started
    }

    /// Says something and waits until it is answered.
    pub(crate) async fn say(&self, session: SessionId, text: &str) {
        ideas::say(&self.person(), session, &user("ann"), text)
            .await
            .unwrap();
        assert_eq!(self.settle().await, []);
    }

    /// Puts down an idea with the given documents.
    pub(crate) async fn idea(&self, slug: &str, documents: &[(&str, &str)]) -> Slug {
        for (path, text) in documents {
            self.folder(slug).write(path, text).unwrap();
        }
        // The opening is long enough not to be asked about, and nobody takes the delivery.
        let opening = Opening {
            user: user("ann"),
            title: Some(slug.to_owned()),
            text: "An idea whose documents were written by hand before anybody talked about it."
                .to_owned(),
            slug: Some(Slug::parse(slug).unwrap()),
            kind: None,
            whole: false,
        };
        let started = ideas::start(&self.person(), opening).await.unwrap();
        let open = self.store().open_deliveries(None, 0, 100).await.unwrap();
        let mut changes = ChangeSet::new();
        for delivery in open {
            let reason = "by the test".to_owned();
            changes.close(&delivery.key, Outcome::Discarded { reason });
        }
        self.store().commit(changes).await.unwrap();
        started.idea
    }

    /// Asks for a specification and waits for what comes of it.
    pub(crate) async fn specify(&self, idea: &Slug) -> SpecId {
        let spec =
            specifications::request(&self.person(), idea, &user("ann"), Complexity::Simple).await;
        assert_eq!(self.settle().await, []);
        spec.unwrap()
    }

    pub(crate) fn folder(&self, slug: &str) -> IdeaFolder {
        IdeaFolder::new(
            self.places()
                .idea_folder(&user("ann"), &Slug::parse(slug).unwrap()),
        )
    }

    pub(crate) async fn session(&self, id: SessionId) -> Session {
        self.store()
            .get::<Session>(&id.to_string())
            .await
            .unwrap()
            .unwrap()
            .into_inner()
    }

    pub(crate) async fn idea_record(&self, slug: &str) -> Idea {
        self.store()
            .get::<Idea>(slug)
            .await
            .unwrap()
            .unwrap()
            .into_inner()
    }

    pub(crate) async fn spec(&self, id: SpecId) -> Specification {
        self.store()
            .get::<Specification>(&id.to_string())
            .await
            .unwrap()
            .unwrap()
            .into_inner()
    }

    pub(crate) async fn revision(&self, id: SpecId, number: u32) -> Revision {
        self.store()
            .get::<Revision>(&revision_key(id, number))
            .await
            .unwrap()
            .unwrap()
            .into_inner()
    }

    pub(crate) async fn messages(&self, session: SessionId) -> Vec<String> {
        let query = Query::new().equal("session", session.to_string());
        let messages = self.store().list::<Message>(query).await.unwrap();
        messages
            .into_iter()
            .map(|message| message.record.text)
            .collect()
    }

    pub(crate) async fn open_questions(&self) -> Vec<Versioned<Question>> {
        let query = Query::new().equal("state", QuestionState::Pending.as_str());
        self.store().list::<Question>(query).await.unwrap()
    }

    /// Lists the payloads of every event, in order.
    pub(crate) async fn payloads(&self) -> Vec<Payload> {
        let events = self.store().events(&EventFilter::default()).await.unwrap();
        let decoded = events
            .into_iter()
            .map(|stored| Event::try_from(stored.event.as_ref()).unwrap().payload);
        decoded.collect()
    }

    /// Lists the types of every event, in order.
    pub(crate) async fn types(&self) -> Vec<&'static str> {
        self.payloads()
            .await
            .iter()
            .map(Payload::event_type)
            .collect()
    }
}

pub(crate) fn user(name: &str) -> UserSlug {
    UserSlug::parse(name).unwrap()
}

async fn world(directory: &Path, clock: &Clock, ids: Ids) -> World {
    let plan = Plan::with_ids(clock, ids);
    plan.open(&directory.join("state")).await.unwrap()
}

fn environment() -> Environment {
    let inherited = std::env::vars_os().filter(|(name, _)| name == "PATH");
    Environment::from_pairs(inherited)
}

async fn clone_of(places: &Places) -> LocalClone {
    let git = Git::open(&environment()).await.unwrap();
    let options = LocalCloneOptions {
        user_repository: places.repo.clone(),
        state: places.state.clone(),
        identity: Identity::default(),
    };
    LocalClone::open_or_create(git, options).await.unwrap()
}

fn make_repository(path: &Path, files: &[(&str, &str)]) {
    for (file, text) in files {
        write(&path.join(file), text).unwrap();
    }
    for arguments in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "--all"],
        &["commit", "--quiet", "--message=begin"],
    ] {
        git(path, arguments).unwrap();
    }
}
