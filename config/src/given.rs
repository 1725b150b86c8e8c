//! Lays what the environment and flags set over what the files say.

use crate::environment::Environment;
use crate::error::ConfigError;
use crate::layers::Layers;
use crate::origin::Origin;
use crate::otel;

/// The prefix of environment variables that set a key.
const PREFIX: &str = "ROPEWALK_";

/// Returns the name of the variable that sets `key`, dotted.
pub(crate) fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "__").to_ascii_uppercase())
}

/// Lays the variables that set keys over what is there.
pub(crate) fn add_environment(layers: &mut Layers, environment: &Environment) {
    for (key, name, text) in otel::settings(environment) {
        layers.add_text(key, &text, &Origin::Environment(name.to_owned()));
    }
    for (name, value) in environment.pairs() {
        let (Some(name), Some(text)) = (name.to_str(), value.to_str()) else {
            continue;
        };
        let Some(rest) = name.strip_prefix(PREFIX) else {
            continue;
        };
        let path = rest.to_ascii_lowercase().replace("__", ".");
        // A name without `__` is no key, unless a key stands outside of the sections; other programs may own it.
        if path.contains('.') || Layers::is_sectionless(&path) {
            layers.add_text(&path, text, &Origin::Environment(name.to_owned()));
        }
    }
}

/// Lays one `section.key=value` of a flag over what is there.
pub(crate) fn add_override(layers: &mut Layers, text: &str) -> Result<(), ConfigError> {
    match text.split_once('=') {
        Some((key, value)) if is_key(key.trim()) => {
            layers.add_text(key.trim(), value.trim(), &Origin::Flag);
            Ok(())
        }
        _ => Err(ConfigError::NotAnOverride(text.to_owned())),
    }
}

fn is_key(text: &str) -> bool {
    text.split('.').all(|part| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    })
}
