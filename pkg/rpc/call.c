/* SPDX-License-Identifier: Apache-2.0 */
/* One call on the server's side. Up to four gRPC operations of a call are under way at a time
 * (its arrival, its close, a message, its status), each with a tag in the call object; the object
 * goes when all tags are back. RECV_CLOSE is asked for on every call: it is how we hear at once
 * that the kubelet went away, and it always comes back last or with the end. */
#include <string.h>

#include "pkg/rpc/rpc-internal.h"

struct weft_rpc_call {
    uint32_t magic;
    struct weft_rpc_server *server;
    struct weft_rpc_slot *slot;
    grpc_call *grpc;
    grpc_call_details details; /* unknown methods only */
    grpc_metadata_array metadata;
    gpr_timespec deadline;
    grpc_byte_buffer *request;
    struct weft_rpc_tag arrival_tag, close_tag, send_tag, status_tag;
    unsigned tags_out;
    int cancelled; /* set by gRPC before the close tag */
    bool owned;    /* the method's owner may still use the call */
    bool headers_sent;
    bool sending;
    grpc_byte_buffer *on_the_way, *next; /* messages */
    bool ending;                         /* a status is wanted after what is being sent */
    bool status_started;
    enum weft_rpc_code code;
    grpc_slice details_text;
};

static void drop_buffer(grpc_byte_buffer **buffer)
{
    if (*buffer != NULL) {
        grpc_byte_buffer_destroy(*buffer);
        *buffer = NULL;
    }
}

/* A tag is back. Frees the call after the last; then returns true. */
static bool tag_returned(struct weft_rpc_call *call)
{
    call->tags_out--;
    if (call->tags_out > 0) {
        return false;
    }
    struct weft_rpc_server *server = call->server;
    drop_buffer(&call->request);
    drop_buffer(&call->on_the_way);
    drop_buffer(&call->next);
    grpc_metadata_array_destroy(&call->metadata);
    grpc_call_details_destroy(&call->details);
    grpc_slice_unref(call->details_text);
    if (call->grpc != NULL) {
        grpc_call_unref(call->grpc);
    }
    call->magic = 0;
    weft_free(call);
    weft_rpc_server_drop_call(server);
    return true;
}

static void start(struct weft_rpc_call *call, const grpc_op *ops, size_t count,
                  struct weft_rpc_tag *tag)
{
    call->tags_out++;
    const grpc_call_error rc = grpc_call_start_batch(
        call->grpc, ops, count, weft_rpc_tag_hand(call->server->rpc, tag), NULL);
    if (rc != GRPC_CALL_OK) { /* only for a misuse of the API */
        weft_check_failed(__FILE__, __LINE__, grpc_call_error_to_string(rc));
    }
}

/* Headers go out with the first thing that is sent. */
static size_t put_headers(struct weft_rpc_call *call, grpc_op *ops)
{
    if (call->headers_sent) {
        return 0;
    }
    call->headers_sent = true;
    ops[0] = (grpc_op){.op = GRPC_OP_SEND_INITIAL_METADATA};
    return 1;
}

static void start_status(struct weft_rpc_call *call)
{
    grpc_op ops[3] = {{0}};
    size_t count = put_headers(call, ops);
    if (call->next != NULL) {
        call->on_the_way = weft_steal(&call->next);
        ops[count].op = GRPC_OP_SEND_MESSAGE;
        ops[count++].data.send_message.send_message = call->on_the_way;
    }
    ops[count].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
    ops[count].data.send_status_from_server.status = (grpc_status_code)call->code;
    ops[count++].data.send_status_from_server.status_details = &call->details_text;
    call->status_started = true;
    start(call, ops, count, &call->status_tag);
}

/* Sends what is due, if nothing is under way. */
static void pump(struct weft_rpc_call *call)
{
    if (call->sending || call->status_started) {
        return;
    }
    if (call->ending) {
        start_status(call);
    } else if (call->next != NULL) {
        grpc_op ops[2] = {{0}};
        size_t count = put_headers(call, ops);
        call->on_the_way = weft_steal(&call->next);
        ops[count].op = GRPC_OP_SEND_MESSAGE;
        ops[count++].data.send_message.send_message = call->on_the_way;
        call->sending = true;
        start(call, ops, count, &call->send_tag);
    }
}

static void on_sent(void *data)
{
    struct weft_rpc_call *call = data;
    WEFT_CHECK(call, WEFT_RPC_CALL_MAGIC);
    drop_buffer(&call->on_the_way);
    call->sending = false;
    if (call->send_tag.ok) {
        pump(call);
    } /* else the peer is gone, and the close tag says so */
    (void)tag_returned(call);
}

static void on_status_sent(void *data)
{
    struct weft_rpc_call *call = data;
    WEFT_CHECK(call, WEFT_RPC_CALL_MAGIC);
    (void)tag_returned(call);
}

static void on_close(void *data)
{
    struct weft_rpc_call *call = data;
    WEFT_CHECK(call, WEFT_RPC_CALL_MAGIC);
    if (call->owned) {
        call->owned = false;
        if (call->server->closed != NULL && !call->server->freed) {
            call->server->closed(call->server->data, call);
        }
    }
    (void)tag_returned(call);
}

static void answer(struct weft_rpc_call *call)
{
    grpc_slice request;
    const bool readable = weft_rpc_bytes_take(&call->request, &request);
    call->owned = true;
    if (call->slot->spec == NULL) {
        weft_rpc_call_finish(call, WEFT_RPC_UNIMPLEMENTED, "unknown method");
    } else if (!readable) {
        weft_rpc_call_finish(call, WEFT_RPC_INVALID_ARGUMENT, "the request has no message");
    } else {
        call->slot->spec->fn(call->server->data, call, GRPC_SLICE_START_PTR(request),
                             GRPC_SLICE_LENGTH(request));
    }
    if (readable) {
        grpc_slice_unref(request);
    }
}

static void on_arrival(void *data)
{
    struct weft_rpc_call *call = data;
    WEFT_CHECK(call, WEFT_RPC_CALL_MAGIC);
    struct weft_rpc_server *server = call->server;
    call->slot->armed = false;
    if (call->arrival_tag.ok && !server->freed) {
        weft_rpc_server_arm(server);
        grpc_op op;
        memset(&op, 0, sizeof(op));
        op.op = GRPC_OP_RECV_CLOSE_ON_SERVER;
        op.data.recv_close_on_server.cancelled = &call->cancelled;
        start(call, &op, 1, &call->close_tag);
        answer(call);
    }
    (void)tag_returned(call); /* not ok: the server shuts down */
}

static grpc_call_error request_call(struct weft_rpc_call *call)
{
    struct weft_rpc_server *server = call->server;
    grpc_completion_queue *cq = server->rpc->cq;
    void *tag = weft_rpc_tag_hand(server->rpc, &call->arrival_tag);
    if (call->slot->spec == NULL) {
        return grpc_server_request_call(server->grpc, &call->grpc, &call->details, &call->metadata,
                                        cq, cq, tag);
    }
    return grpc_server_request_registered_call(server->grpc, call->slot->registered, &call->grpc,
                                               &call->deadline, &call->metadata, &call->request, cq,
                                               cq, tag);
}

int weft_rpc_call_arm(struct weft_rpc_server *server, struct weft_rpc_slot *slot)
{
    struct weft_rpc_call *call = weft_calloc(1, sizeof(*call));
    if (call == NULL) {
        return weft_err_nomem(NULL);
    }
    call->magic = WEFT_RPC_CALL_MAGIC;
    call->server = server;
    call->slot = slot;
    call->details_text = grpc_empty_slice();
    grpc_metadata_array_init(&call->metadata);
    grpc_call_details_init(&call->details);
    weft_rpc_tag_init(&call->arrival_tag, on_arrival, call);
    weft_rpc_tag_init(&call->close_tag, on_close, call);
    weft_rpc_tag_init(&call->send_tag, on_sent, call);
    weft_rpc_tag_init(&call->status_tag, on_status_sent, call);
    call->tags_out = 1;
    server->call_count++;
    const grpc_call_error rc = request_call(call);
    if (rc != GRPC_CALL_OK) {
        weft_check_failed(__FILE__, __LINE__, grpc_call_error_to_string(rc));
    }
    return 0;
}

void weft_rpc_call_update(struct weft_rpc_call *call, const void *bytes, size_t len)
{
    WEFT_CHECK(call, WEFT_RPC_CALL_MAGIC);
    drop_buffer(&call->next);
    call->next = weft_rpc_bytes_new(bytes, len);
    pump(call);
}

void weft_rpc_call_reply(struct weft_rpc_call *call, const void *bytes, size_t len)
{
    WEFT_CHECK(call, WEFT_RPC_CALL_MAGIC);
    call->owned = false;
    call->ending = true;
    call->code = WEFT_RPC_OK;
    drop_buffer(&call->next);
    call->next = weft_rpc_bytes_new(bytes, len);
    pump(call);
}

void weft_rpc_call_finish(struct weft_rpc_call *call, enum weft_rpc_code code, const char *message)
{
    WEFT_CHECK(call, WEFT_RPC_CALL_MAGIC);
    call->owned = false;
    call->ending = true;
    call->code = code;
    grpc_slice_unref(call->details_text);
    call->details_text = grpc_slice_from_copied_string(message);
    pump(call);
}
