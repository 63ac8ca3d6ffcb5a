/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, a configuration and the HyperNodes that exist, for the tests of one pass of the
 * controller. Fails the running test where something goes wrong that it should not. */
#ifndef WEFT_TESTS_UNIT_DECIDE_WORLD_H
#define WEFT_TESTS_UNIT_DECIDE_WORLD_H

#include "controller/decide.h"

enum { DECIDE_WORLD_NODES_MAX = 40 };

struct decide_world {
    struct weft_config *config;
    struct weft_nodes nodes;
    struct weft_decide_memory memory[DECIDE_WORLD_NODES_MAX];
    struct weft_hypernode_set live;
    struct weft_keep *keep;
    struct weft_decision decision;
    struct weft_acceptance accepted[WEFT_REFUSALS_MAX];
    size_t accepted_count;
    const enum weft_keep_gang *gangs;
    const struct weft_source_result *result; /* of the first source, if it is a switch graph */
    const struct weft_hypernode_set *places;
    bool lost;
    bool prunes;
    struct weft_error err;
};

/* config: a ControllerConfig. */
void decide_world_init(struct decide_world *w, const char *config);
void decide_world_done(struct decide_world *w);
/* Borrowed until the next Node is added; NULL: not there. */
struct weft_node *decide_world_node(struct decide_world *w, const char *name);
/* Sets a label; a Node that is not there is added. */
void decide_world_label(struct decide_world *w, const char *name, const char *key,
                        const char *value);
/* Takes all labels from a Node. */
void decide_world_unlabel(struct decide_world *w, const char *name);
/* count Nodes n00…, four a rack (label x/rack), two racks a zone (x/zone). */
void decide_world_add_nodes(struct decide_world *w, size_t count);
/* One pass: weft_decide's result, for those who expect it to fail… */
int decide_world_decide(struct decide_world *w);
/* …and for those who do not. */
void decide_world_decided(struct decide_world *w);
/* Somebody accepts all that the last pass refused, and nothing else. */
void decide_world_accept(struct decide_world *w);
/* The writes happen: what is wanted exists now. */
void decide_world_carry_out(struct decide_world *w);

#endif
