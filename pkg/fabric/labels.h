/* SPDX-License-Identifier: Apache-2.0 */
/* Declared groups: what node labels, scheduler files, clouds and plan files say about which nodes
 * are together. A node has at most one value a level; the same value under different parents is not
 * the same group (pkg/tree makes the paths). Pure. */
#ifndef WEFT_FABRIC_LABELS_H
#define WEFT_FABRIC_LABELS_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_node;

enum { WEFT_LEVELS_MAX = 16 };

/* A node that lacks a level's label. */
enum weft_missing {
    WEFT_MISSING_PAD,      /* has no group there and keeps its other levels; padded by the plan */
    WEFT_MISSING_UNPLACED, /* is not known to this source at all */
    WEFT_MISSING_FAIL,     /* makes the whole source an error, as long as it has another level */
    WEFT_MISSING_COUNT
};

/* One level: a label key and the name of its tier. */
struct weft_label_level {
    char *key;
    char *tier; /* lowercase DNS label */
    enum weft_missing missing;
};

/* Levels, closest first. */
struct weft_label_levels {
    struct weft_label_level *items;
    size_t count;
    /* Nodes of networks of different depth have their keys at one end of the list (AWS: a
     * three-layer network has no layer 4): the values of a node move down to the closest levels, in
     * order. */
    bool align;
};

void weft_label_levels_done(struct weft_label_levels *levels);
WEFT_DEFINE_AUTO_VALUE(struct weft_label_levels, weft_label_levels_done)
/* Adds a level farther than those before; missing is PAD. tier NULL: made from the part of the key
 * after the last "/" ("example.com/Rack_Row" gives "rack-row"). Text is copied. 0; -EINVAL for an
 * empty key, a key or tier that is there already, or a tier that is no DNS label; -EFBIG, -ENOMEM.
 */
int weft_label_levels_add(struct weft_label_levels *levels, const char *key, const char *tier,
                          struct weft_error *err) __attribute__((warn_unused_result));
/* The levels of a known platform ("aws", or an alias: "gcp" is "gke", "oke" is "oci"). Errors:
 * -ENOENT with the list of presets, -ENOMEM. */
int weft_label_preset(const char *preset, struct weft_label_levels *ret_levels,
                      struct weft_error *err) __attribute__((warn_unused_result));
/* The presets' names, aliases too: index from 0, NULL at the end. */
const char *weft_label_preset_name(size_t index);

/* Whose names the nodes of a declared set have; what is not a Node's name is mapped before a tree
 * is made. */
enum weft_names_kind {
    WEFT_NAMES_NODES,     /* metadata.name */
    WEFT_NAMES_HOSTS,     /* host names: short or full, upper or lower case */
    WEFT_NAMES_INSTANCES, /* a cloud's instance ids ("i-0123…", an OCID): in spec.providerID */
    WEFT_NAMES_COUNT
};

enum { WEFT_DECLARED_WARNINGS_MAX = 64 };

/* Values by node and level. Owned by itself: no pointer into its inputs. */
struct weft_declared {
    struct weft_label_levels levels;
    enum weft_names_kind names;
    char **nodes; /* sorted (strcmp), unique */
    size_t node_count;
    char **values;   /* [node * levels.count + level]: the value, or NULL if the node lacks it */
    char *source;    /* file name for findings; NULL for labels */
    char **warnings; /* "file:line: …", the first WEFT_DECLARED_WARNINGS_MAX */
    size_t warning_count;
    size_t warning_total;
    bool partial; /* the text is known to lack something: must never shrink what is known */
};

void weft_declared_free(struct weft_declared *declared);
WEFT_DEFINE_AUTO(struct weft_declared, weft_declared_free)

/* Reads the levels' labels off the nodes. A label that is there but empty counts as missing, as
 * does an NVLink clique that is none (all-zero cluster, or the clique 32766 of a GPU without
 * fabric). The caller owns *ret_declared. Errors: -EINVAL for no levels, a node name that is there
 * twice, or a label that is missing under policy FAIL; -ENOMEM. */
int weft_parse_labels(const struct weft_node *nodes, size_t node_count,
                      const struct weft_label_levels *levels, struct weft_declared **ret_declared,
                      struct weft_error *err) __attribute__((warn_unused_result));

/* Joins sets that were read one by one (an answer a host, pages) into one: the levels and kind of
 * names must be the same. A node of several sets keeps one chain (the first in natural order of
 * values), with a warning if they differ. Any partial part makes the result partial. The caller
 * owns *ret_declared. Errors: -EINVAL for different levels or kinds or no part, -EFBIG over
 * WEFT_NODES_MAX nodes, -ENOMEM. */
int weft_declared_join(const struct weft_declared *const *parts, size_t count, const char *source,
                       struct weft_declared **ret_declared, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
