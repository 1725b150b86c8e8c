//! What an earlier program left when it was killed goes on with this one.
//!
//! `fixtures/earlier.tar.gz` is such a project, with tables as they were before the sixteenth change of them: of four tasks one
//! waits for an answer, one was being checked, two wait for these, and a revision was asked for when nothing ran any more.
//! It lacks `state/repository.json`, as the program advises where a project has moved.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::specification::Specification;
use ropewalk_store::Query;
use serde_json::Value;

use crate::picture::{REHEARSAL, check_at_rest, git, store};
use crate::project::Project;
use crate::running::{start, stop, until_ready};

const QUESTION: &str = "Is part one to be long or short?";
/// What every task writes into its file.
const PARTS: [&str; 4] = ["part 1", "part 2", "part 3", "part 4"];

fn unpacked() -> anyhow::Result<Project> {
    let directory = tempfile::tempdir()?;
    let archive =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/fixtures/earlier.tar.gz");
    let status = Command::new("tar")
        .arg("-xzf")
        .arg(archive)
        .arg("-C")
        .arg(directory.path())
        .status()
        .context("`tar` does not run")?;
    ensure!(status.success(), "`tar` ended with {status}");
    Ok(Project::at(directory))
}

/// Returns how many changes the tables have seen, without this program, which would change them.
fn changes_of_tables(project: &Project) -> anyhow::Result<String> {
    const ASKS: &str = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT MAX(version) FROM _sqlx_migrations').fetchone()[0])";
    let database = project.path().join("state/ropewalk.db");
    let output = Command::new("python3")
        .args(["-c", ASKS])
        .arg(database)
        .output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Returns the id of the question that the earlier program asked.
fn question(project: &Project) -> anyhow::Result<String> {
    let open = project.verb(&["question", "list"], "")?;
    let mut open = open.as_array().context("a list")?.iter();
    let asked = open.find(|one| {
        one["text"]
            .as_str()
            .is_some_and(|text| text.ends_with(QUESTION))
    });
    let id = asked.and_then(|one| one["id"].as_str());
    Ok(id.context("the question is gone")?.to_owned())
}

/// Waits until the build has ended and the revision is there, with nothing left to be handled.
async fn ended(project: &Project) -> anyhow::Result<Value> {
    let began = Instant::now();
    let store = store(project.path()).await?;
    loop {
        let builds = store.list::<Build>(Query::new()).await?;
        let specifications = store.list::<Specification>(Query::new()).await?;
        let has_ended = builds
            .iter()
            .all(|build| build.state == BuildState::Succeeded);
        let is_revised = specifications.iter().any(|one| one.revision == 2);
        if has_ended && is_revised && store.open_deliveries(None, 0, 1).await?.is_empty() {
            store.close().await?;
            return project.verb(&["build", "show", &builds[0].id.to_string()], "");
        }
        ensure!(began.elapsed() < REHEARSAL, "{builds:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn what_an_earlier_program_left_goes_on_to_its_end() -> anyhow::Result<()> {
    let project = unpacked()?;
    assert_eq!(changes_of_tables(&project)?, "15", "before this program");
    let mut up = start(&project.runner, &["up", "--bind", "127.0.0.1:0"])?;
    until_ready(project.path(), &mut up).await?;
    let asked = question(&project)?;
    project.verb(&["question", "answer", &asked, "Short"], "")?;
    let build = ended(&project).await?;
    stop(&mut up).await?;

    let states = build["tasks"].as_array().context("tasks")?.iter();
    let states: Vec<&Value> = states.map(|task| &task["state"]).collect();
    assert_eq!(states, ["complete"; PARTS.len()]);
    for (number, part) in (1..).zip(PARTS) {
        let file = format!("build/habits:parts/{number:02}.txt");
        let landed = git(&project.repository(), &["show", &file])?;
        assert_eq!(landed.trim(), format!("{part} is ready"));
    }
    let store = store(project.path()).await?;
    let attempts = store.list::<Attempt>(Query::new()).await?;
    let cut_off = attempts
        .iter()
        .filter(|one| one.task.as_ref() == "T-002" && one.state == AttemptState::Interrupted);
    assert_eq!(cut_off.count(), 1, "what was being checked: {attempts:?}");
    assert_eq!(store.count::<Build>(Query::new()).await?, 1);
    check_at_rest(&store).await?;
    Ok(store.close().await?)
}
