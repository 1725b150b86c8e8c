//! Defines whether and where the API is served.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// The API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    /// Whether it is served.
    pub enabled: bool,
    /// Where it listens.
    pub address: SocketAddr,
    /// Where it is told how the program does, to whoever comes; none for this machine alone, at `address`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin_address: Option<SocketAddr>,
    /// The names by which it is reached beside its own address, each with its port where that is not the usual one.
    pub hosts: Vec<String>,
    /// The proxies in front of it, which are believed when they say whom they ask for; nobody else is.
    pub trusted_proxies: Vec<Network>,
}

/// The addresses that begin with the same bits: one alone, or a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network {
    address: IpAddr,
    /// How many bits are the same.
    prefix: u8,
}

/// Says that a text names no addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no addresses; write `127.0.0.1` or `10.0.0.0/8`")]
pub struct InvalidNetwork(String);

impl Network {
    /// Returns whether an address is one of it; one of IPv4 is the same written as one of IPv6.
    pub fn contains(self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(self.prefix);
                let differ = u32::from(network) ^ u32::from(address);
                differ.checked_shr(shift).unwrap_or_default() == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let shift = 128 - u32::from(self.prefix);
                let differ = u128::from(network) ^ u128::from(address);
                differ.checked_shr(shift).unwrap_or_default() == 0
            }
            _ => false,
        }
    }
}

impl TryFrom<String> for Network {
    type Error = InvalidNetwork;

    fn try_from(text: String) -> Result<Self, InvalidNetwork> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text.as_str(), None),
        };
        let parsed = address.parse::<IpAddr>().ok().and_then(|address| {
            let most = if address.is_ipv4() { 32 } else { 128 };
            let prefix = prefix.map_or(Some(most), |prefix| prefix.parse().ok());
            let prefix = prefix.filter(|prefix| *prefix <= most)?;
            Some(Self { address, prefix })
        });
        parsed.ok_or(InvalidNetwork(text))
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        let Network { address, prefix } = network;
        match (address, prefix) {
            (IpAddr::V4(_), 32) | (IpAddr::V6(_), 128) => address.to_string(),
            _ => format!("{address}/{prefix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_the_addresses_that_begin_with_its_bits() {
        let network = |text: &str| Network::try_from(text.to_owned());
        for (named, address, expected) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "::ffff:127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("10.0.0.0/8", "10.255.3.4", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "::1", false),
            ("2001:db8::/32", "2001:db8:1::2", true),
            ("2001:db8::/32", "2001:db9::", false),
            ("::1", "::1", true),
            ("::/0", "2001:db8::1", true),
        ] {
            let found = network(named).unwrap().contains(address.parse().unwrap());
            assert_eq!(found, expected, "{named} {address}");
            assert_eq!(String::from(network(named).unwrap()), named);
        }
        for wrong in [
            "",
            "proxy.test",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/",
            "10.0.0.0/-1",
        ] {
            assert!(network(wrong).is_err(), "{wrong}");
        }
    }
}
