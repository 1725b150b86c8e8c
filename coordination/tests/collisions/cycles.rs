//! Cycles of waits: found when their last edge appears or by the sweep, broken once, by one victim.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use ropewalk_coordination::{deadlock, locks};
use ropewalk_schemas::alert::{Alert, Severity};
use ropewalk_schemas::payload::DeadlockDetected;
use ropewalk_schemas::wait::{Resource, Wait};
use ropewalk_schemas::{Payload, RepoPath};
use ropewalk_store::ChangeSet;
use tokio::sync::Barrier;
use uuid::Uuid;

use crate::world::{World, at, lease_wait, party, request};

#[tokio::test]
async fn a_cycle_of_two_is_broken_when_its_second_edge_appears() -> Result<()> {
    let world = World::new().await?;
    world.task(1, 1).await?;
    world.task(2, 2).await?;
    world.take(1, &["a.ts"]).await??;
    world.take(2, &["b.ts"]).await??;
    assert_eq!(world.wait(&[lease_wait(1, "b.ts", 2)?]).await?, None);
    assert_eq!(world.waits().await?.len(), 1);

    let found = world
        .wait(&[lease_wait(2, "a.ts", 1)?])
        .await?
        .context("no cycle")?;
    assert_eq!(found.victim, Some(party(2)));
    ensure!(
        world.held(2).await?.is_empty(),
        "the victim's locks are free"
    );
    assert_eq!(world.held(1).await?.len(), 1);
    let waits = world.waits().await?;
    assert_eq!(waits.len(), 1, "only the survivor still waits");
    assert_eq!(waits[0].waiter, party(1));
    let alerts = world.events("alert.deadlock").await?;
    let [alert] = &alerts[..] else {
        anyhow::bail!("one alert, not {alerts:?}")
    };
    let expected = DeadlockDetected {
        cycle: vec![party(1).to_string(), party(2).to_string()],
        victim: Some(party(2).to_string()),
        resolved: true,
        severity: Some(Severity::Critical),
    };
    assert_eq!(alert.payload, Payload::DeadlockDetected(expected));
    let revoked = world.events("lock.revoked").await?;
    assert_eq!(revoked.len(), 1, "the victim's attempt is told");
    let record = world.store.get::<Alert>(&found.cause()).await?;
    ensure!(record.context("no record")?.cleared_at.is_some());
    world.take(1, &["b.ts"]).await??;
    Ok(())
}

#[tokio::test]
async fn two_halves_of_a_cycle_added_at_once_are_found_and_one_gives_way() -> Result<()> {
    for _ in 0..10 {
        let world = World::new().await?;
        world.task(1, 1).await?;
        world.task(2, 2).await?;
        world.take(1, &["a"]).await??;
        world.take(2, &["b"]).await??;
        let other = world.other().await?;
        let (one, two) = ([lease_wait(1, "b", 2)?], [lease_wait(2, "a", 1)?]);
        let (first, second) = tokio::try_join!(world.wait(&one), other.wait(&two))?;
        ensure!(first.is_some() || second.is_some(), "nobody saw the cycle");
        ensure!(deadlock::find_all(&world.store, at(9)).await?.is_empty());
        assert_eq!(world.events("alert.deadlock").await?.len(), 1);
        ensure!(world.held(2).await?.is_empty());
        assert_eq!(world.held(1).await?.len(), 1);
    }
    Ok(())
}

#[tokio::test]
async fn the_second_net_reports_a_cycle_once_and_breaks_it_when_told_to() -> Result<()> {
    let world = World::new().await?;
    world.task(1, 1).await?;
    world.task(2, 2).await?;
    world.take(1, &["a"]).await??;
    world.take(2, &["b"]).await??;
    let mut unchecked = ChangeSet::new();
    unchecked
        .insert(&lease_wait(1, "b", 2)?)
        .insert(&lease_wait(2, "a", 1)?);
    world.store.commit(unchecked).await?;
    let announce = |subject, payload| world.announce(subject, payload);
    for _ in 0..2 {
        let deadlocks = deadlock::find_all(&world.store, at(9)).await?;
        let [found] = &deadlocks[..] else {
            anyhow::bail!("one deadlock, not {deadlocks:?}")
        };
        let mut changes = ChangeSet::new();
        found.report(&mut changes, at(9), &announce);
        world.store.commit(changes).await?;
    }
    let alerts = world.events("alert.deadlock").await?;
    let [alert] = &alerts[..] else {
        anyhow::bail!("one alert, not {alerts:?}")
    };
    ensure!(
        matches!(&alert.payload, Payload::DeadlockDetected(found) if !found.resolved),
        "{alert:?}"
    );
    let deadlocks = deadlock::find_all(&world.store, at(9)).await?;
    let mut changes = ChangeSet::new();
    deadlocks[0].resolve(&mut changes, at(10), &announce);
    world.store.commit(changes).await?;
    ensure!(deadlock::find_all(&world.store, at(11)).await?.is_empty());
    assert_eq!(
        world.events("alert.deadlock").await?.len(),
        1,
        "no second alert"
    );
    Ok(())
}

/// Takes a file when nobody holds it and nobody waits for it for longer.
async fn claim(world: &World, number: u128, own: &str) -> Result<()> {
    let mut feed = world.store.feed();
    let mut request = request(number, &[own])?;
    request.since = at(2);
    loop {
        let held = locks::held_on(&world.store, &request.files).await?;
        let waits = locks::lease_waits(&world.store).await?;
        let free = locks::blocked_claim(&request, &held, &waits).is_empty();
        if free && world.take(number, &[own]).await?.is_ok() {
            return Ok(());
        }
        drop(tokio::time::timeout(Duration::from_millis(50), feed.next()).await);
    }
}

/// Holds one file and asks for another, as an attempt does; begins anew when it had to give way. Answers how often.
async fn worker(
    world: &World,
    number: u128,
    own: &str,
    wanted: &str,
    all: &Barrier,
) -> Result<u32> {
    let mut feed = world.store.feed();
    let mut yielded = 0;
    claim(world, number, own).await?;
    all.wait().await;
    loop {
        if world.held(number).await?.is_empty() {
            yielded += 1;
            claim(world, number, own).await?;
        }
        let file = RepoPath::parse(wanted)?;
        let held = locks::held_on(&world.store, &[file]).await?;
        let blocked = locks::blocked_extension(&request(number, &[wanted])?, &held);
        let Some(blocked) = blocked.first() else {
            if world.take(number, &[wanted]).await?.is_ok() {
                let known = locks::waits_of(&world.store, &party(number)).await?;
                let mut changes = ChangeSet::new();
                locks::stop_waiting(&mut changes, &known);
                world.store.commit(changes).await?;
                world.release(number).await?;
                return Ok(yielded);
            }
            continue;
        };
        let wait = blocked.wait(party(number), at(1));
        if world.wait(&[wait]).await?.is_none() {
            drop(tokio::time::timeout(Duration::from_millis(50), feed.next()).await);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cycles_of_two_to_five_workers_are_broken_by_one_victim_and_all_finish() -> Result<()> {
    for length in 2..=5_u128 {
        let world = World::new().await?;
        for number in 1..=length {
            world.task(number, u8::try_from(number)?).await?;
        }
        let all = Barrier::new(usize::try_from(length)?);
        let names: Vec<String> = (1..=length).map(|number| format!("{number}.ts")).collect();
        let workers = (1..=length).zip(&names).map(|(number, own)| {
            let next = usize::try_from(number % length).unwrap_or_default();
            worker(&world, number, own, &names[next], &all)
        });
        let work = futures::future::try_join_all(workers);
        let yielded = tokio::time::timeout(Duration::from_mins(2), work).await??;
        let alerts = world.events("alert.deadlock").await?;
        let [alert] = &alerts[..] else {
            anyhow::bail!("one alert for a cycle of {length}, not {alerts:?}")
        };
        ensure!(
            matches!(&alert.payload, Payload::DeadlockDetected(found) if found.resolved
                && found.cycle.len() == usize::try_from(length)?
                && found.victim == Some(party(length).to_string())),
            "{alert:?}"
        );
        let victims = yielded.iter().filter(|times| **times > 0).count();
        assert_eq!(victims, 1, "of {length}: {yielded:?}");
        ensure!(world.waits().await?.is_empty(), "no wait outlives its end");
        ensure!(locks::all_held(&world.store).await?.is_empty());
    }
    Ok(())
}

#[tokio::test]
async fn a_wait_for_a_holder_who_waits_for_a_person_is_shown_and_not_broken() -> Result<()> {
    let world = World::new().await?;
    world.task(1, 1).await?;
    world.task(2, 2).await?;
    world.take(1, &["a"]).await??;
    world.take(2, &["b"]).await??;
    let question = Wait {
        waiter: party(2),
        resource: Resource::Person {
            question: Uuid::from_u128(7).into(),
        },
        // Even if the waiter were the one who is asked.
        holder: Some(party(1)),
        since: at(1),
    };
    assert_eq!(world.wait(&[question]).await?, None);
    assert_eq!(world.wait(&[lease_wait(1, "b", 2)?]).await?, None);
    ensure!(deadlock::find_all(&world.store, at(9)).await?.is_empty());
    let shown = deadlock::graph(&world.store).await?.to_text();
    for line in [
        format!("{} waits for lease/b held by {}", party(1), party(2)),
        format!("{} waits for person/{}", party(2), Uuid::from_u128(7)),
    ] {
        ensure!(shown.contains(&line), "{shown}");
    }
    ensure!(world.events("alert.deadlock").await?.is_empty());
    assert_eq!(world.held(2).await?.len(), 1, "nobody lost a lock");
    Ok(())
}

#[tokio::test]
async fn a_wait_for_a_lock_that_was_lost_meanwhile_closes_no_cycle() -> Result<()> {
    let world = World::new().await?;
    world.task(1, 1).await?;
    world.task(2, 2).await?;
    world.take(1, &["a"]).await??;
    world.take(2, &["b"]).await??;
    assert_eq!(world.wait(&[lease_wait(1, "b", 2)?]).await?, None);
    world.release(2).await?;
    // The first was not yet woken when the second comes back and waits behind it.
    assert_eq!(world.wait(&[lease_wait(2, "a", 1)?]).await?, None);
    ensure!(deadlock::find_all(&world.store, at(9)).await?.is_empty());
    ensure!(world.events("alert.deadlock").await?.is_empty());
    assert_eq!(world.held(1).await?.len(), 1);
    Ok(())
}
