//! Gathers what a task's prompt holds beside the task: what was approved, who else works on it, and what stands by now.

use ropewalk_desk::builds::landed_up_to;
use ropewalk_engine::conventions::{Conventions, MOST_BYTES};
use ropewalk_engine::outline::{Language, outline_with_imports, render_within};
use ropewalk_gate::checks::Gate;
use ropewalk_knowledge::wishes::{Wish, concerns, wishes};
use ropewalk_schemas::amount::and_more;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::clip;
use ropewalk_schemas::document::without_mark;
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::specification::{Document, Revision};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{CommitId, HostPattern, RepoPath, TaskId};
use ropewalk_store::revision_key;
use ropewalk_workspace::ChangedLines;
use serde::Serialize;

use super::super::candidate::LaidWork;
use super::super::work::Work;
use super::helpers::{self, TestHelper};
use crate::context::Plan;
use crate::error::BuilderError;

/// So much of the idea's own text is told; the whole lies in the checkout.
const IDEA_LETTERS: usize = 4_000;
/// So many of the other tasks are named.
const OTHERS: usize = 60;
/// So many changed files of a finished task are named.
const CHANGED: usize = 24;
/// A file of so many lines is outlined.
const OUTLINED_LINES: usize = 120;
/// So much of one outline is told.
const OUTLINE_BYTES: usize = 16 * 1024;
/// So much of all outlines together.
const OUTLINES_BYTES: usize = 32 * 1024;
/// With less room than this an outline says nothing.
const LEAST_OUTLINE: usize = 200;

/// What a prompt is made of beside the task.
pub(in crate::attempt) struct Background {
    /// What holds for every task of the build.
    pub(in crate::attempt) common: Customs,
    /// What holds for the files of the task alone.
    pub(in crate::attempt) own: Customs,
    /// What the idea is about.
    pub(in crate::attempt) idea: String,
    /// Where the whole specification lies in the checkout; none where it did not come along with the code.
    pub(in crate::attempt) spec_path: Option<String>,
    /// What a person approved; none where a store of before holds no revision.
    pub(in crate::attempt) document: Option<Document>,
    /// The other tasks of the build, in the order of the plan; of too many those first that wait for this one, or it for them.
    pub(in crate::attempt) others: Vec<OtherTask>,
    /// How many are not named.
    pub(in crate::attempt) more_others: Option<String>,
    /// What the tasks did that had to be complete before this one.
    pub(in crate::attempt) before: Vec<FinishedTask>,
    /// How large the files of the task are by now.
    pub(in crate::attempt) sizes: Vec<Size>,
    /// And those that it has to read first.
    pub(in crate::attempt) read_first: Vec<Size>,
    /// What the tests beside those of the task stand on.
    pub(in crate::attempt) helpers: Vec<TestHelper>,
    /// What the gate runs beside the task's own check.
    pub(in crate::attempt) gate: Vec<String>,
    /// The line that makes each checkout ready, at the build's base.
    pub(in crate::attempt) setup: Option<String>,
    /// The hosts that commands reach beside their own loopback.
    pub(in crate::attempt) hosts: Vec<HostPattern>,
    /// The tools of the project that this machine has, with their versions.
    pub(in crate::attempt) tools: Vec<String>,
    /// What may still be used, a line each.
    pub(in crate::attempt) budget: Vec<String>,
    /// What came of making the checkout ready, if there was anything to do.
    pub(in crate::attempt) made_ready: Option<String>,
    /// Whether the checkout holds work of an earlier conversation.
    pub(in crate::attempt) resumed: bool,
    /// What an earlier conversation about the task came to.
    pub(in crate::attempt) earlier: Option<EarlierWork>,
    /// What earlier conversations about the task asked people, with what these answered.
    pub(in crate::attempt) answers: Vec<AnsweredQuestion>,
    /// What people allowed the task to change, a line each.
    pub(in crate::attempt) permissions: Vec<String>,
}

/// What people wrote and said of all work on some files.
#[derive(Debug, Default)]
pub(in crate::attempt) struct Customs {
    /// The conventions, at the build's base.
    pub(in crate::attempt) conventions: Option<String>,
    /// What people want.
    pub(in crate::attempt) wishes: Vec<Wish>,
}

/// What an earlier conversation about a task left.
pub(in crate::attempt) struct EarlierWork {
    /// What its agent said it did.
    pub(in crate::attempt) summary: Option<String>,
    /// What it changed.
    pub(in crate::attempt) difference: String,
}

/// What was asked about a task, and what somebody answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::attempt) struct AnsweredQuestion {
    pub(in crate::attempt) question: String,
    pub(in crate::attempt) answer: String,
    /// Who answered.
    pub(in crate::attempt) by: String,
}

/// Another task of the build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::attempt) struct OtherTask {
    id: TaskId,
    title: String,
    standing: &'static str,
    /// Those of its files that the title does not name.
    files: Vec<RepoPath>,
}

/// What a finished task did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::attempt) struct FinishedTask {
    id: TaskId,
    title: String,
    /// In the words of its agent.
    summary: Option<String>,
    /// The files that its commit changed, each with how many lines came and went.
    changed: Vec<String>,
}

/// A file and what it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::attempt) struct Size {
    path: String,
    /// None where it is not there yet.
    lines: Option<usize>,
    bytes: usize,
    /// What it defines, where it is long and in a language that can be outlined.
    outline: Option<String>,
}

impl Size {
    fn of(path: &str, content: Option<&[u8]>) -> Self {
        let count = |bytes: &[u8]| bytes.split(|byte| *byte == b'\n').count() - 1;
        Self {
            path: path.to_owned(),
            lines: content.map(count),
            bytes: content.map_or(0, <[u8]>::len),
            outline: None,
        }
    }
}

impl Background {
    /// Gathers it for the task of an attempt.
    pub(in crate::attempt) async fn load(work: &Work<'_>) -> Result<Self, BuilderError> {
        let build = &work.claim.build;
        let plan = Plan::load(&work.context.store, build.id).await?;
        let tasks = plan.map_or_else(Vec::new, |plan| plan.records());
        let own = &work.claim.task;
        let texts = texts(work).await?;
        let [of_all, of_files] = wanted(work).await?;
        let (sizes, read_first) = sizes(work, None).await?;
        let (others, more_others) = others(&tasks, own);
        let gate = work.shared.gate.gate_at(build.base.as_ref()).await?;
        let egress = work.shared.runner.egress();
        Ok(Self {
            common: Customs {
                conventions: texts.common,
                wishes: of_all,
            },
            own: Customs {
                conventions: texts.near,
                wishes: of_files,
            },
            idea: texts.idea,
            spec_path: texts.spec_path,
            document: document(work, build).await?,
            others,
            more_others,
            before: before(work, &tasks).await?,
            sizes,
            read_first,
            helpers: helpers::find(work).await?,
            gate: commands(&gate),
            setup: gate.setup.clone(),
            hosts: egress.map_or_else(Vec::new, |egress| egress.hosts.clone()),
            tools: Vec::new(),
            budget: Vec::new(),
            made_ready: None,
            resumed: false,
            earlier: None,
            answers: Vec::new(),
            permissions: Vec::new(),
        })
    }
}

impl Background {
    /// Tells of files as they are with the work of an earlier conversation.
    pub(in crate::attempt) async fn resume(
        &mut self,
        work: &Work<'_>,
        laid: &LaidWork,
    ) -> Result<(), BuilderError> {
        self.resumed = true;
        (self.sizes, self.read_first) = sizes(work, Some(laid)).await?;
        Ok(())
    }
}

/// Returns what people want of all work, and what they want of work such as that of the task: the former is the same for every task.
async fn wanted(work: &Work<'_>) -> Result<[Vec<Wish>; 2], BuilderError> {
    let block = &work.claim.task.block;
    let store = &work.context.store;
    let files: Vec<&RepoPath> = block.files().collect();
    let is_of_all = |item: &KnowledgeItem| item.globs.is_empty() && item.action.is_none();
    let is_of_it = |item: &KnowledgeItem| !is_of_all(item) && concerns(item, &files, block.action);
    Ok([
        wishes(store, is_of_all).await?,
        wishes(store, is_of_it).await?,
    ])
}

/// Names the other tasks, and says how many are left out. Where some are, those come first that wait for this one, or it for them.
fn others(tasks: &[Task], own: &Task) -> (Vec<OtherTask>, Option<String>) {
    let others = tasks.iter().filter(|task| task.id != own.id);
    let mut others: Vec<&Task> = others.collect();
    let all = others.len();
    if all > OTHERS {
        let needs = |task: &Task, other: &Task| task.block.depends_on.contains(&other.id);
        others.sort_by_key(|task| !needs(task, own) && !needs(own, task));
    }
    let told = others.into_iter().take(OTHERS).map(|task| OtherTask {
        id: task.id.clone(),
        title: task.block.in_words(),
        standing: standing(task.state),
        files: match task.block.title() {
            Some(_) => task.block.files().cloned().collect(),
            None => task.block.more_files.clone(),
        },
    });
    (told.collect(), and_more(all, OTHERS))
}

/// Says how far another task is. What comes and goes while it is worked on is left out: a conversation that is taken up again should
/// begin as it began.
const fn standing(state: TaskState) -> &'static str {
    match state {
        TaskState::Complete => "done",
        TaskState::Skipped => "left out",
        TaskState::Failed | TaskState::Blocked => "failed so far",
        _ => "not done yet",
    }
}

async fn document(work: &Work<'_>, build: &Build) -> Result<Option<Document>, BuilderError> {
    let key = revision_key(build.spec, build.revision);
    let revision = work.context.store.get::<Revision>(&key).await?;
    Ok(revision.map(|revision| revision.into_inner().document))
}

/// What people wrote that stands in the repository.
struct Texts {
    /// The conventions of the whole.
    common: Option<String>,
    /// Those of the files of the task.
    near: Option<String>,
    /// What the idea is about.
    idea: String,
    /// Where the specification lies.
    spec_path: Option<String>,
}

/// Reads the conventions of the whole, those of the files of the task, and the idea, in one go as far as nothing leads on.
async fn texts(work: &Work<'_>) -> Result<Texts, BuilderError> {
    let (head, claim) = (&work.base(), work.claim);
    let base = claim.build.base.as_ref().unwrap_or(&claim.base);
    let folder = RepoPath::of_idea(&claim.build.idea);
    let documents = ["planning/brief.md", "README.md", "problem-solution.md"]
        .map(|name| format!("{folder}/{name}"));
    // The folder does not travel where a file of the user is in its place.
    let spec_path = format!("{folder}/build/spec.md");
    let mut whole = Conventions::of_the_whole();
    let mut near = Conventions::beside(claim.task.block.files());
    let (of_whole, of_near) = (whole.wanted(), near.wanted());
    let paths = of_whole.iter().chain(&of_near);
    let mut places: Vec<(&CommitId, &str)> = paths.map(|path| (base, path.as_str())).collect();
    places.extend(documents.iter().map(|path| (head, path.as_str())));
    // Whether it is there comes with the rest: to ask for that alone would be one more call of git.
    places.push((head, spec_path.as_str()));
    let mut read = work.shared.clone.read_places(&places).await?;
    let mut ideas = read.split_off(of_whole.len() + of_near.len());
    let spec = ideas.pop().flatten();
    let beside = read.split_off(of_whole.len());
    whole.take(read);
    read_on(work, base, &mut whole).await?;
    near.leave_to(&whole);
    near.take(beside);
    read_on(work, base, &mut near).await?;
    let [common, near] = [whole, near].map(|found| found.told().map(|told| told.clipped()));
    let idea = ideas.into_iter().flatten().next();
    Ok(Texts {
        common,
        near,
        idea: idea.map_or_else(String::new, |bytes| {
            let whole = String::from_utf8_lossy(&bytes);
            clip::lines(without_mark(&whole).trim(), IDEA_LETTERS).into_owned()
        }),
        spec_path: spec.map(|_| spec_path),
    })
}

/// Measures the files of the task, and those that it reads first, as they lie in the checkout: as the base has them, or as kept work
/// that was laid over it.
async fn sizes(
    work: &Work<'_>,
    laid: Option<&LaidWork>,
) -> Result<(Vec<Size>, Vec<Size>), BuilderError> {
    let block = &work.claim.task.block;
    let mut files: Vec<&str> = block.files().map(RepoPath::as_str).collect();
    let own = files.len();
    let before = block.read_first.iter().map(RepoPath::as_str);
    // What it changes is told once.
    let before: Vec<&str> = before.filter(|path| !files.contains(path)).collect();
    files.extend(before);
    let base = work.base();
    let places = files.iter().map(|path| {
        let at = laid.map_or(&base, |laid| match laid.others.get(*path) {
            None => &laid.commit,
            Some(at) => at.as_ref().unwrap_or(&base),
        });
        (at, *path)
    });
    let places: Vec<(&CommitId, &str)> = places.collect();
    let contents = work.shared.clone.read_places(&places).await?;
    let files = files.into_iter().map(str::to_owned).zip(contents);
    let mut sizes = outlined(files.collect()).await;
    // Nothing was measured where that broke.
    let read_first = sizes.split_off(own.min(sizes.len()));
    Ok((sizes, read_first))
}

/// Reads what the conventions that were read name.
async fn read_on(
    work: &Work<'_>,
    base: &CommitId,
    written: &mut Conventions,
) -> Result<(), BuilderError> {
    loop {
        let wanted = written.wanted();
        if wanted.is_empty() {
            return Ok(());
        }
        let clone = &work.shared.clone;
        written.take(clone.read_small_files(base, &wanted, MOST_BYTES).await?);
    }
}

/// Measures files, and outlines those that nobody reads whole; nothing is told where that breaks.
async fn outlined(files: Vec<(String, Option<Vec<u8>>)>) -> Vec<Size> {
    // Parsing a long file takes a while and must not hold up everybody else.
    let measured = tokio::task::spawn_blocking(move || measure(&files));
    measured.await.unwrap_or_default()
}

fn measure(files: &[(String, Option<Vec<u8>>)]) -> Vec<Size> {
    let mut room = OUTLINES_BYTES;
    let mut sizes = Vec::new();
    for (path, content) in files {
        let content = content.as_deref();
        let mut size = Size::of(path, content);
        if size.lines.is_some_and(|lines| lines >= OUTLINED_LINES) {
            size.outline = outline_of(path, content, room.min(OUTLINE_BYTES));
            room -= size.outline.as_ref().map_or(0, String::len);
        }
        sizes.push(size);
    }
    sizes
}

fn outline_of(path: &str, content: Option<&[u8]>, most: usize) -> Option<String> {
    let source = String::from_utf8_lossy(content?);
    let symbols = outline_with_imports(Language::of(path)?, &source).ok()?;
    (!symbols.is_empty() && most > LEAST_OUTLINE).then(|| render_within(&symbols, most, usize::MAX))
}

/// Tells what the tasks did on which this one rests.
async fn before(work: &Work<'_>, tasks: &[Task]) -> Result<Vec<FinishedTask>, BuilderError> {
    let needed = &work.claim.task.block.depends_on;
    let done: Vec<&Task> = tasks
        .iter()
        .filter(|task| task.state == TaskState::Complete && needed.contains(&task.id))
        .collect();
    if done.is_empty() {
        return Ok(Vec::new());
    }
    // A task may have been done in a build before.
    let landed = landed_up_to(&work.context.store, &work.claim.build).await?;
    let said = |task: &Task| landed.get(&task.id)?.summary.as_deref();
    let mut told = Vec::new();
    for task in done {
        told.push(FinishedTask {
            id: task.id.clone(),
            title: task.block.in_words(),
            summary: said(task).map(|said| said.trim().to_owned()),
            changed: changed(work, task.commit.as_ref()).await?,
        });
    }
    Ok(told)
}

async fn changed(work: &Work<'_>, commit: Option<&CommitId>) -> Result<Vec<String>, BuilderError> {
    let Some(commit) = commit else {
        return Ok(Vec::new());
    };
    let clone = &work.shared.clone;
    let files = clone
        .changed_lines(&format!("{commit}^"), commit.as_str())
        .await?;
    let told = |file: &ChangedLines| match file.lines {
        Some((came, went)) => format!("{} (+{came} -{went})", file.path),
        None => format!("{} (no text)", file.path),
    };
    let mut names: Vec<String> = files.iter().take(CHANGED).map(told).collect();
    names.extend(and_more(files.len(), CHANGED));
    Ok(names)
}

/// Lists what the gate of a task runs beside the task's own check.
fn commands(gate: &Gate) -> Vec<String> {
    let checks = gate.up_to(gate.task_level);
    checks.map(|check| check.command.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::{OTHERS, OUTLINE_BYTES, OUTLINES_BYTES, TaskState, measure, others};
    use crate::decide::fixture::task;

    #[test]
    fn of_too_many_tasks_the_nearest_are_named_first_and_the_rest_is_counted() {
        let own = task("T-1", TaskState::Working, &["T-70"]);
        let mut tasks = vec![own.clone()];
        for number in 2..=70 {
            let needs: &[&str] = if number == 69 { &["T-1"] } else { &[] };
            tasks.push(task(&format!("T-{number}"), TaskState::Ready, needs));
        }
        let (told, more) = others(&tasks, &own);
        let ids: Vec<&str> = told.iter().map(|other| other.id.as_str()).collect();
        assert_eq!(ids[..3], ["T-69", "T-70", "T-2"]);
        assert_eq!((ids.len(), more.as_deref()), (OTHERS, Some("and 9 more")));
        let (told, more) = others(&tasks[..=OTHERS], &own);
        let first = told.first().map(|other| other.id.as_str());
        assert_eq!((told.len(), first, more), (OTHERS, Some("T-2"), None));
    }

    #[test]
    fn long_files_are_outlined_as_far_as_there_is_room() {
        let functions = |count: usize| {
            let one =
                |number| format!("def function_number_{number}(argument):\n    return argument\n");
            (0..count).map(one).collect::<String>().into_bytes()
        };
        let files = [
            ("short.py", functions(10)),
            ("long.py", functions(70)),
            ("longest.py", functions(1_000)),
            ("second.py", functions(1_000)),
            ("third.py", functions(1_000)),
            ("text.txt", functions(70)),
        ];
        let files = files.map(|(path, content)| (path.to_owned(), Some(content)));
        let sizes = measure(&files);
        let told = |place: usize| sizes[place].outline.as_deref();
        assert_eq!((told(0), told(5)), (None, None), "too short, and no code");
        let long = told(1).unwrap();
        assert!(long.starts_with("1-2  def function_number_0(argument)\n"));
        assert!(long.ends_with("139-140  def function_number_69(argument)\n"));
        let longest = told(2).unwrap();
        assert!(
            longest.len() <= OUTLINE_BYTES && longest.ends_with(" more]\n"),
            "{longest}"
        );
        let all: usize = (0..sizes.len()).filter_map(told).map(str::len).sum();
        assert!(all <= OUTLINES_BYTES && told(4).is_none(), "{all}");
        assert_eq!(sizes[2].lines, Some(2_000));
    }
}
