//! A repository with a build in it, and the agent that reviews it.

use std::path::Path;
use std::sync::Arc;

use chrono::TimeDelta;
use ropewalk_agents::improvement::{Improvement, ImprovementOptions};
use ropewalk_agents::repository::Repository;
use ropewalk_config::Prompts;
use ropewalk_config::stack::StackProfiles;
use ropewalk_engine::llm::{PriceTable, Script, ScriptedModel};
use ropewalk_engine::{CurrentValue, Engine, ModelEntry, Models};
use ropewalk_gate::project::Machine;
use ropewalk_knowledge::{Draft, record};
use ropewalk_orchestrator::questions::Deadlines;
use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::build::{Build, BuildState, TaskCounts};
use ropewalk_schemas::knowledge::{KnowledgeItem, KnowledgeKind};
use ropewalk_schemas::payload::BuildCompleted;
use ropewalk_schemas::review::Review;
use ropewalk_schemas::task::{Action, Task, TaskState};
use ropewalk_schemas::{CommitId, KnowledgeId, Payload};
use ropewalk_tests::repository;
use ropewalk_workspace::{
    CommandRunner, Environment, Git, Identity, LocalClone, LocalCloneOptions,
};

use crate::world::{WatchWorld, attempt_at, build, build_id, name, noon, task, templates};

/// A model that finds what a list of files cannot show.
pub(crate) const FINDINGS: &str = r#"
- agent: improvement
  idea: habits
  task: review
  reply:
    tools:
      - name: review
        input:
          divergences:
            - class: enhancement
              file: database/1.sql
              planned: a table of habits
              actual: a constraint that names are unique was added
            - class: enhancement
              file: database/1.sql
              planned: a table of habits
              actual: an updated_at column was added
            - class: intentional-skip
              file: database/1.sql
              planned: an index, marked optional
              actual: no index
          patterns:
            - content: "Give every table a created_at and an updated_at column with a default of the current time."
              globs: ["database/*.sql"]
              action: CREATE
              topics: [sql, tables]
              confidence: 0.99
          gotchas:
            - content: "A column without NOT NULL takes rows that no query of this program expects."
"#;

fn git(repo: &Path, arguments: &[&str]) -> String {
    repository::git(repo, arguments).unwrap()
}

/// Commits `files` and returns the commit.
fn commit(repo: &Path, files: &[(&str, &str)]) -> CommitId {
    for (file, text) in files {
        repository::write(&repo.join(file), text).unwrap();
    }
    git(repo, &["add", "."]);
    git(repo, &["commit", "-q", "-m", "change"]);
    CommitId::parse(&git(repo, &["rev-parse", "HEAD"])).unwrap()
}

pub(crate) struct Workshop {
    pub(crate) world: WatchWorld,
    pub(crate) base: CommitId,
    pub(crate) head: CommitId,
    pub(crate) improvement: Improvement,
    clone: LocalClone,
}

impl Workshop {
    /// A repository whose head adds a planned file and one that nobody planned.
    pub(crate) async fn open(script: &str) -> Self {
        Self::open_with(script, &[]).await
    }

    /// As [`Workshop::open`], with more files in the head.
    pub(crate) async fn open_with(script: &str, more: &[(&str, &str)]) -> Self {
        let world = WatchWorld::open().await;
        let repo = world.directory.path().join("repo");
        std::fs::create_dir_all(&repo).unwrap();
        git(&repo, &["init", "-q", "-b", "main"]);
        let base = commit(&repo, &[("README.md", "# Habits\n")]);
        let files = [
            ("database/1.sql", "CREATE TABLE habits;\n"),
            ("src/extra.rs", "\n"),
        ];
        let head = commit(&repo, &[&files[..], more].concat());
        let environment = Environment::from_pairs(std::env::vars_os());
        let options = LocalCloneOptions {
            user_repository: repo,
            state: world.directory.path().join("state"),
            identity: Identity::default(),
        };
        let git = Git::open(&environment).await.unwrap();
        let clone = LocalClone::open_or_create(git, options).await.unwrap();
        let models = Models::all(ModelEntry {
            model: Arc::new(ScriptedModel::new(
                Script::parse(script).unwrap(),
                world.clock.clone(),
            )),
            name: "scripted".to_owned(),
            prices: PriceTable::default(),
            window_tokens: None,
            sees_images: true,
        });
        let machine = Machine {
            stacks: StackProfiles::shipped().unwrap(),
            runner: CommandRunner::new(environment),
            package_managers: Vec::new(),
        };
        let improvement = Improvement::new(ImprovementOptions {
            engine: Engine::new(world.store.clone(), models, world.clock.clone()),
            prompts: Prompts::shipped().unwrap(),
            templates: templates(),
            deadlines: Deadlines::default(),
            repository: Repository::new(clone.clone(), machine, CurrentValue::default()),
        })
        .unwrap();
        Self {
            world,
            base,
            head,
            improvement,
            clone,
        }
    }

    /// Commits more on top of the head.
    pub(crate) async fn later(&self, files: &[(&str, &str)]) -> CommitId {
        let made = commit(&self.world.directory.path().join("repo"), files);
        self.clone.fetch().await.unwrap();
        made
    }

    /// Joins a branch with `theirs` on top of `from` into the head, with `ours` on top of that; returns that branch and the head.
    pub(crate) async fn join(
        &self,
        from: &CommitId,
        theirs: &[(&str, &str)],
        ours: &[(&str, &str)],
    ) -> (CommitId, CommitId) {
        let repo = self.world.directory.path().join("repo");
        git(&repo, &["checkout", "-q", "-b", "others", from.as_str()]);
        let other = commit(&repo, theirs);
        git(&repo, &["checkout", "-q", "main"]);
        git(&repo, &["merge", "-q", "--no-ff", "-m", "join", "others"]);
        (other, self.later(ours).await)
    }

    /// Has the prompts of attempts hold a lesson.
    pub(crate) async fn tell(&self, attempts: &[Attempt], lesson: KnowledgeId) {
        for attempt in attempts {
            let told = Attempt {
                gotchas: vec![lesson],
                ..attempt.clone()
            };
            self.world.put(&told).await;
        }
    }

    /// The build of one task that landed.
    pub(crate) async fn built(&self, attempts: &[Attempt]) -> Task {
        let ended = noon() + TimeDelta::minutes(3);
        let build = Build {
            state: BuildState::Succeeded,
            base: Some(self.base.clone()),
            head: Some(self.head.clone()),
            completed_at: Some(ended),
            working_ms: 60_000,
            ..build(1)
        };
        let task = Task {
            state: TaskState::Complete,
            attempts: u32::try_from(attempts.len()).unwrap(),
            ..migration()
        };
        self.world.lay(&build, std::slice::from_ref(&task)).await;
        for attempt in attempts {
            self.world.put(attempt).await;
        }
        task
    }

    pub(crate) async fn review(&self) -> Vec<Payload> {
        self.world
            .give(&self.improvement, completed(BuildState::Succeeded))
            .await
    }

    /// Records a gotcha about the migration as the build does at a self-correction.
    pub(crate) async fn candidate(&self, execution: &str, evidence: &Attempt) -> KnowledgeId {
        let id = KnowledgeId(self.world.services.ids.next());
        let draft = Draft {
            kind: KnowledgeKind::Gotcha,
            content: "SQLite knows no JSONB column: declare it TEXT and check it with json_valid."
                .to_owned(),
            globs: vec!["database/*.sql".to_owned()],
            action: Some(Action::Create),
            topics: vec!["database".to_owned()],
            confidence: 0.7,
            execution: execution.to_owned(),
            idea: Some(build(1).idea),
            evidence: vec![format!("attempt/{}", evidence.id)],
            discovered_by: name("loop-1"),
            from_person: false,
        };
        let recorded = record(&self.world.store, draft, id, self.world.clock.now())
            .await
            .unwrap();
        self.world.commit(recorded.changes).await;
        id
    }

    pub(crate) async fn item(&self, id: KnowledgeId) -> KnowledgeItem {
        self.world
            .store
            .get::<KnowledgeItem>(&id.to_string())
            .await
            .unwrap()
            .unwrap()
            .record
    }

    pub(crate) async fn only_review(&self) -> Review {
        let [review] = self.world.list::<Review>().await.try_into().unwrap();
        review
    }
}

pub(crate) fn migration() -> Task {
    task(1, "T-001", "database/1.sql", Action::Create)
}

pub(crate) fn landed(number: u128) -> Attempt {
    Attempt {
        state: AttemptState::Landed,
        failure: None,
        ..attempt_at(
            &Task {
                attempts: 1,
                ..migration()
            },
            number,
            "loop-1",
        )
    }
}

pub(crate) fn completed(status: BuildState) -> Payload {
    Payload::BuildCompleted(BuildCompleted {
        build_id: build_id(1),
        spec_id: build(1).spec,
        idea_slug: build(1).idea,
        status,
        reason: None,
        counts: TaskCounts::default(),
        duration_seconds: 60,
        quote: None,
        spent: None,
        branch: "build/habits".to_owned(),
        commits: Vec::new(),
    })
}

pub(crate) fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-9
}
