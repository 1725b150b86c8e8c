//! Lets another process say that it has committed something: a socket in the state directory.
//!
//! A poke carries nothing; what was committed lies in the store.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ropewalk_runtime::Supervisor;
use tokio::net::UnixDatagram;
use tracing::{debug, warn};

use crate::bus::Bus;

/// The name of the socket in the state directory.
const SOCKET: &str = "poke.sock";
/// The longest path that fits into the address of a socket on every system.
const LONGEST_ADDRESS: usize = 100;

/// Says why a poke could not be heard or sent.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the socket `{path}`: {source}")]
pub struct PokeError {
    /// The socket.
    path: PathBuf,
    /// Why.
    source: io::Error,
}

/// Pokes the process that consumes the deliveries of a state directory.
#[derive(Debug, Clone, Copy)]
pub struct Poker;

impl Poker {
    /// Tells the process that consumes to look at the store; answers whether there is one.
    pub fn poke(state_directory: &Path) -> Result<bool, PokeError> {
        let path = state_directory.join(SOCKET);
        let failed = |source| PokeError {
            path: path.clone(),
            source,
        };
        let address = Address::of(&path).map_err(failed)?;
        let socket = std::os::unix::net::UnixDatagram::unbound().map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        match socket.send_to(&[1], &address.path) {
            Ok(_) => Ok(true),
            // So many pokes are waiting that one more would say nothing new.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                Ok(false)
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Makes `bus` hear pokes; only for the process that holds the instance lock of the state directory.
    pub fn listen(
        bus: &Bus,
        state_directory: &Path,
        supervisor: &Supervisor,
    ) -> Result<(), PokeError> {
        let path = state_directory.join(SOCKET);
        let socket = place(&path, |path| UnixDatagram::bind(path))?;
        let bus = bus.clone();
        let stop = supervisor.shutdown().soft().clone();
        supervisor.spawn("bus.poke", async move {
            loop {
                let mut poke = [0; 8];
                let heard = tokio::select! {
                    () = stop.cancelled() => break,
                    heard = socket.recv(&mut poke) => heard,
                };
                match heard {
                    Ok(_) => {
                        debug!("poked by another process");
                        bus.poke();
                    }
                    Err(error) => {
                        warn!("the socket `{}` failed: {error}", path.display());
                        break;
                    }
                }
            }
            // Whoever comes next makes its own; a leftover only answers that nobody listens.
            drop(fs::remove_file(&path));
        });
        Ok(())
    }
}

/// Binds a socket under another name first, so that nobody reaches it before its permissions are set.
pub(crate) fn place<Socket>(
    path: &Path,
    bind: impl FnOnce(&Path) -> io::Result<Socket>,
) -> Result<Socket, PokeError> {
    let placed = || {
        let fresh = path.with_extension("new");
        match fs::remove_file(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let address = Address::of(&fresh)?;
        let socket = bind(&address.path)?;
        fs::set_permissions(&fresh, Permissions::from_mode(0o600))?;
        fs::rename(&fresh, path)?;
        Ok(socket)
    };
    placed().map_err(|source| PokeError {
        path: path.to_owned(),
        source,
    })
}

/// A path to a socket that is short enough, however deep the directory lies.
pub(crate) struct Address {
    pub(crate) path: PathBuf,
    /// Kept open while `path` goes through it.
    _directory: Option<File>,
}

impl Address {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        if path.as_os_str().len() <= LONGEST_ADDRESS {
            return Ok(Self {
                path: path.to_owned(),
                _directory: None,
            });
        }
        let directory = File::open(directory)?;
        let through = format!("/proc/self/fd/{}", directory.as_raw_fd());
        Ok(Self {
            path: Path::new(&through).join(name),
            _directory: Some(directory),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_private_and_reached_however_deep_its_directory_lies() {
        for depth in [1, 60] {
            let root = tempfile::tempdir().unwrap();
            let state = root.path().join("deep".repeat(2)).join("x/".repeat(depth));
            fs::create_dir_all(&state).unwrap();
            assert!(!Poker::poke(&state).unwrap(), "nobody listens");
            let bind = || place(&state.join(SOCKET), |path| UnixDatagram::bind(path)).unwrap();
            let socket = bind();
            let mode = fs::metadata(state.join(SOCKET))
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o600);
            assert!(Poker::poke(&state).unwrap());
            assert_eq!(socket.recv(&mut [0; 8]).await.unwrap(), 1);
            drop(socket);
            assert!(!Poker::poke(&state).unwrap(), "a leftover counts as nobody");
            drop(bind());
        }
    }
}
