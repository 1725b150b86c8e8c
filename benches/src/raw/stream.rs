//! The raw limit of the broker: publish, consume and acknowledge through async-nats, at the durability the bus runs on.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use async_nats::jetstream::{self, consumer::pull, stream};
use futures::StreamExt;
use tokio::sync::Semaphore;

use crate::sample::Rate;
use crate::words::{Words, step};

const STREAM: &str = "raw";

/// Moves messages of an event's size for `time`, at most `in_flight` between publish and acknowledgement.
pub(crate) async fn run(url: &str, in_flight: usize, time: Duration) -> Result<Rate> {
    let context = jetstream::new(async_nats::connect(url).await?);
    let stream = context
        .get_or_create_stream(stream::Config {
            name: STREAM.to_owned(),
            subjects: vec![STREAM.to_owned()],
            ..stream::Config::default()
        })
        .await?;
    let consumer = stream
        .get_or_create_consumer(
            STREAM,
            pull::Config {
                durable_name: Some(STREAM.to_owned()),
                max_ack_pending: 10_000,
                ..pull::Config::default()
            },
        )
        .await?;
    let room = Semaphore::new(in_flight);
    let begun = Instant::now();
    let (published, received) = tokio::join!(
        publish(&context, &room, begun + time, in_flight),
        receive(&consumer, &room, begun + time)
    );
    published?;
    let rate = Rate::since(begun, received?);
    context.delete_stream(STREAM).await?;
    Ok(rate)
}

async fn publish(
    context: &jetstream::Context,
    room: &Semaphore,
    until: Instant,
    in_flight: usize,
) -> Result<()> {
    let event = Words::new().event(&step(1)?, 1)?.to_cloud_event();
    let body: bytes::Bytes = serde_json::to_vec(&event)?.into();
    let mut unanswered = VecDeque::new();
    while Instant::now() < until {
        // The receiver gives it back once the message is acknowledged.
        room.acquire().await?.forget();
        unanswered.push_back(context.publish(STREAM, body.clone()).await?);
        if unanswered.len() >= in_flight
            && let Some(answer) = unanswered.pop_front()
        {
            answer.await?;
        }
    }
    for answer in unanswered {
        answer.await?;
    }
    // Nobody waits for room any more.
    room.add_permits(in_flight);
    Ok(())
}

async fn receive(
    consumer: &jetstream::consumer::Consumer<pull::Config>,
    room: &Semaphore,
    until: Instant,
) -> Result<usize> {
    let mut messages = consumer.messages().await?;
    let mut received = 0;
    while Instant::now() < until {
        let message = messages
            .next()
            .await
            .context("the broker ended the stream")??;
        message.ack().await.map_err(anyhow::Error::from_boxed)?;
        room.add_permits(1);
        received += 1;
    }
    Ok(received)
}
