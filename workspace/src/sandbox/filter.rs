//! Refuses system calls that no build needs and that have been ways out: debugging others, mounts, namespaces, the kernel.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Is,
    SeccompCondition, SeccompFilter, SeccompRule, TargetArch, apply_filter,
};

/// Refused whatever their arguments are.
const REFUSED: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_syslog,
    libc::SYS_nfsservctl,
    libc::SYS_vhangup,
];
/// Sockets of these families lead to this machine's own peers, to its kernel, or nowhere.
const FAMILIES: [i32; 4] = [
    libc::AF_UNIX,
    libc::AF_INET,
    libc::AF_INET6,
    libc::AF_NETLINK,
];
/// Every flag that makes a namespace.
const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;
/// Another way to the same calls, where a kernel still has it.
#[cfg(target_arch = "x86_64")]
const OTHER_NUMBERS: i64 = 0x4000_0000;

/// Filters the calls of this process and of all that it starts.
pub(super) fn apply() -> Result<(), Error> {
    for program in programs()? {
        apply_filter(&program)?;
    }
    Ok(())
}

fn programs() -> Result<[BpfProgram; 2], BackendError> {
    let allowed = SeccompAction::Allow;
    let unknown = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    Ok([
        compile(refused()?, allowed.clone(), libc::EPERM)?,
        // Its flags lie in memory, where no filter looks; libraries then take the older call.
        compile(unknown, allowed, libc::ENOSYS)?,
    ])
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn compile(rules: Rules, others: SeccompAction, error: i32) -> Result<BpfProgram, BackendError> {
    let refusal = SeccompAction::Errno(error.unsigned_abs());
    let machine = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(with_other_numbers(rules), others, refusal, machine)?.try_into()
}

#[cfg(target_arch = "x86_64")]
fn with_other_numbers(rules: Rules) -> Rules {
    let others: Rules = rules
        .iter()
        .map(|(call, rules)| (call | OTHER_NUMBERS, rules.clone()))
        .collect();
    rules.into_iter().chain(others).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn with_other_numbers(rules: Rules) -> Rules {
    rules
}

fn refused() -> Result<Rules, BackendError> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let mut other_families = Vec::new();
    for family in FAMILIES {
        other_families.push(argument(0, Is::Ne, family)?);
    }
    rules.insert(libc::SYS_socket, vec![SeccompRule::new(other_families)?]);
    // One rule for each flag: a mask asks for all of its bits.
    let flags: Vec<i32> = (0..31)
        .map(|bit| 1 << bit)
        .filter(|flag| NAMESPACES & flag != 0)
        .collect();
    for call in [libc::SYS_clone, libc::SYS_unshare] {
        let mut any = Vec::new();
        for flag in &flags {
            let bit = u64::from(flag.unsigned_abs());
            any.push(SeccompRule::new(vec![argument(
                0,
                Is::MaskedEq(bit),
                *flag,
            )?])?);
        }
        rules.insert(call, any);
    }
    // What is typed into a terminal runs with the rights of whoever sits there.
    let mut typed = Vec::new();
    for request in [libc::TIOCSTI, libc::TIOCLINUX] {
        let request = i32::try_from(request).unwrap_or_default();
        typed.push(SeccompRule::new(vec![argument(1, Is::Eq, request)?])?);
    }
    rules.insert(libc::SYS_ioctl, typed);
    Ok(rules)
}

fn argument(index: u8, is: Is, value: i32) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(index, Width::Dword, is, u64::from(value.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_can_be_made() {
        let [calls, newer] = programs().unwrap();
        assert!(calls.len() > REFUSED.len() && newer.len() > 2);
    }
}
