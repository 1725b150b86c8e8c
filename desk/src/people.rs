//! Says who does something, and refuses who may not.
//!
//! Where the configuration names nobody, whoever is there may do everything. Who can write the store itself is outside
//! of this: rights hold among people who use the surfaces.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use ropewalk_config::settings::PersonRecord;
use ropewalk_schemas::person::{Right, Role};
use ropewalk_schemas::phone::ChatUser;
use ropewalk_schemas::{ContentHash, UserSlug};
use schemars::JsonSchema;
use serde::Serialize;

/// Somebody who is known, with what they are asked about and what they may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Person {
    /// The name.
    pub name: UserSlug,
    /// What this person is asked about.
    pub roles: BTreeSet<Role>,
    /// What this person may do beside what everybody may.
    pub rights: BTreeSet<Right>,
}

/// Says that a person may not do this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{person}` may not {right}")]
pub struct PermissionError {
    /// Who wanted to.
    pub person: UserSlug,
    /// The right that it takes.
    pub right: Right,
}

/// Says that nobody knows who this is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stranger {
    /// No person is this user of the operating system.
    #[error("the user `{0}` of this system is nobody in `[people]`")]
    User(String),
    /// No person has this token.
    #[error("nobody in `[people]` has this token")]
    Token,
}

impl Person {
    /// Returns somebody who does it all, as where nobody is named.
    pub fn alone(name: UserSlug) -> Self {
        Self {
            name,
            roles: Role::ALL.into(),
            rights: Right::ALL.into(),
        }
    }

    /// Refuses who does not have `right`.
    pub fn demand(&self, right: Right) -> Result<(), PermissionError> {
        if self.rights.contains(&right) {
            return Ok(());
        }
        Err(PermissionError {
            person: self.name.clone(),
            right,
        })
    }
}

/// Everybody who works on a project.
#[derive(Debug, Clone)]
pub struct People {
    known: BTreeMap<UserSlug, PersonRecord>,
    /// Who does it all where nobody is named.
    alone: UserSlug,
}

impl People {
    /// Returns the people that a configuration names; where it names none, `alone` does it all.
    pub fn new(known: BTreeMap<UserSlug, PersonRecord>, alone: UserSlug) -> Self {
        Self { known, alone }
    }

    /// Returns whether the configuration names anybody.
    pub fn are_named(&self) -> bool {
        !self.known.is_empty()
    }

    /// Lists everybody.
    pub fn all(&self) -> Vec<Person> {
        if !self.are_named() {
            return vec![Person::alone(self.alone.clone())];
        }
        self.known.iter().map(person).collect()
    }

    /// Lists the rights that nobody has; where nobody is named, whoever is there has all of them.
    fn unheld(&self) -> Vec<Right> {
        let people = self.all();
        let is_held = |right: &Right| people.iter().any(|person| person.rights.contains(right));
        let unheld = Right::ALL.into_iter();
        unheld.filter(|right| !is_held(right)).collect()
    }

    /// Says which rights nobody has, and how somebody gets them.
    pub fn unheld_told(&self) -> Option<String> {
        let unheld: Vec<String> = self.unheld().iter().map(ToString::to_string).collect();
        let last = unheld.last()?;
        let quoted: Vec<String> = unheld.iter().map(|right| format!("\"{right}\"")).collect();
        let named = match &unheld[..unheld.len() - 1] {
            [] => last.clone(),
            before => format!("{} or {last}", before.join(", ")),
        };
        Some(format!(
            "nobody in `[people]` may {named}; add {} to the `rights` of whoever shall",
            quoted.join(", ")
        ))
    }

    /// Returns whoever a user of the operating system is.
    pub fn at_terminal(&self, user: &str) -> Result<Person, Stranger> {
        if !self.are_named() {
            return Ok(Person::alone(self.alone.clone()));
        }
        let is_user = |(_, record): &(_, &PersonRecord)| record.user.as_deref() == Some(user);
        let found = self.known.iter().find(is_user);
        found
            .map(person)
            .ok_or_else(|| Stranger::User(user.to_owned()))
    }

    /// Returns whoever has `token`. Hashes are compared, so that the time it takes tells nothing.
    pub fn with_token(&self, token: &str) -> Result<Person, Stranger> {
        let hash = ContentHash::of(token.as_bytes());
        let is_theirs =
            |(_, record): &(_, &PersonRecord)| record.token_sha256.as_ref() == Some(&hash);
        let found = self.known.iter().find(is_theirs);
        found.map(person).ok_or(Stranger::Token)
    }

    /// Returns whoever the configuration says a user of Telegram is, where it lists the chat.
    pub fn on_telegram(&self, from: ChatUser) -> Option<Person> {
        let is_theirs = |(_, record): &(_, &PersonRecord)| {
            record.telegram_user == Some(from.user) && record.telegram_chats.contains(&from.chat)
        };
        self.known.iter().find(is_theirs).map(person)
    }

    /// Returns the chat in which the configuration says that a person is told.
    pub fn chat_of(&self, name: &UserSlug) -> Option<i64> {
        let record = self.known.get(name)?;
        record.telegram_user?;
        record.telegram_chats.first().copied()
    }

    /// Returns whether somebody wants the daily summary, which is so unless they say otherwise.
    pub fn wants_summary(&self, name: &UserSlug) -> bool {
        let record = self.known.get(name);
        record.and_then(|record| record.summary).unwrap_or(true)
    }

    /// Returns the person of this name.
    pub fn named(&self, name: &str) -> Option<Person> {
        self.all()
            .into_iter()
            .find(|person| person.name.as_str() == name)
    }
}

fn person((name, record): (&UserSlug, &PersonRecord)) -> Person {
    Person {
        name: name.clone(),
        roles: record.roles.clone(),
        rights: record.rights.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ropewalk_schemas::advice::Advice;

    fn name(text: &str) -> UserSlug {
        UserSlug::parse(text).unwrap()
    }

    fn two() -> People {
        let ada = PersonRecord {
            user: Some("ada-login".to_owned()),
            rights: [Right::Approve].into(),
            ..PersonRecord::default()
        };
        let bob = PersonRecord {
            token_sha256: Some(ContentHash::of(b"token of bob")),
            roles: [Role::Technical].into(),
            ..PersonRecord::default()
        };
        let known = [(name("ada"), ada), (name("bob"), bob)].into();
        People::new(known, name("eve"))
    }

    #[test]
    fn where_nobody_is_named_whoever_is_there_may_do_everything() {
        let people = People::new(BTreeMap::new(), name("eve"));
        let eve = people.at_terminal("anybody").unwrap();
        assert_eq!(eve, Person::alone(name("eve")));
        assert!(Right::ALL.iter().all(|right| eve.demand(*right).is_ok()));
        assert_eq!(people.all(), [eve]);
        // There is no token that would name them elsewhere.
        assert_eq!(people.with_token(""), Err(Stranger::Token));
    }

    #[test]
    fn rights_that_nobody_has_are_named() {
        let told = two().unheld_told();
        let wanted = "nobody in `[people]` may land, spend or stop; add \"land\", \"spend\", \"stop\" to the `rights` of whoever shall";
        assert_eq!(told.as_deref(), Some(wanted));
        let nobody = People::new(BTreeMap::new(), name("eve"));
        assert_eq!(nobody.unheld_told(), None);
        let all = PersonRecord {
            rights: Right::ALL.into(),
            ..PersonRecord::default()
        };
        let held = People::new([(name("ada"), all)].into(), name("eve"));
        assert_eq!(held.unheld(), []);
    }

    #[test]
    fn people_are_known_by_their_user_or_token_and_may_do_what_is_said() {
        let people = two();
        let ada = people.at_terminal("ada-login").unwrap();
        assert_eq!(ada.demand(Right::Approve), Ok(()));
        let refused = ada.demand(Right::Land).unwrap_err();
        assert_eq!(refused.to_string(), "`ada` may not land");
        let next = refused.next().unwrap();
        assert!(
            next.starts_with("add `land` to `rights` of `[people.ada]`"),
            "{next}"
        );
        let bob = people.with_token("token of bob").unwrap();
        assert_eq!((bob.name.as_str(), bob.rights.len()), ("bob", 0));
        assert_eq!(people.with_token("token of ada"), Err(Stranger::Token));
        for user in ["eve", "ada", ""] {
            assert_eq!(
                people.at_terminal(user),
                Err(Stranger::User(user.to_owned()))
            );
        }
    }
}
