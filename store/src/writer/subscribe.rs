//! Changes the routing, in a transaction of its own.

use ropewalk_schemas::ComponentName;
use serde_json::json;

use crate::dialect::Statement;
use crate::error::CommitError;
use crate::events::{StartAt, Subscription};
use crate::reader::write_pattern;
use crate::writer::Writer;
use crate::writer::batch::translate;

impl Writer {
    /// Stores a subscription; a new subscriber that begins in the past gets its delivery rows at once.
    pub(crate) async fn subscribe(
        &mut self,
        subscription: &Subscription,
    ) -> Result<(), CommitError> {
        self.refuse_damage()?;
        self.begin().await.map_err(translate)?;
        let outcome = self.write_subscription(subscription).await;
        self.end(outcome).await.map_err(translate)
    }

    async fn write_subscription(&mut self, subscription: &Subscription) -> Result<(), sqlx::Error> {
        let patterns = json!(subscription.patterns).to_string();
        let mut known = Statement::new("SELECT patterns FROM subscriptions WHERE name = ");
        known.bind(&subscription.name);
        let known = self.connection.fetch(known).await?;
        let stored = known
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().next()?.into_text());
        if stored.as_ref() == Some(&patterns) {
            return Ok(());
        }
        let mut upsert =
            Statement::new("INSERT INTO subscriptions (name, patterns, since) VALUES (");
        upsert
            .bind(&subscription.name)
            .push(", ")
            .bind(patterns)
            .push(", ")
            .bind(self.clock.now())
            .push(") ON CONFLICT (name) DO UPDATE SET patterns = excluded.patterns");
        self.connection.execute(upsert).await?;
        self.next_epoch().await?;
        if stored.is_none() {
            self.deliver_past(subscription).await?;
        }
        Ok(())
    }

    /// Inserts delivery rows for stored events; rows closed by an earlier `unsubscribe` are opened again.
    async fn deliver_past(&mut self, subscription: &Subscription) -> Result<(), sqlx::Error> {
        let from = match subscription.from {
            StartAt::Now => return Ok(()),
            StartAt::Beginning => 0,
            StartAt::Sequence(sequence) => sequence,
        };
        let mut insert = Statement::new(
            "INSERT INTO deliveries (sequence, subscriber, entity, priority, state, attempts, due) \
             SELECT e.sequence, ",
        );
        insert
            .bind(&subscription.name)
            .push(", e.subject, e.priority, 'open', 0, ")
            .bind(self.clock.now())
            .push(" FROM events AS e WHERE e.sequence >= ")
            .bind(from)
            .push(" AND (");
        for (index, pattern) in subscription.patterns.iter().enumerate() {
            if index > 0 {
                insert.push(" OR ");
            }
            write_pattern(pattern, &mut insert);
        }
        insert.push(
            ") ON CONFLICT (sequence, subscriber) DO UPDATE SET state = excluded.state, attempts = 0, \
             due = excluded.due, error = NULL, closed_at = NULL WHERE deliveries.state = 'unsubscribed'",
        );
        self.connection.execute(insert).await.map(drop)
    }

    /// Removes a subscription and closes its open deliveries; an unknown name is no error.
    pub(crate) async fn unsubscribe(&mut self, name: &ComponentName) -> Result<(), CommitError> {
        self.refuse_damage()?;
        self.begin().await.map_err(translate)?;
        let outcome = self.remove_subscription(name).await;
        self.end(outcome).await.map_err(translate)
    }

    async fn remove_subscription(&mut self, name: &ComponentName) -> Result<(), sqlx::Error> {
        let mut delete = Statement::new("DELETE FROM subscriptions WHERE name = ");
        delete.bind(name);
        if self.connection.execute(delete).await? == 0 {
            return Ok(());
        }
        let mut close =
            Statement::new("UPDATE deliveries SET state = 'unsubscribed', closed_at = ");
        close
            .bind(self.clock.now())
            .push(" WHERE state = 'open' AND subscriber = ")
            .bind(name);
        self.connection.execute(close).await?;
        self.next_epoch().await
    }

    /// Tells every process to load the subscriptions again.
    async fn next_epoch(&mut self) -> Result<(), sqlx::Error> {
        let update = "UPDATE counters SET value = value + 1 WHERE name = 'routing'";
        self.connection
            .execute(Statement::new(update))
            .await
            .map(drop)
    }

    fn refuse_damage(&self) -> Result<(), CommitError> {
        self.damage
            .clone()
            .map_or(Ok(()), |finding| Err(CommitError::Damaged(finding)))
    }
}
