//! Makes the ways of telling people that the configuration switches on, and forgets those that it does not; lets the bot
//! of Telegram take what people say.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ropewalk_config::Environment;
use ropewalk_orchestrator::notices::{
    Arrival, Listener, Notification, Notifier, Parts, Port, Rules, SendError, Webhook,
};
use ropewalk_orchestrator::{Agent, Services};
use ropewalk_runtime::{Clock, Supervisor};
use ropewalk_schemas::UserSlug;
use ropewalk_server::{Hook, HookError};
use ropewalk_store::{ReadError, Store};
use ropewalk_telegram::{
    Bot, LeftUpdates, Parts as BotParts, TelegramClient, TelegramPort, UpdateError, UpdateHook,
};
use ropewalk_workspace::Git;

use super::changes::{self, LazyClone};
use super::processes;
use crate::commands::question::commands_of;
use crate::error::CliError;
use crate::output;
use crate::project::Project;

/// How much of what is asked stands in a line of the terminal.
const LETTERS: usize = 200;
/// How the bell of the terminal is called.
pub(crate) const BELL: &str = "terminal";
/// Every way of telling.
const PORTS: [&str; 3] = [BELL, "webhook", "telegram"];

/// Makes the subscribers that are switched on. Those that are not take nothing any more: what happens meanwhile is no
/// news when they are switched on again.
pub(super) async fn begin(
    project: &Project,
    environment: &Environment,
    telegram: Option<&TelegramClient>,
    services: &Services,
) -> Result<Vec<Arc<dyn Agent>>, CliError> {
    let ports = ports(project, environment, telegram, services)?;
    for name in PORTS {
        if !ports.iter().any(|port| port.name() == name) {
            services.store.unsubscribe(&Notifier::role(name)?).await?;
        }
    }
    let mut agents: Vec<Arc<dyn Agent>> = Vec::new();
    for port in ports {
        let turn = processes::turn(project.state(), &format!("notify.{}", port.name()));
        let people = project.people.all().into_iter();
        let notifier = Notifier::new(Parts {
            port,
            people: people
                .map(|person| Listener {
                    summary: project.people.wants_summary(&person.name),
                    name: person.name,
                    roles: person.roles,
                    rights: person.rights,
                })
                .collect(),
            rules: Rules::from(&*project.config().notices),
            turn,
        })?;
        agents.push(Arc::new(notifier));
    }
    Ok(agents)
}

fn ports(
    project: &Project,
    environment: &Environment,
    telegram: Option<&TelegramClient>,
    services: &Services,
) -> Result<Vec<Arc<dyn Port>>, CliError> {
    let settings = &project.config().notices;
    let mut ports: Vec<Arc<dyn Port>> = Vec::new();
    if settings.terminal {
        ports.push(Arc::new(Bell));
    }
    if let Some(url) = &settings.webhook_url {
        let secret = secret(
            "notices.webhook_secret_variable",
            settings.webhook_secret_variable.as_deref(),
            environment,
        )?;
        let webhook = Webhook::new(url.to_string(), secret, services.clock.clone());
        ports.push(Arc::new(webhook.map_err(CliError::failed)?));
    }
    if let Some(client) = telegram {
        ports.push(Arc::new(TelegramPort::new(
            client.clone(),
            (*project.people).clone(),
        )));
    }
    Ok(ports)
}

/// Returns who asks Telegram, where a bot is set up.
pub(crate) fn telegram(
    project: &Project,
    environment: &Environment,
    clock: &Clock,
) -> Result<Option<TelegramClient>, CliError> {
    let settings = &project.config().telegram;
    let variable = settings.token_variable.as_deref();
    let Some(token) = secret("telegram.token_variable", variable, environment)? else {
        return Ok(None);
    };
    let client = TelegramClient::new(&token, settings.api_url.as_str(), clock.clone());
    client
        .map(|client| Some(client.in_topic(settings.topic)))
        .map_err(|error| CliError::advised("failed", error))
}

/// Returns what a bot works with.
fn bot_parts(
    project: &Project,
    git: &Git,
    client: &TelegramClient,
    services: &Services,
) -> BotParts {
    let clone = LazyClone::of(git.clone(), project);
    BotParts {
        client: client.clone(),
        people: (*project.people).clone(),
        services: services.clone(),
        rules: Rules::from(&*project.config().notices),
        builds_with: project.config().models.builders(),
        silent_after: Duration::from_secs(project.config().monitor.component_down_seconds.into()),
        chats_with: project.config().models.talkers(),
        landings: changes::landings(clone, project, services),
        state: project.state().to_owned(),
    }
}

/// Makes what does again that which the bot could not do.
pub(super) fn left_updates(
    project: &Project,
    git: &Git,
    client: &TelegramClient,
    services: &Services,
) -> Result<Arc<dyn Agent>, CliError> {
    let parts = bot_parts(project, git, client, services);
    Ok(Arc::new(LeftUpdates::new(parts)?))
}

/// Lets the bot take what people say and press.
pub(super) fn serve_bot(
    project: &Project,
    git: &Git,
    client: &TelegramClient,
    (services, supervisor): (&Services, &Supervisor),
) -> Result<(), CliError> {
    let parts = bot_parts(project, git, client, services);
    let turn = processes::turn(project.state(), "telegram");
    let webhook = project.config().telegram.webhook.clone();
    Bot::new(parts, turn, webhook)?.serve(supervisor);
    Ok(())
}

/// Lets updates be taken that Telegram brings, where the configuration says that it does.
pub(super) fn hook(
    project: &Project,
    (environment, git): (&Environment, &Git),
    client: Option<TelegramClient>,
    (services, supervisor): (&Services, &Supervisor),
) -> Result<Option<Arc<dyn Hook>>, CliError> {
    if project.config().telegram.webhook.is_none() {
        return Ok(None);
    }
    let client = match client {
        Some(client) => Some(client),
        None => telegram(project, environment, &services.clock)?,
    };
    let Some(client) = client else {
        return Ok(None);
    };
    let parts = bot_parts(project, git, &client, services);
    let hook = UpdateHook::serve(parts, supervisor)?;
    Ok(Some(Arc::new(TelegramHook(hook))))
}

/// What the server hands to the bot.
struct TelegramHook(UpdateHook);

#[async_trait]
impl Hook for TelegramHook {
    fn admits(&self, secret: &[u8]) -> bool {
        self.0.admits(secret)
    }

    async fn take(&self, body: &[u8]) -> Result<(), HookError> {
        let taken = self.0.take(body).await;
        taken.map_err(|error| match error {
            UpdateError::Unreadable(_) => HookError::Unreadable(error.to_string()),
            UpdateError::Late => HookError::Late(error.to_string()),
        })
    }
}

/// Reads the secret in the variable that `key` names.
pub(super) fn secret(
    key: &str,
    variable: Option<&str>,
    environment: &Environment,
) -> Result<Option<String>, CliError> {
    let Some(variable) = variable else {
        return Ok(None);
    };
    let secret = environment.get(variable).ok_or_else(|| {
        CliError::Credentials(
            (
                format!("the environment variable `{variable}` of `{key}` is not set"),
                "set it, or drop the key",
            )
                .into(),
        )
    })?;
    Ok(Some(secret.to_owned()))
}

/// The bell of the terminal that the program was started from. A question it tells with the commands that answer it; what `up` writes
/// a line of by itself, it rings for by its title.
struct Bell;

#[async_trait]
impl Port for Bell {
    fn name(&self) -> &'static str {
        BELL
    }

    async fn receivers(&self, _: &[UserSlug], _: &Store) -> Result<Vec<String>, ReadError> {
        Ok(vec![self.name().to_owned()])
    }

    async fn send(
        &self,
        _receiver: &str,
        telling: &Notification,
        _store: &Store,
    ) -> Result<Arrival, SendError> {
        let mut line = telling.text.title.clone();
        if let Some(question) = &telling.question {
            let asked = telling.text.body.split("\n\n").next().unwrap_or_default();
            line = format!(
                "{line}: {}: {}",
                output::in_short(asked, LETTERS),
                commands_of(question.id)
            );
        }
        output::ring(&line);
        Ok(Arrival::default())
    }

    async fn edit(&self, _message: &str, _telling: &Notification) -> Result<(), SendError> {
        Ok(())
    }
}
