/* SPDX-License-Identifier: Apache-2.0 */
/* Whose HyperNodes are adopted, in which order, and when Volcano's label source counts as on. */
#include "pkg/hypernode/adopt.h"

#include <errno.h>

#include "tests/unit/hypernodes.h"
#include "tests/unit/unit.h"

static void set_owner(struct weft_hypernode *hn, const char *source, const char *managed_by,
                      const char *instance)
{
    CHECK_INT(weft_hypernode_set_text(&hn->source, source), 0);
    CHECK_INT(weft_hypernode_set_text(&hn->managed_by, managed_by), 0);
    CHECK_INT(weft_hypernode_set_text(&hn->instance, instance), 0);
}

static void whose(void)
{
    static const struct {
        const char *source, *managed_by, *instance;
        enum weft_adopt_why why;
    } rows[] = {
        {"", "", "", WEFT_ADOPT_TAKE},
        {"label", "", "", WEFT_ADOPT_TAKE},
        {"", "Helm", "x", WEFT_ADOPT_TAKE},
        {"ufm", "", "", WEFT_ADOPT_OTHER},
        {"weft", "weft-controller", "weft", WEFT_ADOPT_OURS},
        {"weft", "weft-controller", "other", WEFT_ADOPT_WEFT},
        {"weft", "", "", WEFT_ADOPT_WEFT},
    };
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    hypernodes_read(&set, "!a 1 n0\n");
    struct weft_hypernode *hn = &set.items[0];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        set_owner(hn, rows[i].source, rows[i].managed_by, rows[i].instance);
        CHECK_INT(weft_adopt_judge(hn, "weft"), rows[i].why);
    }
    set_owner(hn, "", "", "");
    hn->terminating = true;
    CHECK_INT(weft_adopt_judge(hn, "weft"), WEFT_ADOPT_DYING);
}

/* Children first, others' left out; also where the tree is unsound already, which adopting does not
 * make worse. */
static void order(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    weft_auto(weft_adopt_plan_done) struct weft_adopt_plan plan = {0};
    hypernodes_read(&set, "!z 1 n0\n!b 1 n1\n!a 2 b z\n!c 2 z\no 1 n2\n");
    CHECK_INT(weft_adopt_build(&set, "weft", &plan, NULL), 0);
    static const char *const want[] = {"b", "z", "a", "c"};
    CHECK_INT(plan.count, 4);
    for (size_t i = 0; i < 4 && i < plan.count; i++) {
        CHECK_STR(set.items[plan.items[i]].name, want[i]);
    }
}

static void the_source(void)
{
    static const struct {
        const char *text;
        int on;
    } rows[] = {
        {"", 0},
        {"networkTopologyDiscovery: []\n", 0},
        {"networkTopologyDiscovery:\n- source: label\n  enabled: true\n", 1},
        {"networkTopologyDiscovery:\n- source: label\n  enabled: false\n", 0},
        {"networkTopologyDiscovery:\n- source: ufm\n  enabled: true\n", 0},
        {"networkTopologyDiscovery:\n- source: ufm\n  enabled: true\n"
         "- {source: label, enabled: true, interval: 10m}\n",
         1},
        {"networkTopologyDiscovery: label\n", -EINVAL},
        {"networkTopologyDiscovery:\n- source: label\n  enabled: maybe\n", -EINVAL},
        {"a: [\n", -EINVAL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_INT(weft_adopt_source_is_on(rows[i].text, strlen(rows[i].text), "x.conf", NULL),
                  rows[i].on);
    }
}

static void no_memory(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    weft_auto(weft_adopt_plan_done) struct weft_adopt_plan plan = {0};
    hypernodes_read(&set, "!z 1 n0\n!b 1 n1\n!a 2 b z\n");
    int rc = -ENOMEM;
    uint64_t n = 1;
    for (; rc == -ENOMEM && n < 10000; n++) {
        (void)weft_mem_fail_after(n);
        rc = weft_adopt_build(&set, "weft", &plan, NULL);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || rc == -ENOMEM);
    }
    CHECK_INT(rc, 0);
    CHECK(n > 5);
}

WEFT_SUITE(adopt, {"whose", whose}, {"order", order}, {"the_source", the_source},
           {"no_memory", no_memory})
