//! Builds the model of every role from what the configuration says about its provider.

use std::collections::BTreeMap;
use std::sync::Arc;

use ropewalk_config::settings::{
    Effort as SettingsEffort, EffortSettings, ModelChoice, PriceSettings,
    ProviderKind as SettingsKind, ProviderSettings,
};
use ropewalk_config::{ConfigError, Environment, Prompts};
use ropewalk_engine::{CompactionPolicy, Engine, ModelEntry, ModelRole, Models};
use ropewalk_llm::{
    BoundedModel, BuildError, Cassette, CassetteError, DatedPrices, Effort, Model, Price,
    PriceSource, PriceTable, ProviderConfig, ProviderKind, Recorder, Script,
};
use ropewalk_runtime::Clock;

use crate::error::CliError;
use crate::project::Project;
use ropewalk_schemas::advice::Words;

/// What a provider of the configuration comes to.
struct Provider {
    config: ProviderConfig,
    script: Option<Script>,
}

/// How a provider that some role uses is doing.
#[derive(Debug, Clone)]
pub struct ModelCheck {
    /// The provider.
    pub provider: String,
    /// Why it cannot be used.
    pub fault: Option<CliError>,
    /// Its models that some role uses, each with what is known of its price.
    pub prices: Vec<(String, Option<String>)>,
}

/// Builds the model of every role; a provider that several roles share is built once.
pub(crate) fn models(
    project: &Project,
    environment: &Environment,
    clock: &Clock,
) -> Result<Models, CliError> {
    let mut built = BTreeMap::new();
    let tape = Tape::of(project)?;
    of_roles(project, |choice| {
        entry(choice, &mut built, (project, &tape), environment, clock)
    })
}

/// Refuses models that cannot be asked, such as one whose key is missing; nothing is opened or written.
pub(crate) fn require_models(
    project: &Project,
    environment: &Environment,
    clock: &Clock,
) -> Result<(), CliError> {
    if project.config().models.replay.is_some() {
        return Ok(());
    }
    let mut built = BTreeMap::new();
    let made = of_roles(project, |choice| {
        let from = (project, &Tape::Off);
        entry(choice, &mut built, from, environment, clock)
    });
    made.map(drop)
}

/// What runs beside the models.
enum Tape {
    /// Nothing.
    Off,
    /// It writes down what they are asked and answer.
    Records(Recorder),
    /// It answers in their place.
    Plays(Cassette),
}

impl Tape {
    fn of(project: &Project) -> Result<Self, CliError> {
        let settings = &project.config().models;
        let unusable = |error: CassetteError| CliError::plain("cassette", error);
        if let Some(path) = &settings.replay {
            let path = project.file("models.replay", path)?;
            return Cassette::open(&path).map(Self::Plays).map_err(unusable);
        }
        let Some(path) = &settings.record else {
            return Ok(Self::Off);
        };
        let path = project.file("models.record", path)?;
        Recorder::create(&path).map(Self::Records).map_err(unusable)
    }
}

/// Returns what is known of a provider, though nothing of it need be there.
pub(super) fn described(name: &str, project: &Project) -> Result<ProviderConfig, CliError> {
    let settings = project.config().providers.get(name).cloned();
    describe(name, &settings.unwrap_or_default())
}

/// Makes the models of every role, each by `make`.
pub(super) fn of_roles(
    project: &Project,
    mut make: impl FnMut(&ModelChoice) -> Result<ModelEntry, CliError>,
) -> Result<Models, CliError> {
    let settings = &project.config().models;
    let mut models = Models {
        chat: make(&settings.chat)?,
        spec: make(&settings.spec)?,
        build: make(&settings.build)?,
        small: make(&settings.small)?,
        fallbacks: BTreeMap::new(),
        efforts: efforts(&settings.efforts),
    };
    let fallbacks = [
        (ModelRole::Chat, &settings.fallbacks.chat),
        (ModelRole::Spec, &settings.fallbacks.spec),
        (ModelRole::Build, &settings.fallbacks.build),
        (ModelRole::Small, &settings.fallbacks.small),
    ];
    for (role, choices) in fallbacks {
        let entries = choices.iter().map(&mut make);
        models = models.falling_back_to(role, entries.collect::<Result<_, _>>()?);
    }
    Ok(models)
}

/// Lets `engine` make room in conversations that grow too long, where that is wanted.
pub(crate) fn compacting(engine: Engine, project: &Project) -> Result<Engine, CliError> {
    let settings = &project.config().compaction;
    if !settings.enabled {
        return Ok(engine);
    }
    Ok(engine.with_compaction(CompactionPolicy {
        threshold_tokens: u64::from(settings.threshold_tokens),
        prompts: Prompts::shipped()?,
    }))
}

/// Checks every provider that a role uses, without asking it anything.
pub fn check_models(
    project: &Project,
    environment: &Environment,
    clock: &Clock,
) -> Vec<ModelCheck> {
    let mut checks: Vec<ModelCheck> = Vec::new();
    for (_, choice) in project.config().models.all() {
        let known = checks
            .iter_mut()
            .find(|check| check.provider == choice.provider);
        let price = (choice.model.clone(), price_told(choice, project));
        match known {
            Some(check) if check.prices.contains(&price) => {}
            Some(check) => check.prices.push(price),
            None => checks.push(ModelCheck {
                provider: choice.provider.clone(),
                fault: build(&choice.provider, (project, &Tape::Off), environment, clock).err(),
                prices: vec![price],
            }),
        }
    }
    checks
}

/// Takes the efforts that the configuration names.
fn efforts(settings: &EffortSettings) -> BTreeMap<ModelRole, Effort> {
    let roles = [
        (ModelRole::Chat, settings.chat),
        (ModelRole::Spec, settings.spec),
        (ModelRole::Build, settings.build),
        (ModelRole::Small, settings.small),
    ];
    let said = roles
        .into_iter()
        .filter_map(|(role, effort)| Some((role, effort?)));
    said.map(|(role, effort)| {
        let effort = match effort {
            SettingsEffort::Low => Effort::Low,
            SettingsEffort::Medium => Effort::Medium,
            SettingsEffort::High => Effort::High,
        };
        (role, effort)
    })
    .collect()
}

/// Says what is known of the price of a model; none where it is unknown. A script costs nothing.
fn price_told(choice: &ModelChoice, project: &Project) -> Option<String> {
    let config = provider(&choice.provider, project).ok()?.config;
    let scripted = config.kind == ProviderKind::Scripted;
    let told = config.price_told(&choice.model);
    told.or_else(|| scripted.then(|| "scripted".to_owned()))
}

type BuiltModel = (Arc<dyn Model>, ProviderConfig);

fn entry(
    choice: &ModelChoice,
    built: &mut BTreeMap<String, BuiltModel>,
    (project, tape): (&Project, &Tape),
    environment: &Environment,
    clock: &Clock,
) -> Result<ModelEntry, CliError> {
    let (model, config) = if let Some(known) = built.get(&choice.provider) {
        known.clone()
    } else {
        let fresh = build(&choice.provider, (project, tape), environment, clock)?;
        built.insert(choice.provider.clone(), fresh.clone());
        fresh
    };
    Ok(ModelEntry {
        model,
        name: choice.model.clone(),
        sees_images: config.sees_images(&choice.model),
        window_tokens: config.window_tokens,
        prices: config.price_table(&choice.model),
    })
}

fn build(
    name: &str,
    (project, tape): (&Project, &Tape),
    environment: &Environment,
    clock: &Clock,
) -> Result<BuiltModel, CliError> {
    let Provider { config, script } = provider(name, project)?;
    if let Tape::Plays(cassette) = tape {
        let player = cassette.player(name, clock.clone());
        return Ok((Arc::new(player), config));
    }
    let key = config
        .key_variable
        .as_deref()
        .and_then(|variable| environment.secret(variable));
    let model = ropewalk_llm::build(&config, key, script, clock).map_err(|error| match error {
        BuildError::MissingKey { provider, variable } => {
            CliError::from(ConfigError::MissingKey { provider, variable })
        }
        other => CliError::from(other),
    })?;
    let longest = project.config().models.max_output_tokens;
    let model = BoundedModel::new(model, longest);
    let model: Arc<dyn Model> = match tape {
        Tape::Records(recorder) => Arc::new(recorder.around(model, clock.clone())),
        _ => Arc::new(model),
    };
    Ok((model, config))
}

fn provider(name: &str, project: &Project) -> Result<Provider, CliError> {
    let config = described(name, project)?;
    let settings = project.config().providers.get(name);
    let script = settings.and_then(|settings| settings.script.as_ref());
    let script = match (script, config.kind) {
        (Some(path), ProviderKind::Scripted) => {
            let path = project.file(&format!("providers.{name}.script"), path)?;
            let text =
                std::fs::read_to_string(&path).map_err(|error| CliError::file(&path, &error))?;
            let script = Script::parse(&text).map_err(|error| {
                CliError::refused("config", format!("`{}`: {error}", path.display()))
            })?;
            Some(script)
        }
        _ => None,
    };
    Ok(Provider { config, script })
}

/// Lays what the configuration says over the shipped description, or makes one of what it says.
fn describe(name: &str, settings: &ProviderSettings) -> Result<ProviderConfig, CliError> {
    let shipped = match (ProviderConfig::shipped(name), settings.kind) {
        (Ok(shipped), _) => Some(shipped),
        (Err(_), Some(_)) => None,
        (Err(error), None) => {
            let text = (
                Words::of(&error).to_string(),
                format!("add `[providers.{name}]` with its `kind`"),
            );
            return Err(CliError::refused("model", text));
        }
    };
    let mut config = shipped.clone().unwrap_or_else(|| ProviderConfig {
        name: name.to_owned(),
        ..ProviderConfig::scripted()
    });
    config.kind = match settings.kind {
        Some(SettingsKind::Anthropic) => ProviderKind::Anthropic,
        Some(SettingsKind::OpenAi) => ProviderKind::Openai,
        Some(SettingsKind::Responses) => ProviderKind::Responses,
        Some(SettingsKind::Gemini) => ProviderKind::Gemini,
        Some(SettingsKind::Scripted) => ProviderKind::Scripted,
        None => config.kind,
    };
    if let Some(url) = &settings.base_url {
        config.base_url.clone_from(url);
    }
    let window = settings.window_tokens.map(u64::from);
    config.window_tokens = window.or(config.window_tokens);
    if let Some(images) = &settings.images {
        config.images.clone_from(images);
    } else if shipped.is_none() && config.kind != ProviderKind::Scripted {
        // Who sees pictures among models that nobody here knows, the configuration says.
        config.images.clear();
    }
    if let Some(variable) = &settings.key_variable {
        config.key_variable = Some(variable.clone());
        config.key_optional = false;
    }
    config.own_prices = settings.priced.as_ref().map(|priced| DatedPrices {
        table: PriceTable(settings.prices.iter().map(price).collect()),
        source: PriceSource {
            date: priced.date.clone(),
            source: priced.source.clone(),
        },
    });
    Ok(config)
}

fn price(settings: &PriceSettings) -> Price {
    Price {
        model: settings.model.clone(),
        input: settings.input,
        output: settings.output,
        cache_read: settings.cache_read,
        cache_write: settings.cache_write,
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_config::settings::PriceSourceSettings;
    use ropewalk_llm::Usage;

    use super::*;

    #[test]
    fn what_a_provider_costs_by_the_configuration_counts_and_the_rest_stays_as_it_ships() {
        let priced = ProviderSettings {
            kind: Some(SettingsKind::OpenAi),
            base_url: Some("http://127.0.0.1:1".to_owned()),
            prices: vec![PriceSettings {
                model: "claude-opus*".to_owned(),
                input: 1.0,
                output: 2.0,
                cache_read: Some(0.5),
                cache_write: None,
            }],
            priced: Some(PriceSourceSettings {
                date: "2026-11-20".to_owned(),
                source: "a contract".to_owned(),
            }),
            ..ProviderSettings::default()
        };
        let usage = Usage {
            input_tokens: 10,
            output_tokens: 100,
            cache_read_tokens: 2_000,
            cache_write_tokens: 4_000,
        };
        let (opus, sonnet) = ("claude-opus-4-5", "claude-sonnet-4-5");
        let own = Some(10 + 200 + 1_000 + 4_000);
        let shipped = Some(30 + 1_500 + 600 + 15_000);
        for (name, settings, model, expected) in [
            ("openrouter", &priced, opus, own),
            ("acme", &priced, opus, own),
            ("anthropic", &priced, opus, own),
            ("anthropic", &priced, sonnet, shipped),
            ("openrouter", &priced, sonnet, None),
            ("openrouter", &ProviderSettings::default(), opus, None),
        ] {
            let config = describe(name, settings).unwrap();
            let cost = config.price_table(model).cost(model, &usage);
            let micro_usd = cost.map(|cost| cost.micro_usd);
            assert_eq!(micro_usd, expected, "{name} {model}");
            let is_told = config.price_told(model).is_some();
            assert_eq!(is_told, expected.is_some(), "{name} {model}");
        }
    }

    fn settings(toml: &str) -> ProviderSettings {
        let (mut settings, mut lines) = (ProviderSettings::default(), toml.lines());
        while let Some((key, value)) = lines.next().and_then(|line| line.split_once('=')) {
            let value = value.to_owned();
            match key {
                "kind" => settings.kind = Some(SettingsKind::OpenAi),
                "base_url" => settings.base_url = Some(value),
                _ => settings.key_variable = Some(value),
            }
        }
        settings
    }

    #[test]
    fn a_shipped_provider_keeps_what_the_configuration_does_not_change() {
        let moved = describe("anthropic", &settings("base_url=http://127.0.0.1:1")).unwrap();
        assert_eq!(moved.base_url, "http://127.0.0.1:1");
        assert_eq!(moved.kind, ProviderKind::Anthropic);
        assert_eq!(moved.key_variable.as_deref(), Some("ANTHROPIC_API_KEY"));
    }

    #[test]
    fn an_added_provider_needs_a_kind_and_only_the_key_that_it_names() {
        let unknown = describe("acme", &settings("base_url=http://h"))
            .unwrap_err()
            .to_string();
        assert!(unknown.contains("[providers.acme]"), "{unknown}");
        let added = describe("acme", &settings("kind=openai\nbase_url=http://h")).unwrap();
        assert_eq!((added.name.as_str(), added.key_variable), ("acme", None));
        let keyed = describe("acme", &settings("kind=openai\nbase_url=h\nkey_variable=K")).unwrap();
        assert_eq!(keyed.key_variable.as_deref(), Some("K"));
    }
}
