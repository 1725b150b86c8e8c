//! Looks at the objects of the clone by git itself, after candidates were made aside.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::SystemTime;

use ropewalk_workspace::{CommitMessage, LocalClone, SlotPool};

use crate::world::{World, git, key, now, write};

/// Lists what lies aside in a clone.
fn aside(clone: &LocalClone) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(clone.directory().join("objects"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("tmp_") {
            found.push(path.clone());
        }
    }
    Ok(found)
}

#[tokio::test]
async fn a_candidate_is_whole_and_nothing_of_it_stays_aside() -> anyhow::Result<()> {
    let mut world = World::new()?;
    // Git takes lists of paths apart at colons, and quotes and backslashes mean something there.
    world.state = world.directory.path().join("\"st\\a:te\" \n1");
    let clone = world.clone().await?;
    let head = clone.default_branch_head().await?.commit;
    let pool = SlotPool::new(clone.clone(), 1);
    let mut slot = pool.acquire(&key(1)?, &head, now()).await?;
    for number in 0..60 {
        let path = format!("src/{}/file-{number}.rs", number % 7);
        write(slot.root(), &path, &format!("// {number}\n"))?;
    }
    let message = CommitMessage::new("add sixty files");
    let snapshot = slot.snapshot(&message, now(), &|_| true).await?;
    assert_eq!(snapshot.changed.len(), 60);
    assert_eq!(aside(&clone)?, Vec::<PathBuf>::new());
    git(clone.directory(), &["fsck", "--strict", "--no-dangling"])?;
    let commit = snapshot.commit.as_str();
    let shown = git(
        clone.directory(),
        &["show", &format!("{commit}:src/3/file-59.rs")],
    )?;
    assert_eq!(shown.trim_end(), "// 59");
    Ok(())
}

#[tokio::test]
async fn a_candidate_that_fails_leaves_no_object() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let head = clone.default_branch_head().await?.commit;
    let pool = SlotPool::new(clone.clone(), 1);
    let mut slot = pool.acquire(&key(1)?, &head, now()).await?;
    write(slot.root(), "src/new.rs", "new")?;
    let objects = |clone: &LocalClone| git(clone.directory(), &["count-objects", "-v"]);
    let before = objects(&clone)?;
    // Blob and tree can be made and the commit cannot, since its parent is away.
    let parent = clone
        .directory()
        .join("objects")
        .join(&head.as_str()[..2])
        .join(&head.as_str()[2..]);
    let hidden = world.directory.path().join("hidden");
    fs::rename(&parent, &hidden)?;
    let message = CommitMessage::new("add a file");
    let failed = slot.snapshot(&message, now(), &|_| true).await;
    fs::rename(&hidden, &parent)?;
    assert!(failed.is_err());
    assert_eq!(objects(&clone)?, before);
    assert_eq!(aside(&clone)?, Vec::<PathBuf>::new());
    slot.snapshot(&message, now(), &|_| true).await?;
    assert_ne!(objects(&clone)?, before);
    Ok(())
}

#[tokio::test]
async fn what_a_crash_left_aside_is_removed_when_it_is_old() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let objects = clone.directory().join("objects");
    let [old, new] = ["old", "new"].map(|name| objects.join(format!("tmp_objdir-{name}")));
    for place in [&old, &new] {
        fs::create_dir_all(place.join("ab"))?;
        fs::write(place.join("ab/cdef"), "half of an object")?;
    }
    File::open(&old)?.set_modified(SystemTime::UNIX_EPOCH)?;
    clone.fetch().await?;
    assert_eq!(aside(&clone)?, [new]);
    Ok(())
}
