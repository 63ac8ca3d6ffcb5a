/* SPDX-License-Identifier: Apache-2.0 */
/* Features and CDI files, again where something was missing. */
#include "deviceplugin/prepare.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "deviceplugin/cdi.h"
#include "deviceplugin/driver-files.h"
#include "deviceplugin/extras.h"
#include "deviceplugin/options.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/base/str.h"
#include "pkg/loop/loop.h"
#include "pkg/machine/machine.h"

enum {
    PREPARE_MAGIC = 0x50726570, /* "Prep" */
    FILES_MAX = WEFT_EXTRA_COUNT + 1,
    PATH_TEXT_MAX = 1024,
    MISSING_MAX = 4096
};

/* As often as the machine's file is looked at. */
#define AGAIN_NS (30 * WEFT_NS_PER_S)
#define PENDING_NS (1 * WEFT_NS_PER_S) /* memory comes back; devices must not wait for it long */

struct weft_prepare {
    uint32_t magic;
    struct weft_prepare_options options;
    struct weft_timer *again;
    struct weft_machine *machine; /* as it was given; NULL: none yet */
    bool busy;                    /* there was something to make ready for it */
    bool pending;                 /* it could not be handed over yet */
    struct weft_extras extras;
    struct weft_driver_files files;
    char files_of[64];           /* the driver's version that files are of */
    uint64_t written[FILES_MAX]; /* a digest of what is in the file; 0: not written by us */
    uint64_t told;               /* of the reason or what is missing, so that it is told once */
};

static const struct weft_respond_settings *settings_of(const struct weft_prepare *p)
{
    return &p->options.options->respond;
}

/* ---- what the files need ---- */

/* Where the driver's root is seen here. */
static void driver_view(const struct weft_prepare *p, char *path)
{
    const struct weft_options *o = p->options.options;
    if (o->container_driver_root != NULL) {
        (void)snprintf(path, PATH_TEXT_MAX, "%s", o->container_driver_root);
        return;
    }
    const char *host = o->host_root != NULL ? o->host_root : "";
    (void)snprintf(path, PATH_TEXT_MAX, "%s%s/", strcmp(host, "/") == 0 ? "" : host,
                   weft_respond_driver_root(&o->respond));
}

/* The files of a driver's version do not change while it runs. */
static int find_files(struct weft_prepare *p, struct weft_error *err)
{
    const struct weft_machine *m = p->machine;
    if (strcmp(m->vendor, "nvidia") != 0) {
        return 0;
    }
    if (p->files.count > 0 && strcmp(p->files_of, m->driver_version) == 0) {
        return 0;
    }
    char view[PATH_TEXT_MAX];
    driver_view(p, view);
    struct weft_driver_files files = {0};
    const int rc = weft_driver_files_find(view, weft_respond_driver_root(settings_of(p)),
                                          m->driver_version, &files, err);
    if (rc < 0) {
        return rc;
    }
    weft_driver_files_done(&p->files);
    p->files = files;
    (void)snprintf(p->files_of, sizeof(p->files_of), "%s", m->driver_version);
    return 0;
}

/* On the host; one that was named is not looked for. */
static const char *find_hook(const struct weft_prepare *p)
{
    static const char *const places[] = {
        "/usr/bin/nvidia-cdi-hook", "/usr/local/nvidia/toolkit/nvidia-cdi-hook",
        "/usr/bin/nvidia-ctk", "/usr/local/nvidia/toolkit/nvidia-ctk"};
    const struct weft_options *o = p->options.options;
    if (o->respond.cdi_hook != NULL) {
        return o->respond.cdi_hook;
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(places); i++) {
        char path[PATH_TEXT_MAX];
        (void)snprintf(path, sizeof(path), "%s%s", o->host_root != NULL ? o->host_root : "",
                       places[i]);
        if (access(path, F_OK) == 0) {
            return places[i];
        }
    }
    return NULL;
}

/* ---- the files ---- */

/* Writes a file that differs from what we wrote, or that somebody removed. */
static int save(struct weft_prepare *p, int file, const struct weft_buf *text,
                struct weft_error *err)
{
    const char *folder = settings_of(p)->cdi_folder;
    const char *kind = file == 0 ? "gpu" : weft_extra_class((enum weft_extra)(file - 1));
    char path[WEFT_CDI_PATH_MAX];
    (void)weft_cdi_path(folder != NULL ? folder : WEFT_RESPOND_CDI_FOLDER,
                        weft_offer_cdi_vendor(p->machine), kind, path);
    const uint64_t digest = weft_hash64(weft_hash64(WEFT_HASH_SEED, path, strlen(path)),
                                        weft_buf_text(text), text->len);
    if (digest == p->written[file] && access(path, F_OK) == 0) {
        return 0;
    }
    const int rc = weft_cdi_save(path, text, err);
    if (rc < 0) {
        return rc;
    }
    p->written[file] = digest;
    weft_log(WEFT_LOG_INFO, "cdi-file-written", WEFT_KV_S("path", path));
    return 0;
}

static int write_files(struct weft_prepare *p, struct weft_error *err)
{
    int rc = find_files(p, err);
    if (rc < 0) {
        return rc;
    }
    const struct weft_cdi cdi = {.machine = p->machine,
                                 .settings = settings_of(p),
                                 .extras = &p->extras,
                                 .files = p->files.count > 0 ? &p->files : NULL,
                                 .hook = p->files.count > 0 ? find_hook(p) : NULL};
    weft_auto(weft_buf_done) struct weft_buf text;
    weft_buf_init(&text, WEFT_CDI_FILE_MAX);
    rc = weft_cdi_write_devices(&cdi, &text, err);
    rc = rc == 0 && text.len > 0 ? save(p, 0, &text, err) : rc;
    for (int i = 0; rc == 0 && i < WEFT_EXTRA_COUNT; i++) {
        weft_buf_reset(&text);
        if (weft_cdi_write_extra(&cdi, i, &text) < 0) {
            return weft_err_nomem(err);
        }
        rc = text.len > 0 ? save(p, i + 1, &text, err) : 0;
        p->extras.cdi[i] = rc == 0 && text.len > 0;
    }
    return rc;
}

/* ---- a machine ---- */

static bool features_wanted(const struct weft_prepare *p)
{
    return weft_extras_wanted(settings_of(p)) && weft_offer_nvidia(p->machine);
}

static int find_extras(struct weft_prepare *p, struct weft_buf *missing, struct weft_error *err)
{
    struct weft_extras extras = {0};
    if (features_wanted(p)) {
        const int rc =
            weft_extras_find(settings_of(p), p->options.options->host_root, &extras, missing, err);
        if (rc < 0) {
            return rc;
        }
    }
    weft_extras_done(&p->extras);
    p->extras = extras;
    return 0;
}

/* A machine without devices leaves the files alone: the driver may be about to be loaded, and
 * containers of before be started again. */
static int make_ready(struct weft_prepare *p, struct weft_buf *missing, struct weft_error *err)
{
    const int rc = find_extras(p, missing, err);
    if (rc < 0 || !weft_offer_cdi(settings_of(p)->strategies) || p->machine->device_count == 0) {
        return rc;
    }
    return write_files(p, err);
}

static void tell(struct weft_prepare *p, int rc, const char *reason, const struct weft_buf *missing)
{
    const char *text = rc < 0 ? reason : weft_buf_text(missing);
    const uint64_t digest =
        text[0] != '\0' ? weft_hash64((uint64_t)(rc < 0), text, strlen(text)) : 0;
    if (digest == p->told) {
        return;
    }
    p->told = digest;
    if (rc < 0) {
        weft_log(WEFT_LOG_ERROR, "not-ready", WEFT_KV_S("reason", reason),
                 WEFT_KV_S("effect", "the devices are unhealthy; it is tried again"));
    } else if (text[0] != '\0') {
        weft_log(WEFT_LOG_WARN, "left-out", WEFT_KV_S("missing", text),
                 WEFT_KV_S("effect", "containers do not get it until it is there"));
    }
}

static void make_unhealthy(struct weft_machine *machine, const char *reason)
{
    for (size_t i = 0; i < machine->device_count; i++) {
        struct weft_device *d = &machine->devices[i];
        if (d->healthy) {
            d->healthy = false;
            (void)snprintf(d->health_reason, sizeof(d->health_reason), "%.95s", reason);
        }
    }
}

/* *ret_again: it is worth to look again. A file may be removed by others: it is made anew. */
static int attempt(struct weft_prepare *p, struct weft_error *err, bool *ret_again)
{
    weft_auto(weft_buf_done) struct weft_buf missing;
    weft_buf_init(&missing, MISSING_MAX);
    const int rc = make_ready(p, &missing, err);
    tell(p, rc, err->message, &missing);
    *ret_again = rc < 0 || missing.len > 0 || weft_offer_cdi(settings_of(p)->strategies);
    return rc;
}

/* Without memory it is tried again. */
static void hand_over(struct weft_prepare *p, int rc, const char *reason)
{
    struct weft_machine *machine = NULL;
    struct weft_error err = {0};
    p->pending = weft_machine_copy(p->machine, &machine, &err) < 0;
    if (p->pending) {
        weft_log(WEFT_LOG_ERROR, "machine-not-used", WEFT_KV_S("reason", err.message),
                 WEFT_KV_S("effect", "the last good one stays; it is tried again"));
        return;
    }
    if (rc < 0) {
        make_unhealthy(machine, reason);
    }
    p->options.ready(p->options.data, machine);
}

static bool is_wanted(const struct weft_prepare *p)
{
    return weft_offer_cdi(settings_of(p)->strategies) || features_wanted(p);
}

/* changes_only: an outcome that was handed over before is not once more; the digest of what was
 * told stands for it. */
static void look(struct weft_prepare *p, bool changes_only)
{
    const uint64_t before = p->told;
    const bool once = p->pending || !changes_only; /* the timer does not repeat yet */
    struct weft_error err = {0};
    bool again = false;
    int rc = 0;
    p->busy = is_wanted(p);
    if (p->busy) {
        rc = attempt(p, &err, &again);
    } else {
        weft_extras_done(&p->extras);
        p->told = 0;
    }
    if (!changes_only || p->pending || p->told != before) {
        hand_over(p, rc, err.message);
    }
    if (p->pending) {
        weft_timer_start(p->again, PENDING_NS, 0);
    } else if (!again) {
        weft_timer_stop(p->again);
    } else if (once) {
        weft_timer_start_aligned(p->again, AGAIN_NS);
    }
}

static void on_again(void *data)
{
    struct weft_prepare *p = data;
    WEFT_CHECK(p, PREPARE_MAGIC);
    look(p, true);
}

void weft_prepare_use(struct weft_prepare *prepare, struct weft_machine *machine)
{
    WEFT_CHECK(prepare, PREPARE_MAGIC);
    weft_machine_free(prepare->machine);
    prepare->machine = machine;
    look(prepare, false);
}

void weft_prepare_again(struct weft_prepare *prepare)
{
    WEFT_CHECK(prepare, PREPARE_MAGIC);
    if (prepare->machine != NULL && (prepare->busy || is_wanted(prepare))) {
        look(prepare, false);
    }
}

const struct weft_extras *weft_prepare_extras(const struct weft_prepare *prepare)
{
    WEFT_CHECK(prepare, PREPARE_MAGIC);
    return &prepare->extras;
}

/* ---- life ---- */

int weft_prepare_new(const struct weft_prepare_options *options, struct weft_prepare **ret_prepare,
                     struct weft_error *err)
{
    weft_auto(weft_prepare_free) struct weft_prepare *p = weft_calloc(1, sizeof(*p));
    if (p == NULL) {
        return weft_err_nomem(err);
    }
    p->magic = PREPARE_MAGIC;
    p->options = *options;
    const int rc = weft_timer_new(options->loop, on_again, p, &p->again, err);
    if (rc == 0) {
        *ret_prepare = weft_steal(&p);
    }
    return rc;
}

void weft_prepare_free(struct weft_prepare *prepare)
{
    if (prepare != NULL) {
        WEFT_CHECK(prepare, PREPARE_MAGIC);
        weft_timer_free(prepare->again);
        weft_machine_free(prepare->machine);
        weft_extras_done(&prepare->extras);
        weft_driver_files_done(&prepare->files);
        prepare->magic = 0;
        weft_free(prepare);
    }
}
