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

enum {
    WEFT_CONFIG_MAX = 1 << 20,
    WEFT_CONFIG_SOURCES_MAX = 16,
    WEFT_CONFIG_GLOBS_MAX = 256,
    WEFT_CONFIG_FILES_MAX = 1024,
    WEFT_CONFIG_COMMANDS_MAX = 16,
    WEFT_CONFIG_ARGS_MAX = 64
};
/* forgetAfter: never */
#define WEFT_CONFIG_NEVER INT64_MAX

enum weft_source_kind {
    WEFT_SOURCE_LABELS,     /* labels of the cluster's Nodes */
    WEFT_SOURCE_INFINIBAND, /* ibnetdiscover's or iblinkinfo's output: files or commands */
    WEFT_SOURCE_UFM,        /* a UFM server's REST interface */
    WEFT_SOURCE_LLDP,       /* lldpcli's JSON and switches' exports: files */
    WEFT_SOURCE_SLURM,      /* topology.conf or topology.yaml */
    WEFT_SOURCE_PTM,        /* topology.dot: the links that should be */
    WEFT_SOURCE_AWS_API,    /* saved answers of DescribeInstanceTopology */
    WEFT_SOURCE_OCI_IMDS,   /* saved answers of the instance metadata service */
    WEFT_SOURCE_FILE,       /* weft's own plan file */
    WEFT_SOURCE_COUNT
};
/* Its name in the configuration, as "infiniband"; static. */
const char *weft_source_kind_name(enum weft_source_kind kind);

/* A level that a chain lacks, below or above: a copy of its neighbour level, or a group of its own
 * a node. */
enum weft_pad { WEFT_PAD_INHERIT, WEFT_PAD_SINGLETON, WEFT_PAD_COUNT };
/* A selected node that no source knows. */
enum weft_unplaced { WEFT_UNPLACED_OMIT, WEFT_UNPLACED_SINGLETON, WEFT_UNPLACED_COUNT };
/* A better source's group (an NVLink domain) that lies across groups of a tier above: all of it
 * goes where most of it is, it is cut, or it hangs under what holds all of it (discovery.md 4.7).
 */
enum weft_on_cross {
    WEFT_ON_CROSS_DOMAIN_WINS,
    WEFT_ON_CROSS_SPLIT,
    WEFT_ON_CROSS_LIFT,
    WEFT_ON_CROSS_COUNT
};

/* A list of strings, owned. */
struct weft_names {
    char **items;
    size_t count;
};

/* How a UFM server knows us. */
enum weft_ufm_auth { WEFT_UFM_BASIC, WEFT_UFM_TOKEN, WEFT_UFM_SESSION, WEFT_UFM_AUTH_COUNT };

struct weft_config_ufm {
    char *url; /* "https://host[:port]" without a path; NULL: the source is none */
    enum weft_ufm_auth auth;
    char *credentials; /* folder with the files username and password, or token */
    char *ca_file;     /* NULL: the system's authorities */
    char *pin;         /* "sha256//<base64 of the public key's hash>", or NULL */
    unsigned page_rows;
};

/* Which fields a source has is decided by its kind; the others stay empty. */
struct weft_config_source {
    enum weft_source_kind kind;
    char *name;                      /* for people: "ufm", "ufm-2" for the second of its kind */
    char *text;                      /* its settings as one line: equal text, equal source */
    struct weft_label_levels levels; /* labels: closest first */
    struct weft_names files;         /* what is read, in this order */
    char *folder;                    /* lldp: all *.json of it */
    struct weft_names *commands;     /* infiniband: argument vectors, run one after the other */
    size_t command_count;
    struct weft_config_ufm ufm;
    char *topology; /* slurm: which of a topology.yaml; NULL: its cluster_default */

    struct weft_names tiers;            /* its tiers' names, closest first; empty: the kind's own */
    struct weft_names exclude_hcas;     /* globs of HCA names ("mlx5_4") */
    struct weft_names exclude_switches; /* globs of switch names or GUIDs */
    bool keep_slow_hcas;                /* they are for compute too */
    char *node_map;                     /* file: what the source calls a node; NULL: none */
    char *inventory;                    /* file: GUIDs by node; NULL: none */
    char *partitions;                   /* file: OpenSM's partitions.conf; NULL: none */
    struct weft_names compute;          /* of it: the partitions of compute adapters */

    int64_t interval_ns;     /* from the end of a look to the next; 0 for labels */
    unsigned jitter_percent; /* of the interval, added at random */
    int64_t timeout_ns;      /* of a look: commands and UFM */
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
    enum weft_on_cross on_cross;
    struct {
        unsigned
            snapshots;    /* equal results in a row before a re-cabled fabric counts; 1: at once */
        char *epoch_file; /* its content changes when the cabling was changed on purpose; or NULL */
    } settle;
    struct {
        int64_t quiet_ns;
        int64_t max_ns;
    } debounce;
    struct {
        unsigned snapshots;
        int64_t period_ns;
        int64_t forget_after_ns; /* or WEFT_CONFIG_NEVER */
    } hold_down;
    int64_t move_delay_ns; /* how long a Node with a running gang waits before it moves; 0: not */
    struct {
        unsigned lost_percent;
        unsigned moved_percent;
        unsigned min_nodes;
    } brakes;
    struct {
        bool hyper_nodes;
        bool labels;
        /* with --output only, as files beside the HyperNodes (pkg/hypernode/output.h) */
        bool slurm;
        bool kueue;
        bool kai;
        bool dot;
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
