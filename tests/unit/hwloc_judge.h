/* SPDX-License-Identifier: Apache-2.0 */
/* What hwloc says of a host, for tests: a second reading of the same sysfs to hold weft's against.
 * hwloc builds its tree of bridges from the bus numbers in their configuration space, weft takes it
 * from the folders of sysfs. Only hwloc's Linux component is used: no plugins, nothing of a
 * vendor's library. Not for several threads: hwloc takes its root from the environment. */
#ifndef WEFT_TESTS_UNIT_HWLOC_JUDGE_H
#define WEFT_TESTS_UNIT_HWLOC_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/machine/machine.h"

struct judge;

/* A PCI function, bridges too. */
struct judge_function {
    struct weft_bdf bdf;
    uint16_t vendor, device;
    uint16_t class_id; /* base class and subclass: 0x0302 */
    int numa_node;     /* the only node that is local to it, -1 none or several */
    int package;       /* the package that it is local to, -1 none or several */
    bool net, rdma;    /* network and OpenFabrics devices hang below it */
    const void *obj;
};

/* root: a folder, or NULL for this machine. NULL fails the test. */
struct judge *judge_new(const char *root);
void judge_free(struct judge *judge);
size_t judge_count(const struct judge *judge);
const struct judge_function *judge_at(const struct judge *judge, size_t i);
/* NULL if hwloc does not see it. */
const struct judge_function *judge_find(const struct judge *judge, const struct weft_bdf *bdf);
/* Is there a network (or OpenFabrics) device of that name below the function? */
bool judge_has_device(const struct judge_function *f, bool rdma, const char *name);
/* T by hwloc's tree, by the words of pkg/machine/host.h. */
int judge_distance(const struct judge_function *a, const struct judge_function *b);

#endif
