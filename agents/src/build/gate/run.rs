//! Runs the gate: looks at the difference, then runs every command on a clean checkout of the commit.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use ropewalk_orchestrator::Context;
use ropewalk_schemas::attempt::{CheckRun, Evidence, FailureClass, Verdict};
use ropewalk_schemas::question::{About, Question, QuestionState};
use ropewalk_schemas::task::{Action, Expectation, Task};
use ropewalk_schemas::{AttemptId, BuildId, CommitId, ContentHash, RepoPath};
use ropewalk_store::Query;
use ropewalk_workspace::{ChangeKind, ChangedFile, CleanCheckout, CommandSpec};
use tokio_util::sync::CancellationToken;

use super::judge::{Observed, Ruling, rule};
use super::{counts, scope, stubs, tamper, weakened};
use crate::build::Shop;
use crate::build::decide::answer::{Consent, consent};
use crate::build::ending::bounded;
use crate::build::trouble::Trouble;

/// So much of a command's output is kept as evidence.
const OUTPUT_BYTES: usize = 16 * 1024;
/// The name of a task's own check in the evidence.
const VALIDATION: &str = "validation";

/// A candidate before the gate.
pub(crate) struct Candidate<'a> {
    pub(crate) task: &'a Task,
    pub(crate) attempt: AttemptId,
    pub(crate) commit: &'a CommitId,
    /// What it stands on.
    pub(crate) parent: &'a CommitId,
    /// The files that it may change.
    pub(crate) allowed: &'a [RepoPath],
}

/// What the gate saw.
pub(crate) struct Seen {
    pub(crate) evidence: Evidence,
    /// The actual output behind the findings, for the next attempt.
    pub(crate) error: String,
    /// What a person would have to accept.
    pub(crate) protected: Vec<String>,
    /// The changed files, each with a hash of what it holds now, so that two tries can be told from each other.
    pub(crate) changed: Vec<String>,
}

/// A command to run and what it must show.
pub(crate) struct Check<'a> {
    pub(crate) name: &'a str,
    pub(crate) command: &'a str,
    pub(crate) expected: Option<&'a Expectation>,
    pub(crate) timeout: Duration,
}

/// Checks a candidate; none when it was ended from outside.
pub(crate) async fn candidate(
    shop: &Shop,
    context: &Context,
    candidate: &Candidate<'_>,
    cancel: &CancellationToken,
) -> Result<Option<Seen>, Trouble> {
    let clone = &shop.clone;
    let changed = clone
        .changed_files(candidate.parent.as_str(), candidate.commit.as_str())
        .await?;
    let tree = clone.tree_of(candidate.commit).await?;
    let mut verdict = Findings::default();
    let looked = inspect(shop, context, candidate, &changed, &mut verdict).await?;
    let mut runs = Vec::new();
    if verdict.is_clean() {
        let checks = checks(shop, candidate.task);
        let Some(ran) = run_all(
            shop,
            context,
            candidate,
            &tree,
            &checks,
            cancel,
            &mut verdict,
        )
        .await?
        else {
            return Ok(None);
        };
        runs = ran;
        let shrinking = changed.iter().any(|file| file.kind != ChangeKind::Added);
        if verdict.is_clean() && shrinking {
            let done = compare(
                shop,
                context,
                candidate,
                &checks,
                &runs,
                cancel,
                &mut verdict,
            )
            .await?;
            if !done {
                return Ok(None);
            }
        }
    }
    let evidence = Evidence {
        build: candidate.task.build,
        task: Some(candidate.task.id.clone()),
        attempt: Some(candidate.attempt),
        commit: candidate.commit.clone(),
        tree,
        verdict: verdict.verdict(),
        class: verdict.class,
        findings: verdict.lines.clone(),
        checks: runs,
        at: context.now(),
    };
    Ok(Some(Seen {
        evidence,
        error: verdict.error(),
        protected: looked.protected,
        changed: looked.changed,
    }))
}

/// Collects what does not hold; the first finding gives the class.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) class: Option<FailureClass>,
    pub(crate) lines: Vec<String>,
    held: bool,
    output: String,
}

impl Findings {
    fn add(&mut self, class: FailureClass, line: String) {
        self.class.get_or_insert(class);
        self.lines.push(line);
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.lines.is_empty()
    }

    pub(crate) const fn verdict(&self) -> Verdict {
        match (self.class, self.held) {
            (None, _) => Verdict::Passed,
            (Some(_), true) => Verdict::Held,
            (Some(_), false) => Verdict::Failed,
        }
    }

    pub(crate) fn error(&self) -> String {
        let mut text = self.lines.join("\n");
        if !self.output.trim().is_empty() {
            text.push_str("\n\n");
            text.push_str(self.output.trim());
        }
        text
    }
}

/// What the difference alone shows, beside findings.
#[derive(Default)]
struct Looked {
    /// What a person would have to accept.
    protected: Vec<String>,
    /// The changed files, each with a hash of its content.
    changed: Vec<String>,
}

/// Looks at the difference alone.
async fn inspect(
    shop: &Shop,
    context: &Context,
    candidate: &Candidate<'_>,
    changed: &[ChangedFile],
    findings: &mut Findings,
) -> Result<Looked, Trouble> {
    let verifies = candidate.task.block.action == Action::Verify;
    if changed.is_empty() != verifies {
        let line = if verifies {
            "the task only verifies, but files were changed"
        } else {
            "nothing was changed"
        };
        findings.add(FailureClass::EmptyChange, line.to_owned());
    }
    for file in scope::sort(changed, candidate.allowed).outside {
        let path = &file.path;
        let line = format!("`{path}` was changed, but is not a file of this task");
        findings.add(FailureClass::OutOfScope, line);
    }
    if changed.is_empty() {
        return Ok(Looked::default());
    }
    let lines = inspect_lines(shop, candidate, changed, findings).await?;
    let commands: Vec<&str> = checks(shop, candidate.task)
        .iter()
        .map(|check| check.command)
        .collect();
    let mut protected = tamper::find(changed, &commands, |path| {
        lines.lost.get(path).copied().unwrap_or(true)
    });
    protected.extend(lines.scripts);
    if !protected.is_empty() && has_consent(context, candidate.task, &protected).await? {
        protected.clear();
    }
    for line in &protected {
        findings.add(FailureClass::Tampered, line.clone());
    }
    let changed = lines.contents;
    Ok(Looked { protected, changed })
}

/// What the lines of a difference show beside stubs.
struct Lines {
    /// Whether a file loses lines.
    lost: HashMap<String, bool>,
    /// The changed scripts of manifests.
    scripts: Vec<String>,
    /// Each file with a hash of its content after the change.
    contents: Vec<String>,
}

/// Looks for stubs in the added lines, and at what else the lines show.
async fn inspect_lines(
    shop: &Shop,
    candidate: &Candidate<'_>,
    changed: &[ChangedFile],
    findings: &mut Findings,
) -> Result<Lines, Trouble> {
    let paths: Vec<&str> = changed.iter().map(|file| file.path.as_str()).collect();
    let of = |commit| paths.iter().map(move |path| (commit, *path));
    let places: Vec<(&CommitId, &str)> = of(candidate.parent).chain(of(candidate.commit)).collect();
    let mut before = shop.clone.read_places(&places).await?;
    let after = before.split_off(paths.len());
    let text = |bytes: &Option<Vec<u8>>| {
        String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned()
    };
    let mut lost = HashMap::new();
    let mut scripts = Vec::new();
    let mut contents = Vec::new();
    for ((path, before), after) in paths.iter().zip(&before).zip(&after) {
        let hash = ContentHash::of(after.as_deref().unwrap_or_default());
        contents.push(format!("{path} {hash}"));
        let (before, after) = (text(before), text(after));
        for stub in stubs::find_added(path, &before, &after) {
            let line = format!(
                "`{}` line {} is a stub: {}",
                stub.file, stub.line, stub.text
            );
            findings.add(FailureClass::StubMarker, line);
        }
        scripts.extend(tamper::changed_scripts(path, &before, &after));
        lost.insert((*path).to_owned(), tamper::loses_lines(&before, &after));
    }
    Ok(Lines {
        lost,
        scripts,
        contents,
    })
}

/// Looks for a person's yes to exactly these changes.
async fn has_consent(
    context: &Context,
    task: &Task,
    protected: &[String],
) -> Result<bool, Trouble> {
    let query = Query::new()
        .equal("build", task.build.to_string())
        .equal("state", QuestionState::Answered.as_str())
        .equal("trigger", ropewalk_config::Trigger::ProtectedFiles.as_str());
    let asked = context.store.list::<Question>(query).await?;
    Ok(asked.iter().any(|question| {
        let about = matches!(&question.about, About::Task { task: about, .. } if *about == task.id);
        let yes = question
            .answer
            .as_ref()
            .is_some_and(|answer| consent(&answer.text) == Consent::Given);
        about && yes && protected.iter().all(|line| question.text.contains(line))
    }))
}

/// Lists the commands of a task's gate, its own first; a command is run once.
fn checks<'a>(shop: &'a Shop, task: &'a Task) -> Vec<Check<'a>> {
    let validation = &task.block.validation;
    let mut checks = vec![Check {
        name: VALIDATION,
        command: &validation.command,
        expected: Some(&validation.expected),
        timeout: shop.options.validation_timeout,
    }];
    checks.extend(shop.options.gate.iter().map(|check| Check {
        name: &check.name,
        command: &check.command,
        expected: None,
        timeout: check.timeout,
    }));
    checks
}

/// Runs the commands until one does not hold; none when it was ended from outside.
async fn run_all(
    shop: &Shop,
    context: &Context,
    candidate: &Candidate<'_>,
    tree: &str,
    checks: &[Check<'_>],
    cancel: &CancellationToken,
    findings: &mut Findings,
) -> Result<Option<Vec<CheckRun>>, Trouble> {
    let known = passed_before(context, candidate.task.build, tree).await?;
    let reusable = |check: &Check<'_>| {
        known
            .get(check.command)
            .filter(|run| still_holds(run, check))
            .cloned()
    };
    let mut runs = Vec::new();
    let mut checkout = None;
    for check in checks {
        if let Some(run) = reusable(check) {
            runs.push(CheckRun {
                name: check.name.to_owned(),
                ..run
            });
            continue;
        }
        if checkout.is_none() {
            checkout = Some(Turn::take(shop, candidate.commit).await?);
        }
        let Some(turn) = &checkout else { continue };
        let target = turn.clean.target_directory().to_owned();
        let Some(run) = execute(shop, &turn.clean, &target, check, cancel, findings).await? else {
            return Ok(None);
        };
        runs.push(run);
        if !findings.is_clean() {
            break;
        }
    }
    Ok(Some(runs))
}

/// A clean checkout, and the turn to use the machine for it.
pub(crate) struct Turn<'a> {
    pub(crate) clean: CleanCheckout,
    _permit: Option<tokio::sync::SemaphorePermit<'a>>,
}

impl<'a> Turn<'a> {
    /// Waits for a turn and checks `commit` out.
    pub(crate) async fn take(shop: &'a Shop, commit: &CommitId) -> Result<Self, Trouble> {
        // The semaphore is never closed.
        let permit = shop.gate_turns.acquire().await.ok();
        let clean = shop.gates.acquire(commit).await?;
        Ok(Self {
            clean,
            _permit: permit,
        })
    }
}

/// Returns the runs of this very tree that held, by command.
async fn passed_before(
    context: &Context,
    build: BuildId,
    tree: &str,
) -> Result<BTreeMap<String, CheckRun>, Trouble> {
    let query = Query::new()
        .equal("build", build.to_string())
        .equal("tree", tree)
        .equal("verdict", "passed");
    let evidence = context.store.list::<Evidence>(query).await?;
    Ok(evidence
        .into_iter()
        .flat_map(|evidence| evidence.record.checks)
        .map(|run| (run.command.clone(), run))
        .collect())
}

fn still_holds(run: &CheckRun, check: &Check<'_>) -> bool {
    let observed = Observed {
        status: match run.exit_code {
            Some(code) => ropewalk_workspace::CommandStatus::Exited(code),
            None => return false,
        },
        program_missing: false,
        output: &run.output,
        tests: run.tests.as_ref(),
    };
    rule(check.name, observed, check.expected) == Ruling::Holds
}

/// Runs one command; none when it was ended from outside.
pub(crate) async fn execute(
    shop: &Shop,
    clean: &CleanCheckout,
    target: &Path,
    check: &Check<'_>,
    cancel: &CancellationToken,
    findings: &mut Findings,
) -> Result<Option<CheckRun>, Trouble> {
    let mut spec = CommandSpec::shell(check.command, clean.root()).with_timeout(check.timeout);
    spec.environment = clean.variables();
    for (name, value) in quiet_variables() {
        spec = spec.with_variable(name, value);
    }
    spec = spec.with_variable("CARGO_TARGET_DIR", target);
    let output = shop.runner.run(&spec, cancel).await?;
    // What a test runner says last matters most, and it says it on standard output.
    let text = format!("{}\n{}", output.stderr.trim_end(), output.stdout.trim_end());
    let tests = counts::count(&text);
    let observed = Observed {
        status: output.status,
        program_missing: output.program_missing(),
        output: &text,
        tests: tests.as_ref(),
    };
    match rule(check.name, observed, check.expected) {
        Ruling::Holds => {}
        Ruling::Cancelled => return Ok(None),
        Ruling::Fails { class, finding } => {
            findings.add(class, format!("{finding}: {}", check.command));
            findings.output.clone_from(&text);
        }
        Ruling::Held { finding } => {
            findings.held = true;
            findings.add(FailureClass::ToolMissing, finding);
        }
    }
    Ok(Some(CheckRun {
        name: check.name.to_owned(),
        command: check.command.to_owned(),
        exit_code: match output.status {
            ropewalk_workspace::CommandStatus::Exited(code) => Some(code),
            _ => None,
        },
        duration_ms: u64::try_from(output.duration.as_millis()).unwrap_or(u64::MAX),
        tests,
        output: bounded(&text, OUTPUT_BYTES),
    }))
}

/// Variables that keep tools from asking, colouring and leaving caches behind.
pub(crate) const fn quiet_variables() -> [(&'static str, &'static str); 5] {
    [
        ("CI", "true"),
        ("NO_COLOR", "1"),
        ("CARGO_TERM_COLOR", "never"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("npm_config_update_notifier", "false"),
    ]
}

/// Compares the tests with those of the parent; false when it was ended from outside.
async fn compare(
    shop: &Shop,
    context: &Context,
    candidate: &Candidate<'_>,
    checks: &[Check<'_>],
    runs: &[CheckRun],
    cancel: &CancellationToken,
    findings: &mut Findings,
) -> Result<bool, Trouble> {
    let tree = shop.clone.tree_of(candidate.parent).await?;
    let known = passed_before(context, candidate.task.build, &tree).await?;
    let mut checkout = None;
    for (check, run) in checks.iter().zip(runs) {
        if run.tests.is_none() && !looks_like_tests(check.command) {
            continue;
        }
        let kept = known.get(check.command);
        let cached = kept
            .map(|run| run.tests.clone().unwrap_or_default())
            .or_else(|| shop.parent_tests(&tree, check.command));
        let before = if let Some(tests) = cached {
            tests
        } else {
            if checkout.is_none() {
                checkout = Some(Turn::take(shop, candidate.parent).await?);
            }
            let Some(turn) = &checkout else { continue };
            let target = turn.clean.target_directory().to_owned();
            // How the parent fares is no finding about the candidate.
            let mut ignored = Findings::default();
            let ran = execute(shop, &turn.clean, &target, check, cancel, &mut ignored).await?;
            let Some(ran) = ran else { return Ok(false) };
            let tests = ran.tests.unwrap_or_default();
            shop.keep_parent_tests(&tree, check.command, tests.clone());
            tests
        };
        let now = run.tests.clone().unwrap_or_default();
        for line in weakened::find(&before, &now) {
            findings.add(FailureClass::WeakenedTest, line);
        }
    }
    Ok(true)
}

fn looks_like_tests(command: &str) -> bool {
    ["test", "jest", "spec", "check"]
        .iter()
        .any(|word| command.contains(word))
}
