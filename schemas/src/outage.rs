//! Defines outages: a provider of models that does not answer, until it does again (design §3, invariant 10).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Begins the cause of an alert about a provider.
const CAUSE: &str = "provider/";

/// A provider that is away, or was: one row each. While it stands, nobody asks that provider but the probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outage {
    /// The provider; the key of the row.
    pub provider: String,
    /// Who can end it.
    pub class: OutageClass,
    /// What the models of the provider are used for: `chat`, `spec`, `build`, `small`.
    #[serde(default)]
    pub roles: Vec<String>,
    /// Since when.
    pub since: DateTime<Utc>,
    /// What the last call or probe met.
    pub last_error: String,
    /// How often it was looked at again.
    pub probes: u32,
    /// When it is looked at again; none where somebody has to say that it was mended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_at: Option<DateTime<Utc>>,
    /// When the provider answered again; none while it is away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    /// The calls that met it, the latest last, over all of its times: one that meets it again and again while others
    /// are answered is at fault itself.
    #[serde(default)]
    pub met_by: Vec<String>,
}

/// Says who can end an outage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum OutageClass {
    /// Time: nothing is heard of the provider, or it says that it cannot serve.
    Unavailable,
    /// A person: the key is refused.
    Key {
        /// The environment variable that holds it.
        variable: String,
    },
}

impl Outage {
    /// Returns whether the provider is away.
    pub const fn stands(&self) -> bool {
        self.ended_at.is_none()
    }

    /// Names the cause of its alert.
    pub fn cause(provider: &str) -> String {
        format!("{CAUSE}{provider}")
    }

    /// Reads the cause of an alert; none where it is about something else.
    pub fn provider_of(cause: &str) -> Option<&str> {
        cause.strip_prefix(CAUSE)
    }

    /// Says what is away, and since when.
    pub fn in_words(&self) -> String {
        let provider = &self.provider;
        let since = self.since.format("%Y-%m-%d %H:%M:%S UTC");
        match &self.class {
            OutageClass::Unavailable => format!("provider `{provider}` is away since {since}"),
            OutageClass::Key { variable } => {
                format!("provider `{provider}` refuses the key in `{variable}` since {since}")
            }
        }
    }
}

impl std::fmt::Display for Outage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.in_words())?;
        match (&self.class, self.probe_at) {
            (_, Some(at)) => write!(
                formatter,
                ", looked at again at {}",
                at.format("%Y-%m-%d %H:%M:%S UTC")
            ),
            (OutageClass::Key { .. }, None) => {
                formatter.write_str("; set the variable and start the program again")
            }
            (OutageClass::Unavailable, None) => Ok(()),
        }
    }
}
