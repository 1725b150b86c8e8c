//! Sends logs to standard error, as text or as JSON lines.

use std::io::{self, Write};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::TryInitError;

use crate::{secrets, stderr, terminal};

/// Selects how a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One readable line, perhaps in colour.
    Text,
    /// One JSON object a line.
    Json,
}

/// Says why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter is not one that `tracing` understands.
    #[error("log filter `{filter}` is not valid: {reason}")]
    Filter {
        /// The filter as given.
        filter: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A subscriber is installed already.
    #[error("logging is set up already")]
    Installed(#[from] TryInitError),
}

/// Standard error without secrets, and without what would steer a terminal; a line of the log comes in one piece.
///
/// Whoever listened may have left, and the disk of a file may be full: what is not heard is no reason to end the work,
/// and an error here would make whoever logs panic.
struct RedactingWriter(Format);

impl Write for RedactingWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let text = secrets::strike(&text);
        let shown = match self.0 {
            Format::Text => terminal::visible_log(&text),
            Format::Json => terminal::visible_json(&text).into_owned(),
        };
        stderr::write(&shown);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Installs the process-wide log subscriber; `filter` is in the `tracing` directive language. Lines for
/// people are coloured where `is_coloured` says so.
pub fn init(format: Format, filter: &str, is_coloured: bool) -> Result<(), TelemetryError> {
    use tracing_subscriber::util::SubscriberInitExt;
    let parsed = EnvFilter::try_new(filter).map_err(|error| TelemetryError::Filter {
        filter: filter.to_owned(),
        reason: error.to_string(),
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_writer(move || RedactingWriter(format));
    match format {
        Format::Text => builder
            .with_ansi(is_coloured)
            .with_target(false)
            .finish()
            .try_init()?,
        Format::Json => builder.json().finish().try_init()?,
    }
    Ok(())
}
