/* SPDX-License-Identifier: Apache-2.0 */
/* Fabrics cable by cable, and what goes wrong with them. Ports are numbered in the order of the
 * cables; GUIDs are scrambled, so that nothing about a switch's place can be read from its order.
 */
#include "tests/bench/fabric_gen.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void *grown(void *list, size_t *cap, size_t count, size_t size)
{
    if (weft_array_reserve(&list, cap, count + 1, size, SIZE_MAX / size) < 0) {
        abort();
    }
    return list;
}

void gen_init(struct gen *g, uint64_t seed)
{
    *g = (struct gen){.random = seed, .salt = seed * UINT64_C(0x9e3779b97f4a7c15)};
}

void gen_done(struct gen *g)
{
    weft_free(g->hosts);
    weft_free(g->switches);
    weft_free(g->cables);
}

size_t gen_switch(struct gen *g, const char *format, ...)
{
    g->switches = grown(g->switches, &g->switch_cap, g->switch_count, sizeof(*g->switches));
    va_list args;
    va_start(args, format);
    (void)vsnprintf(g->switches[g->switch_count], sizeof(*g->switches), format, args);
    va_end(args);
    return g->switch_count++;
}

size_t gen_host(struct gen *g, const char *format, ...)
{
    g->hosts = grown(g->hosts, &g->host_cap, g->host_count, sizeof(*g->hosts));
    struct gen_host *host = &g->hosts[g->host_count];
    *host = (struct gen_host){.foreign = false};
    va_list args;
    va_start(args, format);
    (void)vsnprintf(host->name, sizeof(host->name), format, args);
    va_end(args);
    return g->host_count++;
}

static void add_cable(struct gen *g, struct gen_cable cable)
{
    g->cables = grown(g->cables, &g->cable_cap, g->cable_count, sizeof(*g->cables));
    g->cables[g->cable_count++] = cable;
}

void gen_plug(struct gen *g, size_t host, unsigned rail, size_t leaf)
{
    add_cable(g, (struct gen_cable){.a = host, .b = leaf, .rail = rail, .host = true});
}

void gen_link(struct gen *g, size_t a, size_t b)
{
    add_cable(g, (struct gen_cable){.a = a, .b = b});
}

size_t gen_leaf(const struct gen_rft *s, size_t pod, size_t unit, size_t rail)
{
    return s->first_leaf + (pod * s->units + unit) * s->rails + rail;
}

size_t gen_spine(const struct gen_rft *s, size_t pod, size_t spine)
{
    return s->first_spine + pod * s->spines + spine;
}

static void add_switches(struct gen *g, struct gen_rft *s)
{
    s->first_leaf = g->switch_count;
    for (size_t i = 0; i < s->pods * s->units * s->rails; i++) {
        (void)gen_switch(g, "leaf-%zu-%zu-%zu", i / (s->units * s->rails), i / s->rails % s->units,
                         i % s->rails);
    }
    s->first_spine = g->switch_count;
    for (size_t i = 0; i < s->pods * s->spines; i++) {
        (void)gen_switch(g, "spine-%zu-%zu", i / s->spines, i % s->spines);
    }
    s->first_core = g->switch_count;
    for (size_t i = 0; i < s->cores; i++) {
        (void)gen_switch(g, "core-%zu", i);
    }
}

static void add_pod(struct gen *g, const struct gen_rft *s, size_t pod)
{
    for (size_t i = 0; i < s->units * s->nodes; i++) {
        const size_t unit = i / s->nodes;
        const size_t host = gen_host(g, "n%zu-%zu-%zu", pod, unit, i % s->nodes);
        g->hosts[host].truth[0] = pod * s->units + unit;
        g->hosts[host].truth[1] = pod;
        for (unsigned rail = 0; rail < s->rails; rail++) {
            gen_plug(g, host, rail, gen_leaf(s, pod, unit, rail));
        }
    }
    for (size_t i = 0; i < s->units * s->rails * s->spines; i++) {
        gen_link(g, gen_leaf(s, pod, 0, 0) + i / s->spines, gen_spine(s, pod, i % s->spines));
    }
    const size_t each = s->spines > 0 ? s->cores / s->spines : 0;
    for (size_t i = 0; i < s->spines * each; i++) {
        gen_link(g, gen_spine(s, pod, i / each), s->first_core + i);
    }
}

void gen_rail_fat_tree(struct gen *g, struct gen_rft *shape)
{
    add_switches(g, shape);
    for (size_t pod = 0; pod < shape->pods; pod++) {
        add_pod(g, shape, pod);
    }
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

size_t gen_below(struct gen *g, size_t limit)
{
    return limit > 0 ? (size_t)(next_random(&g->random) % limit) : 0;
}

static bool chance(struct gen *g, double percent)
{
    return (double)gen_below(g, 1000000) < percent * 10000.0;
}

void gen_break(struct gen *g, const struct gen_rft *shape, const struct gen_faults *faults)
{
    const size_t leaves = shape->pods * shape->units * shape->rails;
    for (size_t i = 0; i < g->cable_count; i++) {
        struct gen_cable *c = &g->cables[i];
        const bool to_spine = !c->host && c->a < shape->first_spine && c->b >= shape->first_spine &&
                              c->b < shape->first_core;
        if (chance(g, c->host ? faults->host_lost : faults->switch_lost)) {
            c->gone = true;
        } else if (c->host && chance(g, faults->host_moved)) {
            c->b = shape->first_leaf + gen_below(g, leaves);
        } else if (to_spine && chance(g, faults->spine_moved)) {
            c->b = shape->first_spine + gen_below(g, shape->pods * shape->spines);
        }
    }
}

/* ---- what identifies its parts ---- */

uint64_t gen_switch_guid(const struct gen *g, size_t s)
{
    uint64_t state = g->salt + s;
    return next_random(&state) | 1;
}

uint64_t gen_ca_guid(const struct gen *g, size_t host, unsigned rail)
{
    uint64_t state = g->salt + UINT64_C(0x100000000) + host * 256 + rail;
    return next_random(&state) | 1;
}

/* The next free port of each switch, while cables are walked in order. */
static uint16_t *new_ports(const struct gen *g)
{
    uint16_t *ports = weft_calloc(g->switch_count, sizeof(*ports));
    if (ports == NULL) {
        abort();
    }
    return ports;
}

/* Where each end of each cable is plugged in: [cable * 2] at a, [cable * 2 + 1] at b. */
uint16_t *gen_ports(const struct gen *g)
{
    weft_autofree uint16_t *next = new_ports(g);
    uint16_t *ports = weft_calloc(g->cable_count * 2, sizeof(*ports));
    if (ports == NULL) {
        abort();
    }
    for (size_t i = 0; i < g->cable_count; i++) {
        const struct gen_cable *c = &g->cables[i];
        if (!c->gone) {
            ports[2 * i] = c->host ? 1 : ++next[c->a];
            ports[2 * i + 1] = ++next[c->b];
        }
    }
    return ports;
}
