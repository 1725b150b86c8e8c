//! Opens clones of clean, dirty, bare, empty and hostile repositories, and reads and writes objects.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use ropewalk_schemas::RepoPath;
use ropewalk_schemas::advice::{Advice, Words};
use ropewalk_workspace::clone::{FileChange, FileKind};
use ropewalk_workspace::commit::NewCommit;
use ropewalk_workspace::{
    ChangeKind, ChangedFile, CommitMessage, Git, GitError, UserRepository, source,
};

use crate::world::{World, commit, environment, git, key, now, picture, poison};

#[tokio::test]
async fn a_clone_has_the_head_of_the_user() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let head = clone.default_branch_head().await?;
    assert_eq!(head.branch.as_deref(), Some("main"));
    assert_eq!(head.commit.as_str(), world.git(&["rev-parse", "HEAD"])?);
    assert_eq!(
        clone.read_file(&head.commit, "src/main.rs").await?,
        Some(b"fn main() {}\n".to_vec())
    );
    assert_eq!(clone.read_file(&head.commit, "src").await?, None);
    assert_eq!(clone.read_file(&head.commit, "missing\nfile").await?, None);
    Ok(())
}

#[tokio::test]
async fn new_commits_of_the_user_arrive_by_fetch() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    world.git(&["commit", "-q", "--allow-empty", "-m", "more"])?;
    let head = clone.default_branch_head().await?;
    assert_eq!(head.commit.as_str(), world.git(&["rev-parse", "HEAD"])?);
    assert!(clone.tree_of(&head.commit).await.is_ok());
    // A second opening finds the same clone with everything in it.
    clone.preserve(&key(1)?, &head.commit).await?;
    assert_eq!(world.clone().await?.preserved(None).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn dirty_and_clean_checkouts_are_told_apart_and_left_alone() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    assert!(!clone.user_is_dirty().await?);
    for dirty in ["untracked", "unstaged", "staged"] {
        match dirty {
            "untracked" => world.write("new.txt", "x")?,
            "unstaged" => world.write("README.md", "changed\n")?,
            _ => {
                world.write("README.md", "changed\n")?;
                world.git(&["add", "README.md"]).map(drop)?;
            }
        }
        let before = picture(&world.user)?.len();
        assert!(clone.user_is_dirty().await?, "{dirty}");
        assert_eq!(picture(&world.user)?.len(), before);
        world.git(&["reset", "-q", "--hard"])?;
        world.git(&["clean", "-qfdx"])?;
    }
    Ok(())
}

#[tokio::test]
async fn a_bare_repository_is_accepted() -> anyhow::Result<()> {
    let mut world = World::new()?;
    let bare = world.directory.path().join("bare.git");
    git(
        world.directory.path(),
        &["clone", "-q", "--bare", "user repo", "bare.git"],
    )?;
    world.user = bare;
    let clone = world.clone().await?;
    assert!(clone.user().bare);
    assert!(!clone.user_is_dirty().await?);
    assert_eq!(
        clone.default_branch_head().await?.branch.as_deref(),
        Some("main")
    );
    Ok(())
}

#[tokio::test]
async fn a_repository_without_a_commit_is_refused_with_the_remedy() -> anyhow::Result<()> {
    let world = World::empty()?;
    let error = world.try_clone().await.err();
    assert!(matches!(&error, Some(GitError::NoCommit(_))), "{error:?}");
    assert!(!world.state.join("repository.git").exists());
    Ok(())
}

#[tokio::test]
async fn a_directory_inside_a_repository_is_not_taken_for_it() -> anyhow::Result<()> {
    let mut world = World::new()?;
    let root = world.user.canonicalize()?;
    world.user = world.user.join("src");
    let error = world.try_clone().await.err();
    let Some(GitError::NotARepository { within, .. }) = &error else {
        anyhow::bail!("{error:?}");
    };
    assert_eq!(within.as_ref(), Some(&root));
    let next = error.as_ref().and_then(Advice::next).unwrap_or_default();
    assert!(next.starts_with("its repository is `"), "{next}");
    Ok(())
}

#[tokio::test]
async fn shallow_and_detached_repositories_are_accepted() -> anyhow::Result<()> {
    let mut world = World::new()?;
    world.git(&["commit", "-q", "--allow-empty", "-m", "more"])?;
    let source = format!("file://{}", world.user.display());
    git(
        world.directory.path(),
        &["clone", "-q", "--depth", "1", &source, "shallow"],
    )?;
    world.user = world.directory.path().join("shallow");
    world.git(&["checkout", "-q", "--detach"])?;
    let clone = world.clone().await?;
    let head = clone.default_branch_head().await?;
    assert_eq!(head.branch, None);
    assert_eq!(clone.log(None, &head.commit).await?.len(), 1);
    let next = commit(&clone, &head.commit, "a", "a").await?;
    clone.publish("build/x", &next, None).await?;
    assert_eq!(world.git(&["rev-parse", "build/x"])?, next.as_str());
    Ok(())
}

#[tokio::test]
async fn nothing_that_the_user_configured_runs() -> anyhow::Result<()> {
    let world = World::new()?;
    let fired = poison(&world)?;
    world.write("README.md", "dirty\n")?;
    let clone = world.clone().await?;
    let head = clone.default_branch_head().await?.commit;
    assert!(clone.user_is_dirty().await?);
    let next = commit(&clone, &head, "README.md", "four\n").await?;
    clone.diff_of(head.as_str(), next.as_str(), &[]).await?;
    clone.publish("build/x", &next, None).await?;
    clone.fetch().await?;
    assert!(!fired.exists(), "{}", fs::read_to_string(&fired)?);
    // The trap works: the user's own git falls into it.
    world.git(&["status"])?;
    assert!(fired.exists());
    Ok(())
}

#[tokio::test]
async fn a_file_is_restored_as_it_was_and_may_be_run_or_leads_elsewhere_as_it_did()
-> anyhow::Result<()> {
    let world = World::new()?;
    let script = world.user.join("check.sh");
    fs::write(&script, "exit 0\n")?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    std::os::unix::fs::symlink("check.sh", world.user.join("link"))?;
    world.git(&["add", "."])?;
    world.git(&["commit", "-q", "-m", "a script and a link"])?;
    let clone = world.clone().await?;
    let was = clone.default_branch_head().await?.commit;
    let mut now = was.clone();
    for path in ["check.sh", "link", "new"] {
        now = commit(&clone, &now, path, "changed\n").await?;
    }
    let restore = ["check.sh", "link", "new"].map(|path| FileChange::Restore {
        path: RepoPath::parse(path).unwrap(),
        from: was.clone(),
    });
    let restored = clone.create_tree(&now, &restore).await?;
    assert_eq!(restored, clone.tree_of(&was).await?);
    assert_ne!(restored, clone.tree_of(&now).await?);
    Ok(())
}

#[tokio::test]
async fn a_tree_is_made_without_a_checkout() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let head = clone.default_branch_head().await?.commit;
    let changes = [
        FileChange::Write {
            path: RepoPath::parse("ideas/habits/build/spec.md")?,
            content: b"\xffspec".to_vec(),
        },
        FileChange::Write {
            path: RepoPath::parse("README.md")?,
            content: b"new\n".to_vec(),
        },
        FileChange::Remove(RepoPath::parse("src/main.rs")?),
        FileChange::Remove(RepoPath::parse("never/was")?),
    ];
    let tree = clone.create_tree(&head, &changes).await?;
    let message = CommitMessage::new("add the idea")
        .with_body("why")
        .with_trailer("Ropewalk-Task", "T-001")
        .with_trailer("Ropewalk-Execution", "e1");
    let parents = [head.clone()];
    let new = || NewCommit {
        tree: &tree,
        parents: &parents,
        message: &message,
        when: now(),
    };
    let made = clone.create_commit(new()).await?;
    assert_eq!(clone.create_commit(new()).await?, made);
    let file = |path: &str, kind| ChangedFile {
        path: path.to_owned(),
        kind,
    };
    assert_eq!(
        clone.changed_files(head.as_str(), made.as_str()).await?,
        [
            file("README.md", ChangeKind::Modified),
            file("ideas/habits/build/spec.md", ChangeKind::Added),
            file("src/main.rs", ChangeKind::Deleted),
        ]
    );
    assert_eq!(
        clone
            .read_file(&made, "ideas/habits/build/spec.md")
            .await?
            .as_deref(),
        Some(&b"\xffspec"[..])
    );
    let listed = clone.list_files(&made, "ideas").await?;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].kind, FileKind::Plain);
    let log = clone.log(Some(&head), &made).await?;
    assert_eq!(log.len(), 1);
    assert_eq!(log[0].subject, "add the idea");
    assert_eq!(log[0].trailers.len(), 2);
    let task = ("Ropewalk-Task".to_owned(), "T-001".to_owned());
    assert_eq!(log[0].trailers[0], task);
    assert_eq!((log[0].committed_at, log[0].tree.clone()), (now(), tree));
    assert!(clone.is_ancestor(&head, &made).await? && !clone.is_ancestor(&made, &head).await?);
    Ok(())
}

#[tokio::test]
async fn the_lines_that_differ_are_counted_file_by_file() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let head = clone.default_branch_head().await?.commit;
    let first = commit(&clone, &head, "a é.txt", "one\ntwo\n").await?;
    let second = commit(&clone, &first, "a é.txt", "two\nthree\nfour\n").await?;
    let third = commit(&clone, &second, "bytes", "\0\u{1}\0").await?;
    let lines = clone.changed_lines(first.as_str(), third.as_str()).await?;
    let lines: Vec<_> = lines
        .iter()
        .map(|file| (file.path.as_str(), file.lines))
        .collect();
    assert_eq!(lines, [("a é.txt", Some((2, 1))), ("bytes", None)]);
    let none = clone.changed_lines(first.as_str(), first.as_str()).await?;
    assert_eq!(none, []);
    Ok(())
}

#[tokio::test]
async fn a_long_difference_is_cut() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let head = clone.default_branch_head().await?.commit;
    let next = commit(
        &clone,
        &head,
        "big.txt",
        &"a line of text\n".repeat(100_000),
    )
    .await?;
    let diff = clone.diff_of(head.as_str(), next.as_str(), &[]).await?;
    assert!(diff.truncated && diff.text.len() < 300 * 1024);
    assert!(diff.text.starts_with("diff --git"));
    Ok(())
}

#[tokio::test]
async fn a_ref_moves_only_from_where_it_is_expected() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let head = clone.default_branch_head().await?.commit;
    let next = commit(&clone, &head, "a", "a").await?;
    let name = "refs/ropewalk/test";
    clone.update_ref_cas(name, &head, None).await?;
    let again = clone.update_ref_cas(name, &next, None).await;
    assert!(
        matches!(again, Err(GitError::RefMoved { actual: Some(at), .. }) if at == head.as_str())
    );
    clone.update_ref_cas(name, &next, Some(&head)).await?;
    assert_eq!(clone.resolve(name).await?, Some(next));
    assert_eq!(clone.resolve("refs/ropewalk/none").await?, None);
    Ok(())
}

#[tokio::test]
async fn the_lock_of_a_killed_git_on_a_ref_is_cleared() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let head = clone.default_branch_head().await?.commit;
    let lock = clone.directory().join("refs/ropewalk/test.lock");
    fs::create_dir_all(lock.parent().unwrap_or(clone.directory()))?;
    fs::write(&lock, "")?;
    assert!(
        clone
            .update_ref_cas("refs/ropewalk/test", &head, None)
            .await
            .is_err(),
        "it is held"
    );
    let hour_ago = fs::metadata(&lock)?.modified()? - std::time::Duration::from_hours(1);
    fs::File::options()
        .write(true)
        .open(&lock)?
        .set_modified(hour_ago)?;
    clone
        .update_ref_cas("refs/ropewalk/test", &head, None)
        .await?;
    Ok(())
}

#[tokio::test]
async fn work_is_preserved_past_the_lock_that_a_killed_git_left() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let head = clone.default_branch_head().await?.commit;
    let reference = format!("refs/ropewalk/preserve/{}", key(1)?);
    let lock = clone.directory().join(format!("{reference}.lock"));
    std::fs::create_dir_all(lock.parent().unwrap_or(clone.directory()))?;
    std::fs::write(&lock, "")?;
    let kept = clone.preserve(&key(1)?, &head).await?;
    assert_eq!(kept.reference, format!("{reference}-2"));
    Ok(())
}

#[tokio::test]
async fn work_under_a_preserve_ref_is_never_overwritten() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let head = clone.default_branch_head().await?.commit;
    let next = commit(&clone, &head, "a", "a").await?;
    let first = clone.preserve(&key(1)?, &head).await?;
    let second = clone.preserve(&key(1)?, &next).await?;
    assert_eq!(clone.preserve(&key(1)?, &head).await?, first);
    assert_eq!(clone.preserve(&key(1)?, &next).await?, second);
    assert!(first.reference.ends_with("/T-001/1") && second.reference.ends_with("/T-001/1-2"));
    assert_eq!(clone.preserved(Some(key(1)?.build)).await?, [first, second]);
    Ok(())
}

#[tokio::test]
async fn a_new_repository_holds_the_files_of_its_directory() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    fs::write(directory.path().join("README.md"), "# New\n")?;
    let git = Git::open(&environment()).await?;
    let made = UserRepository::create(&git, directory.path(), "main", "Begin").await?;
    assert!(!made.bare);
    assert_eq!(picture_of_head(directory.path())?, "main Begin README.md");
    Ok(())
}

#[test]
fn a_linked_worktree_has_its_git_directories_in_its_repository() -> anyhow::Result<()> {
    let world = World::new()?;
    let linked = world.directory.path().join("linked");
    let at = linked.display().to_string();
    world.git(&["worktree", "add", "--quiet", "--detach", &at])?;
    let shared = world.user.canonicalize()?.join(".git");
    let own = shared.join("worktrees/linked");
    assert_eq!(
        source::git_directories(&world.user),
        std::slice::from_ref(&shared)
    );
    assert_eq!(source::git_directories(&linked), [shared, own]);
    let nowhere = source::git_directories(world.directory.path());
    assert_eq!(nowhere, Vec::<PathBuf>::new());
    Ok(())
}

fn picture_of_head(repository: &std::path::Path) -> anyhow::Result<String> {
    let branch = git(repository, &["symbolic-ref", "--short", "HEAD"])?;
    let subject = git(repository, &["log", "-1", "--format=%s"])?;
    let files = git(repository, &["ls-tree", "--name-only", "HEAD"])?;
    Ok(format!("{branch} {subject} {files}"))
}

#[tokio::test]
async fn a_partial_clone_is_refused_with_what_mends_it() -> anyhow::Result<()> {
    let mut world = World::new()?;
    for name in ["allowFilter", "allowAnySHA1InWant"] {
        world.git(&["config", &format!("uploadpack.{name}"), "true"])?;
    }
    world.write("README.md", "another\n")?;
    world.git(&["commit", "-q", "-a", "-m", "later"])?;
    let whole = format!("file://{}", world.user.display());
    let directory = world.directory.path().to_owned();
    crate::world::git(
        &directory,
        &["clone", "-q", "--filter=blob:none", &whole, "part"],
    )?;
    world.user = directory.join("part").canonicalize()?;
    let refused = world.try_clone().await.err();
    let part = world.user.display();
    assert_eq!(
        refused.map(|error| Words::of(&error).to_string()),
        Some(format!(
            "`{part}` is a partial clone, and every file is needed; run \
             `git -C '{part}' config --unset remote.origin.partialclonefilter` and `git -C '{part}' fetch --refetch origin`"
        ))
    );
    world.git(&["config", "--unset", "remote.origin.partialclonefilter"])?;
    world.git(&["fetch", "-q", "--refetch", "origin"])?;
    world.clone().await?;
    Ok(())
}
