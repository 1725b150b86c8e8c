//! Puts the brake of this process on while people have stopped everything, whoever told the store so.

use std::time::Duration;

use ropewalk_desk::halt;
use ropewalk_runtime::{Brake, Clock, Supervisor};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::halt::Halt;
use ropewalk_store::{ReadError, Store};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// How often the store is asked: no model call and no command begins later than that after everything was stopped.
const LOOK: Duration = Duration::from_secs(1);

/// Returns a brake that follows the store; it is right before anything begins.
pub(crate) async fn brake(
    store: &Store,
    clock: &Clock,
    supervisor: &Supervisor,
) -> Result<Brake, ReadError> {
    let brake = Brake::default();
    follow(&brake, store).await?;
    let (followed, store, clock) = (brake.clone(), store.clone(), clock.clone());
    let stop = supervisor.shutdown().soft().clone();
    supervisor.keep("halt", move || {
        run(followed.clone(), store.clone(), clock.clone(), stop.clone())
    });
    Ok(brake)
}

async fn run(brake: Brake, store: Store, clock: Clock, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = clock.sleep(LOOK) => {}
        }
        // As it was, as long as nobody can say.
        if let Err(error) = follow(&brake, &store).await {
            warn!(
                "whether everything is stopped is not known: {}",
                Words::of(&error)
            );
        }
    }
}

/// Says who stopped everything, and what lets it go on.
pub(crate) fn in_words(halt: &Halt) -> String {
    format!("{}; `ropewalk resume` lets it go on", halt.in_words())
}

async fn follow(brake: &Brake, store: &Store) -> Result<(), ReadError> {
    let standing = halt::standing(store).await?;
    if standing.is_some() != brake.is_on() {
        if let Some(halt) = &standing {
            warn!("{}", in_words(halt));
        } else {
            info!("everything goes on");
        }
    }
    brake.set(standing.is_some());
    Ok(())
}
