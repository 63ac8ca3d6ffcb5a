/* SPDX-License-Identifier: Apache-2.0 */
/* Settings for a file that is at hand, as if a configuration named it. */
#include <string.h>
#include <sys/stat.h>

#include "pkg/base/str.h"
#include "pkg/source/config-internal.h"
#include "pkg/source/source.h"

static int copy_names(const struct weft_names *from, struct weft_names *to, struct weft_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < from->count; i++) {
        rc = weft_names_add(to, from->items[i], err);
    }
    return rc;
}

static int copy_text(const char *from, char **to, struct weft_error *err)
{
    if (from == NULL) {
        return 0;
    }
    *to = weft_strdup(from);
    return *to != NULL ? 0 : weft_err_nomem(err);
}

static int copy_levels(const struct weft_label_levels *from, struct weft_label_levels *to,
                       struct weft_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < from->count; i++) {
        rc = weft_label_levels_add(to, from->items[i].key, from->items[i].tier, err);
        if (rc == 0) {
            to->items[i].missing = from->items[i].missing;
        }
    }
    to->align = from->align;
    return rc;
}

/* All but where it reads. */
static int copy_settings(const struct weft_config_source *from, struct weft_config_source *to,
                         struct weft_error *err)
{
    int rc = copy_levels(&from->levels, &to->levels, err);
    rc = rc < 0 ? rc : copy_names(&from->tiers, &to->tiers, err);
    rc = rc < 0 ? rc : copy_names(&from->exclude_hcas, &to->exclude_hcas, err);
    rc = rc < 0 ? rc : copy_names(&from->exclude_switches, &to->exclude_switches, err);
    to->keep_slow_hcas = from->keep_slow_hcas;
    rc = rc < 0 ? rc : copy_text(from->topology, &to->topology, err);
    rc = rc < 0 ? rc : copy_text(from->node_map, &to->node_map, err);
    rc = rc < 0 ? rc : copy_text(from->partitions, &to->partitions, err);
    rc = rc < 0 ? rc : copy_names(&from->compute, &to->compute, err);
    return rc < 0 ? rc : copy_text(from->inventory, &to->inventory, err);
}

static bool takes_several(enum weft_source_kind kind)
{
    return kind == WEFT_SOURCE_INFINIBAND || kind == WEFT_SOURCE_UFM || kind == WEFT_SOURCE_LLDP ||
           kind == WEFT_SOURCE_OCI_IMDS;
}

static int set_files(const char *path, struct weft_config_source *to, struct weft_error *err)
{
    struct stat st;
    const bool folders = to->kind == WEFT_SOURCE_LLDP || to->kind == WEFT_SOURCE_OCI_IMDS;
    if (folders && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        return copy_text(path, &to->folder, err);
    }
    struct weft_str rest = weft_str(path);
    struct weft_str piece = rest;
    int rc = 0;
    while (rc == 0 &&
           (takes_several(to->kind) ? weft_str_split(&rest, ',', &piece) : to->files.count == 0)) {
        weft_autofree char *file = weft_strndup(piece.data, piece.len);
        rc = file != NULL ? weft_names_add(&to->files, file, err) : weft_err_nomem(err);
    }
    return rc;
}

int weft_source_for_file(enum weft_source_kind kind, const char *path,
                         const struct weft_config_source *settings, struct weft_config_source *ret,
                         struct weft_error *err)
{
    *ret = (struct weft_config_source){.kind = kind};
    int rc = copy_text(weft_source_kind_name(kind), &ret->name, err);
    rc = rc < 0 ? rc : set_files(path, ret, err);
    rc = rc < 0 || settings == NULL ? rc : copy_settings(settings, ret, err);
    if (rc < 0) {
        weft_config_source_done(ret);
        *ret = (struct weft_config_source){0};
    }
    return rc;
}
