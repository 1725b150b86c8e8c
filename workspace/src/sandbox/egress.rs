//! Leads confined commands to the hosts that a person lists, and nowhere else.
//!
//! A command has no network but a loopback of its own. While one runs that may reach hosts, its loopback leads by a socket
//! in its tree to a door of this process (`door`), which is gone with it. What comes in asks as of a proxy (`request`), and
//! this process decides, finds the host and connects (`route`), to an address that it found to be of the outside
//! (`address`), or by the proxy that the machine prescribes (`upstream`).
//!
//! What it is not: it does not look into tunnels, so that a host that is listed gets whatever a command sends.

mod address;
mod door;
mod exchange;
mod request;
mod route;
mod upstream;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use ropewalk_schemas::HostPattern;

pub(crate) use door::Door;
use request::Target;
pub use upstream::{InvalidUpstream, Proxy, Upstream};

/// What commands reach beside their own loopback.
#[derive(Debug, Clone)]
pub struct Egress {
    /// The hosts; where there are none, nothing leads out.
    pub hosts: Vec<HostPattern>,
    /// The hosts that installs of packages reach beside.
    pub package_hosts: Vec<HostPattern>,
    /// The proxies that this machine prescribes.
    pub upstream: Upstream,
    /// Where hosts are found.
    pub outside: Arc<dyn Outside>,
}

impl Egress {
    /// Leads nowhere.
    pub fn none() -> Self {
        Self {
            hosts: Vec::new(),
            package_hosts: Vec::new(),
            upstream: Upstream::default(),
            outside: Arc::new(Internet),
        }
    }

    /// Finds the way to a listed host for a request of this process itself; `tunnel` says that it will be an encrypted one.
    /// An address is given as it was looked at: whoever connects to it does not ask for the name again.
    pub async fn way(&self, host: &str, port: u16, tunnel: bool) -> Result<Way, NoWay> {
        let target = Target {
            host: host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase(),
            port,
        };
        let proxy = if tunnel {
            self.upstream.for_tunnel(&target)
        } else {
            self.upstream.for_plain(&target)
        };
        let way = route::way(self, &target, proxy).await;
        way.map_err(|hindrance| NoWay(hindrance.to_string()))
    }
}

/// How a host is reached.
#[derive(Debug, Clone)]
pub enum Way {
    /// At one of these addresses.
    Direct(Vec<SocketAddr>),
    /// By the proxy that the machine prescribes.
    Proxy(Proxy),
}

/// Says why there is no way to a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoWay(String);

/// Where hosts are found, and what of that is no part of this machine and of the networks around it.
#[async_trait]
pub trait Outside: fmt::Debug + Send + Sync {
    /// Finds the addresses of a host.
    async fn find(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;

    /// Says that an address is one of the outside.
    fn holds(&self, address: IpAddr) -> bool {
        address::is_global(address)
    }
}

/// The network, as the resolver of this machine knows it.
#[derive(Debug, Clone, Copy)]
pub struct Internet;

#[async_trait]
impl Outside for Internet {
    async fn find(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }
}

/// Why a command did not reach a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// This host is not listed; as it would have to be.
    Unlisted(String),
    /// This host is listed, and leads to an address that is not of the outside.
    Inside {
        /// The host.
        host: String,
        /// The address.
        address: IpAddr,
    },
    /// It might have reached this host, had that answered; why it did not.
    Away(String),
}

impl Refusal {
    /// Says that it is the sandbox that kept the command from the host.
    pub(crate) const fn is_denial(&self) -> bool {
        !matches!(self, Self::Away(_))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlisted(host) => write!(
                formatter,
                "the sandbox does not let it reach `{host}`, which `sandbox.hosts` does not list"
            ),
            Self::Inside { host, address } => write!(
                formatter,
                "the sandbox does not let it reach `{host}`, which leads to {address}, no address of the outside"
            ),
            Self::Away(reason) => write!(formatter, "no answer from the outside: {reason}"),
        }
    }
}
