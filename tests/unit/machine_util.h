/* SPDX-License-Identifier: Apache-2.0 */
/* What the suites of the readers of recorded machines share: reading a text that must be fine or
 * must be refused, every allocation failing once, and what a machine is in one line of counts. */
#ifndef WEFT_TESTS_UNIT_MACHINE_UTIL_H
#define WEFT_TESTS_UNIT_MACHINE_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/machine/machine.h"

/* Reads a text (named "t") that must be fine, with JSON as a round trip; NULL fails the test. */
struct weft_machine *machine_read(const char *text);
/* The text must be refused, with that part in the message. */
void machine_refused(const char *text, const char *message_part);
/* A warning with that part is there. */
void machine_warned(const struct weft_machine *machine, const char *part);
/* Reads the text with its first, second, … allocation failing: -ENOMEM each, at last it is read. */
void machine_read_out_of_memory(const char *text);
/* Every text that a file cut after any byte gives is refused with a reason, or gives only devices
 * that the whole has (by id, with its NUMA label or an unknown one), with partial set and a warning
 * if anything lacks. */
void machine_read_cut(const char *text);

#endif
