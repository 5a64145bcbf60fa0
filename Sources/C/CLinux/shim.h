// CLinux: Linux functions that Swift's Glibc lacks: GNU declarations, variadic functions and the
// cmsg macros. One call a function, no policy.
//
// _GNU_SOURCE must not be defined here. It changes types (fd_set, enum __rusage_who) that Swift's
// Glibc has imported without it, and clang refuses two definitions. Declarations that need it in
// glibc are repeated below.
#pragma once

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <spawn.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/memfd.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

int memfd_create(const char *name, unsigned int flags);
int pipe2(int ends[2], int flags);
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int least);

#ifndef F_ADD_SEALS
// From the kernel's include/uapi/linux/fcntl.h, which cannot be included together with glibc's
// fcntl.h.
#define F_ADD_SEALS 1033
#define F_GET_SEALS 1034
#define F_SEAL_SEAL 0x0001
#define F_SEAL_SHRINK 0x0002
#define F_SEAL_GROW 0x0004
#define F_SEAL_WRITE 0x0008
#endif

// From the kernel's include/uapi/asm-generic/fcntl.h; glibc declares it only with _GNU_SOURCE.
#ifndef O_NOATIME
#define O_NOATIME 01000000
#endif
#define PICTOR_LINUX_O_PATH 010000000

// From the kernel's include/uapi/linux/fcntl.h; glibc declares both only with _GNU_SOURCE.
#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif
#ifndef AT_STATX_DONT_SYNC
#define AT_STATX_DONT_SYNC 0x4000
#endif

// From the kernel's include/uapi/linux/fs.h; glibc declares both only with _GNU_SOURCE.
#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x00000008
#endif
ssize_t preadv2(int descriptor, const struct iovec *parts, int count, off_t offset, int flags);

/// openat2(2) for reading below a folder, with RESOLVE_CACHED: EAGAIN if the path is not cached.
/// With O_NOATIME, as an access time may wait for the disk: EPERM for a file of another owner.
static inline int pictor_linux_open_cached(int folder, const char *path) {
  struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NOATIME, .resolve = RESOLVE_CACHED};
  return (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
}

/// open(2) of a folder as a place for relative paths (O_PATH).
static inline int pictor_linux_open_place(const char *path) {
  return open(path, PICTOR_LINUX_O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/// open(2) for reading, with O_NOATIME: EPERM for a file of another owner.
static inline int pictor_linux_open_noatime(const char *path) {
  return open(path, O_RDONLY | O_CLOEXEC | O_NOATIME | O_NOFOLLOW);
}

/// preadv2(2) with RWF_NOWAIT: what is in the page cache, EAGAIN where nothing is.
static inline ssize_t pictor_linux_read_cached(int descriptor, void *buffer, size_t count,
                                               off_t offset) {
  struct iovec part = {.iov_base = buffer, .iov_len = count};
  return preadv2(descriptor, &part, 1, offset, RWF_NOWAIT);
}

/// What tells one state of a file from another. Times are nanoseconds since 1970.
struct pictor_linux_stamp {
  uint64_t device, inode, size;
  int64_t modified, changed;
  uint32_t links;
};

/// statx(2) of an open file, with AT_STATX_DONT_SYNC: asks no file server and no disk.
static inline int pictor_linux_stamp_of(int descriptor, struct pictor_linux_stamp *stamp) {
  struct statx status;
  unsigned wanted = STATX_INO | STATX_SIZE | STATX_MTIME | STATX_CTIME | STATX_NLINK;
  if (syscall(SYS_statx, descriptor, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, wanted, &status) != 0) return -1;
  stamp->device = (uint64_t)status.stx_dev_major << 32 | status.stx_dev_minor;
  stamp->inode = status.stx_ino;
  stamp->size = status.stx_size;
  stamp->modified = (int64_t)((uint64_t)status.stx_mtime.tv_sec * 1000000000ULL + status.stx_mtime.tv_nsec);
  stamp->changed = (int64_t)((uint64_t)status.stx_ctime.tv_sec * 1000000000ULL + status.stx_ctime.tv_nsec);
  stamp->links = status.stx_nlink;
  return 0;
}

/// sched_getaffinity(2) as the system call: the length of the mask in bytes, or -1.
static inline long pictor_linux_get_affinity(pid_t thread, void *mask, size_t length) {
  return syscall(SYS_sched_getaffinity, thread, length, mask);
}

/// sched_setaffinity(2) as the system call.
static inline long pictor_linux_set_affinity(pid_t thread, const void *mask, size_t length) {
  return syscall(SYS_sched_setaffinity, thread, length, mask);
}

// glibc declares both only with _GNU_SOURCE.
extern int pthread_setaffinity_np(pthread_t thread, size_t length, const cpu_set_t *mask);
extern int pthread_attr_setaffinity_np(
    pthread_attr_t *attributes, size_t length, const cpu_set_t *mask);

/// pthread_attr_setaffinity_np(3) with a mask of any length in bytes: 0, or an error.
static inline int pictor_linux_set_attribute_affinity(
    pthread_attr_t *attributes, const void *mask, size_t length) {
  return pthread_attr_setaffinity_np(attributes, length, (const cpu_set_t *)mask);
}

/// pthread_setaffinity_np(3) with a mask of any length in bytes: 0, or an error.
static inline int pictor_linux_set_thread_affinity(
    pthread_t thread, const void *mask, size_t length) {
  return pthread_setaffinity_np(thread, length, (const cpu_set_t *)mask);
}

/// memfd_create(2), close-on-exec, sealable.
static inline int pictor_linux_memory_file(const char *name) {
  return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/// The seals that prevent writing, shrinking, growing and further sealing of a memory file.
static inline int pictor_linux_all_seals(void) {
  return F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
}

/// fcntl(2), F_ADD_SEALS.
static inline int pictor_linux_add_seals(int descriptor, int seals) {
  return fcntl(descriptor, F_ADD_SEALS, seals);
}

/// fcntl(2), F_GET_SEALS; -1 for anything but a memory file.
static inline int pictor_linux_get_seals(int descriptor) {
  return fcntl(descriptor, F_GET_SEALS);
}

/// fcntl(2), F_DUPFD_CLOEXEC.
static inline int pictor_linux_duplicate_above(int descriptor, int least) {
  return fcntl(descriptor, F_DUPFD_CLOEXEC, least);
}

/// fcntl(2), F_SETFL.
static inline int pictor_linux_set_status_flags(int descriptor, int flags) {
  return fcntl(descriptor, F_SETFL, flags);
}

/// socketpair(2): two connected ends that preserve message boundaries, close-on-exec.
static inline int pictor_linux_message_pair(int ends[2]) {
  return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
}

/// pipe2(2), close-on-exec and non-blocking on both ends.
static inline int pictor_linux_pipe(int ends[2]) {
  return pipe2(ends, O_CLOEXEC | O_NONBLOCK);
}

/// eventfd(2), close-on-exec and non-blocking, with the value 0.
static inline int pictor_linux_event(void) {
  return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

/// Maximum number of descriptors in a message.
#define PICTOR_LINUX_PASSED 2

/// sendmsg(2) without SIGPIPE: one message with `passed_count` descriptors (unix(7), SCM_RIGHTS).
static inline ssize_t pictor_linux_send(int socket, const void *bytes, size_t count,
                                        const int *passed, int passed_count) {
  union {
    char bytes[CMSG_SPACE(PICTOR_LINUX_PASSED * sizeof(int))];
    struct cmsghdr aligned;
  } control;
  struct iovec part = {.iov_base = (void *)bytes, .iov_len = count};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (passed_count > 0) {
    memset(&control, 0, sizeof control);
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(passed_count * sizeof(int));
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(passed_count * sizeof(int));
    memcpy(CMSG_DATA(header), passed, passed_count * sizeof(int));
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL);
}

/// The descriptors received with a message.
struct pictor_linux_received {
  /// The received descriptors; the caller must close them. There is room for more than expected, so
  /// that the caller can detect excess ones.
  int descriptors[2 * PICTOR_LINUX_PASSED];
  /// The number of received descriptors.
  int descriptor_count;
  /// Whether the message was longer than the buffer, or had more descriptors than fit.
  int was_cut;
};

/// recvmsg(2): one message; its descriptors are close-on-exec (unix(7), SCM_RIGHTS).
static inline ssize_t pictor_linux_receive(int socket, void *buffer, size_t capacity,
                                           struct pictor_linux_received *received) {
  union {
    // At most the size of `descriptors`: CMSG_SPACE rounds up to eight bytes, and the kernel fills
    // all of it.
    char bytes[CMSG_SPACE(2 * PICTOR_LINUX_PASSED * sizeof(int))];
    struct cmsghdr aligned;
  } control;
  struct iovec part = {.iov_base = buffer, .iov_len = capacity};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes};
  ssize_t count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  received->descriptor_count = 0;
  received->was_cut = count >= 0 && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  if (count < 0) return count;
  for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header != NULL;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    size_t passed = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t index = 0;
         index < passed && received->descriptor_count < 2 * PICTOR_LINUX_PASSED; index++) {
      memcpy(&received->descriptors[received->descriptor_count++],
             CMSG_DATA(header) + index * sizeof(int), sizeof(int));
    }
  }
  return count;
}

/// posix_spawn_file_actions_addclosefrom_np(3), since glibc 2.34.
static inline int pictor_linux_close_from(posix_spawn_file_actions_t *actions, int least) {
  return posix_spawn_file_actions_addclosefrom_np(actions, least);
}

/// prctl(2), PR_SET_PDEATHSIG: sets the signal that this process receives when the thread that
/// started it ends.
static inline int pictor_linux_set_death_signal(int signal) {
  return prctl(PR_SET_PDEATHSIG, signal);
}

/// prctl(2), PR_SET_NO_NEW_PRIVS: programs started later cannot gain privileges.
static inline int pictor_linux_set_no_new_privileges(void) {
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/// prctl(2), PR_SET_DUMPABLE, 0: no process of this user can trace it, and root owns its /proc.
static inline int pictor_linux_set_not_dumpable(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

/// prctl(2), PR_SET_NAME: sets the name of the calling thread, as ps(1) shows it.
static inline int pictor_linux_set_thread_name(const char *name) {
  return prctl(PR_SET_NAME, name);
}

/// Whether the calling thread calls it for the first time.
static inline int pictor_linux_is_first_call_of_thread(void) {
  static _Thread_local int was_called;
  if (was_called) return 0;
  was_called = 1;
  return 1;
}

/// malloc_trim(3): gives free memory back to the system.
static inline void pictor_linux_trim_memory(void) { malloc_trim(0); }

/// prlimit(2): a soft limit of another process, at most its hard limit. 1 if it is below that, 0 if
/// it is the same, -1 with errno for an error.
static inline int pictor_linux_lower_limit(pid_t pid, int resource, rlim_t value) {
  struct rlimit limit;
  if (prlimit(pid, resource, NULL, &limit) != 0) return -1;
  int is_lower = value < limit.rlim_max;
  limit.rlim_cur = is_lower ? value : limit.rlim_max;
  return prlimit(pid, resource, &limit, NULL) == 0 ? is_lower : -1;
}

/// pictor_linux_lower_limit for the private memory of a process.
static inline int pictor_linux_limit_data(pid_t pid, rlim_t value) {
  return pictor_linux_lower_limit(pid, RLIMIT_DATA, value);
}

/// pictor_linux_lower_limit for the files that a process writes, memory files included.
static inline int pictor_linux_limit_files(pid_t pid, rlim_t value) {
  return pictor_linux_lower_limit(pid, RLIMIT_FSIZE, value);
}

/// setrlimit(2), hard and soft limit alike. A lower hard limit stays: raising takes a privilege.
static inline int pictor_linux_set_limit(int resource, rlim_t value) {
  struct rlimit limit;
  if (getrlimit(resource, &limit) == 0 && limit.rlim_max < value) value = limit.rlim_max;
  limit.rlim_cur = limit.rlim_max = value;
  return setrlimit(resource, &limit);
}
