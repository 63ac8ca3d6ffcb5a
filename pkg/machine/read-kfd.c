/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the KFD topology in a recording and reads the machine from it. */
#include "pkg/machine/read-kfd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/str.h"
#include "pkg/machine/host-internal.h"
#include "pkg/machine/kfd.h"
#include "pkg/machine/tar.h"

enum {
    SEARCH_DEPTH_MAX = 10,
    SEARCH_FOLDERS_MAX = 4096, /* a recording of topologies has few folders above them */
    FOUND_MAX = 64,
    CHOICES_MAX = 160, /* bytes of the choices in a message */
};

/* Where a topology is usually found; what stands before it is the root of the machine's files. */
static const char *const usual[] = {WEFT_KFD_ROOT, "/sys/devices/virtual/kfd/kfd/topology"};

struct search {
    const struct weft_host *host;
    char *found[FOUND_MAX]; /* "/mi300x/topology": owned */
    size_t count, folders;
    bool gave_up;
};

static void search_done(struct search *s)
{
    for (size_t i = 0; i < s->count; i++) {
        weft_free(s->found[i]);
    }
    s->count = 0;
}
WEFT_DEFINE_AUTO_VALUE(struct search, search_done)

/* Has path a folder "nodes" with a node's properties in it? */
static int is_topology(const struct search *s, const char *path, bool *ret_is)
{
    char below[WEFT_HOST_PATH_MAX];
    weft_auto(weft_host_names_done) struct weft_host_names names = {0};
    *ret_is = false;
    const int n = snprintf(below, sizeof(below), "%s/nodes", path);
    if (n < 0 || (size_t)n >= sizeof(below) - 64) {
        return 0;
    }
    const int rc = weft_host_list(s->host, below, &names);
    for (size_t i = 0; rc == 0 && i < names.count && !*ret_is; i++) {
        uint64_t number = 0;
        if (weft_parse_u64(weft_str(names.names[i]), WEFT_KFD_NODES_MAX, &number) == 0) {
            (void)snprintf(below + n, sizeof(below) - (size_t)n, "/%s/properties", names.names[i]);
            *ret_is = weft_host_exists(s->host, below);
        }
    }
    return rc == -ENOMEM ? rc : 0;
}

static int add_found(struct search *s, const char *path)
{
    if (s->count == FOUND_MAX) {
        s->gave_up = true;
        return 0;
    }
    s->found[s->count] = weft_strdup(path);
    if (s->found[s->count] == NULL) {
        return -ENOMEM;
    }
    s->count++;
    return 0;
}

/* Links are not followed: they would find things twice. */
static bool is_link(const struct weft_host *host, const char *path)
{
    char real[WEFT_HOST_PATH_MAX];
    return weft_host_resolve(host, path, real) < 0 || strcmp(real, path) != 0;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most SEARCH_DEPTH_MAX deep */
static int search_below(struct search *s, const char *path, int depth)
{
    bool found = false;
    int rc = is_topology(s, path, &found);
    if (rc < 0 || found) {
        return rc < 0 ? rc : add_found(s, path);
    }
    if (depth == SEARCH_DEPTH_MAX) {
        return 0;
    }
    weft_auto(weft_host_names_done) struct weft_host_names names = {0};
    rc = weft_host_list(s->host, path[0] == '\0' ? "/" : path, &names);
    if (rc < 0) {
        return rc == -ENOMEM ? rc : 0; /* a file */
    }
    s->gave_up = s->folders++ == SEARCH_FOLDERS_MAX;
    for (size_t i = 0; rc == 0 && i < names.count && !s->gave_up; i++) {
        char below[WEFT_HOST_PATH_MAX];
        const int n = snprintf(below, sizeof(below), "%s/%s", path, names.names[i]);
        if (n > 0 && (size_t)n < sizeof(below) && !is_link(s->host, below)) {
            rc = search_below(s, below, depth + 1);
        }
    }
    return rc;
}

/* A tree in memory names all its files: those called ".../nodes/<number>/properties" tell. */
static int search_entries(struct search *s)
{
    static const char end[] = "/properties";
    for (size_t i = 0; i < s->host->entry_count; i++) {
        char path[WEFT_HOST_PATH_MAX + 1];
        const int n = snprintf(path, sizeof(path), "/%s", s->host->entries[i].path);
        if (n < (int)sizeof(end) || strcmp(path + n - (sizeof(end) - 1), end) != 0) {
            continue;
        }
        path[n - (int)(sizeof(end) - 1)] = '\0';
        char *number = strrchr(path, '/');
        uint64_t value = 0;
        if (number == NULL || number - path < 6 || memcmp(number - 6, "/nodes", 6) != 0 ||
            weft_parse_u64(weft_str(number + 1), WEFT_KFD_NODES_MAX, &value) < 0) {
            continue;
        }
        number[-6] = '\0';
        /* the entries are sorted: those of one topology stand together */
        const bool again = s->count > 0 && strcmp(s->found[s->count - 1], path) == 0;
        const int rc = again ? 0 : add_found(s, path);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* Looks in the usual places, and only if it is in none of them through all folders. */
static int search(struct search *s)
{
    for (size_t i = 0; i < WEFT_ARRAY_LEN(usual); i++) {
        bool found = false;
        const int rc = is_topology(s, usual[i], &found);
        if (rc < 0 || found) {
            return rc < 0 ? rc : add_found(s, usual[i]);
        }
    }
    return s->host->entries != NULL ? search_entries(s) : search_below(s, "", 0);
}

/* Is found[i] what pick names? Without leading and trailing slashes, whole or a leading part. */
static bool matches(const char *found, struct weft_str pick)
{
    const char *path = found[0] == '/' ? found + 1 : found;
    const size_t len = strlen(path);
    return pick.len <= len && memcmp(path, pick.data, pick.len) == 0 &&
           (pick.len == len || pick.len == 0 || path[pick.len] == '/');
}

static struct weft_str trim_slashes(const char *text)
{
    struct weft_str s = weft_str(text == NULL ? "" : text);
    while (s.len > 0 && s.data[0] == '/') {
        s.data++;
        s.len--;
    }
    while (s.len > 0 && s.data[s.len - 1] == '/') {
        s.len--;
    }
    return s;
}

static int refuse_choice(const struct search *s, struct weft_str pick, const char *name,
                         struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf choices;
    weft_buf_init(&choices, CHOICES_MAX);
    for (size_t i = 0; i < s->count; i++) {
        (void)weft_buf_printf(&choices, "%s%s", i > 0 ? ", " : "", s->found[i] + 1);
    }
    const char *more = choices.status < 0 ? ", …" : "";
    if (pick.len == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%.60s: %zu KFD topologies are in it, choose one as FILE#FOLDER: %s%s",
                            name, s->count, weft_buf_text(&choices), more);
    }
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                        "%.60s: \"%.*s\" names none or several of its KFD topologies: %s%s", name,
                        (int)(pick.len < 40 ? pick.len : 40), pick.data, weft_buf_text(&choices),
                        more);
}

/* The one topology that is meant, borrowed from s. */
static int choose(const struct search *s, const char *pick_text, const char *name,
                  const char **ret_path, struct weft_error *err)
{
    const struct weft_str pick = trim_slashes(pick_text);
    size_t hits = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (matches(s->found[i], pick)) {
            *ret_path = s->found[i];
            hits++;
        }
    }
    if (hits == 1) {
        return 0;
    }
    if (s->count > 0) {
        return refuse_choice(s, pick, name, err);
    }
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                        "%.100s: no KFD topology is in it (no folder nodes with a numbered folder "
                        "that has properties)%s",
                        name, s->gave_up ? ", as far as was looked" : "");
}

/* "/host1" of "/host1/sys/class/kfd/kfd/topology": its length, 0 where it is the root itself or
 * the topology stands alone. */
static size_t prefix_of(const char *path)
{
    const size_t len = strlen(path);
    for (size_t i = 0; i < WEFT_ARRAY_LEN(usual); i++) {
        const size_t part = strlen(usual[i]);
        if (len > part && strcmp(path + len - part, usual[i]) == 0) {
            return len - part;
        }
    }
    return 0;
}

static int machine_of(const struct weft_host *host, const char *root, const char *name, bool cut,
                      struct weft_machine **ret_machine, struct weft_error *err)
{
    weft_auto(weft_kfd_done) struct weft_kfd kfd = {0};
    const int rc = weft_kfd_read(host, root, name, cut, &kfd, err);
    return rc < 0 ? rc : weft_kfd_machine(host, &kfd, name, ret_machine, err);
}

/* ---- archives ---- */

struct unpack {
    struct weft_host *host;
    struct weft_str prefix; /* only what is below it, without it; "" all */
};

/* "./a/b", "/a/b" and "a/b" are one path; ".." and the like are left out. */
static int add_entry(void *context, const struct weft_tar_entry *entry)
{
    const struct unpack *u = context;
    const char *path = entry->path;
    while (path[0] == '/' || (path[0] == '.' && path[1] == '/')) {
        path++;
    }
    char full[WEFT_TAR_NAME_MAX + 1];
    (void)snprintf(full, sizeof(full), "/%s", path);
    if (strncmp(full, u->prefix.data, u->prefix.len) != 0 || full[u->prefix.len] != '/') {
        return 0;
    }
    int rc = 0;
    if (entry->target != NULL) {
        rc = weft_host_add_link(u->host, full + u->prefix.len, entry->target);
    } else if (entry->bytes != NULL) {
        /* sysfs says 4096 for every file; tar fills up with NULs what could not be read */
        const size_t len = strnlen(entry->bytes, entry->len);
        rc = weft_host_add_file(u->host, full + u->prefix.len, entry->bytes, len);
    }
    return rc == -EINVAL ? 0 : rc;
}

/* 0; 1 if the archive is cut. */
static int unpack(const char *bytes, size_t len, const char *name, struct weft_str prefix,
                  struct weft_host **ret_host, struct weft_error *err)
{
    weft_auto(weft_host_free) struct weft_host *host = NULL;
    if (weft_host_new_recorded(&host) < 0) {
        return weft_err_nomem(err);
    }
    struct unpack u = {.host = host, .prefix = prefix};
    const int rc = weft_tar_read(bytes, len, name, add_entry, &u, err);
    if (rc == -ENOMEM) {
        return weft_err_nomem(err);
    }
    if (rc == -EFBIG) {
        return weft_err_set(err, rc, WEFT_ERR_CONFIG, "%.100s: more than %d files", name,
                            (int)WEFT_HOST_ENTRIES_MAX);
    }
    if (rc >= 0) {
        weft_host_seal(host);
        *ret_host = weft_steal(&host);
    }
    return rc;
}

static int read_tar(const char *bytes, size_t len, const char *name, const char *pick,
                    struct weft_machine **ret_machine, struct weft_error *err)
{
    weft_auto(weft_host_free) struct weft_host *host = NULL;
    weft_auto(search_done) struct search s = {0};
    const int cut = unpack(bytes, len, name, weft_str(""), &host, err);
    if (cut < 0) {
        return cut;
    }
    s.host = host;
    if (search(&s) < 0) {
        return weft_err_nomem(err);
    }
    const char *root = "";
    int rc = choose(&s, pick, name, &root, err);
    if (rc < 0) {
        return rc;
    }
    const size_t prefix = prefix_of(root);
    if (prefix > 0) {
        struct weft_host *below = NULL;
        rc = unpack(bytes, len, name, (struct weft_str){root, prefix}, &below, err);
        if (rc < 0) {
            return rc;
        }
        weft_host_free(host);
        host = below;
    }
    rc = machine_of(host, root + prefix, name, cut > 0, ret_machine, err);
    if (rc == 0 && cut > 0) {
        (*ret_machine)->partial = true;
        rc = weft_machine_warn(*ret_machine, "the archive ends too early: nodes may be missing");
        if (rc < 0) {
            weft_machine_free(*ret_machine);
            *ret_machine = NULL;
            return weft_err_nomem(err);
        }
    }
    return rc;
}

bool weft_kfd_is_archive(const char *bytes, size_t len)
{
    return weft_gzip_is(bytes, len) || weft_tar_is(bytes, len);
}

int weft_kfd_read_archive(const char *bytes, size_t len, const char *name, const char *pick,
                          struct weft_machine **ret_machine, struct weft_error *err)
{
    if (!weft_gzip_is(bytes, len)) {
        return read_tar(bytes, len, name, pick, ret_machine, err);
    }
    weft_autofree char *unpacked = NULL;
    size_t unpacked_len = 0;
    const int rc = weft_gunzip(bytes, len, WEFT_MACHINE_FILE_MAX, &unpacked, &unpacked_len, err);
    if (rc < 0) {
        return weft_err_wrap(err, rc, "%.100s", name);
    }
    if (!weft_tar_is(unpacked, unpacked_len)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%.100s: gzip data that is no tar archive; unpack it first", name);
    }
    return read_tar(unpacked, unpacked_len, name, pick, ret_machine, err);
}

/* ---- folders ---- */

int weft_kfd_read_folder(const char *path, const char *pick, struct weft_machine **ret_machine,
                         struct weft_error *err)
{
    weft_auto(weft_host_free) struct weft_host *host = NULL;
    weft_auto(search_done) struct search s = {0};
    int rc = weft_host_open(path, &host, err);
    if (rc < 0) {
        return rc;
    }
    s.host = host;
    if (search(&s) < 0) {
        return weft_err_nomem(err);
    }
    const char *root = "";
    rc = choose(&s, pick, path, &root, err);
    if (rc < 0) {
        return rc;
    }
    const size_t prefix = prefix_of(root);
    if (prefix > 0) {
        char below[2 * WEFT_HOST_PATH_MAX];
        struct weft_host *whole = NULL;
        (void)snprintf(below, sizeof(below), "%s%.*s", path, (int)prefix, root);
        rc = weft_host_open(below, &whole, err);
        if (rc < 0) {
            return rc;
        }
        weft_host_free(host);
        host = whole;
    }
    return machine_of(host, root + prefix, path, false, ret_machine, err);
}
