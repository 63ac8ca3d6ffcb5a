/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC over unix sockets, on the loop: a server with unary and server-streaming methods, and a
 * client. Built on gRPC C core; no other folder includes its headers. gRPC's completion queue has
 * one thread, which only turns events into posts to the loop, so that all callbacks of this header
 * run on the loop thread and nothing here blocks it. Messages are bytes; pkg/kubelet knows what
 * they mean.
 *
 * Threads: every function belongs to the loop thread. Nothing may be called from a callback that
 * the header does not allow there: weft_rpc_free. */
#ifndef WEFT_RPC_RPC_H
#define WEFT_RPC_RPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_loop;
struct weft_rpc;
struct weft_rpc_server;
struct weft_rpc_call;
struct weft_rpc_channel;
struct weft_rpc_request;

enum {
    WEFT_RPC_PATH_MAX = 107, /* bytes of a unix socket's path (sun_path less its NUL) */
    WEFT_RPC_METHODS_MAX = 16,
    WEFT_RPC_CALLS_MAX = 256,      /* calls a server has at work; more wait inside gRPC */
    WEFT_RPC_RECEIVE_MAX = 4 << 20 /* default cap of one received message, bytes */
};

/* Status codes of the gRPC protocol (its doc/statuscodes.md), those we use by name. */
enum weft_rpc_code {
    WEFT_RPC_OK = 0,
    WEFT_RPC_CANCELLED = 1,
    WEFT_RPC_UNKNOWN = 2,
    WEFT_RPC_INVALID_ARGUMENT = 3,
    WEFT_RPC_DEADLINE_EXCEEDED = 4,
    WEFT_RPC_NOT_FOUND = 5,
    WEFT_RPC_RESOURCE_EXHAUSTED = 8,
    WEFT_RPC_FAILED_PRECONDITION = 9,
    WEFT_RPC_UNIMPLEMENTED = 12,
    WEFT_RPC_INTERNAL = 13,
    WEFT_RPC_UNAVAILABLE = 14
};

/* Starts gRPC in this process, made small and quiet (quiet.h). One at a time a process; before
 * other threads start, as it changes the environment. -ENOMEM, -EAGAIN (no thread), -EBUSY (the
 * last one has not ended, see weft_rpc_free). */
int weft_rpc_new(struct weft_loop *loop, struct weft_rpc **ret_rpc, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Runs the loop until what was freed before has let go of gRPC, then stops gRPC and its thread.
 * Servers, channels and requests must be freed before. Not from a callback. NULL is fine. False:
 * gRPC did not end within 1 s and is left to itself for up to 10 s more; a process that ends
 * meanwhile should do so without the destructors of libraries. */
bool weft_rpc_free(struct weft_rpc *rpc);

/* ---- server ---- */

struct weft_rpc_method {
    const char *path; /* "/package.Service/Method", static storage */
    /* A call came in. request is borrowed. fn answers now or later, once: reply or finish; a
     * stream may be updated any number of times before finish. */
    void (*fn)(void *data, struct weft_rpc_call *call, const void *request, size_t len);
};

struct weft_rpc_server_options {
    const char *path; /* of the socket; a stale socket there is replaced */
    const struct weft_rpc_method *methods;
    size_t method_count;
    size_t receive_max; /* bytes of one request, 0: WEFT_RPC_RECEIVE_MAX */
    /* The peer went away before fn's answer was finished: forget the call. */
    void (*closed)(void *data, struct weft_rpc_call *call);
    void *data;
};

/* Serves on the socket from now on; unknown methods are answered UNIMPLEMENTED, requests over the
 * cap RESOURCE_EXHAUSTED. -ENAMETOOLONG for a long path, -EEXIST for a file in the way that is not
 * a socket, -errno (folder missing, no permission), -ENOMEM. */
int weft_rpc_server_new(struct weft_rpc *rpc, const struct weft_rpc_server_options *options,
                        struct weft_rpc_server **ret_server, struct weft_error *err)
    __attribute__((warn_unused_result));
/* No callback runs after this; open calls are cancelled, and the socket's path is removed on a
 * later turn of the loop, whoever owns it then: never bind the same path again while the program
 * runs. NULL is fine. */
void weft_rpc_server_free(struct weft_rpc_server *server);
WEFT_DEFINE_AUTO(struct weft_rpc_server, weft_rpc_server_free)

/* The one answer of a unary call; the call is over for its owner. */
void weft_rpc_call_reply(struct weft_rpc_call *call, const void *bytes, size_t len);
/* Ends any call with a status, after what was sent before; the call is over for its owner. */
void weft_rpc_call_finish(struct weft_rpc_call *call, enum weft_rpc_code code, const char *message);
/* Sends a message on a stream. While an earlier one is still on its way, only the latest is kept:
 * for streams of states, where the last one wins. */
void weft_rpc_call_update(struct weft_rpc_call *call, const void *bytes, size_t len);

/* ---- client ---- */

/* A connection to a server's socket, made when first needed. receive_max as above. */
int weft_rpc_channel_new(struct weft_rpc *rpc, const char *path, size_t receive_max,
                         struct weft_rpc_channel **ret_channel, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Requests that are under way go on. */
void weft_rpc_channel_free(struct weft_rpc_channel *channel);
WEFT_DEFINE_AUTO(struct weft_rpc_channel, weft_rpc_channel_free)

struct weft_rpc_result {
    int code;            /* enum weft_rpc_code or another of the protocol's */
    const char *message; /* the peer's, or gRPC's reason; never NULL; borrowed for the call */
    const void *bytes;   /* unary: the answer if code is OK, borrowed; streams: NULL */
    size_t len;
};

struct weft_rpc_request_options {
    const char *method; /* path, static storage */
    const void *bytes;  /* the request, copied */
    size_t len;
    int64_t timeout_ns; /* of the whole call, 0: none; then code is DEADLINE_EXCEEDED */
    /* NULL for a unary call; else each message of the stream, borrowed */
    void (*message)(void *data, const void *bytes, size_t len);
    /* The call ended; runs once. The request is freed by its owner, here or later. */
    void (*done)(void *data, const struct weft_rpc_result *result);
    void *data;
};

/* A server that is not there gives UNAVAILABLE at once, through done. -ENOMEM. */
int weft_rpc_request_new(struct weft_rpc_channel *channel,
                         const struct weft_rpc_request_options *options,
                         struct weft_rpc_request **ret_request, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Cancels a call that is under way; done does not run. NULL is fine. */
void weft_rpc_request_free(struct weft_rpc_request *request);
WEFT_DEFINE_AUTO(struct weft_rpc_request, weft_rpc_request_free)

/* Sets err from a result that is not OK and returns -EIO, -ETIMEDOUT, -ENOTSUP (UNIMPLEMENTED) or
 * -ECONNREFUSED (UNAVAILABLE). */
int weft_rpc_result_error(const struct weft_rpc_result *result, struct weft_error *err);

#endif
