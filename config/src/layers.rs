//! Lays files, environment and flags over each other, remembering where each value was set.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use ropewalk_schemas::advice::Words;
use serde_json::{Map, Value};
use toml_edit::{Document, Item};

use crate::error::ConfigError;
use crate::origin::Origin;

/// The most a configuration file may hold.
const MOST_BYTES: u64 = 1024 * 1024;

/// What a key outside of any section is short for.
const SHORT: [(&str, &str); 1] = [("sandbox", "sandbox.mode")];

/// The key by which each place names its own rules, beside those of the others.
const RULES: &str = "policy.rules";

/// The sections whose values are texts even where the defaults name none.
const TEXT_SECTIONS: [&str; 4] = ["project.", "person.", "providers.", "rehearsal."];

/// The values so far, and the origin of each by its dotted path.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    values: Map<String, Value>,
    origins: BTreeMap<String, Origin>,
}

impl Layers {
    /// Lays the TOML text of a file over what is there.
    pub(crate) fn add_toml(&mut self, text: &str, origin: &Origin) -> Result<(), ConfigError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let document = Document::parse(text).map_err(|error| ConfigError::Malformed {
            origin: origin.at(line_of(text, error.span())),
            reason: error.message().lines().collect::<Vec<_>>().join(" "),
        })?;
        let layer = Layer { text, origin };
        for (key, item) in document.as_table() {
            match in_full(key) {
                Some(path) if !item.is_table_like() => layer.set(self, path, item),
                _ => layer.merge(&mut self.values, &mut self.origins, key, key, item),
            }
        }
        Ok(())
    }

    /// Lays one value, written as text, over what is there; `path` is dotted.
    pub(crate) fn add_text(&mut self, path: &str, text: &str, origin: &Origin) {
        let path = match in_full(path).unwrap_or(path) {
            path if is_of_rules(path) => origin.rules(),
            path => path,
        };
        let known = self.at(path);
        let is_text = known.map_or_else(
            || {
                TEXT_SECTIONS
                    .iter()
                    .any(|section| path.starts_with(section))
            },
            Value::is_string,
        );
        let parsed = text.parse::<toml_edit::Value>().ok();
        let value = match parsed {
            // Who copies a line out of a file copies the quotes as well.
            Some(value) if !is_text || value.is_str() => json_of(&value),
            _ => Value::String(text.to_owned()),
        };
        self.put(path, value, origin.clone());
    }

    /// Lays one value over what is there; `path` is dotted.
    pub(crate) fn put(&mut self, path: &str, value: Value, origin: Origin) {
        forget(&mut self.origins, path);
        self.origins.insert(path.to_owned(), origin);
        set(&mut self.values, path, value);
    }

    /// Returns whether `key` may stand outside of any section.
    pub(crate) fn is_sectionless(key: &str) -> bool {
        in_full(key).is_some()
    }

    /// Returns where the value at `path`, or the nearest table around it, was set; for a section, where its first value was.
    pub(crate) fn origin(&self, path: &str) -> Origin {
        if !path.contains(['.', '[']) && !self.origins.contains_key(path) {
            return self.origin_below(path);
        }
        let mut path = path;
        loop {
            if let Some(origin) = self.origins.get(path) {
                return origin.clone();
            }
            match path.rfind(['.', '[']) {
                Some(end) => path = path.get(..end).unwrap_or_default(),
                None => return Origin::Default,
            }
        }
    }

    /// Returns where the first value of the section `name` was set.
    fn origin_below(&self, name: &str) -> Origin {
        let section = format!("{name}.");
        let below = self
            .origins
            .range(section.clone()..)
            .take_while(|(path, _)| path.starts_with(&section))
            .find(|(_, origin)| **origin != Origin::Default);
        below.map_or(Origin::Default, |(_, origin)| origin.clone())
    }

    /// Returns the values as one JSON object.
    pub(crate) fn values(&self) -> Value {
        Value::Object(self.values.clone())
    }

    /// Returns every value that is no table, and every empty table, with its dotted path, in order.
    pub(crate) fn leaves(&self) -> Vec<(String, Value)> {
        let mut leaves = Vec::new();
        for (key, value) in &self.values {
            collect_leaves(key, value, &mut leaves);
        }
        leaves
    }

    /// Returns the value at the dotted `path`.
    pub(crate) fn at(&self, path: &str) -> Option<&Value> {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        let mut value = self.values.get(first)?;
        for part in rest.split('.').filter(|part| !part.is_empty()) {
            value = value.get(part)?;
        }
        Some(value)
    }
}

/// Returns the key in its section that `key` is short for.
pub(crate) fn in_full(key: &str) -> Option<&'static str> {
    let found = SHORT.iter().find(|(short, _)| *short == key);
    found.map(|(_, full)| *full)
}

/// Returns what `key` was called before it had a section.
pub(crate) fn in_short(key: &str) -> Option<&'static str> {
    let found = SHORT.iter().find(|(_, full)| *full == key);
    found.map(|(short, _)| *short)
}

fn is_of_rules(path: &str) -> bool {
    path.strip_prefix(RULES)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn collect_leaves(path: &str, value: &Value, leaves: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(table) if !table.is_empty() => {
            for (key, inner) in table {
                collect_leaves(&format!("{path}.{key}"), inner, leaves);
            }
        }
        _ => leaves.push((path.to_owned(), value.clone())),
    }
}

/// Reads a configuration file; `Ok(None)` when there is none.
pub(crate) fn read_file(path: &Path) -> Result<Option<String>, ConfigError> {
    let unreadable = |reason: Words| ConfigError::Unreadable {
        path: path.to_owned(),
        reason,
    };
    let refused = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            unreadable((error.to_string(), "make it readable for you").into())
        }
        _ => unreadable(error.to_string().into()),
    };
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refused(error)),
    };
    if !metadata.is_file() {
        return Err(unreadable("it is not a file".into()));
    }
    if metadata.len() > MOST_BYTES {
        let size = metadata.len();
        let (size, most) = (
            format!("it has {size} bytes"),
            format!("{MOST_BYTES} is the most"),
        );
        return Err(unreadable((size, most).into()));
    }
    let bytes = std::fs::read(path).map_err(refused)?;
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| unreadable("it is not UTF-8 text".into()))
}

/// One file on its way into the layers.
struct Layer<'a> {
    text: &'a str,
    origin: &'a Origin,
}

impl Layer<'_> {
    /// Sets the value at the dotted `path`, whose section may not be there yet.
    fn set(&self, layers: &mut Layers, path: &str, item: &Item) {
        let origin = self.origin.at(line_of(self.text, item.span()));
        forget(&mut layers.origins, path);
        layers.origins.insert(path.to_owned(), origin);
        set(&mut layers.values, path, json_of_item(item));
    }

    fn merge(
        &self,
        target: &mut Map<String, Value>,
        origins: &mut BTreeMap<String, Origin>,
        key: &str,
        path: &str,
        item: &Item,
    ) {
        let origin = self.origin.at(line_of(self.text, item.span()));
        if path == RULES {
            let slot = target.entry(key.to_owned());
            let lists = slot.or_insert_with(|| Value::Object(Map::new()));
            let path = self.origin.rules();
            let name = path.rsplit('.').next().unwrap_or(path);
            forget(origins, path);
            self.remember_elements(origins, path, item);
            origins.insert(path.to_owned(), origin);
            // Whatever it is, it is of this place: nobody sets the rules of another.
            lists[name] = json_of_item(item);
            return;
        }
        if let Some(table) = item.as_table_like() {
            let slot = target.entry(key.to_owned()).or_insert(Value::Null);
            let mut below = if let Value::Object(below) = slot.take() {
                below
            } else {
                origins.insert(path.to_owned(), origin);
                Map::new()
            };
            for (name, inner) in table.iter() {
                self.merge(&mut below, origins, name, &format!("{path}.{name}"), inner);
            }
            *slot = Value::Object(below);
            return;
        }
        forget(origins, path);
        self.remember_elements(origins, path, item);
        origins.insert(path.to_owned(), origin);
        target.insert(key.to_owned(), json_of_item(item));
    }

    // An error inside an array names the element, so that each keeps its own line.
    fn remember_elements(&self, origins: &mut BTreeMap<String, Origin>, path: &str, item: &Item) {
        let mut remember = |index: usize, span| {
            let origin = self.origin.at(line_of(self.text, span));
            origins.insert(format!("{path}[{index}]"), origin);
        };
        if let Some(tables) = item.as_array_of_tables() {
            for (index, table) in tables.iter().enumerate() {
                remember(index, table.span());
            }
        } else if let Some(array) = item.as_array() {
            for (index, value) in array.iter().enumerate() {
                remember(index, value.span());
            }
        }
    }
}

/// Sets the value at the dotted `path`, putting tables in the place of anything else on the way.
fn set(target: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            target.insert(path.to_owned(), value);
        }
        Some((key, rest)) => {
            let slot = target.entry(key.to_owned()).or_insert(Value::Null);
            let mut below = match slot.take() {
                Value::Object(below) => below,
                _ => Map::new(),
            };
            set(&mut below, rest, value);
            *slot = Value::Object(below);
        }
    }
}

/// Forgets the origins of everything at or below `path`.
fn forget(origins: &mut BTreeMap<String, Origin>, path: &str) {
    origins.retain(|known, _| {
        known
            .strip_prefix(path)
            .is_none_or(|rest| !rest.is_empty() && !rest.starts_with(['.', '[']))
    });
}

fn line_of(text: &str, span: Option<Range<usize>>) -> Option<usize> {
    let before = text.get(..span?.start)?;
    Some(before.matches('\n').count() + 1)
}

fn json_of_item(item: &Item) -> Value {
    if let Some(tables) = item.as_array_of_tables() {
        return tables.iter().map(json_of_table).collect();
    }
    match item {
        Item::Value(value) => json_of(value),
        Item::Table(table) => json_of_table(table),
        Item::None | Item::ArrayOfTables(_) => Value::Null,
    }
}

fn json_of_table(table: &toml_edit::Table) -> Value {
    let entries = table
        .iter()
        .map(|(key, item)| (key.to_owned(), json_of_item(item)));
    Value::Object(entries.collect())
}

fn json_of(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => Value::String(text.value().clone()),
        toml_edit::Value::Integer(number) => (*number.value()).into(),
        toml_edit::Value::Float(number) => (*number.value()).into(),
        toml_edit::Value::Boolean(flag) => (*flag.value()).into(),
        toml_edit::Value::Datetime(time) => Value::String(time.value().to_string()),
        toml_edit::Value::Array(values) => values.iter().map(json_of).collect(),
        toml_edit::Value::InlineTable(table) => {
            let entries = table
                .iter()
                .map(|(key, inner)| (key.to_owned(), json_of(inner)));
            Value::Object(entries.collect())
        }
    }
}
