//! A store with notices and a bot, and the phones of people at the emulator.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use ropewalk_bus::{Bus as EventBus, BusOptions, TransportOptions};
use ropewalk_config::settings::PersonRecord;
use ropewalk_desk::people::People;
use ropewalk_orchestrator::notices::{Listener, Notifier, Parts as NotifierParts, Rules};
use ropewalk_orchestrator::questions::{self, Asked, Asking, Deadlines, QuestionService};
use ropewalk_orchestrator::{Agent, Context, Frame, Registry, Services};
use ropewalk_runtime::{Clock, Ids, Shutdown, Supervisor};
use ropewalk_schemas::person::Right;
use ropewalk_schemas::question::{About, Choice, Question, QuestionKind};
use ropewalk_schemas::{ChoiceId, ComponentName, QuestionId, UserSlug};
use ropewalk_store::{ChangeSet, Location, Store};
use ropewalk_telegram::{Bot, Parts, TelegramClient, TelegramPort};
use ropewalk_tests::servers::TelegramServer;
use serde_json::{Value, json};

const TOKEN: &str = "123456:TEST";
const PATIENCE: Duration = Duration::from_secs(60);

/// The chats of two people: ada may everything, bob nothing beside what everybody may. Cleo has no phone yet.
pub(crate) const ADA: i64 = 1;
pub(crate) const BOB: i64 = 2;

pub(crate) fn people() -> anyhow::Result<People> {
    let record = |chat: Option<i64>, rights: &[Right]| PersonRecord {
        telegram_user: chat,
        telegram_chats: chat.into_iter().collect(),
        rights: rights.iter().copied().collect(),
        ..PersonRecord::default()
    };
    let known: BTreeMap<UserSlug, PersonRecord> = [
        (UserSlug::parse("ada")?, record(Some(ADA), &Right::ALL)),
        (UserSlug::parse("bob")?, record(Some(BOB), &[])),
        (UserSlug::parse("cleo")?, record(None, &[])),
    ]
    .into();
    Ok(People::new(known, UserSlug::parse("ada")?))
}

/// A running bot with notices.
pub(crate) struct House {
    pub(crate) services: Services,
    supervisor: Supervisor,
}

impl House {
    /// Opens the store in `directory` and serves a bot at the emulator.
    pub(crate) async fn open(directory: &Path, telegram: &TelegramServer) -> anyhow::Result<Self> {
        let clock = Clock::system();
        let ids = Ids::system(clock.clone());
        let location = Location::Sqlite(directory.join("ropewalk.db"));
        let store = Store::open(&location, clock.clone()).await?;
        let supervisor = Supervisor::new(Shutdown::new());
        let bus = ropewalk_bus::Services {
            clock: clock.clone(),
            ids: ids.clone(),
            supervisor: supervisor.clone(),
        };
        let transport = TransportOptions::Embedded;
        let bus = EventBus::start(store.clone(), transport, bus, BusOptions::default()).await?;
        let services = Services {
            store,
            bus,
            registry: Registry::new(clock.clone(), "test"),
            clock,
            ids,
        };
        let client = TelegramClient::new(TOKEN, &telegram.url())?;
        let people = people()?;
        let everybody = people.all().into_iter().map(|person| Listener {
            name: person.name,
            roles: person.roles,
        });
        let notifier = Notifier::new(NotifierParts {
            port: Arc::new(TelegramPort::new(client.clone(), people.clone())),
            people: everybody.collect(),
            rules: Rules {
                escalate: Duration::from_hours(1),
                batch: Duration::ZERO,
                quiet: None,
            },
            turn: Arc::new(|| Some(Box::new(()))),
        })?;
        let questions = QuestionService::new(Deadlines::default())?;
        let agents: Vec<Arc<dyn Agent>> = vec![Arc::new(notifier), Arc::new(questions)];
        Frame::start(&services, agents, &supervisor).await?;
        let bot = Bot::new(Parts {
            client,
            people,
            services: services.clone(),
            turn: Arc::new(|| Some(Box::new(()))),
            builds_with: "scripted".to_owned(),
        })?;
        bot.serve(&supervisor);
        Ok(Self {
            services,
            supervisor,
        })
    }

    pub(crate) fn context(&self) -> anyhow::Result<Context> {
        Ok(Context::new(&self.services, ComponentName::parse("build")?))
    }

    /// Asks what holds work up: yes, no, or words.
    pub(crate) async fn ask(&self, trigger: &str, text: &str) -> anyhow::Result<QuestionId> {
        let choice = |id: &str, label: &str| -> anyhow::Result<Choice> {
            Ok(Choice {
                with_words: id == "other",
                recommended: id == "leave",
                ..Choice::new(ChoiceId::parse(id)?, label)
            })
        };
        let asking = Asking {
            kind: QuestionKind::Blocking,
            trigger: trigger.to_owned(),
            text: text.to_owned(),
            context: "A test.".to_owned(),
            choices: vec![
                choice("merge", "Merge it")?,
                choice("leave", "Leave it")?,
                choice("other", "Something else...")?,
            ],
            free_text: true,
            default: None,
            consequential: false,
            content: None,
            about: About::Nothing,
            topic: None,
            idea: None,
        };
        let mut changes = ChangeSet::new();
        let (context, deadlines) = (self.context()?, Deadlines::default());
        let asked = questions::ask(&mut changes, &context, &deadlines, asking);
        let Asked::Open(id) = asked.await? else {
            anyhow::bail!("it was answered before")
        };
        self.services.store.commit(changes).await?;
        Ok(id)
    }

    pub(crate) async fn question(&self, id: QuestionId) -> anyhow::Result<Question> {
        let found = self.services.store.get::<Question>(&id.to_string()).await?;
        Ok(found.context("no question")?.into_inner())
    }

    pub(crate) async fn close(self) -> anyhow::Result<()> {
        self.supervisor.shutdown().begin();
        self.supervisor.drain(Duration::from_secs(10)).await?;
        self.services.store.close().await?;
        Ok(())
    }
}

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

    async fn update(&self, update: Value) -> anyhow::Result<()> {
        let body = json!({ "token": TOKEN, "update": update });
        self.post("__fixture/updates", &body).await
    }

    fn of(user: i64, chat: i64, text: &str) -> Value {
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

    /// Lets Telegram answer 429 (`flood`), nothing (`away`) or as it should (`none`); returns how often it did.
    pub(crate) async fn fault(&self, mode: &str) -> anyhow::Result<()> {
        self.post("__fault", &json!({ "mode": mode })).await
    }

    async fn told(&self) -> anyhow::Result<Value> {
        let url = format!("{}__said", self.server.url());
        Ok(self.client.get(url).send().await?.json().await?)
    }

    /// Returns how many requests met a fault.
    pub(crate) async fn faults(&self) -> anyhow::Result<u64> {
        Ok(self.told().await?["faults"].as_u64().unwrap_or_default())
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

    /// Waits until the last line that was shown for a press holds `part`.
    pub(crate) async fn shown(&self, part: &str) -> anyhow::Result<()> {
        until(&format!("`{part}` shown"), || async {
            let shown = self.did("answercallbackquery").await?;
            let last = shown
                .last()
                .and_then(|one| one["parameters"]["text"].as_str());
            Ok(last.is_some_and(|line| line.contains(part)).then_some(()))
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
pub(crate) async fn until<T, F, Looking>(what: &str, mut look: F) -> anyhow::Result<T>
where
    F: FnMut() -> Looking,
    Looking: Future<Output = anyhow::Result<Option<T>>>,
{
    let search = async {
        loop {
            if let Some(found) = look().await? {
                return anyhow::Ok(found);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, search)
        .await
        .with_context(|| format!("waited for {what}"))?
}
