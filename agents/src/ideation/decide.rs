//! Decides what a message means for a session: what is kept, what is saved, which phase follows (seed pipeline §3.3).

use chrono::{DateTime, Utc};
use ropewalk_schemas::idea::{Artifact, Decision, IdeaKind, Phase, Risk, Signals};

use super::reply::{HeardArtifact, Reply};
use crate::idea_folder::{is_blank, is_placeholder_line};

/// An artifact at least this sure is saved to the idea folder.
pub const SAVE_FROM: f64 = 0.6;
/// The average of the artifacts must lie above this before assumptions are validated.
const SCOPED_ABOVE: f64 = 0.6;
/// The overall confidence above which an idea without a brief is complete.
const COMPLETE_ABOVE: f64 = 0.75;
/// So many assumptions of a venture must have been validated.
const VALIDATIONS: usize = 3;
/// A problem told in fewer characters is vague.
const VAGUE_BELOW: usize = 50;
/// A session keeps so many decisions, and so many risks, the newest.
const KEPT_LINES: usize = 200;
/// A session keeps so many kinds of artifact.
const KEPT_KINDS: usize = 48;

/// Adds what a reply heard to what was known before.
///
/// The newest artifact of a kind takes the place of the one before, unless it is too unsure to be saved and the
/// one before was not. Placeholders are no artifacts. What is withdrawn goes before what is new comes.
pub fn merge(known: &Signals, reply: &Reply) -> Signals {
    let mut signals = known.clone();
    let holds = |summary: &str| !reply.withdrawn.iter().any(|line| names(line, summary));
    signals.decisions.retain(|known| holds(&known.summary));
    signals.risks.retain(|known| holds(&known.summary));
    for heard in reply.artifacts.iter().filter(|heard| says_something(heard)) {
        keep_artifact(&mut signals.artifacts, heard);
    }
    for heard in &reply.decisions {
        let decision = Decision {
            kind: kind_of(&heard.kind),
            summary: heard.summary.trim().to_owned(),
        };
        let known = signals
            .decisions
            .iter()
            .any(|known| known.kind == decision.kind && alike(&known.summary, &decision.summary));
        if !known && !decision.summary.is_empty() {
            signals.decisions.push(decision);
        }
    }
    for heard in &reply.risks {
        let risk = Risk {
            summary: heard.summary.trim().to_owned(),
            source: heard.source.clone(),
        };
        let known = signals
            .risks
            .iter()
            .any(|known| alike(&known.summary, &risk.summary));
        if !known && !risk.summary.is_empty() {
            signals.risks.push(risk);
        }
    }
    drop_oldest(&mut signals.decisions);
    drop_oldest(&mut signals.risks);
    if let Some(confidence) = reply.confidence {
        signals.confidence = confidence.clamp(0.0, 1.0);
    }
    signals
}

/// Returns what `reply` withdraws that is no decision or risk of the session, in words for the model.
pub(super) fn withdrawn_in_vain(known: &Signals, reply: &Reply) -> Vec<String> {
    let lines = reply.withdrawn.iter().enumerate();
    lines
        .filter(|(_, line)| !stands(known, line))
        .map(|(index, line)| {
            format!(
                "`withdrawn[{index}]`, `{line}`, is no decision or risk of the session; copy one as it stands"
            )
        })
        .collect()
}

/// Says whether `reply` records the brief surely enough to be saved.
pub(super) fn records_the_brief(reply: &Reply) -> bool {
    let mut heard = reply.artifacts.iter();
    heard.any(|heard| {
        kind_of(&heard.kind) == "brief" && says_something(heard) && heard.confidence >= SAVE_FROM
    })
}

fn stands(known: &Signals, line: &str) -> bool {
    let decisions = known.decisions.iter().map(|decision| &decision.summary);
    let mut lines = decisions.chain(known.risks.iter().map(|risk| &risk.summary));
    lines.any(|summary| names(line, summary))
}

/// Says whether `line` names what is summed up so; its kind may stand before it, as the session shows it.
fn names(line: &str, summary: &str) -> bool {
    let bare = line.split_once(": ").map_or(line, |(_, bare)| bare);
    alike(line, summary) || alike(bare, summary)
}

fn keep_artifact(artifacts: &mut Vec<Artifact>, heard: &HeardArtifact) {
    let content = if is_blank(&heard.content) {
        format!("{}\n\n{}", heard.summary.trim(), heard.content.trim())
    } else {
        heard.content.clone()
    };
    let artifact = Artifact {
        kind: kind_of(&heard.kind),
        summary: heard
            .summary
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
        content: content.trim().to_owned(),
        confidence: heard.confidence,
        path: None,
    };
    let full = artifacts.len() >= KEPT_KINDS;
    match artifacts
        .iter_mut()
        .find(|known| known.kind == artifact.kind)
    {
        Some(known) if known.confidence >= SAVE_FROM && artifact.confidence < SAVE_FROM => {}
        Some(known) => *known = artifact,
        None if full => {}
        None => artifacts.push(artifact),
    }
}

/// Says whether an artifact is one: its content says something, or its summary does, beyond its kind and the headings.
fn says_something(heard: &HeardArtifact) -> bool {
    if !is_blank(&heard.content) {
        return true;
    }
    let headings = heard.content.lines().map(str::trim_start);
    let headings = headings.filter(|line| line.starts_with('#'));
    let named: Vec<String> = headings
        .chain([heard.kind.as_str()])
        .flat_map(words)
        .collect();
    !is_placeholder_line(&heard.summary)
        && words(&heard.summary)
            .iter()
            .any(|word| !named.contains(word))
}

/// Spells a kind in one way: `Target User` is `target-user`.
fn kind_of(kind: &str) -> String {
    let words: Vec<String> = kind
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    words.join("-")
}

fn alike(one: &str, other: &str) -> bool {
    words(one) == words(other)
}

fn words(text: &str) -> Vec<String> {
    text.to_lowercase()
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn drop_oldest<T>(lines: &mut Vec<T>) {
    lines.drain(..lines.len().saturating_sub(KEPT_LINES));
}

/// Makes of a text that somebody gave as the whole idea what a conversation would have come to.
pub fn as_it_is(title: &str, text: &str) -> Reply {
    Reply {
        text: "I take this for the whole idea; it is the brief as it stands.".to_owned(),
        artifacts: vec![HeardArtifact {
            kind: "brief".to_owned(),
            summary: title.to_owned(),
            content: text.to_owned(),
            confidence: 1.0,
        }],
        confidence: Some(1.0),
        ..Reply::default()
    }
}

/// Returns the phase that follows `phase`, if its gate is met; never more than one step, but for what is small: its brief
/// says all that the phases ask for.
///
/// For whom it is, what sets it apart and what could go wrong is asked of what people have to be won for, and what speaks for its
/// assumptions of ventures alone. Nobody is held to more than every idea is before it is known which it is, and a gate that is left
/// behind asks for nothing any more.
pub fn next_phase(phase: Phase, kind: Option<IdeaKind>, signals: &Signals) -> Option<Phase> {
    let small = kind.is_some_and(IdeaKind::is_small);
    let wins_people = kind.is_some_and(|kind| !kind.is_small());
    let has = |kind: &str| {
        signals
            .artifacts
            .iter()
            .any(|artifact| artifact.kind == kind)
    };
    let sure = exceeds(signals.confidence, COMPLETE_ABOVE);
    if small && sure && phase != Phase::Complete && saved(signals).any(is_brief) {
        return Some(Phase::Complete);
    }
    let met = match phase {
        Phase::Exploring => {
            (!wins_people || has("target-user")) && has("problem") && has("solution-concept")
        }
        Phase::Narrowing => {
            has("mvp-features")
                && (!wins_people || has("differentiator"))
                && exceeds(average_confidence(signals), SCOPED_ABOVE)
        }
        Phase::Validating => {
            let validations = signals
                .decisions
                .iter()
                .filter(|made| made.kind == "validation")
                .count();
            let proven = kind != Some(IdeaKind::Venture) || validations >= VALIDATIONS;
            !wins_people || proven && !signals.risks.is_empty()
        }
        Phase::Refining => sure || has("brief"),
        Phase::Complete => false,
    };
    phase.successors().first().copied().filter(|_| met)
}

/// Returns the artifacts that are sure enough to be saved.
pub(super) fn saved(signals: &Signals) -> impl Iterator<Item = &Artifact> {
    let artifacts = signals.artifacts.iter();
    artifacts.filter(|artifact| artifact.confidence >= SAVE_FROM)
}

fn is_brief(artifact: &Artifact) -> bool {
    artifact.kind == "brief"
}

/// Returns the average confidence of all artifacts, 0 without any.
pub fn average_confidence(signals: &Signals) -> f64 {
    let count = u32::try_from(signals.artifacts.len()).unwrap_or(u32::MAX);
    let sum: f64 = signals
        .artifacts
        .iter()
        .map(|artifact| artifact.confidence)
        .sum();
    if count == 0 {
        0.0
    } else {
        sum / f64::from(count)
    }
}

/// Compares strictly, blind to what an average of decimal fractions leaves behind.
fn exceeds(value: f64, limit: f64) -> bool {
    value - limit > 1e-9
}

/// Returns what is to be asked about when a session starts: the person's words, if nothing tells the problem yet.
///
/// `problem` is what the idea folder says of the problem, if it says anything.
pub fn vague_opening(opening: &str, problem: Option<&str>) -> Option<String> {
    let told = |text: &str| text.trim().chars().count() >= VAGUE_BELOW;
    if told(opening) && !is_blank(opening) || problem.is_some_and(told) {
        return None;
    }
    Some(opening.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Finds what a README says of the problem: the text below its heading `Problem`; without that heading, its prose.
pub fn stated_problem(readme: &str) -> Option<String> {
    let (mut has_heading, mut below) = (false, false);
    let mut section = Vec::new();
    let mut prose = Vec::new();
    for line in readme.lines() {
        if let Some(heading) = line.trim_start().strip_prefix('#') {
            below = heading.to_lowercase().contains("problem");
            has_heading |= below;
        } else if !is_blank(line) {
            prose.push(line.trim());
            if below {
                section.push(line.trim());
            }
        }
    }
    let found = if has_heading { section } else { prose };
    (!found.is_empty()).then(|| found.join(" "))
}

/// Decides whether a message answers the question that the session waits for: it was written after that was asked, by
/// somebody to whom it was put, for they talked by then (`talks_since`) or were told of it. What others write is heard as
/// what it is, since they may never have seen a question.
pub fn answers(
    asked_at: DateTime<Utc>,
    said_at: DateTime<Utc>,
    talks_since: Option<DateTime<Utc>>,
    is_told: bool,
) -> bool {
    let talked = talks_since.is_some_and(|since| since <= asked_at);
    said_at >= asked_at && (talked || is_told)
}

#[cfg(test)]
mod tests;
