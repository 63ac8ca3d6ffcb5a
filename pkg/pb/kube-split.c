/* SPDX-License-Identifier: Apache-2.0 */
/* The protobuf splitter: field by field on two levels (Unknown, and the list inside its raw field),
 * or frame by frame. Bytes of a message are copied only when it spans two feeds. */
#include "pkg/pb/kube-split.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "pkg/base/buf.h"

static const uint8_t magic[4] = {'k', '8', 's', 0};

enum state {
    IN_MAGIC,  /* the list's first four bytes */
    AT_TAG,    /* a field's number and wire type */
    AT_LENGTH, /* of a length-delimited field */
    AT_VARINT, /* the value of a varint field, passed over */
    IN_BODY,   /* left bytes of a field or frame */
    AT_FRAME,  /* four bytes of a frame's length */
};

enum role { PASSED_OVER, ITEM, METADATA };

/* Wire types and the field numbers of Unknown and of every list. */
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };
enum { UNKNOWN_RAW = 2, LIST_METADATA = 1, LIST_ITEM = 2 };

struct weft_pb_split {
    enum weft_pb_split_mode mode;
    struct weft_pb_split_sink sink;
    size_t item_max;
    uint64_t offset;
    int status;

    enum state state;
    enum role role;
    bool in_list; /* inside Unknown.raw */
    bool seen_list;
    bool seen_metadata;
    uint64_t list_left; /* bytes of raw not yet taken */
    uint64_t left;      /* bytes of the body not yet taken */
    uint64_t number;    /* of a varint or frame length being read */
    unsigned number_at; /* its bytes so far */
    uint32_t field;     /* of the last tag */

    const uint8_t *piece;
    struct weft_buf held;
};

struct weft_pb_split *weft_pb_split_new(enum weft_pb_split_mode mode, size_t item_max,
                                        const struct weft_pb_split_sink *sink)
{
    struct weft_pb_split *split = weft_calloc(1, sizeof(*split));
    if (split != NULL) {
        split->mode = mode;
        split->sink = *sink;
        split->item_max = item_max;
        split->state = mode == WEFT_PB_SPLIT_LIST ? IN_MAGIC : AT_FRAME;
        weft_buf_init(&split->held, item_max);
    }
    return split;
}

void weft_pb_split_free(struct weft_pb_split *split)
{
    if (split != NULL) {
        weft_buf_done(&split->held);
        weft_free(split);
    }
}

static int malformed(const struct weft_pb_split *split, struct weft_error *err, const char *what)
{
    return weft_err_set(err, -EBADMSG, WEFT_ERR_PROTOBUF, "protobuf byte %llu: %s",
                        (unsigned long long)split->offset, what);
}

static int over_cap(const struct weft_pb_split *split, struct weft_error *err)
{
    return weft_err_set(err, -EFBIG, WEFT_ERR_PROTOBUF,
                        "protobuf byte %llu: an object is over %zu bytes",
                        (unsigned long long)split->offset, split->item_max);
}

/* ---- bodies ---- */

static int hold_piece(struct weft_pb_split *split, const uint8_t *end, struct weft_error *err)
{
    const int rc = weft_buf_append(&split->held, split->piece, (size_t)(end - split->piece));
    split->piece = NULL;
    return rc < 0 ? weft_err_nomem(err) : 0; /* begin_body has seen to the cap */
}

static int give_piece(struct weft_pb_split *split, const uint8_t *end, struct weft_error *err)
{
    const uint8_t *bytes = split->piece;
    size_t len = (size_t)(end - split->piece);
    if (split->held.len > 0) {
        const int rc = hold_piece(split, end, err);
        if (rc < 0) {
            return rc;
        }
        bytes = (const uint8_t *)split->held.data;
        len = split->held.len;
    }
    int rc = 0;
    if (split->role == ITEM) {
        rc = split->sink.on_item(split->sink.data, bytes, len, err);
    } else if (split->sink.on_metadata != NULL) {
        rc = split->sink.on_metadata(split->sink.data, bytes, len, err);
    }
    split->piece = NULL;
    weft_buf_reset(&split->held);
    return rc < 0 ? rc : 0;
}

/* At the border of two fields or frames. */
static void next_field(struct weft_pb_split *split)
{
    if (split->in_list && split->list_left == 0) {
        split->in_list = false;
    }
    split->number = 0;
    split->number_at = 0;
    split->state = split->mode == WEFT_PB_SPLIT_LIST ? AT_TAG : AT_FRAME;
}

static int begin_body(struct weft_pb_split *split, uint64_t len, enum role role,
                      struct weft_error *err)
{
    if (role != PASSED_OVER && len > split->item_max) {
        return over_cap(split, err);
    }
    if (split->in_list && len > split->list_left) {
        return malformed(split, err, "a field is longer than its list");
    }
    split->role = role;
    split->left = len;
    split->state = IN_BODY;
    return 0;
}

/* Takes bytes of the body; also called with none for an empty body. */
static int feed_body(struct weft_pb_split *split, const uint8_t **p, const uint8_t *end,
                     struct weft_error *err)
{
    const uint64_t there = (uint64_t)(end - *p);
    const uint64_t take = there < split->left ? there : split->left;
    if (split->role != PASSED_OVER && split->piece == NULL) {
        split->piece = *p;
    }
    *p += take;
    split->offset += take;
    split->left -= take;
    split->list_left -= split->in_list ? take : 0;
    if (split->left > 0) {
        return split->role != PASSED_OVER ? hold_piece(split, *p, err) : 0;
    }
    const int rc = split->role != PASSED_OVER ? give_piece(split, *p, err) : 0;
    next_field(split);
    return rc;
}

/* ---- fields ---- */

static int begin_list(struct weft_pb_split *split, uint64_t len, struct weft_error *err)
{
    if (split->seen_list) {
        return malformed(split, err, "a second list");
    }
    split->seen_list = true;
    split->in_list = len > 0;
    split->list_left = len;
    next_field(split);
    return 0;
}

/* The length of field split->field is split->number. */
static int on_length(struct weft_pb_split *split, struct weft_error *err)
{
    const uint64_t len = split->number;
    if (!split->in_list) {
        return split->field == UNKNOWN_RAW ? begin_list(split, len, err)
                                           : begin_body(split, len, PASSED_OVER, err);
    }
    if (split->field == LIST_ITEM) {
        return begin_body(split, len, ITEM, err);
    }
    if (split->field != LIST_METADATA) {
        return begin_body(split, len, PASSED_OVER, err);
    }
    if (split->seen_metadata) {
        return malformed(split, err, "a second ListMeta");
    }
    split->seen_metadata = true;
    return begin_body(split, len, METADATA, err);
}

static int on_tag(struct weft_pb_split *split, struct weft_error *err)
{
    const unsigned wire = (unsigned)(split->number & 7U);
    const uint64_t field = split->number >> 3;
    if (field == 0 || field > (UINT32_C(1) << 29) - 1) {
        return malformed(split, err, "no field number");
    }
    split->field = (uint32_t)field;
    split->number = 0;
    split->number_at = 0;
    if (wire == WIRE_BYTES) {
        split->state = AT_LENGTH;
        return 0;
    }
    if ((split->in_list && field <= LIST_ITEM) || (!split->in_list && field == UNKNOWN_RAW)) {
        return malformed(split, err, "a field of the wrong type");
    }
    if (wire == WIRE_VARINT) {
        split->state = AT_VARINT;
        return 0;
    }
    if (wire == WIRE_64 || wire == WIRE_32) {
        return begin_body(split, wire == WIRE_64 ? 8 : 4, PASSED_OVER, err);
    }
    return malformed(split, err, "no wire type");
}

/* A byte of a varint: of a tag, a length or a value. */
static int feed_varint(struct weft_pb_split *split, uint8_t byte, struct weft_error *err)
{
    if (split->number_at == 10 || (split->number_at == 9 && byte > 1)) {
        return malformed(split, err, "a number of over 64 bits");
    }
    split->number |= (uint64_t)(byte & 0x7fU) << (7 * split->number_at);
    split->number_at++;
    if ((byte & 0x80U) != 0) {
        return 0;
    }
    if (split->state == AT_TAG) {
        return on_tag(split, err);
    }
    if (split->state == AT_LENGTH) {
        return on_length(split, err);
    }
    next_field(split);
    return 0;
}

static int feed_number(struct weft_pb_split *split, uint8_t byte, struct weft_error *err)
{
    if (split->in_list) {
        if (split->list_left == 0) {
            return malformed(split, err, "a field that ends outside its list");
        }
        split->list_left--;
    }
    return feed_varint(split, byte, err);
}

static int feed_magic(struct weft_pb_split *split, uint8_t byte, struct weft_error *err)
{
    if (byte != magic[split->number_at]) {
        return malformed(split, err, "not Kubernetes' protobuf");
    }
    if (++split->number_at == sizeof(magic)) {
        next_field(split);
    }
    return 0;
}

static int feed_frame_length(struct weft_pb_split *split, uint8_t byte, struct weft_error *err)
{
    split->number = split->number << 8 | byte;
    if (++split->number_at < 4) {
        return 0;
    }
    return split->number > 0 ? begin_body(split, split->number, ITEM, err)
                             : malformed(split, err, "an empty frame");
}

static int feed_step(struct weft_pb_split *split, const uint8_t **p, const uint8_t *end,
                     struct weft_error *err)
{
    int rc = 0;
    switch (split->state) {
    case IN_BODY:
        return feed_body(split, p, end, err);
    case IN_MAGIC:
        rc = feed_magic(split, **p, err);
        break;
    case AT_FRAME:
        rc = feed_frame_length(split, **p, err);
        break;
    case AT_TAG:
    case AT_LENGTH:
    case AT_VARINT:
        rc = feed_number(split, **p, err);
        break;
    }
    (*p)++;
    split->offset++;
    return rc;
}

int weft_pb_split_feed(struct weft_pb_split *split, const uint8_t *bytes, size_t len,
                       struct weft_error *err)
{
    if (split->status < 0) {
        return weft_err_set(err, split->status, WEFT_ERR_PROTOBUF, "the stream has failed before");
    }
    const uint8_t *p = bytes;
    /* an empty body is done without a byte of its own */
    while (split->status == 0 &&
           (p < bytes + len || (split->state == IN_BODY && split->left == 0))) {
        split->status = feed_step(split, &p, bytes + len, err);
    }
    return split->status;
}

int weft_pb_split_end(struct weft_pb_split *split, struct weft_error *err)
{
    if (split->status < 0) {
        return weft_err_set(err, split->status, WEFT_ERR_PROTOBUF, "the stream has failed before");
    }
    const bool list = split->mode == WEFT_PB_SPLIT_LIST;
    const bool complete = split->number_at == 0 && !split->in_list &&
                          split->state == (list ? AT_TAG : AT_FRAME) && (!list || split->seen_list);
    return complete ? 0 : malformed(split, err, "the stream is cut short");
}

int weft_pb_unwrap(const uint8_t *bytes, size_t len, const uint8_t **ret_unknown, size_t *ret_len)
{
    if (len < sizeof(magic) || memcmp(bytes, magic, sizeof(magic)) != 0) {
        return -EBADMSG;
    }
    *ret_unknown = bytes + sizeof(magic);
    *ret_len = len - sizeof(magic);
    return 0;
}
