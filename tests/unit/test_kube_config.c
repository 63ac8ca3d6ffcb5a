/* SPDX-License-Identifier: Apache-2.0 */
/* Kubeconfigs and service accounts: what is taken, what is refused and with which place, and that
 * secrets stay secret. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "pkg/base/base64.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/kube/config-internal.h"
#include "tests/unit/unit.h"

static int parse(const char *text, const char *context, struct weft_kube_config **ret,
                 struct weft_error *err)
{
    return weft_kube_config_parse(text, strlen(text), "/etc/weft/kubeconfig", context, ret, err);
}

static const char two_contexts[] =
    "apiVersion: v1\n"
    "kind: Config\n"
    "preferences: {}\n"
    "current-context: prod\n"
    "contexts:\n"
    "- name: dev\n"
    "  context: {cluster: local, user: nobody}\n"
    "- name: prod\n"
    "  context: {cluster: far, user: robot, namespace: weft}\n"
    "clusters:\n"
    "- name: local\n"
    "  cluster: {server: \"http://127.0.0.1:8080/\", insecure-skip-tls-verify: true}\n"
    "- name: far\n"
    "  cluster:\n"
    "    server: https://api.example:6443/prefix/\n"
    "    certificate-authority: pki/ca.crt\n"
    "    tls-server-name: kubernetes\n"
    "    proxy-url: http://proxy.example:3128\n"
    "users:\n"
    "- name: nobody\n"
    "  user: {}\n"
    "- name: robot\n"
    "  user:\n"
    "    client-certificate-data: Y2VydA==\n"
    "    client-key-data: a2V5\n"
    "    token: s3cret-token\n"
    "    tokenFile: /var/token\n"
    "    username: u\n"
    "    password: p4ssword\n";

static void test_fields(void)
{
    weft_auto(weft_kube_config_free) struct weft_kube_config *c = NULL;
    struct weft_error err = {0};
    CHECK_INT(parse(two_contexts, NULL, &c, &err), 0);
    if (c == NULL) {
        (void)fprintf(stderr, "%s\n", err.message);
        return;
    }
    CHECK_STR(weft_kube_config_server(c), "https://api.example:6443/prefix");
    CHECK_STR(c->host, "api.example");
    CHECK_STR(c->port, "6443");
    CHECK(c->tls && !c->insecure);
    CHECK_STR(weft_kube_config_namespace(c), "weft");
    CHECK_STR(c->ca.file, "/etc/weft/pki/ca.crt"); /* from the kubeconfig's folder */
    CHECK_STR(c->tls_server_name, "kubernetes");
    CHECK_STR(c->proxy_url, "http://proxy.example:3128");
    CHECK_STR(c->cert.bytes, "cert");
    CHECK(weft_secret_eq(&c->key, "key", 3));
    CHECK(weft_secret_eq(&c->token, "s3cret-token", 12));
    CHECK_STR(c->token_file, "/var/token");
    CHECK_STR(c->username, "u");
    CHECK(weft_secret_eq(&c->password, "p4ssword", 8));
    CHECK(weft_kube_config_warning(c) == NULL);
}

static void test_other_context(void)
{
    weft_auto(weft_kube_config_free) struct weft_kube_config *c = NULL;
    CHECK_INT(parse(two_contexts, "dev", &c, NULL), 0);
    CHECK(c != NULL && !c->tls && c->insecure);
    if (c != NULL) {
        CHECK_STR(weft_kube_config_server(c), "http://127.0.0.1:8080");
        CHECK_STR(weft_kube_config_namespace(c), "default");
        CHECK_CONTAINS(weft_kube_config_warning(c), "/etc/weft/kubeconfig");
        CHECK(!weft_secret_is_set(&c->token));
    }
}

/* A kubeconfig of one context with these insides. */
static void check_refused(const char *cluster, const char *user, int code, const char *message)
{
    weft_autofree char *text = weft_asprintf("current-context: c\n"
                                             "contexts:\n"
                                             "- {name: c, context: {cluster: k, user: u}}\n"
                                             "clusters:\n"
                                             "- name: k\n"
                                             "  cluster: {%s}\n"
                                             "users:\n"
                                             "- name: u\n"
                                             "  user: {%s}\n",
                                             cluster, user);
    struct weft_kube_config *c = NULL;
    struct weft_error err = {0};
    CHECK_INT(parse(text, NULL, &c, &err), code);
    CHECK_CONTAINS(err.message, message);
    CHECK_CONTAINS(err.message, "/etc/weft/kubeconfig:"); /* with its line */
    CHECK(strstr(err.message, "s3cret") == NULL);
    CHECK_INT(err.code, code);
    weft_kube_config_free(c);
}

static void test_refused_parts(void)
{
    const char *good = "server: \"https://h\"";
    check_refused("", "", -EINVAL, ":6: clusters[0].cluster: server is missing");
    check_refused("server: 5", "", -EINVAL, "clusters[0].cluster.server");
    check_refused("server: \"ftp://h\"", "", -EINVAL, "the server must be https://");
    check_refused("server: \"https://\"", "", -EINVAL, "the server must be https://");
    check_refused("server: \"https://h:0\"", "", -EINVAL, "the server must be https://");
    check_refused("server: \"https://h:65536\"", "", -EINVAL, "the server must be https://");
    check_refused("server: \"https://h:6443x\"", "", -EINVAL, "the server must be https://");
    check_refused("server: \"https://[::1\"", "", -EINVAL, "the server must be https://");
    check_refused("server: \"https://user:pw@h\"", "", -EINVAL, "the server must be https://");
    check_refused("server: \"https://h/?x\"", "", -EINVAL, "the server must be https://");
    check_refused("server: \"http://h:8080\"", "", -EINVAL, "on this machine only");
    check_refused("server: \"https://h\", certificate-authority-data: \"?\"", "", -EINVAL,
                  "certificate-authority-data: no valid base64");
    check_refused("server: \"https://h\", insecure-skip-tls-verify: yes", "", -EINVAL,
                  "insecure-skip-tls-verify");
    check_refused("server: \"https://h\", insecure-skip-tls-verify: true, "
                  "certificate-authority: ca.crt",
                  "", -EINVAL, "a certificate authority is given as well");
    check_refused("server: \"https://h\", proxy-url: \"foo://x:s3cret@h\"", "", -EINVAL,
                  ":6: clusters[0].cluster.proxy-url: the proxy must be http://, https:// or");
    check_refused("server: \"https://h\", proxy-url: \"h:3128\"", "", -EINVAL, "the proxy must be");
    check_refused("server: \"https://h\", proxy-url: \"http://\"", "", -EINVAL,
                  "the proxy must be");
    check_refused("server: \"https://h\", proxy-url: \"http://:1\"", "", -EINVAL,
                  "the proxy must be");
    check_refused("server: \"https://h\", proxy-url: \"http://a b\"", "", -EINVAL,
                  "the proxy must be");
    check_refused("server: \"https://h\", tls-server-name: \"a b\"", "", -EINVAL,
                  ":6: clusters[0].cluster.tls-server-name: expected a host name");
    check_refused("server: \"https://h\", tls-server-name: \"a/b\"", "", -EINVAL,
                  "expected a host name");
    check_refused(good, "client-certificate: c.crt", -EINVAL, "without client-key");
    check_refused(good, "client-key-data: a2V5", -EINVAL, "without client-certificate");
    check_refused(good, "token: [s3cret]", -EINVAL, "users[0].user.token");
    check_refused(good, "exec: {command: aws}", -EINVAL, "users[0].user.exec: apiVersion");
    check_refused(good, "auth-provider: {name: gcp}", -ENOTSUP, "auth-provider");
}

static void test_refused_whole(void)
{
    static const struct {
        const char *text, *context, *message;
    } cases[] = {
        {"", NULL, "no current-context is set"},
        {"current-context: \"\"\n", NULL, "no current-context is set"},
        {"current-context: x\n", NULL, "there is no context named \"x\""},
        {two_contexts, "staging", "there is no context named \"staging\""},
        {"current-context: x\ncontexts: {}\n", NULL, "contexts"},
        {"current-context: x\ncontexts: [{name: x}]\n", NULL, "context is missing"},
        {"current-context: x\ncontexts: [{name: x, context: {user: u}}]\n", NULL,
         "cluster is missing"},
        {"current-context: x\ncontexts: [{name: x, context: {cluster: k}}]\n", NULL,
         "there is no cluster named \"k\""},
        {"current-context: x\ncontexts: [{name: x, context: {cluster: k, user: u}}]\n"
         "clusters: [{name: k, cluster: {server: \"https://h\"}}]\n",
         NULL, "there is no user named \"u\""},
        {"a: &x [*x]\n", NULL, "/etc/weft/kubeconfig:1"},
        {"\t", NULL, "/etc/weft/kubeconfig:1"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
        struct weft_kube_config *c = NULL;
        struct weft_error err = {0};
        CHECK_INT(parse(cases[i].text, cases[i].context, &c, &err), -EINVAL);
        CHECK_CONTAINS(err.message, cases[i].message);
        weft_kube_config_free(c);
    }
}

static void test_servers(void)
{
    static const struct {
        const char *url, *host, *port;
    } cases[] = {
        {"https://10.0.0.1", "10.0.0.1", "443"},
        {"https://[fd00::1]:6443", "fd00::1", "6443"},
        {"https://[::1]", "::1", "443"},
        {"http://localhost:8001", "localhost", "8001"},
        {"http://[::1]:8001/", "::1", "8001"},
        {"https://rancher.example/k8s/clusters/c-1", "rancher.example", "443"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
        weft_auto(weft_kube_config_free) struct weft_kube_config *c = weft_calloc(1, sizeof(*c));
        CHECK(c != NULL);
        if (c != NULL && CHECK_INT(weft_kube_config_set_server(c, cases[i].url, NULL), 0)) {
            CHECK_STR(c->host, cases[i].host);
            CHECK_STR(c->port, cases[i].port);
        }
    }
}

/* ---- files ---- */

static void put_file(const char *dir, const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    CHECK_INT(weft_file_replace(path, text, strlen(text), 0600, NULL), 0);
}

static void test_load_file(void)
{
    char dir[128];
    (void)snprintf(dir, sizeof(dir), "%s/kc", weft_test_dir());
    CHECK_INT(mkdir(dir, 0700), 0);
    put_file(dir, "config",
             "current-context: c\n"
             "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
             "clusters: [{name: k, cluster: {server: \"https://h\", certificate-authority: "
             "ca.crt}}]\n"
             "users: [{name: u, user: {client-certificate: u.crt, client-key: u.key, tokenFile: "
             "token}}]\n");
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/config", dir);
    struct weft_kube_config *c = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_kube_config_load(path, NULL, &c, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "/kc/ca.crt");
    put_file(dir, "ca.crt", "the ca");
    put_file(dir, "u.crt", "the cert");
    put_file(dir, "u.key", "the key");
    put_file(dir, "token", " \n");
    CHECK_INT(weft_kube_config_load(path, NULL, &c, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "/kc/token: no token in it");
    put_file(dir, "token", "two words");
    CHECK_INT(weft_kube_config_load(path, NULL, &c, &err), -EINVAL);
    put_file(dir, "token", "tok-1\n");
    CHECK_INT(weft_kube_config_load(path, NULL, &c, &err), 0);
    if (c != NULL) {
        CHECK_STR(c->ca.bytes, "the ca");
        CHECK_STR(c->cert.bytes, "the cert");
        CHECK(weft_secret_eq(&c->key, "the key", 7));
        CHECK(weft_secret_eq(&c->token, "tok-1", 5));
    }
    weft_kube_config_free(c);
    c = NULL;
    CHECK_INT(weft_kube_config_load("/nonexistent/kubeconfig", NULL, &c, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "/nonexistent/kubeconfig");
}

static void test_in_cluster(void)
{
    char dir[128];
    (void)snprintf(dir, sizeof(dir), "%s/sa", weft_test_dir());
    CHECK_INT(mkdir(dir, 0700), 0);
    put_file(dir, "token", "pod-token");
    put_file(dir, "ca.crt", "cluster ca");
    put_file(dir, "namespace", "weft-system\n");
    struct weft_kube_config *c = NULL;
    struct weft_error err = {0};
    (void)unsetenv("KUBERNETES_SERVICE_HOST");
    CHECK_INT(weft_kube_config_in_cluster(dir, &c, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "not in a pod");
    (void)setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    (void)setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    CHECK_INT(weft_kube_config_in_cluster(dir, &c, &err), 0);
    if (c != NULL) {
        CHECK_STR(weft_kube_config_server(c), "https://[fd00::1]:443");
        CHECK_STR(weft_kube_config_namespace(c), "weft-system");
        CHECK_STR(c->ca.bytes, "cluster ca");
        CHECK(weft_secret_eq(&c->token, "pod-token", 9));
    }
    weft_kube_config_free(c);
    c = NULL;
    CHECK_INT(weft_kube_config_in_cluster("/nonexistent", &c, &err), -ENOENT);
    (void)unsetenv("KUBERNETES_SERVICE_HOST");
    (void)unsetenv("KUBERNETES_SERVICE_PORT");
}

/* Re-read at most each minute, and at once when forced; a bad file keeps the old token. */
static void test_token_age(void)
{
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/rotating", weft_test_dir());
    put_file(weft_test_dir(), "rotating", "one");
    weft_auto(weft_kube_config_free) struct weft_kube_config *c = weft_calloc(1, sizeof(*c));
    CHECK(c != NULL);
    if (c == NULL) {
        return;
    }
    CHECK_INT(weft_kube_config_refresh_token(c, 5, true, NULL), 0); /* no file, nothing to do */
    c->path = weft_strdup("sa");
    c->token_file = weft_strdup(path);
    const int64_t start = 1000 * WEFT_NS_PER_S;
    CHECK_INT(weft_kube_config_refresh_token(c, start, false, NULL), 1);
    put_file(weft_test_dir(), "rotating", "two");
    CHECK_INT(weft_kube_config_refresh_token(c, start + 59 * WEFT_NS_PER_S, false, NULL), 0);
    CHECK(weft_secret_eq(&c->token, "one", 3));
    CHECK_INT(weft_kube_config_refresh_token(c, start + 60 * WEFT_NS_PER_S, false, NULL), 1);
    CHECK(weft_secret_eq(&c->token, "two", 3));
    put_file(weft_test_dir(), "rotating", "three");
    CHECK_INT(weft_kube_config_refresh_token(c, start + 61 * WEFT_NS_PER_S, true, NULL), 1);
    CHECK_INT(weft_kube_config_refresh_token(c, start + 62 * WEFT_NS_PER_S, true, NULL), 0);
    put_file(weft_test_dir(), "rotating", "");
    CHECK_INT(weft_kube_config_refresh_token(c, start + 63 * WEFT_NS_PER_S, true, NULL), -EINVAL);
    CHECK(weft_secret_eq(&c->token, "three", 5));
}

static void test_memory(void)
{
    int failures = 0;
    for (uint64_t nth = 1; nth < 400; nth++) {
        struct weft_kube_config *c = NULL;
        (void)weft_mem_fail_after(nth);
        const int rc = parse(two_contexts, NULL, &c, NULL);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || rc == -ENOMEM);
        CHECK((rc == 0) == (c != NULL));
        failures += rc < 0;
        weft_kube_config_free(c);
    }
    CHECK(failures > 20);
}

/* ---- what it stands on ---- */

static void test_secret(void)
{
    struct weft_secret s = {0};
    CHECK(!weft_secret_is_set(&s));
    CHECK_STR(weft_secret_show(&s), "unset");
    CHECK_INT(weft_secret_set(&s, "hunter2", 7), 0);
    CHECK_STR(weft_secret_show(&s), "set, not shown");
    CHECK(weft_secret_eq(&s, "hunter2", 7));
    CHECK(!weft_secret_eq(&s, "hunter", 6));
    size_t len = 0;
    CHECK_STR(weft_secret_reveal(&s, &len), "hunter2");
    CHECK_INT(len, 7);
    (void)weft_mem_fail_after(1);
    CHECK_INT(weft_secret_set(&s, "x", 1), -ENOMEM);
    (void)weft_mem_fail_after(0);
    CHECK(weft_secret_eq(&s, "hunter2", 7));
    weft_secret_done(&s);
    weft_secret_done(&s);
    weft_secret_free_bytes(NULL, 0);
}

static void test_base64(void)
{
    /* RFC 4648, section 10 */
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(pairs); i++) {
        weft_autofree char *encoded = weft_base64_encode(pairs[i][0], strlen(pairs[i][0]));
        CHECK_STR(encoded, pairs[i][1]);
        weft_autofree char *decoded = NULL;
        size_t len = 0;
        CHECK_INT(weft_base64_decode(pairs[i][1], strlen(pairs[i][1]), &decoded, &len), 0);
        CHECK_STR(decoded, pairs[i][0]);
        CHECK_INT(len, strlen(pairs[i][0]));
    }
    weft_autofree char *wrapped = NULL;
    size_t len = 0;
    CHECK_INT(weft_base64_decode(" Zm9v\r\nYmFy\n", 12, &wrapped, &len), 0);
    CHECK_STR(wrapped, "foobar");
    static const char *const bad[] = {"Z", "Zg", "Zg=", "Zg=a", "====", "Z===", "Zm9v!", "Zm-_"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(bad); i++) {
        char *out = NULL;
        CHECK_INT(weft_base64_decode(bad[i], strlen(bad[i]), &out, &len), -EINVAL);
    }
}

WEFT_SUITE(kube_config, {"fields", test_fields}, {"other_context", test_other_context},
           {"refused_parts", test_refused_parts}, {"refused_whole", test_refused_whole},
           {"servers", test_servers}, {"load_file", test_load_file},
           {"in_cluster", test_in_cluster}, {"token_age", test_token_age}, {"memory", test_memory},
           {"secret", test_secret}, {"base64", test_base64})
