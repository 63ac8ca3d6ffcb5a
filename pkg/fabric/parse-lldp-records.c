/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what collectors keep of switches: a list of {hostname, devtype, cmd, data}, where data is
 * the switch's own answer as JSON in a string. EOS, Junos and NX-OS answers are read; CDP and text
 * answers are passed over with a warning, as they are not all that the collector has. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "pkg/base/str.h"
#include "pkg/fabric/lldp-internal.h"
#include "pkg/json/json.h"

enum { PORT_MAX = 256 };

struct record {
    struct weft_lldp *lldp;
    const char *hostname;
    unsigned line;
};

static const char *text_of(const struct weft_json *object, const char *key)
{
    return weft_json_string(weft_json_get(object, key));
}

/* ---- EOS: show lldp neighbors detail | json ---- */

/* EOS puts the port id in quotes of its own. */
static const char *unquoted(const char *text, char *buf)
{
    const size_t len = text != NULL ? strlen(text) : 0;
    if (len < 2 || text[0] != '"' || text[len - 1] != '"' || len - 2 >= PORT_MAX) {
        return text;
    }
    memcpy(buf, text + 1, len - 2);
    buf[len - 2] = '\0';
    return buf;
}

static int read_eos_neighbor(struct record *r, const char *port, const struct weft_json *neighbor,
                             struct weft_error *err)
{
    char buf[PORT_MAX];
    const struct weft_json *interface = weft_json_get(neighbor, "neighborInterfaceInfo");
    const struct weft_json *caps = weft_json_get(neighbor, "systemCapabilities");
    const char *port_id = text_of(interface, "interfaceId_v2");
    struct weft_lldp_words words = {
        .reporter = r->hostname,
        .port = port,
        .chassis = text_of(neighbor, "chassisId"),
        .name = text_of(neighbor, "systemName"),
        .descr = text_of(neighbor, "systemDescription"),
        .peer_port = port_id != NULL ? port_id : unquoted(text_of(interface, "interfaceId"), buf),
        .peer_port_descr = text_of(interface, "interfaceDescription"),
        .infrastructure = weft_json_bool(weft_json_get(caps, "bridge"), false) ||
                          weft_json_bool(weft_json_get(caps, "router"), false),
        .station = weft_json_bool(weft_json_get(caps, "stationOnly"), false),
        .line = r->line};
    return weft_lldp_row(r->lldp, &words, err);
}

static int read_eos(struct record *r, const struct weft_json *ports, struct weft_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < weft_json_count(ports); i++) {
        const struct weft_json *port = weft_json_at(ports, i);
        const struct weft_json *list = weft_json_get(port, "lldpNeighborInfo");
        for (size_t n = 0; rc == 0 && n < weft_json_count(list); n++) {
            rc = read_eos_neighbor(r, weft_json_key(port), weft_json_at(list, n), err);
        }
    }
    return rc;
}

/* ---- Junos: show lldp neighbors | display json ---- */

static const char *junos_text(const struct weft_json *neighbor, const char *key)
{
    return text_of(weft_json_at(weft_json_get(neighbor, key), 0), "data");
}

static int read_junos(struct record *r, const struct weft_json *top, struct weft_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < weft_json_count(top); i++) {
        const struct weft_json *list =
            weft_json_get(weft_json_at(top, i), "lldp-neighbor-information");
        for (size_t n = 0; rc == 0 && n < weft_json_count(list); n++) {
            const struct weft_json *neighbor = weft_json_at(list, n);
            const char *id = junos_text(neighbor, "lldp-remote-port-id");
            const char *port = junos_text(neighbor, "lldp-local-port-id");
            const struct weft_lldp_words words = {
                .reporter = r->hostname,
                .port = port != NULL ? port : junos_text(neighbor, "lldp-local-interface"),
                .chassis = junos_text(neighbor, "lldp-remote-chassis-id"),
                .name = junos_text(neighbor, "lldp-remote-system-name"),
                .peer_port = id,
                .peer_port_descr = junos_text(neighbor, "lldp-remote-port-description"),
                .line = r->line};
            rc = weft_lldp_row(r->lldp, &words, err);
        }
    }
    return rc;
}

/* ---- NX-OS: show lldp neighbors [detail] | json native ---- */

static int read_nxos_row(struct record *r, const struct weft_json *row, struct weft_error *err)
{
    const char *caps = text_of(row, "enabled_capability");
    const char *name = text_of(row, "sys_name");
    const struct weft_lldp_words words = {.reporter = r->hostname,
                                          .port = text_of(row, "l_port_id"),
                                          .chassis = text_of(row, "chassis_id"),
                                          .name = name,
                                          .descr = text_of(row, "sys_desc"),
                                          .peer_port = text_of(row, "port_id"),
                                          .peer_port_descr = text_of(row, "port_desc"),
                                          .infrastructure =
                                              caps != NULL && strpbrk(caps, "BR") != NULL,
                                          .station = caps != NULL && strchr(caps, 'S') != NULL,
                                          .line = r->line};
    return weft_lldp_row(r->lldp, &words, err);
}

/* One row is an object, several are a list. */
static int read_nxos(struct record *r, const struct weft_json *rows, struct weft_error *err)
{
    if (weft_json_type(rows) == WEFT_JSON_OBJECT) {
        return read_nxos_row(r, rows, err);
    }
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < weft_json_count(rows); i++) {
        rc = read_nxos_row(r, weft_json_at(rows, i), err);
    }
    return rc;
}

/* ---- records ---- */

static int read_answer(struct record *r, const struct weft_json *root, struct weft_error *err)
{
    const struct weft_json *eos = weft_json_get(root, "lldpNeighbors");
    const struct weft_json *junos = weft_json_get(root, "lldp-neighbors-information");
    const struct weft_json *detail = weft_json_get(root, "TABLE_nbor_detail");
    const struct weft_json *nxos =
        detail != NULL ? weft_json_get(detail, "ROW_nbor_detail")
                       : weft_json_get(weft_json_get(root, "TABLE_nbor"), "ROW_nbor");
    if (eos != NULL) {
        return read_eos(r, eos, err);
    }
    if (junos != NULL) {
        return read_junos(r, junos, err);
    }
    if (nxos != NULL) {
        return read_nxos(r, nxos, err);
    }
    if (weft_json_get(root, "lldp") != NULL) {
        return weft_lldp_read_lldpd(r->lldp, root, r->hostname, err);
    }
    r->lldp->partial = true;
    weft_warn(&r->lldp->warnings, weft_lldp_file(r->lldp), r->line,
              "%.80s: the answer is of no form that weft knows (EOS, Junos, NX-OS, lldpd)",
              r->hostname);
    return 0;
}

/* A record of another command (CDP) says nothing of LLDP; one in text is lost. */
static bool is_wanted(struct record *r, const struct weft_json *record, const char *data)
{
    const char *cmd = text_of(record, "cmd");
    if (cmd != NULL && strcasestr(cmd, "lldp") == NULL) {
        return false;
    }
    const struct weft_str text = weft_str_trim(weft_str(data));
    if (weft_json_int(weft_json_get(record, "status"), 0) == 0 && text.len > 0 &&
        (text.data[0] == '{' || text.data[0] == '[')) {
        return true;
    }
    r->lldp->partial = true;
    weft_warn(&r->lldp->warnings, weft_lldp_file(r->lldp), r->line,
              "%.80s: the answer is no JSON, or the command failed: passed over", r->hostname);
    return false;
}

static int read_record(struct weft_lldp *lldp, const struct weft_json *record,
                       struct weft_error *err)
{
    struct record r = {
        .lldp = lldp, .hostname = text_of(record, "hostname"), .line = weft_json_line(record)};
    const struct weft_json *data = weft_json_get(record, "data");
    const char *text = weft_json_string(data);
    size_t reporter = 0;
    int rc = weft_lldp_reporter(lldp, r.hostname, &reporter, err);
    if (rc < 0) {
        return rc;
    }
    if (weft_json_type(data) == WEFT_JSON_OBJECT) {
        return read_answer(&r, data, err);
    }
    if (text == NULL || !is_wanted(&r, record, text)) {
        return 0;
    }
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    weft_autofree char *name = weft_asprintf("%s: data of %s", weft_lldp_file(lldp), r.hostname);
    rc = name == NULL ? weft_err_nomem(err) : weft_json_parse(text, strlen(text), name, &root, err);
    return rc < 0 ? rc : read_answer(&r, root, err);
}

int weft_lldp_read_records(struct weft_lldp *lldp, const struct weft_json *root,
                           struct weft_error *err)
{
    if (weft_json_type(root) == WEFT_JSON_OBJECT) {
        return read_record(lldp, root, err);
    }
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < weft_json_count(root); i++) {
        rc = read_record(lldp, weft_json_at(root, i), err);
    }
    return rc;
}
