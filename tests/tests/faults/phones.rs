//! Kills at each step of telling somebody something on a phone, taking the answer, and mending what was asked.

mod answers;

use std::time::Instant;

use anyhow::{Context, ensure};
use ropewalk_runtime::http::{ClientOptions, client};
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::notice::{Notice, NoticeState};
use ropewalk_schemas::phone::Phone as KnownPhone;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::{ComponentName, QuestionId};
use ropewalk_store::{ChangeSet, Query};
use ropewalk_tests::servers::TelegramServer;
use ropewalk_world::questions;
use serde_json::{Value, json};

use crate::picture::{events_of, store};
use crate::project::{PATIENCE, Project};
use crate::running::{RunningProgram, start, stop, until_ready};
use crate::trial::copy;

const TOKEN: &str = "123456:TEST-of-pat";
const VARIABLE: &str = "TOKEN_OF_THE_BOT";
/// The user of the person, and the chat.
pub(crate) const PAT: i64 = 1;

/// A project with a bot, and the phone of the one person.
pub(crate) struct Phone {
    pub(crate) project: Project,
    server: TelegramServer,
}

impl Phone {
    /// Links the phone to a project in which nothing happened yet.
    pub(crate) async fn linked() -> anyhow::Result<Self> {
        let server = TelegramServer::start()?;
        let mut project = Project::new()?;
        let settings = project.path().join("ropewalk.toml");
        let written = std::fs::read_to_string(&settings)?;
        let url = server.url();
        let bot = format!("[telegram]\ntoken_variable = \"{VARIABLE}\"\napi_url = \"{url}\"\n");
        std::fs::write(&settings, format!("{written}\n{bot}"))?;
        project.runner = project.runner.clone().with_variable(VARIABLE, TOKEN);
        let phone = Self { project, server };
        let mut up = phone.up().await?;
        let made = phone.project.verb(&["people", "link"], "")?;
        let code = made["code"].as_str().context("no code")?;
        phone.write(&format!("/start {code}")).await?;
        phone.messages_with("This chat is linked", 1).await?;
        stop(&mut up).await?;
        Ok(phone)
    }

    /// Keeps the project as it is, while nobody runs.
    pub(crate) fn keep(&self) -> anyhow::Result<tempfile::TempDir> {
        let kept = tempfile::tempdir()?;
        copy(self.project.path(), kept.path())?;
        Ok(kept)
    }

    /// Puts the project back as it was kept, at the same place: a state belongs to one repository.
    pub(crate) fn put_back(&self, kept: &tempfile::TempDir) -> anyhow::Result<()> {
        std::fs::remove_dir_all(self.project.path())?;
        copy(kept.path(), self.project.path())
    }

    pub(crate) async fn up(&self) -> anyhow::Result<RunningProgram> {
        let mut up = start(&self.project.runner, &["up"])?;
        until_ready(self.project.path(), &mut up).await?;
        Ok(up)
    }

    async fn update(&self, update: Value) -> anyhow::Result<()> {
        let url = format!("{}__fixture/updates", self.server.url());
        let body = json!({ "token": TOKEN, "update": update });
        let sent = client(ClientOptions::default())?.post(url).json(&body);
        sent.send().await?.error_for_status()?;
        Ok(())
    }

    fn message(user: i64, text: &str) -> Value {
        json!({ "message_id": 9000, "date": 1_795_294_145, "text": text,
            "from": { "id": user, "first_name": "Pat", "is_bot": false },
            "chat": { "id": user, "type": "private", "first_name": "Pat" } })
    }

    pub(crate) async fn write(&self, text: &str) -> anyhow::Result<()> {
        self.write_as(PAT, text).await
    }

    /// Writes as another user, in a chat of theirs.
    pub(crate) async fn write_as(&self, user: i64, text: &str) -> anyhow::Result<()> {
        let message = Self::message(user, text);
        self.update(json!({ "message": message })).await
    }

    /// Lets Telegram answer nobody from now on.
    pub(crate) async fn go_away(&self) -> anyhow::Result<()> {
        self.be("away").await
    }

    /// Lets it answer again.
    pub(crate) async fn come_back(&self) -> anyhow::Result<()> {
        self.be("none").await
    }

    async fn be(&self, mode: &str) -> anyhow::Result<()> {
        let url = format!("{}__fault", self.server.url());
        let fault = client(ClientOptions::default())?.post(url);
        let fault = fault.json(&json!({ "mode": mode }));
        fault.send().await?.error_for_status()?;
        Ok(())
    }

    /// Returns how many requests met a fault.
    pub(crate) async fn faults(&self) -> anyhow::Result<u64> {
        self.told().await?["faults"].as_u64().context("no faults")
    }

    /// Presses the button of a message whose label is `label`.
    pub(crate) async fn press(&self, sent: &Value, label: &str) -> anyhow::Result<()> {
        let data = buttons(sent).into_iter().find(|(name, _)| name == label);
        let (_, data) = data.with_context(|| format!("no `{label}` in {sent}"))?;
        let mut bears = Self::message(PAT, "?");
        bears["message_id"] = sent["result"]["message_id"].clone();
        let press = json!({ "id": label, "from": bears["from"], "chat_instance": "77", "data": data, "message": bears });
        self.update(json!({ "callback_query": press })).await
    }

    async fn told(&self) -> anyhow::Result<Value> {
        let url = format!("{}__said", self.server.url());
        let told = client(ClientOptions::default())?.get(url).send().await?;
        Ok(told.json().await?)
    }

    /// Lists what the bot did by one method, in order.
    async fn did(&self, method: &str) -> anyhow::Result<Vec<Value>> {
        let told = self.told().await?;
        let said = told["said"].as_array().context("nothing said")?;
        let by_it = said.iter().filter(|one| one["method"] == method);
        Ok(by_it.cloned().collect())
    }

    /// Returns the number of the update that the bot asks for next.
    async fn offset(&self) -> anyhow::Result<i64> {
        self.told().await?["offset"].as_i64().context("no offset")
    }

    pub(crate) async fn sent(&self, part: &str) -> anyhow::Result<Vec<Value>> {
        let sent = self.did("sendmessage").await?.into_iter();
        Ok(sent.filter(|one| text_of(one).contains(part)).collect())
    }

    /// Waits for so many messages that hold `part`.
    pub(crate) async fn messages_with(
        &self,
        part: &str,
        wanted: usize,
    ) -> anyhow::Result<Vec<Value>> {
        let began = Instant::now();
        loop {
            let found = self.sent(part).await?;
            if found.len() >= wanted {
                return Ok(found);
            }
            let late = began.elapsed() > PATIENCE;
            ensure!(!late, "`{part}`: {found:?}: {}", self.project.said());
            pause().await;
        }
    }

    /// Waits for the dead letter of what the bot could not do; returns its name.
    async fn until_dead(&self) -> anyhow::Result<String> {
        let began = Instant::now();
        loop {
            let listed = self.project.verb(&["dead-letter", "list"], "")?;
            if let Some(letter) = listed.as_array().and_then(|all| all.first()) {
                assert_eq!(letter["type"], "phone.update_left", "{letter}");
                let id = letter["id"].as_str().context("no id")?;
                ensure!(id.ends_with("/telegram.left"), "{letter}");
                return Ok(id.to_owned());
            }
            let late = began.elapsed() > PATIENCE;
            ensure!(!late, "no dead letter: {}", self.project.said());
            pause().await;
        }
    }

    /// Waits until nothing that the bot could not do is to be done any more.
    async fn until_handled(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        let left = ComponentName::parse("telegram.left")?;
        loop {
            let store = store(self.project.path()).await?;
            let open = store.open_deliveries(Some(&left), 0, 1).await?;
            store.close().await?;
            if open.is_empty() {
                return Ok(());
            }
            let late = began.elapsed() > PATIENCE;
            ensure!(!late, "it is still to be done: {}", self.project.said());
            pause().await;
        }
    }

    async fn ideas(&self) -> anyhow::Result<u64> {
        let store = store(self.project.path()).await?;
        let ideas = store.count::<Idea>(Query::new()).await?;
        store.close().await?;
        Ok(ideas)
    }

    /// Puts a question while nobody runs.
    pub(crate) async fn ask(&self, text: &str) -> anyhow::Result<QuestionId> {
        let mut changes = ChangeSet::new();
        let id = questions::put(&mut changes, text)?.id;
        let store = store(self.project.path()).await?;
        store.commit(changes).await?;
        store.close().await?;
        Ok(id)
    }

    /// Returns the question, and the only notice of it.
    async fn stands(&self, id: QuestionId) -> anyhow::Result<(Question, Option<Notice>)> {
        let store = store(self.project.path()).await?;
        let question = store.get::<Question>(&id.to_string()).await?;
        let told = Query::new().equal("question", id);
        let mut told = store.list::<Notice>(told).await?;
        store.close().await?;
        ensure!(told.len() < 2, "told twice: {told:?}");
        let question = question.context("no question")?.into_inner();
        Ok((question, told.pop().map(|told| told.record)))
    }

    /// Waits until what was asked is answered and mended wherever it is known.
    pub(crate) async fn until_mended(&self, id: QuestionId) -> anyhow::Result<(Question, Notice)> {
        let began = Instant::now();
        loop {
            let (question, told) = self.stands(id).await?;
            let is_over = question.state == QuestionState::Answered;
            if let Some(told) = told.filter(|told| {
                is_over
                    && told.state == NoticeState::Sent
                    && !told.outdated
                    && told.due >= answered_at(&question)
            }) {
                return Ok((question, told));
            }
            let late = began.elapsed() > PATIENCE;
            ensure!(!late, "not mended: {}", self.project.said());
            pause().await;
        }
    }

    /// Checks that a question has one answer, which `event list` tells once.
    pub(crate) async fn answered_once(&self, id: QuestionId, answer: &str) -> anyhow::Result<()> {
        let store = store(self.project.path()).await?;
        let events = events_of(&store, "question.answered").await?;
        let ideas = store.count::<Idea>(Query::new()).await?;
        let question = store.get::<Question>(&id.to_string()).await?;
        store.close().await?;
        let id = json!(id);
        let of_it = events
            .iter()
            .filter(|one| one.event.data["question_id"] == id);
        assert_eq!(of_it.count(), 1, "events of one answer");
        let given = question.context("no question")?.into_inner().answer;
        let given = given.context("no answer")?;
        let told = (
            given.by.as_str(),
            given.channel.as_str(),
            given.text.as_str(),
        );
        assert_eq!(told, ("pat", "telegram", answer));
        assert_eq!(ideas, 0, "an answer became an idea");
        Ok(())
    }

    /// Waits until a message was edited to hold `text`.
    pub(crate) async fn until_edited(&self, message: &Value, text: &str) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            let edits = self.did("editmessagetext").await?;
            let mut edits = edits.iter().map(|edit| &edit["parameters"]);
            let holds = |edit: &Value| edit["text"].as_str().is_some_and(|now| now.contains(text));
            if edits.any(|edit| edit["message_id"] == *message && holds(edit)) {
                return Ok(());
            }
            ensure!(
                began.elapsed() < PATIENCE,
                "never `{text}`: {}",
                self.project.said()
            );
            pause().await;
        }
    }

    /// Waits until whoever presses saw a line that holds `part` so often, or a message where a press took its time.
    async fn until_seen(&self, part: &str, wanted: usize) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            let shown = self.did("answercallbackquery").await?;
            let holds = shown.iter().filter(|one| text_of(one).contains(part));
            if holds.count() + self.sent(part).await?.len() >= wanted {
                return Ok(());
            }
            let late = began.elapsed() > PATIENCE;
            ensure!(!late, "never `{part}`: {shown:?}");
            pause().await;
        }
    }

    /// Lists what a message was edited to hold, in order.
    pub(crate) async fn edits_of(&self, message: &Value) -> anyhow::Result<Vec<String>> {
        let edits = self.did("editmessagetext").await?.into_iter();
        let of_it = edits.filter(|edit| edit["parameters"]["message_id"] == *message);
        Ok(of_it.map(|edit| text_of(&edit).to_owned()).collect())
    }

    /// Waits until nothing is to be said any more.
    pub(crate) async fn until_said(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        while !self.known().await?.replies.is_empty() {
            let late = began.elapsed() > PATIENCE;
            ensure!(!late, "unsaid: {}", self.project.said());
            pause().await;
        }
        Ok(())
    }

    /// Returns what is known of the phone.
    pub(crate) async fn known(&self) -> anyhow::Result<KnownPhone> {
        let store = store(self.project.path()).await?;
        let known = store.get::<KnownPhone>("pat").await?;
        store.close().await?;
        Ok(known.context("no phone")?.into_inner())
    }

    /// Lists the numbers of the messages that were mended, each as often as it was.
    async fn mended(&self) -> anyhow::Result<Vec<Value>> {
        let edits = self.did("editmessagetext").await?.into_iter();
        Ok(edits
            .map(|edit| edit["parameters"]["message_id"].clone())
            .collect())
    }
}

async fn pause() {
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
}

fn answered_at(question: &Question) -> chrono::DateTime<chrono::Utc> {
    let answer = question.answer.as_ref();
    answer.map_or(question.asked_at, |answer| answer.at)
}

fn text_of(sent: &Value) -> &str {
    sent["parameters"]["text"].as_str().unwrap_or_default()
}

fn buttons(sent: &Value) -> Vec<(String, String)> {
    let rows = sent["parameters"]["reply_markup"]["inline_keyboard"].as_array();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rows = rows.into_iter().flatten().map(|row| &row[0]);
    rows.map(|one| (text(&one["text"]), text(&one["callback_data"])))
        .collect()
}

#[tokio::test]
async fn a_kill_while_somebody_is_told_repeats_one_message_at_most_and_counts_it()
-> anyhow::Result<()> {
    let phone = Phone::linked().await?;
    for (place, messages) in [
        ("notices.telegram.begun:1", 1),
        ("notices.telegram.sent:1", 2),
    ] {
        let text = format!("Which way at {place}?");
        let id = phone.ask(&text).await?;
        phone.project.crash_at(place, &[]).await?;
        assert_eq!(phone.sent(&text).await?.len(), messages - 1, "{place}");
        let told = phone.stands(id).await?.1.context("no notice")?;
        assert_eq!(told.state, NoticeState::Sending, "{place}");
        let mut up = phone.up().await?;
        let sent = phone.messages_with(&text, messages).await?;
        // One that bears another nonce would be another question to who presses it.
        assert_eq!(buttons(&sent[0]), buttons(&sent[messages - 1]), "{place}");
        // Of the first message nobody knew; whoever presses it answers, and both are mended.
        phone.press(&sent[0], "Left").await?;
        let (_, told) = phone.until_mended(id).await?;
        assert_eq!(told.repeats, 1, "{place}");
        phone.answered_once(id, "Left").await?;
        assert_eq!(phone.sent(&text).await?.len(), messages, "{place}");
        let mended = phone.mended().await?;
        for one in &sent {
            let number = &one["result"]["message_id"];
            ensure!(mended.contains(number), "{place}: {number} of {mended:?}");
        }
        stop(&mut up).await?;
        let listed = phone.project.verb(&["notice", "list", "--all"], "")?;
        let of_it = listed.as_array().into_iter().flatten();
        let mut of_it = of_it.filter(|row| row["question"] == json!(id));
        assert_eq!(
            of_it.next().context("not listed")?["repeats"],
            1,
            "{listed}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_kill_while_an_answer_is_taken_or_shown_leaves_one_answer_and_one_message()
-> anyhow::Result<()> {
    let phone = Phone::linked().await?;
    for place in [
        "telegram.update.begun:1",
        "questions.answer.before:1",
        "questions.answer.after:1",
        "telegram.update.acted:1",
        "notices.telegram.edit.before:1",
        "notices.telegram.edit.after:1",
    ] {
        let text = format!("Which way at {place}?");
        let id = phone.ask(&text).await?;
        let mut up = phone.up().await?;
        let sent = phone.messages_with(&text, 1).await?;
        stop(&mut up).await?;
        phone.press(&sent[0], "Right").await?;
        phone.project.crash_at(place, &[]).await?;
        let mut up = phone.up().await?;
        let (_, told) = phone.until_mended(id).await?;
        assert_eq!(told.repeats, 0, "{place}");
        phone.answered_once(id, "Right").await?;
        assert_eq!(phone.sent(&text).await?.len(), 1, "{place}");
        let mended = phone.mended().await?;
        ensure!(
            mended.contains(&sent[0]["result"]["message_id"]),
            "{place}: {mended:?}"
        );
        stop(&mut up).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_kill_while_words_are_taken_leaves_one_answer_and_begins_no_idea() -> anyhow::Result<()> {
    let phone = Phone::linked().await?;
    for place in [
        "telegram.update.begun:1",
        "questions.answer.before:1",
        "questions.answer.after:1",
        "telegram.update.acted:1",
    ] {
        let (text, words) = (
            format!("Which way at {place}?"),
            format!("by boat at {place}"),
        );
        let id = phone.ask(&text).await?;
        let mut up = phone.up().await?;
        let sent = phone.messages_with(&text, 1).await?;
        let before = phone.sent("What exactly?").await?.len();
        phone.press(&sent[0], "Other").await?;
        phone.messages_with("What exactly?", before + 1).await?;
        stop(&mut up).await?;
        phone.write(&words).await?;
        phone.project.crash_at(place, &[]).await?;
        let mut up = phone.up().await?;
        phone.messages_with(&format!("Taken: {words}"), 1).await?;
        phone.until_mended(id).await?;
        phone.answered_once(id, &words).await?;
        stop(&mut up).await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_update_on_which_the_bot_crashes_is_kept_replayed_and_ends_nothing_else()
-> anyhow::Result<()> {
    let phone = Phone::linked().await?;
    let id = phone.ask("Which way past the crash?").await?;
    let other = phone.ask("Which way beside it?").await?;
    // From the first update on, every one, and every other try.
    let runner = phone
        .project
        .runner
        .failing("telegram.update.begun:1:panic");
    let runner = runner.with_variable("ROPEWALK_BUS__TRIES", "2");
    let mut up = start(&runner, &["up"])?;
    until_ready(phone.project.path(), &mut up).await?;
    let sent = phone.messages_with("Which way past the crash?", 1).await?;
    let before = phone.offset().await?;
    phone.press(&sent[0], "Left").await?;
    let letter = phone.until_dead().await?;
    ensure!(phone.offset().await? > before, "Telegram may forget it now");
    phone.messages_with("This could not be done", 1).await?;
    let (question, _) = phone.stands(id).await?;
    assert_eq!(question.state, QuestionState::Pending, "the press crashed");
    // The program runs on, and questions can be answered by whoever is not on the phone.
    phone
        .project
        .verb(&["question", "answer", &other.to_string(), "right"], "")?;
    phone.until_mended(other).await?;
    stop(&mut up).await?;

    // Whatever was wrong is mended: what was pressed is done, once.
    let mut up = phone.up().await?;
    phone
        .project
        .verb(&["dead-letter", "replay", &letter], "")?;
    phone.until_mended(id).await?;
    phone.answered_once(id, "Left").await?;
    let left = phone.project.verb(&["dead-letter", "list"], "")?;
    assert_eq!(left, json!([]));
    stop(&mut up).await?;
    Ok(())
}

#[tokio::test]
async fn a_kill_while_what_was_left_is_done_again_begins_no_second_idea() -> anyhow::Result<()> {
    let phone = Phone::linked().await?;
    let runner = phone
        .project
        .runner
        .failing("telegram.update.begun:1:panic");
    let runner = runner.with_variable("ROPEWALK_BUS__TRIES", "1");
    let mut up = start(&runner, &["up"])?;
    until_ready(phone.project.path(), &mut up).await?;
    phone.write("/newtask a page that counts walks").await?;
    let letter = phone.until_dead().await?;
    stop(&mut up).await?;
    assert_eq!(phone.ideas().await?, 0, "nothing came of it yet");

    // It dies once the idea is begun, before the delivery is closed.
    phone
        .project
        .verb(&["dead-letter", "replay", &letter], "")?;
    phone
        .project
        .crash_at("telegram.update.acted:1", &[])
        .await?;
    assert_eq!(phone.ideas().await?, 1);
    let mut up = phone.up().await?;
    phone.messages_with("already", 1).await?;
    phone.until_handled().await?;
    assert_eq!(phone.ideas().await?, 1, "it was begun once");
    stop(&mut up).await?;
    Ok(())
}
