//! Draws tasks and what they need of each other, as a picture that is made here.
//!
//! Each task stands right of everything it needs. Within a column tasks are ordered by where what they need stands, so
//! that few lines cross; a long column is folded into several. Many tasks are drawn by their names alone.

use std::collections::HashMap;

/// The size of a task, and the room between two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: usize,
    pub(super) height: usize,
    across: usize,
    down: usize,
    /// Whether what a task comes to is drawn, not only its name.
    pub(super) has_text: bool,
}

impl Size {
    /// Returns how far down the name of a task stands in it.
    pub(super) fn line(self) -> usize {
        if self.has_text { 19 } else { 16 }
    }
}

/// A few tasks, each in words.
const WORDS: Size = Size {
    width: 172,
    height: 46,
    across: 52,
    down: 14,
    has_text: true,
};
/// Many tasks, each a name.
const NAMES: Size = Size {
    width: 62,
    height: 24,
    across: 34,
    down: 6,
    has_text: false,
};
/// The most tasks that are drawn in words.
const FEW: usize = 60;
/// The most tasks that stand below each other.
const LONGEST: usize = 24;
const EDGE: usize = 6;
/// What the order of tasks shows.
pub(super) const TASKS: &str = "What each task needs";

/// A task to draw.
pub(super) struct Node {
    pub(super) id: String,
    /// What it comes to.
    pub(super) text: String,
    /// The class of its colour.
    pub(super) tone: &'static str,
    /// Where it leads.
    pub(super) href: String,
    /// The tasks that it needs.
    pub(super) needs: Vec<String>,
}

/// A drawn task, by its upper left corner.
pub(super) struct PlacedNode {
    pub(super) node: Node,
    pub(super) x: usize,
    pub(super) y: usize,
}

/// A picture of tasks, or of whatever else needs one another.
pub(super) struct Graph {
    /// What the order from left to right shows.
    pub(super) label: &'static str,
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) size: Size,
    pub(super) placed: Vec<PlacedNode>,
    /// The paths of the lines between them.
    pub(super) lines: Vec<String>,
}

impl Graph {
    /// Draws tasks; nothing where one alone would stand there. `label` says what their order shows.
    pub(super) fn of(label: &'static str, nodes: Vec<Node>) -> Option<Self> {
        if nodes.len() < 2 {
            return None;
        }
        let size = if nodes.len() > FEW { NAMES } else { WORDS };
        let needs = needs(&nodes);
        let places = folded(&rows(&needs, &columns(&needs)));
        let most_across = places.iter().map(|(column, _)| *column).max()?;
        let most_down = places.iter().map(|(_, row)| *row).max()?;
        let at = |index: usize| {
            let (column, row) = places[index];
            (
                EDGE + column * (size.width + size.across),
                EDGE + row * (size.height + size.down),
            )
        };
        let lines = needs.iter().enumerate().flat_map(|(to, needed)| {
            let (at, needed) = (&at, needed.iter());
            needed.map(move |from| line(size, at(*from), at(to)))
        });
        let lines = lines.collect();
        Some(Self {
            label,
            width: 2 * EDGE + most_across * (size.width + size.across) + size.width,
            height: 2 * EDGE + most_down * (size.height + size.down) + size.height,
            size,
            placed: nodes
                .into_iter()
                .enumerate()
                .map(|(number, node)| {
                    let (x, y) = at(number);
                    PlacedNode { node, x, y }
                })
                .collect(),
            lines,
        })
    }
}

/// Returns for each task the numbers of those that it needs.
fn needs(nodes: &[Node]) -> Vec<Vec<usize>> {
    let ids = nodes.iter().map(|node| node.id.as_str());
    let numbers: HashMap<&str, usize> = ids.enumerate().map(|(number, id)| (id, number)).collect();
    let of = |node: &Node| {
        let needed = node.needs.iter();
        needed
            .filter_map(|id| numbers.get(id.as_str()).copied())
            .collect()
    };
    nodes.iter().map(of).collect()
}

/// Returns the column of each task: one further than the furthest that it needs. A cycle, which a plan never has, ends
/// after as many rounds as there are tasks.
fn columns(needs: &[Vec<usize>]) -> Vec<usize> {
    let mut columns = vec![0; needs.len()];
    for _ in 0..needs.len() {
        let mut moved = false;
        for (number, needed) in needs.iter().enumerate() {
            let needed = needed.iter().map(|need| columns[*need] + 1);
            let least = needed.max().unwrap_or(0).min(needs.len() - 1);
            if least > columns[number] {
                columns[number] = least;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    columns
}

/// Returns column and row of each task.
fn rows(needs: &[Vec<usize>], columns: &[usize]) -> Vec<(usize, usize)> {
    let mut places: Vec<(usize, usize)> = columns.iter().map(|column| (*column, 0)).collect();
    let last = columns.iter().max().copied().unwrap_or(0);
    let mut in_columns = vec![Vec::new(); last + 1];
    for (number, column) in columns.iter().enumerate() {
        in_columns[*column].push(number);
    }
    for mut here in in_columns {
        here.sort_by_cached_key(|number| {
            let rows = needs[*number].iter().map(|need| places[*need].1);
            (1_000 * rows.sum::<usize>()) / needs[*number].len().max(1)
        });
        for (row, number) in here.into_iter().enumerate() {
            places[number].1 = row;
        }
    }
    places
}

/// Returns the places when long columns are folded into several that stand beside each other.
fn folded(places: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let last = places.iter().map(|(column, _)| *column).max();
    let mut begins = vec![0];
    for column in 0..=last.unwrap_or(0) {
        let here = places.iter().filter(|(other, _)| *other == column);
        begins.push(begins[column] + here.count().div_ceil(LONGEST).max(1));
    }
    let fold = |(column, row): &(usize, usize)| (begins[*column] + row / LONGEST, row % LONGEST);
    places.iter().map(fold).collect()
}

/// Returns the path from the right side of one task to the left side of another.
fn line(size: Size, (from_x, from_y): (usize, usize), (to_x, to_y): (usize, usize)) -> String {
    let (x, y) = (from_x + size.width, from_y + size.height / 2);
    let (end_x, end_y) = (to_x, to_y + size.height / 2);
    let bend = size.across / 2;
    let near = end_x.saturating_sub(bend);
    format!("M{x} {y}C{} {y} {near} {end_y} {end_x} {end_y}", x + bend)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: &str, needs: &[&str]) -> Node {
        Node {
            id: id.to_owned(),
            text: String::new(),
            tone: "calm",
            href: String::new(),
            needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        }
    }

    #[test]
    fn each_task_stands_right_of_what_it_needs() {
        let nodes = vec![
            node("d", &["b", "c"]),
            node("a", &[]),
            node("b", &["a"]),
            node("c", &["a"]),
        ];
        let needs = needs(&nodes);
        let columns = columns(&needs);
        assert_eq!(columns, [2, 0, 1, 1]);
        assert_eq!(rows(&needs, &columns), [(2, 0), (0, 0), (1, 0), (1, 1)]);
        let graph = Graph::of(TASKS, nodes).unwrap();
        assert_eq!(graph.lines.len(), 4);
        let Size {
            width,
            height,
            across,
            down,
            ..
        } = WORDS;
        assert_eq!(graph.width, 2 * EDGE + 2 * (width + across) + width);
        assert_eq!(graph.height, 2 * EDGE + 2 * height + down);
    }

    #[test]
    fn five_hundred_tasks_are_names_beside_each_other_and_none_hides_another() {
        let id = |number: usize| format!("T-{number:03}");
        let nodes = (0..500).map(|number| {
            let needs = if number < 100 {
                vec![]
            } else {
                vec![id(number % 100), id(number - 100)]
            };
            let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
            node(&id(number), &needs)
        });
        let graph = Graph::of(TASKS, nodes.collect()).unwrap();
        assert_eq!((graph.size, graph.placed.len()), (NAMES, 500));
        let places: std::collections::BTreeSet<_> = graph
            .placed
            .iter()
            .map(|placed| (placed.x, placed.y))
            .collect();
        assert_eq!(places.len(), 500);
        assert_eq!(
            graph.width,
            2 * EDGE + 24 * (NAMES.width + NAMES.across) + NAMES.width
        );
        assert_eq!(
            graph.height,
            2 * EDGE + 23 * (NAMES.height + NAMES.down) + NAMES.height
        );
    }

    #[test]
    fn a_cycle_and_what_is_not_there_end_no_drawing() {
        let cycle = vec![node("a", &["b"]), node("b", &["a", "nobody"])];
        assert!(Graph::of(TASKS, cycle).is_some());
        assert!(Graph::of(TASKS, vec![node("a", &[])]).is_none());
    }
}
