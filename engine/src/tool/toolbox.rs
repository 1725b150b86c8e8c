//! Holds the tools of a job: finds them by name, checks arguments, bounds outputs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use ropewalk_config::settings::Permission;
use ropewalk_llm::{ToolSpec, ToolUse};
use serde_json::{Value, json};

use super::cache::{Cache, CacheBounds};
use super::truncate::truncate;
use super::{Schema, Tool, ToolContext, ToolFailure, ToolOutput, violations};
use crate::mode::AgentMode;
use crate::policy::{Caller, Policy};

/// Says why a set of tools cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolboxError {
    /// Two tools have one name, apart from case.
    #[error("two tools are called `{0}`; rename one")]
    Duplicate(String),
    /// The schema of a tool is no JSON Schema.
    #[error("the schema of tool `{name}` is invalid: {reason}")]
    Schema {
        /// The tool.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

#[derive(Clone)]
struct Entry {
    tool: Arc<dyn Tool>,
    schema: Schema,
}

/// Holds tools by name. Cheap to clone.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Arc<BTreeMap<String, Entry>>,
    /// None where the work has no mode, but tools of its own.
    mode: Option<AgentMode>,
    policy: Policy,
    spill: Option<Arc<PathBuf>>,
    cache: Cache,
}

impl Toolbox {
    /// Collects tools; every name is unique and every schema valid.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Self, ToolboxError> {
        let mut entries = BTreeMap::new();
        for tool in tools {
            let name = tool.name().to_lowercase();
            let schema =
                Schema::compile(&tool.parameters()).map_err(|reason| ToolboxError::Schema {
                    name: name.clone(),
                    reason,
                })?;
            if entries
                .insert(name.clone(), Entry { tool, schema })
                .is_some()
            {
                return Err(ToolboxError::Duplicate(name));
            }
        }
        Ok(Self {
            tools: Arc::new(entries),
            ..Self::default()
        })
    }

    /// Says which mode the tools are of, to whoever calls one that it does not have.
    #[must_use]
    pub(crate) fn in_mode(self, mode: AgentMode) -> Self {
        Self {
            mode: Some(mode),
            ..self
        }
    }

    /// Judges calls by `policy`. Tools of which it lets nothing be done are not told to models.
    #[must_use]
    pub fn guarded_by(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// Takes the rules as they are now for the turn that begins: its tools are the same to its end. What was found under
    /// other rules is not told again.
    pub(crate) fn begin_turn(&self) {
        if self.policy.begin_turn() {
            self.cache.clear();
        }
    }

    /// Returns the tools of which something may be done.
    fn shown(&self) -> impl Iterator<Item = &Entry> {
        self.tools.values().filter(|entry| self.is_shown(entry))
    }

    fn is_shown(&self, entry: &Entry) -> bool {
        let permission = entry.tool.permission();
        !permission.is_some_and(|permission| self.policy.forbids(permission))
    }

    /// Gives results of looking around again within `bounds`.
    #[must_use]
    pub fn caching(self, bounds: CacheBounds) -> Self {
        Self {
            cache: Cache::new(bounds),
            ..self
        }
    }

    /// Keeps the full text of outputs that were cut as files in `directory`, named in their metadata.
    pub fn spill_to(self, directory: PathBuf) -> Self {
        Self {
            spill: Some(Arc::new(directory)),
            ..self
        }
    }

    /// Says that there is no tool.
    pub fn is_empty(&self) -> bool {
        self.shown().next().is_none()
    }

    /// Says that no tool changes anything.
    pub(crate) fn only_look(&self) -> bool {
        self.tools
            .values()
            .all(|entry| entry.tool.concurrency_safe())
    }

    /// Says whether a tool has this name, apart from case.
    pub fn contains(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    /// Returns what the tool is called that a call means; none where there is no such tool.
    pub(crate) fn name_of(&self, call: &ToolUse) -> Option<&str> {
        Some(self.entry(&call.name)?.tool.name())
    }

    /// Lists what the tools are called that models are told of.
    pub fn names(&self) -> Vec<&str> {
        self.shown().map(|entry| entry.tool.name()).collect()
    }

    /// Describes the tools to a model, by name.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.shown()
            .map(|entry| ToolSpec {
                name: entry.tool.name().to_owned(),
                description: entry.tool.description().to_owned(),
                parameters: entry.tool.parameters(),
            })
            .collect()
    }

    /// Says whether a call may run beside others; a call of an unknown tool runs nothing, so it may.
    pub(crate) fn concurrency_safe(&self, call: &ToolUse) -> bool {
        self.entry(&call.name)
            .is_none_or(|entry| entry.tool.concurrency_safe())
    }

    /// Says that a call does nothing but look at files of the checkout.
    pub(crate) fn only_reads(&self, call: &ToolUse) -> bool {
        let entry = self.entry(&call.name).filter(|_| !call.malformed);
        entry.is_some_and(|entry| {
            entry.tool.concurrency_safe() && entry.tool.permission() == Some(Permission::Read)
        })
    }

    /// Says that a call asks something of the outside.
    pub(crate) fn goes_out(&self, call: &ToolUse) -> bool {
        self.entry(&call.name)
            .is_some_and(|entry| entry.tool.goes_out())
    }

    /// Says whether the result of a call stays word for word.
    pub(crate) fn outlasts(&self, call: &ToolUse) -> bool {
        self.entry(&call.name)
            .is_some_and(|entry| entry.tool.outlasts())
    }

    /// Says how often a result was given again.
    #[cfg(test)]
    pub(crate) fn known_again(&self) -> u64 {
        self.cache.stats().hits
    }

    /// Tells every tool of files whose text the model can read no more, and gives no earlier result again.
    pub(crate) fn forget(&self, files: &[String]) {
        self.cache.clear();
        for entry in self.tools.values() {
            entry.tool.forget(files);
        }
    }

    /// Runs a call. Whatever the model did wrong is an error output; an error says why the work must stop.
    pub(crate) async fn run(
        &self,
        call: &ToolUse,
        context: &ToolContext,
    ) -> Result<ToolOutput, String> {
        let entry = match self.admit(call, context).await {
            Ok(entry) => entry,
            Err(reason) => return Ok(ToolOutput::error(reason)),
        };
        let freshness = entry.tool.freshness(&call.input);
        if let Some(known) = self.cache.get(call, &freshness) {
            let told = json!({ "cache": self.cache.stats().to_string() });
            return Ok(known.with_metadata(told));
        }
        let ran = entry.tool.execute(call.input.clone(), context).await;
        self.invalidate(entry, call);
        match ran {
            Ok(output) => {
                let output = self.bound(entry, output).await;
                self.cache.keep(call, freshness, &output);
                Ok(output)
            }
            Err(ToolFailure::Refused(reason)) => Ok(ToolOutput::error(reason)),
            Err(ToolFailure::Ended(reason)) => Err(reason),
        }
    }

    /// Drops what a call may have changed, whatever came of it: files by name, or everything.
    fn invalidate(&self, entry: &Entry, call: &ToolUse) {
        match entry.tool.permission() {
            _ if entry.tool.concurrency_safe() => {}
            Some(Permission::Write) => self.cache.wrote(&entry.tool.subjects(&call.input)),
            _ => self.cache.clear(),
        }
    }

    /// Lets a call pass that is well-formed, that rules and mode allow, and that closes no circle, unless a person allows
    /// what they leave to one; what guards files its tool asks then.
    async fn admit(&self, call: &ToolUse, context: &ToolContext) -> Result<&Entry, String> {
        let entry = self.well_formed(call)?;
        let caller = Caller {
            agent: &context.agent,
            tool: entry.tool.name(),
            at: context.called_at,
        };
        let subjects = entry.tool.subjects(&call.input);
        if let Some(permission) = entry.tool.permission() {
            let admitted = self.policy.admit(caller, permission, &subjects);
            admitted.await?;
        }
        if context.closes_circle {
            let subject = match subjects.as_slice() {
                [] => call.input.to_string(),
                subjects => subjects.join(", "),
            };
            self.policy.admit_again(caller, subject).await?;
        }
        Ok(entry)
    }

    fn well_formed(&self, call: &ToolUse) -> Result<&Entry, String> {
        let Some(entry) = self.entry(&call.name) else {
            return Err(self.missing(&call.name));
        };
        if call.malformed {
            return Err(malformed(call));
        }
        let violations = violations(&entry.schema, &call.input);
        if violations.is_empty() {
            Ok(entry)
        } else {
            Err(format!(
                "the arguments of `{}` do not fit: {}",
                entry.tool.name(),
                violations.join("; ")
            ))
        }
    }

    /// Says that there is no such tool, and what there is.
    fn missing(&self, name: &str) -> String {
        let own = without_namespace(name).to_lowercase();
        let where_not = self.mode.filter(|mode| !mode.has(&own));
        let where_not = where_not.map(|mode| format!(" in the mode `{mode}`"));
        format!(
            "there is no tool `{name}`{}; the tools are: {}",
            where_not.unwrap_or_default(),
            self.names().join(", ")
        )
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        let name = name.to_lowercase();
        let exact = self.tools.get(&name);
        let found = exact.or_else(|| self.tools.get(without_namespace(&name)));
        found.filter(|entry| self.is_shown(entry))
    }

    async fn bound(&self, entry: &Entry, output: ToolOutput) -> ToolOutput {
        let Some(text) = truncate(&output.text, entry.tool.keep()) else {
            return output;
        };
        let file = match &self.spill {
            Some(directory) => spill(directory, &output.text).await,
            None => None,
        };
        let metadata = merged(output.metadata.clone(), file);
        ToolOutput {
            text,
            metadata,
            ..output
        }
    }
}

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.tools.keys()).finish()
    }
}

/// Leaves out the namespaces that some models, and the servers of tools, put before a name: `functions.read`,
/// `x.files__read`.
pub(crate) fn without_namespace(name: &str) -> &str {
    let name = name.rsplit("__").next().unwrap_or(name);
    name.rsplit('.').next().unwrap_or(name)
}

/// Says that the arguments of a call are no object.
pub(crate) fn malformed(call: &ToolUse) -> String {
    let shown: String = call
        .input
        .as_str()
        .unwrap_or_default()
        .chars()
        .take(200)
        .collect();
    format!(
        "the arguments of `{}` are not a JSON object; send the whole call again. They began with: {shown}",
        call.name
    )
}

/// Writes the full text to a file of its own; a full disk costs the file, never the call.
async fn spill(directory: &std::path::Path, text: &str) -> Option<PathBuf> {
    let directory = directory.to_owned();
    let text = text.to_owned();
    let written = tokio::task::spawn_blocking(move || -> std::io::Result<PathBuf> {
        std::fs::create_dir_all(&directory)?;
        let file = tempfile::Builder::new()
            .prefix("output-")
            .suffix(".txt")
            .tempfile_in(&directory)?;
        std::fs::write(file.path(), text)?;
        let (_, path) = file.keep().map_err(|error| error.error)?;
        Ok(path)
    })
    .await;
    match written {
        Ok(Ok(path)) => Some(path),
        Ok(Err(error)) => {
            tracing::warn!(%error, "could not keep the full output of a tool");
            None
        }
        Err(_) => None,
    }
}

fn merged(metadata: Value, file: Option<PathBuf>) -> Value {
    let Some(file) = file else { return metadata };
    let path = file.display().to_string();
    match metadata {
        Value::Object(mut object) => {
            object.insert("full_output".to_owned(), Value::String(path));
            Value::Object(object)
        }
        _ => json!({ "full_output": path }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;

    use super::*;
    use crate::tool::Keep;

    struct Echo {
        name: &'static str,
        runs: AtomicU32,
    }

    #[async_trait]
    impl Tool for Echo {
        fn name(&self) -> &str {
            self.name
        }

        fn description(&self) -> &'static str {
            "says it again"
        }

        fn parameters(&self) -> Value {
            json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] })
        }

        fn concurrency_safe(&self) -> bool {
            true
        }

        fn keep(&self) -> Keep {
            Keep::Ends
        }

        async fn execute(
            &self,
            arguments: Value,
            _: &ToolContext,
        ) -> Result<ToolOutput, ToolFailure> {
            self.runs.fetch_add(1, Ordering::Relaxed);
            Ok(ToolOutput::text(
                arguments["text"].as_str().unwrap_or_default(),
            ))
        }
    }

    fn echo(name: &'static str) -> Arc<Echo> {
        Arc::new(Echo {
            name,
            runs: AtomicU32::new(0),
        })
    }

    #[test]
    fn two_tools_of_one_name_are_refused() {
        let twice: [Arc<dyn Tool>; 2] = [echo("Say"), echo("say")];
        assert_eq!(
            Toolbox::new(twice).err(),
            Some(ToolboxError::Duplicate("say".to_owned()))
        );
    }

    #[tokio::test]
    async fn only_a_call_that_fits_reaches_its_tool() {
        let tool = echo("say");
        let toolbox = Toolbox::new([tool.clone() as Arc<dyn Tool>]).unwrap();
        let cases = [
            ("say", r#"{"text":"x"}"#, false, "x"),
            ("SAY", r#"{"text":"y"}"#, false, "y"),
            ("say", r#"{"text":1}"#, true, "`text`"),
            ("say", r"{}", true, "\"text\""),
            ("say", r#"{"text":"#, true, "not a JSON object"),
            ("functions.say", r#"{"text":"z"}"#, false, "z"),
            ("x.srv__Say", r#"{"text":"z"}"#, false, "z"),
            ("say.x", r"{}", true, "the tools are: say"),
            ("shout", r"{}", true, "the tools are: say"),
        ];
        for (name, arguments, is_error, part) in cases {
            let output = toolbox
                .run(
                    &ToolUse::parse("t", name, arguments),
                    &ToolContext::of_test(),
                )
                .await
                .unwrap();
            assert_eq!(output.is_error, is_error, "{name} {arguments}");
            assert!(output.text.contains(part), "{}", output.text);
        }
        assert_eq!(tool.runs.load(Ordering::Relaxed), 4);
    }

    #[tokio::test]
    async fn the_full_text_of_a_cut_output_is_kept_in_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let toolbox = Toolbox::new([echo("say") as Arc<dyn Tool>])
            .unwrap()
            .spill_to(directory.path().to_owned());
        let lines: Vec<String> = (1..=3_000).map(|line| format!("{line}\n")).collect();
        let text = lines.concat();
        let call = ToolUse::parse("t", "say", &json!({ "text": text }).to_string());
        let output = toolbox.run(&call, &ToolContext::of_test()).await.unwrap();
        assert!(output.text.ends_with("\n3000\n") && !output.text.contains("\n1000\n"));
        let path = output.metadata["full_output"].as_str().unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), text);
    }
}
