/* SPDX-License-Identifier: Apache-2.0 */
/* Behind a host: the three operations on one file, link or folder. Paths are resolved and have no
 * leading slash; "" is the root. */
#ifndef WEFT_MACHINE_HOST_INTERNAL_H
#define WEFT_MACHINE_HOST_INTERNAL_H

#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/machine/host.h"

struct weft_host_ops {
    /* Copies at most size bytes of a link's target; its length, -EINVAL if it is no link. */
    int (*readlink)(const struct weft_host *host, const char *path, char *target, size_t size);
    /* Length, -EFBIG if there are more than size bytes. */
    int (*read)(const struct weft_host *host, const char *path, char *text, size_t size);
    int (*list)(const struct weft_host *host, const char *path, struct weft_host_names *names);
    /* The same for a path that is not resolved yet ("" too), where that is cheaper: NULL, or
     * -ENOSYS where it cannot be done, and then the long way is gone. */
    int (*read_unresolved)(const struct weft_host *host, const char *path, char *text, size_t size);
    int (*list_unresolved)(const struct weft_host *host, const char *path,
                           struct weft_host_names *names);
    void (*done)(struct weft_host *host);
};

/* An entry of a tree in memory: a file, or a link if target is not NULL. */
struct weft_host_entry {
    char *path;   /* without leading slash */
    char *target; /* of a link */
    char *bytes;
    size_t len;
    size_t order; /* in which it was added */
};

struct weft_host {
    const struct weft_host_ops *ops;
    int root_fd;                     /* of a folder, else -1 */
    struct weft_host_entry *entries; /* of a tree in memory, sorted by path once sealed */
    size_t entry_count, entry_cap;
};

extern const struct weft_host_ops weft_host_folder_ops;
extern const struct weft_host_ops weft_host_recorded_ops;

/* Adds a copy of a name. 0, -EFBIG, -ENOMEM. */
int weft_host_names_add(struct weft_host_names *names, const char *name, size_t len)
    __attribute__((warn_unused_result));
/* Are these bytes a BDF ("0000:1b:00.0")? */
bool weft_host_parse_bdf(const char *text, size_t len, struct weft_bdf *ret_bdf);
/* The PCI function a device belongs to: the last address in the real path of path. 0, -ENOENT. */
int weft_host_function_of(const struct weft_host *host, const char *path, struct weft_bdf *ret_bdf)
    __attribute__((warn_unused_result));
/* <0, 0, >0 in device order. */
int weft_bdf_cmp(const struct weft_bdf *a, const struct weft_bdf *b);

#endif
