//! The whole way from an idea to its merge with the pages alone, in a real browser.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::question::Question;
use ropewalk_schemas::specification::Specification;
use ropewalk_store::Query;
use ropewalk_tests::servers::node_modules;

use crate::picture::{check_at_rest, git, store};
use crate::project::{PATIENCE, Project, TASKS};
use crate::running::{Running, start, until_ready};

/// Waits until `up` has said where it is, and returns the link.
async fn link(log: &Path, up: &mut Running) -> anyhow::Result<String> {
    let began = Instant::now();
    loop {
        let said = std::fs::read_to_string(log).unwrap_or_default();
        let link = said
            .split_whitespace()
            .find(|word| word.contains("/login?code="));
        if let Some(link) = link {
            return Ok(link.to_owned());
        }
        ensure!(up.0.try_wait()?.is_none(), "`up` ended: {said}");
        ensure!(began.elapsed() < PATIENCE, "`up` names no link: {said}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_idea_is_talked_about_approved_built_and_merged_with_the_pages_alone()
-> anyhow::Result<()> {
    let project = Project::new()?;
    let mut up = start(&project.runner, &["up", "--bind", "127.0.0.1:0"])?;
    until_ready(project.path(), &mut up).await?;
    let link = link(&project.runner.log(), &mut up).await?;
    let walked = Command::new("node")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/fixtures/journey.cjs"))
        .arg(link)
        .env("NODE_PATH", node_modules()?)
        .output()
        .context("`node` does not run")?;
    let told = String::from_utf8_lossy(&walked.stderr).into_owned();
    ensure!(walked.status.success(), "{told}");
    drop(up);

    let store = store(project.path()).await?;
    let specifications = store.list::<Specification>(Query::new()).await?;
    let approval = specifications[0].approval.as_ref().context("no approval")?;
    assert_eq!(approval.by.as_str(), "pat");
    assert_eq!(Some(&approval.hash), specifications[0].hash.as_ref());
    let questions = store.list::<Question>(Query::new()).await?;
    let merged = questions
        .iter()
        .find(|question| question.trigger == "build_finished");
    let answer = merged.and_then(|question| question.answer.as_ref());
    let answer = answer.context("the question about the branch has no answer")?;
    assert_eq!(
        (answer.by.as_str(), answer.channel.as_str()),
        ("pat", "page")
    );
    let builds = store.list::<Build>(Query::new()).await?;
    let commit = builds[0].merged.as_ref().context("nothing was merged")?;
    let repository = project.repository();
    let head = git(&repository, &["rev-parse", "main"])?;
    assert_eq!(head.trim(), commit.as_str());
    for number in 1..=TASKS {
        let file = format!("main:parts/{number:02}.txt");
        assert_eq!(
            git(&repository, &["show", &file])?.trim(),
            format!("part {number} is ready")
        );
    }
    check_at_rest(&store).await
}
