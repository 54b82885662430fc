/* System calls that Rust offers no safe function for. `raw NAME` makes one with arguments that do
 * nothing where it is allowed, and prints ESCAPED where the kernel got as far as looking at them:
 * a filter answers EPERM or ENOSYS, and file rules EACCES. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct { const char *name; long number, a, b, c, d; } calls[] = {
    {"ptrace", SYS_ptrace, 16 /* ATTACH */, 0x7fffffff, 0, 0},
    {"traceme", SYS_ptrace, 0, 0, 0, 0},
    {"keyctl", SYS_keyctl, 0, -3, 0, 0},
    {"add_key", SYS_add_key, 0, 0, 0, 0},
    {"request_key", SYS_request_key, 0, 0, 0, 0},
    {"bpf", SYS_bpf, 0, 0, 0, 0},
    {"perf_event_open", SYS_perf_event_open, 0, 0, -1, -1},
    {"userfaultfd", SYS_userfaultfd, 1, 0, 0, 0},
    {"io_uring_setup", SYS_io_uring_setup, 8, 0, 0, 0},
    {"io_uring_enter", SYS_io_uring_enter, -1, 0, 0, 0},
    {"io_setup", SYS_io_setup, 8, 0, 0, 0},
    {"kexec_load", SYS_kexec_load, 0, 0, 0, 0},
    {"init_module", SYS_init_module, 0, 0, 0, 0},
    {"finit_module", SYS_finit_module, -1, 0, 0, 0},
    {"delete_module", SYS_delete_module, 0, 0, 0, 0},
    {"mount", SYS_mount, 0, 0, 0, 0},
    {"umount", SYS_umount2, 0, 0, 0, 0},
    {"pivot_root", SYS_pivot_root, 0, 0, 0, 0},
    {"chroot", SYS_chroot, 0, 0, 0, 0},
    {"unshare", SYS_unshare, 0x10000000 /* CLONE_NEWUSER */, 0, 0, 0},
    {"setns", SYS_setns, -1, 0, 0, 0},
    {"clone_newuser", SYS_clone, 0x10000000 | SIGCHLD, 0, 0, 0},
    {"clone3", SYS_clone3, 0, 0, 0, 0},
    {"process_vm_readv", SYS_process_vm_readv, 0x7fffffff, 0, 0, 0},
    {"process_vm_writev", SYS_process_vm_writev, 0x7fffffff, 0, 0, 0},
    {"process_madvise", SYS_process_madvise, -1, 0, 0, 0},
    {"pidfd_getfd", SYS_pidfd_getfd, -1, 0, 0, 0},
    {"kcmp", SYS_kcmp, 0x7fffffff, 0x7fffffff, 0, 0},
    {"move_pages", SYS_move_pages, 0x7fffffff, 0, 0, 0},
    {"open_by_handle_at", SYS_open_by_handle_at, -1, 0, 0, 0},
    {"name_to_handle_at", SYS_name_to_handle_at, -1, 0, 0, 0},
    {"fanotify_init", SYS_fanotify_init, 0, 0, 0, 0},
    {"inotify_init", SYS_inotify_init1, 0, 0, 0, 0},
    {"memfd_create", SYS_memfd_create, 0, 0, 0, 0},
    {"shmget", SYS_shmget, 0, 4096, 0600 | 01000, 0},
    {"semget", SYS_semget, 0, 1, 0600 | 01000, 0},
    {"msgget", SYS_msgget, 0, 0600 | 01000, 0, 0},
    {"mq_open", SYS_mq_open, 0, 0, 0, 0},
    {"swapon", SYS_swapon, 0, 0, 0, 0},
    {"reboot", SYS_reboot, 0, 0, 0, 0},
    {"settimeofday", SYS_settimeofday, 1, 0, 0, 0},
    {"sethostname", SYS_sethostname, 0, -1, 0, 0},
    {"quotactl", SYS_quotactl, 0, 0, 0, 0},
    {"fsopen", SYS_fsopen, 0, 0, 0, 0},
    {"open_tree", SYS_open_tree, -1, 0, 0, 0},
    {"move_mount", SYS_move_mount, -1, 0, -1, 0},
    {"mount_setattr", SYS_mount_setattr, -1, 0, 0, 0},
    {"sync", SYS_sync, 0, 0, 0, 0},
    {"syslog", SYS_syslog, 10, 0, 0, 0},
    {"personality", SYS_personality, 0x0400000 /* READ_IMPLIES_EXEC */, 0, 0, 0},
    {"future_call", 999, 0, 0, 0, 0},
    {"x32_call", 0x40000000L | 39, 0, 0, 0, 0},
    {"tiocsti", SYS_ioctl, 0, TIOCSTI, 0, 0},
    {"tiocsti_wide", SYS_ioctl, 0, (1L << 32) | TIOCSTI, 0, 0}, /* the kernel reads 32 bits */
    {"tioclinux", SYS_ioctl, 0, 0x541c, 0, 0},
    {"raw_socket", SYS_socket, AF_INET, SOCK_RAW, 1, 0},
    {"packet_socket", SYS_socket, AF_PACKET, SOCK_RAW, 0, 0},
    {"netlink_socket", SYS_socket, AF_NETLINK, SOCK_RAW, 0, 0},
    {"vsock_socket", SYS_socket, AF_VSOCK, SOCK_STREAM, 0, 0},
    {"alg_socket", SYS_socket, AF_ALG, SOCK_SEQPACKET, 0, 0},
};

static int escaped(const char *name) { printf("ESCAPED: %s: %s\n", name, strerror(errno)); return 0; }
static int contained(const char *name) { printf("contained: %s: %s\n", name, strerror(errno)); return 0; }

static int call(const char *name) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (strcmp(name, calls[i].name)) continue;
        errno = 0;
        long got = syscall(calls[i].number, calls[i].a, calls[i].b, calls[i].c, calls[i].d, 0);
        int refused = got < 0 && (errno == EPERM || errno == ENOSYS || errno == EACCES);
        return refused ? contained(name) : escaped(name);
    }
    return 64;
}

/* Memory that belongs to no process alone. */
static int shared_memory(void) {
    size_t bytes = 512UL << 20;
    char *at = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return contained("shared_memory");
    for (size_t i = 0; i < bytes; i += 4096) at[i] = 1;
    sleep(1);
    return escaped("shared_memory");
}

static int descriptors(void) {
    for (int fd = 3; fd < 4096; fd++)
        if (fcntl(fd, F_GETFD) >= 0) return escaped("descriptors");
    return contained("descriptors");
}

static int priority(void) {
    struct sched_param first = {.sched_priority = 1};
    struct rlimit more = {RLIM_INFINITY, RLIM_INFINITY};
    if (!setpriority(PRIO_PROCESS, 0, -5)) return escaped("nice");
    if (!sched_setscheduler(0, SCHED_FIFO, &first)) return escaped("realtime");
    if (!setrlimit(RLIMIT_NPROC, &more) || !setrlimit(RLIMIT_DATA, &more)) return escaped("limits");
    if (!setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0})) return escaped("core dumps by pipe");
    return contained("priority");
}

static int recurse(volatile int depth) {
    char room[4096];
    room[0] = depth;
    return depth < 1 << 30 ? recurse(depth + 1) + room[0] : 0;
}

int main(int count, char **args) {
    const char *name = count > 1 ? args[1] : "", *path = count > 2 ? args[2] : "";
    setvbuf(stdout, 0, _IONBF, 0);
    if (!strcmp(name, "shared_memory")) return shared_memory();
    if (!strcmp(name, "descriptors")) return descriptors();
    if (!strcmp(name, "priority")) return priority();
    if (!strcmp(name, "stack")) return recurse(0);
    if (!strcmp(name, "kill_parent")) { kill(getppid(), SIGKILL); sleep(1); return contained(name); }
    if (!strcmp(name, "kill_all")) { kill(-1, SIGKILL); return contained(name); }
    if (!strcmp(name, "limit_of_other")) return syscall(SYS_prlimit64, atoi(path), RLIMIT_NOFILE, &(struct rlimit){0, 0}, 0) ? contained(name) : escaped(name);
    if (!strcmp(name, "truncate")) return truncate(path, 0) ? contained(name) : escaped(name);
    if (!strcmp(name, "empty_by_reading")) return open(path, O_RDONLY | O_TRUNC) < 0 ? contained(name) : escaped(name);
    if (!strcmp(name, "openat2")) return syscall(SYS_openat2, AT_FDCWD, path, &(long[3]){O_RDONLY | O_TRUNC, 0, 0}, 24) < 0 ? contained(name) : escaped(name);
    if (!strcmp(name, "chmod")) return chmod(path, 0777) ? contained(name) : escaped(name);
#ifdef __x86_64__
    if (!strcmp(name, "int80")) { long got = 20; __asm__ volatile("int $0x80" : "+a"(got)); return got > 0 ? escaped(name) : contained(name); }
#endif
    return call(name);
}
