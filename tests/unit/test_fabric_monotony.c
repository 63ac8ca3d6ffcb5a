/* SPDX-License-Identifier: Apache-2.0 */
/* What a source does not say is never made up: a text that is cut at any byte, or that lacks
 * records, puts no two nodes together that the whole one keeps apart; and the order of records
 * decides nothing. */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/fabric/cabling.h"
#include "pkg/fabric/cloud.h"
#include "pkg/fabric/fabric-file.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/labels.h"
#include "pkg/fabric/lldp.h"
#include "pkg/fabric/slurm.h"
#include "pkg/fabric/ufm.h"
#include "tests/unit/declared_text.h"
#include "tests/unit/unit.h"

enum { RECORDS_MAX = 256, LEAVES = 6, NODES = 4 };

/* A text as its records, so that it can be put together in part and in any order. */
struct records {
    const char *head;
    const char *between;
    const char *tail;
    char *items[RECORDS_MAX];
    size_t count;
};

static void add(struct records *r, char *item)
{
    r->items[r->count++] = item;
}

static void records_done(struct records *r)
{
    for (size_t i = 0; i < r->count; i++) {
        weft_free(r->items[i]);
    }
}

static void shuffle(struct records *r, uint64_t *state)
{
    for (size_t i = r->count; i > 1; i--) {
        const size_t j = (size_t)weft_random_below(state, i);
        char *item = r->items[i - 1];
        r->items[i - 1] = r->items[j];
        r->items[j] = item;
    }
}

/* The records whose bit is not in skip: each with a chance of one in drop (0: none is dropped). */
static char *join(const struct records *r, uint64_t drop, uint64_t *state)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1 << 20);
    bool first = true;
    (void)weft_buf_puts(&buf, r->head);
    for (size_t i = 0; i < r->count; i++) {
        if (drop > 0 && weft_random_below(state, drop) == 0) {
            continue;
        }
        (void)weft_buf_printf(&buf, "%s%s", first ? "" : r->between, r->items[i]);
        first = false;
    }
    (void)weft_buf_puts(&buf, r->tail);
    return weft_buf_steal(&buf);
}

/* ---- declared sets ---- */

typedef int (*declare_fn)(const char *text, size_t len, struct weft_declared **ret);

static int declare_slurm(const char *text, size_t len, struct weft_declared **ret)
{
    return weft_parse_slurm(text, len, "t", NULL, ret, NULL);
}

static int declare_aws(const char *text, size_t len, struct weft_declared **ret)
{
    return weft_parse_aws_topology(text, len, "t", NULL, ret, NULL);
}

static int declare_file(const char *text, size_t len, struct weft_declared **ret)
{
    weft_auto(weft_fabric_file_free) struct weft_fabric_file *file = NULL;
    const int rc = weft_parse_fabric_file(text, len, "t", &file, NULL);
    if (rc == 0) {
        *ret = weft_steal(&file->groups);
    }
    return rc == 0 && *ret == NULL ? -EINVAL : rc;
}

static const char *value(const struct weft_declared *d, const char *node, size_t level)
{
    for (size_t n = 0; n < d->node_count; n++) {
        if (strcmp(d->nodes[n], node) == 0) {
            return level < d->levels.count ? d->values[n * d->levels.count + level] : NULL;
        }
    }
    return NULL;
}

static bool alike(const struct weft_declared *d, const char *a, const char *b, size_t level)
{
    const char *x = value(d, a, level);
    const char *y = value(d, b, level);
    return x != NULL && y != NULL && strcmp(x, y) == 0;
}

/* Together in the part: together in the whole. */
static bool groups_no_strangers(const struct weft_declared *part, const struct weft_declared *whole)
{
    for (size_t a = 0; a < part->node_count; a++) {
        for (size_t b = a + 1; b < part->node_count; b++) {
            for (size_t l = 0; l < part->levels.count; l++) {
                if (alike(part, part->nodes[a], part->nodes[b], l) &&
                    !alike(whole, part->nodes[a], part->nodes[b], l)) {
                    printf("%s and %s at level %zu\n", part->nodes[a], part->nodes[b], l);
                    return false;
                }
            }
        }
    }
    return true;
}

/* The text up to each of its bytes. How many of them were read at all. */
static size_t cut_everywhere(const char *text, declare_fn parse, const struct weft_declared *whole)
{
    size_t read = 0;
    for (size_t len = 0; len < strlen(text); len++) {
        weft_auto(weft_declared_free) struct weft_declared *part = NULL;
        if (parse(text, len, &part) == 0) {
            read++;
            CHECK(groups_no_strangers(part, whole));
        }
    }
    return read;
}

static void check_declared(struct records *r, declare_fn parse, bool cut, uint64_t seed)
{
    uint64_t state = seed;
    weft_autofree char *text = join(r, 0, &state);
    weft_auto(weft_declared_free) struct weft_declared *whole = NULL;
    CHECK_INT(parse(text, strlen(text), &whole), 0);
    if (whole == NULL) {
        return;
    }
    weft_autofree char *expected = weft_declared_text(whole);
    size_t read = 0;
    for (unsigned round = 0; round < 50; round++) {
        weft_auto(weft_declared_free) struct weft_declared *same = NULL;
        weft_auto(weft_declared_free) struct weft_declared *part = NULL;
        shuffle(r, &state);
        weft_autofree char *shuffled = join(r, 0, &state);
        weft_autofree char *fewer = join(r, 8, &state);
        CHECK_INT(parse(shuffled, strlen(shuffled), &same), 0);
        weft_autofree char *found = same != NULL ? weft_declared_text(same) : NULL;
        if (!CHECK_STR(found != NULL ? found : "nothing", expected)) {
            printf("seed %llu round %u\n", (unsigned long long)seed, round);
        }
        if (parse(fewer, strlen(fewer), &part) == 0) {
            CHECK(groups_no_strangers(part, whole));
        }
        read += cut && round < 10 ? cut_everywhere(shuffled, parse, whole) : 0;
    }
    CHECK(!cut || read > 0);
}

static void slurm_trees(void)
{
    struct records r = {.head = "", .between = "", .tail = ""};
    add(&r, weft_asprintf("SwitchName=top Switches=mid[0-1]\n"));
    add(&r, weft_asprintf("SwitchName=mid0 Switches=leaf[0-2]\n"));
    add(&r, weft_asprintf("SwitchName=mid1 Switches=leaf[3-5]\n"));
    for (unsigned l = 0; l < LEAVES; l++) {
        add(&r, weft_asprintf("SwitchName=leaf%u Nodes=n[%u-%u],m%u\n", l, l * NODES,
                              l * NODES + NODES - 1, l + 10));
    }
    check_declared(&r, declare_slurm, true, 1);
    records_done(&r);
}

static void aws_answers(void)
{
    struct records r = {.head = "{\"Instances\": [", .between = ",\n", .tail = "]}\n"};
    for (unsigned n = 0; n < LEAVES * NODES; n++) {
        add(&r, weft_asprintf("{\"InstanceId\": \"i-%u\", \"NetworkNodes\": [\"t\", \"m%u\", "
                              "\"l%u\"]}",
                              n, n / NODES / 2, n / NODES));
    }
    check_declared(&r, declare_aws, false, 2);
    records_done(&r);
}

static void fabric_files(void)
{
    struct records r = {.head = "apiVersion: weft.dev/v1alpha1\nkind: FabricFile\n"
                                "levels: [rack, row]\ngroups:\n",
                        .between = "",
                        .tail = ""};
    for (unsigned l = 0; l < LEAVES; l++) {
        add(&r, weft_asprintf("- {name: r%u, level: rack, nodes: \"n[%u-%u]\"}\n", l, l * NODES,
                              l * NODES + NODES - 1));
        if (l % 2 == 0) {
            add(&r, weft_asprintf("- {name: row%u, level: row, nodes: \"n[%u-%u]\"}\n", l,
                                  l * NODES, l * NODES + 2 * NODES - 1));
        }
    }
    check_declared(&r, declare_file, true, 3);
    records_done(&r);
}

/* ---- switch graphs ---- */

typedef int (*scan_fn)(const char *text, size_t len, struct weft_fabric **ret);

static int scan_dot(const char *text, size_t len, struct weft_fabric **ret)
{
    weft_auto(weft_cabling_free) struct weft_cabling *cabling = NULL;
    const int rc = weft_parse_cabling(text, len, "t", &cabling, NULL);
    return rc < 0 ? rc : weft_cabling_fabric(cabling, ret, NULL);
}

static int scan_ufm(const char *text, size_t len, struct weft_fabric **ret)
{
    weft_auto(weft_ufm_free) struct weft_ufm *ufm = weft_ufm_new("t");
    const int rc = weft_ufm_add(ufm, WEFT_UFM_LINKS, text, len, "t", NULL, NULL);
    return rc < 0 ? rc : weft_ufm_finish(ufm, ret, NULL);
}

/* One report a record: "host text", divided by a byte that is in none of them. */
static int scan_lldp(const char *text, size_t len, struct weft_fabric **ret)
{
    weft_auto(weft_lldp_free) struct weft_lldp *lldp = weft_lldp_new("t");
    weft_autofree char *copy = weft_strndup(text, len);
    char *rest = copy;
    int rc = 0;
    for (char *item = NULL; rc == 0 && (item = strsep(&rest, "\n")) != NULL;) {
        char *json = strchr(item, ' ');
        if (json != NULL) {
            *json++ = '\0';
            rc = weft_lldp_add(lldp, json, strlen(json), "t", item, NULL);
        }
    }
    return rc < 0 ? rc : weft_lldp_finish(lldp, ret, NULL);
}

/* Are the hosts on one switch? */
static bool on_one_switch(const struct weft_fabric *f, const char *a, const char *b)
{
    uint64_t switches[2][16] = {{0}};
    size_t counts[2] = {0};
    for (size_t i = 0; i < f->link_count; i++) {
        const size_t host = f->devices[f->links[i].b].host;
        for (size_t h = 0; host != WEFT_FABRIC_NO_HOST && h < 2; h++) {
            if (strcmp(f->hosts[host].name, h == 0 ? a : b) == 0 && counts[h] < 16) {
                switches[h][counts[h]++] = f->devices[f->links[i].a].guid;
            }
        }
    }
    for (size_t x = 0; x < counts[0]; x++) {
        for (size_t y = 0; y < counts[1]; y++) {
            if (switches[0][x] == switches[1][y]) {
                return true;
            }
        }
    }
    return false;
}

static bool joins_no_strangers(const struct weft_fabric *part, const struct weft_fabric *whole)
{
    for (size_t a = 0; a < part->host_count; a++) {
        for (size_t b = a + 1; b < part->host_count; b++) {
            if (on_one_switch(part, part->hosts[a].name, part->hosts[b].name) &&
                !on_one_switch(whole, part->hosts[a].name, part->hosts[b].name)) {
                printf("%s and %s\n", part->hosts[a].name, part->hosts[b].name);
                return false;
            }
        }
    }
    return true;
}

static bool is_same(const struct weft_fabric *a, const struct weft_fabric *b)
{
    bool same = a->device_count == b->device_count && a->link_count == b->link_count &&
                memcmp(a->links, b->links, a->link_count * sizeof(*a->links)) == 0;
    for (size_t i = 0; same && i < a->device_count; i++) {
        same = a->devices[i].guid == b->devices[i].guid &&
               strcmp(a->devices[i].desc, b->devices[i].desc) == 0;
    }
    return same;
}

static void check_fabric(struct records *r, scan_fn scan, uint64_t seed)
{
    uint64_t state = seed;
    weft_autofree char *text = join(r, 0, &state);
    weft_auto(weft_fabric_free) struct weft_fabric *whole = NULL;
    CHECK_INT(scan(text, strlen(text), &whole), 0);
    size_t read = 0;
    for (unsigned round = 0; whole != NULL && round < 50; round++) {
        weft_auto(weft_fabric_free) struct weft_fabric *same = NULL;
        weft_auto(weft_fabric_free) struct weft_fabric *part = NULL;
        shuffle(r, &state);
        weft_autofree char *shuffled = join(r, 0, &state);
        weft_autofree char *fewer = join(r, 4, &state);
        CHECK_INT(scan(shuffled, strlen(shuffled), &same), 0);
        if (!CHECK_INT(same != NULL && is_same(same, whole), true)) {
            printf("seed %llu round %u\n", (unsigned long long)seed, round);
        }
        if (scan(fewer, strlen(fewer), &part) == 0) {
            read++;
            CHECK(joins_no_strangers(part, whole));
        }
    }
    CHECK(read > 0);
}

static void plans(void)
{
    struct records r = {.head = "graph {\n", .between = "", .tail = "}\n"};
    for (unsigned l = 0; l < LEAVES; l++) {
        for (unsigned n = 0; n < NODES; n++) {
            add(&r, weft_asprintf("leaf%u:swp%u -- h%u:eth0\n", l, n + 1, l * NODES + n));
        }
        add(&r, weft_asprintf("leaf%u:swp51 -- spine:swp%u\n", l, l + 1));
    }
    check_fabric(&r, scan_dot, 4);
    records_done(&r);
}

static void ufm_links(void)
{
    struct records r = {.head = "[", .between = ",\n", .tail = "]"};
    for (unsigned l = 0; l < LEAVES; l++) {
        for (unsigned n = 0; n < NODES; n++) {
            add(&r, weft_asprintf("{\"source_guid\": \"b%02x\", \"source_port\": 1, "
                                  "\"source_port_node_description\": \"h%u mlx5_0\", "
                                  "\"destination_guid\": \"a%x\", \"destination_port\": \"%u\", "
                                  "\"destination_port_node_description\": \"leaf%u:%u\"}",
                                  l * NODES + n, l * NODES + n, l, n + 1, l, n + 1));
        }
    }
    check_fabric(&r, scan_ufm, 5);
    records_done(&r);
}

/* Two rails a host; every leaf of a rail gives each port's own address as its chassis id. */
static void lldp_reports(void)
{
    struct records r = {.head = "", .between = "\n", .tail = ""};
    for (unsigned h = 0; h < LEAVES * NODES; h++) {
        const unsigned leaf = h / NODES;
        const unsigned port = h % NODES + 1;
        add(&r, weft_asprintf(
                    "h%u {\"lldp\": {\"interface\": [{\"eth0\": {\"via\": \"LLDP\", \"chassis\": "
                    "{\"leaf%u\": {\"id\": {\"value\": \"00:00:0%u:00:01:%02x\"}}}, \"port\": "
                    "{\"id\": {\"value\": \"swp%u\"}}}}, {\"eth1\": {\"via\": \"LLDP\", "
                    "\"chassis\": {\"rail%u\": {\"id\": {\"value\": \"00:00:0%u:00:02:00\"}}}, "
                    "\"port\": {\"id\": {\"value\": \"swp%u\"}}}}]}}",
                    h, leaf, leaf, port, port, leaf, leaf, port));
    }
    check_fabric(&r, scan_lldp, 6);
    records_done(&r);
}

WEFT_SUITE(fabric_monotony, {"slurm_trees", slurm_trees}, {"aws_answers", aws_answers},
           {"fabric_files", fabric_files}, {"plans", plans}, {"ufm_links", ufm_links},
           {"lldp_reports", lldp_reports})
