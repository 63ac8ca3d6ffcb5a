/* SPDX-License-Identifier: Apache-2.0 */
/* A kubelet and a node for benchmarks of the device plugin, which runs as a process of its own.
 * Each failure ends the benchmark with 1 and a line on stderr. */
#ifndef WEFT_TESTS_BENCH_PLUGIN_BED_H
#define WEFT_TESTS_BENCH_PLUGIN_BED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pkg/base/clock.h"

struct weft_buf;
struct weft_loop;
struct weft_rpc;
struct weft_rpc_channel;
struct weft_rpc_request;
struct weft_rpc_server;

enum { BED_IDS_MAX = 64, BED_GPUS_MAX = 16 };

struct bed {
    const char *machine; /* a recorded machine, for --machine; NULL: the plugin asks the driver */
    const char *mock;    /* what the mock of NVIDIA's library shows, and */
    size_t gpus;         /* how many those are */
    struct weft_loop *loop;
    struct weft_rpc *rpc;
    struct weft_rpc_server *server;
    struct weft_rpc_channel *plugin;
    struct weft_rpc_request *stream;
    char dir[64], host[64], endpoint[300];
    pid_t pid;
    int64_t started_ns, register_ns; /* register_ns: from exec */
    bool registered, listed, answered;
    int code;
    char *ids[BED_IDS_MAX]; /* of the last device list that came */
    size_t id_count;
};

int64_t bed_now(void);
_Noreturn void bed_fail(const char *what);

/* A folder with kubelet.sock in it, and the host. */
void bed_up(struct bed *b);
void bed_down(struct bed *b);

/* Starts the plugin and waits until it registers. */
void bed_start(struct bed *b);
void bed_stop(struct bed *b);
/* Starts it and holds its ListAndWatch. */
void bed_watch(struct bed *b);

/* One call from beginning to end, which must be answered with OK; ns. */
int64_t bed_call(struct bed *b, const char *method, const struct weft_buf *bytes);

/* How many functions of the mock library were entered so far; see tests/fakes/nvml/count.c. */
uint64_t bed_vendor_calls(const struct bed *b);

#endif
