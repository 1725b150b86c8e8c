//! Every trigger of a question is asked by somebody, or stands in a list that names the work it awaits.

use crate::workspace::Member;

/// Where the triggers are listed.
const LIST: (&str, &str) = ("config", "src/questions/trigger.rs");

/// The triggers that nobody asks by their template yet, with what they await.
const AWAITED: [(&str, &str); 16] = [
    ("IdeaCreated", "ideation journeys, V36"),
    ("PhaseComplete", "ideation journeys, V36"),
    ("IdeaComplexityHigh", "ideation journeys, V36"),
    ("BeforeResearch", "research in the ideation, V36"),
    ("BeforeFinalizeSpec", "a planner that reads, V05"),
    (
        "RequirementAmbiguous",
        "asked by models in words of their own",
    ),
    (
        "MultipleArchitectures",
        "asked by models in words of their own",
    ),
    (
        "ExternalDependencies",
        "asked by models in words of their own",
    ),
    ("BeforeUxTesting", "the gate of people's journeys, V31"),
    ("UsabilityConcern", "the gate of people's journeys, V31"),
    (
        "AccessibilityViolation",
        "the gate of people's journeys, V31",
    ),
    ("UxTestingComplete", "the gate of people's journeys, V31"),
    ("PatternDetected", "lessons that people confirm, V19"),
    ("GotchaCandidate", "lessons that people confirm, V19"),
    ("ClaudeMdPromotion", "promotion by consent, V20"),
    ("RepeatedAnswer", "preferences out of answers, V22"),
];

/// The triggers without an asker that the list does not excuse, and those that it excuses for nothing.
pub(crate) fn violations(members: &[Member]) -> Vec<String> {
    let list = members.iter().find(|member| member.directory == LIST.0);
    let list = list.and_then(|member| {
        member
            .files
            .iter()
            .find(|(path, _)| path.as_str() == LIST.1)
    });
    let Some((_, list)) = list else {
        return vec![format!("`{}/{}` is gone", LIST.0, LIST.1)];
    };
    let askers: Vec<&str> = members
        .iter()
        .filter(|member| member.directory != LIST.0)
        .flat_map(|member| &member.files)
        .filter(|(path, _)| path.starts_with("src/"))
        .map(|(_, text)| text.as_str())
        .collect();
    judged(&triggers(list), &askers)
}

/// Judges the triggers by the sources in which they may be asked.
fn judged(triggers: &[&str], askers: &[&str]) -> Vec<String> {
    triggers
        .iter()
        .filter_map(|trigger| {
            let asked = askers.iter().any(|text| asks(text, trigger));
            let awaits = AWAITED.iter().find(|(name, _)| name == trigger);
            match (asked, awaits) {
                (false, None) => Some(format!(
                    "nobody asks `{trigger}`; ask it, or name in the list what it awaits"
                )),
                (true, Some((_, awaits))) => Some(format!(
                    "`{trigger}` is asked, so it awaits {awaits} no longer; take it off the list"
                )),
                _ => None,
            }
        })
        .collect()
}

/// Lists the triggers of the macro that declares them.
fn triggers(list: &str) -> Vec<&str> {
    let rows = list.lines().map(str::trim);
    rows.filter(|row| row.starts_with(|first: char| first.is_ascii_uppercase()))
        .filter_map(|row| row.split_once(" = \""))
        .map(|(name, _)| name)
        .collect()
}

/// Says whether a source fills in the template of a trigger; one that only reads its answers fills in none.
fn asks(text: &str, trigger: &str) -> bool {
    let named = format!("Trigger::{trigger}");
    let is_whole = |(at, _): (usize, &str)| {
        let next = text[at + named.len()..].chars().next();
        next.is_none_or(|next| !next.is_ascii_alphanumeric())
    };
    text.contains(".render(") && text.match_indices(&named).any(is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_without_an_asker_is_found() {
        let list = "triggers! {\n    /// One.\n    TaskStuck = \"task_stuck\" (),\n    RepeatedAnswer = \"repeated_answer\" (),\n}";
        let found = triggers(list);
        assert_eq!(found, ["TaskStuck", "RepeatedAnswer"]);
        let asker = "options.templates.render(Trigger::TaskStuck, &values)";
        let reader = "match trigger { Trigger::TaskStuck => 1, _ => 2 }";
        assert_eq!(judged(&found, &[asker]), Vec::<String>::new());
        assert!(judged(&found, &[reader])[0].contains("nobody asks `TaskStuck`"));
        let both = "templates.render(Trigger::RepeatedAnswer, &values); Trigger::TaskStuck";
        assert!(judged(&found, &[both])[0].contains("no longer"));
    }
}
