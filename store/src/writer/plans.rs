//! Looks at how the database would run the statements that run often: none may read a table that grows.

use ropewalk_runtime::Clock;
use ropewalk_schemas::payload::{Payload, TaskRetry};
use ropewalk_schemas::timer::Timer;
use ropewalk_schemas::{
    BuildId, ComponentName, CorrelationId, Event, EventId, Priority, Subject, TaskId, TimerId,
};
use uuid::Uuid;

use super::evaluate::{Loaded, LoadedDelivery, evaluate};
use super::{Routing, apply, load};
use crate::change_set::{ChangeSet, Outcome};
use crate::database::Connection;
use crate::deliveries::{DeliveryFilter, DeliveryKey, DeliveryState};
use crate::dialect::Statement;
use crate::events::{EventFilter, Subscription};
use crate::location::Location;
use crate::reader;
use crate::store::Store;
use crate::submission::Submission;

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

fn written(batch: &[Submission], clock: &Clock) -> Vec<Statement> {
    let open = LoadedDelivery {
        state: DeliveryState::Open,
        attempts: 0,
    };
    let loaded = Loaded {
        deliveries: [(key(), open)].into(),
        ..Loaded::default()
    };
    let routing = Routing {
        epoch: 0,
        subscriptions: vec![Subscription::new(key().subscriber, ["*"])],
    };
    let evaluated = evaluate(&loaded, &routing, batch, clock.now());
    apply::statements(&evaluated.writes, clock.now())
}

async fn plan(connection: &mut Connection, statement: Statement) -> Vec<String> {
    let (sql, values) = statement.into_parts();
    let explain = Statement::with_values(&format!("EXPLAIN QUERY PLAN {sql}"), values);
    let rows = connection.fetch(explain).await.unwrap();
    rows.into_iter()
        .filter_map(|row| row.into_iter().next_back()?.into_text())
        .collect()
}

#[tokio::test]
async fn no_frequent_statement_reads_a_whole_table() {
    let directory = tempfile::tempdir().unwrap();
    let location = Location::Sqlite(directory.path().join("ropewalk.db"));
    let store = Store::open(&location, Clock::system()).await.unwrap();
    let mut connection = store.database.connect(false).await.unwrap();
    let batch = batch(&store.clock);
    let dead = DeliveryFilter {
        states: vec![DeliveryState::Dead, DeliveryState::Parked],
        ..DeliveryFilter::default()
    };
    let chain = EventFilter {
        correlation: Some(CorrelationId(Uuid::nil())),
        ..EventFilter::default()
    };
    let mut statements = vec![
        load::select(&batch),
        reader::select_open(Some(&key().subscriber), 0, 10),
        reader::select_open(None, 0, 10),
        reader::select_deliveries(&dead),
        reader::select_events_of(&chain),
    ];
    statements.extend(written(&batch, &store.clock));
    assert_eq!(statements.len(), 9);
    for statement in statements {
        let sql = statement.sql().to_owned();
        let plan = plan(&mut connection, statement).await;
        let scans = |line: &String| {
            let table = line.strip_prefix("SCAN ").unwrap_or_default();
            let grows = ["d", "e", "events", "deliveries", "timers"];
            // A scan of a partial index reads only what is open or kept.
            grows.contains(&table.split(' ').next().unwrap_or_default())
                && !line.contains("deliveries_")
        };
        assert!(!plan.iter().any(scans), "{sql}\n{plan:#?}");
    }
}
