/* SPDX-License-Identifier: Apache-2.0 */
/* The inventory: maps, and no opinion on what follows from them. */
#include "pkg/fabric/inventory.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/idmap.h"
#include "pkg/base/map.h"
#include "pkg/fabric/fabric-file.h"

/* the value of what two nodes are said to have */
#define NOBODY UINT64_MAX

enum { NAME_MAX_LEN = 253 };

struct conflict {
    uint64_t guid;
    size_t node;
};

struct weft_nic_inventory {
    struct weft_map *nodes; /* name to index */
    char **node_names;
    size_t node_cap;
    struct weft_idmap guids[WEFT_NIC_INVENTORY_RANK_COUNT]; /* to node index, or NOBODY */
    struct weft_idmap roles;
    struct weft_map *names; /* folded, to node index, or SIZE_MAX */
    struct conflict *conflicts;
    size_t conflict_count;
    size_t conflict_cap;
};

struct weft_nic_inventory *weft_nic_inventory_new(void)
{
    weft_auto(weft_nic_inventory_free) struct weft_nic_inventory *inventory =
        weft_calloc(1, sizeof(*inventory));
    if (inventory == NULL) {
        return NULL;
    }
    for (size_t r = 0; r < WEFT_NIC_INVENTORY_RANK_COUNT; r++) {
        weft_idmap_init(&inventory->guids[r], WEFT_NIC_INVENTORY_GUIDS_MAX);
    }
    weft_idmap_init(&inventory->roles, WEFT_NIC_INVENTORY_GUIDS_MAX);
    inventory->nodes = weft_map_new(WEFT_NIC_INVENTORY_NAMES_MAX);
    inventory->names = weft_map_new(WEFT_NIC_INVENTORY_NAMES_MAX);
    return inventory->nodes != NULL && inventory->names != NULL ? weft_steal(&inventory) : NULL;
}

void weft_nic_inventory_free(struct weft_nic_inventory *inventory)
{
    if (inventory == NULL) {
        return;
    }
    const size_t count = inventory->nodes != NULL ? weft_map_count(inventory->nodes) : 0;
    for (size_t i = 0; i < count && inventory->node_names != NULL; i++) {
        weft_free(inventory->node_names[i]);
    }
    for (size_t r = 0; r < WEFT_NIC_INVENTORY_RANK_COUNT; r++) {
        weft_idmap_done(&inventory->guids[r]);
    }
    weft_idmap_done(&inventory->roles);
    weft_map_free(inventory->nodes);
    weft_map_free(inventory->names);
    weft_free(inventory->node_names);
    weft_free(inventory->conflicts);
    weft_free(inventory);
}

static int node_index(struct weft_nic_inventory *inventory, const char *node, size_t *ret_index)
{
    const size_t count = weft_map_count(inventory->nodes);
    if (weft_map_get(inventory->nodes, node, ret_index)) {
        return 0;
    }
    void *list = inventory->node_names;
    int rc = weft_array_reserve(&list, &inventory->node_cap, count + 1, sizeof(char *),
                                WEFT_NIC_INVENTORY_NAMES_MAX);
    inventory->node_names = list;
    if (rc < 0) {
        return rc;
    }
    char *copy = weft_strdup(node);
    rc = copy != NULL ? weft_map_put(inventory->nodes, node, count) : -ENOMEM;
    if (rc < 0) {
        weft_free(copy);
        return rc;
    }
    inventory->node_names[count] = copy;
    *ret_index = count;
    return 0;
}

static int note_conflict(struct weft_nic_inventory *inventory, uint64_t guid, size_t node)
{
    void *list = inventory->conflicts;
    const int rc =
        weft_array_reserve(&list, &inventory->conflict_cap, inventory->conflict_count + 1,
                           sizeof(*inventory->conflicts), WEFT_NIC_INVENTORY_GUIDS_MAX);
    inventory->conflicts = list;
    if (rc < 0) {
        return rc;
    }
    size_t at = inventory->conflict_count++;
    for (; at > 0 && inventory->conflicts[at - 1].guid > guid; at--) {
        inventory->conflicts[at] = inventory->conflicts[at - 1];
    }
    inventory->conflicts[at] = (struct conflict){guid, node};
    return 0;
}

int weft_nic_inventory_add_guid(struct weft_nic_inventory *inventory,
                                enum weft_nic_inventory_rank rank, uint64_t guid, const char *node)
{
    size_t index = 0;
    uint64_t *value = NULL;
    bool is_new = false;
    int rc = node_index(inventory, node, &index);
    rc = rc == 0 ? weft_idmap_at(&inventory->guids[rank], guid, &value, &is_new) : rc;
    if (rc < 0 || (!is_new && (*value == index || *value == NOBODY))) {
        return rc;
    }
    if (is_new) {
        *value = index;
        return 0;
    }
    const char *other = inventory->node_names[*value];
    const size_t first = strcmp(other, node) < 0 ? (size_t)*value : index;
    *value = NOBODY;
    return note_conflict(inventory, guid, first);
}

int weft_nic_inventory_set_role(struct weft_nic_inventory *inventory, uint64_t guid,
                                enum weft_nic_role role)
{
    uint64_t *value = NULL;
    const int rc = weft_idmap_at(&inventory->roles, guid, &value, NULL);
    if (rc == 0 && *value != WEFT_NIC_COMPUTE && role != WEFT_NIC_UNKNOWN) {
        *value = role;
    }
    return rc;
}

static size_t fold(const char *name, char *folded)
{
    size_t len = 0;
    for (; len < NAME_MAX_LEN && name[len] != '\0'; len++) {
        folded[len] = (char)tolower((unsigned char)name[len]);
    }
    return len;
}

int weft_nic_inventory_add_name(struct weft_nic_inventory *inventory, const char *name,
                                const char *node)
{
    char folded[NAME_MAX_LEN];
    const size_t len = fold(name, folded);
    size_t index = 0;
    size_t before = 0;
    int rc = node_index(inventory, node, &index);
    if (rc == 0 && weft_map_get_n(inventory->names, folded, len, &before) && before != index) {
        index = SIZE_MAX;
    }
    rc = rc == 0 ? weft_map_put_n(inventory->names, folded, len, index) : rc;
    return rc < 0 ? rc : 0;
}

int weft_nic_inventory_add_file(struct weft_nic_inventory *inventory,
                                enum weft_nic_inventory_rank rank,
                                const struct weft_fabric_file *file)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < file->guid_count; i++) {
        rc = weft_nic_inventory_add_guid(inventory, rank, file->guids[i].guid, file->guids[i].node);
    }
    for (size_t i = 0; rc == 0 && i < file->host_count; i++) {
        rc = weft_nic_inventory_add_name(inventory, file->hosts[i].host, file->hosts[i].node);
    }
    for (size_t i = 0; rc == 0 && i < file->compute_count; i++) {
        rc = weft_nic_inventory_set_role(inventory, file->compute[i], WEFT_NIC_COMPUTE);
    }
    for (size_t i = 0; rc == 0 && i < file->other_count; i++) {
        rc = weft_nic_inventory_set_role(inventory, file->other[i], WEFT_NIC_OTHER);
    }
    return rc;
}

const char *weft_nic_inventory_node(const struct weft_nic_inventory *inventory,
                                    enum weft_nic_inventory_rank rank, uint64_t guid)
{
    uint64_t value = NOBODY;
    return weft_idmap_get(&inventory->guids[rank], guid, &value) && value != NOBODY
               ? inventory->node_names[value]
               : NULL;
}

const char *weft_nic_inventory_node_named(const struct weft_nic_inventory *inventory,
                                          const char *name)
{
    char folded[NAME_MAX_LEN];
    const size_t len = fold(name, folded);
    size_t value = SIZE_MAX;
    return weft_map_get_n(inventory->names, folded, len, &value) && value != SIZE_MAX
               ? inventory->node_names[value]
               : NULL;
}

enum weft_nic_role weft_nic_inventory_role(const struct weft_nic_inventory *inventory,
                                           uint64_t guid)
{
    uint64_t value = WEFT_NIC_UNKNOWN;
    (void)weft_idmap_get(&inventory->roles, guid, &value);
    return (enum weft_nic_role)value;
}

bool weft_nic_inventory_conflict(const struct weft_nic_inventory *inventory, size_t index,
                                 uint64_t *ret_guid, const char **ret_node)
{
    if (index >= inventory->conflict_count) {
        return false;
    }
    *ret_guid = inventory->conflicts[index].guid;
    *ret_node = inventory->node_names[inventory->conflicts[index].node];
    return true;
}

const char *weft_nic_inventory_each_node(const struct weft_nic_inventory *inventory, size_t index)
{
    return index < weft_map_count(inventory->nodes) ? inventory->node_names[index] : NULL;
}
