/* SPDX-License-Identifier: Apache-2.0 */
/* Reads ibnetdiscover's text line by line. Accepts what files go through on their way (terminal
 * logs, CR, lost tabs, missing ends); never guesses a GUID. It only collects; what the lines mean
 * together is assemble.c's and hosts.c's work. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "pkg/fabric/fabric-internal.h"

/* a longer line is no line of ibnetdiscover */
enum { LINE_MAX_LEN = 4096 };

struct reader {
    struct weft_raw *raw;
    const char *text;
    size_t len;
    unsigned line;
    /* the key=value lines before a record */
    uint64_t system_guid;
    uint64_t node_guid;
    uint32_t device_id;
    unsigned header_line; /* of the first of them; 0: none */
    /* the record that is open */
    bool open;
    bool skip; /* its id cannot be read: its port lines are lost */
    uint32_t device;
    unsigned record_line;
    unsigned record_ports;
    unsigned bad_line; /* the last line, if it was a port line that could not be read */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct weft_str *s)
{
    while (s->len > 0 && is_blank(*s->data)) {
        s->data++;
        s->len--;
    }
}

static void advance(struct weft_str *s, size_t len)
{
    s->data += len;
    s->len -= len;
}

/* "0x2c9…" up to the first other character, which must end the value. */
static bool read_hex(struct weft_str s, uint64_t *ret_value)
{
    if (weft_str_starts(s, "0x")) {
        advance(&s, 2);
    }
    size_t n = 0;
    while (n < s.len && isxdigit((unsigned char)s.data[n])) {
        n++;
    }
    if (n < s.len && !is_blank(s.data[n]) && s.data[n] != '(' && s.data[n] != '#') {
        return false;
    }
    return weft_parse_hex64((struct weft_str){s.data, n}, ret_value) == 0;
}

/* Takes "open … close" off the front. */
static bool take_bracketed(struct weft_str *s, char open, char close, struct weft_str *ret_inner)
{
    if (s->len == 0 || *s->data != open) {
        return false;
    }
    const char *end = memchr(s->data + 1, close, s->len - 1);
    if (end == NULL) {
        return false;
    }
    *ret_inner = (struct weft_str){s->data + 1, (size_t)(end - s->data) - 1};
    advance(s, (size_t)(end - s->data) + 1);
    return true;
}

/* "[n]", then any of "[ext n]" and "(guid)". */
static bool take_port(struct weft_str *s, uint16_t *ret_port)
{
    struct weft_str inner = {0};
    uint64_t port = 0;
    skip_blanks(s);
    if (!take_bracketed(s, '[', ']', &inner) ||
        weft_parse_u64(weft_str_trim(inner), WEFT_FABRIC_PORT_MAX, &port) < 0 || port == 0) {
        return false;
    }
    do {
        skip_blanks(s);
    } while (take_bracketed(s, '[', ']', &inner) || take_bracketed(s, '(', ')', &inner));
    *ret_port = (uint16_t)port;
    return true;
}

static bool kind_of_prefix(char prefix, enum weft_device_kind *ret_kind)
{
    switch (prefix) {
    case 'S':
        *ret_kind = WEFT_DEVICE_SWITCH;
        return true;
    case 'H':
        *ret_kind = WEFT_DEVICE_CA;
        return true;
    case 'R':
        *ret_kind = WEFT_DEVICE_ROUTER;
        return true;
    default:
        return false;
    }
}

/* A quoted id: "S-<hex>" and its like, or (simulator nets) any text, whose kind only its record
 * says. 0, -EINVAL, or a failure to add the device. */
static int take_id(struct reader *r, struct weft_str *s, uint32_t *ret_device)
{
    struct weft_str id = {0};
    skip_blanks(s);
    if (!take_bracketed(s, '"', '"', &id) || id.len == 0) {
        return -EINVAL;
    }
    enum weft_device_kind kind = RAW_KIND_UNKNOWN;
    uint64_t guid = 0;
    if (id.len > 2 && id.data[1] == '-' && kind_of_prefix(id.data[0], &kind)) {
        if (weft_parse_hex64((struct weft_str){id.data + 2, id.len - 2}, &guid) < 0) {
            return -EINVAL;
        }
        return weft_raw_device(r->raw, kind, guid, ret_device);
    }
    if (id.data[0] == '?') {
        return -EINVAL;
    }
    guid = weft_hash64(WEFT_HASH_SEED, id.data, id.len);
    const int rc = weft_raw_device(r->raw, RAW_KIND_UNKNOWN, guid, ret_device);
    if (rc == 0 && r->raw->devices[*ret_device].line == 0) {
        weft_raw_describe(&r->raw->devices[*ret_device], id);
    }
    return rc;
}

/* From the first to the last quote: a description may hold anything else, and has no escape. */
static struct weft_str description(struct weft_str s, struct weft_str *ret_after)
{
    const char *first = s.len > 0 ? memchr(s.data, '"', s.len) : NULL;
    const char *last = s.len > 0 ? memrchr(s.data, '"', s.len) : NULL;
    *ret_after = s;
    if (first == NULL || last == first) {
        return (struct weft_str){0};
    }
    *ret_after = (struct weft_str){last + 1, (size_t)(s.data + s.len - last) - 1};
    return weft_str_trim((struct weft_str){first + 1, (size_t)(last - first) - 1});
}

/* "… lid 647 4xNDR": the word of the form <width>x<speed>; 1 if there is none that is known. */
static uint32_t link_gbps(struct weft_str tail)
{
    struct weft_str word = {0};
    while (weft_str_word(&tail, &word)) {
        const char *x = memchr(word.data, 'x', word.len);
        if (x == NULL) {
            continue;
        }
        const size_t digits = (size_t)(x - word.data);
        uint64_t width = 0;
        if (weft_parse_u64((struct weft_str){word.data, digits}, 16, &width) < 0) {
            continue;
        }
        const uint64_t rate =
            width * weft_ib_lane_rate((struct weft_str){x + 1, word.len - digits - 1}) / 10;
        return rate > 0 ? (uint32_t)rate : 1;
    }
    return 1;
}

static void lost_line(struct reader *r, const char *what, struct weft_str line)
{
    r->raw->partial = true;
    r->bad_line = r->line;
    const int shown = line.len > 60 ? 60 : (int)line.len;
    weft_raw_warn(r->raw, r->line, "%s: %.*s", what, shown, line.data);
}

static int port_line(struct reader *r, struct weft_str line)
{
    if (!r->open || r->skip) {
        lost_line(r, "port line without a record", line);
        return 0;
    }
    struct weft_str s = line;
    struct raw_link link = {.from = r->device};
    int rc = take_port(&s, &link.from_port) ? take_id(r, &s, &link.to) : -EINVAL;
    if (rc == -EINVAL || (rc == 0 && !take_port(&s, &link.to_port))) {
        lost_line(r, "port line that cannot be read", line);
        return 0;
    }
    if (rc < 0) {
        return rc;
    }
    struct weft_str after = {0};
    const struct weft_str desc = description(s, &after);
    struct raw_device *peer = &r->raw->devices[link.to];
    if (peer->line == 0) {
        weft_raw_describe(peer, desc);
    }
    link.gbps = link_gbps(after);
    r->record_ports++;
    return weft_raw_link(r->raw, &link);
}

static void clear_header(struct reader *r)
{
    r->system_guid = 0;
    r->node_guid = 0;
    r->device_id = 0;
    r->header_line = 0;
}

static void end_record(struct reader *r)
{
    r->open = false;
    r->skip = false;
    r->record_ports = 0;
    clear_header(r);
}

/* What a record says about its device; a second record of it (several runs in one file) adds. */
static void fill_device(struct reader *r, struct raw_device *device, struct weft_str desc)
{
    if (device->line == 0) {
        device->desc = (struct weft_str){0}; /* its own word counts more than its peers' */
        device->line = r->line;
    }
    weft_raw_describe(device, desc);
    if (r->system_guid != 0 && (device->system_guid == 0 || r->system_guid < device->system_guid)) {
        device->system_guid = r->system_guid;
    }
    if (r->device_id != 0 && (device->device_id == 0 || r->device_id < device->device_id)) {
        device->device_id = r->device_id;
    }
    if (r->node_guid != 0 && r->node_guid != device->guid) {
        weft_raw_warn(r->raw, r->line, "the record's id is not the GUID of its header");
    }
}

static int record_line(struct reader *r, struct weft_str line, size_t keyword,
                       enum weft_device_kind kind)
{
    const unsigned header_line = r->header_line;
    struct weft_str s = line;
    advance(&s, keyword);
    skip_blanks(&s);
    while (s.len > 0 && isdigit((unsigned char)*s.data)) {
        advance(&s, 1);
    }
    r->open = true;
    r->skip = false;
    r->record_line = header_line != 0 ? header_line : r->line;
    r->record_ports = 0;
    const int rc = take_id(r, &s, &r->device);
    if (rc == -EINVAL) {
        lost_line(r, "record whose GUID cannot be read", line);
        r->skip = true;
        clear_header(r);
        return 0;
    }
    if (rc < 0) {
        return rc;
    }
    struct raw_device *device = &r->raw->devices[r->device];
    struct weft_str after = {0};
    struct weft_str desc = description(s, &after);
    if (device->kind == RAW_KIND_UNKNOWN) {
        device->kind = kind;
        desc = desc.len > 0 ? desc : device->desc;
    } else if (device->kind != kind) {
        lost_line(r, "record of one kind with the id of another", line);
        r->skip = true;
    }
    fill_device(r, device, desc);
    clear_header(r);
    return 0;
}

static bool header_line(struct reader *r, struct weft_str line)
{
    const char *equals = memchr(line.data, '=', line.len);
    if (equals == NULL) {
        return false;
    }
    const struct weft_str key = {line.data, (size_t)(equals - line.data)};
    const struct weft_str value = {equals + 1, line.len - key.len - 1};
    const bool guid =
        weft_str_eq(key, "switchguid") || weft_str_eq(key, "caguid") || weft_str_eq(key, "rtguid");
    const bool system = weft_str_eq(key, "sysimgguid");
    const bool id = weft_str_eq(key, "devid");
    if (!guid && !system && !id && !weft_str_eq(key, "vendid")) {
        return false;
    }
    if (r->open) {
        end_record(r); /* the blank line between was lost */
    }
    if (r->header_line == 0) {
        r->header_line = r->line;
    }
    uint64_t number = 0;
    if (!read_hex(value, &number)) {
        weft_raw_warn(r->raw, r->line, "%.*s is not hexadecimal", WEFT_STR_ARG(key));
    } else if (guid) {
        r->node_guid = number;
    } else if (system) {
        r->system_guid = number;
    } else if (id) {
        r->device_id = (uint32_t)number;
    }
    return true;
}

static bool keyword_of(struct weft_str line, size_t *ret_len, enum weft_device_kind *ret_kind)
{
    static const struct {
        const char *word;
        enum weft_device_kind kind;
    } words[] = {{"Switch", WEFT_DEVICE_SWITCH},
                 {"Ca", WEFT_DEVICE_CA},
                 {"Hca", WEFT_DEVICE_CA},
                 {"Rt", WEFT_DEVICE_ROUTER}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(words); i++) {
        const size_t len = strlen(words[i].word);
        if (weft_str_starts(line, words[i].word) && line.len > len &&
            (is_blank(line.data[len]) || isdigit((unsigned char)line.data[len]))) {
            *ret_len = len;
            *ret_kind = words[i].kind;
            return true;
        }
    }
    return false;
}

/* The scan's own complaints may be in the text: then something is missing. */
static void other_line(struct reader *r, struct weft_str line)
{
    static const char *const signs[] = {"timeout", "timed out", "failed", "omitted"};
    const int shown = line.len > 60 ? 60 : (int)line.len;
    for (size_t i = 0; i < WEFT_ARRAY_LEN(signs); i++) {
        if (memmem(line.data, line.len, signs[i], strlen(signs[i])) != NULL) {
            r->raw->partial = true;
            weft_raw_warn(r->raw, r->line, "the scan is incomplete: %.*s", shown, line.data);
            return;
        }
    }
    /* ibnetdiscover -g prints headings about chassis */
    if (!weft_str_starts(line, "Chassis") && !weft_str_starts(line, "Non-Chassis")) {
        weft_raw_warn(r->raw, r->line, "ignored: %.*s", shown, line.data);
    }
}

static int read_line(struct reader *r, struct weft_str raw_line)
{
    const struct weft_str line = weft_str_trim(raw_line);
    size_t keyword = 0;
    enum weft_device_kind kind = WEFT_DEVICE_SWITCH;
    if (line.len == 0) {
        end_record(r);
        return 0;
    }
    if (line.len > LINE_MAX_LEN) {
        lost_line(r, "line is too long", line);
        return 0;
    }
    if (line.data[0] == '[') {
        return port_line(r, line);
    }
    if (line.data[0] == '#') {
        return 0;
    }
    if (keyword_of(line, &keyword, &kind)) {
        if (r->open) {
            end_record(r);
        }
        return record_line(r, line, keyword, kind);
    }
    if (!header_line(r, line)) {
        other_line(r, line);
    }
    return 0;
}

/* A text that stops inside a record has lost an unknown part: better no answer than half of one. */
static int check_end(const struct reader *r, struct weft_error *err)
{
    const char *source = r->raw->source;
    if (r->header_line != 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: the dump ends in the middle of this record", source,
                            r->header_line);
    }
    if (r->open && !r->skip && r->record_ports == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: the dump ends in the middle of this record: no port follows",
                            source, r->record_line);
    }
    if (r->bad_line == r->line && r->line > 0 && r->len > 0 && r->text[r->len - 1] != '\n') {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: the dump ends in the middle of this line", source, r->line);
    }
    return 0;
}

int weft_read_ibnetdiscover(struct weft_str text, struct weft_raw *raw, unsigned *ret_lines,
                            struct weft_error *err)
{
    struct reader r = {.raw = raw, .text = text.data, .len = text.len};
    struct weft_str rest = text;
    struct weft_str line = {0};
    int rc = 0;
    while (rc == 0 && weft_str_line(&rest, &line)) {
        *ret_lines = ++r.line;
        rc = read_line(&r, line);
    }
    return rc == 0 ? check_end(&r, err) : rc;
}
