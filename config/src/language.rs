//! Makes the template language in which prompts and questions are written.

use std::error::Error;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior};

/// Returns the language, with no template in it.
pub(crate) fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    // A missing value must be an error and not a hole in what a model or a person is told.
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()?;
    environment.set_syntax(syntax);
    Ok(environment)
}

/// Returns `error` with its causes in one line, since an error inside an included file is a cause.
pub(crate) fn in_one_line(error: &minijinja::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text.lines().collect::<Vec<_>>().join(" ")
}
