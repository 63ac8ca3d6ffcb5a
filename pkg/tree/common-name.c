/* SPDX-License-Identifier: Apache-2.0 */
/* A short name for a set of switches from what their names have in common. For display and slugs
 * only: never an identity. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/str.h"
#include "pkg/tree/rails.h"
#include "pkg/tree/tree-internal.h"

enum { NAME_MAX_LEN = 128, PREFIX_MIN = 3 };

static bool is_separator(char c)
{
    return !isalnum((unsigned char)c);
}

/* Takes the next word and the separators before it. */
static bool next_word(const char **p, struct weft_str *ret_separator, struct weft_str *ret_word)
{
    const char *start = *p;
    while (**p != '\0' && is_separator(**p)) {
        (*p)++;
    }
    *ret_separator = (struct weft_str){start, (size_t)(*p - start)};
    const char *word = *p;
    while (**p != '\0' && !is_separator(**p)) {
        (*p)++;
    }
    *ret_word = (struct weft_str){word, (size_t)(*p - word)};
    return ret_word->len > 0;
}

static size_t count_words(const char *name)
{
    struct weft_str separator = {0};
    struct weft_str word = {0};
    size_t count = 0;
    while (next_word(&name, &separator, &word)) {
        count++;
    }
    return count;
}

/* Is the index-th word of all names this one? */
static bool all_have(char *const *names, size_t count, size_t index, struct weft_str word)
{
    for (size_t i = 1; i < count; i++) {
        const char *p = names[i];
        struct weft_str separator = {0};
        struct weft_str other = {0};
        for (size_t w = 0; w <= index; w++) {
            if (!next_word(&p, &separator, &other)) {
                return false;
            }
        }
        if (other.len != word.len || memcmp(other.data, word.data, word.len) != 0) {
            return false;
        }
    }
    return true;
}

/* The words that all names have at the same place. */
static void common_words(char *const *names, size_t count, struct weft_buf *buf)
{
    const size_t words = count_words(names[0]);
    for (size_t i = 1; i < count; i++) {
        if (count_words(names[i]) != words) {
            return;
        }
    }
    const char *p = names[0];
    struct weft_str separator = {0};
    struct weft_str word = {0};
    for (size_t index = 0; next_word(&p, &separator, &word); index++) {
        if (all_have(names, count, index, word)) {
            (void)weft_buf_append(buf, buf->len > 0 && separator.len > 0 ? separator.data : "",
                                  buf->len > 0 && separator.len > 0 ? 1 : 0);
            (void)weft_buf_append(buf, word.data, word.len);
        }
    }
}

/* The letters that all names begin with, without digits and separators at the end. */
static void common_prefix(char *const *names, size_t count, struct weft_buf *buf)
{
    size_t len = strlen(names[0]);
    for (size_t i = 1; i < count; i++) {
        size_t same = 0;
        while (same < len && names[i][same] == names[0][same]) {
            same++;
        }
        len = same;
    }
    while (len > 0 && !isalpha((unsigned char)names[0][len - 1])) {
        len--;
    }
    if (len >= PREFIX_MIN) {
        (void)weft_buf_append(buf, names[0], len);
    }
}

static bool has_letter(const char *text)
{
    for (; *text != '\0'; text++) {
        if (isalpha((unsigned char)*text)) {
            return true;
        }
    }
    return false;
}

int weft_common_name(char *const *names, size_t count, char **ret_name)
{
    *ret_name = NULL;
    if (count == 0) {
        return 0;
    }
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, (size_t)4 * NAME_MAX_LEN);
    common_words(names, count, &buf);
    if (buf.status == -EFBIG || buf.len < 2 || !has_letter(weft_buf_text(&buf))) {
        weft_buf_reset(&buf);
        common_prefix(names, count, &buf);
    }
    if (buf.status == -ENOMEM) {
        return -ENOMEM;
    }
    if (buf.status < 0 || buf.len == 0) {
        return 0;
    }
    *ret_name = weft_strndup(weft_buf_text(&buf), NAME_MAX_LEN);
    return *ret_name != NULL ? 0 : -ENOMEM;
}

/* The index-th word of a name; false if it has fewer. */
static bool word_at(const char *name, size_t index, struct weft_str *ret_separator,
                    struct weft_str *ret_word)
{
    for (size_t w = 0; w <= index; w++) {
        if (!next_word(&name, ret_separator, ret_word)) {
            return false;
        }
    }
    return true;
}

static bool same_form(char *const *names, size_t count, size_t words)
{
    for (size_t i = 0; i < count; i++) {
        if (count_words(names[i]) != words) {
            return false;
        }
    }
    return count > 0;
}

int weft_sister_name(char *const *own, size_t own_count, char *const *sister, size_t sister_count,
                     const char *sister_leaf, char **ret_name)
{
    *ret_name = NULL;
    const size_t words = count_words(sister_leaf);
    if (!same_form(own, own_count, words) || !same_form(sister, sister_count, words)) {
        return 0;
    }
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, (size_t)4 * NAME_MAX_LEN);
    for (size_t w = 0; w < words; w++) {
        struct weft_str separator = {0};
        struct weft_str mine = {0};
        struct weft_str theirs = {0};
        (void)word_at(own[0], w, &separator, &mine);
        (void)word_at(sister_leaf, w, &separator, &theirs);
        /* a word that the sister's leaves share names the group: ours there. One that differs
         * among them names the rail: theirs */
        const bool group = all_have(sister, sister_count, w, theirs) &&
                           (sister_count < 2 || all_have(own, own_count, w, mine));
        const struct weft_str word = group ? mine : theirs;
        (void)weft_buf_append(&buf, separator.data, separator.len);
        (void)weft_buf_append(&buf, word.data, word.len);
    }
    if (buf.status == -ENOMEM) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < own_count && buf.status == 0; i++) {
        if (strcmp(own[i], weft_buf_text(&buf)) == 0) {
            return 0; /* that one is there */
        }
    }
    *ret_name = buf.status == 0 ? weft_buf_steal(&buf) : NULL;
    return buf.status == 0 && *ret_name == NULL ? -ENOMEM : 0;
}
