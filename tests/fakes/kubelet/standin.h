/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet stand-in's state and its parts: calls.c plays pods, registration.c is the kubelet's
 * side of the protocol, fake_kubelet.c the program around them. */
#ifndef WEFT_TESTS_FAKES_KUBELET_STANDIN_H
#define WEFT_TESTS_FAKES_KUBELET_STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/kubelet/kubelet.h"
#include "pkg/loop/loop.h"
#include "pkg/pb/arena.h"
#include "pkg/rpc/rpc.h"

enum { STANDIN_IDS_MAX = 1024 };

struct standin_device {
    char *id;
    bool healthy, taken;
};

struct standin {
    struct weft_loop *loop;
    struct weft_rpc *rpc;
    struct weft_rpc_server *server;
    struct weft_fdwatch *input;
    struct weft_timer *timer, *limit;
    const char *dir;
    char socket[512];
    struct weft_rpc_channel *plugin;
    struct weft_rpc_call *registering; /* its Register, while we ask for its options */
    struct weft_rpc_request *stream, *request;
    struct weft_kubelet_options options;
    struct weft_buf commands;
    struct weft_pb_arena arena;
    struct standin_device devices[STANDIN_IDS_MAX];
    size_t device_count;
    const char *chosen[STANDIN_IDS_MAX]; /* of the ask at hand, into devices */
    size_t chosen_count;
    int64_t ask_size, wait_healthy;
    bool listed, hang, refuse, failed, input_ended, restarting;
};

/* One line of what happened, on standard output. */
void standin_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends the program's loop. */
void standin_end(struct standin *k);
/* The command at hand is done: the next one may run. */
void standin_next(struct standin *k);

/* ---- calls.c ---- */

/* A unary call to the registered plugin, kept in k->request. */
void standin_call(struct standin *k, const char *method, const struct weft_buf *bytes,
                  void (*done)(void *data, const struct weft_rpc_result *result));
/* The commands of these names. */
void standin_allocate(struct standin *k, const char *const *ids, size_t count);
void standin_prefer(struct standin *k, const struct weft_kubelet_preferred *question,
                    void (*done)(void *data, const struct weft_rpc_result *result));
void standin_on_preferred(void *data, const struct weft_rpc_result *result);
void standin_ask(struct standin *k, int64_t size);
void standin_release(struct standin *k);

/* ---- registration.c ---- */

/* Empties the folder of sockets and serves kubelet.sock. */
int standin_serve(struct standin *k);
/* What the plugin watcher does with a socket in its folder: GetInfo, ListAndWatch, the notice. */
void standin_find(struct standin *k, const char *path);
/* Goes down; serves again when the timer fires. */
void standin_restart(struct standin *k);
size_t standin_healthy(const struct standin *k);

#endif
