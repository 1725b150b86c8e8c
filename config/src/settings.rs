//! Defines the typed sections of the configuration; `default.toml` gives every key its value and meaning.

mod agents;
mod logins;
mod models;
mod notices;
mod people;
mod policy;
mod prices;
mod project;
mod sandbox;
mod server;
mod telegram;
mod telemetry;
mod tools;

use std::collections::BTreeMap;

use ropewalk_schemas::UserSlug;
use serde::{Deserialize, Serialize};

pub use agents::{
    BudgetSettings, BuildSettings, CountPatterns, GateCommand, GateSettings, KnowledgeSettings,
    LevelSeconds, MonitorSettings, PackageManager, PmSettings, QuestionSettings,
    SpecificationSettings, StuckMinutes, ValidationSettings,
};
pub use models::{
    CompactionSettings, Effort, EffortSettings, FallbackSettings, InvalidModel, ModelChoice,
    ModelPolicy, ModelSettings, ProviderKind, ProviderSettings,
};
pub use notices::{InvalidQuietHours, InvalidTimeOfDay, NoticeSettings, QuietHours, TimeOfDay};
pub use people::PersonRecord;
pub use policy::{
    InvalidRule, Permission, PermissionMode, PolicySettings, Rule, RuleAction, ScopedRules,
};
pub use prices::{PriceSettings, PriceSourceSettings};
pub use project::{
    BusSettings, InvalidLocation, LogFormat, LogSettings, PersonSettings, ProjectSettings,
    RehearsalSettings, StoreLocation, StoreSettings, Transport,
};
pub use sandbox::{InvalidVariable, SandboxMode, SandboxSettings, VariableName};
pub use server::{InvalidNetwork, Network, ServerSettings};
pub use telegram::TelegramSettings;
pub use telemetry::TelemetrySettings;
pub use tools::{
    CacheSettings, InvalidSearchAddress, SearchAddress, ToolSettings, WebSearchSettings,
};

pub(crate) use logins::{LEFT_OUT, credentials, is_secret, tokens_of_hook, without_password};

/// The whole configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How commands that a model asks for are confined.
    pub sandbox: Box<SandboxSettings>,
    /// What models may do.
    pub policy: Box<PolicySettings>,
    /// What the tools of models need.
    pub tools: Box<ToolSettings>,
    /// The project.
    pub project: ProjectSettings,
    /// The person at the keyboard.
    pub person: PersonSettings,
    /// Everybody who works on the project, by name; nobody is named where one person does it all.
    #[serde(default)]
    pub people: Box<BTreeMap<UserSlug, PersonRecord>>,
    /// The bus.
    pub bus: BusSettings,
    /// The store.
    pub store: StoreSettings,
    /// The API.
    pub server: Box<ServerSettings>,
    /// The models by role.
    pub models: ModelSettings,
    /// Conversations that grow too long.
    pub compaction: CompactionSettings,
    /// Changed or added providers by name.
    #[serde(default)]
    pub providers: BTreeMap<String, ProviderSettings>,
    /// The specification agent.
    pub specification: SpecificationSettings,
    /// The build agent.
    pub build: BuildSettings,
    /// The gate.
    pub gate: Box<GateSettings>,
    /// The validation of a task.
    pub validation: ValidationSettings,
    /// Questions.
    pub questions: QuestionSettings,
    /// What people are told unasked.
    pub notices: Box<NoticeSettings>,
    /// Telegram.
    pub telegram: Box<TelegramSettings>,
    /// Knowledge.
    pub knowledge: KnowledgeSettings,
    /// The monitor.
    pub monitor: MonitorSettings,
    /// PM.
    pub pm: PmSettings,
    /// Budgets.
    pub budget: BudgetSettings,
    /// The rehearsal.
    pub rehearsal: RehearsalSettings,
    /// Logs.
    pub log: LogSettings,
    /// Spans.
    pub telemetry: Box<TelemetrySettings>,
}
