//! Counts the connections of each address, so that whoever opens thousands leaves room for everybody else.

use std::collections::HashMap;
use std::io::Write as _;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpStream;

/// What is answered to a connection that is one too many, whatever it asks for.
const REFUSAL: &str = concat!(
    "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/problem+json\r\nRetry-After: 1\r\nConnection: close\r\n\r\n",
    r#"{"status":429,"code":"too-many","message":"too many connections come from this address","next":"close some of them"}"#
);

/// How many connections are open from each address.
#[derive(Debug, Clone, Default)]
pub(super) struct PeerCounts(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// One connection of an address, counted until it is dropped.
#[derive(Debug)]
pub(super) struct PeerPlace {
    counts: PeerCounts,
    peer: IpAddr,
}

impl PeerCounts {
    /// Counts one more of `peer`; nothing where it has `most` already.
    pub(super) fn take(&self, peer: IpAddr, most: usize) -> Option<PeerPlace> {
        let mut open = self.open();
        let count = open.get(&peer).copied().unwrap_or_default();
        if count >= most {
            return None;
        }
        open.insert(peer, count + 1);
        Some(PeerPlace {
            counts: self.clone(),
            peer,
        })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PeerPlace {
    fn drop(&mut self) {
        let mut open = self.counts.open();
        if let Some(count) = open.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.peer);
            }
        }
    }
}

/// Says that a connection is one too many, and ends it. Nobody is waited for: what does not go out at once is lost.
pub(super) fn refuse(stream: TcpStream) {
    let said = stream
        .into_std()
        .and_then(|mut stream| stream.write_all(REFUSAL.as_bytes()));
    // Whoever has gone needs no answer.
    said.ok();
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use serde_json::Value;

    use super::*;

    #[test]
    fn an_address_has_as_many_as_may_be_and_one_more_for_each_that_ends() {
        let counts = PeerCounts::default();
        let [one, other] = [1, 2].map(|last| IpAddr::from(Ipv4Addr::new(203, 0, 113, last)));
        let mut held: Vec<_> = (0..2).map(|_| counts.take(one, 2)).collect();
        assert!(held.iter().all(Option::is_some));
        assert!(counts.take(one, 2).is_none());
        assert!(counts.take(other, 2).is_some(), "others come in");
        held.pop();
        assert!(counts.take(one, 2).is_some());
        held.clear();
        assert!(counts.open().is_empty(), "who is gone is forgotten");
        assert!(counts.take(one, 0).is_none());
    }

    #[test]
    fn what_is_answered_to_one_too_many_is_a_problem_like_any_other() {
        let (head, body) = REFUSAL.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 429 "), "{head}");
        let body: Value = serde_json::from_str(body).unwrap();
        let fields = body.as_object().unwrap();
        let names: Vec<&str> = fields.keys().map(String::as_str).collect();
        assert_eq!(names, ["status", "code", "message", "next"]);
    }
}
