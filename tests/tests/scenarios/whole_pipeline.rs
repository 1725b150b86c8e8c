//! V01: idea to working branch, by the verbs a product owner uses.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::document::tasks_md;
use ropewalk_schemas::idea::{Idea, Session};
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::review::{Review, ReviewKind};
use ropewalk_schemas::specification::{SpecState, Specification};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_store::{EventFilter, Query, Store, StoredEvent};
use ropewalk_tests::program::Runner;
use serde_json::{Value, json};

use crate::crash::finish;
use crate::picture::{at, git, landed, store};
use crate::rehearsal::check_at_rest;

const TASKS: usize = 12;
const PATIENCE: Duration = Duration::from_mins(2);

const LINES: &str = "\
People who keep habits lose their streaks because they count days by hand and get the ends of months wrong.
The first version records a day and shows streaks, and it keeps everything in one plain file.
Five colleagues keep such a file, two lost a streak, all would install it; a badly edited file worries me.
That is all, please write the brief.
";

/// A project whose model is scripted, in a directory of its own.
struct Project {
    directory: tempfile::TempDir,
    runner: Runner,
}

impl Project {
    fn new() -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let repository = directory.path().join("repo");
        fs::create_dir(&repository)?;
        fs::write(repository.join("README.md"), "# Habits\n")?;
        git(&repository, &["init", "-q", "-b", "main"])?;
        git(&repository, &["add", "-A"])?;
        let identity = ["-c", "user.name=Pat", "-c", "user.email=pat@example.org"];
        git(
            &repository,
            &[&identity[..], &["commit", "-q", "-m", "Begin"]].concat(),
        )?;
        fs::write(directory.path().join("ropewalk.toml"), SETTINGS)?;
        fs::write(directory.path().join("script.yaml"), script())?;
        let runner = Runner::new(directory.path());
        Ok(Self { directory, runner })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn repository(&self) -> PathBuf {
        self.path().join("repo")
    }

    /// Runs a verb that must succeed and returns its JSON.
    fn verb(&self, arguments: &[&str], input: &str) -> anyhow::Result<Value> {
        let arguments = [arguments, &["--json"]].concat();
        let output = self.runner.run_with_input(&arguments, input, PATIENCE)?;
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(
            output.status.success(),
            "{arguments:?}: {}: {complaint}",
            output.status
        );
        let text = String::from_utf8(output.stdout)?;
        serde_json::from_str(&text).with_context(|| format!("{arguments:?} said {text}"))
    }
}

const SETTINGS: &str = r#"
[project]
name = "habits"
repo = "repo"
state = "state"

[person]
name = "pat"

[models]
chat = "script/any"
spec = "script/any"
build = "script/any"
small = "script/any"

[providers.script]
kind = "scripted"
script = "script.yaml"
"#;

fn rule(key: &Value, tool: &str, input: &Value) -> Value {
    let mut rule = key.clone();
    rule["reply"] = json!({ "tools": [{ "name": tool, "input": input }] });
    rule
}

fn artifact(kind: &str) -> Value {
    json!({ "kind": kind, "summary": format!("The {kind}."), "confidence": 0.7,
        "content": format!("What is known of the {kind}, told in a sentence that is long enough to be kept.") })
}

fn chat(
    message: u32,
    artifacts: &[&str],
    decisions: usize,
    risks: usize,
    confidence: f64,
) -> Value {
    let key = json!({ "agent": "ideation", "task": format!("message-{message}") });
    let artifacts: Vec<Value> = artifacts.iter().map(|kind| artifact(kind)).collect();
    let decisions: Vec<Value> = (0..decisions)
        .map(|number| json!({ "kind": "validation", "summary": format!("Evidence {number}.") }))
        .collect();
    let risks: Vec<Value> = (0..risks)
        .map(|_| json!({ "summary": "A badly edited file." }))
        .collect();
    let reply = json!({ "text": format!("Reply {message}."), "artifacts": artifacts,
        "decisions": decisions, "risks": risks, "confidence": confidence });
    rule(&key, "reply", &reply)
}

/// Returns what the model answers: a conversation, a plan of twelve tasks, and twelve files. JSON is YAML.
fn script() -> String {
    let mut rules = vec![
        chat(
            2,
            &["target-user", "problem", "solution-concept"],
            0,
            0,
            0.5,
        ),
        chat(3, &["mvp-features", "differentiator"], 0, 0, 0.65),
        chat(4, &[], 3, 1, 0.7),
        chat(5, &["brief"], 0, 0, 0.8),
        rule(
            &json!({ "agent": "specification" }),
            "specification",
            &plan(),
        ),
    ];
    for number in 1..=TASKS {
        let key =
            |turn: u32| json!({ "agent": "build", "task": format!("T-{number:03}"), "turn": turn });
        let file = json!({ "path": format!("parts/{number:02}.txt"), "content": format!("part {number} is ready\n") });
        rules.push(rule(&key(1), "write", &file));
        rules.push(rule(
            &key(2),
            "finish",
            &json!({ "summary": format!("Wrote part {number}.") }),
        ));
    }
    let review = json!({ "patterns": [], "gotchas": [], "divergences": [], "notes": [] });
    rules.push(rule(&json!({ "agent": "improvement" }), "review", &review));
    Value::Array(rules).to_string()
}

fn plan() -> Value {
    let requirement = |number: usize| {
        json!({ "id": format!("FR-{number}"), "text": format!("Part {number} is there."), "priority": "must",
            "acceptance": format!("part {number} says that it is ready"), "source": "planning/brief.md" })
    };
    let task = |number: usize| {
        // Three chains of four, so that loops run side by side.
        let before = (number > 3).then(|| format!("T-{:03}", number - 3));
        json!({ "id": format!("T-{number:03}"), "phase": "api", "action": "CREATE",
            "file": format!("parts/{number:02}.txt"),
            "requirements": [{ "id": format!("FR-{number}"), "text": format!("Write part {number}.") }],
            "gotchas": [], "depends_on": before.into_iter().collect::<Vec<_>>(),
            "validation": { "command": format!("grep ready parts/{number:02}.txt"), "expected": "contains ready" } })
    };
    json!({
        "document": { "title": "Habit tracking", "context_read": [], "missing_inputs": [],
            "objective": "Every part is there.", "success_criteria": ["twelve parts"], "out_of_scope": [],
            "requirements": (1..=TASKS).map(requirement).collect::<Vec<_>>(), "quality": [],
            "new_files": [], "modified_files": [], "avoid_files": [], "interfaces": [], "data": [],
            "dependencies": [], "gotchas": [], "validation": ["grep -r ready parts"], "risks": [] },
        "tasks": (1..=TASKS).map(task).collect::<Vec<_>>(),
    })
}

#[tokio::test]
async fn an_idea_becomes_a_verified_branch_by_the_verbs_of_its_owner() -> anyhow::Result<()> {
    let project = Project::new()?;
    let opening = "I want to build a habit tracking app";
    project.verb(&["idea", "new", opening, "--slug", "habits"], "")?;
    project
        .runner
        .run_with_input(&["idea", "chat", "habits"], LINES, PATIENCE)?;
    let folder = project.path().join("state/users/pat/ideas/habits");
    for file in [
        "README.md",
        "target-users.md",
        "problem-solution.md",
        "planning/brief.md",
    ] {
        ensure!(
            folder.join(file).is_file(),
            "`{file}` is missing from the idea folder"
        );
    }
    let made = project.verb(&["spec", "generate", "habits"], "")?;
    let (id, hash) = identity(&made)?;
    for file in ["build/spec.md", "build/tasks.md"] {
        ensure!(
            folder.join(file).is_file(),
            "`{file}` is missing from the idea folder"
        );
    }
    let stale = "0".repeat(64);
    let refused = project
        .runner
        .run(&["spec", "approve", &id, "--hash", &stale], PATIENCE)?;
    assert_eq!(refused.status.code(), Some(1));
    project.verb(&["spec", "approve", &id, "--hash", &hash], "")?;
    finish(&project.runner, project.path(), 1).await?;

    let store = store(project.path()).await?;
    check_records(&store).await?;
    check_events(&store).await?;
    check_at_rest(&store).await?;
    check_branch(&project.repository())?;
    check_tasks_file(&folder)
}

/// Returns id and hash of a specification as a verb shows it.
fn identity(shown: &Value) -> anyhow::Result<(String, String)> {
    let text = |name: &str| -> anyhow::Result<String> {
        Ok(at(shown, name)?.as_str().context("a text")?.to_owned())
    };
    Ok((text("/id")?, text("/hash")?))
}

async fn check_records(store: &Store) -> anyhow::Result<()> {
    let idea = store.get::<Idea>("habits").await?.context("the idea")?;
    let session = store
        .get::<Session>(&idea.session.to_string())
        .await?
        .context("the session")?;
    let phases: Vec<String> = session
        .phases
        .iter()
        .map(|entry| entry.phase.to_string())
        .collect();
    assert_eq!(
        phases,
        [
            "exploring",
            "narrowing",
            "validating",
            "refining",
            "complete"
        ]
    );
    let specs = store.list::<Specification>(Query::new()).await?;
    assert_eq!(specs.len(), 1);
    assert_eq!(specs[0].state, SpecState::Approved);
    let approval = specs[0].approval.as_ref().context("an approval")?;
    assert_eq!(
        (approval.by.as_str(), Some(&approval.hash)),
        ("pat", specs[0].hash.as_ref())
    );
    let builds = store.list::<Build>(Query::new()).await?;
    assert_eq!(builds.len(), 1);
    assert_eq!(builds[0].state, BuildState::Succeeded);
    assert_eq!(builds[0].head, builds[0].published);
    let tasks = store.list::<Task>(Query::new()).await?;
    assert_eq!(tasks.len(), TASKS);
    assert!(
        tasks
            .iter()
            .all(|task| task.state == TaskState::Complete && task.attempts == 1)
    );
    let reviews = store.list::<Review>(Query::new()).await?;
    let review = reviews
        .iter()
        .find(|review| review.kind == ReviewKind::Build)
        .context("a review")?;
    assert!((review.metrics["first_pass_success"] - 1.0).abs() < f64::EPSILON);
    let open = Query::new().equal("state", QuestionState::Pending.as_str());
    let open = store.list::<Question>(open).await?;
    let triggers: Vec<&str> = open
        .iter()
        .map(|question| question.trigger.as_str())
        .collect();
    assert_eq!(triggers, ["build_finished"]);
    Ok(())
}

async fn check_events(store: &Store) -> anyhow::Result<()> {
    let idea = store.get::<Idea>("habits").await?.context("the idea")?;
    let filter = EventFilter {
        limit: Some(10_000),
        ..EventFilter::default()
    };
    let all = store.events(&filter).await?;
    let chain = EventFilter {
        correlation: Some(idea.correlation_id),
        ..filter
    };
    let of_chain = store.events(&chain).await?;
    let foreign: BTreeSet<&str> = all
        .iter()
        .filter(|stored| stored.event.correlationid != idea.correlation_id)
        .map(|stored| stored.event.event_type.as_str())
        .collect();
    assert!(
        foreign
            .iter()
            .all(|event_type| *event_type == "schedule.due"),
        "{foreign:?}"
    );
    check_order(&of_chain)?;
    let positions: Vec<i64> = of_chain.iter().map(|stored| stored.sequence).collect();
    assert!(positions.is_sorted());
    for stored in &of_chain {
        let Some(cause) = stored.event.causationid else {
            continue;
        };
        let cause = of_chain
            .iter()
            .find(|other| other.event.id == cause)
            .context("a cause")?;
        assert!(
            cause.sequence < stored.sequence,
            "{} before its cause",
            stored.event.event_type
        );
    }
    Ok(())
}

fn check_order(events: &[StoredEvent]) -> anyhow::Result<()> {
    let of = |event_type: &str| -> Vec<&StoredEvent> {
        events
            .iter()
            .filter(|stored| stored.event.event_type == event_type)
            .collect()
    };
    let once = |event_type: &str| -> anyhow::Result<&StoredEvent> {
        let found = of(event_type);
        ensure!(found.len() == 1, "{} times `{event_type}`", found.len());
        Ok(found[0])
    };
    let mut last = 0;
    for event_type in [
        "ideation.started",
        "candidate.created",
        "ideation.completed",
        "spec.requested",
        "spec.generated",
        "spec.approved",
        "build.started",
        "build.completed",
    ] {
        let position = once(event_type)?.sequence;
        ensure!(position > last, "`{event_type}` comes too early");
        last = position;
    }
    let completed = &once("ideation.completed")?.event.data;
    for field in [
        "session_id",
        "idea_slug",
        "user_slug",
        "brief_path",
        "confidence",
        "ready_for_spec",
    ] {
        at(completed, &format!("/{field}"))?;
    }
    assert_eq!(
        at(&once("spec.generated")?.event.data, "/task_count")?,
        TASKS
    );
    assert_eq!(of("task.completed").len(), TASKS);
    let first = of("task.started")
        .first()
        .context("a started task")?
        .sequence;
    ensure!(
        first > once("build.started")?.sequence,
        "a task began before its build"
    );
    for task in of("task.completed") {
        at(&task.event.data, "/duration_seconds")?;
        at(&task.event.data, "/commit_sha")?;
        ensure!(
            task.sequence < last,
            "a task landed after the end of its build"
        );
    }
    let built = &once("build.completed")?.event.data;
    assert_eq!(at(built, "/status")?, "succeeded");
    assert_eq!(at(built, "/commits")?.as_array().map(Vec::len), Some(TASKS));
    Ok(())
}

fn check_branch(repository: &Path) -> anyhow::Result<()> {
    let commits = landed(repository, "build/habits")?;
    let tasks: Vec<String> = commits.iter().map(|commit| commit.task.clone()).collect();
    let wanted: Vec<String> = (1..=TASKS).map(|number| format!("T-{number:03}")).collect();
    assert_eq!(tasks, wanted);
    for (number, commit) in (1..).zip(&commits) {
        assert_eq!(commit.files, [format!("parts/{number:02}.txt")]);
        assert_eq!(commit.requirements, [format!("FR-{number}")]);
    }
    let first = git(
        repository,
        &["log", "--reverse", "--format=%H", "main..build/habits"],
    )?;
    let first = first.lines().next().context("a first commit")?;
    let files = git(repository, &["show", "--format=", "--name-only", first])?;
    ensure!(
        files.lines().all(|file| file.starts_with("ideas/habits/")),
        "{files}"
    );
    assert_eq!(git(repository, &["rev-list", "--count", "main"])?, "1");
    Ok(())
}

/// Checks that tasks.md says what the store says.
fn check_tasks_file(folder: &Path) -> anyhow::Result<()> {
    let text = fs::read_to_string(folder.join("build/tasks.md"))?;
    let document = tasks_md::parse(&text)?;
    assert_eq!(
        (document.header().total, document.header().completed),
        (TASKS, TASKS)
    );
    for entry in document.entries() {
        assert_eq!(
            entry.progress.status,
            TaskState::Complete,
            "{}",
            entry.block.id
        );
        ensure!(
            entry.progress.completed_at.is_some(),
            "`{}` has no time",
            entry.block.id
        );
    }
    assert_eq!(document.entries().len(), TASKS);
    Ok(())
}
