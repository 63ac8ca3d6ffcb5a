/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's hostlists, topology.conf and topology.yaml: what slurmctld takes and what it refuses. */
#include <errno.h>

#include "pkg/base/buf.h"
#include "pkg/fabric/hostlist.h"
#include "pkg/fabric/labels.h"
#include "pkg/fabric/slurm.h"
#include "tests/unit/declared_text.h"
#include "tests/unit/unit.h"

/* ---- hostlists ---- */

static void check_format(const char *const *names, size_t count, size_t max, const char *expected)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1024);
    CHECK_INT(weft_hostlist_format(names, count, ", ", max, &buf), 0);
    CHECK_STR(weft_buf_text(&buf), expected);
}

static void names_become_short(void)
{
    static const char *const names[] = {"n10", "n2", "n1", "n3"};
    check_format(names, 4, 9, "n[1-3], n10");
    static const char *const padded[] = {"g-01.x", "g-02.x", "g-04.x", "g-05.x", "h", "g-06.y"};
    check_format(padded, 6, 9, "g-[01-02,04-05].x, g-06.y, h");
    check_format(padded, 6, 1, "g-[01-02,04-05].x and 2 more");
    static const char *const ip[] = {"ip-10-0-0-1.ec2", "ip-10-0-0-2.ec2"};
    check_format(ip, 2, 9, "ip-10-0-0-[1-2].ec2");
    check_format(names, 0, 9, "");
    static const char *const huge[] = {"n99999999999999999999", "n99999999999999999998"};
    check_format(huge, 2, 9, "n99999999999999999998, n99999999999999999999");
}

static void check_list(const char *text, const char *expected)
{
    weft_auto(weft_hostlist_done) struct weft_hostlist list = {0};
    weft_auto(weft_buf_done) struct weft_buf buf;
    struct weft_error err = {0};
    weft_buf_init(&buf, 4096);
    CHECK_INT(weft_hostlist_add(&list, weft_str(text), &err), 0);
    CHECK_STR(err.message, "");
    for (size_t i = 0; i < list.count; i++) {
        (void)weft_buf_printf(&buf, "%s%s", i > 0 ? " " : "", list.names[i]);
    }
    CHECK_STR(weft_buf_text(&buf), expected);
}

static void check_no_list(const char *text, const char *part)
{
    weft_auto(weft_hostlist_done) struct weft_hostlist list = {0};
    struct weft_error err = {0};
    CHECK_INT(weft_hostlist_add(&list, weft_str(text), &err), -EINVAL);
    CHECK_CONTAINS(err.message, part);
}

static void hostlists_become_names(void)
{
    check_list("", "");
    check_list("n1", "n1");
    check_list("n[1-3,7]", "n1 n2 n3 n7");
    check_list("n[08-11]", "n08 n09 n10 n11"); /* the width of the first number */
    check_list("n[8-11]", "n8 n9 n10 n11");
    check_list("a[1-2]b[1-2]c", "a1b1c a1b2c a2b1c a2b2c");
    check_list("circe-n[001-002],n[019-020]", "circe-n001 circe-n002 n019 n020");
    check_list(" a,,b\tc, ", "a b c");
    check_list("[1101-1102]", "1101 1102");
    check_list("n[1]", "n1");
    check_list("n[0-0]", "n0");
}

static void bad_hostlists_are_refused(void)
{
    check_no_list("n[1-3", "hostlist n[1-3: \"[\" without \"]\" (character 2)");
    check_no_list("x,n1-3]", "\"]\" without \"[\" (character 3)");
    check_no_list("n[1-[2]]", "\"[\" without \"]\"");
    check_no_list("n[]", "nothing between");
    check_no_list("n[3-1]", "from the smaller number to the larger (character 3)");
    check_no_list("n[a-b]", "a range is a number");
    check_no_list("n[1-2-3]", "a range is a number");
    check_no_list("n[1,]", "a range is a number");
    check_no_list("n[1-70000]", "more than 65536");
    check_no_list("n[9999999999999999999]", "a range is a number");
    check_no_list("a[1][1][1][1][1][1][1][1][1]", "more than 8 brackets");
    char longer[300];
    memset(longer, 'a', sizeof(longer));
    longer[254] = '\0';
    check_no_list(longer, "more than 253 characters");
    longer[253] = '\0';
    check_list(longer, longer);
    weft_auto(weft_hostlist_done) struct weft_hostlist list = {0};
    struct weft_error err = {0};
    CHECK_INT(weft_hostlist_add(&list, weft_str("a[1-60000]b[1-60000]"), &err), -EFBIG);
    CHECK_CONTAINS(err.message, "more than 200000 names");
}

/* ---- topology.conf ---- */

static struct weft_declared *parse(const char *text, const struct weft_slurm_options *options,
                                   struct weft_error *err)
{
    struct weft_declared *declared = NULL;
    const int rc = weft_parse_slurm(text, strlen(text), "t.conf", options, &declared, err);
    CHECK_INT(rc < 0, declared == NULL);
    CHECK(rc == 0 || err->message[0] != '\0');
    return declared;
}

static void check_tree(const char *text, const char *expected, const char *warning)
{
    struct weft_error err = {0};
    struct weft_declared *declared = parse(text, NULL, &err);
    CHECK_STR(err.message, "");
    CHECK_STR(declared != NULL && declared->warning_count > 0 ? declared->warnings[0] : "",
              warning);
    CHECK(declared == NULL || declared->names == WEFT_NAMES_HOSTS);
    weft_declared_check(declared, expected);
}

static void check_refused(const char *text, const char *message)
{
    struct weft_error err = {0};
    CHECK(parse(text, NULL, &err) == NULL);
    CHECK_STR(err.message, message);
    CHECK_INT(err.code, -EINVAL);
}

static void trees_by_their_levels(void)
{
    check_tree("SwitchName=top Switches=s[1-2]\nSwitchName=s1 Nodes=n[1-2]\n"
               "SwitchName=s2 Nodes=n3\n",
               "leaf spine: n1=s1/top n2=s1/top n3=s2/top", "");
    /* the leaf s3 is directly below the top: what is between stays empty */
    check_tree("SwitchName=top Switches=m1,s3\nSwitchName=m1 Switches=s1\n"
               "SwitchName=s1 Nodes=n1\nSwitchName=s3 Nodes=n3\n",
               "leaf spine core: n1=s1/m1/top n3=s3/-/top", "");
    /* four levels and more: tier-N */
    check_tree("SwitchName=d Switches=c\nSwitchName=c Switches=b\nSwitchName=b Switches=a\n"
               "SwitchName=a Nodes=n\n",
               "leaf spine core tier-4: n=a/b/c/d", "");
}

static void what_slurm_reads(void)
{
    /* keys without case, tabs, comments, quotes, a link speed, a line that goes on, CR */
    check_tree("# head\r\n\tswitchname=s1\tNODES=\"n[1-2]\"  LinkSpeed=100 # tail\r\n"
               "SwitchName=top \\\n   Switches=s1\n\n",
               "leaf spine: n1=s1/top n2=s1/top", "");
    check_tree("SwitchName=s1 Nodes = n1\n", "leaf: n1=s1", "");
}

static void what_slurm_warns_of(void)
{
    check_tree("SwitchName=a Nodes=n1 Switches=b\nSwitchName=b Nodes=n2\n", "leaf: n1=a n2=b",
               "t.conf:1: switch a has nodes, so its children are passed over");
    check_tree("SwitchName=s2 Nodes=n[1-2]\nSwitchName=s10 Nodes=n[2-3]\n"
               "SwitchName=t Switches=s2,s10\n",
               "leaf spine: n1=s2/t n2=s2/t n3=s10/t",
               "t.conf:2: node n2 is in s10 and (line 1) in s2; weft keeps s2");
    check_tree("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\n", "leaf: n1=a n2=b",
               "t.conf:1: 2 switches have no parent: the trees below them are separate: a, b");
    check_tree("SwitchName=t Switches=a,e\nSwitchName=a Nodes=n1\nSwitchName=e\n",
               "leaf spine: n1=a/t", "t.conf:3: 1 switches have neither nodes nor children: e");
    /* two parents: the first by name, whatever the order of the lines */
    check_tree("SwitchName=p10 Switches=a\nSwitchName=p2 Switches=a\nSwitchName=a Nodes=n1\n",
               "leaf spine: n1=a/p2",
               "t.conf:2: switch a is below p10 and below p2; weft keeps p2");
    check_tree("SwitchName=p2 Switches=a\nSwitchName=p10 Switches=a\nSwitchName=a Nodes=n1\n",
               "leaf spine: n1=a/p2",
               "t.conf:2: switch a is below p2 and below p10; weft keeps p2");
}

static void what_slurm_refuses(void)
{
    check_refused("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n",
                  "t.conf:2: switch a is defined twice (first in line 1)");
    check_refused("SwitchName=a Nodes=n1\nSwitchName=t Switches=a,b\n",
                  "t.conf:2: switch t has the child b, which is not defined");
    check_refused("SwitchName=t Switches=t\n",
                  "t.conf:1: switch t has the child t, which is itself");
    check_refused("SwitchName=x Nodes=n1\nSwitchName=a Switches=b\nSwitchName=b Switches=c\n"
                  "SwitchName=c Switches=b,x\n",
                  "t.conf:4: switch c is above itself: the switches are not a tree");
    check_refused("# nothing\n", "t.conf: no switch or block is configured: an empty topology");
    check_refused("SwitchName=a\n", "t.conf: no node below any switch");
    check_refused("SwitchName=a Nodes=n[1-\n",
                  "t.conf:1: switch a: hostlist n[1-: \"[\" without \"]\" (character 2)");
    check_refused("SwitchName=a Nodes=n1\nSwitchName=b Hosts=n2\n",
                  "t.conf:2: unknown key, allowed are SwitchName, Switches, Nodes, LinkSpeed, "
                  "BlockName, BlockSizes: Hosts");
    check_refused("SwitchName=a Nodes\n", "t.conf:1: expected Key=Value: Nodes");
    check_refused("SwitchName=a Nodes=\n", "t.conf:1: expected a value: Nodes=");
    check_refused("SwitchName=a Nodes=\"n1\n", "t.conf:1: expected a value: Nodes=\"n1");
    check_refused("SwitchName=a Nodes=n1 Nodes=n2\n",
                  "t.conf:1: the key is there twice in one record: Nodes");
    check_refused("Nodes=n1\n",
                  "t.conf:1: a record begins with SwitchName, BlockName or BlockSizes: Nodes=n1");
    check_refused("Include other.conf\nSwitchName=a Nodes=n1\n",
                  "t.conf:1: include is not followed: give weft one file with all of it: Include "
                  "other.conf");
    check_refused("SwitchName=a Nodes=n1\ninclude other.conf\n",
                  "t.conf:2: include is not followed: give weft one file with all of it: include "
                  "other.conf");
    check_refused("SwitchName=a Nodes=n1 \\",
                  "t.conf:1: the file ends in the middle of this record: SwitchName=a Nodes=n1 ");
    /* "n1" may be the half of "n12" */
    check_refused("SwitchName=s0 Nodes=n0\nSwitchName=s1 Nodes=n1",
                  "t.conf:2: the last line has no line end: the file may be cut short; if it is "
                  "whole, end it with one");
    check_refused("- topology: a\n  tree:\n    switches:\n    - {switch: s, nodes: n1}\n  x: y",
                  "t.conf:5: the last line has no line end: the file may be cut short; if it is "
                  "whole, end it with one");
    check_refused("RingName=r Nodes=n1\n", "t.conf:1: a ring or torus has no groups; weft reads "
                                           "switches and blocks: RingName");
}

/* ---- blocks ---- */

static void blocks_and_their_sizes(void)
{
    check_tree("BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockName=b3 Nodes=n[5-6]\n"
               "BlockSizes=2,4\n",
               "block blocks-2: n1=b1/b1..b2 n2=b1/b1..b2 n3=b2/b1..b2 n4=b2/b1..b2 n5=b3/- "
               "n6=b3/-",
               "");
    /* without sizes there are blocks only */
    check_tree("BlockName=b1 Nodes=n1\nBlockName=b2 Nodes=n2\n", "block: n1=b1 n2=b2", "");
    /* sizes beyond all blocks are not made: 1, 2, 4 blocks of 3 */
    check_tree("BlockSizes=1,2,4,8\nBlockName=a Nodes=n1\nBlockName=b Nodes=n2\n"
               "BlockName=c Nodes=n3\n",
               "block blocks-2 blocks-4: n1=a/a..b/a..c n2=b/a..b/a..c n3=c/-/a..c", "");
    check_refused("BlockName=a Nodes=n[1-4]\nBlockSizes=4,12\n",
                  "t.conf:2: block size 12: must be the first (4) times a power of two up to "
                  "32768");
    check_refused("BlockSizes=0\n", "t.conf:1: block size 0: must be the first (0) times a power "
                                    "of two up to 32768");
    check_refused("BlockSizes=4,x\n", "t.conf:1: BlockSizes are numbers with commas between: x");
    check_refused("BlockSizes=4\nBlockName=a Nodes=n[1-3]\n",
                  "t.conf:2: block a has 3 nodes, fewer than the base block size 4");
    check_refused("BlockName=a\n",
                  "t.conf:1: block a has 0 nodes, fewer than the base block size 1");
    check_refused("BlockSizes=20\n#BlockName=a Nodes=n[1-18]\n",
                  "t.conf: no block is configured: an empty topology");
    check_refused("BlockName=a Nodes=n1\nSwitchName=s Nodes=n1\n",
                  "t.conf:2: switches and blocks in one file: SwitchName");
    check_refused("BlockName=a Nodes=n1 Switches=b\n",
                  "t.conf:1: a block has nodes only: BlockName=a Nodes=n1 Switches=b");
}

static void tiers_by_name(void)
{
    static const char *const tiers[] = {"rack"};
    const struct weft_slurm_options options = {.tiers = tiers, .tier_count = 1};
    struct weft_error err = {0};
    weft_declared_check(parse("SwitchName=t Switches=s1\nSwitchName=s1 Nodes=n1\n", &options, &err),
                        "rack tier-2: n1=s1/t");
    CHECK_STR(err.message, "");
}

/* ---- topology.yaml ---- */

#define THREE                                                                                      \
    "---\n- topology: one\n  cluster_default: false\n  flat: true\n"                               \
    "- topology: two\n  cluster_default: true\n  tree:\n    switches:\n"                           \
    "      - switch: root\n        children: s[1-2]\n      - switch: s1\n        nodes: n[1-2]\n"  \
    "      - switch: s2\n        nodes: 3\n"                                                       \
    "- topology: three\n  block:\n    block_sizes: [1, 2]\n    blocks:\n"                          \
    "      - block: b1\n        nodes: n1\n      - block: b2\n        nodes: n2\n"

static void one_topology_of_a_yaml(void)
{
    struct weft_error err = {0};
    weft_declared_check(parse(THREE, NULL, &err), "leaf spine: 3=s2/root n1=s1/root n2=s1/root");
    CHECK_STR(err.message, "");
    const struct weft_slurm_options three = {.topology = "three"};
    weft_declared_check(parse(THREE, &three, &err), "block blocks-2: n1=b1/b1..b2 n2=b2/b1..b2");
    CHECK_STR(err.message, "");
    const struct weft_slurm_options one = {.topology = "one"};
    CHECK(parse(THREE, &one, &err) == NULL);
    CHECK_CONTAINS(err.message, "t.conf:2: [0]: topology one is of the kind flat");
    const struct weft_slurm_options none = {.topology = "four"};
    CHECK(parse(THREE, &none, &err) == NULL);
    CHECK_CONTAINS(err.message, "no topology \"four\"; there are one, two, three");
}

static void bad_yaml_is_refused(void)
{
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"tree: {}\n", "is a list of topologies"},
        {"blocks: {}\n", "blocks: is an object, a list is expected"},
        {"- {topology: a}\n", "[0]: topology a has no tree and no block"},
        {"- {tree: {switches: []}}\n", "a topology without a name"},
        {"- {topology: a, flat: true}\n- {topology: a, flat: true}\n", "a is there twice"},
        {"- {topology: a, tree: {switches: []}}\n", "no switch or block is configured"},
        {"- {topology: a, tree: {}}\n", "tree: lacks the list switches"},
        {"- topology: a\n  tree:\n    switches:\n    - {switch: s, nodes: [n1]}\n",
         "t.conf:4: [0].tree.switches[0].nodes: must be a string"},
        {"- topology: a\n  tree:\n    switches:\n    - {switch: s, children: x}\n",
         "t.conf:4: switch s has the child x, which is not defined"},
        {"- topology: a\n  block:\n    block_sizes: [big]\n    blocks: []\n",
         "block_sizes[0]: a block size must be a positive number"},
        {"- {topology: a, tree: {switches: []}, block: {blocks: []}}\n",
         "is a tree and a block topology"},
        {"- topology: a\n  cluster_default: maybe\n", "cluster_default"},
        {"- topology: a\n  tree: [\n", "t.conf:"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        struct weft_error err = {0};
        CHECK(parse(rows[i].text, NULL, &err) == NULL);
        CHECK_CONTAINS(err.message, rows[i].part);
    }
}

static struct weft_declared *parse_model(const char *text, struct weft_error *err)
{
    struct weft_declared *declared = NULL;
    (void)!weft_parse_topograph_model(text, strlen(text), "m.yaml", NULL, &declared, err);
    return declared;
}

static void topograph_models(void)
{
    struct weft_error err = {0};
    /* rack-3 has no block: a switch without nodes */
    weft_declared_check(parse_model("switches:\n  core:\n    labels: {zone: a}\n"
                                    "    switches: [rack-1, rack-2, rack-3]\n"
                                    "blocks:\n- switch: rack-1\n  nodes: [\"n[1-2]\", n5]\n"
                                    "- switch: rack-2\n  nodes: [1101]\n",
                                    &err),
                        "leaf spine: 1101=rack-2/core n1=rack-1/core n2=rack-1/core "
                        "n5=rack-1/core");
    CHECK_STR(err.message, "");
    CHECK(parse_model("switches: {}\n", &err) == NULL);
    CHECK_CONTAINS(err.message, "lacks the list blocks");
    CHECK(parse_model("switches: {a: {switches: [a]}}\nblocks: []\n", &err) == NULL);
    CHECK_CONTAINS(err.message, "which is itself");
}

/* ---- limits ---- */

static void over_the_caps(void)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    struct weft_error err = {0};
    weft_buf_init(&buf, 4096);
    for (int i = 0; i < 17; i++) {
        (void)weft_buf_printf(&buf, "SwitchName=s%d Switches=s%d\n", i, i + 1);
    }
    (void)weft_buf_puts(&buf, "SwitchName=s17 Nodes=n\n");
    CHECK(parse(weft_buf_text(&buf), NULL, &err) == NULL);
    CHECK_CONTAINS(err.message, "makes a tree of more than 16 levels");
    /* a long chain from the top down costs no pass a level */
    weft_auto(weft_buf_done) struct weft_buf chain;
    weft_buf_init(&chain, 4 << 20);
    for (int i = 0; i < 50000; i++) {
        (void)weft_buf_printf(&chain, "SwitchName=s%d Switches=s%d\n", i, i + 1);
    }
    (void)weft_buf_puts(&chain, "SwitchName=s50000 Nodes=n\n");
    CHECK(parse(weft_buf_text(&chain), NULL, &err) == NULL);
    CHECK_CONTAINS(err.message, "makes a tree of more than 16 levels");
    char longer[128] = "SwitchName=";
    memset(longer + 11, 'x', 65);
    CHECK(parse(longer, NULL, &err) == NULL);
    CHECK_CONTAINS(err.message, "a name of 1 to 64 characters");
}

/* A text is no text with a NUL in it: what stands behind it must not be lost. */
static void nul_is_refused(void)
{
    static const char *const texts[] = {"SwitchName=@a Nodes=n1\n", "SwitchName=a Nodes=n@1\n",
                                        "SwitchName=a Nodes=n[1@2]\n"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(texts); i++) {
        struct weft_declared *declared = NULL;
        struct weft_error err = {0};
        weft_autofree char *text = weft_strdup(texts[i]);
        const size_t len = strlen(text);
        *strchr(text, '@') = '\0';
        CHECK_INT(weft_parse_slurm(text, len, "t", NULL, &declared, &err), -EINVAL);
        CHECK_CONTAINS(err.message, "t:1: a NUL character");
        weft_declared_free(declared);
    }
    weft_auto(weft_hostlist_done) struct weft_hostlist list = {0};
    struct weft_error err = {0};
    CHECK_INT(weft_hostlist_add(&list, (struct weft_str){"n\0m", 3}, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "a NUL character");
}

static void no_memory(void)
{
    static const char *const texts[] = {
        "SwitchName=t Switches=s[1-2],e\nSwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n[2-3]\n"
        "SwitchName=e\n",
        "BlockSizes=1,2\nBlockName=a Nodes=n1\nBlockName=b Nodes=n2\n", THREE};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(texts); i++) {
        int rc = -ENOMEM;
        uint64_t n = 0;
        while (rc < 0 && n < 100000) {
            struct weft_declared *declared = NULL;
            struct weft_error err = {0};
            (void)weft_mem_fail_after(++n);
            rc = weft_parse_slurm(texts[i], strlen(texts[i]), "t", NULL, &declared, &err);
            (void)weft_mem_fail_after(0);
            CHECK_INT(rc < 0 ? rc : -ENOMEM, -ENOMEM);
            CHECK_INT(declared != NULL, rc == 0);
            weft_declared_free(declared);
        }
        CHECK_INT(rc, 0);
        CHECK(n > 20);
    }
}

WEFT_SUITE(fabric_slurm, {"names_become_short", names_become_short},
           {"hostlists_become_names", hostlists_become_names},
           {"bad_hostlists_are_refused", bad_hostlists_are_refused},
           {"trees_by_their_levels", trees_by_their_levels}, {"what_slurm_reads", what_slurm_reads},
           {"what_slurm_warns_of", what_slurm_warns_of}, {"what_slurm_refuses", what_slurm_refuses},
           {"blocks_and_their_sizes", blocks_and_their_sizes}, {"tiers_by_name", tiers_by_name},
           {"one_topology_of_a_yaml", one_topology_of_a_yaml},
           {"bad_yaml_is_refused", bad_yaml_is_refused}, {"topograph_models", topograph_models},
           {"over_the_caps", over_the_caps}, {"nul_is_refused", nul_is_refused},
           {"no_memory", no_memory})
