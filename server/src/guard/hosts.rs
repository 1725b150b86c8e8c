//! Knows the names by which this server is reached: a page of another name speaks to somebody else.

use std::net::SocketAddr;

/// The names by which this server is reached.
#[derive(Debug)]
pub(crate) struct Hosts(Vec<String>);

impl Hosts {
    /// Returns the address itself, the names of the machine for itself, and those that were added.
    pub(crate) fn new(address: SocketAddr, added: Vec<String>) -> Self {
        let port = address.port();
        let own = ["127.0.0.1", "localhost", "[::1]"];
        let own = own.map(|name| format!("{name}:{port}"));
        let itself = (!address.ip().is_unspecified()).then(|| address.to_string());
        Self(own.into_iter().chain(itself).chain(added).collect())
    }

    /// Returns whether a request with this `Host` is meant for this server.
    pub(crate) fn has(&self, host: &str) -> bool {
        self.0.iter().any(|name| name.eq_ignore_ascii_case(host))
    }

    /// Returns whether a page of this `Origin` may speak to this server.
    pub(crate) fn has_origin(&self, origin: &str) -> bool {
        let host = ["http://", "https://"]
            .iter()
            .find_map(|scheme| origin.strip_prefix(scheme));
        host.is_some_and(|host| self.has(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_server_are_answered() {
        let address = "192.0.2.7:7440".parse().unwrap();
        let hosts = Hosts::new(address, vec!["Ropes.example.org".to_owned()]);
        for (host, expected) in [
            ("127.0.0.1:7440", true),
            ("LOCALHOST:7440", true),
            ("[::1]:7440", true),
            ("ropes.example.org", true),
            ("192.0.2.7:7440", true),
            ("192.0.2.8:7440", false),
            ("127.0.0.1", false),
            ("127.0.0.1:7441", false),
            ("evil.example:7440", false),
            ("", false),
        ] {
            assert_eq!(hosts.has(host), expected, "{host}");
        }
        for (origin, expected) in [
            ("http://localhost:7440", true),
            ("https://ropes.example.org", true),
            ("http://localhost:7440/x", false),
            ("null", false),
            ("file://localhost:7440", false),
            ("https://evil.example", false),
        ] {
            assert_eq!(hosts.has_origin(origin), expected, "{origin}");
        }
    }
}
