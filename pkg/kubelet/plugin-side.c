/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's side of the codec: requests in, answers out. */
#include <errno.h>

#include "pkg/kubelet/codec-internal.h"

static int preferred_in(struct weft_pb_arena *arena, const Dp__ContainerPreferredRequest *from,
                        struct weft_kubelet_preferred *ret, struct weft_error *err)
{
    int rc =
        weft_codec_ids_in(arena, from->available_ids, from->n_available_ids, &ret->available, err);
    if (rc == 0) {
        rc =
            weft_codec_ids_in(arena, from->required_ids, from->n_required_ids, &ret->required, err);
    }
    ret->size = from->size;
    return rc;
}

int weft_kubelet_decode_preferred(struct weft_pb_arena *arena, const void *bytes, size_t len,
                                  struct weft_kubelet_preferred_request *ret_request,
                                  struct weft_error *err)
{
    ProtobufCMessage *unpacked = NULL;
    int rc = weft_codec_unpack(
        arena, &dp__preferred_request__descriptor,
        &(struct weft_codec_input){bytes, len, "GetPreferredAllocation request"}, &unpacked, err);
    const Dp__PreferredRequest *message = (const Dp__PreferredRequest *)unpacked;
    if (rc < 0) {
        return rc;
    }
    const size_t count = message->n_containers;
    if (count > WEFT_KUBELET_CONTAINERS_MAX) {
        return weft_err_set(err, -E2BIG, WEFT_ERR_GRPC, "%zu containers, at most %d are read",
                            count, WEFT_KUBELET_CONTAINERS_MAX);
    }
    struct weft_kubelet_preferred *containers =
        weft_codec_array(arena, count, sizeof(containers[0]));
    if (containers == NULL) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = preferred_in(arena, message->containers[i], &containers[i], err);
    }
    if (rc == 0) {
        *ret_request =
            (struct weft_kubelet_preferred_request){.containers = containers, .count = count};
    }
    return rc;
}

int weft_kubelet_decode_allocate(struct weft_pb_arena *arena, const void *bytes, size_t len,
                                 struct weft_kubelet_id_lists *ret_request, struct weft_error *err)
{
    ProtobufCMessage *unpacked = NULL;
    int rc = weft_codec_unpack(arena, &dp__allocate_request__descriptor,
                               &(struct weft_codec_input){bytes, len, "Allocate request"},
                               &unpacked, err);
    const Dp__AllocateRequest *message = (const Dp__AllocateRequest *)unpacked;
    return rc < 0 ? rc
                  : weft_codec_lists_in(arena, message->containers, message->n_containers,
                                        ret_request, err);
}

int weft_kubelet_decode_pre_start(struct weft_pb_arena *arena, const void *bytes, size_t len,
                                  struct weft_kubelet_ids *ret_ids, struct weft_error *err)
{
    ProtobufCMessage *unpacked = NULL;
    int rc = weft_codec_unpack(arena, &dp__pre_start_request__descriptor,
                               &(struct weft_codec_input){bytes, len, "PreStartContainer request"},
                               &unpacked, err);
    const Dp__PreStartRequest *message = (const Dp__PreStartRequest *)unpacked;
    return rc < 0 ? rc : weft_codec_ids_in(arena, message->ids, message->n_ids, ret_ids, err);
}

int weft_kubelet_decode_notice(struct weft_pb_arena *arena, const void *bytes, size_t len,
                               struct weft_kubelet_notice *ret_notice, struct weft_error *err)
{
    ProtobufCMessage *unpacked = NULL;
    int rc = weft_codec_unpack(arena, &dp__registration_status__descriptor,
                               &(struct weft_codec_input){bytes, len, "registration status"},
                               &unpacked, err);
    const Dp__RegistrationStatus *message = (const Dp__RegistrationStatus *)unpacked;
    rc = rc == 0 ? weft_codec_text_check(message->error, "error", err) : rc;
    if (rc == 0) {
        *ret_notice = (struct weft_kubelet_notice){.registered = message->plugin_registered,
                                                   .error = message->error};
    }
    return rc;
}

void weft_kubelet_encode_plugin_info(const char *resource, struct weft_buf *buf)
{
    char *versions[] = {weft_codec_text_out(WEFT_KUBELET_VERSION)};
    Dp__PluginInfo message;
    dp__plugin_info__init(&message);
    message.type = weft_codec_text_out("DevicePlugin");
    message.name = weft_codec_text_out(resource);
    message.n_supported_versions = 1;
    message.supported_versions = versions;
    (void)weft_codec_pack(&message.base, buf);
}

static void options_out(const struct weft_kubelet_options *options, Dp__PluginOptions *ret)
{
    dp__plugin_options__init(ret);
    ret->pre_start_required = options->pre_start_required;
    ret->preferred_allocation_available = options->preferred_allocation;
}

void weft_kubelet_encode_options(const struct weft_kubelet_options *options, struct weft_buf *buf)
{
    Dp__PluginOptions message;
    options_out(options, &message);
    (void)weft_codec_pack(&message.base, buf);
}

void weft_kubelet_encode_registration(const struct weft_kubelet_registration *registration,
                                      struct weft_buf *buf)
{
    Dp__PluginOptions options;
    options_out(&registration->options, &options);
    Dp__RegisterRequest message;
    dp__register_request__init(&message);
    message.version = weft_codec_text_out(registration->version);
    message.endpoint = weft_codec_text_out(registration->endpoint);
    message.resource_name = weft_codec_text_out(registration->resource);
    message.options = &options;
    (void)weft_codec_pack(&message.base, buf);
}

/* A device with, where it is known, its one NUMA node: all in one block. */
struct device_out {
    Dp__Device device;
    Dp__Topology topology;
    Dp__NumaNode node;
    Dp__NumaNode *nodes[1];
};

static Dp__Device *device_out(const struct weft_kubelet_device *from, struct device_out *to)
{
    dp__device__init(&to->device);
    to->device.id = weft_codec_text_out(from->id);
    to->device.health = weft_codec_text_out(from->healthy ? "Healthy" : "Unhealthy");
    if (from->numa_node >= 0) {
        dp__numa_node__init(&to->node);
        to->node.id = from->numa_node;
        to->nodes[0] = &to->node;
        dp__topology__init(&to->topology);
        to->topology.n_nodes = 1;
        to->topology.nodes = to->nodes;
        to->device.topology = &to->topology;
    }
    return &to->device;
}

int weft_kubelet_encode_devices(struct weft_pb_arena *arena,
                                const struct weft_kubelet_devices *devices, struct weft_buf *buf)
{
    struct device_out *items = weft_codec_array(arena, devices->count, sizeof(items[0]));
    Dp__Device **list = weft_codec_pointers(arena, devices->count);
    if (items == NULL || list == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < devices->count; i++) {
        list[i] = device_out(&devices->devices[i], &items[i]);
    }
    Dp__DeviceList message;
    dp__device_list__init(&message);
    message.n_devices = devices->count;
    message.devices = list;
    return weft_codec_pack(&message.base, buf);
}

int weft_kubelet_encode_preferred(struct weft_pb_arena *arena,
                                  const struct weft_kubelet_id_lists *answer, struct weft_buf *buf)
{
    Dp__PreferredResponse message;
    dp__preferred_response__init(&message);
    message.n_containers = answer->count;
    message.containers = weft_codec_lists_out(arena, answer);
    return message.containers != NULL ? weft_codec_pack(&message.base, buf) : -ENOMEM;
}
