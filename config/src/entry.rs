//! Shows a value of the configuration, with its place and without its secrets.

use serde::Serialize;
use serde_json::Value;

use crate::origin::Origin;

/// A value of the configuration and where it was set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// The key, dotted.
    pub key: String,
    /// The value; a password in an address is left out.
    pub value: Value,
    /// Where it was set.
    pub origin: Origin,
}

/// Returns a value as it may be shown: a password in an address is left out.
pub(crate) fn without_secrets(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(crate::settings::without_password(text)),
        other => other.clone(),
    }
}
