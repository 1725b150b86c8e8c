//! From an idea to its merge with the pages alone, and what that comes to beside the same with verbs alone.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::question::Question;
use ropewalk_schemas::specification::Specification;
use ropewalk_store::Query;
use ropewalk_world::likeness::{assert_alike, branch, events, rows};
use serde_json::{Value, json};

use crate::live::{go_on, waiting};
use crate::pages::{HOSTILE, Walk, answer_first, serve};
use crate::picture::{check_at_rest, git, store};
use crate::project::{LINES, PATIENCE, Project, TASKS, rule};
use crate::running::{start, stop, until_ready, until_reviewed};

/// What events and rows call a surface; they differ by nothing else.
const SURFACES: [&str; 2] = ["page", "cli"];
/// What is told to a model at work. `journey.cjs` has it too.
const TOLD: &str = "Write it with tabs, and no other way.";

/// Returns a project whose first task asks a person, and then works until it is told something. One loop does a task after
/// the other, so that two runs land in the same order.
fn asking() -> anyhow::Result<Project> {
    let project = Project::saying(&format!(" {HOSTILE}"))?;
    let turn = |turn: u32, contains: &str| json!({ "agent": "build", "task": "T-001", "turn": turn, "contains": contains });
    let question = json!({
        "question": format!("Tabs or spaces? {HOSTILE}"), "why": "The README does not say.",
        "options": [{ "label": "tabs", "meaning": "one each" }, { "label": "spaces" }],
    });
    let file = json!({ "path": "parts/01.txt", "content": format!("part 1 is ready {HOSTILE}\n") });
    let summary = json!({ "summary": format!("Wrote part 1. {HOSTILE}") });
    let waits = json!({ "command": waiting() });
    answer_first(
        &project,
        vec![
            rule(&turn(1, "Write part 1."), "ask", &question),
            rule(&turn(2, "pat answered: tabs"), "bash", &waits),
            rule(&turn(3, TOLD), "write", &file),
            rule(&turn(4, TOLD), "finish", &summary),
        ],
    )?;
    let settings = project.path().join("ropewalk.toml");
    let text = std::fs::read_to_string(&settings)?;
    std::fs::write(settings, format!("{text}\n[build]\nloops = 1\n"))?;
    let lesson = format!("What was learned. {HOSTILE}");
    project.verb(&["knowledge", "add", &lesson], "")?;
    Ok(project)
}

/// Goes the way by pages.
async fn by_pages() -> anyhow::Result<Project> {
    let project = asking()?;
    let (mut up, link) = serve(&project, "127.0.0.1:0").await?;
    let mut walk = Walk::begin("journey.cjs", &[&link])?;
    walk.asks("go on")?;
    go_on(&project).await?;
    walk.answer("it goes on")?;
    walk.end()?;
    until_reviewed(project.path(), &mut up, 1).await?;
    stop(&mut up).await?;
    Ok(project)
}

/// Goes the same way by verbs.
async fn by_verbs() -> anyhow::Result<Project> {
    let project = asking()?;
    let mut up = start(&project.runner, &["up"])?;
    until_ready(project.path(), &mut up).await?;
    let opening = format!("I want to build a habit tracking app. {HOSTILE}");
    project.verb(&["idea", "new", "Habits", "--text", &opening], "")?;
    let chat = ["idea", "chat", "habits"];
    let talked = project.runner.run_with_input(&chat, LINES, PATIENCE)?;
    ensure!(talked.status.success(), "{talked:?}");
    let made = project.verb(&["spec", "generate", "habits"], "")?;
    let hash = made["hash"].as_str().context("a hash")?;
    project.verb(&["spec", "approve", "habits", "--hash", hash], "")?;
    until(&project, &["build", "show", "habits"], |build| {
        let tasks = build["tasks"].as_array();
        let complete = tasks.map(|tasks| tasks.iter().filter(|task| task["state"] == "complete"));
        complete.is_some_and(|complete| complete.count() == TASKS - 4)
    })
    .await?;
    answer(&project, "multiple_implementations", "tabs").await?;
    let working = ["build", "show", "habits"];
    until(&project, &working, |build| {
        build["tasks"][0]["state"] == "working"
    })
    .await?;
    project.verb(&["build", "tell", "habits", "T-001", TOLD], "")?;
    go_on(&project).await?;
    answer(&project, "build_finished", "merge").await?;
    until(&project, &["build", "list"], |builds| {
        builds[0]["merged"].is_string()
    })
    .await?;
    until_reviewed(project.path(), &mut up, 1).await?;
    stop(&mut up).await?;
    Ok(project)
}

/// Answers the question of `trigger` once it is asked.
async fn answer(project: &Project, trigger: &str, choice: &str) -> anyhow::Result<()> {
    let of = |open: &Value| {
        let mut open = open.as_array()?.iter();
        let asked = open.find(|one| one["trigger"] == trigger)?;
        Some(asked["id"].as_str()?.to_owned())
    };
    let open = until(project, &["question", "list"], |open| of(open).is_some()).await?;
    let id = of(&open).context("the question")?;
    project.verb(&["question", "answer", &id, choice], "")?;
    Ok(())
}

/// Asks a verb again and again until what it shows `holds`, and returns that.
async fn until(
    project: &Project,
    verb: &[&str],
    holds: impl Fn(&Value) -> bool,
) -> anyhow::Result<Value> {
    let began = Instant::now();
    loop {
        let shown = project.verb(verb, "")?;
        if holds(&shown) {
            return Ok(shown);
        }
        ensure!(began.elapsed() < PATIENCE, "{verb:?} shows {shown}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn an_idea_is_talked_about_approved_built_and_merged_with_the_pages_alone()
-> anyhow::Result<()> {
    let project = by_pages().await?;
    let verbs = by_verbs().await?;
    let store = store(project.path()).await?;
    let specifications = store.list::<Specification>(Query::new()).await?;
    let approval = specifications[0].approval.as_ref().context("no approval")?;
    assert_eq!(approval.by.as_str(), "pat");
    assert_eq!(Some(&approval.hash), specifications[0].hash.as_ref());
    let questions = store.list::<Question>(Query::new()).await?;
    for trigger in ["multiple_implementations", "build_finished"] {
        let asked = questions
            .iter()
            .find(|question| question.trigger == trigger);
        let answer = asked.and_then(|question| question.answer.as_ref());
        let answer = answer.with_context(|| format!("`{trigger}` has no answer"))?;
        assert_eq!(
            (answer.by.as_str(), answer.channel.as_str()),
            ("pat", "page")
        );
    }
    let builds = store.list::<Build>(Query::new()).await?;
    let commit = builds[0].merged.as_ref().context("nothing was merged")?;
    let repository = project.repository();
    let head = git(&repository, &["rev-parse", "main"])?;
    assert_eq!(head.trim(), commit.as_str());
    for number in 1..=TASKS {
        let file = format!("main:parts/{number:02}.txt");
        assert_eq!(
            git(&repository, &["show", &file])?.trim(),
            format!("part {number} is ready {HOSTILE}")
        );
    }
    check_at_rest(&store).await?;

    let told = crate::picture::store(verbs.path()).await?;
    let tree = |project: &Project| git(&project.repository(), &["rev-parse", "main:parts"]);
    assert_eq!(tree(&project)?, tree(&verbs)?);
    for name in ["main", "build/habits"] {
        let [one, other] = [&project, &verbs].map(|one| branch(&one.repository(), name));
        assert_alike(name, &one?, &other?);
    }
    let [one, other] = [&store, &told].map(|store| rows(store, &SURFACES));
    let (mut one, mut other) = (one.await?, other.await?);
    for rows in [&mut one, &mut other] {
        // What each part was at in the moment of the stop is of the moment.
        rows.remove("components").context("no components")?;
    }
    assert_alike("rows", &one, &other);
    let [one, other] = [&store, &told].map(|store| events(store, &SURFACES));
    assert_alike("events", &one.await?, &other.await?);
    Ok(())
}
