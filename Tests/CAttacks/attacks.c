#define _GNU_SOURCE
#include "attacks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

typedef const struct pictor_attack_context *context_t;

static int worked(long status) { return status < 0 ? errno : 0; }

/// Opens a file and reads a byte if it is for reading.
static int opens(const char *path, int flags) {
  int file = open(path, flags | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  char byte;
  int result = (flags & O_ACCMODE) == O_RDONLY && read(file, &byte, 1) < 0 ? errno : 0;
  close(file);
  return result;
}

static int lists(const char *path) {
  DIR *folder = opendir(path);
  if (folder == NULL) return errno;
  closedir(folder);
  return 0;
}

static const char *in_folder(context_t at, const char *name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s", at->folder, name);
  return path;
}

static const char *of_server(context_t at, const char *name) {
  static char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", at->server, name);
  return path;
}

// MARK: The server and other processes

static int read_environment(context_t at) { return opens(of_server(at, "environ"), O_RDONLY); }
static int read_mappings(context_t at) { return opens(of_server(at, "maps"), O_RDONLY); }
static int write_memory(context_t at) { return opens(of_server(at, "mem"), O_RDWR); }
static int list_descriptors(context_t at) { return lists(of_server(at, "fd")); }
static int read_command_line(context_t at) { return opens(of_server(at, "cmdline"), O_RDONLY); }
static int list_processes(context_t at) { (void)at; return lists("/proc"); }

static int copy_memory(context_t at) {
  char mine, *theirs = &mine;
  struct iovec to = {&mine, 1}, from = {theirs, 1};
  // The stack of the server is elsewhere: EFAULT tells that the call itself was let through.
  long status = process_vm_readv(at->server, &to, 1, &from, 1, 0);
  return status < 0 && errno != EFAULT ? errno : 0;
}

static int trace(context_t at) { return worked(ptrace(PTRACE_SEIZE, at->sibling, 0, 0)); }
static int open_process(context_t at) { return worked(syscall(SYS_pidfd_open, at->server, 0)); }
static int signal_server(context_t at) { return worked(kill(at->server, SIGURG)); }
static int signal_sibling(context_t at) { return worked(kill(at->sibling, SIGURG)); }

static int signal_thread(context_t at) {
  return worked(syscall(SYS_tgkill, at->sibling, at->sibling, SIGURG));
}

static int queue_signal(context_t at) {
  return worked(sigqueue(at->sibling, SIGURG, (union sigval){0}));
}

// MARK: Files

static int read_secret(context_t at) { return opens(in_folder(at, "secret"), O_RDONLY); }
static int list_folder(context_t at) { return lists(at->folder); }
static int create(context_t at) { return opens(in_folder(at, "new"), O_WRONLY | O_CREAT); }
static int overwrite(context_t at) { return opens(in_folder(at, "secret"), O_WRONLY); }
static int create_unnamed(context_t at) { return opens(at->folder, O_WRONLY | O_TMPFILE); }
static int read_users(context_t at) { (void)at; return opens("/etc/passwd", O_RDONLY); }
static int read_shell(context_t at) { (void)at; return opens("/bin/sh", O_RDONLY); }
static int truncate_file(context_t at) { return worked(truncate(in_folder(at, "secret"), 0)); }
static int unlink_file(context_t at) { return worked(unlink(in_folder(at, "victim"))); }

static int rename_file(context_t at) {
  char from[4096];
  strcpy(from, in_folder(at, "secret"));
  return worked(rename(from, in_folder(at, "renamed")) || rename(in_folder(at, "renamed"), from) ? -1 : 0);
}

static int link_file(context_t at) {
  char from[4096];
  strcpy(from, in_folder(at, "secret"));
  return worked(link(from, in_folder(at, "linked")));
}

static int symbolic_link(context_t at) {
  return worked(symlink("/etc/shadow", in_folder(at, "symlink")));
}

static int make_folder(context_t at) { return worked(mkdir(in_folder(at, "folder"), 0700)); }
static int make_pipe(context_t at) { return worked(mkfifo(in_folder(at, "pipe"), 0600)); }
static int change_mode(context_t at) { return worked(chmod(in_folder(at, "secret"), 0666)); }

static int change_owner(context_t at) {
  return worked(chown(in_folder(at, "secret"), geteuid(), getegid()));
}

static int change_times(context_t at) {
  return worked(utimensat(AT_FDCWD, in_folder(at, "secret"), NULL, 0));
}

static int change_folder(context_t at) { return worked(chdir(at->folder)); }
static int change_root(context_t at) { return worked(chroot(at->folder)); }

static int open_by_number(context_t at) {
  (void)at;
  char space[sizeof(struct file_handle) + 8];
  struct file_handle *handle = (struct file_handle *)space;
  memset(space, 0, sizeof space);
  handle->handle_bytes = 8;
  handle->handle_type = 1;
  // ESTALE: there is no such file, but the call was let through.
  int file = open_by_handle_at(STDIN_FILENO, handle, O_RDONLY);
  return file < 0 && errno != ESTALE ? errno : 0;
}

static int own_memory(context_t at) { (void)at; return opens("/proc/self/mem", O_RDWR); }

// MARK: Programs and processes of its own

static int start_process(context_t at) {
  (void)at;
  pid_t child = fork();
  if (child == 0) _exit(0);
  return child < 0 ? errno : worked(waitpid(child, NULL, 0));
}

static int clone_process(context_t at) {
  (void)at;
  long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) _exit(0);
  return child < 0 ? errno : worked(waitpid((pid_t)child, NULL, 0));
}

static int clone_newer(context_t at) {
  (void)at;
  struct { unsigned long long flags, pidfd, child, parent, signal, more[6]; } arguments = {.signal = SIGCHLD};
  long child = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (child == 0) _exit(0);
  return child < 0 ? errno : worked(waitpid((pid_t)child, NULL, 0));
}

static int spawn_shell(context_t at) {
  (void)at;
  char *arguments[] = {"sh", "-c", "exit 0", NULL}, *environment[] = {NULL};
  pid_t child;
  int error = posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environment);
  return error != 0 ? error : worked(waitpid(child, NULL, 0));
}

/// The calling process is one of the attack's own, unless no process can be started.
static int become_shell(context_t at) {
  (void)at;
  char *arguments[] = {"sh", "-c", "exit 0", NULL}, *environment[] = {NULL};
  execve("/bin/sh", arguments, environment);
  return errno;
}

static int become_memory_file(context_t at) {
  (void)at;
  static const char script[] = "#!/bin/sh\nexit 0\n";
  int file = memfd_create("attack", 0);
  if (file < 0 || write(file, script, sizeof script - 1) < 0) return errno;
  char *arguments[] = {"attack", NULL}, *environment[] = {NULL};
  syscall(SYS_execveat, file, "", arguments, environment, AT_EMPTY_PATH);
  return errno;
}

static int leave_session(context_t at) { (void)at; return worked(setsid()); }
static int outlive(context_t at) { (void)at; return worked(prctl(PR_SET_PDEATHSIG, 0)); }
static int be_dumpable(context_t at) { (void)at; return worked(prctl(PR_SET_DUMPABLE, 1)); }

static int set_limit(context_t at) {
  (void)at;
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return errno;
  return worked(setrlimit(RLIMIT_NOFILE, &limit));
}

static int set_priority(context_t at) { (void)at; return worked(setpriority(PRIO_PROCESS, 0, 19)); }

static int set_processors(context_t at) {
  (void)at;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) < 0) return errno;
  return worked(sched_setaffinity(0, sizeof set, &set));
}

static int set_personality(context_t at) { (void)at; return worked(personality(ADDR_NO_RANDOMIZE)); }

/// It holds memory that is neither mapped nor counted.
static int memory_file(context_t at) { (void)at; return worked(memfd_create("attack", 0)); }

// MARK: Code of its own

static int writable_code(context_t at) {
  (void)at;
  void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page == MAP_FAILED ? errno : 0;
}

static int written_code(context_t at) {
  (void)at;
  void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page == MAP_FAILED ? errno : worked(mprotect(page, 4096, PROT_READ | PROT_EXEC));
}

static int mapped_code(context_t at) {
  (void)at;
  int file = memfd_create("attack", 0);
  if (file < 0 || write(file, "\xc3", 1) < 0) return errno;
  void *page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
  return page == MAP_FAILED ? errno : 0;
}

// MARK: The network, and other ways to talk

static int sockets(int family, int type) {
  int descriptor = socket(family, type | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return errno;
  close(descriptor);
  return 0;
}

static int tcp(context_t at) { (void)at; return sockets(AF_INET, SOCK_STREAM); }
static int udp(context_t at) { (void)at; return sockets(AF_INET, SOCK_DGRAM); }
static int local_socket(context_t at) { (void)at; return sockets(AF_UNIX, SOCK_STREAM); }
static int netlink(context_t at) { (void)at; return sockets(AF_NETLINK, SOCK_RAW); }
static int packets(context_t at) { (void)at; return sockets(AF_PACKET, SOCK_RAW); }

static int socket_pair(context_t at) {
  (void)at;
  int ends[2];
  return worked(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
}

static int shared_memory(context_t at) {
  (void)at;
  int memory = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  return memory < 0 ? errno : worked(shmctl(memory, IPC_RMID, NULL));
}

// MARK: The kernel

static int io_uring(context_t at) {
  (void)at;
  char parameters[256] = {0};
  return worked(syscall(SYS_io_uring_setup, 1, parameters));
}

static int bpf(context_t at) {
  (void)at;
  union bpf_attr attributes = {
      .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
  return worked(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes));
}

static int performance_events(context_t at) {
  (void)at;
  struct perf_event_attr attributes = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attributes};
  return worked(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
}

static int fault_handling(context_t at) { (void)at; return worked(syscall(SYS_userfaultfd, O_CLOEXEC)); }

static int keys(context_t at) {
  (void)at;
  return worked(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 1));
}

static int mounts(context_t at) {
  int result = worked(mount("none", at->folder, "tmpfs", 0, NULL));
  if (result == 0) umount2(at->folder, MNT_DETACH);
  return result;
}

static int user_namespace(context_t at) { (void)at; return worked(unshare(CLONE_NEWUSER)); }
static int network_namespace(context_t at) { (void)at; return worked(unshare(CLONE_NEWNET)); }

static int enter_namespace(context_t at) {
  int process = (int)syscall(SYS_pidfd_open, at->server, 0);
  return process < 0 ? worked(setns(STDIN_FILENO, 0)) : worked(setns(process, CLONE_NEWNET));
}

static int kernel_log(context_t at) { (void)at; return worked(syscall(SYS_syslog, 10, NULL, 0)); }

// MARK: The table

static const struct {
  const char *name;
  int (*run)(context_t);
  int needs_more;
} attacks[] = {
    {"read-environment", read_environment, 0},
    {"read-mappings", read_mappings, 0},
    {"write-memory", write_memory, 1},
    {"list-descriptors", list_descriptors, 0},
    {"read-command-line", read_command_line, 0},
    {"list-processes", list_processes, 0},
    {"copy-memory", copy_memory, 1},
    {"trace", trace, 1},
    {"open-process", open_process, 0},
    {"signal-server", signal_server, 0},
    {"signal-sibling", signal_sibling, 0},
    {"signal-thread", signal_thread, 0},
    {"queue-signal", queue_signal, 0},
    {"read-secret", read_secret, 0},
    {"list-folder", list_folder, 0},
    {"create", create, 0},
    {"overwrite", overwrite, 0},
    {"create-unnamed", create_unnamed, 1},
    {"read-users", read_users, 0},
    {"read-shell", read_shell, 0},
    {"truncate", truncate_file, 0},
    {"unlink", unlink_file, 0},
    {"rename", rename_file, 0},
    {"link", link_file, 0},
    {"symlink", symbolic_link, 0},
    {"make-folder", make_folder, 0},
    {"make-pipe", make_pipe, 0},
    {"change-mode", change_mode, 0},
    {"change-owner", change_owner, 0},
    {"change-times", change_times, 0},
    {"change-folder", change_folder, 0},
    {"change-root", change_root, 1},
    {"open-by-number", open_by_number, 1},
    {"own-memory", own_memory, 0},
    {"fork", start_process, 0},
    {"clone", clone_process, 0},
    {"clone3", clone_newer, 1},
    {"spawn-shell", spawn_shell, 0},
    {"become-shell", become_shell, 0},
    {"become-memory-file", become_memory_file, 1},
    {"leave-session", leave_session, 0},
    {"outlive", outlive, 0},
    {"be-dumpable", be_dumpable, 0},
    {"set-limit", set_limit, 0},
    {"set-priority", set_priority, 0},
    {"set-processors", set_processors, 0},
    {"set-personality", set_personality, 1},
    {"memory-file", memory_file, 0},
    {"writable-code", writable_code, 1},
    {"written-code", written_code, 1},
    {"mapped-code", mapped_code, 1},
    {"tcp", tcp, 0},
    {"udp", udp, 0},
    {"local-socket", local_socket, 0},
    {"netlink", netlink, 1},
    {"packets", packets, 1},
    {"socket-pair", socket_pair, 0},
    {"shared-memory", shared_memory, 1},
    {"io-uring", io_uring, 1},
    {"bpf", bpf, 1},
    {"performance-events", performance_events, 1},
    {"fault-handling", fault_handling, 1},
    {"keys", keys, 1},
    {"mount", mounts, 1},
    {"user-namespace", user_namespace, 1},
    {"network-namespace", network_namespace, 1},
    {"enter-namespace", enter_namespace, 1},
    {"kernel-log", kernel_log, 1},
};

int pictor_attack_count(void) { return sizeof attacks / sizeof attacks[0]; }
const char *pictor_attack_name(int index) { return attacks[index].name; }
int pictor_attack_needs_more(int index) { return attacks[index].needs_more; }

int pictor_attack_run(int index, context_t context) {
  pid_t child = fork();
  if (child < 0) return attacks[index].run(context);
  if (child == 0) _exit(attacks[index].run(context));
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}
