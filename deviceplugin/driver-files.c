/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for the driver's files where distributions and driver containers put them. What is taken is
 * what NVIDIA's container toolkit takes: its user guide, "CDI", and the driver's README, chapter
 * "Installed components". */
#include "deviceplugin/driver-files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/machine/host.h"

enum { PATH_TEXT_MAX = 1024 };

struct finding {
    const struct weft_host *host;
    const char *root, *version;
    struct weft_driver_files *files;
};

void weft_driver_files_done(struct weft_driver_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        weft_free(files->items[i].host);
        weft_free(files->items[i].container);
    }
    for (size_t i = 0; i < files->folder_count; i++) {
        weft_free(files->folders[i]);
    }
    weft_free(files->items);
    *files = (struct weft_driver_files){0};
}

/* real is the file's path inside the root, after links. 0, -ENOMEM, -EFBIG. */
static int add(const struct finding *f, const char *real, const char *container, bool socket)
{
    struct weft_driver_files *files = f->files;
    const int rc = weft_array_reserve((void **)&files->items, &files->cap, files->count + 1,
                                      sizeof(*files->items), WEFT_DRIVER_FILES_MAX);
    if (rc < 0) {
        return rc;
    }
    struct weft_driver_file *file = &files->items[files->count];
    *file = (struct weft_driver_file){.host = weft_asprintf("%s%s", f->root, real),
                                      .container = weft_strdup(container),
                                      .socket = socket};
    files->count++;
    return file->host != NULL && file->container != NULL ? 0 : -ENOMEM;
}

/* ---- libraries ---- */

/* Libraries of the driver by their names, so that only a few of a big folder are looked at. */
static bool may_be_of_driver(const char *name)
{
    static const char *const starts[] = {"libcuda",   "libnv",    "libGLX_nv",
                                         "libEGL_nv", "libGLESv", "libvdpau_nv"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(starts); i++) {
        if (strncmp(name, starts[i], strlen(starts[i])) == 0) {
            return strstr(name, ".so") != NULL;
        }
    }
    return false;
}

/* "libcuda.so.550.54.15", and what leads there. */
static bool is_of_version(const char *real, const char *version)
{
    char end[PATH_TEXT_MAX];
    (void)snprintf(end, sizeof(end), ".so.%s", version);
    return weft_str_ends(weft_str(real), end);
}

static int add_library(const struct finding *f, const char *folder, const char *name)
{
    char path[PATH_TEXT_MAX], real[WEFT_HOST_PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (!may_be_of_driver(name) || weft_host_resolve(f->host, path, real) < 0 ||
        !is_of_version(real, f->version)) {
        return 0;
    }
    return add(f, real, path, false);
}

static int add_folder(const struct finding *f, const char *folder)
{
    weft_auto(weft_host_names_done) struct weft_host_names names = {0};
    int rc = weft_host_list(f->host, folder, &names);
    if (rc < 0) {
        return rc == -ENOENT ? 0 : rc;
    }
    const size_t before = f->files->count;
    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        rc = add_library(f, folder, names.names[i]);
    }
    if (rc < 0 || f->files->count == before) {
        return rc;
    }
    char *copy = weft_strdup(folder);
    if (copy == NULL) {
        return -ENOMEM;
    }
    f->files->folders[f->files->folder_count++] = copy;
    return 0;
}

/* The folder with libcuda of that version; NULL if there is none. */
static const char *library_folder(const struct finding *f)
{
    static const char *const folders[] = {
        "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
        "/lib64",     "/lib/x86_64-linux-gnu",     "/lib/aarch64-linux-gnu",
        "/usr/lib"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(folders); i++) {
        char path[PATH_TEXT_MAX], real[WEFT_HOST_PATH_MAX];
        (void)snprintf(path, sizeof(path), "%s/libcuda.so.1", folders[i]);
        if (weft_host_resolve(f->host, path, real) == 0 && is_of_version(real, f->version)) {
            return folders[i];
        }
    }
    return NULL;
}

static int add_libraries(const struct finding *f, const char *folder)
{
    char vdpau[PATH_TEXT_MAX];
    (void)snprintf(vdpau, sizeof(vdpau), "%s/vdpau", folder);
    const int rc = add_folder(f, folder);
    return rc < 0 ? rc : add_folder(f, vdpau);
}

/* ---- the rest ---- */

/* The first place where there is one of that name; none is none. */
static int add_first(const struct finding *f, const char *const *folders, const char *name,
                     bool socket)
{
    for (size_t i = 0; folders[i] != NULL; i++) {
        char path[PATH_TEXT_MAX], real[WEFT_HOST_PATH_MAX];
        (void)snprintf(path, sizeof(path), "%s/%s", folders[i], name);
        if (weft_host_resolve(f->host, path, real) == 0) {
            return add(f, real, path, socket);
        }
    }
    return 0;
}

static int add_programs(const struct finding *f)
{
    static const char *const places[] = {"/usr/bin", "/usr/sbin", "/bin", "/sbin", NULL};
    static const char *const names[] = {
        "nvidia-smi",  "nvidia-debugdump", "nvidia-persistenced",   "nvidia-cuda-mps-control",
        "nvidia-imex", "nvidia-imex-ctl",  "nvidia-cuda-mps-server"};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < WEFT_ARRAY_LEN(names); i++) {
        rc = add_first(f, places, names[i], false);
    }
    return rc;
}

static int add_sockets(const struct finding *f)
{
    static const char *const run[] = {"/run", "/var/run", NULL};
    static const char *const temporary[] = {"/tmp", NULL};
    int rc = add_first(f, run, "nvidia-persistenced/socket", true);
    rc = rc < 0 ? rc : add_first(f, run, "nvidia-fabricmanager/socket", true);
    return rc < 0 ? rc : add_first(f, temporary, "nvidia-mps", true);
}

static int add_firmware(const struct finding *f)
{
    char folder[128];
    (void)snprintf(folder, sizeof(folder), "/lib/firmware/nvidia/%s", f->version);
    weft_auto(weft_host_names_done) struct weft_host_names names = {0};
    int rc = weft_host_list(f->host, folder, &names);
    if (rc < 0) {
        return rc == -ENOMEM ? rc : 0;
    }
    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        char path[PATH_TEXT_MAX], real[WEFT_HOST_PATH_MAX];
        (void)snprintf(path, sizeof(path), "%s/%s", folder, names.names[i]);
        if (strncmp(names.names[i], "gsp", 3) == 0 && weft_host_resolve(f->host, path, real) == 0) {
            rc = add(f, real, path, false);
        }
    }
    return rc;
}

int weft_driver_files_find(const char *view, const char *root, const char *version,
                           struct weft_driver_files *ret_files, struct weft_error *err)
{
    weft_auto(weft_host_free) struct weft_host *host = NULL;
    weft_auto(weft_driver_files_done) struct weft_driver_files files = {0};
    int rc = weft_host_open(view, &host, err);
    if (rc < 0) {
        return rc;
    }
    const struct finding f = {.host = host, .root = root, .version = version, .files = &files};
    const char *folder = version[0] != '\0' ? library_folder(&f) : NULL;
    if (folder == NULL) {
        return weft_err_set(err, -ENOENT, WEFT_ERR_CONFIG,
                            "no libcuda.so.1 of driver \"%s\" in the library folders below %s",
                            version, view);
    }
    rc = add_libraries(&f, folder);
    rc = rc < 0 ? rc : add_programs(&f);
    rc = rc < 0 ? rc : add_sockets(&f);
    rc = rc < 0 ? rc : add_firmware(&f);
    if (rc < 0) {
        return weft_err_errno(err, -rc, "the driver's files below %s", view);
    }
    *ret_files = files;
    files = (struct weft_driver_files){0};
    return 0;
}
