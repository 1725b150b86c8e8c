//! Several processes tell people what happens, and each thing is told once.

use std::fs;

use anyhow::{Context, ensure};
use chrono::TimeDelta;
use nix::sys::signal::{Signal, kill};
use ropewalk_runtime::Clock;
use ropewalk_runtime::http::{ClientOptions, client};
use ropewalk_schemas::ComponentName;
use ropewalk_schemas::notice::{Notice, NoticeState};
use ropewalk_schemas::timer::Timer;
use ropewalk_store::{ChangeSet, CommitError, Query, Versioned};
use ropewalk_tests::servers::TelegramServer;
use serde_json::Value;

use crate::running::stop;
use crate::team::Team;

const SUMMARY: &str = "notices.summary";
const VARIABLE: &str = "TOKEN_OF_THE_BOT";
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
    let token = "123456:TEST-of-pat";
    project.runner = project.runner.clone().with_variable(VARIABLE, token);
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

/// Lists the summaries that arrived.
async fn arrived(server: &TelegramServer) -> anyhow::Result<Vec<String>> {
    let said = client(ClientOptions::default())?.get(format!("{}__said", server.url()));
    let said: Value = said.send().await?.json().await?;
    let said = said["said"].as_array().context("nothing said")?.iter();
    let texts = said.filter_map(|one| one["parameters"]["text"].as_str());
    Ok(texts
        .filter(|text| text.contains("Summary since"))
        .map(str::to_owned)
        .collect())
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
    let arrived = arrived(&server).await?;
    let surplus = arrived.len() - DAYS;
    ensure!(surplus <= usize::try_from(repeats)?, "{arrived:#?}");
    stop(&mut first).await?;
    stop(&mut second).await?;
    Ok(())
}
