//! Says why a configuration cannot be used.

use std::path::PathBuf;

use crate::origin::Origin;

/// Says why a configuration cannot be used, in one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read `{}`: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
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
    #[error("`{}` was changed meanwhile; nothing was written, so try again", .0.display())]
    ChangedMeanwhile(PathBuf),
    /// A file is there already.
    #[error("`{}` is there already; edit it, or remove it first", .0.display())]
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
    #[error("{origin}: `{key}`: {reason}")]
    Invalid {
        /// Where the value was set.
        origin: Origin,
        /// The key, dotted.
        key: String,
        /// What was expected.
        reason: String,
    },
    /// A project's file loosens what nobody has trusted.
    #[error(
        "`{}` sets {}, which gives a run more than it has without; read what it asks for and allow it with `ropewalk trust`",
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
    #[error(
        "`{}` belongs to another user (id {owner}); work in a directory that has a `ropewalk.toml` of your own",
        path.display()
    )]
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
    #[error("`{0}` is not an override; write `section.key=value`")]
    NotAnOverride(String),
    /// A key of the provider is needed but not set.
    #[error(
        "provider `{provider}` needs a key: set the environment variable `{variable}`, or choose another provider in `[models]`"
    )]
    MissingKey {
        /// The provider.
        provider: String,
        /// The variable that should hold the key.
        variable: String,
    },
    /// A model other than the scripted one may not run commands yet.
    #[error(
        "model `{model}` of role `{role}` would run commands without a sandbox: {reason}; \
         or set `sandbox = \"off\"` to allow that, or use the scripted provider"
    )]
    SandboxRequired {
        /// The role.
        role: &'static str,
        /// The model.
        model: String,
        /// Why there is none.
        reason: String,
    },
    /// The state directory cannot be determined.
    #[error("no place for the state directory: set `project.state`, `XDG_STATE_HOME` or `HOME`")]
    NoStateHome,
    /// The state directory lies in a working tree.
    #[error(
        "the state directory `{}` lies inside the working tree `{}`; set `project.state` to a directory outside of it",
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
    #[error("no project name can be made of `{0}`; set `project.name`")]
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
