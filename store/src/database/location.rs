//! Says where the database lies.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;

use crate::error::LocationError;

/// Says where the database lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A file.
    Sqlite(PathBuf),
    /// A PostgreSQL server.
    Postgres(Server),
}

/// The address of a PostgreSQL server, a user and a database there; shown without the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    url: String,
    shown: String,
}

impl Location {
    /// Reads `sqlite`, which lies in `state`, `sqlite:PATH`, or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`; a
    /// relative path is taken from the working directory.
    pub fn parse(text: &str, state: &Path) -> Result<Self, LocationError> {
        match text.split_once(':') {
            None if text == "sqlite" => Ok(Self::Sqlite(state.join("ropewalk.db"))),
            Some(("sqlite", path)) => {
                let path = path.strip_prefix("//").unwrap_or(path);
                if path.is_empty() {
                    Err(LocationError::Unknown(text.to_owned()))
                } else {
                    Ok(Self::Sqlite(PathBuf::from(path)))
                }
            }
            Some(("postgres" | "postgresql", _)) => Server::parse(text).map(Self::Postgres),
            _ => Err(LocationError::Unknown(text.chars().take(80).collect())),
        }
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => write!(formatter, "sqlite:{}", path.display()),
            Self::Postgres(server) => server.fmt(formatter),
        }
    }
}

impl Server {
    fn parse(url: &str) -> Result<Self, LocationError> {
        let options = PgConnectOptions::from_str(url)
            .map_err(|problem| LocationError::Unreadable(problem.to_string()))?;
        let user = options.get_username();
        let shown = format!(
            "postgres://{user}@{}:{}/{}",
            options.get_host(),
            options.get_port(),
            options.get_database().unwrap_or(user)
        );
        Ok(Self {
            url: url.to_owned(),
            shown,
        })
    }

    /// Returns the whole address, password included.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl std::fmt::Display for Server {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_file_or_a_server() {
        let state = Path::new("/state");
        let file = |path: &str| Ok(Location::Sqlite(PathBuf::from(path)));
        let unknown = |text: &str| Err(LocationError::Unknown(text.to_owned()));
        let cases = [
            ("sqlite", file("/state/ropewalk.db")),
            ("sqlite:/data/a.db", file("/data/a.db")),
            ("sqlite:///data/a.db", file("/data/a.db")),
            ("sqlite:a.db", file("a.db")),
            ("sqlite:", unknown("sqlite:")),
            ("mysql://x", unknown("mysql://x")),
        ];
        for (text, expected) in cases {
            assert_eq!(Location::parse(text, state), expected, "{text}");
        }
        let refused = Location::parse("postgres://h:port/d", state).unwrap_err();
        assert!(
            matches!(refused, LocationError::Unreadable(_)),
            "{refused:?}"
        );
        assert!(!refused.to_string().contains('\n'));
    }

    #[test]
    fn a_server_is_shown_without_its_password() {
        let text = "postgresql://ada:canary@db.example:5433/rope";
        let location = Location::parse(text, Path::new("/state")).unwrap();
        assert_eq!(location.to_string(), "postgres://ada@db.example:5433/rope");
        assert!(!format!("{location:?}").contains("canary"));
    }
}
