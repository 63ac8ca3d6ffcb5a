/* SPDX-License-Identifier: Apache-2.0 */
/* Measure 1: gRPC believes in one CPU.
 * Reason: it keeps per-CPU statistics and timer shards, and a pool of clamp(CPUs, 2, 32) threads:
 *   38 threads and 1 MB more on a 64-CPU node, for a socket that sees a call a minute.
 * How: the linker's --wrap (Makefile, GRPC_LIBS) sends both functions here. Both, always: the
 *   tables sized by the first are indexed by the second, and one alone corrupts the heap.
 * Check: weft_quiet_one_cpu, asked by test_rpc, which also counts threads.
 * Fallback: drop the two --wrap flags; the wrappers are then unused, gRPC is bigger, not wrong. */
#include <grpc/support/cpu.h>

#include "pkg/rpc/quiet.h"

unsigned __wrap_gpr_cpu_num_cores(void);
unsigned __wrap_gpr_cpu_current_cpu(void);

unsigned __wrap_gpr_cpu_num_cores(void)
{
    return 1;
}

unsigned __wrap_gpr_cpu_current_cpu(void)
{
    return 0;
}

bool weft_quiet_one_cpu(void)
{
    return gpr_cpu_num_cores() == 1 && gpr_cpu_current_cpu() == 0; /* through the wrap, if it is */
}
