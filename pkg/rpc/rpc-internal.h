/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of pkg/rpc share. Not for other folders. */
#ifndef WEFT_RPC_RPC_INTERNAL_H
#define WEFT_RPC_RPC_INTERNAL_H

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <pthread.h>
#include <stdatomic.h>

#include "pkg/loop/loop.h"
#include "pkg/rpc/rpc.h"

enum {
    WEFT_RPC_MAGIC = 0x52706320,         /* "Rpc " */
    WEFT_RPC_SERVER_MAGIC = 0x52706353,  /* "RpcS" */
    WEFT_RPC_CALL_MAGIC = 0x5270634c,    /* "RpcL" */
    WEFT_RPC_CHANNEL_MAGIC = 0x52706343, /* "RpcC" */
    WEFT_RPC_REQUEST_MAGIC = 0x52706351  /* "RpcQ" */
};

/* Shared by the loop and the thread that waits for gRPC; whoever settles it second frees it. */
struct weft_rpc_end {
    struct weft_loop *loop;
    struct weft_post post;
    bool done;
    atomic_bool settled; /* gRPC has ended, or the loop waits no more */
};

struct weft_rpc {
    uint32_t magic;
    struct weft_loop *loop;
    grpc_completion_queue *cq;
    pthread_t thread;
    struct weft_timer *tick;
    struct weft_rpc_end *end; /* what ending needs */
    atomic_uint handed;       /* tags given to gRPC, modulo 2^32 */
    size_t busy;              /* servers and requests that gRPC still knows */
    bool idle;                /* busy is 0; set for weft_rpc_free, which waits for it */
};

/* What gRPC hands back when an operation ended: a post to the loop. Lives in its owner, which must
 * not go before the tag came back. */
struct weft_rpc_tag {
    struct weft_post post;
    bool ok; /* gRPC's success, set before the post */
};

static inline void weft_rpc_tag_init(struct weft_rpc_tag *tag, void (*fn)(void *data), void *data)
{
    *tag = (struct weft_rpc_tag){.post = {.fn = fn, .data = data}};
}

/* The tag as gRPC wants it. The release here and the acquire in the queue's thread order what the
 * loop wrote before what that thread does: gRPC orders it too, but out of sight of a race checker,
 * as Debian's gRPC is not instrumented. */
static inline void *weft_rpc_tag_hand(struct weft_rpc *rpc, struct weft_rpc_tag *tag)
{
    (void)atomic_fetch_add_explicit(&rpc->handed, 1, memory_order_release);
    return tag;
}

void weft_rpc_hold(struct weft_rpc *rpc);
void weft_rpc_release(struct weft_rpc *rpc);

/* All bytes of a received message in one slice, of which the caller drops the reference. Consumes
 * the buffer. false: there is none, or it cannot be decompressed. */
bool weft_rpc_bytes_take(grpc_byte_buffer **buffer, grpc_slice *ret_slice);
grpc_byte_buffer *weft_rpc_bytes_new(const void *bytes, size_t len);

/* ---- server and its calls ---- */

struct weft_rpc_slot {
    const struct weft_rpc_method *spec; /* NULL: the slot of unknown methods */
    void *registered;
    bool armed; /* one call object waits in gRPC for the next request */
};

struct weft_rpc_server {
    uint32_t magic;
    struct weft_rpc *rpc;
    grpc_server *grpc;
    void (*closed)(void *data, struct weft_rpc_call *call);
    void *data;
    struct weft_rpc_method methods[WEFT_RPC_METHODS_MAX];
    struct weft_rpc_slot slots[WEFT_RPC_METHODS_MAX + 1];
    size_t slot_count;
    size_t call_count; /* call objects, armed ones too */
    bool freed;        /* by its owner: no more callbacks */
    bool shut_down;    /* gRPC's shutdown is complete */
    struct weft_rpc_tag shutdown_tag;
    struct weft_timer *cut; /* runs from freed on */
    char path[WEFT_RPC_PATH_MAX + 1];
};

/* Arms each slot that has no waiting call, as far as memory and WEFT_RPC_CALLS_MAX allow. */
void weft_rpc_server_arm(struct weft_rpc_server *server);
/* A call object is gone. */
void weft_rpc_server_drop_call(struct weft_rpc_server *server);
/* Puts a new call object into gRPC's hands for the slot. 0 or -ENOMEM. */
int weft_rpc_call_arm(struct weft_rpc_server *server, struct weft_rpc_slot *slot);
/* Ends all connections of this process that were accepted on the path. */
void weft_rpc_cut_connections(const char *path);

#endif
