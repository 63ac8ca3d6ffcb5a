/* SPDX-License-Identifier: Apache-2.0 */
/* The handle on a host: paths are resolved here, inside the root, whatever holds the files. */
#include "pkg/machine/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pkg/base/str.h"
#include "pkg/machine/host-internal.h"

enum { LINKS_MAX = 40 /* as Linux: MAXSYMLINKS */ };

static int new_host(const struct weft_host_ops *ops, struct weft_host **ret_host)
{
    struct weft_host *host = weft_calloc(1, sizeof(*host));
    if (host == NULL) {
        return -ENOMEM;
    }
    host->ops = ops;
    host->root_fd = -1;
    *ret_host = host;
    return 0;
}

int weft_host_open(const char *root, struct weft_host **ret_host, struct weft_error *err)
{
    weft_auto(weft_host_free) struct weft_host *host = NULL;
    if (new_host(&weft_host_folder_ops, &host) < 0) {
        return weft_err_nomem(err);
    }
    host->root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (host->root_fd < 0) {
        return weft_err_errno(err, errno, "host root %s", root);
    }
    *ret_host = weft_steal(&host);
    return 0;
}

int weft_host_new_recorded(struct weft_host **ret_host)
{
    return new_host(&weft_host_recorded_ops, ret_host);
}

void weft_host_free(struct weft_host *host)
{
    if (host != NULL) {
        host->ops->done(host);
        weft_free(host);
    }
}

/* A path that is being resolved: what is done, and what is still to walk. */
struct walk {
    char *real; /* WEFT_HOST_PATH_MAX bytes: "" or "/a/b" */
    size_t real_len;
    char rest[WEFT_HOST_PATH_MAX];
    int links;
};

static void go_up(struct walk *w)
{
    while (w->real_len > 0 && w->real[--w->real_len] != '/') {
    }
    w->real[w->real_len] = '\0';
}

static int go_down(struct walk *w, struct weft_str name)
{
    if (w->real_len + name.len + 2 > WEFT_HOST_PATH_MAX) {
        return -ENAMETOOLONG;
    }
    w->real[w->real_len] = '/';
    memcpy(w->real + w->real_len + 1, name.data, name.len);
    w->real_len += name.len + 1;
    w->real[w->real_len] = '\0';
    return 0;
}

/* real names a link: its target takes its place in front of the rest. */
static int follow(struct walk *w, const char *target, size_t target_len, struct weft_str rest)
{
    if (++w->links > LINKS_MAX) {
        return -ELOOP;
    }
    if (target_len + 1 + rest.len + 1 > sizeof(w->rest)) {
        return -ENAMETOOLONG;
    }
    go_up(w);
    if (target_len > 0 && target[0] == '/') {
        w->real_len = 0;
        w->real[0] = '\0';
    }
    if (rest.len > 0) { /* else data may be NULL, which memmove does not take */
        memmove(w->rest + target_len + 1, rest.data, rest.len);
    }
    w->rest[target_len + 1 + rest.len] = '\0';
    memcpy(w->rest, target, target_len);
    w->rest[target_len] = '/';
    return 0;
}

static int step(const struct weft_host *host, struct walk *w, struct weft_str name,
                struct weft_str *rest)
{
    if (name.len == 0 || weft_str_eq(name, ".")) {
        return 0;
    }
    if (weft_str_eq(name, "..")) {
        go_up(w);
        return 0;
    }
    int rc = go_down(w, name);
    if (rc < 0) {
        return rc;
    }
    char target[WEFT_HOST_PATH_MAX];
    const int len = host->ops->readlink(host, w->real + 1, target, sizeof(target));
    if (len == -EINVAL) {
        return 0;
    }
    if (len < 0) {
        return len;
    }
    rc = follow(w, target, (size_t)len, *rest);
    *rest = weft_str(w->rest);
    return rc;
}

int weft_host_resolve(const struct weft_host *host, const char *path, char *real)
{
    struct walk w = {.real = real};
    real[0] = '\0';
    if (path[0] != '/') {
        return -EINVAL;
    }
    const size_t len = strlen(path);
    if (len >= sizeof(w.rest)) {
        return -ENAMETOOLONG;
    }
    memcpy(w.rest, path, len + 1);
    struct weft_str rest = weft_str(w.rest);
    struct weft_str name;
    while (weft_str_split(&rest, '/', &name)) {
        const int rc = step(host, &w, name, &rest);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static const char *below_root(const char *real)
{
    return real[0] == '/' ? real + 1 : real;
}

bool weft_host_exists(const struct weft_host *host, const char *path)
{
    char real[WEFT_HOST_PATH_MAX];
    return weft_host_resolve(host, path, real) == 0;
}

static int read_bytes(const struct weft_host *host, const char *path, char *text, size_t size)
{
    char real[WEFT_HOST_PATH_MAX];
    int rc = -ENOSYS;
    if (host->ops->read_unresolved != NULL && path[0] == '/') {
        rc = host->ops->read_unresolved(host, path + 1, text, size);
    }
    if (rc == -ENOSYS) {
        rc = weft_host_resolve(host, path, real);
        rc = rc < 0 ? rc : host->ops->read(host, below_root(real), text, size);
    }
    return rc;
}

int weft_host_read(const struct weft_host *host, const char *path, char *text, size_t size)
{
    int len = read_bytes(host, path, text, size - 1);
    if (len < 0) {
        text[0] = '\0';
        return len;
    }
    while (len > 0 && strchr(" \t\r\n", text[len - 1]) != NULL) {
        len--;
    }
    text[len] = '\0';
    return len;
}

int weft_host_read_i64(const struct weft_host *host, const char *path, int64_t *ret_value)
{
    char text[32];
    const int len = weft_host_read(host, path, text, sizeof(text));
    if (len < 0) {
        return len;
    }
    return weft_parse_i64((struct weft_str){text, (size_t)len}, INT64_MIN, INT64_MAX, ret_value);
}

int weft_host_names_add(struct weft_host_names *names, const char *name, size_t len)
{
    void *array = names->names;
    const int rc = weft_array_reserve(&array, &names->cap, names->count + 1, sizeof(char *),
                                      WEFT_HOST_NAMES_MAX);
    names->names = array;
    if (rc < 0) {
        return rc;
    }
    names->names[names->count] = weft_strndup(name, len);
    if (names->names[names->count] == NULL) {
        return -ENOMEM;
    }
    names->count++;
    return 0;
}

void weft_host_names_done(struct weft_host_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        weft_free(names->names[i]);
    }
    weft_free(names->names);
    *names = (struct weft_host_names){0};
}

static int by_name(const void *a, const void *b)
{
    return weft_str_natural_cmp(*(char *const *)a, *(char *const *)b);
}

static int list_names(const struct weft_host *host, const char *path, struct weft_host_names *names)
{
    char real[WEFT_HOST_PATH_MAX];
    int rc = -ENOSYS;
    if (host->ops->list_unresolved != NULL && path[0] == '/') {
        rc = host->ops->list_unresolved(host, path + 1, names);
    }
    if (rc == -ENOSYS) {
        rc = weft_host_resolve(host, path, real);
        rc = rc < 0 ? rc : host->ops->list(host, below_root(real), names);
    }
    return rc;
}

int weft_host_list(const struct weft_host *host, const char *path,
                   struct weft_host_names *ret_names)
{
    weft_auto(weft_host_names_done) struct weft_host_names names = {0};
    const int rc = list_names(host, path, &names);
    if (rc < 0) {
        return rc;
    }
    if (names.count > 1) {
        qsort(names.names, names.count, sizeof(*names.names), by_name);
    }
    *ret_names = names;
    names = (struct weft_host_names){0};
    return 0;
}
