//! A provider of models that answers at once, as little in the way as can be, and whoever asks it without an engine.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// How many pieces a long reply comes in, how many words each has, and the time between two.
const PIECES: usize = 400;
const WORDS: usize = 4;
const PAUSE: Duration = Duration::from_millis(2);
/// The end of a body in chunks.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// What is answered.
#[derive(Debug, Clone, Copy)]
pub(super) enum Plan {
    /// So many replies that call tools, so many each; then one that ends the job.
    Calls { replies: usize, each: usize },
    /// One long reply, at a steady pace.
    Words,
}

/// The provider.
pub(super) struct Provider {
    address: SocketAddr,
    plan: Arc<Mutex<(Plan, u64)>>,
    /// Ends with this.
    _server: JoinSet<()>,
}

/// The times of a reply, from the request on.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplyTimes {
    pub(super) first: Duration,
    pub(super) whole: Duration,
}

impl Provider {
    /// Begins to listen on a port of its own.
    pub(super) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let plan = Arc::new(Mutex::new((Plan::Words, 0)));
        let mut server = JoinSet::new();
        let plans = Arc::clone(&plan);
        server.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).ok();
                let plans = Arc::clone(&plans);
                connections.spawn(async move {
                    // Who has gone is answered no more.
                    serve(stream, &plans).await.ok();
                });
            }
        });
        Ok(Self {
            address,
            plan,
            _server: server,
        })
    }

    /// Returns where it is asked.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Says what is answered from now on.
    pub(super) fn answers(&self, plan: Plan) {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).0 = plan;
    }

    /// Connects without an engine.
    pub(super) async fn connect(&self) -> Result<RawClient> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let body = json!({ "model": "m", "stream": true, "system": "x".repeat(2_000) }).to_string();
        let head = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: here\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        Ok(RawClient {
            stream,
            request: (head + &body).into_bytes(),
        })
    }
}

/// Asks over one plain connection, and looks at nothing of what it is told.
pub(super) struct RawClient {
    stream: TcpStream,
    request: Vec<u8>,
}

impl RawClient {
    /// Asks once.
    pub(super) async fn ask(&mut self) -> Result<ReplyTimes> {
        let begun = Instant::now();
        self.stream.write_all(&self.request).await?;
        let mut reply = vec![0; 64 * 1_024];
        let (mut first, mut tail) = (None, Vec::new());
        loop {
            let read = self.stream.read(&mut reply).await?;
            anyhow::ensure!(read > 0, "the provider has gone");
            let got = &reply[..read];
            if first.is_none() && got.windows(5).any(|bytes| bytes == b"data:") {
                first = Some(begun.elapsed());
            }
            tail.extend_from_slice(got);
            if tail.ends_with(LAST_CHUNK) {
                break;
            }
            let keep = tail.len().saturating_sub(LAST_CHUNK.len());
            tail.drain(..keep);
        }
        Ok(ReplyTimes {
            first: first.context("nothing was said")?,
            whole: begun.elapsed(),
        })
    }
}

async fn serve(mut stream: TcpStream, plan: &Mutex<(Plan, u64)>) -> Result<()> {
    let mut read = Vec::new();
    loop {
        if !request(&mut stream, &mut read).await? {
            return Ok(());
        }
        stream
            .write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
            )
            .await?;
        match next(plan) {
            Answer::Whole(text) => stream.write_all(&chunk(&text)).await?,
            Answer::Paced => {
                stream.write_all(&chunk(&begin())).await?;
                for _ in 0..PIECES {
                    stream.write_all(&chunk(&words())).await?;
                    tokio::time::sleep(PAUSE).await;
                }
                stream.write_all(&chunk(&end("end_turn"))).await?;
            }
        }
        stream.write_all(LAST_CHUNK).await?;
    }
}

/// Reads a request to its end; none comes any more where this is false.
async fn request(stream: &mut TcpStream, read: &mut Vec<u8>) -> Result<bool> {
    loop {
        if let Some(head) = read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&read[..head]).to_ascii_lowercase();
            let length = text
                .lines()
                .find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.context("how long is it?")?.trim().parse()?;
            if read.len() >= head + 4 + length {
                read.drain(..head + 4 + length);
                return Ok(true);
            }
        }
        if stream.read_buf(read).await? == 0 {
            return Ok(false);
        }
    }
}

enum Answer {
    Whole(String),
    Paced,
}

fn next(plan: &Mutex<(Plan, u64)>) -> Answer {
    let mut plan = plan.lock().unwrap_or_else(PoisonError::into_inner);
    let (standing, serial) = &mut *plan;
    match standing {
        Plan::Words => Answer::Paced,
        Plan::Calls { replies: 0, .. } => Answer::Whole(begin() + &words() + &end("end_turn")),
        Plan::Calls { replies, each } => {
            *replies -= 1;
            let mut text = begin();
            for index in 0..*each {
                // No call is like another, which would be a loop.
                *serial += 1;
                text += &call(index, *serial);
            }
            Answer::Whole(text + &end("tool_use"))
        }
    }
}

fn event(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn begin() -> String {
    let usage = json!({ "input_tokens": 3 });
    event(&json!({ "type": "message_start", "message": { "model": "m", "usage": usage } }))
        + &event(
            &json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        )
}

fn words() -> String {
    let delta = json!({ "type": "text_delta", "text": "a word and " });
    event(&json!({ "type": "content_block_delta", "index": 0, "delta": delta })).repeat(WORDS)
}

fn call(index: usize, serial: u64) -> String {
    let index = index + 1;
    let id = format!("call-{serial}");
    let block = json!({ "type": "tool_use", "id": id, "name": "note", "input": { "n": serial } });
    event(&json!({ "type": "content_block_start", "index": index, "content_block": block }))
        + &event(&json!({ "type": "content_block_stop", "index": index }))
}

fn end(reason: &str) -> String {
    event(&json!({ "type": "content_block_stop", "index": 0 }))
        + &event(
            &json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": 5 } }),
        )
        + &event(&json!({ "type": "message_stop" }))
}

fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}
