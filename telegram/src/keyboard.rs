//! Makes buttons of choices, and reads what comes back when one is pressed.

use ropewalk_schemas::question::Choice;

use crate::api::Button;
use crate::styled;

/// How many letters a nonce has: short enough for what a button carries, long enough that nobody guesses it.
pub(crate) const NONCE: usize = 32;

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

    fn written(&self) -> String {
        format!("{}:{}", self.nonce, self.place)
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
}
