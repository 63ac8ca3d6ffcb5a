/* SPDX-License-Identifier: Apache-2.0 */
/* The ControllerConfig file (weft.dev/v1alpha1): read once into a plain struct that the controller
 * and the command line share. Parsing is pure; weft_config_load reads a file. An unknown field, a
 * value of another type or out of range is an error with file and line. */
#ifndef WEFT_SOURCE_CONFIG_H
#define WEFT_SOURCE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/fabric/labels.h"

struct weft_node_selector;

enum { WEFT_CONFIG_MAX = 1 << 20, WEFT_CONFIG_SOURCES_MAX = 16, WEFT_CONFIG_GLOBS_MAX = 256 };
/* forgetAfter: never */
#define WEFT_CONFIG_NEVER INT64_MAX

enum weft_source_kind { WEFT_SOURCE_LABELS, WEFT_SOURCE_INFINIBAND, WEFT_SOURCE_COUNT };

/* A level that a chain lacks, below or above: a copy of its neighbour level, or a group of its own
 * a node. */
enum weft_pad { WEFT_PAD_INHERIT, WEFT_PAD_SINGLETON, WEFT_PAD_COUNT };
/* A selected node that no source knows. */
enum weft_unplaced { WEFT_UNPLACED_OMIT, WEFT_UNPLACED_SINGLETON, WEFT_UNPLACED_COUNT };

/* A list of strings, owned. */
struct weft_names {
    char **items;
    size_t count;
};

struct weft_config_source {
    enum weft_source_kind kind;
    struct weft_label_levels levels;    /* labels: closest first */
    char *dump;                         /* infiniband: path of the ibnetdiscover output */
    struct weft_names tiers;            /* infiniband: its tiers' names, closest first */
    struct weft_names exclude_hcas;     /* infiniband: globs of HCA names ("mlx5_4") */
    struct weft_names exclude_switches; /* infiniband: globs of switch names or GUIDs */
};

struct weft_config {
    bool paused;
    char *node_selector_text;                 /* as written; "" selects every node */
    struct weft_node_selector *node_selector; /* never NULL */
    struct weft_names tiers;                  /* the tier plan, tier 1 first; never empty */
    struct weft_config_source *sources;       /* best first; never empty */
    size_t source_count;
    enum weft_pad pad;
    enum weft_unplaced unplaced;
    struct {
        int64_t quiet_ns;
        int64_t max_ns;
    } debounce;
    struct {
        unsigned snapshots;
        int64_t period_ns;
        int64_t forget_after_ns; /* or WEFT_CONFIG_NEVER */
    } hold_down;
    struct {
        unsigned lost_percent;
        unsigned moved_percent;
        unsigned min_nodes;
    } brakes;
    struct {
        bool hyper_nodes;
        bool labels;
    } outputs;
};

/* Parses the file's text; name is for errors. An empty text is the default: labels by preset aws.
 * The caller owns *ret_config. Errors: -EINVAL, -ENOMEM. */
int weft_config_parse(const char *text, size_t len, const char *name,
                      struct weft_config **ret_config, struct weft_error *err)
    __attribute__((warn_unused_result));
/* The same from a file of at most WEFT_CONFIG_MAX bytes; also -errno of open and read. */
int weft_config_load(const char *path, struct weft_config **ret_config, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_config_free(struct weft_config *config);
WEFT_DEFINE_AUTO(struct weft_config, weft_config_free)

#endif
