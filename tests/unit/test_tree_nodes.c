/* SPDX-License-Identifier: Apache-2.0 */
/* Which adapter is which node's, and which adapters are evidence. Small dumps are written here,
 * line by line; expectations follow from them by hand. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/fabric/cabling.h"
#include "pkg/fabric/fabric-file.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/inventory.h"
#include "pkg/fabric/node.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"
#include "tests/unit/unit.h"

#define VENDOR "MT4129 ConnectX7   Mellanox Technologies"

/* An adapter: GUID 0xa000 + number, its card 0xb000 + card, on that leaf at that rate. */
struct plug {
    const char *desc;
    unsigned number, card;
    unsigned leaf;
    const char *rate;
};

static void write_dump(struct weft_buf *buf, const struct plug *plugs, size_t count,
                       unsigned leaves)
{
    weft_buf_init(buf, 1 << 16);
    for (unsigned leaf = 1; leaf <= leaves; leaf++) {
        (void)weft_buf_printf(buf, "switchguid=0x%x(%x)\nSwitch\t64 \"S-%016x\"\t\t# \"leaf-%u\"\n",
                              0x1000 + leaf, 0x1000 + leaf, 0x1000 + leaf, leaf);
        (void)weft_buf_printf(buf, "[60]\t\"S-%016x\"[%u]\t\t# \"spine\" lid 1 4xNDR\n", 0x2000U,
                              leaf);
        for (size_t i = 0; i < count; i++) {
            if (plugs[i].leaf == leaf) {
                (void)weft_buf_printf(buf, "[%zu]\t\"H-%016x\"[1]\t\t# \"%s\" lid 1 %s\n", i + 1,
                                      0xa000 + plugs[i].number, plugs[i].desc, plugs[i].rate);
            }
        }
        (void)weft_buf_puts(buf, "\n");
    }
    (void)weft_buf_printf(buf, "switchguid=0x2000(2000)\nSwitch\t64 \"S-%016x\"\t\t# \"spine\"\n",
                          0x2000U);
    for (unsigned leaf = 1; leaf <= leaves; leaf++) {
        (void)weft_buf_printf(buf, "[%u]\t\"S-%016x\"[60]\t\t# \"leaf-%u\" lid 1 4xNDR\n", leaf,
                              0x1000 + leaf, leaf);
    }
    for (size_t i = 0; i < count; i++) {
        (void)weft_buf_printf(buf,
                              "\nsysimgguid=0x%x\ncaguid=0x%x\nCa\t1 \"H-%016x\"\t\t# \"%s\"\n"
                              "[1](%x)\t\"S-%016x\"[%zu]\t\t# lid 1 lmc 0 \"leaf\" lid 1 %s\n",
                              0xb000 + plugs[i].card, 0xa000 + plugs[i].number,
                              0xa000 + plugs[i].number, plugs[i].desc, 0xa000 + plugs[i].number,
                              0x1000 + plugs[i].leaf, i + 1, plugs[i].rate);
    }
    (void)weft_buf_puts(buf, "\n");
}

static struct weft_fabric *fabric_of(const struct plug *plugs, size_t count, unsigned leaves)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    struct weft_fabric *fabric = NULL;
    struct weft_error err = {0};
    write_dump(&buf, plugs, count, leaves);
    CHECK_INT(weft_parse_ibnetdiscover(weft_buf_text(&buf), buf.len, "dump", &fabric, &err), 0);
    CHECK_STR(err.message, "");
    return fabric;
}

/* names: "n1 n2 …", or NULL: no list of nodes. */
static struct weft_tree *tree_of(const struct weft_fabric *fabric, const char *names,
                                 const struct weft_tree_options *options)
{
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    struct weft_tree *tree = NULL;
    struct weft_error err = {0};
    struct weft_node *node = NULL;
    char name[64];
    int used = 0;
    for (const char *p = names; p != NULL && sscanf(p, " %63s%n", name, &used) == 1; p += used) {
        CHECK_INT(weft_nodes_add(&nodes, name, NULL, &node), 0);
    }
    CHECK_INT(weft_tree_from_fabric(fabric, names != NULL ? nodes.items : NULL, nodes.count,
                                    options, &tree, &err),
              0);
    CHECK_STR(err.message, "");
    CHECK_INT(tree != NULL ? weft_tree_check(tree, &err) : -1, 0);
    return tree;
}

/* "leaf-1: n1 n2; leaf-2: n3": the closest tier, each group by its first switch. */
static void check_leaves(const struct weft_tree *tree, const char *expected)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 4096);
    const struct weft_tree_tier *tier = &tree->tiers[0];
    for (size_t g = 0; g < tier->group_count && tree->tier_count > 0; g++) {
        const struct weft_tree_group *group = &tier->groups[g];
        (void)weft_buf_printf(&buf, "%s%s:", g > 0 ? "; " : "",
                              group->switch_count > 0 ? group->switches[0] : group->name);
        for (size_t n = 0; n < tree->node_count; n++) {
            if (tier->node_group[n] == g) {
                (void)weft_buf_printf(&buf, " %s", tree->nodes[n]);
            }
        }
    }
    CHECK_STR(weft_buf_text(&buf), expected);
}

static void check_unplaced(const struct weft_tree *tree, const char *expected)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 4096);
    for (size_t i = 0; i < tree->unplaced_count; i++) {
        (void)weft_buf_printf(&buf, "%s%s", i > 0 ? " " : "", tree->unplaced[i]);
    }
    CHECK_STR(weft_buf_text(&buf), expected);
}

static const struct weft_finding *find(const struct weft_tree *tree, const char *kind)
{
    for (size_t i = 0; i < tree->finding_count; i++) {
        if (strcmp(tree->findings[i].kind, kind) == 0) {
            return &tree->findings[i];
        }
    }
    return NULL;
}

static void report(struct weft_nic_inventory *inventory, unsigned number, const char *node)
{
    CHECK_INT(
        weft_nic_inventory_add_guid(inventory, WEFT_NIC_INVENTORY_REPORTED, 0xa000 + number, node),
        0);
}

/* ---- whose ---- */

/* Rows 3 to 5 of the fault list: descriptions say nothing, or all the same. */
static const struct plug nameless[] = {{VENDOR, 1, 1, 1, "4xNDR"},
                                       {VENDOR, 2, 2, 1, "4xNDR"},
                                       {VENDOR, 3, 3, 2, "4xNDR"},
                                       {VENDOR, 4, 4, 2, "4xNDR"},
                                       {"localhost mlx5_0", 5, 5, 2, "4xNDR"}};

static void reported_guids_place_nodes_without_names(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = fabric_of(nameless, 5, 2);
    weft_auto(weft_nic_inventory_free) struct weft_nic_inventory *inventory =
        weft_nic_inventory_new();
    const struct weft_tree_options options = {.inventory = inventory};
    const char *const names = "n1 n2 n3 n4 n5 n6";
    weft_auto(weft_tree_free) struct weft_tree *blind = tree_of(fabric, names, NULL);
    CHECK_INT(blind->node_count, 0);
    check_unplaced(blind, names);
    CHECK(find(blind, "default-description") != NULL && find(blind, "default-name") != NULL);
    for (unsigned n = 1; n <= 5; n++) {
        report(inventory, n, (const char *const[]){"n1", "n2", "n3", "n4", "n5"}[n - 1]);
    }
    weft_auto(weft_tree_free) struct weft_tree *tree = tree_of(fabric, names, &options);
    check_leaves(tree, "leaf-1: n1 n2; leaf-2: n3 n4 n5");
    check_unplaced(tree, "n6");
    CHECK(find(tree, "default-description") == NULL && find(tree, "default-name") == NULL);
    /* without a list of nodes the inventory's are the nodes */
    weft_auto(weft_tree_free) struct weft_tree *all = tree_of(fabric, NULL, &options);
    check_leaves(all, "leaf-1: n1 n2; leaf-2: n3 n4 n5");
}

static void what_is_reported_counts_before_a_description(void)
{
    static const struct plug plugs[] = {{"n1 mlx5_0", 1, 1, 1, "4xNDR"},
                                        {"n2 mlx5_0", 2, 2, 1, "4xNDR"},
                                        {"n1 mlx5_1", 3, 3, 2, "4xNDR"},
                                        {"n4 mlx5_0", 4, 4, 2, "4xNDR"}};
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = fabric_of(plugs, 4, 2);
    weft_auto(weft_nic_inventory_free) struct weft_nic_inventory *inventory =
        weft_nic_inventory_new();
    const struct weft_tree_options options = {.inventory = inventory};
    /* the card at leaf-2 was moved to n3 and kept its description; n4 is another cluster's */
    report(inventory, 3, "n3");
    report(inventory, 4, "elsewhere");
    weft_auto(weft_tree_free) struct weft_tree *tree = tree_of(fabric, "n1 n2 n3 n4", &options);
    check_leaves(tree, "leaf-1: n1 n2; leaf-2: n3");
    check_unplaced(tree, "n4");
    /* a list without n3: its adapter is a foreign host's, not n1's */
    weft_auto(weft_tree_free) struct weft_tree *fewer = tree_of(fabric, "n1 n2", &options);
    check_leaves(fewer, "leaf-1: n1 n2");
}

static void a_guid_of_two_nodes_is_nobodys(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = fabric_of(nameless, 5, 2);
    weft_auto(weft_nic_inventory_free) struct weft_nic_inventory *inventory =
        weft_nic_inventory_new();
    const struct weft_tree_options options = {.inventory = inventory};
    report(inventory, 1, "n2");
    report(inventory, 1, "n1");
    report(inventory, 1, "n1");
    report(inventory, 3, "n3");
    weft_auto(weft_tree_free) struct weft_tree *tree = tree_of(fabric, "n1 n2 n3", &options);
    check_leaves(tree, "leaf-2: n3");
    const struct weft_finding *f = find(tree, "guid-conflict");
    CHECK_STR(f != NULL ? f->subject : NULL, "n1");
    CHECK_CONTAINS(f != NULL ? f->detail : NULL, "000000000000a001");
}

static void adapters_of_a_card_are_one_nodes(void)
{
    static const struct plug plugs[] = {{VENDOR, 1, 1, 1, "4xNDR"},
                                        {VENDOR, 2, 1, 2, "4xNDR"},
                                        {VENDOR, 3, 2, 2, "4xNDR"},
                                        {VENDOR, 4, 3, 1, "4xNDR"},
                                        {VENDOR, 5, 3, 2, "4xNDR"}};
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = fabric_of(plugs, 5, 2);
    weft_auto(weft_nic_inventory_free) struct weft_nic_inventory *inventory =
        weft_nic_inventory_new();
    const struct weft_tree_options options = {.inventory = inventory};
    report(inventory, 1, "n1"); /* the second port's adapter, number 2, is of the same card */
    CHECK_INT(weft_nic_inventory_add_guid(inventory, WEFT_NIC_INVENTORY_REPORTED, 0xb002, "n2"), 0);
    weft_auto(weft_tree_free) struct weft_tree *tree = tree_of(fabric, "n1 n2", &options);
    /* n1 is on both leaves, so that they share more than half of leaf-1's two hosts' */
    CHECK_INT(tree->node_count, 2);
    size_t switches = 0;
    for (size_t g = 0; g < tree->tiers[0].group_count; g++) {
        switches += tree->tiers[0].groups[g].switch_count;
    }
    CHECK_INT(switches, 2);
    CHECK_INT(tree->tiers[0].group_count, 1);
}

static void a_users_map_is_for_what_has_no_name(void)
{
    static const struct plug plugs[] = {{"n1 mlx5_0", 1, 1, 1, "4xNDR"},
                                        {VENDOR, 2, 2, 1, "4xNDR"},
                                        {"bmc-77.mgmt mlx5_0", 3, 3, 2, "4xNDR"},
                                        {"BMC-78 mlx5_0", 4, 4, 2, "4xNDR"}};
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = fabric_of(plugs, 4, 2);
    weft_auto(weft_nic_inventory_free) struct weft_nic_inventory *inventory =
        weft_nic_inventory_new();
    const struct weft_tree_options options = {.inventory = inventory};
    char n2[] = "n2";
    char n3[] = "n3";
    char n4[] = "n4";
    char full[] = "BMC-77.mgmt";
    char plain[] = "bmc-78";
    struct weft_guid_name guids[] = {{0xa001, n2}, {0xa002, n2}};
    struct weft_host_name hosts[] = {{full, n3}, {plain, n4}};
    const struct weft_fabric_file file = {
        .guids = guids, .guid_count = 2, .hosts = hosts, .host_count = 2};
    CHECK_INT(weft_nic_inventory_add_file(inventory, WEFT_NIC_INVENTORY_MAPPED, &file), 0);
    weft_auto(weft_tree_free) struct weft_tree *tree = tree_of(fabric, "n1 n2 n3 n4", &options);
    check_leaves(tree, "leaf-1: n1 n2; leaf-2: n3 n4");
    /* the same file as an inventory comes before names: n1's adapter is n2's */
    weft_auto(weft_nic_inventory_free) struct weft_nic_inventory *first = weft_nic_inventory_new();
    const struct weft_tree_options before = {.inventory = first};
    CHECK_INT(weft_nic_inventory_add_file(first, WEFT_NIC_INVENTORY_REPORTED, &file), 0);
    weft_auto(weft_tree_free) struct weft_tree *other = tree_of(fabric, "n1 n2 n3 n4", &before);
    check_leaves(other, "leaf-1: n2; leaf-2: n3 n4");
    check_unplaced(other, "n1");
}

static void forms_of_a_name_are_one(void)
{
    static const struct plug plugs[] = {{"GPU-1 mlx5_0", 1, 1, 1, "4xNDR"},
                                        {"gpu-2.example.com mlx5_0", 2, 2, 1, "4xNDR"},
                                        {"gpu-3 mlx5_0", 3, 3, 2, "4xNDR"},
                                        {"gpu-4 mlx5_0", 4, 4, 2, "4xNDR"},
                                        {"gpu-4 mlx5_0", 5, 5, 2, "4xNDR"}};
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = fabric_of(plugs, 5, 2);
    weft_auto(weft_tree_free) struct weft_tree *tree =
        tree_of(fabric, "gpu-1 gpu-2 gpu-3.a.example gpu-4 gpu-9", NULL);
    /* two systems say that they are gpu-4: neither is */
    check_leaves(tree, "leaf-1: gpu-1 gpu-2; leaf-2: gpu-3.a.example");
    check_unplaced(tree, "gpu-4 gpu-9");
}

/* n9 has one link to each of two leaves with nodes of their own. */
static void a_tie_stays_where_it_was(void)
{
    static const struct plug plugs[] = {
        {"n1 mlx5_0", 1, 1, 1, "4xNDR"}, {"n2 mlx5_0", 2, 2, 1, "4xNDR"},
        {"n3 mlx5_0", 3, 3, 1, "4xNDR"}, {"n4 mlx5_0", 4, 4, 2, "4xNDR"},
        {"n5 mlx5_0", 5, 5, 2, "4xNDR"}, {"n6 mlx5_0", 6, 6, 2, "4xNDR"},
        {"n9 mlx5_0", 7, 7, 1, "4xNDR"}, {"n9 mlx5_1", 8, 8, 2, "4xNDR"}};
    static const struct weft_tree_home homes[] = {{"n1", 0x1002}, {"n3", 0x9999}, {"n9", 0x1002}};
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = fabric_of(plugs, 8, 2);
    const struct weft_tree_options second = {.homes = homes, .home_count = 3};
    const struct weft_tree_options gone = {.homes = &homes[1], .home_count = 1};
    const char *const names = "n1 n2 n3 n4 n5 n6 n9";
    weft_auto(weft_tree_free) struct weft_tree *tree = tree_of(fabric, names, NULL);
    check_leaves(tree, "leaf-1: n1 n2 n3 n9; leaf-2: n4 n5 n6");
    /* n1 was there too, but all its links are here now */
    weft_auto(weft_tree_free) struct weft_tree *stays = tree_of(fabric, names, &second);
    check_leaves(stays, "leaf-1: n1 n2 n3; leaf-2: n4 n5 n6 n9");
    weft_auto(weft_tree_free) struct weft_tree *other = tree_of(fabric, names, &gone);
    check_leaves(other, "leaf-1: n1 n2 n3 n9; leaf-2: n4 n5 n6");
}

/* ---- what for ---- */

/* Four nodes, two a leaf, with a second adapter each on leaf-3: a storage network. */
static const struct plug storage[] = {
    {"n1 mlx5_0", 1, 1, 1, "4xNDR"}, {"n2 mlx5_0", 2, 2, 1, "4xNDR"},
    {"n3 mlx5_0", 3, 3, 2, "4xNDR"}, {"n4 mlx5_0", 4, 4, 2, "4xNDR"},
    {"n1 mlx5_1", 5, 5, 3, "4xNDR"}, {"n2 mlx5_1", 6, 6, 3, "4xNDR"},
    {"n3 mlx5_1", 7, 7, 3, "4xNDR"}, {"n4 mlx5_1", 8, 8, 3, "4xNDR"}};

static void a_storage_network_is_told_by_roles(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = fabric_of(storage, 8, 3);
    weft_auto(weft_nic_inventory_free) struct weft_nic_inventory *inventory =
        weft_nic_inventory_new();
    const struct weft_tree_options options = {.inventory = inventory};
    const char *const names = "n1 n2 n3 n4";
    weft_auto(weft_tree_free) struct weft_tree *blind = tree_of(fabric, names, NULL);
    check_leaves(blind, "leaf-1: n1 n2 n3 n4"); /* one group: the trap */
    CHECK_INT(weft_nic_inventory_set_role(inventory, 0xa005, WEFT_NIC_OTHER), 0);
    CHECK_INT(weft_nic_inventory_set_role(inventory, 0xb006, WEFT_NIC_OTHER), 0); /* its card */
    CHECK_INT(weft_nic_inventory_set_role(inventory, 0xa003, WEFT_NIC_COMPUTE), 0);
    CHECK_INT(weft_nic_inventory_set_role(inventory, 0xa004, WEFT_NIC_OTHER), 0);
    CHECK_INT(weft_nic_inventory_set_role(inventory, 0xa004, WEFT_NIC_COMPUTE), 0);
    weft_auto(weft_tree_free) struct weft_tree *tree = tree_of(fabric, names, &options);
    check_leaves(tree, "leaf-1: n1 n2; leaf-2: n3 n4");
}

/* The members of a partition are for compute: a list of GUIDs. */
static void a_partition_tells_roles(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = fabric_of(storage, 8, 3);
    weft_auto(weft_nic_inventory_free) struct weft_nic_inventory *inventory =
        weft_nic_inventory_new();
    const struct weft_tree_options options = {.inventory = inventory};
    static const char text[] = "apiVersion: weft.dev/v1alpha1\nkind: FabricFile\n"
                               "roles: {compute: [\"0xa001\", a002, \"0xA003\", \"0xa004\"]}\n";
    weft_auto(weft_fabric_file_free) struct weft_fabric_file *file = NULL;
    CHECK_INT(weft_parse_fabric_file(text, strlen(text), "roles", &file, NULL), 0);
    CHECK_INT(weft_nic_inventory_add_file(inventory, WEFT_NIC_INVENTORY_REPORTED, file), 0);
    weft_auto(weft_tree_free) struct weft_tree *tree = tree_of(fabric, "n1 n2 n3 n4", &options);
    check_leaves(tree, "leaf-1: n1 n2; leaf-2: n3 n4");
}

static void a_storage_network_is_told_by_rate(void)
{
    struct plug plugs[8];
    memcpy(plugs, storage, sizeof(plugs));
    for (size_t i = 4; i < 8; i++) {
        plugs[i].rate = "4xEDR"; /* 100 Gb/s of 400 */
    }
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = fabric_of(plugs, 8, 3);
    weft_auto(weft_tree_free) struct weft_tree *tree = tree_of(fabric, "n1 n2 n3 n4", NULL);
    check_leaves(tree, "leaf-1: n1 n2; leaf-2: n3 n4");
    const struct weft_finding *f = find(tree, "slow-adapter");
    CHECK_STR(f != NULL ? f->subject : NULL, "mlx5_1");
    CHECK_CONTAINS(f != NULL ? f->detail : NULL, "at 100 Gb/s on 4 nodes, where others have 400");
    const struct weft_tree_options keep = {.keep_slow_hcas = true};
    weft_auto(weft_tree_free) struct weft_tree *kept = tree_of(fabric, "n1 n2 n3 n4", &keep);
    check_leaves(kept, "leaf-1: n1 n2 n3 n4");
    /* half the rate is not slow: a two-lane port of a twin card, or a generation older */
    for (size_t i = 4; i < 8; i++) {
        plugs[i].rate = "4xHDR";
    }
    weft_auto(weft_fabric_free) struct weft_fabric *half = fabric_of(plugs, 8, 3);
    weft_auto(weft_tree_free) struct weft_tree *same = tree_of(half, "n1 n2 n3 n4", NULL);
    check_leaves(same, "leaf-1: n1 n2 n3 n4");
}

/* One cable that came up at a quarter of its rate is evidence still; and a node all of whose
 * adapters are old is compared with itself only. */
static void a_bad_cable_is_no_storage_adapter(void)
{
    static const struct plug plugs[] = {
        {"n1 mlx5_0", 1, 1, 1, "4xNDR"}, {"n2 mlx5_0", 2, 2, 1, "4xNDR"},
        {"n1 mlx5_1", 3, 3, 2, "4xNDR"}, {"n2 mlx5_1", 4, 4, 2, "1xNDR"},
        {"n3 mlx5_0", 5, 5, 1, "4xNDR"}, {"n3 mlx5_1", 6, 6, 2, "4xNDR"},
        {"n4 mlx5_0", 7, 7, 1, "4xQDR"}, {"n4 mlx5_1", 8, 8, 2, "4xQDR"}};
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = fabric_of(plugs, 8, 2);
    weft_auto(weft_tree_free) struct weft_tree *tree = tree_of(fabric, "n1 n2 n3 n4", NULL);
    check_leaves(tree, "leaf-1: n1 n2 n3 n4");
    CHECK(find(tree, "slow-adapter") == NULL);
    CHECK(find(tree, "missing-link") == NULL);
    CHECK_INT(tree->tiers[0].groups[0].switch_count, 2);
}

/* ---- what should be ---- */

/* n3's cable is in leaf-2, not leaf-1; n4 has none; n5 was not seen; leaf-2's uplink is in no plan.
 */
static const char plan_text[] = "graph \"pod\" {\n"
                                "\"leaf-1\":\"swp1\" -- \"n1\":\"mlx5_0\"\n"
                                "\"leaf-1\":\"swp2\" -- \"n2\":\"mlx5_0\"\n"
                                "\"leaf-1\":\"swp3\" -- \"n3\":\"mlx5_0\"\n"
                                "\"leaf-1\":\"swp60\" -- \"spine\":\"swp1\"\n"
                                "\"leaf-1\":\"swp9\" -- \"n2\":\"mlx5_1\"\n"
                                "\"leaf-1\":\"swp5\" -- \"n5\":\"mlx5_0\"\n"
                                "}\n";

static size_t count_kind(const struct weft_tree *tree, const char *kind)
{
    size_t count = 0;
    for (size_t i = 0; i < tree->finding_count; i++) {
        count += strcmp(tree->findings[i].kind, kind) == 0;
    }
    return count;
}

static void check_detail(const struct weft_tree *tree, const char *kind, const char *subject,
                         const char *detail)
{
    const struct weft_finding *f = find(tree, kind);
    CHECK_INT(count_kind(tree, kind), 1);
    CHECK_STR(f != NULL ? f->subject : NULL, subject);
    CHECK_STR(f != NULL ? f->detail : NULL, detail);
}

static void cables_are_compared_with_the_plan(void)
{
    static const struct plug plugs[] = {{"n1 mlx5_0", 1, 1, 1, "4xNDR"},
                                        {"n2 mlx5_0", 2, 2, 1, "4xNDR"},
                                        {"n3 mlx5_0", 3, 3, 2, "4xNDR"}};
    static const char *const tiers[] = {"leaf", "spine", "core"};
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = fabric_of(plugs, 3, 2);
    weft_auto(weft_cabling_free) struct weft_cabling *plan = NULL;
    weft_auto(weft_fabric_free) struct weft_fabric *planned = NULL;
    CHECK_INT(weft_parse_ptm(plan_text, strlen(plan_text), "topology.dot", &plan, NULL), 0);
    CHECK_INT(weft_cabling_fabric(plan, &planned, NULL), 0);
    const struct weft_tree_source sources[] = {{.fabric = fabric},
                                               {.fabric = planned, .expected = plan}};
    const struct weft_tree_input input = {
        .sources = sources, .source_count = 2, .plan = tiers, .plan_count = 3};
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    CHECK_INT(weft_tree_build(&input, &tree, NULL), 0);
    check_leaves(tree, "leaf-1: n1 n2; leaf-1: n5; leaf-2: n3"); /* n5 is known to the plan only */
    check_detail(tree, "wrong-cable", "leaf-1",
                 "topology.dot:4 expects leaf-1:swp3 - n3:mlx5_0, there is leaf-2:3 - n3:mlx5_0");
    check_detail(tree, "missing-cable", "leaf-1",
                 "no cable from leaf-1:swp9 to n2:mlx5_1, which topology.dot:6 expects");
    check_detail(tree, "unseen-device", "leaf-1",
                 "one end of leaf-1:swp5 - n5:mlx5_0, which topology.dot:7 expects, is on a device "
                 "that was not seen at all");
    CHECK_INT(count_kind(tree, "extra-cable"), 0); /* leaf-2 is not in the plan at all */
    /* a plan alone has nothing to be compared with */
    const struct weft_tree_input alone = {
        .sources = &sources[1], .source_count = 1, .plan = tiers, .plan_count = 3};
    weft_auto(weft_tree_free) struct weft_tree *only = NULL;
    CHECK_INT(weft_tree_build(&alone, &only, NULL), 0);
    CHECK_INT(count_kind(only, "wrong-cable") + count_kind(only, "missing-cable"), 0);
}

static void no_memory(void)
{
    static const char *const names[] = {"n1", "n2", "n3", "n4"};
    struct plug plugs[8];
    memcpy(plugs, storage, sizeof(plugs));
    plugs[7].rate = "4xEDR";
    plugs[0].desc = VENDOR;
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = fabric_of(plugs, 8, 3);
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    struct weft_node *node = NULL;
    for (size_t n = 0; n < 4; n++) {
        CHECK_INT(weft_nodes_add(&nodes, names[n], NULL, &node), 0);
    }
    int rc = -ENOMEM;
    for (uint64_t n = 1; rc < 0 && n < 20000; n++) {
        weft_auto(weft_nic_inventory_free) struct weft_nic_inventory *inventory = NULL;
        weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
        (void)weft_mem_fail_after(n);
        inventory = weft_nic_inventory_new();
        rc = inventory != NULL ? 0 : -ENOMEM;
        rc = rc == 0
                 ? weft_nic_inventory_add_guid(inventory, WEFT_NIC_INVENTORY_REPORTED, 0xa001, "n1")
                 : rc;
        rc = rc == 0
                 ? weft_nic_inventory_add_guid(inventory, WEFT_NIC_INVENTORY_REPORTED, 0xa001, "n2")
                 : rc;
        rc = rc == 0 ? weft_nic_inventory_add_name(inventory, "x", "n3") : rc;
        rc = rc == 0 ? weft_nic_inventory_set_role(inventory, 0xa005, WEFT_NIC_OTHER) : rc;
        const struct weft_tree_options options = {.inventory = inventory};
        rc = rc == 0 ? weft_tree_from_fabric(fabric, n % 2 == 0 ? nodes.items : NULL,
                                             n % 2 == 0 ? nodes.count : 0, &options, &tree, NULL)
                     : rc;
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || (rc == -ENOMEM && tree == NULL));
    }
    CHECK_INT(rc, 0);
}

WEFT_SUITE(tree_nodes,
           {"reported_guids_place_nodes_without_names", reported_guids_place_nodes_without_names},
           {"what_is_reported_counts_before_a_description",
            what_is_reported_counts_before_a_description},
           {"a_guid_of_two_nodes_is_nobodys", a_guid_of_two_nodes_is_nobodys},
           {"adapters_of_a_card_are_one_nodes", adapters_of_a_card_are_one_nodes},
           {"a_users_map_is_for_what_has_no_name", a_users_map_is_for_what_has_no_name},
           {"forms_of_a_name_are_one", forms_of_a_name_are_one},
           {"a_tie_stays_where_it_was", a_tie_stays_where_it_was},
           {"a_storage_network_is_told_by_roles", a_storage_network_is_told_by_roles},
           {"a_partition_tells_roles", a_partition_tells_roles},
           {"a_storage_network_is_told_by_rate", a_storage_network_is_told_by_rate},
           {"a_bad_cable_is_no_storage_adapter", a_bad_cable_is_no_storage_adapter},
           {"cables_are_compared_with_the_plan", cables_are_compared_with_the_plan},
           {"no_memory", no_memory})
