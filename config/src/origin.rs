//! Says where a value of the configuration was set.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// The place where a value was set; later variants win over earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// The shipped defaults.
    Default,
    /// The user's file, with the line where it is known.
    User {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: Option<usize>,
    },
    /// The project's file, with the line where it is known.
    Project {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: Option<usize>,
    },
    /// An environment variable.
    Environment(String),
    /// A flag of the command line.
    Flag,
    /// The file of whoever manages the machine, with the line where it is known.
    Managed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: Option<usize>,
    },
}

impl Origin {
    /// Returns the list of rules that is set here.
    pub(crate) const fn rules(&self) -> &'static str {
        match self {
            Self::Default => "policy.rules.shipped",
            Self::User { .. } => "policy.rules.user",
            Self::Project { .. } => "policy.rules.project",
            Self::Environment(_) | Self::Flag => "policy.rules.flags",
            Self::Managed { .. } => "policy.rules.managed",
        }
    }

    /// Returns the file, where it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::User { path, .. } | Self::Project { path, .. } | Self::Managed { path, .. } => {
                Some(path)
            }
            Self::Default | Self::Environment(_) | Self::Flag => None,
        }
    }

    /// Returns the same origin at `line`.
    pub(crate) fn at(&self, found: Option<usize>) -> Self {
        let mut origin = self.clone();
        if let Self::User { line, .. } | Self::Project { line, .. } | Self::Managed { line, .. } =
            &mut origin
        {
            *line = found;
        }
        origin
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::User { path, line }
            | Self::Project { path, line }
            | Self::Managed { path, line } => {
                write!(formatter, "{}", path.display())?;
                line.map_or(Ok(()), |line| write!(formatter, ":{line}"))
            }
            Self::Environment(name) => write!(formatter, "${name}"),
            Self::Flag => formatter.write_str("flag"),
        }
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
