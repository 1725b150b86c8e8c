//! Shows on standard error that work goes on: a spinner on a terminal, plain lines elsewhere.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::{Output, clean, remark};

/// How often the spinner turns.
const TURN: Duration = Duration::from_millis(120);

/// Work that takes a while.
#[derive(Debug)]
pub struct Progress {
    spinner: Option<ProgressBar>,
    quiet: bool,
}

impl Progress {
    /// Begins to show `what`; says nothing but errors when the answer is JSON.
    pub fn start(output: &Output, what: &str) -> Self {
        let quiet = output.is_json();
        if quiet || !io::stderr().is_terminal() {
            let progress = Self {
                spinner: None,
                quiet,
            };
            progress.say(what);
            return progress;
        }
        let spinner = ProgressBar::new_spinner().with_message(clean(what));
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            spinner.set_style(style);
        }
        spinner.enable_steady_tick(TURN);
        Self {
            spinner: Some(spinner),
            quiet,
        }
    }

    /// Says something that stays.
    pub fn say(&self, text: &str) {
        match &self.spinner {
            Some(spinner) => spinner.println(clean(text)),
            None if self.quiet => {}
            None => remark(text),
        }
    }

    /// Ends the spinner and wipes it.
    pub fn finish(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}
