/* SPDX-License-Identifier: Apache-2.0 */
/* Measure 3: gRPC's timer thread is off.
 * Reason: it wakes at least once a second even with no timer set.
 * How: its timer manager stops its threads and is ticked from the loop instead. Both functions are
 *   internal to gRPC but linkable. The price: gRPC's own deadlines end at the next tick, up to
 *   WEFT_QUIET_TICK_NS late; therefore pkg/rpc sets none and keeps its own timers.
 * Check: the bench counts wake-ups, test_rpc the threads and that time limits hold to the
 *   millisecond.
 * Fallback: the references are weak. A gRPC without them keeps its own timer thread: one wake-up a
 *   second more, nothing else changes. */
#include <stddef.h>

#include "pkg/rpc/quiet.h"

void weft_quiet_set_threading(bool on) __asm__("_Z32grpc_timer_manager_set_threadingb")
    __attribute__((weak));
void weft_quiet_manager_tick(void) __asm__("_Z23grpc_timer_manager_tickv") __attribute__((weak));

void weft_quiet_after_init(void)
{
    if (weft_quiet_set_threading != NULL && weft_quiet_manager_tick != NULL) {
        weft_quiet_set_threading(false);
    }
}

void weft_quiet_tick(void *data)
{
    (void)data;
    if (weft_quiet_set_threading != NULL && weft_quiet_manager_tick != NULL) {
        weft_quiet_manager_tick();
    }
}
