/* SPDX-License-Identifier: Apache-2.0 */
/* HyperNode manifests of any origin: what is read must survive being written and read again, lint
 * and the model must take it, and a plan from it must pass its own check. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "pkg/base/buf.h"
#include "pkg/base/str.h"
#include "pkg/hypernode/lint.h"
#include "pkg/hypernode/manifest.h"
#include "pkg/hypernode/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_set(const char *text, size_t len, struct weft_hypernode_set *set)
{
    const struct weft_manifest_text source = {
        .text = text, .len = len, .name = "fuzz", .prefix = "weft.dev/"};
    return weft_hypernodes_read(&source, set, NULL, NULL);
}

static void check_round_trip(const struct weft_hypernode_set *set)
{
    weft_auto(weft_buf_done) struct weft_buf yaml = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set again = {0};
    weft_buf_init(&yaml, 64U << 20);
    if (weft_hypernodes_write_yaml(set, "weft.dev/", &yaml) < 0 ||
        read_set(weft_buf_text(&yaml), yaml.len, &again) < 0 || again.count != set->count) {
        abort();
    }
    for (size_t i = 0; i < set->count; i++) {
        if (!weft_hypernode_same(&set->items[i], &again.items[i])) {
            abort();
        }
    }
}

/* Could an API server hold these? A file can say more than it would take. */
static bool is_possible(const struct weft_hypernode_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        bool good = weft_dns_subdomain_valid(set->items[i].name);
        for (size_t k = 0; k < set->items[i].member_count; k++) {
            const struct weft_member *m = &set->items[i].members[k];
            good = good && (m->selector == WEFT_SELECTOR_EXACT   ? weft_dns_subdomain_valid(m->name)
                            : m->selector == WEFT_SELECTOR_REGEX ? m->name[0] != '\0'
                                                                 : true);
        }
        if (!good) {
            return false;
        }
    }
    return true;
}

/* To nothing, whoever of them are ours: no step may be one that must not be taken. */
static void check_plan(const struct weft_hypernode_set *set)
{
    const struct weft_hypernode_set none = {0};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    const struct weft_plan_options options = {.instance = "weft", .check = true};
    if (weft_plan_build(set, &none, &options, &plan, NULL) == -EPROTO) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    if (read_set((const char *)data, size, &set) < 0) {
        return 0;
    }
    check_round_trip(&set);
    weft_auto(weft_lint_done) struct weft_lint lint = {0};
    if (weft_lint_run(&set, &lint, NULL) < 0) {
        abort();
    }
    if (is_possible(&set)) {
        check_plan(&set);
    }
    return 0;
}
