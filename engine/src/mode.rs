//! Defines the modes of agents: what a model works for, and so which tools it has (POL-5 of the capability list).
//!
//! A mode says what a palette may hold; the workbench says what of that there is: a page is read where hosts are listed, a
//! person asked where somebody brings the question. What only looks runs no command: `history`, `grep` and their like tell what
//! a list of harmless commands would. Rules judge each call beside it.

use std::fmt;

/// What a model works for. A job has one, from its first turn to its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentMode {
    /// Changing the code: the builder.
    Implement,
    /// Looking around for a person: the chat about an idea.
    Explore,
    /// Making a plan, which is handed in and not written: the specification writer.
    Plan,
    /// Judging what was built: the reviewer.
    Review,
}

/// Which modes have a tool.
#[derive(Clone, Copy)]
enum Modes {
    All,
    /// Those in which nothing is changed and nothing runs.
    Looking,
    Implement,
}

/// The tools and the modes that have them.
const PALETTE: [(&str, Modes); 15] = [
    ("read", Modes::All),
    ("ls", Modes::All),
    ("glob", Modes::All),
    ("grep", Modes::All),
    ("code_outline", Modes::All),
    ("web_fetch", Modes::All),
    ("web_search", Modes::All),
    ("ask", Modes::All),
    // Whoever runs commands has git.
    ("history", Modes::Looking),
    ("bash", Modes::Implement),
    ("write", Modes::Implement),
    ("edit", Modes::Implement),
    ("request_file", Modes::Implement),
    ("todo_write", Modes::Implement),
    ("todo_read", Modes::Implement),
];

impl AgentMode {
    /// Returns the written form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Implement => "implement",
            Self::Explore => "explore",
            Self::Plan => "plan",
            Self::Review => "review",
        }
    }

    /// Says whether its palette holds the tool of this name. One that stands in no row is in none.
    pub fn has(self, tool: &str) -> bool {
        let row = PALETTE.iter().find(|(name, _)| *name == tool);
        row.is_some_and(|(_, modes)| match modes {
            Modes::All => true,
            Modes::Looking => self != Self::Implement,
            Modes::Implement => self == Self::Implement,
        })
    }
}

impl fmt::Display for AgentMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
