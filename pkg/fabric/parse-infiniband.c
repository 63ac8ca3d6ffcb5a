/* SPDX-License-Identifier: Apache-2.0 */
/* Which of InfiniBand's tools wrote a text, and its reader. Formats that say nothing about who is
 * cabled to whom, or only what somebody planned, are named and refused. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "pkg/fabric/fabric-internal.h"

enum {
    /* lines that are looked at: terminal logs and comments come first, then the text itself */
    LOOK_MAX = 400,
    WORDS_MAX = 8,
};

enum format {
    FORMAT_UNKNOWN,
    FORMAT_IBNETDISCOVER,
    FORMAT_PORTS,
    FORMAT_IBLINKINFO,
    /* not read: */
    FORMAT_LINE_MODE,
    FORMAT_IBSWINFO,
    FORMAT_LST,
    FORMAT_PLAN,
    FORMAT_CABLES,
    FORMAT_FDBS,
    FORMAT_IBNL,
    FORMAT_COUNT
};

static const char *reason(enum format format)
{
    static const char *const reasons[FORMAT_COUNT] = {
        [FORMAT_LINE_MODE] = "iblinkinfo --line does not say which of its GUIDs are switches; run "
                             "iblinkinfo without -l, or ibnetdiscover",
        [FORMAT_IBSWINFO] = "ibswinfo tells about one switch's hardware and no cable; run "
                            "ibnetdiscover",
        [FORMAT_LST] =
            "ibdiagnet's link list marks switches as adapters in some versions; run ibnetdiscover",
        [FORMAT_PLAN] = "a topology file of ibutils is a plan without GUIDs, not what is cabled; "
                        "run ibnetdiscover",
        [FORMAT_CABLES] = "a cable list of ibutils is a plan without GUIDs, not what is cabled; "
                          "run ibnetdiscover",
        [FORMAT_FDBS] = "forwarding tables do not say the cables; run ibnetdiscover",
        [FORMAT_IBNL] = "an ibnl file describes the inside of a switch model, not a fabric; run "
                        "ibnetdiscover",
    };
    return reasons[format];
}

/* ---- telling them apart ---- */

/* A port of ibutils: "P1", "L1/P12", "M/P3". */
static bool is_plan_port(struct weft_str word)
{
    const char *slash = word.len > 0 ? memrchr(word.data, '/', word.len) : NULL;
    const size_t skip = slash != NULL ? (size_t)(slash - word.data) + 1 : 0;
    if (word.len < skip + 2 || word.data[skip] != 'P') {
        return false;
    }
    for (size_t i = skip + 1; i < word.len; i++) {
        if (!isdigit((unsigned char)word.data[i])) {
            return false;
        }
    }
    return true;
}

static bool is_number(struct weft_str word)
{
    uint64_t value = 0;
    return weft_parse_u64(word, UINT64_MAX, &value) == 0;
}

static bool is_node_type(struct weft_str word)
{
    return weft_str_eq(word, "CA") || weft_str_eq(word, "SW") || weft_str_eq(word, "RT");
}

/* The first words of a line; how many there are, at most WORDS_MAX. */
static size_t split(struct weft_str line, struct weft_str *words)
{
    size_t count = 0;
    while (count < WORDS_MAX && weft_str_word(&line, &words[count])) {
        count++;
    }
    return count;
}

static bool is_ports_row(const struct weft_str *w, size_t count)
{
    return count >= 5 && is_node_type(w[0]) && is_number(w[1]) && is_number(w[2]) &&
           weft_str_starts(w[3], "0x");
}

static bool is_plan_row(const struct weft_str *w, size_t count)
{
    return count == 5 && is_plan_port(w[0]) && is_plan_port(w[4]) && weft_str_ends(w[1], "->");
}

static bool is_cables_row(const struct weft_str *w, size_t count)
{
    return count == 6 && is_plan_port(w[2]) && is_plan_port(w[5]);
}

static bool is_ibnl_row(const struct weft_str *w, size_t count)
{
    return count >= 4 && weft_str_eq(w[0], "NODE") && is_node_type(w[1]) && is_number(w[2]);
}

static bool is_ibswinfo_row(const struct weft_str *w, size_t count)
{
    return count >= 3 && weft_str_eq(w[0], "part") && weft_str_eq(w[1], "number") &&
           weft_str_eq(w[2], "|");
}

static enum format format_by_words(struct weft_str line)
{
    static const struct {
        bool (*is)(const struct weft_str *words, size_t count);
        enum format format;
    } rows[] = {{is_ports_row, FORMAT_PORTS},
                {is_plan_row, FORMAT_PLAN},
                {is_cables_row, FORMAT_CABLES},
                {is_ibnl_row, FORMAT_IBNL},
                {is_ibswinfo_row, FORMAT_IBSWINFO}};
    struct weft_str words[WORDS_MAX] = {0};
    const size_t count = split(line, words);
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        if (rows[i].is(words, count)) {
            return rows[i].format;
        }
    }
    return FORMAT_UNKNOWN;
}

static bool starts_record(struct weft_str line)
{
    static const char *const signs[] = {"switchguid=", "caguid=", "rtguid=", "vendid="};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(signs); i++) {
        if (weft_str_starts(line, signs[i])) {
            return true;
        }
    }
    static const char *const words[] = {"Switch", "Ca", "Hca"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(words); i++) {
        const size_t len = strlen(words[i]);
        if (weft_str_starts(line, words[i]) && line.len > len && line.data[len] != ':' &&
            memmem(line.data, line.len, "\"", 1) != NULL) {
            return true;
        }
    }
    return false;
}

static enum format format_of_line(struct weft_str line)
{
    if (starts_record(line)) {
        return FORMAT_IBNETDISCOVER;
    }
    if (weft_str_starts(line, "Switch: 0x") || weft_str_starts(line, "CA: ")) {
        return FORMAT_IBLINKINFO;
    }
    if (memmem(line.data, line.len, ")==>", 4) != NULL) {
        /* iblinkinfo --line: "0x… "desc" lid port…"; plain: "0x… lid port…" or "lid port…" */
        const char *quote = memchr(line.data, '"', line.len);
        const char *arrow = memmem(line.data, line.len, "==(", 3);
        return quote != NULL && arrow != NULL && quote < arrow ? FORMAT_LINE_MODE
                                                               : FORMAT_IBLINKINFO;
    }
    if (weft_str_starts(line, "{ ") && memmem(line.data, line.len, "NodeGUID:", 9) != NULL) {
        return FORMAT_LST;
    }
    if (weft_str_starts(line, "dump_ucast_routes:")) {
        return FORMAT_FDBS;
    }
    return format_by_words(line);
}

/* The first line that only one tool writes decides. */
static enum format format_of(struct weft_str text, unsigned *ret_line)
{
    struct weft_str line = {0};
    for (unsigned i = 1; i <= LOOK_MAX && weft_str_line(&text, &line); i++) {
        line = weft_str_trim(line);
        const enum format format =
            line.len > 0 && line.data[0] != '#' ? format_of_line(line) : FORMAT_UNKNOWN;
        if (format != FORMAT_UNKNOWN) {
            *ret_line = i;
            return format;
        }
    }
    return FORMAT_UNKNOWN;
}

/* ---- reading ---- */

/* Lane rates in tenths of Gb/s (InfiniBand Architecture Specification, link speeds). */
unsigned weft_ib_lane_rate(struct weft_str speed)
{
    static const struct {
        const char *name;
        unsigned rate;
    } rates[] = {{"SDR", 25},  {"DDR", 50},  {"QDR", 100},  {"FDR10", 103}, {"FDR", 140},
                 {"EDR", 250}, {"HDR", 500}, {"NDR", 1000}, {"XDR", 2000}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rates); i++) {
        if (weft_str_eq(speed, rates[i].name)) {
            return rates[i].rate;
        }
    }
    return 0;
}

int weft_raw_check_end(const struct weft_raw *raw, struct weft_str text, unsigned lines,
                       struct weft_error *err)
{
    if (text.len == 0 || text.data[text.len - 1] == '\n' ||
        weft_str_ends(weft_str_trim(text), ")")) {
        return 0;
    }
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                        "%s:%u: the list ends in the middle of this row", raw->source, lines);
}

static int check_content(const struct weft_raw *raw, unsigned lines, struct weft_error *err)
{
    size_t switches = 0;
    for (size_t i = 0; i < raw->device_count; i++) {
        switches += raw->devices[i].kind == WEFT_DEVICE_SWITCH;
    }
    if (switches > 0 && raw->link_count > 0) {
        return 0;
    }
    const char *what = switches == 0 ? "no switch" : "no link";
    if (raw->warning_count > 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s in %u lines; %s", what, lines,
                            raw->warnings[0]);
    }
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                        "%s:%u: %s in the whole file; is it the output of ibnetdiscover?",
                        raw->source, lines, what);
}

static int read_format(enum format format, struct weft_str text, struct weft_raw *raw,
                       unsigned *ret_lines, struct weft_error *err)
{
    switch (format) {
    case FORMAT_PORTS:
        return weft_read_ib_ports(text, raw, ret_lines, err);
    case FORMAT_IBLINKINFO:
        return weft_read_iblinkinfo(text, raw, ret_lines, err);
    case FORMAT_UNKNOWN: /* its errors say what is missing */
    case FORMAT_IBNETDISCOVER:
    case FORMAT_LINE_MODE:
    case FORMAT_IBSWINFO:
    case FORMAT_LST:
    case FORMAT_PLAN:
    case FORMAT_CABLES:
    case FORMAT_FDBS:
    case FORMAT_IBNL:
    case FORMAT_COUNT:
        break;
    }
    return weft_read_ibnetdiscover(text, raw, ret_lines, err);
}

static int parse(enum format format, struct weft_str text, const char *source,
                 struct weft_fabric **ret_fabric, struct weft_error *err)
{
    weft_auto(weft_raw_done) struct weft_raw raw;
    weft_raw_init(&raw, source);
    unsigned lines = 0;
    int rc = read_format(format, text, &raw, &lines, err);
    if (rc == -ENOMEM) {
        return weft_err_nomem(err);
    }
    if (rc == -EFBIG) {
        return weft_err_set(err, rc, WEFT_ERR_CONFIG,
                            "%s:%u: more devices or links than weft reads (%d, %d)", source, lines,
                            (int)WEFT_FABRIC_DEVICES_MAX, (int)WEFT_FABRIC_LINKS_MAX);
    }
    rc = rc == 0 ? check_content(&raw, lines, err) : rc;
    return rc == 0 ? weft_raw_finish(&raw, ret_fabric, err) : rc;
}

static int check_size(size_t len, const char *source, struct weft_error *err)
{
    return len <= WEFT_FABRIC_TEXT_MAX
               ? 0
               : weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s: larger than %d MiB", source,
                              (int)(WEFT_FABRIC_TEXT_MAX >> 20));
}

int weft_parse_infiniband(const char *text, size_t len, const char *source,
                          struct weft_fabric **ret_fabric, struct weft_error *err)
{
    const struct weft_str view = {text, len};
    unsigned line = 0;
    const int rc = check_size(len, source, err);
    if (rc < 0) {
        return rc;
    }
    const enum format format = format_of(view, &line);
    if (reason(format) != NULL) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s:%u: %s", source, line,
                            reason(format));
    }
    return parse(format, view, source, ret_fabric, err);
}

int weft_parse_ibnetdiscover(const char *text, size_t len, const char *source,
                             struct weft_fabric **ret_fabric, struct weft_error *err)
{
    const int rc = check_size(len, source, err);
    return rc < 0
               ? rc
               : parse(FORMAT_IBNETDISCOVER, (struct weft_str){text, len}, source, ret_fabric, err);
}
