//! Misuses slots in every way that a program can, and expects the commit back.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use nix::sys::stat::Mode;
use ropewalk_schemas::{CommitId, RepoPath};
use ropewalk_workspace::clone::FileChange;
use ropewalk_workspace::commit::NewCommit;
use ropewalk_workspace::{
    ChangeKind, ChangedFile, CleanPool, CommitMessage, LocalClone, Rebase, Slot, SlotError,
    SlotPool,
};

use ropewalk_tests::namespaces;

use crate::world::{World, commit, git, key, make_executable, now, picture, poison, write};

pub(crate) async fn slot(world: &World) -> anyhow::Result<(LocalClone, Slot, CommitId)> {
    let clone = world.clone().await?;
    let head = clone.default_branch_head().await?.commit;
    let slot = SlotPool::new(clone.clone(), 2)
        .acquire(&key(1)?, &head, now())
        .await?;
    Ok((clone, slot, head))
}

fn file(path: &str, kind: ChangeKind) -> ChangedFile {
    ChangedFile {
        path: path.to_owned(),
        kind,
    }
}

fn expected() -> Vec<(String, String)> {
    [
        ("README.md", "one\ntwo\nthree\n"),
        ("src", "directory"),
        ("src/main.rs", "fn main() {}\n"),
    ]
    .map(|(path, content)| (path.to_owned(), content.to_owned()))
    .to_vec()
}

/// A repository that ignores what is made below `target`.
fn ignoring() -> anyhow::Result<World> {
    let world = World::new()?;
    world.write(".gitignore", "target/\n")?;
    world.git(&["add", "-A"])?;
    world.git(&["commit", "-q", "-m", "ignore"])?;
    Ok(world)
}

#[tokio::test]
async fn a_slot_moves_from_commit_to_commit() -> anyhow::Result<()> {
    let world = World::new()?;
    let (clone, mut slot, head) = slot(&world).await?;
    assert_eq!(picture(slot.root())?, expected());
    let next = commit(&clone, &head, "other/file.txt", "x").await?;
    slot.move_to(&next, now()).await?;
    assert_eq!(fs::read_to_string(slot.root().join("other/file.txt"))?, "x");
    slot.move_to(&head, now()).await?;
    assert_eq!(picture(slot.root())?, expected());
    let unknown = CommitId::parse(&"1".repeat(40))?;
    assert!(slot.move_to(&unknown, now()).await.is_err());
    assert_eq!(slot.base(), Some(&head));
    Ok(())
}

#[tokio::test]
async fn a_snapshot_holds_what_is_in_scope_and_names_the_rest() -> anyhow::Result<()> {
    let world = ignoring()?;
    let (clone, mut slot, head) = slot(&world).await?;
    let root = slot.root().to_owned();
    write(&root, "src/main.rs", "fn main() { run() }\n")?;
    write(&root, "src/new name.rs", "new")?;
    write(&root, "target/product", "ignored")?;
    write(&root, "stray.txt", "stray")?;
    fs::remove_file(root.join("README.md"))?;
    let all = [
        file("README.md", ChangeKind::Deleted),
        file("src/main.rs", ChangeKind::Modified),
        file("src/new name.rs", ChangeKind::Added),
        file("stray.txt", ChangeKind::Added),
    ];
    assert_eq!(slot.changed_files().await?, all);
    let message = CommitMessage::new("do it").with_trailer("Ropewalk-Task", "T-001");
    let snapshot = slot
        .snapshot(&message, now(), &|file| file.path != "stray.txt")
        .await?;
    assert_eq!(snapshot.changed, all[..3]);
    assert_eq!(snapshot.left_out, all[3..]);
    assert_eq!(
        clone.log(Some(&head), &snapshot.commit).await?[0].parents,
        [head]
    );
    assert_eq!(
        clone.resolve(&snapshot.preserved.reference).await?,
        Some(snapshot.commit.clone())
    );
    assert_eq!(clone.tree_of(&snapshot.commit).await?, snapshot.tree);
    assert_eq!(
        slot.changed_files().await?,
        all,
        "the slot itself stays as it is"
    );
    Ok(())
}

#[tokio::test]
async fn restore_undoes_everything_a_program_can_do() -> anyhow::Result<()> {
    let world = World::new()?;
    let (_, mut slot, _) = slot(&world).await?;
    let root = slot.root().to_owned();
    let outside = world.directory.path().join("outside");
    fs::create_dir(&outside)?;
    fs::write(outside.join("keep"), "keep")?;
    // The twin of a directory behind a link, with the same inodes and times.
    fs::rename(root.join("src"), outside.join("src"))?;
    symlink(outside.join("src"), root.join("src"))?;
    fs::remove_file(root.join("README.md"))?;
    fs::create_dir(root.join("README.md"))?;
    write(&root, "README.md/deep/file", "x")?;
    write(&root, "ignored/target/file", "x")?;
    write(&root, "ignored/.gitignore", "*\n")?;
    symlink(&outside, root.join("link"))?;
    nix::unistd::mkfifo(&root.join("pipe"), Mode::S_IRWXU)?;
    fs::create_dir_all(root.join("locked/below"))?;
    fs::set_permissions(root.join("locked"), fs::Permissions::from_mode(0o000))?;
    git(&root, &["init", "-q", "nested"])?;
    git(
        &root.join("nested"),
        &["commit", "-q", "--allow-empty", "-m", "x"],
    )?;
    slot.restore(now()).await?;
    assert_eq!(picture(&root)?, expected());
    assert_eq!(fs::read_to_string(outside.join("keep"))?, "keep");
    assert_eq!(
        fs::read_to_string(outside.join("src/main.rs"))?,
        "fn main() {}\n"
    );
    Ok(())
}

#[tokio::test]
async fn a_touched_file_with_its_old_time_is_still_found() -> anyhow::Result<()> {
    let world = World::new()?;
    let (_, mut slot, _) = slot(&world).await?;
    let readme = slot.root().join("README.md");
    let time = fs::metadata(&readme)?.modified()?;
    fs::write(&readme, "one\nTWO\nthree\n")?;
    fs::File::options()
        .write(true)
        .open(&readme)?
        .set_modified(time)?;
    assert_eq!(
        slot.changed_files().await?,
        [file("README.md", ChangeKind::Modified)]
    );
    slot.restore(now()).await?;
    assert_eq!(picture(slot.root())?, expected());
    Ok(())
}

#[tokio::test]
async fn a_change_right_after_a_move_is_found() -> anyhow::Result<()> {
    let world = World::new()?;
    let (clone, mut slot, first) = slot(&world).await?;
    let next = commit(&clone, &first, "src/main.rs", "fn main() { 0 }\n").await?;
    let path = slot.root().join("src/main.rs");
    // Of the same length and within the same tick of the clock, again and again.
    for round in 1..=9 {
        slot.move_to(&first, now()).await?;
        slot.move_to(&next, now()).await?;
        fs::write(&path, format!("fn main() {{ {round} }}\n"))?;
        assert_eq!(
            slot.changed_files().await?,
            [file("src/main.rs", ChangeKind::Modified)]
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_file_that_was_only_touched_is_no_change() -> anyhow::Result<()> {
    let world = World::new()?;
    let (_, slot, _) = slot(&world).await?;
    let readme = slot.root().join("README.md");
    let text = fs::read(&readme)?;
    fs::write(&readme, text)?;
    assert_eq!(slot.changed_files().await?, []);
    fs::set_permissions(&readme, fs::Permissions::from_mode(0o755))?;
    assert_eq!(
        slot.changed_files().await?,
        [file("README.md", ChangeKind::Modified)]
    );
    Ok(())
}

#[tokio::test]
async fn a_slot_crosses_a_directory_that_becomes_a_file() -> anyhow::Result<()> {
    let world = World::new()?;
    let (clone, mut slot, head) = slot(&world).await?;
    let removed = clone
        .create_tree(
            &head,
            &[
                FileChange::Remove(RepoPath::parse("src/main.rs")?),
                FileChange::Write {
                    path: RepoPath::parse("src")?,
                    content: b"no directory".to_vec(),
                },
            ],
        )
        .await?;
    let flat = clone
        .create_commit(NewCommit {
            tree: &removed,
            parents: std::slice::from_ref(&head),
            message: &CommitMessage::new("flat"),
            when: now(),
        })
        .await?;
    // What an attempt left behind is in the way of both.
    write(slot.root(), "src/left/behind.txt", "x")?;
    slot.move_to(&flat, now()).await?;
    assert_eq!(fs::read_to_string(slot.root().join("src"))?, "no directory");
    write(slot.root(), "src.txt", "x")?;
    slot.move_to(&head, now()).await?;
    assert_eq!(picture(slot.root())?, expected());
    Ok(())
}

#[tokio::test]
async fn a_removed_or_swapped_tree_is_made_anew() -> anyhow::Result<()> {
    let world = World::new()?;
    let (_, mut slot, _) = slot(&world).await?;
    let root = slot.root().to_owned();
    fs::remove_dir_all(&root)?;
    assert!(matches!(
        slot.changed_files().await,
        Err(SlotError::Gone(_))
    ));
    slot.restore(now()).await?;
    assert_eq!(picture(&root)?, expected());
    let outside = world.directory.path().join("outside");
    fs::create_dir(&outside)?;
    fs::write(outside.join("keep"), "keep")?;
    fs::remove_dir_all(&root)?;
    symlink(&outside, &root)?;
    slot.restore(now()).await?;
    assert_eq!(picture(&root)?, expected());
    assert_eq!(picture(&outside)?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_stale_lock_or_a_damaged_index_is_overcome() -> anyhow::Result<()> {
    let world = World::new()?;
    let (_, mut slot, _) = slot(&world).await?;
    let home = slot.root().parent().map(Path::to_owned).unwrap_or_default();
    fs::write(home.join("index.lock"), "")?;
    write(slot.root(), "README.md", "changed")?;
    slot.restore(now()).await?;
    assert_eq!(picture(slot.root())?, expected());
    fs::write(home.join("index"), "garbage")?;
    write(slot.root(), "README.md", "unsaved")?;
    slot.restore(now()).await?;
    assert_eq!(picture(slot.root())?, expected());
    assert_eq!(
        fs::read_to_string(home.join("lost-1/README.md"))?,
        "unsaved"
    );
    Ok(())
}

#[tokio::test]
async fn unsaved_work_is_preserved_before_a_slot_moves() -> anyhow::Result<()> {
    let world = World::new()?;
    let (clone, mut slot, head) = slot(&world).await?;
    write(slot.root(), "src/half.rs", "half")?;
    slot.restore(now()).await?;
    let kept = clone.preserved(None).await?;
    assert_eq!(kept.len(), 1);
    assert_eq!(
        clone.read_file(&kept[0].commit, "src/half.rs").await?,
        Some(b"half".to_vec())
    );
    // What a snapshot holds already is not kept twice.
    write(slot.root(), "src/whole.rs", "whole")?;
    slot.snapshot(&CommitMessage::new("whole"), now(), &|_| true)
        .await?;
    slot.move_to(&head, now()).await?;
    assert_eq!(clone.preserved(None).await?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn a_slot_goes_on_to_a_later_commit_with_the_work_at_hand() -> anyhow::Result<()> {
    let world = ignoring()?;
    let (clone, mut slot, head) = slot(&world).await?;
    let root = slot.root().to_owned();
    write(&root, "src/main.rs", "fn main() { run() }\n")?;
    write(&root, "README.md", "mine")?;
    write(&root, "src/new.rs", "new")?;
    write(&root, "target/product", "ignored")?;
    let next = commit(&clone, &head, "README.md", "theirs").await?;
    let next = commit(&clone, &next, "src/late.rs", "late").await?;
    slot.follow(&next, now()).await?;
    assert_eq!(slot.base(), Some(&next));
    for (path, content) in [
        ("README.md", "theirs"),
        ("src/late.rs", "late"),
        ("src/main.rs", "fn main() { run() }\n"),
        ("src/new.rs", "new"),
        ("target/product", "ignored"),
    ] {
        assert_eq!(fs::read_to_string(root.join(path))?, content, "{path}");
    }
    let changed = [
        file("src/main.rs", ChangeKind::Modified),
        file("src/new.rs", ChangeKind::Added),
    ];
    assert_eq!(slot.changed_files().await?, changed);
    // What gave way was kept first.
    let kept = clone.preserved(None).await?;
    let kept = clone.read_file(&kept[0].commit, "README.md").await?;
    assert_eq!(kept, Some(b"mine".to_vec()));
    Ok(())
}

#[tokio::test]
async fn kept_work_is_laid_over_a_commit_with_its_modes_and_links() -> anyhow::Result<()> {
    let world = ignoring()?;
    let (clone, mut slot, head) = slot(&world).await?;
    let root = slot.root().to_owned();
    write(&root, "src/new.sh", "run")?;
    fs::set_permissions(root.join("src/new.sh"), fs::Permissions::from_mode(0o755))?;
    symlink("main.rs", root.join("src/link.rs"))?;
    write(&root, "src/main.rs", "fn main() { run() }\n")?;
    fs::remove_file(root.join("README.md"))?;
    let message = CommitMessage::new("kept");
    let kept = slot.snapshot(&message, now(), &|_| true).await?.commit;
    let work = slot.changed_files().await?;
    let next = commit(&clone, &head, "src/late.rs", "late").await?;
    slot.move_to(&next, now()).await?;
    assert_eq!(slot.changed_files().await?, []);
    let Rebase::Rebased(rebased) = clone.rebase(&kept, &next).await? else {
        panic!("it fits");
    };
    slot.lay_over(&rebased.commit, &[], now()).await?;
    assert_eq!(slot.base(), Some(&next));
    assert_eq!(slot.changed_files().await?, work);
    let mode = fs::metadata(root.join("src/new.sh"))?.permissions().mode();
    assert_eq!(mode & 0o111, 0o111);
    let target = fs::read_link(root.join("src/link.rs"))?;
    assert_eq!(target.to_str(), Some("main.rs"));
    assert_eq!(fs::read_to_string(root.join("src/late.rs"))?, "late");
    // What is left is as it was.
    slot.move_to(&next, now()).await?;
    let left = [
        file("README.md", ChangeKind::Deleted),
        file("src/new.sh", ChangeKind::Added),
        file("src/main.rs", ChangeKind::Modified),
    ];
    slot.lay_over(&rebased.commit, &left, now()).await?;
    let changed = [file("src/link.rs", ChangeKind::Added)];
    assert_eq!(slot.changed_files().await?, changed);
    assert!(root.join("README.md").exists());
    Ok(())
}

#[tokio::test]
async fn work_that_a_crash_left_in_a_slot_is_recovered() -> anyhow::Result<()> {
    let world = World::new()?;
    let (clone, slot, head) = slot(&world).await?;
    write(slot.root(), "src/half.rs", "half")?;
    let pool = SlotPool::new(clone.clone(), 2);
    assert_eq!(
        pool.recover(now()).await?,
        [],
        "a slot in use is left alone"
    );
    // A crash runs no code of ours: the slot is simply not given back.
    drop(slot);
    let found = pool.recover(now()).await?;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].key, key(1)?);
    let content = clone
        .read_file(&found[0].preserved.commit, "src/half.rs")
        .await?;
    assert_eq!(content, Some(b"half".to_vec()));
    assert_eq!(pool.recover(now()).await?, []);
    let again = pool.acquire(&key(2)?, &head, now()).await?;
    assert_eq!(picture(again.root())?, expected());
    Ok(())
}

#[tokio::test]
async fn a_pool_lends_each_slot_once() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let head = clone.default_branch_head().await?.commit;
    let pool = SlotPool::new(clone, 2);
    let first = pool.acquire(&key(1)?, &head, now()).await?;
    let second = pool.acquire(&key(2)?, &head, now()).await?;
    assert_ne!(first.root(), second.root());
    assert!(matches!(
        pool.acquire(&key(3)?, &head, now()).await,
        Err(SlotError::AllTaken(2))
    ));
    let root = first.root().to_owned();
    first.release(now()).await?;
    let again = pool.acquire(&key(3)?, &head, now()).await?;
    assert_eq!(again.root(), root);
    Ok(())
}

/// What is mounted cannot be removed, and a directory around it can still be moved.
#[tokio::test]
async fn a_slot_that_cannot_be_restored_is_retired_and_replaced() -> anyhow::Result<()> {
    if !namespaces::are_own() {
        let name = "slots::a_slot_that_cannot_be_restored_is_retired_and_replaced";
        return Ok(namespaces::run(name, &[])?);
    }
    let world = World::new()?;
    let (clone, slot, head) = slot(&world).await?;
    let home = slot.root().parent().unwrap_or(slot.root()).to_owned();
    let stays = slot.root().join("stays");
    fs::create_dir(&stays)?;
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "none"])
        .arg(&stays)
        .status()?;
    anyhow::ensure!(mounted.success());
    assert!(slot.release(now()).await.is_err());
    let pool = SlotPool::new(clone.clone(), 1);
    let next = pool.acquire(&key(2)?, &head, now()).await?;
    assert_eq!(picture(next.root())?, expected());
    let retirements = clone.take_retirements();
    let [retirement] = retirements.as_slice() else {
        anyhow::bail!("{retirements:?}");
    };
    assert_eq!(retirement.checkout, home);
    assert_eq!(retirement.place, home.with_file_name("retired-1-1"));
    assert!(retirement.place.join("tree/stays").is_dir());
    assert!(retirement.reason.contains("busy"), "{}", retirement.reason);
    next.release(now()).await?;
    pool.acquire(&key(3)?, &head, now()).await?;
    assert_eq!(clone.take_retirements(), []);

    // What stands against every checkout is not the fault of one.
    let unknown = "0123456789012345678901234567890123456789".parse()?;
    assert!(pool.acquire(&key(4)?, &unknown, now()).await.is_err());
    assert_eq!(clone.take_retirements(), []);
    Ok(())
}

#[tokio::test]
async fn what_a_killed_snapshot_left_is_cleared() -> anyhow::Result<()> {
    let world = World::new()?;
    let (clone, slot, head) = slot(&world).await?;
    let left = slot.root().with_file_name(".tmpAbC123");
    fs::create_dir(&left)?;
    fs::write(left.join("index"), "half")?;
    drop(slot);
    SlotPool::new(clone, 1)
        .acquire(&key(2)?, &head, now())
        .await?;
    assert!(!left.exists());
    Ok(())
}

#[tokio::test]
async fn hostile_content_of_a_slot_runs_nothing() -> anyhow::Result<()> {
    let world = World::new()?;
    let fired = poison(&world)?;
    let (_, mut slot, _) = slot(&world).await?;
    let root = slot.root().to_owned();
    // A nested repository and a `.git` file, both with the user's traps as their configuration.
    git(&root, &["init", "-q", "nested"])?;
    fs::copy(
        world.user.join(".git/config"),
        root.join("nested/.git/config"),
    )?;
    write(&root, "nested/file", "x")?;
    fs::write(
        root.join(".git"),
        format!("gitdir: {}\n", world.user.join(".git").display()),
    )?;
    write(
        &root,
        ".gitattributes",
        "* filter=trap diff=trap merge=trap text eol=crlf\n",
    )?;
    write(
        &root,
        ".gitmodules",
        "[submodule \"nested\"]\n path = nested\n url = ./nested\n ignore = none\n",
    )?;
    write(&root, "src/main.rs", "fn main() { changed() }\n")?;
    fs::remove_file(&fired).ok();
    let changed = slot.changed_files().await?;
    assert!(
        changed.contains(&file("src/main.rs", ChangeKind::Modified)),
        "{changed:?}"
    );
    let snapshot = slot
        .snapshot(&CommitMessage::new("x"), now(), &|_| true)
        .await?;
    assert!(
        snapshot
            .left_out
            .iter()
            .any(|file| file.path.starts_with("nested")),
        "{snapshot:?}"
    );
    slot.restore(now()).await?;
    assert!(!fired.exists(), "{}", fs::read_to_string(&fired)?);
    assert_eq!(picture(&root)?, expected());
    Ok(())
}

#[tokio::test]
async fn links_and_modes_are_part_of_a_snapshot() -> anyhow::Result<()> {
    let world = World::new()?;
    let (clone, mut slot, _) = slot(&world).await?;
    let root = slot.root().to_owned();
    make_executable(&root.join("README.md"))?;
    fs::rename(root.join("src"), world.directory.path().join("moved"))?;
    symlink(world.directory.path().join("moved"), root.join("src"))?;
    let snapshot = slot
        .snapshot(&CommitMessage::new("x"), now(), &|_| true)
        .await?;
    assert_eq!(
        snapshot.changed,
        [
            file("README.md", ChangeKind::Modified),
            file("src", ChangeKind::Added),
            file("src/main.rs", ChangeKind::Deleted),
        ]
    );
    assert_eq!(clone.list_files(&snapshot.commit, "").await?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn the_gate_has_a_clean_checkout_and_its_own_target() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let head = clone.default_branch_head().await?.commit;
    let next = commit(&clone, &head, "src/main.rs", "fn main() { next() }\n").await?;
    let pool = CleanPool::for_gates(clone, 1);
    let gate = pool.acquire(&head).await?;
    assert_eq!(picture(gate.root())?, expected());
    fs::write(gate.target_directory().join("product"), "built")?;
    write(gate.root(), "left/behind", "x")?;
    assert!(matches!(
        pool.acquire(&next).await,
        Err(SlotError::AllTaken(1))
    ));
    drop(gate);
    let gate = pool.acquire(&next).await?;
    assert_eq!(gate.commit(), Some(&next));
    assert_eq!(
        fs::read_to_string(gate.root().join("src/main.rs"))?,
        "fn main() { next() }\n"
    );
    assert!(!gate.root().join("left").exists());
    assert!(gate.target_directory().join("product").exists());
    assert!(!gate.target_directory().starts_with(gate.root()));
    Ok(())
}

#[tokio::test]
async fn work_of_the_attempt_before_is_not_kept_for_the_next_one() -> anyhow::Result<()> {
    let world = World::new()?;
    let (clone, slot, head) = slot(&world).await?;
    write(slot.root(), "src/half.rs", "half")?;
    slot.release(now()).await?;
    let next = SlotPool::new(clone.clone(), 2)
        .acquire(&key(2)?, &head, now())
        .await?;
    assert_eq!(picture(next.root())?, expected());
    let kept: Vec<String> = clone
        .preserved(None)
        .await?
        .into_iter()
        .map(|kept| kept.reference)
        .collect();
    assert_eq!(kept.len(), 1);
    assert!(kept[0].ends_with("/T-001/1"), "{kept:?}");
    Ok(())
}
