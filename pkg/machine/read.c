/* SPDX-License-Identifier: Apache-2.0 */
/* Which recorded format a text is, by its content alone. To add a
 * format: a reader in a file of its own, its declaration in machine-internal.h, a line in formats[]
 * with the test that knows it, and docs/recorded-machines.md. */
#include <errno.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/machine/machine-internal.h"
#include "pkg/machine/read-kfd.h"

enum { SNIFF_MAX = 64 << 10 }; /* bytes from the start in which a format must show itself */

static bool contains(struct weft_str text, const char *part)
{
    return memmem(text.data, text.len, part, strlen(part)) != NULL;
}

/* ---- XML: the name of the root element ---- */

/* Skips to after the next end; false where there is none. */
static bool skip_past(struct weft_str *rest, const char *end)
{
    const char *at = memmem(rest->data, rest->len, end, strlen(end));
    if (at == NULL) {
        return false;
    }
    const size_t used = (size_t)(at - rest->data) + strlen(end);
    rest->data += used;
    rest->len -= used;
    return true;
}

/* Skips one declaration or comment; false where the text goes on with something else, or ends. */
static bool skip_prolog(struct weft_str *text)
{
    *text = weft_str_trim(*text);
    if (weft_str_starts(*text, "<?")) {
        return skip_past(text, "?>");
    }
    if (weft_str_starts(*text, "<!--")) {
        return skip_past(text, "-->");
    }
    if (!weft_str_starts(*text, "<!DOCTYPE")) {
        return false;
    }
    const char *end = memchr(text->data, '>', text->len);
    const char *bracket = memchr(text->data, '[', text->len);
    if (bracket != NULL && end != NULL && bracket < end && !skip_past(text, "]")) {
        return false;
    }
    return skip_past(text, ">");
}

/* The element that a text begins with, after declarations and comments; empty if it does not. */
static struct weft_str root_element(struct weft_str text)
{
    while (skip_prolog(&text)) {
    }
    if (!weft_str_starts(text, "<")) {
        return (struct weft_str){0};
    }
    size_t len = 1;
    while (len < text.len && strchr(" \t\r\n/><", text.data[len]) == NULL) {
        len++;
    }
    return (struct weft_str){text.data + 1, len - 1};
}

static bool is_nccl(struct weft_str text)
{
    return weft_str_eq(root_element(text), "system");
}

static bool is_lstopo(struct weft_str text)
{
    return weft_str_eq(root_element(text), "topology");
}

/* rocm-smi --showtopo and --showtoponuma, amd-smi topology as text or JSON (a list). */
static bool is_amd_smi(struct weft_str text)
{
    static const char *const marks[] = {"between two GPUs", "(Topology) Numa ", "HOPS TABLE:",
                                        "LINK TYPE TABLE:", "WEIGHT TABLE:",    "NUMA BW TABLE:",
                                        "COHERANCY TABLE:", "ACCESS TABLE:",    "COHERENCY TABLE:"};
    if (text.data[0] == '[') {
        return true;
    }
    for (size_t i = 0; text.data[0] != '{' && i < WEFT_ARRAY_LEN(marks); i++) {
        if (contains(text, marks[i])) {
            return true;
        }
    }
    return false;
}

static bool is_json(struct weft_str text)
{
    return text.data[0] == '{';
}

/* ---- what is no recorded machine, though it may look like one ---- */

static const struct foreign {
    const char *marks[2]; /* all of them occur */
    const char *what;
} foreigns[] = {
    /* a key with both its quotes cannot be part of a text inside weft's own JSON */
    {{"\"dmi_data\"", "\"network_interfaces\""},
     "a hardware inventory (dmi_data, network_interfaces, …), which lists devices but not how they "
     "are wired"},
    {{"device_defaults:", "nvlink:"},
     "the configuration of a mock NVML (device_defaults, nvlink, …), not what a library said"},
    {{"device_defaults:", "devices:"},
     "the configuration of a mock NVML (device_defaults, devices, …), not what a library said"},
    {{"cliques:", "domains:"},
     "a layout of NVLink domains over nodes (domains, cliques), which says nothing of one machine"},
    {{"PCIe Bus ID", "Closest NUMA"},
     "the output of TransferBench, which names no rates or counts of links; record amd-smi "
     "topology or rocm-smi --showtopo"},
    {{"Concise Hardware Info", "PARTITION ID"},
     "the output of rocm-smi --showhw, which lists devices but not how they are wired; record "
     "rocm-smi --showtopo or amd-smi topology"},
};

/* -EINVAL with the reason if it is one of them, else 0. */
static int refuse_foreign(struct weft_str text, const char *name, struct weft_error *err)
{
    if (weft_str_starts(text, "BZh")) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s: not a recorded machine: bzip2 data; unpack it first", name);
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(foreigns); i++) {
        if (is_json(text) != (foreigns[i].marks[0][0] == '"')) {
            continue;
        }
        if (contains(text, foreigns[i].marks[0]) && contains(text, foreigns[i].marks[1])) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s: not a recorded machine: %s",
                                name, foreigns[i].what);
        }
    }
    const struct weft_str root = root_element(text);
    if (root.len > 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s: not a recorded machine: XML with the root <%.*s>; read are NCCL's "
                            "and RCCL's <system> and lstopo's <topology>",
                            name, (int)(root.len < 40 ? root.len : 40), root.data);
    }
    return 0;
}

/* ---- the formats, the surest signs first ---- */

typedef int weft_machine_reader(const char *text, size_t len, const char *name,
                                struct weft_machine **ret_machine, struct weft_error *err);

static const struct format {
    bool (*is)(struct weft_str start); /* the trimmed start of the text, never empty */
    weft_machine_reader *read;
} formats[] = {
    {is_nccl, weft_machine_read_nccl_xml},
    {is_lstopo, weft_machine_read_lstopo},
    {is_amd_smi, weft_machine_read_amd_smi},
};

int weft_machine_read(const char *text, size_t len, const char *name,
                      struct weft_machine **ret_machine, struct weft_error *err)
{
    static const char bom[] = "\xef\xbb\xbf";
    struct weft_str rest = {text, len};
    if (weft_kfd_is_archive(text, len)) {
        return weft_kfd_read_archive(text, len, name, NULL, ret_machine, err);
    }
    if (weft_str_starts(rest, bom)) {
        rest.data += sizeof(bom) - 1;
        rest.len -= sizeof(bom) - 1;
    }
    struct weft_str start = weft_str_trim(rest);
    if (start.len == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s: the file is empty", name);
    }
    start.len = start.len < SNIFF_MAX ? start.len : SNIFF_MAX;
    for (size_t i = 0; i < WEFT_ARRAY_LEN(formats); i++) {
        if (formats[i].is(start)) {
            return formats[i].read(rest.data, rest.len, name, ret_machine, err);
        }
    }
    const int rc = refuse_foreign(start, name, err);
    if (rc < 0) {
        return rc;
    }
    weft_machine_reader *read =
        is_json(start) ? weft_machine_read_json : weft_machine_read_smi_topo;
    return read(rest.data, rest.len, name, ret_machine, err);
}
