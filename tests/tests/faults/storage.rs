//! Databases that are locked, damaged, or of another version.

use std::fs;
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context, ensure};
use nix::sys::signal::Signal;

use crate::project::{PATIENCE, Project};
use crate::running::{start, stop, until_events};
use crate::trial::{UNTIL_FAULT, approved, end_of};

/// Runs Python on the database of `project`.
fn python(project: &Project, script: &str) -> Command {
    let mut command = Command::new("python3");
    let prelude = "import sqlite3, sys, time\n\
        connection = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)\n";
    command
        .args(["-c", &format!("{prelude}{script}")])
        .arg(database(project));
    command
}

fn database(project: &Project) -> PathBuf {
    project.path().join("state/ropewalk.db")
}

/// Locks the database of `project` against writing for so many seconds; returns who does once it is locked.
fn hold(project: &Project, seconds: u32) -> anyhow::Result<Child> {
    let script = format!(
        "connection.execute('BEGIN IMMEDIATE')\nprint('held', flush=True)\ntime.sleep({seconds})\nconnection.execute('COMMIT')\n"
    );
    let mut holder = python(project, &script).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(holder.stdout.take().context("a pipe")?).read_line(&mut line)?;
    assert_eq!(line, "held\n");
    Ok(holder)
}

/// Runs `up`, which must refuse, and returns what it said.
fn refused(project: &Project) -> anyhow::Result<String> {
    let Output { status, stderr, .. } = project.runner.run(&["up"], PATIENCE)?;
    let complaint = String::from_utf8_lossy(&stderr).into_owned();
    assert_eq!(status.code(), Some(1), "{complaint}");
    assert_eq!(complaint.trim_end().lines().count(), 1, "{complaint}");
    Ok(complaint)
}

/// Returns the database as one file: a journal that a process left beside it would be played into whatever takes its place.
fn whole(project: &Project) -> anyhow::Result<Vec<u8>> {
    let fold = "connection.execute('PRAGMA wal_checkpoint(TRUNCATE)')\n";
    ensure!(python(project, fold).status()?.success());
    Ok(fs::read(database(project))?)
}

#[tokio::test]
async fn a_database_that_somebody_locks_for_seconds_only_delays() -> anyhow::Result<()> {
    let project = approved()?;
    let mut up = start(&project.runner, &["up"])?;
    until_events(project.path(), &mut up, "task.started", 2).await?;
    let mut holder = hold(&project, 30)?;
    ensure!(holder.wait()?.success(), "the lock was not held to the end");
    until_events(project.path(), &mut up, "task.completed", 2).await?;
    stop(&mut up).await?;
    project.finish_and_check().await
}

#[tokio::test]
async fn a_verb_that_finds_the_database_locked_for_too_long_says_so_and_leaves_nothing()
-> anyhow::Result<()> {
    let project = Project::new()?;
    let begin = |slug| ["idea", "new", "I want to track habits", "--slug", slug];
    project.verb(&begin("habits"), "")?;
    // For longer than a verb waits.
    let mut holder = hold(&project, 300)?;
    let refusal = project.runner.run(&begin("bills"), PATIENCE);
    holder.kill()?;
    holder.wait()?;
    let Output { status, stderr, .. } = refusal?;
    let said = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(1), "{said}");
    let last = said.trim_end().lines().next_back().unwrap_or_default();
    let is_plain = last.contains("another process") && last.contains("try again");
    ensure!(is_plain && !last.contains("(code"), "{said}");
    // It can be said again as it was: the name is free.
    project.verb(&begin("bills"), "")?;
    let ideas = project.verb(&["idea", "list"], "")?;
    assert_eq!(ideas.as_array().map(Vec::len), Some(2), "{ideas}");
    Ok(())
}

#[tokio::test]
async fn a_database_that_is_taken_away_in_mid_run_ends_the_process_in_words() -> anyhow::Result<()>
{
    let project = approved()?;
    let mut up = start(&project.runner, &["up"])?;
    until_events(project.path(), &mut up, "task.completed", 1).await?;
    fs::remove_file(database(&project))?;
    let status = end_of(&mut up, UNTIL_FAULT).await?;
    let said = project.said();
    assert_eq!(status.code(), Some(1), "{said}");
    ensure!(said.contains("was removed or replaced"), "{said}");
    ensure!(!database(&project).exists(), "it was made anew");
    // What is gone is not made anew by the next start, either.
    refused(&project)?;
    ensure!(!database(&project).exists(), "it was made anew");
    Ok(())
}

#[tokio::test]
async fn an_older_database_is_refused_and_not_gone_on_with() -> anyhow::Result<()> {
    let project = approved()?;
    let older = whole(&project)?;
    let mut up = start(&project.runner, &["up"])?;
    until_events(project.path(), &mut up, "task.completed", 1).await?;
    stop(&mut up).await?;
    let newer = whole(&project)?;
    ensure!(older != newer, "nothing has come since");
    fs::write(database(&project), older)?;
    let complaint = refused(&project)?;
    ensure!(complaint.contains("older than"), "{complaint}");
    fs::write(database(&project), newer)?;
    project.finish_and_check().await
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused_and_not_touched() -> anyhow::Result<()> {
    let project = approved()?;
    let newer = "connection.execute(\"INSERT INTO _sqlx_migrations SELECT version + 1, 'later', \
        installed_on, success, checksum, execution_time FROM _sqlx_migrations ORDER BY version DESC LIMIT 1\")\n";
    ensure!(python(&project, newer).status()?.success());
    let complaint = refused(&project)?;
    ensure!(complaint.contains("newer"), "{complaint}");
    let older =
        "connection.execute(\"DELETE FROM _sqlx_migrations WHERE description = 'later'\")\n";
    ensure!(python(&project, older).status()?.success());
    project.finish_and_check().await
}

#[tokio::test]
async fn a_crash_around_the_making_of_the_tables_is_made_good() -> anyhow::Result<()> {
    let project = Project::new()?;
    let new = ["idea", "new", "I want to track habits", "--slug", "habits"];
    for plan in ["store.migrate.before:1", "store.migrate.after:1"] {
        // Made anew: the tables are made once only.
        drop(fs::remove_dir_all(project.path().join("state")));
        let output = project.runner.failing(plan).run(&new, PATIENCE)?;
        assert_eq!(
            output.status.signal(),
            Some(Signal::SIGABRT as i32),
            "{plan}"
        );
        project.verb(&new, "")?;
        let ideas = project.verb(&["idea", "list"], "")?;
        assert_eq!(ideas.as_array().map(Vec::len), Some(1), "{plan}");
    }
    Ok(())
}

#[tokio::test]
async fn a_damaged_database_is_refused_and_the_backup_is_named_and_serves() -> anyhow::Result<()> {
    let project = approved()?;
    let mut up = start(&project.runner, &["up"])?;
    until_events(project.path(), &mut up, "task.completed", 1).await?;
    stop(&mut up).await?;
    let kept = whole(&project)?;
    // Pages from the third on, so that it still looks like a database.
    let mut file = fs::OpenOptions::new()
        .write(true)
        .open(database(&project))?;
    for page in [3, 4, 5, 6, 7, 8] {
        file.seek(SeekFrom::Start(4096 * page))?;
        file.write_all(&[0xa5; 4096])?;
    }
    file.sync_all()?;
    let complaint = refused(&project)?;
    let backup = newest_backup(&project)?;
    ensure!(
        complaint.contains(&backup.display().to_string()),
        "{complaint}"
    );
    let verb = project.runner.run(&["build", "list"], PATIENCE)?;
    assert_eq!(
        verb.status.code(),
        Some(1),
        "a verb reads a damaged database"
    );
    fs::write(database(&project), kept)?;
    project.finish_and_check().await
}

fn newest_backup(project: &Project) -> anyhow::Result<PathBuf> {
    let mut backups: Vec<PathBuf> = fs::read_dir(project.path().join("state/backups"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?;
    backups.sort();
    backups.pop().context("there is no backup")
}
