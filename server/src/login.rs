//! Remembers who is logged in: by a link that works once or by a token, then by a cookie.
//!
//! Only hashes are kept, so that whoever reads the memory of the process or the file of the logins cannot log in, and
//! looking one up takes a time that tells nothing. A login outlives the program: its file lies in the state directory,
//! one for each port, since another port is another program. A link does not.

use std::collections::HashMap;
use std::io::{ErrorKind, Write};
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_runtime::token;
use ropewalk_schemas::{ContentHash, UserSlug};
use serde::{Deserialize, Serialize};

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Login {
    /// Who.
    pub(crate) person: UserSlug,
    until: DateTime<Utc>,
}

impl Logins {
    /// Reads who was logged in when the program last ran; nobody where there is no such file.
    pub(crate) fn read(path: &Path) -> std::io::Result<Self> {
        let open = match std::fs::read(path) {
            Ok(text) => serde_json::from_slice(&text)?,
            Err(error) if error.kind() == ErrorKind::NotFound => HashMap::new(),
            Err(error) => return Err(error),
        };
        let links = HashMap::new();
        Ok(Self { links, open })
    }

    /// Returns what is kept in the file.
    pub(crate) fn kept(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&self.open)
    }

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
        (until > now).then(|| self.open(person, now))
    }

    /// Logs somebody in who is known otherwise; returns the login with what the cookie holds.
    pub(crate) fn open(&mut self, person: UserSlug, now: DateTime<Utc>) -> (Login, String) {
        self.open.retain(|_, login| login.until > now);
        if self.open.len() >= MOST {
            let oldest = self.open.iter().min_by_key(|(_, login)| login.until);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|key| self.open.remove(&key));
        }
        let cookie = token::fresh();
        let login = Login {
            person,
            until: now + LOGIN,
        };
        self.open.insert(hash(&cookie), login.clone());
        (login, cookie)
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

/// Writes what is kept, whole or not at all, so that nobody else on the machine can read it.
pub(crate) fn write(path: &Path, kept: &[u8]) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(kept)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Returns what a page sends with whatever changes something, and no other page knows: it follows from the cookie, which
/// no script can read.
pub(crate) fn proof(cookie: &str) -> String {
    hash(&format!("the forms of {cookie}")).to_string()
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
        assert_eq!(logins.find(&proof(&cookie), now), None);
        logins.leave(&cookie);
        assert_eq!(logins.find(&cookie, now), None);
        let late = logins.link(ada, now);
        assert_eq!(logins.enter(&late, now + LINK), None);
    }

    #[test]
    fn a_login_outlives_the_program_and_its_file_lets_nobody_in() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("logins.json");
        let now = DateTime::UNIX_EPOCH;
        let mut logins = Logins::read(&path).unwrap();
        let code = logins.link(UserSlug::parse("ada").unwrap(), now);
        let (login, cookie) = logins.enter(&code, now).unwrap();
        write(&path, &logins.kept().unwrap()).unwrap();
        let mut later = Logins::read(&path).unwrap();
        assert_eq!(later.find(&cookie, now), Some(login));
        assert_eq!(later.find(&cookie, now + LOGIN), None);
        assert_eq!(later.enter(&code, now), None);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&cookie) && !text.contains(&proof(&cookie)));
        std::fs::write(&path, "{").unwrap();
        assert!(Logins::read(&path).is_err());
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
