//! Sends the spans of this process where the configuration says.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use ropewalk_config::{Environment, Origin, OtelVariables};
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
    let otel = OtelVariables::of(environment);
    let endpoint = settings.endpoint.as_ref().filter(|_| !otel.is_off);
    let Some(endpoint) = endpoint else {
        return Ok(());
    };
    let mut headers = HashMap::new();
    // They are for the receiver that stands beside them, not for one that a file names.
    if let Origin::Environment(name) = project.loaded.origin("telemetry.endpoint")
        && OtelVariables::names_receiver(&name)
    {
        headers.extend(otel.headers);
    }
    for (header, variable) in &settings.headers {
        let key = format!("telemetry.headers.{header}");
        if let Some(value) = secret(&key, Some(variable.as_str()), environment)? {
            headers.insert(header.clone(), value);
        }
    }
    let instance = Ids::system(Clock::system()).next();
    let own = [
        ("service.name", "ropewalk".to_owned()),
        ("service.namespace", project.locations.name.to_string()),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id", instance.to_string()),
        ("process.pid", std::process::id().to_string()),
    ];
    let own = own.map(|(key, value)| (key.to_owned(), value));
    // What is said last of a key counts.
    let resource: BTreeMap<String, String> = own.into_iter().chain(otel.resource).collect();
    let options = TraceOptions {
        endpoint: endpoint.to_string(),
        headers,
        sample_percent: settings.sample_percent,
        resource,
    };
    Ok(traces::start(options)?)
}

/// Sends what is left, before the process ends.
pub(crate) async fn flush() {
    traces::flush(FLUSH).await;
}
