/* SPDX-License-Identifier: Apache-2.0 */
/* String views, strict numbers, natural order, name hash. */
#include "pkg/base/str.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

struct weft_str weft_str(const char *text)
{
    return (struct weft_str){.data = text, .len = strlen(text)};
}

bool weft_str_ends(struct weft_str s, const char *suffix)
{
    const size_t n = strlen(suffix);
    return n <= s.len && memcmp(s.data + s.len - n, suffix, n) == 0;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct weft_str weft_str_trim(struct weft_str s)
{
    while (s.len > 0 && is_space(s.data[0])) {
        s.data++;
        s.len--;
    }
    while (s.len > 0 && is_space(s.data[s.len - 1])) {
        s.len--;
    }
    return s;
}

void weft_str_printable(char *text, size_t len, const char *keep)
{
    for (size_t i = 0; i < len; i++) {
        const bool control = (unsigned char)text[i] < ' ' || text[i] == '\x7f';
        if (control && (text[i] == '\0' || strchr(keep, text[i]) == NULL)) {
            text[i] = '?';
        }
    }
}

bool weft_str_split(struct weft_str *rest, char sep, struct weft_str *ret_piece)
{
    if (rest->data == NULL) {
        return false;
    }
    const char *end = rest->len > 0 ? memchr(rest->data, sep, rest->len) : NULL;
    *ret_piece = *rest;
    if (end == NULL) {
        *rest = (struct weft_str){0};
        return true;
    }
    ret_piece->len = (size_t)(end - rest->data);
    rest->data = end + 1;
    rest->len -= ret_piece->len + 1;
    return true;
}

bool weft_str_line(struct weft_str *rest, struct weft_str *ret_line)
{
    if (rest->len == 0 || !weft_str_split(rest, '\n', ret_line)) {
        return false;
    }
    if (ret_line->len > 0 && ret_line->data[ret_line->len - 1] == '\r') {
        ret_line->len--;
    }
    return true;
}

bool weft_str_word(struct weft_str *rest, struct weft_str *ret_word)
{
    while (rest->len > 0 && is_space(rest->data[0])) {
        rest->data++;
        rest->len--;
    }
    size_t n = 0;
    while (n < rest->len && !is_space(rest->data[n])) {
        n++;
    }
    if (n == 0) {
        return false;
    }
    *ret_word = (struct weft_str){.data = rest->data, .len = n};
    rest->data += n;
    rest->len -= n;
    return true;
}

int weft_parse_u64(struct weft_str s, uint64_t max, uint64_t *ret_value)
{
    if (s.len == 0) {
        return -EINVAL;
    }
    uint64_t value = 0;
    bool over = false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] < '0' || s.data[i] > '9') {
            return -EINVAL;
        }
        over = over || __builtin_mul_overflow(value, UINT64_C(10), &value) ||
               __builtin_add_overflow(value, (uint64_t)(s.data[i] - '0'), &value);
    }
    if (over || value > max) {
        return -ERANGE;
    }
    *ret_value = value;
    return 0;
}

int weft_parse_i64(struct weft_str s, int64_t min, int64_t max, int64_t *ret_value)
{
    const bool negative = s.len > 0 && s.data[0] == '-';
    if (negative) {
        s.data++;
        s.len--;
    }
    uint64_t magnitude = 0;
    const int rc = weft_parse_u64(s, (uint64_t)INT64_MAX, &magnitude);
    if (rc < 0) {
        return rc;
    }
    const int64_t value = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    if (value < min || value > max) {
        return -ERANGE;
    }
    *ret_value = value;
    return 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int weft_parse_hex64(struct weft_str s, uint64_t *ret_value)
{
    if (weft_str_starts(s, "0x") || weft_str_starts(s, "0X")) {
        s.data += 2;
        s.len -= 2;
    }
    if (s.len == 0 || s.len > 16) {
        return -EINVAL;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < s.len; i++) {
        const int digit = hex_digit(s.data[i]);
        if (digit < 0) {
            return -EINVAL;
        }
        value = value << 4 | (uint64_t)digit;
    }
    *ret_value = value;
    return 0;
}

int weft_parse_duration(struct weft_str s, int64_t *ret_ns)
{
    static const struct {
        const char *unit;
        int64_t ns;
    } units[] = {
        {"ms", 1000000},
        {"s", 1000000000},
        {"m", INT64_C(60000000000)},
        {"h", INT64_C(3600000000000)},
    };
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (!weft_str_ends(s, units[i].unit)) {
            continue;
        }
        const struct weft_str digits = {.data = s.data, .len = s.len - strlen(units[i].unit)};
        int64_t value = 0;
        const int rc = weft_parse_i64(digits, 0, INT64_MAX / units[i].ns, &value);
        if (rc == 0) {
            *ret_ns = value * units[i].ns;
        }
        return rc;
    }
    return -EINVAL;
}

static size_t digit_run(const char *s)
{
    size_t n = 0;
    while (isdigit((unsigned char)s[n]) != 0) {
        n++;
    }
    return n;
}

/* Compares two runs of digits by value; 0 if the values are equal whatever their zeros. */
static int number_cmp(const char *a, size_t a_len, const char *b, size_t b_len)
{
    while (a_len > 1 && *a == '0') {
        a++;
        a_len--;
    }
    while (b_len > 1 && *b == '0') {
        b++;
        b_len--;
    }
    if (a_len != b_len) {
        return a_len < b_len ? -1 : 1;
    }
    return memcmp(a, b, a_len);
}

int weft_str_natural_cmp(const char *a, const char *b)
{
    const char *p = a;
    const char *q = b;
    while (*p != '\0' && *q != '\0') {
        const size_t p_digits = digit_run(p);
        const size_t q_digits = digit_run(q);
        if (p_digits > 0 && q_digits > 0) {
            const int order = number_cmp(p, p_digits, q, q_digits);
            if (order != 0) {
                return order;
            }
            p += p_digits;
            q += q_digits;
        } else if (*p != *q) {
            return (unsigned char)*p < (unsigned char)*q ? -1 : 1;
        } else {
            p++;
            q++;
        }
    }
    if (*p != *q) {
        return *p == '\0' ? -1 : 1;
    }
    return strcmp(a, b);
}

uint64_t weft_hash64(uint64_t seed, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint64_t h = seed;
    for (size_t i = 0; i < len; i++) {
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    }
    h ^= h >> 33;
    h *= UINT64_C(0xff51afd7ed558ccd);
    h ^= h >> 33;
    h *= UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ h >> 33;
}

uint64_t weft_hash_in_memory(const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint64_t h = WEFT_HASH_SEED ^ len;
    for (; len > 0;) {
        const size_t step = len < sizeof(uint64_t) ? len : sizeof(uint64_t);
        uint64_t word = 0;
        memcpy(&word, p, step);
        h = (h ^ word) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 32;
        p += step;
        len -= step;
    }
    h *= UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ h >> 33;
}

/* Bytes that follow a UTF-8 lead byte, -1 for a byte that cannot lead; *ret_min is the smallest
 * second byte and *ret_max the largest (they exclude overlong forms, surrogates, > U+10FFFF). */
static int utf8_tail(unsigned char lead, unsigned char *ret_min, unsigned char *ret_max)
{
    *ret_min = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    *ret_max = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (lead < 0x80) {
        return lead == 0 ? -1 : 0;
    }
    if (lead < 0xc2 || lead > 0xf4) {
        return -1;
    }
    return lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
}

/* Are all eight bytes ASCII, and none NUL? */
static bool ascii_word(const unsigned char *bytes)
{
    uint64_t word = 0;
    memcpy(&word, bytes, sizeof(word));
    const uint64_t high = UINT64_C(0x8080808080808080);
    return ((word | (word - UINT64_C(0x0101010101010101))) & high) == 0;
}

bool weft_utf8_valid(const char *bytes, size_t len)
{
    const unsigned char *p = (const unsigned char *)bytes;
    for (size_t i = 0; i < len;) {
        if (len - i >= sizeof(uint64_t) && ascii_word(p + i)) {
            i += sizeof(uint64_t);
            continue;
        }
        unsigned char min;
        unsigned char max;
        const int tail = utf8_tail(p[i], &min, &max);
        if (tail < 0 || (size_t)tail >= len - i) {
            return false;
        }
        for (int t = 1; t <= tail; t++) {
            if (p[i + (size_t)t] < min || p[i + (size_t)t] > max) {
                return false;
            }
            min = 0x80;
            max = 0xbf;
        }
        i += (size_t)tail + 1;
    }
    return true;
}

static bool dns_label(const char *s, size_t len, size_t max)
{
    if (len == 0 || len > max || s[0] == '-' || s[len - 1] == '-') {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9') || s[i] == '-')) {
            return false;
        }
    }
    return true;
}

bool weft_dns_label_valid(const char *text)
{
    return dns_label(text, strlen(text), 63);
}

bool weft_dns_subdomain_valid(const char *text)
{
    struct weft_str rest = weft_str(text);
    if (rest.len > 253) {
        return false;
    }
    struct weft_str label;
    while (weft_str_split(&rest, '.', &label)) {
        if (!dns_label(label.data, label.len, 253)) {
            return false;
        }
    }
    return true;
}

bool weft_label_prefix_valid(const char *text)
{
    const size_t len = strlen(text);
    char domain[254];
    if (len < 2 || len > sizeof(domain) || text[len - 1] != '/') {
        return false;
    }
    memcpy(domain, text, len - 1);
    domain[len - 1] = '\0';
    return weft_dns_subdomain_valid(domain);
}
