//! Finds the way to a host: decides whether there may be one, and connects to the very address that was looked at.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ropewalk_schemas::HostPattern;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::request::{HeadError, Target};
use super::upstream::Proxy;
use super::{Egress, Refusal, Way};

/// How long a host may take to answer at one of its addresses.
const CONNECT: Duration = Duration::from_secs(15);
/// So many of its addresses are tried.
const MOST_ADDRESSES: usize = 4;

/// What stands between a command and a host.
#[derive(Debug, thiserror::Error)]
pub(super) enum Hindrance {
    #[error("{0}")]
    Refused(Refusal),
    #[error("{0}")]
    Malformed(#[from] HeadError),
    #[error("the head of the request is too long")]
    TooLong,
    #[error("the head of the request did not come in time")]
    Late,
    #[error("`{host}` is not found: {reason}")]
    Unfound { host: String, reason: io::Error },
    #[error("`{host}` is not reached: {reason}")]
    Unreached { host: String, reason: io::Error },
    #[error("the proxy of this machine does not lead to `{host}`: {said}")]
    Upstream { host: String, said: String },
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
}

/// Connects to `target`, if it is listed and of the outside; by `proxy` where the machine prescribes one.
pub(super) async fn connect(
    egress: &Egress,
    target: &Target,
    proxy: Option<&Proxy>,
) -> Result<TcpStream, Hindrance> {
    let found = look(egress, target).await?;
    match (proxy, found) {
        // Behind a proxy names of the outside are often known to that alone; then it decides what they lead to.
        (Some(proxy), _) => {
            let stream = timeout(CONNECT, TcpStream::connect(&proxy.address)).await;
            stream
                .unwrap_or_else(|late| Err(late.into()))
                .map_err(|error| Hindrance::Upstream {
                    host: target.host.clone(),
                    said: error.to_string(),
                })
        }
        (None, Ok(addresses)) => reach(target, &addresses).await,
        (None, Err(reason)) => Err(unfound(target, reason)),
    }
}

/// Finds the way to `target` for somebody who connects as [`connect`] would.
pub(super) async fn way(
    egress: &Egress,
    target: &Target,
    proxy: Option<&Proxy>,
) -> Result<Way, Hindrance> {
    let found = look(egress, target).await?;
    match (proxy, found) {
        (Some(proxy), _) => Ok(Way::Proxy(proxy.clone())),
        (None, Ok(addresses)) => Ok(Way::Direct(addresses)),
        (None, Err(reason)) => Err(unfound(target, reason)),
    }
}

/// Finds the addresses of `target`, if it is listed and none of them is of the inside.
async fn look(egress: &Egress, target: &Target) -> Result<io::Result<Vec<SocketAddr>>, Hindrance> {
    if !is_listed(&egress.hosts, target) {
        let wanted = HostPattern::wanted(&target.host, target.port);
        return Err(Hindrance::Refused(Refusal::Unlisted(wanted)));
    }
    let found = find(egress, target).await;
    if let Some(inside) = found
        .iter()
        .flatten()
        .find(|at| !egress.outside.holds(at.ip()))
    {
        return Err(Hindrance::Refused(Refusal::Inside {
            host: target.host.clone(),
            address: inside.ip(),
        }));
    }
    Ok(found)
}

fn unfound(target: &Target, reason: io::Error) -> Hindrance {
    Hindrance::Unfound {
        host: target.host.clone(),
        reason,
    }
}

fn is_listed(hosts: &[HostPattern], target: &Target) -> bool {
    hosts
        .iter()
        .any(|pattern| pattern.names(&target.host, target.port))
}

/// Finds the addresses once: whoever answers for a name could answer otherwise the next time.
async fn find(egress: &Egress, target: &Target) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = target.host.parse::<IpAddr>() {
        return Ok(vec![(address, target.port).into()]);
    }
    let found = egress.outside.find(&target.host, target.port);
    let found = timeout(CONNECT, found).await;
    found.unwrap_or_else(|late| Err(late.into()))
}

async fn reach(target: &Target, addresses: &[SocketAddr]) -> Result<TcpStream, Hindrance> {
    let mut reason = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses.iter().take(MOST_ADDRESSES) {
        let connected = timeout(CONNECT, TcpStream::connect(address)).await;
        match connected.unwrap_or_else(|late| Err(late.into())) {
            Ok(stream) => return Ok(stream),
            Err(error) => reason = error,
        }
    }
    Err(Hindrance::Unreached {
        host: target.host.clone(),
        reason,
    })
}
