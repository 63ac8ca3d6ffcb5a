/* SPDX-License-Identifier: Apache-2.0 */
/* The client's side: a channel to a unix socket, and calls with at most one request message and
 * one answer (or a stream of them). Time limits are ours, not gRPC's: its own would end only at
 * the next tick (quiet-timer.c). */
#include <errno.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/clock.h"
#include "pkg/rpc/rpc-internal.h"

struct weft_rpc_channel {
    uint32_t magic;
    struct weft_rpc *rpc;
    grpc_channel *grpc;
    unsigned refs; /* its owner's and its requests' */
};

struct weft_rpc_request {
    uint32_t magic;
    struct weft_rpc *rpc;
    struct weft_rpc_channel *channel;
    grpc_call *grpc;
    struct weft_timer *limit;
    int64_t timeout_ns;
    void (*message)(void *data, const void *bytes, size_t len);
    void (*done)(void *data, const struct weft_rpc_result *result);
    void *data;
    struct weft_rpc_tag start_tag, message_tag, status_tag;
    unsigned tags_out;
    bool ended; /* done has run, or is not wanted any more */
    bool freed; /* by its owner */
    grpc_byte_buffer *request, *incoming;
    bool has_answer;
    grpc_slice answer; /* unary */
    grpc_metadata_array headers, trailers;
    grpc_status_code code;
    grpc_slice details;
};

int weft_rpc_channel_new(struct weft_rpc *rpc, const char *path, size_t receive_max,
                         struct weft_rpc_channel **ret_channel, struct weft_error *err)
{
    WEFT_CHECK(rpc, WEFT_RPC_MAGIC);
    if (strlen(path) > WEFT_RPC_PATH_MAX) {
        return weft_err_errno(err, ENAMETOOLONG, "socket %.60s… (at most %d bytes)", path,
                              WEFT_RPC_PATH_MAX);
    }
    weft_autofree char *address = weft_asprintf("unix:%s", path);
    weft_autofree struct weft_rpc_channel *channel = weft_calloc(1, sizeof(*channel));
    if (address == NULL || channel == NULL) {
        return weft_err_nomem(err);
    }
    /* localhost is what every server accepts as authority. A pool of its own: else a channel made
     * after a failed one inherits its back-off. */
    char authority[] = GRPC_ARG_DEFAULT_AUTHORITY, local[] = GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL;
    char receive[] = GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, proxy[] = GRPC_ARG_ENABLE_HTTP_PROXY;
    char localhost[] = "localhost";
    const int cap = receive_max > 0 ? (int)receive_max : WEFT_RPC_RECEIVE_MAX;
    grpc_arg args[] = {
        {.type = GRPC_ARG_STRING, .key = authority, .value.string = localhost},
        {.type = GRPC_ARG_INTEGER, .key = local, .value.integer = 1},
        {.type = GRPC_ARG_INTEGER, .key = receive, .value.integer = cap},
        {.type = GRPC_ARG_INTEGER, .key = proxy, .value.integer = 0},
    };
    const grpc_channel_args list = {.num_args = WEFT_ARRAY_LEN(args), .args = args};
    grpc_channel_credentials *insecure = grpc_insecure_credentials_create();
    channel->grpc = grpc_channel_create(address, insecure, &list);
    grpc_channel_credentials_release(insecure);
    channel->magic = WEFT_RPC_CHANNEL_MAGIC;
    channel->rpc = rpc;
    channel->refs = 1;
    *ret_channel = weft_steal(&channel);
    return 0;
}

/* A channel destroyed before it is connected fails its calls, hence the count. */
void weft_rpc_channel_free(struct weft_rpc_channel *channel)
{
    if (channel == NULL) {
        return;
    }
    WEFT_CHECK(channel, WEFT_RPC_CHANNEL_MAGIC);
    channel->refs--;
    if (channel->refs == 0) {
        grpc_channel_destroy(channel->grpc);
        channel->magic = 0;
        weft_free(channel);
    }
}

static void destroy(struct weft_rpc_request *request)
{
    struct weft_rpc *rpc = request->rpc;
    if (request->request != NULL) {
        grpc_byte_buffer_destroy(request->request);
    }
    if (request->incoming != NULL) {
        grpc_byte_buffer_destroy(request->incoming);
    }
    grpc_slice_unref(request->answer);
    grpc_slice_unref(request->details);
    grpc_metadata_array_destroy(&request->headers);
    grpc_metadata_array_destroy(&request->trailers);
    grpc_call_unref(request->grpc);
    weft_rpc_channel_free(request->channel);
    weft_timer_free(request->limit);
    request->magic = 0;
    weft_free(request);
    weft_rpc_release(rpc);
}

static void report(struct weft_rpc_request *request)
{
    request->ended = true;
    if (request->limit != NULL) {
        weft_timer_stop(request->limit);
    }
    char message[WEFT_ERROR_MESSAGE_MAX];
    (void)snprintf(message, sizeof(message), "%.*s", (int)GRPC_SLICE_LENGTH(request->details),
                   (const char *)GRPC_SLICE_START_PTR(request->details));
    struct weft_rpc_result result = {.code = (int)request->code, .message = message};
    if (request->code == GRPC_STATUS_OK && request->message == NULL) {
        if (request->has_answer) {
            result.bytes = GRPC_SLICE_START_PTR(request->answer);
            result.len = GRPC_SLICE_LENGTH(request->answer);
        } else {
            result.code = WEFT_RPC_INTERNAL;
            result.message = "the answer has no message";
        }
    }
    request->done(request->data, &result);
}

/* A tag is back: after the last the call is over, and the request goes if nobody wants it. */
static void tag_returned(struct weft_rpc_request *request)
{
    request->tags_out--;
    if (request->tags_out == 0 && !request->ended) {
        request->tags_out++; /* done may free the request: not under our feet */
        report(request);
        request->tags_out--;
    }
    if (request->tags_out == 0 && request->freed) {
        destroy(request);
    }
}

static void start(struct weft_rpc_request *request, const grpc_op *ops, size_t count,
                  struct weft_rpc_tag *tag)
{
    request->tags_out++;
    const grpc_call_error rc = grpc_call_start_batch(request->grpc, ops, count,
                                                     weft_rpc_tag_hand(request->rpc, tag), NULL);
    if (rc != GRPC_CALL_OK) { /* only for a misuse of the API */
        weft_check_failed(__FILE__, __LINE__, grpc_call_error_to_string(rc));
    }
}

static void start_receive(struct weft_rpc_request *request)
{
    grpc_op op;
    memset(&op, 0, sizeof(op));
    op.op = GRPC_OP_RECV_MESSAGE;
    op.data.recv_message.recv_message = &request->incoming;
    start(request, &op, 1, &request->message_tag);
}

static void on_started(void *data)
{
    struct weft_rpc_request *request = data;
    WEFT_CHECK(request, WEFT_RPC_REQUEST_MAGIC);
    tag_returned(request);
}

static void on_message(void *data)
{
    struct weft_rpc_request *request = data;
    WEFT_CHECK(request, WEFT_RPC_REQUEST_MAGIC);
    grpc_slice slice;
    if (weft_rpc_bytes_take(&request->incoming, &slice)) {
        if (request->message == NULL) {
            grpc_slice_unref(request->answer);
            request->answer = slice;
            request->has_answer = true;
        } else {
            if (!request->ended) {
                request->message(request->data, GRPC_SLICE_START_PTR(slice),
                                 GRPC_SLICE_LENGTH(slice));
            }
            grpc_slice_unref(slice);
            start_receive(request); /* a cancelled call answers that at once */
        }
    }
    tag_returned(request);
}

static void on_status(void *data)
{
    struct weft_rpc_request *request = data;
    WEFT_CHECK(request, WEFT_RPC_REQUEST_MAGIC);
    tag_returned(request);
}

static void on_limit(void *data)
{
    struct weft_rpc_request *request = data;
    WEFT_CHECK(request, WEFT_RPC_REQUEST_MAGIC);
    char why[80];
    (void)snprintf(why, sizeof(why), "no answer within %lld ms",
                   (long long)(request->timeout_ns / WEFT_NS_PER_MS));
    (void)grpc_call_cancel_with_status(request->grpc, GRPC_STATUS_DEADLINE_EXCEEDED, why, NULL);
}

static void start_call(struct weft_rpc_request *request)
{
    grpc_op ops[4] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
                      {.op = GRPC_OP_SEND_MESSAGE},
                      {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
                      {.op = GRPC_OP_RECV_INITIAL_METADATA}};
    ops[1].data.send_message.send_message = request->request;
    ops[3].data.recv_initial_metadata.recv_initial_metadata = &request->headers;
    start(request, ops, WEFT_ARRAY_LEN(ops), &request->start_tag);
    start_receive(request);
    grpc_op status;
    memset(&status, 0, sizeof(status));
    status.op = GRPC_OP_RECV_STATUS_ON_CLIENT;
    status.data.recv_status_on_client.trailing_metadata = &request->trailers;
    status.data.recv_status_on_client.status = &request->code;
    status.data.recv_status_on_client.status_details = &request->details;
    start(request, &status, 1, &request->status_tag);
}

int weft_rpc_request_new(struct weft_rpc_channel *channel,
                         const struct weft_rpc_request_options *options,
                         struct weft_rpc_request **ret_request, struct weft_error *err)
{
    WEFT_CHECK(channel, WEFT_RPC_CHANNEL_MAGIC);
    struct weft_rpc *rpc = channel->rpc;
    weft_autofree struct weft_rpc_request *request = weft_calloc(1, sizeof(*request));
    if (request == NULL) {
        return weft_err_nomem(err);
    }
    if (options->timeout_ns > 0) {
        const int rc = weft_timer_new(rpc->loop, on_limit, request, &request->limit, err);
        if (rc < 0) {
            return rc;
        }
        weft_timer_start(request->limit, options->timeout_ns, 0);
    }
    request->magic = WEFT_RPC_REQUEST_MAGIC;
    request->rpc = rpc;
    request->channel = channel;
    channel->refs++;
    request->timeout_ns = options->timeout_ns;
    request->message = options->message;
    request->done = options->done;
    request->data = options->data;
    request->answer = grpc_empty_slice();
    request->details = grpc_empty_slice();
    grpc_metadata_array_init(&request->headers);
    grpc_metadata_array_init(&request->trailers);
    weft_rpc_tag_init(&request->start_tag, on_started, request);
    weft_rpc_tag_init(&request->message_tag, on_message, request);
    weft_rpc_tag_init(&request->status_tag, on_status, request);
    request->request = weft_rpc_bytes_new(options->bytes, options->len);
    request->grpc = grpc_channel_create_call(channel->grpc, NULL, GRPC_PROPAGATE_DEFAULTS, rpc->cq,
                                             grpc_slice_from_static_string(options->method), NULL,
                                             gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    weft_rpc_hold(rpc);
    start_call(request);
    *ret_request = weft_steal(&request);
    return 0;
}

void weft_rpc_request_free(struct weft_rpc_request *request)
{
    if (request == NULL) {
        return;
    }
    WEFT_CHECK(request, WEFT_RPC_REQUEST_MAGIC);
    request->freed = true;
    request->ended = true;
    if (request->limit != NULL) {
        weft_timer_free(weft_steal(&request->limit));
    }
    if (request->tags_out == 0) {
        destroy(request);
    } else {
        (void)grpc_call_cancel(request->grpc, NULL);
    }
}
