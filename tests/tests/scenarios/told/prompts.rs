//! The page that shows one real prompt of each role is what a provider was told, and says where each part comes from.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use chrono::{DateTime, NaiveDate};

use super::{Request, Role, model, told};

/// The variable that lets the page be written anew.
const UPDATE: &str = "UPDATE_TABLES";

/// Each heading with the place that it comes from; a heading that begins so counts.
pub(super) const ORIGINS: [(&str, &str); 67] = [
    (
        "The Repository",
        "the head of the default branch: `agents/src/repository/`, `gate/src/project.rs`",
    ),
    ("Response Guidelines", "`config/prompts/ideation.md`"),
    ("Recording What You Learned", "`config/prompts/ideation.md`"),
    (
        "Proactive Questioning",
        "`config/prompts/questioning.md`, for roles whose submission has a `question`",
    ),
    ("When to Ask Questions", "`config/prompts/questioning.md`"),
    ("When NOT to Ask", "`config/prompts/questioning.md`"),
    (
        "The User Is Done",
        "`config/prompts/ideation-turn.md`, where the person ended the conversation",
    ),
    (
        "What Is Still Open",
        "`config/prompts/ideation-turn.md`, for a fix, a feature or a tool, which need no phases",
    ),
    (
        "Phase: ",
        "`config/prompts/ideation-<phase>.md`, by the phase of the session",
    ),
    ("What We Know So Far", "the artifacts of the session"),
    ("What the User Decided", "the decisions of the session"),
    ("Risks Found", "the risks of the session"),
    (
        "Questions That Are Answered",
        "the questions of the session",
    ),
    ("Idea Context", "README and target users in the idea folder"),
    (
        "Where the Idea Stands",
        "its specification, build, landing and open questions as they are stored: `desk/src/views/idea/progress.rs`; what the user says on the phone, where a bot reaches that",
    ),
    ("Rules", "`config/prompts/specification.md`"),
    (
        "Project Conventions",
        "`CLAUDE.md`, else `AGENTS.md`, of the repository, followed by what it names as `@path`",
    ),
    (
        "What People Want Here",
        "preferences, conventions and decisions that were confirmed (`ropewalk knowledge add --kind preference`); for who builds those of all work",
    ),
    (
        "Conventions of Your Files",
        "`CLAUDE.md`, else `AGENTS.md`, beside and above the files of the task, the nearest first, each followed by what it names as `@path`",
    ),
    (
        "What People Want of Such Work",
        "the same for the files of the task, or for what it does (`--file GLOB`, `--action ACTION`)",
    ),
    (
        "Stack: ",
        "`config/stacks/`, found by the files of the repository",
    ),
    (
        "Idea: ",
        "the documents of the idea folder, as far as they fit",
    ),
    ("Known Gotchas", "lessons that fit the topics of the idea"),
    (
        "Patterns That Worked Here",
        "lessons that fit the topics of the idea",
    ),
    ("Requested Changes", "what people want changed"),
    (
        "Answered Questions",
        "what was asked about the specification, where no conversation goes on with it",
    ),
    ("Revision ", "the revision that is to be changed"),
    (
        "What Was Built of Revision ",
        "the build of the revision before, as it stands now, with what the agents of complete tasks said",
    ),
    (
        "What People Said to the Build",
        "words and answers to the tasks of that build",
    ),
    (
        "How You Work",
        "`config/prompts/build.md`, with `[build] setup`, who may install packages, and the hosts that are reached",
    ),
    (
        "The Idea: ",
        "title and objective of the approved specification, brief or README of the idea",
    ),
    ("Interfaces", "the approved specification"),
    ("Data", "the approved specification"),
    ("Out of Scope", "the approved specification"),
    ("Files to Leave Alone", "the approved specification"),
    (
        "The Other Tasks",
        "the tasks of the build as they stand now",
    ),
    (
        "What Your Task Builds On",
        "summary and commit of the tasks that this one depends on",
    ),
    ("BUILD TASK: ", "the block of the task"),
    (
        "Action",
        "the block of the task, and its files at the head of the build",
    ),
    ("Read First", "the block of the task"),
    ("Must Stay as It Is", "the block of the task"),
    (
        "Requirements",
        "the block of the task, joined with the approved specification",
    ),
    ("Gotchas (", "lessons that match the files of the task now"),
    ("Code Template (", "the block of the task"),
    ("Notes", "the block of the task"),
    (
        "What Went Wrong Before",
        "the failures of earlier tries, but those that the conversation itself holds",
    ),
    ("Try ", "a failure"),
    (
        "What Was Asked and Answered",
        "questions of earlier conversations about the task, and what people answered",
    ),
    (
        "Advice From People",
        "what people said to the task before its conversation began",
    ),
    (
        "Tools on This Machine",
        "the stacks at the base of the build, asked on this machine",
    ),
    (
        "Budget Left",
        "`[build] turns` and `[budget]`, less what was used",
    ),
    (
        "Made Ready",
        "what `[build] setup` at the base of the build and the package managers did in the checkout",
    ),
    ("Earlier Work", "the work that the attempt goes on from"),
    (
        "What Was Tried Before",
        "summary and difference of an earlier conversation about the task",
    ),
    (
        "Validation",
        "the block of the task, and `[gate]` at the base of the build",
    ),
    (
        "What Happened So Far",
        "`config/prompts/compaction-memory.md`, in place of older messages",
    ),
    (
        "Your List of What Is to Be Done",
        "the list that the model keeps, where older messages made room",
    ),
    (
        "Said and Answered, Word for Word",
        "words of people in older messages",
    ),
    (
        "The Last Verdict on Your Work",
        "what the gate said last, where older messages made room",
    ),
    ("What to Find", "`config/prompts/improvement.md`"),
    ("Build: ", "the build and its outcome"),
    (
        "The Plan",
        "requirements, what is left out, interfaces and tasks of the approved specification",
    ),
    (
        "Tasks",
        "the tasks with their failures, what their agents said, and what people said, who of them and when",
    ),
    (
        "The Review Before",
        "the review of an earlier end, or of the build that this one goes on from",
    ),
    (
        "What Changed",
        "the difference from the base of the build to its head",
    ),
    ("Known Already", "the latest lessons"),
    ("T-", "a task"),
];

fn title(role: Role) -> &'static str {
    match role {
        Role::Ideation => "Ideation",
        Role::Specification => "Specification",
        Role::Build => "Build",
        Role::Review => "Review",
    }
}

/// Returns the request that is shown of a role: one that holds as much as possible.
fn shown(requests: &[&Request], role: Role) -> Option<usize> {
    let is_it = |request: &&&Request| match role {
        // The one before had nothing but a result to tell, and the first one nothing of the session.
        Role::Ideation => {
            let last = request.messages().last().map(Request::said);
            last.is_some_and(|said| said.contains(model::LINE.trim()))
        }
        Role::Build => Request::said(&request.messages()[0]).contains("# BUILD TASK: T-002"),
        Role::Specification | Role::Review => true,
    };
    requests.iter().position(|request| is_it(&request))
}

/// Lists the headings of a text outside of documents and code, but not the names of documents.
pub(super) fn headings(text: &str) -> Vec<&str> {
    let mut quoted = false;
    let mut headings = Vec::new();
    for line in text.lines() {
        match line {
            "<document>" => quoted = true,
            "</document>" => quoted = false,
            _ if line.starts_with("```") => quoted = !quoted,
            _ if quoted
                || !line.starts_with('#')
                || Path::new(line)
                    .extension()
                    .is_some_and(|ending| ending == "md") => {}
            _ => headings.push(line.trim_start_matches('#').trim()),
        }
    }
    headings
}

/// Puts a name in the place of what is something else in every run or on every machine.
fn steady(text: &str) -> String {
    let mut steady = String::new();
    for line in text.lines() {
        let line = match line.split_once(": ") {
            Some((lead @ "Tools on this machine", _)) => format!("{lead}: (each with its version)"),
            _ if line.starts_with("Ran ") => {
                let (ran, _) = line.split_once(" in ").unwrap_or((line, ""));
                ran.to_owned()
            }
            // Numbers of tokens look like commits.
            _ if line.contains(" tokens") => line.to_owned(),
            _ => line.split(' ').map(word).collect::<Vec<_>>().join(" "),
        };
        // Writing to a string cannot fail.
        _ = writeln!(steady, "{line}");
    }
    let tools = "## Tools on This Machine\n";
    if let Some((before, after)) = steady.clone().split_once(tools) {
        let rest = after.split_once('\n').map_or("", |(_, rest)| rest);
        steady = format!("{before}{tools}(each with its version)\n{rest}");
    }
    steady
}

fn word(word: &str) -> String {
    if let Some((_, below)) = word.split_once("/state/") {
        return format!("\"(state)/{below}");
    }
    let bare = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
    let is_hex = bare
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if DateTime::parse_from_rfc3339(bare).is_ok() {
        return word.replace(bare, "(time)");
    }
    let is_date = NaiveDate::parse_from_str(bare, "%Y-%m-%d").is_ok();
    match bare.len() {
        36 if is_hex => word.replace(bare, "(id)"),
        7 | 12 | 40 if is_hex => word.replace(bare, "(commit)"),
        10 if is_date => word.replace(bare, "(date)"),
        _ => word.to_owned(),
    }
}

fn section(page: &mut String, request: &Request) -> anyhow::Result<()> {
    let told: Vec<String> = request
        .messages()
        .iter()
        .filter(|message| message["role"] == "user")
        .map(Request::said)
        .collect();
    let last = told.last().context("a message")?;
    let system = request.system();
    writeln!(
        page,
        "\n## {}\n\nTools: {}.\n",
        title(request.role),
        request
            .tools()
            .iter()
            .map(|tool| format!("`{tool}`"))
            .collect::<Vec<_>>()
            .join(", ")
    )?;
    writeln!(page, "| section | comes from |\n|---|---|")?;
    let (mut known, mut unknown): (Vec<&str>, Vec<&str>) = Default::default();
    for heading in headings(&system).into_iter().chain(headings(last)) {
        let origin = ORIGINS.iter().find(|(begin, _)| heading.starts_with(begin));
        let Some(origin) = origin else {
            unknown.push(heading);
            continue;
        };
        if !known.contains(&origin.0) {
            known.push(origin.0);
            writeln!(
                page,
                "| {} | {} |",
                origin.0.trim_end_matches([' ', ':', '(', '-']),
                origin.1
            )?;
        }
    }
    ensure!(
        unknown.is_empty(),
        "nobody says where {unknown:?} come from"
    );
    writeln!(
        page,
        "\nThe system prompt:\n\n~~~~text\n{}~~~~",
        steady(&system)
    )?;
    let whose = if told.len() == 1 {
        "The message"
    } else {
        "The last message"
    };
    writeln!(page, "\n{whose}:\n\n~~~~text\n{}~~~~", steady(last))?;
    Ok(())
}

const HEAD: &str = "# Prompts

What a model is told, role by role: one real request of each, as a provider got it over HTTP in `tests/tests/scenarios/told.rs`,
which writes this page (`UPDATE_TABLES=1 cargo test -p ropewalk-tests --test scenarios told::`) and fails when it is stale.

A system prompt and the tools stay as they are from one request of a role to the next; what changes is told in messages, the
newest last, so that a provider reads again what it has kept: `told::prefix` counts that. `told::truth` fails where a prompt or
a tool speaks of a tool, a field, a section or a freedom that its request does not hold, and `told::coverage` where it looks at no
request with some line of a template.

## What two ideas cost

Played by hand: somebody who knew only the requests wrote each reply. In brackets the requests of builds before a failed gate
became a turn and plans became slices. Tokens are bytes by four; `anew` is what is left of them without what an earlier request of
the same role began with, which a provider need not read again.

| idea | chat | specification | build | review | tokens read | anew | written | of that in the build |
|---|---|---|---|---|---|---|---|---|
| a new program of 1,850 lines with 101 tests: five turns of chat, one revision, words to a running task | 6 | 4 | 12 (37) | 1 | 227,000 | not counted | 146 kB | 92 kB |
| a feature in a library of others, 2,716 lines in one file | 5 | 2 | 7 (33) | 1 | 171,000 | not counted | 54 kB | 30 kB |
| the same, more of it and disturbed: a question while building, a finish too early, a malformed call, a commit on `main`, the program killed, a change of mind after all had landed (a third task) | 8 | 6 | 15 (33) | 2 | 413,000 | 148,000 | 94 kB | 58 kB |
| the same idea, played again: all the disturbances and a conflict on `main` | 5 | 5 | 13 (33) | 2 | 296,000 | 118,000 | 48 kB | 33 kB |
| the same idea undisturbed, by a player who had to write nothing twice: a brief in place of five documents, defaults in the plan | 5 | 2 | 6 (33) | 1 | 230,000 | not counted | 31 kB | 22 kB |
| for comparison, that feature undisturbed on the program of before, by a player who knows the library: a lower bound | 3 | 1 | 21 | 1 | 198,000 | 88,000 | 51 kB | 35 kB |
| a new program again, undisturbed: 1,216 lines with 57 tests | 5 | 2 | 4 | 2 | 109,000 | not counted | 76 kB | 60 kB |
| for comparison, the same idea on the program of before: 1,868 lines with 82 tests | 5 | 2 | 29 | 1 | 167,000 | not counted | 123 kB | 87 kB |
| a format and an option in that library, undisturbed, with 26 tests | 3 | 2 | 6 | 1 | 195,000 | not counted | 44 kB | 32 kB |
| for comparison, the same idea on the program of before, with 49 tests | 4 | 1 | 20 | 1 | 208,000 | not counted | 45 kB | 32 kB |
| a new program once more, undisturbed: 1,778 lines with 91 tests | 5 | 1 | 6 | 1 | 122,000 | 68,000 | 100 kB | 83 kB |
| for comparison, a free agent with a shell, an editor and the idea alone: 1,937 lines with 86 tests | – | – | 6 | – | not counted | not counted | 83 kB | 83 kB |
| a format and an option in that library once more, undisturbed: 788 lines with 42 tests | 4 | 2 | 6 | 1 | 211,000 | 109,000 | 54 kB | 41 kB |
| for comparison, a free agent again: 839 lines with 46 tests | – | – | 7 | – | not counted | not counted | 54 kB | 54 kB |
| the new program of before with its disturbances: a change of mind, a vague remark, one revision; 1,363 lines with 65 tests | 5 | 2 | 2 | 1 | 82,000 | 53,000 | 77 kB | 63 kB |
| what follows on it in the same repository: an export with 12 tests | 3 | 2 | 2 | 1 | 64,000 | 34,000 | 17 kB | 11 kB |
| the library with all its disturbances, a conflict on `main`, a third task | 3 | 4 | 15 (33) | 3 | 295,000 | 115,000 | 50 kB | 39 kB |
| a new program, small: three turns of chat, a change of mind, one revision; 34 tests that all passed at once | 3 | 2 | 2 | 1 | 58,000 | not counted | 51 kB | 39 kB |
| a format and an option in that library: no chat, killed once, words to a running task, 6 more tests | – | 2 | 5 (33) | 1 | 112,000 | not counted | 16 kB | 13 kB |

Rows 7 to 10 were played within one day, each by another player with the same care. Builds took 14 and 30 % of the requests of before, whole
ideas 35 and 46 %; 65 and 94 % of the tokens were read, and 61 and 98 % of the bytes written. Most of what is written is the work
itself: 55 of 76 kB landed, and 79 of 123 before; 20 of 44 kB in the library, and 19 of 45 before. What was written beside that came to
20 kB in place of 44, and to 24 in place of 26. So fewer requests are needed for certain, and hardly anything is written twice;
how many bytes a player writes for the same idea differs more between players than between the programs.

Rows 3 and 4 were disturbed on purpose, row 1 by a revision and by words to a running task. Row 3 missed the bar of 40 % of the requests of
before, with 15 of 33: it was disturbed six times, the last time for a third task; row 4 kept it with the same disturbances, with 13.

Rows 11 to 14 were played within one hour, by players who are alike; the free agent counted its own replies, each with a call or the last. A build
took 1 and 0.9 times its requests, a whole idea 2.2 and 1.9 times, with the chat, the plan and the review that it lacks. Of what was
written 80 kB in 100 landed, and 26 in 54; the free agent's 78 in 83, and 28 in 54. What was written twice in these two plays of the
program, in the same eight words or more, came to about 350 of 99,000 bytes and 50 of 52,000. [ADR 32](adr/0032-what-is-written-is-held-against-a-free-agent.md) says
what is held against what.

The last three were played on one day, on a later program, each idea with what disturbs it. 57 kB of 77 landed, 7 of 17 and 18 of 50. Written twice in
the same eight words or more were 2.0 kB, 0.4 and 2.9. The library needed 15 requests again: four tasks, one request sent anew after the program was killed,
and two after a person answered a question about a test with words, which begins another conversation (ADR 37); each other answer came
back in the conversation that had asked. Five guesses at an interface were counted in the three, of which one cost a request: imports stand in no outline.
";

#[test]
fn the_page_of_prompts_shows_what_each_role_is_told() -> anyhow::Result<()> {
    let told = told()?;
    let mut page = HEAD.to_owned();
    for role in Role::ALL {
        let requests = told.of(role);
        let place = shown(&requests, role).with_context(|| format!("{role:?}"))?;
        section(&mut page, requests[place])?;
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/prompts.md");
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&file, &page)?;
    }
    let written = fs::read_to_string(&file)?;
    ensure!(
        written == page,
        "docs/prompts.md is stale; run this test with {UPDATE}=1 and read what changed"
    );
    Ok(())
}
