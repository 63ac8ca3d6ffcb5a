/* SPDX-License-Identifier: Apache-2.0 */
/* Merging ranked sources: cases worked out by hand, and random ones against the slow oracle. */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/fabric/inventory.h"
#include "pkg/fabric/labels.h"
#include "pkg/fabric/node.h"
#include "pkg/hypernode/layout.h"
#include "pkg/hypernode/model.h"
#include "pkg/hypernode/plan.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"
#include "tests/unit/merge_oracle.h"
#include "tests/unit/unit.h"

static const char *const level_names[] = {"nvlink", "leaf", "spine", "core"};

/* A source that says values[node * levels + level]; NULL: it does not know. */
static struct weft_declared *declare(const char *const *nodes, size_t node_count,
                                     const char *const *tiers, size_t tier_count,
                                     const char *const *values)
{
    struct weft_declared *d = weft_calloc(1, sizeof(*d));
    for (size_t l = 0; l < tier_count; l++) {
        CHECK_INT(weft_label_levels_add(&d->levels, tiers[l], tiers[l], NULL), 0);
    }
    d->nodes = weft_calloc(node_count, sizeof(char *));
    d->values = weft_calloc(node_count * tier_count, sizeof(char *));
    for (size_t n = 0; n < node_count; n++) {
        d->nodes[n] = weft_strdup(nodes[n]);
    }
    d->node_count = node_count;
    for (size_t i = 0; i < node_count * tier_count; i++) {
        d->values[i] = values[i] != NULL ? weft_strdup(values[i]) : NULL;
    }
    return d;
}

static const char *const abcdef[] = {"a", "b", "c", "d", "e", "f"};

/* What one source says of nodes a, b… in one tier each: "x x y -" is four nodes, "-" unknown. */
struct says {
    const char *tiers[3];
    const char *values[3];
};

static struct weft_declared *parse_says(const struct says *says, size_t count)
{
    const char *values[6 * 3] = {NULL};
    char text[6 * 3][8];
    size_t tiers = 0;
    while (tiers < 3 && says->tiers[tiers] != NULL) {
        const char *p = says->values[tiers];
        for (size_t n = 0; n < count; n++) {
            int used = 0;
            CHECK_INT(sscanf(p, " %7s%n", text[n * 3 + tiers], &used), 1);
            p += used;
        }
        tiers++;
    }
    for (size_t n = 0; n < count; n++) {
        for (size_t t = 0; t < tiers; t++) {
            const char *value = text[n * 3 + t];
            values[n * tiers + t] = strcmp(value, "-") == 0 ? NULL : value;
        }
    }
    return declare(abcdef, count, says->tiers, tiers, values);
}

static struct weft_tree *merge_said(const struct says *says, size_t sources, size_t count,
                                    enum weft_tree_cross on_cross)
{
    struct weft_declared *said[4] = {NULL};
    struct weft_tree_source list[4] = {0};
    for (size_t s = 0; s < sources; s++) {
        said[s] = parse_says(&says[s], count);
        list[s].declared = said[s];
    }
    const struct weft_tree_input input = {.sources = list,
                                          .source_count = sources,
                                          .plan = level_names,
                                          .plan_count = 4,
                                          .on_cross = on_cross};
    struct weft_tree *tree = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_tree_build(&input, &tree, &err), 0);
    CHECK_STR(err.message, "");
    CHECK_INT(tree != NULL ? weft_tree_check(tree, &err) : -1, 0);
    CHECK_STR(err.message, "");
    for (size_t s = 0; s < sources; s++) {
        weft_declared_free(said[s]);
    }
    return tree;
}

static size_t tier_named(const struct weft_tree *tree, const char *tier)
{
    size_t t = 0;
    while (t < tree->tier_count && strcmp(tree->tiers[t].name, tier) != 0) {
        t++;
    }
    return t;
}

static bool is_first(const size_t *group, size_t node)
{
    size_t b = 0;
    while (group[b] != group[node]) {
        b++;
    }
    return b == node;
}

/* "abc de -f": the groups' nodes by name of their first; those in none behind "-". */
static void check_groups(const struct weft_tree *tree, const char *tier, const char *expected)
{
    char text[64] = "";
    size_t at = 0;
    const size_t t = tier_named(tree, tier);
    if (t == tree->tier_count) {
        CHECK_STR("no such tier", expected);
        return;
    }
    const size_t *group = tree->tiers[t].node_group;
    for (size_t n = 0; n < tree->node_count; n++) {
        if (!is_first(group, n)) {
            continue;
        }
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", at > 0 ? " " : "",
                               group[n] == WEFT_TREE_NONE ? "-" : "");
        for (size_t b = n; b < tree->node_count; b++) {
            if (group[b] == group[n]) {
                text[at++] = tree->nodes[b][0];
            }
        }
        text[at] = '\0';
    }
    CHECK_STR(text, expected);
}

static const struct weft_finding *find(const struct weft_tree *tree, const char *kind)
{
    for (size_t i = 0; i < tree->finding_count; i++) {
        if (strcmp(tree->findings[i].kind, kind) == 0) {
            return &tree->findings[i];
        }
    }
    return NULL;
}

/* ---- NVLink domains ---- */

/* Domain X = a, b, c with c in another leaf; the fabric is ranked first. */
static const struct says crossing[] = {
    {{"leaf", "spine"}, {"l1 l1 l2 l2 l3 l3", "s1 s1 s1 s1 s2 s2"}}, {{"nvlink"}, {"X X X Y Z Z"}}};

static void a_domain_wins_over_leaves(void)
{
    weft_auto(weft_tree_free) struct weft_tree *tree =
        merge_said(crossing, 2, 6, WEFT_CROSS_DOMAIN_WINS);
    check_groups(tree, "nvlink", "abc d ef");
    check_groups(tree, "leaf", "abc d ef");
    check_groups(tree, "spine", "abcd ef");
    const struct weft_finding *f = find(tree, "crossing");
    CHECK_STR(f != NULL ? f->subject : NULL, "X");
    CHECK_CONTAINS(f != NULL ? f->detail : NULL,
                   "put under l1, where most are (1 moved, such as c");
}

static void a_domain_is_split_by_leaves(void)
{
    weft_auto(weft_tree_free) struct weft_tree *tree = merge_said(crossing, 2, 6, WEFT_CROSS_SPLIT);
    check_groups(tree, "nvlink", "ab c d ef");
    check_groups(tree, "leaf", "ab cd ef");
    check_groups(tree, "spine", "abcd ef");
    const struct weft_finding *f = find(tree, "crossing");
    CHECK_STR(f != NULL ? f->subject : NULL, "X");
    CHECK_CONTAINS(f != NULL ? f->detail : NULL, "cut into 2");
    CHECK_STR(tree->tiers[0].groups[0].identity, "nvlink=X@spine=s1/leaf=l1");
}

static void a_domain_is_lifted_over_leaves(void)
{
    weft_auto(weft_tree_free) struct weft_tree *tree = merge_said(crossing, 2, 6, WEFT_CROSS_LIFT);
    check_groups(tree, "nvlink", "abc d ef");
    check_groups(tree, "leaf", "-abc d ef");
    check_groups(tree, "spine", "abcd ef");
    const struct weft_finding *f = find(tree, "crossing");
    CHECK_STR(f != NULL ? f->subject : NULL, "X");
    CHECK_CONTAINS(f != NULL ? f->detail : NULL, "under their common group of tier spine");
}

/* Over two spines and no core there is no common group: it stands by itself. */
static void a_domain_over_all_hangs_nowhere(void)
{
    static const struct says says[] = {
        {{"leaf", "spine"}, {"l1 l1 l2 l2 l3 l3", "s1 s1 s1 s1 s2 s2"}},
        {{"nvlink"}, {"X Y Y Y X X"}}};
    weft_auto(weft_tree_free) struct weft_tree *tree = merge_said(says, 2, 6, WEFT_CROSS_LIFT);
    check_groups(tree, "nvlink", "aef bcd");
    check_groups(tree, "leaf", "-abcdef");
    check_groups(tree, "spine", "-aef bcd");
    weft_auto(weft_tree_free) struct weft_tree *wins =
        merge_said(says, 2, 6, WEFT_CROSS_DOMAIN_WINS);
    check_groups(wins, "leaf", "aef bcd");
    check_groups(wins, "spine", "aef bcd");
}

/* Only the tier of domains goes by on_cross: others are cut by rank. */
static void other_tiers_go_by_rank(void)
{
    static const struct says says[] = {{{"spine"}, {"s1 s1 s2 s2 - -"}},
                                       {{"leaf"}, {"l1 l1 l1 l2 l2 l3"}}};
    for (int c = 0; c < WEFT_CROSS_COUNT; c++) {
        weft_auto(weft_tree_free) struct weft_tree *tree =
            merge_said(says, 2, 6, (enum weft_tree_cross)c);
        check_groups(tree, "leaf", "ab c de f");
        check_groups(tree, "spine", "ab cde -f"); /* e goes with its leaf */
    }
    const struct says reversed[] = {says[1], says[0]};
    weft_auto(weft_tree_free) struct weft_tree *tree =
        merge_said(reversed, 2, 6, WEFT_CROSS_DOMAIN_WINS);
    check_groups(tree, "leaf", "abc de f");
    check_groups(tree, "spine", "abc de -f");
}

/* A group whose nodes nobody places in the next tier, but two sources in the one after it. */
static void crossings_are_seen_over_a_gap(void)
{
    static const struct says says[] = {{{"leaf"}, {"- - - - m m"}},
                                       {{"spine"}, {"s1 s1 s1 s2 s2 s2"}},
                                       {{"nvlink"}, {"X X X X Y Y"}}};
    weft_auto(weft_tree_free) struct weft_tree *tree = merge_said(says, 3, 6, WEFT_CROSS_SPLIT);
    check_groups(tree, "nvlink", "abc d ef");
    weft_auto(weft_tree_free) struct weft_tree *wins =
        merge_said(says, 3, 6, WEFT_CROSS_DOMAIN_WINS);
    check_groups(wins, "nvlink", "abcd ef");
    check_groups(wins, "spine", "abcd ef");
}

/* ---- what sources say differently ---- */

static void mismatches_are_told(void)
{
    static const struct says says[] = {{{"leaf"}, {"l1 l1 l1 l2 l2 -"}},
                                       {{"leaf"}, {"r1 r1 r1 r1 r2 r2"}},
                                       {{"leaf"}, {"q1 q1 q2 q3 q3 q4"}}};
    weft_auto(weft_tree_free) struct weft_tree *tree = merge_said(says, 3, 6, WEFT_CROSS_SPLIT);
    check_groups(tree, "leaf",
                 "abc de f"); /* f by source 2, that has it with e: e is better known */
    size_t count = 0;
    for (size_t i = 0; i < tree->finding_count; i++) {
        const struct weft_finding *f = &tree->findings[i];
        if (strcmp(f->kind, "mismatch") == 0 && strcmp(f->subject, "r1") == 0) {
            CHECK_STR(
                f->detail,
                "source 2 has these 4 nodes in one leaf group, better sources in 2: 3 of them "
                "in l1 (source 1), others elsewhere, such as d in l2");
            count++;
        } else if (strcmp(f->kind, "mismatch") == 0 && strcmp(f->subject, "l1") == 0) {
            CHECK_STR(f->detail,
                      "source 1 has these 3 nodes in one leaf group, source 3 in 2, such "
                      "as a in q1 and c in q2");
            count++;
        }
    }
    CHECK_INT(count, 2);
}

static void sources_that_agree_are_quiet(void)
{
    static const struct says says[] = {{{"leaf"}, {"l1 l1 l2 l2 - -"}},
                                       {{"leaf", "spine"}, {"x x y y z z", "s s s s s s"}}};
    weft_auto(weft_tree_free) struct weft_tree *tree = merge_said(says, 2, 6, WEFT_CROSS_SPLIT);
    check_groups(tree, "leaf", "ab cd ef");
    check_groups(tree, "spine", "abcdef");
    CHECK(find(tree, "mismatch") == NULL);
    CHECK(find(tree, "crossing") == NULL);
}

/* Both sources have a rack "r". What the second's is called must not hang on whether the first says
 * anything: its HyperNode would be renamed. */
static void equal_values_of_two_sources_keep_their_names(void)
{
    static const struct says both[] = {{{"leaf"}, {"r r - - - -"}}, {{"leaf"}, {"- - r r t t"}}};
    static const struct says one[] = {{{"leaf"}, {"- - - - - -"}}, {{"leaf"}, {"- - r r t t"}}};
    weft_auto(weft_tree_free) struct weft_tree *two = merge_said(both, 2, 6, WEFT_CROSS_SPLIT);
    weft_auto(weft_tree_free) struct weft_tree *alone = merge_said(one, 2, 6, WEFT_CROSS_SPLIT);
    CHECK_INT(two->tiers[0].group_count, 3);
    CHECK_INT(alone->tiers[0].group_count, 2);
    CHECK_STR(two->tiers[0].groups[0].identity, "leaf=r");
    CHECK_STR(two->tiers[0].groups[1].identity, "source-2:leaf=r");
    CHECK_STR(two->tiers[0].groups[2].identity, "source-2:leaf=t");
    CHECK_STR(alone->tiers[0].groups[0].identity, "source-2:leaf=r");
    CHECK_STR(alone->tiers[0].groups[1].identity, "source-2:leaf=t");
}

/* ---- names of a plan ---- */

static void a_plans_names_are_matched_with_nodes(void)
{
    static const char *const said_names[] = {"GPU-1",   "foreign", "gpu-2.example.com",
                                             "gpu-3.a", "gpu-3.b", "gpu-4.x"};
    static const char *const racks[] = {"r1", "r1", "r1", "r2", "r2", "r3"};
    static const char *const leaf[] = {"leaf"};
    static const char *const names[] = {"gpu-2", "gpu-1.cluster.local", "gpu-3", "gpu-4.y",
                                        "gpu-9"};
    weft_auto(weft_declared_free) struct weft_declared *said =
        declare(said_names, 6, leaf, 1, racks);
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    for (size_t n = 0; n < WEFT_ARRAY_LEN(names); n++) {
        struct weft_node *node = NULL;
        CHECK_INT(weft_nodes_add(&nodes, names[n], NULL, &node), 0);
    }
    const struct weft_tree_source source = {.declared = said};
    const struct weft_tree_input input = {
        .sources = &source, .source_count = 1, .nodes = nodes.items, .node_count = nodes.count};
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    CHECK_INT(weft_tree_build(&input, &tree, NULL), 0);
    /* gpu-3 is two names' short form, so it is nobody's; gpu-4.y is gpu-4.x by the short form */
    CHECK_INT(tree->node_count, 3);
    CHECK_STR(tree->nodes[0], "gpu-1.cluster.local");
    CHECK_STR(tree->nodes[1], "gpu-2");
    CHECK_STR(tree->nodes[2], "gpu-4.y");
    CHECK_INT(tree->tiers[0].node_group[0], tree->tiers[0].node_group[1]);
    CHECK(tree->tiers[0].node_group[0] != tree->tiers[0].node_group[2]);
    CHECK_INT(tree->unplaced_count, 2);
    CHECK_STR(tree->unplaced[0], "gpu-3");
    CHECK_STR(tree->unplaced[1], "gpu-9");
}

static void a_clouds_ids_are_mapped(void)
{
    static const char *const said_names[] = {"i-0a", "i-0b", "i-0c"};
    static const char *const values[] = {"r1", "r1", "r2"};
    static const char *const leaf[] = {"leaf"};
    weft_auto(weft_declared_free) struct weft_declared *said =
        declare(said_names, 3, leaf, 1, values);
    weft_auto(weft_nic_inventory_free) struct weft_nic_inventory *ids = weft_nic_inventory_new();
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    struct weft_node *node = NULL;
    said->source = weft_strdup("aws.json");
    said->partial = true;
    CHECK_INT(weft_nic_inventory_add_name(ids, "I-0A", "n1"), 0);
    CHECK_INT(weft_nic_inventory_add_name(ids, "i-0b", "n2"), 0);
    CHECK_INT(weft_nic_inventory_add_name(ids, "i-0c", "gone"), 0);
    CHECK_INT(weft_nodes_add(&nodes, "n2", NULL, &node), 0);
    CHECK_INT(weft_nodes_add(&nodes, "n1", NULL, &node), 0);
    CHECK_INT(weft_nodes_add(&nodes, "n3", NULL, &node), 0);
    const struct weft_tree_source source = {.declared = said, .options = {.inventory = ids}};
    const struct weft_tree_input input = {
        .sources = &source, .source_count = 1, .nodes = nodes.items, .node_count = nodes.count};
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    CHECK_INT(weft_tree_build(&input, &tree, NULL), 0);
    CHECK_INT(tree->node_count, 2);
    CHECK_INT(tree->tiers[0].group_count, 1);
    CHECK_INT(tree->unplaced_count, 1);
    CHECK_STR(tree->unplaced[0], "n3");
    const struct weft_finding *f = find(tree, "partial-dump");
    CHECK_STR(f != NULL ? f->subject : NULL, "aws.json");
    f = find(tree, "unplaced");
    CHECK_STR(f != NULL ? f->detail : NULL, "1 of 3 nodes are not in it: n3");
}

/* ---- random ---- */

/* Truth is a tree of fan-out 2 to 3; each source tells it with faults and gaps. */
static void make_random(struct merge_oracle *o, uint64_t *random)
{
    *o = (struct merge_oracle){.nodes = 4 + (int)weft_random_below(random, 11),
                               .levels = 2 + (int)weft_random_below(random, 3),
                               .sources = 2 + (int)weft_random_below(random, 3)};
    o->domain = (int)weft_random_below(random, (size_t)o->levels + 1) - 1;
    o->on_cross = "wsl"[weft_random_below(random, 3)];
    for (int s = 0; s < o->sources; s++) {
        const size_t faults = weft_random_below(random, 40);
        const size_t gaps = weft_random_below(random, 50);
        for (int l = 0; l < o->levels; l++) {
            const bool silent = weft_random_below(random, 4) == 0;
            for (int n = 0; n < o->nodes; n++) {
                int value = n >> (l + 1);
                value = weft_random_below(random, 100) < faults ? (int)weft_random_below(random, 4)
                                                                : value;
                o->value[s][l][n] = silent || weft_random_below(random, 100) < gaps ? -1 : value;
            }
        }
    }
}

static struct weft_tree *tree_of(const struct merge_oracle *o)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g",
                                        "h", "i", "j", "k", "l", "m", "n"};
    static const char *const numbers[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    static const char *const plan[] = {"t0", "t1", "t2", "t3"};
    struct weft_declared *said[MERGE_ORACLE_SOURCES] = {NULL};
    struct weft_tree_source sources[MERGE_ORACLE_SOURCES] = {0};
    for (int s = 0; s < o->sources; s++) {
        const char *values[MERGE_ORACLE_NODES * MERGE_ORACLE_LEVELS] = {NULL};
        for (int n = 0; n < o->nodes; n++) {
            for (int l = 0; l < o->levels; l++) {
                const int value = o->value[s][l][n];
                values[n * o->levels + l] = value < 0 ? NULL : numbers[value];
            }
        }
        said[s] = declare(names, (size_t)o->nodes, plan, (size_t)o->levels, values);
        sources[s].declared = said[s];
    }
    const struct weft_tree_input input = {.sources = sources,
                                          .source_count = (size_t)o->sources,
                                          .plan = plan,
                                          .plan_count = (size_t)o->levels,
                                          .on_cross = o->on_cross == 'w'   ? WEFT_CROSS_DOMAIN_WINS
                                                      : o->on_cross == 's' ? WEFT_CROSS_SPLIT
                                                                           : WEFT_CROSS_LIFT,
                                          .domain = o->domain >= 0 ? plan[o->domain] : "none"};
    struct weft_tree *tree = NULL;
    CHECK_INT(weft_tree_build(&input, &tree, NULL), 0);
    for (int s = 0; s < o->sources; s++) {
        weft_declared_free(said[s]);
    }
    return tree;
}

/* Nodes that no source knows are not in the tree: oracle's number to the tree's, or -1. */
static int tree_node(const struct weft_tree *tree, int node)
{
    for (size_t n = 0; n < tree->node_count; n++) {
        if (tree->nodes[n][0] == 'a' + node) {
            return (int)n;
        }
    }
    return -1;
}

static bool same_group(const struct weft_tree *tree, int level, int a, int b)
{
    const int x = tree_node(tree, a);
    const int y = tree_node(tree, b);
    const size_t *group = tree->tiers[level].node_group;
    return x >= 0 && y >= 0 && group[x] == group[y] && group[x] != WEFT_TREE_NONE;
}

static bool agrees_in(const struct merge_oracle *o, const struct weft_tree *tree, int level)
{
    const char(*place)[MERGE_ORACLE_TEXT] = o->place[level];
    for (int a = 0; a < o->nodes; a++) {
        for (int b = 0; b <= a; b++) {
            const bool same = place[a][0] != '\0' && strcmp(place[a], place[b]) == 0;
            if (same != same_group(tree, level, a, b)) {
                return false;
            }
        }
    }
    return true;
}

static bool agrees(const struct merge_oracle *o, const struct weft_tree *tree)
{
    bool all = true;
    for (int l = 0; l < o->levels; l++) {
        all = all && agrees_in(o, tree, l);
    }
    return all;
}

/* ---- who may be together ---- */

static int root_of(const int *parent, int a)
{
    while (parent[a] != a) {
        a = parent[a];
    }
    return a;
}

/* Does a source put both into one group of that level? */
static bool said_together(const struct merge_oracle *o, int source, int level, int a, int b)
{
    bool same = o->value[source][level][a] >= 0;
    for (int l = level; l < o->levels; l++) {
        same = same && o->value[source][l][a] == o->value[source][l][b];
    }
    return same;
}

/* Does any source? */
static bool anybody_says(const struct merge_oracle *o, int level, int a, int b)
{
    bool any = false;
    for (int s = 0; s < o->sources; s++) {
        any = any || said_together(o, s, level, a, b);
    }
    return any;
}

/* Joins what is said to be together in that level. */
static void join_said(const struct merge_oracle *o, int level, int *parent)
{
    for (int a = 0; a < o->nodes; a++) {
        for (int b = 0; b < a; b++) {
            if (anybody_says(o, level, a, b)) {
                parent[root_of(parent, a)] = root_of(parent, b);
            }
        }
    }
}

static int count_strangers(const struct merge_oracle *o, const struct weft_tree *tree, int level,
                           const int *parent)
{
    int count = 0;
    for (int a = 0; a < o->nodes; a++) {
        for (int b = 0; b < a; b++) {
            count += same_group(tree, level, a, b) && root_of(parent, a) != root_of(parent, b);
        }
    }
    return count;
}

/* Nodes of one group are linked by groups that sources say, of its level or closer. */
static bool has_no_strangers(const struct merge_oracle *o, const struct weft_tree *tree)
{
    int parent[MERGE_ORACLE_NODES];
    int strangers = 0;
    for (int a = 0; a < o->nodes; a++) {
        parent[a] = a;
    }
    for (int l = 0; l < o->levels; l++) {
        join_said(o, l, parent);
        strangers += count_strangers(o, tree, l, parent);
    }
    return strangers == 0;
}

/* Evidence is taken away value by value, until nothing is left: who is together is linked by what
 * was said at first. */
static void less_evidence_groups_no_strangers(void)
{
    uint64_t random = 11;
    for (int round = 0; round < 150; round++) {
        static struct merge_oracle all;
        static struct merge_oracle less;
        make_random(&all, &random);
        less = all;
        for (int step = 0; step < 12; step++) {
            for (int i = 0; i < all.nodes; i++) {
                less.value[weft_random_below(&random, (size_t)all.sources)][weft_random_below(
                    &random, (size_t)all.levels)][weft_random_below(&random, (size_t)all.nodes)] =
                    -1;
            }
            weft_auto(weft_tree_free) struct weft_tree *tree = tree_of(&less);
            CHECK(has_no_strangers(&less, tree));
        }
    }
}

/* ---- HyperNodes of merged trees ---- */

/* The tree's HyperNodes are to the scheduler's liking, and so is every write on the way from those
 * of the tree before; existing becomes them. */
static bool lays_out(const struct weft_tree *tree, int levels, struct weft_hypernode_set *existing)
{
    static const char *const tiers[] = {"t0", "t1", "t2", "t3"};
    const struct weft_layout_options options = {
        .tiers = tiers, .tier_count = (size_t)levels, .instance = "test", .existing = existing};
    const struct weft_plan_options writes = {.instance = "test", .check = true};
    weft_auto(weft_layout_done) struct weft_layout layout = {0};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    weft_auto(weft_model_free) struct weft_model *model = weft_model_new(false);
    struct weft_error err = {0};
    if (weft_layout_build(tree, &options, &layout, &err) < 0 ||
        weft_model_load(model, &layout.desired) != WEFT_MODEL_OK ||
        weft_plan_build(existing, &layout.desired, &writes, &plan, &err) < 0) {
        (void)fprintf(stderr, "%s%s\n", err.message, weft_model_text(model));
        return false;
    }
    weft_hypernode_set_done(existing);
    *existing = layout.desired;
    layout.desired = (struct weft_hypernode_set){0};
    return layout.node_count == tree->node_count;
}

static void random_merges_make_good_hypernodes(void)
{
    uint64_t random = 13;
    for (int round = 0; round < 100; round++) {
        static struct merge_oracle o;
        weft_auto(weft_hypernode_set_done) struct weft_hypernode_set existing = {0};
        make_random(&o, &random);
        for (int step = 0; step < 6; step++) {
            weft_auto(weft_tree_free) struct weft_tree *tree = tree_of(&o);
            CHECK(lays_out(tree, o.levels, &existing));
            for (int i = 0; i < o.nodes / 2; i++) {
                o.value[weft_random_below(&random, (size_t)o.sources)][weft_random_below(
                    &random, (size_t)o.levels)][weft_random_below(&random, (size_t)o.nodes)] =
                    (int)weft_random_below(&random, 5) - 1;
            }
        }
    }
}

static void random_merges_are_the_oracles(void)
{
    uint64_t random = 7;
    size_t crossings = 0;
    for (int round = 0; round < 4000; round++) {
        static struct merge_oracle o;
        struct weft_error err = {0};
        make_random(&o, &random);
        merge_oracle_run(&o);
        crossings += o.crossings > 0;
        weft_auto(weft_tree_free) struct weft_tree *tree = tree_of(&o);
        if (tree == NULL || weft_tree_check(tree, &err) < 0 || !agrees(&o, tree) ||
            !has_no_strangers(&o, tree)) {
            (void)fprintf(stderr, "round %d: %s\n", round, err.message);
            CHECK(false);
            return;
        }
    }
    CHECK(crossings > 1500); /* else they show nothing */
}

WEFT_SUITE(tree_merge, {"a_domain_wins_over_leaves", a_domain_wins_over_leaves},
           {"a_domain_is_split_by_leaves", a_domain_is_split_by_leaves},
           {"a_domain_is_lifted_over_leaves", a_domain_is_lifted_over_leaves},
           {"a_domain_over_all_hangs_nowhere", a_domain_over_all_hangs_nowhere},
           {"other_tiers_go_by_rank", other_tiers_go_by_rank},
           {"crossings_are_seen_over_a_gap", crossings_are_seen_over_a_gap},
           {"mismatches_are_told", mismatches_are_told},
           {"sources_that_agree_are_quiet", sources_that_agree_are_quiet},
           {"equal_values_of_two_sources_keep_their_names",
            equal_values_of_two_sources_keep_their_names},
           {"a_plans_names_are_matched_with_nodes", a_plans_names_are_matched_with_nodes},
           {"a_clouds_ids_are_mapped", a_clouds_ids_are_mapped},
           {"less_evidence_groups_no_strangers", less_evidence_groups_no_strangers},
           {"random_merges_make_good_hypernodes", random_merges_make_good_hypernodes},
           {"random_merges_are_the_oracles", random_merges_are_the_oracles})
