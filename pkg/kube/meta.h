/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata of a Kubernetes object, as the controller's caches want it, from protobuf
 * (PartialObjectMetadata) or JSON. Values only; no I/O. */
#ifndef WEFT_KUBE_META_H
#define WEFT_KUBE_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_json;

struct weft_kube_pair {
    const char *key;
    const char *value;
};

/* All text is borrowed (from the decoder's memory or the document) and never NULL. */
struct weft_kube_meta {
    const char *name;
    const char *ns; /* "" for cluster-scoped */
    const char *uid;
    const char *resource_version;
    bool deleting; /* has a deletionTimestamp */
    const struct weft_kube_pair *labels;
    size_t label_count;
    const struct weft_kube_pair *annotations; /* only where the reader asked for them */
    size_t annotation_count;
};

/* The value of a label or annotation, or NULL. */
const char *weft_kube_meta_label(const struct weft_kube_meta *meta, const char *key);
const char *weft_kube_meta_annotation(const struct weft_kube_meta *meta, const char *key);

#endif
