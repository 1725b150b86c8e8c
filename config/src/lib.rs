//! Holds the configuration in typed sections, and the data that ships with the program: defaults, stack profiles,
//! question templates, prompts and the rehearsal.
//!
//! What it is not: it starts nothing and decides nothing; it reads files and the environment once and hands out values.
//! Layers are merged here and not by the `config` crate, so that every value and every error can name its file and line.
//!
//! To add a key: write it with its default and meaning into `default.toml`, add the field in `settings/`, and a bound in
//! `check.rs` if it has one. To add a stack, a question or a prompt: write the data file and name it in the list of its module.

mod check;
mod edit;
mod entry;
mod environment;
mod error;
mod given;
mod language;
mod layers;
mod load;
mod locations;
mod origin;
mod otel;
mod trust;
mod yaml;

pub mod prompts;
pub mod questions;
pub mod rehearsal;
pub mod settings;
pub mod stack;

pub use edit::ProjectFile;
pub use entry::Entry;
pub use environment::Environment;
pub use error::ConfigError;
pub use language::fenced;
pub use load::{DEFAULTS, LoadedConfig, PROJECT_FILE, is_open_to_all, user_file};
pub use locations::Locations;
pub use origin::Origin;
pub use otel::OtelVariables;
pub use prompts::{Prompt, PromptError, Prompts};
pub use questions::{QuestionDraft, QuestionTemplates, Trigger};
pub use settings::Config;
pub use stack::{StackProfile, StackProfiles};
pub use trust::{TrustRecord, TrustRequest};
