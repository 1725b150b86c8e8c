//! Listens on an address, and serves each connection within bounds.

mod half;
mod peers;

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use futures::TryFutureExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use ropewalk_desk::people::{People, Person};
use ropewalk_orchestrator::Services;
use ropewalk_runtime::Supervisor;
use ropewalk_schemas::InvalidId;
use ropewalk_schemas::advice::Advice;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower::ServiceExt;
use tracing::{debug, error, warn};

use self::half::{Answer, RequestCount};
use self::peers::PeerCounts;
use crate::guard::Peer;
use crate::shared::{Options, ServerState};
use crate::{api, idempotency};

/// How long the head of a request may take to come.
const HEAD: Duration = Duration::from_secs(10);
/// The most bytes of the head of a request.
const HEAD_BYTES: usize = 64 * 1024;
/// How many ports after the default one are tried, before any free one is taken.
const PORTS: u16 = 20;
/// How long is rested when no connection can be taken.
const REST: Duration = Duration::from_millis(200);
/// How often old keys are forgotten.
const FORGET: Duration = Duration::from_hours(1);
/// What a connection is called where it crashes.
const CONNECTION: &str = "api.connection";

/// Where to listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub socket: SocketAddr,
    /// Whether somebody chose it; a default that is taken moves on.
    pub chosen: bool,
}

/// Says why nothing listens.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Somebody else listens there.
    #[error("the address `{0}` is taken")]
    Taken(SocketAddr),
    /// Others could reach it, and nobody is named who may.
    #[error("`{0}` can be reached from other machines, and nobody is named who may log in")]
    NobodyNamed(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on `{address}`: {source}")]
    Unusable {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
}

impl Advice for ListenError {
    fn next(&self) -> Option<String> {
        let next = match self {
            Self::Taken(_) | Self::Unusable { .. } => {
                "set another with `--bind` or `server.address`"
            }
            Self::NobodyNamed(_) => "add `[people.NAME]` with a token, or bind to 127.0.0.1",
        };
        Some(next.to_owned())
    }
}

/// An address that was taken, at which nobody is answered yet.
#[derive(Debug)]
pub struct Door {
    listener: TcpListener,
    address: SocketAddr,
}

impl Door {
    /// Takes an address; one that others could reach only where `people` are named.
    pub async fn open(address: Address, people: &People) -> Result<Self, ListenError> {
        if !address.socket.ip().is_loopback() && !people.are_named() {
            return Err(ListenError::NobodyNamed(address.socket));
        }
        Self::at(address).await
    }

    /// Takes an address at which nobody learns or changes more than how the program does.
    pub async fn open_to_all(address: Address) -> Result<Self, ListenError> {
        Self::at(address).await
    }

    async fn at(address: Address) -> Result<Self, ListenError> {
        let listener = take(address).await?;
        let address = listener
            .local_addr()
            .map_err(|source| unusable(address.socket, source))?;
        Ok(Self { listener, address })
    }

    /// Returns where it is.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A server that has its address, and serves once it is told to.
pub struct Server {
    door: Door,
    /// Where how the program does is told to whoever comes.
    admin: Option<Door>,
    shared: ServerState,
    tasks: Supervisor,
}

impl Server {
    /// Puts what is served behind a door.
    pub fn new(
        door: Door,
        options: Options,
        services: Services,
        supervisor: &Supervisor,
    ) -> Result<Self, InvalidId> {
        let shared = ServerState::new(options, services, door.address, supervisor)?;
        let tasks = supervisor.clone();
        Ok(Self {
            door,
            admin: None,
            shared,
            tasks,
        })
    }

    /// Tells whoever comes to another door how the program does, and nothing else.
    #[must_use]
    pub fn telling_at(mut self, admin: Option<Door>) -> Self {
        self.admin = admin;
        self
    }

    /// Returns where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.door.address
    }

    /// Returns a link by which `person` logs in, once.
    pub fn link(&self, person: &Person) -> String {
        let now = self.shared.services.clock.now();
        let code = self.shared.logins().link(person.name.clone(), now);
        let host = match self.door.address.ip() {
            ip if ip.is_unspecified() => {
                SocketAddr::new(Ipv4Addr::LOCALHOST.into(), self.door.address.port())
            }
            _ => self.door.address,
        };
        format!("http://{host}/login?code={code}")
    }

    /// Returns where other machines reach it that listens at every address of this one; none where it does not, or where
    /// this machine is in no network.
    pub fn elsewhere(&self) -> Option<String> {
        if !self.door.address.ip().is_unspecified() {
            return None;
        }
        // Nothing is sent: the system says from which address it would, to one that is nobody's.
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
        let own = socket.local_addr().ok()?.ip();
        let address = SocketAddr::new(own, self.door.address.port());
        (!own.is_loopback()).then(|| format!("http://{address}/"))
    }

    /// Serves until the process stops.
    pub fn serve(self) {
        let Self {
            door,
            admin,
            shared,
            tasks,
        } = self;
        forget(&shared, &tasks);
        if let Some(admin) = admin {
            let router = api::admin_router(&shared);
            let served = serve(admin, router, shared.clone(), tasks.clone());
            tasks.spawn("api.admin", served);
        }
        let router = api::router(&shared, &tasks);
        tasks.spawn("api", serve(door, router, shared, tasks.clone()));
    }
}

/// Serves `router` behind a door until the process stops.
async fn serve(door: Door, router: Router, shared: ServerState, tasks: Supervisor) {
    let places = Arc::new(Semaphore::new(shared.capacity.connections));
    let peers = PeerCounts::default();
    let stop = tasks.shutdown().soft().clone();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = door.listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let of_peer = peers.take(peer.ip().to_canonical(), most_of(peer.ip(), &shared));
                let Some(of_peer) = of_peer else {
                    debug!("`{peer}` has too many connections");
                    peers::refuse(stream);
                    continue;
                };
                let (router, stop) = (router.clone(), stop.clone());
                let shared = shared.clone();
                tasks.spawn(CONNECTION, async move {
                    let served = connection(stream, (peer.ip(), shared), router, stop);
                    if let Err(crash) = Supervisor::guard(CONNECTION, served).await {
                        error!("a connection was given up: {crash}");
                    }
                    drop((place, of_peer));
                });
            }
            Err(error) => {
                warn!("no connection can be taken for now: {error}");
                shared.services.clock.sleep(REST).await;
            }
        }
    }
}

/// Returns how many connections may come from one address; a proxy that is named asks for everybody.
fn most_of(peer: IpAddr, shared: &ServerState) -> usize {
    if shared.proxies.has(peer.to_canonical()) {
        usize::MAX
    } else {
        shared.capacity.connections_of_one
    }
}

async fn take(address: Address) -> Result<TcpListener, ListenError> {
    let mut socket = address.socket;
    let error = match TcpListener::bind(socket).await {
        Ok(listener) => return Ok(listener),
        Err(error) => error,
    };
    if error.kind() != ErrorKind::AddrInUse {
        return Err(unusable(socket, error));
    }
    if address.chosen {
        return Err(ListenError::Taken(socket));
    }
    let first = socket.port();
    let next = (1..=PORTS).filter_map(|step| first.checked_add(step));
    for port in next.chain([0]) {
        socket.set_port(port);
        match TcpListener::bind(socket).await {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            Err(error) => return Err(unusable(socket, error)),
        }
    }
    Err(ListenError::Taken(address.socket))
}

fn unusable(address: SocketAddr, source: std::io::Error) -> ListenError {
    ListenError::Unusable { address, source }
}

/// Serves one connection; a crash in it is the end of that one alone.
async fn connection(
    stream: TcpStream,
    (peer, shared): (IpAddr, ServerState),
    router: Router,
    stop: tokio_util::sync::CancellationToken,
) {
    let served = RequestCount::default();
    let (reader, writer) = stream.into_split();
    let stream = tokio::io::join(
        half::IncomingBytes {
            reader,
            served: served.clone(),
            stop: stop.clone(),
        },
        writer,
    );
    let service = service_fn(move |mut request: Request<Incoming>| {
        let client = shared.proxies.client(peer, request.headers());
        request.extensions_mut().insert(Peer(client));
        let (answer, served) = (router.clone().oneshot(request), served.begin());
        answer.map_ok(|answer| {
            answer.map(|body| Answer {
                body,
                _served: served,
            })
        })
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let served = Supervisor::guard("api.connection", async move {
        let mut served = std::pin::pin!(served);
        tokio::select! {
            outcome = served.as_mut() => outcome,
            () = stop.cancelled() => {
                served.as_mut().graceful_shutdown();
                served.await
            }
        }
    });
    match served.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!("a connection broke off: {error}"),
        Err(crash) => warn!("a connection was dropped: {crash}"),
    }
}

/// Forgets old keys now and then.
fn forget(shared: &ServerState, supervisor: &Supervisor) {
    let (shared, stop) = (shared.clone(), supervisor.shutdown().soft().clone());
    supervisor.spawn("api.keys", async move {
        let Services { store, clock, .. } = &shared.services;
        loop {
            if idempotency::forget(store, clock.now()).await.is_err() {
                debug!("old keys stay until the next look");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = clock.sleep(FORGET) => {}
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::advice::Words;

    use super::*;

    #[test]
    fn an_address_that_is_taken_says_how_another_is_set() {
        let address = SocketAddr::from(([127, 0, 0, 1], 7_331));
        let next = "set another with `--bind` or `server.address`";
        let taken = Words::of(&ListenError::Taken(address));
        assert_eq!(
            taken,
            ("the address `127.0.0.1:7331` is taken", next).into()
        );
        let unusable = ListenError::Unusable {
            address,
            source: std::io::Error::other("a; b"),
        };
        let message = "cannot listen on `127.0.0.1:7331`: a; b";
        assert_eq!(Words::of(&unusable), (message, next).into());
    }
}
