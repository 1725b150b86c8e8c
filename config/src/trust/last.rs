//! Reads where a project lies and who works on it, whatever else its file says: for what only tightens, which must not
//! wait until somebody trusts or mends that file.

use std::path::Path;

use serde_json::Value;

use crate::entry::without_secrets;
use crate::environment::Environment;
use crate::error::ConfigError;
use crate::layers::Layers;
use crate::load::LoadedConfig;
use crate::origin::Origin;
use crate::settings::{Config, LEFT_OUT};
use crate::trust::{TrustRecord, TrustRequest};

/// The sections that say where a project lies, and who may do what there; nothing else of its file is read.
const SECTIONS: [&str; 4] = ["project.", "person.", "people.", "store."];

/// How lines begin that may say where a project lies and that no word of a person holds: they loosen nothing.
const NAMING: [&str; 4] = ["[project", "project", "name", "repo"];

/// So many lines before a fault may have caused it: what is opened there and never closed.
const MOST_BACK: usize = 100;

impl Config {
    /// Loads where the project of `directory` lies and who works on it, as its file was when somebody trusted it last: what
    /// loosens since then counts as not written, and so does what follows a fault. All else in that file is left out.
    pub fn load_as_last_trusted(
        directory: &Path,
        environment: &Environment,
        overrides: &[String],
    ) -> Result<LoadedConfig, ConfigError> {
        Self::laid(directory, environment, overrides, |path, text, layers| {
            lay(path, text, layers, environment)?;
            Ok(None)
        })
    }
}

fn lay(
    path: &Path,
    text: &str,
    layers: &mut Layers,
    environment: &Environment,
) -> Result<(), ConfigError> {
    let origin = Origin::Project {
        path: path.to_owned(),
        line: None,
    };
    let text = readable(text, &origin)?;
    let mut own = Layers::default();
    own.add_toml(&text, &origin)?;
    let request = TrustRequest::of(path, &text, layers)?;
    let word = TrustRecord::about(path, environment)?;
    let mut known = word
        .as_ref()
        .map(|word| word.keys.clone())
        .unwrap_or_default();
    let changed = match &request {
        Some(request) => request.changed_since(word.as_ref()),
        None => known.keys().cloned().collect(),
    };
    known.retain(|key, _| is_read(key) && changed.contains(key));
    let mut leaves = own.leaves();
    leaves.retain(|(key, _)| is_read(key) && !changed.contains(key));
    if let Some(request) = &request
        && (leaves.iter().any(hides) || known.values().any(is_cut))
    {
        request.demand(environment)?;
    }
    for (key, value) in leaves {
        layers.put(&key, value, own.origin(&key));
    }
    for (key, value) in known {
        layers.put(&key, value, origin.clone());
    }
    Ok(())
}

/// Returns whether a value is shown with less than it holds: whether more than its password differs from what was trusted
/// cannot be told.
fn hides((_, value): &(String, Value)) -> bool {
    without_secrets(value) != *value
}

/// Returns whether a value is kept without its password.
fn is_cut(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains(LEFT_OUT))
}

fn is_read(key: &str) -> bool {
    SECTIONS.iter().any(|section| key.starts_with(section))
}

/// Returns a text that is TOML: as much of the beginning as is, unless the rest may name the project or its repository.
fn readable(text: &str, origin: &Origin) -> Result<String, ConfigError> {
    let parses = |text: &str| Layers::default().add_toml(text, origin);
    let Err(fault) = parses(text) else {
        return Ok(text.to_owned());
    };
    let lines: Vec<&str> = text.lines().collect();
    let names = |line: &&str| {
        let line = line.trim_start_matches(['\u{feff}', ' ', '\t', '"', '\'']);
        NAMING.iter().any(|name| line.starts_with(name))
    };
    let first = match &fault {
        ConfigError::Malformed {
            origin: Origin::Project { line, .. },
            ..
        } => line.unwrap_or_default().saturating_sub(1).min(lines.len()),
        _ => 0,
    };
    for end in (first.saturating_sub(MOST_BACK)..=first).rev() {
        let (kept, rest) = lines.split_at(end);
        if rest.iter().any(names) {
            break;
        }
        let kept = kept.join("\n");
        if parses(&kept).is_ok() {
            return Ok(kept);
        }
    }
    Err(fault)
}
