//! Runs the bot against an emulator of Telegram that others wrote.

mod answering;
mod house;
mod phones;
mod strangers;
mod talking;
