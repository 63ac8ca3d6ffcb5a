/* SPDX-License-Identifier: Apache-2.0 */
/* Every public file of the fabric folders against a table of what it is
 * (tests/fixtures/expect/fabrics.tsv): read with these values, or refused for this reason. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "pkg/base/map.h"
#include "pkg/base/str.h"
#include "pkg/fabric/cabling.h"
#include "pkg/fabric/cloud.h"
#include "pkg/fabric/fabric-file.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/labels.h"
#include "pkg/fabric/lldp.h"
#include "pkg/fabric/node.h"
#include "pkg/fabric/slurm.h"
#include "pkg/fabric/ufm.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"
#include "tests/unit/unit.h"

/* One file to read and where its values go. */
struct job {
    const char *text;
    size_t len;
    const char *file;
    const char *argument; /* after ":" of the reader, or NULL */
    struct weft_buf *out;
    struct weft_error err;
};

static int put_declared(struct job *j, struct weft_declared *declared)
{
    weft_auto(weft_declared_free) struct weft_declared *owned = declared;
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    const int rc = weft_tree_from_declared(owned, &tree, &j->err);
    if (rc < 0) {
        return rc;
    }
    CHECK_INT(weft_tree_check(tree, NULL), 0);
    (void)weft_buf_printf(j->out, "nodes=%zu groups=", owned->node_count);
    for (size_t t = 0; t < tree->tier_count; t++) {
        (void)weft_buf_printf(j->out, "%s%zu", t > 0 ? "/" : "", tree->tiers[t].group_count);
    }
    (void)weft_buf_printf(j->out, " warnings=%zu partial=%d", owned->warning_total, owned->partial);
    return 0;
}

static void put_fabric(struct job *j, struct weft_fabric *fabric)
{
    weft_auto(weft_fabric_free) struct weft_fabric *owned = fabric;
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    (void)weft_buf_printf(j->out, "switches=%zu hosts=%zu links=%zu warnings=%zu partial=%d",
                          owned->switch_count, owned->host_count, owned->link_count,
                          owned->warning_total, owned->partial);
    CHECK_INT(weft_tree_from_fabric(owned, NULL, 0, NULL, &tree, NULL), 0);
    CHECK_INT(tree != NULL ? weft_tree_check(tree, NULL) : -1, 0);
}

static int put_cabling(struct job *j, struct weft_cabling *cabling)
{
    weft_auto(weft_cabling_free) struct weft_cabling *owned = cabling;
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = NULL;
    size_t switches = 0;
    for (size_t i = 0; i < owned->device_count; i++) {
        switches += owned->devices[i].role == WEFT_CABLING_SWITCH;
    }
    (void)weft_buf_printf(j->out, "devices=%zu switches=%zu cables=%zu warnings=%zu",
                          owned->device_count, switches, owned->cable_count, owned->warning_total);
    /* as a fabric it is what it expects */
    weft_auto(weft_cable_findings_done) struct weft_cable_findings findings = {0};
    int rc = weft_cabling_fabric(owned, &fabric, &j->err);
    rc = rc < 0 ? rc : weft_cabling_compare(owned, fabric, &findings, &j->err);
    if (rc == 0) {
        CHECK_INT(findings.count, 0);
        CHECK_INT(findings.right, owned->cable_count);
    }
    return rc;
}

/* ---- readers ---- */

static int read_slurm(struct job *j)
{
    const struct weft_slurm_options options = {.topology = j->argument};
    struct weft_declared *declared = NULL;
    const int rc = weft_parse_slurm(j->text, j->len, j->file, &options, &declared, &j->err);
    return rc < 0 ? rc : put_declared(j, declared);
}

static int read_model(struct job *j)
{
    struct weft_declared *declared = NULL;
    const int rc = weft_parse_slurm(j->text, j->len, j->file, NULL, &declared, &j->err);
    return rc < 0 ? rc : put_declared(j, declared);
}

static int read_aws(struct job *j)
{
    struct weft_declared *declared = NULL;
    const int rc = weft_parse_aws_topology(j->text, j->len, j->file, NULL, &declared, &j->err);
    return rc < 0 ? rc : put_declared(j, declared);
}

static int read_guids(struct job *j)
{
    weft_auto(weft_fabric_file_free) struct weft_fabric_file *file = NULL;
    weft_auto(weft_map_free) struct weft_map *nodes = weft_map_new(1000);
    const int rc = weft_parse_guid_map(j->text, j->len, j->file, &file, &j->err);
    for (size_t i = 0; rc == 0 && i < file->guid_count; i++) {
        CHECK(weft_map_put(nodes, file->guids[i].node, i) >= 0);
    }
    if (rc == 0) {
        (void)weft_buf_printf(j->out, "guids=%zu nodes=%zu", file->guid_count,
                              weft_map_count(nodes));
    }
    return rc;
}

static int read_nodes(struct job *j)
{
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    const int rc = weft_nodes_parse(j->text, j->len, j->file, &nodes, &j->err);
    if (rc == 0) {
        (void)weft_buf_printf(j->out, "nodes=%zu", nodes.count);
    }
    return rc;
}

static int read_lldp(struct job *j)
{
    weft_auto(weft_lldp_free) struct weft_lldp *lldp = weft_lldp_new(j->file);
    struct weft_fabric *fabric = NULL;
    int rc = weft_lldp_add(lldp, j->text, j->len, j->file, j->argument, &j->err);
    rc = rc < 0 ? rc : weft_lldp_finish(lldp, &fabric, &j->err);
    if (rc == 0) {
        put_fabric(j, fabric);
    }
    return rc;
}

static int read_ufm(struct job *j)
{
    weft_auto(weft_ufm_free) struct weft_ufm *ufm = weft_ufm_new(j->file);
    enum weft_ufm_resource resource = WEFT_UFM_LINKS;
    struct weft_fabric *fabric = NULL;
    int rc = weft_ufm_guess(j->text, j->len, j->file, &resource, &j->err);
    rc = rc < 0 ? rc : weft_ufm_add(ufm, resource, j->text, j->len, j->file, NULL, &j->err);
    rc = rc < 0 ? rc : weft_ufm_finish(ufm, &fabric, &j->err);
    if (rc == 0) {
        put_fabric(j, fabric);
    }
    return rc;
}

static int read_cabling(struct job *j)
{
    struct weft_cabling *cabling = NULL;
    const int rc = weft_parse_cabling(j->text, j->len, j->file, &cabling, &j->err);
    return rc < 0 ? rc : put_cabling(j, cabling);
}

static const struct {
    const char *name;
    int (*read)(struct job *j);
} readers[] = {{"slurm", read_slurm}, {"model", read_model},    {"aws", read_aws},
               {"guids", read_guids}, {"nodes", read_nodes},    {"lldp", read_lldp},
               {"ufm", read_ufm},     {"cabling", read_cabling}};

/* ---- the table ---- */

static void check_row(const char *file, char *reader, const char *expected)
{
    weft_auto(weft_buf_done) struct weft_buf out;
    weft_buf_init(&out, 4096);
    const char *path = weft_shared(file);
    weft_autofree char *text = NULL;
    const char *base = strrchr(file, '/') + 1;
    struct job job = {.file = base, .out = &out};
    if (path == NULL || weft_file_read(path, 16 << 20, &text, &job.len, &job.err) < 0) {
        CU_FAIL(file);
        return;
    }
    job.text = text;
    char *colon = strchr(reader, ':');
    if (colon != NULL) {
        *colon = '\0';
        job.argument = colon + 1;
    }
    int rc = -ENOENT;
    for (size_t i = 0; i < WEFT_ARRAY_LEN(readers); i++) {
        rc = strcmp(readers[i].name, reader) == 0 ? readers[i].read(&job) : rc;
    }
    const bool refused = strncmp(expected, "refused: ", 9) == 0;
    const bool held =
        refused ? rc == -EINVAL && CHECK_CONTAINS(job.err.message, expected + 9) != 0
                : CHECK_STR(rc == 0 ? weft_buf_text(&out) : job.err.message, expected) != 0;
    if (!held) {
        CU_FAIL(file);
        printf("%s (%s): %s%s\n", file, reader, weft_buf_text(&out), job.err.message);
    }
}

static size_t walk(struct weft_map *seen)
{
    weft_autofree char *table = weft_fixture_text("expect/fabrics.tsv", NULL);
    char *rest = table;
    size_t rows = 0;
    for (char *line = NULL; (line = strsep(&rest, "\n")) != NULL;) {
        if (line[0] == '#' || line[0] == '\0') {
            continue;
        }
        const char *file = strsep(&line, "\t");
        char *reader = strsep(&line, "\t");
        const char *expected = strsep(&line, "\t");
        if (expected == NULL || line == NULL || line[0] == '\0') {
            CU_FAIL("a row without its four columns");
            continue;
        }
        rows++;
        CHECK(weft_map_put(seen, file, rows) >= 0);
        if (weft_shared("slurm-topology") != NULL) {
            check_row(file, reader, expected);
        }
    }
    return rows;
}

static void every_file_is_as_the_table_says(void)
{
    weft_auto(weft_map_free) struct weft_map *seen = weft_map_new(1000);
    CHECK(walk(seen) > 60);
    /* and no file is left out */
    static const char *const folders[] = {"slurm-topology", "lldp", "cloud-topology", "k8s-nodes",
                                          "ufm"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(folders); i++) {
        const char *path = weft_shared(folders[i]);
        DIR *dir = path != NULL ? opendir(path) : NULL;
        const struct dirent *entry = NULL;
        while (dir != NULL && (entry = readdir(dir)) != NULL) {
            char name[512];
            (void)snprintf(name, sizeof(name), "%s/%s", folders[i], entry->d_name);
            if (entry->d_name[0] != '.' && !weft_map_get(seen, name, NULL)) {
                CU_FAIL("a file that the table does not have");
                printf("%s\n", name);
            }
        }
        if (dir != NULL) {
            (void)closedir(dir);
        }
    }
}

WEFT_SUITE(fabric_corpus, {"every_file_is_as_the_table_says", every_file_is_as_the_table_says})
