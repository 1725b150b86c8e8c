//! Holds what the build agent keeps to, taken from the configuration.

use std::time::Duration;

use ropewalk_config::Config;
use ropewalk_orchestrator::questions::Deadlines;

use super::decide::failure::Limits;
use super::decide::step::StopLimits;

/// A command that every candidate must pass beside its own validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateCheck {
    /// Names it in the evidence.
    pub name: String,
    /// A shell line, run in a clean checkout.
    pub command: String,
    /// How long it may take.
    pub timeout: Duration,
}

/// What the build agent keeps to.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// How many loops this process runs.
    pub loops: usize,
    /// How long a lease lives without renewal.
    pub lease: Duration,
    /// What bounds the tries of a task.
    pub tries: Limits,
    /// When a build gives up.
    pub stop: StopLimits,
    /// The commands of the gate, in order.
    pub gate: Vec<GateCheck>,
    /// How long a task's own validation may take.
    pub validation_timeout: Duration,
    /// How often the model is asked in one attempt.
    pub turns: u32,
    /// How many tokens one attempt may use.
    pub attempt_tokens: Option<u64>,
    /// The least confidence of a lesson for a task.
    pub knowledge_minimum: f64,
    /// The most lessons for a task.
    pub lessons: usize,
    /// Whether a lesson is left out now and then, to measure its effect.
    pub hold_out: bool,
    /// When questions remind and end.
    pub deadlines: Deadlines,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self {
            loops: 2,
            lease: Duration::from_mins(1),
            tries: Limits::default(),
            stop: StopLimits::default(),
            gate: Vec::new(),
            validation_timeout: Duration::from_mins(15),
            turns: 50,
            attempt_tokens: None,
            knowledge_minimum: 0.6,
            lessons: 5,
            hold_out: true,
            deadlines: Deadlines::default(),
        }
    }
}

impl BuildOptions {
    /// Takes what the configuration says.
    pub fn from_config(config: &Config, deadlines: Deadlines) -> Self {
        let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
        let build = &config.build;
        let gate = config.gate.commands.iter().map(|check| GateCheck {
            name: check.name.clone(),
            command: check.command.clone(),
            timeout: seconds(config.gate.seconds_for(check)),
        });
        Self {
            loops: build.loops as usize,
            lease: seconds(build.lease_seconds),
            // Installing stays off while commands do not run in a sandbox, whatever `build.installs` allows.
            tries: Limits {
                tries: build.tries,
                rebases: build.rebases,
                installs: 0,
                ..Limits::default()
            },
            stop: StopLimits {
                max_failed: build.max_failed as usize,
                critical_phases: build.critical_phases.clone(),
                working_time: seconds(build.time_limit_minutes * 60),
            },
            gate: gate.collect(),
            validation_timeout: seconds(config.validation.timeout_seconds),
            turns: build.turns,
            attempt_tokens: config.budget.attempt_tokens,
            knowledge_minimum: config.knowledge.build_minimum,
            lessons: config.knowledge.per_task as usize,
            hold_out: config.knowledge.hold_out,
            deadlines,
        }
    }
}
