//! Stands between the program and the emulator, and keeps what is asked as it was sent: the emulator keeps its own translation.

use std::io::{BufRead, BufReader, Read, Write, copy};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::Value;

/// Passes on what comes, and keeps the bodies of requests.
pub(super) struct Recorder {
    pub(super) url: String,
    bodies: Arc<Mutex<Vec<Value>>>,
}

impl Recorder {
    /// Begins to pass on to `target`, an address with a port.
    pub(super) fn start(target: &str) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let bodies: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (kept, target) = (Arc::clone(&bodies), target.to_owned());
        thread::spawn(move || {
            for caller in listener.incoming().map_while(Result::ok) {
                let (kept, target) = (Arc::clone(&kept), target.clone());
                // Who hangs up ends it, on either side.
                thread::spawn(move || drop(pass_on(caller, &target, &kept)));
            }
        });
        Ok(Self { url, bodies })
    }

    /// Returns what was asked so far.
    pub(super) fn bodies(&self) -> Vec<Value> {
        let bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        bodies.clone()
    }
}

fn pass_on(caller: TcpStream, target: &str, kept: &Mutex<Vec<Value>>) -> std::io::Result<()> {
    let mut server = TcpStream::connect(target)?;
    let (mut answers, mut back) = (server.try_clone()?, caller.try_clone()?);
    thread::spawn(move || {
        drop(copy(&mut answers, &mut back));
        drop(back.shutdown(Shutdown::Both));
    });
    let mut requests = BufReader::new(caller);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if requests.read_line(&mut line)? == 0 {
                return server.shutdown(Shutdown::Both);
            }
            let lower = line.to_ascii_lowercase();
            if let Some(count) = lower.strip_prefix("content-length:") {
                length = count.trim().parse().unwrap_or(0);
            }
            head.push_str(&line);
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        requests.read_exact(&mut body)?;
        if let Ok(body) = serde_json::from_slice(&body) {
            kept.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(body);
        }
        server.write_all(head.as_bytes())?;
        server.write_all(&body)?;
    }
}
