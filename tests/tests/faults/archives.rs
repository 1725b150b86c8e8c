//! A project that is exported in the middle of its build and imported elsewhere, also where the disk is full.

mod pages;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use anyhow::{Context, ensure};
use ropewalk_schemas::attempt::Attempt;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::lease::{Lease, LeaseState};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_store::{EventFilter, Query};
use ropewalk_tests::namespaces;
use serde_json::Value;

use crate::disks::SmallDisk;
use crate::picture::{git, landed, store};
use crate::project::{PATIENCE, Project, TASKS};
use crate::running::{RunningProgram, start, stop, until_events};
use crate::trial::{approved, may_mount};

/// So many looks in a row, a second apart, show the same where nothing is at work; a busy machine does not write for seconds.
const LOOKS: u32 = 2;

/// Returns a folder with the configuration of a project and a clone of its repository, and nothing else.
fn elsewhere(of: &Project) -> anyhow::Result<Project> {
    let directory = tempfile::tempdir()?;
    for name in ["ropewalk.toml", "script.yaml"] {
        fs::copy(of.path().join(name), directory.path().join(name))?;
    }
    let (from, to) = (of.repository(), directory.path().join("repo"));
    let [from, to] = [from, to].map(|path| path.display().to_string());
    git(
        directory.path(),
        &[
            "clone",
            "--quiet",
            "--no-hardlinks",
            "--branch",
            "main",
            &from,
            &to,
        ],
    )?;
    Ok(Project::at(directory))
}

/// Returns what the lists and views show that pages are made of.
fn shown(project: &Project) -> anyhow::Result<Vec<Value>> {
    let build = project.verb(&["build", "list"], "")?[0]["id"].clone();
    let spec = project.verb(&["spec", "list"], "")?[0]["id"].clone();
    let [build, spec] = [&build, &spec].map(|id| id.as_str().unwrap_or_default());
    let views: [&[&str]; 8] = [
        &["idea", "list"],
        &["spec", "list"],
        &["spec", "show", spec],
        &["build", "list"],
        &["build", "show", build],
        &["question", "list", "--all"],
        &["knowledge", "list"],
        &["usage", "--by", "day"],
    ];
    let mut shown = Vec::new();
    for view in views {
        let mut told = project.verb(view, "")?;
        without_who_runs(&mut told);
        without_progress(&mut told);
        shown.push(told);
    }
    // What the models said, a line for each.
    let log = ["build", "log", build, "--json"];
    let log = project.runner.run(&log, PATIENCE)?;
    shown.push(String::from_utf8(log.stdout)?.into());
    Ok(shown)
}

/// Takes out of a list or a view of builds whether anything runs here and now, which is no part of a project.
fn without_who_runs(told: &mut Value) {
    let rows = match told {
        Value::Array(rows) => rows.as_mut_slice(),
        one => std::slice::from_mut(one),
    };
    for row in rows {
        if row["standing"] == "nothing runs"
            && let Some(fields) = row.as_object_mut()
        {
            fields.remove("standing");
            fields.remove("next");
        }
    }
}

/// Takes out when a task moved last, which is written with the next renewal of its locks: seconds after all stands still.
fn without_progress(told: &mut Value) {
    match told {
        Value::Array(values) => values.iter_mut().for_each(without_progress),
        Value::Object(fields) => {
            fields.remove("progress_at");
            fields.values_mut().for_each(without_progress);
        }
        _ => {}
    }
}

#[tokio::test]
async fn a_project_with_a_running_build_is_exported_and_its_build_ends_elsewhere()
-> anyhow::Result<()> {
    let project = approved()?;
    let mut up = start(&project.runner, &["up"])?;
    until_events(project.path(), &mut up, "task.completed", 3).await?;
    project.verb(&["stop"], "")?;
    // What has begun ends; then it stands still, with work in hand.
    let archive = project.path().join("habits.ropewalk");
    let archive = archive.to_str().context("a path")?;
    let before = settled(&project, &up).await?;
    project.verb(&["export", archive], "")?;
    // Exporting changes nothing.
    assert_equal(&before, &settled(&project, &up).await?);
    let there = elsewhere(&project)?;
    there.verb(&["import", archive], "")?;
    let after = shown(&there)?;
    assert_equal(&before, &after);
    let imported = store(there.path()).await?;
    let granted = Query::new().equal("state", LeaseState::Granted.as_str());
    assert_eq!(imported.count::<Lease>(granted).await?, 0);
    let last = imported.events(&EventFilter::default()).await?.len();
    let builds = imported.list::<Build>(Query::new()).await?;
    let published = builds[0]
        .published
        .as_ref()
        .context("nothing was published")?;
    let branch = git(&there.repository(), &["rev-parse", "build/habits"])?;
    assert_eq!(branch.trim(), published.as_str());
    imported.close().await?;
    // Where it came from, whoever looks after a new start sees what is seen where it arrives.
    stop(&mut up).await?;
    let mut up = start(&project.runner, &["up"])?;
    let mut up_there = start(&there.runner, &["up"])?;
    for place in [project.path(), there.path()] {
        until_taken_up(place).await?;
    }
    let pages = pages::read(&project, last).await?;
    let pages_there = pages::read(&there, last).await?;
    stop(&mut up_there).await?;
    pages::compare(&pages, &pages_there)?;
    // Stopped where it arrives, and where it came from it goes on as if nothing had been.
    project.verb(&["resume"], "")?;
    until_events(project.path(), &mut up, "build.completed", 1).await?;
    stop(&mut up).await?;
    project.finish_and_check().await?;
    there.verb(&["resume"], "")?;
    there.finish_and_check().await
}

/// Exports again and again until the build has ended; returns the archives.
fn exported_meanwhile(project: &Project) -> anyhow::Result<Vec<String>> {
    let began = std::time::Instant::now();
    let mut archives = Vec::new();
    loop {
        ensure!(began.elapsed() < PATIENCE, "the build does not end");
        let archive = project.path().join(format!("{}.ropewalk", archives.len()));
        let archive = archive.to_str().context("a path")?.to_owned();
        project.verb(&["export", &archive], "")?;
        archives.push(archive);
        let builds = project.verb(&["build", "list"], "")?;
        if builds[0]["completed_at"].is_string() {
            return Ok(archives);
        }
    }
}

#[tokio::test]
async fn what_is_exported_while_loops_commit_is_whole_and_ends_elsewhere() -> anyhow::Result<()> {
    let project = approved()?;
    let mut up = start(&project.runner, &["up"])?;
    let archives = exported_meanwhile(&project)?;
    stop(&mut up).await?;
    project.finish_and_check().await?;
    let mut halfway = Vec::new();
    for archive in archives {
        let there = elsewhere(&project)?;
        there.verb(&["import", &archive], "")?;
        let imported = store(there.path()).await?;
        // No commit is of a task that is not complete.
        let complete = Query::new().equal("state", TaskState::Complete.as_str());
        let complete = imported.list::<Task>(complete).await?;
        let mut complete: Vec<String> = complete.iter().map(|task| task.id.to_string()).collect();
        imported.close().await?;
        let begun = git(&there.repository(), &["branch", "--list", "build/habits"])?;
        let commits = match begun.trim() {
            "" => Vec::new(),
            _ => landed(&there.repository(), "build/habits")?,
        };
        let mut commits: Vec<String> = commits.into_iter().map(|commit| commit.task).collect();
        complete.sort();
        commits.sort();
        // The branch is moved on after the rows that say so, by who finds it behind: others may have landed until then.
        let ours = |task: &String| complete.contains(task);
        assert!(
            commits.iter().all(ours),
            "{archive}: {complete:?} and {commits:?}"
        );
        let ahead = complete.len() - commits.len();
        if (1..TASKS).contains(&complete.len()) {
            halfway.push((ahead, there));
        }
    }
    // Of those the one whose branch is furthest behind its rows: once it goes on, each task has its commit, and there is no other.
    halfway.sort_by_key(|(ahead, _)| *ahead);
    let (_, there) = halfway.pop().context("no archive was made halfway")?;
    there.verb(&["resume"], "")?;
    there.finish_and_check().await
}

/// Waits until whoever started has ended every attempt that ran before.
async fn until_taken_up(place: &Path) -> anyhow::Result<()> {
    let began = std::time::Instant::now();
    let store = store(place).await?;
    loop {
        let attempts = store.list::<Attempt>(Query::new()).await?;
        if attempts.iter().all(|attempt| attempt.ended_at.is_some()) {
            return Ok(store.close().await?);
        }
        ensure!(began.elapsed() < PATIENCE, "an attempt goes on");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// Waits until no command runs any more, and what is shown stays the same.
async fn settled(project: &Project, up: &RunningProgram) -> anyhow::Result<Vec<Value>> {
    let began = std::time::Instant::now();
    let (mut before, mut looks) = (shown(project)?, 0);
    while looks < LOOKS {
        ensure!(began.elapsed() < PATIENCE, "it never stands still");
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let now = shown(project)?;
        let rests = now == before && !has_children(up)?;
        looks = if rests { looks + 1 } else { 0 };
        before = now;
    }
    Ok(before)
}

fn has_children(program: &RunningProgram) -> anyhow::Result<bool> {
    for thread in fs::read_dir(format!("/proc/{}/task", program.pid()?))? {
        // A thread may have ended.
        let children = fs::read_to_string(thread?.path().join("children"));
        if children.is_ok_and(|children| !children.is_empty()) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn assert_equal(before: &[Value], after: &[Value]) {
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(after) {
        assert_eq!(before, after);
    }
}

#[tokio::test]
async fn on_a_full_disk_an_archive_is_neither_written_nor_read_by_half() -> anyhow::Result<()> {
    if !may_mount("archives::on_a_full_disk_an_archive_is_neither_written_nor_read_by_half")? {
        return Ok(());
    }
    ensure!(namespaces::are_own());
    let project = approved()?;
    let archive = project.path().join("habits.ropewalk");
    project.verb(&["export", archive.to_str().context("a path")?], "")?;
    let there = elsewhere(&project)?;
    // Room for what is unpacked as it says, and not for what comes of it.
    let place = there.path().join("small");
    fs::create_dir(&place)?;
    let settings = there.path().join("ropewalk.toml");
    let text = fs::read_to_string(&settings)?;
    fs::write(
        &settings,
        text.replace("state = \"state\"", "state = \"small/state\""),
    )?;
    let disk = SmallDisk::over(&place, 8)?;
    let filler = disk.fill()?;
    let import = ["import", archive.to_str().context("a path")?];
    refused(&there, &import)?;
    refused(
        &project,
        &["export", place.join("x").to_str().context("a path")?],
    )?;
    let mut refusals = 0;
    while !there.runner.run(&import, PATIENCE)?.status.success() {
        ensure!(left(&place)? == ["filler"], "{:?}", left(&place)?);
        refused(&there, &import)?;
        ensure!(left(&place)? == ["filler"], "{:?}", left(&place)?);
        refusals += 1;
        leave(&filler, 128 * 1_024)?;
    }
    ensure!(refusals > 2, "there was room at once");
    assert_eq!(
        there.verb(&["build", "list"], "")?,
        project.verb(&["build", "list"], "")?
    );
    Ok(())
}

#[tokio::test]
async fn an_import_that_dies_before_its_last_step_is_made_again_to_the_same_place()
-> anyhow::Result<()> {
    let project = approved()?;
    let archive = project.path().join("habits.ropewalk");
    project.verb(&["export", archive.to_str().context("a path")?], "")?;
    let place = tempfile::tempdir()?;
    let new = place.path().join("again");
    let runner = project.runner.clone().with_variable(
        "XDG_STATE_HOME",
        place.path().join("states").to_str().context("a path")?,
    );
    let paths = [&archive, &new].map(|path| path.display().to_string());
    let import = ["import", &paths[0], &paths[1]];
    let died = runner.failing("import.between:1").run(&import, PATIENCE)?;
    ensure!(
        died.status.signal() == Some(6),
        "it was to abort: {}",
        String::from_utf8_lossy(&died.stderr)
    );
    ensure!(new.join("ropewalk.toml").is_file(), "nothing stands there");
    let staged = || -> anyhow::Result<Vec<String>> {
        let mut names = left(&place.path().join("states/ropewalk"))?;
        names.retain(|name| name.contains("importing"));
        Ok(names)
    };
    ensure!(staged()?.len() == 1, "nothing was left: {:?}", staged()?);
    let again = runner.run(&import, PATIENCE)?;
    ensure!(
        again.status.success(),
        "{}",
        String::from_utf8_lossy(&again.stderr)
    );
    ensure!(staged()?.is_empty(), "it was left: {:?}", staged()?);
    let there = |arguments: &[&str]| {
        let arguments = [&["-C", &*paths[1]], arguments].concat();
        runner.run(&arguments, PATIENCE)
    };
    let asked: Value = serde_json::from_slice(&there(&["trust", "--json"])?.stdout)?;
    there(&["trust", "--hash", asked["hash"].as_str().context("a hash")?])?;
    let listed = there(&["build", "list", "--json"])?;
    let listed: Value = serde_json::from_slice(&listed.stdout)?;
    assert_eq!(listed, project.verb(&["build", "list"], "")?);
    Ok(())
}

/// Makes a file so much smaller.
fn leave(filler: &Path, bytes: u64) -> anyhow::Result<()> {
    let file = fs::OpenOptions::new().write(true).open(filler)?;
    let size = file.metadata()?.len();
    Ok(file.set_len(size.saturating_sub(bytes))?)
}

fn left(place: &Path) -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir(place)?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<std::io::Result<Vec<_>>>()?;
    names.retain(|name| name != "probe");
    Ok(names)
}

fn refused(project: &Project, arguments: &[&str]) -> anyhow::Result<()> {
    let output = project.runner.run(arguments, PATIENCE)?;
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {complaint}");
    assert_eq!(complaint.trim_end().lines().count(), 1, "{complaint}");
    Ok(())
}
