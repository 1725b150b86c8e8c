//! Checks what the types of the configuration cannot say: bounds, and values that must fit each other.

mod prices;

use std::collections::BTreeMap;

use ropewalk_schemas::advice::Words;
use ropewalk_schemas::agent::HEARTBEAT_SECONDS;

use crate::settings::{Config, CountPatterns, Transport};

/// What is no URL that is asked over HTTP.
const NOT_HTTP: &str = "is no address of HTTP";
/// How a value that two people have is mended.
const EACH_THEIR_OWN: &str = "give each person their own";

/// A key, and what is said of its value.
type Fault = (String, Words);

/// Returns the first key whose value cannot be, with the reason.
pub(crate) fn first_fault(config: &Config) -> Option<Fault> {
    bounds(config)
        .or_else(|| confidences(config))
        .or_else(|| gate(config))
        .or_else(|| budget(config))
        .or_else(|| bus(config))
        .or_else(|| people(config))
        .or_else(|| telegram(config))
        .or_else(|| server(config))
        .or_else(|| telemetry(config))
        .or_else(|| together(config))
}

/// Every number with a lower bound of one, and the most that it may be.
fn bounds(config: &Config) -> Option<Fault> {
    const DAY: u32 = 24 * 60 * 60;
    const YEAR_OF_HOURS: u32 = 366 * 24;
    const YEAR_OF_MINUTES: u32 = YEAR_OF_HOURS * 60;
    let (build, questions, pm) = (&config.build, &config.questions, &config.pm);
    let (tokens, cache) = (config.models.max_output_tokens, &config.tools.cache);
    let monitor = &config.monitor;
    let numbers = [
        ("bus.tries", config.bus.tries, 100),
        ("store.events_days", config.store.events_days, 36_600),
        ("models.max_output_tokens", tokens, 10_000_000),
        (
            "compaction.threshold_tokens",
            config.compaction.threshold_tokens,
            100_000_000,
        ),
        ("build.loops", build.loops, 1_000),
        (
            "build.time_limit_minutes",
            build.time_limit_minutes,
            YEAR_OF_MINUTES,
        ),
        ("build.tries", build.tries, 100),
        ("build.lease_seconds", build.lease_seconds, DAY),
        ("build.turns", build.turns, 10_000),
        ("gate.timeout_seconds", config.gate.timeout_seconds, DAY),
        (
            "validation.timeout_seconds",
            config.validation.timeout_seconds,
            DAY,
        ),
        (
            "questions.clarifying_hours",
            questions.clarifying_hours,
            YEAR_OF_HOURS,
        ),
        (
            "questions.confirming_hours",
            questions.confirming_hours,
            YEAR_OF_HOURS,
        ),
        (
            "notices.escalate_minutes",
            config.notices.escalate_minutes,
            YEAR_OF_MINUTES,
        ),
        ("questions.dismiss_days", questions.dismiss_days, 3_660),
        (
            "telemetry.sample_percent",
            config.telemetry.sample_percent,
            100,
        ),
        (
            "monitor.component_down_seconds",
            monitor.component_down_seconds,
            DAY,
        ),
        (
            "monitor.component_check_seconds",
            monitor.component_check_seconds,
            DAY,
        ),
        ("tools.cache.results", cache.results, 100_000),
        ("tools.cache.search_seconds", cache.search_seconds, DAY),
        ("pm.watch_minutes", pm.watch_minutes, YEAR_OF_MINUTES),
        (
            "pm.interrupt_minutes",
            pm.interrupt_minutes,
            YEAR_OF_MINUTES,
        ),
    ];
    first_beyond(&numbers)
}

/// Finds the first number that is not from one to its most.
fn first_beyond(numbers: &[(&str, u32, u32)]) -> Option<Fault> {
    numbers
        .iter()
        .find(|(_, number, most)| !(1..=*most).contains(number))
        .map(|(key, number, most)| {
            let most = format!("{most} is the most");
            let reason = match number {
                0 => "must be at least 1".into(),
                _ => (format!("`{number}` is too much"), most).into(),
            };
            ((*key).to_owned(), reason)
        })
}

fn bus(config: &Config) -> Option<Fault> {
    let bus = &config.bus;
    let fault = |key: &str, reason: Words| Some((format!("bus.{key}"), reason));
    if !matches!(bus.replicas, 1 | 3 | 5) {
        return fault("replicas", "must be 1, 3 or 5".into());
    }
    if bus.max_megabytes == Some(0) {
        let reason = ("must be at least 1", "drop it for no limit");
        return fault("max_megabytes", reason.into());
    }
    let logins = [
        ("nkey_file", bus.nkey_file.is_some()),
        ("credentials_file", bus.credentials_file.is_some()),
        ("token_variable", bus.token_variable.is_some()),
    ];
    let given: Vec<&str> = logins
        .into_iter()
        .filter_map(|(key, given)| given.then_some(key))
        .collect();
    match given.as_slice() {
        [_, second, ..] => fault(second, ("is a second way to log in", "keep one").into()),
        [only] if !matches!(bus.transport, Transport::NatsAt(_)) => {
            fault(only, "needs `bus.transport = \"nats://host:port\"`".into())
        }
        _ => None,
    }
}

/// Nobody is known by what is known of somebody else.
fn people(config: &Config) -> Option<Fault> {
    let (mut users, mut tokens) = (BTreeMap::new(), BTreeMap::new());
    config.people.iter().find_map(|(name, person)| {
        let user = person.user.as_ref();
        let token = person.token_sha256.as_ref();
        let earlier = [
            ("user", user.and_then(|user| users.insert(user, name))),
            (
                "token_sha256",
                token.and_then(|token| tokens.insert(token, name)),
            ),
        ];
        let (key, other) = earlier
            .into_iter()
            .find_map(|(key, other)| Some((key, other?)))?;
        let reason = format!("is that of `{other}` too");
        Some((
            format!("people.{name}.{key}"),
            (reason, EACH_THEIR_OWN).into(),
        ))
    })
}

/// A phone is one person's in each chat, and the Bot API is asked over HTTP.
fn telegram(config: &Config) -> Option<Fault> {
    if !matches!(config.telegram.api_url.scheme(), "http" | "https") {
        let next = "write it like `https://api.telegram.org/`";
        return Some(("telegram.api_url".to_owned(), (NOT_HTTP, next).into()));
    }
    if let Some(reason) = webhook(config) {
        return Some(("telegram.webhook".to_owned(), reason));
    }
    if config.telegram.topic.is_some_and(|topic| topic < 1) {
        let next = "copy the last number of the link to the topic";
        let reason = ("is the number of no topic", next);
        return Some(("telegram.topic".to_owned(), reason.into()));
    }
    let mut phones = BTreeMap::new();
    config.people.iter().find_map(|(name, person)| {
        let fault = |key: &str, reason| Some((format!("people.{name}.{key}"), reason));
        let chats = &person.telegram_chats;
        let Some(user) = person.telegram_user else {
            let reason = "needs `telegram_user`, who it is in these chats";
            return fault("telegram_chats", reason.into()).filter(|_| !chats.is_empty());
        };
        if chats.is_empty() {
            let reason = "needs `telegram_chats`, where that user is listened to";
            return fault("telegram_user", reason.into());
        }
        let other = chats.iter().find_map(|chat| {
            phones
                .insert((user, *chat), name)
                .filter(|other| *other != name)
        })?;
        let reason = format!("is that of `{other}` too, in the same chat");
        fault("telegram_user", (reason, EACH_THEIR_OWN).into())
    })
}

/// Telegram brings what people do over HTTPS alone; a server of one's own may do so on this machine.
fn webhook(config: &Config) -> Option<Words> {
    let address = config.telegram.webhook.as_ref()?;
    let is_here = matches!(
        address.host_str(),
        Some("127.0.0.1" | "[::1]" | "localhost")
    );
    let is_bare = address.username().is_empty() && address.password().is_none();
    let is_safe = address.scheme() == "https" || (address.scheme() == "http" && is_here);
    if !is_safe || !is_bare || address.fragment().is_some() {
        let next = "write it like `https://ropewalk.example.org/hooks/telegram`";
        return Some(("has to be an HTTPS address without a password", next).into());
    }
    let next =
        "set `server.enabled = true`, or drop `telegram.webhook`, and the bot asks by itself";
    (!config.server.enabled).then(|| ("nobody listens for what Telegram brings", next).into())
}

/// Nobody tells how the program does where nothing is served.
fn server(config: &Config) -> Option<Fault> {
    let server = &config.server;
    let reason = (
        "needs `server.enabled = true`",
        "set it, or drop `server.admin_address`",
    );
    let fault = ("server.admin_address".to_owned(), reason.into());
    (server.admin_address.is_some() && !server.enabled).then_some(fault)
}

/// Spans are sent over HTTP.
fn telemetry(config: &Config) -> Option<Fault> {
    let endpoint = config.telemetry.endpoint.as_ref()?;
    let reason = (NOT_HTTP, "write it like `http://127.0.0.1:4318`");
    let fault = ("telemetry.endpoint".to_owned(), reason.into());
    (!matches!(endpoint.scheme(), "http" | "https")).then_some(fault)
}

fn confidences(config: &Config) -> Option<Fault> {
    let numbers = [
        ("knowledge.spec_minimum", config.knowledge.spec_minimum),
        ("knowledge.build_minimum", config.knowledge.build_minimum),
    ];
    numbers
        .into_iter()
        .find(|(_, number)| !(0.0..=1.0).contains(number))
        .map(|(key, number)| {
            (
                key.to_owned(),
                format!("`{number}` must lie between 0 and 1").into(),
            )
        })
}

fn budget(config: &Config) -> Option<Fault> {
    let budget = &config.budget;
    let dollars = [
        ("budget.task_usd", budget.task_usd),
        ("budget.build_usd", budget.build_usd),
        ("budget.project_usd", budget.project_usd),
        ("budget.day_usd", budget.day_usd),
    ];
    dollars
        .into_iter()
        .find(|(_, amount)| amount.is_some_and(|amount| !(0.0..=1e9).contains(&amount)))
        .map(|(key, _)| {
            let reason = "must be an amount of dollars between 0 and 1000000000";
            (key.to_owned(), reason.into())
        })
}

fn gate(config: &Config) -> Option<Fault> {
    if let Some(line) = &config.build.setup
        && (line.trim().is_empty() || line.contains('\n'))
    {
        return Some(("build.setup".to_owned(), "must be one shell line".into()));
    }
    let zero = config
        .gate
        .level_seconds
        .0
        .iter()
        .find(|(_, seconds)| **seconds == 0);
    if let Some((level, _)) = zero {
        let key = format!("gate.level_seconds.{level}");
        return Some((key, "must be at least 1".into()));
    }
    for (name, pattern) in config.gate.counts.entries() {
        if let Some(Err(reason)) = pattern.map(CountPatterns::compile) {
            return Some((format!("gate.counts.{name}"), reason.into()));
        }
    }
    let commands = &config.gate.commands;
    commands.iter().enumerate().find_map(|(index, command)| {
        let fault =
            |key: &str, reason: Words| Some((format!("gate.commands[{index}].{key}"), reason));
        let earlier = commands.iter().take(index);
        if command.name.trim().is_empty() {
            fault("name", "must not be empty".into())
        } else if command.command.trim().is_empty() {
            fault("command", "must not be empty".into())
        } else if command.timeout_seconds == Some(0) {
            fault("timeout_seconds", "must be at least 1".into())
        } else if earlier.clone().any(|other| other.name == command.name) {
            fault(
                "name",
                ("is taken by an earlier command", "give each its own").into(),
            )
        } else {
            None
        }
    })
}

fn together(config: &Config) -> Option<Fault> {
    let pm = &config.pm;
    let questions = &config.questions;
    let fields = config.monitor.interval.split_whitespace().count();
    let fault = |key: &str, reason: Words| Some((key.to_owned(), reason));
    if !(5..=6).contains(&fields) {
        return fault(
            "monitor.interval",
            (
                format!("`{}` has {fields} fields", config.monitor.interval),
                "cron takes 5 or 6, for example `*/2 * * * *`",
            )
                .into(),
        );
    }
    if pm.watch_minutes > pm.ask_minutes || pm.ask_minutes > pm.interrupt_minutes {
        return fault(
            "pm.ask_minutes",
            "must lie between `pm.watch_minutes` and `pm.interrupt_minutes`".into(),
        );
    }
    if questions.reminder_minutes >= questions.clarifying_hours.saturating_mul(60) {
        return fault(
            "questions.reminder_minutes",
            "must be less than `questions.clarifying_hours`".into(),
        );
    }
    let least = 2 * HEARTBEAT_SECONDS;
    if config.monitor.component_down_seconds < least {
        return fault(
            "monitor.component_down_seconds",
            format!(
                "`{}` is too short: a part gives a sign of life each {HEARTBEAT_SECONDS} s, so {least} is the least",
                config.monitor.component_down_seconds
            )
            .into(),
        );
    }
    if config.monitor.component_check_seconds > config.monitor.component_down_seconds {
        return fault(
            "monitor.component_check_seconds",
            "must be at most `monitor.component_down_seconds`".into(),
        );
    }
    unknown_providers(config).or_else(|| prices::first_fault(config))
}

/// A provider of `[providers]` without a kind only changes a shipped one, and must then say something.
fn unknown_providers(config: &Config) -> Option<Fault> {
    config.providers.iter().find_map(|(name, provider)| {
        use crate::settings::ProviderKind::Scripted;
        match (provider.kind, &provider.script) {
            (Some(Scripted), None) => Some((
                format!("providers.{name}"),
                "a scripted provider needs `script`, the file with its replies".into(),
            )),
            (Some(kind), Some(_)) if kind != Scripted => Some((
                format!("providers.{name}.script"),
                (
                    "only a scripted provider has a script",
                    "set `kind = \"scripted\"` or drop it",
                )
                    .into(),
            )),
            _ => None,
        }
    })
}
