//! Sets up a repository, a state directory and the build agent in its frame.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ropewalk_agents::monitor::{Monitor, MonitorOptions};
use ropewalk_agents::pm::{Pm, PmOptions};
use ropewalk_builder::land::Lander;
use ropewalk_builder::{BuildAgent, BuildOptions, BuildParts};
use ropewalk_config::{Config, Prompts, QuestionTemplates, StackProfiles};
use ropewalk_engine::llm::{Model, ModelRequest, PriceTable, Script, ScriptedModel};
use ropewalk_engine::{CompactionPolicy, Engine, ModelEntry, ModelRole, Models};
use ropewalk_orchestrator::questions::Deadlines;
use ropewalk_orchestrator::{Agent, Context, Frame, Services};
use ropewalk_runtime::{Brake, Clock, Supervisor};
use ropewalk_schemas::attempt::{Attempt, Evidence};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::lease::Lease;
use ropewalk_schemas::payload::BuildRequest;
use ropewalk_schemas::task::Task;
use ropewalk_schemas::wait::Wait;
use ropewalk_schemas::{BuildId, ComponentName, Payload, SpecId, Subject, TaskId};
use ropewalk_store::{ChangeSet, CommitError, EventFilter, Location, Query, Store, Versioned};
use ropewalk_tests::repository;
use ropewalk_workspace::{
    CommandRunner, Environment, Git, Identity, LocalClone, LocalCloneOptions,
};
use ropewalk_world::provider::WireFormat;
use ropewalk_world::{Plan, World};
use serde_json::Value;

use crate::transport;
use crate::world::listener::{Hold, Listener, Pace};
pub(crate) use crate::world::script::{finishes, writes, writes_after, writes_slowly};

/// Returns the templates of questions, in the words of this run.
pub(crate) fn templates() -> QuestionTemplates {
    ropewalk_world::templates().unwrap()
}

/// The longest that any of these builds may take.
pub(crate) use ropewalk_world::patience::PATIENCE;
/// How long nothing happens before a test looks again; a clock that goes on by as much goes as fast as that of the machine.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A project on disk.
pub(crate) struct Project {
    pub(crate) directory: tempfile::TempDir,
    script: String,
    options: BuildOptions,
    clock: Clock,
    pub(crate) told: Arc<Mutex<Vec<ModelRequest>>>,
    pub(crate) pace: Option<Arc<dyn Pace>>,
    /// What holds models and commands.
    pub(crate) brake: Brake,
    falls_back: bool,
    programs: Option<PathBuf>,
    watched: bool,
    threshold_tokens: Option<u64>,
}

/// A project with its build agent at work.
pub(crate) struct OpenProject {
    pub(crate) services: Services,
    pub(crate) context: Context,
    supervisor: Supervisor,
    repo: PathBuf,
}

impl Project {
    /// Makes a repository with one commit, and a state directory with the folder of the idea `habits`.
    pub(crate) fn new(script: &str) -> Self {
        Self::new_in(&std::env::temp_dir(), script)
    }

    /// As [`Project::new`], in a directory below `place`.
    pub(crate) fn new_in(place: &Path, script: &str) -> Self {
        let directory = tempfile::tempdir_in(place).unwrap();
        let project = Self {
            directory,
            script: script.to_owned(),
            options: BuildOptions {
                lease: Duration::from_mins(1),
                ..BuildOptions::default()
            },
            clock: Clock::system(),
            told: Arc::default(),
            pace: None,
            brake: Brake::default(),
            falls_back: false,
            programs: None,
            watched: false,
            threshold_tokens: None,
        };
        let repo = project.repo();
        std::fs::create_dir_all(&repo).unwrap();
        git(&repo, &["init", "-q", "-b", "main"]);
        write(&repo.join("README.md"), "# A project\n");
        write(&repo.join("CLAUDE.md"), "Indent with two spaces.\n");
        git(&repo, &["add", "."]);
        git(&repo, &["commit", "-q", "-m", "begin"]);
        let idea = project.state().join("users/ada/ideas/habits");
        write(&idea.join("README.md"), "Habits fade; this keeps them.\n");
        project
    }

    /// Changes what the agent keeps to.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut BuildOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// Lets everything happen at the time of `clock`.
    pub(crate) fn at_the_time_of(mut self, clock: &Clock) -> Self {
        self.clock = clock.clone();
        self
    }

    /// Lets `hold` stop every call of the model.
    pub(crate) fn held_by(self, hold: &Hold) -> Self {
        self.paced_by(Arc::new(hold.clone()))
    }

    /// Lets every call of the model go through `pace` first.
    pub(crate) fn paced_by(mut self, pace: Arc<dyn Pace>) -> Self {
        self.pace = Some(pace);
        self
    }

    /// Lets another provider take over from the one of the script; it is never paced and says the same.
    pub(crate) fn falling_back(mut self) -> Self {
        self.falls_back = true;
        self
    }

    /// Finds programs in `programs` first.
    pub(crate) fn with_programs(mut self, programs: PathBuf) -> Self {
        self.programs = Some(programs);
        self
    }

    /// Makes room in conversations above so many tokens.
    pub(crate) fn compacting(mut self, threshold_tokens: u64) -> Self {
        self.threshold_tokens = Some(threshold_tokens);
        self
    }

    /// Adds monitor and PM to the agents.
    pub(crate) fn watched(mut self) -> Self {
        self.watched = true;
        self
    }

    /// Adds files to the repository, in a commit.
    pub(crate) fn with_files(self, files: &[(&str, &str)]) -> Self {
        for (path, content) in files {
            write(&self.repo().join(path), content);
        }
        git(&self.repo(), &["add", "."]);
        git(&self.repo(), &["commit", "-q", "-m", "add files"]);
        self
    }

    /// Replaces what the idea says.
    pub(crate) fn with_idea(self, text: &str) -> Self {
        let readme = self.state().join("users/ada/ideas/habits/README.md");
        write(&readme, text);
        self
    }

    /// Returns what the model was told when each try at a task began.
    pub(crate) fn prompts(&self, task: &str) -> Vec<String> {
        let told = self.told.lock().unwrap();
        told.iter()
            .filter(|request| {
                let key = request.script.as_ref();
                key.is_some_and(|key| key.task == task && key.turn == 1)
            })
            .map(ModelRequest::text)
            .collect()
    }

    /// Returns every request about a task, in order.
    pub(crate) fn requests(&self, task: &str) -> Vec<ModelRequest> {
        let told = self.told.lock().unwrap();
        let of_task = |request: &&ModelRequest| {
            let key = request.script.as_ref();
            key.is_some_and(|key| key.task == task)
        };
        told.iter().filter(of_task).cloned().collect()
    }

    /// Counts how often the model was asked something, whether it could answer or not.
    pub(crate) fn calls(&self) -> usize {
        self.told.lock().unwrap().len()
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.directory.path().join("repo")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    /// Starts the agent on what is on disk.
    pub(crate) async fn open(&self) -> OpenProject {
        let clock = self.clock.clone();
        let plan = Plan::unlike_any_other(&clock);
        let World {
            services,
            supervisor,
        } = plan.open(&self.state()).await.unwrap();
        let engine = self.engine(&services.store, &clock);
        let (watched, stop) = (engine.clone(), supervisor.shutdown().soft().clone());
        supervisor.spawn("outages", async move { watched.watch_outages(stop).await });
        let mut agents = vec![self.agent(engine).await];
        agents.extend(self.watchers());
        Frame::start(&services, agents, &supervisor).await.unwrap();
        let person = ComponentName::parse("cli").unwrap();
        OpenProject {
            context: Context::new(&services, person),
            services,
            supervisor,
            repo: self.repo(),
        }
    }

    /// Forgets that a build was published.
    pub(crate) async fn unpublish(&self, build: BuildId) {
        let location = Location::parse("sqlite", &self.state()).unwrap();
        let store = Store::open(&location, Clock::system()).await.unwrap();
        let row = store
            .get::<Build>(&build.to_string())
            .await
            .unwrap()
            .unwrap();
        let after = Build {
            published: None,
            ..row.record.clone()
        };
        let mut changes = ChangeSet::new();
        changes.update(&row, &after);
        store.commit(changes).await.unwrap();
        store.close().await.unwrap();
    }

    fn watchers(&self) -> Vec<Arc<dyn Agent>> {
        if !self.watched {
            return Vec::new();
        }
        let shipped = Config::shipped().unwrap();
        let pm = PmOptions::new(
            &shipped.pm,
            &shipped.monitor,
            templates(),
            Deadlines::default(),
        );
        vec![
            Arc::new(Monitor::new(MonitorOptions::from(&shipped.monitor)).unwrap()),
            Arc::new(Pm::new(pm).unwrap()),
        ]
    }

    /// Returns what lands builds without an agent, as a verb does.
    pub(crate) async fn lander(&self) -> Lander {
        let environment = Environment::from_pairs(std::env::vars_os());
        let clone = self.local_clone(&environment).await;
        Lander::new(clone, CommandRunner::new(environment), &self.options)
    }

    async fn local_clone(&self, environment: &Environment) -> LocalClone {
        let options = LocalCloneOptions {
            user_repository: self.repo(),
            state: self.state(),
            identity: Identity::default(),
        };
        let git = Git::open(environment).await.unwrap();
        LocalClone::open_or_create(git, options).await.unwrap()
    }

    fn engine(&self, store: &Store, clock: &Clock) -> Engine {
        let script = Script::parse(&self.script).unwrap();
        let entry = |model: Arc<dyn Model>| ModelEntry {
            model,
            name: "scripted".to_owned(),
            prices: PriceTable::default(),
            window_tokens: None,
            sees_images: true,
        };
        let second = ScriptedModel::new(script.clone(), clock.clone()).named("second".to_owned());
        let first: Arc<dyn Model> = Arc::new(ScriptedModel::new(script, clock.clone()));
        let first = Listener {
            model: transport::to(first, WireFormat::of(&self.script)),
            told: Arc::clone(&self.told),
            pace: self.pace.clone(),
        };
        let mut models = Models::all(entry(Arc::new(first)));
        if self.falls_back {
            models = models.falling_back_to(ModelRole::Build, vec![entry(Arc::new(second))]);
        }
        let engine = Engine::new(store.clone(), models, clock.clone())
            .with_budgets(self.options.budgets)
            .held_by(self.brake.clone());
        match self.threshold_tokens {
            None => engine,
            Some(threshold_tokens) => engine.with_compaction(CompactionPolicy {
                threshold_tokens,
                prompts: Prompts::shipped().unwrap(),
            }),
        }
    }

    async fn agent(&self, engine: Engine) -> Arc<dyn Agent> {
        let mut variables: Vec<_> = std::env::vars_os().collect();
        if let Some(programs) = &self.programs {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let first = std::iter::once(programs.clone());
            let all = first.chain(std::env::split_paths(&path));
            variables.retain(|(name, _)| name != "PATH");
            variables.push(("PATH".into(), std::env::join_paths(all).unwrap()));
        }
        let environment = Environment::from_pairs(variables);
        let clone = self.local_clone(&environment).await;
        let parts = BuildParts {
            engine,
            clone,
            runner: CommandRunner::new(environment).held_by(self.brake.clone()),
            questions: templates(),
            prompts: Prompts::shipped().unwrap(),
            stacks: StackProfiles::shipped().unwrap(),
            state: self.state(),
            options: self.options.clone(),
            process: None,
        };
        Arc::new(BuildAgent::new(parts).unwrap())
    }
}

impl OpenProject {
    /// Emits an event as a person.
    pub(crate) async fn emit(&self, subject: Subject, payload: Payload) {
        let mut changes = ChangeSet::new();
        changes.emit(self.context.event(subject, payload));
        self.services.store.commit(changes).await.unwrap();
    }

    /// Waits until the build of `spec` is as wanted.
    pub(crate) async fn until(
        &self,
        spec: SpecId,
        wanted: impl Fn(&Build, &[Task]) -> bool,
    ) -> (Build, Vec<Task>) {
        let step = Duration::from_secs(1);
        self.until_in_steps(spec, step, wanted).await
    }

    /// As [`OpenProject::until`], with a clock that goes on by `step` alone whenever nothing happens.
    pub(crate) async fn until_in_steps(
        &self,
        spec: SpecId,
        step: Duration,
        wanted: impl Fn(&Build, &[Task]) -> bool,
    ) -> (Build, Vec<Task>) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        let mut feed = self.services.store.feed();
        loop {
            if let Some(build) = self.build(spec).await {
                let tasks = self.tasks(build.id).await;
                if wanted(&build, &tasks) {
                    return (build, tasks);
                }
                assert!(
                    tokio::time::Instant::now() < deadline,
                    "never as wanted:\n{build:#?}\n{:#?}",
                    tasks
                        .iter()
                        .map(|task| (
                            &task.id,
                            task.state,
                            &task.reason,
                            task.failures.last().map(|failure| &failure.error)
                        ))
                        .collect::<Vec<_>>()
                );
            }
            // Not every change emits an event, so a pause without one ends the wait too.
            let pause = tokio::time::timeout(LOOK_EVERY, feed.next()).await;
            if pause.is_err() {
                // Who sleeps by a clock that the test moves would never look again.
                self.services.clock.advance(step);
            }
        }
    }

    /// Waits until the build has ended.
    pub(crate) async fn ended(&self, spec: SpecId) -> (Build, Vec<Task>) {
        self.until(spec, |build, _| {
            build.state.has_ended() && build.completed_at.is_some()
        })
        .await
    }

    /// Waits until the build of a later revision than that of `first` has ended.
    pub(crate) async fn newest_build(&self, spec: SpecId, first: &Build) -> Build {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let query = Query::new().equal("spec", spec.to_string());
            let found = self.services.store.list::<Build>(query).await.unwrap();
            let newer = found
                .into_iter()
                .find(|build| build.revision > first.revision);
            if let Some(build) = newer
                && build.completed_at.is_some()
            {
                return build.into_inner();
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "no newer build ended"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    pub(crate) async fn build(&self, spec: SpecId) -> Option<Build> {
        let query = Query::new().equal("spec", spec.to_string());
        let found = self.services.store.list::<Build>(query).await.unwrap();
        found.into_iter().next().map(Versioned::into_inner)
    }

    pub(crate) async fn tasks(&self, build: BuildId) -> Vec<Task> {
        let query = Query::new()
            .equal("build", build.to_string())
            .order_by("number");
        let found = self.services.store.list::<Task>(query).await.unwrap();
        found.into_iter().map(Versioned::into_inner).collect()
    }

    /// Changes the row of a build behind the back of everybody.
    pub(crate) async fn change_build(&self, id: BuildId, change: impl Fn(&mut Build)) {
        self.change_build_with(id, None, change).await;
    }

    /// As [`OpenProject::change_build`], with a wait in the same commit.
    pub(crate) async fn change_build_with(
        &self,
        id: BuildId,
        wait: Option<&Wait>,
        change: impl Fn(&mut Build),
    ) {
        loop {
            let row = self.services.store.get::<Build>(&id.to_string()).await;
            let row = row.unwrap().unwrap();
            let mut after = row.record.clone();
            change(&mut after);
            let mut changes = ChangeSet::new();
            changes.update(&row, &after);
            if let Some(wait) = wait {
                changes.put(wait);
            }
            match self.services.store.commit(changes).await {
                Err(CommitError::Conflict { .. }) => {}
                committed => return drop(committed.unwrap()),
            }
        }
    }

    /// Counts the builds.
    pub(crate) async fn builds(&self) -> u64 {
        let count = self.services.store.count::<Build>(Query::new()).await;
        count.unwrap()
    }

    /// Waits until no delivery is open.
    pub(crate) async fn settled(&self) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let open = self
                .services
                .store
                .open_deliveries(None, 0, 1)
                .await
                .unwrap();
            if open.is_empty() {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "{open:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Lists the locks that are held.
    pub(crate) async fn held_locks(&self) -> Vec<Lease> {
        let query = Query::new().equal("state", "granted");
        let found = self.services.store.list::<Lease>(query).await.unwrap();
        found.into_iter().map(Versioned::into_inner).collect()
    }

    pub(crate) async fn attempts(&self, build: BuildId, task: &str) -> Vec<Attempt> {
        let query = Query::new()
            .equal("build", build.to_string())
            .equal("task", task)
            .order_by("number");
        let found = self.services.store.list::<Attempt>(query).await.unwrap();
        found.into_iter().map(Versioned::into_inner).collect()
    }

    pub(crate) async fn evidence(&self, build: BuildId) -> Vec<Evidence> {
        let query = Query::new().equal("build", build.to_string());
        let found = self.services.store.list::<Evidence>(query).await.unwrap();
        found.into_iter().map(Versioned::into_inner).collect()
    }

    /// Lists the event types about a build and its tasks, in commit order.
    pub(crate) async fn events(&self) -> Vec<(String, Value)> {
        let all = EventFilter::default();
        let events = self.services.store.events(&all).await.unwrap();
        events
            .into_iter()
            .map(|stored| (stored.event.event_type.clone(), stored.event.data.clone()))
            .collect()
    }

    /// Runs git in the user's repository.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(&self.repo, arguments)
    }

    /// Stops in order; returns what had to be cut off, such as a loop whose model is held.
    pub(crate) async fn close(self) -> Vec<&'static str> {
        self.supervisor.shutdown().begin();
        let late = self.supervisor.drain(Duration::from_secs(10)).await;
        drop(self.services.store.close().await);
        late.unwrap()
    }

    /// Ends everything where it stands, as a crash would.
    pub(crate) async fn crash(self) {
        self.supervisor.shutdown().abort();
        drop(self.supervisor.drain(Duration::from_secs(10)).await);
        drop(self.services.store.close().await);
    }
}

/// Runs git as a user with a name would.
pub(crate) fn git(directory: &Path, arguments: &[&str]) -> String {
    repository::git(directory, arguments).unwrap()
}

fn write(path: &Path, content: &str) {
    repository::write(path, content).unwrap();
}

/// Asks for a pause, a resume or a stop.
pub(crate) fn request(build: BuildId) -> BuildRequest {
    BuildRequest {
        build_id: build,
        requested_by: "ada".to_owned(),
        reason: None,
    }
}

/// Finds a task by its id.
pub(crate) fn task<'a>(tasks: &'a [Task], id: &str) -> &'a Task {
    let id = TaskId::parse(id).unwrap();
    tasks.iter().find(|task| task.id == id).unwrap()
}
