/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSM's partitions.conf, and the roles that its members have. Texts and answers by hand, after
 * opensm's doc/partition-config.txt. */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "pkg/base/str.h"
#include "pkg/fabric/inventory.h"
#include "pkg/fabric/partitions.h"
#include "pkg/source/config.h"
#include "tests/unit/proc.h"
#include "tests/unit/unit.h"

#define TWO                                                                                        \
    "# compute and storage\n"                                                                      \
    "Default=0x7fff, ipoib : ALL_SWITCHES=full, SELF=full ;\n"                                     \
    "compute=0x8001, defmember=full :\n"                                                           \
    "    0x0c42a10300000001, 0x0c42a10300000002=limited, # two lines of them\n"                    \
    "    0x0c42a10300000001 ;\n"                                                                   \
    "storage=0x2, rate=7, mtu=4, scope=2 : 0x0c42a10300000011=full ;\n"                            \
    "compute : 0x0c42a10300000003=both ;\n"

static int parse(const char *text, struct weft_ib_partitions **ret, struct weft_error *err)
{
    return weft_parse_ib_partitions(text, strlen(text), "p.conf", ret, err);
}

static void statements(void)
{
    weft_auto(weft_ib_partitions_free) struct weft_ib_partitions *p = NULL;
    CHECK_INT(parse(TWO, &p, NULL), 0);
    if (p == NULL) {
        return;
    }
    CHECK_INT(p->count, 3);
    CHECK_STR(p->items[0].name, "Default");
    CHECK_INT(p->items[0].pkey, 0x7fff);
    CHECK_INT(p->items[0].count, 0);
    CHECK(!p->items[0].everybody);
    CHECK_STR(p->items[1].name, "compute");
    CHECK_INT(p->items[1].pkey, 1); /* without the membership bit */
    CHECK_INT(p->items[1].line, 3);
    CHECK_INT(p->items[1].count, 3); /* one twice; a second statement adds one */
    CHECK(p->items[1].guids[0] == UINT64_C(0x0c42a10300000001));
    CHECK(p->items[1].guids[2] == UINT64_C(0x0c42a10300000003));
    CHECK_INT(p->items[2].pkey, 2);
    CHECK_INT(p->items[2].count, 1);
}

static void forms(void)
{
    weft_auto(weft_ib_partitions_free) struct weft_ib_partitions *p = NULL;
    CHECK_INT(parse("0x8005:all=full;x=5:0x1;y:;z;", &p, NULL), 0);
    CHECK_INT(p != NULL ? p->count : 0, 3);
    if (p != NULL && p->count == 3) {
        CHECK(p->items[0].everybody); /* the P_Key alone, then with a name: one partition */
        CHECK_INT(p->items[0].count, 1);
        CHECK_STR(p->items[1].name, "y");
        CHECK_STR(p->items[2].name, "z");
    }
}

static void wrong_texts(void)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "p.conf: no partition"},
        {"# nothing\n", "p.conf: no partition"},
        {"a=0x1:\n0x2", "p.conf:2: \",\" or \";\" is expected after a member: \"the end of"},
        {"a=0x1", "p.conf:1: \":\" or \";\" is expected after a partition's definition: \"the end"},
        {"a=0x1:\n\n0xzz;",
         "p.conf:3: no port GUID like 0x0002c903000e0b72, ALL or SELF: \"0xzz\""},
        {"a=0x1: 12;", "no port GUID"},
        {"a=0x1: 0x0;", "no port GUID"},
        {"a=0x10000: 0x1;", "p.conf:1: no P_Key, which is a number up to 0xffff: \"0x10000\""},
        {"a=many: 0x1;", "no P_Key"},
        {"=0x1: 0x1;", "p.conf:1: a partition has a name or a P_Key"},
        {"a=0x1: 0x1\n0x2;", "is expected after a member"},
        {"a=0x1: 0x1,, 0x2;", "no port GUID"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        struct weft_ib_partitions *p = NULL;
        struct weft_error err = {0};
        CHECK_INT(parse(rows[i].text, &p, &err), -EINVAL);
        CHECK_CONTAINS(err.message, rows[i].message);
        CHECK(p == NULL);
    }
    struct weft_ib_partitions *p = NULL;
    CHECK_INT(weft_parse_ib_partitions("a=1:0x1;\0", 9, "p.conf", &p, NULL), -EINVAL);
}

/* A text that ends anywhere but after a statement is refused: half a list leaves members out. */
static void cut_texts(void)
{
    const char *whole = TWO;
    for (size_t len = 0; len < strlen(whole); len++) {
        weft_auto(weft_ib_partitions_free) struct weft_ib_partitions *p = NULL;
        struct weft_error err = {0};
        const int rc = weft_parse_ib_partitions(whole, len, "p.conf", &p, &err);
        size_t end = len;
        while (end > 0 && strchr(" \n", whole[end - 1]) != NULL) {
            end--;
        }
        const bool complete = end > 0 && whole[end - 1] == ';';
        CHECK_INT(rc == 0, complete);
        CHECK(rc == 0 || err.message[0] != '\0');
    }
}

static void no_memory(void)
{
    size_t failed = 0;
    int rc = -ENOMEM;
    for (uint64_t n = 1; rc == -ENOMEM && n < 100; n++) {
        weft_auto(weft_ib_partitions_free) struct weft_ib_partitions *p = NULL;
        (void)weft_mem_fail_after(n);
        rc = parse(TWO, &p, NULL);
        (void)weft_mem_fail_after(0);
        failed += rc == -ENOMEM ? 1 : 0;
    }
    CHECK_INT(rc, 0);
    CHECK(failed > 5);
}

static int roles(const char *text, char *wanted, struct weft_nic_inventory *inventory,
                 struct weft_error *err)
{
    weft_auto(weft_ib_partitions_free) struct weft_ib_partitions *p = NULL;
    CHECK_INT(parse(text, &p, NULL), 0);
    return p != NULL ? weft_ib_partitions_roles(p, &wanted, 1, inventory, err) : -1;
}

static void members_get_roles(void)
{
    char by_name[] = "compute", by_key[] = "0x1", with_bit[] = "0x8001";
    char *const all[] = {by_name, by_key, with_bit};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(all); i++) {
        weft_auto(weft_nic_inventory_free) struct weft_nic_inventory *inventory =
            weft_nic_inventory_new();
        CHECK_INT(roles(TWO, all[i], inventory, NULL), 0);
        CHECK_INT(weft_nic_inventory_role(inventory, UINT64_C(0x0c42a10300000001)),
                  WEFT_NIC_COMPUTE);
        CHECK_INT(weft_nic_inventory_role(inventory, UINT64_C(0x0c42a10300000003)),
                  WEFT_NIC_COMPUTE);
        CHECK_INT(weft_nic_inventory_role(inventory, UINT64_C(0x0c42a10300000011)), WEFT_NIC_OTHER);
        /* a neighbouring GUID may be another adapter's */
        CHECK_INT(weft_nic_inventory_role(inventory, UINT64_C(0x0c42a10300000010)),
                  WEFT_NIC_UNKNOWN);
    }
}

static void partitions_that_tell_nothing(void)
{
    char absent[] = "gpu", everybody[] = "a", empty[] = "b", key[] = "0x9";
    struct weft_error err = {0};
    weft_auto(weft_nic_inventory_free) struct weft_nic_inventory *inventory =
        weft_nic_inventory_new();
    CHECK_INT(roles(TWO, absent, inventory, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "p.conf: no partition \"gpu\"");
    CHECK_INT(roles(TWO, key, inventory, &err), -ENOENT);
    CHECK_INT(roles("\na=1: ALL, 0x5;", everybody, inventory, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "p.conf:2: partition \"a\" has everybody: it tells no adapter");
    CHECK_INT(roles("b=1: SELF;", empty, inventory, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "partition \"b\" has no member");
    CHECK_INT(weft_nic_inventory_role(inventory, 5), WEFT_NIC_UNKNOWN);
}

/* ---- the program ---- */

/* Two leaves of two nodes each; every node also has a second adapter on a storage switch of equal
 * rate, which alone makes all four one group. */
static char *fabric_text(void)
{
    struct weft_buf buf;
    weft_buf_init(&buf, 1 << 20);
    for (unsigned s = 1; s <= 3; s++) {
        (void)weft_buf_printf(&buf,
                              "switchguid=0x%x0(%x0)\nSwitch\t36 \"S-00000000000000%x0\"\t\t# "
                              "\"sw%u\" enhanced port 0 lid %u lmc 0\n",
                              s, s, s, s, s);
        for (unsigned h = 1; h <= 4; h++) {
            if (s == 3 || (h + 1) / 2 == s) {
                (void)weft_buf_printf(
                    &buf,
                    "[%u]\t\"H-0000000000000%x%02x\"[1](%x)\t\t# \"n%u mlx5_%u\" lid 9 4xHDR\n", h,
                    s == 3 ? 2U : 1U, h, h, h, s == 3 ? 1U : 0U);
            }
        }
        (void)weft_buf_puts(&buf, "\n");
    }
    for (unsigned c = 1; c <= 2; c++) {
        for (unsigned h = 1; h <= 4; h++) {
            const unsigned s = c == 2 ? 3 : (h + 1) / 2;
            (void)weft_buf_printf(&buf,
                                  "caguid=0x%x%02x\nCa\t1 \"H-0000000000000%x%02x\"\t\t# \"n%u "
                                  "mlx5_%u\"\n[1](%x%02x)\t\"S-00000000000000%x0\"[%u]\t\t# lid 9 "
                                  "lmc 0 \"sw%u\" lid %u 4xHDR\n\n",
                                  c, h, c, h, h, c - 1, c, h, s, h, s, s);
        }
    }
    char *text = weft_buf_steal(&buf);
    weft_buf_done(&buf);
    return text;
}

static const char *tree_of(const char *config)
{
    static char said[8192];
    char path[300], program[512];
    (void)snprintf(path, sizeof(path), "%s/partitions-config.yaml", weft_test_dir());
    CHECK_INT(weft_file_replace(path, config, strlen(config), 0600, NULL), 0);
    (void)snprintf(program, sizeof(program), "%s", proc_path("bin/weftctl"));
    const char *const argv[] = {program, "tree", "--config", path, NULL};
    struct proc p = {.pid = -1};
    said[0] = '\0';
    if (proc_start(&p, argv)) {
        (void)proc_says(&p, "no such text", 5000);
        (void)snprintf(said, sizeof(said), "%s", p.text != NULL ? p.text : "");
    }
    (void)proc_end(&p, 0, 5000);
    return said;
}

/* The storage network makes one group of all; the partition takes it out. */
static void a_storage_network_is_told_by_its_partition(void)
{
    char config[1024], fabric[300], partitions[300];
    weft_autofree char *text = fabric_text();
    static const char conf[] = "compute=0x1: 0x101, 0x102, 0x103, 0x104;\n"
                               "storage=0x2: 0x201, 0x202, 0x203, 0x204;\n";
    (void)snprintf(fabric, sizeof(fabric), "%s/partitions-fabric.txt", weft_test_dir());
    (void)snprintf(partitions, sizeof(partitions), "%s/partitions.conf", weft_test_dir());
    CHECK_INT(weft_file_replace(fabric, text, strlen(text), 0600, NULL), 0);
    CHECK_INT(weft_file_replace(partitions, conf, strlen(conf), 0600, NULL), 0);
    static const char head[] = "apiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\nsources:\n";
    (void)snprintf(config, sizeof(config), "%s- infiniband: {dump: %s}\n", head, fabric);
    CHECK_CONTAINS(tree_of(config), "n[1-4]");
    (void)snprintf(config, sizeof(config),
                   "%s- infiniband: {dump: %s, partitions: %s, computePartitions: [compute]}\n",
                   head, fabric, partitions);
    const char *tree = tree_of(config);
    CHECK_CONTAINS(tree, "n[1-2]");
    CHECK_CONTAINS(tree, "n[3-4]");
    CHECK(strstr(tree, "n[1-4]") == NULL);
    (void)snprintf(config, sizeof(config), "%s- infiniband: {dump: %s, partitions: %s}\n", head,
                   fabric, partitions);
    CHECK_CONTAINS(tree_of(config), "computePartitions");
    static const char others[] = "compute=0x1: 0x9;\n";
    CHECK_INT(weft_file_replace(partitions, others, strlen(others), 0600, NULL), 0);
    (void)snprintf(config, sizeof(config),
                   "%s- infiniband: {dump: %s, partitions: %s, computePartitions: [compute]}\n",
                   head, fabric, partitions);
    CHECK_CONTAINS(tree_of(config), "no member of computePartitions is an adapter of the fabric");
}

WEFT_SUITE(fabric_partitions, {"statements", statements}, {"forms", forms},
           {"wrong texts", wrong_texts}, {"cut texts", cut_texts}, {"no memory", no_memory},
           {"members get roles", members_get_roles},
           {"partitions that tell nothing", partitions_that_tell_nothing},
           {"a storage network is told by its partition",
            a_storage_network_is_told_by_its_partition})
