//! Verb `config show`: every value and where it was set.

use clap::Args;
use serde_json::Value;

use crate::app::App;
use crate::error::CliError;

/// The section of providers, which ships none: what ships is a file of each.
const PROVIDERS: &str = "providers";
/// How somebody has one who has none yet.
const OWN_PROVIDER: &str = "one of your own is a section `[providers.NAME]` of `ropewalk.toml` with `kind`, `base_url`, `key_variable` and `prices`";

/// What is to be shown.
#[derive(Debug, Args)]
pub struct Show {
    /// Only keys that begin so, for example `build`, or `providers`: one of your own is a section `[providers.NAME]` with `kind`,
    /// `base_url`, `key_variable` and `prices`.
    prefix: Option<String>,
}

impl Show {
    /// Runs the verb.
    pub fn run(self, app: &App) -> Result<(), CliError> {
        let mut entries = app.load()?.entries();
        if let Some(prefix) = &self.prefix {
            entries.retain(|entry| entry.key.starts_with(prefix.as_str()));
            if entries.is_empty() {
                let next = if prefix.starts_with(PROVIDERS) {
                    OWN_PROVIDER
                } else {
                    "see `ropewalk config show`"
                };
                let text = (format!("no key begins with `{prefix}`"), next);
                return Err(CliError::refused("unknown-key", text));
            }
        }
        app.output
            .list(&entries, ["key", "value", "origin"], |entry| {
                [
                    entry.key.clone(),
                    match &entry.value {
                        Value::Null => "unset".to_owned(),
                        value => value.to_string(),
                    },
                    entry.origin.to_string(),
                ]
            })
    }
}
