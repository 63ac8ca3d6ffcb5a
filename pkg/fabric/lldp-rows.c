/* SPDX-License-Identifier: Apache-2.0 */
/* Collects neighbours of all reports, with names and ids in one form. */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "pkg/base/str.h"
#include "pkg/fabric/lldp-internal.h"

enum { REPORTERS_MAX = 1 << 18, NAME_LEN_MAX = 253, MAC_DIGITS = 12 };

struct weft_lldp *weft_lldp_new(const char *source)
{
    struct weft_lldp *lldp = weft_calloc(1, sizeof(*lldp));
    if (lldp == NULL) {
        return NULL;
    }
    lldp->source = weft_strdup(source);
    lldp->names = weft_map_new(REPORTERS_MAX);
    if (lldp->source == NULL || lldp->names == NULL) {
        weft_lldp_free(lldp);
        return NULL;
    }
    return lldp;
}

void weft_lldp_free(struct weft_lldp *lldp)
{
    if (lldp == NULL) {
        return;
    }
    for (size_t i = 0; i < lldp->row_count; i++) {
        weft_free(lldp->rows[i].port);
        weft_free(lldp->rows[i].name);
        weft_free(lldp->rows[i].shown);
        weft_free(lldp->rows[i].peer_port);
    }
    for (size_t i = 0; i < lldp->reporter_count; i++) {
        weft_free(lldp->reporters[i].name);
        weft_free(lldp->reporters[i].folded);
    }
    for (size_t i = 0; i < lldp->file_count; i++) {
        weft_free(lldp->files[i]);
    }
    weft_free(lldp->rows);
    weft_free(lldp->reporters);
    weft_free(lldp->files);
    weft_map_free(lldp->names);
    weft_warnings_done(&lldp->warnings);
    weft_free(lldp->source);
    weft_free(lldp);
}

const char *weft_lldp_file(const struct weft_lldp *lldp)
{
    return lldp->file_count > 0 ? lldp->files[lldp->file_count - 1] : lldp->source;
}

void weft_lldp_lost(struct weft_lldp *lldp, const struct weft_error *why)
{
    lldp->partial = true;
    weft_warn(&lldp->warnings, lldp->source, 0, "a report is lost: %s", why->message);
}

static int too_many(const struct weft_lldp *lldp, int rc, struct weft_error *err)
{
    return rc == -ENOMEM
               ? weft_err_nomem(err)
               : weft_err_set(err, rc, WEFT_ERR_CONFIG, "%s: more than %d neighbours or %d systems",
                              weft_lldp_file(lldp), (int)WEFT_LLDP_NEIGHBORS_MAX,
                              (int)REPORTERS_MAX);
}

static char *fold(const char *text)
{
    char *folded = weft_strdup(text);
    for (char *p = folded; p != NULL && *p != '\0'; p++) {
        *p = (char)tolower((unsigned char)*p);
    }
    return folded;
}

int weft_lldp_reporter(struct weft_lldp *lldp, const char *name, size_t *ret_reporter,
                       struct weft_error *err)
{
    if (name == NULL || name[0] == '\0' || strlen(name) > NAME_LEN_MAX) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s: the report does not say whose it is: a system's name is needed",
                            weft_lldp_file(lldp));
    }
    weft_autofree char *folded = fold(name);
    if (folded == NULL) {
        return weft_err_nomem(err);
    }
    if (weft_map_get(lldp->names, folded, ret_reporter)) {
        return 0;
    }
    void *list = lldp->reporters;
    int rc = weft_array_reserve(&list, &lldp->reporter_cap, lldp->reporter_count + 1,
                                sizeof(*lldp->reporters), REPORTERS_MAX);
    lldp->reporters = list;
    rc = rc == 0 ? weft_map_put(lldp->names, folded, lldp->reporter_count) : rc;
    if (rc < 0) {
        return too_many(lldp, rc, err);
    }
    *ret_reporter = lldp->reporter_count;
    const struct weft_lldp_reporter reporter = {.name = weft_strdup(name),
                                                .folded = weft_steal(&folded)};
    lldp->reporters[lldp->reporter_count++] = reporter; /* owned from here on */
    return reporter.name != NULL ? 0 : weft_err_nomem(err);
}

/* "c0:62:6b:a9:62:80", "500c.0000.0105", "50-0b-…"; 0 if it is no MAC address. */
static uint64_t mac_of(const char *text)
{
    char digits[MAC_DIGITS];
    size_t count = 0;
    uint64_t mac = 0;
    for (const char *p = text; *p != '\0'; p++) {
        if (strchr(":.-", *p) != NULL) {
            continue;
        }
        if (!isxdigit((unsigned char)*p) || count == MAC_DIGITS) {
            return 0;
        }
        digits[count++] = *p;
    }
    return count == MAC_DIGITS && weft_parse_hex64((struct weft_str){digits, count}, &mac) == 0
               ? mac
               : 0;
}

char *weft_lldp_port_name(const char *name)
{
    /* abbreviations of EOS, NX-OS and IOS, before a digit; "eth0" of Linux is another name */
    static const char *const names[][2] = {{"Eth", "Ethernet"},
                                           {"Et", "Ethernet"},
                                           {"Gi", "GigabitEthernet"},
                                           {"Te", "TenGigabitEthernet"},
                                           {"Fo", "FortyGigabitEthernet"},
                                           {"Hu", "HundredGigE"}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
        const size_t len = strlen(names[i][0]);
        if (strncmp(name, names[i][0], len) == 0 && isdigit((unsigned char)name[len])) {
            return weft_asprintf("%s%s", names[i][1], name + len);
        }
    }
    return weft_strdup(name);
}

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

/* A port that gives its MAC address as its id is told by its description, if that is one word. */
static const char *peer_port_of(const struct weft_lldp_words *words)
{
    const char *id = or_empty(words->peer_port);
    const char *descr = or_empty(words->peer_port_descr);
    const bool is_word = descr[0] != '\0' && strpbrk(descr, " \t\r\n") == NULL;
    return (id[0] == '\0' || mac_of(id) != 0) && is_word ? descr : id;
}

static int fill_row(struct weft_lldp_row *row, const struct weft_lldp_words *words,
                    const char *peer_port)
{
    const char *chassis = or_empty(words->chassis);
    const char *name = or_empty(words->name);
    row->mac = mac_of(chassis);
    /* NX-OS' brief form has the system's name as its chassis id */
    name = name[0] == '\0' && row->mac == 0 ? chassis : name;
    row->port = weft_lldp_port_name(words->port);
    row->peer_port = weft_lldp_port_name(peer_port);
    row->name = fold(name);
    row->shown = weft_strdup(name[0] != '\0' ? name : chassis);
    row->dpu = strcasestr(or_empty(words->descr), "bluefield") != NULL;
    row->infrastructure = words->infrastructure;
    row->station = words->station;
    row->line = words->line;
    return row->port != NULL && row->peer_port != NULL && row->name != NULL && row->shown != NULL
               ? 0
               : -ENOMEM;
}

int weft_lldp_row(struct weft_lldp *lldp, const struct weft_lldp_words *words,
                  struct weft_error *err)
{
    const char *peer_port = peer_port_of(words);
    const bool known = or_empty(words->chassis)[0] != '\0' || or_empty(words->name)[0] != '\0';
    if (or_empty(words->port)[0] == '\0' || peer_port[0] == '\0' || !known) {
        lldp->partial = true;
        weft_warn(&lldp->warnings, weft_lldp_file(lldp), words->line,
                  "port %.40s: a neighbour without %s is passed over", or_empty(words->port),
                  known ? "a port id" : "a chassis id and a name");
        return 0;
    }
    size_t reporter = 0;
    int rc = weft_lldp_reporter(lldp, words->reporter, &reporter, err);
    if (rc < 0) {
        return rc;
    }
    void *rows = lldp->rows;
    rc = weft_array_reserve(&rows, &lldp->row_cap, lldp->row_count + 1, sizeof(*lldp->rows),
                            WEFT_LLDP_NEIGHBORS_MAX);
    lldp->rows = rows;
    if (rc < 0) {
        return too_many(lldp, rc, err);
    }
    struct weft_lldp_row *row = &lldp->rows[lldp->row_count++]; /* owned from here on */
    *row = (struct weft_lldp_row){.reporter = reporter,
                                  .file = lldp->file_count > 0 ? lldp->file_count - 1 : 0};
    lldp->reporters[reporter].rows++;
    return fill_row(row, words, peer_port) < 0 ? weft_err_nomem(err) : 0;
}
