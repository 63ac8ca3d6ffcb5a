/* SPDX-License-Identifier: Apache-2.0 */
/* A socket that the kernel tells of its devices by. */
#include "deviceplugin/uevents.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/base/str.h"
#include "pkg/loop/loop.h"

enum {
    UEVENTS_MAGIC = 0x55657665, /* "Ueve" */
    KERNEL_GROUP = 1,           /* the kernel's own messages; udev's have another */
    MESSAGE_MAX = 8192,         /* the kernel's take 2 KiB of keys at most (UEVENT_BUFFER_SIZE) */
    AT_ONCE = 64                /* messages a turn of the loop */
};

/* A device comes and goes with a few events each. */
#define SETTLE_NS (100 * WEFT_NS_PER_MS)
#define APART_NS (1 * WEFT_NS_PER_S)

struct weft_uevents {
    uint32_t magic;
    int fd;
    struct weft_fdwatch *watch;
    struct weft_timer *timer;
    int64_t last_ns; /* when happened ran last */
    void (*happened)(void *data);
    void *data;
};

/* ---- a message ---- */

bool weft_uevent_matters(const char *bytes, size_t len)
{
    static const char key[] = "SUBSYSTEM=";
    static const char *const ours[] = {"pci", "drm", "accel", "kfd", "infiniband", "module"};
    struct weft_str rest = {bytes, len}, line;
    while (weft_str_split(&rest, '\0', &line)) {
        if (!weft_str_starts(line, key)) {
            continue;
        }
        const struct weft_str subsystem = {line.data + sizeof(key) - 1,
                                           line.len - (sizeof(key) - 1)};
        for (size_t i = 0; i < WEFT_ARRAY_LEN(ours); i++) {
            if (weft_str_eq(subsystem, ours[i])) {
                return true;
            }
        }
        return false;
    }
    return false;
}

/* ---- the socket ---- */

static void on_timer(void *data)
{
    struct weft_uevents *u = data;
    WEFT_CHECK(u, UEVENTS_MAGIC);
    u->last_ns = weft_clock_monotonic(weft_clock_system());
    u->happened(u->data);
}

static void note(struct weft_uevents *u)
{
    const int64_t next = u->last_ns + APART_NS - weft_clock_monotonic(weft_clock_system());
    if (!weft_timer_active(u->timer)) {
        weft_timer_start(u->timer, next > SETTLE_NS ? next : SETTLE_NS, 0);
    }
}

/* One message; -errno of recvmsg. Any process with the right to may send to the group; only the
 * kernel's port is 0. */
static int take(struct weft_uevents *u)
{
    char bytes[MESSAGE_MAX + 1];
    struct sockaddr_nl from = {0};
    struct iovec piece = {.iov_base = bytes, .iov_len = MESSAGE_MAX};
    struct msghdr message = {
        .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &piece, .msg_iovlen = 1};
    const ssize_t len = recvmsg(u->fd, &message, MSG_DONTWAIT);
    if (len < 0) {
        return -errno;
    }
    bytes[len] = '\0';
    if (message.msg_namelen == sizeof(from) && from.nl_pid == 0 &&
        weft_uevent_matters(bytes, (size_t)len)) {
        weft_log(WEFT_LOG_DEBUG, "uevent", WEFT_KV_S("message", bytes));
        note(u);
    }
    return 0;
}

static void on_readable(void *data, unsigned events)
{
    struct weft_uevents *u = data;
    WEFT_CHECK(u, UEVENTS_MAGIC);
    int rc = 0;
    for (int i = 0; i < AT_ONCE && rc == 0; i++) {
        rc = take(u);
    }
    if (rc == -ENOBUFS) { /* too many at once: some were lost */
        note(u);
        rc = 0;
    }
    rc = rc == -EAGAIN || rc == -EINTR ? 0 : rc;
    if (rc == 0 && (events & WEFT_FD_ERROR) != 0) { /* that stopped the watch */
        rc = weft_fdwatch_set(u->watch, WEFT_FD_READ);
    } else if (rc < 0) {
        (void)!weft_fdwatch_set(u->watch, 0);
    }
    if (rc < 0) {
        struct weft_error err = {0};
        (void)weft_err_errno(&err, -rc, "the kernel's uevents");
        weft_log(WEFT_LOG_WARN, "uevents-ended", WEFT_KV_S("reason", err.message));
    }
}

static int open_socket(struct weft_uevents *u, struct weft_error *err)
{
    const struct sockaddr_nl name = {.nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP};
    u->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
    if (u->fd < 0 || bind(u->fd, (const struct sockaddr *)&name, sizeof(name)) < 0) {
        return weft_err_errno(err, errno, "the kernel's uevents");
    }
    return 0;
}

int weft_uevents_new(struct weft_loop *loop, void (*happened)(void *data), void *data,
                     struct weft_uevents **ret_uevents, struct weft_error *err)
{
    weft_auto(weft_uevents_free) struct weft_uevents *u = weft_calloc(1, sizeof(*u));
    if (u == NULL) {
        return weft_err_nomem(err);
    }
    u->magic = UEVENTS_MAGIC;
    u->happened = happened;
    u->data = data;
    u->last_ns = INT64_MIN / 2;
    int rc = open_socket(u, err);
    rc = rc == 0 ? weft_timer_new(loop, on_timer, u, &u->timer, err) : rc;
    rc = rc == 0 ? weft_fdwatch_new(loop, u->fd, on_readable, u, &u->watch, err) : rc;
    rc = rc == 0 ? weft_fdwatch_set(u->watch, WEFT_FD_READ) : rc;
    if (rc < 0) {
        return rc;
    }
    *ret_uevents = weft_steal(&u);
    return 0;
}

void weft_uevents_free(struct weft_uevents *uevents)
{
    if (uevents == NULL) {
        return;
    }
    WEFT_CHECK(uevents, UEVENTS_MAGIC);
    weft_fdwatch_free(uevents->watch);
    weft_timer_free(uevents->timer);
    if (uevents->fd >= 0) {
        (void)close(uevents->fd);
    }
    uevents->magic = 0;
    weft_free(uevents);
}
