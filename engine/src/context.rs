//! Builds the context of a prompt within a budget of tokens (seed pipeline §9.2).
//!
//! The strategies lazy, eager and phased are only a matter of which sections a caller adds, and when.

/// Says what a section is; the order is the order of importance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SectionKind {
    /// The task at hand.
    Task,
    /// Lessons that apply to it.
    Gotchas,
    /// The code to start from.
    Template,
    /// The conventions of the project.
    Conventions,
    /// The last messages.
    RecentMemory,
    /// What the idea is about.
    Readme,
    /// The older messages.
    FullMemory,
    /// Research documents.
    Research,
}

impl SectionKind {
    /// Lists every kind, the most important first.
    pub const ALL: [Self; 8] = [
        Self::Task,
        Self::Gotchas,
        Self::Template,
        Self::Conventions,
        Self::RecentMemory,
        Self::Readme,
        Self::FullMemory,
        Self::Research,
    ];

    /// Returns how important it is, 0 to 1.
    pub const fn priority(self) -> f64 {
        match self {
            Self::Task => 1.0,
            Self::Gotchas => 0.95,
            Self::Template => 0.90,
            Self::Conventions => 0.85,
            Self::RecentMemory => 0.80,
            Self::Readme => 0.70,
            Self::FullMemory => 0.50,
            Self::Research => 0.30,
        }
    }
}

/// A section above this is cut to fit rather than left out.
const CUT_ABOVE: f64 = 0.8;
/// Stands where a section was cut.
const CUT_MARK: &str = "\n[cut to fit]";

/// Collects sections and builds a context of those that fit.
#[derive(Debug, Clone)]
pub struct ContextBuilder {
    budget_tokens: usize,
    sections: Vec<Section>,
}

#[derive(Debug, Clone)]
struct Section {
    kind: SectionKind,
    title: String,
    text: String,
}

/// Is a context within its budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltContext {
    /// The sections as one Markdown text, the most important first.
    pub text: String,
    /// The titles that are in it.
    pub included: Vec<String>,
    /// The title of the section that was cut, also among the included.
    pub cut: Option<String>,
    /// The titles that were left out.
    pub left_out: Vec<String>,
    /// How many tokens it has, as estimated.
    pub tokens: usize,
}

impl ContextBuilder {
    /// Begins a context of at most `budget_tokens`.
    pub fn new(budget_tokens: usize) -> Self {
        Self {
            budget_tokens,
            sections: Vec::new(),
        }
    }

    /// Adds a section; a blank one is left out. Sections of one kind keep their order.
    pub fn section(
        mut self,
        kind: SectionKind,
        title: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        let text = text.into();
        if !text.trim().is_empty() {
            self.sections.push(Section {
                kind,
                title: title.into(),
                text,
            });
        }
        self
    }

    /// Takes what fits, by importance; the first that does not fit is cut and the last one if it is important
    /// enough, else it is left out and smaller ones may still follow.
    pub fn build(mut self) -> BuiltContext {
        self.sections.sort_by_key(|section| section.kind);
        let mut built = BuiltContext {
            text: String::new(),
            included: Vec::new(),
            cut: None,
            left_out: Vec::new(),
            tokens: 0,
        };
        for section in &self.sections {
            if built.cut.is_some() || !self.admit(section, &mut built) {
                built.left_out.push(section.title.clone());
            }
        }
        built.tokens = estimate_tokens(&built.text);
        built
    }

    /// Adds a section, whole or cut; says whether anything of it is in.
    fn admit(&self, section: &Section, built: &mut BuiltContext) -> bool {
        let separator = if built.text.is_empty() { "" } else { "\n\n" };
        let heading = format!("{separator}## {}\n\n", section.title);
        // A token is four characters, so the budget in characters is exact.
        let used = built.text.chars().count() + heading.chars().count();
        let room = (self.budget_tokens * 4).saturating_sub(used);
        let body = section.text.trim_end();
        if body.chars().count() <= room {
            built.text.push_str(&heading);
            built.text.push_str(body);
        } else if section.kind.priority() > CUT_ABOVE {
            let kept = room.saturating_sub(CUT_MARK.len());
            if kept == 0 {
                built.cut = Some(section.title.clone());
                return false;
            }
            built.text.push_str(&heading);
            built.text.extend(body.chars().take(kept));
            built.text.push_str(CUT_MARK);
            built.cut = Some(section.title.clone());
        } else {
            return false;
        }
        built.included.push(section.title.clone());
        true
    }
}

/// Estimates the tokens of a text: a quarter of its characters, rounded up.
pub fn estimate_tokens(text: &str) -> usize {
    text.chars().count().div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use SectionKind::{Conventions, FullMemory, Gotchas, Readme, RecentMemory, Research, Task};

    /// Sizes are in characters with the heading; returns the kinds that are in, `~` marks the cut one.
    fn build(budget_tokens: usize, sections: &[(SectionKind, usize)]) -> String {
        let mut builder = ContextBuilder::new(budget_tokens);
        for (kind, size) in sections {
            let title = format!("{kind:?}");
            // Heading and separator take the title and seven characters.
            let text = "x".repeat(size - title.len() - 7);
            builder = builder.section(*kind, title, text);
        }
        let built = builder.build();
        assert!(built.tokens <= budget_tokens, "{built:?}");
        assert_eq!(built.included.len() + built.left_out.len(), sections.len());
        built
            .included
            .iter()
            .map(|title| {
                if built.cut.as_ref() == Some(title) {
                    format!("~{title}")
                } else {
                    title.clone()
                }
            })
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn the_most_important_sections_that_fit_are_taken() {
        type Case<'a> = (usize, &'a [(SectionKind, usize)], &'a str);
        let cases: [Case<'_>; 8] = [
            (100, &[(Readme, 40), (Task, 40)], "Task Readme"),
            (20, &[(Task, 40), (Gotchas, 40)], "Task Gotchas"),
            (20, &[(Task, 42), (Gotchas, 60)], "Task ~Gotchas"),
            // After a cut nothing follows, however small.
            (
                20,
                &[(Task, 42), (Conventions, 60), (Readme, 14)],
                "Task ~Conventions",
            ),
            // What is not important is left out whole, and a smaller one may follow.
            (
                20,
                &[(Task, 40), (RecentMemory, 60), (Research, 40)],
                "Task Research",
            ),
            (20, &[(Task, 40), (FullMemory, 60)], "Task"),
            (10, &[(Task, 100), (Readme, 20)], "~Task"),
            (0, &[(Task, 100)], ""),
        ];
        for (budget, sections, expected) in cases {
            assert_eq!(build(budget, sections), expected, "{budget} {sections:?}");
        }
    }

    #[test]
    fn priorities_fall_in_the_listed_order() {
        assert!(
            SectionKind::ALL
                .windows(2)
                .all(|pair| pair[0].priority() > pair[1].priority() && pair[0] < pair[1])
        );
    }

    #[test]
    fn a_context_reads_as_markdown_and_is_the_same_every_time() {
        let builder = ContextBuilder::new(1_000)
            .section(Gotchas, "Gotchas", "- mind the gap\n")
            .section(Research, "Research", "  \n")
            .section(Task, "Task", "Write it.");
        let built = builder.clone().build();
        assert_eq!(
            built.text,
            "## Task\n\nWrite it.\n\n## Gotchas\n\n- mind the gap"
        );
        assert_eq!(builder.build(), built);
    }
}
