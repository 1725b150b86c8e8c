//! The agents that watch, decide and learn, on a real store: an event goes in, its effects are compared.

#[cfg(test)]
mod gave_up;
#[cfg(test)]
mod improvement;
#[cfg(test)]
mod monitor;
#[cfg(test)]
mod owners;
#[cfg(test)]
mod pm;
mod preference;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod rejection;
#[cfg(test)]
mod stopped;
#[cfg(test)]
mod succession;
#[cfg(test)]
mod workshop;
#[cfg(test)]
mod world;
