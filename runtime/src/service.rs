//! Tells the manager of services that started this process how it does (`sd_notify` of systemd); says nothing where none
//! asks for it.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tracing::debug;

use crate::Supervisor;

/// The manager, as it named itself in the environment.
#[derive(Debug, Clone)]
pub struct ServiceManager {
    socket: Arc<UnixDatagram>,
    address: Address,
    watchdog: Option<Duration>,
}

#[derive(Debug, Clone)]
enum Address {
    Path(PathBuf),
    /// A name that lies in no file system.
    #[cfg(target_os = "linux")]
    Abstract(Vec<u8>),
}

impl ServiceManager {
    /// Finds the manager by what it wrote into the environment, which `get` reads: `NOTIFY_SOCKET`, and `WATCHDOG_USEC` for
    /// the process `WATCHDOG_PID`. `None` where nobody asks, or asks over what is no local socket.
    pub fn find<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let address = address(get("NOTIFY_SOCKET")?)?;
        let socket = UnixDatagram::unbound().ok()?;
        // Who does not listen holds nobody up.
        socket.set_nonblocking(true).ok()?;
        let is_meant = |pid: &str| pid.parse() == Ok(std::process::id());
        let micros: Option<u64> = get("WATCHDOG_USEC").and_then(|text| text.parse().ok());
        let watchdog = micros.filter(|micros| *micros > 0);
        let watchdog = watchdog.filter(|_| get("WATCHDOG_PID").is_none_or(is_meant));
        Some(Self {
            socket: Arc::new(socket),
            address,
            watchdog: watchdog.map(Duration::from_micros),
        })
    }

    /// Says that the process works, with a line for people.
    pub fn ready(&self, status: &str) {
        let line = status.lines().next().unwrap_or_default();
        self.tell(&format!("READY=1\nSTATUS={line}"));
    }

    /// Says that the process is about to end.
    pub fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// Gives a sign of life twice as often as the manager wants one, while the tasks of this process get their turn, and
    /// until it stops: who is about to end is waited for otherwise.
    pub fn keep_alive(&self, supervisor: &Supervisor) {
        let Some(watchdog) = self.watchdog else {
            return;
        };
        let (manager, stop) = (self.clone(), supervisor.shutdown().soft().clone());
        supervisor.spawn("service.watchdog", async move {
            loop {
                manager.tell("WATCHDOG=1");
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(watchdog / 2) => {}
                }
            }
        });
    }

    fn tell(&self, state: &str) {
        if let Err(error) = self.send(state.as_bytes()) {
            debug!("the manager of services does not hear `{state}`: {error}");
        }
    }

    fn send(&self, state: &[u8]) -> io::Result<usize> {
        match &self.address {
            Address::Path(path) => self.socket.send_to(state, path),
            #[cfg(target_os = "linux")]
            Address::Abstract(name) => {
                use std::os::linux::net::SocketAddrExt;
                let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
                self.socket.send_to_addr(state, &address)
            }
        }
    }
}

fn address(text: &str) -> Option<Address> {
    #[cfg(target_os = "linux")]
    if let Some(name) = text.strip_prefix('@') {
        return Some(Address::Abstract(name.as_bytes().to_vec()));
    }
    text.starts_with('/').then(|| Address::Path(text.into()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Shutdown;

    fn find(variables: &[(&str, &str)]) -> Option<ServiceManager> {
        let known: BTreeMap<&str, &str> = variables.iter().copied().collect();
        ServiceManager::find(|name| known.get(name).copied())
    }

    fn heard(manager: &UnixDatagram) -> String {
        let mut buffer = [0; 256];
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_manager_hears_over_a_path_and_over_a_name() {
        use std::os::linux::net::SocketAddrExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let name = format!("ropewalk-test-{}", std::process::id());
        let named = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        for (manager, said) in [
            (UnixDatagram::bind(&path), path.display().to_string()),
            (UnixDatagram::bind_addr(&named), format!("@{name}")),
        ] {
            let manager = manager.unwrap();
            let pid = std::process::id().to_string();
            let variables = [
                ("NOTIFY_SOCKET", &*said),
                ("WATCHDOG_USEC", "20000"),
                ("WATCHDOG_PID", &pid),
            ];
            let found = find(&variables).unwrap();
            found.ready("runs\nREADY=0");
            assert_eq!(heard(&manager), "READY=1\nSTATUS=runs");
            let supervisor = Supervisor::new(Shutdown::new());
            found.keep_alive(&supervisor);
            for _ in 0..3 {
                assert_eq!(heard(&manager), "WATCHDOG=1");
            }
            supervisor.shutdown().begin();
            let late = supervisor.drain(Duration::from_secs(20)).await;
            assert_eq!(late, Ok(Vec::new()));
        }
    }

    #[test]
    fn nobody_is_told_who_did_not_ask() {
        assert!(find(&[]).is_none());
        for no_socket in ["", "notify", "vsock:2:1234"] {
            assert!(
                find(&[("NOTIFY_SOCKET", no_socket)]).is_none(),
                "{no_socket}"
            );
        }
        // The signs of life of another process are not ours to give.
        let of_another = find(&[
            ("NOTIFY_SOCKET", "/nowhere"),
            ("WATCHDOG_USEC", "1000"),
            ("WATCHDOG_PID", "1"),
        ]);
        assert!(of_another.unwrap().watchdog.is_none());
        // Who has gone is told, and that changes nothing.
        find(&[("NOTIFY_SOCKET", "/nowhere")]).unwrap().stopping();
    }
}
