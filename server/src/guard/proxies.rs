//! Finds out whom a proxy asks for: what one says that is named in the configuration is believed, and what anybody else
//! says is not.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderName, header};
use ropewalk_config::settings::Network;

/// Where most proxies say whom they ask for.
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The proxies that are believed.
#[derive(Debug, Clone)]
pub(crate) struct Proxies(Vec<Network>);

impl Proxies {
    pub(crate) const fn new(networks: Vec<Network>) -> Self {
        Self(networks)
    }

    /// Returns who asks, by a connection that comes from `peer`.
    ///
    /// Each proxy adds whom it heard at the end, so from there on the first that is no proxy of ours is the one: what
    /// stands before it may be of its own making. A proxy writes one of the headers and may pass on the other as it
    /// came; where both are there and do not agree, neither is believed.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let peer = peer.to_canonical();
        if !self.has(peer) {
            return peer;
        }
        let told = [
            listed(headers, &FORWARDED_FOR).map(|all| self.first(peer, &all, whole)),
            listed(headers, &header::FORWARDED).map(|all| self.first(peer, &all, its_for)),
        ];
        match told {
            [Some(one), Some(other)] if one != other => peer,
            [Some(one), _] | [None, Some(one)] => one,
            [None, None] => peer,
        }
    }

    /// Returns whether one that is believed has this address.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// Goes back along what the proxies heard, up to the first that is none, or that does not say who it heard.
    fn first(&self, peer: IpAddr, heard: &str, of_one: fn(&str) -> Option<&str>) -> IpAddr {
        let mut client = peer;
        for one in heard.rsplit(',') {
            let Some(address) = of_one(one).and_then(address) else {
                return client;
            };
            client = address;
            if !self.has(client) {
                return client;
            }
        }
        client
    }
}

/// Returns all that a header says, however many there are; what cannot be read names nobody.
fn listed(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let all = headers.get_all(name).iter();
    let all: Vec<&str> = all.map(|value| value.to_str().unwrap_or("?")).collect();
    (!all.is_empty()).then(|| all.join(","))
}

/// Returns whom one proxy heard, of what it says in `X-Forwarded-For`: that and nothing else.
#[expect(
    clippy::unnecessary_wraps,
    reason = "it stands where `its_for` does, which may find nobody"
)]
fn whole(element: &str) -> Option<&str> {
    Some(element)
}

/// Returns whom one proxy heard, of what it says in `Forwarded` (RFC 7239).
fn its_for(element: &str) -> Option<&str> {
    let mut pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
    let value = value.trim();
    let quoted = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    Some(quoted.unwrap_or(value))
}

/// Reads an address, which may have brackets and a port.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    let alone = bare.parse::<IpAddr>().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|socket| socket.ip());
    alone
        .or_else(with_port)
        .map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn client(peer: &str, told: &[(HeaderName, &'static str)]) -> String {
        let networks = ["127.0.0.1", "10.0.0.0/8"].map(|text| text.to_owned().try_into().unwrap());
        let mut headers = HeaderMap::new();
        for (name, value) in told {
            headers.append(name, HeaderValue::from_static(value));
        }
        let proxies = Proxies::new(networks.into());
        let client = proxies.client(peer.parse().unwrap(), &headers);
        client.to_string()
    }

    #[test]
    fn who_is_no_proxy_is_who_it_is_whatever_it_says() {
        for header in [FORWARDED_FOR, header::FORWARDED] {
            for told in ["198.51.100.7", "for=198.51.100.7", "127.0.0.1"] {
                let told = [(header.clone(), told)];
                assert_eq!(client("203.0.113.9", &told), "203.0.113.9", "{told:?}");
            }
        }
    }

    #[test]
    fn the_last_that_is_no_proxy_asks_and_what_it_says_of_others_is_its_own() {
        let (list, element) = (FORWARDED_FOR, header::FORWARDED);
        for (told, expected) in [
            (vec![], "127.0.0.1"),
            (vec![(list.clone(), "203.0.113.9")], "203.0.113.9"),
            (vec![(list.clone(), "203.0.113.9:4711")], "203.0.113.9"),
            (
                vec![(list.clone(), "198.51.100.7, 203.0.113.9")],
                "203.0.113.9",
            ),
            (
                vec![(list.clone(), "127.0.0.1, 203.0.113.9, 10.1.2.3")],
                "203.0.113.9",
            ),
            (
                vec![
                    (list.clone(), "198.51.100.7"),
                    (list.clone(), "203.0.113.9"),
                ],
                "203.0.113.9",
            ),
            (vec![(list.clone(), "10.0.0.1, 10.0.0.2")], "10.0.0.1"),
            (vec![(list.clone(), "203.0.113.9, unknown")], "127.0.0.1"),
            (
                vec![(list.clone(), "203.0.113.9, nonsense, 10.0.0.2")],
                "10.0.0.2",
            ),
            (vec![(list.clone(), "")], "127.0.0.1"),
            (vec![(list.clone(), "::ffff:203.0.113.9")], "203.0.113.9"),
            (
                vec![(
                    element.clone(),
                    "for=198.51.100.7, For=\"[2001:db8::1]:47\";proto=https",
                )],
                "2001:db8::1",
            ),
            (
                vec![(element.clone(), "proto=https;for=203.0.113.9")],
                "203.0.113.9",
            ),
            (vec![(element.clone(), "for=_hidden")], "127.0.0.1"),
            (
                vec![
                    (list.clone(), "203.0.113.9"),
                    (element.clone(), "for=203.0.113.9"),
                ],
                "203.0.113.9",
            ),
            // One of them the client wrote.
            (
                vec![(list, "203.0.113.9"), (element, "for=198.51.100.7")],
                "127.0.0.1",
            ),
        ] {
            assert_eq!(client("127.0.0.1", &told), expected, "{told:?}");
        }
    }
}
