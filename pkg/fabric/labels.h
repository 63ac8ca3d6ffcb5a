/* SPDX-License-Identifier: Apache-2.0 */
/* Declared groups: what node labels (later also plan files) say about which nodes are together. A
 * node has at most one value a level; the same value under different parents is not the same group
 * (pkg/tree makes the paths). Pure. */
#ifndef WEFT_FABRIC_LABELS_H
#define WEFT_FABRIC_LABELS_H

#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_node;

enum { WEFT_LEVELS_MAX = 16 };

/* One level: a label key and the name of its tier. */
struct weft_label_level {
    char *key;
    char *tier; /* lowercase DNS label */
};

/* Levels, closest first. */
struct weft_label_levels {
    struct weft_label_level *items;
    size_t count;
};

void weft_label_levels_done(struct weft_label_levels *levels);
WEFT_DEFINE_AUTO_VALUE(struct weft_label_levels, weft_label_levels_done)
/* Adds a level farther than those before. tier NULL: made from the part of the key after the last
 * "/" ("example.com/Rack_Row" gives "rack-row"). Text is copied. 0; -EINVAL for an empty key, a key
 * or tier that is there already, or a tier that is no DNS label; -EFBIG, -ENOMEM. */
int weft_label_levels_add(struct weft_label_levels *levels, const char *key, const char *tier,
                          struct weft_error *err) __attribute__((warn_unused_result));
/* The levels of a known platform ("aws"). Errors: -ENOENT with the list of presets, -ENOMEM. */
int weft_label_preset(const char *preset, struct weft_label_levels *ret_levels,
                      struct weft_error *err) __attribute__((warn_unused_result));
/* The presets' names: index from 0, NULL at the end. */
const char *weft_label_preset_name(size_t index);

/* Values by node and level. Owned by itself: no pointer into its inputs. */
struct weft_declared {
    struct weft_label_levels levels;
    char **nodes; /* sorted (strcmp), unique */
    size_t node_count;
    char **values; /* [node * levels.count + level]: the value, or NULL if the node lacks it */
};

void weft_declared_free(struct weft_declared *declared);
WEFT_DEFINE_AUTO(struct weft_declared, weft_declared_free)

/* Reads the levels' labels off the nodes. A label that is there but empty counts as missing.
 * The caller owns *ret_declared. Errors: -EINVAL for no levels or a node name that is there twice,
 * -ENOMEM. */
int weft_parse_labels(const struct weft_node *nodes, size_t node_count,
                      const struct weft_label_levels *levels, struct weft_declared **ret_declared,
                      struct weft_error *err) __attribute__((warn_unused_result));

#endif
