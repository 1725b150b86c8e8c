//! Makes what searches the web for models, where somebody has configured it.

use std::sync::Arc;

use ropewalk_config::Environment;
use ropewalk_config::settings::WebSearchSettings;
use ropewalk_engine::{SearchPort, Searxng, SearxngAccess};
use ropewalk_schemas::HostPattern;
use ropewalk_workspace::sandbox::egress::{Egress, Internet, Upstream};
use tracing::warn;

use crate::error::CliError;
use crate::project::Project;

/// Makes it; none where models do not search. A key that is missing keeps a process from serving; one that `is_hosted` by a
/// verb, for which somebody waits, goes on without it, and says so.
pub(super) fn port(
    is_hosted: bool,
    project: &Project,
    environment: &Environment,
) -> Result<Option<Arc<dyn SearchPort>>, CliError> {
    let Some(settings) = &project.config().tools.web_search else {
        return Ok(None);
    };
    let variable = settings.key_variable.as_ref();
    let key = variable.and_then(|variable| environment.secret(variable));
    if let Some(variable) = variable.filter(|_| key.is_none()) {
        let missing = format!("`tools.web_search` needs a key, and `{variable}` holds none");
        if is_hosted {
            warn!("{missing}: models do not search the web until that variable is set");
            return Ok(None);
        }
        let text = (missing, format!("set the variable `{variable}`"));
        return Err(CliError::refused("search", text));
    }
    let access = access(settings, environment)?;
    let url = settings.url.url().clone();
    Ok(Some(Arc::new(Searxng::new(url, key, access))))
}

/// Says where it may be.
fn access(
    settings: &WebSearchSettings,
    environment: &Environment,
) -> Result<SearxngAccess, CliError> {
    if settings.inside {
        return Ok(SearxngAccess::Anywhere);
    }
    let url = settings.url.url();
    let port = url.port_or_known_default().unwrap_or(80);
    let host = HostPattern::wanted(url.host_str().unwrap_or_default(), port);
    let host = HostPattern::parse(&host).map_err(|error| {
        let text = (
            format!("`tools.web_search.url`: {error}"),
            "name a host of the outside, or set `inside`".to_owned(),
        );
        CliError::refused("search", text)
    })?;
    let upstream = Upstream::of(|name| environment.get(name));
    Ok(SearxngAccess::Outside(Egress {
        hosts: vec![host],
        package_hosts: Vec::new(),
        upstream: upstream.map_err(|error| CliError::advised("proxy", error))?,
        outside: Arc::new(Internet),
    }))
}
