/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and replacing whole files. */
#include "pkg/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/buf.h"
#include "pkg/base/mem.h"

enum { TEMPORARIES_MAX = 16 }; /* processes that replace one file at the same time */

int weft_fd_keep_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) {
            continue;
        }
        /* the lowest free number is this one; a child has it too */
        if (open("/dev/null", O_RDWR) < 0) { /* NOLINT(android-cloexec-open) */
            return -errno;
        }
    }
    return 0;
}

int weft_fd_read(int fd, size_t max, char **ret_text, size_t *ret_len, struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, max);
    char chunk[16384];
    for (;;) {
        const ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return weft_err_errno(err, errno, "read");
        }
        if (n == 0) {
            break;
        }
        const int rc = weft_buf_append(&buf, chunk, (size_t)n);
        if (rc == -EFBIG) {
            return weft_err_set(err, rc, WEFT_ERR_ERRNO, "larger than the cap of %zu bytes", max);
        }
        if (rc < 0) {
            return weft_err_nomem(err);
        }
    }
    const size_t len = buf.len;
    char *text = weft_buf_steal(&buf);
    if (text == NULL) {
        return weft_err_nomem(err);
    }
    *ret_text = text;
    if (ret_len != NULL) {
        *ret_len = len;
    }
    return 0;
}

int weft_file_read(const char *path, size_t max, char **ret_text, size_t *ret_len,
                   struct weft_error *err)
{
    if (strcmp(path, "-") == 0) {
        const int rc = weft_fd_read(STDIN_FILENO, max, ret_text, ret_len, err);
        return rc < 0 ? weft_err_wrap(err, rc, "standard input") : 0;
    }
    weft_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return weft_err_errno(err, errno, "open %s", path);
    }
    const int rc = weft_fd_read(fd, max, ret_text, ret_len, err);
    return rc < 0 ? weft_err_wrap(err, rc, "%s", path) : 0;
}

int weft_file_read_regular(const char *path, size_t max, char **ret_text, size_t *ret_len,
                           struct weft_error *err)
{
    struct stat st;
    /* O_NONBLOCK: without a writer the open of a pipe would wait too */
    weft_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0) {
        return weft_err_errno(err, errno, "open %s", path);
    }
    if (!S_ISREG(st.st_mode)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s: is no regular file: a pipe or a device may never end", path);
    }
    const int rc = weft_fd_read(fd, max, ret_text, ret_len, err);
    return rc < 0 ? weft_err_wrap(err, rc, "%s", path) : 0;
}

int weft_fd_write(int fd, const void *bytes, size_t len, struct weft_error *err)
{
    const char *p = bytes;
    while (len > 0) {
        const ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return weft_err_errno(err, errno, "write");
        }
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

static int write_and_sync(int fd, const void *bytes, size_t len, struct weft_error *err)
{
    const int rc = weft_fd_write(fd, bytes, len, err);
    if (rc == 0 && fsync(fd) < 0) {
        return weft_err_errno(err, errno, "fsync");
    }
    return rc;
}

/* Is fd, which is open at path, ours alone? Not if another process has the lock, nor if one that
 * had it has renamed the file away since. Where there are no locks there is nothing to tell. */
static bool is_ours(int fd, const char *path)
{
    struct stat opened, named;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        return false;
    }
    return fstat(fd, &opened) == 0 && stat(path, &named) == 0 && opened.st_ino == named.st_ino &&
           opened.st_dev == named.st_dev;
}

/* A descriptor, -EBUSY if another process writes it, -errno. */
static int open_temporary(const char *path, unsigned mode)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, (mode_t)mode);
    if (fd < 0) {
        return -errno;
    }
    const int rc = !is_ours(fd, path) ? -EBUSY : ftruncate(fd, 0) < 0 ? -errno : 0;
    if (rc < 0) {
        (void)close(fd);
        return rc;
    }
    return fd;
}

int weft_file_temporary(const char *base, unsigned mode, char **ret_path, int *ret_fd,
                        struct weft_error *err)
{
    for (int i = 0; i < TEMPORARIES_MAX; i++) {
        weft_autofree char *path = weft_asprintf("%s-%d", base, i);
        if (path == NULL) {
            (void)weft_err_nomem(err);
            return -ENOMEM;
        }
        const int fd = open_temporary(path, mode);
        if (fd >= 0) {
            *ret_path = weft_steal(&path);
            *ret_fd = fd;
            return 0;
        }
        if (fd != -EBUSY) {
            (void)weft_err_errno(err, -fd, "create %s", path);
            return fd;
        }
    }
    (void)weft_err_errno(err, EBUSY, "create %s", base);
    return -EBUSY;
}

void weft_file_remove_temporaries(const char *base)
{
    for (int i = 0; i < TEMPORARIES_MAX; i++) {
        weft_autofree char *path = weft_asprintf("%s-%d", base, i);
        weft_autoclose int fd =
            path != NULL ? open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
        if (fd >= 0 && is_ours(fd, path)) {
            (void)unlink(path);
        }
    }
}

int weft_file_replace(const char *path, const void *bytes, size_t len, unsigned mode,
                      struct weft_error *err)
{
    weft_autofree char *base = weft_asprintf("%s.tmp", path);
    weft_autofree char *temp = NULL;
    weft_autoclose int fd = -1;
    if (base == NULL) {
        return weft_err_nomem(err);
    }
    int rc = weft_file_temporary(base, mode, &temp, &fd, err);
    if (rc < 0) {
        return rc;
    }
    rc = write_and_sync(fd, bytes, len, err);
    if (rc < 0) {
        rc = weft_err_wrap(err, rc, "%s", temp);
    } else if (rename(temp, path) < 0) {
        rc = weft_err_errno(err, errno, "rename %s to %s", temp, path);
    }
    if (rc < 0) {
        (void)unlink(temp);
    }
    return rc;
}
