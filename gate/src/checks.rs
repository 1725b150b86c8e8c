//! Knows which commands a gate runs: those of the project's file at the build's base commit, by level.

use std::collections::BTreeMap;
use std::time::Duration;

use ropewalk_config::Config;
use ropewalk_schemas::GlobPattern;
use ropewalk_schemas::attempt::{CheckKind, Level};

use crate::counts::Patterns;

/// A command that a gate runs beside the validations of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateCheck {
    /// Names it in the evidence.
    pub name: String,
    /// A shell line, run in a clean checkout.
    pub command: String,
    /// The level it belongs to; none for a command of every level.
    pub level: Option<Level>,
    /// What it looks for.
    pub kind: Option<CheckKind>,
    /// How long it may take.
    pub timeout: Duration,
}

/// The commands of a gate, and how deep it looks.
#[derive(Debug, Clone)]
pub struct Gate {
    /// A shell line that makes each fresh checkout ready.
    pub setup: Option<String>,
    /// The commands, in order.
    pub checks: Vec<GateCheck>,
    /// How deep the gate of a task looks.
    pub task_level: Level,
    /// How deep the check of a whole build looks.
    pub build_level: Level,
    /// Tests that cover less than this are asked about, in percent.
    pub coverage_percent: u32,
    /// What nobody changes unasked.
    pub protected: Vec<GlobPattern>,
    /// How the tests of the project say how they went, where no known runner does.
    pub counts: Patterns,
    /// The time that all commands of a level may take together.
    pub limits: BTreeMap<Level, Duration>,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            setup: None,
            checks: Vec::new(),
            task_level: Level::Quick,
            build_level: Level::Standard,
            coverage_percent: 80,
            protected: Vec::new(),
            counts: Patterns::default(),
            limits: BTreeMap::new(),
        }
    }
}

impl From<&Config> for Gate {
    fn from(config: &Config) -> Self {
        let settings = config.gate.as_ref();
        let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
        let check = |command: &ropewalk_config::settings::GateCommand| GateCheck {
            name: command.name.clone(),
            command: command.command.clone(),
            level: command.level,
            kind: command.kind,
            timeout: seconds(settings.seconds_for(command)),
        };
        let limits = settings.level_seconds.0.iter();
        Self {
            setup: config.build.setup.clone(),
            checks: settings.commands.iter().map(check).collect(),
            task_level: settings.task_level,
            build_level: settings.build_level,
            coverage_percent: settings.coverage_percent,
            protected: settings.protected.clone(),
            counts: Patterns::from(&settings.counts),
            limits: limits
                .map(|(level, limit)| (*level, seconds(*limit)))
                .collect(),
        }
    }
}

impl Gate {
    /// Protects these, too.
    #[must_use]
    pub(crate) fn protecting(mut self, more: &[GlobPattern]) -> Self {
        self.protected.extend_from_slice(more);
        self
    }

    /// Lists the commands of `level`, those of lower levels included, in order.
    pub fn up_to(&self, level: Level) -> impl Iterator<Item = &GateCheck> {
        self.checks
            .iter()
            .filter(move |check| check.level.is_none_or(|of| of <= level))
    }

    /// Names the commands that only deeper levels run.
    pub fn beyond(&self, level: Level) -> impl Iterator<Item = &GateCheck> {
        self.checks
            .iter()
            .filter(move |check| check.level.is_some_and(|of| of > level))
    }

    /// Returns the deepest level that any command belongs to; none when no command has one.
    pub fn deepest(&self) -> Option<Level> {
        self.checks.iter().filter_map(|check| check.level).max()
    }

    /// Returns `level` as evidence names it: nothing, where no command has a level.
    pub fn named(&self, level: Level) -> Option<Level> {
        self.deepest().map(|_| level)
    }
}

/// How much of the time of each level is used.
#[derive(Debug, Default)]
pub struct SpentTime(BTreeMap<Level, Duration>);

impl SpentTime {
    /// Returns how long a command may take: its own time, but not more than is left of its level.
    pub fn left(&self, gate: &Gate, level: Option<Level>, timeout: Duration) -> Duration {
        let Some(level) = level else { return timeout };
        let Some(limit) = gate.limits.get(&level) else {
            return timeout;
        };
        let spent = self.0.get(&level).copied().unwrap_or_default();
        timeout.min(limit.saturating_sub(spent))
    }

    /// Notes how long a command took.
    pub fn add(&mut self, level: Option<Level>, took: Duration) {
        if let Some(level) = level {
            *self.0.entry(level).or_default() += took;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> Gate {
        let text = "[gate]\ntimeout_seconds = 60\n[gate.level_seconds]\nstandard = 100\n\
                    [[gate.commands]]\nname = \"always\"\ncommand = \"a\"\n\
                    [[gate.commands]]\nname = \"lint\"\ncommand = \"l\"\nlevel = \"quick\"\n\
                    [[gate.commands]]\nname = \"unit\"\ncommand = \"u\"\nlevel = \"standard\"\n\
                    [[gate.commands]]\nname = \"audit\"\ncommand = \"s\"\nlevel = \"comprehensive\"\ntimeout_seconds = 5\n";
        Gate::from(&Config::of_project_text(text).unwrap())
    }

    #[test]
    fn what_one_protects_another_does_not_open() {
        let globs = |text: &str| GlobPattern::parse(text).unwrap();
        let gate = Gate {
            protected: vec![globs("docs/**")],
            ..gate()
        };
        let gate = gate.protecting(&[globs("ci/**")]);
        let is_protected = |path: &str| gate.protected.iter().any(|glob| glob.matches(path));
        let paths = ["docs/a.md", "ci/run", "src/a.rs"];
        assert_eq!(paths.map(is_protected), [true, true, false]);
    }

    #[test]
    fn every_level_includes_the_lower_ones() {
        let gate = gate();
        let rows = [
            (Level::Quick, "always lint", "unit audit"),
            (Level::Standard, "always lint unit", "audit"),
            (Level::Thorough, "always lint unit", "audit"),
            (Level::Comprehensive, "always lint unit audit", ""),
            (Level::Release, "always lint unit audit", ""),
        ];
        for (level, run, left_out) in rows {
            let names = |checks: Vec<&GateCheck>| {
                let names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
                names.join(" ")
            };
            assert_eq!(names(gate.up_to(level).collect()), run, "{level}");
            assert_eq!(names(gate.beyond(level).collect()), left_out, "{level}");
        }
        assert_eq!(gate.named(Level::Quick), Some(Level::Quick));
        assert_eq!(Gate::default().named(Level::Quick), None);
    }

    #[test]
    fn a_command_has_its_own_time_and_a_level_bounds_all_of_its_commands() {
        let gate = gate();
        let seconds: Vec<u64> = gate
            .checks
            .iter()
            .map(|check| check.timeout.as_secs())
            .collect();
        assert_eq!(seconds, [60, 30, 100, 5]);
        let mut spent = SpentTime::default();
        let left = |spent: &SpentTime, level| {
            let minute = Duration::from_secs(90);
            spent.left(&gate, level, minute).as_secs()
        };
        assert_eq!(left(&spent, Some(Level::Standard)), 90);
        spent.add(Some(Level::Standard), Duration::from_secs(40));
        spent.add(None, Duration::from_secs(40));
        assert_eq!(left(&spent, Some(Level::Standard)), 60);
        spent.add(Some(Level::Standard), Duration::from_secs(70));
        assert_eq!(left(&spent, Some(Level::Standard)), 0);
        assert_eq!(
            (left(&spent, None), left(&spent, Some(Level::Quick))),
            (90, 30)
        );
    }
}
