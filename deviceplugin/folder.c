/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin folder, looked at. */
#include "deviceplugin/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "pkg/base/clock.h"
#include "pkg/base/mem.h"
#include "pkg/base/str.h"
#include "pkg/kubelet/kubelet.h"

enum { GENERATIONS_MAX = 1000000 };

struct weft_file_identity weft_file_identify(const char *path)
{
    struct stat st;
    if (lstat(path, &st) < 0) {
        return (struct weft_file_identity){0};
    }
    return (struct weft_file_identity){
        .exists = true,
        .device = st.st_dev,
        .inode = st.st_ino,
        .changed_ns = st.st_ctim.tv_sec * WEFT_NS_PER_S + st.st_ctim.tv_nsec,
    };
}

bool weft_file_same(const struct weft_file_identity *a, const struct weft_file_identity *b)
{
    return a->exists == b->exists && a->device == b->device && a->inode == b->inode &&
           a->changed_ns == b->changed_ns;
}

bool weft_folder_there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool weft_socket_alive(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path)) {
        return false;
    }
    memcpy(address.sun_path, path, strlen(path));
    weft_autoclose const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* EAGAIN: somebody listens, with a full queue */
    return fd >= 0 && (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 ||
                       errno == EAGAIN);
}

const char *weft_folder_slug(const char *resource, char *name)
{
    size_t len = 0;
    for (; resource[len] != '\0' && len + 1 < WEFT_FOLDER_NAME_MAX; len++) {
        name[len] = resource[len] == '/' ? '-' : resource[len];
    }
    name[len] = '\0';
    return name;
}

int weft_folder_free_name(const char *folder, const char *slug, unsigned *generation, char *name,
                          struct weft_error *err)
{
    for (unsigned tries = 0; tries < GENERATIONS_MAX; tries++) {
        (void)snprintf(name, WEFT_FOLDER_NAME_MAX, "%.200s-%ld-%u.sock", slug, (long)getpid(),
                       *generation);
        (*generation)++;
        weft_autofree char *path = weft_asprintf("%s/%s", folder, name);
        if (path == NULL) {
            return weft_err_nomem(err);
        }
        if (!weft_file_identify(path).exists) {
            return 0;
        }
    }
    return weft_err_errno(err, EEXIST, "no free socket name in %s", folder);
}

/* Is it <slug>-<digits>-<digits>.sock? */
static bool is_ours(const char *name, const char *slug)
{
    struct weft_str s = weft_str(name);
    const struct weft_str prefix = weft_str(slug);
    if (!weft_str_starts(s, slug) || !weft_str_ends(s, ".sock")) {
        return false;
    }
    s.data += prefix.len;
    s.len -= prefix.len;
    s.len = s.len >= 5 ? s.len - 5 : 0;
    struct weft_str nothing, pid, number;
    uint64_t value = 0;
    return weft_str_split(&s, '-', &nothing) && nothing.len == 0 && weft_str_split(&s, '-', &pid) &&
           weft_parse_u64(pid, INT32_MAX, &value) == 0 && weft_str_split(&s, '-', &number) &&
           weft_parse_u64(number, UINT32_MAX, &value) == 0 && s.len == 0;
}

unsigned weft_folder_clean(const char *folder, const char *slug)
{
    unsigned removed = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL; e = readdir(dir)) {
        if (!is_ours(e->d_name, slug)) {
            continue;
        }
        weft_autofree char *path = weft_asprintf("%s/%s", folder, e->d_name);
        struct stat st;
        if (path != NULL && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) &&
            !weft_socket_alive(path) && unlink(path) == 0) {
            removed++;
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return removed;
}

/* ---- other plugins ---- */

/* The parts of a resource's name: "gpu" of the vendor "nvidia" at "nvidia.com". */
struct parts {
    struct weft_str domain, vendor, name;
};

static struct parts parts_of(const char *resource)
{
    struct weft_str rest = weft_str(resource);
    struct parts p = {{0}, {0}, {0}};
    (void)weft_str_split(&rest, '/', &p.domain);
    p.name = rest;
    rest = p.domain;
    (void)weft_str_split(&rest, '.', &p.vendor);
    return p;
}

enum { HABITS = 4 };

/* One of the names that plugins give their sockets. */
static void habit(const struct parts *p, int which, char *name)
{
    static const struct {
        const char *between, *end;
        bool vendor;
    } habits[HABITS] = {
        {"-", ".sock", true}, {"-", ".sock", false}, {"_", "", false}, {"_", ".sock", false}};
    const struct weft_str *who = habits[which].vendor ? &p->vendor : &p->domain;
    (void)snprintf(name, WEFT_FOLDER_NAME_MAX, "%.*s%s%.*s%s", WEFT_STR_ARG(*who),
                   habits[which].between, WEFT_STR_ARG(p->name), habits[which].end);
}

bool weft_folder_is_rival(const char *name, const char *resource)
{
    const struct parts p = parts_of(resource);
    char other[WEFT_FOLDER_NAME_MAX];
    for (int i = 0; i < HABITS; i++) {
        habit(&p, i, other);
        if (strcmp(name, other) == 0) {
            return true;
        }
    }
    return false;
}

static bool alive_in(const char *folder, const char *name)
{
    char path[WEFT_FOLDER_NAME_MAX + sizeof(struct sockaddr_un)];
    const int len = snprintf(path, sizeof(path), "%s/%s", folder, name);
    return len > 0 && (size_t)len < sizeof(path) && weft_file_identify(path).exists &&
           weft_socket_alive(path);
}

void weft_folder_rival(const char *folder, const char *resource, char *name)
{
    const struct parts p = parts_of(resource);
    for (int i = 0; i < HABITS; i++) {
        habit(&p, i, name);
        if (alive_in(folder, name)) {
            return;
        }
    }
    name[0] = '\0';
}

void weft_folder_others(const char *folder, const char *own, char *text, size_t size)
{
    size_t len = 0;
    text[0] = '\0';
    DIR *dir = opendir(folder);
    for (struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL; e = readdir(dir)) {
        if (strcmp(e->d_name, WEFT_KUBELET_SOCKET) == 0 || strcmp(e->d_name, own) == 0 ||
            !alive_in(folder, e->d_name)) {
            continue;
        }
        const int n = snprintf(text + len, size - len, "%s%s", len > 0 ? "," : "", e->d_name);
        if (n < 0 || (size_t)n >= size - len) {
            text[len] = '\0';
            break;
        }
        len += (size_t)n;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}
