//! Builds HTTP clients: one TLS provider, time-outs always set.

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

/// Builds a client with TLS by ring and the given time-outs; redirects are not followed.
pub fn client(options: ClientOptions) -> Result<reqwest::Client, HttpError> {
    install_tls_provider();
    let mut builder = reqwest::Client::builder()
        .connect_timeout(options.connect_timeout)
        .read_timeout(options.idle_timeout)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("ropewalk/", env!("CARGO_PKG_VERSION")));
    if let Some(total) = options.total_timeout {
        builder = builder.timeout(total);
    }
    Ok(builder.build()?)
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
