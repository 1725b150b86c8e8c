//! Asks for more files than the task declares, in the midst of an attempt (design §9).

use std::sync::Arc;

use async_trait::async_trait;
use ropewalk_runtime::in_hand;
use ropewalk_schemas::RepoPath;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::file_grants::{FileGrants, GrantReply, is_test};
use super::workbench::Workbench;
use super::{arguments, path, plain_schema_of};
use crate::tool::{Tool, ToolContext, ToolFailure, ToolOutput};

/// So many files may be granted to one attempt.
const MOST: usize = 3;
/// What a model does that cannot do its task without a file that it does not get.
const INSTEAD: &str = "do the task without. Where that cannot be done, undo what is half done and hand in with `blocked`, \
                       saying which file has to change and how: a person decides then";

/// What holds of tests that an attempt got.
const OF_TESTS: &str = ". Change a test only where the task makes what it says untrue: where an existing one loses or \
                        changes anything, a person is asked with the difference, once all else holds";

/// Asks for more files.
pub(super) struct RequestFile {
    workbench: Workbench,
    grants: Arc<dyn FileGrants>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[schemars(length(min = 1, max = MOST))]
    files: Vec<String>,
    /// why the task needs them
    #[schemars(length(min = 1))]
    reason: String,
}

impl RequestFile {
    pub(super) fn new(workbench: Workbench, grants: Arc<dyn FileGrants>) -> Self {
        Self { workbench, grants }
    }

    /// Refuses what no holder needs to be asked about.
    fn admit(&self, files: &[RepoPath]) -> Result<(), ToolFailure> {
        let granted = self.workbench.granted().len();
        if granted + files.len() > MOST {
            return Err(ToolFailure::refused(format!(
                "an attempt may ask for {MOST} files, and {granted} were granted; {INSTEAD}"
            )));
        }
        let options = self.workbench.options();
        for file in files {
            if let Some(real) = self.workbench.files().behind_links(file) {
                return Err(ToolFailure::refused(format!(
                    "`{file}` is a link to `{real}`, or lies behind one; ask for `{real}`"
                )));
            }
            let plan = options.plan_folder.as_ref();
            if plan.is_some_and(|folder| file.is_within(folder)) {
                return Err(ToolFailure::refused(format!(
                    "`{file}` belongs to the plan itself, which a person approved and the build alone writes; {INSTEAD}"
                )));
            }
            let gate = &options.gate_files;
            if gate.iter().any(|kept| kept.key() == file.key()) {
                return Err(ToolFailure::refused(format!(
                    "`{file}` belongs to the checks that judge this task; leave it as it is, and {INSTEAD}"
                )));
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Tool for RequestFile {
    fn name(&self) -> &'static str {
        "request_file"
    }

    fn description(&self) -> &'static str {
        "Asks for the right to write files that the task does not declare, at most three in all. Others may hold \
         them, so ask only for what the task cannot be done without."
    }

    fn parameters(&self) -> Value {
        plain_schema_of::<Arguments>()
    }

    fn concurrency_safe(&self) -> bool {
        false
    }

    fn outlasts(&self) -> bool {
        true
    }

    async fn execute(&self, value: Value, _: &ToolContext) -> Result<ToolOutput, ToolFailure> {
        let wanted: Arguments = arguments(value)?;
        let mut files = Vec::new();
        for text in &wanted.files {
            let file = path(text)?;
            if !self.workbench.may_write(&file) && !files.contains(&file) {
                files.push(file);
            }
        }
        if files.is_empty() {
            return Ok(ToolOutput::text("you may write these files already"));
        }
        self.admit(&files)?;
        let answer = self.grants.request(&files, &wanted.reason);
        match in_hand::aside(answer).await {
            GrantReply::Granted { moved } => {
                self.workbench.grant(&files);
                let mut told = if moved {
                    self.workbench.forget();
                    "granted. Others changed these files since you began: your checkout stands on what they landed \
                     now, your other work with it. Read a file before you change it, also one that you know"
                } else {
                    "granted; read a file before you change it"
                }
                .to_owned();
                if files.iter().any(|file| is_test(file.as_str())) {
                    told.push_str(OF_TESTS);
                }
                Ok(ToolOutput::text(told).with_metadata(json!({ "granted": files })))
            }
            GrantReply::Denied(reason) => {
                let told = format!("not granted: {reason}; {INSTEAD}");
                Err(ToolFailure::refused(told))
            }
            GrantReply::Ended(reason) => Err(ToolFailure::Ended(reason)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::tools::workbench::tests::Bench;

    /// Answers every request the same and remembers what it was asked for.
    struct Holder {
        reply: GrantReply,
        asked: Mutex<Vec<String>>,
    }

    #[async_trait]
    impl FileGrants for Holder {
        async fn request(&self, files: &[RepoPath], _: &str) -> GrantReply {
            let mut asked = self.asked.lock().unwrap();
            asked.extend(files.iter().map(ToString::to_string));
            self.reply.clone()
        }
    }

    fn setup(reply: GrantReply) -> (Bench, RequestFile, Arc<Holder>) {
        let holder = Arc::new(Holder {
            reply,
            asked: Mutex::new(Vec::new()),
        });
        let bench = Bench::with(&[], &["mine"], Some(holder.clone()));
        let tool = RequestFile::new(bench.workbench.clone(), holder.clone());
        (bench, tool, holder)
    }

    fn call(files: &[&str]) -> Value {
        json!({ "files": files, "reason": "it imports them" })
    }

    #[tokio::test]
    async fn a_granted_file_may_be_written_and_three_are_the_most() {
        let (bench, tool, holder) = setup(GrantReply::Granted { moved: false });
        assert!(!bench.run(&tool, call(&["mine"])).await.is_error);
        assert!(
            !bench
                .run(&tool, call(&["a", "./a", "mine", "b"]))
                .await
                .is_error
        );
        assert!(bench.run(&tool, call(&["c", "d"])).await.is_error);
        assert!(!bench.run(&tool, call(&["c"])).await.is_error);
        assert_eq!(*holder.asked.lock().unwrap(), ["a", "b", "c"]);
        let granted: Vec<String> = bench
            .workbench
            .granted()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(granted, ["a", "b", "c"]);
        let write = crate::tools::write::Write::new(bench.workbench.clone());
        let output = bench
            .run(&write, json!({ "path": "c", "content": "x" }))
            .await;
        assert!(!output.is_error, "{}", output.text);
    }

    #[tokio::test]
    async fn the_gate_and_the_plan_are_never_asked_for() {
        let (bench, tool, holder) = setup(GrantReply::Granted { moved: false });
        for file in [
            "check.sh",
            "../x",
            "ideas/walks/build/spec.md",
            "Ideas/Walks/planning/brief.md",
            "ideas/walks",
        ] {
            let refused = bench.run(&tool, call(&[file])).await;
            assert!(refused.is_error, "{file}");
        }
        assert!(holder.asked.lock().unwrap().is_empty());
        let others = ["ideas/walks.md", "ideas/walks-2/a.md"];
        assert!(!bench.run(&tool, call(&others)).await.is_error);
    }

    #[tokio::test]
    async fn who_gets_a_test_is_told_what_holds_of_it() {
        for (file, is_told) in [
            ("tests/a.rs", true),
            ("src/a.test.ts", true),
            ("test_a.py", true),
            ("a_test.go", true),
            ("src/contest.rs", false),
            ("src/latest.rs", false),
            ("attestation/x.rs", false),
        ] {
            let (bench, tool, _) = setup(GrantReply::Granted { moved: false });
            let granted = bench.run(&tool, call(&[file])).await;
            assert!(!granted.is_error, "{file}: {}", granted.text);
            assert_eq!(
                granted.text.contains("with the difference"),
                is_told,
                "{file}"
            );
        }
    }

    #[tokio::test]
    async fn a_link_is_not_granted_but_what_it_leads_to() {
        let (bench, tool, holder) = setup(GrantReply::Granted { moved: false });
        let slot = bench.directory.path().join("slot");
        std::os::unix::fs::symlink("real", slot.join("link")).unwrap();
        let refused = bench.run(&tool, call(&["link"])).await;
        assert!(refused.is_error && refused.text.contains("ask for `real`"));
        assert!(!bench.run(&tool, call(&["real"])).await.is_error);
        assert_eq!(*holder.asked.lock().unwrap(), ["real"]);
    }

    #[tokio::test]
    async fn what_was_read_before_the_tree_went_on_has_to_be_read_again() {
        let (bench, tool, _) = setup(GrantReply::Granted { moved: true });
        let write = crate::tools::write::Write::new(bench.workbench.clone());
        let content = json!({ "path": "mine", "content": "x" });
        assert!(!bench.run(&write, content.clone()).await.is_error);
        assert!(!bench.run(&write, content.clone()).await.is_error);
        assert!(!bench.run(&tool, call(&["a"])).await.is_error);
        let output = bench.run(&write, content).await;
        assert!(output.is_error && output.text.contains("read it first"));
    }

    #[tokio::test]
    async fn a_denial_is_told_and_an_end_ends_the_attempt() {
        let (bench, tool, _) = setup(GrantReply::Denied("its owner is busy".to_owned()));
        let denied = bench.run(&tool, call(&["a"])).await;
        assert!(denied.is_error && denied.text.contains("its owner is busy"));
        assert!(bench.workbench.granted().is_empty());
        let (_bench, tool, _) = setup(GrantReply::Ended("it gave way".to_owned()));
        let context = ToolContext::of_test();
        let ended = tool.execute(call(&["a"]), &context).await;
        assert!(matches!(ended, Err(ToolFailure::Ended(reason)) if reason == "it gave way"));
    }
}
