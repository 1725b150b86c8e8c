//! Asks people what the result of a validation gives them to decide, and does what they answer.

use std::collections::BTreeMap;

use ropewalk_config::Trigger;
use ropewalk_config::questions::choice::{
    BlindCheck, SecurityVulnerability, ValidationLevelNeeded,
};
use ropewalk_orchestrator::Context;
use ropewalk_orchestrator::questions::QuestionRequest;
use ropewalk_schemas::attempt::{Evidence, Level};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::payload::QuestionAnswered;
use ropewalk_schemas::question::{About, Question};
use ropewalk_schemas::{BuildId, ChoiceId, QuestionId};
use ropewalk_store::{ChangeSet, Query};

use crate::SharedState;
use crate::ask::{self, put, put_asking};
use crate::context;
use crate::decide::validation::{ValidationQuestion, Vulnerability, asked, recommended};
use crate::effects::Scene;
use crate::error::BuilderError;
use crate::machine::build::{Input, holds_no_question};

/// Asks what the result of a whole-build check gives people to decide; returns the question that holds the build. Nothing is asked
/// about one that is over, as where it has landed while it was checked.
pub(crate) async fn ask_people(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    evidence: &Evidence,
) -> Result<Option<QuestionId>, BuilderError> {
    if holds_no_question(build) {
        return Ok(None);
    }
    let gate = shared.gate.gate_at(build.base.as_ref()).await?;
    let mut holding = None;
    for asked in asked(evidence, gate.coverage_percent) {
        let (trigger, values) = values(&asked);
        let draft = shared.questions.render(trigger, &values)?;
        let about = About::Build { build: build.id };
        let asking = QuestionRequest {
            topic: name(&asked).cloned(),
            ..QuestionRequest::of(draft, about, Some(&build.idea))
        };
        let question = put_asking(shared, context, changes, asking).await?;
        if matches!(
            asked,
            ValidationQuestion::Vulnerability(_)
                | ValidationQuestion::Failures { .. }
                | ValidationQuestion::Blind { .. }
        ) {
            holding = holding.or(question);
        }
    }
    Ok(holding)
}

fn values(asked: &ValidationQuestion) -> (Trigger, BTreeMap<&'static str, String>) {
    let listed = |lines: &[String]| {
        if lines.is_empty() {
            "- none".to_owned()
        } else {
            lines.join("\n")
        }
    };
    match asked {
        ValidationQuestion::Failures { critical, warnings } => (
            Trigger::MultipleFailures,
            BTreeMap::from([
                ("count", (critical.len() + warnings.len()).to_string()),
                ("critical_count", critical.len().to_string()),
                ("critical_list", listed(critical)),
                ("warning_count", warnings.len().to_string()),
                ("warning_list", listed(warnings)),
            ]),
        ),
        ValidationQuestion::Vulnerability(Vulnerability {
            check,
            severity,
            file,
            line,
            description,
        }) => (
            Trigger::SecurityVulnerability,
            BTreeMap::from([
                ("vuln_type", check.clone()),
                ("severity", (*severity).to_owned()),
                ("file", file.clone()),
                ("line", line.clone()),
                ("description", description.clone()),
                ("risk_description", format!("what `{check}` warns of")),
            ]),
        ),
        ValidationQuestion::Blind { check, finding, .. } => (
            Trigger::BlindCheck,
            BTreeMap::from([("check", check.clone()), ("finding", finding.clone())]),
        ),
        ValidationQuestion::Coverage {
            percent,
            threshold,
            uncovered,
        } => (
            Trigger::CoverageBelowThreshold,
            BTreeMap::from([
                ("coverage", percent.to_string()),
                ("threshold", threshold.to_string()),
                ("uncovered_list", listed(uncovered)),
            ]),
        ),
        ValidationQuestion::Passed {
            tests,
            percent,
            lint,
            security,
        } => (
            Trigger::ValidationPassed,
            BTreeMap::from([
                (
                    "test_count",
                    tests.map_or_else(
                        || "not counted".to_owned(),
                        |tests| format!("{tests} passing"),
                    ),
                ),
                (
                    "coverage",
                    percent.map_or_else(|| "unknown ".to_owned(), |percent| percent.to_string()),
                ),
                ("lint_status", (*lint).to_owned()),
                ("security_status", (*security).to_owned()),
            ]),
        ),
    }
}

/// Asks how deep the whole-build check shall look, where the gate has deeper checks than it runs by itself.
pub(crate) async fn ask_level(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
) -> Result<(), BuilderError> {
    let gate = shared.gate.gate_at(build.base.as_ref()).await?;
    let Some(level) = recommended(gate.deepest(), gate.build_level) else {
        return Ok(());
    };
    let values = BTreeMap::from([("recommendation", level.as_str().to_owned())]);
    let draft = shared
        .questions
        .render(Trigger::ValidationLevelNeeded, &values)?;
    let about = About::Build { build: build.id };
    put(shared, context, changes, build, about, draft).await?;
    Ok(())
}

const fn level_of(chosen: ValidationLevelNeeded) -> Level {
    match chosen {
        ValidationLevelNeeded::Quick => Level::Quick,
        ValidationLevelNeeded::Standard => Level::Standard,
        ValidationLevelNeeded::Thorough => Level::Thorough,
        ValidationLevelNeeded::Comprehensive => Level::Comprehensive,
        ValidationLevelNeeded::Release => Level::Release,
    }
}

/// Notes how deep the whole-build check shall look; one that has run is not run again for it.
pub(crate) async fn level_chosen(
    context: &Context,
    build: BuildId,
    choice: Option<&ChoiceId>,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    if let Some(row) = context::build(&context.store, build).await?
        && let Some(chosen) = ValidationLevelNeeded::of(choice)
    {
        let after = Build {
            level: Some(level_of(chosen)),
            ..row.record.clone()
        };
        changes.update(&row, &after);
    }
    Ok(changes)
}

/// Does what a person answered about failures of the whole build: a risk that is accepted is no longer checked for, and
/// with the last one the build is checked again. Where a revision is to mend it, the specification agent writes one.
pub(crate) async fn answered(
    shared: &SharedState,
    context: &Context,
    trigger: Trigger,
    build: BuildId,
    answer: &QuestionAnswered,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    let Some(row) = context::build(&context.store, build).await? else {
        return Ok(changes);
    };
    // Who answers so late speaks of a check that no longer counts.
    if row.state != BuildState::Failed || row.continued_by.is_some() {
        return Ok(changes);
    }
    let by = &answer.answered_by;
    let choice = answer.choice.as_ref();
    let accepts = match trigger {
        Trigger::SecurityVulnerability => {
            SecurityVulnerability::of(choice) == Some(SecurityVulnerability::Accept)
        }
        Trigger::BlindCheck => BlindCheck::of(choice) == Some(BlindCheck::Accept),
        _ => false,
    };
    let input = if accepts {
        let holes = holes(context, &row).await?;
        let Some(check) = asked_about(context, answer.question_id, &holes).await? else {
            return Ok(changes);
        };
        let is_left = |hole: &ValidationQuestion| {
            name(hole).is_some_and(|name| *name != check && !row.accepted.contains(name))
        };
        let left = if holes.iter().any(is_left) {
            let open = ask::open_questions(context, build).await?;
            let holes = [Trigger::SecurityVulnerability, Trigger::BlindCheck].map(Trigger::as_str);
            let next = open
                .iter()
                .find(|question| holes.contains(&&*question.trigger));
            Some(next.map(|question| question.id))
        } else {
            None
        };
        let by = by.clone();
        Input::AcceptRisk { check, by, left }
    } else {
        let told = format!("{by} chose: {}", answer.answer);
        Input::Heed { told: Some(told) }
    };
    let after = Scene::new(shared, context, &row)
        .build(&mut changes, input)
        .await?;
    changes.update(&row, &after);
    Ok(changes)
}

/// Lists the holes that were found when the build was last checked as a whole.
async fn holes(context: &Context, build: &Build) -> Result<Vec<ValidationQuestion>, BuilderError> {
    let query = Query::new()
        .equal("build", build.id.to_string())
        .equal("task", None::<&str>)
        .order_by("at");
    let evidence = context.store.list::<Evidence>(query).await?;
    let asked = evidence
        .last()
        .map_or_else(Vec::new, |evidence| asked(evidence, 0));
    Ok(asked
        .into_iter()
        .filter(|asked| name(asked).is_some())
        .collect())
}

/// Names the check that found a hole, or what cannot fail.
const fn name(asked: &ValidationQuestion) -> Option<&String> {
    match asked {
        ValidationQuestion::Vulnerability(hole) => Some(&hole.check),
        ValidationQuestion::Blind { topic, .. } => Some(topic),
        _ => None,
    }
}

/// Names the check whose finding a question tells, if that was found when the build was last checked.
async fn asked_about(
    context: &Context,
    question: QuestionId,
    holes: &[ValidationQuestion],
) -> Result<Option<String>, BuilderError> {
    let question = context.store.get::<Question>(&question.to_string()).await?;
    let check = question.and_then(|question| question.record.topic);
    let is_found = |check: &String| holes.iter().any(|hole| name(hole) == Some(check));
    Ok(check.filter(is_found))
}
