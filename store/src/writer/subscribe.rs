//! Changes the routing, in a transaction of its own.

use chrono::{DateTime, Utc};
use ropewalk_schemas::ComponentName;
use serde_json::json;

use crate::database::dialect::Statement;
use crate::error::CommitError;
use crate::events::{StartAt, Subscription};
use crate::reader::write_pattern;
use crate::writer::Writer;
use crate::writer::batch::translate;
use crate::writer::link::WriteKind;

impl Writer {
    /// Stores a subscription; a new subscriber that begins in the past gets its delivery rows at once.
    pub(crate) async fn subscribe(
        &mut self,
        subscription: &Subscription,
    ) -> Result<(), CommitError> {
        self.refuse_if_over()?;
        self.link.ready().await.map_err(translate)?;
        let outcome = self.write_subscription(subscription).await;
        let outcome = outcome.map(|()| ((), WriteKind::Events));
        self.end(outcome).await.map_err(translate)
    }

    async fn write_subscription(&mut self, subscription: &Subscription) -> Result<(), sqlx::Error> {
        let patterns = json!(subscription.patterns).to_string();
        let stored = self.patterns(&subscription.name).await?;
        if stored.as_ref() == Some(&patterns) {
            return Ok(());
        }
        let upsert = upsert(&subscription.name, patterns, self.clock.now());
        self.link.connection.execute(upsert).await?;
        self.next_epoch().await?;
        if stored.is_none() {
            self.deliver_past(subscription, None).await?;
        }
        Ok(())
    }

    /// Inserts delivery rows for stored events that have none, at most so many; rows closed by an earlier `unsubscribe`
    /// are opened again. Returns how many.
    async fn deliver_past(
        &mut self,
        subscription: &Subscription,
        most: Option<i64>,
    ) -> Result<u64, sqlx::Error> {
        let from = match subscription.from {
            StartAt::Now => return Ok(0),
            StartAt::Beginning => 0,
            StartAt::Sequence(sequence) => sequence,
        };
        let insert = insert_past(subscription, (from, most), self.clock.now());
        self.link.connection.execute(insert).await
    }

    /// Delivers stored events to a subscriber that has not got them; nothing where nobody is called so.
    pub(crate) async fn replay(
        &mut self,
        name: &ComponentName,
        from: i64,
    ) -> Result<Option<u64>, CommitError> {
        self.refuse_if_over()?;
        self.link.ready().await.map_err(translate)?;
        let outcome = self.write_replay(name, from).await;
        let outcome = outcome.map(|replayed| (replayed, WriteKind::Events));
        self.end(outcome).await.map_err(translate)
    }

    async fn write_replay(
        &mut self,
        name: &ComponentName,
        from: i64,
    ) -> Result<Option<u64>, sqlx::Error> {
        let Some(patterns) = self.patterns(name).await? else {
            return Ok(None);
        };
        let subscription = Subscription {
            name: name.clone(),
            patterns: serde_json::from_str(&patterns)
                .map_err(|error| sqlx::Error::Decode(error.into()))?,
            from: StartAt::Sequence(from),
        };
        let replayed = self.deliver_past(&subscription, Some(REPLAYED)).await?;
        Ok(Some(replayed))
    }

    /// Returns what a subscriber takes, as it is stored.
    async fn patterns(&mut self, name: &ComponentName) -> Result<Option<String>, sqlx::Error> {
        let known = self.link.connection.fetch(select(name)).await?;
        let row = known.into_iter().next();
        Ok(row.and_then(|row| row.into_iter().next()?.into_text()))
    }

    /// Removes a subscription and closes its open deliveries; an unknown name is no error.
    pub(crate) async fn unsubscribe(&mut self, name: &ComponentName) -> Result<(), CommitError> {
        self.refuse_if_over()?;
        self.link.ready().await.map_err(translate)?;
        let outcome = self.remove_subscription(name).await;
        let outcome = outcome.map(|()| ((), WriteKind::Rows));
        self.end(outcome).await.map_err(translate)
    }

    async fn remove_subscription(&mut self, name: &ComponentName) -> Result<(), sqlx::Error> {
        if self.link.connection.execute(delete(name)).await? == 0 {
            return Ok(());
        }
        let close = close(name, self.clock.now());
        self.link.connection.execute(close).await?;
        self.next_epoch().await
    }

    /// Tells every process to load the subscriptions again.
    async fn next_epoch(&mut self) -> Result<(), sqlx::Error> {
        self.link
            .connection
            .execute(Statement::new(NEXT_EPOCH))
            .await
            .map(drop)
    }

    pub(super) fn refuse_if_over(&self) -> Result<(), CommitError> {
        self.refusal.borrow().clone().map_or(Ok(()), Err)
    }
}

/// How many events are replayed at once: too many open deliveries would keep new events out.
const REPLAYED: i64 = 10_000;

const NEXT_EPOCH: &str = "UPDATE counters SET value = value + 1 WHERE name = 'routing'";

fn select(name: &ComponentName) -> Statement {
    let mut select = Statement::new("SELECT patterns FROM subscriptions WHERE name = ");
    select.bind(name);
    select
}

fn upsert(name: &ComponentName, patterns: String, now: DateTime<Utc>) -> Statement {
    let mut upsert = Statement::new("INSERT INTO subscriptions (name, patterns, since) VALUES (");
    upsert.bind(name).push(", ").bind(patterns).push(", ");
    upsert
        .bind(now)
        .push(") ON CONFLICT (name) DO UPDATE SET patterns = excluded.patterns");
    upsert
}

fn insert_past(
    subscription: &Subscription,
    (from, most): (i64, Option<i64>),
    now: DateTime<Utc>,
) -> Statement {
    let mut insert = Statement::new(
        "INSERT INTO deliveries (sequence, subscriber, entity, priority, state, attempts, due) \
         SELECT e.sequence, ",
    );
    insert
        .bind(&subscription.name)
        .push(", e.subject, e.priority, 'open', 0, ")
        .bind(now)
        .push(" FROM events AS e WHERE e.sequence >= ")
        .bind(from)
        .push(" AND (");
    for (index, pattern) in subscription.patterns.iter().enumerate() {
        if index > 0 {
            insert.push(" OR ");
        }
        write_pattern(pattern, &mut insert);
    }
    insert
        .push(
            ") AND NOT EXISTS (SELECT 1 FROM deliveries AS d WHERE d.sequence = e.sequence \
             AND d.state <> 'unsubscribed' AND d.subscriber = ",
        )
        .bind(&subscription.name)
        .push(")");
    if let Some(most) = most {
        insert.push(" ORDER BY e.sequence LIMIT ").bind(most);
    }
    insert.push(
        " ON CONFLICT (sequence, subscriber) DO UPDATE SET state = excluded.state, attempts = 0, \
         due = excluded.due, error = NULL, closed_at = NULL WHERE deliveries.state = 'unsubscribed'",
    );
    insert
}

fn delete(name: &ComponentName) -> Statement {
    let mut delete = Statement::new("DELETE FROM subscriptions WHERE name = ");
    delete.bind(name);
    delete
}

fn close(name: &ComponentName, now: DateTime<Utc>) -> Statement {
    let mut close = Statement::new("UPDATE deliveries SET state = 'unsubscribed', closed_at = ");
    close
        .bind(now)
        .push(" WHERE state = 'open' AND subscriber = ")
        .bind(name);
    close
}

/// Returns each statement that changes the routing, to have it looked at.
#[cfg(test)]
pub(crate) fn statements(subscription: &Subscription, now: DateTime<Utc>) -> Vec<Statement> {
    let name = &subscription.name;
    vec![
        select(name),
        upsert(name, "[]".to_owned(), now),
        insert_past(subscription, (1, None), now),
        insert_past(subscription, (1, Some(REPLAYED)), now),
        delete(name),
        close(name, now),
        Statement::new(NEXT_EPOCH),
    ]
}
