//! Holds the connection to the broker, and what is known of its health.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::context::ContextBuilder;
use async_nats::jetstream::{self, stream::Stream};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerAddr, ServerError};
use chrono::{DateTime, Utc};
use ropewalk_runtime::{Backoff, Clock, Ids};
use ropewalk_schemas::advice::Words;
use secrecy::ExposeSecret;
use std::sync::Arc;
use tokio::sync::watch;
use tracing::{info, warn};

use super::notices::Notices;
use super::words::{chain, without_password};
use super::{Auth, FirstConnection, JetStreamOptions, stream};
use crate::error::BusError;
use crate::transport::TransportStatus;

/// The oldest server that keeps what it acknowledged through a crash.
const OLDEST_SERVER: (u64, u64, u64) = (2, 10, 23);
/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the broker may take to answer; losing a leader costs up to 8 s, which is retried above this.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// How long it may take to store an event; a server that is cut off from its cluster never answers.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(2);

/// The connection to the broker.
#[derive(Debug)]
pub(super) struct Link {
    client: Client,
    context: jetstream::Context,
    options: JetStreamOptions,
    health: Arc<Health>,
    notices: Notices,
    ids: Ids,
}

/// What is known of the broker's health.
#[derive(Debug)]
pub(super) struct Health {
    clock: Clock,
    status: Mutex<TransportStatus>,
    /// The last permission error, which the request it belongs to sees as a time-out only.
    denied: Mutex<Option<String>>,
    /// Counts connections, so that consumers look again after each.
    connections: watch::Sender<u64>,
}

impl Health {
    fn new(clock: Clock) -> Self {
        Self {
            clock,
            status: Mutex::new(TransportStatus::Starting),
            denied: Mutex::default(),
            connections: watch::Sender::new(0),
        }
    }

    /// Says how the broker is doing.
    pub(super) fn status(&self) -> TransportStatus {
        self.lock().clone()
    }

    /// Follows the connections; changes with each new one.
    pub(super) fn connections(&self) -> watch::Receiver<u64> {
        self.connections.subscribe()
    }

    /// Notes that the broker did what it was asked for.
    pub(super) fn up(&self) {
        let before = std::mem::replace(&mut *self.lock(), TransportStatus::Up);
        if let TransportStatus::Down { since, .. } = before {
            let seconds = (self.clock.now() - since).num_seconds();
            info!(
                bus.down_seconds = seconds,
                "the NATS server is back after {seconds} s"
            );
        }
    }

    /// Notes that the broker fails; the first reason of an outage is logged, the last one is shown.
    pub(super) fn down(&self, reason: &str) {
        let mut status = self.lock();
        let since: DateTime<Utc> = match &*status {
            TransportStatus::Down { since, .. } => *since,
            TransportStatus::Up | TransportStatus::Starting => {
                warn!("the NATS server fails, its events come from the store meanwhile: {reason}");
                self.clock.now()
            }
        };
        *status = TransportStatus::Down {
            since,
            reason: reason.to_owned(),
        };
    }

    fn take_denied(&self) -> Option<String> {
        self.denied
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, TransportStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn heard(&self, event: Event) {
        match event {
            Event::Connected => self.connections.send_modify(|count| *count += 1),
            Event::Disconnected => self.down("the connection was lost"),
            Event::ServerError(ServerError::Other(text)) if is_denial(&text) => {
                self.down(&format!("permission denied: {text}"));
                *self.denied.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
            }
            Event::ServerError(error) => self.down(&error.to_string()),
            Event::ClientError(error) => self.down(&error.to_string()),
            other => info!("NATS: {other}"),
        }
    }
}

fn is_denial(text: &str) -> bool {
    text.to_ascii_lowercase().contains("permissions violation")
}

impl Link {
    /// Connects, or begins to; a server that answers is checked at once.
    pub(super) async fn connect(
        options: JetStreamOptions,
        clock: Clock,
        ids: Ids,
    ) -> Result<Self, BusError> {
        ropewalk_runtime::http::install_tls_provider();
        let health = Arc::new(Health::new(clock));
        let addresses = addresses(&options.url)?;
        let client = first_connection(&options, &addresses, &health).await?;
        let context = ContextBuilder::new()
            .timeout(REQUEST_TIMEOUT)
            .ack_timeout(PUBLISH_TIMEOUT)
            .build(client.clone());
        let link = Self {
            client,
            context,
            options,
            health,
            notices: Notices::default(),
            ids,
        };
        link.check_version()?;
        Ok(link)
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn context(&self) -> &jetstream::Context {
        &self.context
    }

    pub(super) fn options(&self) -> &JetStreamOptions {
        &self.options
    }

    pub(super) fn health(&self) -> &Health {
        &self.health
    }

    /// Returns what somebody should know.
    pub(super) fn notices(&self) -> &Notices {
        &self.notices
    }

    /// Returns the time.
    pub(super) fn now(&self) -> DateTime<Utc> {
        self.health.clock.now()
    }

    /// Returns whether there is a connection right now.
    pub(super) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Returns the project's stream, made or brought up to date; says whether it is new.
    pub(super) async fn stream(&self) -> Result<(Stream, bool), BusError> {
        self.check_version()?;
        let result = stream::ensure(&self.context, &self.options).await;
        match result {
            Ok(stream) => {
                self.health.up();
                Ok(stream)
            }
            Err(error) => Err(self.explain(error)),
        }
    }

    /// Replaces an error that looks like a time-out by the permission error behind it, and notes it.
    pub(super) fn explain(&self, error: BusError) -> BusError {
        let error = match self.health.take_denied() {
            Some(denied) => BusError::Permission(denied),
            None => error,
        };
        self.health.down(&Words::of(&error).to_string());
        error
    }

    /// Leaves the server of a cluster that does not do its work: cut off from the others, it keeps its connections.
    pub(super) async fn try_another_server(&self) {
        if !self.options.url.contains(',') {
            return;
        }
        if let Err(error) = self.client.force_reconnect().await {
            warn!("cannot leave the NATS server: {error}");
        }
    }

    /// Returns how long to wait after `failed` failures in a row.
    pub(super) fn pause(&self, failed: u32) -> Duration {
        const BACKOFF: Backoff = Backoff {
            base: Duration::from_millis(200),
            cap: Duration::from_secs(5),
        };
        let spread = 0.5 + self.ids.fraction() / 2.0;
        BACKOFF.full_jitter(failed, spread)
    }

    fn check_version(&self) -> Result<(), BusError> {
        if !self.is_connected() {
            // The request that follows says what is wrong.
            return Ok(());
        }
        let version = self.client.server_info().version;
        if parse_version(&version).is_some_and(|parsed| parsed < OLDEST_SERVER) {
            let error = BusError::TooOld { version };
            self.health.down(&Words::of(&error).to_string());
            return Err(error);
        }
        Ok(())
    }
}

/// Connects; a broker that is not there at all is waited for if the options say so, one that refuses is not.
async fn first_connection(
    options: &JetStreamOptions,
    addresses: &[ServerAddr],
    health: &Arc<Health>,
) -> Result<Client, BusError> {
    let connect = connect_options(options, addresses, health).await?;
    let refused = match connect.connect(addresses).await {
        Ok(client) => return Ok(client),
        Err(error) => connect_error(&options.url, &error),
    };
    let wait = options.first_connection == FirstConnection::Retried;
    if !wait || !matches!(refused, BusError::Unreachable { .. }) {
        return Err(refused);
    }
    health.down(&Words::of(&refused).to_string());
    let connect = connect_options(options, addresses, health)
        .await?
        .retry_on_initial_connect();
    connect
        .connect(addresses)
        .await
        .map_err(|error| connect_error(&options.url, &error))
}

fn addresses(url: &str) -> Result<Vec<ServerAddr>, BusError> {
    url.split(',')
        .map(|address| {
            let parsed = address.trim().parse::<ServerAddr>();
            parsed.map_err(|error| BusError::Address {
                url: without_password(url),
                reason: error.to_string(),
            })
        })
        .collect()
}

async fn connect_options(
    options: &JetStreamOptions,
    addresses: &[ServerAddr],
    health: &Arc<Health>,
) -> Result<ConnectOptions, BusError> {
    let heard = Arc::clone(health);
    let mut connect = ConnectOptions::new()
        .name("ropewalk")
        .connection_timeout(CONNECT_TIMEOUT)
        .request_timeout(Some(REQUEST_TIMEOUT))
        .ping_interval(Duration::from_secs(10))
        .event_callback(move |event| {
            let heard = Arc::clone(&heard);
            async move { heard.heard(event) }
        });
    connect = match &options.auth {
        Auth::None => match addresses.iter().find(|address| address.has_user_pass()) {
            Some(address) => connect.user_and_password(
                percent_decoded(address.username().unwrap_or_default()),
                percent_decoded(address.password().unwrap_or_default()),
            ),
            None => connect,
        },
        Auth::NkeyFile(path) => {
            let seed = std::fs::read_to_string(path).map_err(|source| unreadable(path, source))?;
            connect.nkey(seed.trim().to_owned())
        }
        Auth::Token(token) => connect.token(token.expose_secret().to_owned()),
        Auth::CredentialsFile(path) => {
            let loaded = connect.credentials_file(path).await;
            loaded.map_err(|source| unreadable(path, source))?
        }
    };
    if let Some(path) = &options.root_certificates {
        connect = connect
            .add_root_certificates(path.clone())
            .require_tls(true);
    }
    if let Some(prefix) = &options.inbox_prefix {
        connect = connect.custom_inbox_prefix(prefix);
    }
    Ok(connect)
}

fn unreadable(path: &Path, source: std::io::Error) -> BusError {
    BusError::Credentials {
        path: path.to_owned(),
        source,
    }
}

fn connect_error(url: &str, error: &async_nats::ConnectError) -> BusError {
    let url = without_password(url);
    let reason = chain(error);
    match error.kind() {
        ConnectErrorKind::ServerParse => BusError::Address { url, reason },
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            BusError::Refused { url, reason }
        }
        _ => BusError::Unreachable { url, reason },
    }
}

/// Turns `%40` and the like back into what they stand for; an address cannot hold every character of a login.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads the three numbers of a version; what follows them does not matter.
fn parse_version(version: &str) -> Option<(u64, u64, u64)> {
    let mut numbers = version.trim_start_matches('v').split('.').map(|part| {
        let digits = part.find(|letter: char| !letter.is_ascii_digit());
        part[..digits.unwrap_or(part.len())].parse::<u64>().ok()
    });
    let mut next = || numbers.next().flatten();
    Some((next()?, next()?, next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_below_2_10_23_are_told_apart() {
        let cases = [
            ("2.9.10", true),
            ("2.10.22", true),
            ("2.10.23", false),
            ("2.10.23-RC.1", false),
            ("2.15.1", false),
            ("v3.0.0", false),
        ];
        for (version, old) in cases {
            assert_eq!(
                parse_version(version).unwrap() < OLDEST_SERVER,
                old,
                "{version}"
            );
        }
        assert_eq!(parse_version("unknown"), None);
    }

    #[test]
    fn a_login_may_hold_any_character() {
        for (encoded, plain) in [("p%40ss%3A", "p@ss:"), ("100%", "100%"), ("%zz", "%zz")] {
            assert_eq!(percent_decoded(encoded), plain);
        }
    }

    #[test]
    fn an_outage_keeps_its_beginning_and_shows_its_last_reason() {
        let clock = Clock::manual(DateTime::UNIX_EPOCH);
        let health = Health::new(clock.clone());
        assert_eq!(health.status(), TransportStatus::Starting);
        health.down("one");
        clock.advance(Duration::from_secs(5));
        health.down("two");
        assert_eq!(
            health.status(),
            TransportStatus::Down {
                since: DateTime::UNIX_EPOCH,
                reason: "two".to_owned()
            }
        );
        health.up();
        assert_eq!(health.status(), TransportStatus::Up);
    }
}
