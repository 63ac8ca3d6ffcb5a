/* SPDX-License-Identifier: Apache-2.0 */
/* Labels into a file. */
#include "deviceplugin/feature-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "deviceplugin/features.h"
#include "deviceplugin/options.h"
#include "deviceplugin/vgpu.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/base/log.h"
#include "pkg/base/str.h"
#include "pkg/loop/loop.h"
#include "pkg/machine/machine.h"

enum {
    FEATURE_FILE_MAGIC = 0x46656174, /* "Feat" */
    TEXT_MAX = 256 << 10,
    TYPE_MAX = 4096,   /* sysfs calls its files as long as a page */
    CONFIG_MAX = 4096, /* of PCI Express */
    FILE_MODE = 0644
};

#define TIMESTAMP "nvidia.com/gfd.timestamp="
#define AGAIN_NS (30 * WEFT_NS_PER_S)

struct weft_feature_file {
    uint32_t magic;
    struct weft_feature_file_options options;
    struct weft_timer *timer;             /* until the next look at the file */
    struct weft_buf labels;               /* what it has to say, without the time */
    char problem[WEFT_ERROR_MESSAGE_MAX]; /* that was told last; "" none */
};

/* ---- what it has to say ---- */

/* The first line of the file with the computer's name, owned; NULL if it cannot be read. */
static char *machine_type(const struct weft_options *o)
{
    weft_autofree char *path =
        weft_asprintf("%s%s", o->host_root != NULL ? o->host_root : "", o->labels.machine_type);
    char *text = NULL;
    if (path == NULL || weft_file_read_regular(path, TYPE_MAX, &text, NULL, NULL) < 0) {
        return NULL;
    }
    text[strcspn(text, "\n")] = '\0';
    return text;
}

/* What the first GPU says whose configuration space can be read; a virtual one wins. */
static bool find_vgpu(const struct weft_options *o, const struct weft_machine *machine,
                      struct weft_vgpu *ret_vgpu)
{
    bool known = false;
    for (size_t i = 0; i < machine->device_count && !(known && ret_vgpu->present); i++) {
        char address[WEFT_BDF_TEXT_MAX];
        const struct weft_bdf *bdf = &machine->devices[i].bdf;
        weft_autofree char *path =
            weft_asprintf("%s/sys/bus/pci/devices/%s/config",
                          o->host_root != NULL ? o->host_root : "", weft_bdf_format(bdf, address));
        weft_autofree char *config = NULL;
        size_t len = 0;
        if (path != NULL && bdf->known &&
            weft_file_read_regular(path, CONFIG_MAX, &config, &len, NULL) == 0) {
            known = weft_vgpu_parse((const uint8_t *)config, len, ret_vgpu) || known;
        }
    }
    return known;
}

static int build(struct weft_feature_file *f, const struct weft_machine *machine,
                 struct weft_error *err)
{
    const struct weft_options *o = f->options.options;
    weft_autofree char *type = machine_type(o);
    struct weft_vgpu vgpu = {0};
    const bool known = find_vgpu(o, machine, &vgpu);
    const struct weft_feature_settings settings = {
        .pools = &o->pools, .machine_type = type, .vgpu = known ? &vgpu : NULL};
    weft_buf_reset(&f->labels);
    const int rc = weft_features_build(machine, &settings, &f->labels, err);
    return rc == -ENOMEM ? weft_err_nomem(err) : rc;
}

/* ---- the file ---- */

/* Is the file what it has to be, but for the time? */
static bool is_current(const struct weft_feature_file *f)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    const struct weft_options *o = f->options.options;
    if (weft_file_read_regular(o->labels.file, TEXT_MAX, &text, &len, NULL) < 0) {
        return false;
    }
    struct weft_str rest = {text, len};
    bool timed = false;
    if (weft_str_starts(rest, TIMESTAMP)) {
        struct weft_str line;
        timed = weft_str_line(&rest, &line);
    }
    return timed != o->labels.no_timestamp && weft_str_eq(rest, weft_buf_text(&f->labels));
}

/* Node Feature Discovery reads every file of its folder but those that begin with a dot. */
static char *temporary_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    return weft_asprintf("%.*s.%s.tmp", (int)(name - path), path, name);
}

/* What stands at the path may be a device or a pipe (/dev/stdout, /dev/null), which a rename would
 * put a file in the place of, for everybody on the machine. */
static int check_replaceable(const char *path, struct weft_error *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s is no regular file, and is not replaced by one", path);
    }
    return 0;
}

static int replace(const char *path, const struct weft_buf *text, struct weft_error *err)
{
    const int replaceable = check_replaceable(path, err);
    if (replaceable < 0) {
        return replaceable;
    }
    weft_autofree char *base = temporary_of(path);
    weft_autofree char *temporary = NULL;
    weft_autoclose int fd = -1;
    if (base == NULL) {
        return weft_err_nomem(err);
    }
    int rc = weft_file_temporary(base, FILE_MODE, &temporary, &fd, err);
    if (rc < 0) {
        return rc;
    }
    rc = fchmod(fd, FILE_MODE) < 0 ? weft_err_errno(err, errno, "mode of %s", temporary) : 0;
    rc = rc == 0 ? weft_fd_write(fd, weft_buf_text(text), text->len, err) : rc;
    if (rc == 0 && rename(temporary, path) < 0) {
        rc = weft_err_errno(err, errno, "rename %s to %s", temporary, path);
    }
    if (rc < 0) {
        (void)unlink(temporary);
    }
    return rc;
}

static int write_file(struct weft_feature_file *f, struct weft_error *err)
{
    const struct weft_options *o = f->options.options;
    weft_auto(weft_buf_done) struct weft_buf text;
    weft_buf_init(&text, TEXT_MAX);
    if (!o->labels.no_timestamp) {
        (void)weft_buf_printf(&text, TIMESTAMP "%" PRId64 "\n",
                              weft_clock_realtime(f->options.clock) / WEFT_NS_PER_S);
    }
    (void)weft_buf_append(&text, weft_buf_text(&f->labels), f->labels.len);
    if (text.status < 0) {
        return weft_err_set(err, text.status, WEFT_ERR_CONFIG, "labels: %s",
                            text.status == -ENOMEM ? "out of memory" : "too many");
    }
    return replace(o->labels.file, &text, err);
}

/* ---- when ---- */

/* Each problem once. */
static void failed(struct weft_feature_file *f, const struct weft_error *err)
{
    if (strcmp(f->problem, err->message) != 0) {
        (void)snprintf(f->problem, sizeof(f->problem), "%s", err->message);
        weft_log(WEFT_LOG_WARN, "labels-not-written", WEFT_KV_S("reason", err->message),
                 WEFT_KV_S("effect", "tried again every 30 s"));
    }
}

/* And looks again: somebody may remove the file, and with it all labels. */
static void settle(struct weft_feature_file *f)
{
    struct weft_error err = {0};
    weft_timer_start(f->timer, f->options.again_ns > 0 ? f->options.again_ns : AGAIN_NS, 0);
    if (is_current(f)) {
        f->problem[0] = '\0';
    } else if (write_file(f, &err) < 0) {
        failed(f, &err);
    } else {
        f->problem[0] = '\0';
        weft_log(WEFT_LOG_INFO, "labels-written",
                 WEFT_KV_S("file", f->options.options->labels.file));
    }
}

static void on_timer(void *data)
{
    struct weft_feature_file *f = data;
    WEFT_CHECK(f, FEATURE_FILE_MAGIC);
    if (f->options.options->labels.file != NULL) {
        settle(f);
    }
}

/* No GPU, and a reason why none may be seen: the driver is not loaded yet, say. Labels that are
 * there stay. */
static bool in_doubt(const struct weft_machine *machine)
{
    return machine->device_count == 0 && machine->parent_count == 0 && machine->warning_count > 0;
}

void weft_feature_file_update(struct weft_feature_file *file, const struct weft_machine *machine)
{
    WEFT_CHECK(file, FEATURE_FILE_MAGIC);
    struct weft_error err = {0};
    if (file->options.options->labels.file == NULL) {
        weft_timer_stop(file->timer);
        return;
    }
    if (in_doubt(machine)) {
        return;
    }
    if (build(file, machine, &err) < 0) { /* the next machine may do; the file stays as it was */
        failed(file, &err);
        weft_timer_stop(file->timer);
        return;
    }
    settle(file);
}

int weft_feature_file_remove(const char *path, struct weft_error *err)
{
    const int rc = check_replaceable(path, err);
    weft_autofree char *temporary = temporary_of(path);
    if (temporary != NULL) {
        weft_file_remove_temporaries(temporary);
    }
    if (rc == 0 && unlink(path) < 0 && errno != ENOENT) {
        return weft_err_errno(err, errno, "remove %s", path);
    }
    return rc;
}

/* ---- life ---- */

int weft_feature_file_new(const struct weft_feature_file_options *options,
                          struct weft_feature_file **ret_file, struct weft_error *err)
{
    weft_auto(weft_feature_file_free) struct weft_feature_file *f = weft_calloc(1, sizeof(*f));
    if (f == NULL) {
        return weft_err_nomem(err);
    }
    f->magic = FEATURE_FILE_MAGIC;
    f->options = *options;
    weft_buf_init(&f->labels, TEXT_MAX);
    const int rc = weft_timer_new(options->loop, on_timer, f, &f->timer, err);
    if (rc == 0) {
        *ret_file = weft_steal(&f);
    }
    return rc;
}

void weft_feature_file_free(struct weft_feature_file *file)
{
    if (file != NULL) {
        WEFT_CHECK(file, FEATURE_FILE_MAGIC);
        weft_timer_free(file->timer);
        weft_buf_done(&file->labels);
        file->magic = 0;
        weft_free(file);
    }
}
