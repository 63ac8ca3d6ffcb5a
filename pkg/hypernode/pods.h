/* SPDX-License-Identifier: Apache-2.0 */
/* Who runs where: the pods of a cluster as `kubectl get pods -A -o json` prints them, cut down to
 * gangs and their nodes, for affected.h. Pure. */
#ifndef WEFT_HYPERNODE_PODS_H
#define WEFT_HYPERNODE_PODS_H

#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/hypernode/affected.h"

struct weft_json;

enum {
    /* a pod is 3 to 10 kB of JSON: about 80,000 pods */
    WEFT_PODS_TEXT_MAX = 512 << 20,
    /* one pod: etcd takes no object above 1.5 MiB, its JSON with white space is not ten times it */
    WEFT_PODS_ITEM_MAX = 16 << 20
};

/* Placements of gangs' pods, in the order of the text; their texts live in texts. */
struct weft_pods {
    struct weft_placement *items;
    size_t count;
    size_t cap;
    char **texts;
    size_t text_count;
    size_t text_cap;
};

void weft_pods_done(struct weft_pods *pods);
WEFT_DEFINE_AUTO_VALUE(struct weft_pods, weft_pods_done)

/* Reads a List or PodList, item by item. A pod counts if it has a node and has not ended (phase
 * Succeeded or Failed) and belongs to a gang: "namespace/<PodGroup>" by the annotation
 * scheduling.k8s.io/group-name, else "namespace/<job>" by the label or annotation
 * volcano.sh/job-name, else "namespace/<Kind>/<name>" of the owner that controls it, but for owners
 * whose pods are independent of each other (DaemonSet, ReplicaSet, ReplicationController, Node).
 * name is the file's name for errors. On success the caller owns *ret_pods' content. Errors, each
 * with file, line and field: -EINVAL for what is no such list or has no Pod at all, -EFBIG,
 * -ENOMEM.
 */
int weft_pods_parse(const char *text, size_t len, const char *name, struct weft_pods *ret_pods,
                    struct weft_error *err) __attribute__((warn_unused_result));

/* Does one pod (an API object) count, as weft_pods_parse counts? 1, 0, or -EINVAL, -ENOMEM. */
int weft_pod_in_gang(const struct weft_json *pod) __attribute__((warn_unused_result));

#endif
