/* SPDX-License-Identifier: Apache-2.0 */
/* Which recorded format a text is, by its content alone, and loading one from a file. */
#include <errno.h>

#include "pkg/base/file.h"
#include "pkg/base/str.h"
#include "pkg/machine/machine-internal.h"

int weft_machine_read(const char *text, size_t len, const char *name,
                      struct weft_machine **ret_machine, struct weft_error *err)
{
    static const char bom[] = "\xef\xbb\xbf";
    struct weft_str rest = {text, len};
    if (weft_str_starts(rest, bom)) {
        rest.data += sizeof(bom) - 1;
        rest.len -= sizeof(bom) - 1;
    }
    const struct weft_str content = weft_str_trim(rest);
    if (content.len == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s: the file is empty", name);
    }
    if (content.data[0] == '{') {
        return weft_machine_read_json(rest.data, rest.len, name, ret_machine, err);
    }
    return weft_machine_read_smi_topo(rest.data, rest.len, name, ret_machine, err);
}

int weft_machine_load(const char *path, struct weft_machine **ret_machine, struct weft_error *err)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    const int rc = weft_file_read(path, WEFT_MACHINE_FILE_MAX, &text, &len, err);
    return rc < 0 ? rc : weft_machine_read(text, len, path, ret_machine, err);
}
