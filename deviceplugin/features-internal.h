/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two files that make labels: what is known, and how a label is set. */
#ifndef WEFT_DEVICEPLUGIN_FEATURES_INTERNAL_H
#define WEFT_DEVICEPLUGIN_FEATURES_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "deviceplugin/pools.h"

struct weft_machine;

enum {
    WEFT_FEATURE_KEY_MAX = 128,
    WEFT_FEATURE_VALUE_MAX = 64, /* a label's value has 63 characters at most, and the NUL */
    WEFT_FEATURES_MAX = 1024     /* some thirty, and fourteen for each of at most 64 profiles */
};

#define WEFT_FEATURE_GPU "nvidia.com/gpu"

struct weft_feature {
    char key[WEFT_FEATURE_KEY_MAX];
    char value[WEFT_FEATURE_VALUE_MAX];
};

struct weft_feature_list {
    struct weft_feature *items;
    size_t count;
    bool full;
};

/* A physical GPU, split or not. */
struct weft_feature_gpu {
    const char *model, *capability;
    uint64_t memory_mib;
    uint32_t pci_class;
    size_t device; /* number of the whole device, SIZE_MAX for a split one */
    int index;
};

struct weft_feature_view {
    const struct weft_machine *machine;
    const struct weft_pool_settings *settings;
    struct weft_pools pools;
    struct weft_feature_gpu *gpus; /* whole ones first, then those that are split, each by index */
    size_t count, whole;
    struct weft_feature_list labels;
};

/* A label's value (WEFT_FEATURE_VALUE_MAX bytes) of any text: what it cannot have is dropped,
 * blanks between words become a dash, and it begins and ends with a letter or a digit. */
void weft_feature_value(char *value, const char *text);
/* Sets the label "<resource><suffix>", anew if it is there. */
void weft_feature_set(struct weft_feature_view *v, const char *resource, const char *suffix,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));
/* What all resources have: product, count, replicas. device is one of them, SIZE_MAX for none;
 * parts, NULL-terminated, make the product's name. */
void weft_feature_base(struct weft_feature_view *v, const char *resource, size_t count,
                       size_t device, const char *const *parts);
/* features-mig.c: all labels about MIG; those of single take the place of whole GPUs' ones. */
void weft_feature_mig(struct weft_feature_view *v);

#endif
