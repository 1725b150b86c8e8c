//! Several processes tell people what happens and hear what they say: each thing is told once, and done once.

use std::fs;

use anyhow::{Context, ensure};
use chrono::TimeDelta;
use nix::sys::signal::{Signal, kill};
use ropewalk_runtime::Clock;
use ropewalk_runtime::http::{ClientOptions, client};
use ropewalk_schemas::ComponentName;
use ropewalk_schemas::idea::{Idea, Message};
use ropewalk_schemas::notice::{Notice, NoticeState};
use ropewalk_schemas::timer::Timer;
use ropewalk_store::{ChangeSet, CommitError, Query, Versioned};
use ropewalk_tests::servers::TelegramServer;
use serde_json::{Value, json};

use crate::running::{RunningProgram, start, stop};
use crate::team::Team;

const SUMMARY: &str = "notices.summary";
const VARIABLE: &str = "TOKEN_OF_THE_BOT";
const TOKEN: &str = "123456:TEST-of-pat";
/// How many ideas somebody has, one after the other.
const IDEAS: usize = 40;
/// How many days pass, one after the other.
const DAYS: usize = 6;

/// Lets pat hear by the bot of `server`, also once a day what happened.
fn heard_by(mut team: Team, server: &TelegramServer) -> anyhow::Result<Team> {
    let project = &mut team.project;
    let file = project.path().join("ropewalk.toml");
    let settings = fs::read_to_string(&file)?;
    let url = server.url();
    let bot = format!("[telegram]\ntoken_variable = \"{VARIABLE}\"\napi_url = \"{url}\"\n");
    // Half a day away, so that none comes due by itself.
    let time = Clock::system().now() + TimeDelta::hours(12);
    let summary = format!("[notices]\nsummary = \"{}\"\n", time.format("%H:%M"));
    fs::write(&file, format!("{settings}\n{bot}\n{summary}"))?;
    project.runner = project.runner.clone().with_variable(VARIABLE, TOKEN);
    let home = project.path().join("home/.config/ropewalk");
    fs::create_dir_all(&home)?;
    let pat = "[people.pat]\ntelegram_user = 1\ntelegram_chats = [1]\n";
    fs::write(home.join("config.toml"), pat)?;
    Ok(team)
}

/// Lets the day end now.
async fn end_day(team: &Team) -> anyhow::Result<()> {
    loop {
        let timers = Query::new().equal("name", SUMMARY);
        let timers = team.store.list::<Timer>(timers).await?;
        let [timer] = &timers[..] else {
            anyhow::bail!("not one schedule: {timers:?}");
        };
        let due = Timer {
            due: Clock::system().now(),
            ..timer.record.clone()
        };
        let mut changes = ChangeSet::new();
        changes.update(timer, &due);
        match team.store.commit(changes).await {
            Ok(_) => return Ok(()),
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

async fn told(server: &TelegramServer) -> anyhow::Result<Value> {
    let told = client(ClientOptions::default())?.get(format!("{}__said", server.url()));
    Ok(told.send().await?.json().await?)
}

/// Lists the messages that arrived and hold `part`.
async fn arrived(server: &TelegramServer, part: &str) -> anyhow::Result<Vec<String>> {
    let said = told(server).await?;
    let said = said["said"].as_array().context("nothing said")?.iter();
    let texts = said.filter_map(|one| one["parameters"]["text"].as_str());
    Ok(texts
        .filter(|text| text.contains(part))
        .map(str::to_owned)
        .collect())
}

/// Lets pat write to the bot.
async fn write(server: &TelegramServer, text: &str) -> anyhow::Result<()> {
    let message = json!({ "message_id": 9000, "date": 1_795_294_145, "text": text,
        "from": { "id": 1, "first_name": "Pat", "is_bot": false },
        "chat": { "id": 1, "type": "private", "first_name": "Pat" } });
    let body = json!({ "token": TOKEN, "update": { "message": message } });
    let url = format!("{}__fixture/updates", server.url());
    let sent = client(ClientOptions::default())?.post(url).json(&body);
    sent.send().await?.error_for_status()?;
    Ok(())
}

/// Returns which process hears what people do: it holds the file of that duty open.
async fn poller(team: &Team, processes: &[RunningProgram]) -> anyhow::Result<usize> {
    let holds = |process: &RunningProgram| -> anyhow::Result<bool> {
        let files = fs::read_dir(format!("/proc/{}/fd", process.pid()?))?.flatten();
        let mut open = files.filter_map(|file| fs::read_link(file.path()).ok());
        Ok(open.any(|file| file.ends_with("telegram.turn")))
    };
    team.until("who hears", async || {
        let held: Vec<bool> = processes.iter().map(holds).collect::<Result<_, _>>()?;
        // Whoever would like to have it has it open for a moment.
        let is_one = held.iter().filter(|held| **held).count() == 1;
        Ok(held.iter().position(|held| *held).filter(|_| is_one))
    })
    .await
}

/// Returns what pat begins as idea `number`.
fn idea(number: usize) -> String {
    format!("A page that counts the walks of day {number} and shows them to whoever asks for it")
}

/// Waits until the summaries of so many days are told, and nothing is left to be told.
async fn until_told(team: &Team, days: usize) -> anyhow::Result<Vec<Versioned<Notice>>> {
    let notifier = ComponentName::parse("notify.telegram")?;
    team.until("the summary", async || {
        let told = Query::new().equal("port", "telegram");
        let told = team.store.list::<Notice>(told).await?;
        let is_over = told.len() >= days && told.iter().all(|notice| !notice.is_open());
        // Those of agents that do not run stay open.
        let open = team.store.open_deliveries(Some(&notifier), 0, 1).await?;
        Ok((is_over && open.is_empty()).then_some(told))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_summary_is_told_once_however_many_processes_tell_also_when_one_dies()
-> anyhow::Result<()> {
    let server = TelegramServer::start()?;
    let team = heard_by(Team::new(|_, _| {}).await?, &server)?;
    let tells = ["agent", "notify"];
    let mut first = team.start(&tells, "notify.telegram-1").await?;
    let mut second = team.start(&tells, "notify.telegram-2").await?;
    for day in 1..=DAYS {
        end_day(&team).await?;
        if day == DAYS / 2 {
            // Whichever has it in hand: the other one goes on with it.
            kill(first.pid()?, Signal::SIGKILL)?;
            first.0.wait()?;
        }
        let told = until_told(&team, day).await?;
        assert_eq!(told.len(), day, "{told:#?}");
        if day == DAYS / 2 {
            first = team.start(&tells, "notify.telegram-1").await?;
        }
    }
    let told = until_told(&team, DAYS).await?;
    let sent = |notice: &Versioned<Notice>| notice.state == NoticeState::Sent;
    ensure!(told.iter().all(sent), "{told:#?}");
    let days: Vec<_> = team.events("schedule.due").await?.into_iter().collect();
    let days = days.iter().filter(|due| due.event.data["name"] == SUMMARY);
    assert_eq!(days.count(), DAYS, "each day ends once");
    // What was on its way when its sender died may have arrived, and is counted.
    let repeats: u32 = told.iter().map(|notice| notice.repeats).sum();
    ensure!(repeats <= 1, "{told:#?}");
    let arrived = arrived(&server, "Summary since").await?;
    let surplus = arrived.len() - DAYS;
    ensure!(surplus <= usize::try_from(repeats)?, "{arrived:#?}");
    stop(&mut first).await?;
    stop(&mut second).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_people_say_is_heard_by_one_process_at_a_time_and_done_once_also_when_that_dies()
-> anyhow::Result<()> {
    let server = TelegramServer::start()?;
    let team = heard_by(Team::new(|_, _| {}).await?, &server)?;
    let hears = ["agent", "telegram"];
    let before = team.store.count::<Idea>(Query::new()).await?;
    let mut processes = Vec::new();
    for name in ["telegram.left-1", "telegram.left-2"] {
        processes.push(team.start(&hears, name).await?);
    }
    let done = async || anyhow::Ok(team.store.count::<Idea>(Query::new()).await? - before);
    let third = IDEAS / 3;
    for number in 0..IDEAS {
        write(&server, &format!("/newtask {}", idea(number))).await?;
        if number % third != third - 1 {
            continue;
        }
        // In the midst of it: whichever hears dies with some of them done and not forgotten, and some not begun.
        let enough = u64::try_from(number - third / 2)?;
        team.until("some of them", async || {
            Ok((done().await? >= enough).then_some(()))
        })
        .await?;
        let place = poller(&team, &processes).await?;
        let mut dying = processes.remove(place);
        kill(dying.pid()?, Signal::SIGKILL)?;
        dying.0.wait()?;
        let started = start(&team.project.runner, &hears)?;
        processes.push(started);
    }
    team.until("all of them", async || {
        let offset = told(&server).await?["offset"].as_u64();
        Ok((offset > u64::try_from(IDEAS).ok()).then_some(()))
    })
    .await?;
    let titles = team.store.list::<Message>(Query::new()).await?;
    for number in 0..IDEAS {
        let words = idea(number);
        let of_it = titles.iter().filter(|message| message.text == words);
        assert_eq!(of_it.count(), 1, "idea {number}");
    }
    assert_eq!(done().await?, u64::try_from(IDEAS)?);
    let told = told(&server).await?;
    // Telegram may not know yet that whoever died asks no more.
    ensure!(
        told["rivals"].as_u64() <= Some(3),
        "two ask at once: {told}"
    );
    let brought = told["brought"].as_array().context("nothing came")?;
    assert_eq!(brought.len(), IDEAS, "nothing is lost");
    let again = brought.iter().filter(|one| one[1] != 1).count();
    ensure!(again > 0, "nobody died in the midst of it: {brought:?}");
    for mut process in processes {
        stop(&mut process).await?;
    }
    Ok(())
}
