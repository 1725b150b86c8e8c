//! Rebases candidates in memory.

use ropewalk_workspace::Rebase;

use crate::world::{World, commit};

#[tokio::test]
async fn a_candidate_on_the_head_stays_as_it_is() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let head = clone.default_branch_head().await?.commit;
    let candidate = commit(&clone, &head, "a", "a").await?;
    let Rebase::Rebased(rebased) = clone.rebase(&candidate, &head).await? else {
        anyhow::bail!("conflict");
    };
    assert_eq!((rebased.commit, rebased.tree_changed), (candidate, false));
    Ok(())
}

#[tokio::test]
async fn a_candidate_is_put_on_a_head_that_moved_on() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let base = clone.default_branch_head().await?.commit;
    let candidate = commit(&clone, &base, "README.md", "one\ntwo\nthree\nfour\n").await?;
    let head = commit(&clone, &base, "src/main.rs", "fn main() { run() }\n").await?;
    let Rebase::Rebased(rebased) = clone.rebase(&candidate, &head).await? else {
        anyhow::bail!("conflict");
    };
    assert!(rebased.tree_changed);
    let log = clone.log(Some(&base), &rebased.commit).await?;
    let subjects: Vec<&str> = log.iter().map(|commit| commit.subject.as_str()).collect();
    assert_eq!(subjects, ["change src/main.rs", "change README.md"]);
    let task = ("Ropewalk-Task".to_owned(), "T-001".to_owned());
    assert!(log[1].trailers.contains(&task));
    assert_eq!(
        (&log[1].tree, &log[1].parents),
        (&rebased.tree, &vec![head])
    );
    assert_eq!(
        clone.read_file(&rebased.commit, "src/main.rs").await?,
        Some(b"fn main() { run() }\n".to_vec())
    );
    Ok(())
}

#[tokio::test]
async fn a_conflict_shows_both_sides() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let base = clone.default_branch_head().await?.commit;
    let candidate = commit(&clone, &base, "README.md", "one\nMINE\nthree\n").await?;
    let candidate = {
        // Both also add the same new file.
        let with_new = commit(&clone, &base, "new.txt", "mine\n").await?;
        assert_ne!(with_new, candidate);
        candidate
    };
    let head = commit(&clone, &base, "README.md", "one\nTHEIRS\nthree\n").await?;
    let Rebase::Conflict(files) = clone.rebase(&candidate, &head).await? else {
        anyhow::bail!("no conflict");
    };
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].path, "README.md");
    assert_eq!(files[0].base.as_deref(), Some("one\ntwo\nthree\n"));
    assert_eq!(files[0].head.as_deref(), Some("one\nTHEIRS\nthree\n"));
    assert_eq!(files[0].candidate.as_deref(), Some("one\nMINE\nthree\n"));
    assert!(
        files[0]
            .hunks
            .as_deref()
            .is_some_and(|text| text.contains("<<<<<<<"))
    );
    Ok(())
}

#[tokio::test]
async fn a_file_that_both_added_has_no_base() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let base = clone.default_branch_head().await?.commit;
    let candidate = commit(&clone, &base, "new.txt", "mine\n").await?;
    let head = commit(&clone, &base, "new.txt", "theirs\n").await?;
    let Rebase::Conflict(files) = clone.rebase(&candidate, &head).await? else {
        anyhow::bail!("no conflict");
    };
    assert_eq!(
        (files[0].base.as_deref(), files[0].head.as_deref()),
        (None, Some("theirs\n"))
    );
    assert_eq!(files[0].candidate.as_deref(), Some("mine\n"));
    Ok(())
}

#[tokio::test]
async fn attributes_of_the_head_say_how_a_file_is_joined() -> anyhow::Result<()> {
    for (attributes, joins) in [
        ("docs/.gitattributes", true),
        ("elsewhere/.gitattributes", false),
    ] {
        let world = World::new()?;
        world.write("docs/log.md", "one\n")?;
        world.write(attributes, "*.md merge=union\n")?;
        world.git(&["add", "-A"])?;
        world.git(&["commit", "-q", "-m", "log"])?;
        let clone = world.clone().await?;
        let base = clone.default_branch_head().await?.commit;
        let candidate = commit(&clone, &base, "docs/log.md", "one\nmine\n").await?;
        let head = commit(&clone, &base, "docs/log.md", "one\ntheirs\n").await?;
        let rebase = clone.rebase(&candidate, &head).await?;
        let Rebase::Rebased(rebased) = rebase else {
            assert!(!joins, "{attributes}");
            continue;
        };
        assert!(joins, "{attributes}");
        assert_eq!(
            clone.read_file(&rebased.commit, "docs/log.md").await?,
            Some(b"one\ntheirs\nmine\n".to_vec())
        );
        assert!(
            std::fs::read_dir(&world.state)?
                .flatten()
                .all(|entry| !entry.file_name().to_string_lossy().starts_with(".tmp"))
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_merge_driver_of_the_repository_does_not_run() -> anyhow::Result<()> {
    let world = World::new()?;
    let fired = world.directory.path().join("fired");
    let driver = format!("echo driver >> '{}'", fired.display());
    world.git(&["config", "merge.own.driver", &driver])?;
    world.write(".gitattributes", "*.md merge=own\n")?;
    world.git(&["add", "-A"])?;
    world.git(&["commit", "-q", "-m", "a driver"])?;
    let clone = world.clone().await?;
    let base = clone.default_branch_head().await?.commit;
    let candidate = commit(&clone, &base, "README.md", "one\nMINE\nthree\n").await?;
    let head = commit(&clone, &base, "README.md", "one\nTHEIRS\nthree\n").await?;
    let rebase = clone.rebase(&candidate, &head).await?;
    assert!(matches!(rebase, Rebase::Conflict(_)), "{rebase:?}");
    assert!(!fired.exists());
    Ok(())
}
