//! The hostile programs, by what they are after.

use std::time::Duration;

/// What a case runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Does {
    /// A script of the shell.
    Shell(String),
    /// An attack of `sandbox-hostile`, with arguments.
    Attack(String),
    /// A system call of `raw.c`, with arguments.
    Raw(String),
}

/// How a case has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    Anyhow,
    Exit(i32),
    Signal(i32),
    /// Not well, and before its deadline.
    Early,
    AtDeadline,
}

/// What the tier without namespaces does about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lesser {
    Contains,
    /// It does not, and the documentation says so.
    DoesNot,
}

pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) does: Does,
    pub(crate) ends: Ends,
    pub(crate) lesser: Lesser,
    pub(crate) deadline: Duration,
}

fn case(name: &str, does: Does) -> Case {
    Case { name: name.to_owned(), does, ends: Ends::Anyhow, lesser: Lesser::Contains, deadline: Duration::from_secs(30) }
}

fn shell(name: &str, script: &str) -> Case {
    case(name, Does::Shell(script.to_owned()))
}

fn attack(command: &str) -> Case {
    case(command, Does::Attack(command.to_owned()))
}

fn raw(command: &str) -> Case {
    case(command, Does::Raw(command.to_owned()))
}

impl Case {
    fn ends(self, ends: Ends) -> Case {
        Case { ends, ..self }
    }

    fn lesser(self, lesser: Lesser) -> Case {
        Case { lesser, ..self }
    }

    fn killed_after(self, deadline: Duration) -> Case {
        Case { ends: Ends::AtDeadline, deadline, ..self }
    }
}

const SHORTLY: Duration = Duration::from_millis(500);

/// Too many, too long, and those that want to outlive the call.
pub(crate) fn processes() -> Vec<Case> {
    vec![
        shell("fork_bomb", "f() { f | f & }; f; sleep 5").killed_after(Duration::from_secs(2)).ends(Ends::Anyhow),
        shell("many_processes", "n=0; while [ $n -lt 300 ]; do sleep 30 & n=$((n+1)); done; echo ESCAPED").ends(Ends::Early),
        attack("threads").ends(Ends::Anyhow),
        attack("zombies").ends(Ends::Anyhow),
        shell("endless_loop", "while :; do :; done").ends(Ends::Signal(9)),
        shell("sleeps", "sleep 300").killed_after(SHORTLY),
        shell("stops_itself", "kill -STOP $$").killed_after(SHORTLY),
        shell("ignores_signals", "trap '' TERM HUP INT; while :; do sleep 1; done").killed_after(SHORTLY),
        shell("survivor_by_setsid", "setsid sleep 300 >/dev/null 2>&1 </dev/null & exit 0").ends(Ends::Exit(0)),
        shell("survivor_that_holds_the_streams", "setsid sleep 300 & exit 0").ends(Ends::Exit(0)),
        shell("survivor_by_two_forks", "(setsid sh -c '(sleep 300 &) ; sleep 300' &) ; exit 0").ends(Ends::Exit(0)),
        shell("survivor_without_environment", "env -i setsid sh -c \"sleep 300; : $MARK\" & exit 0").ends(Ends::Exit(0)),
        shell("survivor_at_the_deadline", "setsid setsid sleep 300 & setsid sh -c 'sleep 300 & wait' & sleep 300").killed_after(SHORTLY),
        shell("cron", "echo '* * * * * touch '$OUTSIDE/cron | crontab - && echo ESCAPED; echo true | at now && echo ESCAPED"),
        shell("kill_all", "kill -9 -1; sleep 0.2"),
        raw("kill_all"),
        shell("kill_group", "kill -9 0; sleep 1"),
        shell("kill_victim", "kill -9 $VICTIM && echo ESCAPED; kill -9 $CALLER && echo ESCAPED"),
        raw("kill_parent"),
        shell("stop_caller", "kill -STOP $CALLER $PPID && echo ESCAPED"),
        raw("limit_of_other $VICTIM"),
        raw("priority"),
        shell("nice_of_other", "renice -n 10 -p $VICTIM && echo ESCAPED; taskset -p 1 $VICTIM && echo ESCAPED"),
    ]
}

pub(crate) fn memory() -> Vec<Case> {
    vec![
        attack("memory"),
        attack("memory_of_children").ends(Ends::Signal(9)),
        raw("shared_memory").ends(Ends::Signal(9)),
        raw("stack").ends(Ends::Signal(11)),
        attack("pipes"),
        shell("variable_that_grows", "x=xxxxxxxx; while :; do x=$x$x$x$x; done").ends(Ends::Early),
    ]
}

pub(crate) fn disk() -> Vec<Case> {
    vec![
        shell("one_large_file", "head -c 100000000 /dev/zero > big; [ $(stat -c %s big) -gt 9000000 ] && echo ESCAPED"),
        attack("many_small_files"),
        attack("many_files"),
        attack("deleted_files").lesser(Lesser::DoesNot),
        shell("sparse_file", "truncate -s 1T sparse && echo ESCAPED"),
        shell("sparse_files", "for n in 1 2 3 4 5 6 7 8; do truncate -s 8M sparse$n; done; exit 0").ends(Ends::Anyhow),
        shell("fills_tmp", "for n in 1 2 3 4 5 6; do head -c 8000000 /dev/zero > /tmp/$MARK$n || exit 1; done; echo ESCAPED")
            .ends(Ends::Early),
        shell("fills_shm", "for n in 1 2 3 4 5 6; do head -c 8000000 /dev/zero > /dev/shm/$MARK$n || exit 1; done; echo ESCAPED")
            .ends(Ends::Early),
        attack("nest"),
        shell("odd_names", "touch -- 'a\nb' ' ' '-rf' \"$(printf '\\377\\001')\" && mkdir .hidden && exit 0").ends(Ends::Exit(0)),
        shell("core_dump", "ulimit -c unlimited; kill -SEGV $$").ends(Ends::Signal(11)),
        shell("special_files", "mkfifo pipe; ln -s $SECRET link; ln -s pipe loop; exit 0").ends(Ends::Exit(0)),
    ]
}

pub(crate) fn files() -> Vec<Case> {
    vec![
        shell("write_outside", "echo pwned > $OUTSIDE/pwned && echo ESCAPED"),
        shell("change_outside", "echo pwned > $KEPT && echo ESCAPED; rm -f $KEPT && [ -e $KEPT ] && echo ESCAPED"),
        shell("write_by_parents", "echo pwned > ../../../../../../../..$OUTSIDE/pwned && echo ESCAPED"),
        shell("write_by_link", "ln -s $OUTSIDE out; echo pwned > out/pwned && echo ESCAPED"),
        shell("hard_link", "ln $SECRET stolen && echo ESCAPED; ln $KEPT stolen && echo ESCAPED"),
        shell("rename_outside", "mv $KEPT mine && echo ESCAPED; touch x; mv x $OUTSIDE/x && echo ESCAPED"),
        raw("chmod $KEPT"),
        shell("times_outside", "touch -d 2001-01-01 $KEPT"),
        shell("owner_and_attributes_outside", "chown 0:0 $KEPT && echo ESCAPED; setfattr -n user.x -v y $KEPT && echo ESCAPED"),
        raw("truncate $KEPT"),
        raw("empty_by_reading $KEPT"),
        raw("openat2 $KEPT"),
        shell(
            "write_system",
            "for d in /usr/bin /usr/local/bin /etc /lib /bin / /dev /var /opt /root; do echo x > $d/$MARK && echo ESCAPED; done",
        ),
        shell("leave_in_tmp", "echo x > /tmp/$MARK-left; echo x > /var/tmp/$MARK-left; echo x > /dev/shm/$MARK-left"),
        shell(
            "race_in_tmp",
            "n=0; while [ $n -lt 200 ]; do ln -sf $OUTSIDE /tmp/$MARK; rm -f /tmp/$MARK; mkdir /tmp/$MARK; rmdir /tmp/$MARK; n=$((n+1)); done 2>/dev/null",
        ),
        shell("overwrite_launcher", "for p in /proc/self/exe /proc/1/exe /proc/$PPID/exe $HOSTILE; do (echo x > $p) && echo ESCAPED; done"),
        shell("setuid_file", "cp /bin/sh lender; chmod 6755 lender; exit 0").ends(Ends::Exit(0)),
        shell(
            "setuid_program",
            "for p in su sudo mount passwd; do s=$(command -v $p) && [ -u $s ] && echo | $s -c id 2>&1 | grep uid=0 && echo ESCAPED; done",
        ),
        shell("swap_working_directory", "cd /; rm -rf $OLDPWD; mv $OLDPWD $OLDPWD-; ln -s $OUTSIDE $OLDPWD; exit 0"),
        shell("lock_outside", "flock -n $KEPT true && echo ESCAPED"),
    ]
}

pub(crate) fn devices() -> Vec<Case> {
    vec![
        shell(
            "raw_memory",
            "head -c 1 /dev/mem && echo ESCAPED; head -c 1 /dev/kmem && echo ESCAPED; head -c 1 /proc/kcore && echo ESCAPED",
        ),
        shell("disks", "for d in /dev/vda /dev/sda /dev/nvme0n1 /dev/loop0; do head -c 1 $d && echo ESCAPED; done"),
        shell("mknod", "mknod memory c 1 1 && head -c 1 memory && echo ESCAPED; mknod disk b 254 0 && head -c 1 disk && echo ESCAPED"),
        shell("terminal", "echo x > /dev/tty && echo ESCAPED; echo x > /dev/console && echo ESCAPED; echo x > /dev/ptmx && echo ESCAPED"),
        shell("kernel_log", "head -c 1 /dev/kmsg && echo ESCAPED; dmesg && echo ESCAPED"),
        shell("sys", "ls /sys/kernel && echo ESCAPED; echo 1 > /sys/power/state && echo ESCAPED"),
        shell("sysrq", "echo h > /proc/sysrq-trigger && echo ESCAPED"),
        shell("core_pattern", "echo '|/bin/sh' > /proc/sys/kernel/core_pattern && echo ESCAPED"),
        shell("settings", "for s in vm/overcommit_memory kernel/hostname kernel/sysrq; do echo 1 > /proc/sys/$s && echo ESCAPED; done"),
        shell(
            "release_agent",
            "for d in /sys/fs/cgroup /sys/fs/cgroup/*; do echo $HOSTILE > $d/release_agent && echo ESCAPED; mkdir $d/$MARK && echo ESCAPED; done",
        ),
        shell("mount_cgroup", "mkdir c; mount -t cgroup -o rdma cgroup c && echo ESCAPED; mount --bind / c && echo ESCAPED"),
        shell("chroot_breakout", "mkdir c; chroot c && echo ESCAPED; unshare -Ur true && echo ESCAPED; unshare -m true && echo ESCAPED"),
        shell("enter_namespaces", "nsenter -t 1 -m true && echo ESCAPED; nsenter -t $CALLER -a true && echo ESCAPED"),
    ]
}

pub(crate) fn secrets() -> Vec<Case> {
    vec![
        shell("secret_file", "cat $SECRET && echo ESCAPED"),
        shell(
            "secret_by_root_of_others",
            "for p in 1 $PPID $CALLER $VICTIM; do cat /proc/$p/root$SECRET && echo ESCAPED; cat /proc/$p/cwd/Cargo.toml && echo ESCAPED; done",
        ),
        shell("secret_by_links", "ln -s $SECRET s; cat s && echo ESCAPED; cat /proc/self/cwd/s && echo ESCAPED"),
        shell(
            "environment_of_others",
            "for p in 1 $PPID $CALLER $VICTIM /proc/[0-9]*; do p=${p#/proc/}; [ $p = $$ ] || { tr '\\0' '\\n' < /proc/$p/environ | grep -v ^_= | grep -q CARGO && echo ESCAPED; }; done",
        ),
        shell("environment_of_caller", "env | grep -E 'CARGO|HOME|USER|AUTOACT' && echo ESCAPED"),
        shell(
            "memory_of_others",
            "for p in 1 $PPID $CALLER $VICTIM; do head -c 1 /proc/$p/mem && echo ESCAPED; cat /proc/$p/maps && echo ESCAPED; ls /proc/$p/fd/ && echo ESCAPED; done",
        ),
        shell("command_lines_of_others", "cat /proc/$VICTIM/cmdline /proc/$CALLER/cmdline && echo ESCAPED"),
        shell(
            "home",
            "ls /root /home ~/.ssh /var/lib /run /srv && echo ESCAPED; cat /etc/shadow && echo ESCAPED; cat /etc/ssh/ssh_host_* && echo ESCAPED",
        ),
        shell("service_account", "cat /var/run/secrets/kubernetes.io/serviceaccount/token && echo ESCAPED; ls /var/run && echo ESCAPED"),
        shell("names_outside", "ls $OUTSIDE && echo ESCAPED"),
        shell("metadata_outside", "[ -e $SECRET ] && echo ESCAPED").lesser(Lesser::DoesNot),
        shell("users_of_the_host", "[ $(wc -l < /etc/passwd) -gt 2 ] && echo ESCAPED").lesser(Lesser::DoesNot),
        shell("hostname", "[ $(uname -n) = sandbox ] || echo ESCAPED").lesser(Lesser::DoesNot),
        raw("descriptors"),
    ]
}

pub(crate) fn network() -> Vec<Case> {
    vec![
        attack("tcp $TCP"),
        attack("udp $UDP"),
        attack("listen"),
        attack("unix $SOCKET"),
        attack("abstract $ABSTRACT"),
        raw("raw_socket"),
        raw("packet_socket"),
        raw("netlink_socket"),
        raw("vsock_socket"),
        raw("alg_socket"),
        shell("names", "getent ahosts example.org && echo ESCAPED; cat /etc/resolv.conf && echo ESCAPED"),
    ]
}

/// System calls that no program needs and many exploits do.
pub(crate) fn calls() -> Vec<Case> {
    let names = "ptrace traceme keyctl add_key request_key bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_setup \
        kexec_load init_module finit_module delete_module mount umount pivot_root chroot unshare setns clone_newuser clone3 \
        process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp move_pages open_by_handle_at name_to_handle_at \
        fanotify_init inotify_init memfd_create shmget semget msgget mq_open swapon reboot settimeofday sethostname quotactl fsopen \
        open_tree move_mount mount_setattr sync syslog personality future_call x32_call tiocsti tiocsti_wide tioclinux";
    let mut cases: Vec<Case> = names.split_whitespace().map(|name| raw(name).ends(Ends::Exit(0))).collect();
    if cfg!(target_arch = "x86_64") {
        cases.push(raw("int80").ends(Ends::Signal(31)));
    }
    cases
}

/// What a program does with its streams, and how it ends.
pub(crate) fn streams() -> Vec<Case> {
    vec![
        attack("output").ends(Ends::Early),
        shell("output_of_yes", "exec yes").ends(Ends::Signal(13)),
        attack("ignore_input").ends(Ends::Exit(0)),
        shell("closes_its_streams", "exec <&- >&- 2>&-; exit 3").ends(Ends::Exit(3)),
        shell("writes_to_its_input", "echo ESCAPED >&0"),
        shell("code", "exit 42").ends(Ends::Exit(42)),
        shell("ends_by_signal", "kill -SEGV $$").ends(Ends::Signal(11)),
        shell("ends_by_term", "kill $$").ends(Ends::Signal(15)),
        shell("looks_like_the_launcher", "exit 125").ends(Ends::Exit(125)),
    ]
}
