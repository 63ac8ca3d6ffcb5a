/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up fabrics whose right tree is known: hosts, switches and cables, with faults, as a fabric
 * value or as ibnetdiscover's text. */
#ifndef WEFT_TESTS_BENCH_FABRIC_GEN_H
#define WEFT_TESTS_BENCH_FABRIC_GEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/mem.h"
#include "pkg/fabric/node.h"

struct weft_buf;
struct weft_fabric;
struct weft_tree;
struct weft_tree_options;

enum { GEN_TIERS = 3 };

struct gen_host {
    char name[32];
    bool foreign;            /* not a cluster node */
    size_t truth[GEN_TIERS]; /* its group in each true tier */
};

struct gen_cable {
    size_t a; /* host (with rail) or switch */
    size_t b; /* switch */
    unsigned rail;
    bool host;
    bool gone;
};

struct gen {
    uint64_t random; /* state */
    uint64_t salt;   /* GUIDs are scrambled with it */
    struct gen_host *hosts;
    size_t host_count;
    size_t host_cap;
    char (*switches)[32]; /* names */
    size_t switch_count;
    size_t switch_cap;
    struct gen_cable *cables;
    size_t cable_count;
    size_t cable_cap;
};

void gen_init(struct gen *g, uint64_t seed);
void gen_done(struct gen *g);
WEFT_DEFINE_AUTO_VALUE(struct gen, gen_done)

/* All that follow abort the program without memory, and where weft fails: a wrong tree is the
 * caller's to find, no tree at all is not. */
size_t gen_switch(struct gen *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
size_t gen_host(struct gen *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
void gen_plug(struct gen *g, size_t host, unsigned rail, size_t leaf);
void gen_link(struct gen *g, size_t a, size_t b);
/* A random number under limit. */
size_t gen_below(struct gen *g, size_t limit);
uint64_t gen_switch_guid(const struct gen *g, size_t s);
uint64_t gen_ca_guid(const struct gen *g, size_t host, unsigned rail);
/* Where each end of each cable is plugged in: [cable * 2] at a, [cable * 2 + 1] at b. Owned. */
uint16_t *gen_ports(const struct gen *g);

/* Rail fat-tree: per pod and unit one leaf a rail; each leaf to all spines of its pod; spine j to
 * cores j*(cores/spines)... Switches: leaves first, then spines, then cores. Truth: unit, pod, all.
 */
struct gen_rft {
    size_t pods, units, nodes, rails, spines, cores;
    /* where its switches begin */
    size_t first_leaf, first_spine, first_core;
};
void gen_rail_fat_tree(struct gen *g, struct gen_rft *shape);
size_t gen_leaf(const struct gen_rft *shape, size_t pod, size_t unit, size_t rail);
size_t gen_spine(const struct gen_rft *shape, size_t pod, size_t spine);

/* Per cent of host cables that are gone, else plugged into a random leaf; of switch cables gone. */
struct gen_faults {
    double host_lost, host_moved, switch_lost, spine_moved;
};
void gen_break(struct gen *g, const struct gen_rft *shape, const struct gen_faults *faults);

/* The cluster's nodes: hosts that are not foreign and have a cable. */
void gen_nodes(const struct gen *g, struct weft_nodes *ret_nodes);
/* The fabric, without the way over text. */
struct weft_fabric *gen_fabric(const struct gen *g);
/* ibnetdiscover's text. Records in the order of the struct or (shuffle) at random. */
struct gen_text {
    bool shuffle;
    bool crlf;
    bool no_last_blank;
};
void gen_write(struct gen *g, const struct gen_text *how, struct weft_buf *buf);
/* `ibnetdiscover -p` and `iblinkinfo` (few thousand ends at most: a LID has 16 bits). */
void gen_write_ports(const struct gen *g, struct weft_buf *buf);
void gen_write_linkinfo(const struct gen *g, struct weft_buf *buf);

/* The tree of the generated fabric for its cluster nodes, its laws checked. */
struct weft_tree *gen_tree(const struct gen *g, const struct weft_tree_options *options);

/* Is the partition of the nodes by truth tier t one of the tree's tiers? */
bool gen_has_truth(const struct gen *g, const struct weft_tree *tree, size_t t);
/* "2,4,4 8,2 10": the group sizes of each tier, ascending within it, runs as "16x4". */
void gen_sizes(const struct weft_tree *tree, struct weft_buf *buf);

#endif
