/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's device plugin API, v1beta1, as plain structs: what a plugin receives and answers
 * (decode, encode) and, for the stand-in and the tests, what a kubelet sends and reads (peer).
 * The only folder that knows the generated protobuf code. Pure: no I/O.
 *
 * Decoded structs point into the arena that was given (pkg/pb/arena.h) and live as long as its
 * content. Every id and name is checked: valid UTF-8, no NUL, at most WEFT_KUBELET_TEXT_MAX bytes
 * (Go peers refuse other strings, protobuf-c does not look). Encoders append to a capped buffer;
 * check buf->status. Any thread. */
#ifndef WEFT_KUBELET_KUBELET_H
#define WEFT_KUBELET_KUBELET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"

struct weft_buf;
struct weft_pb_arena;

#define WEFT_KUBELET_VERSION "v1beta1"
#define WEFT_KUBELET_PLUGIN_DIR "/var/lib/kubelet/device-plugins"
#define WEFT_KUBELET_SOCKET "kubelet.sock" /* in that folder */
#define WEFT_KUBELET_REGISTRY_DIR "/var/lib/kubelet/plugins_registry"

#define WEFT_KUBELET_REGISTER "/v1beta1.Registration/Register"
#define WEFT_KUBELET_OPTIONS "/v1beta1.DevicePlugin/GetDevicePluginOptions"
#define WEFT_KUBELET_LIST_AND_WATCH "/v1beta1.DevicePlugin/ListAndWatch"
#define WEFT_KUBELET_PREFERRED "/v1beta1.DevicePlugin/GetPreferredAllocation"
#define WEFT_KUBELET_ALLOCATE "/v1beta1.DevicePlugin/Allocate"
#define WEFT_KUBELET_GET_INFO "/pluginregistration.Registration/GetInfo"
#define WEFT_KUBELET_NOTIFY "/pluginregistration.Registration/NotifyRegistrationStatus"
#define WEFT_KUBELET_PRE_START "/v1beta1.DevicePlugin/PreStartContainer"

enum {
    WEFT_KUBELET_MESSAGE_MAX = 1 << 20, /* bytes of one message, either way */
    WEFT_KUBELET_ARENA_MAX = 32 << 20,  /* bytes it may take unpacked */
    WEFT_KUBELET_TEXT_MAX = 4096,       /* bytes of one id, name, path or value */
    WEFT_KUBELET_CONTAINERS_MAX = 256   /* of one request; the kubelet sends 1 */
};

struct weft_kubelet_options {
    bool pre_start_required;
    bool preferred_allocation;
};

struct weft_kubelet_registration {
    const char *version;  /* WEFT_KUBELET_VERSION */
    const char *endpoint; /* the socket's file name in the plugin folder */
    const char *resource; /* "nvidia.com/gpu" */
    struct weft_kubelet_options options;
};

/* What a socket in the plugin watcher's folder says it is. endpoint "": the same socket. */
struct weft_kubelet_plugin_info {
    const char *type, *name, *endpoint, *version;
};
struct weft_kubelet_notice { /* how its registration went */
    bool registered;
    const char *error;
};

struct weft_kubelet_device {
    const char *id;
    bool healthy;
    int numa_node; /* -1 unknown: then no topology is told */
};

struct weft_kubelet_devices {
    const struct weft_kubelet_device *devices;
    size_t count;
};

struct weft_kubelet_ids {
    const char *const *ids;
    size_t count;
};

/* One container of a GetPreferredAllocation request. */
struct weft_kubelet_preferred {
    struct weft_kubelet_ids available, required;
    int32_t size;
};

struct weft_kubelet_preferred_request {
    const struct weft_kubelet_preferred *containers;
    size_t count;
};

/* Ids by container: an Allocate request, a GetPreferredAllocation answer. */
struct weft_kubelet_id_lists {
    const struct weft_kubelet_ids *containers;
    size_t count;
};

struct weft_kubelet_pair {
    const char *key, *value;
};

struct weft_kubelet_mount {
    const char *container_path, *host_path;
    bool read_only;
};

struct weft_kubelet_node {
    const char *container_path, *host_path;
    const char *permissions; /* letters of "rwm" */
};

/* What one container gets. */
struct weft_kubelet_grant {
    const struct weft_kubelet_pair *envs;
    size_t env_count;
    const struct weft_kubelet_mount *mounts;
    size_t mount_count;
    const struct weft_kubelet_node *nodes;
    size_t node_count;
    const struct weft_kubelet_pair *annotations;
    size_t annotation_count;
    const char *const *cdi_devices; /* "vendor.com/class=name" */
    size_t cdi_device_count;
};

struct weft_kubelet_grants {
    const struct weft_kubelet_grant *containers;
    size_t count;
};

/* ---- the plugin's side ---- */

/* Errors of all decoders: -EINVAL (not such a message, or a text that is not allowed), -E2BIG
 * (over a cap), -ENOMEM (memory, or the arena's cap). */
int weft_kubelet_decode_preferred(struct weft_pb_arena *arena, const void *bytes, size_t len,
                                  struct weft_kubelet_preferred_request *ret_request,
                                  struct weft_error *err) __attribute__((warn_unused_result));
int weft_kubelet_decode_allocate(struct weft_pb_arena *arena, const void *bytes, size_t len,
                                 struct weft_kubelet_id_lists *ret_request, struct weft_error *err)
    __attribute__((warn_unused_result));
int weft_kubelet_decode_pre_start(struct weft_pb_arena *arena, const void *bytes, size_t len,
                                  struct weft_kubelet_ids *ret_ids, struct weft_error *err)
    __attribute__((warn_unused_result));

int weft_kubelet_decode_notice(struct weft_pb_arena *arena, const void *bytes, size_t len,
                               struct weft_kubelet_notice *ret_notice, struct weft_error *err)
    __attribute__((warn_unused_result));

void weft_kubelet_encode_options(const struct weft_kubelet_options *options, struct weft_buf *buf);
void weft_kubelet_encode_registration(const struct weft_kubelet_registration *registration,
                                      struct weft_buf *buf);
/* Of a device plugin that serves the resource on the socket that was asked. */
void weft_kubelet_encode_plugin_info(const char *resource, struct weft_buf *buf);
/* The rest need memory for their parts: -ENOMEM, or buf->status. */
int weft_kubelet_encode_devices(struct weft_pb_arena *arena,
                                const struct weft_kubelet_devices *devices, struct weft_buf *buf)
    __attribute__((warn_unused_result));
int weft_kubelet_encode_preferred(struct weft_pb_arena *arena,
                                  const struct weft_kubelet_id_lists *answer, struct weft_buf *buf)
    __attribute__((warn_unused_result));
int weft_kubelet_encode_grants(struct weft_pb_arena *arena,
                               const struct weft_kubelet_grants *grants, struct weft_buf *buf)
    __attribute__((warn_unused_result));

/* ---- the kubelet's side (stand-in, tests, fuzz) ---- */

int weft_kubelet_peer_decode_registration(struct weft_pb_arena *arena, const void *bytes,
                                          size_t len,
                                          struct weft_kubelet_registration *ret_registration,
                                          struct weft_error *err)
    __attribute__((warn_unused_result));
int weft_kubelet_peer_decode_options(struct weft_pb_arena *arena, const void *bytes, size_t len,
                                     struct weft_kubelet_options *ret_options,
                                     struct weft_error *err) __attribute__((warn_unused_result));
int weft_kubelet_peer_decode_plugin_info(struct weft_pb_arena *arena, const void *bytes, size_t len,
                                         struct weft_kubelet_plugin_info *ret_info,
                                         struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_kubelet_peer_encode_notice(const struct weft_kubelet_notice *notice,
                                     struct weft_buf *buf);
/* A device whose health is not exactly "Healthy" is unhealthy; of several NUMA nodes the first. */
int weft_kubelet_peer_decode_devices(struct weft_pb_arena *arena, const void *bytes, size_t len,
                                     struct weft_kubelet_devices *ret_devices,
                                     struct weft_error *err) __attribute__((warn_unused_result));
int weft_kubelet_peer_decode_preferred(struct weft_pb_arena *arena, const void *bytes, size_t len,
                                       struct weft_kubelet_id_lists *ret_answer,
                                       struct weft_error *err) __attribute__((warn_unused_result));
int weft_kubelet_peer_decode_grants(struct weft_pb_arena *arena, const void *bytes, size_t len,
                                    struct weft_kubelet_grants *ret_grants, struct weft_error *err)
    __attribute__((warn_unused_result));
int weft_kubelet_peer_encode_preferred(struct weft_pb_arena *arena,
                                       const struct weft_kubelet_preferred_request *request,
                                       struct weft_buf *buf) __attribute__((warn_unused_result));
int weft_kubelet_peer_encode_allocate(struct weft_pb_arena *arena,
                                      const struct weft_kubelet_id_lists *request,
                                      struct weft_buf *buf) __attribute__((warn_unused_result));
int weft_kubelet_peer_encode_pre_start(struct weft_pb_arena *arena,
                                       const struct weft_kubelet_ids *ids, struct weft_buf *buf)
    __attribute__((warn_unused_result));

#endif
