/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lldpd's JSON in both its forms (lldpcli(8), -f json and -f json0). json0 has a list
 * everywhere; json has an object where there is one of a thing, a list where there are several, and
 * names as keys. One reader takes both: a list of one is the thing, {"value": x} is x. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "pkg/base/str.h"
#include "pkg/fabric/lldp-internal.h"
#include "pkg/json/json.h"

/* The first of a list, or the thing itself. */
static const struct weft_json *first(const struct weft_json *node)
{
    return weft_json_type(node) == WEFT_JSON_ARRAY ? weft_json_at(node, 0) : node;
}

static const char *value_of(const struct weft_json *node)
{
    const struct weft_json *one = first(node);
    return weft_json_string(weft_json_type(one) == WEFT_JSON_OBJECT ? weft_json_get(one, "value")
                                                                    : one);
}

/* The chassis: in json the system's name is the key of it, unless there is none. */
static const struct weft_json *chassis_of(const struct weft_json *entry, const char **ret_name)
{
    const struct weft_json *chassis = first(weft_json_get(entry, "chassis"));
    const struct weft_json *inner = weft_json_at(chassis, 0);
    if (weft_json_get(chassis, "id") == NULL && weft_json_count(chassis) == 1 &&
        weft_json_type(inner) == WEFT_JSON_OBJECT) {
        *ret_name = weft_json_key(inner);
        return inner;
    }
    *ret_name = value_of(weft_json_get(chassis, "name"));
    return chassis;
}

static void read_capabilities(const struct weft_json *list, struct weft_lldp_words *words)
{
    const bool many = weft_json_type(list) == WEFT_JSON_ARRAY;
    const size_t count = many ? weft_json_count(list) : (list != NULL);
    for (size_t i = 0; i < count; i++) {
        const struct weft_json *one = many ? weft_json_at(list, i) : list;
        const char *type = weft_json_string(weft_json_get(one, "type"));
        if (type == NULL || !weft_json_bool(weft_json_get(one, "enabled"), false)) {
            continue;
        }
        words->infrastructure = words->infrastructure || strcasecmp(type, "Bridge") == 0 ||
                                strcasecmp(type, "Router") == 0;
        words->station = words->station || strcasecmp(type, "Station") == 0;
    }
}

/* `lldpcli show interfaces` has the same form about the system itself. */
static bool is_local(const struct weft_json *entry)
{
    return weft_json_get(entry, "status") != NULL && weft_json_get(entry, "via") == NULL;
}

static int read_entry(struct weft_lldp *lldp, const struct weft_json *entry, const char *reporter,
                      const char *port, struct weft_error *err)
{
    struct weft_lldp_words words = {
        .reporter = reporter, .port = port, .line = weft_json_line(entry)};
    if (is_local(entry)) {
        return weft_json_error(entry, err,
                               "a system's own interfaces, not its neighbours; use \"show "
                               "neighbors\"");
    }
    const struct weft_json *chassis = chassis_of(entry, &words.name);
    const struct weft_json *peer = first(weft_json_get(entry, "port"));
    words.chassis = value_of(weft_json_get(chassis, "id"));
    words.descr = value_of(weft_json_get(chassis, "descr"));
    words.peer_port = value_of(weft_json_get(peer, "id"));
    words.peer_port_descr = value_of(weft_json_get(peer, "descr"));
    read_capabilities(weft_json_get(chassis, "capability"), &words);
    return weft_lldp_row(lldp, &words, err);
}

/* {"eth0": {…}, "eth1": {…}}; a value may be a list of neighbours. */
static int read_keyed(struct weft_lldp *lldp, const struct weft_json *object, const char *reporter,
                      struct weft_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < weft_json_count(object); i++) {
        const struct weft_json *entry = weft_json_at(object, i);
        const bool many = weft_json_type(entry) == WEFT_JSON_ARRAY;
        for (size_t e = 0; rc == 0 && e < (many ? weft_json_count(entry) : 1); e++) {
            rc = read_entry(lldp, many ? weft_json_at(entry, e) : entry, reporter,
                            weft_json_key(entry), err);
        }
    }
    return rc;
}

/* An element of "interface": json0's {name, chassis, …}, or json's {"eth0": {…}}. */
static int read_interface(struct weft_lldp *lldp, const struct weft_json *node,
                          const char *reporter, struct weft_error *err)
{
    if (weft_json_type(node) != WEFT_JSON_OBJECT) {
        return weft_json_error(node, err, "an interface must be an object");
    }
    const char *name = value_of(weft_json_get(node, "name"));
    return name != NULL ? read_entry(lldp, node, reporter, name, err)
                        : read_keyed(lldp, node, reporter, err);
}

static int read_interfaces(struct weft_lldp *lldp, const struct weft_json *node,
                           const char *reporter, struct weft_error *err)
{
    if (weft_json_type(node) != WEFT_JSON_ARRAY) {
        return weft_json_type(node) == WEFT_JSON_NULL ? 0
                                                      : read_interface(lldp, node, reporter, err);
    }
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < weft_json_count(node); i++) {
        rc = read_interface(lldp, weft_json_at(node, i), reporter, err);
    }
    return rc;
}

int weft_lldp_read_lldpd(struct weft_lldp *lldp, const struct weft_json *root, const char *reporter,
                         struct weft_error *err)
{
    const struct weft_json *top = weft_json_get(root, "lldp");
    size_t index = 0;
    int rc = weft_lldp_reporter(lldp, reporter, &index, err);
    if (rc < 0) {
        return rc;
    }
    const size_t before = lldp->reporters[index].rows;
    const bool many = weft_json_type(top) == WEFT_JSON_ARRAY;
    for (size_t i = 0; rc == 0 && i < (many ? weft_json_count(top) : 1); i++) {
        const struct weft_json *part = many ? weft_json_at(top, i) : top;
        rc = read_interfaces(lldp, weft_json_get(part, "interface"), reporter, err);
    }
    if (rc == 0 && lldp->reporters[index].rows == before) {
        lldp->partial = true;
        weft_warn(&lldp->warnings, weft_lldp_file(lldp), 0,
                  "%.80s hears no neighbour: no cable, or the adapter's firmware keeps the frames",
                  reporter);
    }
    return rc;
}

/* ---- any report ---- */

struct report {
    struct weft_lldp *lldp;
    const char *reporter;
    unsigned count;
};

static int read_root(struct report *r, const struct weft_json *root, struct weft_error *err)
{
    if (weft_json_get(root, "lldp") != NULL) {
        return weft_lldp_read_lldpd(r->lldp, root, r->reporter, err);
    }
    const struct weft_json *record = first(root);
    if (weft_json_get(record, "hostname") != NULL && weft_json_get(record, "data") != NULL) {
        return weft_lldp_read_records(r->lldp, root, err);
    }
    return weft_json_error(root, err,
                           "no LLDP report: neither lldpd's \"lldp\" nor records of "
                           "{hostname, devtype, cmd, data}");
}

/* Lists one after the other ("[…][…]") are what collectors append to a file: the next one begins
 * where this one's last bracket closes. */
static size_t document_len(const char *text, size_t len)
{
    size_t depth = 0;
    bool string = false;
    for (size_t i = 0; i < len; i++) {
        const char c = text[i];
        if (string) {
            i += c == '\\';
            string = c != '"';
        } else if (c == '"') {
            string = true;
        } else if (c == '[' || c == '{') {
            depth++;
        } else if (c == ']' || c == '}') {
            depth -= depth > 0;
            if (depth == 0) {
                return i + 1;
            }
        }
    }
    return len;
}

static int read_documents(struct report *r, struct weft_str rest, struct weft_error *err)
{
    int rc = 0;
    for (rest = weft_str_trim(rest); rc == 0 && rest.len > 0; rest = weft_str_trim(rest)) {
        weft_auto(weft_json_free) struct weft_json *root = NULL;
        const size_t len = document_len(rest.data, rest.len);
        weft_autofree char *name =
            r->count++ > 0 ? weft_asprintf("%s part %u", weft_lldp_file(r->lldp), r->count)
                           : weft_strdup(weft_lldp_file(r->lldp));
        rc = name == NULL ? weft_err_nomem(err) : weft_json_parse(rest.data, len, name, &root, err);
        rc = rc == 0 ? read_root(r, root, err) : rc;
        rest.data += len;
        rest.len -= len;
    }
    return rc;
}

static int add_file(struct weft_lldp *lldp, const char *file, struct weft_error *err)
{
    void *files = lldp->files;
    const int rc = weft_array_reserve(&files, &lldp->file_cap, lldp->file_count + 1, sizeof(char *),
                                      WEFT_LLDP_NEIGHBORS_MAX);
    lldp->files = files;
    char *copy = rc == 0 ? weft_strdup(file) : NULL;
    if (copy == NULL) {
        return rc == -EFBIG ? weft_err_set(err, rc, WEFT_ERR_CONFIG, "%s: too many reports", file)
                            : weft_err_nomem(err);
    }
    lldp->files[lldp->file_count++] = copy;
    return 0;
}

int weft_lldp_add(struct weft_lldp *lldp, const char *text, size_t len, const char *file,
                  const char *reporter, struct weft_error *err)
{
    struct report r = {.lldp = lldp, .reporter = reporter};
    const struct weft_str whole = {text, len};
    const struct weft_str content = weft_str_trim(whole);
    if (len > WEFT_LLDP_TEXT_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s: larger than %d MiB", file,
                            (int)(WEFT_LLDP_TEXT_MAX >> 20));
    }
    if (content.len == 0 || (content.data[0] != '{' && content.data[0] != '[')) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:1: not JSON: lldpcli's text form is not read, use -f json0", file);
    }
    const int rc = add_file(lldp, file, err);
    return rc < 0 ? rc : read_documents(&r, content, err);
}
