/* SPDX-License-Identifier: Apache-2.0 */
/* Our fixtures of hosts (tests/unit/fake_host.h) as folders that hwloc accepts: CPU and node maps,
 * local_cpus, and a configuration space for each bridge, which is where hwloc has the tree from. */
#ifndef WEFT_TESTS_UNIT_HWLOC_TREE_H
#define WEFT_TESTS_UNIT_HWLOC_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/machine/host.h"

/* The fixture below dir, which is made. Bridges that only chains name get their entries. */
bool hwloc_tree_write(const char *fixture, const char *dir);
/* Every PCI function of a host as weft reads it, at most max; how many. */
size_t hwloc_tree_functions(const struct weft_host *host, struct weft_host_pci *pcis, size_t max);

#endif
