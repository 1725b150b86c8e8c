//! The main job: two ideas from a chat to verified branches (design §14).

use std::path::Path;

use anyhow::{Context, ensure};
use ropewalk_store::EventFilter;
use ropewalk_tests::program::Runner;
use serde_json::Value;

use crate::picture::{REHEARSAL, at, check_at_rest, git, landed, store, tests_pass};

/// Runs a rehearsal in the folder `rehearsal` of `directory` and returns its report.
pub(crate) fn rehearse(directory: &Path, more: &[&str]) -> anyhow::Result<Value> {
    let folder = directory.join("rehearsal").display().to_string();
    let mut arguments = vec!["rehearse", "--json", "--dir", &folder];
    arguments.extend(more);
    let output = Runner::new(directory).run(&arguments, REHEARSAL)?;
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{}: {complaint}", output.status);
    serde_json::from_slice(&output.stdout).context("the report is not one JSON object")
}

/// Checks what every rehearsal must have reached, whatever happened on the way.
pub(crate) fn check_branches(rehearsal: &Path) -> anyhow::Result<()> {
    let repository = rehearsal.join("repo");
    for (branch, folder, tasks, tests) in [
        ("build/habit-streaks", "habits", 8, 16),
        ("build/bill-calendar", "bills", 6, 8),
    ] {
        let commits = landed(&repository, branch)?;
        let ids: Vec<String> = commits.iter().map(|commit| commit.task.clone()).collect();
        let wanted: Vec<String> = (1..=tasks).map(|number| format!("T-{number:03}")).collect();
        assert_eq!(ids, wanted, "{branch}");
        assert!(
            commits.iter().all(|commit| !commit.requirements.is_empty()),
            "{commits:?}"
        );
        assert_eq!(tests_pass(&repository, branch, folder)?, tests, "{branch}");
    }
    assert_eq!(git(&repository, &["rev-list", "--count", "main"])?, "1");
    assert_eq!(git(&repository, &["status", "--porcelain"])?, "");
    Ok(())
}

#[tokio::test]
async fn one_command_takes_two_ideas_to_verified_branches() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let report = rehearse(directory.path(), &[])?;
    let rehearsal = directory.path().join("rehearsal");
    assert_eq!(at(&report, "/ok")?, &Value::Bool(true));
    assert_eq!(at(&report, "/dir")?.as_str(), rehearsal.to_str());
    check_branches(&rehearsal)?;
    check_report(&report, &rehearsal)?;

    let store = store(&rehearsal).await?;
    check_at_rest(&store).await?;
    let events = store
        .events(&EventFilter {
            limit: Some(10_000),
            ..EventFilter::default()
        })
        .await?;
    assert_eq!(at(&report, "/events")?.as_u64(), Some(events.len() as u64));
    for stored in events {
        let traceparent = stored.event.traceparent.as_deref();
        let says_so = traceparent.is_none_or(|text| text.ends_with("-00"));
        ensure!(says_so, "nobody takes spans here: {:?}", stored.event);
    }
    Ok(())
}

/// Checks the shape and the figures of the report.
fn check_report(report: &Value, rehearsal: &Path) -> anyhow::Result<()> {
    let phases = [
        "exploring",
        "narrowing",
        "validating",
        "refining",
        "complete",
    ];
    for (index, slug, tasks, attempts) in [(0, "habit-streaks", 8, 9), (1, "bill-calendar", 6, 6)] {
        let idea = at(report, &format!("/ideas/{index}"))?;
        assert_eq!(at(idea, "/slug")?, slug);
        assert_eq!(at(idea, "/phases")?, &serde_json::json!(phases));
        assert_eq!(at(idea, "/spec/tasks")?, tasks);
        assert_eq!(at(idea, "/build/state")?, "succeeded");
        assert_eq!(
            at(idea, "/build/tasks")?,
            &serde_json::json!({"complete": tasks, "failed": 0, "skipped": 0})
        );
        assert_eq!(at(idea, "/build/attempts")?, attempts, "{slug}");
        let commits = at(idea, "/build/commits")?.as_array().context("commits")?;
        assert_eq!(commits.len(), tasks);
        let range = format!("main..build/{slug}");
        let branch = git(&rehearsal.join("repo"), &["rev-list", &range])?;
        for commit in commits {
            let sha = commit.as_str().context("a commit id")?;
            assert!(branch.contains(sha), "`{sha}` is not on the branch");
        }
    }
    assert!(at(report, "/ideas/0/questions/answered")?.as_u64() >= Some(1));
    assert!(at(report, "/ideas/0/review/gotchas")?.as_u64() >= Some(1));
    assert!(at(report, "/ideas/1/spec/gotchas_injected")?.as_u64() >= Some(1));
    assert_eq!(
        at(report, "/ideas/1/review/metrics/first_pass_success")?.as_f64(),
        Some(1.0)
    );
    Ok(())
}
