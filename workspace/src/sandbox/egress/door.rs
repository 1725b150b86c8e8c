//! Opens a way out for one command, as long as it runs.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::task::JoinSet;

use super::exchange;
use super::{Egress, Refusal};

/// So many connections are served at once; others wait.
const MOST_CONNECTIONS: usize = 128;
/// So many refusals of one command are told.
const MOST_REFUSALS: usize = 16;
/// How long nobody is let in after that failed.
const REST: Duration = Duration::from_millis(50);

/// A socket that leads to the hosts of an [`Egress`] while it is served.
#[derive(Debug)]
pub(crate) struct Door {
    egress: Arc<Egress>,
    listener: UnixListener,
    socket: PathBuf,
    refusals: Arc<Mutex<Vec<Refusal>>>,
    /// Where the socket is, for nobody else to enter.
    _directory: TempDir,
}

impl Door {
    /// Makes the socket; nobody answers there before [`Door::serve`].
    pub(crate) fn open(egress: Egress) -> io::Result<Self> {
        // Not below the state directory: its path may be longer than the address of a socket.
        let directory = tempfile::Builder::new().prefix("ropewalk-").tempdir()?;
        let socket = directory.path().join("hosts.sock");
        Ok(Self {
            egress: Arc::new(egress),
            listener: UnixListener::bind(&socket)?,
            socket,
            refusals: Arc::default(),
            _directory: directory,
        })
    }

    /// Returns where the socket is.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Serves whoever comes; when this is dropped, nobody any more.
    pub(crate) async fn serve(&self) -> Infallible {
        let mut served = JoinSet::new();
        loop {
            tokio::select! {
                came = self.listener.accept(), if served.len() < MOST_CONNECTIONS => match came {
                    Ok((client, _)) => {
                        let (egress, refusals) = (Arc::clone(&self.egress), Arc::clone(&self.refusals));
                        served.spawn(async move {
                            exchange::serve(client, &egress, |refusal| note(&refusals, refusal)).await;
                        });
                    }
                    // No file descriptor is free, for example.
                    Err(_) => tokio::time::sleep(REST).await,
                },
                Some(_) = served.join_next() => {}
            }
        }
    }

    /// Returns what was refused so far, each once.
    pub(crate) fn refusals(&self) -> Vec<Refusal> {
        let refusals = self.refusals.lock();
        refusals.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn note(refusals: &Mutex<Vec<Refusal>>, refusal: Refusal) {
    let mut known = refusals.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() < MOST_REFUSALS && !known.contains(&refusal) {
        known.push(refusal);
    }
}
