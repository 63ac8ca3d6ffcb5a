/* SPDX-License-Identifier: Apache-2.0 */
/* --pods: which running gangs a change touches, printed after the plan. The pods come from a file,
 * so that the controller needs no right to read them. */
#include "controller/affected.h"

#include <inttypes.h>
#include <stdio.h>

#include "controller/controller-internal.h"
#include "controller/options.h"
#include "pkg/base/file.h"
#include "pkg/hypernode/affected.h"

int weft_controller_read_pods(const struct weft_options *options, struct weft_pods *ret_pods,
                              struct weft_error *err)
{
    if (options->pods == NULL) {
        return 0;
    }
    weft_autofree char *text = NULL;
    size_t len = 0;
    int rc = weft_file_read(options->pods, WEFT_PODS_TEXT_MAX, &text, &len, err);
    rc = rc < 0 ? rc : weft_pods_parse(text, len, options->pods, ret_pods, err);
    return rc < 0 ? weft_err_wrap(err, rc, "--pods") : 0;
}

static void print_gang(const struct weft_affected_gang *g)
{
    (void)printf("affected: %s (tier %" PRId64 "): gang %s: %zu of its %zu pod%s there, on %zu of "
                 "%zu node%s, will be elsewhere: %s%s\n",
                 g->hypernode, g->tier, g->gang, g->leaving_pods, g->pods,
                 weft_controller_s(g->pods), g->leaving_nodes, g->nodes,
                 weft_controller_s(g->nodes), g->moves,
                 g->torn ? "; no HyperNode of this tier will hold the whole gang" : "");
}

int weft_controller_print_affected(const struct weft_options *options, const struct weft_pods *pods,
                                   const struct weft_hypernode_set *before,
                                   const struct weft_plan *plan, struct weft_error *err)
{
    if (options->pods == NULL) {
        return 0;
    }
    weft_auto(weft_affected_done) struct weft_affected affected = {0};
    const struct weft_affected_input input = {
        .before = before,
        .after = &plan->target,
        .instance = options->instance,
        .placements = pods->items,
        .count = pods->count,
    };
    const int rc = weft_hypernode_affected(&input, &affected, err);
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < affected.count; i++) {
        print_gang(&affected.items[i]);
    }
    if (affected.count == 0) {
        (void)printf(
            "affected: none; no HyperNode loses a node with one of the %zu pod%s of gangs in %s\n",
            pods->count, weft_controller_s(pods->count), options->pods);
    }
    return 0;
}
