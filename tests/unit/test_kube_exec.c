/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials from a helper program: shell scripts stand for it, and a server that takes one token
 * only. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/kube/client-internal.h"
#include "pkg/kube/config-internal.h"
#include "pkg/loop/loop.h"
#include "tests/unit/fake_kube.h"
#include "tests/unit/unit.h"

#define V1 "client.authentication.k8s.io/v1"
#define HEAD "{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":"

/* Writes a script; static storage, one at a time. */
static const char *script_of(const char *name, const char *text)
{
    static char path[160];
    (void)snprintf(path, sizeof(path), "%s/%s", weft_test_dir(), name);
    weft_autofree char *whole = weft_asprintf("#!/bin/sh\n%s\n", text);
    CHECK_INT(weft_file_replace(path, whole, strlen(whole), 0700, NULL), 0);
    return path;
}

static int load(const char *exec, struct weft_kube_config **ret, struct weft_error *err)
{
    weft_autofree char *text =
        weft_asprintf("current-context: c\n"
                      "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
                      "clusters: [{name: k, cluster: {server: \"https://h:1\", "
                      "certificate-authority-data: Y2E=}}]\n"
                      "users: [{name: u, user: {exec: {%s}}}]\n",
                      exec);
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/kubeconfig", weft_test_dir());
    int rc = weft_kube_config_parse(text, strlen(text), path, NULL, ret, err);
    return rc < 0 ? rc : weft_kube_config_resolve(*ret, err);
}

/* Loads with a script as helper and more fields. */
static int load_script(const char *script, const char *more, struct weft_kube_config **ret,
                       struct weft_error *err)
{
    weft_autofree char *exec =
        weft_asprintf("apiVersion: " V1 ", command: \"%s\"%s", script_of("helper", script), more);
    return load(exec, ret, err);
}

static void test_token(void)
{
    weft_auto(weft_kube_config_free) struct weft_kube_config *c = NULL;
    struct weft_error err = {0};
    /* arguments, variables (over inherited ones) and the info reach it */
    (void)setenv("WEFT_TEST_VAR", "inherited", 1);
    const int rc = load_script(
        "test \"$1 $2\" = 'get token' && test \"$WEFT_TEST_VAR\" = ours && test -n \"$PATH\" &&\n"
        "case $KUBERNETES_EXEC_INFO in *'\"server\":\"https://h:1\"'*'\"Y2E=\"'*) ;; *) exit 9 ;; "
        "esac &&\n"
        "echo '" HEAD "{\"token\":\"from-helper\"}}'",
        ", args: [get, token], env: [{name: WEFT_TEST_VAR, value: ours}], provideClusterInfo: "
        "true, interactiveMode: IfAvailable",
        &c, &err);
    (void)unsetenv("WEFT_TEST_VAR");
    if (!CHECK_INT(rc, 0)) {
        (void)fprintf(stderr, "%s\n", err.message);
        return;
    }
    CHECK(weft_secret_eq(&c->token, "from-helper", 11));
}

static void test_certificate_and_folder(void)
{
    weft_auto(weft_kube_config_free) struct weft_kube_config *c = NULL;
    (void)script_of("relative",
                    "echo '" HEAD "{\"clientCertificateData\":\"C\",\"clientKeyData\":\"K\"}}'");
    CHECK_INT(load("apiVersion: " V1 ", command: ./relative", &c, NULL), 0);
    if (c != NULL) {
        CHECK_STR(c->cert.bytes, "C");
        CHECK(weft_secret_eq(&c->key, "K", 1));
        CHECK(!weft_secret_is_set(&c->token));
    }
}

static void test_refused(void)
{
    static const struct {
        const char *script, *more;
        int code;
        const char *message;
    } cases[] = {
        {"exit 3", "", -EACCES, "/helper: exit status 3"},
        {"echo s3cret", "", -EBADMSG, "printed no ExecCredential of " V1},
        {"echo "
         "'{\"kind\":\"ExecCredential\",\"apiVersion\":\"x\",\"status\":{\"token\":\"s3cret\"}}'",
         "", -EBADMSG, "printed no ExecCredential"},
        {"echo '" HEAD "{}}'", "", -EBADMSG, "neither a token nor a certificate"},
        {"echo '" HEAD "{\"clientKeyData\":\"s3cret\",\"token\":\"t\"}}'", "", -EBADMSG,
         "neither a token nor a certificate"},
        {"echo '" HEAD "{\"token\":\"s3cret words\"}}'", "", -EINVAL, "no token in it"},
        {"head -c 400000 /dev/zero", "", -EFBIG, "/helper"},
        {"", ", interactiveMode: Always", -ENOTSUP, "ask a person"},
        {"", ", args: [1]", -EINVAL, "at most 64 strings"},
        {"", ", env: [{name: x}]", -EINVAL, "pairs of name and value"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
        struct weft_kube_config *c = NULL;
        struct weft_error err = {0};
        CHECK_INT(load_script(cases[i].script, cases[i].more, &c, &err), cases[i].code);
        CHECK_CONTAINS(err.message, cases[i].message);
        CHECK(strstr(err.message, "s3cret") == NULL);
        weft_kube_config_free(c);
    }
    struct weft_kube_config *c = NULL;
    struct weft_error err = {0};
    CHECK_INT(load("apiVersion: " V1 ", command: weft-no-such-helper", &c, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "weft-no-such-helper");
    weft_kube_config_free(c);
}

/* ---- in the background ---- */

struct gate {
    const char *token; /* the one that is let in */
    _Atomic unsigned refused;
};

static void answer(void *data, const struct fake_request *request, struct fake_reply *reply)
{
    struct gate *gate = data;
    char line[64];
    (void)snprintf(line, sizeof(line), "\r\nAuthorization: Bearer %s\r\n", gate->token);
    *reply = (struct fake_reply){.status = 200, .body = "{}"};
    if (strstr(request->headers, line) == NULL) {
        gate->refused++;
        *reply = (struct fake_reply){.status = 401, .body = "{\"reason\":\"Unauthorized\"}"};
    }
}

struct outcome {
    bool done;
    int status;
    bool retryable;
};

static void on_done(void *data, const struct weft_kube_result *result)
{
    struct outcome *o = data;
    *o = (struct outcome){true, result->status, result->error.retryable};
}

static struct outcome get(struct fake_rig *rig, struct weft_kube_client *client)
{
    struct outcome o = {0};
    const struct weft_kube_op op = {
        .verb = WEFT_KUBE_GET, .path = "/x", .on_done = on_done, .data = &o};
    CHECK_INT(weft_kube_submit(client, &op, NULL, NULL), 0);
    CHECK(weft_loop_run_until(rig->loop, &o.done, 10 * WEFT_NS_PER_S));
    return o;
}

/* The helper prints token-N for its Nth run; the credential lives for seconds. */
static struct weft_kube_client *counting_client(struct fake_rig *rig, const char *seconds)
{
    char count[160];
    (void)snprintf(count, sizeof(count), "%s/count", weft_test_dir());
    CHECK_INT(weft_file_replace(count, "0", 1, 0600, NULL), 0);
    weft_autofree char *script =
        weft_asprintf("n=$(($(cat %s) + 1)); echo $n > %s\n"
                      "echo '" HEAD "{\"token\":\"token-'$n'\",\"expirationTimestamp\":\"'"
                      "$(date -u -d '+%s seconds' +%%Y-%%m-%%dT%%H:%%M:%%SZ)'\"}}'",
                      count, count, seconds);
    weft_autofree char *user =
        weft_asprintf("exec: {apiVersion: " V1 ", command: \"%s\"}", script_of("counter", script));
    return fake_rig_client(rig, NULL, "", user);
}

static void test_refused_credential(void)
{
    struct gate gate = {.token = "token-2"};
    struct fake_rig rig;
    fake_rig_open(&rig, answer, &gate);
    struct weft_kube_client *client = counting_client(&rig, "3600");
    struct weft_kube_config *config = client->config;
    /* the first run was just now: not again within ten seconds */
    struct outcome o = get(&rig, client);
    CHECK_INT(o.status, 401);
    CHECK(!o.retryable);
    const int64_t later = weft_clock_monotonic(weft_clock_system()) + 11 * WEFT_NS_PER_S;
    CHECK(weft_kube_exec_refresh(config, rig.loop, later, true));
    CHECK(weft_kube_exec_refresh(config, rig.loop, later, true)); /* one at a time */
    for (int i = 0; i < 500 && !weft_secret_eq(&config->token, "token-2", 7); i++) {
        const bool never = false;
        (void)weft_loop_run_until(rig.loop, &never, 10 * WEFT_NS_PER_MS);
    }
    o = get(&rig, client);
    CHECK_INT(o.status, 200);
    CHECK_INT(gate.refused, 1);
    weft_kube_client_free(client);
    fake_rig_close(&rig);
}

static void test_due(void)
{
    struct gate gate = {.token = "token-1"};
    struct fake_rig rig;
    fake_rig_open(&rig, answer, &gate);
    struct weft_kube_client *client = counting_client(&rig, "400");
    struct weft_kube_config *config = client->config;
    const int64_t now = weft_clock_monotonic(weft_clock_system());
    /* due after three quarters of 400 s (which the script's clock may have cut by up to one) */
    CHECK(!weft_kube_exec_refresh(config, rig.loop, now + 280 * WEFT_NS_PER_S, false));
    CHECK(weft_kube_exec_refresh(config, rig.loop, now + 301 * WEFT_NS_PER_S, false));
    CHECK_INT(get(&rig, client).status, 200); /* nobody waits for the helper */
    weft_kube_client_free(client);            /* also while it runs */
    fake_rig_close(&rig);
}

WEFT_SUITE(kube_exec, {"token", test_token},
           {"certificate_and_folder", test_certificate_and_folder}, {"refused", test_refused},
           {"refused_credential", test_refused_credential}, {"due", test_due})
