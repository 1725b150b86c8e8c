//! Verb `people token`: makes a token by which somebody is known elsewhere than on this terminal.

use clap::Args;
use ropewalk_runtime::token;
use ropewalk_schemas::{ContentHash, UserSlug};
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;

/// Whose token it is.
#[derive(Debug, Args)]
pub struct Token {
    /// A name of `[people]`, or one that shall stand there.
    name: UserSlug,
}

#[derive(Debug, Serialize)]
struct Receipt {
    name: UserSlug,
    token: String,
    token_sha256: ContentHash,
}

impl Token {
    /// Runs the verb.
    pub fn run(self, app: &App) -> Result<(), CliError> {
        let token = token::fresh();
        let made = Receipt {
            name: self.name,
            token_sha256: ContentHash::of(token.as_bytes()),
            token,
        };
        app.output.show(&made, |made| {
            format!(
                "token of {0}, shown this once: {1}\n\nits hash belongs into the configuration; a token whose hash stood there before is worth nothing then:\n\n[people.{0}]\ntoken_sha256 = \"{2}\"",
                made.name, made.token, made.token_sha256
            )
        })
    }
}
