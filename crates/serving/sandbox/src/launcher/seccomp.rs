//! Which system calls a program may make.
//!
//! A list of what is denied, because a list of what is allowed breaks programs in ways that nobody
//! understands. New calls are no hole in it: those that this list was not checked against do not
//! exist for the program.

use std::collections::BTreeMap;

use landlock::ABI;
use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
    apply_filter, sock_filter,
};

use super::error::LaunchError;

mod calls;

/// One condition on an argument.
type Condition = (u8, SeccompCmpOp, u64);
/// Calls with the conditions under which they match; with none they always do.
type Rules = BTreeMap<c_long, Vec<Vec<Condition>>>;

/// The newest call that the lists were checked against (Linux 6.17: `file_setattr`). Numbers are the
/// same on all architectures from 424 on. The calls of x32, another numbering on x86-64, are above.
const NEWEST_CALL: u32 = 469;

/// For a program in namespaces: what reaches around them or into seldom used parts of the kernel.
pub(crate) fn in_namespaces(network: bool) -> Result<(), LaunchError> {
    let mut denied = calls::denied();
    deny_sockets(&mut denied, if network { &calls::NETWORK } else { &calls::LOCAL });
    apply(denied, libc::EPERM)?;
    apply(always(calls::ABSENT), libc::ENOSYS)?;
    apply_newest()
}

/// For a program among the caller's processes: also what Landlock of version `abi` does not cover.
pub(crate) fn in_place(network: bool, abi: ABI) -> Result<(), LaunchError> {
    let mut denied = calls::denied();
    add(&mut denied, calls::denied_in_place());
    if abi < ABI::V6 {
        add(&mut denied, calls::signals());
    }
    deny_sockets(&mut denied, if network { &calls::NETWORK } else { &[] });
    apply(denied, libc::EPERM)?;
    apply(always(calls::ABSENT).into_iter().chain(always(&[libc::SYS_openat2])).collect(), libc::ENOSYS)?;
    apply_newest()
}

/// Calls that match by either.
fn add(rules: &mut Rules, more: Rules) {
    for (call, added) in more {
        match rules.get_mut(&call) {
            // without conditions it matches always
            Some(present) if present.is_empty() || added.is_empty() => present.clear(),
            Some(present) => present.extend(added),
            None => drop(rules.insert(call, added)),
        }
    }
}

/// Sockets of no other families.
fn deny_sockets(denied: &mut Rules, families: &[i32]) {
    let others = families.iter().map(|family| (0, SeccompCmpOp::Ne, *family as u64)).collect::<Vec<_>>();
    let rules = denied.entry(libc::SYS_socket).or_default();
    match others.is_empty() {
        true => rules.clear(),
        false => rules.extend([others, calls::netlink_but_routes()]),
    }
}

fn always(calls: &[c_long]) -> Rules {
    calls.iter().map(|call| (*call, Vec::new())).collect()
}

fn apply(rules: Rules, errno: i32) -> Result<(), LaunchError> {
    let program = compile(rules, errno).map_err(|error| failed(&error))?;
    apply_filter(&program).map_err(|error| failed(&error))
}

fn compile(rules: Rules, errno: i32) -> Result<BpfProgram, BackendError> {
    let compiled = rules.into_iter().map(|(call, rules)| Ok((call, rules.into_iter().map(rule).collect::<Result<_, _>>()?)));
    let rules = compiled.collect::<Result<BTreeMap<_, _>, BackendError>>()?;
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno as u32), architecture)?.try_into()
}

fn rule(conditions: Vec<Condition>) -> Result<SeccompRule, BackendError> {
    // the kernel reads 32 bits of all arguments that are compared here
    let compiled = conditions.into_iter().map(|(argument, compare, value)| {
        let length = if matches!(compare, calls::WIDE) { SeccompCmpArgLen::Qword } else { SeccompCmpArgLen::Dword };
        SeccompCondition::new(argument, length, compare, value)
    });
    SeccompRule::new(compiled.collect::<Result<_, _>>()?)
}

/// Calls newer than [`NEWEST_CALL`] do not exist.
fn apply_newest() -> Result<(), LaunchError> {
    let instruction = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    let program = [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0), // the number of the call
        instruction(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K, 0, 1, NEWEST_CALL),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    apply_filter(&program).map_err(|error| failed(&error))
}

fn failed(error: &dyn std::fmt::Display) -> LaunchError {
    LaunchError::Refused(format!("cannot restrict the program's system calls: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_add_up_and_none_is_the_strongest() {
        let one = |argument| vec![vec![(argument, SeccompCmpOp::Eq, 1)]];
        let mut rules = Rules::from([(1, one(0)), (2, Vec::new()), (3, one(0))]);
        add(&mut rules, Rules::from([(1, one(1)), (2, one(1)), (3, Vec::new()), (4, one(1))]));
        assert_eq!([1, 2, 3, 4].map(|call| rules[&call].len()), [2, 0, 0, 1]);
    }

    #[test]
    fn the_filters_for_old_versions_of_landlock_compile() {
        let mut rules = calls::denied();
        add(&mut rules, calls::denied_in_place());
        add(&mut rules, calls::signals());
        deny_sockets(&mut rules, &calls::NETWORK);
        assert!(rules[&libc::SYS_kill].is_empty() && rules[&libc::SYS_ioctl].len() > 2);
        compile(rules, libc::EPERM).unwrap();
    }
}
