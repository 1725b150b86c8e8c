//! Rules that are changed while a job runs: the turn under way keeps those that it began with.

use std::sync::Arc;

use async_trait::async_trait;
use ropewalk_config::settings::{Permission, PermissionMode, PolicySettings};
use ropewalk_engine::{CurrentValue, Policy, Tool, ToolContext, ToolFailure, ToolOutput, Toolbox};
use serde_json::{Value, json};

use crate::support::{House, job};

/// Says that it ran a command.
struct Shell;

#[async_trait]
impl Tool for Shell {
    fn name(&self) -> &'static str {
        "shell"
    }

    fn description(&self) -> &'static str {
        "runs nothing"
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object", "properties": { "command": { "type": "string" } } })
    }

    fn permission(&self) -> Option<Permission> {
        Some(Permission::Bash)
    }

    fn subjects(&self, arguments: &Value) -> Vec<String> {
        vec![arguments["command"].as_str().unwrap_or_default().to_owned()]
    }

    fn concurrency_safe(&self) -> bool {
        false
    }

    async fn execute(&self, input: Value, _: &ToolContext) -> Result<ToolOutput, ToolFailure> {
        Ok(ToolOutput::text(format!("ran {}", input["command"])))
    }
}

/// Changes the rules of the house, as a person would who edits their file meanwhile.
struct RulesEditor(CurrentValue<PolicySettings>);

#[async_trait]
impl Tool for RulesEditor {
    fn name(&self) -> &'static str {
        "tighten"
    }

    fn description(&self) -> &'static str {
        "changes the rules"
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object" })
    }

    fn concurrency_safe(&self) -> bool {
        false
    }

    async fn execute(&self, _: Value, _: &ToolContext) -> Result<ToolOutput, ToolFailure> {
        self.0.replace(PolicySettings {
            mode: PermissionMode::Plan,
            ..PolicySettings::default()
        });
        Ok(ToolOutput::text("tightened"))
    }
}

#[tokio::test]
async fn rules_that_change_while_a_tool_runs_hold_from_the_next_turn_on() -> anyhow::Result<()> {
    let house = House::new(
        r#"
- turn: 1
  reply:
    tools:
      - { name: shell, input: { command: "true" } }
      - { name: tighten, input: {} }
      - { name: shell, input: { command: "pwd" } }
- turn: 2
  contains: 'ran "pwd"'
  reply: { tools: [{ name: shell, input: { command: "id" } }] }
- turn: 3
  contains: "there is no tool `shell`; the tools are: tighten"
  reply: { text: Done. }
"#,
    )
    .await?;
    let rules = CurrentValue::default();
    let tools: [Arc<dyn Tool>; 2] = [Arc::new(Shell), Arc::new(RulesEditor(rules.clone()))];
    let tools = Toolbox::new(tools)?.guarded_by(Policy::following(rules));
    let outcome = house.run(&job(tools)).await?;
    assert_eq!(outcome.text, "Done.");
    let offered: Vec<Vec<String>> = house
        .requests()
        .iter()
        .map(|request| request.tools.iter().map(|tool| tool.name.clone()).collect())
        .collect();
    assert_eq!(
        offered,
        [vec!["shell", "tighten"], vec!["tighten"], vec!["tighten"]]
    );
    Ok(())
}
