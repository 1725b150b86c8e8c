//! Draws the screen: four panels, one of which is chosen and scrolls.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Row, Table, TableState};

use super::picture::Picture;

/// What is chosen, and how far each panel is scrolled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct View {
    chosen: usize,
    offsets: [usize; PANELS],
    /// How many rows each panel has, as it was drawn.
    lengths: [usize; PANELS],
}

const PANELS: usize = 4;
/// On a screen that is narrower the panels stand one below the other: beside each other their rows would lose the ends
/// that tell them apart.
const BESIDE: u16 = 140;

impl View {
    /// Goes to the next panel, or to the one before.
    pub(super) fn go(&mut self, step: isize) {
        self.chosen = self.chosen.saturating_add_signed(step + 4) % PANELS;
    }

    /// Goes to a panel by its number, from 0.
    pub(super) fn open(&mut self, number: usize) {
        self.chosen = number.min(PANELS - 1);
    }

    /// Moves the rows of the chosen panel.
    pub(super) fn scroll(&mut self, step: isize) {
        let last = self.lengths[self.chosen].saturating_sub(1);
        let offset = &mut self.offsets[self.chosen];
        *offset = offset.saturating_add_signed(step).min(last);
    }
}

/// One panel.
struct Panel<'a> {
    title: &'a str,
    /// What it says when it has no rows.
    empty: &'a str,
    header: Vec<&'a str>,
    rows: Vec<Vec<&'a str>>,
    widths: Vec<Constraint>,
}

/// Draws a picture on a screen of any size.
pub(super) fn draw(frame: &mut Frame<'_>, picture: &Picture, view: &mut View) {
    let picture = &picture.visible();
    let halted = u16::from(picture.halt.is_some());
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(halted),
        Constraint::Fill(1),
        Constraint::Length(1),
    ]);
    let [head, halt, middle, keys] = areas.areas(frame.area());
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let title = format!("ropewalk top  {}  {}", picture.project, picture.at);
    frame.render_widget(Line::styled(title, bold), head);
    if let Some(told) = &picture.halt {
        let loud = bold.add_modifier(Modifier::REVERSED);
        frame.render_widget(Line::styled(told.as_str(), loud), halt);
    }
    for (number, (area, panel)) in places(middle).into_iter().zip(panels(picture)).enumerate() {
        view.lengths[number] = panel.rows.len();
        // What has gone meanwhile is not scrolled to.
        view.offsets[number] = view.offsets[number].min(panel.rows.len().saturating_sub(1));
        let state = (number == view.chosen, view.offsets[number]);
        draw_panel(frame, area, (number, &panel), state);
    }
    let told = "q leave   Tab or 1-4 choose   j k scroll   r look now";
    frame.render_widget(
        Line::styled(told, Style::new().add_modifier(Modifier::DIM)),
        keys,
    );
}

/// Returns where the panels stand, in their order.
fn places(area: Rect) -> [Rect; PANELS] {
    if area.width < BESIDE {
        return Layout::vertical([Constraint::Fill(1); PANELS]).areas(area);
    }
    let rows = Layout::vertical([Constraint::Percentage(37), Constraint::Fill(1)]);
    let halves = Layout::horizontal([Constraint::Percentage(60), Constraint::Fill(1)]);
    let [above, below] = rows.areas(area);
    let ([parts, spend], [waits, questions]) = (halves.areas(above), halves.areas(below));
    [parts, waits, questions, spend]
}

fn panels(picture: &Picture) -> [Panel<'_>; PANELS] {
    let long = Constraint::Fill(1);
    [
        Panel {
            title: "Loops and agents",
            empty: "nothing runs; `ropewalk up` starts it",
            header: vec!["part", "state", "works on", "since"],
            rows: texts(&picture.parts),
            widths: vec![
                Constraint::Length(16),
                Constraint::Length(9),
                long,
                Constraint::Length(7),
            ],
        },
        Panel {
            title: "Waits",
            empty: "nobody waits",
            header: vec!["who", "for", "since"],
            rows: texts(&picture.waits),
            widths: vec![long, long, Constraint::Length(7)],
        },
        Panel {
            title: "Questions",
            empty: "nothing waits for you",
            header: vec!["id", "asked", "since"],
            rows: texts(&picture.questions),
            widths: vec![Constraint::Length(9), long, Constraint::Length(7)],
        },
        Panel {
            title: "Spend",
            empty: "",
            header: vec!["model", "calls", "tokens", "money"],
            rows: texts(&picture.spend),
            widths: vec![
                long,
                Constraint::Length(6),
                Constraint::Length(9),
                Constraint::Length(12),
            ],
        },
    ]
}

fn texts<const N: usize>(rows: &[[String; N]]) -> Vec<Vec<&str>> {
    let mut texts = Vec::new();
    for row in rows {
        texts.push(row.iter().map(String::as_str).collect());
    }
    texts
}

fn draw_panel(
    frame: &mut Frame<'_>,
    area: Rect,
    (number, panel): (usize, &Panel<'_>),
    (is_chosen, offset): (bool, usize),
) {
    let title = format!(" {} {} ({}) ", number + 1, panel.title, panel.rows.len());
    let style = if is_chosen {
        Style::new().add_modifier(Modifier::BOLD)
    } else {
        Style::new()
    };
    let block = Block::bordered().title(title).border_style(style);
    if panel.rows.is_empty() {
        frame.render_widget(Line::from(panel.empty), block.inner(area));
        frame.render_widget(block, area);
        return;
    }
    let rows = panel
        .rows
        .iter()
        .map(|cells| Row::new(cells.iter().copied()));
    let header = Row::new(panel.header.iter().copied());
    let table = Table::new(rows, panel.widths.iter().copied())
        .header(header.style(Style::new().add_modifier(Modifier::DIM)))
        .block(block);
    let mut state = TableState::new().with_offset(offset);
    frame.render_stateful_widget(table, area, &mut state);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn picture() -> Picture {
        let row = |texts: [&str; 4]| texts.map(str::to_owned);
        let three = |texts: [&str; 3]| texts.map(str::to_owned);
        Picture {
            project: "habits".to_owned(),
            at: "12:00:00 UTC".to_owned(),
            halt: None,
            parts: (1..=9)
                .map(|number| {
                    row([
                        &format!("loop-{number}"),
                        "working",
                        "habits T-001",
                        "3 min",
                    ])
                })
                .collect(),
            waits: vec![three(["habits T-002", "file src/a.rs", "10 s"])],
            questions: vec![three(["5b20aa31", "Merge it?", "2 h"])],
            spend: vec![row(["today", "12", "34567", "0.12 USD"])],
        }
    }

    fn shown(picture: &Picture, view: &mut View, (width, height): (u16, u16)) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, picture, view)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn the_screen_shows_what_runs_waits_asks_and_costs() {
        let mut view = View::default();
        let screen = shown(&picture(), &mut view, (100, 24));
        for told in [
            "ropewalk top  habits",
            "1 Loops and agents (9)",
            "loop-1",
            "habits T-001",
            "2 Waits (1)",
            "file src/a.rs",
            "3 Questions (1)",
            "Merge it?",
            "4 Spend (1)",
            "0.12 USD",
            "q leave",
        ] {
            assert!(screen.contains(told), "no `{told}`:\n{screen}");
        }
        let halted = Picture {
            halt: Some("ada stopped everything".to_owned()),
            ..picture()
        };
        let screen = shown(&halted, &mut view, (100, 24));
        assert!(screen.contains("ada stopped everything"), "{screen}");
        let empty = shown(&Picture::default(), &mut view, (100, 24));
        assert!(empty.contains("nobody waits") && empty.contains("nothing waits for you"));
    }

    #[test]
    fn no_text_of_the_screen_is_obeyed_by_a_terminal() {
        const MARKS: &str = "a\u{1b}[31m\u{202e}\rb\u{200b}";
        const SHOWN: &str = "a\u{241b}[31m<U+202E> b<U+200B>";
        let of = |text: &str| Picture {
            project: text.to_owned(),
            at: text.to_owned(),
            halt: Some(text.to_owned()),
            parts: vec![std::array::from_fn(|_| text.to_owned())],
            waits: vec![std::array::from_fn(|_| text.to_owned())],
            questions: vec![std::array::from_fn(|_| text.to_owned())],
            spend: vec![std::array::from_fn(|_| text.to_owned())],
        };
        assert_eq!(of(MARKS).visible(), of(SHOWN));
        for size in [(80, 40), (300, 80)] {
            let screen = shown(&of(MARKS), &mut View::default(), size);
            assert!(
                !screen.contains(['\u{1b}', '\u{202e}', '\u{200b}', '\r']),
                "{screen:?}"
            );
            // Twice in the head, once below it, and once at least in each panel.
            assert!(screen.matches(SHOWN).count() >= 7, "{screen}");
        }
    }

    #[test]
    fn the_chosen_panel_scrolls_and_no_further_than_its_rows() {
        let (picture, mut view) = (picture(), View::default());
        shown(&picture, &mut view, (100, 24));
        for _ in 0..20 {
            view.scroll(1);
        }
        let screen = shown(&picture, &mut view, (100, 24));
        assert!(
            screen.contains("loop-9") && !screen.contains("loop-1"),
            "{screen}"
        );
        view.scroll(-20);
        assert!(shown(&picture, &mut view, (100, 24)).contains("loop-1"));
        view.go(-1);
        assert_eq!(view.chosen, 3);
        view.go(1);
        assert_eq!(view.chosen, 0);
        view.open(9);
        assert_eq!(view.chosen, 3);
    }

    #[test]
    fn on_a_narrow_screen_the_ends_that_tell_rows_apart_are_shown() {
        let wait = |task: &str, file: &str| {
            let waiter = format!("task {task} of a-rather-long-idea");
            [
                waiter,
                format!("file src/reports/{file}"),
                "10 s".to_owned(),
            ]
        };
        let waits = vec![wait("T-001", "daily.rs"), wait("T-002", "weekly.rs")];
        let question = |id: &str| {
            let text = "May `T-003` change `tests/test_of_reports.py`?".to_owned();
            [id.to_owned(), text, "2 h".to_owned()]
        };
        let questions = vec![question("5b20aa31"), question("5b20aa32")];
        let long = Picture {
            waits,
            questions,
            ..picture()
        };
        for width in [80, 100, 120] {
            let screen = shown(&long, &mut View::default(), (width, 26));
            for told in [
                "task T-002 of a-rather-long-idea",
                "src/reports/weekly.rs",
                "5b20aa32",
                "test_of_reports.py`?",
                "0.12 USD",
            ] {
                assert!(screen.contains(told), "{width}: no `{told}`:\n{screen}");
            }
        }
    }

    #[test]
    fn the_smallest_screens_are_drawn_too() {
        for size in [(1, 1), (20, 4), (40, 10), (300, 80)] {
            shown(&picture(), &mut View::default(), size);
        }
    }
}
