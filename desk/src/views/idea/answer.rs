//! The words of an answer while a model gives it, before the whole is a message.

use ropewalk_bus::LiveEvent;
use ropewalk_schemas::MessageId;

/// What tells of words that came.
pub const DELTA: &str = "ideation.delta";

/// Some words of an answer that is being given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delta<'a> {
    /// What is answered.
    pub answers: MessageId,
    /// The try to answer it: the words of one that broke off count no more.
    pub of_try: Option<&'a str>,
    /// How many came before in this try; none where an older program speaks.
    pub part: Option<u64>,
    /// The words.
    pub text: &'a str,
}

impl<'a> Delta<'a> {
    /// Returns what an ephemeral event tells of an answer; nothing where it tells of something else.
    pub fn of(event: &'a LiveEvent) -> Option<Self> {
        if event.event_type != DELTA {
            return None;
        }
        let data = &event.data;
        Some(Self {
            answers: data["message_id"].as_str()?.parse().ok()?,
            of_try: data["try"].as_str(),
            part: data["part"].as_u64(),
            text: data["text"].as_str()?,
        })
    }
}

/// How an answer begins: as much of it as was heard without a gap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartialAnswer {
    /// The try that it is of.
    pub of_try: Option<String>,
    /// The words.
    pub words: String,
    /// How many parts they came in.
    pub parts: u64,
}

impl PartialAnswer {
    /// Takes what comes next, unless there are more than `most` bytes then; returns whether another try begins.
    pub fn hear(&mut self, delta: &Delta<'_>, most: usize) -> bool {
        let begins = self.of_try.as_deref() != delta.of_try;
        if begins {
            *self = Self {
                of_try: delta.of_try.map(str::to_owned),
                ..Self::default()
            };
        }
        // What follows a gap, or a part that was too much, is no beginning.
        let is_next = delta.part.is_none_or(|part| part == self.parts);
        if is_next && self.words.len() + delta.text.len() <= most {
            self.words.push_str(delta.text);
            self.parts += 1;
        }
        begins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(of_try: &'static str, part: Option<u64>, text: &'static str) -> Delta<'static> {
        Delta {
            answers: "00000000-0000-7000-8000-000000000001".parse().unwrap(),
            of_try: Some(of_try),
            part,
            text,
        }
    }

    #[test]
    fn only_what_was_heard_without_a_gap_stands() {
        let cases: [(&[Delta<'_>], &str); 6] = [
            (
                &[delta("a", Some(0), "Who "), delta("a", Some(1), "walks")],
                "Who walks",
            ),
            (
                &[delta("a", Some(0), "Who "), delta("a", Some(2), "there")],
                "Who ",
            ),
            (&[delta("a", Some(3), "there")], ""),
            (
                &[delta("a", Some(0), "Who "), delta("b", Some(0), "Why ")],
                "Why ",
            ),
            (
                &[delta("a", None, "Who "), delta("a", None, "walks")],
                "Who walks",
            ),
            (
                &[
                    delta("a", Some(0), "Who "),
                    delta("a", Some(1), "walks in the hills"),
                    delta("a", Some(2), "?"),
                ],
                "Who ",
            ),
        ];
        for (heard, words) in cases {
            let mut answer = PartialAnswer::default();
            for delta in heard {
                answer.hear(delta, 16);
            }
            assert_eq!(answer.words, words, "{heard:?}");
        }
    }
}
