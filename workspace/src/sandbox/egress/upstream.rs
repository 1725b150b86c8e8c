//! Reads which proxy this program has to use itself to get to the outside.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ropewalk_schemas::advice::Advice;

use super::request::Target;

/// The proxies that a machine prescribes, by the variables that name them.
#[derive(Debug, Clone, Default)]
pub struct Upstream {
    tunnels: Option<Proxy>,
    plain: Option<Proxy>,
    /// What is reached without: a host, and all below it.
    without: Vec<String>,
}

/// A proxy that speaks HTTP.
#[derive(Clone)]
pub struct Proxy {
    /// Host and port.
    pub(super) address: String,
    /// A header with the name and the password, where it has them.
    pub(super) authorization: String,
}

// A password is in it.
impl std::fmt::Debug for Proxy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.address)
    }
}

/// Says that a variable names no proxy that could be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the variable `{0}` names no proxy that speaks HTTP, by which the hosts of `sandbox.hosts` would be reached"
)]
pub struct InvalidUpstream(String);

impl Advice for InvalidUpstream {
    fn next(&self) -> Option<String> {
        Some("write `http://host:port`, or drop it".to_owned())
    }
}

impl Upstream {
    /// Reads the variables that curl reads, by `variable`.
    pub fn of<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Result<Self, InvalidUpstream> {
        let either = |name: &str| {
            let small = name.to_ascii_lowercase();
            let value = variable(&small).or_else(|| variable(name));
            value.map(|value| (name.to_owned(), value))
        };
        let proxy = |name: &str| {
            let given = either(name);
            given
                .map(|(name, value)| Proxy::parse(value).ok_or(InvalidUpstream(name)))
                .transpose()
        };
        let without = either("NO_PROXY").map(|(_, list)| list.to_ascii_lowercase());
        Ok(Self {
            tunnels: proxy("HTTPS_PROXY")?,
            plain: proxy("HTTP_PROXY")?,
            without: without
                .iter()
                .flat_map(|list| list.split([',', ' ']))
                .map(|host| host.trim_start_matches('.').to_owned())
                .filter(|host| !host.is_empty())
                .collect(),
        })
    }

    /// Returns the proxy for tunnels to `target`.
    pub(super) fn for_tunnel(&self, target: &Target) -> Option<&Proxy> {
        self.tunnels.as_ref().filter(|_| !self.is_direct(target))
    }

    /// Returns the proxy for plain requests to `target`.
    pub(super) fn for_plain(&self, target: &Target) -> Option<&Proxy> {
        self.plain.as_ref().filter(|_| !self.is_direct(target))
    }

    fn is_direct(&self, target: &Target) -> bool {
        self.without.iter().any(|host| {
            let above = target.host.strip_suffix(host.as_str());
            host == "*" || above.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    }
}

impl Proxy {
    /// Returns host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns what it has to be told in `Proxy-Authorization`, where it asks for a name and a password.
    pub fn authorization(&self) -> Option<&str> {
        let (_, value) = self.authorization.trim_end().split_once(": ")?;
        Some(value)
    }

    fn parse(url: &str) -> Option<Self> {
        let rest = match url.split_once("://") {
            Some((scheme, rest)) => scheme.eq_ignore_ascii_case("http").then_some(rest)?,
            None => url,
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let (user, address) = match authority.rsplit_once('@') {
            Some((user, address)) => (Some(user), address),
            None => (None, authority),
        };
        let (host, port) = address.rsplit_once(':')?;
        let is_port = port.parse::<u16>().is_ok_and(|port| port != 0);
        let is_host = !host.is_empty() && !host.contains(['/', '?', '#', ' ']);
        let authorization = user.map_or_else(String::new, |user| {
            let encoded = STANDARD.encode(decoded(user));
            format!("Proxy-Authorization: Basic {encoded}\r\n")
        });
        (is_host && is_port).then(|| Self {
            address: address.to_owned(),
            authorization,
        })
    }
}

/// Undoes how an address writes signs that mean something in it.
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend(before.bytes());
        let code = after.get(..2);
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            bytes.push(byte);
            rest = after.get(2..).unwrap_or_default();
        } else {
            bytes.push(b'%');
            rest = after;
        }
    }
    bytes.extend(rest.bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(pairs: &[(&str, &'static str)]) -> Result<Upstream, InvalidUpstream> {
        let value = |wanted: &str| {
            let found = pairs.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| *value)
        };
        Upstream::of(value)
    }

    #[test]
    fn a_proxy_is_used_but_for_what_goes_without() {
        let upstream = upstream(&[
            ("https_proxy", "http://ada:p%40ss@proxy.example:3128/"),
            ("HTTPS_PROXY", "http://other:1"),
            ("HTTP_PROXY", "proxy.example:80"),
            ("NO_PROXY", "localhost, .corp.example,near.org"),
        ])
        .unwrap();
        let target = |host: &str| Target {
            host: host.to_owned(),
            port: 443,
        };
        let proxy = upstream.for_tunnel(&target("packages.test")).unwrap();
        assert_eq!(proxy.address, "proxy.example:3128");
        assert_eq!(
            proxy.authorization,
            "Proxy-Authorization: Basic YWRhOnBAc3M=\r\n"
        );
        let plain = upstream.for_plain(&target("packages.test")).unwrap();
        assert_eq!(
            (plain.address.as_str(), plain.authorization.as_str()),
            ("proxy.example:80", "")
        );
        assert!(!format!("{upstream:?}").contains("YWRh"));
        for (host, expected) in [
            ("near.org", true),
            ("a.near.org", true),
            ("linear.org", false),
            ("x.corp.example", true),
        ] {
            assert_eq!(
                upstream.for_plain(&target(host)).is_none(),
                expected,
                "{host}"
            );
        }
    }

    #[test]
    fn a_proxy_that_does_not_speak_http_is_refused_by_the_name_of_its_variable() {
        for value in [
            "socks5://h:1",
            "https://h:1",
            "http://h",
            "h",
            "http://h:0",
            "http://:1",
        ] {
            let refused = upstream(&[("HTTPS_PROXY", value)]).unwrap_err();
            assert_eq!(
                refused,
                InvalidUpstream("HTTPS_PROXY".to_owned()),
                "{value}"
            );
        }
        assert!(upstream(&[]).is_ok());
    }
}
