/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of GPUs that are split into MIG instances, by strategy. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "deviceplugin/features-internal.h"
#include "pkg/machine/machine.h"

static size_t instances_of(const struct weft_feature_view *v, const char *profile)
{
    size_t count = 0;
    for (size_t i = 0; i < v->machine->device_count; i++) {
        const struct weft_device *d = &v->machine->devices[i];
        count += d->parent >= 0 && strcmp(d->profile, profile) == 0 ? 1 : 0;
    }
    return count;
}

/* One profile's labels; device is an instance with it. */
static void put_profile(struct weft_feature_view *v, const char *resource, size_t device)
{
    const struct weft_device *d = &v->machine->devices[device];
    const struct weft_slices *s = &d->slices;
    char profile[sizeof(d->profile)];
    memcpy(profile, d->profile, sizeof(profile));
    for (char *c = profile; *c != '\0'; c++) {
        *c = *c == '+' ? '.' : *c;
    }
    weft_feature_base(v, resource, instances_of(v, d->profile), device,
                      (const char *const[]){d->model, "MIG", profile, NULL});
    weft_feature_set(v, resource, ".memory", "%" PRIu64, d->memory_mib);
    if (s->gpu == 0) {
        return;
    }
    weft_feature_set(v, resource, ".multiprocessors", "%u", s->multiprocessors);
    weft_feature_set(v, resource, ".slices.gi", "%u", s->gpu);
    weft_feature_set(v, resource, ".slices.ci", "%u", s->compute);
    weft_feature_set(v, resource, ".engines.copy", "%u", s->copy);
    weft_feature_set(v, resource, ".engines.decoder", "%u", s->decoders);
    weft_feature_set(v, resource, ".engines.encoder", "%u", s->encoders);
    weft_feature_set(v, resource, ".engines.jpeg", "%u", s->jpegs);
    weft_feature_set(v, resource, ".engines.ofa", "%u", s->ofas);
}

static void put_invalid(struct weft_feature_view *v)
{
    char model[WEFT_FEATURE_VALUE_MAX];
    weft_feature_value(model, v->gpus[v->whole].model);
    weft_feature_set(v, WEFT_FEATURE_GPU, ".product", "%s-MIG-INVALID", model);
    weft_feature_set(v, WEFT_FEATURE_GPU, ".count", "0");
    weft_feature_set(v, WEFT_FEATURE_GPU, ".replicas", "0");
    weft_feature_set(v, WEFT_FEATURE_GPU, ".sharing-strategy", "%s", "");
    weft_feature_set(v, WEFT_FEATURE_GPU, ".memory", "0");
}

/* All GPUs are split into instances of one profile, or the node is not what the strategy says. */
static void put_single(struct weft_feature_view *v)
{
    if (v->whole == v->count) {
        return;
    }
    size_t first = SIZE_MAX;
    bool valid = v->whole == 0;
    for (size_t g = v->whole; valid && g < v->count; g++) {
        size_t instances = 0;
        for (size_t i = 0; i < v->machine->device_count; i++) {
            const struct weft_device *d = &v->machine->devices[i];
            if (d->parent != v->gpus[g].index) {
                continue;
            }
            instances++;
            first = first == SIZE_MAX ? i : first;
            valid = valid && strcmp(d->profile, v->machine->devices[first].profile) == 0;
        }
        valid = valid && instances > 0;
    }
    if (valid) {
        put_profile(v, WEFT_FEATURE_GPU, first);
    } else {
        put_invalid(v);
    }
}

/* Each profile is a resource of its own. */
static void put_mixed(struct weft_feature_view *v)
{
    for (size_t i = 0; i < v->machine->device_count; i++) {
        const struct weft_device *d = &v->machine->devices[i];
        bool seen = d->parent < 0;
        for (size_t k = 0; !seen && k < i; k++) {
            const struct weft_device *before = &v->machine->devices[k];
            seen = before->parent >= 0 && strcmp(before->profile, d->profile) == 0;
        }
        if (!seen) {
            char resource[WEFT_FEATURE_KEY_MAX];
            (void)snprintf(resource, sizeof(resource), "nvidia.com/mig-%s", d->profile);
            for (char *c = resource; *c != '\0'; c++) {
                *c = *c == '+' ? '.' : *c;
            }
            put_profile(v, resource, i);
        }
    }
}

void weft_feature_mig(struct weft_feature_view *v)
{
    bool capable = v->whole < v->count;
    for (size_t i = 0; i < v->machine->device_count; i++) {
        capable = capable || v->machine->devices[i].partitionable;
    }
    weft_feature_set(v, "nvidia.com/", "mig.capable", "%s", capable ? "true" : "false");
    weft_feature_set(v, "nvidia.com/", "mps.capable", "false");
    if (v->settings->partitions == WEFT_PARTITIONS_SINGLE ||
        v->settings->partitions == WEFT_PARTITIONS_MIXED) {
        weft_feature_set(v, "nvidia.com/", "mig.strategy", "%s",
                         weft_partitions_name(v->settings->partitions));
    }
    if (v->settings->partitions == WEFT_PARTITIONS_SINGLE) {
        put_single(v);
    } else if (v->settings->partitions == WEFT_PARTITIONS_MIXED) {
        put_mixed(v);
    }
}
