/* SPDX-License-Identifier: Apache-2.0 */
/* A host's root in a folder, and the machine that is on it, for the tests of CDI files. */
#ifndef WEFT_TESTS_UNIT_CDI_HOST_H
#define WEFT_TESTS_UNIT_CDI_HOST_H

#include "pkg/machine/machine.h"

enum { CDI_HOST_PATH = 600 };

extern char cdi_host_root[300]; /* of the test at hand */

/* An empty root of that name. */
void cdi_host_new(const char *name);
/* A path below the root, with its folders made; static storage. */
const char *cdi_host_path(const char *path);
void cdi_host_put(const char *path);
void cdi_host_link(const char *path, const char *target);
/* The files of driver 550.54.15, of which a container needs seven, and others beside them. */
void cdi_host_driver(void);
/* Two devices, the second of which is partition 1 of GPU 1, and that driver. */
struct weft_machine *cdi_host_machine(const char *vendor);

#endif
