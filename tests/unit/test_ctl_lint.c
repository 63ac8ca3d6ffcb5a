/* SPDX-License-Identifier: Apache-2.0 */
/* weftctl lint from its arguments to its two outputs. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/ctl.h"
#include "pkg/base/file.h"
#include "pkg/json/json.h"
#include "tests/unit/unit.h"

struct result {
    int status;
    char *out, *err;
};

static void result_done(struct result *r)
{
    free(r->out);
    free(r->err);
}
WEFT_DEFINE_AUTO_VALUE(struct result, result_done)

/* Runs "lint" with up to four arguments; ends at the first NULL. */
static struct result run(const char *a, const char *b, const char *c, const char *d)
{
    struct result r = {.status = -1};
    const char *const words[] = {a, b, c, d};
    char *argv[6] = {NULL};
    int argc = 1;
    argv[0] = weft_strdup("lint");
    for (size_t i = 0; i < WEFT_ARRAY_LEN(words) && words[i] != NULL; i++) {
        argv[argc++] = weft_strdup(words[i]);
    }
    size_t out_len = 0;
    size_t err_len = 0;
    FILE *out = open_memstream(&r.out, &out_len);
    FILE *err = open_memstream(&r.err, &err_len);
    if (out != NULL && err != NULL) {
        r.status = weft_ctl_lint_to(argc, argv, out, err);
    }
    if (out != NULL) {
        (void)fclose(out);
    }
    if (err != NULL) {
        (void)fclose(err);
    }
    for (int i = 0; i < argc; i++) {
        weft_free(argv[i]);
    }
    return r;
}

/* A file in the test's folder; owned path. */
static char *put(const char *name, const char *text)
{
    char *path = weft_asprintf("%s/%s", weft_test_dir(), name);
    CHECK_INT(weft_file_replace(path, text, strlen(text), 0644, NULL), 0);
    return path;
}

#define LEAF(name, node)                                                                           \
    "kind: HyperNode\nmetadata: {name: " name "}\nspec: {tier: 1, tierName: leaf, members: "       \
    "[{type: Node, selector: {exactMatch: {name: " node "}}}]}\n"
#define SPINE(name, child)                                                                         \
    "kind: HyperNode\nmetadata: {name: " name "}\nspec: {tier: 2, tierName: spine, members: "      \
    "[{type: HyperNode, selector: {exactMatch: {name: " child "}}}]}\n"

static void good_and_bad(void)
{
    weft_autofree char *good = put("good.yaml", LEAF("a", "n1") "---\n" SPINE("x", "a"));
    weft_auto(result_done) struct result r = run(good, NULL, NULL, NULL);
    CHECK_INT(r.status, 0);
    CHECK_STR(r.out, "2 HyperNodes: 0 errors, 0 warnings, 0 notes\n");
    CHECK_STR(r.err, "");

    weft_autofree char *more = put("more.yaml", SPINE("y", "a"));
    weft_auto(result_done) struct result two = run(good, more, NULL, NULL);
    CHECK_INT(two.status, 1);
    CHECK_CONTAINS(two.out, "error    two-parents         a: is listed by x and y");
    CHECK_CONTAINS(two.out, "3 HyperNodes: 1 errors, 0 warnings, 0 notes\n");
}

static void notes_are_no_finding(void)
{
    weft_autofree char *file =
        put("notes.yaml", "kind: HyperNode\nmetadata: {name: a}\nspec: {tier: 1, members: [{type: "
                          "Node, selector: {exactMatch: {name: n1}}}]}\n");
    weft_auto(result_done) struct result r = run(file, NULL, NULL, NULL);
    CHECK_INT(r.status, 0);
    CHECK_CONTAINS(r.out, "note     no-tier-name        a: ");
}

static void as_json(void)
{
    weft_autofree char *file = put("json.yaml", SPINE("x", "gone"));
    weft_auto(result_done) struct result r = run("-o", "json", file, NULL);
    CHECK_INT(r.status, 1);
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    CHECK_INT(weft_json_parse(r.out, strlen(r.out), "out", &doc, NULL), 0);
    CHECK_INT(weft_json_int(weft_json_get(doc, "hyperNodes"), -1), 1);
    const struct weft_json *first = weft_json_at(weft_json_get(doc, "findings"), 0);
    CHECK_STR(weft_json_string(weft_json_get(first, "kind")), "missing-child");
    CHECK_STR(weft_json_string(weft_json_get(first, "severity")), "error");
    CHECK_STR(weft_json_string(weft_json_get(first, "object")), "x");
}

static void folders(void)
{
    weft_autofree char *dir = weft_asprintf("%s/lint-folder", weft_test_dir());
    CHECK_INT(mkdir(dir, 0755), 0);
    weft_autofree char *a = put("lint-folder/a.yaml", LEAF("a", "n1"));
    weft_autofree char *x = put("lint-folder/x.yaml", SPINE("x", "a"));
    weft_auto(result_done) struct result r = run(dir, NULL, NULL, NULL);
    CHECK_INT(r.status, 0);
    CHECK_CONTAINS(r.out, "2 HyperNodes");
    weft_auto(result_done) struct result twice = run(dir, a, NULL, NULL);
    CHECK_INT(twice.status, 1);
    CHECK_CONTAINS(twice.err, "HyperNode a is there twice");
    weft_auto(result_done) struct result again = run(x, dir, NULL, NULL);
    CHECK_INT(again.status, 1);
    CHECK_CONTAINS(again.err, "HyperNode x is there twice");
}

/* A check of nothing must not be green. */
static void nothing_is_an_error(void)
{
    weft_autofree char *dir = weft_asprintf("%s/lint-empty", weft_test_dir());
    CHECK_INT(mkdir(dir, 0755), 0);
    weft_autofree char *others = put("others.yaml", "kind: Pod\nmetadata: {name: a}\n---\n"
                                                    "kind: List\nitems: [{kind: Node}]\n");
    weft_autofree char *good = put("good2.yaml", LEAF("a", "n1"));
    const char *const inputs[] = {"/dev/null", dir, others};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(inputs); i++) {
        weft_autofree char *line =
            weft_asprintf("weftctl lint: %s: no HyperNode in it\n", inputs[i]);
        weft_auto(result_done) struct result r = run(inputs[i], NULL, NULL, NULL);
        CHECK_INT(r.status, 1);
        CHECK_STR(r.out, "");
        CHECK_STR(r.err, line);
        weft_auto(result_done) struct result second = run(good, inputs[i], "-o", "json");
        CHECK_INT(second.status, 1);
        CHECK_STR(second.err, line);
    }
}

static void a_list_of_none_is_an_answer(void)
{
    static const char *const lists[] = {
        "apiVersion: v1\nitems: []\nkind: List\nmetadata: {resourceVersion: \"\"}\n",
        "{\"kind\": \"HyperNodeList\", \"items\": []}"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(lists); i++) {
        weft_autofree char *file = put("none.yaml", lists[i]);
        weft_auto(result_done) struct result r = run(file, NULL, NULL, NULL);
        CHECK_INT(r.status, 0);
        CHECK_STR(r.out, "0 HyperNodes: 0 errors, 0 warnings, 0 notes\n");
        CHECK_STR(r.err, "");
    }
    weft_autofree char *no_items = put("no-items.yaml", "kind: List\n");
    weft_auto(result_done) struct result r = run(no_items, NULL, NULL, NULL);
    CHECK_INT(r.status, 1);
}

static void standard_input_has_a_name(void)
{
    const int saved = dup(STDIN_FILENO);
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK_INT(dup2(null, STDIN_FILENO), STDIN_FILENO);
    weft_auto(result_done) struct result r = run("-", NULL, NULL, NULL);
    CHECK_INT(dup2(saved, STDIN_FILENO), STDIN_FILENO);
    (void)close(saved);
    (void)close(null);
    CHECK_INT(r.status, 1);
    CHECK_STR(r.err, "weftctl lint: standard input: no HyperNode in it\n");
}

static void two_dashes_end_the_options(void)
{
    weft_autofree char *file = put("dashes.yaml", LEAF("a", "n1"));
    weft_auto(result_done) struct result r = run("-o", "json", "--", file);
    CHECK_INT(r.status, 0);
    CHECK_CONTAINS(r.out, "\"hyperNodes\": 1");
    weft_auto(result_done) struct result named = run("--", "--json", NULL, NULL);
    CHECK_INT(named.status, 1);
    CHECK_CONTAINS(named.err, "--json: No such file");
    weft_auto(result_done) struct result none = run("--", NULL, NULL, NULL);
    CHECK_INT(none.status, 2);
}

static void wrong_use(void)
{
    static const char *const cases[][3] = {
        {NULL, NULL, "name a file"},
        {"-o", NULL, "-o needs a value"},
        {"--what", "x", "unknown option \"--what\""},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
        weft_auto(result_done) struct result r = run(cases[i][0], cases[i][1], NULL, NULL);
        CHECK_INT(r.status, 2);
        CHECK_CONTAINS(r.err, cases[i][2]);
    }
    weft_autofree char *file = put("use.yaml", LEAF("a", "n1"));
    weft_auto(result_done) struct result form = run(file, "-o", "xml", NULL);
    CHECK_INT(form.status, 2);
    CHECK_CONTAINS(form.err, "-o is table or json");
    weft_auto(result_done) struct result prefix = run(file, "--label-prefix", "weft.dev", NULL);
    CHECK_INT(prefix.status, 2);
    CHECK_CONTAINS(prefix.err, "a DNS subdomain and a slash");
    weft_auto(result_done) struct result missing = run("/no/such/file", NULL, NULL, NULL);
    CHECK_INT(missing.status, 1);
    CHECK_CONTAINS(missing.err, "/no/such/file");
    weft_autofree char *bad = put("bad.yaml", "kind: HyperNode\nspec: {tier: 1}\n");
    weft_auto(result_done) struct result broken = run(bad, NULL, NULL, NULL);
    CHECK_INT(broken.status, 1);
    CHECK_CONTAINS(broken.err, "metadata.name is missing");
}

WEFT_SUITE(ctl_lint, {"good and bad", good_and_bad}, {"notes are no finding", notes_are_no_finding},
           {"as json", as_json}, {"folders", folders}, {"nothing is an error", nothing_is_an_error},
           {"a list of none is an answer", a_list_of_none_is_an_answer},
           {"standard input has a name", standard_input_has_a_name},
           {"two dashes end the options", two_dashes_end_the_options}, {"wrong use", wrong_use})
