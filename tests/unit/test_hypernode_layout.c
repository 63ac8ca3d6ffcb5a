/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts worked out by hand. The eight digits at a name's end were computed apart from this code
 * (FNV-1a of the identity, murmur3's final mix, the low 32 bits). */
#include "pkg/hypernode/layout.h"

#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/hypernode/plan.h"
#include "tests/unit/hypernode_util.h"
#include "tests/unit/unit.h"

enum { PLAN_TIERS = 3 };

static const char *const leaf_spine[] = {"leaf", "spine"};
static const char *const nvlink_leaf[] = {"nvlink", "leaf"};

static struct weft_layout_options plan_of(const char *const *tiers, size_t count)
{
    return (struct weft_layout_options){.tiers = tiers, .tier_count = count, .instance = "test"};
}

/* "kind subject\n" a finding. */
static char *dump_findings(const struct weft_layout *layout)
{
    weft_auto(weft_buf_done) struct weft_buf buf = {0};
    weft_buf_init(&buf, 1U << 20);
    (void)weft_buf_puts(&buf, "");
    for (size_t i = 0; i < layout->finding_count; i++) {
        (void)weft_buf_printf(&buf, "%s %s\n", layout->findings[i].kind,
                              layout->findings[i].subject);
    }
    return weft_buf_steal(&buf);
}

/* Every placed node in one HyperNode of each tier, every HyperNode but the top ones in one of the
 * next, labels and members agreeing. */
static void check_laws(const struct weft_layout *l)
{
    for (size_t i = 0; i < l->node_count; i++) {
        const char *below = l->nodes[i];
        for (size_t t = 1; t <= l->tier_count; t++) {
            const enum weft_member_type type = t == 1 ? WEFT_MEMBER_NODE : WEFT_MEMBER_HYPERNODE;
            size_t listed = 0;
            for (size_t k = 0; k < l->desired.count; k++) {
                listed += weft_hypernode_lists(&l->desired.items[k], type, below);
            }
            const struct weft_hypernode *hn =
                weft_hypernode_set_get(&l->desired, weft_layout_label(l, i, t));
            CHECK_INT(listed, 1);
            CHECK(hn != NULL && hn->tier == (int64_t)t && weft_hypernode_lists(hn, type, below));
            CHECK(hn != NULL && strcmp(hn->tier_name, l->tier_names[t - 1]) == 0);
            CHECK(strlen(weft_layout_label(l, i, t)) <= 63);
            below = weft_layout_label(l, i, t);
        }
    }
}

static void expect(const struct weft_tree *tree, const struct weft_layout_options *options,
                   const char *objects, const char *findings)
{
    weft_auto(weft_layout_done) struct weft_layout layout = {0};
    struct weft_error err = {0};
    if (!CHECK_INT(weft_layout_build(tree, options, &layout, &err), 0)) {
        (void)fprintf(stderr, "%s\n", err.message);
        return;
    }
    weft_autofree char *got = hn_dump(&layout.desired);
    weft_autofree char *said = dump_findings(&layout);
    CHECK_STR(got, objects);
    CHECK_STR(said, findings);
    check_laws(&layout);
}

static void two_tiers(void)
{
    weft_auto(hn_tree_free) struct weft_tree *tree =
        hn_tree("leaf spine", "g1 l1 s1\ng2 l1 s1\ng3 l2 s1\n");
    const struct weft_layout_options o = plan_of(leaf_spine, 2);
    expect(tree, &o,
           "weft-leaf-l1-e9d3d26f 1 n:g1 n:g2\n"
           "weft-leaf-l2-6ad4f7a1 1 n:g3\n"
           "weft-spine-s1-9ad2e9fc 2 h:weft-leaf-l1-e9d3d26f h:weft-leaf-l2-6ad4f7a1\n",
           "");
    weft_auto(weft_layout_done) struct weft_layout l = {0};
    CHECK_INT(weft_layout_build(tree, &o, &l, NULL), 0);
    CHECK_INT(l.node_count, 3);
    CHECK_STR(l.nodes[2], "g3");
    CHECK_STR(weft_layout_label(&l, 2, 1), "weft-leaf-l2-6ad4f7a1");
    CHECK_STR(weft_layout_label(&l, 2, 2), "weft-spine-s1-9ad2e9fc");
    size_t at = 0;
    CHECK(weft_layout_find(&l, "g2", &at) && at == 1);
    CHECK(!weft_layout_find(&l, "g9", NULL));
    const struct weft_hypernode *leaf = &l.desired.items[0];
    CHECK_STR(leaf->tier_name, "leaf");
    CHECK_STR(leaf->identity, "leaf=l1");
    CHECK(weft_hypernode_is_ours(leaf, "test"));
}

static void empty_tree(void)
{
    weft_auto(hn_tree_free) struct weft_tree *tree = hn_tree("leaf spine", "");
    const struct weft_layout_options o = plan_of(leaf_spine, 2);
    expect(tree, &o, "", "");
}

/* g3 has no NVLink domain, l2 none at all: their leaves are copied down. d9 knows no leaf: it is
 * copied up. */
static void padded_both_ways(void)
{
    weft_auto(hn_tree_free) struct weft_tree *tree =
        hn_tree("nvlink leaf", "g1 d1 l1\ng2 d1 l1\ng3 - l1\ng4 - l2\ng5 - l2\ng6 d9 -\n");
    const struct weft_layout_options o = plan_of(nvlink_leaf, 2);
    expect(tree, &o,
           "weft-leaf-d9-47568e50 2 h:weft-nvlink-d9-00ca3cee\n"
           "weft-leaf-l1-e9d3d26f 2 h:weft-nvlink-d1-9564157f h:weft-nvlink-l1-c6e4650a\n"
           "weft-leaf-l2-6ad4f7a1 2 h:weft-nvlink-l2-6c4f7e61\n"
           "weft-nvlink-d1-9564157f 1 n:g1 n:g2\n"
           "weft-nvlink-d9-00ca3cee 1 n:g6\n"
           "weft-nvlink-l1-c6e4650a 1 n:g3\n"
           "weft-nvlink-l2-6c4f7e61 1 n:g4 n:g5\n",
           "");
    weft_auto(weft_layout_done) struct weft_layout l = {0};
    CHECK_INT(weft_layout_build(tree, &o, &l, NULL), 0);
    const struct weft_hypernode *copy =
        weft_hypernode_set_get(&l.desired, "weft-nvlink-l1-c6e4650a");
    CHECK_STR(copy->identity, "copy-of-leaf:leaf=l1");
    CHECK_STR(copy->tier_name, "nvlink");
}

/* A level of the plan that the tree does not have shows the one below: that claims nothing that
 * nobody knows. */
static void gap_in_the_middle(void)
{
    static const char *const tiers[] = {"a", "b", "c"};
    weft_auto(hn_tree_free) struct weft_tree *tree = hn_tree("a c", "g1 a1 c1\ng2 a1 c1\n");
    const struct weft_layout_options o = plan_of(tiers, 3);
    expect(tree, &o,
           "weft-a-a1-42fad001 1 n:g1 n:g2\n"
           "weft-b-a1-d8e94084 2 h:weft-a-a1-42fad001\n"
           "weft-c-c1-1c2297d4 3 h:weft-b-a1-d8e94084\n",
           "");
}

static void singleton_padding(void)
{
    weft_auto(hn_tree_free) struct weft_tree *tree =
        hn_tree("nvlink leaf", "g1 d1 l1\ng3 - l1\ng4 - l1\ng6 d9 -\n");
    struct weft_layout_options o = plan_of(nvlink_leaf, 2);
    o.pad = WEFT_LAYOUT_PAD_SINGLETON;
    expect(tree, &o,
           "weft-leaf-d9-47568e50 2 h:weft-nvlink-d9-00ca3cee\n"
           "weft-leaf-l1-e9d3d26f 2 h:weft-nvlink-d1-9564157f h:weft-nvlink-g3-b60a1040 "
           "h:weft-nvlink-g4-89ce2c8e\n"
           "weft-nvlink-d1-9564157f 1 n:g1\n"
           "weft-nvlink-d9-00ca3cee 1 n:g6\n"
           "weft-nvlink-g3-b60a1040 1 n:g3\n"
           "weft-nvlink-g4-89ce2c8e 1 n:g4\n",
           "");
}

/* A table of count lines "gNN <rest>". */
static char *many(int count, const char *rest)
{
    weft_auto(weft_buf_done) struct weft_buf buf = {0};
    weft_buf_init(&buf, 1U << 24);
    for (int i = 0; i < count; i++) {
        (void)weft_buf_printf(&buf, "g%02d %s\n", i, rest);
    }
    return weft_buf_steal(&buf);
}

/* Sixteen get a HyperNode each, seventeen do not. */
static void singleton_limits(void)
{
    struct weft_layout_options o = plan_of(nvlink_leaf, 2);
    o.pad = WEFT_LAYOUT_PAD_SINGLETON;
    o.unplaced = WEFT_LAYOUT_UNPLACED_SINGLETON;
    static const struct {
        int count;
        const char *rest;
        size_t objects;
        size_t nodes;
        size_t findings;
    } cases[] = {{16, "- l1", 17, 16, 0},
                 {17, "- l1", 2, 17, 1},
                 {16, "?", 32, 16, 16},
                 {17, "?", 0, 0, 18}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
        weft_autofree char *table = many(cases[i].count, cases[i].rest);
        weft_auto(hn_tree_free) struct weft_tree *tree = hn_tree("nvlink leaf", table);
        weft_auto(weft_layout_done) struct weft_layout l = {0};
        CHECK_INT(weft_layout_build(tree, &o, &l, NULL), 0);
        CHECK_INT(l.desired.count, cases[i].objects);
        CHECK_INT(l.node_count, cases[i].nodes);
        CHECK_INT(l.finding_count, cases[i].findings);
        check_laws(&l);
    }
}

static void unplaced_nodes(void)
{
    weft_auto(hn_tree_free) struct weft_tree *tree = hn_tree("leaf", "g1 l1\ng9 ?\ng7 -\n");
    static const char *const leaf[] = {"leaf"};
    struct weft_layout_options o = plan_of(leaf, 1);
    expect(tree, &o, "weft-leaf-l1-e9d3d26f 1 n:g1\n", "unplaced g7\nunplaced g9\n");
    o.unplaced = WEFT_LAYOUT_UNPLACED_SINGLETON;
    expect(tree, &o,
           "weft-leaf-g7-b5b5a085 1 n:g7\nweft-leaf-g9-045de3c0 1 n:g9\n"
           "weft-leaf-l1-e9d3d26f 1 n:g1\n",
           "unplaced g7\nunplaced g9\n");
}

/* A name that no member may have is left out and reported; its group goes on without it. */
static void names_of_nodes(void)
{
    weft_auto(hn_tree_free) struct weft_tree *tree = hn_tree(
        "leaf",
        "g1 l1\nBad_Name l1\n"
        "a-node-with-a-name-of-exactly-sixty-three-characters-0123456789 l1\n"
        "a-node-with-a-name-of-exactly-sixty-four-characters-0123456789ab l1\n"
        "another.node.with.dots.whose.name.is.of.far.more.than.sixty.three.characters l2\n");
    static const char *const leaf[] = {"leaf"};
    const struct weft_layout_options o = plan_of(leaf, 1);
    expect(tree, &o,
           "weft-leaf-l1-e9d3d26f 1 "
           "n:a-node-with-a-name-of-exactly-sixty-three-characters-0123456789 n:g1\n",
           "bad-node-name Bad_Name\n"
           "long-node-name a-node-with-a-name-of-exactly-sixty-four-characters-0123456789ab\n"
           "long-node-name "
           "another.node.with.dots.whose.name.is.of.far.more.than.sixty.three.characters\n");
}

/* ---- refusals ---- */

static void expect_refused(const struct weft_tree *tree, const struct weft_layout_options *o,
                           int code, const char *text)
{
    weft_auto(weft_layout_done) struct weft_layout l = {0};
    struct weft_error err = {0};
    CHECK_INT(weft_layout_build(tree, o, &l, &err), code);
    CHECK_CONTAINS(err.message, text);
    CHECK(l.desired.items == NULL);
}

static void bad_plans(void)
{
    weft_auto(hn_tree_free) struct weft_tree *tree = hn_tree("leaf spine", "g1 l1 s1\n");
    static const char *const unknown[] = {"leaf", "core"};
    static const char *const turned[] = {"spine", "leaf"};
    static const char *const twice[] = {"leaf", "leaf"};
    static const char *const upper[] = {"Leaf"};
    static const char *const long_name[] = {"a-tier-name-of-thirty-three-chars"};
    struct weft_layout_options o = plan_of(unknown, 2);
    expect_refused(tree, &o, -EINVAL, "tier spine of the tree is not in the plan");
    o = plan_of(turned, 2);
    expect_refused(tree, &o, -EINVAL, "tier spine stands higher in the tree than in the plan");
    o = plan_of(twice, 2);
    expect_refused(tree, &o, -EINVAL, "tier leaf is there twice");
    o = plan_of(upper, 1);
    expect_refused(tree, &o, -EINVAL, "tier name \"Leaf\"");
    o = plan_of(long_name, 1);
    expect_refused(tree, &o, -EINVAL, "at most 32 characters");
    o = plan_of(unknown, 0);
    expect_refused(tree, &o, -EINVAL, "0 tiers: a plan has 1 to 16");
    o = plan_of(unknown, 17);
    expect_refused(tree, &o, -EINVAL, "17 tiers");
}

/* Two nodes of one leaf under two spines. */
static void no_tree(void)
{
    weft_auto(hn_tree_free) struct weft_tree *tree = hn_tree("leaf spine", "g1 l1 s1\ng2 l1 s2\n");
    const struct weft_layout_options o = plan_of(leaf_spine, 2);
    expect_refused(tree, &o, -EINVAL,
                   "group l1 of tier leaf is under s1 and, by node g2, under s2");
    weft_auto(hn_tree_free) struct weft_tree *half = hn_tree("leaf spine", "g1 l1 s1\ng2 l1 -\n");
    expect_refused(half, &o, -EINVAL, "not a tree");
    weft_auto(hn_tree_free) struct weft_tree *twice = hn_tree("leaf", "g1 l1\ng1 l2\n");
    expect_refused(twice, &o, -EINVAL, "node g1 is in the tree twice");
}

static void too_large(void)
{
    weft_autofree char *table = many(20001, "l1");
    weft_auto(hn_tree_free) struct weft_tree *tree = hn_tree("leaf", table);
    const struct weft_layout_options o = plan_of(leaf_spine, 2);
    expect_refused(tree, &o, -EFBIG, "group l1 of tier leaf has 20001 members");
}

/* ---- names ---- */

static void slugs(void)
{
    static const struct {
        const char *text;
        size_t max;
        const char *slug;
    } cases[] = {
        {"rack-7", 20, "rack-7"},
        {"Rack 7", 20, "rack-7"},
        {"MF0;sw01:MQM9700/U1", 40, "mf0-sw01-mqm9700-u1"},
        {"--a__b--", 20, "a-b"},
        {"", 20, ""},
        {"\xe6\xa9\x9f", 20, ""},
        {"\xe6\xa9\x9f 9", 20, "9"},
        {"abcdef", 3, "abc"},
        {"ab-cd", 3, "ab"},
        {"ab-cd", 4, "ab-c"},
        {"ab------cd", 4, "ab-c"},
        {"nvl_72.A", 20, "nvl-72-a"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
        weft_autofree char *slug = weft_layout_slug(cases[i].text, cases[i].max);
        CHECK_STR(slug, cases[i].slug);
    }
}

static void long_names(void)
{
    static const char *const tiers[] = {"a-tier-name-of-thirty-two-charac"};
    weft_auto(hn_tree_free) struct weft_tree *tree =
        hn_tree(tiers[0], "g1 a-group-whose-name-is-much-longer-than-there-is-room-for\n");
    const struct weft_layout_options o = plan_of(tiers, 1);
    weft_auto(weft_layout_done) struct weft_layout l = {0};
    CHECK_INT(weft_layout_build(tree, &o, &l, NULL), 0);
    CHECK_INT(strlen(l.desired.items[0].name), 63);
    CHECK_CONTAINS(l.desired.items[0].name,
                   "weft-a-tier-name-of-thirty-two-charac-a-group-whose-na-");
}

/* Two identities with the same eight digits, and the same slug: the first in order of identity has
 * the plain name. */
static void hash_collision(void)
{
    static const char *const leaf[] = {"leaf"};
    weft_auto(hn_tree_free) struct weft_tree *tree =
        hn_tree("leaf", "g1 AbcDeFgHijkLmnopqrst\ng2 ABCDeFgHiJKlmnopQrst\n");
    const struct weft_layout_options o = plan_of(leaf, 1);
    expect(tree, &o,
           "weft-leaf-abcdefghijklmnopqrst-59bc7b57 1 n:g2\n"
           "weft-leaf-abcdefghijklmnopqrst-e0fc130f 1 n:g1\n",
           "");
}

/* ---- identity ---- */

/* Puts an object of ours with an identity into the set. */
static void put_known(struct weft_hypernode_set *set, const char *name, int64_t tier,
                      const char *tier_name, const char *identity)
{
    hn_put(set, name, tier, "n:gone");
    const struct weft_hypernode *hn = weft_hypernode_set_get(set, name);
    struct weft_hypernode *mine = &set->items[hn - set->items];
    CHECK_INT(weft_hypernode_set_text(&mine->identity, identity), 0);
    CHECK_INT(weft_hypernode_set_text(&mine->tier_name, tier_name), 0);
}

/* A label path keeps its object's name, whatever its nodes do; another path never takes it, even
 * with all of the nodes. */
static void known_by_label(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set now = {0};
    put_known(&now, "old-name", 1, "leaf", "leaf=l1");
    put_known(&now, "other", 1, "leaf", "leaf=l0");
    const struct weft_hypernode *other = weft_hypernode_set_get(&now, "other");
    weft_hypernode_done(&now.items[other - now.items]);
    now.items[other - now.items] = hn_make("other", 1, "n:g3");
    CHECK_INT(weft_hypernode_set_text(&now.items[other - now.items].identity, "leaf=l0"), 0);
    CHECK_INT(weft_hypernode_set_text(&now.items[other - now.items].tier_name, "leaf"), 0);
    weft_auto(hn_tree_free) struct weft_tree *tree = hn_tree("leaf spine", "g1 l1 s1\ng3 l2 s1\n");
    struct weft_layout_options o = plan_of(leaf_spine, 2);
    o.existing = &now;
    expect(tree, &o,
           "old-name 1 n:g1\n"
           "weft-leaf-l2-6ad4f7a1 1 n:g3\n"
           "weft-spine-s1-9ad2e9fc 2 h:old-name h:weft-leaf-l2-6ad4f7a1\n",
           "");
    /* another instance's object, or another tier's, lends no name */
    o.instance = "other";
    expect(tree, &o,
           "weft-leaf-l1-e9d3d26f 1 n:g1\n"
           "weft-leaf-l2-6ad4f7a1 1 n:g3\n"
           "weft-spine-s1-9ad2e9fc 2 h:weft-leaf-l1-e9d3d26f h:weft-leaf-l2-6ad4f7a1\n",
           "");
}

/* What the group "l1" with these switches is called where "old" has those. */
static char *name_with(const char *known, const char *guids)
{
    static const char *const leaf[] = {"leaf"};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set now = {0};
    put_known(&now, "old", 1, "leaf", known);
    weft_auto(hn_tree_free) struct weft_tree *tree = hn_tree("leaf", "g1 l1\n");
    hn_tree_guids(tree, "leaf", "l1", guids);
    struct weft_layout_options o = plan_of(leaf, 1);
    o.existing = &now;
    weft_auto(weft_layout_done) struct weft_layout l = {0};
    CHECK_INT(weft_layout_build(tree, &o, &l, NULL), 0);
    return weft_strdup(l.desired.items[0].name);
}

static void known_by_switches(void)
{
    static const struct {
        const char *known;
        const char *guids;
        const char *name;
    } cases[] = {
        {"switch:0000000000000001,0000000000000002,0000000000000003", "1 2 3", "old"},
        /* one of three replaced, one added: more than half is the same */
        {"switch:0000000000000001,0000000000000002,0000000000000003", "1 2 9", "old"},
        {"switch:0000000000000001,0000000000000002,0000000000000003", "2 3 4 5 6", "old"},
        /* half is not more than half */
        {"switch:0000000000000001,0000000000000002", "1 9", "weft-leaf-l1-c80e18b8"},
        {"switch:0000000000000001,0000000000000002,0000000000000003", "1 8 9",
         "weft-leaf-l1-c80e18b8"},
        {"switch:0000000000000007", "1", "weft-leaf-l1-c80e18b8"},
        /* a copy of the spine is no leaf, though it has the same switches */
        {"copy-of-spine:switch:0000000000000001", "1", "weft-leaf-l1-c80e18b8"},
        {"leaf=l1", "1", "weft-leaf-l1-c80e18b8"},
        {"switch:rubbish,,zz", "1", "weft-leaf-l1-c80e18b8"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
        weft_autofree char *name = name_with(cases[i].known, cases[i].guids);
        CHECK_STR(name, cases[i].name);
    }
}

/* A split: the larger part keeps the name. The smaller has the smallest GUID, so that its plain
 * name is the one the larger part keeps: it gets another. */
static void split_keeps_the_larger(void)
{
    static const char *const leaf[] = {"leaf"};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set now = {0};
    put_known(&now, "weft-leaf-l1-c80e18b8", 1, "leaf",
              "switch:0000000000000001,0000000000000004,0000000000000005");
    weft_auto(hn_tree_free) struct weft_tree *tree = hn_tree("leaf", "g1 l1\ng2 l2\n");
    hn_tree_guids(tree, "leaf", "l1", "1");
    hn_tree_guids(tree, "leaf", "l2", "4 5");
    struct weft_layout_options o = plan_of(leaf, 1);
    o.existing = &now;
    expect(tree, &o, "weft-leaf-l1-2ceab383 1 n:g1\nweft-leaf-l1-c80e18b8 1 n:g2\n", "");
    weft_auto(weft_layout_done) struct weft_layout l = {0};
    CHECK_INT(weft_layout_build(tree, &o, &l, NULL), 0);
    CHECK_STR(l.desired.items[1].identity, "switch:0000000000000004,0000000000000005");
}

static void merge_keeps_the_larger(void)
{
    static const char *const leaf[] = {"leaf"};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set now = {0};
    put_known(&now, "small", 1, "leaf", "switch:0000000000000001");
    put_known(&now, "tall", 1, "leaf", "switch:0000000000000004,0000000000000005");
    weft_auto(hn_tree_free) struct weft_tree *tree = hn_tree("leaf", "g1 l1\n");
    hn_tree_guids(tree, "leaf", "l1", "1 4 5");
    struct weft_layout_options o = plan_of(leaf, 1);
    o.existing = &now;
    expect(tree, &o, "tall 1 n:g1\n", "");
}

/* Objects whose annotation is gone are known by their nodes, on every tier; more than half of the
 * smaller side. */
static void known_by_members(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set now = {0};
    hn_put(&now, "one", 1, "n:g1 n:g2 n:gone");
    hn_put(&now, "two", 1, "n:g3 n:g9");
    hn_put(&now, "pod", 2, "h:one h:two");
    for (size_t i = 0; i < now.count; i++) { /* a CRD before v1.14 drops the names of tiers */
        CHECK_INT(weft_hypernode_set_text(&now.items[i].tier_name, ""), 0);
    }
    weft_auto(hn_tree_free) struct weft_tree *tree =
        hn_tree("leaf spine", "g1 l1 s1\ng2 l1 s1\ng3 l2 s1\ng4 l2 s1\n");
    struct weft_layout_options o = plan_of(leaf_spine, 2);
    o.existing = &now;
    /* l2 shares g3 of two with "two": half, so it is not the same */
    expect(tree, &o,
           "one 1 n:g1 n:g2\n"
           "pod 2 h:one h:weft-leaf-l2-6ad4f7a1\n"
           "weft-leaf-l2-6ad4f7a1 1 n:g3 n:g4\n",
           "");
}

/* A tier that got another number is still that tier. */
static void renumbered_tier(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set now = {0};
    put_known(&now, "kept", 1, "leaf", "leaf=l1");
    weft_auto(hn_tree_free) struct weft_tree *tree = hn_tree("nvlink leaf", "g1 d1 l1\n");
    struct weft_layout_options o = plan_of(nvlink_leaf, 2);
    o.existing = &now;
    expect(tree, &o, "kept 2 h:weft-nvlink-d1-9564157f\nweft-nvlink-d1-9564157f 1 n:g1\n", "");
}

/* A huge group's identity is cut to its smallest switches, and is still known by them. */
static void many_switches(void)
{
    static const char *const leaf[] = {"leaf"};
    weft_auto(weft_buf_done) struct weft_buf guids = {0};
    weft_buf_init(&guids, 1U << 20);
    for (int i = 0; i < 2000; i++) {
        (void)weft_buf_printf(&guids, "%x ", (unsigned)i + 10);
    }
    weft_auto(hn_tree_free) struct weft_tree *tree = hn_tree("leaf", "g1 l1\n");
    hn_tree_guids(tree, "leaf", "l1", weft_buf_text(&guids));
    struct weft_layout_options o = plan_of(leaf, 1);
    weft_auto(weft_layout_done) struct weft_layout l = {0};
    CHECK_INT(weft_layout_build(tree, &o, &l, NULL), 0);
    CHECK_INT(strlen(l.desired.items[0].identity), strlen("switch:") + 512 * 17 - 1);
    weft_autofree char *name = weft_strdup(l.desired.items[0].name);
    /* its 100 smallest switches go */
    tree->tiers[0].groups[0].switch_guid_count = 1900;
    memmove(tree->tiers[0].groups[0].switch_guids, tree->tiers[0].groups[0].switch_guids + 100,
            1900 * sizeof(uint64_t));
    o.existing = &l.desired;
    weft_auto(weft_layout_done) struct weft_layout again = {0};
    CHECK_INT(weft_layout_build(tree, &o, &again, NULL), 0);
    CHECK_STR(again.desired.items[0].name, name);
}

/* ---- all together ---- */

/* Random trees with holes: the laws hold, nothing depends on chance, the plan takes it, and with
 * the objects there nothing changes. */
static void random_trees(void)
{
    static const char *const tiers[PLAN_TIERS] = {"a", "b", "c"};
    uint64_t rng = 11;
    for (int run = 0; run < 300; run++) {
        weft_auto(weft_buf_done) struct weft_buf table = {0};
        weft_buf_init(&table, 1U << 20);
        for (int i = 0; i < 40; i++) {
            const int a = (int)weft_random_below(&rng, 12);
            const int b = a / 3;
            const int c = b / 2;
            /* levels go missing by group, from either end */
            const bool no_b = b == 1 && run % 3 == 0;
            const bool no_c = c == 1 && run % 2 == 0;
            (void)weft_buf_printf(&table, "n%02d ", i);
            (void)weft_buf_printf(&table, weft_random_below(&rng, 4) == 0 ? "- " : "a%d ", a);
            (void)weft_buf_printf(&table, no_b ? "- " : "b%d ", b);
            (void)weft_buf_printf(&table, no_c ? "-\n" : "c%d\n", c);
        }
        weft_auto(hn_tree_free) struct weft_tree *tree = hn_tree("a b c", weft_buf_text(&table));
        struct weft_layout_options o = plan_of(tiers, PLAN_TIERS);
        o.pad = (enum weft_layout_pad)(run % WEFT_LAYOUT_PAD_COUNT);
        weft_auto(weft_layout_done) struct weft_layout first = {0};
        weft_auto(weft_layout_done) struct weft_layout again = {0};
        CHECK_INT(weft_layout_build(tree, &o, &first, NULL), 0);
        check_laws(&first);
        o.existing = &first.desired;
        CHECK_INT(weft_layout_build(tree, &o, &again, NULL), 0);
        const struct weft_plan_options p = {.instance = "test", .check = true};
        weft_auto(weft_plan_done) struct weft_plan none = {0};
        weft_auto(weft_plan_done) struct weft_plan all = {0};
        weft_auto(weft_hypernode_set_done) struct weft_hypernode_set nothing = {0};
        CHECK_INT(weft_plan_build(&first.desired, &again.desired, &p, &none, NULL), 0);
        CHECK_INT(none.step_count, 0);
        CHECK_INT(weft_plan_build(&nothing, &first.desired, &p, &all, NULL), 0);
        CHECK_INT(all.step_count, first.desired.count);
    }
}

static void torture(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set now = {0};
    put_known(&now, "old", 1, "nvlink", "switch:0000000000000001,0000000000000002");
    hn_put(&now, "bare", 2, "n:g3 n:g4");
    CHECK_INT(weft_hypernode_set_text(&now.items[0].tier_name, "leaf"), 0);
    weft_auto(hn_tree_free) struct weft_tree *tree =
        hn_tree("nvlink leaf", "g1 d1 l1\ng2 d1 l1\ng3 - l2\ng4 - l2\ng8 ?\nBad! d1 l1\n");
    hn_tree_guids(tree, "nvlink", "d1", "1 2 3");
    struct weft_layout_options o = plan_of(nvlink_leaf, 2);
    o.existing = &now;
    o.unplaced = WEFT_LAYOUT_UNPLACED_SINGLETON;
    int rc = -ENOMEM;
    uint64_t n = 1;
    for (; rc == -ENOMEM && n < 5000; n++) {
        weft_auto(weft_layout_done) struct weft_layout l = {0};
        (void)weft_mem_fail_after(n);
        rc = weft_layout_build(tree, &o, &l, NULL);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || l.desired.items == NULL);
    }
    CHECK_INT(rc, 0);
    CHECK(n > 60);
}

WEFT_SUITE(hypernode_layout, {"two tiers", two_tiers}, {"empty tree", empty_tree},
           {"padded both ways", padded_both_ways}, {"gap in the middle", gap_in_the_middle},
           {"singleton padding", singleton_padding}, {"singleton limits", singleton_limits},
           {"unplaced nodes", unplaced_nodes}, {"names of nodes", names_of_nodes},
           {"bad plans", bad_plans}, {"no tree", no_tree}, {"too large", too_large},
           {"slugs", slugs}, {"long names", long_names}, {"hash collision", hash_collision},
           {"known by label", known_by_label}, {"known by switches", known_by_switches},
           {"split keeps the larger", split_keeps_the_larger},
           {"merge keeps the larger", merge_keeps_the_larger},
           {"known by members", known_by_members}, {"renumbered tier", renumbered_tier},
           {"many switches", many_switches}, {"random trees", random_trees}, {"torture", torture})
