/* SPDX-License-Identifier: Apache-2.0 */
/* A server on a unix socket: registered methods, and one slot for all unknown ones, without which
 * gRPC would let a call of an unknown method hang until the client's deadline. */
#include <errno.h>
#include <grpc/grpc_security.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "pkg/base/clock.h"
#include "pkg/rpc/rpc-internal.h"

/* For cancelled calls and connections to end by themselves: milliseconds. */
#define CUT_AFTER_NS (WEFT_NS_PER_S / 2)

static void destroy(struct weft_rpc_server *server)
{
    struct weft_rpc *rpc = server->rpc;
    grpc_server_destroy(server->grpc);
    weft_timer_free(server->cut);
    server->magic = 0;
    weft_free(server);
    weft_rpc_release(rpc);
}

static void destroy_if_drained(struct weft_rpc_server *server)
{
    if (server->shut_down && server->call_count == 0) {
        destroy(server);
    }
}

/* A method that takes no call lets its caller wait for ever. */
static bool all_armed(const struct weft_rpc_server *server)
{
    for (size_t i = 0; i < server->slot_count; i++) {
        if (!server->slots[i].armed) {
            return false;
        }
    }
    return true;
}

void weft_rpc_server_arm(struct weft_rpc_server *server)
{
    for (size_t i = 0; i < server->slot_count && !server->freed; i++) {
        if (!server->slots[i].armed && server->call_count < WEFT_RPC_CALLS_MAX) {
            server->slots[i].armed = weft_rpc_call_arm(server, &server->slots[i]) == 0;
        }
    }
}

void weft_rpc_server_drop_call(struct weft_rpc_server *server)
{
    WEFT_CHECK(server, WEFT_RPC_SERVER_MAGIC);
    server->call_count--;
    weft_rpc_server_arm(server); /* a slot may have been left without for lack of memory or room */
    destroy_if_drained(server);
}

static void on_shut_down(void *data)
{
    struct weft_rpc_server *server = data;
    WEFT_CHECK(server, WEFT_RPC_SERVER_MAGIC);
    server->shut_down = true;
    destroy_if_drained(server);
}

static void on_cut(void *data)
{
    struct weft_rpc_server *server = data;
    WEFT_CHECK(server, WEFT_RPC_SERVER_MAGIC);
    weft_rpc_cut_connections(server->path);
}

/* What gRPC itself would only log, or do without asking. */
static int check_path(const char *path, struct weft_error *err)
{
    if (strlen(path) > WEFT_RPC_PATH_MAX) {
        return weft_err_errno(err, ENAMETOOLONG, "socket %.60s… (at most %d bytes)", path,
                              WEFT_RPC_PATH_MAX);
    }
    struct stat st;
    if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
        return weft_err_errno(err, EEXIST, "%s is in the way and not a socket", path);
    }
    return 0;
}

/* gRPC could not, and does not say why: what we get in the same place. */
static int why_not_bound(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    memcpy(name.sun_path, path, strlen(path)); /* as check_path found: it has room */
    weft_autoclose const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&name, sizeof(name)) < 0) {
        return errno;
    }
    (void)unlink(path);
    return EAGAIN; /* now it can be */
}

static int bind_socket(grpc_server *grpc, const char *path, struct weft_error *err)
{
    weft_autofree char *address = weft_asprintf("unix:%s", path);
    if (address == NULL) {
        return weft_err_nomem(err);
    }
    grpc_server_credentials *insecure = grpc_insecure_server_credentials_create();
    const int port = grpc_server_add_http2_port(grpc, address, insecure);
    grpc_server_credentials_release(insecure);
    if (port != 0) {
        return 0;
    }
    weft_autofree char *folder = weft_strdup(path);
    char *slash = folder != NULL ? strrchr(folder, '/') : NULL;
    struct stat st;
    if (slash != NULL && slash != folder) {
        *slash = '\0';
        if (stat(folder, &st) < 0) {
            return weft_err_errno(err, errno, "folder %s", folder);
        }
    }
    return weft_err_errno(err, why_not_bound(path), "socket %s cannot be bound", path);
}

static grpc_server *create(const struct weft_rpc_server_options *options)
{
    const size_t cap = options->receive_max > 0 ? options->receive_max : WEFT_RPC_RECEIVE_MAX;
    char receive[] = GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH;
    char streams[] = GRPC_ARG_MAX_CONCURRENT_STREAMS;
    grpc_arg args[] = {
        {.type = GRPC_ARG_INTEGER, .key = receive, .value.integer = (int)cap},
        {.type = GRPC_ARG_INTEGER, .key = streams, .value.integer = WEFT_RPC_CALLS_MAX},
    };
    const grpc_channel_args list = {.num_args = WEFT_ARRAY_LEN(args), .args = args};
    return grpc_server_create(&list, NULL);
}

static void register_methods(struct weft_rpc_server *server)
{
    for (size_t i = 0; i + 1 < server->slot_count; i++) {
        server->slots[i].spec = &server->methods[i];
        server->slots[i].registered =
            grpc_server_register_method(server->grpc, server->methods[i].path, NULL,
                                        GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, 0);
    }
}

int weft_rpc_server_new(struct weft_rpc *rpc, const struct weft_rpc_server_options *options,
                        struct weft_rpc_server **ret_server, struct weft_error *err)
{
    WEFT_CHECK(rpc, WEFT_RPC_MAGIC);
    int rc =
        options->method_count <= WEFT_RPC_METHODS_MAX ? check_path(options->path, err) : -E2BIG;
    if (rc < 0) {
        return rc;
    }
    struct weft_rpc_server *server = weft_calloc(1, sizeof(*server));
    if (server == NULL) {
        return weft_err_nomem(err);
    }
    rc = weft_timer_new(rpc->loop, on_cut, server, &server->cut, err);
    if (rc < 0) {
        weft_free(server);
        return rc;
    }
    server->magic = WEFT_RPC_SERVER_MAGIC;
    server->rpc = rpc;
    memcpy(server->path, options->path, strlen(options->path)); /* checked above; zeroed */
    server->closed = options->closed;
    server->data = options->data;
    memcpy(server->methods, options->methods, options->method_count * sizeof(server->methods[0]));
    server->slot_count = options->method_count + 1;
    server->grpc = create(options);
    grpc_server_register_completion_queue(server->grpc, rpc->cq, NULL);
    register_methods(server);
    rc = bind_socket(server->grpc, options->path, err);
    weft_rpc_hold(rpc);
    if (rc == 0) {
        grpc_server_start(server->grpc);
        weft_rpc_server_arm(server);
        rc = all_armed(server) ? 0 : weft_err_nomem(err);
    }
    if (rc < 0) {
        weft_rpc_server_free(server); /* gRPC wants a shutdown even of one never started */
    } else {
        *ret_server = server;
    }
    return rc;
}

void weft_rpc_server_free(struct weft_rpc_server *server)
{
    if (server == NULL) {
        return;
    }
    WEFT_CHECK(server, WEFT_RPC_SERVER_MAGIC);
    server->freed = true;
    weft_rpc_tag_init(&server->shutdown_tag, on_shut_down, server);
    grpc_server_shutdown_and_notify(server->grpc, server->rpc->cq,
                                    weft_rpc_tag_hand(server->rpc, &server->shutdown_tag));
    grpc_server_cancel_all_calls(server->grpc);
    weft_timer_start(server->cut, CUT_AFTER_NS, CUT_AFTER_NS);
}
