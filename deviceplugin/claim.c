/* SPDX-License-Identifier: Apache-2.0 */
/* The lock file. Its name begins with a dot: a folder wiped by hand (rm *) keeps it, and the
 * kubelet's plugin watcher ignores such names. */
#include "deviceplugin/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "pkg/base/str.h"

enum {
    CLAIM_MAGIC = 0x436c6169, /* "Clai" */
    TRIES_MAX = 4             /* somebody removes the file between two of our steps */
};

struct weft_claim {
    uint32_t magic;
    char *path;
    const char *name; /* in path */
    int fd;           /* -1: the file is not open */
    bool held;
    int64_t gone_ns; /* since when the file that another held is gone; 0: it is not */
    char holder[WEFT_CLAIM_HOLDER_MAX];
};

int weft_claim_new(const char *folder, const char *slug, struct weft_claim **ret_claim,
                   struct weft_error *err)
{
    weft_auto(weft_claim_free) struct weft_claim *claim = weft_calloc(1, sizeof(*claim));
    if (claim == NULL) {
        return weft_err_nomem(err);
    }
    claim->magic = CLAIM_MAGIC;
    claim->fd = -1;
    claim->path = weft_asprintf("%s/.weft-%.200s.lock", folder, slug);
    if (claim->path == NULL) {
        return weft_err_nomem(err);
    }
    claim->name = strrchr(claim->path, '/') + 1;
    *ret_claim = weft_steal(&claim);
    return 0;
}

static void let_go(struct weft_claim *claim)
{
    if (claim->fd >= 0) {
        if (claim->held) {
            (void)!ftruncate(claim->fd, 0);
        }
        (void)close(claim->fd);
        if (claim->held) { /* who watches the folder hears of it: by name, not by descriptor */
            (void)utimensat(AT_FDCWD, claim->path, NULL, AT_SYMLINK_NOFOLLOW);
        }
    }
    claim->fd = -1;
    claim->held = false;
}

void weft_claim_free(struct weft_claim *claim)
{
    if (claim != NULL) {
        WEFT_CHECK(claim, CLAIM_MAGIC);
        let_go(claim);
        weft_free(claim->path);
        claim->magic = 0;
        weft_free(claim);
    }
}

/* Is the open file the one that stands at the path? */
static bool still_there(const struct weft_claim *claim)
{
    struct stat open_one, named;
    return fstat(claim->fd, &open_one) == 0 && lstat(claim->path, &named) == 0 &&
           open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

static void sign(struct weft_claim *claim)
{
    struct utsname host = {0};
    (void)uname(&host);
    (void)snprintf(claim->holder, sizeof(claim->holder), "pid=%ld host=%.100s", (long)getpid(),
                   host.nodename);
    if (ftruncate(claim->fd, 0) == 0) {
        (void)!pwrite(claim->fd, claim->holder, strlen(claim->holder), 0);
    } /* only for people: without it the lock is as good */
}

static void read_holder(struct weft_claim *claim)
{
    const ssize_t n = pread(claim->fd, claim->holder, sizeof(claim->holder) - 1, 0);
    claim->holder[n > 0 ? n : 0] = '\0';
    for (char *c = claim->holder; *c != '\0'; c++) { /* anybody may write there */
        *c = *c >= ' ' && *c <= '~' ? *c : '?';
    }
}

/* The file of another's claim went: its holder, if it lives, makes it anew at once. */
static bool in_grace(struct weft_claim *claim, int64_t now_ns)
{
    struct stat st;
    if (claim->fd >= 0 && !still_there(claim)) {
        let_go(claim);
        claim->gone_ns = now_ns;
    }
    if (claim->gone_ns != 0 && now_ns - claim->gone_ns < WEFT_CLAIM_GRACE_NS &&
        lstat(claim->path, &st) < 0) {
        return true;
    }
    claim->gone_ns = 0;
    return false;
}

/* Makes the file, locked before it has its name: nobody ever sees it unlocked between the two. 0,
 * also where another one was faster; -errno. */
static int make(struct weft_claim *claim)
{
    weft_autofree char *fresh =
        weft_asprintf("%s.%ld.%llx", claim->path, (long)getpid(),
                      (unsigned long long)weft_clock_realtime(weft_clock_system()));
    if (fresh == NULL) {
        return -ENOMEM;
    }
    const int fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return -errno;
    }
    const int rc = flock(fd, LOCK_EX | LOCK_NB) == 0 && link(fresh, claim->path) == 0 ? 0 : -errno;
    (void)unlink(fresh);
    if (rc < 0) {
        (void)close(fd);
        return rc == -EEXIST ? 0 : rc;
    }
    claim->fd = fd;
    return 0;
}

/* Opens the file that is there, or makes it. -errno. */
static int open_file(struct weft_claim *claim)
{
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        struct stat st;
        const int rc = lstat(claim->path, &st) < 0 && errno == ENOENT ? make(claim) : 0;
        if (rc < 0 || claim->fd >= 0) {
            return rc;
        }
        claim->fd = open(claim->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (claim->fd >= 0 || errno != ENOENT) {
            return claim->fd >= 0 ? 0 : -errno;
        }
    }
    return -EAGAIN; /* it comes and goes */
}

/* Tries to lock the file that is there now. */
static enum weft_claim_state take(struct weft_claim *claim, struct weft_error *err)
{
    const int rc = claim->fd < 0 ? open_file(claim) : 0;
    if (rc < 0) {
        (void)weft_err_errno(err, -rc, "%s", claim->path);
        return WEFT_CLAIM_UNKNOWN;
    }
    if (flock(claim->fd, LOCK_EX | LOCK_NB) == 0) {
        return WEFT_CLAIM_HELD;
    }
    if (errno == EWOULDBLOCK || errno == EINTR) {
        read_holder(claim);
        return WEFT_CLAIM_TAKEN;
    }
    (void)weft_err_errno(err, errno, "lock %s", claim->path);
    let_go(claim);
    return WEFT_CLAIM_UNKNOWN;
}

enum weft_claim_state weft_claim_check(struct weft_claim *claim, int64_t now_ns,
                                       struct weft_error *err)
{
    WEFT_CHECK(claim, CLAIM_MAGIC);
    if (claim->held) {
        if (still_there(claim)) {
            return WEFT_CLAIM_HELD;
        }
        let_go(claim); /* to make it anew */
    } else if (in_grace(claim, now_ns)) {
        return WEFT_CLAIM_TAKEN;
    }
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        const enum weft_claim_state state = take(claim, err);
        if (state != WEFT_CLAIM_HELD) {
            return state;
        }
        if (still_there(claim)) {
            claim->held = true;
            sign(claim);
            return WEFT_CLAIM_HELD;
        }
        let_go(claim);
    }
    (void)weft_err_set(err, -EAGAIN, WEFT_ERR_ERRNO, "%s is removed again and again", claim->path);
    return WEFT_CLAIM_UNKNOWN;
}

const char *weft_claim_holder(const struct weft_claim *claim)
{
    WEFT_CHECK(claim, CLAIM_MAGIC);
    return claim->holder;
}

const char *weft_claim_name(const struct weft_claim *claim)
{
    WEFT_CHECK(claim, CLAIM_MAGIC);
    return claim->name;
}
