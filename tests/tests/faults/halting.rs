//! Everything is stopped from each surface while what it could hang on is away: the model, the broker, Telegram. Nothing
//! begins five seconds later, nobody without the right stops anything, and everything goes on when it is let.

use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_runtime::Clock;
use ropewalk_schemas::ContentHash;
use ropewalk_schemas::halt::Halt;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::notice::Notice;
use ropewalk_store::Query;
use ropewalk_tests::servers::NatsServer;
use serde_json::{Value, json};

use crate::phones::{PAT, Phone};
use crate::picture::{events_of, store};
use crate::project::PATIENCE;
use crate::running::{RunningProgram, start, until_ready};
use crate::surfaces::{Browser, SentBody};
use crate::trial::until;

/// After how long nothing may begin any more, where the machine is quick.
const BOUND: TimeDelta = TimeDelta::seconds(5);
/// How long it is watched beyond that.
const WATCHED: Duration = Duration::from_secs(3);
/// Who has a token and a phone, and may not stop anything.
const TOKEN_OF_BOB: &str = "the-token-that-only-bob-has";
const BOB: i64 = 2;
const TOKEN_OF_PAT: &str = "the-token-that-only-pat-has";

/// Where somebody stops everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Surface {
    Terminal,
    Api,
    Page,
    Telegram,
}

/// Who says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    /// Who may stop everything.
    Pat,
    /// Who may not.
    Bob,
}

/// What is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Stop,
    Resume,
}

const EVERYWHERE: [Surface; 4] = [
    Surface::Terminal,
    Surface::Api,
    Surface::Page,
    Surface::Telegram,
];

/// What is away.
enum Gone {
    Model(HangingModel),
    Broker(NatsServer),
    Telegram,
}

/// A provider that takes every request and answers none.
struct HangingModel {
    port: u16,
    asked: Arc<Mutex<Vec<DateTime<Utc>>>>,
}

impl HangingModel {
    fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let asked: Arc<Mutex<Vec<DateTime<Utc>>>> = Arc::default();
        let noted = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let noted = Arc::clone(&noted);
                thread::spawn(move || hang(stream, &noted));
            }
        });
        Ok(Self { port, asked })
    }

    fn asked(&self) -> Vec<DateTime<Utc>> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.clone()
    }
}

/// Notes when a request comes, and holds it until whoever sent it gives up.
fn hang(mut stream: TcpStream, noted: &Mutex<Vec<DateTime<Utc>>>) {
    let mut bytes = [0; 4096];
    let mut is_first = true;
    while let Ok(1..) = stream.read(&mut bytes) {
        if std::mem::take(&mut is_first) {
            let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
            noted.push(Clock::system().now());
        }
    }
}

/// A build under way whose tasks never end, with two people and something that is away.
struct HaltTrial {
    phone: Phone,
    gone: Gone,
    /// Holds a line with its time for each command.
    trace: PathBuf,
    up: RunningProgram,
    browser: Browser,
    /// How long a verb takes, which tells how busy the machine is.
    pace: Duration,
}

impl HaltTrial {
    async fn open(gone: Gone) -> anyhow::Result<Self> {
        let phone = Phone::linked().await?;
        let trace = phone.project.path().join("trace");
        fs::write(&trace, "")?;
        chatter(&phone, &trace)?;
        phone.project.approve()?;
        let file = phone.project.path().join("ropewalk.toml");
        let mut settings = fs::read_to_string(&file)?;
        match &gone {
            Gone::Model(model) => {
                settings = settings.replace("build = \"script/any\"", "build = \"hangs/any\"");
                let url = format!("http://127.0.0.1:{}/v1", model.port);
                let hangs =
                    format!("\n[providers.hangs]\nkind = \"openai\"\nbase_url = \"{url}\"\n");
                settings.push_str(&hangs);
            }
            Gone::Broker(server) => {
                let bus = format!("\n[bus]\ntransport = \"{}\"\n", server.url());
                settings.push_str(&bus);
            }
            Gone::Telegram => {}
        }
        settings.push_str("\n[build]\nturns = 2000\n");
        fs::write(&file, format!("sandbox = \"off\"\n{settings}"))?;
        name_people(&phone)?;
        let mut up = start(&phone.project.runner, &["up"])?;
        until_ready(phone.project.path(), &mut up).await?;
        let browser = Browser::open(&phone.project).await?;
        Ok(Self {
            phone,
            gone,
            trace,
            up,
            browser,
            pace: Duration::ZERO,
        })
    }

    /// Takes away what is to be away.
    async fn lose(&mut self) -> anyhow::Result<()> {
        match &mut self.gone {
            Gone::Model(_) => Ok(()),
            Gone::Broker(server) => {
                server.kill();
                Ok(())
            }
            Gone::Telegram => self.phone.go_away().await,
        }
    }

    /// Makes sure that it is away.
    async fn is_lost(&self) -> anyhow::Result<()> {
        match &self.gone {
            Gone::Model(model) => {
                let store = store(self.phone.project.path()).await?;
                let calls = store.list::<ModelCall>(Query::new()).await?;
                store.close().await?;
                let answered = calls.iter().any(|call| call.role == "build");
                ensure!(!answered, "a call was answered");
                ensure!(!model.asked().is_empty(), "nobody asked");
                Ok(())
            }
            Gone::Broker(_) => {
                self.until("the loss of the broker", async || {
                    let (status, ready) = self.browser.read("/readyz").await?;
                    ensure!(status == 200, "{status}: {ready}");
                    Ok((ready["bus"] != json!("up")).then_some(()))
                })
                .await
            }
            Gone::Telegram => {
                let before = self.phone.faults().await?;
                self.until("the loss of Telegram", async || {
                    let met = self.phone.faults().await?;
                    Ok((met > before).then_some(()))
                })
                .await
            }
        }
    }

    /// Waits until people were to be told by a phone that is away.
    async fn is_tried(&self) -> anyhow::Result<()> {
        self.until("a try to tell", async || {
            let store = store(self.phone.project.path()).await?;
            let told = Query::new().equal("port", "telegram");
            let told = store.list::<Notice>(told).await?;
            store.close().await?;
            let mut tried = told.iter().filter(|notice| notice.tries > 0);
            Ok(tried.any(|notice| notice.error.is_some()).then_some(()))
        })
        .await
    }

    async fn until<T>(
        &self,
        what: &str,
        look: impl AsyncFnMut() -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        until(&self.phone.project, what, look).await
    }

    /// Returns when requests reached the provider, calls were written down, and commands ran.
    async fn begun(&self) -> anyhow::Result<[Vec<DateTime<Utc>>; 3]> {
        let asked = match &self.gone {
            Gone::Model(model) => model.asked(),
            _ => Vec::new(),
        };
        let store = store(self.phone.project.path()).await?;
        let calls = store.list::<ModelCall>(Query::new()).await?;
        store.close().await?;
        let mut commands = Vec::new();
        for line in fs::read_to_string(&self.trace)?.lines() {
            let time = DateTime::from_timestamp_millis(line.parse()?);
            commands.push(time.context("no time")?);
        }
        Ok([asked, calls.iter().map(|call| call.at).collect(), commands])
    }

    /// Waits until something begins after `since`: where models answer, a call and a command.
    async fn until_it_works(&self, since: DateTime<Utc>) -> anyhow::Result<()> {
        self.until("work", async || {
            let later = |times: &Vec<DateTime<Utc>>| times.iter().any(|time| *time > since);
            let [asked, calls, commands] = self.begun().await?;
            let works = match &self.gone {
                Gone::Model(_) => later(&asked),
                _ => later(&calls) && later(&commands),
            };
            Ok(works.then_some(()))
        })
        .await
    }

    async fn halt(&self) -> anyhow::Result<Option<Halt>> {
        let store = store(self.phone.project.path()).await?;
        let halt = store.get::<Halt>(Halt::EVERYTHING).await?;
        store.close().await?;
        Ok(halt.map(|row| row.record).filter(Halt::stands))
    }

    /// Lets somebody say it where they are; answers whether they might.
    async fn say(&self, surface: Surface, speaker: Speaker, order: Order) -> anyhow::Result<bool> {
        let (method, path, words, done) = match order {
            Order::Stop => ("POST", "/halt", "/stopall", "Everything is stopped."),
            Order::Resume => ("DELETE", "/halt/lift", "/resumeall", "Everything goes on"),
        };
        let (token, user, answer) = match speaker {
            Speaker::Pat => (TOKEN_OF_PAT, PAT, done),
            Speaker::Bob => (TOKEN_OF_BOB, BOB, "bob may not stop"),
        };
        match surface {
            Surface::Terminal => self.type_it(speaker, order),
            Surface::Api => {
                let nothing = json!({});
                let body = SentBody::Json(&nothing);
                let sent = self.browser.send((method, "/api/halt"), Some(token), body);
                allowed(sent.await?, 200)
            }
            Surface::Page => {
                let token = (speaker == Speaker::Bob).then_some(token);
                let sent = self.browser.send(("POST", path), token, SentBody::Form);
                allowed(sent.await?, 303)
            }
            Surface::Telegram => {
                let before = self.phone.sent(answer).await?.len();
                self.phone.write_as(user, words).await?;
                self.phone.messages_with(answer, before + 1).await?;
                Ok(speaker == Speaker::Pat)
            }
        }
    }

    /// Says it on a terminal.
    fn type_it(&self, speaker: Speaker, order: Order) -> anyhow::Result<bool> {
        let mut runner = self.phone.project.runner.clone();
        if speaker == Speaker::Bob {
            runner = runner.with_variable("ROPEWALK_TOKEN", TOKEN_OF_BOB);
        }
        let verb = match order {
            Order::Stop => "stop",
            Order::Resume => "resume",
        };
        let output = runner.run(&[verb], PATIENCE)?;
        let said = String::from_utf8_lossy(&output.stderr);
        let refused = is_refusal(&said);
        ensure!(output.status.success() != refused, "{said}");
        Ok(!refused)
    }

    /// Lets bob try it, which changes nothing; returns how long the refusal took.
    async fn refuse(&self, surface: Surface, order: Order) -> anyhow::Result<Duration> {
        let (before, began) = (self.halt().await?, Instant::now());
        let might = self.say(surface, Speaker::Bob, order).await?;
        let took = began.elapsed();
        ensure!(!might && self.halt().await? == before, "bob did it");
        Ok(took)
    }

    /// Stops everything from a surface, watches what begins, and lets it go on. Where nothing was away it took `usual` to be heard.
    async fn try_it(&self, surface: Surface, usual: Duration) -> anyhow::Result<()> {
        // What hangs asks nothing more before it is let go on.
        if !matches!(self.gone, Gone::Model(_)) {
            self.until_it_works(Clock::system().now()).await?;
        }
        self.is_lost().await?;
        self.refuse(surface, Order::Stop).await?;
        let began = Instant::now();
        let might = self.say(surface, Speaker::Pat, Order::Stop).await?;
        let took = began.elapsed();
        ensure!(might, "pat may stop it");
        // A busy machine is slow whatever is away.
        let most = 2 * BOUND.to_std()? + 5 * usual;
        ensure!(took < most, "heard after {took:?}, else after {usual:?}");
        self.watch().await?;
        self.refuse(surface, Order::Resume).await?;
        self.is_lost().await?;
        let since = Clock::system().now();
        let might = self.say(surface, Speaker::Pat, Order::Resume).await?;
        ensure!(might, "pat may lift it");
        self.until_it_works(since).await
    }

    /// Watches that nothing begins any more once pat has stopped everything.
    async fn watch(&self) -> anyhow::Result<()> {
        let halt = self.halt().await?.context("nothing is stopped")?;
        assert_eq!(halt.by.as_str(), "pat");
        // What had begun may come late to the line that tells of it.
        let late = TimeDelta::from_std(2 * self.pace)?.min(BOUND);
        let end = halt.since + BOUND + late;
        let left = (end - Clock::system().now()).to_std().unwrap_or_default();
        tokio::time::sleep(left + WATCHED).await;
        let late = |times: Vec<DateTime<Utc>>| {
            let late = times.into_iter().filter(|time| *time > end);
            late.collect::<Vec<_>>()
        };
        let [asked, calls, commands] = self.begun().await?.map(late);
        ensure!(
            asked.is_empty() && calls.is_empty() && commands.is_empty(),
            "stopped at {}, and yet: asked {asked:?}, calls {calls:?}, commands {commands:?}",
            halt.since
        );
        assert_eq!(self.halt().await?, Some(halt));
        Ok(())
    }

    /// Writes to a phone that nobody hears, which holds as soon as Telegram is back.
    async fn try_it_later(&self) -> anyhow::Result<()> {
        self.phone.write_as(BOB, "/stopall").await?;
        self.phone.write_as(PAT, "/stopall").await?;
        self.is_lost().await?;
        self.until_it_works(Clock::system().now()).await?;
        ensure!(self.halt().await?.is_none(), "who heard it?");
        self.phone.come_back().await?;
        self.phone.messages_with("bob may not stop", 2).await?;
        self.phone
            .messages_with("Everything is stopped.", 1)
            .await?;
        self.watch().await?;
        let since = Clock::system().now();
        self.say(Surface::Telegram, Speaker::Pat, Order::Resume)
            .await?;
        self.until_it_works(since).await
    }
}

/// Tells whether something was done, which `status` says, or refused for want of the right.
fn allowed((found, said): (u16, String), status: u16) -> anyhow::Result<bool> {
    match found {
        403 => {
            ensure!(is_refusal(&said), "{said}");
            Ok(false)
        }
        found if found == status => Ok(true),
        found => bail!("{found}: {said}"),
    }
}

/// Tells whether something says that bob may not do this. Each surface marks the name in a way of its own.
fn is_refusal(said: &str) -> bool {
    said.contains("bob") && said.contains("may not stop")
}

/// Lets the model of every task run one command after another, each of which leaves its time.
fn chatter(phone: &Phone, trace: &std::path::Path) -> anyhow::Result<()> {
    let script = phone.project.path().join("script.yaml");
    let mut rules: Vec<Value> = serde_json::from_str(&fs::read_to_string(&script)?)?;
    rules.retain(|rule| rule["agent"] != "build");
    for turn in 1..=1_000 {
        let command = format!("date +%s%3N >> {}; echo {turn}", trace.display());
        rules.push(json!({ "agent": "build", "turn": turn, "reply": {
            "delay_ms": 200, "text": format!("Step {turn}."),
            "tools": [{ "name": "bash", "input": { "command": command } }] } }));
    }
    fs::write(script, Value::Array(rules).to_string())?;
    Ok(())
}

/// Names pat, who may everything, and bob, who may not stop it.
fn name_people(phone: &Phone) -> anyhow::Result<()> {
    let user = nix::unistd::User::from_uid(nix::unistd::getuid())?;
    let user = user.context("nobody runs this")?.name;
    let [pat, bob] =
        [TOKEN_OF_PAT, TOKEN_OF_BOB].map(|token| ContentHash::of(token.as_bytes()).to_string());
    let people = format!(
        "[people.pat]\nuser = \"{user}\"\ntoken_sha256 = \"{pat}\"\nrights = [\"approve\", \"land\", \"spend\", \"stop\"]\n\
         [people.bob]\ntoken_sha256 = \"{bob}\"\nrights = [\"approve\", \"land\", \"spend\"]\n\
         telegram_user = {BOB}\ntelegram_chats = [{BOB}]\n"
    );
    let directory = phone.project.path().join("home/.config/ropewalk");
    fs::create_dir_all(&directory)?;
    Ok(fs::write(directory.join("config.toml"), people)?)
}

/// Tries every surface while something is away.
async fn everywhere(gone: Gone) -> anyhow::Result<()> {
    let mut trial = HaltTrial::open(gone).await?;
    trial.until_it_works(DateTime::UNIX_EPOCH).await?;
    let mut usual = Vec::new();
    for surface in EVERYWHERE {
        let took = trial.refuse(surface, Order::Stop).await?;
        if surface == Surface::Terminal {
            trial.pace = took;
        }
        usual.push((surface, took));
    }
    trial.lose().await?;
    let is_mute = matches!(trial.gone, Gone::Telegram);
    for (surface, usual) in usual {
        let tried = if is_mute && surface == Surface::Telegram {
            trial.is_tried().await?;
            trial.try_it_later().await
        } else {
            trial.try_it(surface, usual).await
        };
        tried.with_context(|| format!("{surface:?}: {}", trial.phone.project.said()))?;
    }
    let store = store(trial.phone.project.path()).await?;
    for event in ["halt.begun", "halt.lifted"] {
        let times = events_of(&store, event).await?.len();
        assert_eq!(times, EVERYWHERE.len(), "{event}");
    }
    store.close().await?;
    ensure!(trial.up.0.try_wait()?.is_none(), "`up` ended");
    Ok(())
}

#[tokio::test]
async fn everything_stops_from_every_surface_while_the_model_hangs() -> anyhow::Result<()> {
    everywhere(Gone::Model(HangingModel::start()?)).await
}

#[tokio::test]
async fn everything_stops_from_every_surface_while_the_broker_is_gone() -> anyhow::Result<()> {
    everywhere(Gone::Broker(NatsServer::start()?)).await
}

#[tokio::test]
async fn everything_stops_from_every_surface_while_telegram_is_away() -> anyhow::Result<()> {
    everywhere(Gone::Telegram).await
}
