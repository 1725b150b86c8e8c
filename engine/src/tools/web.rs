//! Asks hosts of the outside, at addresses that were looked at, and reads no more than fits.

mod fetch;
mod search;

use std::time::Duration;

use futures::StreamExt;
use ropewalk_runtime::http::{ClientOptions, Route, client_by};
use ropewalk_workspace::sandbox::egress::{Egress, Way};
use url::Url;

pub(super) use fetch::WebFetch;
pub(super) use search::WebSearch;
pub use search::{SearchError, SearchHit, SearchPort, Searxng, SearxngAccess};

/// Returns a client for one request to `url`, whose host `egress` has to list: it connects to an address that was looked at
/// and follows no redirect. The error says why there is none.
pub(super) async fn client(
    egress: &Egress,
    url: &Url,
    patience: Duration,
) -> Result<reqwest::Client, String> {
    let tunnel = match url.scheme() {
        "https" => true,
        "http" => false,
        _ => return Err("only http and https are read".to_owned()),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err("no name or password is sent".to_owned());
    }
    let host = match url.host() {
        Some(url::Host::Domain(name)) => name.to_owned(),
        Some(url::Host::Ipv4(address)) => address.to_string(),
        Some(url::Host::Ipv6(address)) => address.to_string(),
        None => return Err("it names no host".to_owned()),
    };
    let port = url.port_or_known_default().unwrap_or(80);
    let way = egress.way(&host, port, tunnel).await;
    let way = way.map_err(|error| error.to_string())?;
    let route = match &way {
        Way::Direct(addresses) => Route::Pinned {
            host: &host,
            addresses,
        },
        Way::Proxy(proxy) => Route::Proxy {
            address: proxy.address(),
            authorization: proxy.authorization(),
        },
    };
    client_by(options(patience), route).map_err(|error| error.to_string())
}

/// Bounds the time of a request.
pub(super) fn options(patience: Duration) -> ClientOptions {
    ClientOptions {
        idle_timeout: patience,
        total_timeout: Some(patience),
        ..ClientOptions::default()
    }
}

/// Reads a body, as it is once it is unpacked, up to `most` bytes; says whether there was more.
pub(super) async fn body(
    response: reqwest::Response,
    most: usize,
) -> Result<(Vec<u8>, bool), reqwest::Error> {
    let mut body = Vec::new();
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        let room = most - body.len();
        body.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            return Ok((body, true));
        }
    }
    Ok((body, false))
}
