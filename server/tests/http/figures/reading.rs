//! How a page is read: every number that somebody sees on it, also in a picture, a bar, a field or the name of its tab.

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_schemas::question::{Question, QuestionState};

use super::all;
use crate::browser::Browser;
use crate::world::ServerWorld;

/// What a page has to tell.
pub(super) struct Expectation {
    pub(super) path: String,
    told: Vec<String>,
}

impl Expectation {
    /// Expects the page at `path` to tell `told`, and no number that is in none of it. A rule of `tidy` reads in the calls
    /// which pages are looked at.
    pub(super) fn at(path: impl Into<String>, told: Vec<String>) -> Self {
        let path = path.into();
        Self { path, told }
    }
}

/// Expects of each page what its frame has to tell as well: in the name of its tab, too, how many questions are open.
pub(super) async fn framed(world: &ServerWorld, mut pages: Vec<Expectation>) -> Vec<Expectation> {
    let questions = all::<Question>(world).await.into_iter();
    let open = questions.filter(|question| question.state == QuestionState::Pending);
    let open = open.count();
    let told = [
        format!("<title>({open}) "),
        format!("aria-label=\"{open} open\">{open}</span>"),
    ];
    for page in &mut pages {
        page.told.extend(told.iter().filter(|_| open > 0).cloned());
    }
    pages
}

/// Reads each page that something is expected of.
pub(super) async fn read(
    world: &ServerWorld,
    pages: Vec<Expectation>,
) -> Vec<(String, Expectation)> {
    let browser = Browser::new(world).await;
    let mut shown = Vec::new();
    for expected in pages {
        let answer = browser.read(&expected.path).await;
        assert_eq!(answer.status, 200, "{}: {}", expected.path, answer.text);
        shown.push((answer.text, expected));
    }
    shown
}

/// Reads pages, with their frames, and asserts the figures of each.
pub(super) async fn assert_pages(world: &ServerWorld, pages: Vec<Expectation>) {
    for (page, expected) in read(world, framed(world, pages).await).await {
        assert_figures(&page, &expected);
    }
}

/// Asserts that a page tells what is expected, and that a single figure which is one too large would be found, in
/// whichever place of it.
pub(super) fn assert_figures(page: &str, expected: &Expectation) {
    assert_eq!(faults(page, expected), Vec::<String>::new());
    for told in &expected.told {
        for (place, _) in page.match_indices(told.as_str()) {
            let mut planted = page.to_owned();
            planted.replace_range(place..place + told.len(), &one_more(told));
            assert!(
                !faults(&planted, expected).is_empty(),
                "`{told}` of {}",
                expected.path
            );
        }
    }
}

/// Tells what of `expected` does not stand on the page as often as it is to, and which numbers stand there of which
/// nothing is expected.
pub(super) fn faults(page: &str, expected: &Expectation) -> Vec<String> {
    let mut often: BTreeMap<&str, usize> = BTreeMap::new();
    for told in &expected.told {
        *often.entry(told).or_default() += 1;
    }
    let wrong = often
        .into_iter()
        .filter(|(told, times)| page.matches(told).count() != *times);
    let mut faults: Vec<String> = wrong
        .map(|(told, times)| {
            format!(
                "{}: {} instead of {times} times `{told}`",
                expected.path,
                page.matches(told).count()
            )
        })
        .collect();
    let told = expected.told.iter();
    let known: BTreeSet<String> = told.flat_map(|told| numbers(&visible(told))).collect();
    let shown = [
        between(page, "<main", "</main>"),
        between(page, "<title", "</title>"),
    ];
    let shown = shown.iter().flat_map(|part| numbers(&visible(part)));
    let strange = shown.filter(|number| !known.contains(number));
    faults.extend(strange.map(|number| format!("{}: `{number}` is of no row", expected.path)));
    faults
}

/// Returns what stands between the first `from` and the `to` after it, with both.
fn between<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let begin = page.find(from).unwrap();
    let end = page[begin..].find(to).unwrap();
    &page[begin..begin + end + to.len()]
}

/// Returns the text that somebody sees, or has read to them: no times, no blocks of what was written elsewhere (but the
/// numbers of their lines), no place to choose; of tags what a bar shows, what a field holds and what a picture is called.
fn visible(markup: &str) -> String {
    let mut text = markup.to_owned();
    for tag in ["time", "pre", "select"] {
        while let Some(begin) = text.find(&format!("<{tag}")) {
            let close = format!("</{tag}>");
            let end = text[begin..].find(&close);
            let end = end.map_or(text.len(), |end| begin + end + close.len());
            let lines = text[begin..end].split("<span class=\"number\">").skip(1);
            let lines = lines.filter_map(|rest| rest.split('<').next());
            let kept = lines.fold(String::from(" "), |kept, number| kept + number + " ");
            text.replace_range(begin..end, &kept);
        }
    }
    let mut shown = String::new();
    for part in text.split('<') {
        let (tag, rest) = part.split_once('>').unwrap_or(("", part));
        let attributes: &[&str] = if tag.starts_with("progress") || tag.starts_with("meter") {
            &[" max=", " value=", " aria-label="]
        } else if tag.starts_with("input") && tag.contains("type=\"number\"") {
            &[" value=", " aria-label="]
        } else {
            &[" aria-label="]
        };
        for name in attributes {
            shown.push(' ');
            let value = tag.split_once(&format!("{name}\""));
            shown.push_str(
                value
                    .and_then(|(_, value)| value.split('"').next())
                    .unwrap_or(""),
            );
        }
        shown.push(' ');
        shown.push_str(rest);
    }
    shown
}

/// Returns the numbers of a text: what names something, such as `T-001`, is none.
fn numbers(text: &str) -> Vec<String> {
    let trimmed = text
        .split(|letter: char| letter.is_whitespace() || letter == '/')
        .map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric()));
    let is_number = |word: &&str| {
        word.starts_with(|letter: char| letter.is_ascii_digit())
            && word
                .chars()
                .all(|letter| letter.is_ascii_digit() || letter == '.')
    };
    trimmed.filter(is_number).map(str::to_owned).collect()
}

/// Makes the first digit of a text another one.
fn one_more(text: &str) -> String {
    let place = text.find(|letter: char| letter.is_ascii_digit()).unwrap();
    let digit = text.as_bytes()[place] - b'0';
    let other = (digit + 1) % 10;
    format!("{}{other}{}", &text[..place], &text[place + 1..])
}

#[test]
fn a_number_is_read_wherever_it_stands() {
    let seen = |markup: &str| numbers(&visible(markup));
    for markup in [
        "<p>7 tasks</p>",
        "<title>(7) Board</title>",
        "<svg><text x=\"4\">$7</text></svg>",
        "<svg><g><title>7 tokens</title></g></svg>",
        "<svg aria-label=\"7 uses\"></svg>",
        "<progress max=\"7\" aria-label=\"Tasks\"></progress>",
        "<progress value=\"7\"></progress>",
        "<meter value=\"7\">seven</meter>",
        "<input type=\"number\" min=\"1\" max=\"9\" value=\"7\">",
        "<dd>7 to eight</dd>",
        "<pre>1 line\n<span class=\"number\">7</span> 2</pre>",
    ] {
        assert_eq!(seen(markup), ["7"], "{markup}");
    }
    for markup in ["<p>T-007</p>", "<time>7</time>", "<svg width=\"7\"></svg>"] {
        assert_eq!(seen(markup), Vec::<String>::new(), "{markup}");
    }
}
