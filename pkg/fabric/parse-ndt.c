/* SPDX-License-Identifier: Apache-2.0 */
/* Reads UFM's network design table, a cabling plan. Rows carry more columns than weft reads (racks,
 * lengths); the header says which are which. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/fabric/cabling-internal.h"
#include "pkg/fabric/document-internal.h"

enum { COLUMNS_MAX = 64, PART_MAX = 1024 };

enum column { START_DEVICE, START_PORT, END_DEVICE, END_PORT, COLUMN_COUNT };

static const char *const column_names[COLUMN_COUNT] = {"StartDevice", "StartPort", "EndDevice",
                                                       "EndPort"};

struct reader {
    struct weft_cabling_builder builder;
    unsigned line;
    bool header;
    size_t columns[COLUMN_COUNT];
    size_t last; /* the largest of them */
};

/* "#StartDevice", "#Fields:StartDevice": the name is what a cell ends with. */
static int read_header(struct reader *r, struct weft_str line, struct weft_error *err)
{
    struct weft_str rest = line;
    struct weft_str cell = {0};
    bool found[COLUMN_COUNT] = {false};
    for (size_t i = 0; weft_str_split(&rest, ',', &cell); i++) {
        cell = weft_str_trim(cell);
        const char *mark = cell.len > 0 ? memrchr(cell.data, ':', cell.len) : NULL;
        if (mark != NULL) {
            cell = (struct weft_str){mark + 1, (size_t)(cell.data + cell.len - mark) - 1};
        } else if (cell.len > 0 && cell.data[0] == '#') {
            cell = (struct weft_str){cell.data + 1, cell.len - 1};
        }
        for (size_t c = 0; c < COLUMN_COUNT; c++) {
            if (weft_str_eq(cell, column_names[c]) && !found[c]) {
                found[c] = true;
                r->columns[c] = i;
                r->last = i > r->last ? i : r->last;
            }
        }
    }
    for (size_t c = 0; c < COLUMN_COUNT; c++) {
        if (!found[c]) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "%s:%u: the first line must name the columns StartDevice, "
                                "StartPort, EndDevice, EndPort; %s is not there",
                                r->builder.source, r->line, column_names[c]);
        }
    }
    r->header = true;
    return 0;
}

static bool take_number(struct weft_str *s, struct weft_str *ret_number)
{
    size_t n = 0;
    while (n < s->len && s->data[n] >= '0' && s->data[n] <= '9') {
        n++;
    }
    *ret_number = (struct weft_str){s->data, n};
    s->data += n;
    s->len -= n;
    return n > 0;
}

static bool take_text(struct weft_str *s, const char *text)
{
    const size_t len = strlen(text);
    if (!weft_str_starts(*s, text)) {
        return false;
    }
    s->data += len;
    s->len -= len;
    return true;
}

/* "Blade 16_Port 2/20" of a chassis: port 20 of chip 2 on line card 16. */
static bool is_blade(struct weft_str port, struct weft_str *ret_blade, struct weft_str *ret_chip,
                     struct weft_str *ret_number)
{
    return take_text(&port, "Blade ") && take_number(&port, ret_blade) &&
           take_text(&port, "_Port ") && take_number(&port, ret_chip) && take_text(&port, "/") &&
           take_number(&port, ret_number) && port.len == 0;
}

static bool has_digit(struct weft_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] >= '0' && text.data[i] <= '9') {
            return true;
        }
    }
    return false;
}

/* One end of a row to a device and its port, a view into the row. */
static int read_end(struct reader *r, struct weft_str device, struct weft_str port,
                    struct weft_cable_end *ret_end, struct weft_error *err)
{
    char part[PART_MAX];
    struct weft_str blade = {0};
    struct weft_str chip = {0};
    struct weft_str number = {0};
    struct weft_str rest = port;
    ret_end->port = port;
    if (is_blade(port, &blade, &chip, &number)) {
        ret_end->port = number;
        const int len = snprintf(part, PART_MAX, "%.*s/L%.*s/U%.*s", WEFT_STR_ARG(device),
                                 WEFT_STR_ARG(blade), WEFT_STR_ARG(chip));
        device = (struct weft_str){part, len < PART_MAX ? (size_t)len : PART_MAX - 1};
    } else if (take_text(&rest, "Port ") && take_number(&rest, &number) && rest.len == 0) {
        ret_end->port = number;
    } else if (port.len > device.len + 1 && memcmp(port.data, device.data, device.len) == 0 &&
               port.data[device.len] == ' ') {
        /* "host ibp11s0f0": as the adapter's description has it */
        ret_end->port = (struct weft_str){port.data + device.len + 1, port.len - device.len - 1};
    } else if (!has_digit(port)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: \"%.*s\" is not a port: expected \"Port N\", "
                            "\"Blade N_Port N/N\" or \"host adapter\"",
                            r->builder.source, r->line, port.len > 60 ? 60 : (int)port.len,
                            port.len > 0 ? port.data : "");
    }
    return weft_cabling_device(&r->builder, device, r->line, &ret_end->device, err);
}

static int read_row(struct reader *r, struct weft_str line, struct weft_error *err)
{
    struct weft_str cells[COLUMN_COUNT] = {{0}};
    struct weft_str rest = line;
    struct weft_str cell = {0};
    size_t count = 0;
    for (; count < COLUMNS_MAX && weft_str_split(&rest, ',', &cell); count++) {
        for (size_t c = 0; c < COLUMN_COUNT; c++) {
            if (r->columns[c] == count) {
                cells[c] = weft_str_trim(cell);
            }
        }
    }
    if (count <= r->last) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: a row of %zu columns; the header needs %zu", r->builder.source,
                            r->line, count, r->last + 1);
    }
    struct weft_cable_end ends[2] = {{0}};
    int rc = read_end(r, cells[START_DEVICE], cells[START_PORT], &ends[0], err);
    rc = rc == 0 ? read_end(r, cells[END_DEVICE], cells[END_PORT], &ends[1], err) : rc;
    return rc == 0 ? weft_cabling_cable(&r->builder, ends, r->line, err) : rc;
}

int weft_parse_ndt(const char *text, size_t len, const char *source,
                   struct weft_cabling **ret_cabling, struct weft_error *err)
{
    struct reader r = {.builder = {.source = source}};
    struct weft_str rest = {text, len};
    struct weft_str line = {0};
    int rc = 0;
    if (len > WEFT_CABLING_TEXT_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s: larger than %d MiB", source,
                            (int)(WEFT_CABLING_TEXT_MAX >> 20));
    }
    while (rc == 0 && weft_str_line(&rest, &line)) {
        r.line++;
        const struct weft_str content = weft_str_trim(line);
        if (content.len == 0) {
            continue;
        }
        rc = r.header ? read_row(&r, line, err) : read_header(&r, content, err);
    }
    rc = rc == 0 ? weft_doc_check_end((struct weft_str){text, len}, source, err) : rc;
    rc = rc == 0 ? weft_cabling_finish(&r.builder, ret_cabling, err) : rc;
    weft_cabling_builder_done(&r.builder);
    return rc;
}
