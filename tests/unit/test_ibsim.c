/* SPDX-License-Identifier: Apache-2.0 */
/* Round trip through the real tools, where they are installed: a fabric's text is a net file of
 * ibsim; what ibnetdiscover and iblinkinfo print of the simulated fabric must make the same tree.
 */
#include <stdio.h>
#include <unistd.h>

#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "pkg/base/str.h"
#include "pkg/fabric/fabric.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"
#include "tests/bench/fabric_gen.h"
#include "tests/bench/fabric_gen_cases.h"
#include "tests/unit/proc.h"
#include "tests/unit/unit.h"

enum { TEXT_MAX = 4 << 20, WAIT_MS = 60000, CABLES_MAX = 400 };

static bool installed(void)
{
    static const char *const programs[] = {"/usr/bin/ibsim", "/usr/bin/ibsim-run",
                                           "/usr/sbin/ibnetdiscover", "/usr/sbin/iblinkinfo"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(programs); i++) {
        if (access(programs[i], X_OK) != 0) {
            (void)fprintf(stderr, "SKIP %s is not installed (ibsim-utils, infiniband-diags)\n",
                          programs[i]);
            return false;
        }
    }
    return true;
}

static struct weft_tree *tree_of(const char *text, size_t len)
{
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = NULL;
    struct weft_tree *tree = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_parse_infiniband(text, len, "text", &fabric, &err), 0);
    CHECK_STR(err.message, "");
    if (fabric != NULL) {
        if (!CHECK_INT(fabric->partial, false)) {
            (void)fprintf(stderr, "%s\n", fabric->warning_count > 0 ? fabric->warnings[0] : "");
        }
        CHECK_INT(weft_tree_from_fabric(fabric, NULL, 0, NULL, &tree, &err), 0);
    }
    return tree;
}

static void check_same(const struct weft_tree *a, const struct weft_tree *b)
{
    if (a == NULL || b == NULL || a->node_count != b->node_count ||
        a->tier_count != b->tier_count) {
        CU_FAIL("trees differ");
        return;
    }
    for (size_t n = 0; n < a->node_count; n++) {
        CHECK_STR(a->nodes[n], b->nodes[n]);
    }
    for (size_t t = 0; t < a->tier_count; t++) {
        CHECK(memcmp(a->tiers[t].node_group, b->tiers[t].node_group,
                     a->node_count * sizeof(size_t)) == 0);
        CHECK_INT(a->tiers[t].group_count, b->tiers[t].group_count);
        for (size_t g = 0; g < a->tiers[t].group_count && g < b->tiers[t].group_count; g++) {
            CHECK_STR(a->tiers[t].groups[g].name, b->tiers[t].groups[g].name);
            CHECK_STR(a->tiers[t].groups[g].identity, b->tiers[t].groups[g].identity);
        }
    }
}

/* The id of the first adapter: who the tool runs as. */
static void first_host(const char *text, char *id, size_t size)
{
    struct weft_str rest = weft_str(text);
    struct weft_str line = {0};
    id[0] = '\0';
    while (weft_str_line(&rest, &line)) {
        const char *quote = weft_str_starts(line, "Ca") || weft_str_starts(line, "Hca")
                                ? memchr(line.data, '"', line.len)
                                : NULL;
        if (quote != NULL) {
            (void)snprintf(id, size, "%.*s", (int)strcspn(quote + 1, "\""), quote + 1);
            return;
        }
    }
}

/* What the tool prints of the net; the caller frees it. */
static char *simulate(const char *net, const char *host, const char *tool, const char *option)
{
    char run[512];
    struct proc p = {0};
    (void)snprintf(run, sizeof(run), "%s", weft_fixture("ibsim/run.sh"));
    const char *const argv[] = {"/bin/sh", run, net, host, tool, option, NULL};
    if (!proc_start(&p, argv)) {
        return NULL;
    }
    (void)proc_says(&p, "", WAIT_MS); /* to the end of its output */
    char *text = weft_strdup(p.text != NULL ? p.text : "");
    if (!CHECK_INT(proc_end(&p, 0, WAIT_MS), 0)) {
        (void)fprintf(stderr, "%s %s: %.2000s\n", tool, net, text != NULL ? text : "");
    }
    return text;
}

static void check_tool(const struct weft_tree *expected, const char *net, const char *host,
                       const char *tool, const char *option)
{
    weft_autofree char *text = simulate(net, host, tool, option);
    weft_auto(weft_tree_free) struct weft_tree *tree =
        text != NULL ? tree_of(text, strlen(text)) : NULL;
    check_same(tree, expected);
}

static void round_trip(const char *text, size_t len, bool ports, bool lids)
{
    char net[512];
    char host[64];
    weft_auto(weft_tree_free) struct weft_tree *expected = tree_of(text, len);
    (void)snprintf(net, sizeof(net), "%s/fabric.net", weft_test_dir());
    FILE *file = fopen(net, "w");
    if (file == NULL) {
        CU_FAIL("cannot write");
        return;
    }
    CHECK_INT(fwrite(text, 1, len, file), len);
    (void)fclose(file);
    first_host(text, host, sizeof(host));
    check_tool(expected, net, host, "ibnetdiscover", NULL);
    if (ports) {
        check_tool(expected, net, host, "ibnetdiscover", "-p");
    }
    if (lids) { /* they come from the text: no subnet manager runs */
        check_tool(expected, net, host, "iblinkinfo", NULL);
    }
}

static void made_up_fabrics_come_back(void)
{
    size_t count = 0;
    const struct gen_case *cases = gen_cases(&count);
    for (size_t i = 0; installed() && i < count; i++) {
        weft_auto(gen_done) struct gen g;
        weft_auto(weft_buf_done) struct weft_buf text;
        weft_buf_init(&text, TEXT_MAX);
        gen_init(&g, 90 + i);
        cases[i].make(&g);
        /* the tools see what the first host reaches: one fabric, in one piece */
        if (g.cable_count <= CABLES_MAX && strcmp(cases[i].name, "forest") != 0 &&
            strcmp(cases[i].name, "planes") != 0 && strcmp(cases[i].name, "sparse-pods") != 0) {
            gen_write(&g, &(struct gen_text){.shuffle = false}, &text);
            round_trip(weft_buf_text(&text), text.len, i % 4 == 0, false);
        }
    }
}

static void a_dump_comes_back(void)
{
    size_t len = 0;
    weft_autofree char *text = weft_fixture_text("fabric/two-racks.ibnetdiscover.txt", &len);
    if (text != NULL && installed()) {
        round_trip(text, len, true, false);
    }
}

static void public_dumps_come_back(void)
{
    static const char *const dumps[] = {"ib-fabric/topograph-example.ibnetdiscover.txt",
                                        "ib-fabric/mixed-edr-fdr-small.ibnetdiscover.txt"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(dumps); i++) {
        const char *path = weft_shared(dumps[i]);
        weft_autofree char *text = NULL;
        size_t len = 0;
        if (path != NULL && installed() &&
            CHECK_INT(weft_file_read(path, TEXT_MAX, &text, &len, NULL), 0)) {
            round_trip(text, len, true, true);
        }
    }
}

WEFT_SUITE(ibsim, {"made_up_fabrics_come_back", made_up_fabrics_come_back},
           {"a_dump_comes_back", a_dump_comes_back},
           {"public_dumps_come_back", public_dumps_come_back})
