//! No commit is made that brings a secret of this program in.

use std::fs;

use ropewalk_runtime::secrets;
use ropewalk_schemas::RepoPath;
use ropewalk_workspace::clone::FileChange;
use ropewalk_workspace::{CommitMessage, GitError};

use crate::slots::slot;
use crate::world::{World, now, write};

const OLD: &str = "sk-canary-known-before-1";
const NEW: &str = "sk-canary-brought-in-2";

#[tokio::test]
async fn what_would_bring_a_secret_in_is_left_out_and_named() -> anyhow::Result<()> {
    secrets::keep([OLD, NEW]);
    let world = World::new()?;
    world.write("known.txt", OLD)?;
    world.git(&["add", "-A"])?;
    world.git(&["commit", "-q", "-m", "theirs"])?;
    let (clone, mut slot, head) = slot(&world).await?;
    let root = slot.root().to_owned();
    write(&root, "README.md", &format!("key = {NEW}\n"))?;
    write(&root, "known.txt", &format!("{OLD}, and more\n"))?;
    write(&root, "fine.txt", "fine\n")?;
    write(&root, &format!("{NEW}.txt"), "")?;
    std::os::unix::fs::symlink(format!("/{NEW}"), root.join("link"))?;
    fs::remove_file(root.join("src/main.rs"))?;
    let message = CommitMessage::new(format!("add {NEW}"));
    let snapshot = slot.snapshot(&message, now(), &|_| true).await?;
    let paths = |files: &[ropewalk_workspace::ChangedFile]| {
        files
            .iter()
            .map(|file| file.path.clone())
            .collect::<Vec<_>>()
    };
    let withheld = [
        "README.md".to_owned(),
        "link".to_owned(),
        format!("{NEW}.txt"),
    ];
    assert_eq!(paths(&snapshot.withheld), withheld);
    let changed = ["fine.txt", "known.txt", "src/main.rs"];
    assert_eq!(paths(&snapshot.changed), changed);
    let logged = clone.log(Some(&head), &snapshot.commit).await?;
    assert_eq!(logged[0].subject, "add [secret]");
    Ok(())
}

#[tokio::test]
async fn a_tree_is_not_made_of_a_text_that_holds_a_secret() -> anyhow::Result<()> {
    secrets::keep([NEW]);
    let world = World::new()?;
    let (clone, _, head) = slot(&world).await?;
    let change = FileChange::Write {
        path: RepoPath::parse("ideas/walks/README.md")?,
        content: format!("the key is {NEW}").into_bytes(),
    };
    let made = clone.create_tree(&head, &[change]).await;
    assert!(
        matches!(&made, Err(GitError::SecretHeld(path)) if path == "ideas/walks/README.md"),
        "{made:?}"
    );
    Ok(())
}
