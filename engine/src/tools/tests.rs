//! Compares what models are told of each tool with the committed table.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ropewalk_llm::ToolUse;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::history::tests::world;
use super::workbench::tests::Bench;
use super::*;
use crate::tool::{Progress, ToolContext};

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

/// Runs a call and says whether it was answered by an earlier result.
async fn is_known(tools: &Toolbox, name: &str, arguments: Value) -> bool {
    let context = ToolContext {
        work: "test".to_owned(),
        sees_images: true,
        cancel: CancellationToken::new(),
        progress: Progress::default(),
    };
    let call = ToolUse::parse("t", name, &arguments.to_string());
    let before = tools.known_again();
    let output = tools.run(&call, &context).await.unwrap();
    assert!(!output.is_error, "{}", output.text);
    tools.known_again() > before
}

#[tokio::test]
async fn what_was_looked_at_is_told_again_until_it_is_changed() {
    let bench = Bench::new(&[("src/a", "one"), ("b", "two")], &["src/a"]);
    let tools = build_tools(&bench.workbench).unwrap();
    let read = |path: &str| json!({ "path": path });
    let search = |place: &str| json!({ "pattern": "one|two|three", "path": place });
    for (name, arguments) in [
        ("read", read("src/a")),
        ("read", read("b")),
        ("grep", search("src")),
        ("grep", search("b")),
        ("glob", json!({ "pattern": "**" })),
    ] {
        assert!(!is_known(&tools, name, arguments.clone()).await, "{name}");
        assert!(is_known(&tools, name, arguments).await, "{name}");
    }
    let edit = json!({ "path": "src/a", "old_text": "one", "new_text": "three" });
    is_known(&tools, "edit", edit).await;
    assert!(!is_known(&tools, "read", read("src/a")).await);
    assert!(!is_known(&tools, "grep", search("src")).await);
    assert!(!is_known(&tools, "glob", json!({ "pattern": "**" })).await);
    assert!(is_known(&tools, "read", read("b")).await);
    assert!(is_known(&tools, "grep", search("b")).await);
    // Somebody else wrote it.
    bench.touch("b", Duration::from_secs(2));
    assert!(!is_known(&tools, "read", read("b")).await);
    is_known(&tools, "bash", json!({ "command": "true" })).await;
    assert!(!is_known(&tools, "read", read("b")).await);
    // Its text is gone from the conversation.
    tools.forget(&["b".to_owned()]);
    assert!(!is_known(&tools, "read", read("b")).await);
}

#[tokio::test]
async fn a_file_that_was_not_there_is_looked_for_again() {
    let bench = Bench::new(&[], &[]);
    let tools = build_tools(&bench.workbench).unwrap();
    let context = ToolContext {
        work: "test".to_owned(),
        sees_images: true,
        cancel: CancellationToken::new(),
        progress: Progress::default(),
    };
    let call = ToolUse::parse("t", "read", r#"{"path":"late"}"#);
    assert!(tools.run(&call, &context).await.unwrap().is_error);
    let late = bench.directory.path().join("slot/late");
    std::fs::write(late, "here").unwrap();
    let output = tools.run(&call, &context).await.unwrap();
    assert_eq!(
        (output.is_error, output.text.as_str()),
        (false, "     1\there\n")
    );
}
