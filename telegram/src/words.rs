//! Puts in words for a phone what is told and what stands.

pub(crate) mod refusal;

use std::time::Duration;

use ropewalk_desk::people::{People, Person};
use ropewalk_orchestrator::notices::{Notification, Rules};
use ropewalk_orchestrator::questions::AcceptedAnswer;
use ropewalk_schemas::amount::counted;
use ropewalk_schemas::clip;
use ropewalk_schemas::notice::NoticeText;
use ropewalk_schemas::person::Right;
use ropewalk_schemas::question::Choice;

/// How many letters of a question are told beside its answer.
const ASKED: usize = 200;

/// Says what is told: what happened, what there is to know, what is best done.
pub(crate) fn telling(telling: &Notification) -> String {
    let mut parts = vec![notice(&telling.text)];
    let takes_words = telling.question.as_ref().filter(|put| put.free_text);
    parts.extend(takes_words.map(|put| {
        let how = if put.choices.is_empty() {
            "Answer"
        } else {
            "Press a button, or answer"
        };
        format!("{how} this message in your own words.")
    }));
    parts.join("\n\n")
}

/// Writes a title, what there is to know, and what is best done.
pub(crate) fn notice(text: &NoticeText) -> String {
    let mut parts = vec![format!("**{}**", text.title)];
    if !text.body.is_empty() {
        parts.push(text.body.clone());
    }
    parts.extend(
        text.recommendation
            .iter()
            .map(|best| format!("Recommended: {best}")),
    );
    parts.join("\n\n")
}

/// Says which people may do something.
pub(crate) fn who_may(people: &People, right: Right) -> String {
    let all = people.all();
    let able = all.iter().filter(|person| person.rights.contains(&right));
    let names: Vec<String> = able.map(|person| format!("`{}`", person.name)).collect();
    match names.split_last() {
        None => "nobody here may".to_owned(),
        Some((one, [])) => format!("{one} may"),
        Some((last, others)) => format!("{} and {last} may", others.join(", ")),
    }
}

/// Says which choices of a question are not for somebody to press, since they lack the right beside each, and who may.
pub(crate) fn beyond(people: &People, choices: &[(&Choice, Right)]) -> Option<String> {
    let lines = Right::ALL.into_iter().filter_map(|right| {
        let of_right = choices.iter().filter(|(_, needed)| *needed == right);
        let labels: Vec<String> = of_right
            .map(|(choice, _)| format!("\"{}\"", choice.label))
            .collect();
        let (labels, who) = (labels.join(", "), who_may(people, right));
        (!labels.is_empty())
            .then(|| format!("Not for you to press: {labels}. You may not {right}; {who}."))
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Says what became of the questions that were answered with their defaults.
pub(crate) fn defaults(answered: &[AcceptedAnswer]) -> String {
    let rest = "What holds work up or has consequences waits for an answer of its own; /questions puts it again.";
    let Some(answers) = (!answered.is_empty()).then(|| {
        let answers = answered.iter().map(|one| {
            let asked = clip::line(&one.asked, ASKED);
            format!("• {asked} {}", one.answer)
        });
        answers.collect::<Vec<_>>().join("\n")
    }) else {
        return format!("No open question has a default that does no harm. {rest}");
    };
    let many = counted(answered.len() as u64, "question");
    format!("Answered with the default: {many}.\n{answers}\n{rest}")
}

/// Says what the configuration says of a person, and where that is changed.
pub(crate) fn settings(person: &Person, wants_summary: bool, rules: &Rules) -> String {
    let minutes = |time: Duration| counted(time.as_secs() / 60, "minute");
    let asked: Vec<&str> = person.roles.iter().map(|role| role.as_str()).collect();
    let rights: Vec<&str> = person.rights.iter().map(|right| right.as_str()).collect();
    let first = if asked.is_empty() {
        "You have no role: you are asked what concerns a role that nobody has.".to_owned()
    } else {
        format!("You are asked first what is {}.", asked.join(", "))
    };
    let summary = match rules.summary.map(String::from) {
        None => "Nobody gets a daily summary.".to_owned(),
        Some(_) if !wants_summary => "You get no daily summary.".to_owned(),
        Some(time) => format!("You get the daily summary at {time} UTC."),
    };
    let quiet = match rules.quiet.map(String::from) {
        None => "There are no quiet hours.".to_owned(),
        Some(quiet) => {
            format!("Quiet hours are {quiet} UTC: only what holds work up is told then.")
        }
    };
    let may = if rights.is_empty() {
        "You may do what everybody may.".to_owned()
    } else {
        format!("Beside what everybody may, you may: {}.", rights.join(", "))
    };
    [
        format!("You are `{}`.", person.name),
        first,
        format!(
            "What nobody answers goes to everybody after {}; what holds nothing up is gathered for {}.",
            minutes(rules.escalate),
            minutes(rules.batch)
        ),
        summary,
        quiet,
        may,
        format!(
            "Change it on a machine: `[people.{}]` and `[notices]`; `ropewalk config show` says in which file each value is set.",
            person.name
        ),
    ]
    .join("\n")
}
