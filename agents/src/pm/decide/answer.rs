//! Reads what people answered to PM's questions.

use ropewalk_schemas::payload::Verdict;

/// What a person said about a stuck task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StuckReply {
    /// Let it go on; its age begins anew.
    Wait,
    /// Leave it out.
    Skip,
    /// End this attempt and begin another.
    Retry,
}

/// Reads the answer to `task_stuck`; what is none of its choices changes nothing, so it means to wait.
pub fn stuck_reply(text: &str) -> StuckReply {
    match plain(text).as_str() {
        "skip" => StuckReply::Skip,
        "retry" => StuckReply::Retry,
        _ => StuckReply::Wait,
    }
}

/// What a person decided about a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskReply {
    /// One of the things that PM may decide.
    Verdict(Verdict),
    /// Another round with this advice.
    Guidance(String),
}

/// Reads the answer to a decision about a task; words that begin with no verdict are advice.
pub fn task_reply(text: &str) -> TaskReply {
    const WORDS: [(&str, Verdict); 12] = [
        ("retry", Verdict::Retry),
        ("try again", Verdict::Retry),
        ("skip", Verdict::Skip),
        ("leave it out", Verdict::Skip),
        ("interrupt", Verdict::Interrupt),
        ("grant", Verdict::Grant),
        ("preempt", Verdict::Preempt),
        ("pre-empt", Verdict::Preempt),
        ("deny", Verdict::Deny),
        ("wait", Verdict::Watch),
        ("watch", Verdict::Watch),
        ("leave", Verdict::Watch),
    ];
    let plain = plain(text);
    WORDS
        .iter()
        .find(|(word, _)| begins_with(&plain, word))
        .map_or_else(
            || TaskReply::Guidance(text.trim().to_owned()),
            |(_, verdict)| TaskReply::Verdict(*verdict),
        )
}

/// What a person said about a change in a file of another build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeReply {
    /// The task waits until the file is free.
    Wait,
    /// The change may be made on top of what the owner has landed.
    Approve,
    /// The change is not made.
    Refuse,
}

/// Reads the answer to `change_requested`; only clear words take a file from its owner or block the task.
pub fn change_reply(text: &str) -> ChangeReply {
    let plain = plain(text);
    let begins = |words: &[&str]| words.iter().any(|word| begins_with(&plain, word));
    if begins(&["go on", "approve", "yes"]) {
        ChangeReply::Approve
    } else if begins(&["refuse", "reject", "deny", "no"]) {
        ChangeReply::Refuse
    } else {
        ChangeReply::Wait
    }
}

/// What a person decided about a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildReply {
    /// It goes on, with another round for what failed.
    Resume,
    /// It stands still.
    Pause,
    /// It ends.
    Stop,
    /// It stays as it is.
    Leave,
}

/// Reads the answer to a decision about a build; only clear words set it in motion.
pub fn build_reply(text: &str) -> BuildReply {
    let plain = plain(text);
    let begins = |words: &[&str]| words.iter().any(|word| begins_with(&plain, word));
    if begins(&["resume", "retry", "try again", "go on", "continue"]) {
        BuildReply::Resume
    } else if begins(&["pause"]) {
        BuildReply::Pause
    } else if begins(&["stop"]) {
        BuildReply::Stop
    } else {
        BuildReply::Leave
    }
}

/// Whole words only: "waiting helps" is no order to wait.
fn begins_with(text: &str, word: &str) -> bool {
    text.strip_prefix(word)
        .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

fn plain(text: &str) -> String {
    text.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_about_a_stuck_task_is_understood() {
        for (text, expected) in [
            ("wait", StuckReply::Wait),
            (" Skip ", StuckReply::Skip),
            ("retry", StuckReply::Retry),
            ("skipping is bad", StuckReply::Wait),
        ] {
            assert_eq!(stuck_reply(text), expected, "{text}");
        }
    }

    #[test]
    fn words_about_a_task_are_a_verdict_or_advice() {
        let advice = |text: &str| TaskReply::Guidance(text.to_owned());
        let rows = [
            (
                "Retry with the other side's change",
                TaskReply::Verdict(Verdict::Retry),
            ),
            ("skip", TaskReply::Verdict(Verdict::Skip)),
            ("Skip: not needed", TaskReply::Verdict(Verdict::Skip)),
            ("Leave it out", TaskReply::Verdict(Verdict::Skip)),
            ("leave it as it is", TaskReply::Verdict(Verdict::Watch)),
            ("deny", TaskReply::Verdict(Verdict::Deny)),
            ("Waiting helps nobody", advice("Waiting helps nobody")),
            ("use TEXT", advice("use TEXT")),
        ];
        for (text, expected) in rows {
            assert_eq!(task_reply(text), expected, "{text}");
        }
    }

    #[test]
    fn only_clear_words_decide_about_a_change_in_a_file_of_another_build() {
        for (text, expected) in [
            ("Wait until it is merged", ChangeReply::Wait),
            ("Go on with its commits", ChangeReply::Approve),
            ("yes", ChangeReply::Approve),
            ("Refuse the change", ChangeReply::Refuse),
            ("No, leave it", ChangeReply::Refuse),
            ("nobody knows", ChangeReply::Wait),
        ] {
            assert_eq!(change_reply(text), expected, "{text}");
        }
    }

    #[test]
    fn only_clear_words_set_a_build_in_motion() {
        for (text, expected) in [
            ("Try again", BuildReply::Resume),
            ("resume it", BuildReply::Resume),
            ("Stop", BuildReply::Stop),
            ("pause", BuildReply::Pause),
            ("Leave it", BuildReply::Leave),
            ("resumes are for people", BuildReply::Leave),
            ("hm", BuildReply::Leave),
        ] {
            assert_eq!(build_reply(text), expected, "{text}");
        }
    }
}
