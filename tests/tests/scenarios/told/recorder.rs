//! Stands between the program and the emulator, and keeps what is asked as it was sent: the emulator keeps its own translation.
//! It also counts what a provider would have kept, and says so in the answers, which the emulator does not.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::Context;
use serde_json::{Value, json};

use super::cache::{CacheHit, PromptCache};

/// What was asked so far, each with what was read before.
#[derive(Debug, Default)]
struct Log {
    bodies: Vec<(Value, CacheHit)>,
    cache: PromptCache,
}

/// Passes on what comes, and keeps the bodies of requests.
pub(super) struct Recorder {
    pub(super) url: String,
    log: Arc<Mutex<Log>>,
}

impl Recorder {
    /// Begins to pass on to `target`, an address with a port.
    pub(super) fn start(target: &str) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let log: Arc<Mutex<Log>> = Arc::default();
        let (kept, target) = (Arc::clone(&log), target.to_owned());
        thread::spawn(move || {
            for caller in listener.incoming().map_while(Result::ok) {
                let (kept, target) = (Arc::clone(&kept), target.clone());
                // Who hangs up ends it, on either side.
                thread::spawn(move || drop(pass_on(caller, &target, &kept)));
            }
        });
        Ok(Self { url, log })
    }

    /// Returns what was asked so far, each with what was read before.
    pub(super) fn bodies(&self) -> Vec<(Value, CacheHit)> {
        locked(&self.log).bodies.clone()
    }
}

fn locked(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request or an answer.
struct HttpMessage {
    /// The first line and the fields, each with its end, without those that say how long the body is.
    head: String,
    body: Vec<u8>,
}

/// Reads one; none where nothing more comes.
fn read(from: &mut impl BufRead) -> io::Result<Option<HttpMessage>> {
    let (mut head, mut length, mut chunked) = (String::new(), 0, false);
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let lower = line.trim().to_ascii_lowercase();
        match lower.split_once(':') {
            Some(("content-length", count)) => length = count.trim().parse().unwrap_or(0),
            Some(("transfer-encoding", _)) => chunked = true,
            _ if lower.is_empty() => break,
            _ => head.push_str(&line),
        }
    }
    let mut body = Vec::new();
    if !chunked {
        from.by_ref().take(length).read_to_end(&mut body)?;
    }
    while chunked {
        let mut size = String::new();
        from.read_line(&mut size)?;
        let size = u64::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
        from.by_ref().take(size).read_to_end(&mut body)?;
        from.read_line(&mut String::new())?;
        chunked = size > 0;
    }
    Ok(Some(HttpMessage { head, body }))
}

fn write(to: &mut impl Write, message: &HttpMessage) -> io::Result<()> {
    let length = message.body.len();
    write!(to, "{}content-length: {length}\r\n\r\n", message.head)?;
    to.write_all(&message.body)?;
    to.flush()
}

/// Answers what one caller asks, each request on a connection of its own: a server ends one that was silent for seconds, and
/// a request that meets that end would come again.
fn pass_on(caller: TcpStream, target: &str, log: &Mutex<Log>) -> io::Result<()> {
    let mut back = caller.try_clone()?;
    let mut requests = BufReader::new(caller);
    while let Some(request) = read(&mut requests)? {
        let read_before = serde_json::from_slice::<Value>(&request.body).ok();
        let read_before = read_before.map(|body| {
            let mut log = locked(log);
            let hit = log.cache.read(&body);
            log.bodies.push((body, hit));
            hit
        });
        let mut server = TcpStream::connect(target)?;
        write(&mut server, &request)?;
        let Some(mut answer) = read(&mut BufReader::new(server))? else {
            break;
        };
        if let Some(hit) = read_before {
            answer.body = counted(&answer.body, hit);
        }
        write(&mut back, &answer)?;
    }
    Ok(())
}

/// Says in the event that begins an answer how much of the request was read before.
fn counted(body: &[u8], hit: CacheHit) -> Vec<u8> {
    let text = String::from_utf8_lossy(body);
    let lines = text.split_inclusive('\n').map(|line| {
        let event = line.strip_prefix("data: ");
        let event = event.and_then(|event| serde_json::from_str::<Value>(event).ok());
        match event {
            Some(mut event) if event["type"] == "message_start" => {
                let usage = &mut event["message"]["usage"];
                usage["input_tokens"] = json!(hit.tokens_anew());
                usage["cache_read_input_tokens"] = json!(hit.tokens());
                format!("data: {event}\n")
            }
            _ => line.to_owned(),
        }
    });
    lines.collect::<String>().into_bytes()
}

/// A server that answers each connection once, and ends it.
fn forgetful() -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let target = listener.local_addr()?.to_string();
    thread::spawn(move || {
        for mut caller in listener.incoming().map_while(Result::ok) {
            let request = read(&mut BufReader::new(&caller));
            let answer = HttpMessage {
                head: "HTTP/1.1 200 OK\r\n".to_owned(),
                body: request.map_or(Vec::new(), |request| {
                    request.map_or(Vec::new(), |one| one.body)
                }),
            };
            drop(write(&mut caller, &answer));
        }
    });
    Ok(target)
}

#[test]
fn a_caller_who_stays_is_answered_though_the_server_has_ended_its_connection() -> anyhow::Result<()>
{
    let recorder = Recorder::start(&forgetful()?)?;
    let mut caller = TcpStream::connect(recorder.url.trim_start_matches("http://"))?;
    let mut answers = BufReader::new(caller.try_clone()?);
    for body in ["{\"turn\":1}", "{\"turn\":2}"] {
        let head = "POST /v1/messages HTTP/1.1\r\n".to_owned();
        let body = body.as_bytes().to_vec();
        write(
            &mut caller,
            &HttpMessage {
                head,
                body: body.clone(),
            },
        )?;
        let answer = read(&mut answers)?.context("no answer")?;
        assert_eq!(answer.body, body);
    }
    assert_eq!(recorder.bodies().len(), 2);
    Ok(())
}
