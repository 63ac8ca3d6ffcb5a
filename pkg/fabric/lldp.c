/* SPDX-License-Identifier: Apache-2.0 */
/* From neighbours to a fabric: which systems are switches, which reports speak of one switch, which
 * rows are of one cable.
 *
 * A switch is known by its system name. Its chassis id alone does not do: NX-OS gives each port's
 * own address as chassis id, stacks share one. The name alone does not do either: switches that
 * nobody named share theirs. So chassis ids of one name are one switch if their addresses are near
 * (a switch's ports have a block of them), unless they then had one port with two cables. */
#include "pkg/fabric/lldp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/fabric/cabling-internal.h"
#include "pkg/fabric/lldp-internal.h"
#include "pkg/fabric/named-internal.h"

enum {
    /* addresses of one switch: its ports' and its own; a chassis of 1,000 ports */
    BLOCK_MAX = 1024,
};

enum side { SIDE_DROPPED, SIDE_HOST, SIDE_SWITCH };

/* A chassis id that goes with a name. */
struct chassis {
    size_t row;
    uint64_t mac;
    const char *name;
};

struct resolver {
    const struct weft_lldp *lldp;
    struct weft_named *named;
    size_t *reporter;      /* by row: the neighbour's own reports, SIZE_MAX if it has none */
    const char **names;    /* by row: what the neighbour is called, in lower case */
    bool *is_switch;       /* by reporter */
    enum side *peers;      /* by row */
    char **identity;       /* by row: of a neighbour that is a switch */
    struct weft_map *back; /* "reporter peer-name peer-port" to row */
    struct chassis *chassis;
    size_t chassis_count;
};

static void warn_row(struct resolver *r, const struct weft_lldp_row *row, const char *what)
{
    weft_warn(&r->named->warnings, r->lldp->files[row->file], row->line,
              "%.80s port %.40s: %s %.60s", r->lldp->reporters[row->reporter].name, row->port, what,
              row->shown);
}

/* ---- who is a switch ---- */

/* The neighbour among the reporters: by its whole name, else by its first label. */
static void find_reporters(struct resolver *r)
{
    for (size_t i = 0; i < r->lldp->row_count; i++) {
        const char *name = r->lldp->rows[i].name;
        size_t found = SIZE_MAX;
        if (!weft_map_get(r->lldp->names, name, &found)) {
            (void)weft_map_get_n(r->lldp->names, name, strcspn(name, "."), &found);
        }
        r->reporter[i] = found;
        r->names[i] = found != SIZE_MAX ? r->lldp->reporters[found].folded : name;
    }
}

/* The same name, or one is the other's first label. */
static bool same_host(const char *a, const char *b)
{
    const size_t len = strcspn(a, ".");
    const bool label = len > 0 && len == strcspn(b, ".") && memcmp(a, b, len) == 0;
    return strcmp(a, b) == 0 || (label && (a[len] == '\0' || b[len] == '\0'));
}

/* A reporter by the names of its own ports that hear somebody; where they do not tell, by what its
 * neighbours' rows call its ports. */
static void tell_reporters(struct resolver *r, int *votes)
{
    const struct weft_lldp *l = r->lldp;
    for (size_t i = 0; i < l->row_count; i++) {
        const struct weft_lldp_row *row = &l->rows[i];
        const enum weft_port_kind own = weft_port_kind(row->port);
        const enum weft_port_kind peer = weft_port_kind(row->peer_port);
        votes[row->reporter] += (own == WEFT_PORT_SWITCH || own == WEFT_PORT_MANAGEMENT) * 2 -
                                (own == WEFT_PORT_HOST) * 2;
        if (r->reporter[i] != SIZE_MAX) {
            votes[r->reporter[i]] += (peer == WEFT_PORT_SWITCH) - (peer == WEFT_PORT_HOST);
        }
    }
    for (size_t i = 0; i < l->reporter_count; i++) {
        r->is_switch[i] = votes[i] > 0;
    }
}

/* A neighbour that did not report itself: by the name of its port, else by what it can do. A host
 * is wired to switches, so that is what a silent neighbour of it is. */
static enum side side_of_peer(const struct resolver *r, size_t i)
{
    const struct weft_lldp_row *row = &r->lldp->rows[i];
    const bool by_switch = r->is_switch[row->reporter];
    if (r->reporter[i] != SIZE_MAX) {
        return r->is_switch[r->reporter[i]] ? SIDE_SWITCH : SIDE_HOST;
    }
    switch (weft_port_kind(row->peer_port)) {
    case WEFT_PORT_SWITCH:
        return SIDE_SWITCH;
    case WEFT_PORT_HOST:
        return SIDE_HOST;
    case WEFT_PORT_MANAGEMENT:
        return SIDE_DROPPED;
    case WEFT_PORT_UNKNOWN:
    case WEFT_PORT_KIND_COUNT:
        break;
    }
    if (row->station && !row->infrastructure) {
        return SIDE_HOST;
    }
    return !by_switch || row->infrastructure ? SIDE_SWITCH : SIDE_HOST;
}

/* Fills peers; a row that is of no cable of this fabric is dropped, the odd ones with a warning. */
static void tell_peers(struct resolver *r)
{
    for (size_t i = 0; i < r->lldp->row_count; i++) {
        const struct weft_lldp_row *row = &r->lldp->rows[i];
        const bool by_switch = r->is_switch[row->reporter];
        r->peers[i] = side_of_peer(r, i);
        if (by_switch && weft_port_kind(row->port) == WEFT_PORT_MANAGEMENT) {
            r->peers[i] = SIDE_DROPPED; /* the management network joins all switches */
        } else if (same_host(r->lldp->reporters[row->reporter].folded, r->names[i])) {
            warn_row(r, row, "passed over, it hears itself:");
            r->peers[i] = SIDE_DROPPED;
        } else if (!by_switch && row->dpu) {
            warn_row(r, row, "passed over, a data processing unit answers in place of the switch:");
            r->peers[i] = SIDE_DROPPED;
        } else if (!by_switch && r->peers[i] == SIDE_HOST) {
            warn_row(r, row, "passed over, it looks like another host:");
            r->peers[i] = SIDE_DROPPED;
        }
    }
}

/* ---- which chassis ids are one switch ---- */

static int compare_chassis(const void *a, const void *b)
{
    const struct chassis *x = a;
    const struct chassis *y = b;
    const int name = strcmp(x->name, y->name);
    if (name != 0) {
        return name;
    }
    if (x->mac != y->mac) {
        return x->mac < y->mac ? -1 : 1;
    }
    return (x->row > y->row) - (x->row < y->row);
}

/* Would chassis[from, to) as one switch have one port with two cables? */
static int find_conflict(const struct resolver *r, size_t from, size_t to, bool *ret_conflict)
{
    weft_auto(weft_map_free) struct weft_map *ports = weft_map_new(to - from + 1);
    *ret_conflict = false;
    if (ports == NULL) {
        return -ENOMEM;
    }
    for (size_t i = from; i < to; i++) {
        const struct weft_lldp_row *row = &r->lldp->rows[r->chassis[i].row];
        size_t other = 0;
        if (!weft_map_get(ports, row->peer_port, &other)) {
            if (weft_map_put(ports, row->peer_port, i) < 0) {
                return -ENOMEM;
            }
            continue;
        }
        const struct weft_lldp_row *before = &r->lldp->rows[r->chassis[other].row];
        *ret_conflict =
            *ret_conflict ||
            (r->chassis[other].mac != r->chassis[i].mac &&
             (before->reporter != row->reporter || strcmp(before->port, row->port) != 0));
    }
    return 0;
}

/* One identity for chassis[from, to), which have one name; NULL parts are by name alone. */
static int identify(struct resolver *r, size_t from, size_t to, bool by_mac)
{
    for (size_t i = from; i < to; i++) {
        const struct chassis *c = &r->chassis[i];
        char **place = &r->identity[c->row];
        *place = by_mac ? weft_asprintf("%012" PRIx64 " %s", r->chassis[from].mac, c->name)
                        : weft_strdup(c->name);
        if (*place == NULL) {
            return -ENOMEM;
        }
    }
    return 0;
}

/* Rows of one cluster of near addresses: one switch, or (a conflict) one an address. */
static int identify_cluster(struct resolver *r, size_t from, size_t to, bool alone, bool *ret_split)
{
    bool conflict = false;
    if (find_conflict(r, from, to, &conflict) < 0) {
        return -ENOMEM;
    }
    *ret_split = conflict;
    if (!conflict) {
        return identify(r, from, to, !alone);
    }
    int rc = 0;
    for (size_t i = from; rc == 0 && i < to;) {
        size_t end = i + 1;
        while (end < to && r->chassis[end].mac == r->chassis[i].mac) {
            end++;
        }
        rc = identify(r, i, end, true);
        i = end;
    }
    return rc;
}

/* chassis[from, to) have one name ("" too: then the addresses are all there is). */
static int identify_name(struct resolver *r, size_t from, size_t to)
{
    const char *name = r->chassis[from].name;
    const bool near = name[0] != '\0';
    bool several = false;
    int rc = 0;
    for (size_t i = from; rc == 0 && i < to;) {
        size_t end = i + 1;
        while (end < to &&
               r->chassis[end].mac - r->chassis[end - 1].mac <= (near ? BLOCK_MAX : 0)) {
            end++;
        }
        bool split = false;
        rc = identify_cluster(r, i, end, near && i == from && end == to, &split);
        several = several || split || i != from || end != to;
        i = end;
    }
    if (rc == 0 && near && several) {
        weft_warn(&r->named->warnings, r->lldp->source, 0,
                  "several switches are called %.80s: told apart by their chassis ids",
                  r->lldp->rows[r->chassis[from].row].shown);
    }
    return rc;
}

static int identify_switches(struct resolver *r)
{
    const struct weft_lldp *l = r->lldp;
    for (size_t i = 0; i < l->row_count; i++) {
        const struct weft_lldp_row *row = &l->rows[i];
        if (r->peers[i] == SIDE_SWITCH && row->mac != 0) {
            r->chassis[r->chassis_count++] = (struct chassis){i, row->mac, r->names[i]};
        } else if (r->peers[i] == SIDE_SWITCH) {
            r->identity[i] = weft_strdup(r->names[i]);
            if (r->identity[i] == NULL) {
                return -ENOMEM;
            }
        }
    }
    if (r->chassis_count > 0) {
        qsort(r->chassis, r->chassis_count, sizeof(*r->chassis), compare_chassis);
    }
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->chassis_count;) {
        size_t end = i + 1;
        while (end < r->chassis_count && strcmp(r->chassis[end].name, r->chassis[i].name) == 0) {
            end++;
        }
        rc = identify_name(r, i, end);
        i = end;
    }
    return rc;
}

/* ---- cables ---- */

static char *back_key(size_t reporter, const char *peer_name, const char *peer_port)
{
    return weft_asprintf("%zu %s %s", reporter, peer_name, peer_port);
}

/* Where both ends report, each knows its own port's name best: rows by (reporter, neighbour, the
 * neighbour's port). */
static int index_rows(struct resolver *r)
{
    for (size_t i = 0; i < r->lldp->row_count; i++) {
        const struct weft_lldp_row *row = &r->lldp->rows[i];
        weft_autofree char *key = back_key(row->reporter, r->names[i], row->peer_port);
        if (key == NULL || weft_map_put(r->back, key, i) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

static int own_name_of_port(const struct resolver *r, size_t i, const char **ret_port)
{
    const struct weft_lldp_row *row = &r->lldp->rows[i];
    size_t back = 0;
    *ret_port = row->peer_port;
    if (r->reporter[i] == SIZE_MAX) {
        return 0;
    }
    weft_autofree char *key =
        back_key(r->reporter[i], r->lldp->reporters[row->reporter].folded, row->port);
    if (key == NULL) {
        return -ENOMEM;
    }
    if (weft_map_get(r->back, key, &back)) {
        *ret_port = r->lldp->rows[back].port;
    }
    return 0;
}

static int add_cable(struct resolver *r, size_t i)
{
    const struct weft_lldp_row *row = &r->lldp->rows[i];
    const bool is_switch = r->peers[i] == SIDE_SWITCH;
    const struct weft_lldp_reporter *reporter = &r->lldp->reporters[row->reporter];
    const char *identity = is_switch ? r->identity[i] : r->names[i];
    const char *port = NULL;
    size_t own = 0;
    size_t peer = 0;
    int rc = weft_named_device(r->named, r->is_switch[row->reporter], reporter->folded,
                               reporter->name, row->line, &own);
    rc = rc == 0
             ? weft_named_device(r->named, is_switch, identity[0] != '\0' ? identity : row->shown,
                                 row->shown, row->line, &peer)
             : rc;
    rc = rc == 0 ? own_name_of_port(r, i, &port) : rc;
    return rc == 0 ? weft_named_cable(r->named, own, row->port, peer, port, false) : rc;
}

struct heard {
    size_t reporter;
    const char *port;
    size_t row;
};

static int compare_heard(const void *a, const void *b)
{
    const struct heard *x = a;
    const struct heard *y = b;
    if (x->reporter != y->reporter) {
        return x->reporter < y->reporter ? -1 : 1;
    }
    const int port = strcmp(x->port, y->port);
    return port != 0 ? port : (x->row > y->row) - (x->row < y->row);
}

static bool same_peer(const struct resolver *r, size_t a, size_t b)
{
    const char *p = r->identity[a] != NULL ? r->identity[a] : r->names[a];
    const char *q = r->identity[b] != NULL ? r->identity[b] : r->names[b];
    return strcmp(p, q) == 0 && strcmp(r->lldp->rows[a].peer_port, r->lldp->rows[b].peer_port) == 0;
}

/* heard[from, to) are of one port. With several neighbours it is not known at which it is. */
static int add_port(struct resolver *r, const struct heard *heard, size_t from, size_t to)
{
    for (size_t i = from + 1; i < to; i++) {
        if (!same_peer(r, heard[from].row, heard[i].row)) {
            r->named->partial = true;
            warn_row(r, &r->lldp->rows[heard[i].row],
                     "passed over, several neighbours are heard, one of them");
            return 0;
        }
    }
    return add_cable(r, heard[from].row);
}

static int add_cables(struct resolver *r)
{
    const struct weft_lldp *l = r->lldp;
    weft_autofree struct heard *heard = weft_calloc(l->row_count, sizeof(*heard));
    size_t count = 0;
    int rc = heard != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < l->row_count; i++) {
        if (r->peers[i] != SIDE_DROPPED) {
            heard[count++] = (struct heard){l->rows[i].reporter, l->rows[i].port, i};
        }
    }
    if (count > 0) {
        qsort(heard, count, sizeof(*heard), compare_heard);
    }
    for (size_t i = 0; rc == 0 && i < count;) {
        size_t end = i + 1;
        while (end < count && heard[end].reporter == heard[i].reporter &&
               strcmp(heard[end].port, heard[i].port) == 0) {
            end++;
        }
        rc = add_port(r, heard, i, end);
        i = end;
    }
    return rc;
}

/* ---- all ---- */

static int copy_warnings(const struct weft_lldp *lldp, struct weft_named *named)
{
    void *items = named->warnings.items;
    if (weft_array_reserve(&items, &named->warnings.cap, lldp->warnings.count + 1, sizeof(char *),
                           WEFT_DECLARED_WARNINGS_MAX + 1) < 0) {
        return -ENOMEM;
    }
    named->warnings.items = items;
    for (size_t i = 0; i < lldp->warnings.count; i++) {
        char *text = weft_strdup(lldp->warnings.items[i]);
        if (text == NULL) {
            return -ENOMEM;
        }
        named->warnings.items[named->warnings.count++] = text;
    }
    named->warnings.total = lldp->warnings.total;
    named->partial = lldp->partial;
    return 0;
}

static int resolve(struct resolver *r)
{
    const struct weft_lldp *l = r->lldp;
    weft_autofree int *votes = weft_calloc(l->reporter_count, sizeof(*votes));
    if (votes == NULL || copy_warnings(l, r->named) < 0) {
        return -ENOMEM;
    }
    find_reporters(r);
    tell_reporters(r, votes);
    tell_peers(r);
    int rc = identify_switches(r);
    rc = rc == 0 ? index_rows(r) : rc;
    return rc == 0 ? add_cables(r) : rc;
}

int weft_lldp_finish(const struct weft_lldp *lldp, struct weft_fabric **ret_fabric,
                     struct weft_error *err)
{
    weft_auto(weft_named_done) struct weft_named named = {.source = lldp->source};
    weft_auto(weft_map_free) struct weft_map *back = weft_map_new(WEFT_LLDP_NEIGHBORS_MAX);
    weft_autofree bool *is_switch = weft_calloc(lldp->reporter_count, sizeof(bool));
    weft_autofree size_t *reporter = weft_calloc(lldp->row_count, sizeof(size_t));
    weft_autofree const char **names = weft_calloc(lldp->row_count, sizeof(char *));
    weft_autofree enum side *peers = weft_calloc(lldp->row_count, sizeof(enum side));
    weft_autofree struct chassis *chassis = weft_calloc(lldp->row_count, sizeof(*chassis));
    weft_autofree char **identity = weft_calloc(lldp->row_count, sizeof(char *));
    if (reporter == NULL || names == NULL || back == NULL || is_switch == NULL || peers == NULL ||
        chassis == NULL || identity == NULL) {
        return weft_err_nomem(err);
    }
    struct resolver r = {.lldp = lldp,
                         .named = &named,
                         .is_switch = is_switch,
                         .peers = peers,
                         .identity = identity,
                         .reporter = reporter,
                         .names = names,
                         .back = back,
                         .chassis = chassis};
    const int rc = resolve(&r);
    for (size_t i = 0; i < lldp->row_count; i++) {
        weft_free(identity[i]);
    }
    if (rc < 0) {
        return rc == -EFBIG
                   ? weft_err_set(err, rc, WEFT_ERR_CONFIG,
                                  "%s: more systems or cables than weft reads", lldp->source)
                   : weft_err_nomem(err);
    }
    return weft_named_finish(&named, ret_fabric, err);
}
