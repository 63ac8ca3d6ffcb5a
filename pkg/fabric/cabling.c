/* SPDX-License-Identifier: Apache-2.0 */
/* The cabling value: built by its parsers, sorted so that the order of a text decides nothing, and
 * made into a fabric. */
#include "pkg/fabric/cabling.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/fabric/cabling-internal.h"
#include "pkg/fabric/named-internal.h"

static void free_devices(struct weft_cabling_device *devices, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        weft_free(devices[i].name);
    }
    weft_free(devices);
}

static void free_cables(struct weft_cable *cables, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        weft_free(cables[i].a_port);
        weft_free(cables[i].b_port);
    }
    weft_free(cables);
}

void weft_cabling_free(struct weft_cabling *cabling)
{
    if (cabling == NULL) {
        return;
    }
    free_devices(cabling->devices, cabling->device_count);
    free_cables(cabling->cables, cabling->cable_count);
    for (size_t i = 0; i < cabling->warning_count; i++) {
        weft_free(cabling->warnings[i]);
    }
    weft_free(cabling->warnings);
    weft_free(cabling->source);
    weft_free(cabling);
}

void weft_cabling_builder_done(struct weft_cabling_builder *builder)
{
    weft_map_free(builder->names);
    weft_map_free(builder->ports);
    free_devices(builder->devices, builder->device_count);
    free_cables(builder->cables, builder->cable_count);
    weft_warnings_done(&builder->warnings);
    *builder = (struct weft_cabling_builder){0};
}

static int too_many(const struct weft_cabling_builder *builder, unsigned line, int rc,
                    struct weft_error *err)
{
    return rc == -ENOMEM
               ? weft_err_nomem(err)
               : weft_err_set(err, rc, WEFT_ERR_CONFIG, "%s:%u: more than %d devices or %d cables",
                              builder->source, line, (int)WEFT_CABLING_DEVICES_MAX,
                              (int)WEFT_CABLING_CABLES_MAX);
}

int weft_cabling_device(struct weft_cabling_builder *builder, struct weft_str name, unsigned line,
                        size_t *ret_device, struct weft_error *err)
{
    if (name.len == 0 || name.len > WEFT_CABLING_NAME_MAX ||
        memchr(name.data, '\0', name.len) != NULL) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: a device needs a name of 1 to %d characters", builder->source,
                            line, (int)WEFT_CABLING_NAME_MAX);
    }
    if (builder->names == NULL) {
        builder->names = weft_map_new(WEFT_CABLING_DEVICES_MAX);
    }
    if (builder->names == NULL) {
        return weft_err_nomem(err);
    }
    if (weft_map_get_n(builder->names, name.data, name.len, ret_device)) {
        return 0;
    }
    void *devices = builder->devices;
    int rc = weft_array_reserve(&devices, &builder->device_cap, builder->device_count + 1,
                                sizeof(*builder->devices), WEFT_CABLING_DEVICES_MAX);
    builder->devices = devices;
    char *copy = rc == 0 ? weft_strndup(name.data, name.len) : NULL;
    rc = rc == 0 && copy == NULL ? -ENOMEM : rc;
    if (rc < 0) {
        return too_many(builder, line, rc, err);
    }
    *ret_device = builder->device_count;
    builder->devices[builder->device_count++] =
        (struct weft_cabling_device){.name = copy, .line = line};
    rc = weft_map_put_n(builder->names, name.data, name.len, *ret_device);
    return rc < 0 ? too_many(builder, line, rc, err) : 0;
}

/* The cable that is at the port; SIZE_MAX: none was, and the one to come is now. */
static int cable_at(struct weft_cabling_builder *builder, const struct weft_cable_end *end,
                    size_t *ret_cable)
{
    weft_autofree char *key = weft_asprintf("%zu %.*s", end->device, WEFT_STR_ARG(end->port));
    if (builder->ports == NULL) {
        builder->ports = weft_map_new(2 * (size_t)WEFT_CABLING_CABLES_MAX);
    }
    if (key == NULL || builder->ports == NULL) {
        return -ENOMEM;
    }
    if (!weft_map_get(builder->ports, key, ret_cable)) {
        *ret_cable = SIZE_MAX;
        return weft_map_put(builder->ports, key, builder->cable_count);
    }
    return 0;
}

static bool is_end(size_t device, const char *port, const struct weft_cable_end *end)
{
    return device == end->device && weft_str_eq(end->port, port);
}

static bool same_cable(const struct weft_cable *c, const struct weft_cable_end ends[2])
{
    return (is_end(c->a, c->a_port, &ends[0]) && is_end(c->b, c->b_port, &ends[1])) ||
           (is_end(c->a, c->a_port, &ends[1]) && is_end(c->b, c->b_port, &ends[0]));
}

static int append_cable(struct weft_cabling_builder *builder, const struct weft_cable_end ends[2],
                        unsigned line)
{
    void *cables = builder->cables;
    const int rc = weft_array_reserve(&cables, &builder->cable_cap, builder->cable_count + 1,
                                      sizeof(*builder->cables), WEFT_CABLING_CABLES_MAX);
    builder->cables = cables;
    if (rc < 0) {
        return rc;
    }
    struct weft_cable cable = {.a = ends[0].device,
                               .b = ends[1].device,
                               .a_port = weft_strndup(ends[0].port.data, ends[0].port.len),
                               .b_port = weft_strndup(ends[1].port.data, ends[1].port.len),
                               .line = line};
    builder->cables[builder->cable_count++] = cable; /* owned from here on */
    return cable.a_port != NULL && cable.b_port != NULL ? 0 : -ENOMEM;
}

static int check_ports(const struct weft_cabling_builder *builder,
                       const struct weft_cable_end ends[2], unsigned line, struct weft_error *err)
{
    for (size_t e = 0; e < 2; e++) {
        if (ends[e].port.len == 0 || ends[e].port.len > WEFT_CABLING_NAME_MAX ||
            memchr(ends[e].port.data, '\0', ends[e].port.len) != NULL) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "%s:%u: a cable between %.60s and %.60s without ports at both ends",
                                builder->source, line, builder->devices[ends[0].device].name,
                                builder->devices[ends[1].device].name);
        }
    }
    return 0;
}

int weft_cabling_cable(struct weft_cabling_builder *builder, const struct weft_cable_end ends[2],
                       unsigned line, struct weft_error *err)
{
    size_t at[2] = {SIZE_MAX, SIZE_MAX};
    int rc = check_ports(builder, ends, line, err);
    if (rc < 0) {
        return rc;
    }
    for (size_t e = 0; rc == 0 && e < 2; e++) {
        rc = cable_at(builder, &ends[e], &at[e]);
    }
    if (rc < 0) {
        return too_many(builder, line, rc, err);
    }
    if (at[0] == at[1] && at[0] < builder->cable_count &&
        same_cable(&builder->cables[at[0]], ends)) {
        return 0;
    }
    for (size_t e = 0; e < 2; e++) {
        if (at[e] == SIZE_MAX) {
            continue;
        }
        const struct weft_str port = ends[e].port;
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: port %.*s of %.80s has a cable already (line %u)",
                            builder->source, line, port.len > 60 ? 60 : (int)port.len, port.data,
                            builder->devices[ends[e].device].name,
                            at[e] < builder->cable_count ? builder->cables[at[e]].line : line);
    }
    rc = append_cable(builder, ends, line);
    return rc < 0 ? too_many(builder, line, rc, err) : 0;
}

/* ---- the value ---- */

struct order {
    const char *name;
    size_t index;
};

static int compare_order(const void *a, const void *b)
{
    const struct order *x = a;
    const struct order *y = b;
    return strcmp(x->name, y->name);
}

static int compare_cable(const void *a, const void *b)
{
    const struct weft_cable *x = a;
    const struct weft_cable *y = b;
    if (x->a != y->a) {
        return x->a < y->a ? -1 : 1;
    }
    const int port = weft_str_natural_cmp(x->a_port, y->a_port);
    if (port != 0) {
        return port;
    }
    return x->b != y->b ? (x->b < y->b ? -1 : 1) : weft_str_natural_cmp(x->b_port, y->b_port);
}

/* Devices by name; cables with their smaller end first. */
static int sort_all(struct weft_cabling *c)
{
    weft_autofree struct order *order = weft_calloc(c->device_count, sizeof(*order));
    weft_autofree size_t *place = weft_calloc(c->device_count, sizeof(*place));
    struct weft_cabling_device *sorted = weft_calloc(c->device_count, sizeof(*sorted));
    if (order == NULL || place == NULL || sorted == NULL) {
        weft_free(sorted);
        return -ENOMEM;
    }
    for (size_t i = 0; i < c->device_count; i++) {
        order[i] = (struct order){c->devices[i].name, i};
    }
    qsort(order, c->device_count, sizeof(*order), compare_order);
    for (size_t i = 0; i < c->device_count; i++) {
        place[order[i].index] = i;
        sorted[i] = c->devices[order[i].index];
    }
    weft_free(c->devices);
    c->devices = sorted;
    for (size_t i = 0; i < c->cable_count; i++) {
        struct weft_cable *cable = &c->cables[i];
        cable->a = place[cable->a];
        cable->b = place[cable->b];
        if (cable->a > cable->b ||
            (cable->a == cable->b && weft_str_natural_cmp(cable->a_port, cable->b_port) > 0)) {
            *cable = (struct weft_cable){.a = cable->b,
                                         .b = cable->a,
                                         .a_port = cable->b_port,
                                         .b_port = cable->a_port,
                                         .line = cable->line};
        }
    }
    qsort(c->cables, c->cable_count, sizeof(*c->cables), compare_cable);
    return 0;
}

/* By most of its ports' names; a device of which none says anything is a host if it has one port,
 * as no switch is there for one cable. */
static int tell_roles(struct weft_cabling *c)
{
    weft_autofree int *votes = weft_calloc(c->device_count, sizeof(*votes));
    weft_autofree size_t *ports = weft_calloc(c->device_count, sizeof(*ports));
    if (votes == NULL || ports == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < c->cable_count; i++) {
        const struct weft_cable *cable = &c->cables[i];
        const enum weft_port_kind kinds[2] = {weft_port_kind(cable->a_port),
                                              weft_port_kind(cable->b_port)};
        const size_t ends[2] = {cable->a, cable->b};
        for (size_t e = 0; e < 2; e++) {
            votes[ends[e]] += (kinds[e] == WEFT_PORT_SWITCH) - (kinds[e] == WEFT_PORT_HOST);
            ports[ends[e]]++;
        }
    }
    for (size_t d = 0; d < c->device_count; d++) {
        if (!c->devices[d].role_given) {
            const bool is_switch = votes[d] > 0 || (votes[d] == 0 && ports[d] > 1);
            c->devices[d].role = is_switch ? WEFT_CABLING_SWITCH : WEFT_CABLING_HOST;
        }
    }
    return 0;
}

int weft_cabling_finish(struct weft_cabling_builder *builder, struct weft_cabling **ret_cabling,
                        struct weft_error *err)
{
    weft_auto(weft_cabling_free) struct weft_cabling *c = weft_calloc(1, sizeof(*c));
    if (c == NULL) {
        return weft_err_nomem(err);
    }
    if (builder->cable_count == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s: no cable in it", builder->source);
    }
    c->source = weft_strdup(builder->source);
    c->devices = weft_steal(&builder->devices);
    c->device_count = builder->device_count;
    c->cables = weft_steal(&builder->cables);
    c->cable_count = builder->cable_count;
    c->warnings = weft_steal(&builder->warnings.items);
    c->warning_count = builder->warnings.count;
    c->warning_total = builder->warnings.total;
    c->partial = builder->partial;
    builder->device_count = 0;
    builder->cable_count = 0;
    builder->warnings.count = 0;
    if (c->source == NULL || sort_all(c) < 0 || tell_roles(c) < 0) {
        return weft_err_nomem(err);
    }
    *ret_cabling = weft_steal(&c);
    return 0;
}

int weft_parse_cabling(const char *text, size_t len, const char *source,
                       struct weft_cabling **ret_cabling, struct weft_error *err)
{
    struct weft_str rest = weft_str_trim((struct weft_str){text, len});
    struct weft_str line = {0};
    if (rest.len > 0 && (rest.data[0] == '[' || rest.data[0] == '{')) {
        return weft_parse_netq(text, len, source, ret_cabling, err);
    }
    (void)weft_str_line(&rest, &line);
    const bool table = line.len > 0 && (memmem(line.data, line.len, "StartDevice", 11) != NULL ||
                                        memmem(line.data, line.len, "EndDevice", 9) != NULL);
    return table ? weft_parse_ndt(text, len, source, ret_cabling, err)
                 : weft_parse_ptm(text, len, source, ret_cabling, err);
}

/* ---- as a fabric ---- */

int weft_cabling_fabric(const struct weft_cabling *cabling, struct weft_fabric **ret_fabric,
                        struct weft_error *err)
{
    weft_auto(weft_named_done) struct weft_named named = {.source = cabling->source,
                                                          .partial = cabling->partial};
    weft_autofree size_t *place = weft_calloc(cabling->device_count, sizeof(*place));
    int rc = place != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; i < cabling->warning_count; i++) {
        weft_warn(&named.warnings, cabling->source, 0, "%s", cabling->warnings[i]);
    }
    for (size_t i = 0; rc == 0 && i < cabling->device_count; i++) {
        const struct weft_cabling_device *d = &cabling->devices[i];
        rc = weft_named_device(&named, d->role == WEFT_CABLING_SWITCH, d->name, d->name, d->line,
                               &place[i]);
    }
    for (size_t i = 0; rc == 0 && i < cabling->cable_count; i++) {
        const struct weft_cable *c = &cabling->cables[i];
        rc = weft_named_cable(&named, place[c->a], c->a_port, place[c->b], c->b_port, true);
    }
    if (rc == -EFBIG) {
        return weft_err_set(err, rc, WEFT_ERR_CONFIG, "%s: more devices or cables than weft reads",
                            cabling->source);
    }
    return rc < 0 ? weft_err_nomem(err) : weft_named_finish(&named, ret_fabric, err);
}
