//! Asks a served store over real connections, as programs and pages do, and looks at what that leaves behind.

#[cfg(test)]
mod browser;
#[cfg(test)]
mod crowds;
#[cfg(test)]
mod doors;
#[cfg(test)]
mod endings;
#[cfg(test)]
mod figures;
#[cfg(test)]
mod files;
#[cfg(test)]
mod filters;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod lines;
#[cfg(test)]
mod models;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod paging;
#[cfg(test)]
mod proxies;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod resources;
#[cfg(test)]
mod standing;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod troubles;
#[cfg(test)]
mod world;
