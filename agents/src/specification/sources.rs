//! Picks from long sources what a specification needs (seed pipeline §4.2).

use std::collections::BTreeMap;

use ropewalk_schemas::idea::{IdeaKind, Phase, Session};

/// The documents without which there is no specification.
pub const REQUIRED: [&str; 2] = [crate::idea_folder::README, crate::idea_folder::BRIEF];

/// The documents that make a specification better.
pub const OPTIONAL: [&str; 8] = [
    "target-users.md",
    "problem-solution.md",
    "development.md",
    "planning/mvp-scope.md",
    "planning/architecture.md",
    "research/market.md",
    "research/competitive.md",
    "research/technical.md",
];

/// Says whether a document is missed where an idea of this kind does not have it: the brief of a small one says it all.
pub fn is_missed(kind: Option<IdeaKind>) -> bool {
    !kind.is_some_and(IdeaKind::is_small)
}

/// Says whether an idea was told at once: the phases in which the other documents come to be were never entered.
pub fn is_told_at_once(session: &Session) -> bool {
    let entered = |phase| session.phases.iter().any(|entry| entry.phase == phase);
    entered(Phase::Complete) && !entered(Phase::Narrowing)
}

/// Returns a README without the sections that only lead to a document which is shown too.
pub fn without_repeated(readme: &str, shown: &[&str]) -> String {
    let leads = |section: &str| {
        let last = section.trim_end().lines().next_back().unwrap_or_default();
        let mut links = shown.iter().map(|path| format!("See [{path}]({path})."));
        links.any(|link| last == link)
    };
    sections(readme)
        .into_iter()
        .filter(|section| !leads(section))
        .collect()
}

/// Returns a document without the sections whose every line stands in the `brief`, which is shown too, and without those
/// points of a list that do; nothing where nothing else is left. What is left out of an idea says another thing in the same
/// words, and stays.
pub fn beside_the_brief(text: &str, brief: &str) -> Option<String> {
    let stands = |line: &str| {
        let mut lines = brief.lines();
        lines.any(|known| known.trim() == line.trim())
    };
    let is_told = |line: &str| {
        let is_frame = line.trim().is_empty() || line.starts_with('#');
        is_frame || stands(line)
    };
    let sections = sections(text).into_iter();
    let left = sections.filter(|section| excludes(section) || !section.lines().all(is_told));
    let left = left.map(|section| {
        let words = section.lines().filter(|line| !line.trim().is_empty());
        let mut words = words.filter(|line| !line.starts_with('#'));
        if excludes(&section) || !words.all(|line| line.starts_with("- ")) {
            return section;
        }
        let lines = section.split_inclusive('\n');
        let new = lines.filter(|line| !line.starts_with("- ") || !stands(line));
        new.collect()
    });
    let left: String = left.collect();
    (!left.is_empty()).then_some(left)
}

/// Says whether a section is about what is not to be done, by its heading.
fn excludes(section: &str) -> bool {
    const MARKS: [&str; 3] = ["out of scope", "non-goal", "not "];
    let heading = section.lines().find(|line| line.starts_with("## "));
    heading.is_some_and(|heading| {
        let heading = heading.to_lowercase();
        MARKS.iter().any(|mark| heading.contains(mark))
    })
}

/// Takes a text apart before each heading of the second level.
fn sections(text: &str) -> Vec<String> {
    let lines = text.split_inclusive('\n');
    lines.fold(Vec::new(), |mut sections: Vec<String>, line| {
        match sections.last_mut() {
            Some(section) if !line.starts_with("## ") => section.push_str(line),
            _ => sections.push(line.to_owned()),
        }
        sections
    })
}

/// How many topics a README has.
const TOPICS: usize = 12;

/// Words that say nothing about a topic.
const COMMON: [&str; 40] = [
    "about", "after", "again", "also", "because", "been", "before", "between", "build", "could",
    "does", "each", "every", "first", "from", "have", "idea", "into", "like", "more", "most",
    "much", "only", "other", "over", "people", "problem", "should", "some", "that", "their",
    "them", "then", "they", "this", "what", "when", "which", "with", "your",
];

/// Returns the topics of a text: the longer words that it uses most, in the order of the alphabet.
pub fn topics(text: &str) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for word in text.split(|letter: char| !letter.is_alphanumeric()) {
        let word = word.to_lowercase();
        if word.chars().count() >= 4
            && !COMMON.contains(&word.as_str())
            && !word.starts_with(|first: char| first.is_ascii_digit())
        {
            *counts.entry(word).or_default() += 1;
        }
    }
    let mut ranked: Vec<(String, usize)> = counts.into_iter().collect();
    ranked.sort_by(|(one, count), (other, counts)| counts.cmp(count).then_with(|| one.cmp(other)));
    ranked.truncate(TOPICS);
    // A topic is written in the singular as often as in the plural.
    let singulars: Vec<String> = ranked
        .iter()
        .filter_map(|(word, _)| {
            word.strip_suffix('s')
                .filter(|stem| stem.len() > 3)
                .map(str::to_owned)
        })
        .collect();
    let words = ranked.into_iter().map(|(word, _)| word);
    words
        .chain(singulars)
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_in_full_is_not_said_before() {
        let readme = "# Habits\n\n## Problem\n\nForgotten.\n\nSee [problem-solution.md](problem-solution.md).\n\n## Goal\n\nKept. \
                      See [a.md](a.md).\n\n## Market\n\nSmall.\n\nSee [research/market.md](research/market.md).\n";
        assert_eq!(
            without_repeated(readme, &["problem-solution.md", "a.md"]),
            "# Habits\n\n## Goal\n\nKept. See [a.md](a.md).\n\n## Market\n\nSmall.\n\nSee [research/market.md](research/market.md).\n"
        );
        assert!(is_missed(None) && is_missed(Some(IdeaKind::Product)));
        assert!(!is_missed(Some(IdeaKind::Tool)) && !is_missed(Some(IdeaKind::Feature)));
    }

    #[test]
    fn what_the_brief_says_word_for_word_is_not_said_beside_it() {
        let brief = "# Brief: Habits\n\n## Problem\n\nForgotten.\n\n## Decisions\n\n- Scope: one habit\n- Users: people\n";
        let rows = [
            ("# Habits\n\n## Problem\n\nForgotten.\n", None),
            ("# Habits\n\n## Decisions\n\n- Users: people\n", None),
            (
                "# Habits\n\nKept.\n\n## Problem\n\nForgotten.\n\n## Decisions\n\n- Scope: one habit\n- Files: one\n",
                Some("# Habits\n\nKept.\n\n## Decisions\n\n- Files: one\n"),
            ),
            // The same words mean the opposite there.
            (
                "## Out of Scope\n\n- Users: people\n",
                Some("## Out of Scope\n\n- Users: people\n"),
            ),
            // What stands among other words stays whole.
            (
                "## Problem\n\nForgotten.\nAnd lost.\n",
                Some("## Problem\n\nForgotten.\nAnd lost.\n"),
            ),
        ];
        for (text, left) in rows {
            assert_eq!(beside_the_brief(text, brief).as_deref(), left, "{text}");
        }
    }

    #[test]
    fn topics_are_the_frequent_longer_words_also_in_the_singular() {
        let rare: Vec<String> = (0..20).map(|number| format!("rare{number}")).collect();
        let topics = topics(&format!(
            "# Habits\nhabits kept on mobile, mobile habits with gas {}",
            rare.join(" ")
        ));
        for topic in ["habits", "habit", "mobile"] {
            assert!(topics.contains(&topic.to_owned()), "{topics:?}");
        }
        assert!(
            !topics.contains(&"with".to_owned()) && topics.len() <= TOPICS + 1,
            "{topics:?}"
        );
    }
}
