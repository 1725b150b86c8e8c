//! Says whose phone it is, and links phones to people by a code that works once.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use ropewalk_orchestrator::Context;
use ropewalk_runtime::token;
use ropewalk_schemas::payload::PhoneLinked;
use ropewalk_schemas::phone::{ChatUser, LinkCode, Phone, Reply};
use ropewalk_schemas::{ContentHash, Event, Payload, Subject, UserSlug};
use ropewalk_store::{
    ChangeSet, CommitError, CommitFailure, CommitOrRead, Query, ReadError, Store, Versioned,
    retry_on_conflict,
};

use crate::people::{People, Person};

/// How long a code works.
const MINUTES: i64 = 15;
/// How many digits a code has: too many to try within its time.
const DIGITS: usize = 24;
/// How often whoever is nobody by now is told that nobody hears them.
const UNHEARD_EVERY: TimeDelta = TimeDelta::days(1);

/// Says why a phone was not linked.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Nobody is called so.
    #[error("nobody is called `{0}`")]
    Unknown(UserSlug),
    /// The code is not, or no longer, one.
    #[error("this code links nothing")]
    Code,
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Makes a code by which the phone of a person is linked; one that was made before works no more.
pub async fn code(
    context: &Context,
    people: &People,
    name: &UserSlug,
) -> Result<String, LinkError> {
    let person = people.named(name.as_str());
    let person = person.ok_or_else(|| LinkError::Unknown(name.clone()))?;
    let code: String = token::fresh().chars().take(DIGITS).collect();
    change(context, &person.name, |phone| {
        phone.code = Some(LinkCode {
            hash: ContentHash::of(code.as_bytes()),
            until: context.now() + TimeDelta::minutes(MINUTES),
        });
    })
    .await?;
    Ok(code)
}

/// Links whoever writes in a chat to the person that a code was made for, once, and tells of it.
pub async fn link(
    context: &Context,
    people: &People,
    code: &str,
    linked: ChatUser,
) -> Result<Person, LinkError> {
    let hash = ContentHash::of(code.as_bytes());
    // Somebody may write in the same chat meanwhile; where somebody else was faster with the code, it is gone by the next look.
    retry_on_conflict!(LinkError, linked.chat, {
        let (person, changes) = linking(context, people, &hash, linked).await?;
        context.store.commit(changes).await?;
        Ok(Some(person))
    })
}

/// Returns who is linked by the code with `hash`, and what that changes.
async fn linking(
    context: &Context,
    people: &People,
    hash: &ContentHash,
    linked: ChatUser,
) -> Result<(Person, ChangeSet), LinkError> {
    let phones = context.store.list::<Phone>(Query::new()).await?;
    let is_meant = |phone: &&Versioned<Phone>| {
        let code = phone.code.as_ref();
        code.is_some_and(|code| code.hash == *hash && context.now() < code.until)
    };
    let phone = phones.iter().find(is_meant).ok_or(LinkError::Code)?;
    let person = people.named(phone.person.as_str()).ok_or(LinkError::Code)?;
    let others = phones.iter().filter(|other| other.person != phone.person);
    let others = others.filter(|other| other.linked == Some(linked));
    let others: Vec<&Versioned<Phone>> = others.collect();
    let mut changes = ChangeSet::new();
    let mut named = Phone {
        linked: Some(linked),
        ..phone.anew()
    };
    // Who is called otherwise in the same chat goes on with what is talked about there.
    if let Some(before) = others.first() {
        take_over(&mut named, before);
    }
    changes.update(phone, &named);
    // Whoever was somebody else there is not any more.
    for other in others {
        changes.update(other, &unlinked(other));
    }
    let payload = Payload::PhoneLinked(PhoneLinked {
        person: person.name.clone(),
    });
    changes.emit(context.event(Subject::phone(&person.name), payload));
    Ok((person, changes))
}

/// Lets a phone go on with what is talked about where another one stood in the same chat.
fn take_over(phone: &mut Phone, before: &Phone) {
    phone.idea.clone_from(&before.idea);
    phone.shown = before.shown;
    phone.listens = before.listens;
    phone.awaits = before.awaits;
}

/// Returns a phone whose chat is that of somebody else.
fn unlinked(phone: &Phone) -> Phone {
    Phone {
        linked: None,
        listens: false,
        ..phone.clone()
    }
}

/// Lets those whom the configuration names in a chat that a code had linked to another name go on with what is talked about there.
pub async fn rename(context: &Context, people: &People) -> Result<(), CommitOrRead> {
    retry_on_conflict!(CommitOrRead, "phones", {
        let phones = context.store.list::<Phone>(Query::new()).await?;
        let mut changes = ChangeSet::new();
        for (name, after) in renamed(&phones, people) {
            match phones.iter().find(|phone| phone.person == name) {
                Some(found) => changes.update(found, &after),
                None => changes.insert(&after),
            };
        }
        if !changes.is_empty() {
            context.store.commit(changes).await?;
        }
        Ok(Some(()))
    })
}

/// Returns each phone that is another one once those go on whom the configuration calls otherwise: all of them at a time, since two
/// may change places.
fn renamed(phones: &[Versioned<Phone>], people: &People) -> BTreeMap<UserSlug, Phone> {
    let newcomer = |phone: &Phone| {
        let named = phone.linked.and_then(|chat| people.on_telegram(chat))?;
        (named.name != phone.person).then_some(named.name)
    };
    let moved: Vec<(&Phone, UserSlug)> = phones
        .iter()
        .filter_map(|phone| Some((&phone.record, newcomer(&phone.record)?)))
        .collect();
    let left = moved
        .iter()
        .map(|(before, _)| (before.person.clone(), unlinked(before)));
    let mut after: BTreeMap<UserSlug, Phone> = left.collect();
    let mut served = BTreeSet::new();
    for (before, name) in moved {
        let mut rows = phones.iter().map(|phone| &phone.record);
        let found = rows.find(|phone| phone.person == name);
        // Who talks in a chat of their own goes on there, unless that is the chat of somebody else by now.
        let talks = found.is_some_and(|found| found.idea.is_some() && newcomer(found).is_none());
        if talks || before.idea.is_none() || !served.insert(name.clone()) {
            continue;
        }
        let mut phone = match (after.remove(&name), found) {
            (Some(phone), _) => phone,
            (None, Some(found)) => found.clone(),
            (None, None) => Phone::of(name.clone()),
        };
        take_over(&mut phone, before);
        after.insert(name, phone);
    }
    after
}

/// Says `told` to who writes in a chat that a code had linked and whose person is nobody by now, as where people were named since:
/// once a day, whatever is written. Returns whether it is said.
pub async fn tell_unheard(
    context: &Context,
    from: ChatUser,
    told: &Reply,
) -> Result<bool, CommitOrRead> {
    retry_on_conflict!(CommitOrRead, from.chat, {
        let phones = context.store.list::<Phone>(Query::new()).await?;
        let phone = phones.iter().find(|phone| phone.linked == Some(from));
        let now = context.now();
        let is_new = |phone: &&Versioned<Phone>| {
            let last = phone.told_unheard;
            last.is_none_or(|last| now - last >= UNHEARD_EVERY)
        };
        let Some(phone) = phone.filter(is_new) else {
            return Ok(Some(false));
        };
        let mut after = phone.record.clone();
        after.told_unheard = Some(now);
        after.replies.push(told.clone());
        let mut changes = ChangeSet::new();
        changes.update(phone, &after);
        context.store.commit(changes).await?;
        Ok(Some(true))
    })
}

/// Forgets the phone that a code linked, and the code that would link one; returns whether there was any.
pub async fn unlink(context: &Context, name: &UserSlug) -> Result<bool, CommitOrRead> {
    let phone = of(&context.store, name).await?;
    if phone.linked.is_none() && phone.code.is_none() {
        return Ok(false);
    }
    change(context, name, |phone| *phone = phone.anew()).await?;
    Ok(true)
}

/// Returns who writes as a user of Telegram in a chat; nobody but those who are named or linked for both.
pub async fn whose(
    store: &Store,
    people: &People,
    from: ChatUser,
) -> Result<Option<Person>, ReadError> {
    if let Some(person) = people.on_telegram(from) {
        return Ok(Some(person));
    }
    let phones = store.list::<Phone>(Query::new()).await?;
    let phone = phones.iter().find(|phone| phone.linked == Some(from));
    Ok(phone.and_then(|phone| people.named(phone.person.as_str())))
}

/// Returns the chat in which a person is told; none for somebody who is on the project no more.
pub async fn chat(
    store: &Store,
    people: &People,
    name: &UserSlug,
) -> Result<Option<i64>, ReadError> {
    if people.named(name.as_str()).is_none() {
        return Ok(None);
    }
    if let Some(chat) = people.chat_of(name) {
        return Ok(Some(chat));
    }
    let phone = store.get::<Phone>(name.as_str()).await?;
    let linked = phone.and_then(|phone| phone.linked);
    Ok(linked.map(|linked| linked.chat))
}

/// Names those whose phone a code linked and who are nobody on the project: they hear nothing.
pub async fn strangers(store: &Store, people: &People) -> Result<Vec<UserSlug>, ReadError> {
    let phones = store.list::<Phone>(Query::new()).await?;
    let linked = phones.into_iter().filter(|phone| phone.linked.is_some());
    let names = linked.map(|phone| phone.person.clone());
    Ok(names
        .filter(|name| people.named(name.as_str()).is_none())
        .collect())
}

/// Returns what is known of the phone of a person.
pub async fn of(store: &Store, name: &UserSlug) -> Result<Phone, ReadError> {
    let found = store.get::<Phone>(name.as_str()).await?;
    Ok(found.map_or_else(|| Phone::of(name.clone()), Versioned::into_inner))
}

/// Changes what is known of the phone of a person, whoever else does.
pub async fn change(
    context: &Context,
    name: &UserSlug,
    change: impl Fn(&mut Phone),
) -> Result<(), CommitOrRead> {
    change_and_tell(context, name, change, &[]).await
}

/// Does the same, and tells `events` together with it.
pub async fn change_and_tell(
    context: &Context,
    name: &UserSlug,
    change: impl Fn(&mut Phone),
    events: &[Event],
) -> Result<(), CommitOrRead> {
    retry_on_conflict!(CommitOrRead, name, {
        let found = context.store.get::<Phone>(name.as_str()).await?;
        let mut changes = ChangeSet::new();
        for event in events {
            changes.emit(event.clone());
        }
        if let Some(found) = found {
            let mut after = found.record.clone();
            change(&mut after);
            changes.update(&found, &after);
        } else {
            let mut phone = Phone::of(name.clone());
            change(&mut phone);
            changes.insert(&phone);
        }
        context.store.commit(changes).await?;
        Ok(Some(()))
    })
}

impl CommitFailure for LinkError {
    fn commit_error(&self) -> Option<&CommitError> {
        match self {
            Self::Commit(error) => Some(error),
            Self::Unknown(_) | Self::Code | Self::Read(_) => None,
        }
    }
}

impl From<CommitOrRead> for LinkError {
    fn from(error: CommitOrRead) -> Self {
        match error {
            CommitOrRead::Read(error) => error.into(),
            CommitOrRead::Commit(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_config::settings::PersonRecord;
    use ropewalk_schemas::Slug;

    use super::*;

    fn name(name: &str) -> UserSlug {
        UserSlug::parse(name).unwrap()
    }

    fn chat(number: i64) -> ChatUser {
        ChatUser {
            user: number,
            chat: number,
        }
    }

    #[test]
    fn who_is_called_otherwise_goes_on_there_also_where_people_change_places() {
        // Ada is named with the first chat, bob with the second, and cleo with the third.
        let named = ["ada", "bob", "cleo"].into_iter().zip(1..);
        let known = named.map(|(person, number)| {
            let record = PersonRecord {
                telegram_user: Some(number),
                telegram_chats: vec![number],
                ..PersonRecord::default()
            };
            (name(person), record)
        });
        let people = People::new(known.collect(), name("ada"));
        let before = |&(person, number, idea): &(&str, i64, &str)| Versioned {
            version: 1,
            record: Phone {
                linked: Some(chat(number)),
                idea: Slug::parse(idea).ok(),
                listens: true,
                ..Phone::of(name(person))
            },
        };
        // Each is a person, what is talked about on their phone, and whether its answers come there; no idea has no name.
        for (rows, expected) in [
            (
                &[("ada", 2, "walks"), ("bob", 1, "rivers")][..],
                &[("ada", "rivers", true), ("bob", "walks", true)][..],
            ),
            (
                &[("user", 1, "walks"), ("ada", 2, "rivers")],
                &[
                    ("ada", "walks", true),
                    ("bob", "rivers", true),
                    ("user", "walks", false),
                ],
            ),
            // Who talks in their own chat goes on there.
            (
                &[("user", 1, "walks"), ("ada", 9, "rivers")],
                &[("user", "walks", false)],
            ),
            // One talk goes on, where several stood there.
            (
                &[("eve", 3, ""), ("him", 3, "walks"), ("user", 3, "rivers")],
                &[
                    ("cleo", "walks", true),
                    ("eve", "", false),
                    ("him", "walks", false),
                    ("user", "rivers", false),
                ],
            ),
            (&[("ada", 1, "walks"), ("user", 9, "rivers")], &[]),
        ] {
            let rows: Vec<Versioned<Phone>> = rows.iter().map(before).collect();
            let after = renamed(&rows, &people);
            let told: Vec<(&str, &str, bool)> = after
                .values()
                .map(|phone| {
                    let idea = phone.idea.as_ref().map_or("", Slug::as_str);
                    (phone.person.as_str(), idea, phone.listens)
                })
                .collect();
            assert_eq!(told, expected);
            assert!(after.values().all(|phone| phone.linked.is_none()));
        }
    }
}
