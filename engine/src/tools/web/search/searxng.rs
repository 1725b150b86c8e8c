//! Searches by a server that answers as SearXNG does: `GET ADDRESS?q=WORDS&format=json`.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use ropewalk_runtime::http;
use ropewalk_workspace::sandbox::egress::Egress;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::Url;

use super::super::{body, client, options};
use super::{SearchError, SearchHit, SearchPort};

/// How long the server may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The most bytes of its answer, as they are once they are unpacked.
const MOST_BYTES: usize = 1024 * 1024;

/// Is a server that searches, as a person has configured it.
#[derive(Debug)]
pub struct Searxng {
    url: Url,
    key: Option<SecretString>,
    access: SearxngAccess,
}

/// Says where the server may be.
#[derive(Debug)]
pub enum SearxngAccess {
    /// At addresses of the outside alone, by this way.
    Outside(Egress),
    /// Anywhere, also on this machine: a person said so.
    Anywhere,
}

/// An answer; of a result what else it says is left alone.
#[derive(Deserialize)]
struct Answer {
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    url: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    content: Option<String>,
}

impl Searxng {
    /// Searches at `url`; `key` is sent as a bearer token.
    pub fn new(url: Url, key: Option<SecretString>, access: SearxngAccess) -> Self {
        Self { url, key, access }
    }

    async fn ask(&self, query: &str) -> Result<reqwest::Response, SearchError> {
        let mut url = self.url.clone();
        url.query_pairs_mut()
            .append_pair("q", query)
            .append_pair("format", "json");
        let asks = match &self.access {
            SearxngAccess::Outside(egress) => client(egress, &url, PATIENCE).await,
            SearxngAccess::Anywhere => {
                http::client(options(PATIENCE)).map_err(|error| error.to_string())
            }
        };
        let mut request = asks
            .map_err(SearchError)?
            .get(url)
            .header(ACCEPT, "application/json");
        if let Some(key) = &self.key {
            let token = HeaderValue::from_str(&format!("Bearer {}", key.expose_secret().trim()));
            let mut token = token.map_err(|_| error("its key holds what no key has"))?;
            token.set_sensitive(true);
            request = request.header(AUTHORIZATION, token);
        }
        let response = request.send().await;
        response.map_err(|failed| error(failed.without_url()))
    }
}

#[async_trait]
impl SearchPort for Searxng {
    async fn search(&self, query: &str) -> Result<Vec<SearchHit>, SearchError> {
        let response = self.ask(query).await?;
        let status = response.status();
        if !status.is_success() {
            return Err(error(format!("the server answers {status}")));
        }
        let read = body(response, MOST_BYTES).await;
        let (read, is_cut) = read.map_err(|failed| error(failed.without_url()))?;
        if is_cut {
            let told = format!("the server answers with more than {MOST_BYTES} bytes");
            return Err(error(told));
        }
        let answer: Answer = serde_json::from_slice(&read)
            .map_err(|_| error("the server answers with something else than results in JSON"))?;
        let hits = answer.results.into_iter().filter_map(|found| {
            Some(SearchHit {
                url: Url::parse(&found.url).ok()?,
                title: found.title.unwrap_or_default(),
                excerpt: found.content.unwrap_or_default(),
            })
        });
        Ok(hits.collect())
    }
}

fn error(reason: impl fmt::Display) -> SearchError {
    SearchError(reason.to_string())
}
