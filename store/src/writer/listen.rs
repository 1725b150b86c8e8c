//! Hears from a server that another process committed events, and tells the feed.

use std::time::Duration;

use ropewalk_runtime::Supervisor;
use sqlx::postgres::PgListener;
use tokio::sync::broadcast::WeakSender;
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

use crate::command::Command;
use crate::database::PostgresDatabase;
use crate::feed::FeedMessage;

/// How long a server that cannot be listened to is left alone.
const PAUSE: Duration = Duration::from_millis(500);

/// Who is told, and of what not.
pub(crate) struct FeedRelay {
    /// The name of the writer of this process, which tells of its commits by itself.
    pub(crate) own: String,
    pub(crate) feed: WeakSender<FeedMessage>,
    pub(crate) writer: mpsc::WeakSender<Command>,
}

impl FeedRelay {
    /// Tells the writer that its connection may be gone as well.
    fn disconnected(&self) {
        if let Some(writer) = self.writer.upgrade() {
            // A writer that has too much to do notices by itself.
            writer.try_send(Command::Disconnected).unwrap_or_default();
        }
    }
}

/// Begins to listen, before anything can be missed; ends when what it returns is dropped.
pub(crate) async fn start(
    database: PostgresDatabase,
    tell: FeedRelay,
    tasks: &Supervisor,
) -> Result<oneshot::Sender<()>, sqlx::Error> {
    let listener = database.listen().await?;
    let (end, ended) = oneshot::channel();
    tasks.spawn("store-listen", async move {
        tokio::select! {
            _ = ended => {}
            () = listen(&database, listener, &tell) => {}
        }
    });
    Ok(end)
}

async fn listen(database: &PostgresDatabase, mut listener: PgListener, tell: &FeedRelay) {
    loop {
        match listener.try_recv().await {
            Ok(Some(notice)) if notice.payload() == tell.own => continue,
            Ok(Some(_)) => {}
            lost => {
                if let Err(problem) = lost {
                    warn!("the database does not tell of other processes: {problem}");
                }
                tell.disconnected();
                listener = listen_again(database).await;
                tell.disconnected();
            }
        }
        // Without a connection for a while, something may have been missed.
        let Some(feed) = tell.feed.upgrade() else {
            return;
        };
        feed.send(FeedMessage::Elsewhere).unwrap_or_default();
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
