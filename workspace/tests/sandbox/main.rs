//! Breaks out of the checkout in every way that is known, then does the same confined.
//!
//! Each attack is an effect, and first shows that it works where nothing holds it; it is bounded, since then nothing does.

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod ground;
#[cfg(test)]
mod holds;
#[cfg(test)]
mod hosts;
#[cfg(test)]
mod life;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod shown;
#[cfg(test)]
mod starter;
#[cfg(test)]
mod tools;
