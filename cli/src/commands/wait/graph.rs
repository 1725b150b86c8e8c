//! Verb `wait graph`: draws who waits for whom.

use std::fmt::Write as _;

use clap::Args;
use ropewalk_desk::views::wait;

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

impl Graph {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let (drawn, graph) = wait::graph(&opened.store).await?;
        app.output.show(&drawn, |drawn| {
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
            for cycle in &drawn.cycles {
                // Writing to a String cannot fail.
                writeln!(text, "cycle: {}", cycle.join(" > ")).ok();
            }
            text
        })
    }
}
