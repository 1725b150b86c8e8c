//! Ownership of files by builds.

use anyhow::{Context as _, Result, ensure};
use ropewalk_coordination::ownership::{self, FileRequest};
use ropewalk_schemas::build::{Build, BuildState, StopCause};
use ropewalk_schemas::payload::SpecApproved;
use ropewalk_schemas::{
    BuildId, CommitId, ContentHash, CorrelationId, Priority, RepoPath, Slug, SpecId, UserSlug,
};
use ropewalk_store::{ChangeSet, CommitError, Versioned};
use uuid::Uuid;

use crate::world::{World, at, build, task_id};

fn head(digit: &str) -> Result<CommitId> {
    Ok(CommitId::parse(&digit.repeat(40))?)
}

async fn lay(world: &World, id: BuildId, digit: &str) -> Result<()> {
    let mut changes = ChangeSet::new();
    let approval = SpecApproved {
        spec_id: SpecId(id.0),
        idea_slug: Slug::parse("habits")?,
        user_slug: UserSlug::parse("ada")?,
        revision: 1,
        hash: ContentHash::of(b"spec"),
        approved_by: UserSlug::parse("ada")?,
        priority: Priority::DEFAULT,
        price: None,
    };
    changes.insert(&Build {
        state: BuildState::Running,
        head: Some(head(digit)?),
        ..Build::queued(id, &approval, CorrelationId(id.0), at(0))
    });
    world.store.commit(changes).await?;
    Ok(())
}

async fn load(world: &World, id: BuildId) -> Result<Versioned<Build>> {
    let found = world.store.get::<Build>(&id.to_string()).await?;
    found.context("no build")
}

async fn end_as(
    world: &World,
    id: BuildId,
    state: BuildState,
    stop: Option<StopCause>,
) -> Result<()> {
    let before = load(world, id).await?;
    let mut changes = ChangeSet::new();
    let ended = Build {
        state,
        stop,
        ..before.record.clone()
    };
    changes.update(&before, &ended);
    world.store.commit(changes).await?;
    Ok(())
}

/// Lets `to` take the file as it is; answers on whose commit it has to build.
async fn take(world: &World, to: BuildId, file: &RepoPath) -> Result<Option<CommitId>> {
    let owner = ownership::owner_of(&world.store, file).await?;
    let mut changes = ChangeSet::new();
    let after = ownership::give(&mut changes, to, file, owner.as_ref(), at(1));
    world.store.commit(changes).await?;
    Ok(after.map(|followed| followed.commit))
}

#[tokio::test]
async fn a_file_has_one_owning_build_and_the_next_one_builds_on_its_work() -> Result<()> {
    let world = World::new().await?;
    let file = RepoPath::parse("types/session.ts")?;
    let other: BuildId = Uuid::from_u128(2).into();
    lay(&world, build(), "1").await?;
    lay(&world, other, "2").await?;
    assert_eq!(take(&world, build(), &file).await?, None);
    let owner = ownership::owner_of(&world.store, &file)
        .await?
        .context("no owner")?;
    ensure!(owner.keeps_from(other) && !owner.keeps_from(build()));

    // It is merged: the file is free, and what the owner left has to be there.
    let merging = load(&world, build()).await?;
    let mut changes = ChangeSet::new();
    let merged = Build {
        merged: Some(head("3")?),
        ..merging.record.clone()
    };
    changes.update(&merging, &merged);
    let files = ownership::owned_by(&world.store, build()).await?;
    ownership::end(&mut changes, &files);
    world.store.commit(changes).await?;
    let ended = ownership::owner_of(&world.store, &file)
        .await?
        .context("no row")?;
    ensure!(!ended.is_live() && !ended.keeps_from(other));
    assert_eq!(take(&world, other, &file).await?, Some(head("1")?));
    assert_eq!(
        take(&world, other, &file).await?,
        Some(head("1")?),
        "and it stays so"
    );

    // The next one fails, or is stopped: it may come back, and keeps what is its own.
    let third: BuildId = Uuid::from_u128(3).into();
    for state in [BuildState::Failed, BuildState::Stopped] {
        end_as(&world, other, state, None).await?;
        let owner = ownership::owner_of(&world.store, &file).await?;
        ensure!(
            owner.is_some_and(|owner| owner.keeps_from(third)),
            "{state}"
        );
    }
    // It is abandoned: only what was merged counts.
    end_as(
        &world,
        other,
        BuildState::Stopped,
        Some(StopCause::Abandoned),
    )
    .await?;
    assert_eq!(take(&world, third, &file).await?, Some(head("1")?));
    Ok(())
}

#[tokio::test]
async fn of_two_builds_that_take_a_free_file_one_is_refused() -> Result<()> {
    let world = World::new().await?;
    let file = RepoPath::parse("new.ts")?;
    let claim = |build| {
        let mut changes = ChangeSet::new();
        ownership::give(&mut changes, build, &file, None, at(0));
        world.store.commit(changes)
    };
    claim(build()).await?;
    let late = claim(Uuid::from_u128(2).into()).await;
    ensure!(
        matches!(late, Err(CommitError::Conflict { .. })),
        "{late:?}"
    );
    Ok(())
}

#[tokio::test]
async fn an_owner_that_lands_meanwhile_gives_nothing_away() -> Result<()> {
    let world = World::new().await?;
    let file = RepoPath::parse("a.ts")?;
    lay(&world, build(), "1").await?;
    take(&world, build(), &file).await?;
    let owner = ownership::owner_of(&world.store, &file).await?;
    let before = load(&world, build()).await?;
    let mut landing = ChangeSet::new();
    let landed = Build {
        head: Some(head("4")?),
        ..before.record.clone()
    };
    landing.update(&before, &landed);
    world.store.commit(landing).await?;
    let mut changes = ChangeSet::new();
    let other = Uuid::from_u128(2).into();
    ownership::give(&mut changes, other, &file, owner.as_ref(), at(1));
    let refused = world.store.commit(changes).await;
    ensure!(
        matches!(refused, Err(CommitError::Conflict { .. })),
        "{refused:?}"
    );
    assert_eq!(take(&world, other, &file).await?, Some(head("4")?));
    Ok(())
}

#[tokio::test]
async fn a_change_request_is_filed_and_its_task_waits_for_the_owner() -> Result<()> {
    let world = World::new().await?;
    let request = FileRequest {
        build: Uuid::from_u128(2).into(),
        task: task_id(1),
        owner: build(),
        file: RepoPath::parse("types/session.ts")?,
    };
    let announce = |subject, payload| world.announce(subject, payload);
    let mut changes = ChangeSet::new();
    request.file(&mut changes, "add a field", &announce);
    world.store.commit(changes).await?;
    assert_eq!(world.wait(&[request.wait(at(1))]).await?, None);
    assert_eq!(world.events("change.requested").await?.len(), 1);
    assert_eq!(world.waits().await?.len(), 1);
    Ok(())
}
