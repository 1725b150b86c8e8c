//! Builds HTTP clients: one TLS provider, time-outs always set.

use std::net::SocketAddr;
use std::time::Duration;

/// Sets the time-outs of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientOptions {
    /// How long a connection may take to stand.
    pub connect_timeout: Duration,
    /// How long a response may stay silent between two reads.
    pub idle_timeout: Duration,
    /// How long a whole request may take; `None` leaves that to the caller.
    pub total_timeout: Option<Duration>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_mins(1),
            total_timeout: Some(Duration::from_mins(15)),
        }
    }
}

/// Says why no client could be built.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up the HTTP client")]
pub struct HttpError(#[from] reqwest::Error);

/// How a client gets to its host.
#[derive(Debug, Clone, Copy)]
pub enum Route<'a> {
    /// To one of these addresses whatever the name would lead to, and by no proxy.
    Pinned {
        /// The name.
        host: &'a str,
        /// The addresses; their ports count for nothing.
        addresses: &'a [SocketAddr],
    },
    /// By a proxy that speaks HTTP, whatever the environment names.
    Proxy {
        /// Host and port.
        address: &'a str,
        /// What it has to be told in `Proxy-Authorization`.
        authorization: Option<&'a str>,
    },
}

/// Builds a client as [`client`] does that gets to its host by `route` alone.
pub fn client_by(options: ClientOptions, route: Route<'_>) -> Result<reqwest::Client, HttpError> {
    let builder = builder(options).no_proxy();
    let builder = match route {
        Route::Pinned { host, addresses } => builder.resolve_to_addrs(host, addresses),
        Route::Proxy {
            address,
            authorization,
        } => {
            let mut proxy = reqwest::Proxy::all(format!("http://{address}"))?;
            if let Some(Ok(told)) = authorization.map(str::parse) {
                proxy = proxy.custom_http_auth(told);
            }
            builder.proxy(proxy)
        }
    };
    Ok(builder.build()?)
}

/// Builds a client with TLS by ring and the given time-outs; redirects are not followed.
pub fn client(options: ClientOptions) -> Result<reqwest::Client, HttpError> {
    Ok(builder(options).build()?)
}

fn builder(options: ClientOptions) -> reqwest::ClientBuilder {
    install_tls_provider();
    let mut builder = reqwest::Client::builder()
        .connect_timeout(options.connect_timeout)
        .read_timeout(options.idle_timeout)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("ropewalk/", env!("CARGO_PKG_VERSION")));
    if let Some(total) = options.total_timeout {
        builder = builder.timeout(total);
    }
    builder
}

/// Makes ring the TLS provider of this process; later calls change nothing.
pub fn install_tls_provider() {
    // An error only says that a provider is installed already.
    drop(rustls::crypto::ring::default_provider().install_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_clients_share_one_tls_provider() {
        assert!(client(ClientOptions::default()).is_ok());
        assert!(
            client(ClientOptions {
                total_timeout: None,
                ..ClientOptions::default()
            })
            .is_ok()
        );
    }
}
