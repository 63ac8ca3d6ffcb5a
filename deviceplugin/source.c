/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded machine, kept fresh, or what the vendor thread finds. */
#include "deviceplugin/source.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "deviceplugin/options.h"
#include "deviceplugin/vendor.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/base/str.h"
#include "pkg/loop/loop.h"
#include "pkg/machine/discover.h"
#include "pkg/machine/machine.h"

enum { SOURCE_MAGIC = 0x536f7572 /* "Sour" */, MACHINE_TEXT_MAX = 64 << 20 };

#define RESCAN_NS (30 * WEFT_NS_PER_S)

/* What tells a changed file apart; a symbolic link is followed, as a ConfigMap's files are links.
 */
struct stamp {
    uint64_t device, inode;
    int64_t size, modified_ns;
};

struct weft_source {
    uint32_t magic;
    struct weft_vendor *vendor; /* NULL: a file */
    char *path;
    struct weft_timer *timer;
    void (*changed)(void *data, struct weft_machine *machine);
    void *data;
    struct stamp stamp;
    uint64_t digest; /* of the last good machine, as our JSON */
};

static struct stamp stamp_of(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        return (struct stamp){0};
    }
    return (struct stamp){.device = st.st_dev,
                          .inode = st.st_ino,
                          .size = st.st_size,
                          .modified_ns = st.st_mtim.tv_sec * WEFT_NS_PER_S + st.st_mtim.tv_nsec};
}

static bool same_stamp(const struct stamp *a, const struct stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->modified_ns == b->modified_ns;
}

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

void weft_source_rescan(struct weft_source *source)
{
    WEFT_CHECK(source, SOURCE_MAGIC);
    if (source->vendor != NULL) {
        weft_vendor_rescan(source->vendor);
        return;
    }
    source->stamp = stamp_of(source->path);
    struct weft_machine *machine = NULL;
    struct weft_error err = {0};
    if (load(source->path, &machine, &err) < 0) {
        weft_log(WEFT_LOG_ERROR, "machine-not-read", WEFT_KV_S("reason", err.message),
                 WEFT_KV_S("effect", "the last good one stays"));
        return;
    }
    const uint64_t digest = digest_of(machine);
    if (digest != 0 && digest == source->digest) {
        weft_machine_free(machine);
        return;
    }
    source->digest = digest;
    source->changed(source->data, machine);
}

static void on_timer(void *data)
{
    struct weft_source *source = data;
    WEFT_CHECK(source, SOURCE_MAGIC);
    const struct stamp now = stamp_of(source->path);
    if (!same_stamp(&now, &source->stamp)) {
        weft_source_rescan(source);
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
                                               .only = o->vendor,
                                               .ignored_errors = o->ignored_errors,
                                               .limit_ns = o->driver_timeout_ns,
                                               .rescan_ns = o->rescan_ns,
                                               .changed = options->changed,
                                               .data = options->data};
    const int rc =
        weft_backend_check_root(&(struct weft_backend_options){.host_root = o->host_root}, err);
    return rc < 0 ? rc : weft_vendor_new(&vendor, &source->vendor, err);
}

static int start_file(struct weft_source *source, const struct weft_source_options *options,
                      struct weft_machine **ret_machine, struct weft_error *err)
{
    source->path = weft_strdup(options->options->machine);
    if (source->path == NULL) {
        return weft_err_nomem(err);
    }
    source->stamp = stamp_of(source->path);
    weft_auto(weft_machine_free) struct weft_machine *machine = NULL;
    int rc = load(source->path, &machine, err);
    if (rc == 0) {
        rc = weft_timer_new(options->loop, on_timer, source, &source->timer, err);
    }
    if (rc < 0) {
        return rc;
    }
    source->digest = digest_of(machine);
    weft_timer_start_aligned(source->timer, RESCAN_NS);
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
    *ret_machine = NULL;
    const int rc = options->options->machine == NULL
                       ? start_vendor(source, options, err)
                       : start_file(source, options, ret_machine, err);
    if (rc == 0) {
        *ret_source = weft_steal(&source);
    }
    return rc;
}

void weft_source_free(struct weft_source *source)
{
    if (source != NULL) {
        WEFT_CHECK(source, SOURCE_MAGIC);
        weft_vendor_free(source->vendor);
        weft_timer_free(source->timer);
        weft_free(source->path);
        source->magic = 0;
        weft_free(source);
    }
}
