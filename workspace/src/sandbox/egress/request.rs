//! Reads what a client asks of a proxy: a tunnel to a host, or a request in its absolute form.

use std::fmt::Write as _;

/// How the head of a request ends.
pub(super) const END: &[u8] = b"\r\n\r\n";
/// The longest name of a host.
const LONGEST_HOST: usize = 253;
const MOST_HEADERS: usize = 100;
const HTTP_PORT: u16 = 80;
/// What concerns the connection to the proxy, and not the one to the host.
const OF_THE_CONNECTION: [&str; 9] = [
    "connection",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
    "proxy-authenticate",
];

/// Where a client wants to get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// In lower case and without a dot at its end.
    pub(super) host: String,
    pub(super) port: u16,
}

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    /// Bytes in both directions.
    Tunnel(Target),
    /// One request, whose body follows.
    Plain {
        target: Target,
        method: String,
        /// Path and query.
        path: String,
        /// The headers that concern the host, each line with its end.
        headers: String,
    },
}

/// Says why a head is none of a request to a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeadError {
    #[error("the first line is none of a request to a proxy")]
    Line,
    #[error("the address is not `http://host/…`; `https` goes by CONNECT")]
    Address,
    #[error("a header is malformed")]
    Header,
}

impl Request {
    /// Reads the head of a request, without the empty line at its end.
    pub(super) fn parse(head: &[u8]) -> Result<Self, HeadError> {
        let head = std::str::from_utf8(head).map_err(|_| HeadError::Line)?;
        let mut lines = head.split("\r\n");
        let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [method, address, "HTTP/1.0" | "HTTP/1.1"] = words.as_slice() else {
            return Err(HeadError::Line);
        };
        let is_visible = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_token(method) || !is_visible(address) {
            return Err(HeadError::Line);
        }
        let headers = headers(lines)?;
        if *method == "CONNECT" {
            let target = Target::parse(address, None).ok_or(HeadError::Line)?;
            return Ok(Self::Tunnel(target));
        }
        let scheme = address.get(..7).ok_or(HeadError::Address)?;
        if !scheme.eq_ignore_ascii_case("http://") {
            return Err(HeadError::Address);
        }
        let rest = address.get(7..).unwrap_or_default();
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = path.split('#').next().unwrap_or_default();
        Ok(Self::Plain {
            target: Target::parse(authority, Some(HTTP_PORT)).ok_or(HeadError::Address)?,
            method: (*method).to_owned(),
            path: if path.starts_with('/') {
                path.to_owned()
            } else {
                format!("/{path}")
            },
            headers,
        })
    }
}

impl Target {
    /// Reads `host:port`; a name and a password before it are refused.
    fn parse(authority: &str, usual: Option<u16>) -> Option<Self> {
        let (host, port) = match authority.rsplit_once(':') {
            // What stands in brackets is an address of IPv6.
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (authority, None),
        };
        let is_number = |port: &&str| port.bytes().all(|byte| byte.is_ascii_digit());
        let port = match port {
            Some(port) => Some(port).filter(is_number)?.parse().ok()?,
            None => usual?,
        };
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let is_host = (1..=LONGEST_HOST).contains(&host.len())
            && host
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.[]:".contains(&byte));
        (is_host && port != 0).then_some(Self { host, port })
    }

    /// Returns how a request names it.
    pub(super) fn authority(&self) -> String {
        match self.port {
            HTTP_PORT => self.host.clone(),
            port => format!("{}:{port}", self.host),
        }
    }
}

fn headers<'a>(lines: impl Iterator<Item = &'a str>) -> Result<String, HeadError> {
    let mut kept = String::new();
    for (index, line) in lines.enumerate() {
        let (name, value) = line.split_once(':').ok_or(HeadError::Header)?;
        // What two readers may understand differently is none: a lone end of a line above all.
        if index >= MOST_HEADERS || !is_token(name) || value.contains(['\r', '\n', '\0']) {
            return Err(HeadError::Header);
        }
        let concerns_the_host = !OF_THE_CONNECTION
            .iter()
            .any(|dropped| name.eq_ignore_ascii_case(dropped));
        if concerns_the_host {
            // Writing to a String cannot fail.
            write!(kept, "{name}:{value}\r\n").ok();
        }
    }
    Ok(kept)
}

fn is_token(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(host: &str, port: u16) -> Target {
        Target {
            host: host.to_owned(),
            port,
        }
    }

    #[test]
    fn a_tunnel_is_asked_for_by_host_and_port() {
        for (address, expected) in [
            ("packages.test:443", target("packages.test", 443)),
            ("Packages.TEST.:443", target("packages.test", 443)),
            ("[::1]:22", target("[::1]", 22)),
        ] {
            let head = format!("CONNECT {address} HTTP/1.1\r\nHost: other.org");
            let read = Request::parse(head.as_bytes());
            assert_eq!(read, Ok(Request::Tunnel(expected)), "{address}");
        }
    }

    #[test]
    fn a_plain_request_names_its_host_itself_and_keeps_only_what_concerns_that() {
        let head = "POST HTTP://Example.org:8080?q=1#part HTTP/1.1\r\nHost: other.org\r\nAccept: */*\r\n\
                    Proxy-Authorization: Basic eA==\r\nConnection: keep-alive\r\nContent-Length: 3";
        let read = Request::parse(head.as_bytes()).unwrap();
        let expected = Request::Plain {
            target: target("example.org", 8080),
            method: "POST".to_owned(),
            path: "/?q=1".to_owned(),
            headers: "Accept: */*\r\nContent-Length: 3\r\n".to_owned(),
        };
        assert_eq!(read, expected);
        let short = Request::parse(b"GET http://example.org HTTP/1.0").unwrap();
        let expected = Request::Plain {
            target: target("example.org", 80),
            method: "GET".to_owned(),
            path: "/".to_owned(),
            headers: String::new(),
        };
        assert_eq!(short, expected);
    }

    #[test]
    fn what_could_be_understood_in_two_ways_is_refused() {
        use HeadError::{Address, Header, Line};
        for (head, expected) in [
            ("", Line),
            ("GET http://h/", Line),
            ("GET  http://h/ HTTP/1.1", Line),
            ("GET http://h/ HTTP/2", Line),
            ("G\u{e9}T http://h/ HTTP/1.1", Line),
            ("CONNECT h HTTP/1.1", Line),
            ("CONNECT h:0 HTTP/1.1", Line),
            ("CONNECT h:99999 HTTP/1.1", Line),
            ("CONNECT h:+80 HTTP/1.1", Line),
            ("CONNECT ada@h:80 HTTP/1.1", Line),
            ("CONNECT :80 HTTP/1.1", Line),
            ("GET / HTTP/1.1", Address),
            ("GET https://h/ HTTP/1.1", Address),
            ("GET http:/// HTTP/1.1", Address),
            ("GET http://ada:pw@h/ HTTP/1.1", Address),
            ("GET http://h/ HTTP/1.1\r\nno colon", Header),
            ("GET http://h/ HTTP/1.1\r\nA: b\r\n folded", Header),
            ("GET http://h/ HTTP/1.1\r\nA : b", Header),
            ("GET http://h/ HTTP/1.1\r\nA: b\nHost: x", Header),
        ] {
            assert_eq!(Request::parse(head.as_bytes()), Err(expected), "{head:?}");
        }
        let many = "\r\nA: b".repeat(MOST_HEADERS + 1);
        let head = format!("GET http://h/ HTTP/1.1{many}");
        assert_eq!(Request::parse(head.as_bytes()), Err(Header));
    }
}
