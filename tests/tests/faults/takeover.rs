//! A database server that forgets who consumes: the process that had the right has it again, or ends.

use std::time::{Duration, Instant};

use anyhow::ensure;
use nix::sys::signal::{Signal, kill};
use ropewalk_runtime::Clock;
use ropewalk_schemas::agent::Component;
use ropewalk_store::{Location, Store};
use ropewalk_tests::servers::PostgresServer;

use crate::project::{PATIENCE, Project};
use crate::running::{RunningProgram, start, stop, until_ready};
use crate::trial::{UNTIL_FAULT, end_of};

/// Makes a project whose truth lies on `server`; each stands for another machine.
fn project_on(server: &PostgresServer) -> anyhow::Result<Project> {
    let mut project = Project::new()?;
    let runner = project.runner.clone();
    project.runner = runner.with_variable("ROPEWALK_STORE__LOCATION", &server.url());
    Ok(project)
}

async fn up(project: &Project) -> anyhow::Result<RunningProgram> {
    let mut up = start(&project.runner, &["up"])?;
    until_ready(project.path(), &mut up).await?;
    Ok(up)
}

/// Waits until the process that consumes has written a sign of life since now.
async fn until_alive(project: &Project, server: &PostgresServer) -> anyhow::Result<()> {
    let (clock, began) = (Clock::system(), Instant::now());
    let since = clock.now();
    let location = Location::parse(&server.url(), project.path())?;
    let store = Store::open(&location, clock).await?;
    loop {
        let shown = store.get::<Component>("monitor").await?;
        if shown.is_some_and(|component| component.last_seen > since) {
            store.close().await?;
            return Ok(());
        }
        ensure!(began.elapsed() < UNTIL_FAULT, "no sign: {}", project.said());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_up_is_refused_after_the_database_server_was_restarted_too() -> anyhow::Result<()>
{
    let mut server = PostgresServer::start()?;
    let (first, second) = (project_on(&server)?, project_on(&server)?);
    let mut running = up(&first).await?;
    server.restart()?;
    until_alive(&first, &server).await?;
    let refused = second.runner.run(&["up"], PATIENCE)?;
    let complaint = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{complaint}");
    ensure!(
        complaint.contains(&running.pid()?.to_string()),
        "it does not name the first: {complaint}"
    );
    stop(&mut running).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_was_away_while_another_took_over_ends_and_says_so() -> anyhow::Result<()> {
    let mut server = PostgresServer::start()?;
    let (first, second) = (project_on(&server)?, project_on(&server)?);
    let mut away = up(&first).await?;
    kill(away.pid()?, Signal::SIGSTOP)?;
    server.restart()?;
    let mut other = up(&second).await?;
    kill(away.pid()?, Signal::SIGCONT)?;
    let status = end_of(&mut away, UNTIL_FAULT).await?;
    let said = first.said();
    assert_eq!(status.code(), Some(1), "{said}");
    ensure!(said.contains("has taken over"), "{said}");
    ensure!(
        said.contains(&format!("ropewalk {}", other.pid()?)),
        "{said}"
    );
    stop(&mut other).await.map(drop)
}
