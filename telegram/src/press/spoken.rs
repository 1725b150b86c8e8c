//! Finds the open question that plain words answer, which are no reply to it: those that name a choice of it, and those that
//! come while one that takes words is what their writer was asked last.

use chrono::{DateTime, Utc};
use ropewalk_desk::phones;
use ropewalk_orchestrator::questions::{self, AnswerInput, takes_words};
use ropewalk_schemas::idea::{Author, Idea, Message};
use ropewalk_schemas::notice::{Notice, NoticeState};
use ropewalk_schemas::question::{About, Choice, ChoiceWords, Question, QuestionState};
use ropewalk_schemas::{QuestionId, Slug};
use ropewalk_store::{Query, ReadError};

use crate::port;
use crate::surface::{CHANNEL, Surface, Whom};

/// Why words decide nothing that has consequences.
pub(super) const BINDS: &str =
    "This has consequences, so that words decide nothing: press a button.";
/// Why words decide nothing where they could answer several questions.
const SEVERAL: &str = "More than one question could be meant by that, so that it decides nothing: press a button, or reply to the \
                       message that asks. /questions puts them again.";

/// What plain words come to where they may answer a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SpokenAnswer {
    /// They name a choice of this one.
    Choice(QuestionId),
    /// They are words for this one.
    Words(QuestionId),
    /// They had answered one already, when they were taken up before.
    Taken(String),
    /// They decide nothing.
    Nothing(&'static str),
}

/// A question that is open, and when it was last put to somebody.
struct AskedQuestion {
    question: Question,
    at: DateTime<Utc>,
}

/// The conversation that somebody is in.
#[derive(Debug, Clone, Copy)]
struct Conversation<'a> {
    /// The idea that is talked about.
    idea: Option<&'a Slug>,
    /// When its model last said something.
    said_at: Option<DateTime<Utc>>,
}

/// Finds what the words of somebody answer; nothing where they are said in a conversation, or begin one.
pub(super) async fn find(
    surface: &Surface,
    whom: &Whom,
    text: &str,
) -> Result<Option<SpokenAnswer>, ReadError> {
    if let Some(taken) = taken_already(surface, whom, text).await? {
        return Ok(Some(SpokenAnswer::Taken(taken)));
    }
    let asked = asked(surface, whom).await?;
    if asked.is_empty() {
        return Ok(None);
    }
    let phone = phones::of(&surface.services.store, &whom.person.name).await?;
    let talk = Conversation {
        idea: phone.idea.as_ref(),
        said_at: said_at(surface, phone.idea.as_ref()).await?,
    };
    Ok(meant(&asked, talk, text))
}

/// Decides what words answer, of the questions that their writer was `asked`, the last one at the end.
fn meant(asked: &[AskedQuestion], talk: Conversation<'_>, text: &str) -> Option<SpokenAnswer> {
    let last = asked.last()?;
    let is_here = |one: &AskedQuestion| one.question.idea.as_ref() == talk.idea;
    let is_of_talk = matches!(last.question.about, About::Session { .. });
    if is_of_talk && is_here(last) {
        // A conversation takes the answer to its own question.
        return None;
    }
    // Whoever talks on may say a number, or the short id of a choice, and mean no question.
    let is_turn = (talk.idea.is_none() || is_here(last))
        && talk.said_at.is_none_or(|said_at| said_at <= last.at);
    let is_near = |one: &AskedQuestion| is_turn && one.question.idea == last.question.idea;
    let is_named = |one: &&AskedQuestion| names(one, text) && (is_near(one) || is_label(one, text));
    let named: Vec<&AskedQuestion> = asked.iter().filter(is_named).collect();
    let here: Vec<&AskedQuestion> = named.iter().copied().filter(|one| is_here(one)).collect();
    let named = if here.is_empty() { named } else { here };
    match named.as_slice() {
        [] => {}
        [one] if one.question.consequential => {
            // A number may be meant for the conversation.
            let is_number = text.trim().parse::<u32>().is_ok();
            return (!is_number).then_some(SpokenAnswer::Nothing(BINDS));
        }
        [one] if !asked.iter().any(|other| may_take(other, one)) => {
            return Some(SpokenAnswer::Choice(one.question.id));
        }
        _ => return Some(SpokenAnswer::Nothing(SEVERAL)),
    }
    let is_meant = !is_of_talk && takes_words(&last.question) && is_turn;
    is_meant.then_some(SpokenAnswer::Words(last.question.id))
}

/// Says whether words are the id, the number or the label of a choice that needs none beside.
fn names(asked: &AskedQuestion, text: &str) -> bool {
    let question = &asked.question;
    let chosen = questions::chosen(question, AnswerInput::Typed(text));
    chosen.is_some_and(|chosen| bare(question).any(|choice| choice.id == chosen))
}

/// Says whether words are the whole label of a choice that needs none beside.
fn is_label(asked: &AskedQuestion, text: &str) -> bool {
    let said = text.trim().to_lowercase();
    bare(&asked.question).any(|choice| choice.label.to_lowercase() == said)
}

/// Lists the choices that need no words beside.
fn bare(question: &Question) -> impl Iterator<Item = &Choice> {
    let choices = question.choices.iter();
    choices.filter(|choice| choice.words != ChoiceWords::Required)
}

/// Says whether another question of the same idea takes any words, so that those that name a choice of `one` may be for it.
fn may_take(other: &AskedQuestion, one: &AskedQuestion) -> bool {
    let (other, one) = (&other.question, &one.question);
    other.id != one.id && other.idea == one.idea && takes_words(other)
}

/// Lists the open questions that arrived on the phone of somebody, the one that was put last at the end.
async fn asked(surface: &Surface, whom: &Whom) -> Result<Vec<AskedQuestion>, ReadError> {
    let store = &surface.services.store;
    let open = Query::new().equal("state", QuestionState::Pending.as_str());
    let mut asked = Vec::new();
    for question in store.list::<Question>(open).await? {
        let told = Query::new()
            .equal("question", question.id)
            .equal("port", port::NAME);
        let told = store.list::<Notice>(told).await?;
        let theirs = told
            .iter()
            .filter(|notice| notice.receiver == whom.person.name.as_str());
        let at = theirs.filter_map(|notice| came_at(notice)).max();
        asked.extend(at.map(|at| AskedQuestion {
            question: question.into_inner(),
            at,
        }));
    }
    asked.sort_by_key(|asked| asked.at);
    Ok(asked)
}

/// Returns when a notice was last seen on a phone: whoever answers at once may be faster than it is written down.
fn came_at(notice: &Notice) -> Option<DateTime<Utc>> {
    let comes = notice.state == NoticeState::Sending;
    notice.sent_at.or(comes.then_some(notice.created_at))
}

/// Returns when the model last said something in the conversation about an idea.
async fn said_at(
    surface: &Surface,
    idea: Option<&Slug>,
) -> Result<Option<DateTime<Utc>>, ReadError> {
    let store = &surface.services.store;
    let idea = match idea {
        Some(slug) => store.get::<Idea>(slug.as_str()).await?,
        None => None,
    };
    let Some(idea) = idea else {
        return Ok(None);
    };
    let said = Query::new().equal("session", idea.session);
    let said = store.list::<Message>(said).await?;
    let by_model = said
        .iter()
        .filter(|message| message.author == Author::Agent);
    Ok(by_model.map(|message| message.at).max())
}

/// Returns what an earlier try had answered with the same words: whoever answers a question by a phone in between is nobody else,
/// since what one person does is done in its order.
async fn taken_already(
    surface: &Surface,
    whom: &Whom,
    text: &str,
) -> Result<Option<String>, ReadError> {
    let Some(begun) = whom.begun_before else {
        return Ok(None);
    };
    let answered = Query::new().equal("state", QuestionState::Answered.as_str());
    let answered = surface.services.store.list::<Question>(answered).await?;
    let mut answers = answered.iter().filter_map(|question| {
        let answer = question.answer.as_ref()?;
        let is_theirs = answer.by == whom.person.name.as_str() && answer.channel == CHANNEL;
        let chosen = questions::chosen(question, AnswerInput::Typed(text));
        let is_same = answer.text == text.trim() || (chosen.is_some() && chosen == answer.choice);
        let is_it = is_theirs && is_same && answer.at >= begun;
        is_it.then(|| question.answer_in_words(answer))
    });
    Ok(answers.next())
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use serde_json::{Value, json};

    use super::*;

    const ID: &str = "00000000-0000-7000-8000-000000000001";

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minute)
    }

    /// A question about the plan of an idea that was put in this minute, with what differs of it.
    fn put(minute: i64, number: u32, change: &Value) -> AskedQuestion {
        let id = format!("00000000-0000-7000-8000-{number:012}");
        let choice = |id: &str, label: &str, with_words: bool| json!({ "id": id, "label": label, "recommended": false, "with_words": with_words });
        let mut question = json!({
            "id": id, "kind": "blocking", "trigger": "missing_context", "agent": "specification", "text": "What?",
            "context": "", "free_text": true, "consequential": false, "idea": "walks", "state": "pending",
            "choices": [choice("line", "print a line", false), choice("other", "Something else...", true)],
            "about": { "kind": "specification", "spec": ID }, "correlation_id": ID, "asked_at": at(minute),
        });
        if let (Value::Object(question), Value::Object(change)) = (&mut question, change) {
            question.extend(change.clone());
        }
        AskedQuestion {
            question: serde_json::from_value(question).unwrap(),
            at: at(minute),
        }
    }

    fn id(number: u32) -> QuestionId {
        format!("00000000-0000-7000-8000-{number:012}")
            .parse()
            .unwrap()
    }

    #[test]
    fn words_answer_the_one_question_that_they_name_a_choice_of_or_that_was_asked_last() {
        let walks = Slug::parse("walks").unwrap();
        let plain = || put(1, 1, &json!({}));
        let closed = || put(1, 1, &json!({ "free_text": false }));
        let binding = || put(1, 1, &json!({ "free_text": false, "consequential": true }));
        let second = || put(2, 2, &json!({}));
        let west = || {
            let choice = json!({ "id": "west", "label": "go west", "recommended": false, "with_words": false });
            put(2, 4, &json!({ "free_text": false, "choices": [choice] }))
        };
        let of_rivers = || put(2, 2, &json!({ "idea": "rivers" }));
        let of_talk = || {
            put(
                2,
                2,
                &json!({ "about": { "kind": "session", "session": ID } }),
            )
        };
        let nothing = Some(SpokenAnswer::Nothing(SEVERAL));
        let binds = Some(SpokenAnswer::Nothing(BINDS));
        let choice = |number| Some(SpokenAnswer::Choice(id(number)));
        let words = |number| Some(SpokenAnswer::Words(id(number)));
        for (asked, said, text, expected) in [
            (vec![], None, "print a line", None),
            (vec![plain()], None, "print a line", choice(1)),
            (vec![plain()], None, "Print A Line ", choice(1)),
            (vec![plain()], None, "line", choice(1)),
            (vec![plain()], None, "1", choice(1)),
            // A label counts also where the model went on talking.
            (vec![plain()], Some(5), "print a line", choice(1)),
            // A number and an id are for the conversation there.
            (vec![plain()], Some(5), "1", None),
            (vec![plain()], Some(5), "line", None),
            (vec![plain()], None, "other people walk", words(1)),
            (vec![plain()], Some(1), "by boat", words(1)),
            (vec![plain()], Some(2), "by boat", None),
            (vec![closed()], None, "by boat", None),
            (vec![binding()], None, "print a line", binds),
            (vec![binding()], None, "1", None),
            (vec![binding()], None, "by boat", None),
            (
                vec![plain(), second()],
                None,
                "print a line",
                nothing.clone(),
            ),
            (vec![plain(), second()], None, "by boat", words(2)),
            // One that takes neither these words nor others leaves no doubt.
            (vec![plain(), west()], None, "print a line", choice(1)),
            (vec![plain(), west()], None, "1", nothing.clone()),
            (vec![west(), plain()], None, "go west", nothing),
            // What is of the idea that is talked about goes first.
            (vec![plain(), of_rivers()], None, "print a line", choice(1)),
            (vec![plain(), of_rivers()], None, "by boat", None),
            (vec![of_rivers()], None, "print a line", choice(2)),
            (vec![of_rivers()], None, "by boat", None),
            (vec![of_rivers()], None, "1", None),
            (vec![of_rivers(), west()], None, "line", None),
            // A conversation takes the answer to its own question.
            (vec![plain(), of_talk()], None, "print a line", None),
            (vec![of_talk()], None, "by boat", None),
        ] {
            let talk = Conversation {
                idea: Some(&walks),
                said_at: said.map(at),
            };
            let ids: Vec<QuestionId> = asked.iter().map(|one| one.question.id).collect();
            assert_eq!(
                meant(&asked, talk, text),
                expected,
                "{text} {said:?} {ids:?}"
            );
        }
    }

    #[test]
    fn words_leave_nothing_out_though_its_choice_needs_none_and_are_no_reason_without_a_press() {
        let choice = json!({ "id": "skip", "label": "Skip it", "recommended": false, "optional_words": true });
        let change = json!({ "free_text": false, "consequential": true, "choices": [choice] });
        let of_task = [put(1, 1, &change)];
        let walks = Slug::parse("walks").unwrap();
        let talk = Conversation {
            idea: Some(&walks),
            said_at: None,
        };
        let binds = Some(SpokenAnswer::Nothing(BINDS));
        for (text, expected) in [
            ("skip", binds.clone()),
            ("Skip it", binds),
            // Its id begins what is said about anything else.
            ("skip the stones", None),
        ] {
            assert_eq!(meant(&of_task, talk, text), expected, "{text}");
        }
    }

    #[test]
    fn who_talks_about_nothing_answers_what_was_asked_last_but_no_conversation_of_others() {
        let talk = Conversation {
            idea: None,
            said_at: None,
        };
        let of_task = put(1, 1, &json!({}));
        assert_eq!(
            meant(&[of_task], talk, "by boat"),
            Some(SpokenAnswer::Words(id(1)))
        );
        let of_others = put(
            1,
            1,
            &json!({ "about": { "kind": "session", "session": ID } }),
        );
        assert_eq!(meant(&[of_others], talk, "hi what is this"), None);
    }
}
