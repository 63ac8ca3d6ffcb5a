/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 both ways. */
#include "pkg/base/base64.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "pkg/base/mem.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The six bits of a character, or -1. */
static int digit(char c)
{
    const char *at = c != '\0' ? strchr(alphabet, c) : NULL;
    return at != NULL ? (int)(at - alphabet) : -1;
}

int weft_base64_decode(const char *text, size_t len, char **ret_bytes, size_t *ret_len)
{
    weft_autofree char *out = weft_malloc(len / 4 * 3 + 4);
    if (out == NULL) {
        return -ENOMEM;
    }
    size_t used = 0;
    size_t digits = 0;
    size_t padding = 0;
    uint32_t bits = 0;
    for (size_t i = 0; i < len; i++) {
        if (is_space(text[i])) {
            continue;
        }
        const int value = digit(text[i]);
        padding += text[i] == '=';
        if ((value < 0 && text[i] != '=') || (value >= 0 && padding > 0)) {
            return -EINVAL;
        }
        bits = bits << 6 | (value > 0 ? (uint32_t)value : 0U);
        if (++digits % 4 == 0) {
            out[used++] = (char)(bits >> 16 & 0xffU);
            out[used++] = (char)(bits >> 8 & 0xffU);
            out[used++] = (char)(bits & 0xffU);
        }
    }
    if (digits % 4 != 0 || padding > 2) {
        return -EINVAL;
    }
    used -= padding;
    out[used] = '\0';
    *ret_len = used;
    *ret_bytes = weft_steal(&out);
    return 0;
}

char *weft_base64_encode(const char *bytes, size_t len)
{
    char *out = weft_malloc((len + 2) / 3 * 4 + 1);
    if (out == NULL) {
        return NULL;
    }
    size_t used = 0;
    for (size_t i = 0; i < len; i += 3) {
        const size_t n = len - i < 3 ? len - i : 3;
        uint32_t bits = (uint32_t)(unsigned char)bytes[i] << 16;
        bits |= n > 1 ? (uint32_t)(unsigned char)bytes[i + 1] << 8 : 0U;
        bits |= n > 2 ? (uint32_t)(unsigned char)bytes[i + 2] : 0U;
        out[used++] = alphabet[bits >> 18 & 63U];
        out[used++] = alphabet[bits >> 12 & 63U];
        out[used++] = n > 1 ? alphabet[bits >> 6 & 63U] : '=';
        out[used++] = n > 2 ? alphabet[bits & 63U] : '=';
    }
    out[used] = '\0';
    return out;
}
