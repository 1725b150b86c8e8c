//! Answers requests over HTTP as a model answers them.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use ropewalk_llm::{Delta, Model, ModelError, ModelRequest, ReplyStream};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::events::Writer;
use super::{NUMBERED, RequestLog, WireFormat, body};

/// What stands before a reply that comes as it is written.
const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A model behind an address.
pub(super) struct Server {
    pub(super) model: Arc<dyn Model>,
    pub(super) format: WireFormat,
    pub(super) asked: RequestLog,
}

impl Server {
    /// Serves on a thread of its own until `stop`; returns the address.
    pub(super) fn start(self, stop: CancellationToken) -> std::io::Result<String> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = format!("http://{}", listener.local_addr()?);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        std::thread::spawn(move || {
            let serving = stop.run_until_cancelled(Arc::new(self).serve(listener));
            runtime.block_on(serving)
        });
        Ok(address)
    }

    async fn serve(self: Arc<Self>, listener: std::net::TcpListener) -> std::io::Result<()> {
        let listener = TcpListener::from_std(listener)?;
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await?;
            let server = self.clone();
            connections.spawn(async move {
                // Who has gone away needs no answer.
                drop(server.respond(stream).await);
            });
            while connections.try_join_next().is_some() {}
        }
    }

    async fn respond(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let (path, body) = read(&mut stream).await?;
        let request = match self.asked(&path, &body) {
            Ok(request) => request,
            Err(told) => return stream.write_all(refusal(400, &told, None).as_bytes()).await,
        };
        let cancel = CancellationToken::new();
        let _gone = cancel.clone().drop_guard();
        let (mut receiving, mut sending) = stream.split();
        let answering = async {
            match self.model.stream(&request, &cancel).await {
                Ok(reply) => self.tell(reply, &request.model, &mut sending).await,
                Err(error) => self.fail(&error, &mut sending).await,
            }
        };
        let mut nothing = [0];
        // Whoever asks says nothing more: it has gone away.
        tokio::select! {
            answered = answering => answered,
            _ = receiving.read(&mut nothing) => Ok(()),
        }
    }

    /// Returns what was to be asked by a body that tells all of it.
    fn asked(&self, path: &str, body: &Value) -> Result<ModelRequest, String> {
        let name = match self.format {
            WireFormat::Gemini => path
                .rsplit('/')
                .next()
                .and_then(|last| last.split(':').next()),
            _ => body["model"].as_str(),
        };
        let number = name.and_then(|name| name.rsplit(NUMBERED).next()?.parse::<usize>().ok());
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let request = number.and_then(|number| asked.get(number));
        let request = request.ok_or_else(|| format!("`{name:?}` at {path} has no number"))?;
        let missing = body::missing(request, body);
        if missing.is_empty() {
            Ok(request.clone())
        } else {
            Err(format!("the body does not tell {missing:?}"))
        }
    }

    /// Writes a reply as it comes.
    async fn tell(
        &self,
        mut reply: ReplyStream,
        model: &str,
        sending: &mut (impl AsyncWriteExt + Unpin),
    ) -> std::io::Result<()> {
        let mut writer = Writer::new(self.format, model);
        writer.begin();
        sending.write_all(STREAM.as_bytes()).await?;
        while let Some(item) = reply.next().await {
            match item {
                Ok(Delta::Text(text)) => writer.text(&text),
                Ok(Delta::ToolUse(call)) => writer.call(&call),
                Ok(Delta::ToolUseStarted { .. } | Delta::Usage(_)) => {}
                Ok(Delta::Done(reply)) => writer.end(&reply),
                Err(ModelError::Malformed { .. }) => writer.nonsense(),
                // A stream that cannot go on is cut.
                Err(_) => return Ok(()),
            }
            sending.write_all(writer.take().as_bytes()).await?;
        }
        Ok(())
    }

    /// Fails as a provider does that fails so.
    async fn fail(
        &self,
        error: &ModelError,
        sending: &mut (impl AsyncWriteExt + Unpin),
    ) -> std::io::Result<()> {
        let page = match error {
            ModelError::Unauthorized { message, .. } => refusal(401, message, None),
            ModelError::RateLimited {
                message,
                retry_after,
            } => refusal(429, message, *retry_after),
            ModelError::OutOfCredit { message } => refusal(402, message, None),
            ModelError::Overloaded {
                status,
                message,
                retry_after,
            } => refusal(*status, message, *retry_after),
            ModelError::ContextOverflow { message } => {
                refusal(400, &format!("prompt is too long: {message}"), None)
            }
            ModelError::Refused { status, message } => refusal(*status, message, None),
            ModelError::Truncated => STREAM.to_owned(),
            ModelError::Malformed { .. } => format!("{STREAM}data: {{no JSON\n\n"),
            ModelError::Timeout { .. } => std::future::pending().await,
            // The connection ends without a word.
            ModelError::Network { .. } | ModelError::Cancelled => String::new(),
            ModelError::TooLong { .. } | ModelError::Script { .. } | ModelError::Strayed { .. } => {
                refusal(400, &error.to_string(), None)
            }
        };
        sending.write_all(page.as_bytes()).await
    }
}

/// Returns the page of an error, in the shape that most formats share.
fn refusal(status: u16, message: &str, retry_after: Option<Duration>) -> String {
    let page = json!({ "type": "error", "error": { "message": message } }).to_string();
    let after = retry_after.map(|after| format!("retry-after: {}\r\n", after.as_secs()));
    let (after, length) = (after.unwrap_or_default(), page.len());
    format!(
        "HTTP/1.1 {status} Refused\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         {after}connection: close\r\n\r\n{page}"
    )
}

/// Reads a request to its end; returns the path that it is sent to, and its body.
async fn read(stream: &mut TcpStream) -> std::io::Result<(String, Value)> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse::<usize>().ok())?
        });
        let body = &bytes[end + 4..];
        if body.len() >= length.unwrap_or_default() {
            let path = head.split(' ').nth(1).unwrap_or_default();
            let path = path.split('?').next().unwrap_or_default();
            return Ok((path.to_owned(), serde_json::from_slice(body)?));
        }
    }
}
