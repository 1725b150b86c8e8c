//! Publishes branches into the user's repository and looks at what else moved there.

use std::fs;

use ropewalk_schemas::CommitId;
use ropewalk_workspace::{LocalClone, Publication, PublishError};

use crate::world::{World, commit, git, picture};

async fn two_commits(clone: &LocalClone) -> anyhow::Result<[CommitId; 2]> {
    let head = clone.default_branch_head().await?.commit;
    let first = commit(clone, &head, "a", "a").await?;
    let second = commit(clone, &first, "b", "b").await?;
    Ok([first, second])
}

#[tokio::test]
async fn a_branch_is_made_moved_and_left_where_it_is() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let [first, second] = two_commits(&clone).await?;
    assert_eq!(
        clone.publish("build/x", &first, None).await?,
        Publication::Published
    );
    assert_eq!(
        clone.publish("build/x", &first, None).await?,
        Publication::AlreadyThere
    );
    assert_eq!(
        clone.publish("build/x", &second, Some(&first)).await?,
        Publication::Published
    );
    assert_eq!(world.git(&["rev-parse", "build/x"])?, second.as_str());
    assert_eq!(clone.user_branch("build/x").await?, Some(second));
    assert_eq!(clone.user_branch("x").await?, None);
    world.git(&["fsck", "--strict"])?;
    Ok(())
}

#[tokio::test]
async fn a_branch_that_somebody_else_moved_stays() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let [first, second] = two_commits(&clone).await?;
    clone.publish("build/x", &first, None).await?;
    world.git(&["branch", "-f", "build/x", "main"])?;
    let main: CommitId = world.git(&["rev-parse", "main"])?.parse()?;
    let moved = Publication::MovedByOther {
        actual: Some(main.clone()),
    };
    assert_eq!(
        clone.publish("build/x", &second, Some(&first)).await?,
        moved
    );
    assert_eq!(clone.publish("build/x", &second, None).await?, moved);
    assert_eq!(clone.user_branch("build/x").await?, Some(main));
    world.git(&["branch", "-D", "build/x"])?;
    let deleted = Publication::MovedByOther { actual: None };
    assert_eq!(
        clone.publish("build/x", &second, Some(&first)).await?,
        deleted
    );
    Ok(())
}

#[tokio::test]
async fn a_landed_commit_is_never_rewritten() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let [first, second] = two_commits(&clone).await?;
    clone.publish("build/x", &second, None).await?;
    let back = clone.publish("build/x", &first, Some(&second)).await;
    assert!(
        matches!(back, Err(PublishError::Rewrites { .. })),
        "{back:?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_dirty_checkout_is_not_touched() -> anyhow::Result<()> {
    let world = World::new()?;
    world.write("README.md", "half written")?;
    world.write("new.txt", "untracked")?;
    let clone = world.clone().await?;
    let [first, _] = two_commits(&clone).await?;
    let index = fs::read(world.user.join(".git/index"))?;
    let config = fs::read(world.user.join(".git/config"))?;
    let before = picture_without_git(&world)?;
    clone.publish("build/x", &first, None).await?;
    assert_eq!(picture_without_git(&world)?, before);
    assert_eq!(fs::read(world.user.join(".git/index"))?, index);
    assert_eq!(fs::read(world.user.join(".git/config"))?, config);
    assert_eq!(world.git(&["symbolic-ref", "HEAD"])?, "refs/heads/main");
    Ok(())
}

fn picture_without_git(world: &World) -> anyhow::Result<Vec<(String, String)>> {
    let aside = world.directory.path().join("git aside");
    fs::rename(world.user.join(".git"), &aside)?;
    let picture = picture(&world.user);
    fs::rename(&aside, world.user.join(".git"))?;
    picture
}

#[tokio::test]
async fn a_branch_that_is_checked_out_is_refused() -> anyhow::Result<()> {
    let world = World::new()?;
    let clone = world.clone().await?;
    let [first, second] = two_commits(&clone).await?;
    clone.publish("build/x", &first, None).await?;
    world.git(&["checkout", "-q", "build/x"])?;
    world.git(&["config", "receive.denyCurrentBranch", "updateInstead"])?;
    let refused = clone.publish("build/x", &second, Some(&first)).await;
    assert!(
        matches!(refused, Err(PublishError::CheckedOut(_))),
        "{refused:?}"
    );
    assert!(!world.user.join("b").exists());
    Ok(())
}

#[tokio::test]
async fn a_name_that_cannot_be_is_refused_with_the_reason() -> anyhow::Result<()> {
    let world = World::new()?;
    world.git(&["branch", "build"])?;
    let clone = world.clone().await?;
    let [first, _] = two_commits(&clone).await?;
    let refused = clone.publish("build/x", &first, None).await;
    match refused {
        Err(PublishError::Refused { reason, .. }) => {
            assert!(reason.contains("'refs/heads/build' exists"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    Ok(())
}

#[tokio::test]
async fn a_bare_repository_gets_the_branch() -> anyhow::Result<()> {
    let mut world = World::new()?;
    git(
        world.directory.path(),
        &["clone", "-q", "--bare", "user repo", "bare.git"],
    )?;
    world.user = world.directory.path().join("bare.git");
    let clone = world.clone().await?;
    let [first, second] = two_commits(&clone).await?;
    clone.publish("build/x", &first, None).await?;
    clone.publish("build/x", &second, Some(&first)).await?;
    assert_eq!(world.git(&["rev-parse", "build/x"])?, second.as_str());
    Ok(())
}
