/* SPDX-License-Identifier: Apache-2.0 */
/* Leaf groups of before, read from HyperNodes written down here. */
#include "controller/homes.h"

#include <errno.h>

#include "pkg/fabric/node.h"
#include "pkg/hypernode/hypernode.h"
#include "tests/unit/hypernodes.h"
#include "tests/unit/unit.h"

static void set_identity(struct weft_hypernode_set *set, const char *name, const char *identity)
{
    size_t at = 0;
    CHECK(weft_hypernode_set_find(set, name, &at));
    CHECK_INT(weft_hypernode_set_text(&set->items[at].identity, identity), 0);
}

/* Nodes below an NVLink domain (a, by label), a leaf group (l, by switches), and a copy of it. */
static void read_places(struct weft_hypernode_set *set)
{
    hypernodes_read(set, "a 1 n0 n1\nb 1 n2\nc 1 n3\nl 2 a\nm 2 b\nn 2 c\ns 3 l m n\n");
    set_identity(set, "a", "nvlink=a");
    set_identity(set, "b", "copy-of-leaf:switch:00000000000000b1");
    set_identity(set, "l", "switch:00000000000000a1,00000000000000a2");
    set_identity(set, "m", "switch:00000000000000b1");
    set_identity(set, "n", "leaf=by-label");
    set_identity(set, "s", "zone=switch:");
}

static void the_closest_set_of_switches_counts(void)
{
    const struct weft_node nodes[] = {{.name = (char *)(uintptr_t) "n2"},
                                      {.name = (char *)(uintptr_t) "n3"},
                                      {.name = (char *)(uintptr_t) "n1"},
                                      {.name = (char *)(uintptr_t) "new"}};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    struct weft_homes homes = {0};
    read_places(&set);
    CHECK_INT(weft_homes_before(&set, "weft", nodes, 4, &homes, NULL), 0);
    CHECK_INT(homes.count, 2);
    CHECK_STR(homes.items[0].node, "n1");
    CHECK_INT(homes.items[0].switch_guid, 0xa1);
    CHECK_STR(homes.items[1].node, "n2");
    CHECK_INT(homes.items[1].switch_guid, 0xb1);
    weft_free(homes.items);
    /* another's objects tell nothing */
    CHECK_INT(weft_homes_before(&set, "other", nodes, 4, &homes, NULL), 0);
    CHECK_INT(homes.count, 0);
    weft_free(homes.items);
}

static void no_memory(void)
{
    const struct weft_node node = {.name = (char *)(uintptr_t) "n1"};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    read_places(&set);
    int rc = -ENOMEM;
    for (uint64_t n = 1; rc < 0 && n < 1000; n++) {
        struct weft_homes homes = {0};
        (void)weft_mem_fail_after(n);
        rc = weft_homes_before(&set, "weft", &node, 1, &homes, NULL);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || (rc == -ENOMEM && homes.items == NULL));
        weft_free(homes.items);
    }
    CHECK_INT(rc, 0);
}

WEFT_SUITE(homes, {"the_closest_set_of_switches_counts", the_closest_set_of_switches_counts},
           {"no_memory", no_memory})
