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
    ///
    /// A runner may write its numbers over those before, so that what is shown in the end counts. In all that was written a failure is
    /// looked for where none is shown: a test may write over it.
    pub(super) fn count(&self, shown: &str, written: &str) -> Option<TestCounts> {
        let [passed, failed, ignored] =
            [&self.passed, &self.failed, &self.ignored].map(|pattern| sum(pattern.as_ref(), shown));
        let failed = failed
            .filter(|failed| *failed > 0)
            .or_else(|| sum(self.failed.as_ref(), written));
        let found = [passed, failed, ignored];
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

#[cfg(test)]
mod tests {
    use super::super::count;
    use super::*;

    #[test]
    fn of_a_line_that_is_written_over_the_last_numbers_count() {
        let patterns = Patterns::from(&CountPatterns {
            passed: Some(r"^OK: (\d+)$".to_owned()),
            failed: Some(r"^BAD: (\d+)$".to_owned()),
            ignored: None,
        });
        for (output, expected) in [
            ("OK: 1\rOK: 2\rOK: 3\n", (3, 0)),
            ("OK: 1\r\u{1b}[KOK: 2\r\n", (2, 0)),
            ("OK: 1\r\r\nOK: 2\r\n", (3, 0)),
            ("OK: 4\nBAD: 1\rBAD: 2\n", (4, 2)),
            // A test wrote over it.
            ("BAD: 1\rall is well\nOK: 4\n", (4, 1)),
            ("BAD: 1\rBAD: 0\nOK: 4\n", (4, 1)),
        ] {
            let counts = count(output, Some(&patterns)).unwrap();
            assert_eq!((counts.passed, counts.failed), expected, "{output:?}");
        }
    }
}
