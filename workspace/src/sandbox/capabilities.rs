//! Hands capabilities on to the first process of the namespaces, and takes all of them from the command.

use std::io;

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, configure_capability_in_ambient_set,
    remove_capability_from_bounding_set, set_capabilities,
};

/// What building a tree and a network takes.
const NEEDED: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::SETPCAP);

/// Lets the next program have what it needs, whoever its user is.
pub(super) fn hand_on() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.inheritable = sets.permitted;
    set_capabilities(None, sets)?;
    for capability in NEEDED {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

/// Leaves this process and all that it starts without any.
pub(super) fn drop_all() -> io::Result<()> {
    for capability in CapabilitySet::all() {
        // One that the kernel does not know cannot be had. Without the right to take it out there is nothing to
        // gain it from either: no new privileges come with any program from here on.
        if capability_is_in_bounding_set(capability) == Ok(true) {
            match remove_capability_from_bounding_set(capability) {
                Ok(()) | Err(Errno::PERM) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    Ok(set_capabilities(None, sets)?)
}
