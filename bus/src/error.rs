//! Says why a bus could not be started or a subscriber not be attached.

use ropewalk_schemas::ComponentName;
use ropewalk_store::{CommitError, ReadError};

/// Says why a bus could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// The subscriber is consumed already by this process.
    #[error("subscriber `{0}` is consumed already; drop its inbox first")]
    AlreadyConsumed(ComponentName),
    /// The subscription could not be stored.
    #[error("cannot store the subscription of `{subscriber}`: {source}")]
    Subscribe {
        /// The subscriber.
        subscriber: ComponentName,
        /// Why.
        source: CommitError,
    },
    /// The store could not be read.
    #[error("cannot read the store: {0}")]
    Read(#[from] ReadError),
    /// The address of the broker cannot be read.
    #[error("`{url}` is no address of a NATS server ({reason}); write `nats://HOST:PORT`")]
    Address {
        /// The address.
        url: String,
        /// Why.
        reason: String,
    },
    /// The broker does not answer.
    #[error("cannot reach the NATS server `{url}` ({reason}); start it or name another one")]
    Unreachable {
        /// The address.
        url: String,
        /// Why.
        reason: String,
    },
    /// The broker refuses the user.
    #[error(
        "the NATS server `{url}` refuses the login ({reason}); check user, nkey or credentials"
    )]
    Refused {
        /// The address.
        url: String,
        /// Why.
        reason: String,
    },
    /// The user may not do what the bus needs.
    #[error("the NATS server denies permission ({0}); extend the permissions of the user")]
    Permission(String),
    /// The broker is too old: it drops configuration in silence and lost streams on a crash.
    #[error("nats-server {version} is too old; use 2.10.23 or newer")]
    TooOld {
        /// Its version.
        version: String,
    },
    /// The broker keeps no streams.
    #[error("the NATS server `{url}` runs without JetStream; start it with `--jetstream`")]
    NoJetStream {
        /// The address.
        url: String,
    },
    /// The broker answered success and keeps another configuration.
    #[error(
        "the NATS server keeps `{field}` of `{name}` as `{kept}` instead of `{asked}`; \
         remove the stream or change its configuration"
    )]
    Configuration {
        /// The stream or consumer.
        name: String,
        /// The field that differs.
        field: &'static str,
        /// What was asked for.
        asked: String,
        /// What the server keeps.
        kept: String,
    },
    /// The broker did not do what it was asked for.
    #[error("the NATS server failed to {action}: {reason}")]
    Broker {
        /// What it was asked for.
        action: String,
        /// What it said.
        reason: String,
    },
    /// Credentials cannot be read.
    #[error("cannot read the nkey or credentials file `{path}`: {source}")]
    Credentials {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl BusError {
    /// Returns whether waiting does not cure it: somebody has to change the broker or the configuration.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Self::Address { .. }
            | Self::Refused { .. }
            | Self::Permission(_)
            | Self::TooOld { .. }
            | Self::NoJetStream { .. }
            | Self::Configuration { .. }
            | Self::Credentials { .. } => true,
            Self::AlreadyConsumed(_)
            | Self::Subscribe { .. }
            | Self::Read(_)
            | Self::Unreachable { .. }
            | Self::Broker { .. } => false,
        }
    }
}
