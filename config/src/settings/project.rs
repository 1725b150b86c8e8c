//! Defines where a project lies, how its parts talk and what they log.

use std::fmt;
use std::path::PathBuf;

use ropewalk_schemas::{ProjectName, UserSlug};
use serde::{Deserialize, Serialize};

use super::logins::without_password;

/// The project: one repository with its state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectSettings {
    /// Names bus subjects and the state directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<ProjectName>,
    /// The repository that builds are made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<PathBuf>,
    /// The state directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PathBuf>,
}

/// The person whose ideas new sessions are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PersonSettings {
    /// The name; the login name when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<UserSlug>,
}

/// The bus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusSettings {
    /// What carries events.
    pub transport: Transport,
    /// Failed tries before an event becomes a dead letter.
    pub tries: u32,
    /// On how many servers of a cluster events are kept.
    pub replicas: u32,
    /// How much the stream keeps; the oldest events go first, and stay in the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_megabytes: Option<u32>,
    /// The file with the seed of the nkey to log in with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nkey_file: Option<PathBuf>,
    /// The credentials file to log in with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_file: Option<PathBuf>,
    /// The environment variable that holds the token to log in with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_variable: Option<String>,
    /// The file with the certificates to trust; given, TLS is demanded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_certificates: Option<PathBuf>,
    /// How the subjects of answers begin, where the server lets a user hear only its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox_prefix: Option<String>,
}

/// Says that an address of a bus or a store cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct InvalidLocation {
    text: String,
    expected: &'static str,
}

/// What carries events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Transport {
    /// In process.
    Embedded,
    /// A nats-server from PATH, started and supervised here.
    Nats,
    /// A nats-server that runs elsewhere.
    NatsAt(String),
}

impl TryFrom<String> for Transport {
    type Error = InvalidLocation;

    fn try_from(text: String) -> Result<Self, InvalidLocation> {
        let address = ["nats://", "tls://"]
            .iter()
            .find_map(|scheme| text.strip_prefix(scheme));
        match (text.as_str(), address) {
            ("embedded", _) => Ok(Self::Embedded),
            ("nats", _) => Ok(Self::Nats),
            (_, Some(host)) if !host.is_empty() => Ok(Self::NatsAt(text)),
            _ => Err(InvalidLocation {
                text,
                expected: "a transport; write `embedded`, `nats` or `nats://host:port`",
            }),
        }
    }
}

impl From<Transport> for String {
    fn from(transport: Transport) -> Self {
        match transport {
            Transport::Embedded => "embedded".to_owned(),
            Transport::Nats => "nats".to_owned(),
            Transport::NatsAt(url) => url,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded => formatter.write_str("embedded"),
            Self::Nats => formatter.write_str("nats"),
            Self::NatsAt(url) => formatter.write_str(&without_password(url)),
        }
    }
}

/// The store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreSettings {
    /// Where the truth lies.
    pub location: StoreLocation,
    /// How long the events of what is finished are kept.
    pub events_days: u32,
}

/// Where the truth lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum StoreLocation {
    /// A file in the state directory.
    Sqlite,
    /// A PostgreSQL database.
    Postgres(String),
}

impl TryFrom<String> for StoreLocation {
    type Error = InvalidLocation;

    fn try_from(text: String) -> Result<Self, InvalidLocation> {
        if text == "sqlite" {
            Ok(Self::Sqlite)
        } else if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            Ok(Self::Postgres(text))
        } else {
            Err(InvalidLocation {
                text,
                expected: "a store; write `sqlite` or `postgres://user@host/database`",
            })
        }
    }
}

impl From<StoreLocation> for String {
    fn from(location: StoreLocation) -> Self {
        match location {
            StoreLocation::Sqlite => "sqlite".to_owned(),
            StoreLocation::Postgres(url) => url,
        }
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite => formatter.write_str("sqlite"),
            Self::Postgres(url) => formatter.write_str(&without_password(url)),
        }
    }
}

/// The rehearsal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RehearsalSettings {
    /// The answers of a scripted person; none lets nobody answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<PathBuf>,
}

/// Logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    /// How a line looks.
    pub format: LogFormat,
    /// What is logged, in the directive language of `tracing`.
    pub filter: String,
}

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// One readable line.
    Text,
    /// One JSON object a line.
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_is_one_of_three() {
        for (text, expected) in [
            ("embedded", Some(Transport::Embedded)),
            ("nats", Some(Transport::Nats)),
            (
                "nats://127.0.0.1:4222",
                Some(Transport::NatsAt("nats://127.0.0.1:4222".into())),
            ),
            ("nats://", None),
            ("kafka", None),
        ] {
            assert_eq!(
                Transport::try_from(text.to_owned()).ok(),
                expected,
                "{text}"
            );
        }
    }
}
