//! Compares what models are told of each tool with the committed table.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ropewalk_llm::ToolUse;
use ropewalk_schemas::HostPattern;
use ropewalk_workspace::sandbox::egress::Egress;
use serde_json::{Value, json};

use super::history::tests::world;
use super::workbench::tests::Bench;
use super::*;
use crate::tool::ToolContext;

/// What models are told; written anew with `UPDATE_TABLES=1 cargo test -p ropewalk-engine tools::tests`.
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tables/tools.json");

/// All of them.
const MODES: [AgentMode; 4] = [
    AgentMode::Implement,
    AgentMode::Explore,
    AgentMode::Plan,
    AgentMode::Review,
];

struct NoGrants;

#[async_trait]
impl FileGrants for NoGrants {
    async fn request(&self, _: &[RepoPath], _: &str) -> GrantReply {
        GrantReply::Denied(String::new())
    }
}

#[derive(Debug)]
struct Nobody;

#[async_trait]
impl Asker for Nobody {
    async fn ask(&self, _: u32, _: &TaskQuestion) -> AskReply {
        AskReply::Ended(String::new())
    }
}

#[async_trait]
impl SearchPort for Nobody {
    async fn search(&self, _: &str) -> Result<Vec<SearchHit>, SearchError> {
        Ok(Vec::new())
    }
}

/// A bench that holds what every tool works with.
async fn full_bench(directory: &Path) -> Result<Workbench, Box<dyn std::error::Error>> {
    let (clone, base, _) = world(directory).await;
    let root = directory.join("slot");
    std::fs::create_dir_all(&root)?;
    let egress = Egress {
        hosts: vec![HostPattern::parse("docs.rs")?],
        ..Egress::none()
    };
    let options = WorkbenchOptions {
        egress: Some(egress),
        grants: Some(Arc::new(NoGrants)),
        asker: Some(Arc::new(Nobody)),
        search: Some(Arc::new(Nobody)),
        history: Some(ReadableHistory {
            clone,
            base,
            without: None,
        }),
        ..WorkbenchOptions::looking(root, directory.join("spill"))
    };
    Ok(Workbench::open(options)?)
}

#[tokio::test]
async fn models_are_told_of_each_tool_what_the_table_says() -> Result<(), Box<dyn std::error::Error>>
{
    let directory = tempfile::tempdir()?;
    let bench = full_bench(directory.path()).await?;
    let tools = MODES.map(|mode| tools_of(mode, &bench));
    let tools = tools.into_iter().collect::<Result<Vec<_>, _>>()?;
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

#[tokio::test]
async fn what_may_run_side_by_side_changes_nothing() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let bench = full_bench(directory.path()).await?;
    let mut found = BTreeMap::new();
    for tools in MODES.map(|mode| tools_of(mode, &bench)) {
        let tools = tools?;
        for tool in tools.specs() {
            let call = ToolUse::parse("t", &tool.name, "{}");
            found.insert(tool.name, tools.concurrency_safe(&call));
        }
    }
    let of = |safe: bool| -> Vec<&str> {
        let tools = found.iter().filter(|(_, is)| **is == safe);
        tools.map(|(name, _)| name.as_str()).collect()
    };
    let looking = [
        "code_outline",
        "glob",
        "grep",
        "history",
        "ls",
        "read",
        "todo_read",
        "web_fetch",
        "web_search",
    ];
    assert_eq!(of(true), looking);
    let changing = ["ask", "bash", "edit", "request_file", "todo_write", "write"];
    assert_eq!(of(false), changing);
    Ok(())
}

/// Runs a call and says whether it was answered by an earlier result.
async fn is_known(tools: &Toolbox, name: &str, arguments: Value) -> bool {
    let call = ToolUse::parse("t", name, &arguments.to_string());
    let before = tools.known_again();
    let output = tools.run(&call, &ToolContext::of_test()).await.unwrap();
    assert!(!output.is_error, "{}", output.text);
    tools.known_again() > before
}

#[tokio::test]
async fn what_was_looked_at_is_told_again_until_it_is_changed() {
    let bench = Bench::new(&[("src/a", "one"), ("b", "two")], &["src/a"]);
    let tools = tools_of(AgentMode::Implement, &bench.workbench).unwrap();
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
    let tools = tools_of(AgentMode::Implement, &bench.workbench).unwrap();
    let call = ToolUse::parse("t", "read", r#"{"path":"late"}"#);
    assert!(
        tools
            .run(&call, &ToolContext::of_test())
            .await
            .unwrap()
            .is_error
    );
    let late = bench.directory.path().join("slot/late");
    std::fs::write(late, "here").unwrap();
    let output = tools.run(&call, &ToolContext::of_test()).await.unwrap();
    assert_eq!(
        (output.is_error, output.text.as_str()),
        (false, "     1\there\n")
    );
}

#[tokio::test]
async fn each_mode_has_the_tools_of_the_matrix_and_refuses_those_of_another()
-> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let bench = full_bench(directory.path()).await?;
    let looks = [
        "ask",
        "code_outline",
        "glob",
        "grep",
        "history",
        "ls",
        "read",
        "web_fetch",
        "web_search",
    ];
    let implements = [
        "ask",
        "bash",
        "code_outline",
        "edit",
        "glob",
        "grep",
        "ls",
        "read",
        "request_file",
        "todo_read",
        "todo_write",
        "web_fetch",
        "web_search",
        "write",
    ];
    for mode in MODES {
        let tools = tools_of(mode, &bench)?;
        let expected: &[&str] = match mode {
            AgentMode::Implement => &implements,
            AgentMode::Explore | AgentMode::Plan | AgentMode::Review => &looks,
        };
        let specs = tools.specs();
        let names: Vec<&str> = specs.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, expected, "{mode}");
        // What is called all the same is not run, and neither is what there is nowhere: who coordinates others, or opens
        // something before a person.
        let never = ["open", "spawn_agent", "create_lane", "github_write"];
        for name in implements.iter().chain(&looks).chain(&never) {
            if expected.contains(name) {
                continue;
            }
            let call = ToolUse::parse("t", *name, "{}");
            let told = tools.run(&call, &ToolContext::of_test()).await?;
            let refusal =
                format!("there is no tool `{name}` in the mode `{mode}`; the tools are: ask");
            assert!(
                told.is_error && told.text.starts_with(&refusal),
                "{}",
                told.text
            );
        }
    }
    Ok(())
}
