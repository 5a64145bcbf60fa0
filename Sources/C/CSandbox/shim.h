// CSandbox: libseccomp, and the system calls of Landlock. One call a function, no policy.
//
// The kernel's numbers are repeated where they are newer than Debian 12's linux/landlock.h (Linux
// 6.1): the kernel that runs the program decides what is there, not the one whose headers built it.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/landlock.h>

// MARK: Landlock, landlock(7)

/// landlock_create_ruleset(2) for the version of the interface; -1 without Landlock.
static inline int pictor_sandbox_landlock_version(void) {
  return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

/// The rights that rules are needed for: `struct landlock_ruleset_attr` of Linux 6.12.
struct pictor_sandbox_rights {
  uint64_t files;
  uint64_t network;
  uint64_t scopes;
};

/// landlock_create_ruleset(2). A kernel ignores the members that it does not know if they are 0.
static inline int pictor_sandbox_landlock_create(struct pictor_sandbox_rights rights) {
  return (int)syscall(SYS_landlock_create_ruleset, &rights, sizeof rights, 0);
}

/// landlock_add_rule(2), LANDLOCK_RULE_PATH_BENEATH: allows `rights` for a file or below a folder.
static inline int pictor_sandbox_landlock_allow(int ruleset, int place, uint64_t rights) {
  struct landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = place};
  return (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

/// landlock_restrict_self(2): applies the rules to the calling thread and those it starts later.
static inline int pictor_sandbox_landlock_restrict(int ruleset) {
  return (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
}

/// open(2), O_PATH: a place in the file system, neither for reading nor for writing.
static inline int pictor_sandbox_open_place(const char *path) {
  return open(path, 010000000 /* O_PATH, which glibc declares only with _GNU_SOURCE */ | O_CLOEXEC);
}

/// LANDLOCK_ACCESS_FS_READ_FILE.
static inline uint64_t pictor_sandbox_right_read_file(void) { return LANDLOCK_ACCESS_FS_READ_FILE; }

/// LANDLOCK_ACCESS_FS_READ_DIR.
static inline uint64_t pictor_sandbox_right_read_folder(void) { return LANDLOCK_ACCESS_FS_READ_DIR; }

// MARK: seccomp(2), by libseccomp

/// seccomp_init(3): a filter that answers every system call with an error.
static inline scmp_filter_ctx pictor_sandbox_filter(int error) {
  return seccomp_init(SCMP_ACT_ERRNO(error));
}

/// seccomp_rule_add_array(3): allows a system call if all conditions hold. Returns 0 or -errno.
static inline int pictor_sandbox_filter_allow(scmp_filter_ctx filter, int number, unsigned count,
                                              const struct scmp_arg_cmp *conditions) {
  return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, count, conditions);
}

/// seccomp_rule_add_array(3): answers a system call with another error. Returns 0 or -errno.
static inline int pictor_sandbox_filter_refuse(scmp_filter_ctx filter, int number, int error) {
  return seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(error), number, 0, NULL);
}

/// The condition that an argument, as far as `mask` goes, is `value`.
static inline struct scmp_arg_cmp pictor_sandbox_condition(unsigned argument, uint64_t mask, uint64_t value) {
  return (struct scmp_arg_cmp){.arg = argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value};
}

/// Whether seccomp_syscall_resolve_name(3) knows a name, on this architecture or another.
static inline int pictor_sandbox_is_call(int number) { return number != __NR_SCMP_ERROR; }

/// seccomp_attr_set(3), SCMP_FLTATR_CTL_TSYNC: the filter is for all threads of the process.
static inline int pictor_sandbox_filter_all_threads(scmp_filter_ctx filter) {
  return seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
}

/// seccomp_attr_set(3), SCMP_FLTATR_CTL_OPTIMIZE, 2: the filter is a binary tree and not a list.
static inline int pictor_sandbox_filter_as_tree(scmp_filter_ctx filter) {
  return seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
}

/// The flags of clone(2) that every thread has and no process has.
static inline uint64_t pictor_sandbox_thread_flags(void) {
  return 0x00000100 /* CLONE_VM */ | 0x00000800 /* CLONE_SIGHAND */ | 0x00010000 /* CLONE_THREAD */;
}

/// The flags of clone(2) for namespaces; clone3(2) alone has one for time.
static inline uint64_t pictor_sandbox_namespace_flags(void) {
  return 0x00020000 /* CLONE_NEWNS */ | 0x02000000 /* CLONE_NEWCGROUP */ |
         0x04000000 /* CLONE_NEWUTS */ | 0x08000000 /* CLONE_NEWIPC */ |
         0x10000000 /* CLONE_NEWUSER */ | 0x20000000 /* CLONE_NEWPID */ |
         0x40000000 /* CLONE_NEWNET */;
}
