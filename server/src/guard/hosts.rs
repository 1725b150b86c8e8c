//! Knows the names by which this server is reached: a page of another name speaks to somebody else.

use std::net::SocketAddr;

/// The names by which this server is reached.
#[derive(Debug)]
pub(crate) struct Hosts {
    names: Vec<String>,
    /// The port at which every address of the machine is its own.
    anywhere: Option<u16>,
}

impl Hosts {
    /// Returns the address itself, the names of the machine for itself, and those that were added.
    pub(crate) fn new(address: SocketAddr, added: Vec<String>) -> Self {
        let port = address.port();
        let own = ["127.0.0.1", "localhost", "[::1]"];
        let own = own.map(|name| format!("{name}:{port}"));
        let is_anywhere = address.ip().is_unspecified();
        let itself = (!is_anywhere).then(|| address.to_string());
        Self {
            names: own.into_iter().chain(itself).chain(added).collect(),
            anywhere: is_anywhere.then_some(port),
        }
    }

    /// Returns whether a request with this `Host` is meant for this server.
    pub(crate) fn has(&self, host: &str) -> bool {
        // A page of somebody else can come by a name that it has led here, and by no bare address.
        let is_own = |address: SocketAddr| Some(address.port()) == self.anywhere;
        self.is_named(host) || host.parse().is_ok_and(is_own)
    }

    fn is_named(&self, host: &str) -> bool {
        self.names
            .iter()
            .any(|name| name.eq_ignore_ascii_case(host))
    }

    /// Returns whether a page of this `Origin` may speak to this server, which was asked by the name `asked`.
    pub(crate) fn has_origin(&self, origin: &str, asked: &str) -> bool {
        let host = ["http://", "https://"]
            .iter()
            .find_map(|scheme| origin.strip_prefix(scheme));
        host.is_some_and(|host| self.is_named(host) || (self.has(host) && host == asked))
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
            assert_eq!(hosts.has_origin(origin, "x"), expected, "{origin}");
        }
    }

    #[test]
    fn who_listens_everywhere_is_reached_by_each_address_and_a_page_of_another_machine_by_none() {
        let hosts = Hosts::new("0.0.0.0:7440".parse().unwrap(), Vec::new());
        for (host, expected) in [
            ("192.0.2.7:7440", true),
            ("[2001:db8::7]:7440", true),
            ("192.0.2.7:7441", false),
            ("192.0.2.7", false),
            ("evil.example:7440", false),
        ] {
            assert_eq!(hosts.has(host), expected, "{host}");
        }
        let from = |origin| hosts.has_origin(origin, "192.0.2.7:7440");
        assert!(from("http://192.0.2.7:7440") && from("http://localhost:7440"));
        assert!(!from("http://192.0.2.8:7440") && !from("http://evil.example:7440"));
    }
}
