/* SPDX-License-Identifier: Apache-2.0 */
/* Which host of a fabric, or which name of a plan, a cluster node is: the full name first, then the
 * part before the first dot where it is unique on both sides; upper and lower case are one. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "pkg/base/map.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/node.h"
#include "pkg/tree/tree-internal.h"

enum { NAME_MAX_LEN = 253 };

/* Several things have this name. */
#define SHARED SIZE_MAX

/* The name in lower case, up to its first dot if short_form; its length. */
static size_t fold(const char *name, bool short_form, char *folded)
{
    size_t len = 0;
    while (len < NAME_MAX_LEN && name[len] != '\0' && !(short_form && name[len] == '.')) {
        folded[len] = (char)tolower((unsigned char)name[len]);
        len++;
    }
    return len;
}

/* Adds name -> value; a second value makes it SHARED. */
static int put_folded(struct weft_map *map, const char *name, bool short_form, size_t value)
{
    char folded[NAME_MAX_LEN];
    const size_t len = fold(name, short_form, folded);
    size_t before = value;
    if (weft_map_get_n(map, folded, len, &before) && before != value) {
        value = SHARED;
    }
    return weft_map_put_n(map, folded, len, value) < 0 ? -ENOMEM : 0;
}

static size_t get_folded(const struct weft_map *map, const char *name, bool short_form)
{
    char folded[NAME_MAX_LEN];
    size_t value = SHARED;
    return weft_map_get_n(map, folded, fold(name, short_form, folded), &value) ? value : SHARED;
}

static int index_names(const char *const *names, size_t count, struct weft_map *full,
                       struct weft_map *shorts)
{
    for (size_t i = 0; i < count; i++) {
        if (names[i] == NULL) {
            continue;
        }
        if (put_folded(full, names[i], false, i) < 0 || put_folded(shorts, names[i], true, i) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

static int match_all(const struct weft_node *nodes, size_t node_count, struct weft_map *const *maps,
                     bool *taken, uint32_t *name_of)
{
    struct weft_map *labels = maps[2];
    for (size_t n = 0; n < node_count; n++) {
        const size_t name = get_folded(maps[0], nodes[n].name, false);
        name_of[n] = name != SHARED && !taken[name] ? (uint32_t)name : ID_NONE;
        if (name_of[n] != ID_NONE) {
            taken[name] = true;
        }
        if (put_folded(labels, nodes[n].name, true, n) < 0) {
            return -ENOMEM;
        }
    }
    for (size_t n = 0; n < node_count; n++) {
        const size_t name = get_folded(maps[1], nodes[n].name, true);
        if (name_of[n] == ID_NONE && name != SHARED && !taken[name] &&
            get_folded(labels, nodes[n].name, true) != SHARED) {
            name_of[n] = (uint32_t)name;
            taken[name] = true;
        }
    }
    return 0;
}

int weft_match_names(const char *const *names, size_t name_count, const struct weft_node *nodes,
                     size_t node_count, uint32_t *name_of)
{
    weft_auto(weft_map_free) struct weft_map *full = weft_map_new(WEFT_FABRIC_DEVICES_MAX);
    weft_auto(weft_map_free) struct weft_map *shorts = weft_map_new(WEFT_FABRIC_DEVICES_MAX);
    weft_auto(weft_map_free) struct weft_map *labels = weft_map_new(WEFT_FABRIC_DEVICES_MAX);
    weft_autofree bool *taken = weft_calloc(name_count, sizeof(*taken));
    struct weft_map *const maps[] = {full, shorts, labels};
    if (full == NULL || shorts == NULL || labels == NULL || taken == NULL ||
        index_names(names, name_count, full, shorts) < 0) {
        return -ENOMEM;
    }
    return match_all(nodes, node_count, maps, taken, name_of);
}

int weft_graph_match(const struct weft_fabric *fabric, const struct weft_node *nodes,
                     size_t node_count, uint32_t *host_of)
{
    weft_autofree const char **names = weft_calloc(fabric->host_count, sizeof(*names));
    if (names == NULL) {
        return -ENOMEM;
    }
    for (size_t h = 0; h < fabric->host_count; h++) {
        names[h] = fabric->hosts[h].mappable ? fabric->hosts[h].full_name : NULL;
    }
    return weft_match_names(names, fabric->host_count, nodes, node_count, host_of);
}
