//! Counts the requests that answers of a stub server lead to.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use chrono::{DateTime, Utc};
use ropewalk_llm::{
    Message, Model, ModelError, ModelRequest, ProviderConfig, Reply, TimeoutKind, build,
};
use ropewalk_runtime::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

const START: DateTime<Utc> = DateTime::UNIX_EPOCH;

const WHOLE: &str = concat!(
    r#"data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":3}}}"#,
    "\n\n",
    r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"ho"}}"#,
    "\n\n",
    r#"data: {"type":"content_block_stop","index":0}"#,
    "\n\n",
    r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#,
    "\n\n",
    r#"data: {"type":"message_stop"}"#,
    "\n\n",
);

fn events(text: &str) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(text.to_owned(), "text/event-stream; charset=utf-8")
}

/// Is a stub server, a provider that points at it and the clock of that provider's waits.
struct Stub {
    server: MockServer,
    model: Arc<dyn Model>,
    clock: Clock,
}

impl Stub {
    /// Answers with `first` once, if there is one, and then always with `then`.
    async fn start(first: Option<ResponseTemplate>, then: ResponseTemplate) -> Result<Self> {
        let server = MockServer::start().await;
        let posted = || {
            Mock::given(method("POST"))
                .and(path("/v1/messages"))
                .and(header("x-api-key", "k-123"))
                .and(header("anthropic-version", "2023-06-01"))
        };
        if let Some(first) = first {
            let once = posted().respond_with(first).up_to_n_times(1);
            once.mount(&server).await;
        }
        posted().respond_with(then).mount(&server).await;
        let clock = Clock::manual(START);
        let mut config = ProviderConfig::shipped("anthropic")?;
        config.base_url = server.uri();
        config.timeouts.idle_seconds = 3;
        let model = build(&config, Some("k-123".into()), None, &clock)?;
        Ok(Self {
            server,
            model,
            clock,
        })
    }

    async fn ask(&self) -> Result<Reply, ModelError> {
        ask(&self.model, &self.clock).await
    }

    async fn requests(&self) -> usize {
        self.server
            .received_requests()
            .await
            .map_or(0, |requests| requests.len())
    }
}

/// Asks while the clock of the waits runs fast, for at most an hour of its time.
async fn ask(model: &dyn Model, clock: &Clock) -> Result<Reply, ModelError> {
    let request = ModelRequest::new("m", "", vec![Message::user("hi")]);
    let cancel = CancellationToken::new();
    let time = async {
        while (clock.now() - START).num_hours() < 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            clock.advance(Duration::from_millis(100));
        }
    };
    tokio::select! {
        reply = model.ask(&request, &cancel) => reply,
        () = time => Err(ModelError::Cancelled),
    }
}

fn error_page(status: u16, kind: &str, message: &str) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_json(serde_json::json!({
        "type": "error", "error": { "type": kind, "message": message },
    }))
}

#[tokio::test]
async fn a_limited_request_waits_as_long_as_asked_and_is_sent_once_more() -> Result<()> {
    let limited = error_page(429, "rate_limit_error", "slow").insert_header("retry-after", "3");
    let stub = Stub::start(Some(limited), events(WHOLE)).await?;
    assert_eq!(stub.ask().await?.text(), "ho");
    assert_eq!(stub.requests().await, 2);
    assert!((stub.clock.now() - START).num_seconds() >= 3);
    Ok(())
}

#[tokio::test]
async fn an_endless_503_gets_six_requests() -> Result<()> {
    let stub = Stub::start(None, ResponseTemplate::new(503)).await?;
    let reply = stub.ask().await;
    ensure!(
        matches!(reply, Err(ModelError::Overloaded { status: 503, .. })),
        "{reply:?}"
    );
    assert_eq!(stub.requests().await, 6);
    Ok(())
}

#[tokio::test]
async fn a_refused_key_gets_one_request_and_names_its_variable() -> Result<()> {
    let refused = error_page(401, "authentication_error", "invalid k-123");
    let stub = Stub::start(None, refused).await?;
    let reply = stub.ask().await;
    ensure!(
        matches!(&reply, Err(ModelError::Unauthorized { variable, message })
            if variable == "ANTHROPIC_API_KEY" && message == "invalid [key]"),
        "{reply:?}"
    );
    assert_eq!(stub.requests().await, 1);
    Ok(())
}

#[tokio::test]
async fn refusals_overflows_and_redirections_get_one_request() -> Result<()> {
    let too_long = "prompt is too long: 9 tokens > 8 maximum";
    let cases = [
        (error_page(400, "invalid_request_error", "bad"), false),
        (error_page(404, "not_found_error", "no such model"), false),
        (error_page(400, "invalid_request_error", too_long), true),
        (ResponseTemplate::new(302), false),
    ];
    for (answer, overflow) in cases {
        let stub = Stub::start(None, answer).await?;
        let reply = stub.ask().await;
        let expected = match &reply {
            Err(ModelError::ContextOverflow { .. }) => overflow,
            Err(ModelError::Refused { .. }) => !overflow,
            _ => false,
        };
        ensure!(expected, "{reply:?}");
        assert_eq!(stub.requests().await, 1);
    }
    Ok(())
}

#[tokio::test]
async fn an_account_without_credit_gets_one_request() -> Result<()> {
    let low = "Your credit balance is too low to access the Anthropic API.";
    let cases = [
        ResponseTemplate::new(402),
        error_page(400, "invalid_request_error", low),
    ];
    for answer in cases {
        let stub = Stub::start(None, answer).await?;
        let reply = stub.ask().await;
        ensure!(
            matches!(reply, Err(ModelError::OutOfCredit { .. })),
            "{reply:?}"
        );
        assert_eq!(stub.requests().await, 1);
    }
    Ok(())
}

#[tokio::test]
async fn a_page_in_place_of_a_stream_is_asked_again_and_says_to_check_the_address() -> Result<()> {
    let page = || ResponseTemplate::new(200).set_body_raw("<html>welcome</html>", "text/html");
    let stub = Stub::start(Some(page()), events(WHOLE)).await?;
    assert_eq!(stub.ask().await?.text(), "ho");
    assert_eq!(stub.requests().await, 2);

    let stub = Stub::start(None, page()).await?;
    let reply = stub.ask().await;
    let Err(ModelError::Malformed { message }) = &reply else {
        anyhow::bail!("{reply:?}");
    };
    ensure!(message.contains("check the base URL"), "{message}");
    Ok(())
}

#[tokio::test]
async fn an_error_inside_a_200_is_retried_before_output_and_surfaces_after() -> Result<()> {
    let failure = concat!(
        r#"data: {"type":"error","error":{"type":"overloaded_error","message":"x"}}"#,
        "\n\n"
    );
    let (start, _) = WHOLE.split_at(WHOLE.find("\n\n").unwrap_or_default() + 2);
    let before = events(&format!("{start}{failure}"));
    let stub = Stub::start(Some(before), events(WHOLE)).await?;
    assert_eq!(stub.ask().await?.text(), "ho");
    assert_eq!(stub.requests().await, 2);

    let (spoken, _) = WHOLE.split_at(
        WHOLE
            .find(r#"data: {"type":"content_block_stop"#)
            .unwrap_or(0),
    );
    let after = events(&format!("{spoken}{failure}"));
    let stub = Stub::start(Some(after), events(WHOLE)).await?;
    let reply = stub.ask().await;
    ensure!(
        matches!(reply, Err(ModelError::Overloaded { status: 529, .. })),
        "{reply:?}"
    );
    assert_eq!(stub.requests().await, 1);
    Ok(())
}

#[tokio::test]
async fn a_silent_provider_hits_the_idle_time_out_and_is_asked_again() -> Result<()> {
    let silent = events(WHOLE).set_delay(Duration::from_mins(1));
    let stub = Stub::start(Some(silent), events(WHOLE)).await?;
    assert_eq!(stub.ask().await?.text(), "ho");
    assert_eq!(stub.requests().await, 2);
    Ok(())
}

#[tokio::test]
async fn each_format_sends_the_trace_that_a_request_is_in_and_none_where_there_is_none()
-> Result<()> {
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for provider in ["anthropic", "openai", "openai-responses", "gemini"] {
        let server = MockServer::start().await;
        let refused = Mock::given(method("POST")).respond_with(ResponseTemplate::new(400));
        refused.mount(&server).await;
        let mut config = ProviderConfig::shipped(provider)?;
        config.base_url = server.uri();
        let model = build(&config, Some("k-123".into()), None, &Clock::manual(START))?;
        for traceparent in [Some(trace), None] {
            let request = ModelRequest {
                traceparent: traceparent.map(str::to_owned),
                ..ModelRequest::new("m", "", vec![Message::user("hi")])
            };
            let reply = model.ask(&request, &CancellationToken::new()).await;
            ensure!(
                matches!(reply, Err(ModelError::Refused { status: 400, .. })),
                "{provider}: {reply:?}"
            );
        }
        let received = server.received_requests().await.unwrap_or_default();
        let sent = received.iter().map(|request| {
            let values = request.headers.get_all("traceparent").iter();
            values
                .map(wiremock::http::HeaderValue::as_bytes)
                .collect::<Vec<_>>()
        });
        let expected = [vec![trace.as_bytes()], Vec::new()];
        assert_eq!(sent.collect::<Vec<_>>(), expected, "{provider}");
    }
    Ok(())
}

#[tokio::test]
async fn an_unreachable_provider_is_asked_six_times_and_then_a_network_error() -> Result<()> {
    // Nobody listens there, and it is nobody else's as long as this test has it.
    let taken = tokio::net::TcpSocket::new_v4()?;
    taken.bind("127.0.0.1:0".parse()?)?;
    let address = taken.local_addr()?;
    let clock = Clock::manual(START);
    let mut config = ProviderConfig::shipped("ollama")?;
    config.base_url = format!("http://{address}/v1");
    let model = build(&config, None, None, &clock)?;
    let reply = ask(&model, &clock).await;
    ensure!(
        matches!(reply, Err(ModelError::Network { .. })),
        "{reply:?}"
    );
    // 1 + 2 + 4 + 8 + 16 seconds, a quarter less at best.
    assert!((clock.now() - START).num_seconds() >= 23);
    Ok(())
}

#[tokio::test]
async fn an_endless_reply_is_bounded() -> Result<()> {
    let flood = format!(": {}\n", "x".repeat(1022)).repeat(17 * 1024);
    let stub = Stub::start(None, events(&flood)).await?;
    let reply = stub.ask().await;
    ensure!(
        matches!(&reply, Err(ModelError::TooLong { limit_bytes }) if *limit_bytes == 16 * 1024 * 1024),
        "{reply:?}"
    );
    assert_eq!(stub.requests().await, 1);
    Ok(())
}

#[tokio::test]
async fn a_reply_with_more_words_than_are_kept_is_ended_while_it_is_written() -> Result<()> {
    let (begun, rest) = WHOLE.split_at(
        WHOLE
            .find(r#"data: {"type":"content_block_stop"#)
            .unwrap_or(0),
    );
    let piece = format!(
        "data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{}\"}}}}\n\n",
        "x".repeat(64 * 1024)
    );
    for (pieces, fits) in [(15, true), (17, false)] {
        let stub = Stub::start(
            None,
            events(&format!("{begun}{}{rest}", piece.repeat(pieces))),
        )
        .await?;
        let reply = stub.ask().await;
        let limit_bytes = 1024 * 1024;
        match reply {
            Ok(reply) => ensure!(fits && reply.text().len() == pieces * 64 * 1024 + 2),
            Err(error) => ensure!(
                !fits && error == ModelError::TooLong { limit_bytes },
                "{error}"
            ),
        }
        assert_eq!(stub.requests().await, 1);
    }
    Ok(())
}

#[tokio::test]
async fn a_trickle_hits_the_total_time_out_and_is_not_asked_again() -> Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let mut config = ProviderConfig::shipped("ollama")?;
    config.base_url = format!("http://{}/v1", listener.local_addr()?);
    config.timeouts.total_seconds = 1;
    let model = build(&config, None, None, &Clock::manual(START))?;
    let trickle = async {
        let mut served = 0;
        loop {
            let (mut socket, _) = listener.accept().await?;
            served += 1;
            ensure!(served == 1, "asked again");
            // An answer ahead of the question would be an error of its own.
            ensure!(socket.read(&mut [0; 4096]).await? > 0, "nothing was asked");
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: ";
            socket.write_all(head.as_bytes()).await?;
            while socket.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    };
    let request = ModelRequest::new("m", "", Vec::new());
    let cancel = CancellationToken::new();
    let reply = tokio::select! {
        reply = model.ask(&request, &cancel) => reply,
        served = trickle => return served,
        () = tokio::time::sleep(Duration::from_secs(20)) => bail!("no time-out"),
    };
    let what = TimeoutKind::Total;
    assert_eq!(reply, Err(ModelError::Timeout { what }));
    Ok(())
}

#[tokio::test]
async fn a_body_that_unpacks_to_a_thousand_times_its_size_is_read_up_to_its_bound() -> Result<()> {
    let packed = ropewalk_tests::bombs::packed_zeros(256)?;
    ensure!(packed.len() < 2 * 1024 * 1024, "{}", packed.len());
    let bomb = |status: u16| {
        ResponseTemplate::new(status)
            .insert_header("content-encoding", "gzip")
            .set_body_raw(packed.clone(), "text/event-stream")
    };
    let stub = Stub::start(None, bomb(200)).await?;
    let reply = stub.ask().await;
    let limit = ropewalk_llm::Limits::default().reply_bytes;
    ensure!(
        matches!(reply, Err(ModelError::TooLong { limit_bytes }) if limit_bytes == limit),
        "{reply:?}"
    );
    // The page of an error is no way around it.
    let stub = Stub::start(None, bomb(400)).await?;
    let reply = stub.ask().await;
    ensure!(
        matches!(reply, Err(ModelError::Refused { status: 400, .. })),
        "{reply:?}"
    );
    Ok(())
}
