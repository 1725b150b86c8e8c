//! Reads runners that nobody knows here, by the patterns of `[gate.counts]`.

use regex::Regex;
use ropewalk_config::settings::CountPatterns;
use ropewalk_schemas::attempt::TestCounts;

/// How the tests of a project say how they went.
#[derive(Debug, Clone, Default)]
pub struct Patterns {
    passed: Option<Regex>,
    failed: Option<Regex>,
    ignored: Option<Regex>,
}

impl Patterns {
    /// Says that the project describes no runner of its own.
    pub fn is_empty(&self) -> bool {
        self.passed.is_none() && self.failed.is_none() && self.ignored.is_none()
    }

    /// Adds up what the patterns find; none when they find nothing.
    pub(super) fn count(&self, output: &str) -> Option<TestCounts> {
        let found = [&self.passed, &self.failed, &self.ignored]
            .map(|pattern| sum(pattern.as_ref(), output));
        if found.iter().all(Option::is_none) {
            return None;
        }
        let [passed, failed, ignored] = found.map(Option::unwrap_or_default);
        Some(TestCounts {
            passed,
            failed,
            ignored,
            ..TestCounts::default()
        })
    }
}

/// A pattern without a group counts its matches.
fn sum(pattern: Option<&Regex>, output: &str) -> Option<u32> {
    let numbers = pattern?
        .captures_iter(output)
        .map(|found| match found.get(1) {
            Some(number) => number.as_str().parse::<u32>().unwrap_or_default(),
            None => 1,
        });
    numbers.reduce(u32::saturating_add)
}

impl From<&CountPatterns> for Patterns {
    fn from(settings: &CountPatterns) -> Self {
        // What cannot be compiled was refused where the settings were read.
        let compiled = |text: &Option<String>| {
            text.as_deref()
                .and_then(|text| CountPatterns::compile(text).ok())
        };
        Self {
            passed: compiled(&settings.passed),
            failed: compiled(&settings.failed),
            ignored: compiled(&settings.ignored),
        }
    }
}
