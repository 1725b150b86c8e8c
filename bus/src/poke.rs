//! Lets another process say that it has committed something: a socket that is found in the state directory.
//!
//! A poke carries nothing; what was committed lies in the store.

use std::io;
use std::path::Path;

use ropewalk_runtime::Supervisor;
use tokio::net::UnixDatagram;
use tracing::{debug, warn};

use crate::bus::Bus;
use crate::sockets::{Address, LOOK, SocketError, SocketHome};

/// The name of the socket.
pub(crate) const SOCKET: &str = "poke.sock";

/// Pokes the process that consumes the deliveries of a state directory.
#[derive(Debug, Clone, Copy)]
pub struct Poker;

impl Poker {
    /// Tells the process that consumes to look at the store; answers whether there is one.
    pub fn poke(state_directory: &Path) -> Result<bool, SocketError> {
        let path = state_directory.join(SOCKET);
        let failed = |source| SocketError::of(&path, source);
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
        home: &SocketHome,
        supervisor: &Supervisor,
    ) -> Result<(), SocketError> {
        let (bus, home) = (bus.clone(), home.clone());
        let bind = move || home.hold(SOCKET, |path| UnixDatagram::bind(path));
        let mut held = bind()?;
        let stop = supervisor.shutdown().soft().clone();
        supervisor.spawn("bus.poke", async move {
            loop {
                let mut poke = [0; 8];
                let heard = tokio::select! {
                    () = stop.cancelled() => break,
                    heard = held.socket.recv(&mut poke) => heard,
                    () = tokio::time::sleep(LOOK) => {
                        held = held.kept(&bind);
                        continue;
                    }
                };
                match heard {
                    Ok(_) => {
                        debug!("poked by another process");
                        bus.poke();
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
}
