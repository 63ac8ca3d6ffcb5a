/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded machine, kept fresh, or what the vendor thread finds. */
#include "deviceplugin/source.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "deviceplugin/filewatch.h"
#include "deviceplugin/health.h"
#include "deviceplugin/options.h"
#include "deviceplugin/stats.h"
#include "deviceplugin/uevents.h"
#include "deviceplugin/vendor.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/base/str.h"
#include "pkg/machine/discover.h"
#include "pkg/machine/machine.h"

enum { SOURCE_MAGIC = 0x536f7572 /* "Sour" */, MACHINE_TEXT_MAX = 64 << 20 };

struct weft_source {
    uint32_t magic;
    struct weft_vendor *vendor;   /* NULL: a file */
    struct weft_uevents *uevents; /* NULL: a file, or none are to be had */
    char *path;
    struct weft_filewatch *watch;
    struct weft_health_table *health; /* of a file's devices */
    struct weft_stats *stats;
    void (*changed)(void *data, struct weft_machine *machine);
    void *data;
    char problem[WEFT_ERROR_MESSAGE_MAX]; /* why the file is not used; "" it is */
    uint64_t digest;                      /* of the last good machine, as our JSON */
};

/* 0 if it cannot be written: then every rescan counts as a change, which is only slower. */
static uint64_t digest_of(const struct weft_machine *machine)
{
    weft_auto(weft_buf_done) struct weft_buf text;
    weft_buf_init(&text, MACHINE_TEXT_MAX);
    if (weft_machine_write_json(machine, &text) < 0) {
        return 0;
    }
    return weft_hash64(WEFT_HASH_SEED, weft_buf_text(&text), text.len);
}

static void on_move(void *data, const struct weft_health_move *move)
{
    const struct weft_source *source = data;
    WEFT_CHECK(source, SOURCE_MAGIC);
    weft_stats_move(source->stats, move);
}

static void on_told(void *data, const struct weft_backend_event *event)
{
    const struct weft_source *source = data;
    WEFT_CHECK(source, SOURCE_MAGIC);
    weft_stats_event(source->stats, event);
}

/* The vendor thread's side has no data of its own to call back with. */
static void on_machine(void *data, struct weft_machine *machine)
{
    const struct weft_source *source = data;
    WEFT_CHECK(source, SOURCE_MAGIC);
    source->changed(source->data, machine);
}

/* What a file says of health is so at once; the table tells what changed. */
static void note_health(struct weft_source *source, struct weft_machine *machine)
{
    if (weft_health_look(source->health, machine, weft_clock_monotonic(weft_clock_system())) < 0) {
        weft_log(WEFT_LOG_WARN, "health-not-noted", WEFT_KV_S("reason", "out of memory"));
    }
}

/* The loop waits for no writer of a pipe, and what was read from one cannot be read again. What is
 * not there by that name may be a part of a recording ("FILE#FOLDER"); reading it says so. */
static int load(const char *path, struct weft_machine **ret_machine, struct weft_error *err)
{
    struct stat st;
    const bool pipe = stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
    if (pipe || strcmp(path, "-") == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s is no regular file: the plugin reads a machine again and again",
                            path);
    }
    return weft_machine_load(path, ret_machine, err);
}

/* Each problem once: a change is seen, and may be signalled too. */
static void not_read(struct weft_source *source, const char *problem)
{
    if (strcmp(source->problem, problem) != 0) {
        (void)snprintf(source->problem, sizeof(source->problem), "%s", problem);
        weft_log(WEFT_LOG_ERROR, "machine-not-read", WEFT_KV_S("reason", problem),
                 WEFT_KV_S("effect", "the last good one stays"));
    }
}

void weft_source_rescan(struct weft_source *source)
{
    WEFT_CHECK(source, SOURCE_MAGIC);
    if (source->vendor != NULL) {
        weft_vendor_rescan(source->vendor, true);
        return;
    }
    struct weft_machine *machine = NULL;
    struct weft_error err = {0};
    if (load(source->path, &machine, &err) < 0) {
        not_read(source, err.message);
        return;
    }
    source->problem[0] = '\0';
    const uint64_t digest = digest_of(machine);
    if (digest != 0 && digest == source->digest) {
        weft_machine_free(machine);
        return;
    }
    source->digest = digest;
    note_health(source, machine);
    source->changed(source->data, machine);
}

static void on_changed(void *data)
{
    weft_source_rescan(data);
}

static void on_uevent(void *data)
{
    const struct weft_source *source = data;
    WEFT_CHECK(source, SOURCE_MAGIC);
    weft_vendor_rescan(source->vendor, false);
}

/* Without the kernel's word it is looked now and then, as ever. */
static void listen_to_kernel(struct weft_source *source, struct weft_loop *loop)
{
    struct weft_error err = {0};
    if (weft_uevents_new(loop, on_uevent, source, &source->uevents, &err) < 0) {
        weft_log(WEFT_LOG_INFO, "no-uevents", WEFT_KV_S("reason", err.message));
    }
}

static int start_vendor(struct weft_source *source, const struct weft_source_options *options,
                        struct weft_error *err)
{
    const struct weft_options *o = options->options;
    const struct weft_vendor_options vendor = {.loop = options->loop,
                                               .backends = weft_backends,
                                               .host_root = o->host_root,
                                               .driver_root = o->container_driver_root != NULL
                                                                  ? o->container_driver_root
                                                                  : o->respond.driver_root,
                                               .dev_root = weft_respond_dev_root(&o->respond),
                                               .only = o->vendor,
                                               .health = &o->health,
                                               .limit_ns = o->driver_timeout_ns,
                                               .rescan_ns = o->rescan_ns,
                                               .changed = on_machine,
                                               .moved = on_move,
                                               .told = on_told,
                                               .data = source};
    int rc =
        weft_backend_check_root(&(struct weft_backend_options){.host_root = o->host_root}, err);
    rc = rc < 0 ? rc : weft_vendor_new(&vendor, &source->vendor, err);
    if (rc == 0) {
        listen_to_kernel(source, options->loop);
    }
    return rc;
}

/* Of "FILE#FOLDER" the file, unless something has that very name. */
static int watch_file(struct weft_source *source, struct weft_loop *loop, struct weft_error *err)
{
    weft_autofree char *path = weft_strdup(source->path);
    if (path == NULL) {
        return weft_err_nomem(err);
    }
    char *part = strrchr(path, '#');
    if (part != NULL && access(path, F_OK) < 0) {
        *part = '\0';
    }
    return weft_filewatch_new(loop, path, on_changed, source, &source->watch, err);
}

static int start_file(struct weft_source *source, const struct weft_source_options *options,
                      struct weft_machine **ret_machine, struct weft_error *err)
{
    source->path = weft_strdup(options->options->machine);
    if (source->path == NULL) {
        return weft_err_nomem(err);
    }
    weft_auto(weft_machine_free) struct weft_machine *machine = NULL;
    int rc = load(source->path, &machine, err);
    if (rc == 0 && weft_health_table_new(&(struct weft_health_settings){.suspect_ns = INT64_MAX},
                                         on_move, source, &source->health) < 0) {
        rc = weft_err_nomem(err);
    }
    if (rc == 0) {
        rc = watch_file(source, options->loop, err);
    }
    if (rc < 0) {
        return rc;
    }
    source->digest = digest_of(machine);
    note_health(source, machine);
    *ret_machine = weft_steal(&machine);
    return 0;
}

int weft_source_new(const struct weft_source_options *options, struct weft_source **ret_source,
                    struct weft_machine **ret_machine, struct weft_error *err)
{
    weft_auto(weft_source_free) struct weft_source *source = weft_calloc(1, sizeof(*source));
    if (source == NULL) {
        return weft_err_nomem(err);
    }
    source->magic = SOURCE_MAGIC;
    source->changed = options->changed;
    source->data = options->data;
    source->stats = options->stats;
    *ret_machine = NULL;
    const int rc = options->options->machine == NULL
                       ? start_vendor(source, options, err)
                       : start_file(source, options, ret_machine, err);
    if (rc == 0) {
        *ret_source = weft_steal(&source);
    }
    return rc;
}

bool weft_source_end(struct weft_source *source)
{
    if (source == NULL) {
        return false;
    }
    WEFT_CHECK(source, SOURCE_MAGIC);
    weft_uevents_free(source->uevents);
    const bool left = weft_vendor_end(source->vendor);
    weft_filewatch_free(source->watch);
    weft_health_table_free(source->health);
    weft_free(source->path);
    source->magic = 0;
    weft_free(source);
    return left;
}

void weft_source_free(struct weft_source *source)
{
    (void)weft_source_end(source);
}

void weft_source_configure(struct weft_source *source, const struct weft_health_settings *health)
{
    WEFT_CHECK(source, SOURCE_MAGIC);
    if (source->vendor != NULL) {
        weft_vendor_configure(source->vendor, health);
    }
}

const struct weft_backend_watch *weft_source_watch(const struct weft_source *source)
{
    WEFT_CHECK(source, SOURCE_MAGIC);
    return source->vendor != NULL ? weft_vendor_watch(source->vendor) : NULL;
}
