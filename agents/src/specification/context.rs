//! Loads all that a specification is made of, before anything is asked (seed pipeline §4.2, §9.1 "eager").

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_config::stack::StackProfile;
use ropewalk_coordination::ownership;
use ropewalk_desk::attachments::kept::{self, KeptText};
use ropewalk_engine::AgentMode;
use ropewalk_gate::shell::Shell;
use ropewalk_knowledge::{Wish, wishes};
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::idea::{Idea, IdeaKind, Session};
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::specification::{Revision, Specification};
use ropewalk_schemas::task::Action;
use ropewalk_schemas::{BuildId, QuestionId, RepoPath, RequirementId, SpecId, TaskId};
use ropewalk_store::{Query, Store, Versioned, revision_key};

use super::price::TaskCost;
use super::standing::BaseBuild;
use super::validate::{EmptyRepository, Facts, SharedFile};
use super::{SpecificationOptions, migrations, sources, validate};
use crate::failure;
use crate::idea_folder::{IdeaFolder, is_blank};
use crate::repository::{self, FoundConventions, Look, OtherIdea};
use crate::withdrawal::Commission;

/// How many landed attempts the price rests on, the newest.
const HISTORY: u32 = 500;
/// How many calls of the build model the price of a token rests on, the newest.
const CALLS: u32 = 50;
/// How many lessons, and how many patterns, the model gets to read.
const LESSONS: usize = 40;

/// What there is to do about a specification.
pub(super) enum LoadOutcome {
    /// Nothing: somebody else did it, or it waits for an answer.
    Nothing,
    /// It cannot be made: these documents are missing.
    Missing(Box<Versioned<Specification>>, Vec<&'static str>),
    /// It can be made of this.
    Ready(Box<Material>),
}

/// A document of the idea folder, or a text that people attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    /// Its path in the folder.
    pub(super) path: String,
    /// What it says.
    pub(super) text: String,
}

/// What a specification is made of.
pub(super) struct Material {
    /// The specification, a draft.
    pub(super) spec: Versioned<Specification>,
    /// The idea.
    pub(super) idea: Idea,
    /// The idea folder.
    pub(super) folder: IdeaFolder,
    /// The documents that were read.
    pub(super) documents: Vec<Text>,
    /// The optional documents that are absent.
    pub(super) missing_inputs: Vec<String>,
    /// The conventions of the project.
    pub(super) conventions: Option<FoundConventions>,
    /// What people want of all work on it.
    pub(super) wishes: Vec<Wish>,
    /// The repository at the commit that is planned on.
    pub(super) look: Look,
    /// The other ideas about it.
    pub(super) ideas: Vec<OtherIdea>,
    /// The kind of project.
    pub(super) stack: StackProfile,
    /// Lessons of earlier builds, the surest first.
    pub(super) gotchas: Vec<KnowledgeItem>,
    /// Approaches that worked, for the topics of the idea.
    pub(super) patterns: Vec<KnowledgeItem>,
    /// What was asked and answered about this specification, oldest first.
    pub(super) answers: Vec<(String, String)>,
    /// The questions that were answered about it, of any kind.
    pub(super) answered: Vec<QuestionId>,
    /// The newest revision, when it is to be changed.
    pub(super) previous: Option<Revision>,
    /// What a plan is checked against.
    pub(super) facts: Facts,
    /// The build that keeps a file from those of this specification, by the key of the file.
    pub(super) owners: BTreeMap<String, BuildId>,
    /// What earlier tasks have cost.
    pub(super) history: Vec<TaskCost>,
}

/// Loads what the specification `id` is made of.
pub(super) async fn load(
    options: &SpecificationOptions,
    id: SpecId,
    context: &Context,
) -> Result<LoadOutcome, AgentError> {
    let store = &context.store;
    let Some(spec) = store.get::<Specification>(&id.to_string()).await? else {
        return Err(AgentError::permanent(format!(
            "there is no specification `{id}`"
        )));
    };
    let questions = ropewalk_desk::specifications::questions_about(store, &spec).await?;
    let commission = Commission::Draft(id, &spec.idea);
    if commission.is_withdrawn(store).await? || questions.iter().any(is_waited_for) {
        return Ok(LoadOutcome::Nothing);
    }
    let Some(idea) = store.get::<Idea>(spec.idea.as_str()).await? else {
        return Err(AgentError::permanent(format!(
            "there is no idea `{}`",
            spec.idea
        )));
    };
    let folder = IdeaFolder::new(options.places.idea_folder(&spec.user, &spec.idea));
    let (mut documents, missing) = documents(&folder)?;
    let absent: Vec<&'static str> = sources::REQUIRED
        .into_iter()
        .filter(|path| missing.contains(path))
        .collect();
    if !absent.is_empty() {
        return Ok(LoadOutcome::Missing(Box::new(spec), absent));
    }
    documents.extend(attached(options, store, &idea).await?);
    let standing = BaseBuild::load(store, id).await?;
    let look = look(options, standing.as_ref()).await?;
    // A path that cannot be spelled here cannot be planned for either.
    let files: Vec<RepoPath> = look
        .paths()
        .filter_map(|path| RepoPath::parse(path).ok())
        .collect();
    let lessons = lessons(store, &documents, options.lessons.minimum).await?;
    let stack = options
        .stacks
        .detect(&files)
        .cloned()
        .unwrap_or_else(no_stack);
    let previous = previous(store, &spec).await?;
    let facts = Facts {
        title: idea.title.clone(),
        small: idea.kind.is_some_and(IdeaKind::is_small),
        links: links(&look),
        standing,
        replaceable: previous.as_ref().map_or_else(BTreeSet::new, replaceable),
        ..facts(options, store, &spec, (&files, &stack)).await?
    };
    let ideas = repository::others(store, &options.places, &spec.idea).await?;
    let mut material = Material {
        previous,
        owners: owners(store, id).await?,
        history: history(store).await?,
        answers: questions.iter().filter_map(|row| answered(row)).collect(),
        answered: ids_of_answered(&questions),
        missing_inputs: missed(store, missing, &idea).await?,
        idea: idea.record,
        spec,
        folder,
        documents,
        conventions: options.repository.conventions(&look.commit).await?,
        wishes: wishes(store, |_| true).await?,
        ideas,
        look,
        stack,
        gotchas: lessons.gotchas,
        patterns: lessons.patterns,
        facts,
    };
    material.facts.empty = empty(&material);
    Ok(LoadOutcome::Ready(Box::new(material)))
}

/// Lists what the symbolic links lead to, by the key of their path.
fn links(look: &Look) -> BTreeMap<String, String> {
    let links = look.links().filter_map(|(link, target)| {
        let link = RepoPath::parse(link).ok()?;
        Some((link.key(), target.to_owned()))
    });
    links.collect()
}

/// Says what there is to choose among where there is no code yet, and what people said; once they saw what a plan builds with,
/// there is nothing to choose.
fn empty(material: &Material) -> Option<EmptyRepository> {
    let choices = material.look.choices();
    let mut seen = material.previous.iter();
    if choices.is_empty() || seen.any(|plan| validate::brings_code(&plan.tasks)) {
        return None;
    }
    let documents = material.documents.iter().map(|document| &document.text);
    let answers = material.answers.iter().map(|(_, answer)| answer);
    let conventions = material.conventions.iter().map(|found| &found.text);
    let wishes = material.wishes.iter().map(|wish| &wish.text);
    let said = documents.chain(answers).chain(conventions).chain(wishes);
    let said = said.chain(&material.spec.feedback);
    Some(EmptyRepository {
        choices: choices.to_vec(),
        said: said.chain([&material.idea.title]).cloned().collect(),
    })
}

/// Names the documents that an idea of its kind and way should have, and has not.
async fn missed(
    store: &Store,
    absent: Vec<&'static str>,
    idea: &Idea,
) -> Result<Vec<String>, AgentError> {
    let session = store.get::<Session>(&idea.session.to_string()).await?;
    let at_once = session.is_some_and(|session| sources::is_told_at_once(&session));
    if at_once || !sources::is_missed(idea.kind) {
        return Ok(Vec::new());
    }
    Ok(absent.into_iter().map(str::to_owned).collect())
}

/// Looks at what the next revision goes on from.
async fn look(
    options: &SpecificationOptions,
    standing: Option<&BaseBuild>,
) -> Result<Look, AgentError> {
    match standing.and_then(BaseBuild::head) {
        Some((head, branch)) => {
            let look = options
                .repository
                .look_at(AgentMode::Plan, head, Some(branch));
            look.await
        }
        None => options.repository.look(AgentMode::Plan).await,
    }
}

fn is_waited_for(question: &Versioned<Question>) -> bool {
    let blocking = question.kind == ropewalk_schemas::question::QuestionKind::Blocking;
    blocking && question.state == QuestionState::Pending
}

fn ids_of_answered(questions: &[Versioned<Question>]) -> Vec<QuestionId> {
    let answered = questions.iter().filter(|row| row.answer.is_some());
    answered.map(|row| row.id).collect()
}

fn answered(question: &Question) -> Option<(String, String)> {
    if question.consequential {
        return None;
    }
    Some((question.text.clone(), question.answer_in_full()?))
}

/// Reads the documents of the folder; what holds only placeholders counts as absent.
fn documents(folder: &IdeaFolder) -> Result<(Vec<Text>, Vec<&'static str>), AgentError> {
    let mut found = Vec::new();
    let mut absent = Vec::new();
    for path in sources::REQUIRED.into_iter().chain(sources::OPTIONAL) {
        match folder
            .read(path)
            .map_err(|error| failure::of_folder(&error))?
        {
            Some(text) if !is_blank(&text) => found.push(Text {
                path: path.to_owned(),
                text,
            }),
            _ => absent.push(path),
        }
    }
    Ok((found, absent))
}

/// Reads the texts that people attached.
async fn attached(
    options: &SpecificationOptions,
    store: &Store,
    idea: &Idea,
) -> Result<Vec<Text>, AgentError> {
    let texts = kept::texts(store, &options.places.state, idea).await?;
    let texts = texts.into_iter();
    Ok(texts
        .map(|KeptText { path, text }| Text { path, text })
        .collect())
}

struct Lessons {
    gotchas: Vec<KnowledgeItem>,
    patterns: Vec<KnowledgeItem>,
}

async fn lessons(store: &Store, documents: &[Text], minimum: f64) -> Result<Lessons, AgentError> {
    let found = store
        .list::<KnowledgeItem>(Query::new().equal("kind", "gotcha"))
        .await?;
    let mut gotchas: Vec<KnowledgeItem> = found
        .into_iter()
        .map(Versioned::into_inner)
        .filter(|item| item.may_be_told() && item.confidence >= minimum)
        .collect();
    gotchas.sort_by(|one, other| {
        other
            .confidence
            .total_cmp(&one.confidence)
            .then(one.id.cmp(&other.id))
    });
    gotchas.truncate(LESSONS);
    let topics = documents
        .first()
        .map(|readme| sources::topics(&readme.text))
        .unwrap_or_default();
    let patterns = ropewalk_knowledge::patterns(store, &topics, minimum, LESSONS).await?;
    Ok(Lessons {
        gotchas,
        patterns: patterns.into_iter().map(Versioned::into_inner).collect(),
    })
}

/// A project of a kind that nobody described: phases in the usual order, and no advice about files.
fn no_stack() -> StackProfile {
    let phases = [
        "project", "database", "types", "queries", "api", "ui", "tests",
    ];
    StackProfile {
        name: "not recognised".to_owned(),
        title: "A project of its own kind".to_owned(),
        detect: Vec::new(),
        any: Vec::new(),
        bare: Vec::new(),
        holds: Vec::new(),
        tools: Vec::new(),
        checks: Vec::new(),
        phases: phases.map(str::to_owned).to_vec(),
        kinds: Vec::new(),
        shared: Vec::new(),
    }
}

async fn facts(
    options: &SpecificationOptions,
    store: &Store,
    spec: &Specification,
    (files, stack): (&[RepoPath], &StackProfile),
) -> Result<Facts, AgentError> {
    let mut migrations = migrations::taken(files);
    for (directory, numbers) in migrations::taken(&planned_elsewhere(store, spec).await?) {
        migrations.entry(directory).or_default().extend(numbers);
    }
    Ok(Facts {
        title: String::new(),
        small: false,
        existing: Some(files.iter().map(RepoPath::key).collect()),
        links: BTreeMap::new(),
        idea_folder: Some(RepoPath::of_idea(&spec.idea)),
        phases: stack.phases.clone(),
        complexity: Some(spec.complexity),
        shared: stack
            .shared
            .iter()
            .map(|shared| SharedFile {
                path: shared.path.clone(),
                after: shared.after.clone(),
            })
            .collect(),
        migrations,
        no_pipelines: options.shell == Shell::Plain,
        own_runner: options.own_runner,
        installers: options
            .gate
            .package_managers
            .iter()
            .map(|manager| manager.as_str().to_owned())
            .collect(),
        empty: None,
        standing: None,
        replaceable: BTreeSet::new(),
    })
}

/// Lists the requirements of a revision, and those whose place they took.
fn replaceable(revision: &Revision) -> BTreeSet<RequirementId> {
    let document = &revision.document;
    let all = document.all_requirements();
    all.flat_map(|one| [Some(one.id.clone()), one.replaces.clone()])
        .flatten()
        .collect()
}

/// Lists the files that other specifications create, built or not, so that two plans get no migration of one number.
async fn planned_elsewhere(
    store: &Store,
    spec: &Specification,
) -> Result<Vec<RepoPath>, AgentError> {
    let others = store
        .list::<Specification>(Query::new().one_of("state", ["generated", "approved"]))
        .await?;
    let mut files = Vec::new();
    for other in others
        .iter()
        .filter(|other| other.id != spec.id && other.revision > 0)
    {
        let Some(revision) = store
            .get::<Revision>(&revision_key(other.id, other.revision))
            .await?
        else {
            continue;
        };
        let created = revision
            .record
            .tasks
            .into_iter()
            .filter(|task| task.action == Action::Create);
        files.extend(created.map(|task| task.file));
    }
    Ok(files)
}

pub(super) async fn previous(
    store: &Store,
    spec: &Specification,
) -> Result<Option<Revision>, AgentError> {
    if spec.revision == 0 {
        return Ok(None);
    }
    let key = revision_key(spec.id, spec.revision);
    Ok(store
        .get::<Revision>(&key)
        .await?
        .map(Versioned::into_inner))
}

/// Finds whose files are that a build of `spec` would have to wait for: what its own builds hold goes on to the next one.
async fn owners(store: &Store, spec: SpecId) -> Result<BTreeMap<String, BuildId>, AgentError> {
    let live = ownership::live(store).await?.into_iter();
    let others = live.filter(|(_, owner)| owner.spec != spec);
    Ok(others.map(|(path, owner)| (path.key(), owner.id)).collect())
}

/// Adds up what each landed task has used over all its attempts.
async fn history(store: &Store) -> Result<Vec<TaskCost>, AgentError> {
    let attempts = Query::new().order_by("key").descending().limit(HISTORY);
    let mut tasks: BTreeMap<(BuildId, TaskId), (u64, bool)> = BTreeMap::new();
    for attempt in store.list::<Attempt>(attempts).await? {
        let task = tasks
            .entry((attempt.build, attempt.task.clone()))
            .or_default();
        task.0 = task.0.saturating_add(attempt.tokens);
        task.1 |= attempt.state == AttemptState::Landed;
    }
    let calls = Query::new()
        .equal("role", "build")
        .order_by("at")
        .descending()
        .limit(CALLS);
    let price = TokenPrice::of(&store.list::<ModelCall>(calls).await?);
    let landed = tasks
        .into_values()
        .filter(|(tokens, landed)| *landed && *tokens > 0);
    Ok(landed
        .map(|(tokens, _)| TaskCost {
            tokens,
            micro_usd: price.of_tokens(tokens),
        })
        .collect())
}

/// What tokens have cost: dollars over tokens, unknown as soon as the price of one call is.
struct TokenPrice {
    micro_usd: Option<u64>,
    tokens: u64,
}

impl TokenPrice {
    fn of(calls: &[Versioned<ModelCall>]) -> Self {
        Self {
            micro_usd: calls.iter().map(|call| call.micro_usd).sum(),
            tokens: calls
                .iter()
                .map(|call| call.input_tokens + call.output_tokens)
                .sum(),
        }
    }

    fn of_tokens(&self, tokens: u64) -> Option<u64> {
        let total = u128::from(self.micro_usd?) * u128::from(tokens);
        u64::try_from(total.checked_div(u128::from(self.tokens))?).ok()
    }
}
