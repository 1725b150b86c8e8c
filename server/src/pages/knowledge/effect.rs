//! Draws what came of each use of a lesson, as a row of squares that is made here.

use ropewalk_schemas::knowledge::{Injection, InjectionOutcome};

/// The side of a square, and from one to the next.
const SIDE: usize = 12;
const STEP: usize = 15;
/// The most squares: the newest uses.
const MOST: usize = 40;

/// Returns the class of the colour of an outcome.
const fn tone(outcome: InjectionOutcome) -> &'static str {
    match outcome {
        InjectionOutcome::Helped => "good",
        InjectionOutcome::InVain => "bad",
        InjectionOutcome::HeldOut => "busy",
        InjectionOutcome::Open => "waits",
        InjectionOutcome::ShowsNothing => "calm",
    }
}

/// Says what a use came to.
pub(super) fn in_words(usage: &Injection) -> &'static str {
    InjectionOutcome::of(usage).in_words()
}

/// A use, drawn.
pub(super) struct Square {
    pub(super) x: usize,
    pub(super) tone: &'static str,
    pub(super) label: String,
}

/// A picture of the uses of a lesson.
pub(super) struct Effect {
    pub(super) width: usize,
    pub(super) squares: Vec<Square>,
    /// The same in words, with the counts of what is drawn.
    pub(super) label: String,
}

impl Effect {
    pub(super) const SIDE: usize = SIDE;

    /// Draws uses, the earliest first; nothing where there is none.
    pub(super) fn of(uses: &[Injection]) -> Option<Self> {
        let newest = &uses[uses.len().saturating_sub(MOST)..];
        if newest.is_empty() {
            return None;
        }
        let squares = newest.iter().enumerate().map(|(number, usage)| Square {
            x: number * STEP,
            tone: tone(InjectionOutcome::of(usage)),
            label: format!("{}: {}", usage.task, in_words(usage)),
        });
        let counts = InjectionOutcome::ALL.into_iter().filter_map(|outcome| {
            let many = newest
                .iter()
                .filter(|one| InjectionOutcome::of(one) == outcome);
            let many = many.count();
            (many > 0).then(|| format!("{many} {}", outcome.in_words()))
        });
        let last = if uses.len() > MOST {
            "the last of "
        } else {
            ""
        };
        Some(Self {
            width: newest.len() * STEP,
            squares: squares.collect(),
            label: format!(
                "{last}{} use{}: {}",
                uses.len(),
                if uses.len() == 1 { "" } else { "s" },
                counts.collect::<Vec<_>>().join("; ")
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn usage(held_out: bool, helped: Option<bool>, built: bool) -> Injection {
        let id = "00000000-0000-7000-8000-000000000001";
        serde_json::from_value(json!({
            "item": id, "build": built.then_some(id), "spec": id, "task": "T-001", "held_out": held_out,
            "helped": helped, "at": "2026-03-01T08:00:00Z",
        }))
        .unwrap()
    }

    #[test]
    fn each_use_is_a_square_of_what_came_of_it_and_the_words_count_them() {
        let uses = [
            usage(false, Some(true), true),
            usage(false, Some(false), true),
            usage(true, None, true),
            usage(false, None, true),
            usage(false, None, false),
            usage(false, Some(true), true),
        ];
        let drawn = Effect::of(&uses).unwrap();
        let tones: Vec<&str> = drawn.squares.iter().map(|square| square.tone).collect();
        assert_eq!(tones, ["good", "bad", "busy", "calm", "waits", "good"]);
        assert_eq!(
            drawn.label,
            "6 uses: 2 passed with it, where one had failed without; 1 its mistake was made all the same; \
             1 left out to measure; 1 shows nothing; 1 not settled"
        );
        assert!(Effect::of(&[]).is_none());
        let many = vec![usage(false, None, true); MOST + 2];
        let drawn = Effect::of(&many).unwrap();
        assert_eq!((drawn.squares.len(), drawn.width), (MOST, MOST * STEP));
        assert_eq!(drawn.label, "the last of 42 uses: 40 shows nothing");
    }
}
