// A stub of NVIDIA's NCCL for tests without a GPU: it has the functions that warpstride calls, and
// moves no bytes.
//
// The ranks of a communicator meet in a file of shared memory, whose name is in the unique id. A
// call posts there what it sends, receives or combines. It is in progress until the other ranks
// have posted what belongs to it, so it stays in progress where one is dead or calls nothing.
//
// A wrong use of NCCL ends the process by `abort`, with a message, so that a test sees it.
//
//   WARPSTRIDE_STUB_VERSION=21000    the version that the library says it has
//   WARPSTRIDE_STUB_FAIL=k           call k of the process, counted from 1, fails and does nothing;
//                                    questions for the asynchronous error do not count
//   WARPSTRIDE_STUB_ASYNC=k          question k for the asynchronous error answers with an error
//   WARPSTRIDE_STUB_REMOTE=1         the end of another rank's process is an asynchronous error
//   WARPSTRIDE_STUB_HANG_ABORT=1     an abort never returns
//   WARPSTRIDE_STUB_HANG_FINALIZE=1  a finalization is in progress for ever
//
// Compiled with -DNEEDS_GPU, it lacks the symbol that tells warpstride that it needs no GPU. With
// -DLACKS_REDUCE it lacks a function.

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SUCCESS = 0, SYSTEM_ERROR = 2, REMOTE_ERROR = 6, IN_PROGRESS = 7 };
enum { BYTES = 1, TYPES = 10, OPERATIONS = 5 };
enum { MOST_RANKS = 8, POSTS = 64, MOST_IN_A_GROUP = 128 };

typedef int ncclResult_t;
typedef struct { char internal[128]; } ncclUniqueId;

// The configuration of NCCL 2.18.
typedef struct {
  size_t size;
  unsigned magic, version;
  int blocking, cga_cluster_size, min_ctas, max_ctas;
  const char *net_name;
  int split_share;
} ncclConfig_t;

// What one rank has posted, in order. A post is overwritten once POSTS more have come. No rank is
// two groups ahead of its peer, so the peer has seen it by then.
typedef struct {
  _Atomic uint64_t count;
  _Atomic uint64_t posts[POSTS];
} Posts;

// The shared file.
typedef struct {
  _Atomic int ranks;
  _Atomic int came[MOST_RANKS];            // their processes
  Posts sends[MOST_RANKS][MOST_RANKS];     // by sender and receiver
  Posts receives[MOST_RANKS][MOST_RANKS];  // by sender and receiver
  Posts collectives[MOST_RANKS];
} Place;

typedef enum { MAKING, READY, BUSY, FINALIZING, ENDED } State;

typedef struct ncclComm {
  Place *place;
  char path[128];
  struct ncclComm *next;
  int rank, ranks;
  State state;
  int error;
  atomic_flag used;
  // The numbers of the posts up to which the call in progress needs its peers.
  uint64_t sends[MOST_RANKS], receives[MOST_RANKS], collectives;
} *ncclComm_t;

typedef struct {
  ncclComm_t comm;
  int peer, is_send;
  uint64_t bytes;
  void *stream;
} Message;

#ifndef NEEDS_GPU
const int warpstrideNeedsNoGpu = 1;
#endif

static _Thread_local int depth;
static _Thread_local Message group[MOST_IN_A_GROUP];
static _Thread_local int grouped;

static _Noreturn void wrong(const char *call, const char *why) {
  fprintf(stderr, "the stub of NCCL: %s: %s\n", call, why);
  abort();
}

static long variable(const char *name) {
  const char *value = getenv(name);
  return value ? atol(value) : 0;
}

// Returns whether this call is the one that fails.
static int fails(void) {
  static atomic_long calls;
  return atomic_fetch_add(&calls, 1) + 1 == variable("WARPSTRIDE_STUB_FAIL");
}

#define MAY_FAIL \
  if (fails()) return SYSTEM_ERROR

// Checks a communicator that a call uses. One thread at a time may use it.
static void enter(ncclComm_t comm, const char *call) {
  if (!comm) wrong(call, "the communicator is null");
  if (atomic_flag_test_and_set(&comm->used)) wrong(call, "two threads use the communicator");
  if (comm->state == ENDED) wrong(call, "the communicator was aborted or destroyed");
}

static void leave(ncclComm_t comm) { atomic_flag_clear(&comm->used); }

// Checks a communicator to which a call gives work.
static void enter_ready(ncclComm_t comm, const char *call) {
  enter(comm, call);
  if (comm->state != READY) wrong(call, "the communicator is busy, or was finalized");
}

static void post(Posts *posts, uint64_t what) {
  uint64_t count = atomic_load(&posts->count);
  atomic_store(&posts->posts[count % POSTS], what);
  atomic_store(&posts->count, count + 1);
}

// Returns whether the last posts of one side, up to `count`, are those of the other side.
static int match(Posts *mine, Posts *other, uint64_t count) {
  if (atomic_load(&other->count) < count) return 0;
  uint64_t first = count > POSTS / 2 ? count - POSTS / 2 : 0;
  for (uint64_t at = first; at < count; at++)
    if (atomic_load(&mine->posts[at % POSTS]) != atomic_load(&other->posts[at % POSTS])) return 0;
  return 1;
}

// Returns whether all ranks have come.
static int is_made(ncclComm_t comm) {
  for (int rank = 0; rank < comm->ranks; rank++)
    if (!atomic_load(&comm->place->came[rank])) return 0;
  unlink(comm->path);
  return 1;
}

// Returns whether the peers have posted all that the call in progress needs.
static int is_done(ncclComm_t comm) {
  Place *place = comm->place;
  int rank = comm->rank;
  for (int peer = 0; peer < comm->ranks; peer++) {
    Posts *out[2] = {&place->sends[rank][peer], &place->receives[rank][peer]};
    Posts *in[2] = {&place->receives[peer][rank], &place->sends[peer][rank]};
    if (!match(out[0], out[1], comm->sends[peer])) return 0;
    if (!match(in[0], in[1], comm->receives[peer])) return 0;
    if (!match(&place->collectives[rank], &place->collectives[peer], comm->collectives)) return 0;
  }
  return 1;
}

ncclResult_t ncclGetVersion(int *version) {
  MAY_FAIL;
  long given = variable("WARPSTRIDE_STUB_VERSION");
  *version = given ? (int)given : 22809;
  return SUCCESS;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  MAY_FAIL;
  const char *folder = getenv("TMPDIR");
  memset(id, 0, sizeof *id);
  int length = snprintf(id->internal, sizeof id->internal, "%s/nccl-stub-XXXXXX", folder ? folder : "/tmp");
  if (length >= (int)sizeof id->internal) wrong("ncclGetUniqueId", "the name of the folder is too long");
  int file = mkstemp(id->internal);
  if (file < 0 || ftruncate(file, sizeof(Place)) != 0) wrong("ncclGetUniqueId", "no file in the folder");
  close(file);
  return SUCCESS;
}

const char *ncclGetErrorString(ncclResult_t code) {
  switch (code) {
    case SYSTEM_ERROR: return "unhandled system error of the stub";
    case REMOTE_ERROR: return "remote process exited, says the stub";
    default: wrong("ncclGetErrorString", "this is not an error");
  }
}

// As in NCCL, a null communicator is allowed.
const char *ncclGetLastError(ncclComm_t comm) {
  (void)comm;
  return "";
}

static void check_config(const ncclConfig_t *config) {
  const char *call = "ncclCommInitRankConfig";
  if (config->size != sizeof *config || config->magic != 0xcafebeef) wrong(call, "the configuration is not one");
  if (config->version < 21800 || config->version >= 30000) wrong(call, "the configuration's version is wrong");
  if (config->blocking != 0) wrong(call, "the communicator would block");
  if (config->cga_cluster_size != INT_MIN || config->min_ctas != INT_MIN || config->max_ctas != INT_MIN ||
      config->net_name || config->split_share != INT_MIN)
    wrong(call, "a member of the configuration is not undefined");
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *made, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config) {
  const char *call = "ncclCommInitRankConfig";
  *made = NULL;
  MAY_FAIL;
  check_config(config);
  if (ranks < 1 || ranks > MOST_RANKS || rank < 0 || rank >= ranks) wrong(call, "there is no such rank");
  if (!memchr(id.internal, 0, sizeof id.internal)) wrong(call, "the unique id is not one");
  int file = open(id.internal, O_RDWR);
  if (file < 0) wrong(call, "the unique id names no file");
  Place *place = mmap(NULL, sizeof *place, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  ncclComm_t comm = calloc(1, sizeof *comm);
  if (place == MAP_FAILED || !comm) wrong(call, "there is no memory");
  int others = 0;
  if (!atomic_compare_exchange_strong(&place->ranks, &others, ranks) && others != ranks)
    wrong(call, "the ranks disagree about their number");
  if (atomic_exchange(&place->came[rank], getpid())) wrong(call, "the rank has come before");
  comm->place = place, comm->rank = rank, comm->ranks = ranks, comm->state = MAKING;
  memcpy(comm->path, id.internal, sizeof comm->path);
  *made = comm;
  return IN_PROGRESS;
}

// Returns whether the process of a rank has ended.
static int is_alone(ncclComm_t comm) {
  for (int rank = 0; rank < comm->ranks; rank++) {
    int process = atomic_load(&comm->place->came[rank]);
    if (process && kill(process, 0) != 0 && errno == ESRCH) return 1;
  }
  return 0;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state) {
  static atomic_long questions;
  enter(comm, "ncclCommGetAsyncError");
  if (atomic_fetch_add(&questions, 1) + 1 == variable("WARPSTRIDE_STUB_ASYNC")) comm->error = REMOTE_ERROR;
  if (comm->state == MAKING && is_made(comm)) comm->state = READY;
  if (comm->state == BUSY && is_done(comm)) comm->state = READY;
  if (comm->state == BUSY && variable("WARPSTRIDE_STUB_REMOTE") && is_alone(comm)) comm->error = REMOTE_ERROR;
  int hangs = comm->state == FINALIZING && variable("WARPSTRIDE_STUB_HANG_FINALIZE");
  int is_busy = comm->state == MAKING || comm->state == BUSY || hangs;
  *state = comm->error ? comm->error : is_busy ? IN_PROGRESS : SUCCESS;
  leave(comm);
  return SUCCESS;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  enter_ready(comm, "ncclCommFinalize");
  int failed = fails();
  if (!failed) comm->state = FINALIZING;
  leave(comm);
  return failed ? SYSTEM_ERROR : IN_PROGRESS;
}

// The communicator's own memory stays, so that a later use of it is seen. It is on a list, so that
// no tool takes it for lost.
static void end(ncclComm_t comm) {
  static _Atomic ncclComm_t last;
  comm->next = atomic_exchange(&last, comm);
  comm->state = ENDED;
  munmap(comm->place, sizeof *comm->place);
  leave(comm);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  enter(comm, "ncclCommDestroy");
  if (comm->state != FINALIZING) wrong("ncclCommDestroy", "the communicator was not finalized, so this may wait");
  int failed = fails();
  end(comm);
  return failed ? SYSTEM_ERROR : SUCCESS;
}

// As in NCCL, the other ranks are not told.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  enter(comm, "ncclCommAbort");
  while (variable("WARPSTRIDE_STUB_HANG_ABORT")) pause();
  int failed = fails();
  end(comm);
  return failed ? SYSTEM_ERROR : SUCCESS;
}

ncclResult_t ncclGroupStart(void) {
  MAY_FAIL;
  if (depth++) wrong("ncclGroupStart", "a group is open already");
  grouped = 0;
  return SUCCESS;
}

ncclResult_t ncclGroupEnd(void) {
  if (!depth) wrong("ncclGroupEnd", "no group was started");
  depth--;
  MAY_FAIL;
  if (!grouped) return SUCCESS;
  ncclComm_t comm = group[0].comm;
  enter_ready(comm, "ncclGroupEnd");
  int messages[MOST_RANKS][2] = {0};
  for (int at = 0; at < grouped; at++) {
    Message *message = &group[at];
    int peer = message->peer, rank = comm->rank;
    if (message->comm != comm) wrong("ncclGroupEnd", "the group has two communicators");
    if (message->stream != group[0].stream) wrong("ncclGroupEnd", "the group has two streams");
    if (++messages[peer][message->is_send] > POSTS / 2) wrong("ncclGroupEnd", "a peer has too many messages");
    Place *place = comm->place;
    post(message->is_send ? &place->sends[rank][peer] : &place->receives[peer][rank], message->bytes);
    if (message->is_send) comm->sends[peer]++;
    else comm->receives[peer]++;
  }
  comm->state = BUSY;
  leave(comm);
  return IN_PROGRESS;
}

static ncclResult_t message(const char *call, const void *data, size_t count, int type, int peer, ncclComm_t comm,
                            void *stream, int is_send) {
  if (!depth) wrong(call, "the message is not part of a group");
  enter_ready(comm, call);
  if (!data || !count || type != BYTES) wrong(call, "the message is not some bytes");
  if (peer < 0 || peer >= comm->ranks) wrong(call, "there is no such peer");
  if (grouped == MOST_IN_A_GROUP) wrong(call, "the group is too long");
  int failed = fails();
  if (!failed) group[grouped++] = (Message){comm, peer, is_send, count, stream};
  leave(comm);
  return failed ? SYSTEM_ERROR : SUCCESS;
}

ncclResult_t ncclSend(const void *from, size_t count, int type, int peer, ncclComm_t comm, void *stream) {
  return message("ncclSend", from, count, type, peer, comm, stream, 1);
}

ncclResult_t ncclRecv(void *to, size_t count, int type, int peer, ncclComm_t comm, void *stream) {
  return message("ncclRecv", to, count, type, peer, comm, stream, 0);
}

// Posts a call that all ranks make. Ranks that make different ones stay in progress.
static ncclResult_t collective(const char *call, int kind, const void *from, void *to, size_t count, int type,
                               int operation, int root, ncclComm_t comm) {
  enter_ready(comm, call);
  if (depth) wrong(call, "the call is part of a group");
  if (!from || !to || !count || type < 0 || type >= TYPES) wrong(call, "the operands are wrong");
  if (operation < 0 || operation >= OPERATIONS) wrong(call, "there is no such operation");
  if (root < 0 || root >= comm->ranks) wrong(call, "there is no such root");
  int failed = fails();
  if (!failed) {
    uint64_t what = (((uint64_t)count * TYPES + type) * OPERATIONS + operation) * MOST_RANKS + root;
    post(&comm->place->collectives[comm->rank], what * 4 + kind);
    comm->collectives++;
    comm->state = BUSY;
  }
  leave(comm);
  return failed ? SYSTEM_ERROR : IN_PROGRESS;
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, int type, int root, ncclComm_t comm,
                           void *stream) {
  (void)stream;
  return collective("ncclBroadcast", 1, from, to, count, type, 0, root, comm);
}

#ifndef LACKS_REDUCE
ncclResult_t ncclReduce(const void *from, void *to, size_t count, int type, int operation, int root,
                        ncclComm_t comm, void *stream) {
  (void)stream;
  return collective("ncclReduce", 2, from, to, count, type, operation, root, comm);
}
#endif

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, int type, int operation, ncclComm_t comm,
                           void *stream) {
  (void)stream;
  return collective("ncclAllReduce", 3, from, to, count, type, operation, 0, comm);
}
