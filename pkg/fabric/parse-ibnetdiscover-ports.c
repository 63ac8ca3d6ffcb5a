/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the port list of `ibnetdiscover -p`: one row a port, with its peer if it has one. The list
 * names a switch by its node GUID, but a channel adapter by the GUID of the port. */
#include <errno.h>
#include <string.h>

#include "pkg/fabric/fabric-internal.h"

enum { LINE_MAX_LEN = 4096 };

struct reader {
    struct weft_raw *raw;
    unsigned line;
};

/* "SW  1719 10 0x7cfe9003009ce5b0": one end of a row */
struct end {
    enum weft_device_kind kind;
    uint64_t guid;
    uint16_t port;
};

static void bad_row(struct reader *r, const char *what, struct weft_str line)
{
    const int shown = line.len > 60 ? 60 : (int)line.len;
    r->raw->partial = true;
    weft_raw_warn(r->raw, r->line, "%s: %.*s", what, shown, line.data);
}

static bool kind_of(struct weft_str word, enum weft_device_kind *ret_kind)
{
    static const char *const words[] = {
        [WEFT_DEVICE_SWITCH] = "SW", [WEFT_DEVICE_CA] = "CA", [WEFT_DEVICE_ROUTER] = "RT"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(words); i++) {
        if (weft_str_eq(word, words[i])) {
            *ret_kind = (enum weft_device_kind)i;
            return true;
        }
    }
    return false;
}

static bool take_end(struct weft_str *rest, struct end *ret_end)
{
    struct weft_str w = {0};
    uint64_t number = 0;
    if (!weft_str_word(rest, &w) || !kind_of(w, &ret_end->kind) || !weft_str_word(rest, &w) ||
        weft_parse_u64(w, UINT16_MAX, &number) < 0 || !weft_str_word(rest, &w) ||
        weft_parse_u64(w, WEFT_FABRIC_PORT_MAX, &number) < 0) {
        return false;
    }
    ret_end->port = (uint16_t)number;
    return weft_str_word(rest, &w) && weft_str_starts(w, "0x") &&
           weft_parse_hex64(w, &ret_end->guid) == 0;
}

/* The end's device. Ports of one adapter have consecutive GUIDs from the node's on (older cards) or
 * are adapters of their own with port 1: so the GUID less the port tells which belong together. */
static int device_of(struct reader *r, const struct end *end, uint32_t *ret_index)
{
    const int rc = weft_raw_device(r->raw, end->kind, end->guid, ret_index);
    if (rc == 0 && end->kind == WEFT_DEVICE_CA) {
        r->raw->devices[*ret_index].system_guid = end->guid - end->port;
    }
    return rc;
}

/* "4x" and "EDR" to Gb/s; 0: a link that is down ("??", "???"). */
static uint32_t rate_of(struct weft_str width, struct weft_str speed)
{
    uint64_t lanes = 0;
    if (!weft_str_ends(width, "x") ||
        weft_parse_u64((struct weft_str){width.data, width.len - 1}, 16, &lanes) < 0 ||
        weft_str_starts(speed, "?")) {
        return 0;
    }
    const uint64_t rate = lanes * weft_ib_lane_rate(speed) / 10;
    return rate > 0 ? (uint32_t)rate : 1;
}

static struct weft_str unquoted(struct weft_str s)
{
    s = weft_str_trim(s);
    if (s.len >= 2 && s.data[0] == '\'' && s.data[s.len - 1] == '\'') {
        return (struct weft_str){s.data + 1, s.len - 2};
    }
    return s;
}

/* "( 'own' - 'peer' )". The descriptions have no escape: where they hold the separator too, nobody
 * can tell whose words are whose, and both stay unknown. false if the row is cut. */
static bool take_names(struct reader *r, struct weft_str rest, struct weft_str *ret_own,
                       struct weft_str *ret_peer)
{
    rest = weft_str_trim(rest);
    if (rest.len < 2 || rest.data[0] != '(' || rest.data[rest.len - 1] != ')') {
        return false;
    }
    const struct weft_str inner = weft_str_trim((struct weft_str){rest.data + 1, rest.len - 2});
    const char *separator = inner.len > 0 && inner.data[0] == '\'' ? "' - '" : " - ";
    const size_t skip = strlen(separator);
    const char *first = memmem(inner.data, inner.len, separator, skip);
    if (first == NULL) {
        return false;
    }
    const struct weft_str after = {first + skip, (size_t)(inner.data + inner.len - first) - skip};
    if (memmem(after.data, after.len, separator, skip) != NULL) {
        weft_raw_warn(r->raw, r->line, "descriptions that hold the list's own \" - \" are ignored");
        return true;
    }
    const size_t quote = separator[0] == '\'';
    *ret_own = unquoted((struct weft_str){inner.data, (size_t)(first - inner.data) + quote});
    *ret_peer = unquoted((struct weft_str){after.data - quote, after.len + quote});
    return true;
}

static void describe_own(struct reader *r, uint32_t index, struct weft_str desc)
{
    struct raw_device *device = &r->raw->devices[index];
    if (device->line == 0) {
        device->desc = (struct weft_str){0}; /* its own word counts more than its peers' */
        device->line = r->line;
    }
    weft_raw_describe(device, desc);
}

static int add_row(struct reader *r, const struct end *own, const struct end *peer,
                   struct weft_str own_desc, struct weft_str peer_desc, uint32_t gbps)
{
    struct raw_link link = {.from_port = own->port, .gbps = gbps};
    int rc = device_of(r, own, &link.from);
    if (rc < 0) {
        return rc;
    }
    describe_own(r, link.from, own_desc);
    if (peer == NULL) {
        return 0;
    }
    rc = device_of(r, peer, &link.to);
    if (rc < 0) {
        return rc;
    }
    link.to_port = peer->port;
    if (r->raw->devices[link.to].line == 0) {
        weft_raw_describe(&r->raw->devices[link.to], peer_desc);
    }
    return gbps > 0 ? weft_raw_link(r->raw, &link) : 0;
}

static int read_row(struct reader *r, struct weft_str line)
{
    struct weft_str rest = line;
    struct weft_str width = {0};
    struct weft_str speed = {0};
    struct end own = {0};
    struct end peer = {0};
    if (line.len > LINE_MAX_LEN || !take_end(&rest, &own) || !weft_str_word(&rest, &width) ||
        !weft_str_word(&rest, &speed)) {
        bad_row(r, "row that cannot be read", line);
        return 0;
    }
    rest = weft_str_trim(rest);
    if (!weft_str_starts(rest, "- ")) {
        return add_row(r, &own, NULL, unquoted(rest), (struct weft_str){0}, 0);
    }
    struct weft_str own_desc = {0};
    struct weft_str peer_desc = {0};
    rest.data += 2;
    rest.len -= 2;
    if (!take_end(&rest, &peer) || !take_names(r, rest, &own_desc, &peer_desc)) {
        bad_row(r, "row that cannot be read", line);
        return 0;
    }
    if (own.port == 0 || peer.port == 0) {
        bad_row(r, "port 0 has no cable", line);
        return 0;
    }
    return add_row(r, &own, &peer, own_desc, peer_desc, rate_of(width, speed));
}

int weft_read_ib_ports(struct weft_str text, struct weft_raw *raw, unsigned *ret_lines,
                       struct weft_error *err)
{
    struct reader r = {.raw = raw};
    struct weft_str rest = text;
    struct weft_str line = {0};
    while (weft_str_line(&rest, &line)) {
        *ret_lines = ++r.line;
        line = weft_str_trim(line);
        if (line.len == 0 || line.data[0] == '#') {
            continue;
        }
        const int rc = read_row(&r, line);
        if (rc < 0) {
            return rc;
        }
    }
    return weft_raw_check_end(raw, text, *ret_lines, err);
}
