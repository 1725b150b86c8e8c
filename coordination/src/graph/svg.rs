//! Draws the graph as an SVG picture: who waits on the left of whom they wait for.

use std::collections::HashMap;
use std::fmt::Write as _;

use petgraph::stable_graph::NodeIndex;
use petgraph::visit::{EdgeRef, IntoEdgeReferences};

use super::WaitGraph;

/// The width of a letter.
const LETTER: usize = 8;
const BOX_HEIGHT: usize = 28;
const ROW: usize = 64;
const MARGIN: usize = 16;
/// The room between two columns, for the names of what is waited for.
const GAP: usize = 320;

/// Where a node stands.
#[derive(Debug, Clone, Copy)]
struct Place {
    x: usize,
    y: usize,
}

impl WaitGraph {
    /// Draws the graph as an SVG picture.
    pub fn to_svg(&self) -> String {
        let columns = self.columns();
        let mut places = HashMap::new();
        let mut x = MARGIN;
        let mut widths = HashMap::new();
        for column in &columns {
            let letters = column
                .iter()
                .map(|node| self.label(*node).chars().count())
                .max();
            let width = letters.unwrap_or_default() * LETTER + 2 * LETTER;
            for (row, node) in column.iter().enumerate() {
                let y = MARGIN + row * ROW;
                places.insert(*node, Place { x, y });
                widths.insert(*node, width);
            }
            x += width + GAP;
        }
        let rows = columns.iter().map(Vec::len).max().unwrap_or_default();
        let (width, height) = (x.saturating_sub(GAP) + MARGIN, rows * ROW + 2 * MARGIN);
        let mut svg = head(width, height);
        // Writing to a String cannot fail.
        self.draw_edges(&mut svg, &places, &widths).ok();
        self.draw_nodes(&mut svg, &columns, &places, &widths).ok();
        svg.push_str("</svg>\n");
        svg
    }

    /// Puts every node right of those who wait for it; the members of a cycle stand in one column.
    fn columns(&self) -> Vec<Vec<NodeIndex>> {
        let knots = petgraph::algo::tarjan_scc(&self.graph);
        let mut knot_of = HashMap::new();
        for (number, knot) in knots.iter().enumerate() {
            for node in knot {
                knot_of.insert(*node, number);
            }
        }
        let mut column_of = vec![0; knots.len()];
        // The algorithm answers whoever is waited for first.
        for (number, knot) in knots.iter().enumerate().rev() {
            for edge in knot.iter().flat_map(|node| self.graph.edges(*node)) {
                let target = knot_of.get(&edge.target()).copied().unwrap_or(number);
                if target != number {
                    column_of[target] = column_of[target].max(column_of[number] + 1);
                }
            }
        }
        let last = column_of.iter().max().copied().unwrap_or_default();
        let mut columns = vec![Vec::new(); last + 1];
        for (number, knot) in knots.iter().enumerate() {
            columns[column_of[number]].extend(knot.iter().copied());
        }
        for column in &mut columns {
            column.sort_by_key(|node| self.label(*node));
        }
        columns
    }

    fn draw_nodes(
        &self,
        svg: &mut String,
        columns: &[Vec<NodeIndex>],
        places: &HashMap<NodeIndex, Place>,
        widths: &HashMap<NodeIndex, usize>,
    ) -> std::fmt::Result {
        for node in columns.iter().flatten() {
            let (Some(place), Some(width)) = (places.get(node), widths.get(node)) else {
                continue;
            };
            let Place { x, y } = *place;
            writeln!(
                svg,
                r##"<rect x="{x}" y="{y}" width="{width}" height="{BOX_HEIGHT}" rx="4" fill="#fff" stroke="#444"/>"##
            )?;
            let (x, y) = (x + LETTER, y + BOX_HEIGHT - 9);
            let label = escaped(&self.label(*node));
            writeln!(svg, r#"<text x="{x}" y="{y}">{label}</text>"#)?;
        }
        Ok(())
    }

    fn draw_edges(
        &self,
        svg: &mut String,
        places: &HashMap<NodeIndex, Place>,
        widths: &HashMap<NodeIndex, usize>,
    ) -> std::fmt::Result {
        let mut lines = Vec::new();
        for edge in self.graph.edge_references() {
            let (Some(from), Some(to), Some(width)) = (
                places.get(&edge.source()),
                places.get(&edge.target()),
                widths.get(&edge.source()),
            ) else {
                continue;
            };
            let (x1, y1) = (from.x + width, from.y + BOX_HEIGHT / 2);
            let (x2, y2) = (to.x, to.y + BOX_HEIGHT / 2);
            let (bend1, bend2) = (x1 + GAP / 3, x2.saturating_sub(GAP / 3));
            let mut line = String::new();
            let (style, label) = match edge.weight().resource() {
                Some(resource) => ("", escaped(&resource.to_string())),
                None => (r#" stroke-dasharray="3 4""#, String::new()),
            };
            writeln!(
                line,
                r##"<path d="M {x1} {y1} C {bend1} {y1} {bend2} {y2} {x2} {y2}" fill="none" stroke="#a33"{style} marker-end="url(#arrow)"/>"##
            )?;
            let (x, y) = (usize::midpoint(x1, x2), usize::midpoint(y1, y2) - 4);
            if !label.is_empty() {
                writeln!(
                    line,
                    r##"<text x="{x}" y="{y}" text-anchor="middle" fill="#a33">{label}</text>"##
                )?;
            }
            lines.push(line);
        }
        lines.sort_unstable();
        svg.push_str(&lines.concat());
        Ok(())
    }
}

fn head(width: usize, height: usize) -> String {
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="monospace" font-size="13">
<title>Who waits for whom</title>
<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M 0 0 L 8 4 L 0 8 z" fill="#a33"/></marker></defs>
"##
    )
}

/// Writes text so that XML reads it as text; what XML cannot hold becomes a mark.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('\u{fffd}');
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}
