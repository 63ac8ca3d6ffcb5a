/* SPDX-License-Identifier: Apache-2.0 */
/* weftctl status against an API server of the test's own. */
#include <stdio.h>
#include <string.h>

#include "ctl/ctl.h"
#include "pkg/base/file.h"
#include "tests/unit/ctl_run.h"
#include "tests/unit/fake_kube.h"
#include "tests/unit/unit.h"

/* a quotation mark of a document inside of a document */
#define Q "\\\""
#define S(key, value) Q key Q ":" Q value Q
#define N(key, value) Q key Q ":" #value
#define SELECTED N("selected", 70) "," N("placed", 64) "," N("unplaced", 5)
#define NODES Q "nodes" Q ":{" SELECTED "," N("excluded", 0) "," N("kept", 1) "}"
#define LEAF N("tier", 1) "," S("name", "leaf") "," N("hyperNodes", 8)
#define TIERS Q "tiers" Q ":[{" LEAF "}]," N("foreignHyperNodes", 2)
#define LABELS S("name", "labels") "," S("state", "ok") "," N("placedNodes", 64)
#define NOTHING Q "refusedChanges" Q ":[]," N("findingCount", 0) "," Q "findings" Q ":[]"
#define GOOD_STATE S("instance", "weft") "," N("paused", false) "," N("hyperNodesServed", true)
#define GOOD GOOD_STATE "," NODES "," TIERS "," Q "sources" Q ":[{" LABELS "}]," NOTHING

#define BAD_STATE S("instance", "weft") "," N("paused", true) "," N("hyperNodesServed", false)
#define ERRORS S("configError", "c.yaml:3: x") "," S("passError", "no source has a result")
#define UFM S("name", "ufm") "," S("state", "failed") "," S("error", "ufm: 401")
#define HELD S("hash", "0123456789abcdef") "," S("kind", "brake") "," S("text", "Of 10, 3.")
#define CHANGES Q "refusedChanges" Q ":[{" HELD "}]"
#define FINDING_1 S("kind", "unplaced") "," S("subject", "n1\\\\u001b[2J")
#define FINDING FINDING_1 "," S("detail", "nobody knows it")
#define FINDINGS N("findingCount", 7) "," Q "findings" Q ":[{" FINDING "}]"
#define LEFT_OUT N("findingsLeftOut", 6)
#define SOURCES Q "sources" Q ":[{" UFM "}]"
#define BAD BAD_STATE "," ERRORS "," SOURCES "," CHANGES "," FINDINGS "," LEFT_OUT
#define MAP(text) "{\"data\":{\"status.json\":\"{" text "}\"}}"
#define GET "GET /api/v1/namespaces/weft-system/configmaps/weft-status"

struct bench {
    struct fake_script script;
    struct fake_kube *fake;
    char args[400];
};

static void up(struct bench *b, const struct fake_step *step, const char *more)
{
    char path[256];
    char text[600];
    fake_script_init(&b->script, step, 1);
    b->fake = fake_kube_start(NULL, 0, fake_script_answer, &b->script);
    (void)snprintf(path, sizeof(path), "%s/status-kc", weft_test_dir());
    (void)snprintf(text, sizeof(text),
                   "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                   "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
                   "clusters: [{name: k, cluster: {server: \"http://127.0.0.1:%d\"}}]\n"
                   "users: [{name: u, user: {token: abc}}]\n",
                   fake_kube_port(b->fake));
    CHECK_INT(weft_file_replace(path, text, strlen(text), 0600, NULL), 0);
    (void)snprintf(b->args, sizeof(b->args), "--kubeconfig %s %s", path, more);
}

static void down(struct bench *b)
{
    CHECK_INT(fake_script_unexpected(&b->script), 0);
    fake_kube_stop(b->fake);
    fake_script_done(&b->script);
}

static struct ctl_result ask(const struct fake_step *step, const char *more)
{
    struct bench b;
    up(&b, step, more);
    struct ctl_result r = ctl_run(weft_ctl_status_to, "status", b.args);
    down(&b);
    return r;
}

static void nothing_is_odd(void)
{
    static const struct fake_step step = {GET, {.status = 200, .body = MAP(GOOD)}};
    weft_auto(ctl_result_done) struct ctl_result r = ask(&step, "");
    CHECK_INT(r.status, 0);
    CHECK_STR(r.err, "");
    CHECK_CONTAINS(r.out, "instance weft\n");
    CHECK_CONTAINS(r.out, "70 selected, 64 placed, 5 unplaced, 0 excluded, 1 kept");
    CHECK_CONTAINS(r.out, "1     leaf                 8\n");
    CHECK_CONTAINS(r.out, "2 HyperNodes of others\n");
    CHECK_CONTAINS(r.out, "source labels: ok, decides 64 Nodes\n");
    CHECK_CONTAINS(r.out, "changes held back: 0\n");
    CHECK_CONTAINS(r.out, "findings: 0\n");
}

static void much_is_odd(void)
{
    static const struct fake_step step = {GET, {.status = 200, .body = MAP(BAD)}};
    weft_auto(ctl_result_done) struct ctl_result r = ask(&step, "");
    CHECK_INT(r.status, 1);
    CHECK_CONTAINS(r.out, "instance weft, paused\n");
    CHECK_CONTAINS(r.out, "the configuration file is not in use: c.yaml:3: x\n");
    CHECK_CONTAINS(r.out, "nothing is decided: no source has a result\n");
    CHECK_CONTAINS(r.out, "does not serve HyperNodes\n");
    CHECK_CONTAINS(r.out, "source ufm: failed: ufm: 401\n");
    CHECK_CONTAINS(r.out, "  0123456789abcdef  brake  Of 10, 3.\n");
    CHECK_CONTAINS(r.out, "findings: 7\n  unplaced  n1?[2J: nobody knows it\n  and 6 more\n");
    CHECK(strstr(r.out, "Nodes:") == NULL); /* there was no good pass */
}

static void as_it_is(void)
{
    static const struct fake_step step = {"GET /api/v1/namespaces/ns1/configmaps/blue-status",
                                          {.status = 200, .body = MAP(S("instance", "blue"))}};
    weft_auto(ctl_result_done) struct ctl_result r =
        ask(&step, "--namespace ns1 --instance blue -o json");
    CHECK_INT(r.status, 0);
    CHECK_STR(r.out, "{\"instance\":\"blue\"}");
}

/* A script that takes the document sees by the exit status too that something is odd. */
static void odd_as_json_too(void)
{
    static const char *const bodies[] = {
        MAP(BAD),
        MAP(S("instance", "weft") "," ERRORS),
        MAP(S("instance", "weft") "," N("hyperNodesServed", false)),
        MAP(S("instance", "weft") "," SOURCES),
        MAP(S("instance", "weft") "," CHANGES),
        MAP(S("instance", "weft") "," FINDINGS),
    };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        const struct fake_step step = {GET, {.status = 200, .body = bodies[i]}};
        weft_auto(ctl_result_done) struct ctl_result r = ask(&step, "-o json");
        CHECK_INT(r.status, 1);
        CHECK_STR(r.err, "");
        CHECK_CONTAINS(r.out, "{\"instance\":\"weft\",");
    }
}

static void none_and_failures(void)
{
    static const struct {
        struct fake_step step;
        const char *part;
    } rows[] = {
        {{GET, {.status = 404, .body = "{\"kind\":\"Status\",\"reason\":\"NotFound\"}"}},
         "no controller has written one"},
        {{GET, {.status = 403, .body = "{\"kind\":\"Status\",\"reason\":\"Forbidden\"}"}}, "403"},
        {{GET, {.status = 200, .body = "{\"data\":{}}"}}, "no key status.json"},
        {{GET, {.status = 200, .body = "{\"data\":{\"status.json\":\"{\"}}"}}, "status.json"},
        {{GET, {.status = 200, .body = "{\"data\":{\"status.json\":\"{}\"}}"}},
         "instance is missing"},
        {{GET, {.status = 200, .body = "{\"data\":{\"status.json\":\"[]\"}}"}},
         "instance is missing"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        weft_auto(ctl_result_done) struct ctl_result r = ask(&rows[i].step, "");
        CHECK_INT(r.status, 1);
        CHECK_CONTAINS(r.err, rows[i].part);
    }
}

static void wrong_use(void)
{
    static const struct {
        const char *args, *part;
    } rows[] = {{"--namespace A", "--namespace"},
                {"--instance A", "--instance"},
                {"-o xml", "-o is text or json"},
                {"--what", "--what"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        weft_auto(ctl_result_done) struct ctl_result r =
            ctl_run(weft_ctl_status_to, "status", rows[i].args);
        CHECK_INT(r.status, 2);
        CHECK_CONTAINS(r.err, rows[i].part);
    }
}

WEFT_SUITE(ctl_status, {"nothing is odd", nothing_is_odd}, {"much is odd", much_is_odd},
           {"odd as JSON too", odd_as_json_too}, {"as it is", as_it_is},
           {"none and failures", none_and_failures}, {"wrong use", wrong_use})
