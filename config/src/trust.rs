//! Keeps the word of a person on what a project's file gives a run beyond what the user allows anyway.
//!
//! A repository may tighten, never loosen: its file comes with a clone, from whoever wrote it. What it loosens holds once
//! a person has trusted the hash of those keys, for that file at that place. The word is kept with the user, where no
//! repository and no confined command can write.

mod last;
mod loosens;
mod owner;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ropewalk_schemas::ContentHash;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::entry::{Entry, without_secrets};
use crate::environment::Environment;
use crate::error::ConfigError;
use crate::layers::{Layers, in_full, in_short, read_file};
use crate::origin::Origin;

pub(crate) use owner::refuse_strangers;

/// What a project's file needs the word of a person for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrustRequest {
    /// The file, without links on the way to it.
    pub file: PathBuf,
    /// The keys that loosen, with their values and lines; a password in an address is left out.
    pub keys: Vec<Entry>,
    /// The hash of these keys and their whole values.
    pub hash: ContentHash,
    /// The hash of the same by the names that keys had before they stood in a section.
    #[serde(skip)]
    before: ContentHash,
}

/// The word of a person as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrustRecord {
    /// The file.
    pub file: PathBuf,
    /// The hash of its keys and values.
    pub hash: ContentHash,
    /// The keys with their values as they were shown.
    pub keys: BTreeMap<String, Value>,
    /// Who said so.
    pub by: String,
    /// When.
    pub at: String,
}

impl TrustRequest {
    /// Finds what `text`, the file at `path`, loosens compared with the layers below it; `None` when nothing.
    pub(crate) fn of(path: &Path, text: &str, below: &Layers) -> Result<Option<Self>, ConfigError> {
        let mut own = Layers::default();
        let origin = Origin::Project {
            path: path.to_owned(),
            line: None,
        };
        own.add_toml(text, &origin)?;
        let file = place(path)?;
        let base = file.parent().unwrap_or(&file).to_owned();
        let mut pairs: Vec<(String, Value)> = own
            .leaves()
            .into_iter()
            .filter(|(key, value)| loosens::does(key, value, below.at(key), &base))
            .collect();
        if pairs.is_empty() {
            return Ok(None);
        }
        let named = |(key, value): &(String, Value)| {
            (in_short(key).unwrap_or(key).to_owned(), value.clone())
        };
        let before = hash_of(&mut pairs.iter().map(named).collect::<Vec<_>>());
        let hash = hash_of(&mut pairs);
        let keys = pairs.into_iter().map(|(key, value)| Entry {
            value: without_secrets(&value),
            origin: own.origin(&key),
            key,
        });
        Ok(Some(Self {
            file,
            keys: keys.collect(),
            hash,
            before,
        }))
    }

    /// Returns the last word of a person about this file, whatever it held then.
    pub fn last_word(&self, environment: &Environment) -> Result<Option<TrustRecord>, ConfigError> {
        let mut word = TrustRecord::of(&self.file, environment)?;
        if let Some(word) = &mut word
            && word.hash == self.before
        {
            word.hash = self.hash.clone();
        }
        Ok(word)
    }

    /// Keeps the word of a person, said at the time `at`, that these keys may hold; it replaces an earlier one about the
    /// same file.
    pub fn trust(&self, environment: &Environment, at: &str) -> Result<(), ConfigError> {
        let kept = kept(&self.file, environment).ok_or(ConfigError::NoTrustHome)?;
        let trusted = TrustRecord {
            file: self.file.clone(),
            hash: self.hash.clone(),
            keys: self.shown(),
            by: environment.get("USER").unwrap_or("user").to_owned(),
            at: at.to_owned(),
        };
        write(&kept, &trusted).map_err(|error| ConfigError::Unwritable {
            path: kept,
            reason: error.to_string(),
        })
    }

    /// Returns the keys that are not as they were at the last word; all of them where there was none.
    pub fn changed_since(&self, word: Option<&TrustRecord>) -> Vec<String> {
        let shown = self.shown();
        let known = word.map(|word| word.keys.clone()).unwrap_or_default();
        let names: BTreeSet<&String> = shown.keys().chain(known.keys()).collect();
        let differs = |key: &&&String| shown.get(**key) != known.get(**key);
        names
            .iter()
            .filter(differs)
            .map(ToString::to_string)
            .collect()
    }

    fn shown(&self) -> BTreeMap<String, Value> {
        let keys = self.keys.iter();
        keys.map(|entry| (entry.key.clone(), entry.value.clone()))
            .collect()
    }

    /// Refuses a file that nobody has trusted as it is.
    pub(crate) fn demand(&self, environment: &Environment) -> Result<(), ConfigError> {
        let word = self.last_word(environment)?;
        if word.as_ref().is_some_and(|word| word.hash == self.hash) {
            return Ok(());
        }
        let changed = self.changed_since(word.as_ref());
        Err(ConfigError::Untrusted {
            file: self.file.clone(),
            keys: if changed.is_empty() {
                // Only what is not shown has changed, such as a password.
                self.shown().into_keys().collect()
            } else {
                changed
            },
        })
    }
}

impl TrustRecord {
    /// Returns the last word of a person about the file at `path`.
    pub(crate) fn about(
        path: &Path,
        environment: &Environment,
    ) -> Result<Option<Self>, ConfigError> {
        Self::of(&place(path)?, environment)
    }

    fn of(file: &Path, environment: &Environment) -> Result<Option<Self>, ConfigError> {
        let Some(kept) = kept(file, environment) else {
            return Ok(None);
        };
        let text = read_file(&kept)?;
        let word: Option<Self> = text.and_then(|text| serde_json::from_str(&text).ok());
        let mut word = word.filter(|word| word.file == file);
        if let Some(word) = &mut word {
            let keys = std::mem::take(&mut word.keys).into_iter();
            let named = |key: String| in_full(&key).map_or(key, ToOwned::to_owned);
            word.keys = keys.map(|(key, value)| (named(key), value)).collect();
        }
        Ok(word)
    }
}

/// Hashes keys with their values, in the order of the keys.
fn hash_of(pairs: &mut [(String, Value)]) -> ContentHash {
    pairs.sort_by(|one, other| one.0.cmp(&other.0));
    let object = pairs.iter().cloned().collect::<Value>();
    ContentHash::of(object.to_string().as_bytes())
}

/// Returns where a file really lies. The file itself may be a link: paths in it are relative to where the link is.
fn place(path: &Path) -> Result<PathBuf, ConfigError> {
    let unreadable = |error: std::io::Error| ConfigError::Unreadable {
        path: path.to_owned(),
        reason: error.to_string().into(),
    };
    let directory = path.parent().unwrap_or(Path::new("/"));
    let directory = directory.canonicalize().map_err(unreadable)?;
    Ok(directory.join(path.file_name().unwrap_or_default()))
}

/// Returns where the word about `file` is kept.
fn kept(file: &Path, environment: &Environment) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let name = ContentHash::of(file.as_os_str().as_bytes());
    let home = environment.config_home()?;
    Some(home.join("ropewalk/trust").join(format!("{name}.json")))
}

fn write(path: &Path, trusted: &TrustRecord) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let directory = path.parent().unwrap_or(Path::new("/"));
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    serde_json::to_writer_pretty(&mut file, trusted)?;
    file.write_all(b"\n")?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
