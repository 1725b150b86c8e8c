//! Deliveries per second through JetStream, against what the store and the broker could do one after the other.

use anyhow::Result;
use ropewalk_bus::{JetStreamOptions, TransportOptions};
use ropewalk_schemas::ProjectName;
use ropewalk_tests::servers::NatsServer;

use crate::chain::{self, HOP, IN_FLIGHT, Route};
use crate::disk;
use crate::figure::{Figure, Goal};
use crate::raw::stream;
use crate::settings::Settings;

/// Measures the chain over a local broker with its usual durability: a message outlives the broker's process.
pub(crate) async fn run(settings: &Settings) -> Result<Vec<Figure>> {
    let half = settings.time / 2;
    let nats = NatsServer::start()?;
    let store = chain::raw(half, HOP, IN_FLIGHT).await?;
    let stream = stream::run(&nats.url(), IN_FLIGHT, half).await?;
    let directory = disk::directory()?;
    let options = JetStreamOptions::new(nats.url(), ProjectName::parse("bench")?);
    let transport = TransportOptions::JetStream(options);
    let ours = chain::ours(directory.path(), transport, Route::Chain, settings.time).await?;
    let store = store
        .and(chain::raw(half, HOP, IN_FLIGHT).await?)
        .per_second();
    let stream = stream
        .and(stream::run(&nats.url(), IN_FLIGHT, half).await?)
        .per_second();
    let both = 1.0 / (1.0 / store + 1.0 / stream);
    let chain = Figure::rate(
        "deliveries, six-step chain, 256 in flight, JetStream",
        ours.per_second(),
        both,
        "1/(1/raw store + 1/raw stream)",
    );
    let stream = Figure::rate(
        "raw stream: publish + consume + ack, 256 in flight",
        stream,
        store,
        "raw store, batches of 256",
    );
    Ok(vec![chain.goal(Goal::Ratio(0.5)), stream])
}
