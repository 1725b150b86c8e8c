//! Makes an answer of what a person gave: the one place where typed text becomes a choice, and the text that is no terminal's
//! stays words.

use ropewalk_schemas::ChoiceId;
use ropewalk_schemas::question::{Choice, ChoiceWords, Question};

/// What a person gave for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerInput<'a> {
    /// What is typed at a terminal: a choice by its id, its number or its whole label, or words.
    Typed(&'a str),
    /// What a program or a page sends for words: they name no choice, whatever they say.
    Words(&'a str),
    /// A choice that was picked, as by a button, with its words where it takes some.
    Picked(&'a ChoiceId, Option<&'a str>),
}

impl<'a> From<&'a str> for AnswerInput<'a> {
    fn from(text: &'a str) -> Self {
        Self::Typed(text)
    }
}

impl<'a> From<&'a String> for AnswerInput<'a> {
    fn from(text: &'a String) -> Self {
        Self::Typed(text)
    }
}

impl AnswerInput<'_> {
    /// Returns the text for people, as it was given.
    pub(super) fn text(self) -> String {
        match self {
            Self::Typed(text) | Self::Words(text) => text.trim().to_owned(),
            Self::Picked(id, None) => id.to_string(),
            Self::Picked(id, Some(words)) => format!("{id} {}", words.trim()),
        }
    }
}

/// An answer that a question takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    /// What was chosen; none where words alone are the answer.
    pub(super) choice: Option<ChoiceId>,
    /// The words, else the label of the choice.
    pub(super) text: String,
    /// Whether that says why it was chosen, of a choice that is an answer without words too.
    pub(super) says_why: bool,
}

/// Why something is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It says nothing.
    Empty,
    /// It is none of the choices, and words decide nothing here.
    NotAChoice,
    /// These are words, and only a choice decides here.
    WordsAlone,
    /// The choice means nothing without words.
    WordsMissing(ChoiceId),
    /// The choice takes no words, and some stand beside it.
    WordsBeside(ChoiceId),
}

/// Reads what was given as an answer to `question`. Words alone never decide what has consequences.
pub(super) fn accept(question: &Question, given: AnswerInput<'_>) -> Result<Reply, Refusal> {
    match given {
        AnswerInput::Typed(text) => typed(question, text.trim()),
        AnswerInput::Words(text) => worded(question, text.trim()),
        AnswerInput::Picked(id, words) => {
            let picked = question.choices.iter().find(|choice| choice.id == *id);
            chosen(
                picked.ok_or(Refusal::NotAChoice)?,
                words.unwrap_or_default(),
            )
        }
    }
}

/// Returns the reply that picks `id`, as a default does.
pub(super) fn picked(question: &Question, id: &ChoiceId) -> Reply {
    let label = question.choices.iter().find(|choice| choice.id == *id);
    Reply {
        choice: Some(id.clone()),
        text: label.map_or_else(|| id.to_string(), |choice| choice.label.clone()),
        says_why: false,
    }
}

fn typed(question: &Question, text: &str) -> Result<Reply, Refusal> {
    if text.is_empty() {
        return Err(Refusal::Empty);
    }
    if let Some(choice) = named(question, text) {
        return chosen(choice, "");
    }
    let choices = question.choices.iter();
    for choice in choices.filter(|choice| choice.words != ChoiceWords::None) {
        if let Some(words) = words_after(choice, text) {
            return chosen(choice, words);
        }
    }
    if is_number_of_none(question, text) {
        return Err(Refusal::NotAChoice);
    }
    worded(question, text).map_err(|_| Refusal::NotAChoice)
}

/// Reads words that name no choice.
fn worded(question: &Question, text: &str) -> Result<Reply, Refusal> {
    if text.is_empty() {
        return Err(Refusal::Empty);
    }
    if !takes_words(question) {
        return Err(Refusal::WordsAlone);
    }
    Ok(Reply {
        choice: None,
        text: text.to_owned(),
        says_why: false,
    })
}

/// Says whether words alone are an answer.
pub const fn takes_words(question: &Question) -> bool {
    (question.free_text || question.choices.is_empty()) && !question.consequential
}

/// Finds the choice that a text names as a whole.
fn named<'a>(question: &'a Question, text: &str) -> Option<&'a Choice> {
    let choices = &question.choices;
    let by_id = choices
        .iter()
        .find(|choice| choice.id.as_str().eq_ignore_ascii_case(text));
    let by_number = || {
        let position: usize = text.parse().ok()?;
        choices.get(position.checked_sub(1)?)
    };
    let by_label = || {
        let same = |choice: &&Choice| choice.label.to_lowercase() == text.to_lowercase();
        choices.iter().find(same)
    };
    by_id.or_else(by_number).or_else(by_label)
}

/// Says whether a text is the number of a choice that there is not: whoever writes it has miscounted. Where choices hold
/// numbers themselves, another number may be an answer.
fn is_number_of_none(question: &Question, text: &str) -> bool {
    let has_digit = |choice: &Choice| {
        choice
            .label
            .contains(|letter: char| letter.is_ascii_digit())
    };
    let choices = &question.choices;
    text.parse::<usize>().is_ok() && !choices.is_empty() && !choices.iter().any(has_digit)
}

/// Returns what follows the id of a choice: `guide use dates`, `guide: use dates`. Before a reason stands a colon, `skip: why`:
/// prose that begins with such an id is no answer.
fn words_after<'a>(choice: &Choice, text: &'a str) -> Option<&'a str> {
    let rest = text.strip_prefix(choice.id.as_str())?;
    let needs_colon = choice.words == ChoiceWords::Optional;
    let apart =
        rest.starts_with(|next: char| next == ':' || (next.is_whitespace() && !needs_colon));
    apart.then(|| rest.trim_start_matches(':').trim())
}

fn chosen(choice: &Choice, words: &str) -> Result<Reply, Refusal> {
    let words = words.trim();
    let has_words = !words.is_empty();
    match (choice.words, has_words) {
        (ChoiceWords::Required, false) => return Err(Refusal::WordsMissing(choice.id.clone())),
        (ChoiceWords::None, true) => return Err(Refusal::WordsBeside(choice.id.clone())),
        _ => {}
    }
    let text = if has_words { words } else { &choice.label };
    Ok(Reply {
        choice: Some(choice.id.clone()),
        text: text.to_owned(),
        says_why: has_words && choice.words == ChoiceWords::Optional,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use ropewalk_schemas::question::QuestionKind;

    use super::super::decide::tests::{id, question};
    use super::*;

    /// A question whose third choice takes words and whose fourth may have some, and the same where words alone are an answer.
    pub(in super::super) fn with_words() -> (Question, Question) {
        let mut plain = question(QuestionKind::Blocking);
        plain.choices.push(Choice {
            words: ChoiceWords::Required,
            ..Choice::new(id("other"), "Something else...")
        });
        plain.choices.push(Choice {
            words: ChoiceWords::Optional,
            ..Choice::new(id("skip"), "Skip it")
        });
        let free = Question {
            free_text: true,
            ..plain.clone()
        };
        (plain, free)
    }

    fn reply(choice: Option<&str>, text: &str) -> Reply {
        Reply {
            choice: choice.map(id),
            text: text.to_owned(),
            says_why: false,
        }
    }

    #[test]
    fn a_choice_with_optional_words_is_one_without_them_too_and_they_say_why() {
        let (plain, free) = with_words();
        let bare = || Ok(reply(Some("skip"), "Skip it"));
        let why = || {
            Ok(Reply {
                says_why: true,
                ..reply(Some("skip"), "nobody needs it")
            })
        };
        let skip = id("skip");
        for (given, expected) in [
            (AnswerInput::Typed("skip"), bare()),
            (AnswerInput::Typed("4"), bare()),
            (AnswerInput::Typed("skip it"), bare()),
            (AnswerInput::Typed("skip:"), bare()),
            (AnswerInput::Typed("skip: nobody needs it "), why()),
            (AnswerInput::Picked(&skip, None), bare()),
            (AnswerInput::Picked(&skip, Some(" ")), bare()),
            (AnswerInput::Picked(&skip, Some(" nobody needs it")), why()),
        ] {
            for question in [&plain, &free] {
                assert_eq!(accept(question, given), expected, "{given:?}");
            }
        }
        // Prose may begin with its id, and mean anything.
        let prose = AnswerInput::Typed("skip that one, or rather not");
        assert_eq!(accept(&plain, prose), Err(Refusal::NotAChoice));
    }

    #[test]
    fn an_answer_is_a_choice_by_id_number_or_label_or_words_where_those_are_taken() {
        let (plain, free) = with_words();
        let cases = [
            (&plain, "yes", Ok(reply(Some("yes"), "Yes, go on"))),
            (&plain, "YES", Ok(reply(Some("yes"), "Yes, go on"))),
            (&plain, "2", Ok(reply(Some("no"), "No, wait"))),
            (&plain, "no, WAIT", Ok(reply(Some("no"), "No, wait"))),
            (&plain, "5", Err(Refusal::NotAChoice)),
            (&plain, "maybe", Err(Refusal::NotAChoice)),
            (&plain, "yes, but not yet", Err(Refusal::NotAChoice)),
            (&plain, "  ", Err(Refusal::Empty)),
            (&plain, "other", Err(Refusal::WordsMissing(id("other")))),
            (&plain, "other: ", Err(Refusal::WordsMissing(id("other")))),
            (&plain, "other a boat", Ok(reply(Some("other"), "a boat"))),
            (&plain, "other: a boat", Ok(reply(Some("other"), "a boat"))),
            (&plain, "others", Err(Refusal::NotAChoice)),
            (&free, "maybe", Ok(reply(None, "maybe"))),
            (&free, "7", Err(Refusal::NotAChoice)),
            (&free, "7 of them", Ok(reply(None, "7 of them"))),
            (&free, "1", Ok(reply(Some("yes"), "Yes, go on"))),
        ];
        for (question, text, expected) in cases {
            assert_eq!(accept(question, text.into()), expected, "{text}");
        }
        assert_eq!(
            accept(&plain, AnswerInput::Picked(&id("other"), Some("a boat"))),
            Ok(reply(Some("other"), "a boat"))
        );
        assert_eq!(
            accept(&free, AnswerInput::Picked(&id("yes"), Some("a boat"))),
            Err(Refusal::WordsBeside(id("yes")))
        );
        assert_eq!(
            accept(&plain, AnswerInput::Picked(&id("gone"), None)),
            Err(Refusal::NotAChoice)
        );
    }

    #[test]
    fn words_of_a_program_stay_words_though_they_name_a_choice() {
        let (plain, free) = with_words();
        for words in ["yes", "1", "7", "Yes, go on", "other a boat", "a boat"] {
            let given = AnswerInput::Words(words);
            assert_eq!(accept(&free, given), Ok(reply(None, words)), "{words}");
            assert_eq!(accept(&plain, given), Err(Refusal::WordsAlone), "{words}");
        }
        for question in [&plain, &free] {
            assert_eq!(
                accept(question, AnswerInput::Words(" ")),
                Err(Refusal::Empty)
            );
        }
    }

    #[test]
    fn words_never_decide_what_has_consequences() {
        let binding = Question {
            consequential: true,
            free_text: true,
            ..question(QuestionKind::Blocking)
        };
        for prose in ["ok, but not yet", "yes please", "approve", "go"] {
            assert_eq!(
                accept(&binding, prose.into()),
                Err(Refusal::NotAChoice),
                "{prose}"
            );
        }
        // What a terminal reads as a choice is prose of a program.
        for prose in ["yes", "1", "Yes, go on", "approve"] {
            assert_eq!(
                accept(&binding, AnswerInput::Words(prose)),
                Err(Refusal::WordsAlone),
                "{prose}"
            );
        }
        let without_choices = Question {
            choices: Vec::new(),
            ..binding
        };
        assert_eq!(
            accept(&without_choices, "yes".into()),
            Err(Refusal::NotAChoice)
        );
    }
}
