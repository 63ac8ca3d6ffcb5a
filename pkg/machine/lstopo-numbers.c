/* SPDX-License-Identifier: Apache-2.0 */
/* The small notations inside lstopo files: lists of numbers, bit sets, GUIDs. */
#include <errno.h>

#include "pkg/base/str.h"
#include "pkg/machine/lstopo-internal.h"

int weft_lstopo_numbers(const char *text, size_t len, uint64_t *values, size_t max,
                        size_t *ret_count)
{
    struct weft_str rest = {text, len};
    struct weft_str word;
    size_t count = 0;
    while (weft_str_word(&rest, &word)) {
        struct weft_str type;
        struct weft_str digits = word;
        if (weft_str_split(&digits, ':', &type) && digits.data == NULL) {
            digits = word; /* no colon: all of it */
        }
        uint64_t value = 0;
        if (weft_parse_u64(digits, UINT64_MAX, &value) < 0) {
            return -EINVAL;
        }
        if (count < max) {
            values[count] = value;
        }
        count++;
    }
    *ret_count = count;
    return 0;
}

int weft_lstopo_only_bit(const char *set)
{
    struct weft_str rest = weft_str(set);
    int found = -1;
    /* 32 bits a piece, the last piece holds the least ones; an empty piece is 0 */
    for (int base = 0; rest.len > 0; base += 32) {
        size_t start = rest.len;
        while (start > 0 && rest.data[start - 1] != ',') {
            start--;
        }
        const struct weft_str piece = {rest.data + start, rest.len - start};
        uint64_t bits = 0;
        if (piece.len > 0 && (weft_parse_hex64(piece, &bits) < 0 || bits > UINT32_MAX)) {
            return -1; /* "0xf...f": an infinite set */
        }
        if (bits != 0) {
            if (found >= 0 || (bits & (bits - 1)) != 0) {
                return -1;
            }
            found = base + __builtin_ctzll(bits);
        }
        rest.len = start > 0 ? start - 1 : 0;
    }
    return found;
}

uint64_t weft_lstopo_guid(const char *text)
{
    struct weft_str rest = weft_str(text);
    struct weft_str part;
    uint64_t guid = 0;
    uint64_t bits = 0;
    size_t parts = 0;
    while (weft_str_split(&rest, ':', &part)) {
        if (part.len != 4 || weft_parse_hex64(part, &bits) < 0) {
            return 0;
        }
        guid = guid << 16 | bits;
        parts++;
    }
    return parts == 4 ? guid : 0;
}
