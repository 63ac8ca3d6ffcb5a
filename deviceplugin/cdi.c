/* SPDX-License-Identifier: Apache-2.0 */
/* Writes CDI's JSON, version 0.5.0: the first that has host paths of nodes and names that begin
 * with a digit; containerd 1.7 and CRI-O 1.27 read it. */
#include "deviceplugin/cdi.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "deviceplugin/driver-files.h"
#include "deviceplugin/offer.h"
#include "deviceplugin/respond.h"
#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "pkg/base/map.h"
#include "pkg/json/json.h"
#include "pkg/machine/machine.h"

#define CDI_VERSION "0.5.0"

enum { FILE_MODE = 0644, FOLDER_MODE = 0755 };

/* ---- parts ---- */

static void put_words(struct weft_json_writer *w, const char *key, const char *const *words)
{
    weft_json_put_key(w, key);
    weft_json_open(w, '[');
    for (size_t i = 0; words[i] != NULL; i++) {
        weft_json_put_string(w, words[i]);
    }
    weft_json_close(w, ']');
}

/* The runtime looks up type and number of the host's node itself. */
static void put_node(struct weft_json_writer *w, const char *root, const char *path)
{
    char host[2 * WEFT_MACHINE_PATH_MAX];
    (void)snprintf(host, sizeof(host), "%s%s", root, path);
    weft_json_open(w, '{');
    weft_json_kv_string(w, "path", path);
    if (root[0] != '\0') {
        weft_json_kv_string(w, "hostPath", host);
    }
    weft_json_kv_string(w, "permissions", "rw");
    weft_json_close(w, '}');
}

static void put_nodes(struct weft_json_writer *w, const char *root, char *const *nodes,
                      size_t count)
{
    if (count == 0) {
        return;
    }
    weft_json_put_key(w, "deviceNodes");
    weft_json_open(w, '[');
    for (size_t i = 0; i < count; i++) {
        put_node(w, root, nodes[i]);
    }
    weft_json_close(w, ']');
}

static void put_mount(struct weft_json_writer *w, const char *host, const char *container,
                      bool socket)
{
    static const char *const file_options[] = {"ro", "nosuid", "nodev", "rbind", "rprivate", NULL};
    static const char *const socket_options[] = {"nosuid",   "nodev",  "rbind",
                                                 "rprivate", "noexec", NULL};
    weft_json_open(w, '{');
    weft_json_kv_string(w, "hostPath", host);
    weft_json_kv_string(w, "containerPath", container);
    put_words(w, "options", socket ? socket_options : file_options);
    weft_json_close(w, '}');
}

static void open_file(struct weft_json_writer *w, struct weft_buf *buf, const char *vendor,
                      const char *kind)
{
    char name[128];
    (void)snprintf(name, sizeof(name), "%s/%s", vendor, kind);
    weft_json_writer_init(w, buf, 2);
    weft_json_open(w, '{');
    weft_json_kv_string(w, "cdiVersion", CDI_VERSION);
    weft_json_kv_string(w, "kind", name);
    weft_json_put_key(w, "devices");
    weft_json_open(w, '[');
}

static int close_file(struct weft_json_writer *w)
{
    weft_json_close(w, '}');
    (void)weft_buf_putc(w->buf, '\n');
    return w->buf->status;
}

static void open_device(struct weft_json_writer *w, const char *name)
{
    weft_json_open(w, '{');
    weft_json_kv_string(w, "name", name);
    weft_json_put_key(w, "containerEdits");
    weft_json_open(w, '{');
}

static void close_device(struct weft_json_writer *w)
{
    weft_json_close(w, '}');
    weft_json_close(w, '}');
}

/* ---- the devices ---- */

/* A device without nodes of its own (WSL has one for all) is let in by the common ones: CDI wants
 * each device to do something. */
static void put_edits(struct weft_json_writer *w, const struct weft_cdi *cdi,
                      const struct weft_device *d, const char *name)
{
    const struct weft_machine *m = cdi->machine;
    const bool own = d->node_count > 0;
    open_device(w, name);
    put_nodes(w, weft_respond_dev_root(cdi->settings), own ? d->nodes : m->common_nodes,
              own ? d->node_count : m->common_node_count);
    if (d->mount_count > 0) {
        weft_json_put_key(w, "mounts");
        weft_json_open(w, '[');
        for (size_t i = 0; i < d->mount_count; i++) {
            put_mount(w, d->mounts[i], d->mounts[i], false);
        }
        weft_json_close(w, ']');
    }
    close_device(w);
}

/* Has it something to let in? One that is unhealthy is not handed out and may lack it. */
static bool has_edits(const struct weft_machine *m, const struct weft_device *d)
{
    return d->node_count > 0 || m->common_node_count > 0;
}

/* The names that answers use, each of which must be there and be one device's. */
static int take_names(const struct weft_cdi *cdi, struct weft_map *names, struct weft_error *err)
{
    const struct weft_machine *m = cdi->machine;
    for (size_t i = 0; i < m->device_count; i++) {
        const struct weft_device *d = &m->devices[i];
        char name[WEFT_DEVICE_ID_MAX];
        weft_offer_name(m, d, cdi->settings->id_strategy, name);
        if (!has_edits(m, d) && d->healthy) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "device %s has no device node that CDI could let in", d->id);
        }
        if (!weft_offer_cdi_name_valid(name)) {
            return weft_err_set(
                err, -EINVAL, WEFT_ERR_CONFIG,
                "CDI cannot name the device %s: it allows letters, digits, - _ . :", name);
        }
        if (weft_map_put(names, name, i) < 0) {
            return weft_err_nomem(err);
        }
    }
    return 0;
}

/* Under both of its names: containers that were given the other one, before the settings changed
 * or by an instance that is being replaced, may be started again. A name that answers use is
 * never another device's. */
static int put_device(struct weft_json_writer *w, const struct weft_cdi *cdi,
                      struct weft_map *names, size_t number)
{
    const struct weft_machine *m = cdi->machine;
    const struct weft_device *d = &m->devices[number];
    for (int i = 0; i < WEFT_RESPOND_ID_COUNT; i++) {
        char name[WEFT_DEVICE_ID_MAX];
        weft_offer_name(m, d, (enum weft_respond_id)i, name);
        const bool taken = weft_map_get(names, name, NULL);
        if (i == (int)cdi->settings->id_strategy) {
            put_edits(w, cdi, d, name);
        } else if (!taken && weft_offer_cdi_name_valid(name)) {
            if (weft_map_put(names, name, number) < 0) {
                return -ENOMEM;
            }
            put_edits(w, cdi, d, name);
        }
    }
    return 0;
}

static int put_devices(struct weft_json_writer *w, const struct weft_cdi *cdi, size_t *ret_count,
                       struct weft_error *err)
{
    const struct weft_machine *m = cdi->machine;
    weft_auto(weft_map_free) struct weft_map *names =
        weft_map_new((size_t)WEFT_RESPOND_ID_COUNT * WEFT_MACHINE_DEVICES_MAX);
    if (names == NULL) {
        return weft_err_nomem(err);
    }
    int rc = take_names(cdi, names, err);
    for (size_t i = 0; rc == 0 && i < m->device_count; i++) {
        if (has_edits(m, &m->devices[i])) {
            (*ret_count)++;
            rc = put_device(w, cdi, names, i) < 0 ? weft_err_nomem(err) : 0;
        }
    }
    return rc;
}

/* The loader's cache of the container must know the libraries. nvidia-ctk has its hooks below a
 * word of their own. */
static void put_hook(struct weft_json_writer *w, const struct weft_cdi *cdi)
{
    static const char tool[] = "nvidia-ctk";
    const char *slash = strrchr(cdi->hook, '/');
    const char *name = slash != NULL ? slash + 1 : cdi->hook;
    const char *args[4 + 2 * WEFT_DRIVER_FOLDERS_MAX];
    size_t count = 0;
    args[count++] = name;
    if (strcmp(name, tool) == 0) {
        args[count++] = "hook";
    }
    args[count++] = "update-ldcache";
    for (size_t i = 0; i < cdi->files->folder_count; i++) {
        args[count++] = "--folder";
        args[count++] = cdi->files->folders[i];
    }
    args[count] = NULL;
    weft_json_put_key(w, "hooks");
    weft_json_open(w, '[');
    weft_json_open(w, '{');
    weft_json_kv_string(w, "hookName", "createContainer");
    weft_json_kv_string(w, "path", cdi->hook);
    put_words(w, "args", args);
    weft_json_close(w, '}');
    weft_json_close(w, ']');
}

/* What comes with any of the devices. */
static void put_common(struct weft_json_writer *w, const struct weft_cdi *cdi)
{
    const struct weft_machine *m = cdi->machine;
    weft_json_put_key(w, "containerEdits");
    weft_json_open(w, '{');
    if (weft_offer_nvidia(m)) {
        /* NVIDIA's runtime, where it is the default, must not add what an image asks for */
        put_words(w, "env", (const char *const[]){"NVIDIA_VISIBLE_DEVICES=void", NULL});
    }
    put_nodes(w, weft_respond_dev_root(cdi->settings), m->common_nodes, m->common_node_count);
    if (cdi->files != NULL && cdi->files->count > 0) {
        weft_json_put_key(w, "mounts");
        weft_json_open(w, '[');
        for (size_t i = 0; i < cdi->files->count; i++) {
            const struct weft_driver_file *f = &cdi->files->items[i];
            put_mount(w, f->host, f->container, f->socket);
        }
        weft_json_close(w, ']');
    }
    if (cdi->files != NULL && cdi->hook != NULL) {
        put_hook(w, cdi);
    }
    weft_json_close(w, '}');
}

int weft_cdi_write_devices(const struct weft_cdi *cdi, struct weft_buf *buf, struct weft_error *err)
{
    const struct weft_machine *m = cdi->machine;
    struct weft_json_writer w;
    size_t count = 0;
    open_file(&w, buf, weft_offer_cdi_vendor(m), "gpu");
    int rc = put_devices(&w, cdi, &count, err);
    if (rc < 0) {
        return rc;
    }
    if (count == 0) { /* CDI refuses a file without devices */
        weft_buf_reset(buf);
        return 0;
    }
    weft_json_close(&w, ']');
    put_common(&w, cdi);
    rc = close_file(&w);
    return rc < 0 ? weft_err_errno(err, -rc, "CDI file") : 0;
}

/* ---- the features ---- */

static void put_channels(struct weft_json_writer *w, const struct weft_cdi *cdi)
{
    const struct weft_extras *x = cdi->extras;
    size_t channel = 0;
    for (size_t i = 0; i < x->node_count; i++) {
        if (x->node_of[i] == WEFT_EXTRA_IMEX && channel < x->imex_channel_count) {
            char name[16];
            (void)snprintf(name, sizeof(name), "%" PRIu32, x->imex_channels[channel++]);
            open_device(w, name);
            put_nodes(w, weft_respond_dev_root(cdi->settings), &x->nodes[i], 1);
            close_device(w);
        }
    }
}

/* GPUDirect Storage reads its configuration and udev's database beside its nodes. */
static void put_storage_mounts(struct weft_json_writer *w, const struct weft_extras *extras)
{
    weft_json_put_key(w, "mounts");
    weft_json_open(w, '[');
    for (size_t i = 0; i < WEFT_STORAGE_MOUNTS; i++) {
        if (extras->storage_mounts[i]) {
            put_mount(w, weft_storage_mounts[i], weft_storage_mounts[i], false);
        }
    }
    weft_json_close(w, ']');
}

static void put_all(struct weft_json_writer *w, const struct weft_cdi *cdi, int extra)
{
    const struct weft_extras *x = cdi->extras;
    open_device(w, "all");
    weft_json_put_key(w, "deviceNodes");
    weft_json_open(w, '[');
    for (size_t i = 0; i < x->node_count; i++) {
        if ((int)x->node_of[i] == extra) {
            put_node(w, weft_respond_dev_root(cdi->settings), x->nodes[i]);
        }
    }
    weft_json_close(w, ']');
    if (extra == WEFT_EXTRA_GDS && (x->storage_mounts[0] || x->storage_mounts[1])) {
        put_storage_mounts(w, x);
    }
    close_device(w);
}

int weft_cdi_write_extra(const struct weft_cdi *cdi, int extra, struct weft_buf *buf)
{
    const struct weft_extras *x = cdi->extras;
    bool any = false;
    for (size_t i = 0; i < x->node_count; i++) {
        any = any || (int)x->node_of[i] == extra;
    }
    if (!any) {
        return 0;
    }
    struct weft_json_writer w;
    open_file(&w, buf, weft_offer_cdi_vendor(cdi->machine),
              weft_extra_class((enum weft_extra)extra));
    if (extra == WEFT_EXTRA_IMEX) {
        put_channels(&w, cdi);
    } else {
        put_all(&w, cdi, extra);
    }
    weft_json_close(&w, ']');
    return close_file(&w);
}

/* ---- files ---- */

const char *weft_cdi_path(const char *folder, const char *vendor, const char *kind, char *path)
{
    (void)snprintf(path, WEFT_CDI_PATH_MAX, "%s/%s-%s.json", folder, vendor, kind);
    return path;
}

int weft_cdi_save(const char *path, const struct weft_buf *text, struct weft_error *err)
{
    char folder[WEFT_CDI_PATH_MAX];
    const char *slash = strrchr(path, '/');
    (void)snprintf(folder, sizeof(folder), "%.*s", slash != NULL ? (int)(slash - path) : 0, path);
    const bool made = mkdir(folder, FOLDER_MODE) == 0;
    if (!made && errno != EEXIST) {
        return weft_err_errno(err, errno, "make the CDI folder %s", folder);
    }
    int rc = weft_file_replace(path, weft_buf_text(text), text->len, FILE_MODE, err);
    /* whatever our umask is: a runtime without root must see them */
    if (rc == 0 && (chmod(path, FILE_MODE) < 0 || (made && chmod(folder, FOLDER_MODE) < 0))) {
        rc = weft_err_errno(err, errno, "let everybody read %s", path);
    }
    return rc;
}

int weft_cdi_remove(const char *folder, struct weft_error *err)
{
    static const char *const vendors[] = {"nvidia", "amd", "intel", "mthreads"};
    int removed = 0, rc = 0;
    for (size_t v = 0; v < WEFT_ARRAY_LEN(vendors); v++) {
        const char *vendor = weft_offer_cdi_vendor_of(vendors[v]);
        for (int k = -1; k < WEFT_EXTRA_COUNT; k++) {
            char path[WEFT_CDI_PATH_MAX];
            (void)weft_cdi_path(folder, vendor,
                                k < 0 ? "gpu" : weft_extra_class((enum weft_extra)k), path);
            if (unlink(path) == 0) {
                removed++;
            } else if (errno != ENOENT && rc == 0) {
                rc = weft_err_errno(err, errno, "remove %s", path);
            }
            weft_autofree char *temporary = weft_asprintf("%s.tmp", path);
            if (temporary != NULL) {
                weft_file_remove_temporaries(temporary);
            }
        }
    }
    return rc < 0 ? rc : removed;
}
