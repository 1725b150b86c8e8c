//! Defines the bot in Telegram.

use serde::{Deserialize, Serialize};
use url::Url;

/// The bot in Telegram; there is none without a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TelegramSettings {
    /// The environment variable with the token of the bot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_variable: Option<String>,
    /// Where the Bot API is.
    pub api_url: Url,
    /// The topic of groups to which the bot tells; none for the group itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<i32>,
    /// Where Telegram brings what people do; without it the bot asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Url>,
}
