/* SPDX-License-Identifier: Apache-2.0 */
/* The whole state as a folder, and a folder read back. */
#include "pkg/apply/folder.h"

#include <errno.h>
#include <string.h>

#include "pkg/apply/folder-internal.h"
#include "pkg/base/file.h"
#include "pkg/base/str.h"
#include "pkg/hypernode/manifest.h"

static const char state_header[] = WEFT_FOLDER_MANIFEST_MARK
    " of all HyperNodes, for a first install:\n"
    "#   kubectl apply -f " WEFT_FOLDER_STATE_FILE "\n"
    "# Children stand before their parents. To change HyperNodes that exist already, do not apply\n"
    "# this file: a child that changes parents would have two for a moment, and Volcano's "
    "scheduler\n"
    "# would stop. Take the numbered steps that weft writes with --against OLD_FOLDER.\n";
static const char object_header[] =
    WEFT_FOLDER_MANIFEST_MARK " of one HyperNode. A new run of weft replaces this file.\n";

static bool is_yaml(const char *name)
{
    return weft_str_ends(weft_str(name), ".yaml") || weft_str_ends(weft_str(name), ".yml") ||
           weft_str_ends(weft_str(name), ".json");
}

/* A name that could leave the folder or clash with our other files never gets this far from the API
 * server, but it may from a file. */
static int check_name(const char *name, struct weft_error *err)
{
    if (!weft_dns_subdomain_valid(name)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "HyperNode name \"%.63s\" is not valid",
                            name);
    }
    return strcmp(name, "apply") != 0
               ? 0
               : weft_err_set(
                     err, -EINVAL, WEFT_ERR_CONFIG,
                     "a HyperNode named apply would take the place of " WEFT_FOLDER_STATE_FILE);
}

static int check_all_free(const char *dir, const struct weft_hypernode_set *set,
                          struct weft_error *err)
{
    int rc = weft_folder_check_free(dir, WEFT_FOLDER_STATE_FILE, WEFT_FOLDER_MANIFEST_MARK, err);
    for (size_t i = 0; i < set->count && rc == 0; i++) {
        const char *name = set->items[i].name;
        rc = check_name(name, err);
        weft_autofree char *file = weft_asprintf("%s.yaml", name);
        if (rc == 0 && file == NULL) {
            return weft_err_nomem(err);
        }
        rc = rc == 0 ? weft_folder_check_free(dir, file, WEFT_FOLDER_MANIFEST_MARK, err) : rc;
    }
    return rc;
}

static int put_object(struct weft_folder_out *out, const struct weft_hypernode *hn,
                      const char *prefix, struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf buf = {0};
    weft_buf_init(&buf, WEFT_FOLDER_FILE_MAX);
    (void)weft_buf_puts(&buf, object_header);
    const int rc = weft_hypernode_write_yaml(hn, prefix, &buf);
    weft_autofree char *file = weft_asprintf("%s.yaml", hn->name);
    if (rc < 0 || file == NULL) {
        return weft_err_nomem(err);
    }
    return weft_folder_put(out, file, &buf, 0644, err);
}

static int put_state(struct weft_folder_out *out, const struct weft_hypernode_set *set,
                     const char *prefix, struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf buf = {0};
    weft_buf_init(&buf, WEFT_FOLDER_FILE_MAX);
    (void)weft_buf_puts(&buf, state_header);
    if (weft_hypernodes_write_yaml(set, prefix, &buf) == -ENOMEM) {
        return weft_err_nomem(err);
    }
    return weft_folder_put(out, WEFT_FOLDER_STATE_FILE, &buf, 0644, err);
}

static bool is_wanted(const char *name, const void *data)
{
    const struct weft_hypernode_set *set = data;
    if (strcmp(name, WEFT_FOLDER_STATE_FILE) == 0) {
        return true;
    }
    struct weft_str stem = weft_str(name);
    if (!weft_str_ends(stem, ".yaml")) {
        return true;
    }
    weft_autofree char *text = weft_strndup(stem.data, stem.len - strlen(".yaml"));
    return text == NULL || weft_hypernode_set_find(set, text, NULL);
}

int weft_folder_write(const char *dir, const struct weft_hypernode_set *set, const char *prefix,
                      struct weft_folder_counts *ret_counts, struct weft_error *err)
{
    struct weft_folder_out out = {.dir = dir};
    int rc = weft_folder_make(dir, err);
    rc = rc == 0 ? check_all_free(dir, set, err) : rc;
    /* steps that led to an older state lead nowhere now */
    rc = rc == 0 ? weft_folder_sweep(&out, WEFT_FOLDER_STEP_MARK, NULL, NULL, err) : rc;
    rc = rc == 0 ? weft_folder_sweep(&out, WEFT_FOLDER_SCRIPT_MARK, NULL, NULL, err) : rc;
    for (size_t i = 0; i < set->count && rc == 0; i++) {
        rc = put_object(&out, &set->items[i], prefix, err);
    }
    rc = rc == 0 ? put_state(&out, set, prefix, err) : rc;
    rc = rc == 0 ? weft_folder_sweep(&out, WEFT_FOLDER_MANIFEST_MARK, is_wanted, set, err) : rc;
    if (ret_counts != NULL) {
        *ret_counts = out.counts;
    }
    return rc;
}

static int read_file(const char *dir, const char *name, const char *prefix,
                     struct weft_hypernode_set *set, struct weft_error *err)
{
    weft_autofree char *path = weft_asprintf("%s/%s", dir, name);
    weft_autofree char *text = NULL;
    if (path == NULL) {
        return weft_err_nomem(err);
    }
    size_t len = 0;
    const int rc = weft_file_read(path, WEFT_FOLDER_FILE_MAX, &text, &len, err);
    if (rc < 0) {
        return rc;
    }
    const struct weft_manifest_text source = {
        .text = text, .len = len, .name = path, .prefix = prefix};
    return weft_hypernodes_read(&source, set, NULL, err);
}

int weft_folder_read(const char *dir, const char *prefix, struct weft_hypernode_set *ret_set,
                     struct weft_error *err)
{
    weft_auto(weft_folder_list_done) struct weft_folder_list list = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    int rc = weft_folder_list(dir, &list, err);
    for (size_t i = 0; i < list.count && rc >= 0; i++) {
        const char *name = list.names[i].text;
        if (!is_yaml(name) || strcmp(name, WEFT_FOLDER_STATE_FILE) == 0) {
            continue;
        }
        rc = weft_folder_has_mark(dir, name, WEFT_FOLDER_STEP_MARK, err);
        rc = rc == 0 ? read_file(dir, name, prefix, &set, err) : rc;
    }
    if (rc < 0) {
        return rc;
    }
    *ret_set = set;
    set = (struct weft_hypernode_set){0};
    return 0;
}
