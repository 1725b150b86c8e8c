//! Holds what the build agent keeps to, taken from the configuration.

use std::sync::Arc;
use std::time::Duration;

use ropewalk_config::Config;
use ropewalk_config::settings::{
    BudgetSettings, BuildSettings, CacheSettings, PackageManager, PolicySettings,
};
use ropewalk_engine::{Allowance, Budgets, CacheBounds, CurrentValue, SearchPort};
use ropewalk_orchestrator::questions::Deadlines;
use ropewalk_schemas::TaskId;

use super::decide::failure::Limits;
use super::decide::step::StopLimits;
use ropewalk_gate::checks::Gate;

/// What the build agent keeps to.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// How many loops this process runs.
    pub loops: usize,
    /// The order in which tasks are built, one after the other; those that are not in it come last, and without any they
    /// are built as they become ready.
    pub order: Vec<TaskId>,
    /// How long a lease lives without renewal.
    pub lease: Duration,
    /// How long a loop gives no sign of life before its attempts are taken for dead.
    pub silent_after: Duration,
    /// Whether a new wait is checked for a cycle at once; else the monitor's sweep finds it.
    pub check_cycles: bool,
    /// What bounds the tries of a task.
    pub tries: Limits,
    /// Who may install packages; what installs come to is bounded by `tries`.
    pub package_managers: Vec<PackageManager>,
    /// When a build gives up.
    pub stop: StopLimits,
    /// The gate of base commits that have no project file.
    pub gate: Gate,
    /// How long a task's own validation may take.
    pub validation_timeout: Duration,
    /// What models may do with their tools, as it is now.
    pub policy: CurrentValue<PolicySettings>,
    /// What of an earlier look around is told again.
    pub cache: CacheBounds,
    /// Who searches the web for models; none where they do not.
    pub search: Option<Arc<dyn SearchPort>>,
    /// How often the model is asked in one attempt.
    pub turns: u32,
    /// How many tokens one attempt may use.
    pub attempt_tokens: Option<u64>,
    /// What may be used over all attempts.
    pub budgets: Budgets,
    /// The least confidence of a lesson for a task.
    pub knowledge_minimum: f64,
    /// The most lessons for a task.
    pub lessons: usize,
    /// Whether a lesson is left out now and then, to measure its effect.
    pub hold_out: bool,
    /// What a landing makes of the work, unless a person says otherwise.
    pub landing: Shape,
    /// When questions remind and end.
    pub deadlines: Deadlines,
}

/// What a landing makes of the work of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    /// One commit of the branch, instead of all that led there.
    pub squash: bool,
    /// Without the folder of the idea.
    pub without_ideas: bool,
}

impl Shape {
    /// Returns what the configuration makes of the work of every build that lands.
    pub const fn configured(settings: &BuildSettings) -> Self {
        Self {
            squash: settings.squash,
            without_ideas: settings.without_ideas,
        }
    }

    /// Adds what a person wants beside.
    pub fn with(self, wanted: Self) -> Self {
        Self {
            squash: self.squash || wanted.squash,
            without_ideas: self.without_ideas || wanted.without_ideas,
        }
    }
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self {
            loops: 2,
            order: Vec::new(),
            lease: Duration::from_mins(1),
            silent_after: Duration::from_secs(90),
            check_cycles: true,
            tries: Limits::default(),
            package_managers: Vec::new(),
            stop: StopLimits::default(),
            gate: Gate::default(),
            validation_timeout: Duration::from_mins(15),
            policy: CurrentValue::default(),
            cache: CacheBounds::default(),
            search: None,
            turns: 50,
            attempt_tokens: None,
            budgets: Budgets::default(),
            knowledge_minimum: 0.6,
            lessons: 5,
            hold_out: true,
            landing: Shape::default(),
            deadlines: Deadlines::default(),
        }
    }
}

impl BuildOptions {
    /// Takes what the configuration says.
    pub fn from_config(config: &Config, deadlines: Deadlines) -> Self {
        let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
        let build = &config.build;
        Self {
            loops: build.loops as usize,
            order: Vec::new(),
            lease: seconds(build.lease_seconds),
            silent_after: seconds(config.monitor.component_down_seconds),
            check_cycles: build.check_cycles,
            tries: Limits {
                tries: build.tries,
                rebases: build.rebases,
                installs: build.installs,
                ..Limits::default()
            },
            package_managers: build.package_managers.clone(),
            stop: StopLimits {
                max_failed: build.max_failed as usize,
                critical_phases: build.critical_phases.clone(),
                working_time: seconds(build.time_limit_minutes * 60),
            },
            gate: Gate::from(config),
            validation_timeout: seconds(config.validation.timeout_seconds),
            policy: CurrentValue::new(config.policy.as_ref().clone()),
            cache: cache(&config.tools.cache),
            search: None,
            turns: build.turns,
            attempt_tokens: config.budget.attempt_tokens,
            budgets: budgets(&config.budget),
            knowledge_minimum: config.knowledge.build_minimum,
            lessons: config.knowledge.per_task as usize,
            hold_out: config.knowledge.hold_out,
            landing: Shape::configured(build),
            deadlines,
        }
    }
}

/// Takes the bounds that the configuration names.
fn cache(settings: &CacheSettings) -> CacheBounds {
    let results = if settings.enabled {
        settings.results as usize
    } else {
        0
    };
    CacheBounds {
        results,
        search: Duration::from_secs(settings.search_seconds.into()),
    }
}

/// Takes the ladder of budgets that the configuration names.
pub fn budgets(settings: &BudgetSettings) -> Budgets {
    let allowance = |tokens: Option<u64>, usd: Option<f64>| Allowance {
        tokens,
        micro_usd: usd.map(micro_usd),
    };
    Budgets {
        task: allowance(settings.task_tokens, settings.task_usd),
        build: allowance(settings.build_tokens, settings.build_usd),
        project: allowance(settings.project_tokens, settings.project_usd),
        day: allowance(settings.day_tokens, settings.day_usd),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the configuration bounds the amount, and `as` saturates"
)]
fn micro_usd(usd: f64) -> u64 {
    (usd * 1e6).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_work_keeps_as_many_results_as_the_configuration_says() {
        let mut config = Config::shipped().unwrap();
        let bounds = |config: &Config| {
            let options = BuildOptions::from_config(config, Deadlines::default());
            (options.cache.results, options.cache.search.as_secs())
        };
        assert_eq!(bounds(&config), (200, 30));
        config.tools.cache.results = 7;
        config.tools.cache.search_seconds = 5;
        assert_eq!(bounds(&config), (7, 5));
        config.tools.cache.enabled = false;
        assert_eq!(bounds(&config), (0, 5));
    }
}
