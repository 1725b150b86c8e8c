//! Judges what a model wants to do with a tool: rules first, then the mode; what is left to a person asks.
//!
//! Rules stand beside what bounds a work anyway: a file that is not of a task is not written whatever they allow, and
//! what a command does the sandbox bounds. They may be changed while the program runs: a turn keeps those that it began
//! with, the next one has the others.

pub mod shell;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use ropewalk_config::settings::{Permission, PermissionMode, PolicySettings, Rule, RuleAction};
use ropewalk_schemas::RepoPath;
use ropewalk_schemas::repo_path::joined;

use crate::current_value::CurrentValue;

use shell::{RedirectTarget, ShellCommand};

/// Why a line cannot be judged that writes a file of no known name.
const UNNAMED: &str = "which file a redirection of it writes cannot be told before it runs; name the file itself in the line";

/// Decides in the place of a person about what a rule or the mode leaves to one.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Answers; nothing happens before.
    async fn decide(&self, request: &ApprovalRequest) -> Approval;
}

/// Is what a person is asked to allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRequest {
    /// The tool.
    pub tool: String,
    /// What it wants to do: a path, or a shell line as it was written.
    pub subject: String,
    /// What asks.
    pub asked_by: AskedBy,
    /// Who wants it: the agent that the call is of.
    pub agent: String,
    /// When it was called: what people said later is for later calls, so that a replay comes to the same.
    pub at: DateTime<Utc>,
}

/// Is what leaves something to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskedBy {
    /// A rule, as it is written.
    Rule(String),
    /// The mode of permissions, where no rule says anything.
    Mode,
    /// The guard against models that go round in circles; no rule allows what it stops.
    Repetition,
    /// A shell line that no rule can judge, since it cannot be read; no rule allows it, either.
    Unreadable,
}

impl AskedBy {
    /// Says whether a person can allow it once and for all, and not just this call.
    pub const fn may_be_ruled(&self) -> bool {
        matches!(self, Self::Rule(_) | Self::Mode)
    }
}

impl fmt::Display for AskedBy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(formatter, "the rule {rule}"),
            Self::Mode => formatter.write_str("the mode `edit`"),
            Self::Repetition => formatter.write_str("the guard against circles"),
            Self::Unreadable => formatter.write_str("what cannot be judged"),
        }
    }
}

/// Is the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// It is done, this once.
    Granted,
    /// It is not done; the model reads why.
    Denied(String),
}

/// Is who calls what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller<'a> {
    /// The agent.
    pub(crate) agent: &'a str,
    /// The tool.
    pub(crate) tool: &'a str,
    /// When.
    pub(crate) at: DateTime<Utc>,
}

/// Judges the calls of one work. Cheap to clone; its clones keep to the same turn.
#[derive(Clone)]
pub struct Policy {
    /// As they are now.
    project: CurrentValue<PolicySettings>,
    /// As they were when the turn began.
    settings: CurrentValue<PolicySettings>,
    approver: Option<Arc<dyn Approver>>,
    /// Where the repository lies, each way to say it; empty where that is not known.
    roots: Arc<[PathBuf]>,
}

/// Is what rules and mode say of one thing, from the loosest to the tightest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// A rule allows it.
    Allowed,
    /// No rule says anything.
    Unsaid,
    /// It is left to a person, because of this rule.
    Asked(String),
    /// It is refused, because of this.
    Denied(String),
}

impl Default for Policy {
    /// Lets everything be done that the work bounds.
    fn default() -> Self {
        Self::new(PolicySettings::default())
    }
}

/// What was judged of a call.
struct JudgedPart<'a> {
    /// What rules are about: a path, or a command as the shell reads it, without its quotes and what it is fed.
    part: &'a str,
    /// What a person sees and says yes to: the line as it was written, which alone says all that it does.
    whole: &'a str,
    verdict: Verdict,
}

impl Policy {
    /// Judges by `settings`; whatever is left to a person is refused.
    pub fn new(settings: PolicySettings) -> Self {
        Self::following(CurrentValue::new(settings))
    }

    /// Judges by what `project` holds when a turn begins; whatever is left to a person is refused.
    pub fn following(project: CurrentValue<PolicySettings>) -> Self {
        Self {
            settings: CurrentValue::new(project.now()),
            project,
            approver: None,
            roots: Arc::default(),
        }
    }

    /// Takes the rules as they are now for the turn that begins; says whether they are others.
    pub(crate) fn begin_turn(&self) -> bool {
        let now = self.project.now();
        let is_other = !Arc::ptr_eq(&now, &self.settings.now());
        if is_other {
            self.settings.replace(now);
        }
        is_other
    }

    /// Leaves to `approver` what is left to a person.
    #[must_use]
    pub fn approved_by(self, approver: Arc<dyn Approver>) -> Self {
        Self {
            approver: Some(approver),
            ..self
        }
    }

    /// Judges what commands write below `root`, the repository, also where they name it from elsewhere.
    #[must_use]
    pub(crate) fn rooted_at(self, root: &Path) -> Self {
        let real = root.canonicalize().ok().filter(|real| real != root);
        let roots = std::iter::once(root.to_owned()).chain(real).collect();
        Self { roots, ..self }
    }

    /// Says whether nothing of a kind is ever done, so that its tools need not be shown.
    pub fn forbids(&self, permission: Permission) -> bool {
        let settings = self.settings.now();
        is_barred(&settings, permission)
            || scopes(&settings).any(|rules| {
                let last = rules.filter(|rule| rule.concerns(permission)).last();
                last.is_some_and(|rule| rule.action() == RuleAction::Deny && rule.is_universal())
            })
    }

    /// Says whether a file may be shown among others, where nobody can be asked about each.
    pub fn shows(&self, path: &str) -> bool {
        let verdict = self.said(Permission::Read, |rule| rule.matches_path(path));
        verdict <= Verdict::Unsaid
    }

    /// Lets a call of `caller` pass that does this to `subjects`, paths or shell lines; else says why not.
    pub(crate) async fn admit(
        &self,
        caller: Caller<'_>,
        permission: Permission,
        subjects: &[String],
    ) -> Result<(), String> {
        if permission != Permission::Bash {
            return self.admit_paths(caller, permission, subjects).await;
        }
        for line in subjects {
            self.admit_line(caller, line).await?;
        }
        Ok(())
    }

    /// Lets a call of `caller` pass that closes a circle, where a person allows it; else says why not. No rule does.
    pub(crate) async fn admit_again(
        &self,
        caller: Caller<'_>,
        subject: String,
    ) -> Result<(), String> {
        let denied = "not run: you go round in circles, and only a person can allow a third round";
        self.ask(caller, (subject, AskedBy::Repetition), denied)
            .await
    }

    async fn admit_paths(
        &self,
        caller: Caller<'_>,
        permission: Permission,
        paths: &[String],
    ) -> Result<(), String> {
        for path in paths {
            // As the tool reads it; what is no path of the repository the tool refuses itself.
            let Ok(path) = RepoPath::parse(path) else {
                continue;
            };
            let path = path.as_str();
            self.admit_path(caller, permission, (path, path)).await?;
        }
        Ok(())
    }

    /// Lets pass what is done to `path`; `whole` is the line that does so, if it is one.
    async fn admit_path(
        &self,
        caller: Caller<'_>,
        permission: Permission,
        (path, whole): (&str, &str),
    ) -> Result<(), String> {
        let judged = JudgedPart {
            part: path,
            whole,
            verdict: self.said(permission, |rule| rule.matches_path(path)),
        };
        self.carry(caller, permission, judged).await
    }

    async fn admit_line(&self, caller: Caller<'_>, line: &str) -> Result<(), String> {
        let read = match shell::read(line) {
            Ok(read) => read,
            Err(reason) => return self.admit_unread(caller, line, &reason.to_string()).await,
        };
        for command in &read.commands {
            let judged = JudgedPart {
                part: &command.words,
                whole: line,
                verdict: self.of_command(command),
            };
            self.carry(caller, Permission::Bash, judged).await?;
        }
        for file in &read.writes {
            self.admit_written(caller, line, file).await?;
        }
        Ok(())
    }

    /// Leaves a line to a person that rules cannot judge, for this reason.
    async fn admit_unread(
        &self,
        caller: Caller<'_>,
        line: &str,
        reason: &str,
    ) -> Result<(), String> {
        if is_barred(&self.settings.now(), Permission::Bash) {
            return Err("refused: in the mode `plan` nothing is run".to_owned());
        }
        // Mostly it can be written so that rules can judge it, and then nobody has to be asked.
        let denied = format!(
            "not run: the rules cannot judge this line: {reason}. Where no rewriting helps"
        );
        let subject = (line.to_owned(), AskedBy::Unreadable);
        self.ask(caller, subject, &denied).await
    }

    /// Lets a line pass that writes `file` by a redirection.
    async fn admit_written(
        &self,
        caller: Caller<'_>,
        line: &str,
        file: &RedirectTarget,
    ) -> Result<(), String> {
        let write = Permission::Write;
        match file {
            RedirectTarget::At(path) => match self.in_repository(path) {
                Some(path) => self.admit_path(caller, write, (path.as_str(), line)).await,
                // What is written elsewhere the sandbox bounds.
                None => Ok(()),
            },
            RedirectTarget::Ending(end) if self.may_tighten(end) => {
                self.admit_unread(caller, line, UNNAMED).await
            }
            RedirectTarget::Ending(end) => {
                let judged = JudgedPart {
                    part: end,
                    whole: line,
                    verdict: Verdict::Unsaid,
                };
                self.carry(caller, write, judged).await
            }
        }
    }

    /// Returns what `path`, as a command names it, is called in the repository; none where it lies elsewhere.
    fn in_repository(&self, path: &str) -> Option<String> {
        let below = |root: &PathBuf| {
            let root = root.to_str()?.trim_matches('/');
            let whole = match path.strip_prefix('/') {
                Some(absolute) => joined("", absolute.trim_start_matches('/')),
                None => joined(root, path),
            };
            let inside = whole?.strip_prefix(root)?.strip_prefix('/')?.to_owned();
            Some(inside)
        };
        let inside = joined("", path).or_else(|| self.roots.iter().find_map(below))?;
        let named = RepoPath::parse(&inside).map_or(inside, String::from);
        Some(named).filter(|path| !path.is_empty())
    }

    /// Says whether a rule may keep a file from being written whose path ends so.
    fn may_tighten(&self, end: &str) -> bool {
        let settings = self.settings.now();
        scopes(&settings).any(|rules| {
            let rules: Vec<&Rule> = rules
                .filter(|rule| rule.concerns(Permission::Write))
                .collect();
            let allows_all =
                |rule: &&Rule| rule.action() == RuleAction::Allow && rule.is_universal();
            let counting = rules.into_iter().rev();
            let mut counting = counting.take_while(|rule| !allows_all(rule));
            counting
                .any(|rule| rule.action() != RuleAction::Allow && rule.may_match_path_ending(end))
        })
    }

    /// Judges a command by its words, and more tightly by what else it may be.
    fn of_command(&self, command: &ShellCommand) -> Verdict {
        let of = |words: &str| self.said(Permission::Bash, |rule| rule.matches_command(words));
        let also = command.also.iter().map(|words| of(words));
        let tighter = also.filter(|verdict| *verdict > Verdict::Unsaid).max();
        tighter.into_iter().fold(of(&command.words), Verdict::max)
    }

    /// Returns what the rules say: in each scope the last that matches; a deny of any stands, else the latest scope that
    /// says something counts.
    fn said(&self, permission: Permission, matches: impl Fn(&Rule) -> bool) -> Verdict {
        let mut said = Verdict::Unsaid;
        for rules in scopes(&self.settings.now()) {
            let about = rules.filter(|rule| rule.concerns(permission) && matches(rule));
            let Some(rule) = about.last() else {
                continue;
            };
            match rule.action() {
                RuleAction::Deny => return Verdict::Denied(format!("the rule {rule}")),
                RuleAction::Ask => said = Verdict::Asked(rule.to_string()),
                RuleAction::Allow => said = Verdict::Allowed,
            }
        }
        said
    }

    async fn carry(
        &self,
        caller: Caller<'_>,
        permission: Permission,
        judged: JudgedPart<'_>,
    ) -> Result<(), String> {
        let part = judged.part;
        let settings = self.settings.now();
        let mode = settings.mode;
        if is_barred(&settings, permission) {
            return Err(format!(
                "refused: in the mode `plan` nothing is changed, so not `{part}`"
            ));
        }
        let asked_by = match judged.verdict {
            Verdict::Denied(why) => return Err(format!("refused: {why} forbids `{part}`")),
            Verdict::Asked(rule) => AskedBy::Rule(rule),
            Verdict::Unsaid if mode == PermissionMode::Edit && permission == Permission::Bash => {
                AskedBy::Mode
            }
            Verdict::Unsaid | Verdict::Allowed => return Ok(()),
        };
        let denied = format!("refused: {asked_by} leaves `{part}` to a person");
        self.ask(caller, (judged.whole.to_owned(), asked_by), &denied)
            .await
    }

    /// Asks who answers for people; where nobody does, or says no, it is `denied`.
    async fn ask(
        &self,
        caller: Caller<'_>,
        (subject, asked_by): (String, AskedBy),
        denied: &str,
    ) -> Result<(), String> {
        let Some(approver) = &self.approver else {
            return Err(format!("{denied}: nobody is there; do without it"));
        };
        let request = ApprovalRequest {
            tool: caller.tool.to_owned(),
            subject,
            asked_by,
            agent: caller.agent.to_owned(),
            at: caller.at,
        };
        match approver.decide(&request).await {
            Approval::Granted => Ok(()),
            Approval::Denied(why) => Err(format!("{denied}: {why}")),
        }
    }
}

/// Says whether the mode forbids a kind, whatever rules allow.
fn is_barred(settings: &PolicySettings, permission: Permission) -> bool {
    settings.mode == PermissionMode::Plan
        && matches!(permission, Permission::Write | Permission::Bash)
}

/// Returns the rules of each scope, from the first that counts to the last.
fn scopes(settings: &PolicySettings) -> impl Iterator<Item = impl Iterator<Item = &Rule>> {
    let rules = &settings.rules;
    let none: &[Rule] = &[];
    [
        (rules.shipped.as_slice(), rules.user.as_slice()),
        (none, rules.project.as_slice()),
        (none, rules.flags.as_slice()),
        (none, rules.managed.as_slice()),
    ]
    .into_iter()
    .map(|(first, then)| first.iter().chain(then))
}

impl fmt::Debug for Policy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(formatter)
    }
}

#[cfg(test)]
mod tests;
