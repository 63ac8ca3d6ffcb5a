/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of GPUs. The names of the cases are those of GPU feature discovery's own code: "full" GPUs
 * are whole ones, "shared" are those of which pods get replicas. */
#include "deviceplugin/features.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deviceplugin/features-internal.h"
#include "deviceplugin/vgpu.h"
#include "pkg/base/buf.h"
#include "pkg/base/str.h"
#include "pkg/machine/machine.h"

/* ---- texts ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* A label's value: what it cannot have is dropped, blanks between words become a dash, and it
 * begins and ends with a letter or a digit. */
void weft_feature_value(char *value, const char *text)
{
    size_t len = 0;
    bool blank = false;
    for (; *text != '\0' && len < WEFT_FEATURE_VALUE_MAX - 1; text++) {
        const char c = *text;
        if (c == ' ') {
            blank = len > 0;
        } else if (is_word(c) || (len > 0 && strchr("-_.", c) != NULL)) {
            if (blank && len < WEFT_FEATURE_VALUE_MAX - 2) {
                value[len++] = '-';
            }
            blank = false;
            value[len++] = c;
        }
    }
    while (len > 0 && !is_word(value[len - 1])) {
        len--;
    }
    value[len] = '\0';
}

/* Sets a label, anew if it is there. */
void weft_feature_set(struct weft_feature_view *v, const char *resource, const char *suffix,
                      const char *format, ...)
{
    char key[WEFT_FEATURE_KEY_MAX], text[4 * WEFT_FEATURE_VALUE_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)snprintf(key, sizeof(key), "%s%s", resource, suffix);
    size_t i = 0;
    while (i < v->labels.count && strcmp(v->labels.items[i].key, key) != 0) {
        i++;
    }
    if (i == WEFT_FEATURES_MAX) {
        v->labels.full = true;
        return;
    }
    struct weft_feature *label = &v->labels.items[i];
    memcpy(label->key, key, sizeof(key));
    weft_feature_value(label->value, text);
    v->labels.count += i == v->labels.count ? 1 : 0;
}

static int by_key(const void *a, const void *b)
{
    const struct weft_feature *x = a, *y = b;
    return strcmp(x->key, y->key);
}

/* ---- the GPUs ---- */

static bool is_split(const struct weft_feature_view *v, int index)
{
    for (size_t i = v->whole; i < v->count; i++) {
        if (v->gpus[i].index == index) {
            return true;
        }
    }
    return false;
}

/* A recording may know a split GPU by its partitions alone. */
static void find_gpus(struct weft_feature_view *v)
{
    const struct weft_machine *m = v->machine;
    for (size_t i = 0; i < m->device_count; i++) {
        const struct weft_device *d = &m->devices[i];
        if (d->parent < 0) {
            v->gpus[v->count++] = (struct weft_feature_gpu){.model = d->model,
                                                            .capability = d->capability,
                                                            .memory_mib = d->memory_mib,
                                                            .pci_class = d->pci_class,
                                                            .device = i,
                                                            .index = d->index};
        }
    }
    v->whole = v->count;
    for (size_t i = 0; i < m->parent_count; i++) {
        const struct weft_parent *p = &m->parents[i];
        if (!is_split(v, p->index)) {
            v->gpus[v->count++] = (struct weft_feature_gpu){.model = p->model,
                                                            .capability = p->capability,
                                                            .memory_mib = p->memory_mib,
                                                            .pci_class = p->pci_class,
                                                            .device = SIZE_MAX,
                                                            .index = p->index};
        }
    }
    for (size_t i = 0; i < m->device_count; i++) {
        const struct weft_device *d = &m->devices[i];
        if (d->parent >= 0 && !is_split(v, d->parent)) {
            v->gpus[v->count++] = (struct weft_feature_gpu){.model = d->model,
                                                            .capability = d->capability,
                                                            .pci_class = d->pci_class,
                                                            .device = SIZE_MAX,
                                                            .index = d->parent};
        }
    }
}

/* GPUs of that model, split ones too. */
static size_t count_of(const struct weft_feature_view *v, const char *model)
{
    size_t count = 0;
    for (size_t i = 0; i < v->count; i++) {
        count += strcmp(v->gpus[i].model, model) == 0 ? 1 : 0;
    }
    return count;
}

/* ---- sharing ---- */

/* The resource that a device is given out as; NULL for none. */
static const struct weft_pool *pool_of(const struct weft_feature_view *v, size_t device)
{
    for (size_t i = 0; i < v->pools.count; i++) {
        for (size_t k = 0; k < v->pools.items[i].device_count; k++) {
            if (v->pools.items[i].devices[k] == device) {
                return &v->pools.items[i];
            }
        }
    }
    return NULL;
}

/* Do pods ask for replicas by the name that whole devices would have? */
static bool same_name(const struct weft_feature_view *v, const struct weft_pool *pool)
{
    for (size_t i = 0; i < v->settings->share_count; i++) {
        const struct weft_pool_share *share = &v->settings->shares[i];
        if (share->rename == NULL && !v->settings->rename_by_default &&
            strcmp(share->resource, pool->resource) == 0) {
            return true;
        }
    }
    return false;
}

/* What all resources have. parts of the product's name, NULL-terminated. */
void weft_feature_base(struct weft_feature_view *v, const char *resource, size_t count,
                       size_t device, const char *const *parts)
{
    const struct weft_pool *pool = pool_of(v, device);
    const uint32_t replicas = pool != NULL ? pool->replicas : 1;
    char product[4 * WEFT_FEATURE_VALUE_MAX] = "";
    size_t len = 0;
    for (; *parts != NULL; parts++) {
        char part[WEFT_FEATURE_VALUE_MAX];
        weft_feature_value(part, *parts);
        len += (size_t)snprintf(product + len, sizeof(product) - len, "%s%s", len > 0 ? "-" : "",
                                part);
    }
    const bool shared = replicas > 1 && same_name(v, pool);
    weft_feature_set(v, resource, ".product", "%s%s", product, shared ? "-SHARED" : "");
    weft_feature_set(v, resource, ".count", "%zu", count);
    weft_feature_set(v, resource, ".replicas", "%" PRIu32, replicas);
    weft_feature_set(v, resource, ".sharing-strategy", "%s",
                     replicas > 1 ? "time-slicing" : "none");
}

/* ---- whole GPUs ---- */

static const char *family_of(int major, int minor)
{
    switch (major) {
    case 1:
        return "tesla";
    case 2:
        return "fermi";
    case 3:
        return "kepler";
    case 5:
        return "maxwell";
    case 6:
        return "pascal";
    case 7:
        return minor < 5 ? "volta" : "turing";
    case 8:
        return minor < 9 ? "ampere" : "ada-lovelace";
    case 9:
        return "hopper";
    case 10:
    case 12:
        return "blackwell";
    case 13:
        return "rubin";
    default:
        return "undefined";
    }
}

static void put_architecture(struct weft_feature_view *v, const char *capability)
{
    struct weft_str rest = weft_str(capability), major_text;
    int64_t major = 0, minor = 0;
    if (weft_str_split(&rest, '.', &major_text) && weft_parse_i64(major_text, 1, 99, &major) == 0 &&
        weft_parse_i64(rest, 0, 99, &minor) == 0) {
        weft_feature_set(v, WEFT_FEATURE_GPU, ".family", "%s", family_of((int)major, (int)minor));
        weft_feature_set(v, WEFT_FEATURE_GPU, ".compute.major", "%" PRId64, major);
        weft_feature_set(v, WEFT_FEATURE_GPU, ".compute.minor", "%" PRId64, minor);
    }
}

/* Split GPUs count as what they are, but are not given out: they have no replicas. Where there are
 * whole ones, their labels stand. */
static void put_gpus(struct weft_feature_view *v)
{
    const struct weft_feature_gpu *gpu = &v->gpus[0];
    weft_feature_base(v, WEFT_FEATURE_GPU, count_of(v, gpu->model), gpu->device,
                      (const char *const[]){gpu->model, NULL});
    if (v->whole == 0) {
        weft_feature_set(v, WEFT_FEATURE_GPU, ".replicas", "0");
    }
    if (gpu->memory_mib != 0) {
        weft_feature_set(v, WEFT_FEATURE_GPU, ".memory", "%" PRIu64, gpu->memory_mib);
    }
    put_architecture(v, gpu->capability);
}

/* ---- the machine ---- */

/* "550.54.15" or "535.129"; another form has no labels. The older keys are still selected on. */
static void put_driver(struct weft_feature_view *v, const char *version)
{
    struct weft_str rest = weft_str(version), parts[3] = {{"", 0}, {"", 0}, {"", 0}};
    size_t count = 0;
    while (count < WEFT_ARRAY_LEN(parts) && weft_str_split(&rest, '.', &parts[count])) {
        count++;
    }
    if (count < 2 || rest.len > 0) {
        return;
    }
    static const char *const suffixes[][2] = {{"cuda.driver.major", "cuda.driver-version.major"},
                                              {"cuda.driver.minor", "cuda.driver-version.minor"},
                                              {"cuda.driver.rev", "cuda.driver-version.revision"}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(parts); i++) {
        weft_feature_set(v, "nvidia.com/", suffixes[i][0], "%.*s", WEFT_STR_ARG(parts[i]));
        weft_feature_set(v, "nvidia.com/", suffixes[i][1], "%.*s", WEFT_STR_ARG(parts[i]));
    }
    weft_feature_set(v, "nvidia.com/", "cuda.driver-version.full", "%s", version);
}

static void put_runtime(struct weft_feature_view *v, const char *version)
{
    struct weft_str minor = weft_str(version), major;
    if (!weft_str_split(&minor, '.', &major) || major.len == 0 || minor.len == 0) {
        return;
    }
    weft_feature_set(v, "nvidia.com/", "cuda.runtime.major", "%.*s", WEFT_STR_ARG(major));
    weft_feature_set(v, "nvidia.com/", "cuda.runtime.minor", "%.*s", WEFT_STR_ARG(minor));
    weft_feature_set(v, "nvidia.com/", "cuda.runtime-version.major", "%.*s", WEFT_STR_ARG(major));
    weft_feature_set(v, "nvidia.com/", "cuda.runtime-version.minor", "%.*s", WEFT_STR_ARG(minor));
    weft_feature_set(v, "nvidia.com/", "cuda.runtime-version.full", "%s", version);
}

/* By PCI class: a VGA controller draws, a 3D controller computes. */
static void put_mode(struct weft_feature_view *v)
{
    enum { VGA = 0x030000, CONTROLLER_3D = 0x030200 };
    uint32_t class_code = v->gpus[0].pci_class;
    for (size_t i = 1; i < v->count; i++) {
        class_code = v->gpus[i].pci_class == class_code ? class_code : 0;
    }
    weft_feature_set(v, WEFT_FEATURE_GPU, ".mode", "%s",
                     class_code == VGA             ? "graphics"
                     : class_code == CONTROLLER_3D ? "compute"
                                                   : "unknown");
}

/* Only if all GPUs that are in a fabric are in the same one. */
static void put_clique(struct weft_feature_view *v)
{
    const char *clique = NULL;
    for (size_t i = 0; i < v->machine->device_count; i++) {
        const char *own = v->machine->devices[i].clique;
        if (own[0] != '\0' && clique != NULL && strcmp(own, clique) != 0) {
            return;
        }
        clique = own[0] != '\0' ? own : clique;
    }
    if (clique != NULL) {
        weft_feature_set(v, WEFT_FEATURE_GPU, ".clique", "%s", clique);
    }
}

static void put_vgpu(struct weft_feature_view *v, const struct weft_vgpu *vgpu)
{
    weft_feature_set(v, "nvidia.com/", "vgpu.present", "%s", vgpu->present ? "true" : "false");
    if (vgpu->present) {
        weft_feature_set(v, "nvidia.com/", "vgpu.host-driver-version", "%s", vgpu->version);
        weft_feature_set(v, "nvidia.com/", "vgpu.host-driver-branch", "%s", vgpu->branch);
    }
}

static void put_all(struct weft_feature_view *v, const struct weft_feature_settings *settings)
{
    char type[WEFT_FEATURE_VALUE_MAX];
    weft_feature_value(type, settings->machine_type != NULL ? settings->machine_type : "");
    weft_feature_set(v, WEFT_FEATURE_GPU, ".machine", "%s", type[0] != '\0' ? type : "unknown");
    put_driver(v, v->machine->driver_version);
    put_runtime(v, v->machine->runtime_version);
    put_gpus(v);
    weft_feature_mig(v);
    put_mode(v);
    put_clique(v);
    if (settings->vgpu != NULL) {
        put_vgpu(v, settings->vgpu);
    }
}

static int build(struct weft_feature_view *v, const struct weft_feature_settings *settings,
                 struct weft_error *err)
{
    const struct weft_machine *m = v->machine;
    v->gpus = weft_calloc(m->device_count + m->parent_count + 1, sizeof(*v->gpus));
    v->labels.items = weft_calloc(WEFT_FEATURES_MAX, sizeof(*v->labels.items));
    if (v->gpus == NULL || v->labels.items == NULL) {
        return weft_err_nomem(err);
    }
    find_gpus(v);
    if (v->count == 0) {
        return 0;
    }
    const int rc = weft_pools_plan(m, v->settings, &v->pools, err);
    if (rc < 0) {
        return rc;
    }
    put_all(v, settings);
    qsort(v->labels.items, v->labels.count, sizeof(*v->labels.items), by_key);
    return v->labels.full ? weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "more than %d labels",
                                         (int)WEFT_FEATURES_MAX)
                          : 0;
}

int weft_features_build(const struct weft_machine *machine,
                        const struct weft_feature_settings *settings, struct weft_buf *buf,
                        struct weft_error *err)
{
    if (strcmp(machine->vendor, "nvidia") != 0) {
        return 0;
    }
    struct weft_feature_view v = {.machine = machine, .settings = settings->pools};
    int rc = build(&v, settings, err);
    for (size_t i = 0; rc == 0 && i < v.labels.count; i++) {
        rc = weft_buf_printf(buf, "%s=%s\n", v.labels.items[i].key, v.labels.items[i].value);
    }
    weft_pools_done(&v.pools);
    weft_free(v.gpus);
    weft_free(v.labels.items);
    return rc;
}
