/* SPDX-License-Identifier: Apache-2.0 */
/* Node names in short, as Slurm writes them: names that differ in one number become a range. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/fabric/hostlist.h"

/* A name cut at the last number of its first label: what follows a dot is a domain. */
struct cut {
    const char *name;
    size_t before; /* length of what stands before the number */
    size_t digits; /* 0: no number */
    uint64_t number;
};

enum { DIGITS_MAX = 18 };

static struct cut cut_name(const char *name)
{
    struct cut cut = {.name = name};
    size_t end = strcspn(name, ".");
    while (end > 0 && !isdigit((unsigned char)name[end - 1])) {
        end--;
    }
    size_t start = end;
    while (start > 0 && isdigit((unsigned char)name[start - 1])) {
        start--;
    }
    const struct weft_str digits = {name + start, end - start};
    if (digits.len == 0 || digits.len > DIGITS_MAX ||
        weft_parse_u64(digits, UINT64_MAX, &cut.number) < 0) {
        return cut;
    }
    cut.before = start;
    cut.digits = digits.len;
    return cut;
}

static const char *after(const struct cut *cut)
{
    return cut->name + cut->before + cut->digits;
}

/* Same text around a number of the same width: one list. */
static bool alike(const struct cut *a, const struct cut *b)
{
    return a->digits > 0 && a->digits == b->digits && a->before == b->before &&
           memcmp(a->name, b->name, a->before) == 0 && strcmp(after(a), after(b)) == 0;
}

static int compare_cut(const void *a, const void *b)
{
    return weft_str_natural_cmp(((const struct cut *)a)->name, ((const struct cut *)b)->name);
}

static void put_range(struct weft_buf *buf, const struct cut *first, const struct cut *last)
{
    (void)weft_buf_append(buf, first->name + first->before, first->digits);
    if (last != first) {
        (void)weft_buf_putc(buf, '-');
        (void)weft_buf_append(buf, last->name + last->before, last->digits);
    }
}

/* cuts[0, count) are alike, ascending. */
static void put_list(struct weft_buf *buf, const struct cut *cuts, size_t count)
{
    if (count == 1) {
        (void)weft_buf_puts(buf, cuts[0].name);
        return;
    }
    (void)weft_buf_append(buf, cuts[0].name, cuts[0].before);
    (void)weft_buf_putc(buf, '[');
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;
        while (end < count && cuts[end].number == cuts[end - 1].number + 1) {
            end++;
        }
        (void)weft_buf_puts(buf, i > 0 ? "," : "");
        put_range(buf, &cuts[i], &cuts[end - 1]);
        i = end;
    }
    (void)weft_buf_putc(buf, ']');
    (void)weft_buf_puts(buf, after(&cuts[0]));
}

int weft_hostlist_format(const char *const *names, size_t count, const char *separator, size_t max,
                         struct weft_buf *buf)
{
    weft_autofree struct cut *cuts = weft_calloc(count, sizeof(*cuts));
    if (cuts == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        cuts[i] = cut_name(names[i]);
    }
    qsort(cuts, count, sizeof(*cuts), compare_cut);
    size_t pieces = 0;
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;
        while (end < count && alike(&cuts[i], &cuts[end])) {
            end++;
        }
        if (pieces++ == max) {
            (void)weft_buf_printf(buf, " and %zu more", count - i);
            break;
        }
        (void)weft_buf_puts(buf, i > 0 ? separator : "");
        put_list(buf, &cuts[i], end - i);
        i = end;
    }
    return buf->status;
}
