//! Compares what models are told of each tool with the committed table.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::history::tests::world;
use super::workbench::tests::Bench;
use super::*;

/// What models are told; written anew with `UPDATE_TABLES=1 cargo test -p ropewalk-engine tools::tests`.
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tables/tools.json");

struct NoGrants;

#[async_trait]
impl FileGrants for NoGrants {
    async fn request(&self, _: &[RepoPath], _: &str) -> GrantReply {
        GrantReply::Denied(String::new())
    }
}

#[tokio::test]
async fn models_are_told_of_each_tool_what_the_table_says() -> Result<(), Box<dyn std::error::Error>>
{
    let directory = tempfile::tempdir()?;
    let (clone, base, _) = world(directory.path()).await;
    let bench = Bench::with(&[], &[], Some(Arc::new(NoGrants)));
    let tools = [
        build_tools(&bench.workbench)?,
        reading_tools(&bench.workbench, clone, base)?,
    ];
    let found: BTreeMap<String, Value> = tools
        .iter()
        .flat_map(Toolbox::specs)
        .map(|tool| {
            let told = json!({ "description": tool.description, "parameters": tool.parameters });
            (tool.name, told)
        })
        .collect();
    if std::env::var_os("UPDATE_TABLES").is_some() {
        std::fs::write(TABLE, serde_json::to_string_pretty(&found)? + "\n")?;
    }
    let expected: BTreeMap<String, Value> = serde_json::from_slice(&std::fs::read(TABLE)?)?;
    assert_eq!(found, expected);
    Ok(())
}
