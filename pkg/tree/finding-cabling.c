/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about cables that are not as a plan says (PTM's topology.dot, UFM's network design
 * table). A plan moves nobody: it says what should be, the observed fabric what is. */
#include <errno.h>
#include <string.h>

#include "pkg/fabric/cabling.h"
#include "pkg/fabric/fabric.h"
#include "pkg/tree/build.h"
#include "pkg/tree/merge.h"
#include "pkg/tree/tree-internal.h"
#include "pkg/tree/tree.h"

/* of each kind so many are told one by one, then how many more there are */
enum { REPORTS_MAX = 200 };

static const char *const kinds[WEFT_CABLE_STATE_COUNT] = {
    [WEFT_CABLE_MISSING] = "missing-cable",
    [WEFT_CABLE_MISWIRED] = "wrong-cable",
    [WEFT_CABLE_EXTRA] = "extra-cable",
    [WEFT_CABLE_UNSEEN] = "unseen-device",
};

/* What the finding is about: the device in front of the first end's port. */
static char *device_of(const char *end)
{
    const char *colon = strrchr(end, ':');
    return weft_strndup(end, colon != NULL ? (size_t)(colon - end) : strlen(end));
}

static int report(const struct weft_cabling *plan, const struct weft_cable_finding *cable,
                  struct weft_findings *findings)
{
    weft_autofree char *subject = device_of(cable->a);
    const char *kind = kinds[cable->state];
    if (subject == NULL) {
        return -ENOMEM;
    }
    switch (cable->state) {
    case WEFT_CABLE_MISSING:
        return weft_findings_add(findings, kind, subject,
                                 "no cable from %s to %s, which %s:%u expects", cable->a, cable->b,
                                 plan->source, cable->line);
    case WEFT_CABLE_MISWIRED:
        return weft_findings_add(findings, kind, subject, "%s:%u expects %s - %s, there is %s",
                                 plan->source, cable->line, cable->a, cable->b, cable->actual);
    case WEFT_CABLE_EXTRA:
        return weft_findings_add(findings, kind, subject, "%s - %s is not in %s", cable->a,
                                 cable->b, plan->source);
    case WEFT_CABLE_UNSEEN:
        return weft_findings_add(findings, kind, subject,
                                 "one end of %s - %s, which %s:%u expects, is on a device that was "
                                 "not seen at all",
                                 cable->a, cable->b, plan->source, cable->line);
    case WEFT_CABLE_STATE_COUNT:
        break;
    }
    return 0;
}

static int compare_one(const struct weft_cabling *plan, const struct weft_fabric *fabric,
                       bool with_unseen, struct weft_findings *findings, struct weft_error *err)
{
    weft_auto(weft_cable_findings_done) struct weft_cable_findings cables = {0};
    size_t told[WEFT_CABLE_STATE_COUNT] = {0};
    int rc = weft_cabling_compare(plan, fabric, &cables, err);
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; rc == 0 && i < cables.count; i++) {
        const enum weft_cable_state state = cables.items[i].state;
        if ((state != WEFT_CABLE_UNSEEN || with_unseen) && told[state]++ < REPORTS_MAX) {
            rc = report(plan, &cables.items[i], findings);
        }
    }
    for (size_t s = 0; rc == 0 && s < WEFT_CABLE_STATE_COUNT; s++) {
        if (told[s] > REPORTS_MAX) {
            rc = weft_findings_add(findings, kinds[s], plan->source,
                                   "and %zu more; %zu of %zu cables are as expected",
                                   told[s] - REPORTS_MAX, cables.right, plan->cable_count);
        }
    }
    return rc < 0 ? weft_err_nomem(err) : 0;
}

/* A fabric that was observed, and not made from a plan. */
static const struct weft_fabric *observed(const struct weft_tree_source *source)
{
    return source->expected == NULL ? source->fabric : NULL;
}

int weft_tree_find_cabling(const struct weft_tree_input *input, struct weft_tree *tree,
                           struct weft_error *err)
{
    size_t fabrics = 0;
    for (size_t s = 0; s < input->source_count; s++) {
        fabrics += observed(&input->sources[s]) != NULL;
    }
    weft_auto(weft_findings_done) struct weft_findings findings = {
        .items = tree->findings, .count = tree->finding_count, .cap = tree->finding_count};
    tree->findings = NULL;
    tree->finding_count = 0;
    int rc = 0;
    for (size_t p = 0; p < input->source_count; p++) {
        const struct weft_cabling *plan = input->sources[p].expected;
        for (size_t s = 0; plan != NULL && rc == 0 && s < input->source_count; s++) {
            const struct weft_fabric *fabric = observed(&input->sources[s]);
            /* with several fabrics a device that is not in one may be in another */
            rc = fabric != NULL ? compare_one(plan, fabric, fabrics == 1, &findings, err) : 0;
        }
    }
    weft_findings_give(&findings, tree);
    return rc;
}
