// Attacks: what a taken-over worker would try. Each function says whether it worked.
#pragma once

/// What an attack needs to know of its surroundings.
struct pictor_attack_context {
  /// The process id of the server.
  int server;
  /// The process id of another process of the same user.
  int sibling;
  /// A folder with a file `secret` and a file `victim`, as a cache has them.
  const char *folder;
};

/// The number of attacks.
int pictor_attack_count(void);

/// The name of an attack.
const char *pictor_attack_name(int index);

/// Whether an attack may also fail in an open process, for lack of privilege or kernel feature.
int pictor_attack_needs_more(int index);

/// Runs an attack, in a process of its own if possible. Returns 0 if it worked, else errno.
int pictor_attack_run(int index, const struct pictor_attack_context *context);
