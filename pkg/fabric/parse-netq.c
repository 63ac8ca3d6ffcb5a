/* SPDX-License-Identifier: Apache-2.0 */
/* Reads NetQ's topology graph: a list of graphs, each with nodes nested by tier (a tier below 0 is
 * a host) and links that bundle the cables between two nodes. */
#include <errno.h>
#include <string.h>

#include "pkg/fabric/cabling-internal.h"
#include "pkg/json/json.h"

enum { NESTED_MAX = 8 };

struct reader {
    struct weft_cabling_builder builder;
    struct weft_map *ids; /* node id to device */
};

static bool has_nested(const struct weft_json *node)
{
    return weft_json_count(weft_json_get(node, "compounded_nodes")) > 0;
}

/* A node that holds no others is a device. */
static int add_node(struct reader *r, const struct weft_json *node, struct weft_error *err)
{
    const char *id = NULL;
    const char *name = NULL;
    size_t device = 0;
    int rc = weft_json_get_string(node, "id", &id, err);
    rc = rc < 0 ? rc : weft_json_get_string(node, "name", &name, err);
    if (rc < 0) {
        return rc;
    }
    if (id == NULL || id[0] == '\0') {
        return weft_json_error(node, err, "a node without an id");
    }
    if (weft_map_get(r->ids, id, NULL)) {
        return 0; /* in another element of the list too */
    }
    name = name != NULL && name[0] != '\0' ? name : id;
    const size_t before = r->builder.device_count;
    rc = weft_cabling_device(&r->builder, weft_str(name), weft_json_line(node), &device, err);
    if (rc == 0 && r->builder.device_count == before) {
        weft_warn(&r->builder.warnings, r->builder.source, weft_json_line(node),
                  "a second node is called %.60s; it goes by its id %.60s", name, id);
        rc = weft_cabling_device(&r->builder, weft_str(id), weft_json_line(node), &device, err);
    }
    if (rc < 0) {
        return rc;
    }
    const struct weft_json *tier = weft_json_get(node, "tier");
    if (weft_json_type(tier) == WEFT_JSON_INT) {
        struct weft_cabling_device *d = &r->builder.devices[device];
        d->role_given = true;
        d->role = weft_json_int(tier, 0) < 0 ? WEFT_CABLING_HOST : WEFT_CABLING_SWITCH;
    }
    rc = weft_map_put(r->ids, id, device);
    return rc == -ENOMEM ? weft_err_nomem(err)
                         : (rc < 0 ? weft_json_error(node, err, "too many nodes") : 0);
}

static int add_nodes(struct reader *r, const struct weft_json *list, unsigned depth,
                     struct weft_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < weft_json_count(list); i++) {
        const struct weft_json *node = weft_json_at(list, i);
        if (!has_nested(node)) {
            const bool container = weft_json_get(node, "compounded_nodes") != NULL;
            rc = container ? 0 : add_node(r, node, err);
        } else if (depth == NESTED_MAX) {
            rc = weft_json_error(node, err, "nodes nested more than %d deep", (int)NESTED_MAX);
        } else {
            rc = add_nodes(r, weft_json_get(node, "compounded_nodes"), depth + 1, err);
        }
    }
    return rc;
}

static int find_end(const struct reader *r, const struct weft_json *interface,
                    struct weft_cable_end *ret_end, struct weft_error *err)
{
    const char *node = NULL;
    const char *port = NULL;
    int rc = weft_json_get_string(interface, "node", &node, err);
    rc = rc < 0 ? rc : weft_json_get_string(interface, "interface", &port, err);
    if (rc < 0) {
        return rc;
    }
    if (node == NULL || port == NULL) {
        return weft_json_error(interface, err, "an end of a cable needs node and interface");
    }
    ret_end->port = weft_str(port);
    return weft_map_get(r->ids, node, &ret_end->device)
               ? 0
               : weft_json_error(interface, err, "no node %.60s in the graph", node);
}

static int add_cable(struct reader *r, const struct weft_json *cable, struct weft_error *err)
{
    const struct weft_json *ends = weft_json_get(cable, "interfaces");
    struct weft_cable_end found[2] = {{0}};
    if (weft_json_type(ends) != WEFT_JSON_ARRAY || weft_json_count(ends) != 2) {
        return weft_json_error(cable, err, "a cable needs a list of two interfaces");
    }
    for (size_t e = 0; e < 2; e++) {
        const int rc = find_end(r, weft_json_at(ends, e), &found[e], err);
        if (rc < 0) {
            return rc;
        }
    }
    return weft_cabling_cable(&r->builder, found, weft_json_line(cable), err);
}

static int add_links(struct reader *r, const struct weft_json *links, struct weft_error *err)
{
    for (size_t i = 0; i < weft_json_count(links); i++) {
        const struct weft_json *cables = weft_json_get(weft_json_at(links, i), "compounded_links");
        for (size_t c = 0; c < weft_json_count(cables); c++) {
            const int rc = add_cable(r, weft_json_at(cables, c), err);
            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}

static int read_graphs(struct reader *r, const struct weft_json *root, struct weft_error *err)
{
    if (weft_json_type(root) != WEFT_JSON_ARRAY) {
        return weft_json_error(root, err, "not NetQ's topology graph: a list of {nodes, links}");
    }
    /* ids may be used across the list's elements, so all nodes come first */
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < weft_json_count(root); i++) {
            const struct weft_json *list = NULL;
            int rc = weft_json_get_array(weft_json_at(root, i), pass == 0 ? "nodes" : "links",
                                         &list, err);
            if (rc == 0) {
                return weft_json_error(weft_json_at(root, i), err,
                                       "not NetQ's topology graph: no list %s",
                                       pass == 0 ? "nodes" : "links");
            }
            rc = rc < 0 ? rc : pass == 0 ? add_nodes(r, list, 0, err) : add_links(r, list, err);
            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}

int weft_parse_netq(const char *text, size_t len, const char *source,
                    struct weft_cabling **ret_cabling, struct weft_error *err)
{
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    weft_auto(weft_map_free) struct weft_map *ids = weft_map_new(WEFT_CABLING_DEVICES_MAX);
    struct reader r = {.builder = {.source = source}, .ids = ids};
    if (len > WEFT_CABLING_TEXT_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s: larger than %d MiB", source,
                            (int)(WEFT_CABLING_TEXT_MAX >> 20));
    }
    int rc = ids != NULL ? weft_json_parse(text, len, source, &root, err) : weft_err_nomem(err);
    rc = rc == 0 ? read_graphs(&r, root, err) : rc;
    rc = rc == 0 ? weft_cabling_finish(&r.builder, ret_cabling, err) : rc;
    weft_cabling_builder_done(&r.builder);
    return rc;
}
