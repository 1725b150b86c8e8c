//! Keeps `schemas/json/` equal to the types; run with `UPDATE_SCHEMAS=1` to write it anew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ropewalk_schemas::{CloudEvent, Payload, attempt, build, idea, knowledge, question};
use ropewalk_schemas::{agent, alert, job_event, lease, review, specification, task, wait};
use schemars::{JsonSchema, Schema, schema_for};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("json")
}

/// Returns every schema by the path of its file.
fn schemas() -> BTreeMap<String, Schema> {
    let mut schemas = BTreeMap::from([
        record::<CloudEvent>("event"),
        record::<agent::Component>("component"),
        record::<alert::Alert>("alert"),
        record::<attempt::Attempt>("attempt"),
        record::<build::Build>("build"),
        record::<idea::Idea>("idea"),
        record::<idea::Session>("session"),
        record::<knowledge::KnowledgeItem>("knowledge-item"),
        record::<job_event::Passage>("passage"),
        record::<lease::Lease>("lease"),
        record::<question::Question>("question"),
        record::<review::Review>("review"),
        record::<specification::Document>("document"),
        record::<specification::Specification>("specification"),
        record::<task::Task>("task"),
        record::<task::TaskBlock>("task-block"),
        record::<wait::Wait>("wait"),
    ]);
    for (event_type, schema) in Payload::json_schemas() {
        schemas.insert(format!("payload/{event_type}.json"), schema);
    }
    schemas
}

fn record<Record: JsonSchema>(name: &str) -> (String, Schema) {
    (format!("{name}.json"), schema_for!(Record))
}

fn files_below(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            let below = files_below(&entry.path())?;
            names.extend(below.into_iter().map(|inner| format!("{name}/{inner}")));
        } else {
            names.push(name);
        }
    }
    Ok(names)
}

#[test]
fn the_written_schemas_are_those_of_the_types() -> anyhow::Result<()> {
    let folder = folder();
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::remove_dir_all(&folder).or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
        std::fs::create_dir_all(folder.join("payload"))?;
        for (name, schema) in schemas() {
            let text = serde_json::to_string_pretty(&schema)?;
            std::fs::write(folder.join(name), text + "\n")?;
        }
    }
    let cure = "run `UPDATE_SCHEMAS=1 cargo test -p ropewalk-schemas --test json_schemas`";
    let wanted = schemas();
    for name in files_below(&folder)? {
        assert!(
            wanted.contains_key(&name),
            "`{name}` has no type any more: {cure}"
        );
    }
    for (name, schema) in wanted {
        let text = std::fs::read_to_string(folder.join(&name))
            .map_err(|error| anyhow::anyhow!("`{name}`: {error}: {cure}"))?;
        let written: Schema = serde_json::from_str(&text)?;
        assert!(written == schema, "`{name}` is stale: {cure}");
    }
    Ok(())
}
