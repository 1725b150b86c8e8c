//! Brings finished work into branches of the user's repository and of remotes on this machine.

use ropewalk_schemas::CommitId;
use ropewalk_workspace::{
    CommitMessage, LocalClone, Merge, Notes, Publication, PublishError, PushError, Side,
};

use crate::world::{World, commit, git, now, poison};

fn message() -> CommitMessage {
    CommitMessage::new("Merge branch `build/x`")
}

fn notes(right: Side) -> Notes {
    let folder = "ideas/x/build".to_owned();
    Notes { folder, right }
}

async fn head(clone: &LocalClone) -> anyhow::Result<CommitId> {
    Ok(clone.fetch().await?.commit)
}

#[tokio::test]
async fn a_merge_moves_joins_or_shows_both_sides() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let base = head(&clone).await?;
    let ours = commit(&clone, &base, "README.md", "one\nMINE\nthree\n").await?;
    let merge = |head: CommitId, into: CommitId| {
        let clone = clone.clone();
        async move {
            clone
                .merge(&head, &into, &notes(Side::Into), &message(), now())
                .await
        }
    };
    assert_eq!(merge(ours.clone(), base.clone()).await?, Merge::FastForward);
    assert_eq!(merge(base.clone(), ours.clone()).await?, Merge::Contained);
    let beside = commit(&clone, &base, "beside.txt", "b\n").await?;
    let Merge::Merged(both) = merge(ours.clone(), beside.clone()).await? else {
        anyhow::bail!("not merged");
    };
    let log = clone.log(Some(&base), &both).await?;
    let merged = log.iter().find(|commit| commit.id == both);
    assert_eq!(
        merged.map(|commit| commit.parents.clone()),
        Some(vec![beside, ours.clone()])
    );
    let theirs = commit(&clone, &base, "README.md", "one\nTHEIRS\nthree\n").await?;
    let Merge::Conflict(files) = merge(ours, theirs).await? else {
        anyhow::bail!("no conflict");
    };
    assert_eq!(files[0].head.as_deref(), Some("one\nTHEIRS\nthree\n"));
    assert_eq!(files[0].candidate.as_deref(), Some("one\nMINE\nthree\n"));
    assert_eq!(world.git(&["rev-parse", "main"])?, base.as_str());
    Ok(())
}

#[tokio::test]
async fn what_two_builds_write_about_one_idea_is_no_conflict() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let base = head(&clone).await?;
    let plan = "ideas/x/build/spec.md";
    let ours = commit(&clone, &base, plan, "ours\n").await?;
    let theirs = commit(&clone, &base, plan, "theirs\n").await?;
    for (side, right) in [(Side::Head, "ours\n"), (Side::Into, "theirs\n")] {
        let (notes, message) = (notes(side), message());
        let merge = clone.merge(&ours, &theirs, &notes, &message, now());
        let Merge::Merged(both) = merge.await? else {
            anyhow::bail!("not merged");
        };
        let read = clone.read_file(&both, plan).await?;
        assert_eq!(read.as_deref(), Some(right.as_bytes()), "{side:?}");
    }
    // What the user changed beside it stands against each other as ever, and the notes do not, nor those of others.
    for path in ["README.md", "ideas/x/brief.md", "ideas/xy/build/spec.md"] {
        let ours = commit(&clone, &ours, path, "MINE\n").await?;
        let theirs = commit(&clone, &theirs, path, "THEIRS\n").await?;
        let (notes, message) = (notes(Side::Into), message());
        let merge = clone.merge(&ours, &theirs, &notes, &message, now());
        let Merge::Conflict(files) = merge.await? else {
            anyhow::bail!("no conflict");
        };
        assert_eq!(files.len(), 1);
        assert_eq!(files[0].path, path);
        let marked = clone.merge_marked(&theirs, &ours, &notes, &message, now());
        let read = clone.read_file(&marked.await?, plan).await?;
        assert_eq!(read.as_deref(), Some("theirs\n".as_bytes()));
    }
    Ok(())
}

#[tokio::test]
async fn where_two_branches_parted_is_found_unless_they_met_crosswise() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let base = head(&clone).await?;
    let ours = commit(&clone, &base, "ours.txt", "o\n").await?;
    let theirs = commit(&clone, &base, "theirs.txt", "t\n").await?;
    let join = |into: CommitId, other: CommitId| {
        let clone = clone.clone();
        async move {
            let (notes, message) = (notes(Side::Into), message());
            clone
                .merge_marked(&into, &other, &notes, &message, now())
                .await
        }
    };
    let joined = join(ours.clone(), theirs.clone()).await?;
    let crossed = join(theirs.clone(), ours.clone()).await?;
    for (one, other, expected) in [
        (&ours, &theirs, Some(&base)),
        (&joined, &theirs, Some(&theirs)),
        (&joined, &crossed, None),
    ] {
        let found = clone.merge_base(one, other).await?;
        assert_eq!(found.as_ref(), expected);
    }
    Ok(())
}

#[tokio::test]
async fn a_clean_checkout_follows_its_branch_and_keeps_its_own_files() -> anyhow::Result<()> {
    let world = World::new()?;
    world.write("notes.txt", "of nobody else\n")?;
    let clone = world.clone().await?;
    let base = head(&clone).await?;
    let next = commit(&clone, &base, "a.txt", "a\n").await?;
    clone.may_advance("main", &next, &base).await?;
    assert_eq!(world.git(&["rev-parse", "HEAD"])?, base.as_str());
    let moved = clone.advance("main", &next, &base).await?;
    assert_eq!(moved, Publication::Published);
    assert_eq!(world.git(&["rev-parse", "HEAD"])?, next.as_str());
    assert_eq!(world.git(&["status", "--porcelain"])?, "?? notes.txt");
    assert_eq!(std::fs::read_to_string(world.user.join("a.txt"))?, "a\n");
    let again = clone.advance("main", &next, &base).await?;
    assert_eq!(again, Publication::AlreadyThere);
    Ok(())
}

#[tokio::test]
async fn a_checkout_with_changes_or_files_in_the_way_is_left_alone() -> anyhow::Result<()> {
    for (path, content) in [("README.md", "changed\n"), ("a.txt", "in the way\n")] {
        let world = World::new()?;
        world.write(path, content)?;
        let clone = world.clone().await?;
        let base = head(&clone).await?;
        let next = commit(&clone, &base, "a.txt", "a\n").await?;
        let foreseen = clone.may_advance("main", &next, &base).await;
        let refused = clone.advance("main", &next, &base).await;
        for refused in [foreseen, refused.map(drop)] {
            assert!(
                matches!(
                    &refused,
                    Err(PublishError::Dirty { branch, files })
                        if branch == "main" && files.iter().eq([path])
                ),
                "{path}: {refused:?}"
            );
        }
        // A branch that is not checked out is in nobody's way.
        clone.may_advance("release", &next, &base).await?;
        assert_eq!(world.git(&["rev-parse", "main"])?, base.as_str());
        assert_eq!(std::fs::read_to_string(world.user.join(path))?, content);
    }
    Ok(())
}

#[tokio::test]
async fn a_branch_that_moved_meanwhile_is_not_advanced_and_no_hook_runs() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let base = head(&clone).await?;
    let next = commit(&clone, &base, "a.txt", "a\n").await?;
    world.git(&["branch", "release"])?;
    world.git(&["commit", "-q", "--allow-empty", "-m", "meanwhile"])?;
    let main: CommitId = world.git(&["rev-parse", "main"])?.parse()?;
    let other = clone.advance("main", &next, &base).await?;
    assert_eq!(other, Publication::MovedByOther { actual: Some(main) });
    let fired = poison(&world)?;
    clone.advance("release", &next, &base).await?;
    assert_eq!(world.git(&["rev-parse", "release"])?, next.as_str());
    assert!(!fired.exists(), "{}", std::fs::read_to_string(&fired)?);
    Ok(())
}

#[tokio::test]
async fn a_filter_of_the_repository_never_runs() -> anyhow::Result<()> {
    let world = World::new()?;
    let fired = world.directory.path().join("fired");
    let program = format!("sh -c 'echo filter >> {}; cat'", fired.display());
    for name in ["o'wn", "long"] {
        for verb in ["clean", "smudge", "process"] {
            world.git(&["config", &format!("filter.{name}.{verb}"), &program])?;
        }
        world.git(&["config", &format!("filter.{name}.required"), "true"])?;
    }
    world.git(&["branch", "release"])?;
    let clone = world.clone().await?;
    let base = head(&clone).await?;
    // The commit that lands says itself that its files go through the filter.
    let filtered = commit(&clone, &base, ".gitattributes", "*.txt filter=o'wn\n").await?;
    let next = commit(&clone, &filtered, "a.txt", "a\n").await?;
    clone.advance("main", &next, &base).await?;
    assert_eq!(std::fs::read_to_string(world.user.join("a.txt"))?, "a\n");
    assert!(!fired.exists(), "{}", std::fs::read_to_string(&fired)?);

    // From now on the checkout says so, and what lands would be written otherwise than git would.
    let later = commit(&clone, &next, "a.txt", "b\n").await?;
    let refused = clone.advance("main", &later, &next).await;
    assert!(
        matches!(&refused, Err(PublishError::Filtered { branch, filter }) if branch == "main" && filter == "o'wn"),
        "{refused:?}"
    );
    let plain = commit(&clone, &next, "b.md", "b\n").await?;
    clone.advance("main", &plain, &next).await?;
    assert_eq!(world.git(&["rev-parse", "main"])?, plain.as_str());
    assert!(!fired.exists());
    Ok(())
}

#[tokio::test]
async fn a_bare_remote_on_this_machine_is_pushed_to_and_never_forced() -> anyhow::Result<()> {
    let world = World::new()?;
    let remote = world.directory.path().join("remote.git");
    git(
        world.directory.path(),
        &["init", "-q", "--bare", "remote.git"],
    )?;
    world.git(&["remote", "add", "origin", "../remote.git"])?;
    world.git(&["remote", "add", "far", "https://example.org/x.git"])?;
    let clone = world.clone().await?;
    let base = head(&clone).await?;
    let next = commit(&clone, &base, "a.txt", "a\n").await?;
    clone.push_to("origin", "main", &next).await?;
    assert_eq!(git(&remote, &["rev-parse", "main"])?, next.as_str());
    clone.push_to("../remote.git", "main", &next).await?;
    let other = commit(&clone, &base, "b.txt", "b\n").await?;
    let refused = clone.push_to("origin", "main", &other).await;
    assert!(
        matches!(refused, Err(PushError::Refused { .. })),
        "{refused:?}"
    );
    assert_eq!(git(&remote, &["rev-parse", "main"])?, next.as_str());
    let later = commit(&clone, &next, "c.txt", "c\n").await?;
    clone.push_to("origin", "main", &later).await?;
    clone.push_to("origin", "main", &next).await?;
    let has_both = git(&remote, &["rev-parse", "main"])?;
    assert_eq!(has_both, later.as_str(), "it has that commit already");
    let far = clone.push_to("far", "main", &next).await;
    assert!(matches!(far, Err(PushError::NotLocal { .. })), "{far:?}");
    let unknown = clone.push_to("upstream", "main", &next).await;
    assert!(matches!(unknown, Err(PushError::Unknown(_))), "{unknown:?}");
    Ok(())
}
