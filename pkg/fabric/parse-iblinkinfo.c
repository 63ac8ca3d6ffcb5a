/* SPDX-License-Identifier: Apache-2.0 */
/* Reads `iblinkinfo` (infiniband-diags). It names a port's peer by LID and description only; a LID
 * is unique within one subnet, so each is looked up among the rows of the whole text. */
#include <errno.h>
#include <string.h>

#include "pkg/fabric/fabric-internal.h"

enum { LINE_MAX_LEN = 4096, LID_MAX = 0xffff };

/* A row whose peer is known by LID until all rows are read. */
struct sighting {
    struct raw_link link;
    uint16_t lid;
    unsigned line;
    struct weft_str desc; /* of the peer */
};

struct reader {
    struct weft_raw *raw;
    unsigned line;
    /* the record that is open */
    bool open;
    bool is_switch;
    uint32_t device; /* of a switch */
    struct weft_str desc;
    /* LID to device index; UINT64_MAX: several devices say it is theirs */
    struct weft_idmap lids;
    struct sighting *sightings;
    size_t count;
    size_t cap;
};

static int bad_row(struct reader *r, const char *what, struct weft_str line)
{
    const int shown = line.len > 60 ? 60 : (int)line.len;
    r->raw->partial = true;
    weft_raw_warn(r->raw, r->line, "%s: %.*s", what, shown, line.data);
    return 0;
}

static void set_own(struct reader *r, uint32_t index, struct weft_str desc)
{
    struct raw_device *device = &r->raw->devices[index];
    device->line = device->line == 0 ? r->line : device->line;
    weft_raw_describe(device, desc);
}

/* "Switch: 0x0002c902004b2678 Infiniscale-IV:" or "CA: node-1 HCA-1:" */
static int record_line(struct reader *r, struct weft_str line, size_t keyword, bool is_switch)
{
    struct weft_str rest = {line.data + keyword, line.len - keyword};
    struct weft_str guid_word = {0};
    uint64_t guid = 0;
    r->open = false;
    if (!weft_str_ends(rest, ":") ||
        (is_switch && (!weft_str_word(&rest, &guid_word) || !weft_str_starts(guid_word, "0x") ||
                       weft_parse_hex64(guid_word, &guid) < 0))) {
        return bad_row(r, "record whose head cannot be read", line);
    }
    rest.len -= rest.len > 0;
    r->open = true;
    r->is_switch = is_switch;
    r->desc = weft_str_trim(rest);
    if (!is_switch) {
        return 0;
    }
    const int rc = weft_raw_device(r->raw, WEFT_DEVICE_SWITCH, guid, &r->device);
    if (rc == 0) {
        set_own(r, r->device, r->desc);
    }
    return rc;
}

/* "2    9[  ]": LID, port, the external port of a chassis; a peer that is away has neither. */
static bool take_lid_port(struct weft_str *rest, uint16_t *ret_lid, uint16_t *ret_port)
{
    struct weft_str word = {0};
    uint64_t lid = 0;
    uint64_t port = 0;
    if (!weft_str_word(rest, &word) || weft_parse_u64(word, LID_MAX, &lid) < 0) {
        return false;
    }
    *rest = weft_str_trim(*rest);
    const char *bracket = rest->len > 0 ? memchr(rest->data, '[', rest->len) : NULL;
    const char *end =
        bracket != NULL ? memchr(bracket, ']', (size_t)(rest->data + rest->len - bracket)) : NULL;
    if (end == NULL ||
        weft_parse_u64(weft_str_trim((struct weft_str){rest->data, (size_t)(bracket - rest->data)}),
                       WEFT_FABRIC_PORT_MAX, &port) < 0) {
        return false;
    }
    rest->len -= (size_t)(end + 1 - rest->data);
    rest->data = end + 1;
    *ret_lid = (uint16_t)lid;
    *ret_port = (uint16_t)port;
    return true;
}

/* " 4X  25.78125 Gbps Active/  LinkUp" to Gb/s by the lane's whole number; 1 if it is not known. */
static uint32_t rate_of(struct weft_str state)
{
    /* what 64b/66b and PAM4 coding add is left out, as the speeds' names do */
    static const struct {
        unsigned shown, gbps10;
    } lanes[] = {{2, 25},   {5, 50},   {10, 100},   {14, 140},
                 {25, 250}, {53, 500}, {106, 1000}, {212, 2000}};
    struct weft_str width = {0};
    struct weft_str speed = {0};
    struct weft_str whole = {0};
    uint64_t count = 0;
    uint64_t shown = 0;
    if (!weft_str_word(&state, &width) || !weft_str_ends(width, "X") ||
        weft_parse_u64((struct weft_str){width.data, width.len - 1}, 16, &count) < 0 ||
        !weft_str_word(&state, &speed) || !weft_str_split(&speed, '.', &whole) ||
        weft_parse_u64(whole, 1000, &shown) < 0) {
        return 1;
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(lanes); i++) {
        if (lanes[i].shown == shown && count > 0) {
            return (uint32_t)(count * lanes[i].gbps10 / 10);
        }
    }
    return 1;
}

/* A LID belongs to one device; of a switch all ports have it, of an adapter each has its own. */
static int claim_lid(struct reader *r, uint16_t lid, uint32_t device)
{
    uint64_t *owner = NULL;
    bool is_new = false;
    if (lid == 0) {
        return 0;
    }
    const int rc = weft_idmap_at(&r->lids, lid, &owner, &is_new);
    if (rc == 0) {
        *owner = is_new || *owner == device ? device : UINT64_MAX;
    }
    return rc;
}

/* An adapter's row says the port's GUID; a switch's rows leave it out. */
static int own_device(struct reader *r, struct weft_str *own, uint32_t *ret_index)
{
    struct weft_str word = {0};
    uint64_t guid = 0;
    if (r->is_switch) {
        *ret_index = r->device;
        return 0;
    }
    if (!weft_str_word(own, &word) || !weft_str_starts(word, "0x") ||
        weft_parse_hex64(word, &guid) < 0) {
        return -EINVAL;
    }
    return weft_raw_device(r->raw, WEFT_DEVICE_CA, guid, ret_index);
}

/* The quoted description behind the peer's port: to the last quote before the closing remark. */
static bool take_peer_desc(struct weft_str rest, struct weft_str *ret_desc)
{
    const char *first = rest.len > 0 ? memchr(rest.data, '"', rest.len) : NULL;
    const char *last = rest.len > 0 ? memrchr(rest.data, '"', rest.len) : NULL;
    if (first == NULL || last == first) {
        return false;
    }
    *ret_desc = weft_str_trim((struct weft_str){first + 1, (size_t)(last - first) - 1});
    return true;
}

static int add_sighting(struct reader *r, const struct sighting *sighting)
{
    void *list = r->sightings;
    const int rc = weft_array_reserve(&list, &r->cap, r->count + 1, sizeof(*r->sightings),
                                      2 * (size_t)WEFT_FABRIC_LINKS_MAX);
    r->sightings = list;
    if (rc == 0) {
        r->sightings[r->count++] = *sighting;
    }
    return rc;
}

/* "[0xguid] lid port[ext] ==( width speed state/phys)==> [lid] [port][ext] "peer" ( remarks )" */
static int port_line(struct reader *r, struct weft_str line, const char *arrow, const char *tip)
{
    struct weft_str own = {line.data, (size_t)(arrow - line.data)};
    const struct weft_str state = {arrow + 3, (size_t)(tip - arrow) - 3};
    struct weft_str peer = {tip + 4, (size_t)(line.data + line.len - tip) - 4};
    struct sighting seen = {.line = r->line, .link = {.gbps = rate_of(state)}};
    uint16_t lid = 0;
    if (!r->open) {
        return bad_row(r, "port without a record", line);
    }
    int rc = own_device(r, &own, &seen.link.from);
    if (rc == -EINVAL || (rc == 0 && !take_lid_port(&own, &lid, &seen.link.from_port))) {
        return bad_row(r, "port that cannot be read", line);
    }
    if (rc == 0 && !r->is_switch) {
        r->raw->devices[seen.link.from].system_guid =
            r->raw->devices[seen.link.from].guid - seen.link.from_port;
        set_own(r, seen.link.from, r->desc);
    }
    rc = rc == 0 ? claim_lid(r, lid, seen.link.from) : rc;
    if (rc < 0 || memmem(state.data, state.len, "LinkUp", 6) == NULL) {
        return rc;
    }
    if (!take_lid_port(&peer, &seen.lid, &seen.link.to_port) || !take_peer_desc(peer, &seen.desc) ||
        seen.link.from_port == 0 || seen.link.to_port == 0) {
        return bad_row(r, "port whose peer cannot be read", line);
    }
    return add_sighting(r, &seen);
}

static int read_line(struct reader *r, struct weft_str line)
{
    if (line.len == 0 || line.data[0] == '#') {
        return 0;
    }
    if (line.len > LINE_MAX_LEN) {
        return bad_row(r, "line is too long", line);
    }
    if (weft_str_starts(line, "Switch: ")) {
        return record_line(r, line, strlen("Switch: "), true);
    }
    if (weft_str_starts(line, "CA: ")) {
        return record_line(r, line, strlen("CA: "), false);
    }
    const char *arrow = memmem(line.data, line.len, "==(", 3);
    const char *tip = memmem(line.data, line.len, ")==>", 4);
    if (arrow == NULL || tip == NULL || tip < arrow + 3) {
        return bad_row(r, "line that cannot be read", line);
    }
    return port_line(r, line, arrow, tip);
}

/* Each peer's LID to its device. A peer without rows of its own is missing from the text. */
static int resolve(struct reader *r, struct weft_error *err)
{
    size_t without = 0;
    for (size_t i = 0; i < r->count; i++) {
        struct sighting *seen = &r->sightings[i];
        uint64_t device = UINT64_MAX;
        without += seen->lid == 0;
        if (seen->lid == 0) {
            continue;
        }
        const bool known = weft_idmap_get(&r->lids, seen->lid, &device);
        if (!known || device == UINT64_MAX) {
            r->raw->partial = true;
            weft_raw_warn(r->raw, seen->line,
                          known ? "LID %u of the peer \"%.*s\" belongs to several devices"
                                : "the peer with LID %u, \"%.*s\", has no record of its own",
                          (unsigned)seen->lid, (int)seen->desc.len, seen->desc.data);
            continue;
        }
        seen->link.to = (uint32_t)device;
        const int rc = weft_raw_link(r->raw, &seen->link);
        if (rc < 0) {
            return rc;
        }
    }
    if (without > 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s: %zu of %zu peers have LID 0, so the list does not say who they "
                            "are: is a subnet manager running? ibnetdiscover needs none",
                            r->raw->source, without, r->count);
    }
    return 0;
}

int weft_read_iblinkinfo(struct weft_str text, struct weft_raw *raw, unsigned *ret_lines,
                         struct weft_error *err)
{
    struct reader r = {.raw = raw};
    struct weft_str rest = text;
    struct weft_str line = {0};
    int rc = 0;
    weft_idmap_init(&r.lids, LID_MAX);
    while (rc == 0 && weft_str_line(&rest, &line)) {
        *ret_lines = ++r.line;
        rc = read_line(&r, weft_str_trim(line));
    }
    rc = rc == 0 ? weft_raw_check_end(raw, text, *ret_lines, err) : rc;
    rc = rc == 0 ? resolve(&r, err) : rc;
    weft_idmap_done(&r.lids);
    weft_free(r.sightings);
    return rc;
}
