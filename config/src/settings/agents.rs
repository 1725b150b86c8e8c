//! Defines what the agents, the gate and the questions keep to.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};
use ropewalk_schemas::GlobPattern;
use ropewalk_schemas::attempt::{CheckKind, Level};
use serde::{Deserialize, Serialize};

/// The specification agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpecificationSettings {
    /// Whether a complete ideation asks for a specification by itself.
    pub auto_generate: bool,
    /// How often the model may mend a specification that fails its validation.
    pub repairs: u32,
}

/// The build agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildSettings {
    /// How many loops one process runs.
    pub loops: u32,
    /// More failed tasks stop a build.
    pub max_failed: u32,
    /// A failed task of these phases stops a build.
    pub critical_phases: Vec<String>,
    /// The working time of a build.
    pub time_limit_minutes: u32,
    /// Counted tries of a task.
    pub tries: u32,
    /// A shell line that makes each fresh checkout ready, for attempts and for the gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// Who may install the packages that a task misses; nobody installs any where the list is empty.
    pub package_managers: Vec<PackageManager>,
    /// Dependency installs of a task.
    pub installs: u32,
    /// Rebases of a task.
    pub rebases: u32,
    /// How long a lease lives without renewal.
    pub lease_seconds: u32,
    /// Whether a new wait is checked for a cycle of waits at once; else the monitor's sweep finds it.
    #[serde(alias = "check_rings")]
    pub check_cycles: bool,
    /// Model calls in one attempt.
    pub turns: u32,
    /// Whether what is landed becomes one commit of the branch, unless a person says otherwise.
    pub squash: bool,
    /// Whether a landing leaves the folder of the idea out.
    pub without_ideas: bool,
}

/// A package manager that a build may run, by command lines that no model writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PackageManager {
    /// For `package.json`.
    Npm,
    /// For `requirements.txt`.
    Pip,
}

impl PackageManager {
    /// Returns the written form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pip => "pip",
        }
    }
}

/// What every candidate must pass beside its own validation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateSettings {
    /// The time of a command that names neither another nor a level.
    pub timeout_seconds: u32,
    /// How deep the gate of a task looks.
    pub task_level: Level,
    /// How deep the check of a whole build looks.
    pub build_level: Level,
    /// Tests that cover less than this are asked about, in percent.
    pub coverage_percent: u32,
    /// The time that all commands of a level may take together.
    pub level_seconds: LevelSeconds,
    /// Globs of files that nobody changes unasked, whatever a task declares.
    pub protected: Vec<GlobPattern>,
    /// How the tests of the project say how they went, where no known runner does.
    pub counts: CountPatterns,
    /// The commands, in order.
    pub commands: Vec<GateCommand>,
}

/// Regular expressions over the output of a check; the first group is the number, and without a group each match counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountPatterns {
    /// Finds passed tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<String>,
    /// Finds failed tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Finds ignored tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<String>,
}

/// A pattern is no longer than this.
const PATTERN_BYTES: usize = 500;
/// The most memory of a compiled pattern.
const COMPILED_BYTES: usize = 1 << 20;

impl CountPatterns {
    /// Compiles a pattern, in which `^` and `$` are the ends of a line.
    pub fn compile(text: &str) -> Result<Regex, String> {
        if text.is_empty() || text.len() > PATTERN_BYTES {
            return Err(format!(
                "must be a regular expression of 1 to {PATTERN_BYTES} bytes"
            ));
        }
        RegexBuilder::new(text)
            .multi_line(true)
            .size_limit(COMPILED_BYTES)
            .nest_limit(32)
            .build()
            .map_err(|error| {
                let reason = error.to_string();
                let last = reason.lines().last().unwrap_or_default().trim();
                format!("is no regular expression: {last}")
            })
    }

    /// Lists the patterns with their keys.
    pub fn entries(&self) -> [(&'static str, Option<&str>); 3] {
        [
            ("passed", self.passed.as_deref()),
            ("failed", self.failed.as_deref()),
            ("ignored", self.ignored.as_deref()),
        ]
    }
}

impl GateSettings {
    /// Returns the time that `command` may take, in seconds.
    pub fn seconds_for(&self, command: &GateCommand) -> u32 {
        let by_level = command.level.and_then(|level| self.level_seconds.of(level));
        command
            .timeout_seconds
            .or(by_level)
            .unwrap_or(self.timeout_seconds)
    }
}

/// Seconds by level.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LevelSeconds(pub BTreeMap<Level, u32>);

impl LevelSeconds {
    /// Returns the seconds of `level`; the shipped defaults name every level.
    pub fn of(&self, level: Level) -> Option<u32> {
        self.0.get(&level).copied()
    }
}

/// A command of the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateCommand {
    /// Names it in the evidence.
    pub name: String,
    /// A shell line, run in a clean checkout.
    pub command: String,
    /// The level it belongs to; it runs at this level and deeper ones, and at every level when none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// What it looks for, where that decides what people are asked about its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<CheckKind>,
    /// How long it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
}

/// The validation of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidationSettings {
    /// How long the command may take.
    pub timeout_seconds: u32,
}

/// When questions remind, default and vanish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionSettings {
    /// A clarifying question takes its default after this.
    pub clarifying_hours: u32,
    /// A clarifying question reminds once after this.
    pub reminder_minutes: u32,
    /// A confirming question is taken for yes after this.
    pub confirming_hours: u32,
    /// Educational questions and preferences are dismissed after this.
    pub dismiss_days: u32,
    /// The same question is not asked again within this.
    pub repeat_hours: u32,
}

/// How lessons are found and measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnowledgeSettings {
    /// The least confidence for a specification.
    pub spec_minimum: f64,
    /// The least confidence for a build.
    pub build_minimum: f64,
    /// The most lessons in one task.
    pub per_task: u32,
    /// Whether a lesson is left out now and then to measure its effect.
    pub hold_out: bool,
}

/// When the monitor looks and what it calls stuck.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MonitorSettings {
    /// When it looks: cron with 5 or 6 fields, UTC.
    pub interval: String,
    /// A component is down after this without a sign of life.
    pub component_down_seconds: u32,
    /// How often components are checked.
    pub component_check_seconds: u32,
    /// A task is stuck after this without progress.
    pub stuck_minutes: StuckMinutes,
}

/// Minutes without progress by phase; `other` is for every phase that is not named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StuckMinutes(pub BTreeMap<String, u32>);

impl StuckMinutes {
    /// Returns the minutes for `phase`.
    pub fn of(&self, phase: &str) -> u32 {
        // The shipped defaults name `other`, and no layer can take it away.
        let common = self.0.get("other").copied().unwrap_or(10);
        self.0.get(phase).copied().unwrap_or(common)
    }
}

/// How long PM watches a stuck task, in minutes of working time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PmSettings {
    /// It looks again after this.
    pub watch_minutes: u32,
    /// It asks a person after this.
    pub ask_minutes: u32,
    /// It ends the attempt after this.
    pub interrupt_minutes: u32,
}

/// Budgets in tokens and in dollars; one that is absent does not limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetSettings {
    /// Of one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_tokens: Option<u64>,
    /// Of one task, over all its attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_tokens: Option<u64>,
    /// As `task_tokens`, in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_usd: Option<f64>,
    /// Of one build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_tokens: Option<u64>,
    /// As `build_tokens`, in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_usd: Option<f64>,
    /// Of everything that the project ever does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_tokens: Option<u64>,
    /// As `project_tokens`, in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_usd: Option<f64>,
    /// Of one day, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day_tokens: Option<u64>,
    /// As `day_tokens`, in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day_usd: Option<f64>,
}

#[cfg(test)]
mod tests {
    use crate::Config;

    #[test]
    fn a_phase_without_a_limit_takes_the_common_one() {
        let limits = Config::shipped().unwrap().monitor.stuck_minutes;
        assert_eq!(
            (limits.of("database"), limits.of("ui"), limits.of("tests")),
            (5, 10, 15)
        );
    }
}
