//! Says which answers a question takes, as a JSON schema: what a form is made of that knows nothing of this question.

use ropewalk_schemas::question::{ANSWER_BYTES, Choice, ChoiceWords, Question};
use serde_json::{Value, json};

use super::reply;

/// Returns the schema of the answers that `question` takes from a program: `choice` is the id of a choice, `text` are words,
/// beside a choice that takes some or alone.
pub fn form(question: &Question) -> Value {
    let mut ways: Vec<Value> = question.choices.iter().map(picked).collect();
    if reply::takes_words(question) {
        ways.push(json!({
            "title": "Words",
            "properties": { "choice": { "type": "null" }, "text": words() },
            "required": ["text"],
        }));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": question.trigger,
        "description": question.text,
        "type": "object",
        "properties": { "choice": { "type": ["string", "null"] }, "text": { "type": ["string", "null"] } },
        "additionalProperties": false,
        "anyOf": ways,
    })
}

fn picked(choice: &Choice) -> Value {
    let mut way = json!({
        "title": choice.label,
        "properties": { "choice": { "const": choice.id } },
        "required": ["choice"],
    });
    if let Some(meaning) = &choice.description {
        way["description"] = json!(meaning);
    }
    way["properties"]["text"] = match choice.words {
        // Words beside a choice that takes none would be lost.
        ChoiceWords::None => json!({ "type": ["string", "null"], "pattern": "^\\s*$" }),
        ChoiceWords::Optional => json!({ "type": ["string", "null"], "maxLength": ANSWER_BYTES }),
        ChoiceWords::Required => words(),
    };
    if choice.words == ChoiceWords::Required {
        way["required"] = json!(["choice", "text"]);
    }
    way
}

/// Words that say something. A letter has a byte or more, so that no longer ones are taken; of others than those of ASCII it may
/// be fewer.
fn words() -> Value {
    json!({ "type": "string", "pattern": "\\S", "maxLength": ANSWER_BYTES })
}

#[cfg(test)]
mod tests {
    use super::super::decide::tests::id;
    use super::super::reply::tests::with_words;
    use super::super::reply::{AnswerInput, accept};
    use super::*;

    #[test]
    fn what_a_form_takes_is_what_is_taken_for_an_answer() {
        let (plain, free) = with_words();
        let bound = Question {
            consequential: true,
            ..free.clone()
        };
        let bare = Question {
            choices: Vec::new(),
            ..plain.clone()
        };
        let choices = ["yes", "no", "other", "skip", "gone"].map(Some);
        let choices: Vec<Option<&str>> = [None].into_iter().chain(choices).collect();
        // Some of them name a choice, which for a program are words like any others.
        let texts = [
            None,
            Some(""),
            Some("  "),
            Some("a boat"),
            Some("yes"),
            Some("1"),
            Some("7"),
            Some("No, wait"),
        ];
        for question in [&plain, &free, &bound, &bare] {
            let form = jsonschema::validator_for(&form(question)).unwrap();
            for (choice, text) in choices
                .iter()
                .flat_map(|choice| texts.iter().map(move |text| (*choice, *text)))
            {
                let picked = choice.map(id);
                let given = match &picked {
                    Some(picked) => AnswerInput::Picked(picked, text),
                    None => AnswerInput::Words(text.unwrap_or_default()),
                };
                let answer = json!({ "choice": choice, "text": text });
                assert_eq!(
                    form.is_valid(&answer),
                    accept(question, given).is_ok(),
                    "{answer} for {question:?}"
                );
            }
            assert!(!form.is_valid(&json!({ "choice": "yes", "more": 1 })));
        }
    }
}
