/* SPDX-License-Identifier: Apache-2.0 */
/* gzip data in memory, through zlib. */
#include <errno.h>
#include <limits.h>
#define ZLIB_CONST
#include <zlib.h>

#include "pkg/base/buf.h"
#include "pkg/machine/tar.h"

enum {
    CHUNK = 32 << 10,
    WINDOW_GZIP = 15 + 16, /* zlib.h, inflateInit2: the largest window, gzip only */
};

bool weft_gzip_is(const char *bytes, size_t len)
{
    return len >= 2 && (unsigned char)bytes[0] == 0x1f && (unsigned char)bytes[1] == 0x8b;
}

/* zlib's memory through ours, so that a test can let it fail. */
static voidpf allocate(voidpf opaque, uInt items, uInt size)
{
    (void)opaque;
    return weft_calloc(items, size);
}

static void release(voidpf opaque, voidpf p)
{
    (void)opaque;
    weft_free(p);
}

/* One round: up to a chunk of output. zlib's code (-6 to 2), or -EFBIG or -ENOMEM of the buffer. */
static int round_of(z_stream *z, struct weft_buf *out)
{
    Bytef chunk[CHUNK];
    z->next_out = chunk;
    z->avail_out = sizeof(chunk);
    const int code = inflate(z, Z_NO_FLUSH);
    const int rc = weft_buf_append(out, chunk, sizeof(chunk) - z->avail_out);
    return rc < 0 ? rc : code;
}

static int inflate_all(z_stream *z, struct weft_buf *out)
{
    for (;;) {
        int code = round_of(z, out);
        if (code == Z_STREAM_END && z->avail_in > 0 &&
            weft_gzip_is((const char *)z->next_in, z->avail_in)) {
            code = inflateReset(z); /* members may follow each other: RFC 1952, 2.2 */
        }
        if (code != Z_OK) {
            return code;
        }
        if (z->avail_in == 0 && z->avail_out > 0) {
            return Z_BUF_ERROR; /* no more input, and no end */
        }
    }
}

/* What inflate_all's code means: 0, 1 for data that ends too early, or an error. */
static int outcome(int code, size_t offset, size_t max, struct weft_error *err)
{
    switch (code) {
    case Z_STREAM_END:
        return 0;
    case Z_BUF_ERROR:
        return 1;
    case Z_MEM_ERROR:
    case -ENOMEM:
        return weft_err_nomem(err);
    case -EFBIG:
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG,
                            "unpacks to more than the cap of %zu bytes", max);
    default:
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "offset %zu: the gzip data is damaged",
                            offset);
    }
}

int weft_gunzip(const char *bytes, size_t len, size_t max, char **ret_bytes, size_t *ret_len,
                struct weft_error *err)
{
    z_stream z = {.zalloc = allocate, .zfree = release};
    if (len > UINT_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "too large");
    }
    if (inflateInit2(&z, WINDOW_GZIP) != Z_OK) {
        return weft_err_nomem(err);
    }
    weft_auto(weft_buf_done) struct weft_buf out;
    weft_buf_init(&out, max);
    z.next_in = (const Bytef *)bytes;
    z.avail_in = (uInt)len;
    const int code = inflate_all(&z, &out);
    const int rc = outcome(code, len - z.avail_in, max, err);
    (void)inflateEnd(&z);
    if (rc < 0) {
        return rc;
    }
    const size_t unpacked = out.len;
    char *text = weft_buf_steal(&out);
    if (text == NULL) {
        return weft_err_nomem(err);
    }
    *ret_bytes = text;
    *ret_len = unpacked;
    return rc;
}
