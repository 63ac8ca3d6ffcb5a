/* SPDX-License-Identifier: Apache-2.0 */
/* String views and strict number parsing. Values only, no state; any thread. */
#ifndef WEFT_BASE_STR_H
#define WEFT_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A borrowed piece of text, not NUL-terminated. */
struct weft_str {
    const char *data;
    size_t len;
};

/* For printf: "%.*s", WEFT_STR_ARG(s) */
#define WEFT_STR_ARG(s) (int)(s).len, (s).data

struct weft_str weft_str(const char *text);
/* Inline, so that a literal's length is known when they are compiled: parsers ask them per line. */
static inline bool weft_str_eq(struct weft_str s, const char *text)
{
    return strlen(text) == s.len && memcmp(s.data, text, s.len) == 0;
}
static inline bool weft_str_starts(struct weft_str s, const char *prefix)
{
    const size_t n = strlen(prefix);
    return n <= s.len && memcmp(s.data, prefix, n) == 0;
}
bool weft_str_ends(struct weft_str s, const char *suffix);
/* Without ASCII white space (blank, tab, CR, LF, VT, FF) at both ends. */
struct weft_str weft_str_trim(struct weft_str s);
/* Takes the next line off *rest, without its LF and one CR before it; false at the end. A last
 * line without LF counts. */
bool weft_str_line(struct weft_str *rest, struct weft_str *ret_line);
/* Takes the next piece up to sep off *rest (sep itself is dropped); false at the end. "a," gives
 * "a" and "" . */
bool weft_str_split(struct weft_str *rest, char sep, struct weft_str *ret_piece);
/* Takes the next word between ASCII white space off *rest; false if there is none. */
bool weft_str_word(struct weft_str *rest, struct weft_str *ret_word);
/* Replaces control bytes other than those of keep by "?": names come from files and from hosts of a
 * fabric, and a terminal would obey them. */
void weft_str_printable(char *text, size_t len, const char *keep);

/* Strict decimal, the whole text, no blanks, sign only for i64, within [min, max]: 0 or -EINVAL
 * (not a number) or -ERANGE. *ret_value is untouched on failure. */
int weft_parse_i64(struct weft_str s, int64_t min, int64_t max, int64_t *ret_value)
    __attribute__((warn_unused_result));
int weft_parse_u64(struct weft_str s, uint64_t max, uint64_t *ret_value)
    __attribute__((warn_unused_result));
/* Hexadecimal of 1 to 16 digits with or without 0x. 0 or -EINVAL. */
int weft_parse_hex64(struct weft_str s, uint64_t *ret_value) __attribute__((warn_unused_result));
/* "<int>ms|s|m|h" to nanoseconds (Go's duration form, one unit). 0, -EINVAL or -ERANGE. */
int weft_parse_duration(struct weft_str s, int64_t *ret_ns) __attribute__((warn_unused_result));

/* Compares as people expect numbers in names to sort: gpu-2 before gpu-10. <0, 0, >0. Equal only
 * if the texts are equal byte for byte. */
int weft_str_natural_cmp(const char *a, const char *b);

/* FNV-1a, 64 bit, with a final mix (murmur3 fmix64): stable over versions, as names are made from
 * it. seed chains several pieces: start with WEFT_HASH_SEED. Not for untrusted collisions. */
#define WEFT_HASH_SEED UINT64_C(0xcbf29ce484222325)
uint64_t weft_hash64(uint64_t seed, const void *bytes, size_t len);

/* Several times as fast, and free to change with any version or byte order: for tables in memory
 * only. Not for untrusted collisions either. */
uint64_t weft_hash_in_memory(const void *bytes, size_t len);

/* Is the text valid UTF-8 without NUL? */
bool weft_utf8_valid(const char *bytes, size_t len);
/* RFC 1123 label: 1..63 of [a-z0-9-], alphanumeric at both ends. */
bool weft_dns_label_valid(const char *text);
/* RFC 1123 subdomain as Kubernetes checks it (IsDNS1123Subdomain): labels joined by dots, at most
 * 253 bytes in all; a label may be longer than 63. */
bool weft_dns_subdomain_valid(const char *text);
/* Is it what stands before the name in a label's key: a DNS subdomain and a slash? */
bool weft_label_prefix_valid(const char *text);

#endif
