//! Reads YAML that ships with the program.

use serde::de::DeserializeOwned;

/// Reads `text`; the error is one line with its place.
pub(crate) fn read<Value: DeserializeOwned>(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! { with_snippet: false, emit_comments: false };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| error.to_string().lines().collect::<Vec<_>>().join(" "))
}
