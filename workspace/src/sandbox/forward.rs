//! Leads from a port of the command's own loopback to the socket by which hosts are reached.

use std::ffi::OsStr;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// What programs look up to find a proxy; some know only the small letters, some only the large ones.
const PROXY: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
const WITHOUT: [&str; 2] = ["NO_PROXY", "no_proxy"];
/// What a command serves by itself.
const LOOPBACK: &str = "localhost,127.0.0.1,::1";
/// So many connections are passed on at once; as many as there is an answer to.
const MOST_CONNECTIONS: usize = 128;
/// How long nobody is let in after that failed.
const REST: Duration = Duration::from_millis(50);

/// Begins to pass on what comes to a port, from a thread of this process; returns where that is.
pub(super) fn begin(socket: &Path) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let socket = socket.to_owned();
    std::thread::Builder::new().spawn(move || runtime.block_on(pass_on(listener, socket)))?;
    Ok(address)
}

/// Tells `command` where the proxy is.
pub(super) fn tell(command: &mut Command, address: SocketAddr) {
    let url = format!("http://{address}");
    command.envs(PROXY.map(|name| (name, OsStr::new(&url))));
    command.envs(WITHOUT.map(|name| (name, LOOPBACK)));
}

async fn pass_on(listener: TcpListener, socket: PathBuf) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let (room, socket) = (Arc::new(Semaphore::new(MOST_CONNECTIONS)), Arc::new(socket));
    let mut passing = JoinSet::new();
    loop {
        // Nobody closes it.
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return Ok(());
        };
        let Ok((mut client, _)) = listener.accept().await else {
            tokio::time::sleep(REST).await;
            continue;
        };
        let socket = Arc::clone(&socket);
        passing.spawn(async move {
            if let Ok(mut door) = UnixStream::connect(&*socket).await {
                // Either side may break off.
                tokio::io::copy_bidirectional(&mut client, &mut door)
                    .await
                    .ok();
            }
            drop(place);
        });
        while passing.try_join_next().is_some() {}
    }
}
