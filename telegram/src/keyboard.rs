//! Makes buttons of choices, and reads what comes back when one is pressed.

use chrono::TimeDelta;
use ropewalk_schemas::question::Choice;
use ropewalk_schemas::{ContentHash, SpecId};

use crate::api::Button;
use crate::styled;

/// How many letters a nonce has: short enough for what a button carries, long enough that nobody guesses it.
pub(crate) const NONCE: usize = 32;

/// How long what was shown may be decided by its buttons.
pub(crate) const OFFERED: TimeDelta = TimeDelta::days(14);

/// What stands before a hash in the place of a nonce, of which none begins so.
const CONCEALED: char = '#';
/// What stands before a command in the place of a nonce.
const TYPED: char = '/';
/// What stands before a specification in the place of a nonce.
const CHANGED: &str = "change ";
/// How many bytes a button carries at most.
const MOST_BYTES: usize = 64;

/// What a button says by which somebody asks for another revision.
const CHANGE: &str = "Change this...";

/// What a button says about itself: a nonce that nobody guesses, and the place of its choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark<'a> {
    pub(crate) nonce: &'a str,
    pub(crate) place: usize,
}

impl<'a> Mark<'a> {
    /// Reads what came back.
    pub(crate) fn read(data: &'a str) -> Option<Self> {
        let (nonce, place) = data.split_once(':')?;
        let place = place.parse().ok()?;
        Some(Self { nonce, place })
    }

    /// Returns the same with `nonce`, where it is that of which a hash stands here.
    pub(crate) fn revealed(&self, nonce: &str) -> Option<String> {
        let (is_it, place) = (self.nonce == hidden(nonce), self.place);
        is_it.then(|| Mark { nonce, place }.written())
    }

    /// Returns the command that is typed by pressing, where it is the button of one. It does what typing it would, for who
    /// presses it, so that nobody has to guess anything.
    pub(crate) fn command(&self) -> Option<&'a str> {
        self.nonce.starts_with(TYPED).then_some(self.nonce)
    }

    /// Returns the specification of which another revision is wished by pressing.
    pub(crate) fn changes(&self) -> Option<SpecId> {
        self.nonce.strip_prefix(CHANGED)?.parse().ok()
    }

    /// Returns whether a hash stands in the place of its nonce.
    pub(crate) fn is_concealed(&self) -> bool {
        self.nonce.starts_with(CONCEALED)
    }

    fn written(&self) -> String {
        format!("{}:{}", self.nonce, self.place)
    }
}

/// Returns what a button says about itself in words by which nobody presses it: a hash stands in the place of its nonce. What
/// is no secret stays, such as the id of a message.
pub(crate) fn concealed(data: &str) -> String {
    match Mark::read(data) {
        Some(mark @ Mark { nonce, place }) if nonce.len() == NONCE && mark.command().is_none() => {
            let hash = hidden(nonce);
            let nonce = hash.as_str();
            Mark { nonce, place }.written()
        }
        Some(mark) => mark.written(),
        // It means nothing, whatever it is.
        None => String::new(),
    }
}

fn hidden(nonce: &str) -> String {
    format!("{CONCEALED}{}", ContentHash::of(nonce.as_bytes()))
}

/// Returns a button that types a command; none where that is longer than a button carries.
pub(crate) fn typing(label: String, command: &str) -> Option<Button> {
    let (nonce, place) = (command, 0);
    let data = Mark { nonce, place }.written();
    (data.len() <= MOST_BYTES).then_some(Button { label, data })
}

/// Returns a button by which another revision of a specification is wished.
pub(crate) fn changing(spec: SpecId) -> Button {
    let (nonce, place) = (format!("{CHANGED}{spec}"), 0);
    let nonce = nonce.as_str();
    Button {
        label: CHANGE.to_owned(),
        data: Mark { nonce, place }.written(),
    }
}

/// Returns a button for each label.
pub(crate) fn labelled(nonce: &str, labels: &[&str]) -> Vec<Button> {
    let button = |(place, label): (usize, &&str)| Button {
        label: (*label).to_owned(),
        data: Mark { nonce, place }.written(),
    };
    labels.iter().enumerate().map(button).collect()
}

/// Returns a button for each choice that somebody `may` take; what they may not is left to the text.
pub(crate) fn buttons(
    nonce: &str,
    choices: &[Choice],
    may: impl Fn(&Choice) -> bool,
) -> Vec<Button> {
    let button = |(place, choice): (usize, &Choice)| Button {
        label: if choice.recommended {
            format!("✓ {}", styled::line(&choice.label))
        } else {
            styled::line(&choice.label).into_owned()
        },
        data: Mark { nonce, place }.written(),
    };
    // A button bears the place among all, whatever is left out.
    let places = choices.iter().enumerate();
    let places = places.filter(|(_, choice)| may(choice));
    places.map(button).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ropewalk_schemas::ChoiceId;

    #[test]
    fn a_button_carries_no_more_than_telegram_takes_and_is_read_back() {
        let nonce = "f".repeat(32);
        let choices = [
            Choice::new(ChoiceId::parse("yes").unwrap(), "Yes"),
            Choice {
                recommended: true,
                ..Choice::new(ChoiceId::parse("no").unwrap(), "No")
            },
        ];
        let buttons = buttons(&nonce, &choices, |_| true);
        assert_eq!(buttons[1].label, "✓ No");
        assert!(buttons.iter().all(|button| button.data.len() <= 64));
        let mark = Mark::read(&buttons[1].data).unwrap();
        assert_eq!((mark.nonce, mark.place), (nonce.as_str(), 1));
        for altered in ["", "x", "x:", "x:-1", "x:1:2", ":a"] {
            assert_eq!(Mark::read(altered), None, "{altered}");
        }
    }

    #[test]
    fn what_is_kept_of_a_button_tells_its_nonce_to_who_knows_it_alone() {
        let (nonce, other) = ("f".repeat(NONCE), "e".repeat(NONCE));
        let data = format!("{nonce}:1");
        let kept = concealed(&data);
        assert!(!kept.contains(&nonce), "{kept}");
        let mark = Mark::read(&kept).unwrap();
        assert!(mark.is_concealed() && mark.place == 1, "{kept}");
        assert_eq!(mark.revealed(&nonce), Some(data.clone()));
        assert_eq!(mark.revealed(&other), None);
        // Whoever presses by the hash presses nothing.
        assert_eq!(mark.revealed(mark.nonce), None);
        let message = "01999999-0000-7000-8000-000000000001:0";
        for (data, expected) in [(message, message), ("x", ""), ("7:0", "7:0")] {
            assert_eq!(concealed(data), expected, "{data}");
        }
        assert!(!Mark::read(message).unwrap().is_concealed());
    }

    #[test]
    fn a_button_types_a_command_or_names_what_is_changed_and_is_kept_as_it_is() {
        let spec: SpecId = "01999999-0000-7000-8000-000000000001".parse().unwrap();
        let slug = "a".repeat(NONCE - "/idea ".len());
        let command = format!("/idea {slug}");
        let typed = typing("Go on".to_owned(), &command).unwrap();
        let change = changing(spec);
        for (button, types, changes) in [
            (&typed, Some(command.as_str()), None),
            (&change, None, Some(spec)),
        ] {
            let kept = concealed(&button.data);
            assert_eq!(kept, button.data);
            assert!(kept.len() <= MOST_BYTES, "{kept}");
            let mark = Mark::read(&kept).unwrap();
            assert_eq!((mark.command(), mark.changes()), (types, changes));
        }
        let nonce = "f".repeat(NONCE);
        let of_nobody = labelled(&nonce, &["Yes"]).remove(0);
        let mark = Mark::read(&of_nobody.data).unwrap();
        assert_eq!((mark.command(), mark.changes()), (None, None));
        assert_eq!(
            typing(String::new(), &format!("/idea {}", "a".repeat(60))),
            None
        );
    }
}
