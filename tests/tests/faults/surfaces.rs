//! What the API and a phone do while the broker is away or the disk is full: they say so, and lose nothing.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use reqwest::{Client, RequestBuilder};
use ropewalk_runtime::http::{ClientOptions, client};
use serde_json::{Value, json};

use crate::disks::SmallDisk;
use crate::phones::Phone;
use crate::project::{PATIENCE, Project};
use crate::running::{start, stop, until_ready};
use crate::trial::{UNTIL_FAULT, may_mount};

/// A person who is logged in over HTTP.
pub(crate) struct Browser {
    client: Client,
    origin: String,
    cookie: String,
    csrf: String,
}

/// What a request bears.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SentBody<'a> {
    /// What a program says.
    Json(&'a Value),
    /// A form without fields, with the proof of the login.
    Form,
    /// The same with words.
    Words(&'a str),
}

impl Browser {
    /// Opens the link that `up` shows; one that an earlier `up` showed lets nobody in any more.
    pub(crate) async fn open(project: &Project) -> anyhow::Result<Self> {
        let (began, mut tried) = (Instant::now(), None);
        loop {
            let said = project.said();
            let link = said.rsplit_once("pages and API: ");
            let link = link.and_then(|(_, rest)| rest.split_whitespace().next());
            if link.is_some() && link != tried.as_deref() {
                tried = link.map(str::to_owned);
                if let Ok(entered) = Self::enter(link.unwrap_or_default()).await {
                    return Ok(entered);
                }
            }
            ensure!(began.elapsed() < PATIENCE, "no link: {said}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn enter(link: &str) -> anyhow::Result<Self> {
        let client = client(ClientOptions::default())?;
        let entered = client.get(link).send().await?;
        let cookie = entered.headers().get("set-cookie").context("no cookie")?;
        let cookie = cookie.to_str()?.split(';').next().unwrap_or_default();
        let (cookie, entered) = (cookie.to_owned(), entered.json::<Value>().await?);
        let origin = link.split("/login").next().unwrap_or_default().to_owned();
        Ok(Self {
            client,
            origin,
            cookie,
            csrf: entered["csrf"].as_str().context("no proof")?.to_owned(),
        })
    }

    pub(crate) async fn read(&self, path: &str) -> anyhow::Result<(u16, Value)> {
        let url = format!("{}{path}", self.origin);
        let asked = self.client.get(url).header("Cookie", &self.cookie);
        let answer = asked.send().await?;
        Ok((answer.status().as_u16(), answer.json().await?))
    }

    /// Reads a page; what only this login has is left out.
    pub(crate) async fn page(&self, path: &str) -> anyhow::Result<String> {
        let url = format!("{}{path}", self.origin);
        let asked = self.client.get(url).header("Accept", "text/html");
        let asked = asked.header("Cookie", &self.cookie);
        let answer = asked.send().await?.error_for_status()?;
        let text = answer.text().await?;
        Ok(text.replace(&self.csrf, "").replace(&self.origin, ""))
    }

    /// Sends a request of a program, or with the cookie one of a page; returns its status and what is answered.
    pub(crate) async fn send(
        &self,
        (method, path): (&str, &str),
        token: Option<&str>,
        body: SentBody<'_>,
    ) -> anyhow::Result<(u16, String)> {
        let url = format!("{}{path}", self.origin);
        let mut asked = self.client.request(method.parse()?, url);
        asked = match token {
            Some(token) => asked.bearer_auth(token),
            None => asked.header("Cookie", &self.cookie),
        };
        let proof = format!("csrf={}", self.csrf);
        asked = match body {
            SentBody::Json(body) => asked.json(body),
            SentBody::Form => form(asked, proof),
            SentBody::Words(words) => form(asked, format!("{proof}&text={words}")),
        };
        let answer = asked.send().await?;
        Ok((answer.status().as_u16(), answer.text().await?))
    }

    /// Tries to begin an idea, by a request and by the form of a page, until nothing can be written; says what is told of that
    /// by each.
    async fn begin_until_refused(&self) -> anyhow::Result<((u16, Value), (u16, String))> {
        let began = Instant::now();
        loop {
            let (status, said) = self.begin("Walks").await?;
            let body = SentBody::Words("Walks");
            let form = self.send(("POST", "/ideas"), None, body).await?;
            if status != 201 && form.0 != 303 {
                return Ok(((status, said), form));
            }
            ensure!(began.elapsed() < UNTIL_FAULT, "writing goes on");
        }
    }

    async fn begin(&self, text: &str) -> anyhow::Result<(u16, Value)> {
        let url = format!("{}/api/ideation/sessions", self.origin);
        let asked = self.client.post(url).header("Cookie", &self.cookie);
        let asked = asked.header("X-Csrf-Token", &self.csrf);
        let answer = asked.json(&json!({ "text": text })).send().await?;
        Ok((answer.status().as_u16(), answer.json().await?))
    }
}

/// Sends fields as the form of a page does.
fn form(asked: RequestBuilder, fields: String) -> RequestBuilder {
    let kind = "application/x-www-form-urlencoded";
    let asked = asked.header("Content-Type", kind);
    asked.header("Accept", "text/html").body(fields)
}

#[tokio::test]
async fn without_its_broker_the_api_says_so_and_a_phone_is_asked_and_answers() -> anyhow::Result<()>
{
    let phone = Phone::linked().await?;
    let runner = phone.project.runner.clone();
    // Nobody listens there.
    let runner = runner.with_variable("ROPEWALK_BUS__TRANSPORT", "nats://127.0.0.1:9");
    let id = phone.ask("Which way without a broker?").await?;
    let mut up = start(&runner, &["up"])?;
    until_ready(phone.project.path(), &mut up).await?;
    let browser = Browser::open(&phone.project).await?;
    let (status, ready) = browser.read("/readyz").await?;
    assert_eq!((status, &ready["store"]), (200, &json!("up")));
    let bus = ready["bus"].as_str().context("no bus")?;
    ensure!(bus != "up", "the fault is not there: {ready}");
    let sent = phone
        .messages_with("Which way without a broker?", 1)
        .await?;
    phone.press(&sent[0], "Left").await?;
    phone.until_mended(id).await?;
    phone.answered_once(id, "Left").await?;
    let (status, begun) = browser.begin("Walks").await?;
    assert_eq!(status, 201, "{begun}");
    phone.write("/ideas").await?;
    phone.messages_with("walks: Walks", 1).await?;
    stop(&mut up).await?;
    Ok(())
}

#[tokio::test]
async fn on_a_full_disk_the_api_refuses_in_words_and_what_a_phone_said_is_done_when_there_is_room()
-> anyhow::Result<()> {
    let name = "surfaces::on_a_full_disk_the_api_refuses_in_words_and_what_a_phone_said_is_done_when_there_is_room";
    if !may_mount(name)? {
        return Ok(());
    }
    let phone = Phone::linked().await?;
    let disk = SmallDisk::over(&phone.project.path().join("state"), 64)?;
    let mut up = phone.up().await?;
    let browser = Browser::open(&phone.project).await?;
    let filler = disk.fill()?;
    let ((status, said), (of_form, page)) = browser.begin_until_refused().await?;
    assert_eq!(
        (status, &said["code"], &said["message"], &said["next"]),
        (
            503,
            &json!("store"),
            &json!("the disk of the database is full"),
            &json!("make room and try again")
        )
    );
    assert_eq!(of_form, 503, "{page}");
    for told in ["disk of the database is full", "make room", ">\nWalks<"] {
        ensure!(page.contains(told), "no `{told}`: {page}");
    }
    let (status, ideas) = browser.read("/api/ideation/sessions").await?;
    assert_eq!(status, 200, "what is there can be read: {ideas}");
    phone.write("/newtask Rivers of mine").await?;
    tokio::time::sleep(Duration::from_secs(8)).await;
    let told = phone.messages_with("It is the idea", 0).await?;
    ensure!(told.is_empty(), "nothing can be written: {told:?}");
    ensure!(up.0.try_wait()?.is_none(), "`up` gave up");
    ensure!(!phone.project.said().contains("panicked"));

    fs::remove_file(filler)?;
    phone.messages_with("It is the idea rivers", 1).await?;
    let (status, said) = browser.begin("Dogs").await?;
    assert_eq!(status, 201, "{said}");
    let listed = phone.project.verb(&["idea", "list"], "")?;
    let ideas = listed.as_array().context("no list")?.iter();
    let rivers = ideas.filter(|idea| idea["title"].as_str() == Some("Rivers of mine"));
    assert_eq!(rivers.count(), 1, "{listed}");
    stop(&mut up).await?;
    Ok(())
}
