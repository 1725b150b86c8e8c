//! A program of somebody else is told by signed POSTs.

use std::sync::Arc;
use std::time::Duration;

use ropewalk_orchestrator::notices::{Notifier, Parts, Rules, Webhook};
use ropewalk_runtime::Clock;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use crate::world::{FrameWorld, noon};

async fn posts(server: &MockServer) -> Vec<Request> {
    server.received_requests().await.unwrap_or_default()
}

#[tokio::test]
async fn a_webhook_gets_each_notice_signed_and_again_after_a_failure() -> anyhow::Result<()> {
    let server = MockServer::start().await;
    let failure = ResponseTemplate::new(503).insert_header("retry-after", "7");
    let once = Mock::given(method("POST")).respond_with(failure);
    once.up_to_n_times(1).mount(&server).await;
    let ok = Mock::given(method("POST")).respond_with(ResponseTemplate::new(204));
    ok.mount(&server).await;

    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let webhook = Webhook::new(server.uri(), Some("secret".to_owned()), clock.clone())?;
    let notifier = Notifier::new(Parts {
        port: Arc::new(webhook),
        people: Vec::new(),
        rules: Rules {
            escalate: Duration::from_hours(1),
            batch: Duration::ZERO,
            quiet: None,
            summary: None,
        },
        turn: Arc::new(|| Some(Box::new(()))),
    })?;
    let world = FrameWorld::open(directory.path(), clock, vec![Arc::new(notifier)]).await?;
    let id = super::ask(&world).await?;
    let sent = world
        .until("two posts", || async {
            world.pass(Duration::from_secs(1)).await;
            let sent = posts(&server).await;
            Ok((sent.len() == 2).then_some(sent))
        })
        .await?;
    assert_eq!(sent[0].body, sent[1].body, "the same notice, under its id");
    let body: serde_json::Value = serde_json::from_slice(&sent[1].body)?;
    assert_eq!(body["question"]["id"], id.to_string());
    assert_eq!(body["question"]["role"], "technical");
    assert_eq!(body["type"], "question.asked");
    for post in &sent {
        let signed = &post.headers["ropewalk-signature"].to_str()?;
        assert!(
            signed.starts_with("sha256=") && signed.len() == 71,
            "{signed}"
        );
    }
    let waited: Vec<i64> = sent
        .iter()
        .map(|post| {
            post.headers["ropewalk-timestamp"]
                .to_str()?
                .parse()
                .map_err(Into::into)
        })
        .collect::<anyhow::Result<_>>()?;
    assert!(waited[1] - waited[0] >= 7, "{waited:?}");
    world.close().await
}
