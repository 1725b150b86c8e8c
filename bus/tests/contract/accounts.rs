//! The server configuration that Ropewalk ships: one user per role, who may do what its role needs and nothing else.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use async_nats::ConnectOptions;
use async_nats::jetstream;
use ropewalk_bus::{Auth, BusError, JetStreamOptions, TransportOptions};
use ropewalk_schemas::ProjectName;
use ropewalk_store::ChangeSet;

use crate::server::ConfiguredServer;
use crate::support::{PATIENCE, RunningBus, World, finish_all, next};

/// A server with the shipped configuration, and the keys of its users.
struct ShippedServer {
    server: ConfiguredServer,
    directory: tempfile::TempDir,
}

impl ShippedServer {
    fn start() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/nats");
        let made = Command::new(shipped.join("make-keys"))
            .arg("contract")
            .arg(directory.path())
            .status()?;
        ensure!(made.success(), "no keys were made");
        let users = std::fs::read_to_string(directory.path().join("users.conf"))?;
        let text = std::fs::read_to_string(shipped.join("nats-server.conf"))?
            .replace("\"./data\"", "STORE")
            // An include is looked for beside the file that the test writes.
            .replace("include ./users.conf", &users);
        ensure!(text.contains("STORE") && text.contains(&users), "{text}");
        let server = ConfiguredServer::start(&text)?;
        Ok(Self { server, directory })
    }

    fn key(&self, role: &str) -> PathBuf {
        self.directory.path().join(format!("keys/{role}.nk"))
    }

    fn options(&self, role: &str) -> Result<JetStreamOptions> {
        Ok(JetStreamOptions {
            auth: Auth::NkeyFile(self.key(role)),
            inbox_prefix: Some(format!("_INBOX_{role}")),
            ..JetStreamOptions::new(self.server.url(), ProjectName::parse("contract")?)
        })
    }

    async fn bus(&self, world: &World, role: &str) -> Result<RunningBus> {
        let transport = TransportOptions::JetStream(self.options(role)?);
        RunningBus::start(world.store().await?, transport, world.options.clone()).await
    }

    /// Connects as `role` does, and also returns what the server complains about.
    async fn client(
        &self,
        role: &str,
    ) -> Result<(async_nats::Client, tokio::sync::mpsc::Receiver<String>)> {
        let (sender, complaints) = tokio::sync::mpsc::channel(16);
        let seed = std::fs::read_to_string(self.key(role))?.trim().to_owned();
        let client = ConnectOptions::with_nkey(seed)
            .custom_inbox_prefix(format!("_INBOX_{role}"))
            .request_timeout(Some(Duration::from_secs(1)))
            .event_callback(move |event| {
                let sender = sender.clone();
                async move { sender.send(event.to_string()).await.unwrap_or_default() }
            })
            .connect(self.server.url())
            .await?;
        Ok((client, complaints))
    }
}

async fn complaint(complaints: &mut tokio::sync::mpsc::Receiver<String>) -> Result<String> {
    let found = async {
        while let Some(text) = complaints.recv().await {
            if text.to_lowercase().contains("permissions violation") {
                return Ok(text);
            }
        }
        bail!("the connection is gone")
    };
    tokio::time::timeout(PATIENCE, found).await?
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_role_works_with_the_permissions_that_are_shipped() -> Result<()> {
    let (shipped, world) = (ShippedServer::start()?, World::embedded()?);
    let everyone = shipped.bus(&world, "up").await?;
    let mut inboxes = vec![everyone.consume("person", &["task.*"]).await?];
    let roles = [
        "ideation",
        "specification",
        "build",
        "improvement",
        "monitor",
        "pm",
        "questions",
    ];
    let mut running = Vec::new();
    for role in roles {
        let bus = shipped.bus(&world, role).await?;
        inboxes.push(bus.consume(role, &["task.*"]).await?);
        running.push(bus);
    }
    let notify = shipped.bus(&world, "notify").await?;
    for port in ["notify.terminal", "notify.webhook", "notify.telegram"] {
        inboxes.push(notify.consume(port, &["task.*"]).await?);
    }
    running.push(notify);
    // These take no deliveries; what a person does there is published like everything else.
    for role in ["server", "telegram"] {
        let bus = shipped.bus(&world, role).await?;
        world.emit(&bus.store, role, "1").await?;
        for inbox in &mut inboxes {
            finish_all(inbox, 1).await?;
        }
        running.push(bus);
    }
    world.emit(&everyone.store, "a", "1").await?;
    for inbox in &mut inboxes {
        finish_all(inbox, 1).await?;
    }
    // A process of one role publishes too.
    world.emit(&running[0].store, "a", "2").await?;
    for inbox in &mut inboxes {
        let mut delivery = next(inbox).await?;
        delivery.finish(ChangeSet::new()).await?;
    }
    drop(inboxes);
    running.push(everyone);
    for bus in running {
        bus.bus.flush().await;
        bus.stop().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_can_neither_use_the_consumer_of_another_nor_hear_it_nor_delete_the_stream()
-> Result<()> {
    let (shipped, world) = (ShippedServer::start()?, World::embedded()?);
    let build = shipped.bus(&world, "build").await?;
    let refused = build
        .consume("pm", &["task.*"])
        .await
        .map(|_| ())
        .unwrap_err();
    let refused = refused.downcast::<BusError>()?;
    ensure!(matches!(refused, BusError::Permission(_)), "{refused}");
    ensure!(refused.to_string().contains("pm"), "{refused}");

    let (client, mut complaints) = shipped.client("build").await?;
    let context = jetstream::new(client.clone());
    let gone = context.delete_stream("ropewalk-contract").await;
    ensure!(gone.is_err(), "a role deleted the stream");
    let said = complaint(&mut complaints).await?;
    ensure!(said.contains("STREAM.DELETE"), "{said}");
    context.get_stream("ropewalk-contract").await?;
    for foreign in ["_INBOX_pm.>", "ropewalk.contract.>", ">"] {
        let heard = client.subscribe(foreign).await?;
        client.flush().await?;
        let said = complaint(&mut complaints).await?;
        ensure!(said.to_lowercase().contains("subscription"), "{said}");
        drop(heard);
    }
    // It still does its own work.
    let mut inbox = build.consume("build", &["task.*"]).await?;
    world.emit(&build.store, "a", "1").await?;
    finish_all(&mut inbox, 1).await?;
    drop(inbox);
    build.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_gets_in_without_a_key_and_a_missing_key_file_is_named() -> Result<()> {
    let (shipped, world) = (ShippedServer::start()?, World::embedded()?);
    let mut options = shipped.options("up")?;
    options.auth = Auth::None;
    let transport = TransportOptions::JetStream(options.clone());
    let started = RunningBus::start(world.store().await?, transport, world.options.clone()).await;
    let refused = started.map(|_| ()).unwrap_err().downcast::<BusError>()?;
    ensure!(matches!(refused, BusError::Refused { .. }), "{refused}");
    options.auth = Auth::NkeyFile("/nowhere/up.nk".into());
    let transport = TransportOptions::JetStream(options);
    let started = RunningBus::start(world.store().await?, transport, world.options.clone()).await;
    let refused = started.map(|_| ()).unwrap_err().to_string();
    ensure!(refused.contains("/nowhere/up.nk"), "{refused}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_trusted_by_the_certificate_that_is_named_only() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let file = |name: &str| directory.path().join(name).display().to_string();
    for name in ["ours", "other"] {
        let made = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
            ])
            .args(["-nodes", "-days", "2", "-subj", "/CN=ropewalk"])
            .args(["-addext", "subjectAltName=IP:127.0.0.1"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .args([
                "-keyout",
                &file(&format!("{name}.key")),
                "-out",
                &file(&format!("{name}.pem")),
            ])
            .output()
            .context("install openssl")?;
        ensure!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
    }
    let server = ConfiguredServer::start(&format!(
        "jetstream: {{ store_dir: STORE }}\ntls {{ cert_file: \"{}\", key_file: \"{}\" }}",
        file("ours.pem"),
        file("ours.key")
    ))?;
    let world = World::embedded()?;
    let start = |certificates: &str| {
        let options = ProjectName::parse("contract").map(|project| JetStreamOptions {
            root_certificates: Some(directory.path().join(certificates)),
            ..JetStreamOptions::new(server.url(), project)
        });
        let world = &world;
        async move {
            let transport = TransportOptions::JetStream(options?);
            RunningBus::start(world.store().await?, transport, world.options.clone()).await
        }
    };
    let refused = start("other.pem").await.map(|_| ()).unwrap_err();
    ensure!(refused.to_string().contains("certificate"), "{refused}");
    let running = start("ours.pem").await?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    world.emit(&running.store, "a", "1").await?;
    finish_all(&mut inbox, 1).await?;
    drop(inbox);
    running.stop().await
}
