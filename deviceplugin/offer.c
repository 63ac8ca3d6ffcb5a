/* SPDX-License-Identifier: Apache-2.0 */
/* From devices, settings and what is on the host to the texts of answers. The variables, folders
 * and CDI names are those of NVIDIA's device plugin and container runtime (docs of its toolkit),
 * and of Moore Threads' runtime. */
#include "deviceplugin/offer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define VOLUME_FOLDER "/var/run/nvidia-container-devices"

enum {
    ARENA_MAX = 16 << 20, /* 1024 devices with eight nodes of the longest paths are 5 MiB */
    TEXT_MAX = 1024,
    CHANNEL_TEXT_MAX = 12 /* a number and a comma */
};

const char *const weft_storage_mounts[WEFT_STORAGE_MOUNTS] = {"/run/udev", "/etc/cufile.json"};

const char *weft_extra_class(enum weft_extra extra)
{
    static const char *const classes[] = {[WEFT_EXTRA_IMEX] = "imex-channel",
                                          [WEFT_EXTRA_GDRCOPY] = "gdrcopy",
                                          [WEFT_EXTRA_GDS] = "gds",
                                          [WEFT_EXTRA_MOFED] = "mofed"};
    return classes[extra];
}

void weft_extras_done(struct weft_extras *extras)
{
    for (size_t i = 0; i < extras->node_count; i++) {
        weft_free(extras->nodes[i]);
    }
    *extras = (struct weft_extras){0};
}

/* ---- names ---- */

bool weft_offer_cdi(unsigned strategies)
{
    return (strategies & (WEFT_RESPOND_CDI_ANNOTATIONS | WEFT_RESPOND_CDI_CRI)) != 0;
}

bool weft_offer_nvidia(const struct weft_machine *machine)
{
    return strcmp(machine->vendor, "nvidia") == 0 || machine->vendor[0] == '\0';
}

const char *weft_offer_cdi_vendor_of(const char *vendor)
{
    static const char *const vendors[][2] = {{"amd", "k8s.device-plugin.amd.com"},
                                             {"intel", "k8s.device-plugin.intel.com"},
                                             {"mthreads", "k8s.device-plugin.mthreads.com"}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(vendors); i++) {
        if (strcmp(vendor, vendors[i][0]) == 0) {
            return vendors[i][1];
        }
    }
    return "k8s.device-plugin.nvidia.com";
}

const char *weft_offer_cdi_vendor(const struct weft_machine *machine)
{
    return weft_offer_cdi_vendor_of(machine->vendor);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* CDI specification, "devices[].name": letters and digits, and - _ . : between them. */
bool weft_offer_cdi_name_valid(const char *name)
{
    const size_t len = strlen(name);
    if (len == 0 || !is_word(name[0]) || !is_word(name[len - 1])) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (!is_word(name[i]) && strchr("-_.:", name[i]) == NULL) {
            return false;
        }
    }
    return true;
}

/* Without its library Moore Threads' devices have no UUID: the id is the PCI address then, which
 * its runtime does not know. */
static bool is_address(const char *id)
{
    struct weft_bdf bdf;
    return weft_bdf_parse(id, &bdf) == 0;
}

void weft_offer_name(const struct weft_machine *machine, const struct weft_device *device,
                     enum weft_respond_id id_strategy, char *name)
{
    const bool unnamed = strcmp(machine->vendor, "mthreads") == 0 && is_address(device->id);
    if (id_strategy == WEFT_RESPOND_UUID && !unnamed) {
        (void)snprintf(name, WEFT_DEVICE_ID_MAX, "%s", device->id);
    } else if (device->parent >= 0) {
        (void)snprintf(name, WEFT_DEVICE_ID_MAX, "%d:%d", device->parent, device->partition);
    } else {
        (void)snprintf(name, WEFT_DEVICE_ID_MAX, "%d", device->index);
    }
}

/* ---- texts ---- */

struct making {
    struct weft_offer *offer;
    const struct weft_machine *machine;
    const struct weft_respond_settings *settings;
    const struct weft_extras *extras;
    unsigned strategies;
    const char *dev_root;
    int status; /* sticky: 0, -ENOMEM */
};

static void *take(struct making *m, size_t count, size_t size)
{
    void *p = weft_pb_arena_alloc(&m->offer->arena, (count + 1) * size);
    if (p == NULL) {
        m->status = -ENOMEM;
    }
    return p;
}

__attribute__((format(printf, 2, 3))) static const char *text(struct making *m, const char *format,
                                                              ...)
{
    char buf[TEXT_MAX];
    va_list ap;
    va_start(ap, format);
    const int len = vsnprintf(buf, sizeof(buf), format, ap);
    va_end(ap);
    char *copy = len >= 0 && len < TEXT_MAX ? take(m, (size_t)len, 1) : NULL;
    if (copy == NULL) {
        m->status = -ENOMEM;
        return "";
    }
    memcpy(copy, buf, (size_t)len);
    return copy;
}

/* ---- device nodes and mounts ---- */

/* The number of a node, which is added if it is new from first on. Devices of one GPU follow one
 * another and the rest of the list is short: looking from the end finds a node soon. */
static size_t node_number(struct making *m, const char *path, size_t first)
{
    struct weft_offer *offer = m->offer;
    for (size_t i = offer->node_count; i > first; i--) {
        if (strcmp(offer->nodes[i - 1].container_path, path) == 0) {
            return i - 1;
        }
    }
    offer->nodes[offer->node_count] = (struct weft_kubelet_node){
        .container_path = text(m, "%s", path),
        .host_path = text(m, "%s%s", m->dev_root, path),
        .permissions = "rw",
    };
    return offer->node_count++;
}

/* Other vendors have no runtime that would let a device in; with CDI alone the file does. */
static bool wants_nodes(const struct making *m)
{
    const bool only_cdi = (m->strategies & (WEFT_RESPOND_ENVVAR | WEFT_RESPOND_VOLUME_MOUNTS)) == 0;
    return !only_cdi && (m->settings->pass_device_specs || !weft_offer_nvidia(m->machine));
}

static void put_device_nodes(struct making *m, const struct weft_device *d,
                             struct weft_offer_device *to, size_t first)
{
    size_t *numbers = take(m, d->node_count, sizeof(*numbers));
    for (size_t i = 0; numbers != NULL && i < d->node_count; i++) {
        numbers[i] = node_number(m, d->nodes[i], first);
    }
    to->nodes = numbers;
    to->node_count = numbers != NULL ? d->node_count : 0;
    size_t *mounts = take(m, d->mount_count, sizeof(*mounts));
    for (size_t i = 0; mounts != NULL && i < d->mount_count; i++) {
        mounts[i] = m->offer->mount_count;
        m->offer->mounts[m->offer->mount_count++] =
            (struct weft_kubelet_mount){.container_path = text(m, "%s", d->mounts[i]),
                                        .host_path = text(m, "%s", d->mounts[i]),
                                        .read_only = true};
    }
    to->mounts = mounts;
    to->mount_count = mounts != NULL ? d->mount_count : 0;
}

static void put_nodes(struct making *m)
{
    const struct weft_machine *machine = m->machine;
    struct weft_offer *offer = m->offer;
    size_t nodes = machine->common_node_count + m->extras->node_count, mounts = 0;
    for (size_t i = 0; i < machine->device_count; i++) {
        nodes += machine->devices[i].node_count;
        mounts += machine->devices[i].mount_count;
    }
    offer->nodes = take(m, nodes, sizeof(*offer->nodes));
    offer->mounts = take(m, mounts, sizeof(*offer->mounts));
    if (m->status < 0 || !wants_nodes(m)) {
        return;
    }
    size_t first = 0;
    for (size_t i = 0; i < machine->device_count; i++) {
        const struct weft_device *d = &machine->devices[i];
        const bool same_card =
            i > 0 && d->parent >= 0 && d->parent == machine->devices[i - 1].parent;
        first = same_card ? first : offer->node_count;
        put_device_nodes(m, d, &offer->devices[i], first);
    }
    offer->common = offer->node_count;
    for (size_t i = 0; i < machine->common_node_count; i++) {
        (void)node_number(m, machine->common_nodes[i], offer->common);
    }
    for (size_t i = 0; i < m->extras->node_count; i++) {
        (void)node_number(m, m->extras->nodes[i], offer->common);
    }
}

/* ---- names of devices ---- */

static int put_names(struct making *m, struct weft_error *err)
{
    const struct weft_machine *machine = m->machine;
    const char *vendor = weft_offer_cdi_vendor(machine);
    const bool cdi = weft_offer_cdi(m->strategies);
    const bool volumes =
        (m->strategies & WEFT_RESPOND_VOLUME_MOUNTS) != 0 && weft_offer_nvidia(machine);
    for (size_t i = 0; i < machine->device_count; i++) {
        struct weft_offer_device *to = &m->offer->devices[i];
        char name[WEFT_DEVICE_ID_MAX];
        weft_offer_name(machine, &machine->devices[i], m->settings->id_strategy, name);
        if (cdi && !weft_offer_cdi_name_valid(name)) {
            return weft_err_set(
                err, -EINVAL, WEFT_ERR_CONFIG,
                "CDI cannot name the device %s: it allows letters, digits, - _ . :", name);
        }
        to->name = text(m, "%s", name);
        to->cdi = cdi ? text(m, "%s/gpu=%s", vendor, name) : NULL;
        to->volume = volumes ? text(m, VOLUME_FOLDER "/%s", name) : NULL;
    }
    return 0;
}

/* ---- what every container gets ---- */

static void put_env(struct making *m, const char *key, const char *value)
{
    m->offer->envs[m->offer->env_count++] = (struct weft_kubelet_pair){.key = key, .value = value};
}

/* NVIDIA's runtime reads the channels from a variable, or from mounts beside the devices'. */
static void put_imex(struct making *m)
{
    const struct weft_extras *extras = m->extras;
    struct weft_offer *offer = m->offer;
    char list[WEFT_RESPOND_IMEX_MAX * CHANNEL_TEXT_MAX] = "";
    size_t len = 0;
    offer->common_mounts = take(m, extras->imex_channel_count, sizeof(*offer->common_mounts));
    for (size_t i = 0; m->status == 0 && i < extras->imex_channel_count; i++) {
        const uint32_t channel = extras->imex_channels[i];
        len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%" PRIu32, i > 0 ? "," : "",
                                channel);
        if ((m->strategies & WEFT_RESPOND_VOLUME_MOUNTS) != 0) {
            offer->common_mounts[offer->common_mount_count++] = (struct weft_kubelet_mount){
                .container_path = text(m, VOLUME_FOLDER "/imex/%" PRIu32, channel),
                .host_path = "/dev/null"};
        }
    }
    if (len > 0 && (m->strategies & WEFT_RESPOND_ENVVAR) != 0) {
        put_env(m, "NVIDIA_IMEX_CHANNELS", text(m, "%s", list));
    }
}

static void put_common_cdi(struct making *m)
{
    const struct weft_extras *extras = m->extras;
    const char *vendor = weft_offer_cdi_vendor(m->machine);
    struct weft_offer *offer = m->offer;
    offer->common_cdi = take(m, extras->imex_channel_count + WEFT_EXTRA_COUNT, sizeof(char *));
    if (m->status < 0 || !weft_offer_cdi(m->strategies)) {
        return;
    }
    for (size_t i = 0; extras->cdi[WEFT_EXTRA_IMEX] && i < extras->imex_channel_count; i++) {
        offer->common_cdi[offer->common_cdi_count++] =
            text(m, "%s/imex-channel=%" PRIu32, vendor, extras->imex_channels[i]);
    }
    for (int i = WEFT_EXTRA_GDRCOPY; i < WEFT_EXTRA_COUNT; i++) {
        if (extras->cdi[i]) {
            offer->common_cdi[offer->common_cdi_count++] =
                text(m, "%s/%s=all", vendor, weft_extra_class((enum weft_extra)i));
        }
    }
}

static void put_features(struct making *m)
{
    const struct weft_respond_settings *s = m->settings;
    if (s->gdrcopy) {
        put_env(m, "NVIDIA_GDRCOPY", "enabled");
    }
    if (s->gds) {
        put_env(m, "NVIDIA_GDS", "enabled");
    }
    if (s->mofed) {
        put_env(m, "NVIDIA_MOFED", "enabled");
    }
    put_imex(m);
}

static void put_variable(struct making *m)
{
    const bool variable = (m->strategies & WEFT_RESPOND_ENVVAR) != 0;
    const bool volumes = (m->strategies & WEFT_RESPOND_VOLUME_MOUNTS) != 0;
    if (weft_offer_nvidia(m->machine) && (variable || volumes)) {
        m->offer->list_variable = "NVIDIA_VISIBLE_DEVICES";
        m->offer->list_value = volumes ? VOLUME_FOLDER : NULL;
    } else if (strcmp(m->machine->vendor, "mthreads") == 0 && (variable || volumes)) {
        m->offer->list_variable = "MTHREADS_VISIBLE_DEVICES";
    }
}

/* ---- life ---- */

static int make(struct making *m, struct weft_error *err)
{
    struct weft_offer *offer = m->offer;
    offer->devices = take(m, m->machine->device_count, sizeof(*offer->devices));
    if (m->status < 0) {
        return weft_err_nomem(err);
    }
    const int rc = put_names(m, err);
    if (rc < 0) {
        return rc;
    }
    put_nodes(m);
    put_variable(m);
    if (weft_offer_nvidia(m->machine)) {
        put_features(m);
    }
    put_common_cdi(m);
    if ((m->strategies & WEFT_RESPOND_CDI_ANNOTATIONS) != 0) {
        const char *prefix = m->settings->annotation_prefix;
        offer->annotation_prefix =
            text(m, "%s", prefix != NULL ? prefix : WEFT_RESPOND_ANNOTATION_PREFIX);
    }
    offer->cdi_devices = (m->strategies & WEFT_RESPOND_CDI_CRI) != 0;
    return m->status < 0 ? weft_err_nomem(err) : 0;
}

int weft_offer_new(const struct weft_machine *machine, const struct weft_respond_settings *settings,
                   const struct weft_extras *extras, struct weft_offer **ret_offer,
                   struct weft_error *err)
{
    static const struct weft_respond_settings usual = {.pass_device_specs = true};
    static const struct weft_extras none = {0};
    weft_auto(weft_offer_free) struct weft_offer *offer = weft_calloc(1, sizeof(*offer));
    if (offer == NULL) {
        return weft_err_nomem(err);
    }
    weft_pb_arena_init(&offer->arena, ARENA_MAX);
    struct making m = {.offer = offer,
                       .machine = machine,
                       .settings = settings != NULL ? settings : &usual,
                       .extras = extras != NULL ? extras : &none};
    m.strategies = m.settings->strategies != 0 ? m.settings->strategies : WEFT_RESPOND_ENVVAR;
    m.dev_root = weft_respond_dev_root(m.settings);
    const int rc = make(&m, err);
    if (rc == 0) {
        *ret_offer = weft_steal(&offer);
    }
    return rc;
}

void weft_offer_free(struct weft_offer *offer)
{
    if (offer != NULL) {
        weft_pb_arena_done(&offer->arena);
        weft_free(offer);
    }
}
