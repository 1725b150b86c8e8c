//! Runs the bot against an emulator of Telegram that others wrote.

mod answering;
mod house;
mod strangers;
mod talking;
