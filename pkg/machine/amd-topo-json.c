/* SPDX-License-Identifier: Apache-2.0 */
/* `amd-smi topology --json`: a list of GPUs, each with its links to all of them. */
#include <errno.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/json/json.h"
#include "pkg/machine/amd-topo-internal.h"
#include "pkg/machine/host-internal.h"

static int read_bdf(const struct weft_json *object, struct weft_bdf *ret_bdf,
                    struct weft_error *err)
{
    const char *text = NULL;
    const int rc = weft_json_get_string(object, "bdf", &text, err);
    if (rc < 0) {
        return rc;
    }
    if (rc == 0 || weft_bdf_parse(text, ret_bdf) < 0) {
        return weft_json_error(object, err, "bdf '%.40s' is not a PCI address such as 0000:1b:00.0",
                               rc == 0 ? "" : text);
    }
    return 0;
}

static int add_gpus(struct weft_amd_topo *t, const struct weft_json *root, struct weft_error *err)
{
    for (size_t i = 0; i < weft_json_count(root); i++) {
        const struct weft_json *gpu = weft_json_at(root, i);
        struct weft_bdf bdf = {0};
        int64_t index = (int64_t)i;
        if (weft_json_type(gpu) != WEFT_JSON_OBJECT) {
            return weft_json_error(gpu, err, "is not a GPU with bdf and links");
        }
        int rc = weft_json_get_int(gpu, "gpu", 0, 65535, &index, err);
        rc = rc < 0 ? rc : read_bdf(gpu, &bdf, err);
        if (rc < 0) {
            return rc;
        }
        for (size_t j = 0; j < t->count; j++) {
            if (weft_bdf_cmp(&t->gpus[j].bdf, &bdf) == 0 || t->gpus[j].index == (int)index) {
                return weft_json_error(gpu, err, "has the bdf or number of an earlier GPU");
            }
        }
        rc = weft_amd_add_gpu(t, (int)index, &bdf);
        if (rc < 0) {
            return rc == -ENOMEM ? weft_err_nomem(err)
                                 : weft_json_error(gpu, err, "is one GPU too many, %d are handled",
                                                   (int)WEFT_MACHINE_DEVICES_MAX);
        }
    }
    return 0;
}

static size_t find(const struct weft_amd_topo *t, const struct weft_bdf *bdf)
{
    for (size_t i = 0; i < t->count; i++) {
        if (weft_bdf_cmp(&t->gpus[i].bdf, bdf) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}

/* A text cell of a link. */
static int read_text(const struct weft_json *link, const char *key, enum weft_amd_table table,
                     uint64_t *cell, struct weft_error *err)
{
    const char *text = NULL;
    const int rc = weft_json_get_string(link, key, &text, err);
    if (rc == 1 && !weft_amd_read_cell(table, text, strlen(text), cell)) {
        return weft_json_error(link, err, "%s '%.40s' is not known", key, text);
    }
    return rc < 0 ? rc : 0;
}

static int read_link(struct weft_amd_topo *t, size_t row, const struct weft_json *link,
                     struct weft_error *err)
{
    struct weft_bdf bdf = {0};
    if (weft_json_type(link) != WEFT_JSON_OBJECT) {
        return weft_json_error(link, err, "is not a link with a bdf");
    }
    int rc = read_bdf(link, &bdf, err);
    if (rc < 0) {
        return rc;
    }
    const size_t column = find(t, &bdf);
    if (column == SIZE_MAX) {
        return weft_json_error(link, err, "its bdf is of no GPU of the list");
    }
    const size_t at = (row * t->count) + column;
    int64_t hops = 0;
    rc = weft_json_get_int(link, "num_hops", 0, 100000, &hops, err);
    t->cells[WEFT_AMD_HOPS][at] = (uint64_t)hops;
    rc = rc < 0
             ? rc
             : read_text(link, "link_status", WEFT_AMD_ACCESS, &t->cells[WEFT_AMD_ACCESS][at], err);
    rc = rc < 0 ? rc
                : read_text(link, "link_type", WEFT_AMD_TYPE, &t->cells[WEFT_AMD_TYPE][at], err);
    return rc < 0 ? rc
                  : read_text(link, "bandwidth", WEFT_AMD_BANDWIDTH,
                              &t->cells[WEFT_AMD_BANDWIDTH][at], err);
}

static int read_links(struct weft_amd_topo *t, const struct weft_json *root, struct weft_error *err)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct weft_json *links = NULL;
        int rc = weft_json_get_array(weft_json_at(root, i), "links", &links, err);
        if (rc == 0) {
            return weft_json_error(weft_json_at(root, i), err, "has no links");
        }
        for (size_t j = 0; rc >= 0 && j < weft_json_count(links); j++) {
            rc = read_link(t, i, weft_json_at(links, j), err);
        }
        if (rc < 0) {
            return rc;
        }
        t->gpus[i].rows = t->tables;
    }
    return 0;
}

int weft_amd_parse_json(const char *text, size_t len, const char *file,
                        struct weft_amd_topo *ret_topo, struct weft_error *err)
{
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    weft_auto(weft_amd_topo_done) struct weft_amd_topo t = {.file = file};
    int rc = weft_json_parse(text, len, file, &root, err);
    if (rc < 0) {
        return rc;
    }
    if (weft_json_type(root) != WEFT_JSON_ARRAY || weft_json_count(root) == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s: not a recorded machine: not a list of GPUs with bdf and links, as "
                            "amd-smi topology --json prints it",
                            file);
    }
    t.tables = 1U << WEFT_AMD_HOPS | 1U << WEFT_AMD_TYPE | 1U << WEFT_AMD_BANDWIDTH |
               1U << WEFT_AMD_ACCESS;
    rc = add_gpus(&t, root, err);
    if (rc == 0 && weft_amd_make_cells(&t) < 0) {
        rc = weft_err_nomem(err);
    }
    rc = rc < 0 ? rc : read_links(&t, root, err);
    if (rc < 0) {
        return rc;
    }
    *ret_topo = t;
    t = (struct weft_amd_topo){0};
    return 0;
}
