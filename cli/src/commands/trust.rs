//! Verb `trust`: shows what a project's file loosens, and keeps the word of a person that it may.

use std::fmt::Write as _;

use clap::Args;
use ropewalk_config::{TrustRecord, TrustRequest};
use ropewalk_runtime::Clock;
use ropewalk_schemas::ContentHash;
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;

/// What was read.
#[derive(Debug, Args)]
pub struct Trust {
    /// The hash of the keys that were read, as this verb shows it.
    #[arg(long)]
    hash: Option<ContentHash>,
}

#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    request: Box<TrustRequest>,
    /// What was trusted last, perhaps something else.
    word: Option<TrustRecord>,
    trusted: bool,
}

impl Trust {
    /// Runs the verb.
    pub fn run(self, app: &App) -> Result<(), CliError> {
        let loaded = app.load_whoever_wrote_it()?;
        let Some(request) = loaded.trust else {
            return app.output.note(match loaded.project_file {
                Some(_) => "there is nothing to trust: `ropewalk.toml` loosens nothing",
                None => "there is nothing to trust: no `ropewalk.toml` here or above",
            });
        };
        let shown = Report::of(request, app)?;
        let (agreed, is_read) = match &self.hash {
            Some(hash) => (agrees(hash, &shown.request)?, false),
            None if shown.trusted => (false, false),
            // Without a word to go by the keys are shown first, to be read.
            None => {
                app.output.show(&shown, human)?;
                if !app.can_ask() {
                    return Err(refusal(&shown.request));
                }
                App::confirm("Let this file do exactly that on this machine?")?;
                (true, true)
            }
        };
        if !agreed {
            return app.output.show(&shown, human);
        }
        let now = Clock::system().now().to_rfc3339();
        shown.request.trust(&app.environment, &now)?;
        let kept = Report::of(shown.request, app)?;
        // Whoever has just read the keys knows them.
        app.output
            .show(&kept, if is_read { headline } else { human })
    }
}

impl Report {
    fn of(request: Box<TrustRequest>, app: &App) -> Result<Self, CliError> {
        let word = request.last_word(&app.environment)?;
        let trusted = word.as_ref().is_some_and(|word| word.hash == request.hash);
        Ok(Self {
            request,
            word,
            trusted,
        })
    }
}

/// Takes a hash that names what is there now, and no other.
fn agrees(hash: &ContentHash, request: &TrustRequest) -> Result<bool, CliError> {
    if *hash == request.hash {
        return Ok(true);
    }
    let text = (
        format!(
            "`{}` does not ask for that, or no longer",
            request.file.display()
        ),
        "read what it asks for with `ropewalk trust`",
    );
    Err(CliError::refused("untrusted", text))
}

fn refusal(request: &TrustRequest) -> CliError {
    let text = (
        "nothing was trusted",
        format!(
            "read the keys, then allow exactly these with `ropewalk trust --hash {}`",
            request.hash
        ),
    );
    CliError::refused("untrusted", text)
}

/// Says how it stands with the file.
fn headline(shown: &Report) -> String {
    let file = shown.request.file.display();
    match (&shown.word, shown.trusted) {
        (Some(word), true) => format!("{file} is trusted since {}", word.at),
        (Some(word), false) => format!("{file} asks for other than was allowed at {}", word.at),
        (None, _) => format!("{file} asks for"),
    }
}

/// Shows each value whole, since it is what the person answers for, and what it was when they last did.
fn human(shown: &Report) -> String {
    let request = &shown.request;
    let mut text = headline(shown);
    text.push_str(if shown.trusted { " with:\n" } else { ":\n" });
    // Writing to a String cannot fail.
    let word = shown.word.as_ref().filter(|_| !shown.trusted);
    for entry in &request.keys {
        let is_new = word.is_some_and(|word| !word.keys.contains_key(&entry.key));
        let mark = if is_new { ", which is new" } else { "" };
        writeln!(text, "  {} = {}{mark}", entry.key, entry.value).ok();
    }
    if let Some(word) = word {
        for key in request.changed_since(Some(word)) {
            if let Some(was) = word.keys.get(&key) {
                writeln!(text, "  {key} was {was}").ok();
            }
        }
    }
    write!(text, "hash {}", request.hash).ok();
    text
}
