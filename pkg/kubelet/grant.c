/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to Allocate, out (plugin) and in (kubelet). */
#include <errno.h>

#include "pkg/kubelet/codec-internal.h"

typedef Dp__ContainerAllocateResponse__EnvsEntry env_entry;
typedef Dp__ContainerAllocateResponse__AnnotationsEntry annotation_entry;

/* Both map entries are the same struct under two names; each loop needs its own type. */
static env_entry **envs_out(struct weft_pb_arena *arena, const struct weft_kubelet_pair *pairs,
                            size_t count)
{
    env_entry **list = weft_codec_pointers(arena, count);
    env_entry *items = weft_codec_array(arena, count, sizeof(items[0]));
    for (size_t i = 0; list != NULL && items != NULL && i < count; i++) {
        dp__container_allocate_response__envs_entry__init(&items[i]);
        items[i].key = weft_codec_text_out(pairs[i].key);
        items[i].value = weft_codec_text_out(pairs[i].value);
        list[i] = &items[i];
    }
    return items != NULL ? list : NULL;
}

static annotation_entry **annotations_out(struct weft_pb_arena *arena,
                                          const struct weft_kubelet_pair *pairs, size_t count)
{
    annotation_entry **list = weft_codec_pointers(arena, count);
    annotation_entry *items = weft_codec_array(arena, count, sizeof(items[0]));
    for (size_t i = 0; list != NULL && items != NULL && i < count; i++) {
        dp__container_allocate_response__annotations_entry__init(&items[i]);
        items[i].key = weft_codec_text_out(pairs[i].key);
        items[i].value = weft_codec_text_out(pairs[i].value);
        list[i] = &items[i];
    }
    return items != NULL ? list : NULL;
}

static Dp__Mount **mounts_out(struct weft_pb_arena *arena, const struct weft_kubelet_grant *grant)
{
    const size_t count = grant->mount_count;
    Dp__Mount **list = weft_codec_pointers(arena, count);
    Dp__Mount *items = weft_codec_array(arena, count, sizeof(items[0]));
    for (size_t i = 0; list != NULL && items != NULL && i < count; i++) {
        dp__mount__init(&items[i]);
        items[i].container_path = weft_codec_text_out(grant->mounts[i].container_path);
        items[i].host_path = weft_codec_text_out(grant->mounts[i].host_path);
        items[i].read_only = grant->mounts[i].read_only;
        list[i] = &items[i];
    }
    return items != NULL ? list : NULL;
}

static Dp__DeviceNode **nodes_out(struct weft_pb_arena *arena,
                                  const struct weft_kubelet_grant *grant)
{
    const size_t count = grant->node_count;
    Dp__DeviceNode **list = weft_codec_pointers(arena, count);
    Dp__DeviceNode *items = weft_codec_array(arena, count, sizeof(items[0]));
    for (size_t i = 0; list != NULL && items != NULL && i < count; i++) {
        dp__device_node__init(&items[i]);
        items[i].container_path = weft_codec_text_out(grant->nodes[i].container_path);
        items[i].host_path = weft_codec_text_out(grant->nodes[i].host_path);
        items[i].permissions = weft_codec_text_out(grant->nodes[i].permissions);
        list[i] = &items[i];
    }
    return items != NULL ? list : NULL;
}

static Dp__CdiDevice **cdi_out(struct weft_pb_arena *arena, const struct weft_kubelet_grant *grant)
{
    const size_t count = grant->cdi_device_count;
    Dp__CdiDevice **list = weft_codec_pointers(arena, count);
    Dp__CdiDevice *items = weft_codec_array(arena, count, sizeof(items[0]));
    for (size_t i = 0; list != NULL && items != NULL && i < count; i++) {
        dp__cdi_device__init(&items[i]);
        items[i].name = weft_codec_text_out(grant->cdi_devices[i]);
        list[i] = &items[i];
    }
    return items != NULL ? list : NULL;
}

static int grant_out(struct weft_pb_arena *arena, const struct weft_kubelet_grant *from,
                     Dp__ContainerAllocateResponse *to)
{
    dp__container_allocate_response__init(to);
    to->n_envs = from->env_count;
    to->envs = envs_out(arena, from->envs, from->env_count);
    to->n_mounts = from->mount_count;
    to->mounts = mounts_out(arena, from);
    to->n_devices = from->node_count;
    to->devices = nodes_out(arena, from);
    to->n_annotations = from->annotation_count;
    to->annotations = annotations_out(arena, from->annotations, from->annotation_count);
    to->n_cdi_devices = from->cdi_device_count;
    to->cdi_devices = cdi_out(arena, from);
    const bool whole = to->envs != NULL && to->mounts != NULL && to->devices != NULL &&
                       to->annotations != NULL && to->cdi_devices != NULL;
    return whole ? 0 : -ENOMEM;
}

int weft_kubelet_encode_grants(struct weft_pb_arena *arena,
                               const struct weft_kubelet_grants *grants, struct weft_buf *buf)
{
    const size_t count = grants->count;
    Dp__ContainerAllocateResponse **list = weft_codec_pointers(arena, count);
    Dp__ContainerAllocateResponse *items = weft_codec_array(arena, count, sizeof(items[0]));
    int rc = list != NULL && items != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = grant_out(arena, &grants->containers[i], &items[i]);
        list[i] = &items[i];
    }
    if (rc < 0) {
        return rc;
    }
    Dp__AllocateResponse message;
    dp__allocate_response__init(&message);
    message.n_containers = count;
    message.containers = list;
    return weft_codec_pack(&message.base, buf);
}

/* ---- in ---- */

static int pair_in(const char *key, const char *value, struct weft_kubelet_pair *ret,
                   struct weft_error *err)
{
    const int rc = weft_codec_text_check(key, "a key", err);
    *ret = (struct weft_kubelet_pair){.key = key, .value = value};
    return rc < 0 ? rc : weft_codec_text_check(value, "a value", err);
}

static int pairs_in(struct weft_pb_arena *arena, const Dp__ContainerAllocateResponse *from,
                    struct weft_kubelet_grant *to, struct weft_error *err)
{
    struct weft_kubelet_pair *envs = weft_codec_array(arena, from->n_envs, sizeof(envs[0]));
    struct weft_kubelet_pair *annotations =
        weft_codec_array(arena, from->n_annotations, sizeof(annotations[0]));
    int rc = envs != NULL && annotations != NULL ? 0 : weft_err_nomem(err);
    for (size_t i = 0; i < from->n_envs && rc == 0; i++) {
        rc = pair_in(from->envs[i]->key, from->envs[i]->value, &envs[i], err);
    }
    for (size_t i = 0; i < from->n_annotations && rc == 0; i++) {
        rc = pair_in(from->annotations[i]->key, from->annotations[i]->value, &annotations[i], err);
    }
    to->envs = envs;
    to->env_count = from->n_envs;
    to->annotations = annotations;
    to->annotation_count = from->n_annotations;
    return rc;
}

static int paths_in(struct weft_pb_arena *arena, const Dp__ContainerAllocateResponse *from,
                    struct weft_kubelet_grant *to, struct weft_error *err)
{
    struct weft_kubelet_mount *mounts = weft_codec_array(arena, from->n_mounts, sizeof(mounts[0]));
    struct weft_kubelet_node *nodes = weft_codec_array(arena, from->n_devices, sizeof(nodes[0]));
    const char **cdi = weft_codec_pointers(arena, from->n_cdi_devices);
    int rc = mounts != NULL && nodes != NULL && cdi != NULL ? 0 : weft_err_nomem(err);
    for (size_t i = 0; i < from->n_mounts && rc == 0; i++) {
        const Dp__Mount *m = from->mounts[i];
        mounts[i] = (struct weft_kubelet_mount){m->container_path, m->host_path, m->read_only};
        rc = weft_codec_text_check(m->container_path, "a mount", err);
    }
    for (size_t i = 0; i < from->n_devices && rc == 0; i++) {
        const Dp__DeviceNode *d = from->devices[i];
        nodes[i] = (struct weft_kubelet_node){d->container_path, d->host_path, d->permissions};
        rc = weft_codec_text_check(d->container_path, "a device node", err);
    }
    for (size_t i = 0; i < from->n_cdi_devices && rc == 0; i++) {
        cdi[i] = from->cdi_devices[i]->name;
        rc = weft_codec_text_check(cdi[i], "a CDI name", err);
    }
    to->mounts = mounts;
    to->mount_count = from->n_mounts;
    to->nodes = nodes;
    to->node_count = from->n_devices;
    to->cdi_devices = cdi;
    to->cdi_device_count = from->n_cdi_devices;
    return rc;
}

int weft_kubelet_peer_decode_grants(struct weft_pb_arena *arena, const void *bytes, size_t len,
                                    struct weft_kubelet_grants *ret_grants, struct weft_error *err)
{
    ProtobufCMessage *unpacked = NULL;
    int rc = weft_codec_unpack(arena, &dp__allocate_response__descriptor,
                               &(struct weft_codec_input){bytes, len, "Allocate answer"}, &unpacked,
                               err);
    const Dp__AllocateResponse *message = (const Dp__AllocateResponse *)unpacked;
    if (rc < 0) {
        return rc;
    }
    struct weft_kubelet_grant *grants =
        weft_codec_array(arena, message->n_containers, sizeof(grants[0]));
    rc = grants != NULL ? 0 : weft_err_nomem(err);
    for (size_t i = 0; i < message->n_containers && rc == 0; i++) {
        rc = pairs_in(arena, message->containers[i], &grants[i], err);
        if (rc == 0) {
            rc = paths_in(arena, message->containers[i], &grants[i], err);
        }
    }
    if (rc == 0) {
        *ret_grants =
            (struct weft_kubelet_grants){.containers = grants, .count = message->n_containers};
    }
    return rc;
}
