//! Verb `wait graph`: draws who waits for whom.

use std::fmt::Write as _;

use clap::Args;
use ropewalk_coordination::graph::{Cycle, WaitGraph};
use ropewalk_coordination::waits::{self, Asking, Waits};
use ropewalk_schemas::wait::Wait;
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;

/// The form of the drawing.
#[derive(Debug, Args)]
pub struct Graph {
    /// Draw in the DOT language of Graphviz.
    #[arg(long)]
    dot: bool,
    /// Draw as an SVG picture.
    #[arg(long, conflicts_with = "dot")]
    svg: bool,
}

#[derive(Debug, Serialize)]
struct Drawn {
    waits: Vec<Wait>,
    others: Vec<Asking>,
    rings: Vec<Vec<String>>,
}

impl Graph {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let Waits {
            parties: waits,
            others,
        } = waits::all(&desk.store).await?;
        let mut graph = WaitGraph::new(&waits);
        for asking in &others {
            graph.insert_asking(asking);
        }
        let rings = graph.cycles().iter().map(Cycle::names).collect();
        app.output.show(
            &Drawn {
                waits,
                others,
                rings,
            },
            |drawn| {
                if self.dot {
                    return graph.to_dot();
                }
                if self.svg {
                    return graph.to_svg();
                }
                let mut text = graph.to_text();
                if text.is_empty() {
                    text.push_str("nobody waits\n");
                }
                for ring in &drawn.rings {
                    // Writing to a String cannot fail.
                    writeln!(text, "ring: {}", ring.join(" > ")).ok();
                }
                text
            },
        )
    }
}
