//! Hears from a server that another process committed events, and tells the feed.

use std::time::Duration;

use ropewalk_runtime::Supervisor;
use sqlx::postgres::PgListener;
use tokio::sync::broadcast::WeakSender;
use tokio::sync::oneshot;
use tracing::warn;

use crate::database::PostgresDatabase;
use crate::feed::Told;

/// How long a server that cannot be listened to is left alone.
const PAUSE: Duration = Duration::from_millis(500);

/// Begins to listen, before anything can be missed; ends when what it returns is dropped.
pub(crate) async fn start(
    database: PostgresDatabase,
    own: String,
    feed: WeakSender<Told>,
    tasks: &Supervisor,
) -> Result<oneshot::Sender<()>, sqlx::Error> {
    let listener = database.listen().await?;
    let (end, ended) = oneshot::channel();
    tasks.spawn("store-listen", async move {
        tokio::select! {
            _ = ended => {}
            () = listen(&database, listener, &own, &feed) => {}
        }
    });
    Ok(end)
}

async fn listen(
    database: &PostgresDatabase,
    mut listener: PgListener,
    own: &str,
    feed: &WeakSender<Told>,
) {
    loop {
        match listener.try_recv().await {
            // What this process commits, its own writer tells.
            Ok(Some(notice)) if notice.payload() == own => continue,
            Ok(_) => {}
            Err(problem) => {
                warn!("the database does not tell of other processes: {problem}");
                listener = listen_again(database).await;
            }
        }
        // Without a connection for a while, something may have been missed.
        let Some(feed) = feed.upgrade() else { return };
        feed.send(Told::Elsewhere).unwrap_or_default();
    }
}

async fn listen_again(database: &PostgresDatabase) -> PgListener {
    loop {
        tokio::time::sleep(PAUSE).await;
        if let Ok(listener) = database.listen().await {
            return listener;
        }
    }
}
