//! The lists of system calls.

use libc::c_long;
use seccompiler::SeccompCmpOp::{self, Eq, MaskedEq, Ne};

use super::Rules;

/// Families of sockets where the network is granted. None of them reaches a local service by name.
pub(super) const NETWORK: [i32; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
/// Families where it is not: within namespaces, local sockets reach nobody else.
pub(super) const LOCAL: [i32; 1] = [libc::AF_UNIX];

/// Netlink reaches large parts of the kernel: resolving names needs the routes alone.
pub(super) fn netlink_but_routes() -> Vec<super::Condition> {
    vec![(0, Eq, libc::AF_NETLINK as u64), (2, Ne, libc::NETLINK_ROUTE as u64)]
}

/// Namespaces that `clone` can make.
const NEW_NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
/// `ioctl`s that type into a terminal.
const TERMINAL: [u64; 2] = [libc::TIOCSTI, 0x541c]; // TIOCLINUX

/// Does not exist for the program, so that it does without: with `clone3` no filter sees what is
/// made; the others take memory or instances that nothing bounds, or outlive the program.
pub(super) const ABSENT: &[c_long] = &[
    libc::SYS_clone3,
    libc::SYS_inotify_init1,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_inotify_init,
    libc::SYS_io_setup,
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_mq_open,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_shmget,
];

/// Refused in every sandbox.
const DENIED: &[c_long] = &[
    // other processes
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    // mounts, roots and namespaces
    libc::SYS_chroot,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_pivot_root,
    libc::SYS_setns,
    libc::SYS_umount2,
    libc::SYS_unshare,
    // the kernel itself
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_perf_event_open,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_sync, // makes the host write, and everybody wait
    libc::SYS_syncfs,
    libc::SYS_syslog,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

#[cfg(target_arch = "x86_64")]
const DENIED_X86: &[c_long] =
    &[libc::SYS__sysctl, libc::SYS_ioperm, libc::SYS_iopl, libc::SYS_modify_ldt, libc::SYS_sysfs, libc::SYS_uselib, libc::SYS_ustat];

/// `open_tree_attr`, newer than the `libc` crate.
const OPEN_TREE_ATTR: c_long = 467;

/// What is refused everywhere.
pub(super) fn denied() -> Rules {
    let mut rules = super::always(DENIED);
    #[cfg(target_arch = "x86_64")]
    rules.extend(super::always(DENIED_X86));
    let new = NEW_NAMESPACES.map(|flag| vec![(0, MaskedEq(flag as u64), flag as u64)]);
    rules.insert(libc::SYS_clone, new.to_vec());
    rules.insert(libc::SYS_ioctl, TERMINAL.map(|request| vec![(1, Eq, request)]).to_vec());
    let core = libc::RLIMIT_CORE as u64;
    rules.insert(libc::SYS_prlimit64, vec![vec![(1, Eq, core), (2, WIDE, 0)]]);
    rules.insert(libc::SYS_setrlimit, vec![vec![(0, Eq, core)]]);
    // asking is allowed, and the plain Linux ones; others switch protections of memory off
    let plain = [0, 0x0008, 0x2_0000, 0x2_0008, 0xffff_ffff];
    rules.insert(libc::SYS_personality, vec![plain.map(|persona| (0, Ne, persona)).to_vec()]);
    rules
}

/// Refused where the caller's processes and files are in sight: what changes them by number or by
/// name. Landlock does not cover modes, owners, times and attributes.
const DENIED_IN_PLACE: &[c_long] = &[
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fremovexattr,
    libc::SYS_fsetxattr,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_setxattr,
    libc::SYS_truncate,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
];
// newer than the `libc` crate, on some architectures
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const FILE_SETATTR: c_long = 469;

#[cfg(target_arch = "x86_64")]
const DENIED_IN_PLACE_X86: &[c_long] =
    &[libc::SYS_chmod, libc::SYS_chown, libc::SYS_futimesat, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes];

pub(super) fn denied_in_place() -> Rules {
    let mut rules = super::always(DENIED_IN_PLACE);
    #[cfg(target_arch = "x86_64")]
    rules.extend(super::always(DENIED_IN_PLACE_X86));
    // emptying a file that was opened to be read: old versions of Landlock let that pass
    let emptied = (libc::O_TRUNC | libc::O_ACCMODE) as u64;
    let emptying = |argument| vec![vec![(argument, MaskedEq(emptied), libc::O_TRUNC as u64)]];
    rules.insert(libc::SYS_openat, emptying(2));
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, emptying(1));
    // modes of open files, but no bit that lends rights
    let bit = |mode: u32| vec![(1, MaskedEq(u64::from(mode)), u64::from(mode))];
    rules.insert(libc::SYS_fchmod, vec![bit(libc::S_ISUID), bit(libc::S_ISGID)]);
    // times of open files only
    rules.insert(libc::SYS_utimensat, vec![vec![(1, WIDE, 0)]]);
    // its own limits, priority and processors only
    for call in
        [libc::SYS_prlimit64, libc::SYS_sched_setaffinity, libc::SYS_sched_setattr, libc::SYS_sched_setparam, libc::SYS_sched_setscheduler]
    {
        rules.insert(call, vec![vec![(0, Ne, 0)]]);
    }
    for call in [libc::SYS_setpriority, libc::SYS_ioprio_set] {
        rules.insert(call, vec![vec![(1, Ne, 0)]]);
    }
    rules
}

/// Compares a pointer, all 64 bits of it.
pub(super) const WIDE: SeccompCmpOp = SeccompCmpOp::Gt;

/// Ways to signal a process: Landlock before version 6 does not confine them.
pub(super) fn signals() -> Rules {
    let calls = [
        libc::SYS_kill,
        libc::SYS_pidfd_send_signal,
        libc::SYS_rt_sigqueueinfo,
        libc::SYS_rt_tgsigqueueinfo,
        libc::SYS_tgkill,
        libc::SYS_tkill,
    ];
    let mut rules = super::always(&calls);
    let (own, own_ex, signal) = (libc::F_SETOWN as u64, 15, 10); // F_SETOWN_EX, F_SETSIG
    rules.insert(libc::SYS_fcntl, [own, own_ex, signal].map(|command| vec![(1, Eq, command)]).to_vec());
    let (set_owner, set_group) = (0x8901, 0x8902); // FIOSETOWN, SIOCSPGRP
    let requests = TERMINAL.into_iter().chain([set_owner, set_group]);
    rules.insert(libc::SYS_ioctl, requests.map(|request| vec![(1, Eq, request)]).collect());
    rules
}
