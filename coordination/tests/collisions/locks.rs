//! Locks: all or none, re-entrant, judged, fenced.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use ropewalk_coordination::judge::Judge;
use ropewalk_coordination::locks;
use ropewalk_schemas::lease::{Lease, LeaseState};
use ropewalk_schemas::{Payload, RepoPath};
use ropewalk_store::{ChangeSet, CommitError, path_key};

use crate::world::World;

#[tokio::test]
async fn of_five_simultaneous_takers_exactly_one_wins_and_nobody_holds_half_a_set() -> Result<()> {
    let world = World::new().await?;
    let sets = [["a", "b"], ["b", "c"], ["a", "c"], ["c", "a"], ["b", "a"]];
    let takers = (1_u128..)
        .zip(&sets)
        .map(|(number, files)| world.take(number, files));
    let results = futures::future::try_join_all(takers).await?;
    let won = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(won, 1, "{results:?}");
    for result in results.iter().filter_map(|result| result.as_ref().err()) {
        ensure!(matches!(result, CommitError::Held { .. }), "{result}");
    }
    assert_eq!(locks::all_held(&world.store).await?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn a_holder_may_take_again_and_nobody_else_may_release() -> Result<()> {
    let world = World::new().await?;
    let first = world.take(1, &["src/a.rs"]).await??;
    let again = world.take(1, &["SRC/A.rs", "src/b.rs"]).await??;
    ensure!(again > first);
    let mine = world.held(1).await?;
    assert_eq!(mine.len(), 2);
    let mut foreign = ChangeSet::new();
    foreign.release(&RepoPath::parse("src/a.rs")?, first);
    let refused = world.store.commit(foreign).await;
    ensure!(
        matches!(refused, Err(CommitError::Fenced { .. })),
        "{refused:?}"
    );

    let announce = |subject, payload| world.announce(subject, payload);
    let mut changes = ChangeSet::new();
    locks::release(&mut changes, &mine, &announce);
    world.store.commit(changes).await?;
    ensure!(world.held(1).await?.is_empty());
    let released = world.events("lock.released").await?;
    let Some(Payload::LockReleased(released)) = released.first().map(|event| &event.payload) else {
        anyhow::bail!("{released:?}")
    };
    assert_eq!(released.files.len(), 2);
    Ok(())
}

#[tokio::test]
async fn a_lease_that_nobody_renews_expires_and_its_late_landing_is_fenced() -> Result<()> {
    let world = World::new().await?;
    let announce = |subject, payload| world.announce(subject, payload);
    let token = world.take(1, &["a"]).await??;
    let mut judge = Judge::new();
    let looks = |ms| Duration::from_millis(ms);
    ensure!(judge.observe(&world.held(1).await?, looks(0)).is_empty());
    let mut changes = ChangeSet::new();
    locks::renew(&mut changes, &world.held(1).await?);
    world.store.commit(changes).await?;
    let seen = world.held(1).await?;
    ensure!(
        judge.observe(&seen, looks(300)).is_empty(),
        "it was renewed"
    );
    let dead = judge.observe(&seen, looks(600));
    assert_eq!(dead.len(), 1);

    // A renewal between the look and the sentence saves it.
    let mut renewal = ChangeSet::new();
    locks::renew(&mut renewal, &seen);
    world.store.commit(renewal).await?;
    let mut sentence = ChangeSet::new();
    locks::expire(&mut sentence, &dead, &announce);
    let saved = world.store.commit(sentence).await;
    ensure!(
        matches!(saved, Err(CommitError::Conflict { .. })),
        "{saved:?}"
    );

    let frozen = world.held(1).await?;
    ensure!(judge.observe(&frozen, looks(700)).is_empty());
    let mut sentence = ChangeSet::new();
    locks::expire(
        &mut sentence,
        &judge.observe(&frozen, looks(1_000)),
        &announce,
    );
    world.store.commit(sentence).await?;
    let key = path_key(&RepoPath::parse("a")?);
    let lease = world.store.get::<Lease>(&key).await?.context("gone")?;
    assert_eq!(lease.state, LeaseState::Expired);
    let next = world.take(2, &["a"]).await??;
    ensure!(next > token);
    let mut landing = ChangeSet::new();
    locks::fence(&mut landing, &frozen);
    let late = world.store.commit(landing).await;
    ensure!(matches!(late, Err(CommitError::Fenced { .. })), "{late:?}");
    assert_eq!(world.events("lock.revoked").await?.len(), 1);
    Ok(())
}
