/* SPDX-License-Identifier: Apache-2.0 */
/* weftctl tree from its arguments to its output. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/ctl.h"
#include "ctl/tree-print.h"
#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "pkg/json/json.h"
#include "pkg/yaml/yaml.h"
#include "tests/unit/unit.h"

#define DUMP "infiniband=tests/fixtures/fabric/two-racks.ibnetdiscover.txt"

struct output {
    char *out;
    char *err;
    int rc;
};

static void output_done(struct output *o)
{
    free(o->out);
    free(o->err);
}
WEFT_DEFINE_AUTO_VALUE(struct output, output_done)

/* args is a NULL-terminated list without the verb. */
static struct output run(const char *const *args)
{
    char *argv[16] = {(char[]){"tree"}};
    char copies[16][256];
    int argc = 1;
    for (; args[argc - 1] != NULL && argc < 15; argc++) {
        (void)snprintf(copies[argc], sizeof(copies[argc]), "%s", args[argc - 1]);
        argv[argc] = copies[argc];
    }
    struct output o = {0};
    size_t out_len = 0;
    size_t err_len = 0;
    FILE *out = open_memstream(&o.out, &out_len);
    FILE *err = open_memstream(&o.err, &err_len);
    o.rc = weft_ctl_tree_to(argc, argv, out, err);
    (void)fclose(out);
    (void)fclose(err);
    return o;
}

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

/* A file in the test folder with that text; static storage, one at a time. */
static const char *file(const char *name, const char *text)
{
    static char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", weft_test_dir(), name);
    CHECK_INT(weft_file_replace(path, text, strlen(text), 0600, NULL), 0);
    return path;
}

static void wrong_use_is_2(void)
{
    static const struct {
        const char *args[8];
        const char *message;
    } rows[] = {
        {{NULL}, "--from KIND=FILE is needed"},
        {{"--from", "netq=x", NULL}, "--from is KIND=FILE"},
        {{"--from", "infiniband=", NULL}, "--from is"},
        {{"--from", DUMP, "-o", "xml", NULL}, "-o is tree, json, yaml, slurm"},
        {{"--from", DUMP, "--colour", "x", NULL}, "unknown option"},
        {{"--from", "labels=x", NULL}, "--preset NAME or --config FILE"},
        {{"--from", "labels=x", "--preset", "moon", NULL}, "no preset \"moon\""},
        {{"--from", "infiniband=-", "--nodes", "-", NULL}, "standard input"},
        {{"--nodes", "x", NULL}, "--from"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        weft_auto(output_done) struct output o = run(rows[i].args);
        CHECK_INT(o.rc, 2);
        CHECK_STR(o.out, "");
        CHECK_CONTAINS(o.err, rows[i].message);
        CHECK_CONTAINS(o.err, "weftctl help tree");
    }
}

/* Hosts of a fabric name themselves: what they choose must not move the reader's cursor. */
static void names_do_not_steer_the_terminal(void)
{
    static const char *const formats[] = {"tree", "json", "yaml", "dot", "slurm"};
    static const char *const text = "SwitchName=s1\x1b[2J Nodes=n[1-2]\nSwitchName=s2 Nodes=n3,\x1b"
                                    "cn4\n";
    char from[300];
    (void)snprintf(from, sizeof(from), "slurm=%s", file("steer.conf", text));
    for (size_t i = 0; i < WEFT_ARRAY_LEN(formats); i++) {
        weft_auto(output_done) struct output o = RUN("--from", from, "-o", formats[i]);
        CHECK_INT(o.rc, 0);
        CHECK(o.out != NULL && strchr(o.out, '\x1b') == NULL);
        CHECK(o.err != NULL && strchr(o.err, '\x1b') == NULL);
    }
    weft_auto(output_done) struct output drawn = RUN("--from", from);
    CHECK_CONTAINS(drawn.out, "s1?[2J  [leaf");
}

static void failures_are_1(void)
{
    weft_auto(output_done) struct output none = RUN("--from", "infiniband=/nonexistent/dump");
    CHECK_INT(none.rc, 1);
    CHECK_CONTAINS(none.err, "/nonexistent/dump");
    char from[300];
    (void)snprintf(from, sizeof(from), "infiniband=%s", file("bad.txt", "vendid=0x2c9\n"));
    weft_auto(output_done) struct output bad = RUN("--from", from);
    CHECK_INT(bad.rc, 1);
    CHECK_CONTAINS(bad.err, "bad.txt:1: the dump ends in the middle");
    CHECK_STR(bad.out, "");
    char pipe_path[256]; /* to look into it would take away what is in it */
    (void)snprintf(pipe_path, sizeof(pipe_path), "%s/pipe", weft_test_dir());
    CHECK_INT(mkfifo(pipe_path, 0600), 0);
    weft_auto(output_done) struct output pipe_of_no_kind = RUN("--from", pipe_path);
    CHECK_INT(pipe_of_no_kind.rc, 1);
    CHECK_CONTAINS(pipe_of_no_kind.err, "/pipe can be read only once: say what it is");
    CHECK_INT(unlink(pipe_path), 0);
    weft_auto(output_done) struct output nobody =
        RUN("--from", DUMP, "--nodes", file("others.txt", "x1\nx2\n"), "-o", "json");
    CHECK_INT(nobody.rc, 1);
    CHECK_CONTAINS(nobody.err, "no source knows any of the nodes");
    CHECK_CONTAINS(nobody.out, "\"x1\"");
    weft_auto(output_done) struct output no_drawing =
        RUN("--from", DUMP, "--nodes", file("others.txt", "x1\nx2\n"));
    CHECK_INT(no_drawing.rc, 1);
    CHECK_STR(no_drawing.out, "");
    CHECK_CONTAINS(no_drawing.err, "finding: unplaced  ");
    CHECK_CONTAINS(no_drawing.err, "no source knows any of the nodes\n");
}

static void the_json_has_the_promised_form(void)
{
    weft_auto(output_done) struct output o = RUN(
        "--from", DUMP, "--nodes", file("n.txt", "gpu-11\ngpu-12\ngpu-21\ngpu-99\n"), "-o", "json");
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    CHECK_INT(o.rc, 0);
    CHECK_STR(o.err, "");
    CHECK_INT(weft_json_parse(o.out, strlen(o.out), "out", &root, NULL), 0);
    const struct weft_json *tiers = weft_json_get(root, "tiers");
    CHECK_INT(weft_json_count(root), 3);
    CHECK_INT(weft_json_count(tiers), 2);
    const struct weft_json *leaf = weft_json_at(tiers, 0);
    CHECK_INT(weft_json_int(weft_json_get(leaf, "tier"), 0), 1);
    CHECK_STR(weft_json_string(weft_json_get(leaf, "name")), "leaf");
    const struct weft_json *group = weft_json_at(weft_json_get(leaf, "groups"), 0);
    CHECK_INT(weft_json_count(group), 4);
    CHECK_STR(weft_json_string(weft_json_get(group, "name")), "r1-leaf");
    CHECK_STR(weft_json_string(weft_json_get(group, "parent")), "spine");
    const struct weft_json *nodes = weft_json_get(group, "nodes");
    CHECK_INT(weft_json_count(nodes), 2);
    CHECK_STR(weft_json_string(weft_json_at(nodes, 0)), "gpu-11");
    CHECK_STR(weft_json_string(weft_json_at(weft_json_get(group, "switches"), 1)), "r1-leaf-2");
    const struct weft_json *top = weft_json_at(weft_json_get(weft_json_at(tiers, 1), "groups"), 0);
    CHECK_INT(weft_json_type(weft_json_get(top, "parent")), WEFT_JSON_NULL);
    CHECK_INT(weft_json_count(weft_json_get(top, "nodes")), 3);
    CHECK_STR(weft_json_string(weft_json_at(weft_json_get(root, "unplaced"), 0)), "gpu-99");
    const struct weft_json *finding = weft_json_at(weft_json_get(root, "findings"), 0);
    CHECK_STR(weft_json_string(weft_json_get(finding, "kind")), "default-description");
    CHECK(weft_json_string(weft_json_get(finding, "subject")) != NULL);
    CHECK(weft_json_string(weft_json_get(finding, "detail")) != NULL);
}

static void the_drawing_follows_the_locale(void)
{
    (void)setenv("LC_ALL", "C", 1);
    weft_auto(output_done) struct output ascii = RUN("--from", DUMP);
    CHECK_INT(ascii.rc, 0);
    CHECK_CONTAINS(ascii.out, "spine  [spine, 5 nodes, 2 switches]\n"
                              "|-- r1-leaf  [leaf, 3 nodes, 2 switches]\n"
                              "|       gpu-[11-13]\n"
                              "`-- r2-leaf  [leaf, 2 nodes, 2 switches]\n"
                              "        gpu-[21-22]\n");
    CHECK_CONTAINS(ascii.out, "3 findings:\n");
    (void)setenv("LC_ALL", "en_US.UTF-8", 1);
    weft_auto(output_done) struct output utf8 = RUN("--from", DUMP);
    CHECK_CONTAINS(utf8.out, "├── r1-leaf  [leaf, 3 nodes, 2 switches]\n"
                             "│       gpu-[11-13]\n"
                             "└── r2-leaf");
    (void)unsetenv("LC_ALL");
}

static const char labelled[] =
    "kind: List\nitems:\n"
    "- kind: Node\n  metadata: {name: a, labels: {rack: r1, zone: z1}}\n"
    "- kind: Node\n  metadata: {name: b, labels: {rack: r1, zone: z2}}\n"
    "- kind: Node\n  metadata: {name: c, labels: {zone: z1}}\n"
    "- kind: Node\n  metadata: {name: master, labels: {rack: r1, zone: z1, "
    "node-role.kubernetes.io/control-plane: \"\"}}\n";

static void labels_with_a_configuration(void)
{
    char from[300];
    char config[300];
    (void)snprintf(from, sizeof(from), "labels=%s", file("labels.yaml", labelled));
    (void)snprintf(config, sizeof(config), "%s",
                   file("weft.yaml", "sources: [{labels: {keys: [rack, zone]}}]\n"
                                     "apiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\n"));
    weft_auto(output_done) struct output o = RUN("--from", from, "--config", config, "-o", "json");
    CHECK_INT(o.rc, 0);
    /* the same value in two zones: each is named by its path, so that parent is not ambiguous */
    CHECK_CONTAINS(o.out, "\"zone=z1/rack=r1\"");
    CHECK_CONTAINS(o.out, "\"zone=z2/rack=r1\"");
    CHECK(o.out != NULL && strstr(o.out, "master") == NULL);
    weft_auto(output_done) struct output both =
        RUN("--from", from, "--config", config, "--preset", "aws");
    CHECK_INT(both.rc, 2);
    weft_auto(output_done) struct output own = RUN("--config", config, "--nodes", from + 7);
    CHECK_INT(own.rc, 0);
    CHECK_CONTAINS(own.out, "3 nodes in 2 tiers: 1 rack (2 groups), 2 zone (2 groups)");
    weft_auto(output_done) struct output lost = RUN("--config", config);
    CHECK_INT(lost.rc, 2);
    weft_auto(output_done) struct output bad =
        RUN("--from", from, "--config", file("bad.yaml", "tiers: [A]\n"));
    CHECK_INT(bad.rc, 1);
    CHECK_CONTAINS(bad.err, "bad.yaml:1");
}

static void the_yaml_is_hypernodes_of_the_tree(void)
{
    weft_auto(output_done) struct output o =
        RUN("--from", DUMP, "--nodes", file("n.txt", "gpu-11\ngpu-12\ngpu-21\n"), "-o", "yaml");
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    CHECK_INT(o.rc, 0);
    CHECK_CONTAINS(o.err, "finding: default-description");
    CHECK_INT(weft_yaml_parse_all(o.out, strlen(o.out), "out", &root, NULL), 0);
    CHECK_INT(weft_json_count(root), 3);
    size_t leaves = 0;
    size_t members = 0;
    for (size_t i = 0; i < weft_json_count(root); i++) {
        const struct weft_json *object = weft_json_at(root, i);
        const struct weft_json *spec = weft_json_get(object, "spec");
        CHECK_STR(weft_json_string(weft_json_get(object, "kind")), "HyperNode");
        leaves += weft_json_int(weft_json_get(spec, "tier"), 0) == 1;
        members += weft_json_count(weft_json_get(spec, "members"));
    }
    CHECK_INT(leaves, 2);
    CHECK_INT(members, 5);
}

WEFT_SUITE(ctl_tree, {"names_do_not_steer_the_terminal", names_do_not_steer_the_terminal},
           {"wrong_use_is_2", wrong_use_is_2}, {"failures_are_1", failures_are_1},
           {"the_json_has_the_promised_form", the_json_has_the_promised_form},
           {"the_drawing_follows_the_locale", the_drawing_follows_the_locale},
           {"labels_with_a_configuration", labels_with_a_configuration},
           {"the_yaml_is_hypernodes_of_the_tree", the_yaml_is_hypernodes_of_the_tree})
