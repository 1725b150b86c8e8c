//! Keeps the head and the tail of a stream, however long it is.

use ropewalk_runtime::secrets;

/// The kept part of a stream.
#[derive(Debug)]
pub(crate) struct Capture {
    head: Vec<u8>,
    tail: Vec<u8>,
    limit: usize,
    total: u64,
}

impl Capture {
    /// Keeps at most `limit` bytes: everything of a short stream, both ends of a long one.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            head: Vec::new(),
            tail: Vec::new(),
            limit,
            total: 0,
        }
    }

    /// Takes the next bytes of the stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let head_room = self.head_limit().saturating_sub(self.head.len());
        let (head, rest) = bytes.split_at(head_room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(rest);
        // Cutting only when twice too long keeps the cost per byte constant.
        if self.tail.len() > self.tail_limit().saturating_mul(2) {
            self.cut_tail();
        }
    }

    /// Returns how many bytes the stream had.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Says that bytes were left out.
    pub(crate) fn truncated(&self) -> bool {
        self.total > self.limit as u64
    }

    /// Returns the kept text, with a line that says how much was left out.
    pub(crate) fn text(mut self) -> String {
        self.cut_tail();
        if !self.truncated() {
            self.head.append(&mut self.tail);
            return String::from_utf8_lossy(&self.head).into_owned();
        }
        let left_out = self.total - (self.head.len() + self.tail.len()) as u64;
        let mut head = String::from_utf8_lossy(&self.head).into_owned();
        let mut tail = String::from_utf8_lossy(&self.tail).into_owned();
        secrets::strike_cut(&mut head, &mut tail);
        format!("{head}\n[{left_out} bytes left out]\n{tail}")
    }

    /// Returns the bytes of a stream that was short enough, else `None`.
    pub(crate) fn whole(mut self) -> Option<Vec<u8>> {
        if self.truncated() {
            return None;
        }
        self.head.append(&mut self.tail);
        Some(self.head)
    }

    fn head_limit(&self) -> usize {
        self.limit / 2
    }

    fn tail_limit(&self) -> usize {
        self.limit - self.head_limit()
    }

    fn cut_tail(&mut self) {
        let surplus = self.tail.len().saturating_sub(self.tail_limit());
        self.tail.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(limit: usize, chunks: &[&str]) -> Capture {
        let mut capture = Capture::new(limit);
        for chunk in chunks {
            capture.push(chunk.as_bytes());
        }
        capture
    }

    #[test]
    fn a_short_stream_is_kept_whole() {
        assert_eq!(captured(10, &["hello", "world"]).text(), "helloworld");
        assert_eq!(
            captured(10, &["hello", "world"]).whole(),
            Some(b"helloworld".to_vec())
        );
    }

    #[test]
    fn a_long_stream_keeps_its_head_and_its_tail() {
        let chunks: Vec<&str> = std::iter::once("head")
            .chain(["-----"; 50])
            .chain(["tail"])
            .collect();
        let capture = captured(8, &chunks);
        assert!(capture.truncated());
        assert_eq!(capture.text(), "head\n[250 bytes left out]\ntail");
        assert_eq!(captured(8, &chunks).whole(), None);
    }
}
