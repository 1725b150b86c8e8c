//! Says why a configuration cannot be used.

use std::path::PathBuf;

use ropewalk_schemas::advice::{Advice, Words};

use crate::origin::Origin;

/// Says why a configuration cannot be used, in one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read `{}`: {}", path.display(), reason.message)]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: Words,
    },
    /// A file cannot be written.
    #[error("cannot write `{}`: {reason}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A file was changed by somebody else between reading and writing.
    #[error("`{}` was changed meanwhile", .0.display())]
    ChangedMeanwhile(PathBuf),
    /// A file is there already.
    #[error("`{}` is there already", .0.display())]
    Exists(PathBuf),
    /// A file is not TOML.
    #[error("{origin}: not valid TOML: {reason}")]
    Malformed {
        /// The file and line.
        origin: Origin,
        /// What is wrong.
        reason: String,
    },
    /// A value does not fit its key, or the key does not exist.
    #[error("{origin}: `{key}`: {}", reason.message)]
    Invalid {
        /// Where the value was set.
        origin: Origin,
        /// The key, dotted.
        key: String,
        /// What was expected.
        reason: Words,
    },
    /// A project's file loosens what nobody has trusted.
    #[error(
        "`{}` sets {}, which gives a run more than it has without",
        file.display(),
        named(keys)
    )]
    Untrusted {
        /// The file.
        file: PathBuf,
        /// The keys, dotted.
        keys: Vec<String>,
    },
    /// A project's file belongs to another user.
    #[error("`{}` belongs to another user (id {owner})", path.display())]
    Stranger {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// The word of a person can be kept nowhere.
    #[error("no place to keep whom you trust: set `HOME` or `XDG_CONFIG_HOME`")]
    NoTrustHome,
    /// A flag is not `key=value`.
    #[error("`{0}` is not an override")]
    NotAnOverride(String),
    /// A key of the provider is needed but not set.
    #[error("provider `{provider}` needs a key")]
    MissingKey {
        /// The provider.
        provider: String,
        /// The variable that should hold the key.
        variable: String,
    },
    /// A model other than the scripted one may not run commands yet.
    #[error("model `{model}` of role `{role}` would run commands without a sandbox: {}", reason.message)]
    SandboxRequired {
        /// The role.
        role: &'static str,
        /// The model.
        model: String,
        /// Why there is none.
        reason: Words,
    },
    /// The state directory cannot be determined.
    #[error("no place for the state directory: set `project.state`, `XDG_STATE_HOME` or `HOME`")]
    NoStateHome,
    /// The state directory lies in a working tree.
    #[error(
        "the state directory `{}` lies inside the working tree `{}`",
        state.display(),
        tree.display()
    )]
    StateInWorkingTree {
        /// The state directory.
        state: PathBuf,
        /// The working tree.
        tree: PathBuf,
    },
    /// No project name was given and none can be derived.
    #[error("no project name can be made of `{0}`")]
    NoProjectName(String),
    /// Data that ships with the program is broken.
    #[error("the shipped `{file}` is broken: {reason}")]
    Shipped {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
}

impl Advice for ConfigError {
    fn next(&self) -> Option<String> {
        let next = match self {
            Self::Unreadable { reason, .. } | Self::Invalid { reason, .. } => {
                return reason.next.clone();
            }
            Self::ChangedMeanwhile(_) => "nothing was written, so try again",
            Self::Exists(_) => "edit it, or remove it first",
            Self::Untrusted { .. } => "read what it asks for and allow it with `ropewalk trust`",
            Self::Stranger { .. } => "work in a directory that has a `ropewalk.toml` of your own",
            Self::NotAnOverride(_) => "write `section.key=value`",
            Self::MissingKey { variable, .. } => {
                return Some(format!(
                    "set the environment variable `{variable}`, or choose another provider in `[models]`"
                ));
            }
            Self::SandboxRequired { reason, .. } => {
                let other =
                    "or set `sandbox = \"off\"` to allow that, or use the scripted provider";
                return Some(match &reason.next {
                    Some(next) => format!("{next}; {other}"),
                    None => other.to_owned(),
                });
            }
            Self::StateInWorkingTree { .. } => "set `project.state` to a directory outside of it",
            Self::NoProjectName(_) => "set `project.name`",
            Self::Unwritable { .. }
            | Self::Malformed { .. }
            | Self::NoTrustHome
            | Self::NoStateHome
            | Self::Shipped { .. } => return None,
        };
        Some(next.to_owned())
    }
}

/// Names the first keys of a list, and how many more there are.
fn named(keys: &[String]) -> String {
    const MOST: usize = 4;
    let first: Vec<String> = keys
        .iter()
        .take(MOST)
        .map(|key| format!("`{key}`"))
        .collect();
    match keys.len().saturating_sub(MOST) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_wrote_is_no_advice() {
        let flag = ConfigError::NotAnOverride("a; b".to_owned());
        let next = "write `section.key=value`";
        assert_eq!(Words::of(&flag), ("`a; b` is not an override", next).into());
        let invalid = ConfigError::Invalid {
            origin: Origin::Flag,
            key: "notices.quiet".to_owned(),
            reason: "`a; b` names no hours".into(),
        };
        let message = "flag: `notices.quiet`: `a; b` names no hours";
        assert_eq!(Words::of(&invalid), message.into());
    }

    #[test]
    fn a_sandbox_that_does_not_work_is_mended_first() {
        let refused = |reason: Words| {
            let words = Words::of(&ConfigError::SandboxRequired {
                role: "build",
                model: "ollama/qwen".to_owned(),
                reason,
            });
            assert!(words.message.ends_with("without a sandbox: none (a; b)"));
            words.next
        };
        let other = "or set `sandbox = \"off\"` to allow that, or use the scripted provider";
        assert_eq!(refused("none (a; b)".into()).as_deref(), Some(other));
        assert_eq!(
            refused(("none (a; b)", "install it").into()),
            Some(format!("install it; {other}"))
        );
    }
}
