/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a configuration names, and their rotation: tokens, the CA bundle, and client
 * certificates are all replaced under a running program. */
#include <errno.h>
#include <string.h>

#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/kube/config-internal.h"

/* ---- certificates ---- */

/* Takes bytes over: 1 if they are others than before, else 0. */
static int replace_blob(struct weft_kube_blob *blob, char *bytes, size_t len)
{
    if (blob->bytes != NULL && bytes != NULL && blob->len == len &&
        memcmp(blob->bytes, bytes, len) == 0) {
        weft_free(bytes);
        return 0;
    }
    weft_free(blob->bytes);
    blob->bytes = bytes;
    blob->len = len;
    return 1;
}

/* An empty file is one that is being written. */
static int read_file(const char *path, char **ret_bytes, size_t *ret_len, struct weft_error *err)
{
    const int rc = weft_file_read(path, WEFT_KUBE_CONFIG_FILE_MAX, ret_bytes, ret_len, err);
    if (rc == 0 && (*ret_bytes == NULL || *ret_len == 0)) {
        weft_free(weft_steal(ret_bytes));
        return weft_err_set(err, -ENODATA, WEFT_ERR_CONFIG, "%s: is empty", path);
    }
    return rc;
}

/* 1 if its file has something else now, 0 if not or if it has no file. */
static int read_blob(struct weft_kube_blob *blob, struct weft_error *err)
{
    char *bytes = NULL;
    size_t len = 0;
    if (blob->file == NULL) {
        return 0;
    }
    const int rc = read_file(blob->file, &bytes, &len, err);
    return rc < 0 ? rc : replace_blob(blob, bytes, len);
}

static int read_key(struct weft_kube_config *config, struct weft_error *err)
{
    char *bytes = NULL;
    size_t len = 0;
    if (config->key_file == NULL) {
        return 0;
    }
    int rc = read_file(config->key_file, &bytes, &len, err);
    if (rc < 0) {
        return rc;
    }
    if (!weft_secret_eq(&config->key, bytes, len)) {
        rc = weft_secret_set(&config->key, bytes, len) < 0 ? weft_err_nomem(err) : 1;
    }
    weft_secret_free_bytes(bytes, len);
    return rc;
}

/* ---- the token ---- */

/* A token goes into a header line. */
static bool is_token(struct weft_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] <= ' ' || s.data[i] > '~') {
            return false;
        }
    }
    return s.len > 0;
}

int weft_kube_config_set_token(struct weft_kube_config *config, struct weft_str token,
                               struct weft_error *err)
{
    if (!is_token(token)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s: no token in it",
                            config->token_file != NULL ? config->token_file : config->path);
    }
    if (weft_secret_eq(&config->token, token.data, token.len)) {
        return 0;
    }
    return weft_secret_set(&config->token, token.data, token.len) < 0 ? weft_err_nomem(err) : 1;
}

int weft_kube_config_refresh_token(struct weft_kube_config *config, int64_t now, bool force,
                                   struct weft_error *err)
{
    if (config->token_file == NULL || (!force && config->token_read_at != 0 &&
                                       now - config->token_read_at < WEFT_KUBE_TOKEN_AGE_NS)) {
        return 0;
    }
    config->token_read_at = now;
    char *bytes = NULL;
    size_t len = 0;
    int rc = weft_file_read(config->token_file, WEFT_KUBE_CONFIG_FILE_MAX, &bytes, &len, err);
    if (rc < 0) {
        return rc;
    }
    rc = weft_kube_config_set_token(config, weft_str_trim((struct weft_str){bytes, len}), err);
    weft_secret_free_bytes(bytes, len);
    return rc;
}

/* The token file goes before a token of the kubeconfig, which serves if it cannot be read. */
static int resolve_token(struct weft_kube_config *config, struct weft_error *err)
{
    const bool has_token = weft_secret_is_set(&config->token);
    if (config->token_file != NULL) {
        const int64_t now = weft_clock_monotonic(weft_clock_system());
        const int rc = weft_kube_config_refresh_token(config, now, true, has_token ? NULL : err);
        return rc < 0 && !has_token ? rc : 0;
    }
    if (!has_token) {
        return 0;
    }
    size_t len = 0;
    const char *token = weft_secret_reveal(&config->token, &len);
    const int rc = weft_kube_config_set_token(config, (struct weft_str){token, len}, err);
    return rc < 0 ? rc : 0;
}

/* ---- all ---- */

int weft_kube_config_refresh(struct weft_kube_config *config, int64_t now, bool force)
{
    int changed = weft_kube_config_refresh_token(config, now, force, NULL) > 0 ? 1 : 0;
    if (!force && now - config->files_read_at < WEFT_KUBE_TOKEN_AGE_NS) {
        return changed;
    }
    config->files_read_at = now;
    /* what cannot be read now stays as it was; the server judges it */
    changed |= read_blob(&config->ca, NULL) > 0 ? 2 : 0;
    if (config->exec == NULL) { /* else what the helper gave is in their place */
        changed |= read_blob(&config->cert, NULL) > 0 ? 2 : 0;
        changed |= read_key(config, NULL) > 0 ? 2 : 0;
    }
    return changed;
}

int weft_kube_config_resolve(struct weft_kube_config *config, struct weft_error *err)
{
    config->files_read_at = weft_clock_monotonic(weft_clock_system());
    int rc = read_blob(&config->ca, err);
    rc = rc < 0 ? rc : read_blob(&config->cert, err);
    rc = rc < 0 ? rc : read_key(config, err);
    rc = rc < 0 ? rc : resolve_token(config, err);
    if (rc == 0 && config->exec != NULL) {
        rc = weft_kube_exec_run(config, err);
    }
    return rc < 0 ? weft_err_wrap(err, rc, "%s", config->path) : 0;
}
