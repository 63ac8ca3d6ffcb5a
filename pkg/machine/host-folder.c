/* SPDX-License-Identifier: Apache-2.0 */
/* A host in a folder. Where the kernel can follow links inside a root (Linux 5.6), a file is opened
 * with one system call; a topology of 64 partitions has thousands. Elsewhere paths come resolved,
 * and nothing is followed: one that changed into a link meanwhile fails instead of leading out of
 * the root. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pkg/machine/host-internal.h"

static int folder_readlink(const struct weft_host *host, const char *path, char *target,
                           size_t size)
{
    const ssize_t n = readlinkat(host->root_fd, path, target, size);
    if (n < 0) {
        return -errno;
    }
    return (size_t)n == size ? -ENAMETOOLONG : (int)n;
}

static int open_below(const struct weft_host *host, const char *path, int flags)
{
    /* O_NONBLOCK: a FIFO in somebody's recording must not hold us up */
    const int fd = openat(host->root_fd, path[0] == '\0' ? "." : path,
                          O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags);
    return fd < 0 ? -errno : fd;
}

/* -ENOSYS where the kernel cannot, where a filter does not let us, and for all that the long way
 * tells better (EAGAIN: a rename meanwhile). */
static int open_in_root(const struct weft_host *host, const char *path, int flags)
{
    const struct open_how how = {
        .flags = (unsigned)(O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags),
        .resolve = RESOLVE_IN_ROOT};
    const long fd =
        syscall(SYS_openat2, host->root_fd, path[0] == '\0' ? "." : path, &how, sizeof(how));
    if (fd >= 0) {
        return (int)fd;
    }
    return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? -errno : -ENOSYS;
}

static int read_all(int fd, char *text, size_t size)
{
    size_t len = 0;
    for (;;) {
        char beyond;
        const ssize_t n =
            len < size ? read(fd, text + len, size - len) : read(fd, &beyond, sizeof(beyond));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return -errno;
        }
        if (n == 0) {
            return (int)len;
        }
        if (len == size) {
            return -EFBIG;
        }
        len += (size_t)n;
    }
}

static int folder_read(const struct weft_host *host, const char *path, char *text, size_t size)
{
    weft_autoclose int fd = open_below(host, path, 0);
    return fd < 0 ? fd : read_all(fd, text, size);
}

static int folder_read_unresolved(const struct weft_host *host, const char *path, char *text,
                                  size_t size)
{
    weft_autoclose int fd = open_in_root(host, path, 0);
    return fd < 0 ? fd : read_all(fd, text, size);
}

static int add_entries(DIR *dir, struct weft_host_names *names)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL) {
            return -errno;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        const int rc = weft_host_names_add(names, entry->d_name, strlen(entry->d_name));
        if (rc < 0) {
            return rc;
        }
    }
}

/* fd becomes ours. */
static int list_all(int fd, struct weft_host_names *names)
{
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        const int rc = -errno;
        (void)close(fd);
        return rc;
    }
    const int rc = add_entries(dir, names);
    (void)closedir(dir);
    return rc;
}

static int folder_list(const struct weft_host *host, const char *path,
                       struct weft_host_names *names)
{
    const int fd = open_below(host, path, O_DIRECTORY);
    return fd < 0 ? fd : list_all(fd, names);
}

static int folder_list_unresolved(const struct weft_host *host, const char *path,
                                  struct weft_host_names *names)
{
    const int fd = open_in_root(host, path, O_DIRECTORY);
    return fd < 0 ? fd : list_all(fd, names);
}

static void folder_done(struct weft_host *host)
{
    if (host->root_fd >= 0) {
        (void)close(host->root_fd);
    }
}

const struct weft_host_ops weft_host_folder_ops = {.readlink = folder_readlink,
                                                   .read = folder_read,
                                                   .list = folder_list,
                                                   .read_unresolved = folder_read_unresolved,
                                                   .list_unresolved = folder_list_unresolved,
                                                   .done = folder_done};
