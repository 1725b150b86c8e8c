//! Ideas and specifications on a real store, with a scripted model and a real repository.

#[cfg(test)]
mod amending;
#[cfg(test)]
mod answers;
#[cfg(test)]
mod dry_run;
#[cfg(test)]
mod endings;
#[cfg(test)]
mod ideation;
#[cfg(test)]
mod one_plan;
#[cfg(test)]
mod progress;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod replacing;
#[cfg(test)]
mod specification;
#[cfg(test)]
mod standing;
#[cfg(test)]
mod waiting;
#[cfg(test)]
mod withdrawal;
#[cfg(test)]
mod world;
