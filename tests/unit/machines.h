/* SPDX-License-Identifier: Apache-2.0 */
/* Machines that are too large to be written as fixtures. */
#ifndef WEFT_TESTS_UNIT_MACHINES_H
#define WEFT_TESTS_UNIT_MACHINES_H

#include <stddef.h>

struct weft_machine;

/* 8 MI300X in CPX mode, two sockets: 64 parts, 600,000 MB/s inside a GPU, 64,000 between; one NIC a
 * GPU. The caller owns it; NULL without memory. */
struct weft_machine *machine_mi300x_cpx(void);

/* tests/fixtures/machine/<fixture>; NULL fails the test. Owned. */
struct weft_machine *machine_fixture(const char *fixture);
/* Device numbers of "0,3,5": ids or indices. Returns how many; ids has room for them. */
size_t machine_ids(const struct weft_machine *machine, const char *text, size_t *ids);

#endif
