/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tar archives that are in memory. */
#include "pkg/machine/tar.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/mem.h"
#include "pkg/base/str.h"

/* The header's fields: POSIX.1-2017, pax, "ustar Interchange Format". */
enum {
    BLOCK = 512,
    NAME_AT = 0,
    NAME_SIZE = 100,
    SIZE_AT = 124,
    SIZE_SIZE = 12,
    SUM_AT = 148,
    SUM_SIZE = 8,
    TYPE_AT = 156,
    LINK_AT = 157,
    LINK_SIZE = 100,
    MAGIC_AT = 257,
    PREFIX_AT = 345,
    PREFIX_SIZE = 155,
};

bool weft_tar_is(const char *bytes, size_t len)
{
    return len >= BLOCK && memcmp(bytes + MAGIC_AT, "ustar", 5) == 0;
}

/* An octal field, with blanks or NULs around. GNU's binary form (first bit set) is for files over
 * 8 GiB and not read. */
static bool octal(const char *field, size_t size, uint64_t *ret_value)
{
    size_t i = 0;
    uint64_t value = 0;
    while (i < size && field[i] == ' ') {
        i++;
    }
    const size_t first = i;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++) {
        value = value * 8 + (uint64_t)(field[i] - '0');
    }
    if (i == first || (i < size && field[i] != ' ' && field[i] != '\0')) {
        return false;
    }
    *ret_value = value;
    return true;
}

static bool sum_is_right(const char *header)
{
    uint64_t want = 0;
    uint64_t sum = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        const bool own = i >= SUM_AT && i < SUM_AT + SUM_SIZE;
        sum += own ? ' ' : (unsigned char)header[i];
    }
    return octal(header + SUM_AT, SUM_SIZE, &want) && want == sum;
}

static bool is_zero(const char *block)
{
    for (size_t i = 0; i < BLOCK; i++) {
        if (block[i] != '\0') {
            return false;
        }
    }
    return true;
}

/* What the entries before a file said of it. */
struct longs {
    char path[WEFT_TAR_NAME_MAX], target[WEFT_TAR_NAME_MAX]; /* "" none */
};

struct reading {
    const char *bytes, *name;
    size_t len, at;
    weft_tar_visit *visit;
    void *context;
    struct weft_error *err;
    struct longs longs;
    char path[WEFT_TAR_NAME_MAX], target[WEFT_TAR_NAME_MAX];
};

static int refuse(const struct reading *r, const char *reason)
{
    return weft_err_set(r->err, -EINVAL, WEFT_ERR_CONFIG, "%.100s: offset %zu: %s", r->name, r->at,
                        reason);
}

static bool copy_name(char *to, const char *from, size_t len)
{
    len = strnlen(from, len);
    if (len >= WEFT_TAR_NAME_MAX) {
        return false;
    }
    memcpy(to, from, len);
    to[len] = '\0';
    return true;
}

/* pax records: "<length> <key>=<value>\n", the length counting all of it. */
static int read_pax(struct reading *r, const char *data, size_t len)
{
    struct weft_str rest = {data, len};
    while (rest.len > 0) {
        struct weft_str record = rest;
        struct weft_str number;
        uint64_t size = 0;
        if (!weft_str_split(&record, ' ', &number) || weft_parse_u64(number, len, &size) < 0 ||
            size <= number.len + 1 || size > rest.len || rest.data[size - 1] != '\n') {
            return refuse(r, "a pax record that is malformed");
        }
        const struct weft_str whole = {rest.data + number.len + 1, size - number.len - 2};
        struct weft_str value = whole;
        struct weft_str key = {0};
        (void)weft_str_split(&value, '=', &key);
        char *to = weft_str_eq(key, "path")       ? r->longs.path
                   : weft_str_eq(key, "linkpath") ? r->longs.target
                                                  : NULL;
        if (to != NULL && (value.data == NULL || !copy_name(to, value.data, value.len))) {
            return refuse(r, "a name that is too long");
        }
        rest.data += size;
        rest.len -= size;
    }
    return 0;
}

static int join_name(struct reading *r, const char *header)
{
    char name[NAME_SIZE + 1];
    char prefix[PREFIX_SIZE + 1];
    memcpy(name, header + NAME_AT, NAME_SIZE);
    name[NAME_SIZE] = '\0';
    memcpy(prefix, header + PREFIX_AT, PREFIX_SIZE);
    prefix[PREFIX_SIZE] = '\0';
    /* GNU's old format ("ustar  ") has times in the prefix's place */
    const bool posix = memcmp(header + MAGIC_AT, "ustar\0", 6) == 0;
    const bool joined = posix && prefix[0] != '\0';
    (void)snprintf(r->path, sizeof(r->path), "%s%s%s", joined ? prefix : "", joined ? "/" : "",
                   name);
    memcpy(r->target, header + LINK_AT, LINK_SIZE);
    r->target[LINK_SIZE] = '\0';
    if (r->longs.path[0] != '\0') {
        memcpy(r->path, r->longs.path, sizeof(r->path));
    }
    if (r->longs.target[0] != '\0') {
        memcpy(r->target, r->longs.target, sizeof(r->target));
    }
    r->longs = (struct longs){0};
    return r->path[0] == '\0' ? refuse(r, "an entry without a name") : 0;
}

/* One entry; data is whole. Folders and devices are of no interest. */
static int read_entry(struct reading *r, const char *header, const char *data, size_t size)
{
    const char type = header[TYPE_AT];
    if (type == 'x' || type == 'g') {
        return type == 'x' ? read_pax(r, data, size) : 0;
    }
    if (type == 'L' || type == 'K') {
        char *to = type == 'L' ? r->longs.path : r->longs.target;
        return copy_name(to, data, size) ? 0 : refuse(r, "a name that is too long");
    }
    const int rc = join_name(r, header);
    if (rc < 0) {
        return rc;
    }
    struct weft_tar_entry entry = {.path = r->path};
    if (type == '0' || type == '\0' || type == '7') {
        entry.bytes = data;
        entry.len = size;
    } else if (type == '2' || type == '1') {
        entry.target = r->target;
    } else {
        return 0;
    }
    return r->visit(r->context, &entry);
}

/* Regular files (three spellings), pax and GNU headers, GNU's sparse files. */
static bool has_data(char type)
{
    static const char types[] = {'0', '\0', '7', 'x', 'g', 'L', 'K', 'S'};
    return memchr(types, type, sizeof(types)) != NULL;
}

/* 1 at the end of the archive, 2 where it is cut. */
static int read_next(struct reading *r)
{
    if (r->len - r->at < BLOCK) {
        return 2;
    }
    const char *header = r->bytes + r->at;
    if (is_zero(header)) {
        return 1;
    }
    uint64_t size = 0;
    if (!sum_is_right(header)) {
        return refuse(r, "not a tar header: its checksum is wrong");
    }
    if (!octal(header + SIZE_AT, SIZE_SIZE, &size)) {
        return refuse(r, "a size that is no octal number");
    }
    size = has_data(header[TYPE_AT]) ? size : 0;
    if (size > r->len - r->at - BLOCK) {
        return 2;
    }
    const int rc = read_entry(r, header, header + BLOCK, size);
    const size_t padded = (size + BLOCK - 1) / BLOCK * BLOCK;
    const size_t left = r->len - r->at - BLOCK;
    r->at += BLOCK + (padded < left ? padded : left);
    return rc < 0 ? rc : 0;
}

int weft_tar_read(const char *bytes, size_t len, const char *name, weft_tar_visit *visit,
                  void *context, struct weft_error *err)
{
    weft_autofree struct reading *r = weft_calloc(1, sizeof(*r));
    if (r == NULL) {
        return weft_err_nomem(err);
    }
    r->bytes = bytes;
    r->len = len;
    r->name = name;
    r->visit = visit;
    r->context = context;
    r->err = err;
    int rc = 0;
    while (rc == 0) {
        rc = read_next(r);
    }
    return rc < 0 ? rc : rc - 1;
}
