//! Remembers who is logged in: by a link that works once, then by a cookie.
//!
//! Only hashes are kept, so that whoever reads the memory of the process cannot log in, and looking one up takes a time
//! that tells nothing.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_runtime::token;
use ropewalk_schemas::{ContentHash, UserSlug};

/// How long a link works that nobody has used.
const LINK: TimeDelta = TimeDelta::hours(24);
/// How long a login lasts.
pub(crate) const LOGIN: TimeDelta = TimeDelta::days(7);
/// So many are logged in at once; the oldest has to log in again.
const MOST: usize = 1_000;

/// Who is logged in, and who may be by a link.
#[derive(Debug, Default)]
pub(crate) struct Logins {
    links: HashMap<ContentHash, (UserSlug, DateTime<Utc>)>,
    open: HashMap<ContentHash, Login>,
}

/// Somebody who is logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Login {
    /// Who.
    pub(crate) person: UserSlug,
    /// What a page sends with whatever changes something, and no other page knows.
    pub(crate) csrf: String,
    until: DateTime<Utc>,
}

impl Logins {
    /// Makes the code of a link by which `person` logs in, once.
    pub(crate) fn link(&mut self, person: UserSlug, now: DateTime<Utc>) -> String {
        let code = token::fresh();
        self.links.retain(|_, (_, until)| *until > now);
        self.links.insert(hash(&code), (person, now + LINK));
        code
    }

    /// Logs in whoever a code is for; returns the login with what the cookie holds.
    pub(crate) fn enter(&mut self, code: &str, now: DateTime<Utc>) -> Option<(Login, String)> {
        let (person, until) = self.links.remove(&hash(code))?;
        if until <= now {
            return None;
        }
        self.open.retain(|_, login| login.until > now);
        if self.open.len() >= MOST {
            let oldest = self.open.iter().min_by_key(|(_, login)| login.until);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|key| self.open.remove(&key));
        }
        let cookie = token::fresh();
        let login = Login {
            person,
            csrf: token::fresh(),
            until: now + LOGIN,
        };
        self.open.insert(hash(&cookie), login.clone());
        Some((login, cookie))
    }

    /// Returns who is logged in with this cookie.
    pub(crate) fn find(&self, cookie: &str, now: DateTime<Utc>) -> Option<Login> {
        let login = self.open.get(&hash(cookie))?;
        (login.until > now).then(|| login.clone())
    }

    /// Logs out whoever has this cookie.
    pub(crate) fn leave(&mut self, cookie: &str) {
        self.open.remove(&hash(cookie));
    }
}

fn hash(text: &str) -> ContentHash {
    ContentHash::of(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_works_once_and_a_login_for_a_week() {
        let ada = UserSlug::parse("ada").unwrap();
        let now = DateTime::UNIX_EPOCH;
        let mut logins = Logins::default();
        let code = logins.link(ada.clone(), now);
        assert_eq!(logins.enter("another", now), None);
        let (login, cookie) = logins.enter(&code, now).unwrap();
        assert_eq!(login.person, ada);
        assert_eq!(logins.enter(&code, now), None);
        assert_eq!(logins.find(&cookie, now), Some(login.clone()));
        assert_eq!(logins.find(&cookie, now + LOGIN), None);
        assert_eq!(logins.find(&login.csrf, now), None);
        logins.leave(&cookie);
        assert_eq!(logins.find(&cookie, now), None);
        let late = logins.link(ada, now);
        assert_eq!(logins.enter(&late, now + LINK), None);
    }

    #[test]
    fn of_too_many_the_oldest_logs_in_again() {
        let ada = UserSlug::parse("ada").unwrap();
        let mut logins = Logins::default();
        let mut enter = |seconds: i64| {
            let now = DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds);
            let code = logins.link(ada.clone(), now);
            let (_, cookie) = logins.enter(&code, now).unwrap();
            (cookie, logins.open.len())
        };
        let first = enter(0).0;
        for second in 1..=1_000 {
            assert!(enter(second).1 <= MOST);
        }
        assert_eq!(logins.find(&first, DateTime::UNIX_EPOCH), None);
    }
}
