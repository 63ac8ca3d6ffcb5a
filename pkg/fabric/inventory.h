/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of adapters and names apart from a fabric: whose an adapter is and what for, and
 * what other sources call a node. Made once a pass from node reports, a site's inventory file and a
 * user's map; pkg/tree asks it. Pure; one thread at a time while it is filled. */
#ifndef WEFT_FABRIC_INVENTORY_H
#define WEFT_FABRIC_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_fabric_file;
struct weft_nic_inventory;

enum { WEFT_NIC_INVENTORY_GUIDS_MAX = 1 << 22, WEFT_NIC_INVENTORY_NAMES_MAX = 1 << 20 };

/* What a node's adapter is for. Only compute adapters are evidence of where it is. */
enum weft_nic_role {
    WEFT_NIC_UNKNOWN,
    WEFT_NIC_COMPUTE,
    WEFT_NIC_OTHER, /* storage, management, front end */
    WEFT_NIC_ROLE_COUNT
};

/* How much a statement weighs against the names that adapters give themselves. */
enum weft_nic_inventory_rank {
    WEFT_NIC_INVENTORY_REPORTED, /* by the node itself or a site's inventory: before names */
    WEFT_NIC_INVENTORY_MAPPED,   /* by a user's map: for what has no usable name */
    WEFT_NIC_INVENTORY_RANK_COUNT
};

/* NULL without memory. */
struct weft_nic_inventory *weft_nic_inventory_new(void) __attribute__((warn_unused_result));
void weft_nic_inventory_free(struct weft_nic_inventory *inventory);
WEFT_DEFINE_AUTO(struct weft_nic_inventory, weft_nic_inventory_free)

/* guid: an adapter's node or system image GUID (of a card with one port also its port GUID) is the
 * node's. Said of two nodes in one rank it is nobody's (weft_nic_inventory_conflict). 0, -ENOMEM,
 * -EFBIG. */
int weft_nic_inventory_add_guid(struct weft_nic_inventory *inventory,
                                enum weft_nic_inventory_rank rank, uint64_t guid, const char *node)
    __attribute__((warn_unused_result));
/* What the adapter with that GUID is for: by what its node reports, or as a member of a partition
 * (P_Key). Where two say different things it is for compute. 0, -ENOMEM, -EFBIG. */
int weft_nic_inventory_set_role(struct weft_nic_inventory *inventory, uint64_t guid,
                                enum weft_nic_role role) __attribute__((warn_unused_result));
/* Other sources call the node that: a host name (case and domain as written do not matter), a
 * cloud's instance id. A name of two nodes is nobody's. 0, -ENOMEM, -EFBIG. */
int weft_nic_inventory_add_name(struct weft_nic_inventory *inventory, const char *name,
                                const char *node) __attribute__((warn_unused_result));
/* All GUIDs, in that rank, names and roles of a file. 0, -ENOMEM, -EFBIG. */
int weft_nic_inventory_add_file(struct weft_nic_inventory *inventory,
                                enum weft_nic_inventory_rank rank,
                                const struct weft_fabric_file *file)
    __attribute__((warn_unused_result));

/* The node's name, borrowed, or NULL. */
const char *weft_nic_inventory_node(const struct weft_nic_inventory *inventory,
                                    enum weft_nic_inventory_rank rank, uint64_t guid);
const char *weft_nic_inventory_node_named(const struct weft_nic_inventory *inventory,
                                          const char *name);
enum weft_nic_role weft_nic_inventory_role(const struct weft_nic_inventory *inventory,
                                           uint64_t guid);
/* A GUID that two nodes are said to have, and one of them: index from 0 in ascending order of GUID;
 * false at the end. */
bool weft_nic_inventory_conflict(const struct weft_nic_inventory *inventory, size_t index,
                                 uint64_t *ret_guid, const char **ret_node);
/* The names of all nodes in it: index from 0 in order of first mention, NULL at the end. */
const char *weft_nic_inventory_each_node(const struct weft_nic_inventory *inventory, size_t index);

#endif
