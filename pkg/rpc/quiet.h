/* SPDX-License-Identifier: Apache-2.0 */
/* The three measures that make gRPC C core small and quiet enough for a program that lives on
 * every node: 4 threads instead of up to 38, 0.1 wake-ups a second instead of 2 to 4. Each has a
 * file with its reason, how it is checked, and what to do when a later gRPC breaks it:
 *   quiet-cpu.c       one CPU for gRPC's per-CPU tables and pools
 *   quiet-engine.cc   its event engine's work runs on our loop (with quiet-queue.c)
 *   quiet-timer.c     its timer thread is off, the loop ticks instead
 * tests/unit/test_rpc.c counts the threads; the bench counts the wake-ups. */
#ifndef WEFT_RPC_QUIET_H
#define WEFT_RPC_QUIET_H

#include <stdbool.h>
#include <stdint.h>

struct weft_error;
struct weft_loop;

#define WEFT_QUIET_TICK_NS INT64_C(10000000000)

/* In this order around grpc_init and after grpc_shutdown. Loop thread. The first may fail with
 * -ENOMEM. */
int weft_quiet_before_init(struct weft_loop *loop, struct weft_error *err);
void weft_quiet_after_init(void);
void weft_quiet_after_shutdown(void);
/* Is measure 1 in force? (It is decided at link time.) Also what pulls the wrappers out of the
 * archive. */
bool weft_quiet_one_cpu(void);
/* Called every WEFT_QUIET_TICK_NS; data is not used. */
void weft_quiet_tick(void *data);

/* ---- between quiet-queue.c and quiet-engine.cc ---- */

/* Part of the C++ side's piece of work, so that queueing one needs no memory and cannot fail. */
struct weft_engine_task {
    struct weft_engine_task *next;
    intptr_t id;    /* never 0, never used twice */
    int64_t due_ns; /* CLOCK_MONOTONIC */
};

#ifdef __cplusplus
extern "C" {
#endif
/* Any thread. Queues the task to run on the loop after delay_ns; returns its id. */
intptr_t weft_engine_add(int64_t delay_ns, struct weft_engine_task *task);
/* Any thread. The task, if it had not begun to run and now never will, else NULL. */
struct weft_engine_task *weft_engine_cancel(intptr_t id);
/* Implemented in C++: runs the task and frees it. Loop thread. */
void weft_engine_run(struct weft_engine_task *task);
/* Implemented in C++: makes gRPC use our engine from the next grpc_init on. */
void weft_engine_install(void);
#ifdef __cplusplus
}
#endif

#endif
