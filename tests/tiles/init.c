/* The first process of the emulated machine (see `run`): makes the tile units usable, runs /program with its arguments and prints its status.
 *
 * Linux gives tiles only to processors with XFD (extended feature disable), which Bochs does not emulate. So the kernel is started without tiles
 * (`clearcpuid`), and this program turns them on in XCR0. That takes one instruction in kernel mode. Writing the address of `kernel_mode` to the
 * register that holds the kernel's entry point gives it that mode for one system call.
 *
 * The kernel then does not know of the tiles: it neither grants them nor saves them when it switches threads. A filter answers the
 * request for them with success, and the program runs under SCHED_FIFO on one processor, where a thread keeps it until it waits. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define LSTAR 0xC0000082
#define ARCH_REQ_XCOMP_PERM 0x1023
#define REAL_TIME_LIMIT "/proc/sys/kernel/sched_rt_runtime_us"

extern const char kernel_mode[];
/* rdi, rsi: the low and high half of LSTAR, which it restores */
__asm__(".text\n"
        ".balign 64\n"
        "kernel_mode:\n"
        "  endbr64\n"
        "  mov %rcx, %r8\n"
        "  mov %r11, %r9\n"
        "  xor %ecx, %ecx\n"
        "  xgetbv\n"
        "  or $0x60000, %eax\n"
        "  xsetbv\n"
        "  mov $0xC0000082, %ecx\n"
        "  mov %edi, %eax\n"
        "  mov %esi, %edx\n"
        "  wrmsr\n"
        "  mov %r8, %rcx\n"
        "  mov %r9, %r11\n"
        "  sysretq\n");

static void need(int done, const char *what) {
  if (!done) {
    perror(what);
    printf("\nNO TILES\n");
    fflush(stdout);
    for (;;) pause();
  }
}

static void enable_tiles(void) {
  int module = open("/msr.ko", O_RDONLY);
  need(syscall(SYS_finit_module, module, "allow_writes=on", 0) == 0, "the module msr");
  int msr = open("/dev/cpu/0/msr", O_RDWR);
  need(msr >= 0, "/dev/cpu/0/msr");
  uint64_t entry, stub = (uintptr_t)kernel_mode;
  need(mlockall(MCL_CURRENT) == 0, "mlockall");
  need(pread(msr, &entry, 8, LSTAR) == 8, "reading LSTAR");
  need(pwrite(msr, &stub, 8, LSTAR) == 8, "writing LSTAR");
  __asm__ volatile("syscall" : : "D"(entry & 0xffffffff), "S"(entry >> 32) : "rax", "rcx", "rdx", "r8", "r9", "r11", "memory");
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  need((low & 0x60000) == 0x60000, "XCR0");
}

static void grant_requests_for_tiles(void) {
  struct sock_filter steps[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH_REQ_XCOMP_PERM, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
  need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp");
}

int main(void) {
  mount("devtmpfs", "/dev", "devtmpfs", 0, 0);
  mount("proc", "/proc", "proc", 0, 0);
  int console = open("/dev/console", O_RDWR);
  for (int i = 0; i < 3; i++) dup2(console, i);
  enable_tiles();
  printf("BOOTED\n");
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    int unlimited = open(REAL_TIME_LIMIT, O_WRONLY);
    need(write(unlimited, "-1", 2) == 2, REAL_TIME_LIMIT);
    struct sched_param first = {.sched_priority = 1};
    need(sched_setscheduler(0, SCHED_FIFO, &first) == 0, "SCHED_FIFO");
    grant_requests_for_tiles();
    setenv("AUTOACT_EMULATED_TILES", "1", 1);
    setenv("RUST_BACKTRACE", "0", 1);
    /* the arguments, one a line */
    static char text[4096], *arguments[64] = {"/program"};
    int list = open("/arguments", O_RDONLY), count = 1;
    need(list >= 0 && read(list, text, sizeof text - 1) >= 0, "/arguments");
    for (char *next = strtok(text, "\n"); next && count < 63; next = strtok(NULL, "\n")) arguments[count++] = next;
    execv("/program", arguments);
    need(0, "/program");
  }
  int status = 0;
  while (wait(&status) != child) {}
  printf("\nSTATUS %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  fflush(stdout);
  tcdrain(1);
  reboot(RB_POWER_OFF);
  for (;;) pause();
}
