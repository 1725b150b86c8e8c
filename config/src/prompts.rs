//! Holds the prompts of `prompts/*.md` and fills in their values.

use std::sync::Arc;

use minijinja::value::Serde;
use serde::Serialize;

use crate::error::ConfigError;
use crate::language::{in_one_line, prompt_environment};

/// The shipped files.
const FILES: [(&str, &str); 20] = [
    ("questioning.md", include_str!("../prompts/questioning.md")),
    ("repository.md", include_str!("../prompts/repository.md")),
    ("conventions.md", include_str!("../prompts/conventions.md")),
    ("ideation.md", include_str!("../prompts/ideation.md")),
    (
        "ideation-turn.md",
        include_str!("../prompts/ideation-turn.md"),
    ),
    (
        "ideation-exploring.md",
        include_str!("../prompts/ideation-exploring.md"),
    ),
    (
        "ideation-narrowing.md",
        include_str!("../prompts/ideation-narrowing.md"),
    ),
    (
        "ideation-validating.md",
        include_str!("../prompts/ideation-validating.md"),
    ),
    (
        "ideation-refining.md",
        include_str!("../prompts/ideation-refining.md"),
    ),
    (
        "ideation-complete.md",
        include_str!("../prompts/ideation-complete.md"),
    ),
    (
        "ideation-standing.md",
        include_str!("../prompts/ideation-standing.md"),
    ),
    (
        "specification.md",
        include_str!("../prompts/specification.md"),
    ),
    (
        "specification-idea.md",
        include_str!("../prompts/specification-idea.md"),
    ),
    ("build.md", include_str!("../prompts/build.md")),
    ("build-task.md", include_str!("../prompts/build-task.md")),
    ("compaction.md", include_str!("../prompts/compaction.md")),
    (
        "compaction-turn.md",
        include_str!("../prompts/compaction-turn.md"),
    ),
    (
        "compaction-memory.md",
        include_str!("../prompts/compaction-memory.md"),
    ),
    ("improvement.md", include_str!("../prompts/improvement.md")),
    (
        "improvement-build.md",
        include_str!("../prompts/improvement-build.md"),
    ),
];

/// A prompt; its documentation names the values that it must be given, absent ones as `null` or empty lists.
///
/// A system prompt holds what stays as it is from one request of its role to the next, so that a provider can keep it; what
/// changes is told in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Prompt {
    /// The system prompt of the ideation agent: `kind`, `repository` (`commit`, `branch`, `digest`, `recent`, `tools` (what it looks
    /// with), `project` with `stacks`, `tools`, `choices`, `gate`, `more_gate`, `setup`, `packages`, `hosts`), `ideas` (`slug`, `title`, `state`,
    /// `brief`), `conventions`, `wishes` (`text`, `files`), `submit_tool`.
    Ideation,
    /// What the ideation agent is told with each message: `phase` (as [`ropewalk_schemas::idea::Phase`] is written), `slug`, `kind`, `ending`,
    /// `confidence`, `artifacts`, `decisions` and `risks` (as in [`ropewalk_schemas::idea::Signals`]), `answers` (`question`,
    /// `answer`), `unanswered`, `idea` (`readme`, `target_users`), `progress` (`specification` with `id`, `state`, `told`, `build` with
    /// `id`, `state`, `rests`, `landed`, `told`, `questions` with `id`, `text`, `choices`), `phone` (whether the user has one that a bot
    /// reaches).
    IdeationTurn,
    /// The system prompt of the specification agent: `conventions`, `wishes`, `repository` and `ideas` (as for ideation),
    /// `stack` (a [`crate::StackProfile`]), `submit_tool`.
    Specification,
    /// What the specification agent is told of one idea: `idea`, `slug`, `attached`, `documents` (`path`, `text`), `missing_inputs`,
    /// `gotchas` and `patterns` (`text`), `feedback`, `complexity`, `most_tasks`, `migrations` (lines), `answers` (`question`,
    /// `answer`), `previous` (`number`, `text`), `standing` (`revision`, `place`, `state`, `tasks` and `said`, lines).
    SpecificationIdea,
    /// The system prompt of the build agent: `conventions` and `wishes` (as for ideation, those that hold for every task),
    /// `setup` (the line that makes checkouts ready), `package_managers`, `hosts` (those that commands reach), `submit_tool`, `tools` (the
    /// names of those that it has).
    Build,
    /// What the build agent is told about one task: `idea` (its title), `idea_context`, `spec_path`, `plan` (a
    /// [`ropewalk_schemas::specification::Document`]), `others` (`id`, `title`, `standing`, `files`), `more_others` (how many are not
    /// among these), `before` (`id`, `title`, `summary`, `changed`), `task` (a [`ropewalk_schemas::task::TaskBlock`]), `requirements`
    /// (`id`, `text`, `whole`, `acceptance`), `sizes` and `read_first` (`path`, `lines`, `bytes`, `outline`), `helpers` (of tests:
    /// `path`, `lines`, `signatures`), `gate` (commands), `conventions` and `wishes` (those of its files alone), `gotchas` (`text`),
    /// `failures` (`class`, `output`), `answers` (`question`, `answer`, `by`), `guidance`, `tools` and `budget` (lines), `made_ready`
    /// (what came of that), `resumed`, `earlier` (`summary`, `difference`).
    BuildTask,
    /// The system prompt of the improvement agent: `submit_tool`, `looks` (whether it can look into the repository).
    Improvement,
    /// What the improvement agent is told of one build: `build`, `outcome`, `plan`, `tasks` (`id`, `state`, `kept`, `summary`,
    /// `failures`, `asked` with `question`, `answer`, `by`, `at`), `diff` with `left_out` (how many of its files are named alone), `since`, `looks`, `known` (`kind`, `text`),
    /// `told` (`tasks`, `words`, `said`: who and when), `next` (`build`, `revision`, `tasks`), `former` (`class`, `place`, `planned`, `actual`).
    ImprovementBuild,
    /// The system prompt of the model that sums up a conversation; takes no values.
    Compaction,
    /// What that model is told: `task`, `summary` (the one before), `steps` (`who`, `text`).
    CompactionTurn,
    /// What an agent is told in place of older messages: `summary`, `read` and `changed` (files), `said` (what people said and
    /// answered), `verdict`.
    CompactionMemory,
    /// The module on questions that is part of the system prompt of every role that may ask; takes no values.
    Questioning,
}

impl Prompt {
    /// Lists every prompt.
    pub const ALL: &'static [Self] = &[
        Self::Ideation,
        Self::IdeationTurn,
        Self::Specification,
        Self::SpecificationIdea,
        Self::Build,
        Self::BuildTask,
        Self::Improvement,
        Self::ImprovementBuild,
        Self::Compaction,
        Self::CompactionTurn,
        Self::CompactionMemory,
        Self::Questioning,
    ];

    /// Returns the name of its file.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Ideation => "ideation.md",
            Self::IdeationTurn => "ideation-turn.md",
            Self::Specification => "specification.md",
            Self::SpecificationIdea => "specification-idea.md",
            Self::Build => "build.md",
            Self::BuildTask => "build-task.md",
            Self::Improvement => "improvement.md",
            Self::ImprovementBuild => "improvement-build.md",
            Self::Compaction => "compaction.md",
            Self::CompactionTurn => "compaction-turn.md",
            Self::CompactionMemory => "compaction-memory.md",
            Self::Questioning => "questioning.md",
        }
    }
}

/// Every prompt, ready to be filled in; cheap to clone.
#[derive(Debug, Clone)]
pub struct Prompts {
    environment: Arc<minijinja::Environment<'static>>,
}

/// Says that a prompt could not be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("prompt `{file}`: {reason}; give it the value")]
pub struct PromptError {
    /// The file.
    pub file: &'static str,
    /// What is missing or wrong.
    pub reason: String,
}

impl Prompts {
    /// Loads the shipped prompts.
    pub fn shipped() -> Result<Self, ConfigError> {
        let mut environment = prompt_environment().map_err(|error| broken("", &error))?;
        for (file, text) in FILES {
            environment
                .add_template(file, text)
                .map_err(|error| broken(file, &error))?;
        }
        let environment = Arc::new(environment);
        Ok(Self { environment })
    }

    /// Fills the values of `context` into `prompt`.
    pub fn render(&self, prompt: Prompt, context: &impl Serialize) -> Result<String, PromptError> {
        let file = prompt.file();
        self.environment
            .get_template(file)
            .and_then(|template| template.render(Serde(context)))
            .map(|text| text.trim().to_owned())
            .map_err(|error| PromptError {
                file,
                reason: in_one_line(&error),
            })
    }
}

fn broken(file: &str, error: &minijinja::Error) -> ConfigError {
    ConfigError::Shipped {
        file: format!("prompts/{file}"),
        reason: in_one_line(error),
    }
}

#[cfg(test)]
mod tests;
