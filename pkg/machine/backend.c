/* SPDX-License-Identifier: Apache-2.0 */
/* What all backends share: the watch over calls into vendor code, and paths below the host root. */
#include "pkg/machine/backend.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/clock.h"

void weft_backend_enter(struct weft_backend_watch *watch, const char *call, int64_t allowed_ns)
{
    if (watch == NULL) {
        return;
    }
    atomic_store(&watch->call, call);
    atomic_store(&watch->allowed_ns, allowed_ns);
    (void)atomic_fetch_add(&watch->calls, 1);
    /* last: whoever sees a start sees what was started, or a later call's name, which is as good */
    atomic_store(&watch->since_ns, weft_clock_monotonic(weft_clock_system()));
}

/* Only the vendor thread writes, so that what it read is what there is. */
static void count(struct weft_backend_watch *watch, const char *call, int64_t ns)
{
    struct weft_backend_calls *kind = watch->kinds;
    while (kind < &watch->kinds[WEFT_BACKEND_CALLS_MAX - 1] && atomic_load(&kind->call) != NULL &&
           strcmp(atomic_load(&kind->call), call) != 0) {
        kind++;
    }
    (void)atomic_fetch_add(&kind->count, 1);
    (void)atomic_fetch_add(&kind->total_ns, ns);
    if (atomic_load(&kind->call) == NULL) {
        const bool last = kind == &watch->kinds[WEFT_BACKEND_CALLS_MAX - 1];
        atomic_store(&kind->call, last ? "others" : call); /* and now it can be read */
    }
}

void weft_backend_leave(struct weft_backend_watch *watch)
{
    if (watch == NULL) {
        return;
    }
    const int64_t since = atomic_load(&watch->since_ns);
    if (atomic_load(&watch->allowed_ns) == 0) {
        count(watch, atomic_load(&watch->call), weft_clock_monotonic(weft_clock_system()) - since);
    }
    atomic_store(&watch->since_ns, 0);
}

int64_t weft_backend_late(const struct weft_backend_watch *watch, int64_t now_ns, int64_t limit_ns,
                          const char **ret_call)
{
    const int64_t since = atomic_load(&watch->since_ns);
    if (since == 0) {
        return INT64_MIN;
    }
    *ret_call = atomic_load(&watch->call);
    return now_ns - since - limit_ns - atomic_load(&watch->allowed_ns);
}

int weft_backend_host_path(const struct weft_backend_options *options, const char *suffix,
                           char *path)
{
    const char *root = options->host_root != NULL ? options->host_root : "";
    size_t len = strlen(root);
    while (len > 0 && root[len - 1] == '/') {
        len--;
    }
    const int n = snprintf(path, WEFT_MACHINE_PATH_MAX, "%.*s%s", (int)len, root, suffix);
    return n >= 0 && n < WEFT_MACHINE_PATH_MAX ? 0 : -ENAMETOOLONG;
}

int weft_backend_check_root(const struct weft_backend_options *options, struct weft_error *err)
{
    const char *root = options->host_root;
    struct stat st;
    if (root == NULL || root[0] == '\0') {
        return 0;
    }
    if (stat(root, &st) < 0) {
        return weft_err_errno(err, errno, "host root %s", root);
    }
    return S_ISDIR(st.st_mode) ? 0 : weft_err_errno(err, ENOTDIR, "host root %s", root);
}

bool weft_backend_host_has(const struct weft_backend_options *options, const char *suffix)
{
    char path[WEFT_MACHINE_PATH_MAX];
    return weft_backend_host_path(options, suffix, path) == 0 && access(path, F_OK) == 0;
}
