//! Runs the store on real database files: commits, routing, leases, several processes, damage.

#[cfg(test)]
mod commits;
#[cfg(test)]
mod crashes;
#[cfg(test)]
mod deliveries;
#[cfg(test)]
mod leases;
#[cfg(test)]
mod opening;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod support;
