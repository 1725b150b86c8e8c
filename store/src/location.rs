//! Says where the database lies.

use std::path::{Path, PathBuf};

use crate::error::LocationError;

/// Says where the database lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A file.
    Sqlite(PathBuf),
}

impl Location {
    /// Reads `sqlite`, which lies in `state`, or `sqlite:PATH`; a relative path is taken from the working directory.
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
            Some(("postgres" | "postgresql", _)) => Err(LocationError::Postgres),
            _ => Err(LocationError::Unknown(text.chars().take(80).collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_file_and_postgres_is_refused_in_one_line() {
        let state = Path::new("/state");
        let file = |path: &str| Ok(Location::Sqlite(PathBuf::from(path)));
        let cases = [
            ("sqlite", file("/state/ropewalk.db")),
            ("sqlite:/data/a.db", file("/data/a.db")),
            ("sqlite:///data/a.db", file("/data/a.db")),
            ("sqlite:a.db", file("a.db")),
            ("sqlite:", Err(LocationError::Unknown("sqlite:".to_owned()))),
            (
                "mysql://x",
                Err(LocationError::Unknown("mysql://x".to_owned())),
            ),
            ("postgres://h/d", Err(LocationError::Postgres)),
            ("postgresql://h/d", Err(LocationError::Postgres)),
        ];
        for (text, expected) in cases {
            assert_eq!(Location::parse(text, state), expected, "{text}");
        }
        assert!(!LocationError::Postgres.to_string().contains('\n'));
    }
}
