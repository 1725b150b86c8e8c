//! Verb `people link`: prints a code by which somebody's phone is linked, once.

use clap::Args;
use ropewalk_desk::people::{PermissionError, Person};
use ropewalk_desk::phones;
use ropewalk_schemas::UserSlug;
use ropewalk_schemas::person::Right;
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;

/// Whose phone it is.
#[derive(Debug, Args)]
pub struct Link {
    /// A name of `[people]`; whoever asks, where none is given.
    name: Option<UserSlug>,
    /// Forgets the phone that is linked, as when it was lost.
    #[arg(long)]
    undo: bool,
}

#[derive(Debug, Serialize)]
struct LinkReceipt {
    name: UserSlug,
    code: String,
}

#[derive(Debug, Serialize)]
struct UnlinkReceipt {
    name: UserSlug,
    unlinked: bool,
    /// Whether the configuration still lets a phone in.
    configured: bool,
}

impl UnlinkReceipt {
    fn told(&self) -> String {
        let name = &self.name;
        if self.configured {
            return format!(
                "a phone of {name} is still let in: remove `telegram_user` of `[people.{name}]` from the configuration, \
                 then start `ropewalk up` again"
            );
        }
        let what = if self.unlinked { "any more" } else { "at all" };
        format!("no phone is linked to {name} {what}")
    }
}

impl Link {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let name = meant(self.name, opened.person()?)?;
        let (context, people) = (opened.context(), &opened.project.people);
        if self.undo {
            let unlinked = phones::unlink(&context, &name).await;
            let unlinked = unlinked.map_err(|error| CliError::advised("failed", error))?;
            let receipt = UnlinkReceipt {
                configured: people.chat_of(&name).is_some(),
                name,
                unlinked,
            };
            opened.close().await?;
            return app.output.show(&receipt, UnlinkReceipt::told);
        }
        if opened.project.config().telegram.token_variable.is_none() {
            let next = "`telegram.token_variable` sets one up, as `docs/telegram.md` shows";
            return Err(CliError::refused("link", ("there is no bot", next)));
        }
        let code = phones::code(&context, people, &name).await;
        let code = code.map_err(|error| CliError::advised("link", error))?;
        opened.close().await?;
        app.output.show(&LinkReceipt { name, code }, |made| {
            format!(
                "send this to the bot from the phone of {}, within 15 minutes:\n\n/start {}",
                made.name, made.code
            )
        })
    }
}

/// Returns whose phone is meant. Who has the phone of somebody may do what that person may.
fn meant(name: Option<UserSlug>, person: &Person) -> Result<UserSlug, PermissionError> {
    let Some(name) = name.filter(|name| *name != person.name) else {
        return Ok(person.name.clone());
    };
    for right in Right::ALL {
        person.demand(right)?;
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_forgets_a_phone_hears_what_still_lets_one_in() {
        let receipt = |unlinked, configured| UnlinkReceipt {
            name: UserSlug::parse("ada").unwrap(),
            unlinked,
            configured,
        };
        for (receipt, expected) in [
            (receipt(true, false), "no phone is linked to ada any more"),
            (receipt(false, false), "no phone is linked to ada at all"),
            (
                receipt(true, true),
                "remove `telegram_user` of `[people.ada]`",
            ),
        ] {
            assert!(receipt.told().contains(expected), "{}", receipt.told());
        }
    }
}
