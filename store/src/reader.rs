//! Reads records, events, subscriptions and deliveries beside the writer.

use std::sync::Arc;

use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::{ComponentName, ContentHash, EventId, EventPattern};

use crate::database::dialect::{Dialect, Statement};
use crate::deliveries::{DeliveryFilter, DeliveryRow, DeliveryState, OpenDelivery};
use crate::error::ReadError;
use crate::events::{EventFilter, EventKey, StoredEvent, Subscription};
use crate::query::Query;
use crate::record::{Record, Versioned};
use crate::row;
use crate::store::Store;
use crate::value::Value;

impl Store {
    /// Reads one record by its key.
    pub async fn get<R: Record>(&self, key: &str) -> Result<Option<Versioned<R>>, ReadError> {
        let found = self.list(Query::new().equal("key", key)).await?;
        Ok(found.into_iter().next())
    }

    /// Reads the records that a query selects.
    pub async fn list<R: Record>(&self, query: Query) -> Result<Vec<Versioned<R>>, ReadError> {
        let rows = self.database.read(query.list(R::TABLE)?).await?;
        rows.into_iter().map(row::record).collect()
    }

    /// Counts the records that a query selects.
    pub async fn count<R: Record>(&self, query: Query) -> Result<u64, ReadError> {
        self.number(query.count(R::TABLE)?).await
    }

    /// Counts the records that a query selects for each pair of values of two columns, in no order; a number is told as
    /// its digits.
    pub async fn count_by<R: Record>(
        &self,
        query: Query,
        columns: [&str; 2],
    ) -> Result<Vec<([Option<String>; 2], u64)>, ReadError> {
        let rows = self
            .database
            .read(query.count_by(R::TABLE, columns)?)
            .await?;
        let counted = rows.into_iter().filter_map(|row| {
            let [first, second, count] = <[Value; 3]>::try_from(row).ok()?;
            let count = u64::try_from(count.as_integer()?).ok()?;
            Some(([first.into_text(), second.into_text()], count))
        });
        Ok(counted.collect())
    }

    /// Looks for knowledge items that hold any of the words of `text`, or other English forms of them, best match first.
    pub async fn search_knowledge(
        &self,
        text: &str,
        limit: u32,
    ) -> Result<Vec<Versioned<KnowledgeItem>>, ReadError> {
        let Some(statement) = self.database.dialect().search(text, limit) else {
            return Ok(Vec::new());
        };
        let rows = self.database.read(statement).await?;
        rows.into_iter().map(row::record).collect()
    }

    /// Reads one event with its data, however large.
    pub async fn event(&self, id: EventId) -> Result<Option<StoredEvent>, ReadError> {
        let statement = select_event(self.database.dialect(), id);
        let rows = self.database.read(statement).await?;
        let Some(mut stored) = rows.into_iter().next().map(row::stored_event).transpose()? else {
            return Ok(None);
        };
        if let Some(hash) = stored.event.dataref.clone() {
            Arc::make_mut(&mut stored.event).data = self.blob(id, hash).await?;
        }
        Ok(Some(stored))
    }

    /// Reads the data of a large event.
    async fn blob(
        &self,
        event: EventId,
        hash: ContentHash,
    ) -> Result<serde_json::Value, ReadError> {
        let unreadable = |reason: String| ReadError::Blob {
            event,
            hash: hash.clone(),
            reason,
        };
        let text = if let Some(files) = self.database.blobs().cloned() {
            let name = hash.clone();
            let read = tokio::task::spawn_blocking(move || files.read(&name)).await;
            read.unwrap_or_else(|stopped| Err(stopped.into()))
                .map_err(|problem| unreadable(problem.to_string()))?
        } else {
            let rows = self.database.read(select_blob(&hash)).await?;
            let found = rows.into_iter().flatten().next().and_then(Value::into_text);
            found.ok_or_else(|| unreadable("it is gone".to_owned()))?
        };
        serde_json::from_str(&text).map_err(|problem| unreadable(problem.to_string()))
    }

    /// Reads the events that a filter selects, in commit order unless it says otherwise; large data is not fetched.
    pub async fn events(&self, filter: &EventFilter) -> Result<Vec<StoredEvent>, ReadError> {
        let statement = select_events_of(self.database.dialect(), filter);
        let rows = self.database.read(statement).await?;
        rows.into_iter().map(row::stored_event).collect()
    }

    /// Lists the ids, of events or of their chains, that begin or end with `part`, each once and in no order.
    pub async fn event_keys(&self, key: EventKey, part: &str) -> Result<Vec<String>, ReadError> {
        let rows = self.database.read(select_event_keys(key, part)).await?;
        let keys = rows.into_iter().flatten();
        Ok(keys.filter_map(Value::into_text).collect())
    }

    /// Returns the sequence of the newest event, 0 before the first.
    pub async fn last_sequence(&self) -> Result<i64, ReadError> {
        let number = self.number(Statement::new(NEWEST)).await?;
        Ok(i64::try_from(number).unwrap_or(i64::MAX))
    }

    /// Reads every subscription, by name; `from` has no meaning any more and is `Now`.
    pub async fn subscriptions(&self) -> Result<Vec<Subscription>, ReadError> {
        let rows = self.database.read(select_subscriptions()).await?;
        rows.into_iter().map(row::subscription).collect()
    }

    /// Reads open deliveries in commit order, those of one subscriber or of all; large data is not fetched.
    pub async fn open_deliveries(
        &self,
        subscriber: Option<&ComponentName>,
        after_sequence: i64,
        limit: u32,
    ) -> Result<Vec<OpenDelivery>, ReadError> {
        let statement = select_open(subscriber, after_sequence, limit);
        let rows = self.database.read(statement).await?;
        rows.into_iter().map(row::open_delivery).collect()
    }

    /// Reads deliveries in any state, for dead letters and views.
    pub async fn deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<DeliveryRow>, ReadError> {
        let statement = select_deliveries(filter);
        let rows = self.database.read(statement).await?;
        rows.into_iter().map(row::delivery_row).collect()
    }

    pub(crate) async fn number(&self, statement: Statement) -> Result<u64, ReadError> {
        let rows = self.database.read(statement).await?;
        let number = rows.first().and_then(|row| row.first()?.as_integer());
        Ok(number
            .and_then(|number| u64::try_from(number).ok())
            .unwrap_or(0))
    }
}

pub(crate) const NEWEST: &str = "SELECT COALESCE(MAX(sequence), 0) FROM events";

pub(crate) fn select_event(dialect: Dialect, id: EventId) -> Statement {
    let mut statement = select_events(dialect);
    statement.push(" WHERE e.id = ").bind(id);
    statement
}

pub(crate) fn select_blob(hash: &ContentHash) -> Statement {
    let mut statement = Statement::new("SELECT body FROM blobs WHERE hash = ");
    statement.bind(hash).push(" LIMIT 1");
    statement
}

fn select_events(dialect: Dialect) -> Statement {
    let mut statement = Statement::new("SELECT e.sequence, e.body, ");
    statement
        .push(dialect.subscribers())
        .push(" FROM events AS e");
    statement
}

pub(crate) fn select_subscriptions() -> Statement {
    Statement::new("SELECT name, patterns FROM subscriptions ORDER BY name")
}

pub(crate) fn select_events_of(dialect: Dialect, filter: &EventFilter) -> Statement {
    let mut statement = select_events(dialect);
    write_event_filter(filter, &mut statement);
    let order = if filter.newest_first { " DESC" } else { "" };
    statement.push(" ORDER BY e.sequence").push(order);
    if let Some(limit) = filter.limit {
        statement.push(" LIMIT ").bind(limit);
    }
    statement
}

pub(crate) fn select_event_keys(key: EventKey, part: &str) -> Statement {
    let column = match key {
        EventKey::Id => "e.id",
        EventKey::Correlation => "e.correlation",
    };
    let mut statement = Statement::new("SELECT DISTINCT ");
    statement.push(column).push(" FROM events AS e WHERE ");
    statement.push("SUBSTR(").push(column).push(", 1, LENGTH(");
    statement.bind(part).push(")) = ").bind(part);
    statement.push(" OR SUBSTR(").push(column);
    statement.push(", LENGTH(").push(column).push(") - LENGTH(");
    statement.bind(part).push(") + 1) = ").bind(part);
    statement
}

pub(crate) fn select_open(
    subscriber: Option<&ComponentName>,
    after_sequence: i64,
    limit: u32,
) -> Statement {
    let mut statement = Statement::new(
        "SELECT d.sequence, d.subscriber, d.attempts, d.due, d.error, e.body \
         FROM deliveries AS d JOIN events AS e ON e.sequence = d.sequence \
         WHERE d.state = 'open' AND d.sequence > ",
    );
    statement.bind(after_sequence);
    if let Some(subscriber) = subscriber {
        statement.push(" AND d.subscriber = ").bind(subscriber);
    }
    statement
        .push(" ORDER BY d.sequence, d.subscriber LIMIT ")
        .bind(limit);
    statement
}

pub(crate) fn select_deliveries(filter: &DeliveryFilter) -> Statement {
    let mut statement = Statement::new(
        "SELECT d.sequence, d.subscriber, e.id, e.type, d.entity, d.state, d.attempts, d.due, \
         d.error, d.closed_at FROM deliveries AS d JOIN events AS e ON e.sequence = d.sequence \
         WHERE 1 = 1",
    );
    write_delivery_filter(filter, &mut statement);
    let order = if filter.newest_first { " DESC" } else { "" };
    statement
        .push(" ORDER BY d.sequence")
        .push(order)
        .push(", d.subscriber");
    if let Some(limit) = filter.limit {
        statement.push(" LIMIT ").bind(limit);
    }
    statement
}

fn write_event_filter(filter: &EventFilter, statement: &mut Statement) {
    statement.push(" WHERE 1 = 1");
    let conditions: [(&str, Value); 7] = [
        ("e.sequence > ", filter.after_sequence.into()),
        ("e.sequence < ", filter.before_sequence.into()),
        ("e.time >= ", filter.from.into()),
        ("e.time < ", filter.until.into()),
        ("e.source = ", filter.source.as_ref().into()),
        ("e.correlation = ", filter.correlation.into()),
        ("e.subject = ", filter.subject.as_ref().into()),
    ];
    for (condition, value) in conditions {
        if value != Value::Null {
            statement.push(" AND ").push(condition).bind(value);
        }
    }
    if let Some(pattern) = &filter.pattern {
        statement.push(" AND ");
        write_pattern(pattern, statement);
    }
}

/// Adds a condition on `e` that selects what [`EventPattern::matches`] selects.
pub(crate) fn write_pattern(pattern: &EventPattern, statement: &mut Statement) {
    match pattern.event_type.strip_suffix('*') {
        Some("") => {
            statement.push("(1 = 1");
        }
        Some(prefix) => {
            statement.push("(LENGTH(e.type) > LENGTH(").bind(prefix);
            statement
                .push(") AND SUBSTR(e.type, 1, LENGTH(")
                .bind(prefix);
            statement.push(")) = ").bind(prefix);
        }
        None => {
            statement
                .push("(e.type = ")
                .bind(pattern.event_type.as_str());
        }
    }
    if let Some(source) = &pattern.source {
        statement.push(" AND e.source = ").bind(source);
    }
    statement.push(")");
}

fn write_delivery_filter(filter: &DeliveryFilter, statement: &mut Statement) {
    let conditions: [(&str, Value); 4] = [
        ("d.subscriber = ", filter.subscriber.as_ref().into()),
        ("e.id = ", filter.event.into()),
        ("d.entity = ", filter.subject.as_ref().into()),
        ("d.sequence > ", filter.after_sequence.into()),
    ];
    for (condition, value) in conditions {
        if value != Value::Null {
            statement.push(" AND ").push(condition).bind(value);
        }
    }
    if filter.states.is_empty() {
        return;
    }
    let states: Vec<String> = filter
        .states
        .iter()
        .map(|state| format!("'{state}'"))
        .collect();
    statement
        .push(" AND d.state IN (")
        .push(&states.join(", "))
        .push(")");
    let common = [DeliveryState::Open, DeliveryState::Done];
    if !filter.states.iter().any(|state| common.contains(state)) {
        // Says what the partial index says, in its words, so that it can serve.
        statement.push(" AND d.state NOT IN ('open', 'done')");
    }
}
