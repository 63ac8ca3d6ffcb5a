/* SPDX-License-Identifier: Apache-2.0 */
/* Reads UFM's REST answers row by row (UFM Enterprise REST API guide: links, ports, systems,
 * vports). What the rows mean together is ufm.c's work. UFM gives numbers as strings at times,
 * "N/A" where it has nothing, and keeps rows of what was removed. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "pkg/fabric/document-internal.h"
#include "pkg/fabric/fabric-internal.h"
#include "pkg/fabric/ufm-internal.h"
#include "pkg/json/json.h"

/* the list of an answer, which may be inside a page */
static const struct weft_json *find_rows(const struct weft_json *root)
{
    static const char *const keys[] = {"data", "items"};
    const struct weft_json *rows = root;
    for (size_t i = 0; i < WEFT_ARRAY_LEN(keys) && weft_json_type(rows) == WEFT_JSON_OBJECT; i++) {
        const struct weft_json *inner = weft_json_get(root, keys[i]);
        rows = inner != NULL ? inner : rows;
    }
    return weft_json_type(rows) == WEFT_JSON_ARRAY ? rows : NULL;
}

/* A field's text; "" for absent, null, "N/A" and what is no text. */
static const char *text_of(const struct weft_json *row, const char *key)
{
    const char *text = weft_json_string(weft_json_get(row, key));
    return text == NULL || strcmp(text, "N/A") == 0 ? "" : text;
}

static bool has_guid(const struct weft_json *row, const char *key, uint64_t *ret_guid)
{
    return weft_parse_hex64(weft_str(text_of(row, key)), ret_guid) == 0 && *ret_guid != 0;
}

/* A port's number: "19", 19, or the last number of "HCA-2/1". 0: none. */
static uint16_t port_of(const struct weft_json *row, const char *key)
{
    struct weft_doc_text text = {0};
    uint64_t number = 0;
    if (weft_doc_get_text(row, key, &text, NULL) < 0) {
        return 0;
    }
    size_t start = text.text.len;
    while (start > 0 && isdigit((unsigned char)text.text.data[start - 1])) {
        start--;
    }
    const struct weft_str digits = {text.text.data + start, text.text.len - start};
    return weft_parse_u64(digits, WEFT_FABRIC_PORT_MAX, &number) == 0 ? (uint16_t)number : 0;
}

/* UFM's names: "guid_port". The GUID of it. */
static bool guid_of_name(struct weft_str name, uint64_t *ret_guid)
{
    struct weft_str guid = {0};
    return weft_str_split(&name, '_', &guid) && weft_parse_hex64(guid, ret_guid) == 0;
}

static void lost_row(struct weft_ufm *ufm, const struct weft_json *row, const char *why)
{
    ufm->partial = true;
    weft_warn(&ufm->warnings, ufm->file, weft_json_line(row), "a row that cannot be read: %s", why);
}

/* ---- rates ---- */

/* Lane rates in Gb/s by UFM's names of them (InfiniBand Architecture Specification). */
static uint32_t rate_of(const struct weft_json *row)
{
    static const struct {
        const char *name;
        unsigned rate;
    } rates[] = {{"SDR", 2},  {"DDR", 5},  {"QDR", 10},  {"FDR10", 10}, {"FDR", 14},
                 {"EDR", 25}, {"HDR", 50}, {"NDR", 100}, {"XDR", 200}};
    const char *width = text_of(row, "active_width");
    const char *speed = text_of(row, "active_speed");
    unsigned lanes = 0;
    unsigned rate = 0;
    width = width[0] != '\0' ? width : text_of(row, "width");
    while (isdigit((unsigned char)*width) && lanes < 100) {
        lanes = lanes * 10 + (unsigned)(*width++ - '0');
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rates); i++) {
        rate = strcasecmp(speed, rates[i].name) == 0 ? rates[i].rate : rate;
    }
    return lanes > 0 && rate > 0 && lanes <= 16 ? lanes * rate : 1;
}

/* ---- links ---- */

static int read_link(struct weft_ufm *ufm, const struct weft_json *row)
{
    struct weft_ufm_cable cable = {.gbps = rate_of(row), .both = true, .line = weft_json_line(row)};
    if (!has_guid(row, "source_guid", &cable.guid[0]) ||
        !has_guid(row, "destination_guid", &cable.guid[1])) {
        lost_row(ufm, row, "no source_guid and destination_guid");
        return 0;
    }
    cable.port[0] = port_of(row, "source_port");
    cable.port[1] = port_of(row, "destination_port");
    if (cable.port[0] == 0 || cable.port[1] == 0) {
        lost_row(ufm, row, "no source_port and destination_port");
        return 0;
    }
    /* "guid_port:guid_port": another GUID there is another of the device's GUIDs */
    struct weft_str name = weft_str(text_of(row, "name"));
    struct weft_str end = {0};
    for (size_t e = 0; e < 2 && weft_str_split(&name, ':', &end); e++) {
        uint64_t guid = 0;
        if (guid_of_name(end, &guid) && guid != cable.guid[e]) {
            weft_warn(&ufm->warnings, ufm->file, cable.line,
                      "the name says %.40s, the fields say GUID %016" PRIx64 ": the fields count",
                      end.data, cable.guid[e]);
        }
    }
    int rc = weft_ufm_cable(ufm, &cable);
    static const char *const descs[2] = {"source_port_node_description",
                                         "destination_port_node_description"};
    for (size_t e = 0; rc == 0 && e < 2; e++) {
        const struct weft_ufm_fact fact = {.guid = cable.guid[e],
                                           .desc = text_of(row, descs[e]),
                                           .port = cable.port[e],
                                           .line = cable.line};
        rc = weft_ufm_tell(ufm, &fact);
    }
    return rc;
}

/* ---- ports ---- */

static bool is_up(const struct weft_json *row)
{
    const char *physical = text_of(row, "physical_state");
    const char *logical = text_of(row, "logical_state");
    const bool link = physical[0] == '\0' || strcasecmp(physical, "Link Up") == 0 ||
                      strcasecmp(physical, "LinkUp") == 0;
    return link && (logical[0] == '\0' || strcasecmp(logical, "Active") == 0);
}

/* "Switch IB Port", "Computer IB Port": what the port is of. */
static enum weft_ufm_kind kind_of_port(const char *description)
{
    return strncasecmp(description, "Switch", 6) == 0     ? WEFT_UFM_SWITCH
           : strncasecmp(description, "Computer", 8) == 0 ? WEFT_UFM_HOST
                                                          : WEFT_UFM_UNKNOWN;
}

/* A port's own GUID is what links name: a switch's ports have their node's, an adapter's port has
 * one of its own. */
static bool find_port_guids(const struct weft_json *row, struct weft_ufm_fact *fact)
{
    if (!has_guid(row, "systemID", &fact->system)) {
        fact->system = 0;
    }
    if (!has_guid(row, "guid", &fact->guid)) {
        fact->guid = fact->system;
    }
    return fact->guid != 0;
}

/* The port at the other end: in "peer" ("guid_port"), else in its display name ("HCA-2/1"). */
static int read_peer(struct weft_ufm *ufm, const struct weft_json *row,
                     const struct weft_ufm_fact *own)
{
    struct weft_ufm_cable cable = {
        .guid = {own->guid, 0}, .port = {own->port, 0}, .gbps = rate_of(row), .line = own->line};
    const bool has_peer = has_guid(row, "peer_guid", &cable.guid[1]) ||
                          has_guid(row, "peer_node_guid", &cable.guid[1]);
    if (!has_peer && text_of(row, "peer")[0] == '\0') {
        return 0; /* nothing at its other end that UFM knows */
    }
    const uint16_t of_peer = port_of(row, "peer");
    cable.port[1] = of_peer != 0 ? of_peer : port_of(row, "peer_port_dname");
    if (!has_peer || cable.port[1] == 0 || own->port == 0) {
        lost_row(ufm, row, "no peer_guid, or no number of the port or of its peer");
        return 0;
    }
    const struct weft_ufm_fact other = {.guid = cable.guid[1],
                                        .desc = text_of(row, "peer_node_description"),
                                        .port = cable.port[1],
                                        .line = own->line};
    const int rc = weft_ufm_cable(ufm, &cable);
    return rc == 0 ? weft_ufm_tell(ufm, &other) : rc;
}

static int read_port(struct weft_ufm *ufm, const struct weft_json *row)
{
    struct weft_ufm_fact own = {.kind = kind_of_port(text_of(row, "description")),
                                .desc = text_of(row, "node_description"),
                                .port = port_of(row, "number"),
                                .line = weft_json_line(row)};
    if (!find_port_guids(row, &own)) {
        lost_row(ufm, row, "no guid and systemID");
        return 0;
    }
    if (!is_up(row)) {
        return weft_ufm_down(ufm, own.guid, own.port);
    }
    /* the system's name is a BMC's, an address or a serial number at times: of switches only */
    own.name = own.kind == WEFT_UFM_SWITCH ? text_of(row, "system_name") : NULL;
    const int rc = weft_ufm_tell(ufm, &own);
    return rc == 0 ? read_peer(ufm, row, &own) : rc;
}

/* ---- systems ---- */

static enum weft_ufm_kind kind_of_system(const char *type)
{
    static const char *const hosts[] = {"host", "server", "computer"};
    static const char *const others[] = {"gateway", "router"};
    if (strcasecmp(type, "switch") == 0) {
        return WEFT_UFM_SWITCH;
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(hosts); i++) {
        if (strcasecmp(type, hosts[i]) == 0) {
            return WEFT_UFM_HOST;
        }
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(others); i++) {
        if (strcasecmp(type, others[i]) == 0) {
            return WEFT_UFM_OTHER;
        }
    }
    return WEFT_UFM_UNKNOWN;
}

static int read_system(struct weft_ufm *ufm, const struct weft_json *row)
{
    const char *state = text_of(row, "state");
    struct weft_ufm_fact fact = {.kind = kind_of_system(text_of(row, "type")),
                                 .name = text_of(row, "system_name"),
                                 .line = weft_json_line(row)};
    if (!has_guid(row, "system_guid", &fact.system)) {
        fact.system = 0;
    }
    if (!has_guid(row, "guid", &fact.guid)) {
        fact.guid = fact.system;
    }
    if (fact.guid == 0) {
        lost_row(ufm, row, "no guid and system_guid");
        return 0;
    }
    fact.system = fact.system != 0 ? fact.system : fact.guid;
    /* UFM's persistent inventory remembers what was taken away */
    fact.gone = state[0] != '\0' && strcasecmp(state, "active") != 0;
    return weft_ufm_tell(ufm, &fact);
}

/* ---- virtual ports ---- */

static int read_vport(struct weft_ufm *ufm, const struct weft_json *row)
{
    uint64_t guid = 0;
    if (!has_guid(row, "virtual_port_guid", &guid)) {
        lost_row(ufm, row, "no virtual_port_guid");
        return 0;
    }
    return weft_ufm_virtual(ufm, guid);
}

/* ---- answers ---- */

/* Fields that rows of one resource only have. */
static const char *const marks[WEFT_UFM_RESOURCE_COUNT] = {"source_guid", "physical_state",
                                                           "system_guid", "virtual_port_guid"};
static const char *const resource_names[WEFT_UFM_RESOURCE_COUNT] = {"links", "ports", "systems",
                                                                    "vports"};

static bool guess(const struct weft_json *row, enum weft_ufm_resource *ret_resource)
{
    static const enum weft_ufm_resource order[] = {WEFT_UFM_LINKS, WEFT_UFM_VPORTS, WEFT_UFM_PORTS,
                                                   WEFT_UFM_SYSTEMS};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(order); i++) {
        if (weft_json_get(row, marks[order[i]]) != NULL) {
            *ret_resource = order[i];
            return true;
        }
    }
    return false;
}

static int parse_rows(const char *text, size_t len, const char *file, struct weft_json **ret_root,
                      const struct weft_json **ret_rows, struct weft_error *err)
{
    if (len > WEFT_UFM_TEXT_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s: larger than %d MiB", file,
                            (int)(WEFT_UFM_TEXT_MAX >> 20));
    }
    const int rc = weft_json_parse(text, len, file, ret_root, err);
    if (rc < 0) {
        return rc;
    }
    *ret_rows = find_rows(*ret_root);
    return *ret_rows != NULL ? 0
                             : weft_json_error(*ret_root, err,
                                               "not an answer of UFM: a list of "
                                               "rows is expected");
}

int weft_ufm_guess(const char *text, size_t len, const char *file,
                   enum weft_ufm_resource *ret_resource, struct weft_error *err)
{
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    const struct weft_json *rows = NULL;
    const int rc = parse_rows(text, len, file, &root, &rows, err);
    if (rc < 0) {
        return rc;
    }
    return guess(weft_json_at(rows, 0), ret_resource)
               ? 0
               : weft_json_error(root, err,
                                 "neither links, ports, systems nor vports of UFM: its first row "
                                 "has none of source_guid, physical_state, system_guid, "
                                 "virtual_port_guid");
}

/* NOLINTNEXTLINE(readability-function-size): seven parameters: a text, its name, what it is */
int weft_ufm_add(struct weft_ufm *ufm, enum weft_ufm_resource resource, const char *text,
                 size_t len, const char *file, size_t *ret_rows, struct weft_error *err)
{
    static int (*const readers[WEFT_UFM_RESOURCE_COUNT])(
        struct weft_ufm *, const struct weft_json *) = {read_link, read_port, read_system,
                                                        read_vport};
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    const struct weft_json *rows = NULL;
    enum weft_ufm_resource found = resource;
    int rc = parse_rows(text, len, file, &root, &rows, err);
    if (rc < 0) {
        return rc;
    }
    if (weft_json_count(rows) > 0 && guess(weft_json_at(rows, 0), &found) && found != resource) {
        return weft_json_error(weft_json_at(rows, 0), err,
                               "a row of %s, where rows of %s are "
                               "expected",
                               resource_names[found], resource_names[resource]);
    }
    ufm->file = file;
    for (size_t i = 0; rc == 0 && i < weft_json_count(rows); i++) {
        const struct weft_json *row = weft_json_at(rows, i);
        if (weft_json_type(row) != WEFT_JSON_OBJECT) {
            return weft_json_error(row, err, "a row must be an object");
        }
        rc = readers[resource](ufm, row);
    }
    if (rc < 0) {
        return rc == -ENOMEM ? weft_err_nomem(err)
                             : weft_err_set(err, rc, WEFT_ERR_CONFIG,
                                            "%s: more devices or cables than weft reads", file);
    }
    if (ret_rows != NULL) {
        *ret_rows = weft_json_count(rows);
    }
    return 0;
}
