/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/http_get.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "pkg/base/buf.h"
#include "pkg/base/mem.h"

const char *http_get(uint16_t port, const char *path, struct weft_buf *page)
{
    char request[256];
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const struct timeval limit = {.tv_sec = 5};
    weft_buf_reset(page);
    weft_autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    (void)snprintf(request, sizeof(request),
                   "GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", path);
    if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0 &&
        send(fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request)) {
        char part[16384];
        for (ssize_t n = recv(fd, part, sizeof(part), 0); n > 0;
             n = recv(fd, part, sizeof(part), 0)) {
            (void)weft_buf_append(page, part, (size_t)n);
        }
    }
    return weft_buf_text(page);
}
