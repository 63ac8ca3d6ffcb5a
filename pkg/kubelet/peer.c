/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's side of the codec, for the stand-in, the tests and the fuzz target's round trip. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "pkg/kubelet/codec-internal.h"

static struct weft_kubelet_options options_in(const Dp__PluginOptions *from)
{
    struct weft_kubelet_options options = {0};
    if (from != NULL) {
        options.pre_start_required = from->pre_start_required;
        options.preferred_allocation = from->preferred_allocation_available;
    }
    return options;
}

int weft_kubelet_peer_decode_registration(struct weft_pb_arena *arena, const void *bytes,
                                          size_t len,
                                          struct weft_kubelet_registration *ret_registration,
                                          struct weft_error *err)
{
    ProtobufCMessage *unpacked = NULL;
    int rc = weft_codec_unpack(arena, &dp__register_request__descriptor,
                               &(struct weft_codec_input){bytes, len, "Register request"},
                               &unpacked, err);
    const Dp__RegisterRequest *m = (const Dp__RegisterRequest *)unpacked;
    if (rc < 0) {
        return rc;
    }
    rc = weft_codec_text_check(m->version, "version", err);
    rc = rc == 0 ? weft_codec_text_check(m->endpoint, "endpoint", err) : rc;
    rc = rc == 0 ? weft_codec_text_check(m->resource_name, "resource name", err) : rc;
    if (rc == 0) {
        *ret_registration = (struct weft_kubelet_registration){.version = m->version,
                                                               .endpoint = m->endpoint,
                                                               .resource = m->resource_name,
                                                               .options = options_in(m->options)};
    }
    return rc;
}

int weft_kubelet_peer_decode_plugin_info(struct weft_pb_arena *arena, const void *bytes, size_t len,
                                         struct weft_kubelet_plugin_info *ret_info,
                                         struct weft_error *err)
{
    ProtobufCMessage *unpacked = NULL;
    int rc =
        weft_codec_unpack(arena, &dp__plugin_info__descriptor,
                          &(struct weft_codec_input){bytes, len, "plugin info"}, &unpacked, err);
    const Dp__PluginInfo *m = (const Dp__PluginInfo *)unpacked;
    if (rc < 0) {
        return rc;
    }
    const char *version = m->n_supported_versions > 0 ? m->supported_versions[0] : "";
    rc = weft_codec_text_check(m->type, "type", err);
    rc = rc == 0 ? weft_codec_text_check(m->name, "name", err) : rc;
    rc = rc == 0 ? weft_codec_text_check(m->endpoint, "endpoint", err) : rc;
    rc = rc == 0 ? weft_codec_text_check(version, "version", err) : rc;
    if (rc == 0) {
        *ret_info = (struct weft_kubelet_plugin_info){
            .type = m->type, .name = m->name, .endpoint = m->endpoint, .version = version};
    }
    return rc;
}

void weft_kubelet_peer_encode_notice(const struct weft_kubelet_notice *notice, struct weft_buf *buf)
{
    Dp__RegistrationStatus message;
    dp__registration_status__init(&message);
    message.plugin_registered = notice->registered;
    message.error = weft_codec_text_out(notice->error);
    (void)weft_codec_pack(&message.base, buf);
}

int weft_kubelet_peer_decode_options(struct weft_pb_arena *arena, const void *bytes, size_t len,
                                     struct weft_kubelet_options *ret_options,
                                     struct weft_error *err)
{
    ProtobufCMessage *unpacked = NULL;
    int rc = weft_codec_unpack(arena, &dp__plugin_options__descriptor,
                               &(struct weft_codec_input){bytes, len, "options"}, &unpacked, err);
    const Dp__PluginOptions *m = (const Dp__PluginOptions *)unpacked;
    if (rc == 0) {
        *ret_options = options_in(m);
    }
    return rc;
}

static int device_in(const Dp__Device *from, struct weft_kubelet_device *to, struct weft_error *err)
{
    *to = (struct weft_kubelet_device){
        .id = from->id, .healthy = strcmp(from->health, "Healthy") == 0, .numa_node = -1};
    if (from->topology != NULL && from->topology->n_nodes > 0) {
        const int64_t node = from->topology->nodes[0]->id;
        to->numa_node = node >= -1 && node <= INT_MAX ? (int)node : -1;
    }
    return weft_codec_text_check(from->id, "a device id", err);
}

int weft_kubelet_peer_decode_devices(struct weft_pb_arena *arena, const void *bytes, size_t len,
                                     struct weft_kubelet_devices *ret_devices,
                                     struct weft_error *err)
{
    ProtobufCMessage *unpacked = NULL;
    int rc =
        weft_codec_unpack(arena, &dp__device_list__descriptor,
                          &(struct weft_codec_input){bytes, len, "device list"}, &unpacked, err);
    const Dp__DeviceList *m = (const Dp__DeviceList *)unpacked;
    if (rc < 0) {
        return rc;
    }
    struct weft_kubelet_device *devices = weft_codec_array(arena, m->n_devices, sizeof(devices[0]));
    rc = devices != NULL ? 0 : weft_err_nomem(err);
    for (size_t i = 0; i < m->n_devices && rc == 0; i++) {
        rc = device_in(m->devices[i], &devices[i], err);
    }
    if (rc == 0) {
        *ret_devices = (struct weft_kubelet_devices){.devices = devices, .count = m->n_devices};
    }
    return rc;
}

int weft_kubelet_peer_decode_preferred(struct weft_pb_arena *arena, const void *bytes, size_t len,
                                       struct weft_kubelet_id_lists *ret_answer,
                                       struct weft_error *err)
{
    ProtobufCMessage *unpacked = NULL;
    int rc = weft_codec_unpack(
        arena, &dp__preferred_response__descriptor,
        &(struct weft_codec_input){bytes, len, "GetPreferredAllocation answer"}, &unpacked, err);
    const Dp__PreferredResponse *m = (const Dp__PreferredResponse *)unpacked;
    return rc < 0 ? rc
                  : weft_codec_lists_in(arena, m->containers, m->n_containers, ret_answer, err);
}

int weft_kubelet_peer_encode_preferred(struct weft_pb_arena *arena,
                                       const struct weft_kubelet_preferred_request *request,
                                       struct weft_buf *buf)
{
    const size_t count = request->count;
    Dp__ContainerPreferredRequest **list = weft_codec_pointers(arena, count);
    Dp__ContainerPreferredRequest *items = weft_codec_array(arena, count, sizeof(items[0]));
    if (list == NULL || items == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const struct weft_kubelet_preferred *from = &request->containers[i];
        dp__container_preferred_request__init(&items[i]);
        items[i].n_available_ids = from->available.count;
        items[i].available_ids = weft_codec_ids_out(arena, &from->available);
        items[i].n_required_ids = from->required.count;
        items[i].required_ids = weft_codec_ids_out(arena, &from->required);
        items[i].size = from->size;
        list[i] = &items[i];
        if (items[i].available_ids == NULL || items[i].required_ids == NULL) {
            return -ENOMEM;
        }
    }
    Dp__PreferredRequest message;
    dp__preferred_request__init(&message);
    message.n_containers = count;
    message.containers = list;
    return weft_codec_pack(&message.base, buf);
}

int weft_kubelet_peer_encode_allocate(struct weft_pb_arena *arena,
                                      const struct weft_kubelet_id_lists *request,
                                      struct weft_buf *buf)
{
    Dp__AllocateRequest message;
    dp__allocate_request__init(&message);
    message.n_containers = request->count;
    message.containers = weft_codec_lists_out(arena, request);
    return message.containers != NULL ? weft_codec_pack(&message.base, buf) : -ENOMEM;
}

int weft_kubelet_peer_encode_pre_start(struct weft_pb_arena *arena,
                                       const struct weft_kubelet_ids *ids, struct weft_buf *buf)
{
    Dp__PreStartRequest message;
    dp__pre_start_request__init(&message);
    message.n_ids = ids->count;
    message.ids = weft_codec_ids_out(arena, ids);
    return message.ids != NULL ? weft_codec_pack(&message.base, buf) : -ENOMEM;
}
