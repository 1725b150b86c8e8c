//! Verb `top`: what runs, waits, asks and costs, on one screen that stays fresh.
//!
//! It shows what the views of `desk` hold and changes nothing. The screen is one of its own, and the terminal is as it was
//! when it ends, however it ends.

mod draw;
mod picture;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::app::App;
use crate::error::CliError;
use crate::wiring::OpenProject;
use draw::View;
use picture::Picture;

/// How long a key may go unheard.
const LISTEN: Duration = Duration::from_millis(100);

/// How it is kept fresh.
#[derive(Debug, Args)]
pub struct Top {
    /// Seconds between two looks.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=60))]
    every: u8,
}

impl Top {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
            let next =
                "`ropewalk agent list`, `wait list`, `question list` and `usage` print the same";
            return Err(CliError::refused(
                "terminal",
                ("`top` needs a terminal", next),
            ));
        }
        let opened = app.open().await?;
        let every = Duration::from_secs(self.every.into());
        // Looked at once before the screen is taken, so that what fails is said where it can be read.
        let picture = Picture::of(&opened).await?;
        let outcome = watch(&opened, picture, every).await;
        opened.close().await?;
        outcome
    }
}

/// The screen, which is given back when this is dropped, on a signal or an error too.
struct Screen(DefaultTerminal);

impl Screen {
    fn take() -> Result<Self, CliError> {
        ratatui::try_init().map(Self).map_err(CliError::failed)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        drop(self.0.show_cursor());
        drop(ratatui::try_restore());
    }
}

/// Draws and listens until somebody leaves.
async fn watch(
    opened: &OpenProject,
    mut picture: Picture,
    every: Duration,
) -> Result<(), CliError> {
    let mut screen = Screen::take()?;
    let mut view = View::default();
    loop {
        let looked = Instant::now();
        while looked.elapsed() < every {
            let drawn = screen
                .0
                .draw(|frame| draw::draw(frame, &picture, &mut view));
            drawn.map_err(CliError::failed)?;
            match heard().await? {
                Some(key) if leaves(key) => return Ok(()),
                Some(key) if key.code == KeyCode::Char('r') => break,
                Some(key) => press(&mut view, key.code),
                None => {}
            }
        }
        picture = Picture::of(opened).await?;
    }
}

/// Waits a moment for a key; a new size of the terminal only draws anew.
async fn heard() -> Result<Option<KeyEvent>, CliError> {
    let listen = || -> std::io::Result<Option<KeyEvent>> {
        if !event::poll(LISTEN)? {
            return Ok(None);
        }
        Ok(match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => Some(key),
            _ => None,
        })
    };
    let listened = tokio::task::spawn_blocking(listen).await;
    listened
        .map_err(CliError::failed)?
        .map_err(CliError::failed)
}

fn leaves(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
        || (control && key.code == KeyCode::Char('c'))
}

fn press(view: &mut View, key: KeyCode) {
    match key {
        KeyCode::Tab => view.go(1),
        KeyCode::BackTab => view.go(-1),
        KeyCode::Char(digit @ '1'..='4') => view.open(usize::from(digit as u8 - b'1')),
        KeyCode::Char('j') | KeyCode::Down => view.scroll(1),
        KeyCode::Char('k') | KeyCode::Up => view.scroll(-1),
        _ => {}
    }
}
