//! Builds a model from a provider's data file.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use ropewalk_runtime::{Clock, http};
use ropewalk_schemas::advice::Advice;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::anthropic::{self, Anthropic};
use crate::gemini::{self, Gemini};
use crate::model::Model;
use crate::openai::OpenAi;
use crate::price::PriceTable;
use crate::responses::Responses;
use crate::retry::{RetryPolicy, RetryingModel};
use crate::scripted::{Script, ScriptedModel};
use crate::wire::{Endpoint, Limits, Secret};

/// The data files that come with the program.
const SHIPPED: [(&str, &str); 8] = [
    ("anthropic", include_str!("../providers/anthropic.toml")),
    ("openai", include_str!("../providers/openai.toml")),
    (
        "openai-responses",
        include_str!("../providers/openai-responses.toml"),
    ),
    ("gemini", include_str!("../providers/gemini.toml")),
    ("openrouter", include_str!("../providers/openrouter.toml")),
    ("ollama", include_str!("../providers/ollama.toml")),
    ("llamacpp", include_str!("../providers/llamacpp.toml")),
    ("vllm", include_str!("../providers/vllm.toml")),
];

/// Names a way to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// Anthropic's Messages API.
    Anthropic,
    /// OpenAI-compatible chat completions.
    Openai,
    /// OpenAI's Responses.
    Responses,
    /// Gemini's `streamGenerateContent`.
    Gemini,
    /// A script.
    Scripted,
}

/// Describes a provider.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    /// The name to call it by.
    pub name: String,
    /// What it speaks.
    pub kind: ProviderKind,
    /// Where it is: `/v1/messages` (Anthropic), `/chat/completions` or `/responses` (OpenAI),
    /// `/models/MODEL:streamGenerateContent` (Gemini) is appended. Empty for a script.
    #[serde(default)]
    pub base_url: String,
    /// The environment variable that holds the key; none if the provider takes no key.
    pub key_variable: Option<String>,
    /// Whether it may be asked without a key although it knows keys.
    #[serde(default)]
    pub key_optional: bool,
    /// The field of chat completions that bounds the output.
    #[serde(default = "default_max_tokens_field")]
    pub max_tokens_field: String,
    /// How many tokens a conversation with its models may have, of the model that takes the fewest; none where that is unknown.
    pub window_tokens: Option<u64>,
    /// Which of its models see pictures: names, or the beginning of names followed by `*`.
    #[serde(default)]
    pub images: Vec<String>,
    /// Bounds on time that differ from the usual ones.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// What its models cost.
    #[serde(default)]
    pub prices: PriceTable,
    /// When and where the prices were read; none where they are nobody's list prices.
    pub priced: Option<PriceSource>,
    /// What its models cost by the word of whoever uses it, which counts before that.
    #[serde(skip)]
    pub own_prices: Option<DatedPrices>,
}

/// Says what models cost, by whose word.
#[derive(Debug, Clone, PartialEq)]
pub struct DatedPrices {
    /// What they cost.
    pub table: PriceTable,
    /// When and where that was read.
    pub source: PriceSource,
}

/// Says when and where prices were read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceSource {
    /// The day.
    pub date: String,
    /// The page.
    pub source: String,
}

/// Bounds the time of a request, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// How long a connection may take to stand.
    pub connect_seconds: u64,
    /// How long the provider may stay silent.
    pub idle_seconds: u64,
    /// How long a reply may take, all in all.
    pub total_seconds: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            connect_seconds: limits.connect.as_secs(),
            idle_seconds: limits.idle.as_secs(),
            total_seconds: limits.total.as_secs(),
        }
    }
}

fn default_max_tokens_field() -> String {
    "max_tokens".to_owned()
}

/// Says why a provider could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No data file of that name comes with the program.
    #[error("no provider is called `{name}`")]
    UnknownProvider {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A data file cannot be read.
    #[error("the data file of provider `{name}` is not valid: {source}")]
    File {
        /// The provider, or what the file was called.
        name: String,
        /// What is wrong with it.
        source: Box<toml_edit::de::Error>,
    },
    /// The provider wants a key.
    #[error("provider `{provider}` needs a key")]
    MissingKey {
        /// The provider.
        provider: String,
        /// The variable.
        variable: String,
    },
    /// The key holds characters that no HTTP header may have.
    #[error("the key in `{variable}` holds a line break or another character that no key has")]
    UnusableKey {
        /// The variable.
        variable: String,
    },
    /// The scripted provider has nothing to say.
    #[error("provider `{provider}` needs a script")]
    MissingScript {
        /// The provider.
        provider: String,
    },
    /// The base URL is none.
    #[error("`{url}` is not a base URL such as `https://host/v1`")]
    BadUrl {
        /// The URL as configured.
        url: String,
    },
    /// The HTTP client cannot be set up.
    #[error(transparent)]
    Http(#[from] http::HttpError),
}

impl Advice for BuildError {
    fn next(&self) -> Option<String> {
        match self {
            Self::UnknownProvider { known, .. } => Some(format!("there are {known}")),
            Self::MissingKey { variable, .. } => Some(format!("set the variable `{variable}`")),
            _ => None,
        }
    }
}

/// Returns the variables that hold the keys of the providers that come with the program.
pub fn shipped_key_variables() -> impl Iterator<Item = String> {
    let shipped = SHIPPED
        .iter()
        .filter_map(|(name, toml)| ProviderConfig::parse(name, toml).ok());
    shipped.filter_map(|provider| provider.key_variable)
}

impl ProviderConfig {
    /// Reads a data file; `name` names it in errors.
    pub fn parse(name: &str, toml: &str) -> Result<Self, BuildError> {
        toml_edit::de::from_str(toml).map_err(|source| BuildError::File {
            name: name.to_owned(),
            source: Box::new(source),
        })
    }

    /// Returns the description of a provider that comes with the program, or of `scripted`.
    pub fn shipped(name: &str) -> Result<Self, BuildError> {
        if name == "scripted" {
            return Ok(Self::scripted());
        }
        match SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
            Some((_, toml)) => Self::parse(name, toml),
            None => Err(BuildError::UnknownProvider {
                name: name.to_owned(),
                known: SHIPPED.map(|(shipped, _)| shipped).join(", ") + ", scripted",
            }),
        }
    }

    /// Returns the description of the scripted provider.
    pub fn scripted() -> Self {
        Self {
            name: "scripted".to_owned(),
            kind: ProviderKind::Scripted,
            base_url: String::new(),
            key_variable: None,
            key_optional: false,
            max_tokens_field: default_max_tokens_field(),
            window_tokens: None,
            images: vec!["*".to_owned()],
            timeouts: Timeouts::default(),
            prices: PriceTable::default(),
            priced: None,
            own_prices: None,
        }
    }

    /// Returns what a reply of whoever is asked as `model` costs. A price of one's own that knows this name counts before
    /// one of the data file that knows the more exact name of the reply.
    pub fn price_table(&self, model: &str) -> PriceTable {
        match &self.own_prices {
            Some(own) if own.table.knows(model) => own.table.clone(),
            Some(own) => own.table.over(&self.prices),
            None => self.prices.clone(),
        }
    }

    /// Says what is known of the price of `model`; none where it is unknown.
    pub fn price_told(&self, model: &str) -> Option<String> {
        let own = self.own_prices.as_ref();
        let source = match own.filter(|own| own.table.knows(model)) {
            Some(own) => Some(&own.source),
            None if self.prices.knows(model) => self.priced.as_ref(),
            None => return None,
        };
        Some(match source {
            Some(PriceSource { date, source }) => format!("priced as of {date} by {source}"),
            None => "priced by its data file".to_owned(),
        })
    }

    /// Says whether `model` sees pictures.
    pub fn sees_images(&self, model: &str) -> bool {
        self.images.iter().any(|name| match name.strip_suffix('*') {
            Some(beginning) => model.starts_with(beginning),
            None => name == model,
        })
    }

    fn limits(&self) -> Limits {
        Limits {
            connect: Duration::from_secs(self.timeouts.connect_seconds),
            idle: Duration::from_secs(self.timeouts.idle_seconds),
            total: Duration::from_secs(self.timeouts.total_seconds),
            ..Limits::default()
        }
    }

    fn url(&self, path: &str) -> Result<Url, BuildError> {
        let bad = || BuildError::BadUrl {
            url: self.base_url.clone(),
        };
        let base = self.base_url.trim_end_matches('/');
        let url = Url::parse(&format!("{base}{path}")).map_err(|_| bad())?;
        match url.scheme() {
            "http" | "https" if url.query().is_none() && url.fragment().is_none() => Ok(url),
            _ => Err(bad()),
        }
    }

    /// Returns the key to send, if one is to be sent.
    fn secret(&self, key: Option<SecretString>) -> Result<Option<Secret>, BuildError> {
        let Some(variable) = self.key_variable.clone() else {
            return Ok(None);
        };
        match key.filter(|key| !key.expose_secret().trim().is_empty()) {
            Some(key) => Ok(Some(Secret { variable, key })),
            None if self.key_optional => Ok(None),
            None => Err(BuildError::MissingKey {
                provider: self.name.clone(),
                variable,
            }),
        }
    }

    fn endpoint(
        &self,
        path: &str,
        key: Option<SecretString>,
        clock: &Clock,
    ) -> Result<Endpoint, BuildError> {
        let secret = self.secret(key)?;
        let limits = self.limits();
        let client = http::client(http::ClientOptions {
            connect_timeout: limits.connect,
            idle_timeout: limits.idle,
            // Kept by the endpoint, which can tell it from the idle one.
            total_timeout: None,
        })?;
        Ok(Endpoint {
            client,
            url: self.url(path)?,
            headers: self.headers(secret.as_ref())?,
            secret,
            limits,
            clock: clock.clone(),
        })
    }

    fn headers(&self, secret: Option<&Secret>) -> Result<HeaderMap, BuildError> {
        let mut headers = HeaderMap::new();
        if self.kind == ProviderKind::Anthropic {
            headers.insert(
                HeaderName::from_static("anthropic-version"),
                HeaderValue::from_static(anthropic::VERSION),
            );
        }
        if let Some(secret) = secret {
            let key = secret.key.expose_secret().trim();
            let own = |name| (HeaderName::from_static(name), key.to_owned());
            let (name, text) = match self.kind {
                ProviderKind::Anthropic => own("x-api-key"),
                ProviderKind::Gemini => own(gemini::KEY_HEADER),
                _ => (AUTHORIZATION, format!("Bearer {key}")),
            };
            let mut value = HeaderValue::from_str(&text).map_err(|_| BuildError::UnusableKey {
                variable: secret.variable.clone(),
            })?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

/// Builds the model of a provider; the ones behind HTTP retry by the usual policy.
pub fn build(
    config: &ProviderConfig,
    key: Option<SecretString>,
    script: Option<Script>,
    clock: &Clock,
) -> Result<Arc<dyn Model>, BuildError> {
    let name = config.name.clone();
    let policy = RetryPolicy::default();
    Ok(match config.kind {
        ProviderKind::Anthropic => {
            let model = Anthropic::new(name, config.endpoint("/v1/messages", key, clock)?);
            Arc::new(RetryingModel::new(model, policy, clock.clone()))
        }
        ProviderKind::Openai => {
            let endpoint = config.endpoint("/chat/completions", key, clock)?;
            let model = OpenAi::new(name, endpoint, config.max_tokens_field.clone());
            Arc::new(RetryingModel::new(model, policy, clock.clone()))
        }
        ProviderKind::Responses => {
            let model = Responses::new(name, config.endpoint("/responses", key, clock)?);
            Arc::new(RetryingModel::new(model, policy, clock.clone()))
        }
        ProviderKind::Gemini => {
            let model = Gemini::new(name, config.endpoint("/models", key, clock)?);
            Arc::new(RetryingModel::new(model, policy, clock.clone()))
        }
        ProviderKind::Scripted => {
            let Some(script) = script else {
                return Err(BuildError::MissingScript { provider: name });
            };
            Arc::new(ScriptedModel::new(script, clock.clone()).named(name))
        }
    })
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::advice::Words;

    use super::*;
    use crate::price::{Cost, Price};
    use crate::reply::Usage;

    fn built(config: &ProviderConfig, key: Option<&str>) -> Result<(), String> {
        let key = key.map(SecretString::from);
        build(config, key, None, &Clock::system())
            .map(|model| assert_eq!(model.name(), config.name))
            .map_err(|error| Words::of(&error).to_string())
    }

    #[test]
    fn a_provider_that_is_not_there_is_told_from_those_that_are() {
        let unknown = BuildError::UnknownProvider {
            name: "a; b".to_owned(),
            known: "c, d".to_owned(),
        };
        let words = ("no provider is called `a; b`", "there are c, d");
        assert_eq!(Words::of(&unknown), words.into());
        let key = BuildError::MissingKey {
            provider: "p".to_owned(),
            variable: "KEY".to_owned(),
        };
        assert_eq!(key.next().as_deref(), Some("set the variable `KEY`"));
    }

    #[test]
    fn every_shipped_provider_can_be_built() {
        for (name, _) in SHIPPED {
            let config = ProviderConfig::shipped(name).unwrap();
            assert_eq!(config.name, name);
            assert_eq!(built(&config, Some("k")), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_price_says_its_date_and_source_and_a_missing_one_is_unknown() {
        let told = |name: &str, model: &str| {
            let config = ProviderConfig::shipped(name).unwrap();
            config.price_told(model)
        };
        let known = told("anthropic", "claude-sonnet-4-5").unwrap();
        assert!(
            known.contains("2025") && known.contains("https://"),
            "{known}"
        );
        assert_eq!(told("openai", "gpt-99"), None);
        assert_eq!(told("openrouter", "z-ai/glm-4.6"), None);
        assert!(told("ollama", "any").is_some());
        for (name, _) in SHIPPED {
            let config = ProviderConfig::shipped(name).unwrap();
            let is_paid = config.prices.0.iter().any(|price| price.output > 0.0);
            assert_eq!(config.priced.is_some(), is_paid, "{name}");
        }
    }

    #[test]
    fn a_price_of_ones_own_counts_before_that_of_the_data_file_and_says_its_own_date() {
        let mut config = ProviderConfig::shipped("openai").unwrap();
        let shipped = config.price_told("gpt-4.1").unwrap();
        let own = Price {
            model: "gpt-5*".to_owned(),
            input: 1.0,
            output: 2.0,
            cache_read: None,
            cache_write: None,
        };
        config.own_prices = Some(DatedPrices {
            table: PriceTable(vec![own]),
            source: PriceSource {
                date: "2026-11-20".to_owned(),
                source: "a contract".to_owned(),
            },
        });
        let usage = Usage {
            input_tokens: 1_000_000,
            ..Usage::default()
        };
        let told = "priced as of 2026-11-20 by a contract";
        for (model, expected, micro_usd) in [
            ("gpt-5", Some(told), Some(1_000_000)),
            ("gpt-5-mini", Some(told), Some(1_000_000)),
            ("gpt-4.1", Some(shipped.as_str()), Some(2_000_000)),
            ("gpt-99", None, None),
        ] {
            assert_eq!(config.price_told(model).as_deref(), expected, "{model}");
            let cost = config.price_table(model).cost(model, &usage);
            assert_eq!(cost.map(|cost| cost.micro_usd), micro_usd, "{model}");
        }
    }

    #[test]
    fn a_price_of_ones_own_for_the_name_that_is_asked_counts_for_the_name_of_the_reply() {
        let mut config = ProviderConfig::shipped("openai").unwrap();
        let reply = "gpt-5-2025-08-07";
        assert!(config.prices.knows(reply));
        let usage = Usage {
            input_tokens: 1_000_000,
            ..Usage::default()
        };
        let shipped = config.prices.cost(reply, &usage);
        let of_own = Some(Cost { micro_usd: 9 });
        for (own, expected) in [
            ("gpt-5", of_own),
            ("gpt-5*", of_own),
            (reply, of_own),
            ("gpt-4.1", shipped),
        ] {
            config.own_prices = Some(DatedPrices {
                table: PriceTable(vec![Price {
                    model: own.to_owned(),
                    input: 0.000_009,
                    output: 2.0,
                    cache_read: None,
                    cache_write: None,
                }]),
                source: PriceSource {
                    date: "2026-11-20".to_owned(),
                    source: "a contract".to_owned(),
                },
            });
            // As a reply is charged: by its own name, else by the one that was asked.
            let table = config.price_table("gpt-5");
            let cost = table.cost(reply, &usage);
            let cost = cost.or_else(|| table.cost("gpt-5", &usage));
            assert_eq!(cost, expected, "{own}");
        }
    }

    #[test]
    fn a_missing_key_is_named_where_one_is_needed() {
        let cases = [
            ("anthropic", None, Some("ANTHROPIC_API_KEY")),
            ("openai", Some(" \n"), Some("OPENAI_API_KEY")),
            ("anthropic", Some("a\nb"), Some("ANTHROPIC_API_KEY")),
            ("anthropic", Some("k\n"), None),
            ("vllm", None, None),
            ("ollama", None, None),
        ];
        for (name, key, variable) in cases {
            let config = ProviderConfig::shipped(name).unwrap();
            match (built(&config, key), variable) {
                (Ok(()), None) => {}
                (Err(error), Some(variable)) => assert!(error.contains(variable), "{error}"),
                other => panic!("{name}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_bad_description_says_what_to_mend() {
        let unknown = Words::of(&ProviderConfig::shipped("acme").unwrap_err());
        assert!(unknown.message.contains("`acme`"), "{unknown}");
        let next = unknown.next.unwrap_or_default();
        assert!(next.contains("llamacpp, vllm, scripted"), "{next}");
        let typo = ProviderConfig::parse(
            "mine",
            "name = \"mine\"\nkind = \"openai\"\nbase_ulr = \"x\"",
        );
        assert!(typo.unwrap_err().to_string().contains("base_ulr"));
        let scripted = built(&ProviderConfig::scripted(), None).unwrap_err();
        assert!(scripted.contains("needs a script"), "{scripted}");
        for url in ["", "localhost", "ftp://host", "https://host/v1?x=1"] {
            let mut config = ProviderConfig::shipped("ollama").unwrap();
            url.clone_into(&mut config.base_url);
            assert!(
                built(&config, None).unwrap_err().contains("base URL"),
                "{url}"
            );
        }
    }

    #[test]
    fn the_key_never_shows_in_debug_output() {
        let config = ProviderConfig::shipped("openai").unwrap();
        let secret = config.secret(Some("k-123".into())).unwrap();
        let headers = config.headers(secret.as_ref()).unwrap();
        assert!(!format!("{headers:?}").contains("k-123"));
    }
}
