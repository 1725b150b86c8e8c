//! Runs the store on real databases, a file and a server: commits, routing, leases, several processes, damage, bounds.

#[cfg(test)]
#[macro_use]
mod support;

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod breaking;
#[cfg(test)]
mod claims;
#[cfg(test)]
mod commits;
#[cfg(test)]
mod copying;
#[cfg(test)]
mod crashes;
#[cfg(test)]
mod deliveries;
#[cfg(test)]
mod earlier;
#[cfg(test)]
mod instance;
#[cfg(test)]
mod leases;
#[cfg(test)]
mod opening;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod server;
#[cfg(test)]
mod stems;
#[cfg(test)]
mod usage;
