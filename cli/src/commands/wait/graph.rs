//! Verb `wait graph`: draws who waits for whom.

use std::fmt::Write as _;

use clap::Args;
use ropewalk_bus::graph::{Cycle, WaitGraph};
use ropewalk_schemas::wait::Wait;
use ropewalk_store::Query;
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;

/// The form of the drawing.
#[derive(Debug, Args)]
pub struct Graph {
    /// Draw in the DOT language of Graphviz.
    #[arg(long)]
    dot: bool,
}

#[derive(Debug, Serialize)]
struct Drawn {
    waits: Vec<Wait>,
    rings: Vec<Vec<String>>,
}

impl Graph {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let rows = desk
            .store
            .list::<Wait>(Query::new().order_by("since"))
            .await?;
        let waits: Vec<Wait> = rows.into_iter().map(|row| row.record).collect();
        let graph = WaitGraph::new(&waits);
        let rings = graph.cycles().iter().map(Cycle::names).collect();
        app.output.show(&Drawn { waits, rings }, |drawn| {
            if self.dot {
                return graph.to_dot();
            }
            let mut text = graph.to_text();
            if drawn.waits.is_empty() {
                text.push_str("nobody waits\n");
            }
            for ring in &drawn.rings {
                // Writing to a String cannot fail.
                writeln!(text, "ring: {}", ring.join(" > ")).ok();
            }
            text
        })
    }
}
