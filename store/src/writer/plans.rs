//! Has each database prepare every statement, and looks at how it would run those that run often: none may read a
//! table that grows.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ropewalk_runtime::Clock;
use ropewalk_schemas::payload::{Payload, TaskRetry};
use ropewalk_schemas::timer::Timer;
use ropewalk_schemas::{
    BuildId, ComponentName, ContentHash, CorrelationId, Event, EventId, EventPattern, Priority,
    Subject, TaskId, TimerId,
};
use ropewalk_tests::servers::PostgresServer;
use uuid::Uuid;

use super::evaluate::{LoadedDelivery, LoadedState, evaluate};
use super::{Routing, apply, forget, load, subscribe};
use crate::change_set::{ChangeSet, Outcome};
use crate::command::Step;
use crate::database::Connection;
use crate::database::dialect::{Dialect, Statement};
use crate::database::location::Location;
use crate::deliveries::{DeliveryFilter, DeliveryKey, DeliveryState};
use crate::events::{EventFilter, EventKey, Subscription};
use crate::query::Query;
use crate::reader;
use crate::record::ColumnKind;
use crate::records::TABLES;
use crate::store::Store;
use crate::store::maintenance::count_all;
use crate::store::retention::select_used;
use crate::submission::{Blob, EncodedEvent, Submission};

fn key() -> DeliveryKey {
    DeliveryKey {
        sequence: 1,
        subscriber: ComponentName::parse("pm").unwrap(),
    }
}

fn batch(clock: &Clock) -> Vec<Submission> {
    let timer = Timer {
        id: TimerId(Uuid::nil()),
        name: "t".to_owned(),
        target: String::new(),
        due: clock.now(),
        cron: None,
        correlation_id: CorrelationId(Uuid::nil()),
    };
    let retry = TaskRetry {
        build_id: BuildId(Uuid::nil()),
        task_id: TaskId::parse("T-1").unwrap(),
        requested_by: "ada".to_owned(),
        may_resume: false,
        guidance: None,
    };
    let event = Event {
        id: EventId(Uuid::nil()),
        source: key().subscriber,
        subject: Subject::parse("task/b/T-1").unwrap(),
        time: clock.now(),
        correlation_id: CorrelationId(Uuid::nil()),
        causation_id: None,
        hop: 0,
        traceparent: None,
        priority: Priority::DEFAULT,
        payload: Payload::TaskRetry(retry),
    };
    let mut changes = ChangeSet::new();
    changes.put(&timer).emit(event).close(&key(), Outcome::Done);
    vec![Submission::prepare(changes).unwrap()]
}

fn written(dialect: Dialect, batch: &[Submission], clock: &Clock) -> Vec<Statement> {
    let open = LoadedDelivery {
        state: DeliveryState::Open,
        attempts: 0,
    };
    let loaded = LoadedState {
        deliveries: [(key(), open)].into(),
        ..LoadedState::default()
    };
    let routing = Routing {
        epoch: 0,
        subscriptions: vec![Subscription::new(key().subscriber, ["*"])],
    };
    let evaluated = evaluate(&loaded, &routing, batch, clock.now());
    apply::statements(dialect, &evaluated.writes, clock.now())
}

async fn plan(connection: &mut Connection, statement: Statement) -> Vec<String> {
    let (sql, values) = statement.into_parts();
    let explained = format!("{}{sql}", connection.dialect().explain());
    let explain = Statement::with_values(&explained, values);
    let rows = connection.fetch(explain).await;
    let rows = rows.unwrap_or_else(|problem| panic!("{problem}\n{sql}"));
    rows.into_iter()
        .filter_map(|row| row.into_iter().next_back()?.into_text())
        .collect()
}

/// Opens an empty store on each kind of database.
async fn stores(directory: &Path) -> [Store; 2] {
    let server = PostgresServer::shared().unwrap().url();
    let file = format!("sqlite:{}", directory.join("ropewalk.db").display());
    let [sqlite, postgres] = [file, server].map(async |location| {
        let location = Location::parse(&location, directory).unwrap();
        Store::open(&location, Clock::system()).await.unwrap()
    });
    [sqlite.await, postgres.await]
}

/// Returns what runs often.
fn frequent(store: &Store) -> Vec<Statement> {
    let (dialect, clock) = (store.database.dialect(), &store.clock);
    let batch = batch(clock);
    let dead = DeliveryFilter {
        states: vec![DeliveryState::Dead, DeliveryState::Parked],
        ..DeliveryFilter::default()
    };
    let chain = EventFilter {
        correlation: Some(CorrelationId(Uuid::nil())),
        ..EventFilter::default()
    };
    let mut statements = vec![
        load::select(dialect, &batch),
        reader::select_open(Some(&key().subscriber), 0, 10),
        reader::select_open(None, 0, 10),
        reader::select_deliveries(&dead),
        reader::select_events_of(dialect, &chain),
        count_all(dialect),
    ];
    statements.extend(written(dialect, &batch, clock));
    assert_eq!(statements.len(), 10);
    let claims = store.claims("here", Duration::from_secs(1));
    statements.extend(claims.frequent_statements(&key()));
    statements
}

/// Returns what runs now and then: the statements of every table, every filter, every maintenance.
fn occasional(dialect: Dialect, clock: &Clock) -> Vec<Statement> {
    let pattern = |text: &str| Some(EventPattern::of(text));
    let event = EventFilter {
        after_sequence: Some(1),
        before_sequence: Some(9),
        from: Some(clock.now()),
        until: Some(clock.now()),
        source: Some(key().subscriber),
        pattern: pattern("task.*"),
        subject: Some(Subject::parse("task/b/T-1").unwrap()),
        limit: Some(3),
        newest_first: true,
        ..EventFilter::default()
    };
    let delivery = DeliveryFilter {
        subscriber: Some(key().subscriber),
        states: DeliveryState::ALL.to_vec(),
        event: Some(EventId(Uuid::nil())),
        subject: event.subject.clone(),
        after_sequence: Some(1),
        limit: Some(3),
        newest_first: true,
    };
    let subscription = Subscription::new(key().subscriber, ["*", "task.*", "task.retry"]);
    let mut statements = vec![
        reader::select_event(dialect, EventId(Uuid::nil())),
        reader::select_events_of(dialect, &event),
        reader::select_event_keys(EventKey::Id, "0123456789ab"),
        reader::select_event_keys(EventKey::Correlation, "0123456789ab"),
        reader::select_deliveries(&delivery),
        reader::select_subscriptions(),
        Statement::new(reader::NEWEST),
        dialect.search("lock AND *", 3).unwrap(),
        Statement::new(dialect.migrations_table()),
        apply::count(Some(1), None),
        apply::count(None, Some(1)),
    ];
    let step = Step {
        after: 1,
        before: clock.now(),
        unfinished: vec![CorrelationId(Uuid::nil())],
    };
    let hash = ContentHash::of(b"data");
    let blob = Blob {
        hash: hash.clone(),
        text: "data".to_owned(),
    };
    let large = EncodedEvent {
        blob: Some(blob),
        ..batch(clock)[0].events[0].as_ref().clone()
    };
    statements.extend(subscribe::statements(&subscription, clock.now()));
    statements.extend(forget::statements(dialect, &step));
    statements.push(apply::insert_blobs(dialect, &[(1, Arc::new(large))]));
    statements.push(select_used(dialect, std::slice::from_ref(&hash)));
    if dialect == Dialect::Postgres {
        statements.push(reader::select_blob(&hash));
    }
    for table in TABLES {
        statements.push(apply::upsert(dialect, table, apply::Rows::new()));
        statements.push(apply::delete(dialect, table.name, &["a"]));
        let mut query = Query::new().equal("key", "a").at_least("version", 1);
        for column in table.columns {
            query = match column.kind {
                ColumnKind::Text => query.equal(column.name, "a").at_most(column.name, "b"),
                ColumnKind::Integer => query.one_of(column.name, [1, 2]).at_least(column.name, 1),
            };
            query = query
                .not_equal(column.name, None::<&str>)
                .order_by(column.name);
        }
        statements.push(query.clone().count(table).unwrap());
        statements.push(query.descending().limit(7).list(table).unwrap());
    }
    statements
}

#[tokio::test]
async fn every_statement_is_understood_by_each_database() {
    let directory = tempfile::tempdir().unwrap();
    for store in Box::pin(stores(directory.path())).await {
        let dialect = store.database.dialect();
        let mut connection = store.database.connect(false).await.unwrap();
        let mut statements = frequent(&store);
        statements.extend(occasional(dialect, &store.clock));
        for statement in statements {
            plan(&mut connection, statement).await;
        }
        let check = Statement::new(dialect.quick_check());
        assert_eq!(connection.fetch(check).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn no_frequent_statement_reads_a_whole_table() {
    let directory = tempfile::tempdir().unwrap();
    for store in Box::pin(stores(directory.path())).await {
        let mut connection = store.database.connect(false).await.unwrap();
        for statement in frequent(&store) {
            let sql = statement.sql().to_owned();
            let plan = plan(&mut connection, statement).await;
            let scanned: Vec<&String> = plan.iter().filter(|line| scans(line)).collect();
            assert!(scanned.is_empty(), "{sql}\n{plan:#?}");
        }
    }
}

#[tokio::test]
async fn pages_that_begin_with_the_newest_are_not_sorted_each_time() {
    let directory = tempfile::tempdir().unwrap();
    let [store, _] = Box::pin(stores(directory.path())).await;
    let mut connection = store.database.connect(false).await.unwrap();
    for (name, column, is_sorted) in [
        ("ideas", "created_at", false),
        ("builds", "created_at", false),
        ("knowledge", "updated_at", false),
        // Nobody reads these so: that they would be sorted shows that it is seen.
        ("sessions", "updated_at", true),
    ] {
        let table = TABLES.iter().find(|table| table.name == name).unwrap();
        let newest = Query::new().order_by(column).descending().page(1, 50);
        let plan = plan(&mut connection, newest.list(table).unwrap()).await;
        let sorts = plan.iter().any(|line| line.contains("TEMP B-TREE"));
        assert_eq!(sorts, is_sorted, "{name}: {plan:#?}");
    }
}

/// Somebody types a part of an id now and then: that looks through the ids, however large the events are.
#[tokio::test]
async fn ids_of_the_timeline_are_looked_for_in_an_index_alone() {
    let directory = tempfile::tempdir().unwrap();
    let [store, _] = Box::pin(stores(directory.path())).await;
    let mut connection = store.database.connect(false).await.unwrap();
    for key in [EventKey::Id, EventKey::Correlation] {
        let statement = reader::select_event_keys(key, "0123456789ab");
        let plan = plan(&mut connection, statement).await;
        let is_covered = |line: &String| line.contains("COVERING INDEX");
        assert!(!plan.is_empty() && plan.iter().all(is_covered), "{plan:#?}");
    }
}

/// Returns whether a line of a plan says that a table which grows is read whole.
fn scans(line: &str) -> bool {
    let lead = ["SCAN ", "Seq Scan on "];
    let table = lead
        .iter()
        .find_map(|lead| line.trim_start_matches([' ', '-', '>']).strip_prefix(lead));
    let table = table.and_then(|table| table.split(' ').next());
    let grows = ["d", "e", "events", "deliveries", "timers"];
    // A scan of a partial index reads only what is open or kept.
    table.is_some_and(|table| grows.contains(&table)) && !line.contains("deliveries_")
}
