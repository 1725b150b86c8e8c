//! Lets other processes on this machine hear ephemeral events: a socket that is found in the state directory, a line of JSON each.

use std::path::Path;
use std::sync::Arc;

use ropewalk_runtime::Supervisor;
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::bus::Bus;
use crate::live::LiveEvents;
use crate::sockets::{Address, LOOK, SocketError, SocketHome};

/// The name of the socket.
const SOCKET: &str = "live.sock";
/// How many processes may listen at once.
const LISTENERS: usize = 32;

/// Tells ephemeral events to other processes.
#[derive(Debug, Clone, Copy)]
pub struct LiveRelay;

impl LiveRelay {
    /// Lets others hear what `bus` carries; only for the process that holds the instance lock of the state directory.
    pub fn serve(bus: &Bus, home: &SocketHome, supervisor: &Supervisor) -> Result<(), SocketError> {
        let home = home.clone();
        let bind = move || home.hold(SOCKET, |path| UnixListener::bind(path));
        let mut held = bind()?;
        let (bus, tasks) = (bus.clone(), supervisor.clone());
        let stop = supervisor.shutdown().soft().clone();
        supervisor.spawn("bus.overheard", async move {
            let places = Arc::new(Semaphore::new(LISTENERS));
            loop {
                let caller = tokio::select! {
                    () = stop.cancelled() => break,
                    caller = held.socket.accept() => caller,
                    () = tokio::time::sleep(LOOK) => {
                        held = held.kept(&bind);
                        continue;
                    }
                };
                match caller {
                    Ok((caller, _)) => {
                        // Who comes in vain hears nothing, and finds in the store what was said.
                        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
                            let (live, stop) = (bus.live().subscribe(), stop.clone());
                            tasks.spawn("bus.overheard.listener", async move {
                                tell(caller, live, stop).await;
                                drop(place);
                            });
                        }
                    }
                    Err(error) => {
                        warn!("the socket `{}` failed: {error}", held.path().display());
                        break;
                    }
                }
            }
            held.give_up();
        });
        Ok(())
    }

    /// Listens to the process that tells; `None` where none does.
    pub async fn listen(state_directory: &Path) -> Option<LiveEvents> {
        let address = Address::of(&state_directory.join(SOCKET)).ok()?;
        let stream = UnixStream::connect(&address.path).await.ok()?;
        Some(LiveEvents::from_stream(stream))
    }
}

/// Tells events until the listener hangs up or the process stops.
async fn tell(mut caller: UnixStream, mut live: LiveEvents, stop: CancellationToken) {
    loop {
        let event = tokio::select! {
            () = stop.cancelled() => return,
            event = live.next() => event,
        };
        let Some(Ok(mut told)) = event.map(|event| serde_json::to_vec(&event)) else {
            return;
        };
        told.push(b'\n');
        let written = tokio::select! {
            () = stop.cancelled() => return,
            written = caller.write_all(&told) => written,
        };
        if written.is_err() {
            return;
        }
    }
}
