//! Reads the command line.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::settings::{CHILD, Settings};
use crate::suite;

/// What was asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    /// To measure.
    Measure(Settings),
    /// To be one of the processes that a benchmark looks at.
    Child(Vec<String>),
    /// To explain.
    Help,
}

/// Returns what `words`, the program's name excluded, ask for.
pub(crate) fn parse(words: &[String]) -> Result<Command> {
    let mut settings = Settings {
        names: Vec::new(),
        time: Duration::from_secs(4),
        repeat: 1,
        json: false,
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            CHILD => return Ok(Command::Child(words.cloned().collect())),
            "--help" | "-h" => return Ok(Command::Help),
            "--json" => settings.json = true,
            "--seconds" => {
                let number = words.next().context("`--seconds` needs a number")?;
                settings.time = seconds(number)?;
            }
            "--repeat" => {
                let number = words.next().context("`--repeat` needs a number")?;
                settings.repeat = number
                    .parse()
                    .ok()
                    .filter(|times| *times > 0)
                    .with_context(|| format!("`{number}` is no number above 0"))?;
            }
            name if suite::NAMES.iter().any(|(known, _)| *known == name) => {
                settings.names.push(name.to_owned());
            }
            other => bail!("there is no benchmark or option `{other}`\n{}", usage()),
        }
    }
    Ok(Command::Measure(settings))
}

fn seconds(text: &str) -> Result<Duration> {
    let number: f64 = text
        .parse()
        .with_context(|| format!("`{text}` is no number of seconds"))?;
    Duration::try_from_secs_f64(number)
        .ok()
        .filter(|time| !time.is_zero())
        .with_context(|| format!("`{text}` is no number of seconds above 0"))
}

/// Returns how the program is called.
pub(crate) fn usage() -> String {
    let mut lines =
        vec!["usage: ropewalk-benches [NAME…] [--seconds N] [--repeat N] [--json]\n".to_owned()];
    lines.extend(
        suite::NAMES
            .iter()
            .map(|(name, what)| format!("  {name:<10} {what}")),
    );
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command> {
        let words: Vec<String> = line.split_whitespace().map(ToOwned::to_owned).collect();
        parse(&words)
    }

    #[test]
    fn names_and_options_come_in_any_order() {
        let settings = Settings {
            names: vec!["chain".to_owned(), "graph".to_owned()],
            time: Duration::from_millis(500),
            repeat: 3,
            json: true,
        };
        let command = parsed("chain --seconds 0.5 graph --repeat 3 --json").unwrap();
        assert_eq!(command, Command::Measure(settings));
    }

    #[test]
    fn what_is_not_known_is_named() {
        for line in [
            "chian",
            "--seconds",
            "--seconds 0",
            "--repeat 0",
            "--seconds x",
        ] {
            let error = parsed(line).unwrap_err().to_string();
            assert!(error.contains('`'), "{line}: {error}");
        }
    }
}
