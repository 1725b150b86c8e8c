//! Serves one connection of a command: reads what it asks for, connects, and passes bytes on until both sides are done.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::request::{END, Request, Target};
use super::route::{self, Hindrance};
use super::upstream::Proxy;
use super::{Egress, Refusal};

/// The longest head of a request or an answer.
const LONGEST_HEAD_BYTES: usize = 16 * 1024;
/// How long a head may take.
const HEAD: Duration = Duration::from_secs(15);
/// After this long without a byte in either direction a connection is closed.
const IDLE: Duration = Duration::from_mins(5);
/// How long, and how much, is still read of a client that was told no: else it might not get to read that.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: u64 = 1024 * 1024;
const PASSED_BYTES: usize = 16 * 1024;

/// Serves `client`; notes what it is refused before it is told, since it may end at that.
pub(super) async fn serve(mut client: UnixStream, egress: &Egress, note: impl Fn(Refusal)) {
    match begin(&mut client, egress).await {
        Ok(host) => pass_on(client, host).await,
        Err(hindrance) => {
            match &hindrance {
                Hindrance::Refused(refusal) => note(refusal.clone()),
                Hindrance::Unfound { .. }
                | Hindrance::Unreached { .. }
                | Hindrance::Upstream { .. } => {
                    note(Refusal::Away(hindrance.to_string()));
                }
                _ => {}
            }
            // Who does not wait for the answer needs none.
            tell(&mut client, &hindrance).await.ok();
        }
    }
}

async fn begin(client: &mut UnixStream, egress: &Egress) -> Result<TcpStream, Hindrance> {
    let (head, rest) = read_head(client).await?;
    let request = Request::parse(&head)?;
    let mut host = match &request {
        Request::Tunnel(target) => {
            let proxy = egress.upstream.for_tunnel(target);
            let mut host = route::connect(egress, target, proxy).await?;
            let first = match proxy {
                Some(proxy) => ask_for_tunnel(&mut host, target, proxy).await?,
                None => Vec::new(),
            };
            client
                .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                .await?;
            client.write_all(&first).await?;
            host
        }
        Request::Plain {
            target,
            method,
            path,
            headers,
        } => {
            let proxy = egress.upstream.for_plain(target);
            let mut host = route::connect(egress, target, proxy).await?;
            let authority = target.authority();
            // One request each connection: the next one may be for somebody else.
            let common = format!("{headers}Host: {authority}\r\nConnection: close\r\n");
            let head = match proxy {
                Some(Proxy { authorization, .. }) => {
                    format!(
                        "{method} http://{authority}{path} HTTP/1.1\r\n{common}{authorization}\r\n"
                    )
                }
                None => format!("{method} {path} HTTP/1.1\r\n{common}\r\n"),
            };
            host.write_all(head.as_bytes()).await?;
            host
        }
    };
    host.write_all(&rest).await?;
    Ok(host)
}

/// Asks the proxy of the machine; returns what the host has said already.
async fn ask_for_tunnel(
    stream: &mut TcpStream,
    target: &Target,
    proxy: &Proxy,
) -> Result<Vec<u8>, Hindrance> {
    let Target { host, port } = target;
    let authorization = &proxy.authorization;
    let head =
        format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{authorization}\r\n");
    stream.write_all(head.as_bytes()).await?;
    let (answer, first) = read_head(stream).await?;
    let answer = String::from_utf8_lossy(&answer);
    let line = answer.lines().next().unwrap_or_default();
    match line.split(' ').nth(1) {
        Some("200") => Ok(first),
        _ => Err(Hindrance::Upstream {
            host: host.clone(),
            said: line.to_owned(),
        }),
    }
}

/// Reads to the empty line; returns what was read beyond it as well.
async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Result<(Vec<u8>, Vec<u8>), Hindrance> {
    let read = async {
        let mut head = Vec::new();
        loop {
            let found = head.windows(END.len()).position(|window| window == END);
            if let Some(end) = found {
                let rest = head.split_off(end + END.len());
                head.truncate(end);
                return Ok((head, rest));
            }
            if head.len() >= LONGEST_HEAD_BYTES {
                return Err(Hindrance::TooLong);
            }
            if stream.read_buf(&mut head).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    };
    timeout(HEAD, read).await.unwrap_or(Err(Hindrance::Late))
}

async fn tell(client: &mut UnixStream, hindrance: &Hindrance) -> io::Result<()> {
    let status = match hindrance {
        Hindrance::Refused(_) => "403 Forbidden",
        Hindrance::Malformed(_) => "400 Bad Request",
        Hindrance::TooLong => "431 Request Header Fields Too Large",
        Hindrance::Late => "408 Request Timeout",
        Hindrance::Unfound { .. } | Hindrance::Unreached { .. } | Hindrance::Upstream { .. } => {
            "502 Bad Gateway"
        }
        Hindrance::Broken(_) => return Ok(()),
    };
    let body = format!("ropewalk: {hindrance}\n");
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    client.write_all(answer.as_bytes()).await?;
    client.shutdown().await?;
    let (mut rest, mut nowhere) = (client.take(LINGER_BYTES), tokio::io::sink());
    let read = tokio::io::copy(&mut rest, &mut nowhere);
    timeout(LINGER, read).await.ok();
    Ok(())
}

async fn pass_on(client: UnixStream, host: TcpStream) {
    let moved = Notify::new();
    let (from_client, to_client) = client.into_split();
    let (from_host, to_host) = host.into_split();
    let idle = async { while timeout(IDLE, moved.notified()).await.is_ok() {} };
    let both = async {
        tokio::join!(
            pour(from_client, to_host, &moved),
            pour(from_host, to_client, &moved)
        )
    };
    tokio::select! {
        _ = both => {}
        () = idle => {}
    }
}

/// Passes on what comes until there is no more, and says so.
async fn pour(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, moved: &Notify) {
    let mut buffer = vec![0; PASSED_BYTES];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        moved.notify_one();
        if to.write_all(&buffer[..count]).await.is_err() {
            break;
        }
    }
    to.shutdown().await.ok();
}
