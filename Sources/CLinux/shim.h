// What Swift's Glibc does not offer of Linux: GNU's declarations, C variadics and the cmsg macros. One call a function,
// no policy.
//
// _GNU_SOURCE must not be defined here: it changes types (fd_set, enum __rusage_who) that Swift's Glibc has imported
// without it, and clang refuses two definitions. What glibc only declares with it is declared below.
#pragma once

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
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
#include <sys/syscall.h>
#include <sys/uio.h>

int memfd_create(const char *name, unsigned int flags);
int pipe2(int ends[2], int flags);
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int least);

#ifndef F_ADD_SEALS
// The kernel's include/uapi/linux/fcntl.h, which cannot be included beside glibc's fcntl.h.
#define F_ADD_SEALS 1033
#define F_GET_SEALS 1034
#define F_SEAL_SEAL 0x0001
#define F_SEAL_SHRINK 0x0002
#define F_SEAL_GROW 0x0004
#define F_SEAL_WRITE 0x0008
#endif

// The kernel's include/uapi/asm-generic/fcntl.h; glibc declares it with _GNU_SOURCE only.
#ifndef O_NOATIME
#define O_NOATIME 01000000
#endif

// The kernel's include/uapi/linux/fs.h and glibc's, which declares it with _GNU_SOURCE only.
#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x00000008
#endif
ssize_t preadv2(int descriptor, const struct iovec *parts, int count, off_t offset, int flags);

/// openat2(2) for reading, with RESOLVE_CACHED: EAGAIN where the disk would have to be asked for the path.
static inline int pictor_linux_open_cached(const char *path) {
  struct open_how how = {.flags = O_RDONLY | O_CLOEXEC, .resolve = RESOLVE_CACHED};
  return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

/// open(2) for reading, with O_NOATIME: EPERM for another owner's file.
static inline int pictor_linux_open_noatime(const char *path) {
  return open(path, O_RDONLY | O_CLOEXEC | O_NOATIME);
}

/// preadv2(2) with RWF_NOWAIT: what is in the page cache, EAGAIN where nothing is.
static inline ssize_t pictor_linux_read_cached(int descriptor, void *buffer, size_t count,
                                               off_t offset) {
  struct iovec part = {.iov_base = buffer, .iov_len = count};
  return preadv2(descriptor, &part, 1, offset, RWF_NOWAIT);
}

/// memfd_create(2), close-on-exec, sealable.
static inline int pictor_linux_memory_file(const char *name) {
  return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/// What keeps a memory file from being written to, shortened, made longer, or unsealed.
static inline int pictor_linux_all_seals(void) {
  return F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
}

/// fcntl(2), F_ADD_SEALS.
static inline int pictor_linux_add_seals(int descriptor, int seals) {
  return fcntl(descriptor, F_ADD_SEALS, seals);
}

/// fcntl(2), F_GET_SEALS; -1 for what is not a memory file.
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

/// socketpair(2): two connected ends that keep messages apart, close-on-exec.
static inline int pictor_linux_message_pair(int ends[2]) {
  return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
}

/// pipe2(2), close-on-exec and non-blocking on both ends.
static inline int pictor_linux_pipe(int ends[2]) {
  return pipe2(ends, O_CLOEXEC | O_NONBLOCK);
}

/// eventfd(2), close-on-exec and non-blocking, at 0.
static inline int pictor_linux_event(void) {
  return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

/// Most descriptors that go along with a message.
#define PICTOR_LINUX_PASSED 2

/// sendmsg(2) without SIGPIPE: one message, and with it that many descriptors (unix(7), SCM_RIGHTS).
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

/// What came with a message besides its bytes.
struct pictor_linux_received {
  /// Descriptors that were passed and are now ours to close. There is room for more than anyone expects, who must see them.
  int descriptors[2 * PICTOR_LINUX_PASSED];
  /// How many of them there are.
  int descriptor_count;
  /// Whether the message was longer than the buffer, or came with more descriptors than there is room for.
  int was_cut;
};

/// recvmsg(2): one message; descriptors passed with it are close-on-exec (unix(7), SCM_RIGHTS).
static inline ssize_t pictor_linux_receive(int socket, void *buffer, size_t capacity,
                                           struct pictor_linux_received *received) {
  union {
    // No more than `descriptors` hold: CMSG_SPACE rounds up to eight bytes, and the kernel fills what it finds.
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

/// prctl(2), PR_SET_PDEATHSIG: the signal this process gets when the thread that started it ends.
static inline int pictor_linux_set_death_signal(int signal) {
  return prctl(PR_SET_PDEATHSIG, signal);
}

/// prctl(2), PR_SET_NO_NEW_PRIVS: no program started from here on gains privileges.
static inline int pictor_linux_set_no_new_privileges(void) {
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/// prctl(2), PR_SET_NAME: what the calling thread is called in ps(1).
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

/// setrlimit(2), hard and soft limit alike. A hard limit that is lower already stays: raising it takes a privilege.
static inline int pictor_linux_set_limit(int resource, rlim_t value) {
  struct rlimit limit;
  if (getrlimit(resource, &limit) == 0 && limit.rlim_max < value) value = limit.rlim_max;
  limit.rlim_cur = limit.rlim_max = value;
  return setrlimit(resource, &limit);
}
