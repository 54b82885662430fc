//! Giving up privileges for good.

use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, configure_capability_in_ambient_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits, set_no_new_privs,
};

use super::error::{LaunchError, Step};

/// The highest number that a capability may have some day.
const CAPABILITIES: u32 = 64;

/// What process 1 needs to build the root and to give everything up. Only valid in its namespaces.
const BUILDS: [CapabilitySet; 2] = [CapabilitySet::SYS_ADMIN, CapabilitySet::SETPCAP];

/// Lets the next executable keep what it builds the root with.
pub(crate) fn keep_for_next() -> Result<(), LaunchError> {
    let step = "hand on capabilities within the user namespace";
    let sets = capabilities(None).step(step)?;
    let kept = BUILDS.into_iter().fold(CapabilitySet::empty(), |all, one| all | one);
    set_capabilities(None, CapabilitySets { inheritable: kept, ..sets }).step(step)?;
    BUILDS.into_iter().try_for_each(|one| configure_capability_in_ambient_set(one, true).step(step))
}

/// No capability now, none by executing a file, and no other privilege by executing one.
pub(crate) fn drop_privileges() -> Result<(), LaunchError> {
    let step = "drop the capabilities";
    clear_ambient_capability_set().step(step)?;
    let own = capabilities(None).step(step)?;
    if own.effective.contains(CapabilitySet::SETPCAP) {
        for number in 0..CAPABILITIES {
            // this kernel may have fewer
            let _ = remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number));
        }
        let locked = CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_SETUID_FIXUP
            | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
        set_capabilities_secure_bits(locked).step(step)?;
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none }).step(step)?;
    set_no_new_privs(true).step("refuse new privileges")
}
