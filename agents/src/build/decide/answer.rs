//! Reads what a person answered to a question of a build.

/// The choice that only a person can carry out.
pub const MANUAL: &str = "I'll fix this manually";

/// What a person said about a task that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskReply {
    /// Leave it out.
    Skip,
    /// It stays failed; the person mends it.
    Manual,
    /// Another round, with this in the prompt.
    Guidance(String),
}

/// Reads an answer to `task_failed_repeatedly`: a label of its choices, or free text.
pub fn task_reply(text: &str) -> TaskReply {
    let plain = plain(text);
    if plain == "skip" || plain.starts_with("skip this") || plain.starts_with("skip it") {
        TaskReply::Skip
    } else if plain.contains("fix this manually") || plain.contains("fix it manually") {
        TaskReply::Manual
    } else if plain.starts_with("rethink the approach") {
        TaskReply::Guidance(
            "The approach so far does not work. Think it through anew and take a different one."
                .to_owned(),
        )
    } else {
        let advice = text.trim();
        let advice = advice.strip_prefix("Try this...").unwrap_or(advice);
        TaskReply::Guidance(
            advice
                .trim_start_matches([':', ' ', '\u{2026}'])
                .trim()
                .to_owned(),
        )
    }
}

/// What a person said about work that nobody may accept alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// The change is accepted as it is.
    Given,
    /// The change is refused.
    Refused,
}

/// Reads the answer to a question for consent; only a clear yes is one.
pub fn consent(text: &str) -> Consent {
    let plain = plain(text);
    let words = ["yes", "accept", "allow", "approve", "ok"];
    if words.iter().any(|word| {
        plain
            .strip_prefix(word)
            .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    }) {
        Consent::Given
    } else {
        Consent::Refused
    }
}

/// What a person said to something that they were only told, and that goes on by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// All stays as it is.
    GoOn,
    /// The task is to be done in a simpler way.
    Simplify,
    /// The build pauses.
    Pause,
    /// The task is left out.
    Skip,
    /// They want to see more.
    Show,
    /// What landed is to be changed.
    Revise,
}

impl Wish {
    /// Reads the answer to `milestone_reached`, `task_complexity_exceeded`, `coverage_below_threshold` or
    /// `validation_passed`; what is no clear wish changes nothing.
    pub fn of(text: &str) -> Self {
        let plain = plain(text);
        [
            ("simplify", Self::Simplify),
            ("pause", Self::Pause),
            ("take a break", Self::Pause),
            ("skip", Self::Skip),
            ("show me", Self::Show),
            ("yes, generate more tests", Self::Revise),
            ("let's discuss", Self::Revise),
            ("run one more check", Self::Revise),
        ]
        .into_iter()
        .find_map(|(start, wish)| plain.starts_with(start).then_some(wish))
        .unwrap_or(Self::GoOn)
    }
}

/// Adds what was told to the reason of a build.
pub fn with_addition(reason: Option<&str>, told: &str) -> String {
    match reason {
        Some(reason) if reason.contains(told) => reason.to_owned(),
        Some(reason) => format!("{reason}; {told}"),
        None => told.to_owned(),
    }
}

/// What a person chose for the branch of a build that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchFate {
    /// It is merged into the branch that the build began from.
    Merge,
    /// The person opens a pull request.
    PullRequest,
    /// It is left alone.
    Leave,
}

impl BranchFate {
    /// Reads the answer to `build_finished` or `landing_refused`; none when it is no choice.
    pub fn of(text: &str) -> Option<Self> {
        let plain = plain(text);
        [
            ("merge", Self::Merge),
            ("try again", Self::Merge),
            ("open a pull request", Self::PullRequest),
            ("leave", Self::Leave),
        ]
        .into_iter()
        .find_map(|(start, fate)| plain.starts_with(start).then_some(fate))
    }

    /// Says what was chosen and how the person carries it out; nothing when there is nothing to do.
    pub fn told(self, branch: &str) -> Option<String> {
        match self {
            Self::PullRequest => Some(format!(
                "you chose a pull request: `git push origin {branch}`, then open it where the repository is hosted"
            )),
            Self::Merge | Self::Leave => None,
        }
    }
}

fn plain(text: &str) -> String {
    text.trim().replace('\u{2019}', "'").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_say_on_the_way_is_heard_in_the_words_of_the_choices() {
        let rows = [
            ("Keep going!", Wish::GoOn),
            ("Show me what's done so far", Wish::Show),
            ("Take a break, save progress", Wish::Pause),
            ("Continue, it's worth it", Wish::GoOn),
            ("Simplify the approach", Wish::Simplify),
            ("Pause and let's discuss", Wish::Pause),
            ("Skip for now", Wish::Skip),
            ("Yes, generate more tests", Wish::Revise),
            ("Coverage is acceptable", Wish::GoOn),
            ("Let's discuss which areas matter", Wish::Revise),
            ("Approved! Deploy it", Wish::GoOn),
            ("Run one more check on...", Wish::Revise),
            ("Show me the details first", Wish::Show),
            ("hm", Wish::GoOn),
        ];
        for (text, expected) in rows {
            assert_eq!(Wish::of(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_told_is_told_once() {
        assert_eq!(with_addition(None, "new"), "new");
        assert_eq!(with_addition(Some("old"), "new"), "old; new");
        assert_eq!(with_addition(Some("old; new"), "new"), "old; new");
    }

    #[test]
    fn every_choice_and_free_text_is_understood() {
        let guidance = |text: &str| TaskReply::Guidance(text.to_owned());
        let rows = [
            ("Skip this task", TaskReply::Skip),
            ("skip", TaskReply::Skip),
            (MANUAL, TaskReply::Manual),
            ("I\u{2019}ll fix this manually", TaskReply::Manual),
            ("use TEXT for dates", guidance("use TEXT for dates")),
            ("Try this...: use TEXT", guidance("use TEXT")),
            (
                "Skipping the index helps",
                guidance("Skipping the index helps"),
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(task_reply(text), expected, "{text}");
        }
        let rethink = task_reply("Rethink the approach with me");
        assert!(matches!(rethink, TaskReply::Guidance(text) if text.contains("different")));
    }

    #[test]
    fn a_choice_that_a_person_carries_out_names_the_command() {
        let told = |text: &str| BranchFate::of(text).and_then(|fate| fate.told("build/habits"));
        for text in ["Merge it", "Try again"] {
            assert_eq!(BranchFate::of(text), Some(BranchFate::Merge), "{text}");
        }
        let request = told("Open a pull request").unwrap();
        assert!(
            request.contains("git push origin build/habits"),
            "{request}"
        );
        assert_eq!(BranchFate::of("Leave it"), Some(BranchFate::Leave));
        assert_eq!((told("Leave it"), BranchFate::of("later")), (None, None));
    }

    #[test]
    fn only_a_clear_yes_is_consent() {
        for (text, expected) in [
            ("Yes, accept the change", Consent::Given),
            ("accept", Consent::Given),
            ("yesterday it worked", Consent::Refused),
            ("No", Consent::Refused),
            ("whatever", Consent::Refused),
        ] {
            assert_eq!(consent(text), expected, "{text}");
        }
    }
}
