/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that gRPC cannot close itself. Its 1.51 closes a connection only when what it writes
 * has gone out (close_transport_locked in chttp2_transport.cc), so a peer that reads no more, with
 * a full socket buffer, keeps a server of ours for ever: a hung kubelet must not. gRPC does not
 * tell its file descriptors, but an accepted unix socket has the name of the one it was accepted
 * on. */
#include <dirent.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "pkg/base/str.h"
#include "pkg/rpc/rpc-internal.h"

static bool is_accepted_on(int fd, const char *path)
{
    struct sockaddr_un name = {0};
    socklen_t len = sizeof(name) - 1; /* a path may fill all of it, without a NUL */
    int listens = 0;
    socklen_t listens_len = sizeof(listens);
    return getsockname(fd, (struct sockaddr *)&name, &len) == 0 && name.sun_family == AF_UNIX &&
           strncmp(name.sun_path, path, sizeof(name.sun_path)) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_len) == 0 && listens == 0;
}

/* The descriptor stays gRPC's, which sees the end of the connection and closes it. */
void weft_rpc_cut_connections(const char *path)
{
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL; e = readdir(dir)) {
        uint64_t fd = 0;
        if (weft_parse_u64(weft_str(e->d_name), INT_MAX, &fd) == 0 &&
            is_accepted_on((int)fd, path)) {
            (void)shutdown((int)fd, SHUT_RDWR);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}
