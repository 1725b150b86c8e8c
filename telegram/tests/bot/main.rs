//! Runs the bot against an emulator of Telegram that others wrote.

mod answering;
mod behind;
mod building;
mod commanding;
mod files;
mod happening;
mod lengths;
mod losing;
mod outage;
mod phones;
mod queueing;
mod reaching;
mod reminding;
mod replying;
mod standing;
mod strangers;
mod streaming;
mod talking;
mod world;
