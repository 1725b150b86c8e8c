//! What every transport must do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, ensure};
use ropewalk_bus::{Consumer, Failure, Poker, SocketHome, TailError};
use ropewalk_schemas::payload::TaskSkipped;
use ropewalk_schemas::{Event, EventPattern, Payload, Priority, Slug, TaskId};
use ropewalk_store::{
    ChangeSet, CommitError, DeliveryFilter, DeliveryKey, DeliveryState, EventFilter, Outcome,
    StartAt, Subscription,
};

use crate::publishers;
use tokio::task::JoinSet;

use crate::support::{
    PATIENCE, RunningBus, World, build, commit, component_back, component_down, finish_all, name,
    next, nothing_more, retry, sequence, stop_request, subscription,
};

/// Returns one of many events of mixed type, entity, source and priority.
pub(crate) fn mixed_event(world: &World, number: u8) -> Result<Event> {
    let payload = match number % 5 {
        0 => retry("again")?,
        1 => Payload::TaskSkipped(TaskSkipped {
            build_id: build(),
            task_id: TaskId::parse("T-001")?,
            idea_slug: Slug::parse("habits")?,
            skipped_by: "test".to_owned(),
            reason: "none".to_owned(),
        }),
        2 => component_down()?,
        3 => component_back(),
        _ => stop_request(),
    };
    Ok(Event {
        source: name(&format!("loop-{}", number % 3))?,
        priority: Priority::new(number % 10 + 1)?,
        ..world.event(&format!("entity/{}", number % 7), payload)?
    })
}

/// What is taken by the subscribers to forty mixed events.
fn is_for(subscriber: &str, event: &Event) -> bool {
    let of_tasks = event.event_type().starts_with("task.");
    match subscriber {
        "all-tasks" => of_tasks,
        "retries" => event.event_type() == "task.retry",
        "alerts" => event.event_type().starts_with("alert."),
        _ => of_tasks && event.source.as_str() == "loop-1",
    }
}

/// Publishes forty events from three processes at once; answers them as they are stored.
async fn publish_from_three_processes(world: &World, running: &RunningBus) -> Result<Vec<Event>> {
    let home = SocketHome::new(world.directory.path(), None);
    Poker::listen(&running.bus, &home, &running.supervisor)?;
    let directory = world.directory.path().to_owned();
    let published =
        tokio::task::spawn_blocking(move || publishers::publish_at_once(&directory)).await??;
    let stored = running.store.events(&EventFilter::default()).await?;
    let ids: Vec<String> = stored
        .iter()
        .map(|stored| stored.event.id.to_string())
        .collect();
    let known: BTreeSet<&String> = ids.iter().collect();
    assert_eq!((ids.len(), known.len()), (40, 40), "none lost or doubled");
    assert_eq!(known, published.iter().collect());
    let caused = stored
        .iter()
        .filter(|stored| stored.event.causationid.is_some());
    assert_eq!(caused.count(), 37, "all but the first of each process");
    stored
        .into_iter()
        .map(|stored| Ok(Event::try_from(stored.event.as_ref())?))
        .collect()
}

pub(crate) async fn forty_events_of_three_processes_reach_each_subscriber_once(
    world: World,
) -> Result<()> {
    let running = world.start().await?;
    let mut inboxes = vec![
        running.consume("all-tasks", &["task.*"]).await?,
        running.consume("retries", &["task.retry"]).await?,
        running.consume("alerts", &["alert.*"]).await?,
    ];
    let narrowed = Subscription {
        name: name("loop-1-tasks")?,
        patterns: vec![EventPattern::of("task.*").from_source(name("loop-1")?)],
        from: StartAt::Now,
    };
    let consumer = Consumer {
        subscription: narrowed,
        in_flight: 3,
        yields: false,
    };
    inboxes.push(running.bus.consume(consumer).await?);

    let events = publish_from_three_processes(&world, &running).await?;
    for inbox in &mut inboxes {
        let subscriber = inbox.subscriber().clone();
        let wanted: BTreeSet<_> = events
            .iter()
            .filter(|event| is_for(subscriber.as_str(), event))
            .map(|event| event.id)
            .collect();
        ensure!(!wanted.is_empty(), "nothing for `{subscriber}`");
        let mut received = BTreeSet::new();
        let mut order: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        while received.len() < wanted.len() {
            let mut delivery = next(inbox).await?;
            let original = events.iter().find(|event| event.id == delivery.event.id);
            assert_eq!(Some(&delivery.event), original, "nothing of it is changed");
            ensure!(received.insert(delivery.event.id), "delivered twice");
            let entity = delivery.event.subject.to_string();
            order
                .entry(entity)
                .or_default()
                .push(delivery.key().sequence);
            delivery.finish(ChangeSet::new()).await?;
        }
        assert_eq!(received, wanted, "{subscriber}");
        ensure!(order.values().all(|sequences| sequences.is_sorted()));
        nothing_more(inbox).await?;
    }
    running.stop().await
}

pub(crate) async fn urgent_entities_go_first_and_no_more_than_the_bound(
    world: World,
) -> Result<()> {
    let running = world.start().await?;
    running
        .store
        .subscribe(&subscription("build", &["task.*"])?)
        .await?;
    let mut expected = Vec::new();
    for (entity, priority) in [("a", 5), ("b", 9), ("c", 1), ("a", 1), ("d", 5)] {
        let mut event = world.event(entity, retry(entity)?)?;
        event.priority = Priority::new(priority)?;
        expected.push(sequence(&commit(&running.store, [event]).await?)?);
    }
    let [a, b, c, a_again, d] = expected[..] else {
        anyhow::bail!("five events")
    };
    let mut inbox = running.consume_at_most("build", &["task.*"], 2).await?;
    let mut first = next(&mut inbox).await?;
    let mut second = next(&mut inbox).await?;
    assert_eq!([first.key().sequence, second.key().sequence], [c, a]);
    nothing_more(&mut inbox).await?;
    assert_eq!(inbox.in_flight(), 2);
    first.finish(ChangeSet::new()).await?;
    let third = next(&mut inbox).await?;
    assert_eq!(
        third.key().sequence,
        d,
        "the urgent one waits for its elder"
    );
    second.finish(ChangeSet::new()).await?;
    assert_eq!(next(&mut inbox).await?.key().sequence, a_again);
    drop(third);
    assert_eq!(finish_all(&mut inbox, 1).await?, [b]);
    running.stop().await
}

pub(crate) async fn what_one_subscriber_finished_the_other_still_gets_after_a_restart(
    world: World,
) -> Result<()> {
    let running = world.start().await?;
    let mut one = running.consume("one", &["task.*"]).await?;
    let mut other = running.consume("other", &["task.*"]).await?;
    let first = world.emit(&running.store, "a", "1").await?;
    assert_eq!(finish_all(&mut one, 1).await?, [first]);
    let held = next(&mut other).await?;
    assert_eq!((held.key().sequence, held.attempt), (first, 1));
    drop((held, one, other));
    running.stop().await?;

    let running = world.start().await?;
    let mut one = running.consume("one", &["task.*"]).await?;
    let mut other = running.consume("other", &["task.*"]).await?;
    let again = next(&mut other).await?;
    assert_eq!(
        (again.key().sequence, again.attempt),
        (first, 1),
        "uncounted"
    );
    let second = world.emit(&running.store, "a", "2").await?;
    assert_eq!(finish_all(&mut one, 1).await?, [second]);
    nothing_more(&mut one).await?;
    running.stop().await
}

pub(crate) async fn a_poisoned_entity_parks_alone_and_goes_on_when_its_poison_is_dead(
    world: World,
) -> Result<()> {
    let running = world.start().await?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    let poison = world.emit(&running.store, "a", "poison").await?;
    let behind = world.emit(&running.store, "a", "behind").await?;
    let neighbour = world.emit(&running.store, "b", "neighbour").await?;
    let mut tries = Vec::new();
    let mut order = Vec::new();
    while order.len() < 2 {
        let mut delivery = next(&mut inbox).await?;
        if delivery.key().sequence == poison {
            tries.push(delivery.attempt);
            let outcome = delivery.fail(Failure::Transient("boom".to_owned())).await?;
            let dead = matches!(outcome, Outcome::Dead { .. });
            assert_eq!(dead, tries.len() == 5, "{outcome:?}");
        } else {
            order.push((delivery.key().sequence, tries.len()));
            delivery.finish(ChangeSet::new()).await?;
        }
    }
    assert_eq!(tries, [1, 2, 3, 4, 5]);
    assert_eq!(order[1], (behind, 5));
    assert_eq!(order[0].0, neighbour);
    ensure!(order[0].1 < 5, "the neighbour waited for the poison");
    let dead = running.bus.dead_letters().list(10).await?;
    let shown: Vec<_> = dead
        .iter()
        .map(|row| {
            (
                row.key.sequence,
                row.state,
                row.attempts,
                row.error.as_deref(),
            )
        })
        .collect();
    assert_eq!(shown, [(poison, DeliveryState::Dead, 5, Some("boom"))]);
    running.stop().await
}

pub(crate) async fn a_dead_letter_is_shown_replayed_and_discarded(world: World) -> Result<()> {
    let running = world.start().await?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    let sequence = world.emit(&running.store, "a", "1").await?;
    let delivery = next(&mut inbox).await?;
    let event = delivery.event.clone();
    let failure = Failure::Permanent("no such task".to_owned());
    ensure!(matches!(
        delivery.fail(failure).await?,
        Outcome::Dead { .. }
    ));
    let key = DeliveryKey {
        sequence,
        subscriber: name("build")?,
    };
    let letters = running.bus.dead_letters();
    let shown = letters.show(&key).await?.context("not shown")?;
    assert_eq!(Event::try_from(shown.event)?, event);
    assert_eq!(shown.delivery.error.as_deref(), Some("no such task"));

    letters.replay(&key).await?;
    assert_eq!(letters.show(&key).await?, None);
    let again = next(&mut inbox).await?;
    assert_eq!((again.key(), again.attempt), (&key, 1));
    again
        .fail(Failure::Permanent("still not".to_owned()))
        .await?;
    letters.discard(&key, "given up by ada".to_owned()).await?;
    ensure!(letters.list(10).await?.is_empty());
    nothing_more(&mut inbox).await?;
    running.stop().await
}

pub(crate) async fn a_new_subscriber_is_given_the_past_it_asks_for(world: World) -> Result<()> {
    let running = world.start().await?;
    let mut past = Vec::new();
    for number in 0..5 {
        past.push(
            world
                .emit(&running.store, &format!("e{number}"), "past")
                .await?,
        );
    }
    let late = Subscription {
        from: StartAt::Beginning,
        ..subscription("late", &["task.*"])?
    };
    let consumer = Consumer {
        subscription: late,
        in_flight: 1,
        yields: false,
    };
    let mut inbox = running.bus.consume(consumer).await?;
    assert_eq!(finish_all(&mut inbox, 5).await?, past);
    let fresh = world.emit(&running.store, "e0", "fresh").await?;
    assert_eq!(finish_all(&mut inbox, 1).await?, [fresh]);
    nothing_more(&mut inbox).await?;
    running.stop().await
}

pub(crate) async fn who_yields_waits_until_the_others_have_little_to_do(
    world: World,
) -> Result<()> {
    const WORK: usize = 1_300;
    let running = world.start().await?;
    let mut work = running.consume("build", &["task.*"]).await?;
    let consumer = Consumer {
        subscription: subscription("improvement", &["alert.*"])?,
        in_flight: 1,
        yields: true,
    };
    let mut intake = running.bus.consume(consumer).await?;
    let mut changes = ChangeSet::new();
    for number in 0..WORK {
        changes.emit(world.event(&format!("e{number}"), retry("work")?)?);
    }
    changes.emit(world.event("component/x", component_back())?);
    running.store.commit(changes).await?;
    running.bus.flush().await;
    while work.backlog() < WORK {
        next(&mut work).await?.release();
    }
    let done = Arc::new(AtomicUsize::new(0));
    let so_far = Arc::clone(&done);
    let mut yielding = JoinSet::new();
    yielding.spawn(async move {
        // All the work before it may take longer than a test waits for one delivery.
        let delivery = intake.next().await;
        let mut delivery = delivery.context("the inbox ended")?;
        let seen = so_far.load(Ordering::SeqCst);
        delivery.finish(ChangeSet::new()).await?;
        anyhow::Ok(seen)
    });
    // Who yields goes on before all is done.
    for _ in 0..WORK - 50 {
        next(&mut work).await?.finish(ChangeSet::new()).await?;
        done.fetch_add(1, Ordering::SeqCst);
    }
    let seen = tokio::time::timeout(PATIENCE, yielding.join_next()).await?;
    let seen = seen.context("nobody yields")???;
    // Those in hand are not counted as waiting, so the last few may be in flight.
    ensure!(seen >= WORK - 501 - 64, "handed out after {seen}");
    finish_all(&mut work, WORK - done.load(Ordering::SeqCst)).await?;
    running.stop().await
}

pub(crate) async fn large_data_reaches_its_subscriber_whole(world: World) -> Result<()> {
    let running = world.start().await?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    // Too large for the data of a message, and together for what an inbox keeps in memory.
    let guidance = "x".repeat(1_000_000);
    let mut sent = Vec::new();
    for number in 0..6 {
        let event = world.event(
            &format!("e{number}"),
            retry(&format!("{guidance}{number}"))?,
        )?;
        commit(&running.store, [event.clone()]).await?;
        sent.push(event);
    }
    for event in sent {
        let mut delivery = next(&mut inbox).await?;
        assert_eq!(delivery.event, event);
        delivery.finish(ChangeSet::new()).await?;
    }
    nothing_more(&mut inbox).await?;
    running.stop().await
}

pub(crate) async fn effects_and_the_end_of_a_delivery_are_one(world: World) -> Result<()> {
    let running = world.start().await?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    let mut listener = running.consume("follower", &["build.*"]).await?;
    world.emit(&running.store, "a", "1").await?;
    let mut delivery = next(&mut inbox).await?;
    let effect = world.event("b", stop_request())?;
    let mut changes = ChangeSet::new();
    changes.emit(effect.clone());
    delivery.finish(changes).await?;
    let mut second = ChangeSet::new();
    second.emit(world.event("b", stop_request())?);
    let refused = delivery.finish(second).await;
    ensure!(
        matches!(refused, Err(CommitError::Closed { .. })),
        "{refused:?}"
    );
    let mut followed = next(&mut listener).await?;
    assert_eq!(followed.event.id, effect.id);
    followed.finish(ChangeSet::new()).await?;
    nothing_more(&mut listener).await?;
    running.stop().await
}

pub(crate) async fn an_event_that_is_not_understood_is_parked_and_stops_nobody(
    world: World,
) -> Result<()> {
    let running = world.start().await?;
    running
        .store
        .subscribe(&subscription("build", &["task.*"])?)
        .await?;
    let strange = world.emit(&running.store, "a", "strange").await?;
    let behind = world.emit(&running.store, "a", "behind").await?;
    crate::forge::newer_version(&world.database(), strange)?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    assert_eq!(finish_all(&mut inbox, 1).await?, [behind]);
    let parked = running.bus.dead_letters().list(10).await?;
    let [row] = &parked[..] else {
        anyhow::bail!("one parked delivery, not {parked:?}")
    };
    assert_eq!(
        (row.key.sequence, row.state),
        (strange, DeliveryState::Parked)
    );
    let reason = row.error.as_deref().unwrap_or_default();
    ensure!(reason.contains("newer"), "{reason}");
    running.stop().await
}

pub(crate) async fn a_soft_stop_ends_the_inbox_and_lets_work_in_hand_finish(
    world: World,
) -> Result<()> {
    let running = world.start().await?;
    let mut inbox = running.consume_at_most("build", &["task.*"], 1).await?;
    world.emit(&running.store, "a", "1").await?;
    world.emit(&running.store, "b", "2").await?;
    let mut delivery = next(&mut inbox).await?;
    running.supervisor.shutdown().begin();
    ensure!(inbox.next().await.is_none());
    delivery.finish(ChangeSet::new()).await?;
    let open = DeliveryFilter {
        states: vec![DeliveryState::Open],
        ..DeliveryFilter::default()
    };
    assert_eq!(running.store.deliveries(&open).await?.len(), 1);
    drop((inbox, delivery));
    running.stop().await
}

pub(crate) async fn a_soft_stop_ends_whoever_follows_the_timeline(world: World) -> Result<()> {
    let running = world.start().await?;
    let tail = running.bus.tail();
    let mut events = tail.listen().await?;
    let sequence = world.emit(&running.store, "a", "1").await?;
    assert_eq!(events.next().await?.sequence, sequence);
    running.supervisor.shutdown().begin();
    // Who listens holds the tail too, and must hear that nothing comes any more.
    let heard = tokio::time::timeout(PATIENCE, events.next()).await;
    let ends = matches!(heard.context("it waits on")?, Err(TailError::Stopping));
    ensure!(ends, "something was told");
    let again = tail.listen().await;
    ensure!(matches!(again, Err(TailError::Stopping)), "{again:?}");
    running.stop().await
}

pub(crate) async fn a_backlog_drains_completely(world: World) -> Result<()> {
    let running = world.start().await?;
    running
        .store
        .subscribe(&subscription("build", &["task.*"])?)
        .await?;
    let mut expected = 0;
    for batch in 0..20 {
        let events: Result<Vec<Event>> = (0..100)
            .map(|number| world.event(&format!("e{}", (batch + number) % 37), retry("x")?))
            .collect();
        expected += commit(&running.store, events?).await?.events.len();
    }
    let mut inbox = running.consume_at_most("build", &["task.*"], 8).await?;
    let done: BTreeSet<i64> = finish_all(&mut inbox, expected)
        .await?
        .into_iter()
        .collect();
    assert_eq!(done.len(), expected);
    assert_eq!(inbox.backlog(), 0);
    running.stop().await
}

pub(crate) async fn a_subscriber_is_consumed_once_per_process(world: World) -> Result<()> {
    let running = world.start().await?;
    let inbox = running.consume("build", &["task.*"]).await?;
    ensure!(running.consume("build", &["task.*"]).await.is_err());
    drop(inbox);
    running.consume("build", &["task.*"]).await?;
    running.stop().await
}
