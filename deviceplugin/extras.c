/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes are those that NVIDIA's container toolkit looks for: /dev/gdrdrv, /dev/nvidia-fs*, and
 * of InfiniBand the verbs and the connection manager. */
#include "deviceplugin/extras.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pkg/machine/host.h"

#define CHANNELS "/dev/nvidia-caps-imex-channels"

enum { PATH_TEXT_MAX = 512 };

struct looking {
    const struct weft_respond_settings *settings;
    const struct weft_host *host;
    const char *root; /* whose /dev is looked at */
    struct weft_extras *extras;
    struct weft_buf *missing;
};

bool weft_extras_wanted(const struct weft_respond_settings *s)
{
    return s->gdrcopy || s->gds || s->mofed || s->imex_channel_count > 0;
}

static bool is_there(const struct looking *l, const char *path)
{
    char below[PATH_TEXT_MAX];
    (void)snprintf(below, sizeof(below), "%s%s", l->root, path);
    return weft_host_exists(l->host, below);
}

static void miss(const struct looking *l, const char *path)
{
    if (l->missing != NULL) {
        (void)weft_buf_printf(l->missing, "%s%s", l->missing->len > 0 ? " " : "", path);
    }
}

static int add(const struct looking *l, enum weft_extra extra, const char *path)
{
    struct weft_extras *x = l->extras;
    if (x->node_count == WEFT_EXTRAS_NODES_MAX) {
        return 0; /* no host has so many rails; the rest is left out */
    }
    x->nodes[x->node_count] = weft_strdup(path);
    if (x->nodes[x->node_count] == NULL) {
        return -ENOMEM;
    }
    x->node_of[x->node_count++] = extra;
    return 0;
}

static int add_if_there(const struct looking *l, enum weft_extra extra, const char *path)
{
    if (is_there(l, path)) {
        return add(l, extra, path);
    }
    miss(l, path);
    return 0;
}

/* All of a folder of /dev whose names begin so. */
static int add_all(const struct looking *l, enum weft_extra extra, const char *folder,
                   const char *start)
{
    char path[PATH_TEXT_MAX];
    (void)snprintf(path, sizeof(path), "%s%s", l->root, folder);
    weft_auto(weft_host_names_done) struct weft_host_names names = {0};
    int rc = weft_host_list(l->host, path, &names);
    if (rc == -ENOMEM) {
        return rc;
    }
    bool any = false;
    rc = 0;
    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        if (strncmp(names.names[i], start, strlen(start)) == 0) {
            (void)snprintf(path, sizeof(path), "%s/%.200s", folder, names.names[i]);
            rc = add(l, extra, path);
            any = true;
        }
    }
    if (!any) {
        (void)snprintf(path, sizeof(path), "%s/%s*", folder, start);
        miss(l, path);
    }
    return rc;
}

static int find_channels(const struct looking *l, struct weft_error *err)
{
    const struct weft_respond_settings *s = l->settings;
    struct weft_extras *x = l->extras;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->imex_channel_count; i++) {
        char path[PATH_TEXT_MAX];
        (void)snprintf(path, sizeof(path), CHANNELS "/channel%" PRIu32, s->imex_channels[i]);
        if (is_there(l, path)) {
            x->imex_channels[x->imex_channel_count++] = s->imex_channels[i];
            rc = add(l, WEFT_EXTRA_IMEX, path);
        } else if (s->imex_required) {
            return weft_err_set(err, -ENOENT, WEFT_ERR_CONFIG, "%s is not there, and required",
                                path);
        } else {
            miss(l, path);
        }
    }
    return rc < 0 ? weft_err_nomem(err) : 0;
}

static int find_features(const struct looking *l)
{
    const struct weft_respond_settings *s = l->settings;
    int rc = s->gdrcopy ? add_if_there(l, WEFT_EXTRA_GDRCOPY, "/dev/gdrdrv") : 0;
    if (rc == 0 && s->gds) {
        rc = add_all(l, WEFT_EXTRA_GDS, "/dev", "nvidia-fs");
        for (size_t i = 0; i < WEFT_STORAGE_MOUNTS; i++) {
            l->extras->storage_mounts[i] = weft_host_exists(l->host, weft_storage_mounts[i]);
        }
    }
    if (rc == 0 && s->mofed) {
        rc = add_all(l, WEFT_EXTRA_MOFED, "/dev/infiniband", "uverbs");
        rc = rc < 0 ? rc : add_if_there(l, WEFT_EXTRA_MOFED, "/dev/infiniband/rdma_cm");
    }
    return rc;
}

/* Where the driver's /dev is not seen here, our own, into which a container's runtime puts nodes.
 */
static const char *seen_root(const struct weft_respond_settings *settings,
                             const struct weft_host *host)
{
    const char *root = weft_respond_dev_root(settings);
    char control[PATH_TEXT_MAX];
    (void)snprintf(control, sizeof(control), "%s/dev/nvidiactl", root);
    return weft_host_exists(host, control) ? root : "";
}

int weft_extras_find(const struct weft_respond_settings *settings, const char *host_root,
                     struct weft_extras *ret_extras, struct weft_buf *missing,
                     struct weft_error *err)
{
    weft_auto(weft_host_free) struct weft_host *host = NULL;
    const bool here = host_root == NULL || host_root[0] == '\0';
    int rc = weft_host_open(here ? "/" : host_root, &host, err);
    if (rc < 0) {
        return rc;
    }
    weft_auto(weft_extras_done) struct weft_extras extras = {0};
    const struct looking l = {.settings = settings,
                              .host = host,
                              .root = seen_root(settings, host),
                              .extras = &extras,
                              .missing = missing};
    rc = find_channels(&l, err);
    if (rc < 0) {
        return rc;
    }
    if (find_features(&l) < 0) {
        return weft_err_nomem(err);
    }
    *ret_extras = extras;
    extras = (struct weft_extras){0};
    return 0;
}
