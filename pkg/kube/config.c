/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the configuration. The files it names are config-files.c's. */
#include "pkg/kube/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/file.h"
#include "pkg/base/str.h"
#include "pkg/kube/config-internal.h"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

void weft_kube_config_free(struct weft_kube_config *config)
{
    if (config == NULL) {
        return;
    }
    weft_free(config->path);
    weft_free(config->server);
    weft_free(config->host);
    weft_free(config->port);
    weft_free(config->ns);
    weft_free(config->tls_server_name);
    weft_secret_free_bytes(config->proxy_url, /* may hold a password */
                           config->proxy_url != NULL ? strlen(config->proxy_url) : 0);
    weft_free(config->warning);
    weft_free(config->ca.file);
    weft_free(config->cert.file);
    weft_free(config->key_file);
    weft_free(config->token_file);
    weft_free(config->ca.bytes);
    weft_free(config->cert.bytes);
    weft_free(config->username);
    weft_kube_exec_free(config->exec);
    weft_secret_done(&config->key);
    weft_secret_done(&config->token);
    weft_secret_done(&config->password);
    weft_free(config);
}

const char *weft_kube_config_server(const struct weft_kube_config *config)
{
    return config->server;
}

const char *weft_kube_config_namespace(const struct weft_kube_config *config)
{
    return config->ns != NULL ? config->ns : "default";
}

const char *weft_kube_config_warning(const struct weft_kube_config *config)
{
    return config->warning;
}

/* ---- the server's address ---- */

static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
           strncmp(host, "127.", 4) == 0;
}

/* Visible ASCII without what would change how a URL is read. */
static bool is_plain(struct weft_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] <= ' ' || s.data[i] > '~' || strchr("\"\\<>@?#%", s.data[i]) != NULL) {
            return false;
        }
    }
    return true;
}

/* "host", "host:port", "[v6]" or "[v6]:port". */
static int split_authority(struct weft_str authority, struct weft_str *ret_host,
                           struct weft_str *ret_port)
{
    struct weft_str rest;
    if (weft_str_starts(authority, "[")) {
        const char *end = memchr(authority.data, ']', authority.len);
        if (end == NULL) {
            return -EINVAL;
        }
        *ret_host = (struct weft_str){authority.data + 1, (size_t)(end - authority.data) - 1};
        rest = (struct weft_str){end + 1, authority.len - ret_host->len - 2};
    } else {
        const char *colon = memchr(authority.data, ':', authority.len);
        const size_t len = colon != NULL ? (size_t)(colon - authority.data) : authority.len;
        *ret_host = (struct weft_str){authority.data, len};
        rest = (struct weft_str){authority.data + len, authority.len - len};
    }
    *ret_port = (struct weft_str){0};
    if (rest.len > 0) {
        int64_t port = 0;
        *ret_port = (struct weft_str){rest.data + 1, rest.len - 1};
        if (rest.data[0] != ':' || weft_parse_i64(*ret_port, 1, 65535, &port) < 0) {
            return -EINVAL;
        }
    }
    return ret_host->len > 0 ? 0 : -EINVAL;
}

static int store_server(struct weft_kube_config *config, struct weft_str url, struct weft_str host,
                        struct weft_str port, struct weft_error *err)
{
    config->server = weft_strndup(url.data, url.len);
    config->host = weft_strndup(host.data, host.len);
    config->port =
        port.len > 0 ? weft_strndup(port.data, port.len) : weft_strdup(config->tls ? "443" : "80");
    if (config->server == NULL || config->host == NULL || config->port == NULL) {
        return weft_err_nomem(err);
    }
    if (!config->tls && !is_loopback(config->host)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "http:// is allowed for a server on this machine only");
    }
    return 0;
}

int weft_kube_config_set_server(struct weft_kube_config *config, const char *text,
                                struct weft_error *err)
{
    struct weft_str url = weft_str(text);
    config->tls = weft_str_starts(url, "https://");
    const size_t skip = config->tls ? 8 : 7;
    if ((!config->tls && !weft_str_starts(url, "http://")) || !is_plain(url)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "the server must be https://HOST[:PORT][/PATH]");
    }
    while (url.len > skip && url.data[url.len - 1] == '/') {
        url.len--;
    }
    struct weft_str authority = {url.data + skip, url.len - skip};
    const char *slash = memchr(authority.data, '/', authority.len);
    authority.len = slash != NULL ? (size_t)(slash - authority.data) : authority.len;
    struct weft_str host = {0};
    struct weft_str port = {0};
    if (split_authority(authority, &host, &port) < 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "the server must be https://HOST[:PORT][/PATH]");
    }
    return store_server(config, url, host, port, err);
}

/* ---- where it comes from ---- */

static int load_file(const char *path, const char *context, struct weft_kube_config **ret_config,
                     struct weft_error *err)
{
    char *text = NULL;
    size_t len = 0;
    int rc = weft_file_read(path, WEFT_KUBE_CONFIG_MAX, &text, &len, err);
    if (rc < 0) {
        return rc;
    }
    weft_auto(weft_kube_config_free) struct weft_kube_config *config = NULL;
    rc = weft_kube_config_parse(text, len, path, context, &config, err);
    weft_secret_free_bytes(text, len);
    rc = rc < 0 ? rc : weft_kube_config_resolve(config, err);
    if (rc == 0) {
        *ret_config = weft_steal(&config);
    }
    return rc;
}

/* The pod's namespace is a courtesy: without the file it is "default". */
static void read_namespace(struct weft_kube_config *config, const char *dir)
{
    weft_autofree char *path = weft_asprintf("%s/namespace", dir);
    weft_autofree char *text = NULL;
    size_t len = 0;
    if (path != NULL && weft_file_read(path, 256, &text, &len, NULL) == 0) {
        const struct weft_str name = weft_str_trim((struct weft_str){text, len});
        config->ns = name.len > 0 ? weft_strndup(name.data, name.len) : NULL;
    }
}

int weft_kube_config_in_cluster(const char *dir, struct weft_kube_config **ret_config,
                                struct weft_error *err)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    if (host == NULL || port == NULL || host[0] == '\0' || port[0] == '\0') {
        return weft_err_set(err, -ENOENT, WEFT_ERR_CONFIG,
                            "not in a pod: KUBERNETES_SERVICE_HOST and _PORT are not set");
    }
    dir = dir != NULL ? dir : SERVICE_ACCOUNT;
    const bool v6 = strchr(host, ':') != NULL;
    weft_autofree char *url = weft_asprintf(v6 ? "https://[%s]:%s" : "https://%s:%s", host, port);
    weft_auto(weft_kube_config_free) struct weft_kube_config *config =
        weft_calloc(1, sizeof(*config));
    if (url == NULL || config == NULL) {
        return weft_err_nomem(err);
    }
    config->path = weft_strdup(dir);
    config->token_file = weft_asprintf("%s/token", dir);
    config->ca.file = weft_asprintf("%s/ca.crt", dir);
    if (config->path == NULL || config->token_file == NULL || config->ca.file == NULL) {
        return weft_err_nomem(err);
    }
    read_namespace(config, dir);
    int rc = weft_kube_config_set_server(config, url, err);
    rc = rc < 0 ? weft_err_wrap(err, rc, "KUBERNETES_SERVICE_HOST and _PORT")
                : weft_kube_config_resolve(config, err);
    if (rc == 0) {
        *ret_config = weft_steal(&config);
    }
    return rc;
}

static int load_home(const char *context, struct weft_kube_config **ret_config,
                     struct weft_error *err)
{
    const char *home = getenv("HOME");
    weft_autofree char *path = weft_asprintf("%s/.kube/config", home != NULL ? home : "");
    if (path == NULL) {
        return weft_err_nomem(err);
    }
    const int rc = load_file(path, context, ret_config, err);
    return rc == -ENOENT ? weft_err_set(err, rc, WEFT_ERR_CONFIG,
                                        "no cluster is configured: no --kubeconfig, not in a pod, "
                                        "no KUBECONFIG, no %s",
                                        path)
                         : rc;
}

int weft_kube_config_load(const char *path, const char *context,
                          struct weft_kube_config **ret_config, struct weft_error *err)
{
    if (path != NULL) {
        return load_file(path, context, ret_config, err);
    }
    if (getenv("KUBERNETES_SERVICE_HOST") != NULL) {
        return weft_kube_config_in_cluster(NULL, ret_config, err);
    }
    const char *env = getenv("KUBECONFIG");
    if (env == NULL || env[0] == '\0') {
        return load_home(context, ret_config, err);
    }
    if (strchr(env, ':') != NULL) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "KUBECONFIG names several files; name one with --kubeconfig");
    }
    return load_file(env, context, ret_config, err);
}
