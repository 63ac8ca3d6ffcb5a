/* SPDX-License-Identifier: Apache-2.0 */
/* Pods that ask for devices, as the kubelet's device manager serves them. */
#include <inttypes.h>
#include <string.h>

#include "tests/fakes/kubelet/standin.h"

enum { CALL_SECONDS = 10 };

void standin_call(struct standin *k, const char *method, const struct weft_buf *bytes,
                  void (*done)(void *data, const struct weft_rpc_result *result))
{
    struct weft_error err = {0};
    const struct weft_rpc_request_options options = {.method = method,
                                                     .bytes = weft_buf_text(bytes),
                                                     .len = bytes->len,
                                                     .timeout_ns = CALL_SECONDS * WEFT_NS_PER_S,
                                                     .done = done,
                                                     .data = k};
    if (k->plugin == NULL || weft_rpc_request_new(k->plugin, &options, &k->request, &err) < 0) {
        standin_say("error text=\"no plugin is registered\" %s", err.message);
        k->failed = true;
        standin_next(k);
    }
}

static void say_result(struct standin *k, const char *what, const struct weft_rpc_result *result)
{
    standin_say("%s-failed code=%d message=\"%s\"", what, result->code, result->message);
    k->failed = true;
    standin_next(k);
}

static void say_grant(const struct weft_kubelet_grant *grant)
{
    for (size_t i = 0; i < grant->env_count; i++) {
        standin_say("env %s=%s", grant->envs[i].key, grant->envs[i].value);
    }
    for (size_t i = 0; i < grant->node_count; i++) {
        standin_say("device %s as %s %s", grant->nodes[i].host_path, grant->nodes[i].container_path,
                    grant->nodes[i].permissions);
    }
}

static void on_allocated(void *data, const struct weft_rpc_result *result)
{
    struct standin *k = data;
    struct weft_kubelet_grants grants = {0};
    if (result->code != WEFT_RPC_OK ||
        weft_kubelet_peer_decode_grants(&k->arena, result->bytes, result->len, &grants, NULL) < 0) {
        say_result(k, "allocate", result);
        return;
    }
    for (size_t i = 0; i < grants.count; i++) {
        say_grant(&grants.containers[i]);
    }
    standin_say("allocated containers=%zu", grants.count);
    standin_next(k);
}

void standin_allocate(struct standin *k, const char *const *ids, size_t count)
{
    weft_auto(weft_buf_done) struct weft_buf bytes;
    weft_buf_init(&bytes, WEFT_KUBELET_MESSAGE_MAX);
    const struct weft_kubelet_ids list = {.ids = ids, .count = count};
    const struct weft_kubelet_id_lists request = {.containers = &list, .count = 1};
    if (weft_kubelet_peer_encode_allocate(&k->arena, &request, &bytes) == 0) {
        standin_call(k, WEFT_KUBELET_ALLOCATE, &bytes, on_allocated);
    }
}

/* Takes devices as the kubelet does: the preferred ones that are free, then any. */
static void choose(struct standin *k, const struct weft_kubelet_ids *preferred)
{
    k->chosen_count = 0;
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < k->device_count; i++) {
            struct standin_device *d = &k->devices[i];
            bool wanted = pass == 1;
            for (size_t p = 0; p < preferred->count && !wanted; p++) {
                wanted = strcmp(preferred->ids[p], d->id) == 0;
            }
            if (wanted && d->healthy && !d->taken && (int64_t)k->chosen_count < k->ask_size) {
                d->taken = true;
                k->chosen[k->chosen_count++] = d->id;
            }
        }
    }
}

static void say_ids(const char *event, const struct weft_kubelet_ids *ids)
{
    weft_auto(weft_buf_done) struct weft_buf line;
    weft_buf_init(&line, WEFT_KUBELET_MESSAGE_MAX);
    for (size_t i = 0; i < ids->count; i++) {
        (void)weft_buf_printf(&line, "%s%s", i > 0 ? "," : "", ids->ids[i]);
    }
    standin_say("%s count=%zu ids=%s", event, ids->count, weft_buf_text(&line));
}

/* The answer to a question, as far as there is one. */
static bool read_preferred(struct standin *k, const struct weft_rpc_result *result,
                           struct weft_kubelet_ids *ret_ids)
{
    struct weft_kubelet_id_lists lists = {0};
    if (result->code != WEFT_RPC_OK ||
        weft_kubelet_peer_decode_preferred(&k->arena, result->bytes, result->len, &lists, NULL) <
            0) {
        return false;
    }
    *ret_ids = lists.count > 0 ? lists.containers[0] : (struct weft_kubelet_ids){0};
    say_ids("preferred", ret_ids);
    return true;
}

static void grant_ask(struct standin *k, const struct weft_kubelet_ids *preferred)
{
    choose(k, preferred);
    if ((int64_t)k->chosen_count < k->ask_size) {
        standin_say("ask-failed reason=\"only %zu devices are free\"", k->chosen_count);
        k->failed = true;
        standin_next(k);
        return;
    }
    say_ids("pod-gets", &(struct weft_kubelet_ids){.ids = k->chosen, .count = k->chosen_count});
    standin_allocate(k, k->chosen, k->chosen_count);
}

static void on_ask_preferred(void *data, const struct weft_rpc_result *result)
{
    struct standin *k = data;
    struct weft_kubelet_ids ids = {0};
    if (!read_preferred(k, result, &ids)) { /* the kubelet fails the pod */
        say_result(k, "preferred", result);
        return;
    }
    weft_rpc_request_free(weft_steal(&k->request));
    grant_ask(k, &ids);
}

void standin_on_preferred(void *data, const struct weft_rpc_result *result)
{
    struct standin *k = data;
    struct weft_kubelet_ids ids = {0};
    if (!read_preferred(k, result, &ids)) {
        say_result(k, "preferred", result);
        return;
    }
    standin_next(k);
}

void standin_prefer(struct standin *k, const struct weft_kubelet_preferred *question,
                    void (*done)(void *data, const struct weft_rpc_result *result))
{
    weft_auto(weft_buf_done) struct weft_buf bytes;
    weft_buf_init(&bytes, WEFT_KUBELET_MESSAGE_MAX);
    const struct weft_kubelet_preferred_request request = {.containers = question, .count = 1};
    if (weft_kubelet_peer_encode_preferred(&k->arena, &request, &bytes) == 0) {
        standin_call(k, WEFT_KUBELET_PREFERRED, &bytes, done);
    }
}

void standin_ask(struct standin *k, int64_t size)
{
    const char *free_ids[STANDIN_IDS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < k->device_count; i++) { /* the kubelet's order is random: not ours */
        const struct standin_device *d = &k->devices[k->device_count - 1 - i];
        if (d->healthy && !d->taken) {
            free_ids[count++] = d->id;
        }
    }
    k->ask_size = size;
    standin_say("pod-asks count=%" PRId64 " free=%zu", size, count);
    if (!k->options.preferred_allocation || size > (int64_t)count) {
        grant_ask(k, &(struct weft_kubelet_ids){0});
        return;
    }
    standin_prefer(k,
                   &(struct weft_kubelet_preferred){.available = {.ids = free_ids, .count = count},
                                                    .size = (int32_t)size},
                   on_ask_preferred);
}

void standin_release(struct standin *k)
{
    for (size_t i = 0; i < k->device_count; i++) {
        k->devices[i].taken = false;
    }
}
