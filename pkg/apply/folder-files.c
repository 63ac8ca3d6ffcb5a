/* SPDX-License-Identifier: Apache-2.0 */
/* The file side of a folder of manifests: listing, marks, atomic replacement, sweeping. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/apply/folder-internal.h"
#include "pkg/base/file.h"
#include "pkg/base/str.h"

void weft_folder_list_done(struct weft_folder_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        weft_free(list->names[i].text);
    }
    weft_free(list->names);
    *list = (struct weft_folder_list){0};
}

static int add_name(struct weft_folder_list *list, const char *name)
{
    void *names = list->names;
    const int rc = weft_array_reserve(&names, &list->cap, list->count + 1, sizeof(list->names[0]),
                                      WEFT_FOLDER_FILES_MAX);
    list->names = names;
    char *copy = rc == 0 ? weft_strdup(name) : NULL;
    if (copy == NULL) {
        return rc < 0 ? rc : -ENOMEM;
    }
    list->names[list->count++].text = copy;
    return 0;
}

static int cmp_name(const void *a, const void *b)
{
    const struct weft_folder_name *x = a;
    const struct weft_folder_name *y = b;
    return strcmp(x->text, y->text);
}

static void dir_close(DIR **dir)
{
    if (*dir != NULL) {
        (void)closedir(*dir);
    }
}

int weft_folder_list(const char *dir, struct weft_folder_list *ret_list, struct weft_error *err)
{
    __attribute__((cleanup(dir_close))) DIR *stream = opendir(dir);
    if (stream == NULL) {
        return weft_err_errno(err, errno, "folder %s", dir);
    }
    weft_auto(weft_folder_list_done) struct weft_folder_list list = {0};
    errno = 0;
    for (struct dirent *e = readdir(stream); e != NULL; e = readdir(stream)) {
        struct stat st;
        if (fstatat(dirfd(stream), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode)) {
            const int rc = add_name(&list, e->d_name);
            if (rc < 0) {
                return rc == -EFBIG ? weft_err_set(err, rc, WEFT_ERR_CONFIG,
                                                   "folder %s has more than %d files", dir,
                                                   WEFT_FOLDER_FILES_MAX)
                                    : weft_err_nomem(err);
            }
        }
        errno = 0;
    }
    if (errno != 0) {
        return weft_err_errno(err, errno, "folder %s", dir);
    }
    if (list.count > 1) {
        qsort(list.names, list.count, sizeof(list.names[0]), cmp_name);
    }
    *ret_list = list;
    list = (struct weft_folder_list){0};
    return 0;
}

int weft_folder_make(const char *dir, struct weft_error *err)
{
    if (mkdir(dir, 0755) < 0 && errno != EEXIST) {
        return weft_err_errno(err, errno, "folder %s", dir);
    }
    struct stat st;
    if (stat(dir, &st) < 0) {
        return weft_err_errno(err, errno, "folder %s", dir);
    }
    return S_ISDIR(st.st_mode) ? 0 : weft_err_errno(err, ENOTDIR, "folder %s", dir);
}

static char *join(const char *dir, const char *name)
{
    return weft_asprintf("%s/%s", dir, name);
}

int weft_folder_has_mark(const char *dir, const char *name, const char *mark,
                         struct weft_error *err)
{
    weft_autofree char *path = join(dir, name);
    if (path == NULL) {
        return weft_err_nomem(err);
    }
    weft_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return errno == ENOENT ? 0 : weft_err_errno(err, errno, "open %s", path);
    }
    char head[64];
    const ssize_t n = read(fd, head, sizeof(head));
    if (n < 0) {
        return weft_err_errno(err, errno, "read %s", path);
    }
    const size_t len = strlen(mark);
    return (size_t)n >= len && memcmp(head, mark, len) == 0;
}

int weft_folder_check_free(const char *dir, const char *name, const char *mark,
                           struct weft_error *err)
{
    weft_autofree char *path = join(dir, name);
    if (path == NULL) {
        return weft_err_nomem(err);
    }
    struct stat st;
    if (lstat(path, &st) < 0) {
        return errno == ENOENT ? 0 : weft_err_errno(err, errno, "%s", path);
    }
    const int rc = S_ISREG(st.st_mode) ? weft_folder_has_mark(dir, name, mark, err) : 0;
    if (rc != 0) {
        return rc < 0 ? rc : 0;
    }
    return weft_err_set(err, -EEXIST, WEFT_ERR_CONFIG, "%s is in the way: weft did not write it",
                        path);
}

static bool has_content(const char *path, const struct weft_buf *content)
{
    weft_autofree char *old = NULL;
    size_t len = 0;
    return weft_file_read(path, content->len, &old, &len, NULL) == 0 && len == content->len &&
           memcmp(old, weft_buf_text(content), len) == 0;
}

int weft_folder_put(struct weft_folder_out *out, const char *name, const struct weft_buf *content,
                    unsigned mode, struct weft_error *err)
{
    if (content->status < 0) {
        return content->status == -EFBIG ? weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG,
                                                        "%s/%s would be larger than %d bytes",
                                                        out->dir, name, WEFT_FOLDER_FILE_MAX)
                                         : weft_err_nomem(err);
    }
    weft_autofree char *path = join(out->dir, name);
    if (path == NULL) {
        return weft_err_nomem(err);
    }
    if (has_content(path, content)) {
        out->counts.unchanged++;
        return 0;
    }
    out->counts.written++;
    return weft_file_replace(path, weft_buf_text(content), content->len, mode, err);
}

int weft_folder_sweep(struct weft_folder_out *out, const char *mark,
                      bool (*keep)(const char *name, const void *data), const void *data,
                      struct weft_error *err)
{
    weft_auto(weft_folder_list_done) struct weft_folder_list list = {0};
    int rc = weft_folder_list(out->dir, &list, err);
    for (size_t i = 0; i < list.count && rc >= 0; i++) {
        const char *name = list.names[i].text;
        rc = weft_folder_has_mark(out->dir, name, mark, err);
        if (rc != 1 || (keep != NULL && keep(name, data))) {
            continue;
        }
        weft_autofree char *path = join(out->dir, name);
        if (path == NULL) {
            return weft_err_nomem(err);
        }
        if (unlink(path) < 0 && errno != ENOENT) {
            return weft_err_errno(err, errno, "remove %s", path);
        }
        out->counts.removed++;
    }
    return rc < 0 ? rc : 0;
}
