//! Writes and edits a project's `ropewalk.toml`; comments and order stay as they are.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use toml_edit::visit_mut::VisitMut;
use toml_edit::{DocumentMut, Formatted, Item, Table, Value};

use crate::error::ConfigError;
use crate::layers::{Layers, read_file};
use crate::load::{DEFAULTS, PROJECT_FILE, read};
use crate::origin::Origin;
use crate::settings::credentials;

/// What `init` writes.
const TEMPLATE: &str = "\
# Ropewalk's settings for this project. `ropewalk config show` lists every key with its value and where it was set.

[project]

# [[gate.commands]]                  # run beside each task's own validation; a candidate that fails one does not land
# name = \"tests\"
# command = \"cargo test --offline\"
";

/// A project's file that is being written or edited; nothing reaches the disk before [`ProjectFile::save`].
#[derive(Debug, Clone)]
pub struct ProjectFile {
    path: PathBuf,
    /// What the disk held when the file was read; `None` for a new file.
    before: Option<String>,
    document: DocumentMut,
}

impl ProjectFile {
    /// Begins a new file in `directory`; one that is there already is refused.
    pub fn create(directory: &Path) -> Result<Self, ConfigError> {
        let path = directory.join(PROJECT_FILE);
        if path.symlink_metadata().is_ok() {
            return Err(ConfigError::Exists(path));
        }
        let document = parsed(&path, TEMPLATE)?;
        Ok(Self {
            path,
            before: None,
            document,
        })
    }

    /// Reads the file at `path` to edit it.
    pub fn open(path: &Path) -> Result<Self, ConfigError> {
        let text = read_file(path)?.ok_or_else(|| ConfigError::Unreadable {
            path: path.to_owned(),
            reason: ("it does not exist", "`ropewalk init` writes it").into(),
        })?;
        Ok(Self {
            path: path.to_owned(),
            document: parsed(path, &text)?,
            before: Some(text),
        })
    }

    /// Returns where the file lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets `key` (dotted) to `text`, read as its type asks; a key or value that cannot be is refused and changes nothing.
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), ConfigError> {
        let mut layers = self.layers()?;
        layers.add_text(key, text, &Origin::Flag);
        read(&layers)?;
        let mut edited = self.document.clone();
        let value = match layers.at(key) {
            Some(serde_json::Value::String(text)) => Value::from(text.as_str()),
            _ => text.parse().unwrap_or_else(|_| Value::from(text)),
        };
        put(edited.as_table_mut(), key, value);
        self.document = edited;
        Ok(())
    }

    /// Takes the value of `key` (dotted) out; answers whether there was one.
    pub fn remove(&mut self, key: &str) -> bool {
        take(self.document.as_table_mut(), key)
    }

    /// Takes out what lets somebody in: hashes of tokens, and passwords in addresses; returns the keys.
    pub fn remove_secrets(&mut self) -> Result<Vec<String>, ConfigError> {
        let leaves = self.own()?.leaves();
        let (mut removed, mut secrets) = (Vec::new(), Vec::new());
        for (key, value) in &leaves {
            let held: Vec<&str> = texts(value).into_iter().flat_map(credentials).collect();
            if key.starts_with("people.") && key.ends_with(".token_sha256") {
                take(self.document.as_table_mut(), key);
            } else if held.is_empty() {
                continue;
            }
            secrets.extend(held);
            removed.push(key.clone());
        }
        // The longest first: one that is a part of another would leave the rest of that.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        for secret in secrets {
            Strike(secret).visit_item_mut(self.document.as_item_mut());
        }
        Ok(removed)
    }

    /// Returns the text that [`ProjectFile::save`] writes.
    pub fn text(&self) -> String {
        self.document.to_string()
    }

    /// Writes the file whole or not at all; a file that somebody else changed meanwhile is left alone.
    pub fn save(&mut self) -> Result<(), ConfigError> {
        if read_file(&self.path)? != self.before {
            return Err(ConfigError::ChangedMeanwhile(self.path.clone()));
        }
        let text = self.document.to_string();
        let written = self.replace(&text);
        written.map_err(|error| ConfigError::Unwritable {
            path: self.path.clone(),
            reason: error.to_string(),
        })?;
        self.before = Some(text);
        Ok(())
    }

    fn replace(&self, text: &str) -> std::io::Result<()> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(text.as_bytes())?;
        // A temporary file is private; this one keeps the rights of the file it replaces, or gets those of any new file.
        let permissions = match std::fs::metadata(&self.path) {
            Ok(metadata) => metadata.permissions(),
            Err(_) => std::os::unix::fs::PermissionsExt::from_mode(0o644),
        };
        file.as_file().set_permissions(permissions)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }

    fn layers(&self) -> Result<Layers, ConfigError> {
        let mut layers = Layers::default();
        layers.add_toml(DEFAULTS, &Origin::Default)?;
        self.add_to(&mut layers)?;
        Ok(layers)
    }

    /// Returns what this file alone says.
    fn own(&self) -> Result<Layers, ConfigError> {
        let mut layers = Layers::default();
        self.add_to(&mut layers)?;
        Ok(layers)
    }

    fn add_to(&self, layers: &mut Layers) -> Result<(), ConfigError> {
        let path = self.path.clone();
        let origin = Origin::Project { path, line: None };
        layers.add_toml(&self.document.to_string(), &origin)
    }
}

fn parsed(path: &Path, text: &str) -> Result<DocumentMut, ConfigError> {
    let mut layers = Layers::default();
    let path = path.to_owned();
    // The layers say in which line a fault lies.
    layers.add_toml(text, &Origin::Project { path, line: None })?;
    let plain = text.strip_prefix('\u{feff}').unwrap_or(text);
    plain
        .parse()
        .map_err(|error: toml_edit::TomlError| ConfigError::Malformed {
            origin: Origin::Default,
            reason: error.message().to_owned(),
        })
}

/// Sets the value at the dotted `key`, making tables on the way and keeping what is written around the old value.
fn put(table: &mut dyn toml_edit::TableLike, key: &str, mut value: Value) {
    let Some((section, rest)) = key.split_once('.') else {
        if let Some(old) = table.get(key).and_then(Item::as_value) {
            *value.decor_mut() = old.decor().clone();
        }
        table.insert(key, Item::Value(value));
        return;
    };
    if !table.get(section).is_some_and(Item::is_table_like) {
        table.insert(section, Item::Table(Table::new()));
    }
    if let Some(below) = table.get_mut(section).and_then(Item::as_table_like_mut) {
        put(below, rest, value);
    }
}

/// Removes the value at the dotted `key`; answers whether there was one.
fn take(table: &mut dyn toml_edit::TableLike, key: &str) -> bool {
    match key.split_once('.') {
        None => table.remove(key).is_some(),
        Some((section, rest)) => table
            .get_mut(section)
            .and_then(Item::as_table_like_mut)
            .is_some_and(|below| take(below, rest)),
    }
}

/// Returns every text in `value`, at any depth.
fn texts(value: &serde_json::Value) -> Vec<&str> {
    match value {
        serde_json::Value::String(text) => vec![text.as_str()],
        serde_json::Value::Array(list) => list.iter().flat_map(texts).collect(),
        serde_json::Value::Object(table) => table.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// Puts stars in the place of one secret.
struct Strike<'a>(&'a str);

impl VisitMut for Strike<'_> {
    fn visit_string_mut(&mut self, text: &mut Formatted<String>) {
        if text.value().contains(self.0) {
            let decor = text.decor().clone();
            *text = Formatted::new(text.value().replace(self.0, "***"));
            *text.decor_mut() = decor;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lets_somebody_in_is_taken_out_and_the_rest_stays() {
        let (_folder, path) = file(
            "[store]\nlocation = \"postgres://ada:canary@host/db\"  # ours\n[people.ada]\nuser = \"ada\"\n\
             token_sha256 = \"sha256:7c01d2e4\"\n[notices]\nwebhook_url = \"https://canary-that-is-a-token@host/hook\"\n",
        );
        let mut edited = ProjectFile::open(&path).unwrap();
        let removed = edited.remove_secrets().unwrap();
        assert_eq!(
            removed,
            [
                "store.location",
                "people.ada.token_sha256",
                "notices.webhook_url"
            ]
        );
        assert_eq!(
            edited.text(),
            "[store]\nlocation = \"postgres://ada:***@host/db\"  # ours\n[people.ada]\nuser = \"ada\"\n\
             [notices]\nwebhook_url = \"https://***@host/hook\"\n"
        );
        assert!(edited.remove("store.location") && !edited.remove("store.location"));
    }

    const TEXT: &str =
        "# mine\n[build]   # loops\nloops = 2  # two\n\n# last\n[bus]\ntransport = \"embedded\"\n";

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(PROJECT_FILE);
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn an_edit_keeps_comments_and_order() {
        let (_folder, path) = file(TEXT);
        let mut edited = ProjectFile::open(&path).unwrap();
        edited.set("build.loops", "4").unwrap();
        edited.set("bus.transport", "nats").unwrap();
        edited.set("project.name", "2048").unwrap();
        edited.save().unwrap();
        let expected = TEXT
            .replace("loops = 2", "loops = 4")
            .replace("embedded", "nats")
            + "\n[project]\nname = \"2048\"\n";
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    }

    #[test]
    fn a_value_that_cannot_be_changes_nothing() {
        let (_folder, path) = file(TEXT);
        let mut edited = ProjectFile::open(&path).unwrap();
        for (key, value) in [("build.loops", "many"), ("build.lops", "2"), ("build", "2")] {
            assert!(edited.set(key, value).is_err(), "{key}");
        }
        edited.save().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), TEXT);
    }

    #[test]
    fn a_file_that_somebody_else_changed_is_left_alone() {
        let (_folder, path) = file(TEXT);
        let mut edited = ProjectFile::open(&path).unwrap();
        edited.set("build.loops", "4").unwrap();
        std::fs::write(&path, "# theirs\n").unwrap();
        assert_eq!(
            edited.save(),
            Err(ConfigError::ChangedMeanwhile(path.clone()))
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "# theirs\n");
    }

    #[test]
    fn a_new_file_is_written_once_and_loads() {
        let folder = tempfile::tempdir().unwrap();
        let mut new = ProjectFile::create(folder.path()).unwrap();
        new.set("project.name", "habits").unwrap();
        new.save().unwrap();
        let environment = crate::Environment::default();
        let loaded = crate::Config::load(folder.path(), &environment, &[]).unwrap();
        assert_eq!(
            loaded.config.project.name.as_ref().map(AsRef::as_ref),
            Some("habits")
        );
        assert!(matches!(
            ProjectFile::create(folder.path()),
            Err(ConfigError::Exists(_))
        ));
        let leftovers = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(leftovers, 1);
    }
}
