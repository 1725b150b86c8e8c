//! Picks from long sources what a specification needs (seed pipeline §4.2).

use std::collections::BTreeMap;

use ropewalk_engine::conventions::TOLD_LETTERS;
use ropewalk_schemas::clip;
use ropewalk_schemas::idea::IdeaKind;

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

/// Returns a README without the sections that only lead to a document which is shown too.
pub fn without_repeated(readme: &str, shown: &[&str]) -> String {
    let leads = |section: &str| {
        let last = section.trim_end().lines().next_back().unwrap_or_default();
        let mut links = shown.iter().map(|path| format!("See [{path}]({path})."));
        links.any(|link| last == link)
    };
    let sections =
        readme
            .split_inclusive('\n')
            .fold(Vec::new(), |mut sections: Vec<String>, line| {
                match sections.last_mut() {
                    Some(section) if !line.starts_with("## ") => section.push_str(line),
                    _ => sections.push(line.to_owned()),
                }
                sections
            });
    sections
        .into_iter()
        .filter(|section| !leads(section))
        .collect()
}

/// The sections of the conventions that matter to a plan.
const SECTIONS: [&str; 4] = [
    "database conventions",
    "api conventions",
    "file locations",
    "atomic task conventions",
];

/// How many topics a README has.
const TOPICS: usize = 12;

/// Words that say nothing about a topic.
const COMMON: [&str; 40] = [
    "about", "after", "again", "also", "because", "been", "before", "between", "build", "could",
    "does", "each", "every", "first", "from", "have", "idea", "into", "like", "more", "most",
    "much", "only", "other", "over", "people", "problem", "should", "some", "that", "their",
    "them", "then", "they", "this", "what", "when", "which", "with", "your",
];

/// Returns the sections of a conventions file that matter to a plan; all of it when none has such a heading.
pub fn conventions(text: &str) -> String {
    let mut kept = String::new();
    let mut depth = None;
    for line in text.lines() {
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        if (1..=6).contains(&level) && line[level..].starts_with(' ') {
            let named = SECTIONS
                .iter()
                .any(|name| line[level..].to_lowercase().contains(name));
            depth = match depth {
                _ if named => Some(level),
                Some(outer) if level > outer => Some(outer),
                _ => None,
            };
        }
        if depth.is_some() {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    let chosen = if kept.is_empty() { text } else { &kept };
    clip::lines(chosen.trim(), TOLD_LETTERS).into_owned()
}

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
    fn the_sections_of_a_plan_are_taken_whole_and_the_others_left() {
        let text = "# Project\nintro\n## Database Conventions\nsnake case\n### Keys\nuuid\n## Release\nnever on friday\n# File Locations\nsrc\n";
        assert_eq!(
            conventions(text),
            "## Database Conventions\nsnake case\n### Keys\nuuid\n# File Locations\nsrc"
        );
        assert_eq!(
            conventions("# Other\nUse tabs.\n#no heading\n"),
            "# Other\nUse tabs.\n#no heading"
        );
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
