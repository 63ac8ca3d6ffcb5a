/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the JSON of DescribeInstanceTopology (docs.aws.amazon.com, EC2 API reference):
 * NetworkNodes run from the farthest to the closest, three or four of them. */
#include <errno.h>
#include <string.h>

#include "pkg/fabric/cloud.h"
#include "pkg/fabric/declared-internal.h"
#include "pkg/fabric/document-internal.h"
#include "pkg/json/json.h"
#include "pkg/json/split.h"

enum { PAGE_MAX = 16 << 20 };

static const char *const default_tiers[] = {"leaf", "spine", "core", "super-core", NULL};

struct reader {
    struct weft_rows rows;
    const char *source;
    unsigned page;
    size_t levels;
    bool more; /* the last page names a next one */
};

/* Closest first: the last network node is the one the instance is at. */
static int add_chain(struct reader *r, const struct weft_json *nodes, struct weft_row *row,
                     struct weft_error *err)
{
    const size_t count = weft_json_count(nodes);
    if (count > WEFT_LEVELS_MAX) {
        return weft_json_error(nodes, err, "%zu network nodes; at most %d are read", count,
                               (int)WEFT_LEVELS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        const struct weft_json *node = weft_json_at(nodes, count - 1 - i);
        const char *id = weft_json_string(node);
        if (id == NULL || id[0] == '\0') {
            return weft_json_error(node, err, "a network node must be a string");
        }
        if (weft_row_set(row, i, weft_str(id)) < 0) {
            return weft_err_nomem(err);
        }
    }
    r->levels = count > r->levels ? count : r->levels;
    return 0;
}

/* An instance without network nodes (stopped, or of a type without topology) has no place: it may
 * have one again, so it must not count as moved away. */
static int add_instance(struct reader *r, const struct weft_json *instance, struct weft_error *err)
{
    const char *id = NULL;
    const struct weft_json *nodes = NULL;
    struct weft_row *row = NULL;
    int rc = weft_json_get_string(instance, "InstanceId", &id, err);
    rc = rc < 0 ? rc : weft_json_get_array(instance, "NetworkNodes", &nodes, err);
    if (rc < 0) {
        return rc;
    }
    if (id == NULL || id[0] == '\0') {
        return weft_json_error(instance, err, "an instance without InstanceId");
    }
    if (weft_json_count(nodes) == 0) {
        r->rows.partial = true;
        weft_warn(&r->rows.warnings, r->source, weft_json_line(instance),
                  "instance %.40s has no NetworkNodes", id);
        return 0;
    }
    rc = weft_rows_add(&r->rows, weft_str(id), weft_json_line(instance), &row, err);
    return rc < 0 ? rc : add_chain(r, nodes, row, err);
}

static int read_page(void *data, const char *text, size_t len, struct weft_error *err)
{
    struct reader *r = data;
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    const struct weft_json *instances = NULL;
    const char *next = NULL;
    r->page++;
    weft_autofree char *name =
        r->page > 1 ? weft_asprintf("%s page %u", r->source, r->page) : weft_strdup(r->source);
    int rc = name != NULL ? weft_json_parse(text, len, name, &root, err) : weft_err_nomem(err);
    rc = rc < 0 ? rc : weft_json_get_array(root, "Instances", &instances, err);
    if (rc == 0) {
        return weft_json_error(root, err,
                               "no list Instances: not an answer of "
                               "describe-instance-topology");
    }
    rc = rc < 0 ? rc : weft_json_get_string(root, "NextToken", &next, err);
    r->more = rc >= 0 && next != NULL && next[0] != '\0';
    for (size_t i = 0; rc >= 0 && i < weft_json_count(instances); i++) {
        rc = add_instance(r, weft_json_at(instances, i), err);
    }
    return rc < 0 ? rc : 0;
}

static int read_pages(struct reader *r, const char *text, size_t len, struct weft_error *err)
{
    const struct weft_json_split_sink sink = {.on_item = read_page, .data = r};
    weft_auto(weft_json_split_free) struct weft_json_split *split =
        weft_json_split_new(WEFT_JSON_SPLIT_LINES, PAGE_MAX, &sink);
    if (split == NULL) {
        return weft_err_nomem(err);
    }
    int rc = weft_json_split_feed(split, text, len, err);
    rc = rc < 0 ? rc : weft_json_split_end(split, err);
    if (rc == -EBADMSG || rc == -E2BIG) {
        const uint64_t offset = weft_json_split_offset(split);
        unsigned line = 1;
        for (size_t i = 0; i < len && i < offset; i++) {
            line += text[i] == '\n';
        }
        return weft_err_wrap(err, -EINVAL, "%s:%u", r->source, line);
    }
    return rc;
}

static int finish(struct reader *r, const struct weft_cloud_options *options,
                  struct weft_declared **ret_declared, struct weft_error *err)
{
    weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
    if (r->rows.count == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s: no instance with NetworkNodes",
                            r->source);
    }
    if (r->more) {
        r->rows.partial = true;
        weft_warn(&r->rows.warnings, r->source, 0,
                  "the last page has a NextToken: there are more instances than in this file");
    }
    const int rc =
        weft_rows_levels(r->levels, options != NULL ? options->tiers : NULL,
                         options != NULL ? options->tier_count : 0, default_tiers, &levels, err);
    return rc < 0 ? rc
                  : weft_rows_finish(&r->rows, &levels, WEFT_NAMES_INSTANCES, ret_declared, err);
}

int weft_parse_aws_topology(const char *text, size_t len, const char *source,
                            const struct weft_cloud_options *options,
                            struct weft_declared **ret_declared, struct weft_error *err)
{
    struct reader r = {.source = source, .rows = {.source = source}};
    if (len > WEFT_CLOUD_TEXT_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s: larger than %d MiB", source,
                            (int)(WEFT_CLOUD_TEXT_MAX >> 20));
    }
    int rc = read_pages(&r, text, len, err);
    rc = rc < 0 ? rc : finish(&r, options, ret_declared, err);
    weft_rows_done(&r.rows);
    return rc;
}
