//! Lists the commands, and reads what somebody typed as one.

/// What somebody asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Settings,
    Status,
    Summary,
    Questions,
    Defaults,
    Ideas,
    New,
    Idea,
    Done,
    Execute,
    Spec,
    Abandon,
    Agents,
    Pause,
    Resume,
    Stop,
    Retry,
    Tell,
    Priority,
    Land,
    StopAll,
    ResumeAll,
}

impl Command {
    /// Says whether it may set work going that was stopped since it was given.
    pub(crate) const fn sets_going(self) -> bool {
        matches!(
            self,
            Self::Execute | Self::Land | Self::Resume | Self::ResumeAll | Self::Retry
        )
    }
}

/// The commands: how each is typed, and what it does.
const COMMANDS: [(&str, &str, Command); 23] = [
    ("help", "what can be said here", Command::Help),
    (
        "settings",
        "what you are told and when, and what you may do",
        Command::Settings,
    ),
    ("status", "where the builds stand", Command::Status),
    (
        "summary",
        "what happened in the last day, and what it cost",
        Command::Summary,
    ),
    (
        "questions",
        "puts the open questions again",
        Command::Questions,
    ),
    (
        "defaults",
        "answers every question with its default, but what holds work up or has consequences",
        Command::Defaults,
    ),
    ("ideas", "lists the ideas", Command::Ideas),
    (
        "newtask",
        "begins another idea: /newtask what you want",
        Command::New,
    ),
    (
        "idea",
        "goes on with an idea: /idea its name",
        Command::Idea,
    ),
    (
        "done",
        "that is all: the brief of the idea is written",
        Command::Done,
    ),
    (
        "execute",
        "asks for the specification of an idea; once it is there, shows its build and begins it: /execute its idea, how large: simple, medium or complex",
        Command::Execute,
    ),
    (
        "spec",
        "shows what the specification of an idea asks for: /spec its idea",
        Command::Spec,
    ),
    (
        "abandon",
        "shows what ends with an idea, and lets you give it up: /abandon its idea",
        Command::Abandon,
    ),
    ("agents", "what every part does", Command::Agents),
    (
        "pause",
        "lets a build pause: /pause its idea",
        Command::Pause,
    ),
    (
        "resume",
        "lets a build go on: /resume its idea",
        Command::Resume,
    ),
    ("stop", "ends a build: /stop its idea", Command::Stop),
    (
        "retry",
        "tries a task again: /retry its idea, the task, what to do differently",
        Command::Retry,
    ),
    (
        "tell",
        "tells whoever works on a build: /tell its idea, what you want to say",
        Command::Tell,
    ),
    (
        "priority",
        "how urgent a build is: /priority its idea, 1 (highest) to 10",
        Command::Priority,
    ),
    (
        "land",
        "shows what landing a build comes to, and lets you: /land its idea",
        Command::Land,
    ),
    (
        "stopall",
        "stops everything, for everybody: no model is asked, no command begins",
        Command::StopAll,
    ),
    ("resumeall", "lets everything go on", Command::ResumeAll),
];

/// How many letters of what somebody typed are said back to them.
pub(crate) const SAID_BACK: usize = 80;

/// What `/start` is typed as, which links a phone.
const START: &str = "start";

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextInput<'a> {
    /// `/start`, with a code where a phone is to be linked.
    Start(&'a str),
    /// A command, with what stands behind it.
    Order(Command, &'a str),
    /// A command that there is not.
    Unknown(&'a str),
    /// Words.
    Words,
}

/// Returns the commands as a menu shows them.
pub(crate) fn menu() -> Vec<(&'static str, &'static str)> {
    let rows = COMMANDS.iter();
    rows.map(|(name, does, _)| (*name, *does)).collect()
}

/// Reads a text; in a group the name of the bot that is meant may stand behind a command.
pub(crate) fn read(text: &str) -> TextInput<'_> {
    let Some((name, _, rest)) = split(text) else {
        return TextInput::Words;
    };
    if name.eq_ignore_ascii_case(START) {
        return TextInput::Start(rest);
    }
    COMMANDS
        .iter()
        .find(|(known, ..)| known.eq_ignore_ascii_case(name))
        .map_or(TextInput::Unknown(name), |(_, _, command)| {
            TextInput::Order(*command, rest)
        })
}

/// Returns the bot that a command is meant for, where it says one.
pub(crate) fn addressee(text: &str) -> Option<&str> {
    split(text).and_then(|(_, bot, _)| bot)
}

/// Splits a command into its name, the bot that it says, and what stands behind them.
fn split(text: &str) -> Option<(&str, Option<&str>, &str)> {
    let typed = text.trim().strip_prefix('/')?;
    let (first, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    let is_name = |name: &str| {
        let is_of_names = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        !name.is_empty() && name.chars().all(is_of_names)
    };
    let addressed = first.split_once('@');
    let addressed = addressed.filter(|(name, bot)| is_name(name) && is_name(bot));
    let (name, bot) = addressed.map_or((first, None), |(name, bot)| (name, Some(bot)));
    Some((name, bot, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_known_by_its_name_also_before_that_of_a_bot() {
        for (text, expected, bot) in [
            ("/start 12ab", TextInput::Start("12ab"), None),
            ("/Start", TextInput::Start(""), None),
            ("/status", TextInput::Order(Command::Status, ""), None),
            (
                "/STATUS@rope_bot",
                TextInput::Order(Command::Status, ""),
                Some("rope_bot"),
            ),
            (
                "/pause@Other_bot  walks ",
                TextInput::Order(Command::Pause, "walks"),
                Some("Other_bot"),
            ),
            (
                "/newtask A walk\nof two@three",
                TextInput::Order(Command::New, "A walk\nof two@three"),
                None,
            ),
            ("/approve", TextInput::Unknown("approve"), None),
            ("/etc/x@y is odd", TextInput::Unknown("etc/x@y"), None),
            ("yes@rope_bot", TextInput::Words, None),
            ("", TextInput::Words, None),
        ] {
            assert_eq!((read(text), addressee(text)), (expected, bot), "{text}");
        }
    }
}
