//! Says why a bus could not be started or a subscriber not be attached.

use ropewalk_schemas::ComponentName;
use ropewalk_schemas::advice::Advice;
use ropewalk_store::{CommitError, ReadError};

/// Says why a bus could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// The subscriber is consumed already by this process.
    #[error("subscriber `{0}` is consumed already")]
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
    #[error("`{url}` is no address of a NATS server ({reason})")]
    Address {
        /// The address.
        url: String,
        /// Why.
        reason: String,
    },
    /// The broker does not answer.
    #[error("cannot reach the NATS server `{url}` ({reason})")]
    Unreachable {
        /// The address.
        url: String,
        /// Why.
        reason: String,
    },
    /// The broker refuses the user.
    #[error("the NATS server `{url}` refuses the login ({reason})")]
    Refused {
        /// The address.
        url: String,
        /// Why.
        reason: String,
    },
    /// The user may not do what the bus needs.
    #[error("the NATS server denies permission ({0})")]
    Permission(String),
    /// The broker is too old: it drops configuration in silence and lost streams on a crash.
    #[error("nats-server {version} is too old")]
    TooOld {
        /// Its version.
        version: String,
    },
    /// The broker keeps no streams.
    #[error("the NATS server `{url}` runs without JetStream")]
    NoJetStream {
        /// The address.
        url: String,
    },
    /// The broker answered success and keeps another configuration.
    #[error("the NATS server keeps `{field}` of `{name}` as `{kept}` instead of `{asked}`")]
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

impl Advice for BusError {
    fn next(&self) -> Option<String> {
        let next = match self {
            Self::AlreadyConsumed(_) => "drop its inbox first",
            Self::Subscribe { source, .. } => return source.next(),
            Self::Read(error) => return error.next(),
            Self::Address { .. } => "write `nats://HOST:PORT`",
            Self::Unreachable { .. } => "start it or name another one",
            Self::Refused { .. } => "check user, nkey or credentials",
            Self::Permission(_) => "extend the permissions of the user",
            Self::TooOld { .. } => "use 2.10.23 or newer",
            Self::NoJetStream { .. } => "start it with `--jetstream`",
            Self::Configuration { .. } => "remove the stream or change its configuration",
            Self::Broker { .. } | Self::Credentials { .. } => return None,
        };
        Some(next.to_owned())
    }
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

#[cfg(test)]
mod tests {
    use ropewalk_schemas::advice::Words;

    use super::*;

    #[test]
    fn what_a_broker_says_is_no_advice() {
        let unreachable = BusError::Unreachable {
            url: "nats://h:1".to_owned(),
            reason: "no route; gave up".to_owned(),
        };
        assert_eq!(
            Words::of(&unreachable),
            (
                "cannot reach the NATS server `nats://h:1` (no route; gave up)",
                "start it or name another one"
            )
                .into()
        );
        let broker = BusError::Broker {
            action: "open a stream".to_owned(),
            reason: "a; b".to_owned(),
        };
        let message = "the NATS server failed to open a stream: a; b";
        assert_eq!(Words::of(&broker), message.into());
    }

    #[test]
    fn the_store_says_how_it_is_mended() {
        let full = BusError::Subscribe {
            subscriber: ComponentName::parse("pm").unwrap(),
            source: CommitError::NoSpace,
        };
        assert_eq!(
            Words::of(&full),
            (
                "cannot store the subscription of `pm`: the disk of the database is full",
                "make room and try again"
            )
                .into()
        );
    }
}
