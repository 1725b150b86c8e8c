//! Asks people what the result of a validation gives them to decide, and does what they answer.

use std::collections::BTreeMap;

use ropewalk_config::Trigger;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::attempt::{Evidence, Level};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::payload::QuestionAnswered;
use ropewalk_schemas::question::About;
use ropewalk_schemas::{BuildId, QuestionId};
use ropewalk_store::{ChangeSet, Query, Versioned};

use super::Shop;
use super::act::control;
use super::ask::put;
use super::context::{self};
use super::decide::validation::{Asked, Vulnerability, asked, recommended};
use super::trouble::Trouble;

/// Asks what the result of a whole-build check gives people to decide; returns the question that holds the build.
pub(crate) async fn ask(
    shop: &Shop,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    evidence: &Evidence,
) -> Result<Option<QuestionId>, Trouble> {
    let gate = shop.house.gate_at(build.base.as_ref()).await?;
    let mut holding = None;
    for asked in asked(evidence, gate.coverage_percent) {
        let (trigger, values) = values(&asked);
        let draft = shop.questions.render(trigger, &values)?;
        let about = About::Build { build: build.id };
        let question = put(shop, context, changes, build, about, draft).await?;
        if matches!(asked, Asked::Vulnerability(_) | Asked::Failures { .. }) {
            holding = holding.or(question);
        }
    }
    Ok(holding)
}

fn values(asked: &Asked) -> (Trigger, BTreeMap<&'static str, String>) {
    let listed = |lines: &[String]| {
        if lines.is_empty() {
            "- none".to_owned()
        } else {
            lines.join("\n")
        }
    };
    match asked {
        Asked::Failures { critical, warnings } => (
            Trigger::MultipleFailures,
            BTreeMap::from([
                ("count", (critical.len() + warnings.len()).to_string()),
                ("critical_count", critical.len().to_string()),
                ("critical_list", listed(critical)),
                ("warning_count", warnings.len().to_string()),
                ("warning_list", listed(warnings)),
            ]),
        ),
        Asked::Vulnerability(Vulnerability {
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
        Asked::Coverage {
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
        Asked::Passed {
            tests,
            percent,
            lint,
            security,
        } => (
            Trigger::ValidationPassed,
            BTreeMap::from([
                ("test_count", tests.to_string()),
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
    shop: &Shop,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
) -> Result<(), Trouble> {
    let gate = shop.house.gate_at(build.base.as_ref()).await?;
    let Some(level) = recommended(gate.deepest(), gate.build_level) else {
        return Ok(());
    };
    let values = BTreeMap::from([("recommendation", label(level))]);
    let draft = shop
        .questions
        .render(Trigger::ValidationLevelNeeded, &values)?;
    let about = About::Build { build: build.id };
    put(shop, context, changes, build, about, draft).await?;
    Ok(())
}

/// Writes a level as the question's options do.
fn label(level: Level) -> String {
    let mut letters = level.as_str().chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// Notes how deep the whole-build check shall look; one that has run is not run again for it.
pub(crate) async fn level_chosen(
    context: &Context,
    build: BuildId,
    text: &str,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    if let Some(row) = context::build(&context.store, build).await?
        && let Ok(level) = text.parse::<Level>()
    {
        let after = Build {
            level: Some(level),
            ..row.record.clone()
        };
        changes.update(&row, &after);
    }
    Ok(changes)
}

/// Does what a person answered about failures of the whole build: an accepted risk is checked without that check,
/// anything else is told, since landed work is only changed by another revision.
pub(crate) async fn answered(
    context: &Context,
    build: BuildId,
    answer: &QuestionAnswered,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    let Some(row) = context::build(&context.store, build).await? else {
        return Ok(changes);
    };
    if row.state != BuildState::Failed {
        return Ok(changes);
    }
    let mut after = row.record.clone();
    after.question = None;
    if answer.answer.starts_with("Accept the risk") {
        after
            .accepted
            .extend(failing_security(context, &row).await?);
        control::revive(context, &mut after);
        after.reason = Some(format!("{} accepts the risk", answer.answered_by));
    } else {
        let told = format!(
            "you chose: {}; `ropewalk spec revise {}` asks for it",
            answer.answer, row.spec
        );
        after.reason = Some(match &row.reason {
            Some(reason) => format!("{reason}; {told}"),
            None => told,
        });
    }
    changes.update(&row, &after);
    Ok(changes)
}

/// Names the security checks that did not hold when the build was last checked as a whole.
async fn failing_security(
    context: &Context,
    build: &Versioned<Build>,
) -> Result<Vec<String>, Trouble> {
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
        .filter_map(|asked| match asked {
            Asked::Vulnerability(hole) => Some(hole.check),
            _ => None,
        })
        .collect())
}
