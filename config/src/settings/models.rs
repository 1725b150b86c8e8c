//! Defines which model plays which role, and under what condition it may.

use std::fmt;
use std::path::PathBuf;

use ropewalk_schemas::advice::Words;
use serde::{Deserialize, Serialize};

use super::{Config, PriceSettings, PriceSourceSettings, SandboxMode};
use crate::error::ConfigError;

/// The models by role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// Talks with people.
    pub chat: ModelChoice,
    /// Writes specifications.
    pub spec: ModelChoice,
    /// Builds.
    pub build: ModelChoice,
    /// Does the small chores.
    pub small: ModelChoice,
    /// The most tokens of one reply.
    pub max_output_tokens: u32,
    /// Who takes over for a role while its model is away or its quota is used up.
    #[serde(default)]
    pub fallbacks: FallbackSettings,
    /// How hard the models of a role are to think, where that is said.
    #[serde(default)]
    pub efforts: EffortSettings,
    /// The cassette in which is written down what models are asked and answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
    /// The cassette that answers in place of all models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<PathBuf>,
}

/// How hard models are to think, by role; where nothing is said, as their provider thinks best.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EffortSettings {
    /// Those that talk with people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat: Option<Effort>,
    /// Those that write specifications.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<Effort>,
    /// Those that build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<Effort>,
    /// Those that do the small chores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub small: Option<Effort>,
}

/// How hard a model is to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effort {
    /// Little: quick and cheap.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

/// When a conversation that has grown too long is summed up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompactionSettings {
    /// Whether that is done at all.
    pub enabled: bool,
    /// The most tokens that a conversation may have, as estimated.
    pub threshold_tokens: u32,
}

/// The models that take over, by role and in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FallbackSettings {
    /// Those that talk with people.
    pub chat: Vec<ModelChoice>,
    /// Those that write specifications.
    pub spec: Vec<ModelChoice>,
    /// Those that build.
    pub build: Vec<ModelChoice>,
    /// Those that do the small chores.
    pub small: Vec<ModelChoice>,
}

impl ModelSettings {
    /// Returns every role with its model.
    pub fn roles(&self) -> [(&'static str, &ModelChoice); 4] {
        [
            ("chat", &self.chat),
            ("spec", &self.spec),
            ("build", &self.build),
            ("small", &self.small),
        ]
    }

    /// Names the providers of those that build: the one that is asked, then those that take over.
    pub fn builders(&self) -> Vec<String> {
        providers(&self.build, &self.fallbacks.build)
    }

    /// Names the providers of those that answer people, in the same order.
    pub fn talkers(&self) -> Vec<String> {
        providers(&self.chat, &self.fallbacks.chat)
    }

    /// Returns every model that may be asked, with its role: those of the roles, then those that take over.
    pub fn all(&self) -> Vec<(&'static str, &ModelChoice)> {
        let fallbacks = [
            ("chat", &self.fallbacks.chat),
            ("spec", &self.fallbacks.spec),
            ("build", &self.fallbacks.build),
            ("small", &self.fallbacks.small),
        ];
        let fallbacks = fallbacks
            .into_iter()
            .flat_map(|(role, choices)| choices.iter().map(move |choice| (role, choice)));
        self.roles().into_iter().chain(fallbacks).collect()
    }
}

fn providers(first: &ModelChoice, others: &[ModelChoice]) -> Vec<String> {
    let choices = std::iter::once(first).chain(others);
    choices.map(|choice| choice.provider.clone()).collect()
}

/// A model of a provider, written `provider/model`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModelChoice {
    /// The provider, a shipped one or one of `[providers]`.
    pub provider: String,
    /// The model, as the provider calls it.
    pub model: String,
}

/// Says that a text names no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no model; write `provider/model`, for example `anthropic/claude-sonnet-4-5`")]
pub struct InvalidModel(String);

impl TryFrom<String> for ModelChoice {
    type Error = InvalidModel;

    fn try_from(text: String) -> Result<Self, InvalidModel> {
        match text.split_once('/') {
            Some((provider, model)) if !provider.is_empty() && !model.is_empty() => Ok(Self {
                provider: provider.to_owned(),
                model: model.to_owned(),
            }),
            _ => Err(InvalidModel(text)),
        }
    }
}

impl From<ModelChoice> for String {
    fn from(choice: ModelChoice) -> Self {
        choice.to_string()
    }
}

impl fmt::Display for ModelChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.provider, self.model)
    }
}

/// The wire format of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderKind {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI-compatible chat completions.
    #[serde(rename = "openai")]
    OpenAi,
    /// OpenAI's Responses.
    Responses,
    /// Gemini's `streamGenerateContent`.
    Gemini,
    /// Replies from a file.
    Scripted,
}

/// What is changed about a shipped provider, or known of an added one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderSettings {
    /// The wire format; must be given for a provider that is not shipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ProviderKind>,
    /// Where it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The environment variable that holds the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_variable: Option<String>,
    /// How many tokens a conversation with its models may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_tokens: Option<u32>,
    /// Which of its models see pictures: names, or the beginning of names followed by `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<String>>,
    /// What its models cost; where nothing is said of one, what ships holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<PriceSettings>,
    /// When and where these prices were read; there are none without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priced: Option<PriceSourceSettings>,
    /// The replies of a scripted provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<PathBuf>,
}

/// What must be said about the models before they run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelPolicy {
    /// Nothing: every model is scripted, or commands are confined.
    Safe,
    /// This warning, loudly.
    Warn(String),
}

impl Config {
    /// Returns whether `provider` answers from a script.
    pub fn is_scripted(&self, provider: &str) -> bool {
        match self
            .providers
            .get(provider)
            .and_then(|settings| settings.kind)
        {
            Some(kind) => kind == ProviderKind::Scripted,
            None => provider == "scripted",
        }
    }

    /// Refuses models that would run commands without a sandbox, unless the configuration allows it by `sandbox = "off"`;
    /// `works` says whether there is one, or why not.
    pub fn check_model_policy(&self, works: Result<(), Words>) -> Result<ModelPolicy, ConfigError> {
        let unconfined = self
            .models
            .all()
            .into_iter()
            .find(|(_, choice)| !self.is_scripted(&choice.provider));
        match (unconfined, self.sandbox.mode, works) {
            (None, SandboxMode::Off, _) | (_, SandboxMode::Required, Ok(())) => {
                Ok(ModelPolicy::Safe)
            }
            (None, SandboxMode::Required, Err(reason)) => Ok(ModelPolicy::Warn(format!(
                "commands run with your rights on this machine, which only scripted models may: {reason}"
            ))),
            (Some((role, choice)), SandboxMode::Required, Err(reason)) => {
                Err(ConfigError::SandboxRequired {
                    role,
                    model: choice.to_string(),
                    reason,
                })
            }
            (Some((_, choice)), SandboxMode::Off, _) => Ok(ModelPolicy::Warn(format!(
                "the sandbox is off: commands that `{choice}` asks for run with your rights on this machine"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(text: &str) -> ModelChoice {
        ModelChoice::try_from(text.to_owned()).unwrap()
    }

    fn all(model: &str, mode: SandboxMode) -> Config {
        let mut config = Config::shipped().unwrap();
        for role in [
            &mut config.models.chat,
            &mut config.models.spec,
            &mut config.models.build,
            &mut config.models.small,
        ] {
            *role = choice(model);
        }
        config.sandbox.mode = mode;
        config
    }

    #[test]
    fn only_scripted_models_run_without_a_sandbox() {
        use SandboxMode::{Off, Required};
        let rows = [
            ("scripted/rehearsal", Required, true, Some("")),
            ("scripted/rehearsal", Required, false, Some("nothing works")),
            ("scripted/rehearsal", Off, false, Some("")),
            ("ollama/qwen", Required, true, Some("")),
            ("ollama/qwen", Required, false, None),
            ("ollama/qwen", Off, true, Some("the sandbox is off")),
            ("ollama/qwen", Off, false, Some("the sandbox is off")),
        ];
        for (model, mode, works, expected) in rows {
            let works = works.then_some(()).ok_or("nothing works".into());
            match (all(model, mode).check_model_policy(works), expected) {
                (Ok(ModelPolicy::Safe), Some(warning)) => assert_eq!(warning, "", "{model}"),
                (Ok(ModelPolicy::Warn(said)), Some(warning)) => {
                    assert!(!warning.is_empty() && said.contains(warning), "{said}");
                }
                (Err(error), None) => {
                    let said = Words::of(&error).to_string();
                    assert!(said.contains("nothing works"), "{said}");
                    assert!(said.contains("sandbox = \"off\""), "{said}");
                }
                (found, _) => panic!("{model} {mode:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_provider_of_another_name_may_be_scripted_and_one_called_scripted_may_not() {
        let mut config = all("mine/x", SandboxMode::Required);
        config.providers.insert(
            "mine".into(),
            ProviderSettings {
                kind: Some(ProviderKind::Scripted),
                ..ProviderSettings::default()
            },
        );
        assert!(config.is_scripted("mine"));
        config.providers.insert(
            "scripted".into(),
            ProviderSettings {
                kind: Some(ProviderKind::OpenAi),
                ..ProviderSettings::default()
            },
        );
        assert!(!config.is_scripted("scripted"));
    }

    #[test]
    fn a_model_is_named_with_its_provider() {
        assert_eq!(choice("ollama/hf.co/x:q4").model, "hf.co/x:q4");
        for bad in ["gpt-5", "/x", "x/", ""] {
            assert!(ModelChoice::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
