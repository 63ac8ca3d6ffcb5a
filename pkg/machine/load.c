/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a recorded machine from a file, or from a folder or an archive that holds several. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "pkg/base/file.h"
#include "pkg/machine/machine-internal.h"
#include "pkg/machine/read-kfd.h"

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int load(const char *path, const char *pick, struct weft_machine **ret_machine,
                struct weft_error *err)
{
    if (is_folder(path)) {
        return weft_kfd_read_folder(path, pick, ret_machine, err);
    }
    weft_autofree char *text = NULL;
    size_t len = 0;
    const int rc = weft_file_read(path, WEFT_MACHINE_FILE_MAX, &text, &len, err);
    if (rc < 0) {
        return rc;
    }
    if (weft_kfd_is_archive(text, len)) {
        return weft_kfd_read_archive(text, len, path, pick, ret_machine, err);
    }
    return pick == NULL ? weft_machine_read(text, len, path, ret_machine, err)
                        : weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                       "%.100s: only an archive or a folder has parts, as #%.60s",
                                       path, pick);
}

int weft_machine_load(const char *path, struct weft_machine **ret_machine, struct weft_error *err)
{
    struct stat st;
    const char *hash = strrchr(path, '#');
    if (hash == NULL || strcmp(path, "-") == 0 || stat(path, &st) == 0) {
        return load(path, NULL, ret_machine, err);
    }
    weft_autofree char *file = weft_strndup(path, (size_t)(hash - path));
    return file == NULL ? weft_err_nomem(err) : load(file, hash + 1, ret_machine, err);
}
