//! Killed in each stage of a rehearsal, `up` in the same folder goes on to the same result.

mod earlier;

use anyhow::{Context, ensure};
use ropewalk_tests::program::Runner;

use crate::picture::{check_at_rest, landed, store, tree};
use crate::rehearsal::{check_branches, rehearse};
use crate::running::{start, stop, until_events, until_ready, until_reviewed};

#[tokio::test]
async fn a_killed_rehearsal_goes_on_to_the_same_commits() -> anyhow::Result<()> {
    let undisturbed = tempfile::tempdir()?;
    rehearse(undisturbed.path(), &[])?;
    let expected = undisturbed.path().join("rehearsal/repo");
    let directory = tempfile::tempdir()?;
    let rehearsal = directory.path().join("rehearsal");
    let folder = rehearsal.display().to_string();
    let runner = Runner::new(directory.path());
    let mut program = start(&runner, &["rehearse", "--json", "--dir", &folder])?;
    let inside = Runner::new(&rehearsal);
    // One moment in each stage: chat, specification, an attempt, a landing, between the ideas, the second build.
    for (event_type, count) in [
        ("ideation.phase_changed", 1),
        ("question.answered", 1),
        ("task.started", 2),
        ("task.completed", 3),
        ("build.completed", 1),
        ("task.started", 11),
    ] {
        until_events(&rehearsal, &mut program, event_type, count)
            .await
            .with_context(|| format!("until {event_type} {count}"))?;
        program.0.kill()?;
        let status = program.0.wait()?;
        ensure!(status.code().is_none(), "it was not killed: {status}");
        program = start(&inside, &["up"])?;
    }
    until_ready(&rehearsal, &mut program).await?;
    until_reviewed(&rehearsal, &mut program, 2).await?;
    stop(&mut program).await?;

    check_branches(&rehearsal)?;
    let repository = rehearsal.join("repo");
    for (branch, package) in [
        ("build/habit-streaks", "habits"),
        ("build/bill-calendar", "bills"),
    ] {
        assert_eq!(landed(&repository, branch)?, landed(&expected, branch)?);
        assert_eq!(
            tree(&repository, branch, package)?,
            tree(&expected, branch, package)?
        );
    }
    let store = store(&rehearsal).await?;
    check_at_rest(&store).await?;
    store.close().await?;
    Ok(())
}
