//! Verb `config show`: every value and where it was set.

use clap::Args;
use serde_json::Value;

use crate::app::App;
use crate::error::CliError;

/// What is to be shown.
#[derive(Debug, Args)]
pub struct Show {
    /// Only keys that begin so, for example `build`.
    prefix: Option<String>,
}

impl Show {
    /// Runs the verb.
    pub fn run(self, app: &App) -> Result<(), CliError> {
        let mut entries = app.load()?.entries();
        if let Some(prefix) = &self.prefix {
            entries.retain(|entry| entry.key.starts_with(prefix.as_str()));
            if entries.is_empty() {
                let text = (
                    format!("no key begins with `{prefix}`"),
                    "see `ropewalk config show`",
                );
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
