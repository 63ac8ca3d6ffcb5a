/* SPDX-License-Identifier: Apache-2.0 */
/* A node with NVIDIA GPUs for the tests: the mock of the driver's library with a machine of its own
 * file, and a host root with what the kernel module would put into /dev and /proc. */
#ifndef WEFT_TESTS_UNIT_NVML_WORLD_H
#define WEFT_TESTS_UNIT_NVML_WORLD_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/machine/backend.h"

struct nvml_world {
    char root[200];
    char file[256]; /* the mock's machine, a copy of a fixture that tests change */
    struct weft_backend_options options;
};

/* The fixture's machine with device nodes for gpus GPUs; WEFT_MOCK_NVML names its file. */
void nvml_world_up(struct nvml_world *w, const char *fixture, int gpus);
/* Makes an empty file, or one with text, at a path below the root, with its folders. */
void nvml_world_put(struct nvml_world *w, const char *path, const char *text);
/* Replaces the first "from" in the mock's file; the test fails if there is none. */
void nvml_world_edit(struct nvml_world *w, const char *from, const char *to);
/* A copy of the mock without these functions (NULL-terminated), as of an older driver, which
 * w->options.library then names. */
void nvml_world_remove(struct nvml_world *w, const char *const *functions);
/* One look: opens, enumerates, closes. NULL (and the test fails) if that cannot be done. */
struct weft_machine *nvml_world_look(const struct nvml_world *w);
/* Has the machine a warning with that in it? */
bool nvml_warns(const struct weft_machine *machine, const char *part);

#endif
