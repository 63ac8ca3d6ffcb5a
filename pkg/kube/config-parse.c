/* SPDX-License-Identifier: Apache-2.0 */
/* A kubeconfig's text to struct weft_kube_config. Pure: the files it names are read by
 * weft_kube_config_resolve. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/base64.h"
#include "pkg/base/str.h"
#include "pkg/json/json.h"
#include "pkg/kube/config-internal.h"
#include "pkg/yaml/yaml.h"

/* The three parts of the context in use; each an object, or NULL. */
struct parts {
    const struct weft_json *context, *cluster, *user;
};

static int copy_text(char **ret, const char *text, struct weft_error *err)
{
    char *copy = weft_strdup(text);
    if (copy == NULL) {
        return weft_err_nomem(err);
    }
    weft_free(*ret);
    *ret = copy;
    return 0;
}

/* The member named what of the entry called name in the list of such: {name: name, what: {…}}. */
static int find_named(const struct weft_json *root, const char *what, const char *name,
                      const struct weft_json **ret, struct weft_error *err)
{
    char list_key[16];
    (void)snprintf(list_key, sizeof(list_key), "%ss", what);
    const struct weft_json *list = NULL;
    int rc = weft_json_get_array(root, list_key, &list, err);
    for (size_t i = 0; rc > 0 && i < weft_json_count(list); i++) {
        const struct weft_json *entry = weft_json_at(list, i);
        const char *entry_name = weft_json_string(weft_json_get(entry, "name"));
        if (entry_name != NULL && strcmp(entry_name, name) == 0) {
            rc = weft_json_get_object(entry, what, ret, err);
            return rc == 0 ? weft_json_error(entry, err, "%s is missing", what) : rc;
        }
    }
    return rc < 0 ? rc
                  : weft_json_error(list != NULL ? list : root, err, "there is no %s named \"%s\"",
                                    what, name);
}

static int find_parts(const struct weft_json *root, const char *context, struct parts *ret,
                      struct weft_error *err)
{
    const char *name = context;
    int rc = name == NULL ? weft_json_get_string(root, "current-context", &name, err) : 0;
    if (rc < 0) {
        return rc;
    }
    if (name == NULL || name[0] == '\0') {
        return weft_json_error(root, err, "no current-context is set");
    }
    rc = find_named(root, "context", name, &ret->context, err);
    if (rc < 0) {
        return rc;
    }
    const char *cluster = NULL;
    const char *user = NULL;
    rc = weft_json_get_string(ret->context, "cluster", &cluster, err);
    if (rc == 0) {
        return weft_json_error(ret->context, err, "cluster is missing");
    }
    if (rc > 0) {
        rc = find_named(root, "cluster", cluster, &ret->cluster, err);
    }
    if (rc > 0) {
        rc = weft_json_get_string(ret->context, "user", &user, err);
    }
    if (rc > 0 && user[0] != '\0') {
        rc = find_named(root, "user", user, &ret->user, err);
    }
    return rc < 0 ? rc : 0;
}

/* ---- fields ---- */

/* A string member into owned *ret, if it is there and not empty. */
static int take_text(const struct weft_json *object, const char *key, char **ret,
                     struct weft_error *err)
{
    const char *text = NULL;
    const int rc = weft_json_get_string(object, key, &text, err);
    if (rc <= 0 || text[0] == '\0') {
        return rc < 0 ? rc : 0;
    }
    return copy_text(ret, text, err);
}

/* A file name; a relative one counts from the kubeconfig's folder. */
static int take_file(const struct weft_kube_config *config, const struct weft_json *object,
                     const char *key, char **ret, struct weft_error *err)
{
    const int rc = take_text(object, key, ret, err);
    if (rc < 0 || *ret == NULL || (*ret)[0] == '/') {
        return rc;
    }
    const char *slash = strrchr(config->path, '/');
    if (slash == NULL) {
        return 0;
    }
    char *full = weft_asprintf("%.*s/%s", (int)(slash - config->path), config->path, *ret);
    if (full == NULL) {
        return weft_err_nomem(err);
    }
    weft_free(*ret);
    *ret = full;
    return 0;
}

/* A "…-data" member: base64. 1 if it was there. */
static int take_data(const struct weft_json *object, const char *key, char **ret, size_t *ret_len,
                     struct weft_error *err)
{
    const char *text = NULL;
    int rc = weft_json_get_string(object, key, &text, err);
    if (rc <= 0 || text[0] == '\0') {
        return rc < 0 ? rc : 0;
    }
    rc = weft_base64_decode(text, strlen(text), ret, ret_len);
    if (rc == -EINVAL) {
        return weft_json_error(weft_json_get(object, key), err, "no valid base64");
    }
    return rc < 0 ? weft_err_nomem(err) : 1;
}

/* A member "<key>-data" or else a file "<key>". */
static int take_blob(const struct weft_kube_config *config, const struct weft_json *object,
                     const char *key, struct weft_kube_blob *ret, struct weft_error *err)
{
    char data_key[48];
    (void)snprintf(data_key, sizeof(data_key), "%s-data", key);
    const int rc = take_data(object, data_key, &ret->bytes, &ret->len, err);
    if (rc != 0) {
        return rc < 0 ? rc : 0;
    }
    return take_file(config, object, key, &ret->file, err);
}

static int take_secret(const struct weft_json *object, const char *key, struct weft_secret *ret,
                       struct weft_error *err)
{
    const char *text = NULL;
    const int rc = weft_json_get_string(object, key, &text, err);
    if (rc <= 0 || text[0] == '\0') {
        return rc < 0 ? rc : 0;
    }
    return weft_secret_set(ret, text, strlen(text)) < 0 ? weft_err_nomem(err) : 0;
}

static int take_key(struct weft_kube_config *config, const struct weft_json *user,
                    struct weft_error *err)
{
    weft_autofree char *bytes = NULL;
    size_t len = 0;
    int rc = take_data(user, "client-key-data", &bytes, &len, err);
    if (rc <= 0) {
        return rc < 0 ? rc : take_file(config, user, "client-key", &config->key_file, err);
    }
    rc = weft_secret_set(&config->key, bytes, len);
    explicit_bzero(bytes, len);
    return rc < 0 ? weft_err_nomem(err) : 0;
}

/* ---- the cluster and the user ---- */

static int take_server(struct weft_kube_config *config, const struct weft_json *cluster,
                       struct weft_error *err)
{
    const char *server = NULL;
    int rc = weft_json_get_string(cluster, "server", &server, err);
    if (rc == 0) {
        return weft_json_error(cluster, err, "server is missing");
    }
    struct weft_error inner = {0};
    rc = rc > 0 ? weft_kube_config_set_server(config, server, &inner) : rc;
    if (rc == -EINVAL && inner.code != 0) {
        return weft_json_error(weft_json_get(cluster, "server"), err, "%s", inner.message);
    }
    return rc == -ENOMEM ? weft_err_nomem(err) : rc;
}

static bool is_visible(const char *text)
{
    for (; *text > ' ' && *text <= '~'; text++) {
    }
    return *text == '\0';
}

/* The schemes that client-go takes. What a proxy-url is, is never told: it may hold a password. */
static int take_proxy(struct weft_kube_config *config, const struct weft_json *cluster,
                      struct weft_error *err)
{
    static const char *const schemes[] = {"http://", "https://", "socks5://"};
    const int rc = take_text(cluster, "proxy-url", &config->proxy_url, err);
    if (rc < 0 || config->proxy_url == NULL) {
        return rc;
    }
    const char *const url = config->proxy_url;
    for (size_t i = 0; i < WEFT_ARRAY_LEN(schemes); i++) {
        const size_t len = strlen(schemes[i]);
        if (strncmp(url, schemes[i], len) == 0 && is_visible(url) && url[len] != '\0' &&
            strchr("/:?#@", url[len]) == NULL) {
            return 0;
        }
    }
    return weft_json_error(weft_json_get(cluster, "proxy-url"), err,
                           "the proxy must be http://, https:// or "
                           "socks5://[USER:PASSWORD@]HOST[:PORT]");
}

/* It stands for the host in URLs. */
static int take_server_name(struct weft_kube_config *config, const struct weft_json *cluster,
                            struct weft_error *err)
{
    const int rc = take_text(cluster, "tls-server-name", &config->tls_server_name, err);
    const char *const name = config->tls_server_name;
    if (rc < 0 || name == NULL) {
        return rc;
    }
    if (!is_visible(name) || strpbrk(name, "/?#%@\"<>\\") != NULL) {
        return weft_json_error(weft_json_get(cluster, "tls-server-name"), err,
                               "expected a host name");
    }
    return 0;
}

static int take_cluster(struct weft_kube_config *config, const struct weft_json *cluster,
                        struct weft_error *err)
{
    int rc = take_server(config, cluster, err);
    rc = rc < 0 ? rc : take_blob(config, cluster, "certificate-authority", &config->ca, err);
    rc = rc < 0 ? rc : take_server_name(config, cluster, err);
    rc = rc < 0 ? rc : take_proxy(config, cluster, err);
    rc = rc < 0 ? rc
                : weft_json_get_bool(cluster, "insecure-skip-tls-verify", &config->insecure, err);
    if (rc < 0 || !config->insecure) {
        return rc < 0 ? rc : 0;
    }
    if (config->ca.bytes != NULL || config->ca.file != NULL) {
        return weft_json_error(weft_json_get(cluster, "insecure-skip-tls-verify"), err,
                               "a certificate authority is given as well");
    }
    config->warning = weft_asprintf("%s: insecure-skip-tls-verify: the API server's certificate is "
                                    "not verified",
                                    config->path);
    return config->warning != NULL ? 0 : weft_err_nomem(err);
}

static int refuse_provider(const struct weft_json *user, struct weft_error *err)
{
    const struct weft_json *node = weft_json_get(user, "auth-provider");
    if (weft_json_type(node) != WEFT_JSON_OBJECT) {
        return 0;
    }
    (void)weft_json_error(node, err,
                          "not supported (nor by kubectl since 1.26); use exec, a token, "
                          "tokenFile or client certificate");
    if (err != NULL) {
        err->code = -ENOTSUP;
    }
    return -ENOTSUP;
}

static int take_exec(struct weft_kube_config *config, const struct weft_json *user,
                     struct weft_error *err)
{
    const struct weft_json *node = NULL;
    const int rc = weft_json_get_object(user, "exec", &node, err);
    if (rc <= 0) {
        return rc;
    }
    const char *slash = strrchr(config->path, '/');
    weft_autofree char *dir =
        slash != NULL ? weft_strndup(config->path, (size_t)(slash - config->path)) : NULL;
    if (slash != NULL && dir == NULL) {
        return weft_err_nomem(err);
    }
    return weft_kube_exec_parse(node, dir, &config->exec, err);
}

static int check_pair(const struct weft_kube_config *config, const struct weft_json *user,
                      struct weft_error *err)
{
    const bool cert = config->cert.bytes != NULL || config->cert.file != NULL;
    const bool key = weft_secret_is_set(&config->key) || config->key_file != NULL;
    if (cert != key) {
        return weft_json_error(user, err, "%s is given without %s",
                               cert ? "client-certificate" : "client-key",
                               cert ? "client-key" : "client-certificate");
    }
    return 0;
}

static int take_user(struct weft_kube_config *config, const struct weft_json *user,
                     struct weft_error *err)
{
    int rc = refuse_provider(user, err);
    rc = rc < 0 ? rc : take_exec(config, user, err);
    rc = rc < 0 ? rc : take_blob(config, user, "client-certificate", &config->cert, err);
    rc = rc < 0 ? rc : take_key(config, user, err);
    rc = rc < 0 ? rc : take_secret(user, "token", &config->token, err);
    rc = rc < 0 ? rc : take_file(config, user, "tokenFile", &config->token_file, err);
    rc = rc < 0 ? rc : take_text(user, "username", &config->username, err);
    rc = rc < 0 ? rc : take_secret(user, "password", &config->password, err);
    return rc < 0 ? rc : check_pair(config, user, err);
}

static int parse_root(struct weft_kube_config *config, const struct weft_json *root,
                      const char *context, struct weft_error *err)
{
    struct parts parts = {0};
    int rc = find_parts(root, context, &parts, err);
    rc = rc < 0 ? rc : take_text(parts.context, "namespace", &config->ns, err);
    rc = rc < 0 ? rc : take_cluster(config, parts.cluster, err);
    if (rc == 0 && parts.user != NULL) {
        rc = take_user(config, parts.user, err);
    }
    return rc;
}

int weft_kube_config_parse(const char *text, size_t len, const char *path, const char *context,
                           struct weft_kube_config **ret_config, struct weft_error *err)
{
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    weft_auto(weft_kube_config_free) struct weft_kube_config *config =
        weft_calloc(1, sizeof(*config));
    if (config == NULL || (config->path = weft_strdup(path)) == NULL) {
        return weft_err_nomem(err);
    }
    int rc = weft_yaml_parse(text, len, path, &root, err);
    rc = rc < 0 ? rc : parse_root(config, root, context, err);
    if (rc == 0) {
        *ret_config = weft_steal(&config);
    }
    return rc;
}
