//! Starts the bus on the transport that the configuration names.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ropewalk_bus::supervise::SupervisedServer;
use ropewalk_bus::{
    Auth, Bus, BusOptions, FirstConnection, JetStreamOptions, Services, SharingOptions,
    StreamOptions, TransportOptions,
};
use ropewalk_config::settings::{BusSettings, StoreLocation, Transport};
use ropewalk_config::{Environment, Origin, is_open_to_all};
use ropewalk_schemas::Slug;
use ropewalk_store::Store;
use tokio::io::AsyncReadExt;

use crate::error::CliError;
use crate::project::Project;

/// How long the check of a broker may take.
const CHECK_LIMIT: Duration = Duration::from_secs(5);

/// Starts the bus of a process that consumes.
pub(super) async fn bus(
    project: &Project,
    environment: &Environment,
    store: &Store,
    services: Services,
    (sharing, only): (Option<SharingOptions>, Option<Slug>),
) -> Result<Bus, CliError> {
    let transport = match &project.config().bus.transport {
        Transport::Embedded => TransportOptions::Embedded,
        Transport::NatsAt(url) => TransportOptions::JetStream(JetStreamOptions {
            auth: login(project, environment)?,
            root_certificates: file(project, "root_certificates", |bus| &bus.root_certificates)?,
            inbox_prefix: project.config().bus.inbox_prefix.clone(),
            first_connection: first_connection(project),
            ..jetstream(project, url)
        }),
        Transport::Nats => {
            let server = SupervisedServer::start(project.state(), &services.supervisor)
                .await
                .map_err(|error| CliError::advised("bus", error))?;
            TransportOptions::JetStream(jetstream(project, server.url()))
        }
    };
    let options = BusOptions {
        tries: project.config().bus.tries,
        sharing,
        only,
        ..BusOptions::default()
    };
    Ok(Bus::start(store.clone(), transport, services, options).await?)
}

/// Refuses to share the work where the truth or the bus is this process's own.
pub(crate) fn check_shared(project: &Project) -> Result<(), CliError> {
    let config = project.config();
    if config.store.location == StoreLocation::Sqlite {
        let text = (
            "`ropewalk agent` shares one store with other processes, and `store.location` is `sqlite`",
            "name a PostgreSQL database in `ropewalk.toml` or with `--store postgres://…`",
        );
        return Err(CliError::refused("store", text));
    }
    if !matches!(config.bus.transport, Transport::NatsAt(_)) {
        let text = (
            format!(
                "`ropewalk agent` shares one bus with other processes, and `bus.transport` is `{}`",
                config.bus.transport
            ),
            "name a NATS server in `ropewalk.toml` or with `--bus nats://…`",
        );
        return Err(CliError::refused("bus", text));
    }
    Ok(())
}

/// A broker that the configuration names is waited for, since the store hands out its events meanwhile; one that a
/// person has just typed is refused, since somebody is there to mend it. One that is there and refuses is never waited
/// for.
fn first_connection(project: &Project) -> FirstConnection {
    if project.loaded.origin("bus.transport") == Origin::Flag {
        FirstConnection::Required
    } else {
        FirstConnection::Retried
    }
}

/// Starts the bus of a process that only commits: whoever consumes is poked.
pub(super) async fn quiet_bus(store: &Store, services: Services) -> Result<Bus, CliError> {
    let options = BusOptions::default();
    Ok(Bus::start(store.clone(), TransportOptions::Embedded, services, options).await?)
}

fn jetstream(project: &Project, url: &str) -> JetStreamOptions {
    let bus = &project.config().bus;
    let options = JetStreamOptions::new(url, project.locations.name.clone());
    JetStreamOptions {
        stream: StreamOptions {
            max_bytes: bus
                .max_megabytes
                .map(|megabytes| u64::from(megabytes) << 20),
            replicas: bus.replicas as usize,
            ..options.stream
        },
        ..options
    }
}

/// Returns how to log in to a broker that runs elsewhere.
fn login(project: &Project, environment: &Environment) -> Result<Auth, CliError> {
    if let Some(path) = file(project, "nkey_file", |bus| &bus.nkey_file)? {
        kept_close("bus.nkey_file", &path)?;
        return Ok(Auth::NkeyFile(path));
    }
    if let Some(path) = file(project, "credentials_file", |bus| &bus.credentials_file)? {
        kept_close("bus.credentials_file", &path)?;
        return Ok(Auth::CredentialsFile(path));
    }
    let Some(variable) = &project.config().bus.token_variable else {
        return Ok(Auth::None);
    };
    environment
        .secret(variable)
        .map(Auth::Token)
        .ok_or_else(|| {
            CliError::credentials((
                format!("the environment variable `{variable}` of `bus.token_variable` is not set"),
                "set it, or log in with a file",
            ))
        })
}

/// Refuses a file of secrets that everybody on this machine may read; whoever connects says that it is missing.
fn kept_close(key: &str, path: &Path) -> Result<(), CliError> {
    if is_open_to_all(path) {
        let place = path.display();
        let text = (
            format!("{key}: everybody on this machine may read `{place}`"),
            format!("`chmod o= {place}`, and make a new key if others have been here"),
        );
        return Err(CliError::refused("bus", text));
    }
    Ok(())
}

/// Finds one of the files that the bus section names.
type FileOf = fn(&BusSettings) -> &Option<PathBuf>;

/// The files that a connection to a broker is made with.
const FILES: [(&str, FileOf); 3] = [
    ("nkey_file", |bus| &bus.nkey_file),
    ("credentials_file", |bus| &bus.credentials_file),
    ("root_certificates", |bus| &bus.root_certificates),
];

/// Checks that everything a connection to the broker is made with can be read; names it, if there is any.
pub fn check_login(
    project: &Project,
    environment: &Environment,
) -> Result<Option<String>, CliError> {
    let bus = &project.config().bus;
    if !matches!(bus.transport, Transport::NatsAt(_)) {
        return Ok(None);
    }
    let mut found = Vec::new();
    for (key, of) in FILES {
        let Some(path) = file(project, key, of)? else {
            continue;
        };
        std::fs::read(&path).map_err(|error| {
            let text = (
                format!("bus.{key}: cannot read `{}`: {error}", path.display()),
                "check the path, and who may read it",
            );
            CliError::refused("bus", text)
        })?;
        found.push(format!("{} can be read", path.display()));
    }
    login(project, environment)?;
    found.extend(
        bus.token_variable
            .as_ref()
            .map(|name| format!("`{name}` is set")),
    );
    Ok((!found.is_empty()).then(|| found.join(", ")))
}

/// Returns the absolute path of a file that the bus section names.
fn file(project: &Project, key: &str, of: FileOf) -> Result<Option<PathBuf>, CliError> {
    let path = of(&project.config().bus).as_ref();
    path.map(|path| project.file(&format!("bus.{key}"), path))
        .transpose()
}

/// Checks that the transport of the configuration can be used, without using it; says what was found.
pub async fn check_bus(
    transport: &Transport,
    environment: &Environment,
) -> Result<String, CliError> {
    match transport {
        Transport::Embedded => Ok("embedded, in process".to_owned()),
        Transport::Nats => on_path("nats-server", environment).ok_or_else(|| {
            let text = (
                "`nats-server` is not on the PATH",
                "install version 2.10.23 or newer, or use the embedded bus",
            );
            CliError::refused("bus", text)
        }),
        Transport::NatsAt(url) => {
            let address = address(url);
            let silent = |reason: String| {
                let text = (
                    format!("no NATS server answers at `{address}` ({reason})"),
                    "start it or name another one",
                );
                CliError::refused("bus", text)
            };
            match tokio::time::timeout(CHECK_LIMIT, greeting(&address)).await {
                Ok(Ok(true)) => Ok(format!("a NATS server answers at {address}")),
                Ok(Ok(false)) => Err(silent("something else does".to_owned())),
                Ok(Err(error)) => Err(silent(error.to_string())),
                Err(_) => Err(silent("it is silent".to_owned())),
            }
        }
    }
}

fn on_path(program: &str, environment: &Environment) -> Option<String> {
    std::env::split_paths(environment.get("PATH")?)
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
        .map(|path| path.display().to_string())
}

/// Returns `host:port` of the first server that `url` names.
fn address(url: &str) -> String {
    let first = url.split(',').next().unwrap_or(url);
    let rest = first.split_once("://").map_or(first, |(_, rest)| rest);
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let host = host.split('/').next().unwrap_or(host);
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port {
        host.to_owned()
    } else {
        format!("{host}:4222")
    }
}

/// A NATS server speaks first, and says `INFO`.
async fn greeting(address: &str) -> std::io::Result<bool> {
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    let mut first = [0; 5];
    stream.read_exact(&mut first).await?;
    Ok(&first == b"INFO ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port_and_no_password() {
        let cases = [
            ("nats://127.0.0.1:4300", "127.0.0.1:4300"),
            ("nats://broker", "broker:4222"),
            ("tls://ada:secret@broker:4443/", "broker:4443"),
            ("nats://a:1,nats://b:2", "a:1"),
        ];
        for (url, expected) in cases {
            assert_eq!(address(url), expected, "{url}");
        }
    }
}
