/* SPDX-License-Identifier: Apache-2.0 */
/* Machines that are too large to be written as fixtures. */
#ifndef WEFT_TESTS_UNIT_MACHINES_H
#define WEFT_TESTS_UNIT_MACHINES_H

struct weft_machine;

/* 8 MI300X in CPX mode, two sockets: 64 parts, 600,000 MB/s inside a GPU, 64,000 between; one NIC a
 * GPU. The caller owns it; NULL without memory. */
struct weft_machine *machine_mi300x_cpx(void);

#endif
