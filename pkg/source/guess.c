/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of kinds. Each is something that the format's definition demands, not what a site may have
 * named so. */
#include "pkg/source/guess.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "pkg/base/str.h"

/* A plain mark counts at the beginning of a line: what is nested is about something else. */
enum form { FORM_JSON, FORM_PLAIN };

static const struct mark {
    enum weft_source_kind kind;
    enum form form;
    const char *text;
} marks[] = {
    /* ibnetdiscover's records, its port list (-p), iblinkinfo */
    {WEFT_SOURCE_INFINIBAND, FORM_PLAIN, "vendid=0x"},
    {WEFT_SOURCE_INFINIBAND, FORM_PLAIN, "switchguid=0x"},
    {WEFT_SOURCE_INFINIBAND, FORM_PLAIN, "caguid=0x"},
    {WEFT_SOURCE_INFINIBAND, FORM_PLAIN, "SW "},
    {WEFT_SOURCE_INFINIBAND, FORM_PLAIN, "Switch: 0x"},
    {WEFT_SOURCE_INFINIBAND, FORM_PLAIN, "CA: "},
    {WEFT_SOURCE_SLURM, FORM_PLAIN, "SwitchName="},
    {WEFT_SOURCE_SLURM, FORM_PLAIN, "BlockName="},
    {WEFT_SOURCE_SLURM, FORM_PLAIN, "- topology:"},
    {WEFT_SOURCE_PTM, FORM_PLAIN, "graph "},
    {WEFT_SOURCE_PTM, FORM_PLAIN, "strict graph "},
    {WEFT_SOURCE_PTM, FORM_PLAIN, "#StartDevice,"},        /* UFM's design table */
    {WEFT_SOURCE_PTM, FORM_JSON, "\"compounded_links\":"}, /* NetQ */
    {WEFT_SOURCE_FILE, FORM_PLAIN, "kind: FabricFile"},
    {WEFT_SOURCE_LABELS, FORM_PLAIN, "kind: NodeList"},
    {WEFT_SOURCE_LABELS, FORM_PLAIN, "kind: Node\n"},
    {WEFT_SOURCE_LABELS, FORM_PLAIN, "  kind: Node\n"}, /* of kubectl's List */
    {WEFT_SOURCE_LABELS, FORM_JSON, "\"kind\":\"NodeList\""},
    {WEFT_SOURCE_LABELS, FORM_JSON, "\"kind\":\"Node\""},
    {WEFT_SOURCE_FILE, FORM_JSON, "\"kind\":\"FabricFile\""},
    {WEFT_SOURCE_LLDP, FORM_JSON, "\"lldp\":"},
    {WEFT_SOURCE_AWS_API, FORM_JSON, "\"NetworkNodes\":"},
    {WEFT_SOURCE_OCI_IMDS, FORM_JSON, "\"customerNetworkBlock\":"},
    {WEFT_SOURCE_OCI_IMDS, FORM_JSON, "\"customer-network-block"},
    {WEFT_SOURCE_UFM, FORM_JSON, "\"source_guid\":"},
    {WEFT_SOURCE_UFM, FORM_JSON, "\"system_guid\":"},
    {WEFT_SOURCE_UFM, FORM_JSON, "\"peer_node_guid\":"},
};

/* JSON may have blanks anywhere and no lines: its marks are looked for in the text without. */
static size_t squeeze(struct weft_str text, char *to)
{
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (strchr(" \t\r\n", text.data[i]) == NULL || text.data[i] == '\0') {
            to[len++] = text.data[i];
        }
    }
    return len;
}

static bool at_line(struct weft_str text, const char *mark)
{
    struct weft_str line = {0};
    struct weft_str rest = text;
    size_t len = strlen(mark);
    const bool whole = mark[len - 1] == '\n';
    len -= whole;
    while (weft_str_line(&rest, &line)) {
        if (line.len >= len && strncasecmp(line.data, mark, len) == 0 &&
            (!whole || line.len == len)) {
            return true;
        }
    }
    return false;
}

static bool has(struct weft_str text, struct weft_str squeezed, bool is_json,
                const struct mark *mark)
{
    if (mark->form == FORM_JSON) {
        return is_json &&
               memmem(squeezed.data, squeezed.len, mark->text, strlen(mark->text)) != NULL;
    }
    return !is_json && at_line(text, mark->text);
}

int weft_source_guess(const char *text, size_t len, const char *name,
                      enum weft_source_kind *ret_kind, struct weft_error *err)
{
    static const char say_it[] = "say what it is: --from KIND=FILE, KIND is infiniband, labels, "
                                 "slurm, lldp, ufm, ptm, aws, oci or file";
    const struct weft_str all = {text, len < WEFT_SOURCE_GUESS_MAX ? len : WEFT_SOURCE_GUESS_MAX};
    const struct weft_str begin = weft_str_trim(all);
    weft_autofree char *room = weft_malloc(all.len + 1);
    if (room == NULL) {
        return weft_err_nomem(err);
    }
    const struct weft_str squeezed = {room, squeeze(all, room)};
    const bool is_json = begin.len > 0 && (begin.data[0] == '{' || begin.data[0] == '[');
    enum weft_source_kind found = WEFT_SOURCE_COUNT;
    for (size_t i = 0; i < WEFT_ARRAY_LEN(marks); i++) {
        if (marks[i].kind == found || !has(all, squeezed, is_json, &marks[i])) {
            continue;
        }
        if (found != WEFT_SOURCE_COUNT) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s could be %s or %s: %s", name,
                                weft_source_kind_name(found), weft_source_kind_name(marks[i].kind),
                                say_it);
        }
        found = marks[i].kind;
    }
    if (found == WEFT_SOURCE_COUNT) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s is of no kind that shows: %s", name,
                            say_it);
    }
    *ret_kind = found;
    return 0;
}
