/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSM's partitions.conf: "name=0xPKEY, flag, flag=value : member, member ;" over any number of
 * lines, with # comments. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "pkg/base/str.h"
#include "pkg/fabric/inventory.h"
#include "pkg/fabric/partitions.h"

enum { PKEY_MASK = 0x7fff, WORD_MAX = 256 };

void weft_ib_partitions_free(struct weft_ib_partitions *partitions)
{
    if (partitions == NULL) {
        return;
    }
    for (size_t i = 0; i < partitions->count; i++) {
        weft_free(partitions->items[i].name);
        weft_free(partitions->items[i].guids);
    }
    weft_free(partitions->items);
    weft_free(partitions->source);
    weft_free(partitions);
}

/* ---- statements ---- */

struct reader {
    struct weft_ib_partitions *partitions;
    struct weft_str rest;
    unsigned line;
    size_t members; /* in all */
    struct weft_error *err;
};

static int fail(const struct reader *r, unsigned line, const char *what, struct weft_str found)
{
    const int len = found.len < 40 ? (int)found.len : 40;
    return weft_err_set(r->err, -EINVAL, WEFT_ERR_CONFIG, "%s:%u: %s: \"%.*s\"",
                        r->partitions->source, line, what, len, found.data);
}

/* Blanks, line ends and comments. */
static void skip(struct reader *r)
{
    bool comment = false;
    for (; r->rest.len > 0; r->rest.data++, r->rest.len--) {
        const char c = *r->rest.data;
        comment = c != '\n' && (comment || c == '#');
        if (!comment && strchr(" \t\r\n", c) == NULL) {
            return;
        }
        r->line += c == '\n' ? 1 : 0;
    }
}

static bool is_mark(char c)
{
    return c == ',' || c == ':' || c == ';' || c == '=' || c == '#';
}

/* The next word, which may be empty, and the mark after it ('\0' at the end of the text). A GUID
 * may hold no colon here, as the colon ends the definition. */
static char next(struct reader *r, struct weft_str *ret_word)
{
    skip(r);
    struct weft_str word = {r->rest.data, 0};
    while (r->rest.len > 0 && !is_mark(*r->rest.data) && *r->rest.data != '\n') {
        r->rest.data++;
        r->rest.len--;
        word.len++;
    }
    *ret_word = weft_str_trim(word);
    skip(r);
    if (r->rest.len == 0) {
        return '\0';
    }
    const char mark = *r->rest.data;
    if (!is_mark(mark)) {
        return ' '; /* a second word where a mark should be */
    }
    r->rest.data++;
    r->rest.len--;
    return mark;
}

static int parse_pkey(const struct reader *r, unsigned line, struct weft_str word,
                      uint16_t *ret_pkey)
{
    uint64_t value = 0;
    const bool hex = weft_str_starts(word, "0x") || weft_str_starts(word, "0X");
    const int rc = hex ? weft_parse_hex64(word, &value) : weft_parse_u64(word, UINT16_MAX, &value);
    if (rc < 0 || value > UINT16_MAX) {
        return fail(r, line, "no P_Key, which is a number up to 0xffff", word);
    }
    *ret_pkey = (uint16_t)(value & PKEY_MASK);
    return 0;
}

/* The partition of that name or P_Key, added if it is new. */
static int partition_of(struct reader *r, unsigned line, struct weft_str name, uint16_t pkey,
                        struct weft_partition **ret)
{
    struct weft_ib_partitions *p = r->partitions;
    for (size_t i = 0; i < p->count; i++) {
        struct weft_partition *item = &p->items[i];
        if ((name.len > 0 && weft_str_eq(name, item->name)) || (pkey != 0 && pkey == item->pkey)) {
            item->pkey = item->pkey != 0 ? item->pkey : pkey;
            *ret = item;
            return 0;
        }
    }
    if (p->count == WEFT_PARTITIONS_MAX) {
        return weft_err_set(r->err, -EFBIG, WEFT_ERR_CONFIG, "%s:%u: more than %d partitions",
                            p->source, line, (int)WEFT_PARTITIONS_MAX);
    }
    struct weft_partition *items = weft_reallocarray(p->items, p->count + 1, sizeof(*items));
    if (items == NULL) {
        return weft_err_nomem(r->err);
    }
    p->items = items;
    items[p->count] = (struct weft_partition){
        .name = weft_strndup(name.data, name.len), .pkey = pkey, .line = line};
    if (items[p->count].name == NULL) {
        return weft_err_nomem(r->err);
    }
    *ret = &items[p->count++];
    return 0;
}

/* Up to the colon; or to the semicolon of a statement without members. */
static int read_definition(struct reader *r, struct weft_partition **ret_partition, char *ret_mark)
{
    struct weft_str name = {0};
    struct weft_str word = {0};
    uint16_t pkey = 0;
    const unsigned line = r->line;
    char mark = next(r, &name);
    if (name.len > WORD_MAX) {
        return fail(r, line, "a name longer than 256 bytes", name);
    }
    if (name.len == 0) {
        return fail(r, line, "a partition has a name or a P_Key", r->rest);
    }
    int rc = 0;
    if (mark == '=') {
        mark = next(r, &word);
        rc = parse_pkey(r, line, word, &pkey);
    } else if (weft_str_starts(name, "0x")) { /* a P_Key alone */
        rc = parse_pkey(r, line, name, &pkey);
        name.len = 0;
    }
    while (rc == 0 && (mark == ',' || mark == '=')) { /* flags decide nothing here */
        mark = next(r, &word);
    }
    if (rc == 0 && mark != ':' && mark != ';') {
        return fail(r, r->line, "\":\" or \";\" is expected after a partition's definition",
                    mark == '\0' ? weft_str("the end of the file") : word);
    }
    *ret_mark = mark;
    return rc < 0 ? rc : partition_of(r, line, name, pkey, ret_partition);
}

static int add_guid(struct reader *r, struct weft_partition *partition, uint64_t guid)
{
    if (r->members++ == WEFT_PARTITION_MEMBERS_MAX) {
        return weft_err_set(r->err, -EFBIG, WEFT_ERR_CONFIG, "%s:%u: more than %d members",
                            r->partitions->source, r->line, (int)WEFT_PARTITION_MEMBERS_MAX);
    }
    /* room is doubled at each power of two */
    if ((partition->count & (partition->count - 1)) == 0) {
        const size_t room = partition->count == 0 ? 1 : partition->count * 2;
        uint64_t *guids = weft_reallocarray(partition->guids, room, sizeof(*guids));
        if (guids == NULL) {
            return weft_err_nomem(r->err);
        }
        partition->guids = guids;
    }
    partition->guids[partition->count++] = guid;
    return 0;
}

/* A port's GUID, or one of the words that stand for many. */
static int add_member(struct reader *r, struct weft_partition *partition, struct weft_str word)
{
    static const struct {
        const char *word;
        bool everybody;
    } words[] = {{"ALL", true},          {"ALL_CAS", true},   {"ALL_SWITCHES", false},
                 {"ALL_ROUTERS", false}, {"ALL_VCAS", false}, {"SELF", false}};
    uint64_t guid = 0;
    for (size_t i = 0; i < WEFT_ARRAY_LEN(words); i++) {
        if (word.len == strlen(words[i].word) &&
            strncasecmp(word.data, words[i].word, word.len) == 0) {
            partition->everybody = partition->everybody || words[i].everybody;
            return 0;
        }
    }
    if (!weft_str_starts(word, "0x") || weft_parse_hex64(word, &guid) < 0 || guid == 0) {
        return fail(r, r->line, "no port GUID like 0x0002c903000e0b72, ALL or SELF", word);
    }
    return add_guid(r, partition, guid);
}

static int read_members(struct reader *r, struct weft_partition *partition)
{
    char mark = ',';
    while (mark == ',') {
        struct weft_str word = {0};
        struct weft_str value = {0};
        mark = next(r, &word);
        if (mark == '=') { /* full, limited or both: all are members */
            mark = next(r, &value);
        }
        const bool nothing = word.len == 0 && mark == ';';
        const int rc = nothing ? 0 : add_member(r, partition, word);
        if (rc < 0) {
            return rc;
        }
        if (mark != ',' && mark != ';') {
            return fail(r, r->line, "\",\" or \";\" is expected after a member",
                        mark == '\0' ? weft_str("the end of the file") : word);
        }
    }
    return 0;
}

static int compare_guids(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void sort_members(struct weft_partition *p)
{
    size_t kept = 0;
    if (p->count > 1) {
        qsort(p->guids, p->count, sizeof(*p->guids), compare_guids);
    }
    for (size_t i = 0; i < p->count; i++) {
        if (kept == 0 || p->guids[i] != p->guids[kept - 1]) {
            p->guids[kept++] = p->guids[i];
        }
    }
    p->count = kept;
}

int weft_parse_ib_partitions(const char *text, size_t len, const char *source,
                             struct weft_ib_partitions **ret, struct weft_error *err)
{
    weft_auto(weft_ib_partitions_free) struct weft_ib_partitions *p = weft_calloc(1, sizeof(*p));
    if (p == NULL || (p->source = weft_strdup(source)) == NULL) {
        return weft_err_nomem(err);
    }
    if (len > 0 && memchr(text, '\0', len) != NULL) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s: a NUL: this is no text", source);
    }
    struct reader r = {.partitions = p, .rest = {text, len}, .line = 1, .err = err};
    for (skip(&r); r.rest.len > 0; skip(&r)) {
        struct weft_partition *partition = NULL;
        char mark = '\0';
        int rc = read_definition(&r, &partition, &mark);
        if (rc == 0 && mark == ':' && partition != NULL) {
            rc = read_members(&r, partition);
        }
        if (rc < 0) {
            return rc;
        }
    }
    if (p->count == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s: no partition", source);
    }
    for (size_t i = 0; i < p->count; i++) {
        sort_members(&p->items[i]);
    }
    *ret = weft_steal(&p);
    return 0;
}

/* ---- roles ---- */

static bool is_named(const struct weft_partition *p, const char *wanted)
{
    uint64_t pkey = 0;
    if (weft_str_starts(weft_str(wanted), "0x")) {
        return weft_parse_hex64(weft_str(wanted), &pkey) == 0 && p->pkey != 0 &&
               (pkey & PKEY_MASK) == p->pkey;
    }
    return strcmp(p->name, wanted) == 0;
}

static int set_roles(const struct weft_partition *p, enum weft_nic_role role,
                     struct weft_nic_inventory *inventory)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->count; i++) {
        rc = weft_nic_inventory_set_role(inventory, p->guids[i], role);
    }
    return rc;
}

int weft_ib_partitions_roles(const struct weft_ib_partitions *partitions, char *const *wanted,
                             size_t wanted_count, struct weft_nic_inventory *inventory,
                             struct weft_error *err)
{
    int rc = 0;
    for (size_t w = 0; w < wanted_count; w++) {
        const struct weft_partition *found = NULL;
        for (size_t i = 0; i < partitions->count; i++) {
            found = is_named(&partitions->items[i], wanted[w]) ? &partitions->items[i] : found;
        }
        if (found == NULL) {
            return weft_err_set(err, -ENOENT, WEFT_ERR_CONFIG, "%s: no partition \"%.80s\"",
                                partitions->source, wanted[w]);
        }
        if (found->everybody || found->count == 0) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "%s:%u: partition \"%.80s\" has %s: it tells no adapter apart",
                                partitions->source, found->line, wanted[w],
                                found->everybody ? "everybody" : "no member");
        }
    }
    for (size_t i = 0; rc == 0 && i < partitions->count; i++) {
        const struct weft_partition *p = &partitions->items[i];
        bool compute = false;
        for (size_t w = 0; w < wanted_count; w++) {
            compute = compute || is_named(p, wanted[w]);
        }
        if (!p->everybody) {
            rc = set_roles(p, compute ? WEFT_NIC_COMPUTE : WEFT_NIC_OTHER, inventory);
        }
    }
    return rc < 0 ? weft_err_errno(err, -rc, "roles of adapters") : 0;
}
