//! Rules that are changed while a job runs: the turn under way keeps those that it began with.

use std::sync::Arc;

use async_trait::async_trait;
use ropewalk_config::settings::{Permission, PermissionMode, PolicySettings};
use ropewalk_engine::{
    AgentMode, CurrentValue, Policy, Tool, ToolContext, ToolFailure, ToolOutput, Toolbox, tools_of,
};
use serde_json::{Value, json};

use crate::support::{ScriptedEngine, job, workbench};

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

/// Changes the rules, as a person would who edits their file meanwhile.
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
    let scripted = ScriptedEngine::new(
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
    let outcome = scripted.run(&job(tools)).await?;
    assert_eq!(outcome.text, "Done.");
    let offered: Vec<Vec<String>> = scripted
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

/// Rules for commands, each as action and pattern.
fn of_commands(rules: &[[&str; 2]]) -> Value {
    let rules = rules.iter().map(
        |[action, pattern]| json!({ "permission": "bash", "pattern": pattern, "action": action }),
    );
    rules.collect()
}

#[tokio::test]
async fn a_command_runs_as_far_as_rules_and_mode_allow_and_its_model_is_told() -> anyhow::Result<()>
{
    let full = PermissionMode::FullAuto;
    let there_is_none = "there is no tool `bash`";
    // By mode, user and project: what they say, and what a model is told that touches a file.
    let table = [
        (full, of_commands(&[]), of_commands(&[]), "[exit code 0]"),
        (
            full,
            of_commands(&[["deny", "touch *"], ["allow", "touch *"]]),
            of_commands(&[]),
            "[exit code 0]",
        ),
        (
            full,
            of_commands(&[["allow", "*"], ["deny", "touch *"]]),
            of_commands(&[["allow", "touch *"]]),
            "forbids `touch made`",
        ),
        (
            full,
            of_commands(&[["ask", "touch *"]]),
            of_commands(&[]),
            "leaves `touch made` to a person",
        ),
        (
            full,
            of_commands(&[["deny", "**"]]),
            of_commands(&[]),
            there_is_none,
        ),
        (
            PermissionMode::Edit,
            of_commands(&[]),
            of_commands(&[]),
            "to a person",
        ),
        (
            PermissionMode::Plan,
            of_commands(&[]),
            of_commands(&[]),
            there_is_none,
        ),
    ];
    for (mode, user, project, told) in table {
        let scripted = ScriptedEngine::new(
            "- { turn: 1, reply: { tools: [{ name: bash, input: { command: \"true && touch made\" } }] } }\n\
             - { turn: 2, reply: { text: Done. } }\n",
        )
        .await?;
        let mut settings = PolicySettings {
            mode,
            ..PolicySettings::default()
        };
        settings.rules.user = serde_json::from_value(user)?;
        settings.rules.project = serde_json::from_value(project)?;
        let tools = tools_of(AgentMode::Implement, &workbench(&scripted)?)?;
        let tools = tools.guarded_by(Policy::new(settings));
        scripted.run(&job(tools)).await?;
        let results = scripted.last_results();
        assert!(results[0].0.contains(told), "{told}: {results:?}");
        let ran = told == "[exit code 0]";
        assert_eq!(results[0].1, !ran, "{results:?}");
        assert_eq!(scripted.directory.path().join("slot/made").exists(), ran);
        let requests = scripted.requests();
        let is_shown = requests[0].tools.iter().any(|tool| tool.name == "bash");
        assert_eq!(is_shown, told != there_is_none, "{told}");
    }
    Ok(())
}
