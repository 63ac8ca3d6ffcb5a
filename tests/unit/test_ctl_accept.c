/* SPDX-License-Identifier: Apache-2.0 */
/* Refusals as lines, accepted changes as a ConfigMap, and the verb between them against an API
 * server of the test's own. */
#include <stdio.h>
#include <string.h>

#include "ctl/ctl.h"
#include "pkg/apply/refusal.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/json/json.h"
#include "tests/unit/ctl_run.h"
#include "tests/unit/fake_kube.h"
#include "tests/unit/unit.h"

#define H1 "0123456789abcdef"
#define H2 "fedcba9876543210"
#define T1 "1111222233334444"
/* a quotation mark of a document inside of a document */
#define Q "\\\""
#define FIELD(key, value) Q key Q ":" Q value Q
#define FIRST FIELD("hash", H1) "," FIELD("target", T1) "," FIELD("kind", "brake")
#define SECOND FIELD("hash", H2) "," FIELD("kind", "tiers")
#define NOT_A_KIND FIELD("hash", H1) "," FIELD("kind", "other")
#define NOT_A_HASH FIELD("hash", "x") "," FIELD("kind", "move")
#define CHANGES                                                                                    \
    "{" FIRST "," FIELD("text", "Of 10, 3.") "},{" SECOND "," FIELD(                               \
        "text", "leaf\\\\u001b=2") "},{" NOT_A_KIND "},{" NOT_A_HASH "}"
#define STATUS "{\"data\":{\"status.json\":\"{" Q "refusedChanges" Q ":[" CHANGES "]}\"}}"

/* ---- as text ---- */

static void read_status(const char *text, struct weft_refusals *refusals)
{
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    CHECK_INT(weft_json_parse(text, strlen(text), "text", &doc, NULL), 0);
    weft_refusals_read(doc, refusals);
}

static void refusals_are_read_from_the_status(void)
{
    struct weft_refusals all;
    read_status(STATUS, &all);
    CHECK_INT(all.count, 2); /* the others have a kind or a hash that there is not */
    CHECK_INT(all.items[0].kind, WEFT_REFUSAL_BRAKE);
    CHECK_STR(all.items[0].hash, H1);
    CHECK_STR(all.items[0].target, T1);
    CHECK_STR(all.items[0].text, "Of 10, 3.");
    CHECK_INT(all.items[1].kind, WEFT_REFUSAL_TIERS);
    CHECK_STR(all.items[1].target, "");
    static const char *const none[] = {"{}", "{\"data\":{\"status.json\":\"{\"}}",
                                       "{\"data\":{\"status.json\":\"[]\"}}"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        read_status(none[i], &all);
        CHECK_INT(all.count, 0);
    }
}

/* 2026-01-02T00:00:00Z is 1767312000 s. */
static void words_are_good_for_a_day(void)
{
    static const char text[] =
        "{\"data\":{\"" H1 "\":\"2026-01-01T00:00:00Z " T1 "\",\"" H2 "\":\"\",\"note\":\"x\"}}";
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    struct weft_acceptance a[WEFT_ACCEPTANCES_MAX];
    const int64_t day = INT64_C(1767312000) * WEFT_NS_PER_S;
    CHECK_INT(weft_json_parse(text, sizeof(text) - 1, "text", &doc, NULL), 0);
    CHECK_INT(weft_accepted_read(doc, day, a), 2);
    CHECK_STR(a[0].hash, H1);
    CHECK_STR(a[0].target, T1);
    CHECK_STR(a[1].hash, H2);
    CHECK_STR(a[1].target, "");
    /* one second later the first is too old, and a word without a time never is */
    CHECK_INT(weft_accepted_read(doc, day + WEFT_NS_PER_S, a), 1);
    CHECK_STR(a[0].hash, H2);
    CHECK_INT(weft_accepted_read(NULL, day, a), 0);
}

static void one_word_is_for_one_change(void)
{
    const struct weft_acceptance a[] = {{.hash = H2}, {.hash = H1, .target = T1}};
    size_t at = 9;
    struct weft_refusal r = {.hash = H1};
    CHECK(weft_refusal_accepted(&r, a, 2, &at));
    CHECK_INT(at, 1);
    r = (struct weft_refusal){.hash = "0000000000000000", .target = T1};
    CHECK(weft_refusal_accepted(&r, a, 2, &at));
    r = (struct weft_refusal){.hash = "0000000000000000"};
    CHECK(!weft_refusal_accepted(&r, a, 2, &at)); /* two changes without a target are not one */
    CHECK(!weft_refusal_accepted(&r, a, 0, &at));
}

/* ---- the verb ---- */

struct bench {
    struct fake_script script;
    struct fake_kube *fake;
    char args[300];
};

static void up(struct bench *b, const struct fake_step *steps, size_t count)
{
    char path[256];
    char text[600];
    fake_script_init(&b->script, steps, count);
    b->fake = fake_kube_start(NULL, 0, fake_script_answer, &b->script);
    (void)snprintf(path, sizeof(path), "%s/accept-kc", weft_test_dir());
    (void)snprintf(text, sizeof(text),
                   "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                   "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
                   "clusters: [{name: k, cluster: {server: \"http://127.0.0.1:%d\"}}]\n"
                   "users: [{name: u, user: {token: abc}}]\n",
                   fake_kube_port(b->fake));
    CHECK_INT(weft_file_replace(path, text, strlen(text), 0600, NULL), 0);
    (void)snprintf(b->args, sizeof(b->args), "--namespace ns1 --kubeconfig %s", path);
}

static void down(struct bench *b)
{
    CHECK_INT(fake_script_unexpected(&b->script), 0);
    CHECK_INT(fake_script_seen(&b->script, NULL), b->script.count);
    fake_kube_stop(b->fake);
    fake_script_done(&b->script);
}

#define PATH "/api/v1/namespaces/ns1/configmaps"

static void what_waits_is_listed(void)
{
    static const struct fake_step steps[] = {
        {"GET " PATH "/weft-status?", {.status = 200, .body = STATUS}},
        {"GET " PATH "/weft-accepted?", {.status = 404, .body = "{}"}},
        {"GET " PATH "/weft-status?", {.status = 200, .body = STATUS}},
        {"GET " PATH "/weft-accepted?",
         {.status = 200, .body = "{\"data\":{\"" H1 "\":\"\",\"" H2 "\":\"\"}}"}},
        {"GET " PATH "/weft-status?", {.status = 404, .body = "{}"}},
        {"GET " PATH "/weft-accepted?", {.status = 404, .body = "{}"}},
    };
    struct bench b;
    up(&b, steps, 6);
    weft_auto(ctl_result_done) struct ctl_result r = ctl_run(weft_ctl_accept_to, "accept", b.args);
    CHECK_INT(r.status, WEFT_CTL_FAILED);
    CHECK_STR(r.out, H1 "  brake         Of 10, 3.\n" H2 "  tiers         leaf?=2\n");
    weft_auto(ctl_result_done) struct ctl_result r2 = ctl_run(weft_ctl_accept_to, "accept", b.args);
    CHECK_INT(r2.status, WEFT_CTL_OK);
    CHECK_CONTAINS(r2.out, H1 "  brake         (accepted) Of 10");
    weft_auto(ctl_result_done) struct ctl_result r3 = ctl_run(weft_ctl_accept_to, "accept", b.args);
    CHECK_INT(r3.status, WEFT_CTL_OK);
    CHECK_STR(r3.out, "nothing waits: no controller has written a status there\n");
    down(&b);
}

/* The ConfigMap is made by the first word; the target comes from the status. */
static void a_word_is_written(void)
{
    static const struct fake_step steps[] = {
        {"GET " PATH "/weft-status?", {.status = 200, .body = STATUS}},
        {"PATCH " PATH "/weft-accepted?", {.status = 404, .body = "{}"}},
        {"POST " PATH "?", {.status = 201, .body = "{}"}},
        {"GET " PATH "/weft-status?", {.status = 404, .body = "{}"}},
        {"PATCH " PATH "/weft-accepted?", {.status = 200, .body = "{}"}},
    };
    struct bench b;
    struct fake_seen seen;
    char args[400];
    up(&b, steps, 5);
    (void)snprintf(args, sizeof(args), H1 " %s", b.args);
    weft_auto(ctl_result_done) struct ctl_result r = ctl_run(weft_ctl_accept_to, "accept", args);
    CHECK_INT(r.status, WEFT_CTL_OK);
    CHECK_STR(r.out, H1 " accepted: Of 10, 3.\n");
    (void)fake_script_seen(&b.script, &seen);
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    struct weft_acceptance a[WEFT_ACCEPTANCES_MAX];
    CHECK_INT(weft_json_parse(seen.body, strlen(seen.body), "body", &doc, NULL), 0);
    CHECK_STR(weft_json_string(weft_json_get(weft_json_get(doc, "metadata"), "name")),
              "weft-accepted");
    CHECK_INT(weft_accepted_read(doc, weft_clock_realtime(weft_clock_system()), a), 1);
    CHECK_STR(a[0].hash, H1);
    CHECK_STR(a[0].target, T1);
    (void)snprintf(args, sizeof(args), H2 " %s", b.args);
    weft_auto(ctl_result_done) struct ctl_result r2 = ctl_run(weft_ctl_accept_to, "accept", args);
    CHECK_INT(r2.status, WEFT_CTL_OK);
    CHECK_CONTAINS(r2.out, "no change of that name waits now");
    down(&b);
}

static void what_goes_wrong_is_told(void)
{
    static const struct fake_step steps[] = {
        {"GET " PATH "/weft-status?", {.status = 200, .body = STATUS}},
        {"PATCH " PATH "/weft-accepted?",
         {.status = 403, .body = "{\"kind\":\"Status\",\"message\":\"no such right\"}"}},
    };
    struct bench b;
    char args[400];
    up(&b, steps, 2);
    (void)snprintf(args, sizeof(args), H1 " %s", b.args);
    weft_auto(ctl_result_done) struct ctl_result r = ctl_run(weft_ctl_accept_to, "accept", args);
    CHECK_INT(r.status, WEFT_CTL_FAILED);
    CHECK_CONTAINS(r.err, "no such right");
    down(&b);
    weft_auto(ctl_result_done) struct ctl_result r2 = ctl_run(weft_ctl_accept_to, "accept", "0123");
    CHECK_INT(r2.status, WEFT_CTL_USAGE);
    CHECK_CONTAINS(r2.err, "16 hexadecimal digits");
}

WEFT_SUITE(ctl_accept, {"refusals_are_read_from_the_status", refusals_are_read_from_the_status},
           {"words_are_good_for_a_day", words_are_good_for_a_day},
           {"one_word_is_for_one_change", one_word_is_for_one_change},
           {"what_waits_is_listed", what_waits_is_listed}, {"a_word_is_written", a_word_is_written},
           {"what_goes_wrong_is_told", what_goes_wrong_is_told})
