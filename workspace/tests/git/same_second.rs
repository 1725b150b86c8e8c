//! Changes files to others of the same length within the second in which git wrote them.
//!
//! Git tells two states of a file by whole seconds, and reads again only what is as young as the index that names it.
//! A copy of an index is younger than all of that.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use ropewalk_runtime::Clock;
use ropewalk_workspace::{ChangeKind, ChangedFile, CommitMessage};

use crate::slots::slot;
use crate::world::{World, now};

/// How long a change is tried to be made within such a second.
const PATIENCE: Duration = Duration::from_mins(1);

/// Waits for the beginning of a second.
async fn next_second() {
    let part = Clock::system().now().timestamp_subsec_millis();
    tokio::time::sleep(Duration::from_millis(1005 - u64::from(part.min(999)))).await;
}

/// Writes over `file` without another length, and says that it was written in the same second.
fn change(file: &Path) -> anyhow::Result<bool> {
    let before = fs::metadata(file)?;
    let upper = fs::read_to_string(file)?.to_uppercase();
    fs::write(file, upper)?;
    let after = fs::metadata(file)?;
    assert_eq!((before.len(), before.ino()), (after.len(), after.ino()));
    Ok(before.mtime() == after.mtime())
}

#[tokio::test]
async fn a_snapshot_holds_what_was_changed_in_the_second_of_the_checkout() -> anyhow::Result<()> {
    let (mut met, begun) = (0, Instant::now());
    while begun.elapsed() < PATIENCE {
        let world = World::new()?;
        let clone = world.clone().await?;
        let _open = clone.default_branch_head().await?;
        next_second().await;
        let (clone, mut slot, head) = slot(&world).await?;
        met += u32::from(change(&slot.root().join("src/main.rs"))?);
        next_second().await;
        let message = CommitMessage::new("work");
        let snapshot = slot.snapshot(&message, now(), &|_| true).await?;
        let changed = ChangedFile {
            path: "src/main.rs".to_owned(),
            kind: ChangeKind::Modified,
        };
        assert_eq!(snapshot.changed, [changed]);
        let content = clone.read_file(&snapshot.commit, "src/main.rs").await?;
        assert_eq!(content.as_deref(), Some(&b"FN MAIN() {}\n"[..]));
        assert_eq!(clone.read_file(&head, "README.md").await?, {
            clone.read_file(&snapshot.commit, "README.md").await?
        });
        if met > 0 {
            return Ok(());
        }
    }
    anyhow::bail!("no change fell into the second of its checkout")
}

#[tokio::test]
async fn a_user_who_wrote_in_the_second_of_a_commit_has_changes() -> anyhow::Result<()> {
    let (mut met, begun) = (0, Instant::now());
    while begun.elapsed() < PATIENCE {
        let world = World::new()?;
        let clone = world.clone().await?;
        next_second().await;
        world.write("README.md", "other\n")?;
        world.git(&["commit", "-q", "-a", "-m", "other"])?;
        assert!(!clone.user_is_dirty().await?);
        met += u32::from(change(&world.user.join("README.md"))?);
        next_second().await;
        assert!(clone.user_is_dirty().await?);
        if met > 0 {
            return Ok(());
        }
    }
    anyhow::bail!("no change fell into the second of its commit")
}
