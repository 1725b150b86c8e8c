//! How often a fault happens to a test: a few times in `./check`, as often as a variable says in `./check --soak`.

/// A variable that holds no count.
#[derive(Debug, Clone, thiserror::Error)]
#[error("`{variable}` is `{text}`, which is no number")]
pub struct CountError {
    variable: String,
    text: String,
}

/// Returns what the environment says under `variable`, else `usually`.
pub fn count(variable: &str, usually: u32) -> Result<u32, CountError> {
    let Some(text) = std::env::var_os(variable) else {
        return Ok(usually);
    };
    let text = text.to_string_lossy();
    text.parse().map_err(|_| CountError {
        variable: variable.to_owned(),
        text: text.into_owned(),
    })
}
