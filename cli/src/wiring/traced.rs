//! Sends the spans of this process where the configuration says.

use std::collections::HashMap;
use std::time::Duration;

use ropewalk_config::Environment;
use ropewalk_runtime::traces::{self, TraceOptions};
use ropewalk_runtime::{Clock, Ids};

use super::notices::secret;
use crate::error::CliError;
use crate::project::Project;

/// How long the end of a process may wait for a receiver.
const FLUSH: Duration = Duration::from_secs(2);

/// Begins to send spans, where a receiver is named.
pub(crate) fn begin(project: &Project, environment: &Environment) -> Result<(), CliError> {
    let settings = &project.config().telemetry;
    let Some(endpoint) = &settings.endpoint else {
        return Ok(());
    };
    let mut headers = HashMap::new();
    for (header, variable) in &settings.headers {
        let key = format!("telemetry.headers.{header}");
        if let Some(value) = secret(&key, Some(variable.as_str()), environment)? {
            headers.insert(header.clone(), value);
        }
    }
    let instance = Ids::system(Clock::system()).next();
    let options = TraceOptions {
        endpoint: endpoint.to_string(),
        headers,
        sample_percent: settings.sample_percent,
        resource: vec![
            ("service.name", "ropewalk".to_owned()),
            ("service.namespace", project.locations.name.to_string()),
            ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("service.instance.id", instance.to_string()),
            ("process.pid", std::process::id().to_string()),
        ],
    };
    Ok(traces::start(options)?)
}

/// Sends what is left, before the process ends.
pub(crate) async fn flush() {
    traces::flush(FLUSH).await;
}
