//! Reviews and lessons, over real git and a scripted model.

use std::path::Path;
use std::sync::Arc;

use chrono::TimeDelta;
use ropewalk_agents::improvement::{Improvement, ImprovementOptions, WEEKLY};
use ropewalk_config::Prompts;
use ropewalk_engine::llm::{PriceTable, Script, Scripted};
use ropewalk_engine::{Engine, ModelEntry, Models};
use ropewalk_knowledge::{Draft, record};
use ropewalk_orchestrator::questions::Deadlines;
use ropewalk_schemas::attempt::{Attempt, AttemptState, FailureClass};
use ropewalk_schemas::build::{Build, BuildState, TaskCounts};
use ropewalk_schemas::knowledge::{Injection, KnowledgeItem, KnowledgeKind, KnowledgeState};
use ropewalk_schemas::payload::{
    BuildCompleted, ReviewCompleted, SpecGenerated, TaskCompleted, TaskFailed, TaskSkipped,
};
use ropewalk_schemas::review::{DivergenceClass, Review, ReviewKind};
use ropewalk_schemas::specification::{Complexity, Document, Requirement, Revision};
use ropewalk_schemas::task::{Action, Task, TaskState};
use ropewalk_schemas::{CommitId, KnowledgeId, Payload, RequirementId};
use ropewalk_tests::repository;
use ropewalk_workspace::{Environment, Git, Identity, LocalClone, LocalCloneOptions};

use crate::house::{House, attempt_at, build, build_id, name, noon, task, templates, types};

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
            - content: "Something that a build in which nothing failed cannot have taught anybody at all."
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
    pub(crate) house: House,
    base: CommitId,
    head: CommitId,
    pub(crate) improvement: Improvement,
}

impl Workshop {
    /// A repository whose head adds a planned file and one that nobody planned.
    pub(crate) async fn open(script: &str) -> Self {
        Self::open_with(script, &[]).await
    }

    /// As [`Workshop::open`], with more files in the head.
    pub(crate) async fn open_with(script: &str, more: &[(&str, &str)]) -> Self {
        let house = House::open().await;
        let repo = house.directory.path().join("repo");
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
            state: house.directory.path().join("state"),
            identity: Identity::default(),
        };
        let git = Git::open(&environment).await.unwrap();
        let clone = LocalClone::open_or_create(git, options).await.unwrap();
        let models = Models::all(ModelEntry {
            model: Arc::new(Scripted::new(
                Script::parse(script).unwrap(),
                house.clock.clone(),
            )),
            name: "scripted".to_owned(),
            prices: PriceTable::default(),
        });
        let improvement = Improvement::new(ImprovementOptions {
            engine: Engine::new(house.store.clone(), models, house.clock.clone()),
            prompts: Prompts::shipped().unwrap(),
            templates: templates(),
            deadlines: Deadlines::default(),
            clone,
        })
        .unwrap();
        Self {
            house,
            base,
            head,
            improvement,
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
        self.house.lay(&build, std::slice::from_ref(&task)).await;
        for attempt in attempts {
            self.house.put(attempt).await;
        }
        task
    }

    pub(crate) async fn review(&self) -> Vec<Payload> {
        self.house
            .give(&self.improvement, completed(BuildState::Succeeded))
            .await
    }

    /// Records a gotcha about the migration as the build does at a self-correction.
    async fn candidate(&self, execution: &str, evidence: &Attempt) -> KnowledgeId {
        let id = KnowledgeId(self.house.services.ids.next());
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
        let recorded = record(&self.house.store, draft, id, self.house.clock.now())
            .await
            .unwrap();
        self.house.commit(recorded.changes).await;
        id
    }

    async fn item(&self, id: KnowledgeId) -> KnowledgeItem {
        self.house
            .store
            .get::<KnowledgeItem>(&id.to_string())
            .await
            .unwrap()
            .unwrap()
            .record
    }

    pub(crate) async fn only_review(&self) -> Review {
        let [review] = self.house.list::<Review>().await.try_into().unwrap();
        review
    }
}

fn migration() -> Task {
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

fn completed(status: BuildState) -> Payload {
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

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-9
}

#[tokio::test]
async fn a_clean_build_is_reviewed_once_and_teaches_patterns_only() {
    use DivergenceClass::{Enhancement, IntentionalSkip, ScopeCreep};
    let workshop = Workshop::open(FINDINGS).await;
    workshop.built(&[landed(1)]).await;
    let told = workshop.review().await;
    assert_eq!(types(&told), ["knowledge.recorded", "review.completed"]);
    let review = workshop.only_review().await;
    let classes: Vec<DivergenceClass> = review.divergences.iter().map(|one| one.class).collect();
    assert_eq!(
        classes,
        [ScopeCreep, Enhancement, Enhancement, IntentionalSkip]
    );
    assert!(
        review
            .divergences
            .iter()
            .all(|one| one.file.is_some() && !one.planned.is_empty())
    );
    assert_eq!((review.patterns.len(), review.gotchas.len()), (1, 0));
    let pattern = workshop.item(review.patterns[0]).await;
    assert_eq!(
        (pattern.kind, pattern.action),
        (KnowledgeKind::Pattern, Some(Action::Create))
    );
    assert_eq!(pattern.globs, ["database/*.sql"]);
    assert!(pattern.confidence < 0.9, "{}", pattern.confidence);
    for (metric, expected) in [
        ("first_pass_success", 1.0),
        ("gotcha_effectiveness", 0.0),
        ("build_duration_minutes", 3.0),
        ("gotcha_prevented_failure", 0.0),
    ] {
        assert!(
            near(review.metrics[metric], expected),
            "{metric}: {:?}",
            review.metrics
        );
    }
    let [
        _,
        Payload::ReviewCompleted(ReviewCompleted {
            review_id,
            patterns_found: 1,
            gotchas_found: 0,
            improvements_made: 1,
            ..
        }),
    ] = told.as_slice()
    else {
        panic!("{told:?}");
    };
    assert_eq!(*review_id, review.id);
    assert_eq!(workshop.review().await, []);
    workshop.only_review().await;
}

#[tokio::test]
async fn who_reviews_a_build_is_told_what_no_check_shows() {
    let unverified = "unverified, since their checks passed before the work too: FR-1";
    // The model answers who tells it so, and nobody else.
    let script = FINDINGS.replace("  reply:", &format!("  contains: '{unverified}'\n  reply:"));
    for (reason, reviewed) in [(Some(unverified), true), (None, false)] {
        let workshop = Workshop::open(&script).await;
        let task = workshop.built(&[landed(1)]).await;
        let told = Build {
            reason: reason.map(str::to_owned),
            ..workshop.house.list::<Build>().await.remove(0)
        };
        workshop.house.lay(&told, &[task]).await;
        workshop.review().await;
        let review = workshop.only_review().await;
        let by_rules = |note: &String| note.contains("by rules alone");
        assert_ne!(review.notes.iter().any(by_rules), reviewed);
    }
}

#[tokio::test]
async fn a_model_that_does_not_answer_loses_no_review() {
    let workshop = Workshop::open("[]").await;
    workshop.built(&[landed(1)]).await;
    assert_eq!(types(&workshop.review().await), ["review.completed"]);
    let review = workshop.only_review().await;
    assert!(
        review
            .notes
            .iter()
            .any(|note| note.contains("by rules alone")),
        "{:?}",
        review.notes
    );
    assert_eq!(review.divergences.len(), 1);
}

#[tokio::test]
async fn a_build_without_commits_is_reviewed_too() {
    let workshop = Workshop::open("[]").await;
    let tasks = [Task {
        state: TaskState::Failed,
        reason: Some("no try passed".to_owned()),
        ..migration()
    }];
    workshop
        .house
        .lay(
            &Build {
                state: BuildState::Failed,
                ..build(1)
            },
            &tasks,
        )
        .await;
    let failed = completed(BuildState::Failed);
    workshop.house.give(&workshop.improvement, failed).await;
    let review = workshop.only_review().await;
    assert!(
        review
            .notes
            .contains(&"the build made no commits".to_owned())
    );
    let [omission] = review.divergences.as_slice() else {
        panic!("{:?}", review.divergences);
    };
    assert_eq!(omission.class, DivergenceClass::MissedRequirement);
    assert!(near(review.metrics["first_pass_success"], 0.0));
}

#[tokio::test]
async fn a_self_correction_is_confirmed_when_its_task_lands_and_counted_in_the_review() {
    let workshop = Workshop::open("[]").await;
    let failed = attempt_at(&migration(), 1, "loop-1");
    let task = workshop.built(&[failed.clone(), landed(2)]).await;
    let gotcha = workshop.candidate(&build_id(1).to_string(), &failed).await;
    let landing = Payload::TaskCompleted(TaskCompleted {
        build_id: task.build,
        task_id: task.id.clone(),
        idea_slug: build(1).idea,
        attempts: 2,
        duration_seconds: 9,
        commit_sha: None,
        unblocked: Vec::new(),
    });
    let told = workshop.house.give(&workshop.improvement, landing).await;
    assert_eq!(types(&told), ["knowledge.reinforced"]);
    let item = workshop.item(gotcha).await;
    assert_eq!(item.state, KnowledgeState::Confirmed);
    assert!(near(item.confidence, 0.7));
    workshop.review().await;
    let review = workshop.only_review().await;
    assert_eq!(review.gotchas, [gotcha]);
    assert!(near(review.metrics["first_pass_success"], 0.0));
    assert!(near(review.metrics["failed_attempts"], 1.0));
}

#[tokio::test]
async fn a_lesson_seen_in_two_builds_is_confirmed_at_more() {
    let workshop = Workshop::open("[]").await;
    let failed = attempt_at(&migration(), 1, "loop-1");
    workshop.built(&[failed.clone(), landed(2)]).await;
    let gotcha = workshop.candidate("another build", &failed).await;
    workshop.candidate(&build_id(1).to_string(), &failed).await;
    assert_eq!(
        types(&workshop.review().await),
        ["knowledge.reinforced", "review.completed"]
    );
    assert!(near(workshop.item(gotcha).await.confidence, 0.85));
}

#[tokio::test]
async fn a_lesson_is_weighed_by_how_the_tasks_that_carried_it_fared() {
    let failed = attempt_at(&migration(), 1, "loop-1");
    let rows = [
        (false, None, vec![landed(2)], 0.95, 1.0),
        (false, Some(true), vec![landed(2)], 0.95, 1.0),
        (false, None, vec![failed.clone(), landed(2)], 0.6, 0.0),
        (true, None, vec![landed(2)], 0.7, 0.0),
    ];
    for (held_out, helped, attempts, confidence, prevented) in rows {
        let workshop = Workshop::open("[]").await;
        let task = workshop.built(&attempts).await;
        let source = attempt_at(&migration(), 99, "loop-9");
        let gotcha = workshop.candidate("an earlier build", &source).await;
        let injection = Injection {
            item: gotcha,
            build: None,
            spec: build(1).spec,
            task: task.id,
            held_out,
            helped,
            at: noon(),
        };
        workshop.house.put(&injection).await;
        workshop.review().await;
        let found = workshop.item(gotcha).await.confidence;
        assert!(near(found, confidence), "{held_out} {helped:?} {found}");
        let review = workshop.only_review().await;
        assert!(near(review.metrics["gotcha_prevented_failure"], prevented));
        let names = |note: &String| {
            note.contains(&gotcha.to_string())
                && note.contains(&source.id.to_string())
                && note.contains("T-001")
        };
        assert_eq!(
            review.notes.iter().any(names),
            prevented > 0.5,
            "{:?}",
            review.notes
        );
        let [written] = workshop.house.list::<Injection>().await.try_into().unwrap();
        assert_eq!(written.helped, Some(attempts.len() == 1));
    }
}

#[tokio::test]
async fn a_failure_that_nobody_mended_is_remembered_once() {
    let workshop = Workshop::open("[]").await;
    let mut task = migration();
    for number in 1..=3_u128 {
        workshop
            .house
            .put(&attempt_at(&task, number, "loop-1"))
            .await;
        task.attempts += 1;
    }
    workshop
        .house
        .lay(
            &build(1),
            &[Task {
                state: TaskState::Failed,
                ..task.clone()
            }],
        )
        .await;
    let failed = |will_retry| {
        Payload::TaskFailed(TaskFailed {
            build_id: task.build,
            task_id: task.id.clone(),
            idea_slug: build(1).idea,
            attempt: 3,
            category: FailureClass::ValidationFailed,
            error: String::new(),
            will_retry,
            blocked: 0,
            continuing: 0,
            recommended: None,
        })
    };
    let give = |payload| workshop.house.give(&workshop.improvement, payload);
    assert_eq!(give(failed(true)).await, []);
    assert_eq!(types(&give(failed(false)).await), ["knowledge.recorded"]);
    assert_eq!(give(failed(false)).await, []);
    let skipped = Payload::TaskSkipped(TaskSkipped {
        build_id: task.build,
        task_id: task.id.clone(),
        idea_slug: build(1).idea,
        skipped_by: "ada".to_owned(),
        reason: String::new(),
    });
    assert_eq!(give(skipped).await, []);
    let [item] = workshop
        .house
        .list::<KnowledgeItem>()
        .await
        .try_into()
        .unwrap();
    assert_eq!(
        (item.state, item.evidence.len()),
        (KnowledgeState::Candidate, 3)
    );
    assert!(item.content.contains("JSONB"), "{}", item.content);
    assert!(near(item.confidence, 0.6));
}

#[tokio::test]
async fn each_revision_of_a_specification_is_reviewed_once() {
    let workshop = Workshop::open("[]").await;
    let requirement = |id: &str, priority: &str| Requirement {
        id: RequirementId::parse(id).unwrap(),
        text: "Habits are kept".to_owned(),
        priority: priority.to_owned(),
        acceptance: String::new(),
        source: String::new(),
    };
    let made = |revision| SpecGenerated {
        spec_id: build(1).spec,
        idea_slug: build(1).idea,
        user_slug: None,
        revision,
        hash: build(1).hash,
        task_count: 1,
        estimated_complexity: Complexity::Simple,
        gotchas_injected: 2,
    };
    for number in [1, 2] {
        workshop
            .house
            .put(&Revision {
                spec: build(1).spec,
                number,
                hash: build(1).hash,
                document: Document {
                    requirements: vec![requirement("FR-1", "must"), requirement("FR-2", "could")],
                    ..Document::default()
                },
                tasks: vec![migration().block],
                validation: Vec::new(),
                answers: Vec::new(),
                at: noon(),
            })
            .await;
        for expected in [vec!["review.completed"], vec![]] {
            let told = workshop
                .house
                .give(&workshop.improvement, Payload::SpecGenerated(made(number)));
            assert_eq!(types(&told.await), expected);
        }
    }
    let reviews = workshop.house.list::<Review>().await;
    assert_eq!(reviews.len(), 2);
    for review in reviews {
        assert_eq!(
            (review.kind, review.spec),
            (ReviewKind::Specification, Some(build(1).spec))
        );
        let classes: Vec<DivergenceClass> =
            review.divergences.iter().map(|one| one.class).collect();
        assert_eq!(
            classes,
            [
                DivergenceClass::MissedRequirement,
                DivergenceClass::IntentionalSkip
            ]
        );
        assert!(near(review.metrics["gotchas_injected"], 2.0));
    }
}

#[tokio::test]
async fn a_week_is_summed_up_when_it_taught_something() {
    let workshop = Workshop::open("[]").await;
    let due = || workshop.house.due(&workshop.improvement, WEEKLY, "");
    assert_eq!(due().await, []);
    workshop
        .candidate("a build", &attempt_at(&migration(), 1, "loop-1"))
        .await;
    assert_eq!(types(&due().await), ["question.asked"]);
    let question = workshop.house.open_question().await.unwrap();
    assert!(
        question.text.contains("**New gotchas:** 1") && question.text.contains("JSONB"),
        "{}",
        question.text
    );
}
