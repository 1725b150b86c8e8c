use chrono::TimeDelta;
use proptest::prelude::*;
use ropewalk_schemas::{ComponentName, Priority};
use uuid::Uuid;

use super::*;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
}

fn entry(sequence: i64, subject: &str, priority: u8) -> Entry {
    Entry {
        sequence,
        event_id: Uuid::from_u128(u128::from(sequence.unsigned_abs())).into(),
        subject: Subject::parse(subject).unwrap(),
        priority,
        attempts: 0,
        due: None,
        body: None,
    }
}

fn queue(in_flight: usize, entries: Vec<Entry>) -> Queue {
    let bounds = Bounds {
        in_flight,
        entries: 1_000,
        body_bytes: 0,
    };
    let mut queue = Queue::new(bounds, None);
    read(&mut queue, ReadScope::All, entries);
    queue
}

fn read(queue: &mut Queue, wanted: ReadScope, entries: Vec<Entry>) {
    queue.begin_read(wanted);
    queue.add_page(entries);
    queue.end_read(true);
}

fn take(queue: &mut Queue, now: i64) -> Option<i64> {
    queue.take(at(now)).map(|entry| entry.sequence)
}

#[test]
fn one_delivery_can_be_asked_for_before_all_others_if_its_turn_has_come() {
    let mut queue = queue(
        2,
        vec![
            entry(1, "a", 1),
            entry(2, "b", 5),
            entry(3, "b", 1),
            Entry {
                due: Some(at(9)),
                ..entry(4, "c", 1)
            },
        ],
    );
    let mut ask = |sequence, now| Some(queue.take_one(sequence, at(now))?.sequence);
    // 3 waits behind 2, 4 for its time; nobody knows 5.
    assert_eq!([3, 4, 5].map(|sequence| ask(sequence, 0)), [None; 3]);
    assert_eq!(ask(2, 0), Some(2));
    assert_eq!(ask(2, 0), None);
    assert_eq!(ask(4, 9), Some(4));
    assert_eq!(queue.in_flight(), 2);
    queue.settle(2);
    queue.settle(4);
    assert_eq!(take(&mut queue, 9), Some(1));
    assert_eq!(take(&mut queue, 9), Some(3));
}

#[test]
fn entities_go_by_priority_and_one_entity_by_sequence() {
    let mut queue = queue(
        10,
        vec![
            entry(1, "a", 9),
            entry(2, "b", 5),
            entry(3, "a", 1),
            entry(4, "c", 2),
            entry(5, "d", 5),
        ],
    );
    // 3 is the most urgent, and waits for 1, the head of its entity.
    assert_eq!(take(&mut queue, 0), Some(4));
    assert_eq!(take(&mut queue, 0), Some(2));
    assert_eq!(take(&mut queue, 0), Some(5));
    assert_eq!(take(&mut queue, 0), Some(1));
    assert_eq!(take(&mut queue, 0), None);
    queue.settle(1);
    assert_eq!(take(&mut queue, 0), Some(3));
}

#[test]
fn no_more_are_in_flight_than_the_bound() {
    let mut queue = queue(2, (1..=5).map(|n| entry(n, &format!("e{n}"), 5)).collect());
    assert_eq!(take(&mut queue, 0), Some(1));
    assert_eq!(take(&mut queue, 0), Some(2));
    assert_eq!(take(&mut queue, 0), None);
    queue.settle(2);
    assert_eq!(take(&mut queue, 0), Some(3));
    assert_eq!(queue.in_flight(), 2);
}

#[test]
fn an_entity_waits_while_its_head_retries_and_its_neighbour_does_not() {
    let mut queue = queue(
        9,
        vec![entry(1, "a", 1), entry(2, "a", 1), entry(3, "b", 9)],
    );
    assert_eq!(take(&mut queue, 0), Some(1));
    queue.put_back(1, 1, Some(at(10)));
    assert_eq!(take(&mut queue, 0), Some(3));
    assert_eq!(take(&mut queue, 9), None);
    assert_eq!(queue.next_due(), Some(at(10)));
    let again = queue.take(at(10)).unwrap();
    assert_eq!((again.sequence, again.attempts), (1, 1));
    queue.settle(1);
    assert_eq!(take(&mut queue, 10), Some(2));
}

#[test]
fn a_delivery_given_back_comes_again_at_once_and_uncounted() {
    let mut queue = queue(1, vec![entry(1, "a", 5)]);
    let first = queue.take(at(0)).unwrap();
    queue.put_back(1, first.attempts, None);
    assert_eq!(queue.take(at(0)).unwrap(), first);
}

#[test]
fn a_stale_read_brings_nothing_back_that_was_settled_meanwhile() {
    let mut queue = queue(1, vec![entry(1, "a", 5)]);
    assert_eq!(take(&mut queue, 0), Some(1));
    queue.want(ReadScope::All);
    queue.begin_read(ReadScope::All);
    queue.settle(1);
    queue.add_page(vec![entry(1, "a", 5)]);
    queue.end_read(true);
    assert_eq!(take(&mut queue, 0), None);
    assert_eq!(queue.len(), 0);
}

#[test]
fn a_full_read_drops_what_somebody_else_closed() {
    let mut queue = queue(
        1,
        vec![entry(1, "a", 5), entry(2, "a", 5), entry(3, "b", 5)],
    );
    assert_eq!(take(&mut queue, 0), Some(1));
    read(&mut queue, ReadScope::All, vec![entry(3, "b", 5)]);
    assert!(
        queue.knows(1),
        "the one in flight stays until it is settled"
    );
    assert!(!queue.knows(2));
    queue.settle(1);
    assert_eq!(take(&mut queue, 0), Some(3));
}

#[test]
fn what_is_offered_during_a_read_is_left_to_the_next_read() {
    let mut queue = queue(1, vec![]);
    queue.want(ReadScope::Newer);
    assert_eq!(queue.begin_read(ReadScope::Newer), 0);
    queue.offer(entry(2, "a", 5));
    queue.add_page(vec![entry(1, "a", 5)]);
    queue.end_read(true);
    assert_eq!(queue.wanted(), Some(ReadScope::Newer));
    assert_eq!(queue.begin_read(ReadScope::Newer), 1);
    queue.add_page(vec![entry(2, "a", 5)]);
    queue.end_read(true);
    assert_eq!(queue.wanted(), None);
    queue.offer(entry(3, "a", 5));
    assert_eq!(queue.len(), 3);
}

/// An entry that carries its event, which names an idea.
fn about(sequence: i64, idea: &str) -> Entry {
    let event = CloudEvent {
        specversion: "1.0".to_owned(),
        id: Uuid::from_u128(u128::from(sequence.unsigned_abs())).into(),
        source: ComponentName::parse("people").unwrap(),
        event_type: "spec.requested".to_owned(),
        subject: Subject::parse(&format!("specification/{sequence}")).unwrap(),
        time: at(0),
        schemaversion: 1,
        correlationid: Uuid::from_u128(1).into(),
        causationid: None,
        hop: 0,
        traceparent: None,
        priority: Priority::DEFAULT,
        dataref: None,
        data: serde_json::json!({ "idea_slug": idea }),
    };
    Entry::new(sequence, Arc::new(event), 0, None)
}

#[test]
fn what_names_another_idea_is_left_until_all_are_attended_to() {
    let bounds = Bounds {
        in_flight: 8,
        entries: 1_000,
        body_bytes: 10_000,
    };
    let mut queue = Queue::new(bounds, Some(Slug::parse("walks").unwrap()));
    let open = || vec![about(1, "runs"), about(2, "walks"), entry(3, "a", 5)];
    read(&mut queue, ReadScope::All, open());
    queue.offer(about(4, "runs"));
    queue.offer(about(5, "walks"));
    let taken = |queue: &mut Queue| -> Vec<i64> { std::iter::from_fn(|| take(queue, 0)).collect() };
    assert_eq!(taken(&mut queue), [2, 3, 5]);
    queue.attend_to_all();
    queue.want(ReadScope::All);
    let mut all = open();
    all.extend([about(4, "runs"), about(5, "walks")]);
    read(&mut queue, ReadScope::All, all);
    assert_eq!(taken(&mut queue), [1, 4]);
}

#[test]
fn a_backlog_beyond_the_bound_stays_in_the_store_until_half_is_done() {
    let bounds = Bounds {
        in_flight: 1,
        entries: 4,
        body_bytes: 0,
    };
    let mut queue = Queue::new(bounds, None);
    queue.begin_read(ReadScope::All);
    let room = queue.add_page((1..=4).map(|n| entry(n, "a", 5)).collect());
    assert!(!room);
    queue.end_read(false);
    queue.offer(entry(6, "a", 5));
    assert_eq!((queue.len(), queue.wanted()), (4, None));
    for expected in [1, 2] {
        assert_eq!(take(&mut queue, 0), Some(expected));
        queue.settle(expected);
    }
    assert_eq!(queue.wanted(), Some(ReadScope::Newer));
    assert_eq!(queue.begin_read(ReadScope::Newer), 4);
}

proptest! {
    #[test]
    fn every_delivery_is_settled_once_in_the_order_of_its_entity(
        subjects in proptest::collection::vec((0_u8..5, 1_u8..=10), 1..60),
        steps in proptest::collection::vec((0_u8..4, 0_usize..8), 1..400),
        in_flight in 1_usize..5,
    ) {
        let mut queue = queue(in_flight, vec![]);
        let mut offered = (1_i64..).zip(subjects);
        let mut held: Vec<Entry> = Vec::new();
        let mut settled: Vec<(Subject, i64)> = Vec::new();
        let mut now = 0;
        let mut drain = (0..2_000).map(|turn| [(1, 0), (2, 0)][turn % 2]);
        let mut steps = steps.into_iter();
        let mut total = 0;
        while let Some((step, which)) = steps.next().or_else(|| drain.next()) {
            now += 1;
            match step {
                0 => {
                    for (sequence, (subject, priority)) in offered.by_ref().take(3) {
                        total += 1;
                        queue.offer(entry(sequence, &format!("e{subject}"), priority));
                    }
                }
                1 => held.extend(queue.take(at(now))),
                2 if !held.is_empty() => {
                    let entry = held.swap_remove(which % held.len());
                    queue.settle(entry.sequence);
                    settled.push((entry.subject, entry.sequence));
                }
                3 if !held.is_empty() => {
                    let entry = held.swap_remove(which % held.len());
                    let due = (which % 2 == 0).then(|| at(now + 3));
                    queue.put_back(entry.sequence, entry.attempts + 1, due);
                }
                _ => {}
            }
            prop_assert!(held.len() <= in_flight);
            let entities: HashSet<&Subject> = held.iter().map(|entry| &entry.subject).collect();
            prop_assert_eq!(entities.len(), held.len());
        }
        prop_assert_eq!(settled.len(), total);
        for subject in 0..5 {
            let order: Vec<i64> = settled
                .iter()
                .filter(|(of, _)| of.as_str() == format!("e{subject}"))
                .map(|(_, sequence)| *sequence)
                .collect();
            prop_assert!(order.is_sorted());
        }
    }
}
