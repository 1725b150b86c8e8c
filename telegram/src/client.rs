//! Asks Telegram by teloxide; nobody else knows that crate.

mod fetching;
mod pace;
mod reading;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pace::Pacer;
use reading::WrittenUpdate;
use ropewalk_runtime::Clock;
use ropewalk_schemas::ContentHash;
use ropewalk_schemas::advice::Advice;
use serde::Serialize;
use teloxide::ApiError as TelegramError;
use teloxide::payloads::{
    AnswerCallbackQuerySetters, EditMessageTextSetters, GetUpdates, GetUpdatesSetters,
    SendMessageSetters, SetWebhookSetters,
};
use teloxide::requests::{JsonRequest, Payload, Requester};
use teloxide::types::{
    AllowedUpdate, BotCommand, CallbackQueryId, ChatId, ForceReply, InlineKeyboardButton,
    InlineKeyboardMarkup, LinkPreviewOptions, MessageEntity, MessageEntityKind, MessageId,
    ThreadId,
};
use teloxide::{Bot, RequestError, net};
use tokio::sync::Notify;
use url::Url;

use crate::api::{Api, ApiError, Button, Letter, Update};
use crate::styled::{Style, StyledText};

/// How long Telegram holds a question for updates, in seconds.
const POLL: u32 = 25;
/// How long it rests after Telegram did not know the token: whoever mends that needs longer.
const UNKNOWN: Duration = Duration::from_mins(1);
/// How long any request may take.
const TIME: Duration = Duration::from_secs(45);

/// What Telegram tells the bot.
const ALLOWED: [AllowedUpdate; 2] = [AllowedUpdate::Message, AllowedUpdate::CallbackQuery];

/// Says why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is none.
    #[error("`{0}` of `telegram.api_url` is no address")]
    Address(String),
    /// The token is none; it is a secret and not repeated.
    #[error("the token of the bot is none")]
    Token,
    /// The HTTP client cannot be made.
    #[error("cannot set up the HTTP client for Telegram: {0}")]
    Http(String),
}

impl Advice for ClientError {
    fn next(&self) -> Option<String> {
        let next = match self {
            Self::Address(_) => "write it like `https://api.telegram.org`",
            Self::Token => "copy what `@BotFather` shows, which begins with a number and a colon",
            Self::Http(_) => return None,
        };
        Some(next.to_owned())
    }
}

/// How it goes that Telegram brings updates itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookStanding {
    /// Where to.
    pub address: Url,
    /// How many updates were not taken yet.
    pub waiting: u32,
    /// Why the last that was not taken was not, in the words of Telegram.
    pub error: Option<String>,
}

/// Asks for updates as they are written: teloxide reads nothing of one in which it does not know a part, or misses one.
#[derive(Serialize)]
struct UpdateRequest(GetUpdates);

impl Payload for UpdateRequest {
    type Output = Vec<WrittenUpdate>;

    const NAME: &'static str = GetUpdates::NAME;
}

/// A bot of Telegram, known by its token.
#[derive(Clone)]
pub struct TelegramClient {
    bot: Bot,
    id: i64,
    topic: Option<i32>,
    /// Shared by all that send for this bot.
    pace: Arc<Pacer>,
    /// Told when there is something to say; shared by them too.
    wake: Arc<Notify>,
}

impl TelegramClient {
    /// Returns the bot of `token`, asked for at `api_url`; those who send for it share one of it.
    pub fn new(token: &str, api_url: &str, clock: Clock) -> Result<Self, ClientError> {
        let id = token.split_once(':').and_then(|(id, _)| id.parse().ok());
        let id = id.ok_or(ClientError::Token)?;
        let url = api_url
            .parse()
            .map_err(|_| ClientError::Address(api_url.to_owned()))?;
        // teloxide brings a client of its own, older than that of `runtime`.
        let client = net::default_reqwest_settings()
            .timeout(TIME)
            // The token is a part of every address.
            .referer(false)
            .build()
            .map_err(|error| ClientError::Http(error.to_string()))?;
        let bot = Bot::with_client(token, client).set_api_url(url);
        Ok(Self {
            bot,
            id,
            topic: None,
            pace: Arc::new(Pacer::new(clock)),
            wake: Arc::default(),
        })
    }

    /// Sends what goes to a group to its topic of this number, where the group has that.
    #[must_use]
    pub const fn in_topic(mut self, topic: Option<i32>) -> Self {
        self.topic = topic;
        self
    }

    /// Sends a message, into a topic where one is named.
    async fn post(
        &self,
        chat: i64,
        letter: &Letter,
        topic: Option<i32>,
    ) -> Result<i32, RequestError> {
        let mut message = self
            .bot
            .send_message(ChatId(chat), &letter.text.plain)
            .entities(entities(&letter.text))
            .link_preview_options(without_preview())
            .disable_notification(letter.silent);
        if let Some(topic) = topic {
            message = message.message_thread_id(ThreadId(MessageId(topic)));
        }
        if letter.wants_words {
            message = message.reply_markup(ForceReply::new());
        } else if !letter.buttons.is_empty() {
            message = message.reply_markup(keyboard(&letter.buttons));
        }
        Ok(message.await?.id.0)
    }

    /// Returns the number of the bot.
    pub(crate) const fn id(&self) -> i64 {
        self.id
    }

    /// Returns what is told when there is something to say.
    pub(crate) fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    /// Returns by what the bot knows that it is Telegram who brings something: whoever knows the token can say it, and
    /// nobody else.
    pub(crate) fn secret(&self) -> String {
        let known = format!("ropewalk brings updates of {}", self.bot.token());
        ContentHash::of(known.as_bytes()).to_string()
    }

    /// Returns where Telegram brings updates to and how that goes, if it does.
    pub async fn hooked(&self) -> Result<Option<HookStanding>, ApiError> {
        let known = self.bot.get_webhook_info().await.map_err(translated)?;
        Ok(known.url.map(|address| HookStanding {
            address,
            waiting: known.pending_update_count,
            error: known.last_error_message,
        }))
    }

    /// Returns the name of the bot, if Telegram knows it.
    pub async fn name(&self) -> Result<String, ApiError> {
        let me = self.bot.get_me().await.map_err(translated)?;
        Ok(me.username().to_owned())
    }
}

#[async_trait]
impl Api for TelegramClient {
    async fn name(&self) -> Result<String, ApiError> {
        Self::name(self).await
    }

    async fn hook(&self, address: &Url, secret: &str) -> Result<(), ApiError> {
        let set = self
            .bot
            .set_webhook(address.clone())
            .secret_token(secret)
            // One after the other, as they happened.
            .max_connections(1)
            .allowed_updates(ALLOWED);
        set.await.map(drop).map_err(translated)
    }

    async fn unhook(&self) -> Result<(), ApiError> {
        let removed = self.bot.delete_webhook().await;
        removed.map(drop).map_err(translated)
    }

    async fn updates(&self, offset: i64) -> Result<Vec<Update>, ApiError> {
        let asked = GetUpdates::new()
            .offset(i32::try_from(offset).unwrap_or(i32::MAX))
            .timeout(POLL)
            .allowed_updates(ALLOWED);
        let asked = JsonRequest::new(self.bot.clone(), UpdateRequest(asked));
        let updates = asked.await.map_err(translated)?;
        Ok(updates.into_iter().map(Update::from).collect())
    }

    async fn send(&self, chat: i64, letter: &Letter) -> Result<i32, ApiError> {
        self.pace.turn(chat).await?;
        // The chats of groups are negative, and others have no topics.
        let topic = self.topic.filter(|_| chat < 0);
        let sent = match self.post(chat, letter, topic).await {
            // It is no forum, or the topic is gone: the message itself is for somebody all the same.
            Err(RequestError::Api(error)) if topic.is_some() && lacks_topic(&error) => {
                self.post(chat, letter, None).await
            }
            sent => sent,
        };
        sent.map_err(translated)
    }

    async fn edit(&self, chat: i64, message: i32, text: &StyledText) -> Result<(), ApiError> {
        self.pace.turn(chat).await?;
        let edit = self
            .bot
            .edit_message_text(ChatId(chat), MessageId(message), &text.plain)
            .link_preview_options(without_preview())
            .entities(entities(text));
        match edit.await {
            Ok(_) | Err(RequestError::Api(TelegramError::MessageNotModified)) => Ok(()),
            Err(error) => Err(translated(error)),
        }
    }

    async fn remove(&self, chat: i64, message: i32) -> Result<(), ApiError> {
        let removed = self.bot.delete_message(ChatId(chat), MessageId(message));
        removed.await.map(drop).map_err(translated)
    }

    async fn fetch(&self, id: &str, most: u64) -> Result<Vec<u8>, ApiError> {
        fetching::fetch(&self.bot, id, most).await
    }

    async fn show(&self, press: &str, line: &str) -> Result<(), ApiError> {
        let id = CallbackQueryId(press.to_owned());
        let mut answer = self.bot.answer_callback_query(id).show_alert(false);
        if !line.is_empty() {
            answer = answer.text(line);
        }
        answer.await.map(drop).map_err(translated)
    }

    async fn offer(&self, commands: &[(&str, &str)]) -> Result<(), ApiError> {
        let commands = commands
            .iter()
            .map(|(name, does)| BotCommand::new(*name, *does));
        let set = self.bot.set_my_commands(commands);
        set.await.map(drop).map_err(translated)
    }
}

/// Says whether Telegram refused a message for its topic alone.
fn lacks_topic(error: &TelegramError) -> bool {
    let said = error.to_string().to_ascii_lowercase();
    ["thread not found", "topic_closed", "topic_deleted"]
        .iter()
        .any(|part| said.contains(part))
}

fn translated(error: RequestError) -> ApiError {
    let later = |after, reason| ApiError::Later { after, reason };
    match error {
        RequestError::RetryAfter(seconds) => {
            let reason = format!("Telegram asks to wait {} s", seconds.seconds());
            later(Some(Duration::from_secs(seconds.seconds().into())), reason)
        }
        RequestError::Api(TelegramError::TerminatedByOtherGetUpdates) => {
            later(None, "another process polls for the same bot".to_owned())
        }
        RequestError::Api(TelegramError::InvalidToken) => {
            let reason = "Telegram does not know the token of the bot";
            later(Some(UNKNOWN), reason.to_owned())
        }
        RequestError::Api(error) => ApiError::Refused(error.to_string()),
        RequestError::MigrateToChatId(_) => ApiError::Refused(error.to_string()),
        // Who never got through has asked for nothing.
        RequestError::Network(error) if error.is_connect() => {
            later(None, "Telegram cannot be reached".to_owned())
        }
        RequestError::Network(_) | RequestError::InvalidJson { .. } | RequestError::Io(_) => {
            ApiError::Unanswered("the answer of Telegram was lost".to_owned())
        }
    }
}

/// Reads an update as Telegram writes it.
pub(crate) fn parse(written: &[u8]) -> Result<Update, serde_json::Error> {
    serde_json::from_slice::<WrittenUpdate>(written).map(Update::from)
}

/// Lets Telegram fetch none of the addresses that a text names.
const fn without_preview() -> LinkPreviewOptions {
    LinkPreviewOptions {
        is_disabled: true,
        url: None,
        prefer_small_media: false,
        prefer_large_media: false,
        show_above_text: false,
    }
}

fn keyboard(buttons: &[Button]) -> InlineKeyboardMarkup {
    let rows = buttons.iter().map(|button| {
        let Button { label, data } = button;
        [InlineKeyboardButton::callback(label.clone(), data.clone())]
    });
    InlineKeyboardMarkup::new(rows)
}

fn entities(text: &StyledText) -> Vec<MessageEntity> {
    let entity = |span: &crate::styled::Span| {
        let kind = match span.style {
            Style::Bold => MessageEntityKind::Bold,
            Style::Code => MessageEntityKind::Code,
            Style::Block => MessageEntityKind::Pre { language: None },
        };
        MessageEntity::new(kind, span.offset, span.length)
    };
    text.spans.iter().map(entity).collect()
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::advice::Words;
    use serde_json::json;

    use super::*;
    use crate::api::Interaction;
    use crate::commands::{self, TextInput};
    use crate::keyboard::Mark;

    #[test]
    fn posts_of_channels_what_is_edited_and_what_bots_say_are_of_nobody() {
        let from = |is_bot| json!({ "id": 1, "first_name": "Ann", "is_bot": is_bot });
        let message = |is_bot| {
            json!({ "message_id": 9, "date": 1_795_294_145, "text": "/status", "from": from(is_bot),
                "chat": { "id": 1, "type": "private", "first_name": "Ann" } })
        };
        let post = json!({ "message_id": 9, "date": 1_795_294_145, "text": "/status",
            "chat": { "id": -1009, "type": "channel", "title": "News" } });
        for (kind, what, known) in [
            ("message", message(false), true),
            ("message", message(true), false),
            ("edited_message", message(false), false),
            ("channel_post", post.clone(), false),
            ("message", post, false),
            ("something_new", json!({}), false),
        ] {
            let update = json!({ "update_id": 7, kind: what }).to_string();
            let read = parse(update.as_bytes()).unwrap();
            assert_eq!((read.id, read.from.is_some()), (7, known), "{update}");
        }
    }

    #[test]
    fn a_bot_that_cannot_be_made_says_why_and_what_to_write() {
        let address = Words::of(&ClientError::Address("a; b".to_owned()));
        assert_eq!(
            address,
            (
                "`a; b` of `telegram.api_url` is no address",
                "write it like `https://api.telegram.org`"
            )
                .into()
        );
        let http = Words::of(&ClientError::Http("a; b".to_owned()));
        assert_eq!(
            http,
            "cannot set up the HTTP client for Telegram: a; b".into()
        );
        assert!(ClientError::Token.next().is_some());
    }

    /// Whatever is brought is of somebody or of nobody, and is the same where it is kept and read again.
    #[test]
    fn fuzz_telegram_updates() {
        let check = |input: &[u8]| {
            let Ok(update) = parse(input) else {
                return "none".to_owned();
            };
            let kept = serde_json::to_vec(&update).unwrap();
            assert_eq!(serde_json::from_slice::<Update>(&kept).unwrap(), update);
            let did = match &update.did {
                Interaction::Wrote { text, reply_to, .. } => {
                    let meant = match commands::read(text) {
                        TextInput::Start(_) => "links",
                        TextInput::Order(..) => "orders",
                        TextInput::Unknown(_) => "orders nothing",
                        TextInput::Words => "says",
                    };
                    format!("{meant} {}", reply_to.is_some())
                }
                Interaction::Sent { file, .. } => format!("{:?}", file.kind),
                Interaction::Pressed { data, .. } => match Mark::read(data) {
                    Some(mark) => format!("{}", mark.place.min(3)),
                    None => "presses nothing".to_owned(),
                },
                Interaction::Other => "other".to_owned(),
            };
            format!("{} {did}", update.from.is_some())
        };
        let words = [
            "\"message\":",
            "\"edited_message\":",
            "\"channel_post\":",
            "\"callback_query\":",
            "\"from\":",
            "\"chat\":",
            "\"text\":",
            "\"photo\":",
            "\"reply_to_message\":",
            "\"type\":\"private\"",
            "\"/start \"",
            "\"/status\"",
            "-1",
            "{}",
        ];
        ropewalk_tests::fuzz::Target {
            name: "telegram-updates",
            words: &words,
            check: &check,
        }
        .run();
    }
}
