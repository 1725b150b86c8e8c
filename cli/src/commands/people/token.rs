//! Verb `people token`: makes a token by which somebody is known elsewhere than on this terminal.

use std::collections::BTreeSet;

use clap::Args;
use ropewalk_desk::people::Person;
use ropewalk_runtime::token;
use ropewalk_schemas::person::Right;
use ropewalk_schemas::{ContentHash, UserSlug};
use serde::Serialize;

use super::list::words;
use crate::app::App;
use crate::error::CliError;
use crate::project::system_user;

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
    /// What the configuration takes: a section, or a line of the one that is there.
    settings: String,
    #[serde(skip)]
    entry: Entry,
}

/// What `[people]` holds of somebody before the token.
#[derive(Debug)]
enum Entry {
    /// There is a section.
    Named,
    /// Others are named.
    Unnamed,
    /// Nobody is, so that whoever is at this terminal may do everything.
    Alone {
        /// That user of the operating system.
        user: String,
        /// What that user is called here.
        own: UserSlug,
    },
}

impl Token {
    /// Runs the verb.
    pub fn run(self, app: &App) -> Result<(), CliError> {
        // Who makes a token need not have trusted anything, nor have a project.
        let loaded = app.load_whoever_wrote_it()?;
        let own = loaded.person(&app.environment)?;
        let people = *loaded.config.people;
        let entry = if people.contains_key(&self.name) {
            Entry::Named
        } else if people.is_empty() {
            Entry::Alone {
                user: system_user(),
                own,
            }
        } else {
            Entry::Unnamed
        };
        let token = token::fresh();
        let token_sha256 = ContentHash::of(token.as_bytes());
        let made = Receipt {
            settings: settings(&self.name, &token_sha256, &entry),
            name: self.name,
            token,
            token_sha256,
            entry,
        };
        app.output.show(&made, |made| {
            let about = about(&made.name, &made.entry);
            format!(
                "token of {}, shown this once: {}\n\n{about}:\n\n{}",
                made.name, made.token, made.settings
            )
        })
    }
}

/// Writes what the configuration takes, so that nobody may do less than before: who was alone until now gets a section, too.
fn settings(name: &UserSlug, hash: &ContentHash, entry: &Entry) -> String {
    let line = format!("token_sha256 = \"{hash}\"");
    let section = format!("[people.{name}]\n{line}");
    match entry {
        Entry::Named => line,
        Entry::Unnamed => format!("{section}\nrights = []"),
        Entry::Alone { user, own } if own == name => format!("{section}\n{}", all_of(user, own)),
        Entry::Alone { user, own } => {
            let all = all_of(user, own);
            format!("[people.{own}]\n{all}\n\n{section}\nrights = []")
        }
    }
}

/// Writes what lets a user of the operating system do all that whoever is alone may do.
fn all_of(user: &str, own: &UserSlug) -> String {
    let Person { roles, rights, .. } = Person::alone(own.clone());
    // What JSON writes between quotes and brackets, TOML reads.
    let user = serde_json::Value::from(user);
    let (roles, rights) = (listed(&roles), listed(&rights));
    format!("user = {user}\nroles = [{roles}]\nrights = [{rights}]")
}

fn listed<T: ToString>(items: &BTreeSet<T>) -> String {
    let quoted: Vec<String> = items
        .iter()
        .map(|item| format!("\"{}\"", item.to_string()))
        .collect();
    quoted.join(", ")
}

/// Says where that belongs, and what it does.
fn about(name: &UserSlug, entry: &Entry) -> String {
    match entry {
        Entry::Named => format!(
            "its hash belongs into the section `[people.{name}]` that is there, in place of any that stands in it, whose token is worth nothing then"
        ),
        Entry::Unnamed => format!(
            "its hash belongs into the configuration, where nothing is said of {name} yet; `rights` says which of `{}` {name} has",
            words(&Right::ALL)
        ),
        Entry::Alone { user, own } if own == name => format!(
            "its hash belongs into the configuration; from then on only who is named in `[people]` may do anything, and this section lets the user {user} of this system do all that they may now, as {name}; `ropewalk people token NAME` makes the section of somebody else"
        ),
        Entry::Alone { user, own } => format!(
            "its hash belongs into the configuration; from then on only who is named in `[people]` may do anything: the first section lets the user {user} of this system do all that they may now, as {own}, and the second is that of {name}, whose `rights` say which of `{}` {name} has",
            words(&Right::ALL)
        ),
    }
}
