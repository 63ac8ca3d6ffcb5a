/* SPDX-License-Identifier: Apache-2.0 */
/* What every vendor backend must hold, whatever the machine. A suite of a backend calls it on each
 * of its fixtures. */
#ifndef WEFT_TESTS_UNIT_CONFORM_H
#define WEFT_TESTS_UNIT_CONFORM_H

#include <stddef.h>

#include "pkg/machine/backend.h"

struct conform_case {
    const struct weft_backend *backend;
    struct weft_backend_options options;
    size_t devices; /* that its machine has */
};

/* Probes, opens, enumerates twice, closes; then the same with each allocation failing in turn.
 * Checks: the two machines are equal; ids valid, unique; B and T symmetric, B 0 and T PSB on the
 * diagonal; NUMA, socket, parent -1 or more; a healthy device has no reason and an unhealthy one
 * has; the vendor's name; the JSON form reads back as an equal machine; no memory left behind
 * (the sanitizer's part), every vendor call left again. */
void conform(const struct conform_case *c);

#endif
