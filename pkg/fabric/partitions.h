/* SPDX-License-Identifier: Apache-2.0 */
/* InfiniBand partitions as OpenSM's partitions.conf says them (opensm's doc/partition-config.txt):
 * which adapters may talk to which. Their members tell compute adapters from those of a storage or
 * management network on the same cables. Pure. */
#ifndef WEFT_FABRIC_PARTITIONS_H
#define WEFT_FABRIC_PARTITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_nic_inventory;

enum {
    WEFT_PARTITIONS_TEXT_MAX = 64 << 20,
    WEFT_PARTITIONS_MAX = 32768, /* P_Keys have 15 bits beside the membership */
    WEFT_PARTITION_MEMBERS_MAX = 1 << 22
};

struct weft_partition {
    char *name;      /* "" if it has a P_Key only */
    uint16_t pkey;   /* without the membership bit; 0: OpenSM chooses one */
    unsigned line;   /* of its first statement */
    bool everybody;  /* ALL, or ALL_CAS: tells no adapter apart */
    uint64_t *guids; /* port GUIDs, ascending, each once, full and limited members */
    size_t count;
};

struct weft_ib_partitions {
    char *source; /* file name, for errors */
    struct weft_partition *items;
    size_t count;
};

void weft_ib_partitions_free(struct weft_ib_partitions *partitions);
WEFT_DEFINE_AUTO(struct weft_ib_partitions, weft_ib_partitions_free)

/* Reads the file. Several statements of one name or P_Key are one partition. A text that ends
 * within a statement is an error: half a list would leave members out. The caller owns *ret.
 * Errors: -EINVAL with file:line, -EFBIG, -ENOMEM. */
int weft_parse_ib_partitions(const char *text, size_t len, const char *source,
                             struct weft_ib_partitions **ret, struct weft_error *err)
    __attribute__((warn_unused_result));

/* Says of the members of the wanted partitions (names, or P_Keys like "0x8001", whose membership
 * bit does not matter) that they are for compute, and of the other partitions' that they are not.
 * Partitions of everybody say nothing. A port's GUID is taken for its adapter's node GUID, which it
 * is where each port is a function of its own (ConnectX-4 and later); of older cards it differs by
 * the port's number, and their members match nothing, since a neighbouring GUID may be another
 * adapter's. -ENOENT for a partition that is not there, -EINVAL for one that has no member or
 * everybody; -ENOMEM, -EFBIG. */
int weft_ib_partitions_roles(const struct weft_ib_partitions *partitions, char *const *wanted,
                             size_t wanted_count, struct weft_nic_inventory *inventory,
                             struct weft_error *err) __attribute__((warn_unused_result));

#endif
