//! Shows commands in slots and clean checkouts a repository, and does everything to it that a program can.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use ropewalk_workspace::{CleanPool, CommitMessage, LocalClone, Slot};

use crate::slots::slot;
use crate::world::{World, commit, git, now, write};

/// A slot whose commands see the history of `main`, one commit on it.
async fn shown(world: &World) -> anyhow::Result<(LocalClone, Slot)> {
    let (clone, mut slot, base) = slot(world).await?;
    let head = commit(&clone, &base, "built.txt", "built\n").await?;
    slot.move_to(&head, now()).await?;
    slot.show(clone.history_on(&base, objects(&clone)).await?)
        .await?;
    Ok((clone, slot))
}

fn objects(clone: &LocalClone) -> std::path::PathBuf {
    LocalClone::objects_below(clone.state())
}

fn head(tree: &Path) -> anyhow::Result<String> {
    git(tree, &["rev-parse", "HEAD"])
}

#[tokio::test]
async fn git_tells_in_a_slot_what_was_before_and_what_is_new() -> anyhow::Result<()> {
    let world = World::new()?;
    world.git(&["tag", "v1.2"])?;
    world.git(&["tag", "-a", "v1.3", "-m", "told"])?;
    let (_, slot) = shown(&world).await?;
    let root = slot.root();
    assert_eq!(git(root, &["status", "--short"])?, "");
    write(root, "README.md", "one\n2\nthree\n")?;
    write(root, "new.txt", "x")?;
    let status = git(root, &["status", "--short"])?;
    assert_eq!(status, "M README.md\n?? new.txt");
    assert!(git(root, &["diff"])?.contains("-two\n+2"));
    let log = git(root, &["log", "--format=%s"])?;
    assert_eq!(log, "The build so far\nstart");
    assert!(git(root, &["show", "--stat"])?.contains("built.txt"));
    assert!(git(root, &["blame", "README.md"])?.contains("Ada"));
    assert!(git(root, &["describe", "--tags"])?.starts_with("v1.3-1-g"));
    assert_eq!(git(root, &["tag"])?, "v1.2\nv1.3");
    git(root, &["fsck", "--strict"])?;
    Ok(())
}

#[tokio::test]
async fn the_commit_that_is_shown_depends_on_tree_and_base_alone() -> anyhow::Result<()> {
    let world = World::new()?;
    let (clone, slot) = shown(&world).await?;
    let base = clone.default_branch_head().await?.commit;
    let again = commit(&clone, &base, "built.txt", "built\n").await?;
    let mut gate = CleanPool::for_gates(clone.clone(), 1)
        .acquire(&again)
        .await?;
    let history = clone.history_on(&base, objects(&clone)).await?;
    gate.show(history.clone()).await?;
    assert_eq!(head(slot.root())?, head(gate.root())?);
    let tree = clone.tree_of(&again).await?;
    assert!(history.name(&tree)?.starts_with(&head(gate.root())?));
    gate.move_to(&base).await?;
    assert_eq!(head(gate.root())?, base.as_str());
    // A tag that comes later changes what commands see, and so what a result is worth.
    world.git(&["tag", "v2"])?;
    clone.fetch().await?;
    let later = clone.history_on(&base, objects(&clone)).await?;
    assert_ne!(later.name(&tree)?, history.name(&tree)?);
    Ok(())
}

#[tokio::test]
async fn objects_are_read_where_they_are_and_nothing_is_written_there() -> anyhow::Result<()> {
    let world = World::new()?;
    let (clone, slot) = shown(&world).await?;
    let before = count(&objects(&clone))?;
    write(slot.root(), "new.txt", "x")?;
    git(slot.root(), &["add", "-A"])?;
    git(slot.root(), &["commit", "-q", "-m", "mine"])?;
    assert_eq!(count(&objects(&clone))?, before);
    // One commit of ours, and what the command made.
    let own = count(&slot.root().join(".git/objects"))?;
    assert!(own < 8, "{own}");
    Ok(())
}

fn count(directory: &Path) -> anyhow::Result<usize> {
    let mut found = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        found += if entry.file_type()?.is_dir() {
            count(&entry.path())?
        } else {
            1
        };
    }
    Ok(found)
}

/// Hooks, filters and monitors that leave a mark when anybody runs them.
fn arm(root: &Path, mark: &Path) -> anyhow::Result<()> {
    let run = format!("#!/bin/sh\ntouch '{}'\n", mark.display());
    let hooks = root.join(".git/hooks");
    fs::create_dir_all(&hooks)?;
    for hook in [
        "post-checkout",
        "post-index-change",
        "reference-transaction",
    ] {
        fs::write(hooks.join(hook), &run)?;
        crate::world::make_executable(&hooks.join(hook))?;
    }
    let monitor = root.join(".git/monitor");
    fs::write(&monitor, &run)?;
    crate::world::make_executable(&monitor)?;
    let monitor = monitor.display().to_string();
    for (key, value) in [
        ("core.fsmonitor", monitor.as_str()),
        ("core.worktree", "/"),
        ("filter.evil.clean", monitor.as_str()),
        ("filter.evil.smudge", monitor.as_str()),
        ("core.hooksPath", ".git/hooks"),
    ] {
        git(root, &["config", key, value])?;
    }
    fs::create_dir_all(root.join(".git/info"))?;
    fs::write(root.join(".git/info/attributes"), "* filter=evil\n")?;
    Ok(())
}

#[tokio::test]
async fn hooks_and_settings_of_what_is_shown_are_never_obeyed_and_gone_with_the_next_move()
-> anyhow::Result<()> {
    let world = World::new()?;
    let (clone, mut slot) = shown(&world).await?;
    let mark = world.directory.path().join("mark");
    let root = slot.root().to_owned();
    arm(&root, &mark)?;
    write(&root, "new.txt", "x")?;
    let message = CommitMessage::new("work");
    let snapshot = slot.snapshot(&message, now(), &|_| true).await?;
    assert_eq!(snapshot.changed.len(), 1, "{:?}", snapshot.changed);
    slot.restore(now()).await?;
    assert!(!mark.exists());
    assert!(!root.join(".git/hooks").exists());
    assert_eq!(git(&root, &["config", "--get", "core.bare"])?, "false");
    assert_eq!(git(&root, &["status", "--short"])?, "");
    let base = clone.default_branch_head().await?.commit;
    slot.move_to(&base, now()).await?;
    assert_eq!(head(&root)?, base.as_str());
    Ok(())
}

#[tokio::test]
async fn whatever_lies_in_the_place_of_what_is_shown_is_in_no_commit_and_taken_away()
-> anyhow::Result<()> {
    let world = World::new()?;
    let (_, mut slot) = shown(&world).await?;
    let root = slot.root().to_owned();
    let elsewhere = world.directory.path().join("elsewhere");
    fs::create_dir(&elsewhere)?;
    fs::write(elsewhere.join("kept"), "x")?;
    let place = root.join(".git");
    for attack in 0..4 {
        fs::remove_dir_all(&place)?;
        match attack {
            0 => symlink(&elsewhere, &place)?,
            1 => fs::write(&place, format!("gitdir: {}\n", world.user.display()))?,
            2 => drop(git(&root, &["init", "-q", "--bare", ".git"])?),
            _ => {
                let made = Command::new("mkfifo").arg(&place).status()?;
                anyhow::ensure!(made.success());
            }
        }
        write(&root, "new.txt", &format!("{attack}"))?;
        let message = CommitMessage::new("work");
        let snapshot = slot.snapshot(&message, now(), &|_| true).await?;
        let changed: Vec<&str> = snapshot.changed.iter().map(|file| &*file.path).collect();
        assert_eq!((changed, snapshot.left_out.len()), (vec!["new.txt"], 0));
        slot.restore(now()).await?;
        assert_eq!(
            git(&root, &["log", "-1", "--format=%s"])?,
            "The build so far"
        );
    }
    assert_eq!(fs::read_to_string(elsewhere.join("kept"))?, "x");
    Ok(())
}

#[tokio::test]
async fn scratch_files_lie_beside_the_work_and_end_with_it() -> anyhow::Result<()> {
    let world = World::new()?;
    let (clone, mut slot) = shown(&world).await?;
    fs::write(slot.scratch().join("notes"), "x")?;
    assert_eq!(slot.changed_files().await?, []);
    slot.restore(now()).await?;
    assert_eq!(count(&slot.scratch())?, 0);
    let (root, scratch) = (slot.root().to_owned(), slot.scratch());
    slot.release(now()).await?;
    assert!(!scratch.exists() && !root.join(".git").exists());
    assert!(clone.state().is_dir());
    Ok(())
}
