// floor: the least that libmicrohttpd costs a hit, for comparison: one prepared response to every request.
//
//   benchmark-floor PORT BODY_FILE HEAD_FILE [CROWD]
//
// With CROWD, requests wait, their connections suspended as Pictor's are during a miss, until there are so many; then all
// are answered.
//
// The daemon is started with Pictor's own options (CMicrohttpd's shim) and one worker, with CROWD one a core, and is handed sockets that were
// accepted as Pictor's listener does it, so that the kernel and libmicrohttpd do the same work. HEAD_FILE holds one
// `Name: value` a line, as `curl -D` writes it; each becomes a header of its own, the way any program would add it.
//
// Left out is what makes a server: the request's target and method are not looked at, nothing is looked up, counted,
// timed or logged, preconditions are not evaluated, no header changes from answer to answer (Date aside, which
// libmicrohttpd adds), and no deadline but its idle time-out is kept.

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim.h"

/// As in Sources/Serving: Daemon.connectionMemory, Listener.backlog and .unsentLimit, ServerConfiguration's limit and
/// idle time-out.
enum {
  connection_memory = 16 << 10,
  backlog = 4096,
  unsent_limit = 128 << 10,
  connection_limit = 4096,
  idle_seconds = 60,
  most_daemons = 64
};

static void fail(const char *what) {
  fprintf(stderr, "benchmark-floor: %s: %s\n", what, strerror(errno));
  exit(1);
}

/// A response over the file's bytes, sent from memory.
static struct MHD_Response *response_of(const char *path) {
  struct stat status;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0 || fstat(file, &status) != 0) fail(path);
  size_t size = (size_t)status.st_size;
  char *body = malloc(size + 1);
  if (body == NULL || read(file, body, size) != (ssize_t)size) fail(path);
  close(file);
  struct MHD_Response *response =
      MHD_create_response_from_buffer(size, body, MHD_RESPMEM_MUST_FREE);
  if (response == NULL) fail("MHD_create_response_from_buffer");
  return response;
}

/// Adds each header of the file; the status line and what libmicrohttpd writes by itself are passed over.
static void add_headers(struct MHD_Response *response, const char *path) {
  FILE *file = fopen(path, "re");
  if (file == NULL) fail(path);
  char line[4096];
  while (fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\r\n")] = 0;
    char *value = strstr(line, ": ");
    if (value == NULL) continue;
    *value = 0;
    if (strcasecmp(line, "Date") == 0 || strcasecmp(line, "Content-Length") == 0) continue;
    if (MHD_add_response_header(response, line, value + 2) != MHD_YES) fail(line);
  }
  fclose(file);
}

/// The requests that wait for a crowd.
static struct {
  pthread_mutex_t lock;
  size_t size, count;
  struct MHD_Connection **connections;
} crowd = {.lock = PTHREAD_MUTEX_INITIALIZER};

/// Suspends a connection; the last one of the crowd resumes all.
static void join_crowd(struct MHD_Connection *connection) {
  pthread_mutex_lock(&crowd.lock);
  MHD_suspend_connection(connection);
  crowd.connections[crowd.count++] = connection;
  if (crowd.count == crowd.size)
    while (crowd.count > 0) MHD_resume_connection(crowd.connections[--crowd.count]);
  pthread_mutex_unlock(&crowd.lock);
}

/// The first call of a request is for its header; an answer then would close the connection.
static enum MHD_Result answer(void *response, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **request) {
  static char seen, waited;
  (void)url, (void)method, (void)version, (void)upload, (void)upload_size;
  if (*request == NULL) {
    *request = &seen;
    return MHD_YES;
  }
  if (crowd.size > 0 && *request == &seen) {
    *request = &waited;
    join_crowd(connection);
    return MHD_YES;
  }
  return MHD_queue_response(connection, MHD_HTTP_OK, response);
}

/// A socket that listens on 127.0.0.1, with the options of Pictor's.
static int listener(int port) {
  int one = 1, unsent = unsent_limit, descriptor = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (descriptor < 0 || setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
      setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
      setsockopt(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent) != 0 ||
      bind(descriptor, (struct sockaddr *)&address, sizeof address) != 0 ||
      listen(descriptor, backlog) != 0)
    fail("cannot listen");
  return descriptor;
}

int main(int count, char **arguments) {
  if (count != 4 && count != 5) {
    fprintf(stderr, "usage: benchmark-floor PORT BODY_FILE HEAD_FILE [CROWD]\n");
    return 64;
  }
  size_t daemons = 1;
  if (count == 5) {
    crowd.size = (size_t)atoi(arguments[4]);
    crowd.connections = calloc(crowd.size, sizeof *crowd.connections);
    if (crowd.size == 0 || crowd.connections == NULL) fail("CROWD");
    // Pictor's: one a core.
    daemons = (size_t)sysconf(_SC_NPROCESSORS_ONLN);
    if (daemons > most_daemons) daemons = most_daemons;
  }
  struct MHD_Response *response = response_of(arguments[2]);
  add_headers(response, arguments[3]);
  struct MHD_Daemon *daemon[most_daemons];
  for (size_t number = 0; number < daemons; number++) {
    daemon[number] = pictor_mhd_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET |
            MHD_USE_ITC,
        response, answer, NULL, NULL, NULL, NULL, connection_limit, idle_seconds, connection_memory,
        1);
    if (daemon[number] == NULL) fail("MHD_start_daemon");
  }

  int port = atoi(arguments[1]);
  int socket = listener(port);
  printf("benchmark-floor: listening on 127.0.0.1:%d\n", port);
  fflush(stdout);
  for (size_t turn = 0;; turn++) {
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    int client = accept(socket, (struct sockaddr *)&address, &length);
    if (client < 0 && errno != EINTR && errno != ECONNABORTED) fail("accept");
    // libmicrohttpd closes what it does not take.
    if (client >= 0) MHD_add_connection(daemon[turn % daemons], client, (struct sockaddr *)&address, length);
  }
}
