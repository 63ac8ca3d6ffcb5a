/* SPDX-License-Identifier: Apache-2.0 */
/* Random machines for the property tests of the allocator, as raw readings (oracle.h) and as weft's
 * JSON: meshes, trees, islands, bridged pairs, GPUs in partitions; with links down, readings that
 * differ, unknown places and unhealthy devices. */
#ifndef WEFT_TESTS_UNIT_RANDOM_MACHINE_H
#define WEFT_TESTS_UNIT_RANDOM_MACHINE_H

#include <stdint.h>

#include "tests/unit/oracle.h"

struct weft_buf;

/* A machine of n devices; s is the state of weft_random. */
void random_machine(uint64_t *s, int n, struct oracle_machine *m);
/* Appends it as weft's JSON. */
void random_machine_json(const struct oracle_machine *m, struct weft_buf *b);

#endif
