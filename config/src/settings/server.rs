//! Defines whether and where the API is served.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    /// Whether it is served.
    pub enabled: bool,
    /// Where it listens.
    pub address: SocketAddr,
    /// The names by which it is reached beside its own address, each with its port where that is not the usual one.
    pub hosts: Vec<String>,
}
