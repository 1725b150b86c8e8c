//! The phones of people at the emulator: what they do there, and see.

use std::future::Future;

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use ropewalk_tests::servers::TelegramServer;
use ropewalk_world::patience;
use serde_json::{Value, json};

/// The token of the bot.
pub(crate) const TOKEN: &str = "123456:TEST";

/// What people do on their phones, and see there.
pub(crate) struct Phones {
    pub(crate) server: TelegramServer,
    client: reqwest::Client,
}

/// A message that a bot sent: its number, its text and what its buttons carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: i64,
    pub(crate) text: String,
    pub(crate) buttons: Vec<(String, String)>,
}

impl Phones {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let options = ropewalk_runtime::http::ClientOptions::default();
        Ok(Self {
            server: TelegramServer::start()?,
            client: ropewalk_runtime::http::client(options)?,
        })
    }

    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<()> {
        let url = format!("{}{path}", self.server.url());
        let answer = self.client.post(url).json(body).send().await?;
        ensure!(answer.status().is_success(), "{}", answer.text().await?);
        Ok(())
    }

    /// Lets Telegram bring something, as it writes it.
    pub(crate) async fn update(&self, update: Value) -> anyhow::Result<()> {
        let body = json!({ "token": TOKEN, "update": update });
        self.post("__fixture/updates", &body).await
    }

    /// Returns a message of a user in a chat, as Telegram writes it.
    pub(crate) fn of(user: i64, chat: i64, text: &str) -> Value {
        let from = json!({ "id": user, "first_name": "Ann", "is_bot": false });
        let chat = if chat < 0 {
            json!({ "id": chat, "type": "group", "title": "All" })
        } else {
            json!({ "id": chat, "type": "private", "first_name": "Ann" })
        };
        json!({ "message_id": 9000, "from": from, "chat": chat, "date": 1_795_294_145, "text": text })
    }

    /// Lets a user write in a chat.
    pub(crate) async fn write(&self, user: i64, chat: i64, text: &str) -> anyhow::Result<()> {
        self.update(json!({ "message": Self::of(user, chat, text) }))
            .await
    }

    /// Lets a user answer a message of the bot.
    pub(crate) async fn reply(&self, user: i64, to: &Message, text: &str) -> anyhow::Result<()> {
        let mut message = Self::of(user, user, text);
        let mut answered = Self::of(7, user, &to.text);
        answered["message_id"] = json!(to.id);
        message["reply_to_message"] = answered;
        self.update(json!({ "message": message })).await
    }

    /// Lets a user pass on what somebody else wrote.
    pub(crate) async fn forward(&self, user: i64, text: &str) -> anyhow::Result<()> {
        let mut message = Self::of(user, user, text);
        message["forward_origin"] =
            json!({ "type": "hidden_user", "sender_user_name": "Eve", "date": 1_795_294_145 });
        self.update(json!({ "message": message })).await
    }

    /// Lets Telegram hold a file.
    pub(crate) async fn hold(&self, id: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let data = BASE64.encode(bytes);
        self.post("__file", &json!({ "id": id, "data": data }))
            .await
    }

    /// Lets Telegram hold a file of so many bytes.
    pub(crate) async fn hold_zeros(&self, id: &str, bytes: u64) -> anyhow::Result<()> {
        let file = json!({ "id": id, "zeros": bytes });
        self.post("__file", &file).await
    }

    /// Lets whoever fetches a file wait until it is held no more.
    pub(crate) async fn hold_back(&self, id: &str, held: bool) -> anyhow::Result<()> {
        self.post("__file", &json!({ "id": id, "held": held }))
            .await
    }

    /// Returns a message by which a user sends a file: `kind` and `file` as Telegram writes them.
    pub(crate) fn of_file(
        user: i64,
        (kind, file): (&str, Value),
        caption: &str,
    ) -> anyhow::Result<Value> {
        let mut message = Self::of(user, user, "");
        let fields = message.as_object_mut().context("no message")?;
        fields.remove("text");
        fields.insert(kind.to_owned(), file);
        if !caption.is_empty() {
            fields.insert("caption".to_owned(), json!(caption));
        }
        Ok(message)
    }

    /// Lets a user send a file.
    pub(crate) async fn send(
        &self,
        user: i64,
        file: (&str, Value),
        caption: &str,
    ) -> anyhow::Result<()> {
        let message = Self::of_file(user, file, caption)?;
        self.update(json!({ "message": message })).await
    }

    /// Lets a user press a button of a message in a chat.
    pub(crate) async fn press(
        &self,
        user: i64,
        chat: i64,
        message: i64,
        data: &str,
    ) -> anyhow::Result<()> {
        let mut bears = Self::of(7, chat, "?");
        bears["message_id"] = json!(message);
        let press = json!({
            "id": format!("press-{user}-{data}"), "from": { "id": user, "first_name": "Ann", "is_bot": false },
            "chat_instance": "77", "data": data, "message": bears,
        });
        self.update(json!({ "callback_query": press })).await
    }

    /// Lets Telegram answer 429 to messages (`flood`) or to edits (`still`), nothing (`away`), nothing to the next message, which it takes (`lost`), bring also
    /// what it was not asked for (`early`), or be as it should (`none`).
    pub(crate) async fn fault(&self, mode: &str) -> anyhow::Result<()> {
        self.post("__fault", &json!({ "mode": mode })).await
    }

    /// Lets Telegram answer 429 to all but the first so many messages from now on.
    pub(crate) async fn flood_after(&self, messages: u32) -> anyhow::Result<()> {
        let fault = json!({ "mode": "flood", "after": messages });
        self.post("__fault", &fault).await
    }

    /// Waits until a message was answered with 429.
    pub(crate) async fn refusal(&self) -> anyhow::Result<()> {
        until("a refusal", || async {
            Ok((self.refusals().await? > 0).then_some(()))
        })
        .await
    }

    async fn told(&self) -> anyhow::Result<Value> {
        let url = format!("{}__said", self.server.url());
        Ok(self.client.get(url).send().await?.json().await?)
    }

    /// Returns how many requests met a fault.
    pub(crate) async fn faults(&self) -> anyhow::Result<u64> {
        Ok(self.told().await?["faults"].as_u64().unwrap_or_default())
    }

    /// Returns how many updates were brought to the bot.
    pub(crate) async fn brought(&self) -> anyhow::Result<usize> {
        Ok(self.told().await?["brought"].as_array().map_or(0, Vec::len))
    }

    /// Returns how often the update was brought that was brought most often.
    pub(crate) async fn most_often_brought(&self) -> anyhow::Result<u64> {
        let told = self.told().await?;
        let brought = told["brought"].as_array().into_iter().flatten();
        let times = brought.filter_map(|update| update[1].as_u64());
        Ok(times.max().unwrap_or_default())
    }

    /// Returns how many messages were answered with 429.
    pub(crate) async fn refusals(&self) -> anyhow::Result<u64> {
        Ok(self.told().await?["refused"].as_u64().unwrap_or_default())
    }

    /// Lists what a bot did by one method, each with its parameters and result.
    pub(crate) async fn did(&self, method: &str) -> anyhow::Result<Vec<Value>> {
        let told = self.told().await?;
        let said = told["said"].as_array().cloned().unwrap_or_default();
        Ok(said
            .into_iter()
            .filter(|one| one["method"] == method)
            .collect())
    }

    /// Lists the messages that a chat got.
    pub(crate) async fn messages(&self, chat: i64) -> anyhow::Result<Vec<Message>> {
        let sent = self.did("sendmessage").await?;
        let to_chat = sent
            .iter()
            .filter(|one| one["parameters"]["chat_id"] == chat);
        Ok(to_chat.map(message).collect())
    }

    /// Waits for the message to a chat that holds `part`.
    pub(crate) async fn message(&self, chat: i64, part: &str) -> anyhow::Result<Message> {
        until(&format!("`{part}` in chat {chat}"), || async {
            let messages = self.messages(chat).await?;
            Ok(messages
                .into_iter()
                .rev()
                .find(|one| one.text.contains(part)))
        })
        .await
    }

    /// Waits until the last line that was shown for a press holds `part`; where that press took its time, until a message does.
    pub(crate) async fn shown(&self, part: &str) -> anyhow::Result<()> {
        let holds = |one: &Value| {
            let text = one["parameters"]["text"].as_str();
            text.is_some_and(|text| text.contains(part))
        };
        until(&format!("`{part}` shown"), || async {
            let shown = self.did("answercallbackquery").await?;
            let last = shown.last();
            let is_late = last.is_some_and(|one| one["parameters"]["text"].is_null());
            let is_told = if is_late {
                self.did("sendmessage").await?.iter().any(holds)
            } else {
                last.is_some_and(holds)
            };
            Ok(is_told.then_some(()))
        })
        .await
    }
}

fn message(sent: &Value) -> Message {
    let (parameters, result) = (&sent["parameters"], &sent["result"]);
    let rows = parameters["reply_markup"]["inline_keyboard"].as_array();
    let buttons = rows.into_iter().flatten().filter_map(|row| {
        let button = &row[0];
        let text = |key: &str| button[key].as_str().map(str::to_owned);
        Some((text("text")?, text("callback_data")?))
    });
    Message {
        id: result["message_id"].as_i64().unwrap_or_default(),
        text: parameters["text"].as_str().unwrap_or_default().to_owned(),
        buttons: buttons.collect(),
    }
}

/// Waits until `look` finds what it looks for.
pub(crate) async fn until<T, F, Looking>(what: &str, look: F) -> anyhow::Result<T>
where
    F: FnMut() -> Looking,
    Looking: Future<Output = anyhow::Result<Option<T>>>,
{
    patience::until(what, look).await
}
