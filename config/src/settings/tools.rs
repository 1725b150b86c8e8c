//! Defines what the tools of models need beside their work.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

/// What the tools of models need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolSettings {
    /// What of an earlier look around is told again.
    pub cache: CacheSettings,
    /// Who searches the web; none where models do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web_search: Option<WebSearchSettings>,
}

/// What of an earlier look around is told again, as long as nothing was written since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheSettings {
    /// Whether anything is.
    pub enabled: bool,
    /// So many results are kept for each work.
    pub results: u32,
    /// How long the result of a search holds.
    pub search_seconds: u32,
}

/// Who searches the web.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebSearchSettings {
    /// Where somebody answers as SearXNG does.
    pub url: SearchAddress,
    /// The environment variable that holds the key, which is sent as a bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_variable: Option<String>,
    /// Whether it may be on this machine or in the networks around it.
    #[serde(default)]
    pub inside: bool,
}

/// The address of somebody who searches: http or https, and no name or password in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SearchAddress(Url);

/// Says that a text is no such address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no address to search at; write one such as `https://search.example.org/search`, without name and password"
)]
pub struct InvalidSearchAddress(String);

impl SearchAddress {
    /// Returns the address.
    pub const fn url(&self) -> &Url {
        &self.0
    }
}

impl TryFrom<String> for SearchAddress {
    type Error = InvalidSearchAddress;

    fn try_from(text: String) -> Result<Self, InvalidSearchAddress> {
        let url = Url::parse(&text).ok();
        let url = url.filter(|url| {
            let is_open = url.username().is_empty() && url.password().is_none();
            matches!(url.scheme(), "http" | "https") && url.has_host() && is_open
        });
        url.map(Self).ok_or(InvalidSearchAddress(text))
    }
}

impl From<SearchAddress> for String {
    fn from(address: SearchAddress) -> Self {
        address.0.into()
    }
}

impl fmt::Display for SearchAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_to_search_at_is_of_the_web_and_holds_no_password() {
        for (text, is_one) in [
            ("https://search.example.org/search", true),
            ("http://127.0.0.1:8888/search?language=en", true),
            ("search.example.org", false),
            ("file:///etc/passwd", false),
            ("https://ada:x@search.example.org/", false),
            ("https://ada@search.example.org/", false),
        ] {
            let parsed = SearchAddress::try_from(text.to_owned());
            assert_eq!(parsed.is_ok(), is_one, "{text}");
        }
    }
}
