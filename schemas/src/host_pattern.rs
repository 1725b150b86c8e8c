//! Names hosts of the outside that commands may reach.

use std::fmt;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

/// The ports of a host that is listed without one.
const USUAL_PORTS: [u16; 2] = [80, 443];
/// The longest name, and the longest part of one.
const LONGEST: (usize, usize) = (253, 63);

/// A host, or all hosts one label below a name, at the usual ports or at one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPattern {
    /// In lower case; for a wildcard what follows `*.`.
    name: String,
    wildcard: bool,
    port: Option<u16>,
}

/// Says why a text names no hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostPatternError {
    /// It is an address of something at a host.
    #[error(
        "`{0}` is more than a host; write its name alone, without scheme and path: `example.org`"
    )]
    Address(String),
    /// Its wildcard is not one whole label, or stands for too much.
    #[error("`{0}` has a wildcard that is not the first label of a name; write `*.example.org`")]
    Wildcard(String),
    /// Its port is none.
    #[error("`{0}` has no port after its colon; write a number, as in `example.org:8080`")]
    Port(String),
    /// It is no name.
    #[error(
        "`{0}` is no name of a host; write `example.org`, `*.example.org` or `example.org:8080`"
    )]
    Name(String),
}

impl HostPattern {
    /// Reads `name`, `*.name`, or either with `:port`.
    pub fn parse(text: &str) -> Result<Self, HostPatternError> {
        let refuse = |why: fn(String) -> HostPatternError| why(text.to_owned());
        if text.contains(['/', '@', '?', '#']) {
            return Err(refuse(HostPatternError::Address));
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        };
        let is_number = |port: &&str| port.bytes().all(|byte| byte.is_ascii_digit());
        let port = match port.map(|port| Some(port).filter(is_number)?.parse().ok()) {
            Some(Some(0) | None) => return Err(refuse(HostPatternError::Port)),
            Some(port) => port,
            None => None,
        };
        let (name, wildcard) = match host.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (host, false),
        };
        // A wildcard over everything below `org` would name nothing.
        if name.contains('*') || (wildcard && !name.contains('.')) {
            return Err(refuse(HostPatternError::Wildcard));
        }
        let name = name.to_ascii_lowercase();
        if !is_name(&name) || (wildcard && is_address(&name)) {
            return Err(refuse(HostPatternError::Name));
        }
        Ok(Self {
            name,
            wildcard,
            port,
        })
    }

    /// Says whether it names `host`, which is in lower case and without a dot at its end, at `port`.
    pub fn names(&self, host: &str, port: u16) -> bool {
        let same = if self.wildcard {
            let label = host
                .strip_suffix(self.name.as_str())
                .and_then(|rest| rest.strip_suffix('.'));
            label.is_some_and(|label| !label.is_empty() && !label.contains('.'))
        } else {
            host == self.name
        };
        same && self
            .port
            .map_or_else(|| USUAL_PORTS.contains(&port), |only| only == port)
    }

    /// Writes what would have to be listed for `host` at `port`.
    pub fn wanted(host: &str, port: u16) -> String {
        if USUAL_PORTS.contains(&port) {
            host.to_owned()
        } else {
            format!("{host}:{port}")
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=LONGEST.1).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    name.len() <= LONGEST.0
        && name.split('.').all(is_label)
        && (!is_numeric(name) || is_address(name))
}

fn is_address(name: &str) -> bool {
    name.parse::<Ipv4Addr>().is_ok()
}

/// Says whether a resolver may take `name` for an address, which can be written in many ways.
fn is_numeric(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    let hexadecimal = last.strip_prefix("0x");
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    digits(last)
        || hexadecimal.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

impl TryFrom<String> for HostPattern {
    type Error = HostPatternError;

    fn try_from(text: String) -> Result<Self, HostPatternError> {
        Self::parse(&text)
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> Self {
        pattern.to_string()
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.wildcard {
            formatter.write_str("*.")?;
        }
        formatter.write_str(&self.name)?;
        self.port
            .map_or(Ok(()), |port| write!(formatter, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_a_host_or_one_label_below_a_name() {
        for (pattern, host, port, expected) in [
            ("packages.test", "packages.test", 443, true),
            ("Packages.TEST", "packages.test", 80, true),
            ("packages.test", "packages.test", 22, false),
            ("packages.test", "static.packages.test", 443, false),
            ("packages.test", "evilpackages.test", 443, false),
            ("packages.test", "packages.test.evil.org", 443, false),
            ("packages.test:8080", "packages.test", 8080, true),
            ("packages.test:8080", "packages.test", 443, false),
            ("*.example.org", "a.example.org", 443, true),
            ("*.example.org", "example.org", 443, false),
            ("*.example.org", ".example.org", 443, false),
            ("*.example.org", "a.b.example.org", 443, false),
            ("*.example.org", "aexample.org", 443, false),
            ("*.example.org:1", "a.example.org", 1, true),
            ("registry", "registry", 80, true),
            ("203.0.113.7", "203.0.113.7", 80, true),
        ] {
            let read = HostPattern::parse(pattern).unwrap();
            assert_eq!(read.names(host, port), expected, "{pattern} {host}:{port}");
            assert_eq!(read.to_string(), pattern.to_ascii_lowercase());
        }
        assert_eq!(HostPattern::wanted("h.org", 443), "h.org");
        assert_eq!(HostPattern::wanted("h.org", 22), "h.org:22");
    }

    #[test]
    fn what_names_no_host_is_refused_for_what_is_wrong_with_it() {
        use HostPatternError::{Address, Name, Port, Wildcard};
        for (text, why) in [
            (
                "https://packages.test",
                Address as fn(String) -> HostPatternError,
            ),
            ("packages.test/api", Address),
            ("ada@packages.test", Address),
            ("*", Wildcard),
            ("*.org", Wildcard),
            ("a.*.org", Wildcard),
            ("a*.example.org", Wildcard),
            ("*.*.example.org", Wildcard),
            ("packages.test:", Port),
            ("packages.test:0", Port),
            ("packages.test:+80", Port),
            ("packages.test:65536", Port),
            ("packages.test:https", Port),
            ("[::1]", Port),
            ("::1", Name),
            ("", Name),
            (".", Name),
            ("crates..io", Name),
            ("-a.org", Name),
            ("a b.org", Name),
            ("127.1", Name),
            ("0x7f000001", Name),
            ("2130706433", Name),
            ("*.0.0.1", Name),
        ] {
            let refused = HostPattern::parse(text);
            assert_eq!(refused, Err(why(text.to_owned())), "{text}");
        }
    }
}
