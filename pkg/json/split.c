/* SPDX-License-Identifier: Apache-2.0 */
/* The splitter: a state machine for the frame, and inside a value a scanner that only knows
 * strings, escapes and brackets. Bytes of a piece are copied only when it spans two feeds. */
#include "pkg/json/split.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/json/json.h"

enum state {
    AT_START,      /* before an object of the top level */
    AT_FIRST_KEY,  /* after '{': a key or '}' */
    AT_KEY,        /* after ',': a key */
    IN_KEY,        /* inside a key's string */
    AT_COLON,      /* after a key */
    AT_VALUE,      /* before a member's value */
    IN_VALUE,      /* inside an object or array */
    IN_STRING,     /* a member's value is a string, passed over */
    IN_SCALAR,     /* a member's value is a number, true, false or null, passed over */
    AFTER_VALUE,   /* ',' or '}' */
    AT_FIRST_ITEM, /* after '[' of items: an object or ']' */
    AT_ITEM,       /* after ',' in items */
    AFTER_ITEM,    /* ',' or ']' */
    AT_END,        /* after the list: only white space */
};

/* What the value at hand is. */
enum role { PASSED_OVER, ITEM, METADATA };

struct weft_json_split {
    enum weft_json_split_mode mode;
    struct weft_json_split_sink sink;
    size_t item_max;
    uint64_t offset; /* of the next byte of the stream */
    int status;      /* the final error */

    enum state state;
    enum role role;
    bool seen_items;
    bool seen_metadata;

    /* the scanner inside a value or string */
    unsigned depth;
    uint64_t arrays; /* bit n: level n is an array */
    bool in_string;
    bool escaped;

    char key[WEFT_JSON_SPLIT_KEY_MAX];
    size_t key_len;
    const char *piece;    /* where the piece at hand starts in the bytes being fed */
    struct weft_buf held; /* its part from earlier feeds */
};

_Static_assert(WEFT_JSON_SPLIT_DEPTH_MAX <= 64, "a level is a bit of arrays");

struct weft_json_split *weft_json_split_new(enum weft_json_split_mode mode, size_t item_max,
                                            const struct weft_json_split_sink *sink)
{
    struct weft_json_split *split = weft_calloc(1, sizeof(*split));
    if (split != NULL) {
        split->mode = mode;
        split->sink = *sink;
        split->item_max = item_max;
        weft_buf_init(&split->held, item_max);
    }
    return split;
}

uint64_t weft_json_split_offset(const struct weft_json_split *split)
{
    return split->offset;
}

void weft_json_split_free(struct weft_json_split *split)
{
    if (split != NULL) {
        weft_buf_done(&split->held);
        weft_free(split);
    }
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static int malformed(const struct weft_json_split *split, struct weft_error *err, const char *what)
{
    return weft_err_set(err, -EBADMSG, WEFT_ERR_JSON, "byte %llu: %s",
                        (unsigned long long)split->offset, what);
}

static int over_cap(const struct weft_json_split *split, struct weft_error *err)
{
    return weft_err_set(err, -EFBIG, WEFT_ERR_JSON, "byte %llu: an object is over %zu bytes",
                        (unsigned long long)split->offset, split->item_max);
}

/* ---- inside values ---- */

static int open_bracket(struct weft_json_split *split, char c, struct weft_error *err)
{
    if (split->depth == WEFT_JSON_SPLIT_DEPTH_MAX) {
        return weft_err_set(err, -E2BIG, WEFT_ERR_JSON, "byte %llu: nested deeper than %d levels",
                            (unsigned long long)split->offset, WEFT_JSON_SPLIT_DEPTH_MAX);
    }
    const uint64_t bit = UINT64_C(1) << split->depth;
    split->arrays = c == '[' ? split->arrays | bit : split->arrays & ~bit;
    split->depth++;
    return 0;
}

static int close_bracket(struct weft_json_split *split, char c, struct weft_error *err)
{
    split->depth--; /* at least 1 inside a value */
    const bool is_array = (split->arrays >> split->depth & 1U) != 0;
    return is_array == (c == ']') ? 0 : malformed(split, err, "brackets that do not match");
}

/* Passes over string bytes from p; returns the first byte after what it took. */
static const char *skip_string(struct weft_json_split *split, const char *p, const char *end)
{
    while (p < end) {
        if (split->escaped) {
            split->escaped = false;
        } else if (*p == '\\') {
            split->escaped = true;
        } else if (*p == '"') {
            split->in_string = false;
            return p + 1;
        }
        p++;
    }
    return p;
}

/* Passes over bytes of an object or array until it is closed (depth 0) or the bytes end. */
static int skip_value(struct weft_json_split *split, const char **p, const char *end,
                      struct weft_error *err)
{
    const char *const start = *p;
    int rc = 0;
    while (rc == 0 && *p < end && split->depth > 0) {
        if (split->in_string) {
            *p = skip_string(split, *p, end);
            continue;
        }
        const char c = *(*p)++;
        if (c == '"') {
            split->in_string = true;
        } else if (c == '{' || c == '[') {
            rc = open_bracket(split, c, err);
        } else if (c == '}' || c == ']') {
            rc = close_bracket(split, c, err);
        }
    }
    split->offset += (uint64_t)(*p - start);
    return rc;
}

/* ---- pieces ---- */

/* Keeps the part of the piece that these bytes hold, as they end before it does. */
static int hold_piece(struct weft_json_split *split, const char *end, struct weft_error *err)
{
    const int rc = weft_buf_append(&split->held, split->piece, (size_t)(end - split->piece));
    split->piece = NULL;
    if (rc == -EFBIG) {
        return over_cap(split, err);
    }
    return rc < 0 ? weft_err_nomem(err) : 0;
}

static int give_piece(struct weft_json_split *split, const char *end, struct weft_error *err)
{
    const char *text = split->piece;
    size_t len = (size_t)(end - split->piece);
    if (len > split->item_max) {
        return over_cap(split, err);
    }
    if (split->held.len > 0) {
        const int rc = hold_piece(split, end, err);
        if (rc < 0) {
            return rc;
        }
        text = split->held.data;
        len = split->held.len;
    }
    int rc = 0;
    if (split->role == ITEM) {
        rc = split->sink.on_item(split->sink.data, text, len, err);
    } else if (split->sink.on_metadata != NULL) {
        rc = split->sink.on_metadata(split->sink.data, text, len, err);
    }
    split->piece = NULL;
    weft_buf_reset(&split->held);
    return rc < 0 ? rc : 0;
}

static enum state state_after_value(const struct weft_json_split *split)
{
    if (split->mode == WEFT_JSON_SPLIT_LINES) {
        return AT_START;
    }
    return split->role == ITEM ? AFTER_ITEM : AFTER_VALUE;
}

/* Bytes of an object or array, up to its end or the bytes' end. */
static int feed_value(struct weft_json_split *split, const char **p, const char *end,
                      struct weft_error *err)
{
    if (split->role != PASSED_OVER && split->piece == NULL) {
        split->piece = *p; /* it goes on from the last feed */
    }
    int rc = skip_value(split, p, end, err);
    if (rc == 0 && split->depth == 0) {
        rc = split->role != PASSED_OVER ? give_piece(split, *p, err) : 0;
        split->state = state_after_value(split);
    } else if (rc == 0 && split->role != PASSED_OVER) {
        rc = hold_piece(split, *p, err);
    }
    return rc;
}

/* At the bracket that opens a value: nothing is consumed but it. */
static int begin_value(struct weft_json_split *split, const char *p, enum role role,
                       struct weft_error *err)
{
    split->role = role;
    split->depth = 0;
    split->piece = role != PASSED_OVER ? p : NULL;
    split->state = IN_VALUE;
    return open_bracket(split, *p, err);
}

/* ---- the frame ---- */

static bool key_is(const struct weft_json_split *split, const char *name)
{
    return split->key_len == strlen(name) && memcmp(split->key, name, split->key_len) == 0;
}

/* A number, true, false or null is collected where the key was. */
static int begin_scalar(struct weft_json_split *split, enum role role)
{
    split->state = IN_SCALAR;
    split->role = role;
    split->key_len = 0;
    return 1;
}

static int end_scalar(struct weft_json_split *split, struct weft_error *err)
{
    const bool is_null = key_is(split, "null");
    split->state = AFTER_VALUE;
    if (split->role == ITEM) {
        return is_null ? 0 : malformed(split, err, "\"items\" is no array");
    }
    if (is_null || key_is(split, "true") || key_is(split, "false") ||
        weft_json_number_type(split->key, split->key_len) != WEFT_JSON_STRING) {
        return 0;
    }
    return malformed(split, err, "a value was expected");
}

static int begin_items(struct weft_json_split *split, const char *p, struct weft_error *err)
{
    if (split->seen_items) {
        return malformed(split, err, "a second \"items\"");
    }
    split->seen_items = true;
    if (*p == '[') {
        split->state = AT_FIRST_ITEM;
        return 0;
    }
    if (*p == 'n') { /* Go writes a nil slice as null */
        return begin_scalar(split, ITEM);
    }
    return malformed(split, err, "\"items\" is no array");
}

static int begin_metadata(struct weft_json_split *split, const char *p, struct weft_error *err)
{
    if (split->seen_metadata) {
        return malformed(split, err, "a second \"metadata\"");
    }
    split->seen_metadata = true;
    return *p == '{' ? begin_value(split, p, METADATA, err)
                     : malformed(split, err, "\"metadata\" is no object");
}

/* The first byte of a member's value; 1 if it is to be read again in the new state. */
static int begin_member(struct weft_json_split *split, const char *p, struct weft_error *err)
{
    if (key_is(split, "items")) {
        return begin_items(split, p, err);
    }
    if (key_is(split, "metadata")) {
        return begin_metadata(split, p, err);
    }
    if (*p == '{' || *p == '[') {
        return begin_value(split, p, PASSED_OVER, err);
    }
    if (*p == '"') {
        split->in_string = true;
        split->state = IN_STRING;
        return 0;
    }
    return begin_scalar(split, PASSED_OVER);
}

static int begin_key(struct weft_json_split *split, char c, struct weft_error *err)
{
    if (c == '}' && split->state == AT_FIRST_KEY) {
        split->state = AT_END;
        return 0;
    }
    split->state = IN_KEY;
    split->key_len = 0;
    return c == '"' ? 0 : malformed(split, err, "a key was expected");
}

static int add_to_key(struct weft_json_split *split, char c, struct weft_error *err)
{
    if (split->key_len == sizeof(split->key)) {
        return malformed(split, err, "a key or number is too long");
    }
    split->key[split->key_len++] = c;
    return 0;
}

/* A byte of a key. Keys are compared as they stand: the API server escapes none that matter. */
static int feed_key(struct weft_json_split *split, char c, struct weft_error *err)
{
    if (c == '"' && !split->escaped) {
        split->state = AT_COLON;
        return 0;
    }
    split->escaped = c == '\\' && !split->escaped;
    return add_to_key(split, c, err);
}

static int next_or_close(struct weft_json_split *split, char c, struct weft_error *err)
{
    const bool in_items = split->state == AFTER_ITEM;
    if (c == ',') {
        split->state = in_items ? AT_ITEM : AT_KEY;
        return 0;
    }
    if (c == (in_items ? ']' : '}')) {
        split->state = in_items ? AFTER_VALUE : AT_END;
        return 0;
    }
    return malformed(split, err, in_items ? "',' or ']' was expected" : "',' or '}' was expected");
}

static int begin_item(struct weft_json_split *split, const char *p, struct weft_error *err)
{
    if (*p == ']' && split->state == AT_FIRST_ITEM) {
        split->state = AFTER_VALUE;
        return 0;
    }
    return *p == '{' ? begin_value(split, p, ITEM, err)
                     : malformed(split, err, "an object was expected");
}

static int begin_document(struct weft_json_split *split, const char *p, struct weft_error *err)
{
    if (*p != '{') {
        return malformed(split, err, "an object was expected");
    }
    if (split->mode == WEFT_JSON_SPLIT_LINES) {
        return begin_value(split, p, ITEM, err);
    }
    split->state = AT_FIRST_KEY;
    return 0;
}

/* One byte of the frame that is no white space; 1 if it was not taken yet. */
static int feed_frame(struct weft_json_split *split, const char *p, struct weft_error *err)
{
    switch (split->state) {
    case AT_START:
        return begin_document(split, p, err);
    case AT_FIRST_KEY:
    case AT_KEY:
        return begin_key(split, *p, err);
    case AT_COLON:
        split->state = AT_VALUE;
        return *p == ':' ? 0 : malformed(split, err, "':' was expected");
    case AT_VALUE:
        return begin_member(split, p, err);
    case AFTER_VALUE:
    case AFTER_ITEM:
        return next_or_close(split, *p, err);
    case AT_FIRST_ITEM:
    case AT_ITEM:
        return begin_item(split, p, err);
    case AT_END:
    case IN_KEY:
    case IN_VALUE:
    case IN_STRING:
    case IN_SCALAR:
        break;
    }
    return malformed(split, err, "text after the list");
}

/* Inside a key, a string or a scalar of the frame; *p is moved past what was taken. */
static int feed_token(struct weft_json_split *split, const char **p, const char *end,
                      struct weft_error *err)
{
    if (split->state == IN_STRING) {
        const char *const start = *p;
        *p = skip_string(split, *p, end);
        split->offset += (uint64_t)(*p - start);
        split->state = split->in_string ? IN_STRING : AFTER_VALUE;
        return 0;
    }
    if (split->state == IN_SCALAR && (**p == ',' || **p == '}' || is_space(**p))) {
        return end_scalar(split, err); /* the byte itself belongs to the frame */
    }
    const int rc = split->state == IN_KEY ? feed_key(split, **p, err) : add_to_key(split, **p, err);
    (*p)++;
    split->offset++;
    return rc;
}

static int feed_step(struct weft_json_split *split, const char **p, const char *end,
                     struct weft_error *err)
{
    switch (split->state) {
    case IN_VALUE:
        return feed_value(split, p, end, err);
    case IN_KEY:
    case IN_STRING:
    case IN_SCALAR:
        return feed_token(split, p, end, err);
    case AT_START:
    case AT_FIRST_KEY:
    case AT_KEY:
    case AT_COLON:
    case AT_VALUE:
    case AFTER_VALUE:
    case AT_FIRST_ITEM:
    case AT_ITEM:
    case AFTER_ITEM:
    case AT_END:
        break;
    }
    const int rc = is_space(**p) ? 0 : feed_frame(split, *p, err);
    if (rc == 0) {
        (*p)++;
        split->offset++;
    }
    return rc < 0 ? rc : 0;
}

int weft_json_split_feed(struct weft_json_split *split, const char *bytes, size_t len,
                         struct weft_error *err)
{
    if (split->status < 0) {
        return weft_err_set(err, split->status, WEFT_ERR_JSON, "the stream has failed before");
    }
    const char *p = bytes;
    while (split->status == 0 && p < bytes + len) {
        split->status = feed_step(split, &p, bytes + len, err);
    }
    if (split->status == 0 && split->piece != NULL) {
        split->status = hold_piece(split, bytes + len, err);
    }
    return split->status;
}

int weft_json_split_end(struct weft_json_split *split, struct weft_error *err)
{
    if (split->status < 0) {
        return weft_err_set(err, split->status, WEFT_ERR_JSON, "the stream has failed before");
    }
    const enum state last = split->mode == WEFT_JSON_SPLIT_LIST ? AT_END : AT_START;
    return split->state == last ? 0 : malformed(split, err, "the stream is cut short");
}
