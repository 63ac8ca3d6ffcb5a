/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of allocation.md "Machine": how what a source says of NUMA nodes, pairs and NICs
 * becomes the numbers B, T and N. Every reader and vendor backend goes through here. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/machine/machine-internal.h"

static const char *const distance_names[] = {
    [WEFT_DISTANCE_PSB] = "PSB", [WEFT_DISTANCE_PIX] = "PIX",   [WEFT_DISTANCE_PXB] = "PXB",
    [WEFT_DISTANCE_PHB] = "PHB", [WEFT_DISTANCE_NODE] = "NODE", [WEFT_DISTANCE_SYS] = "SYS",
};

const char *weft_distance_name(enum weft_distance distance)
{
    return distance < WEFT_DISTANCE_COUNT ? distance_names[distance] : "?";
}

const char *weft_nic_layer_name(enum weft_nic_layer layer)
{
    static const char *const names[WEFT_NIC_LAYER_COUNT] = {
        [WEFT_NIC_LAYER_UNKNOWN] = "",
        [WEFT_NIC_LAYER_INFINIBAND] = "infiniband",
        [WEFT_NIC_LAYER_ETHERNET] = "ethernet",
    };
    return layer < WEFT_NIC_LAYER_COUNT ? names[layer] : "";
}

bool weft_distance_parse(const char *text, size_t len, enum weft_distance *ret_distance)
{
    const struct weft_str word = {text, len};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(distance_names); i++) {
        if (weft_str_eq(word, distance_names[i])) {
            *ret_distance = (enum weft_distance)i;
            return true;
        }
    }
    if (weft_str_eq(word, "SOC")) {
        *ret_distance = WEFT_DISTANCE_SYS;
        return true;
    }
    return false;
}

const char *weft_bdf_format(const struct weft_bdf *bdf, char *text)
{
    text[0] = '\0';
    if (bdf->known) {
        (void)snprintf(text, WEFT_BDF_TEXT_MAX, "%04" PRIx32 ":%02x:%02x.%x", bdf->domain,
                       (unsigned)bdf->bus, (unsigned)bdf->device, (unsigned)bdf->function);
    }
    return text;
}

int weft_bdf_parse(const char *text, struct weft_bdf *ret_bdf)
{
    struct weft_str rest = weft_str(text);
    struct weft_str part[4];
    if (!weft_str_split(&rest, ':', &part[0]) || !weft_str_split(&rest, ':', &part[1]) ||
        !weft_str_split(&rest, '.', &part[2]) || rest.data == NULL) {
        return -EINVAL;
    }
    part[3] = rest;
    static const uint64_t max[4] = {UINT32_MAX, 0xff, 0x1f, 7};
    uint64_t value[4];
    for (size_t i = 0; i < 4; i++) {
        if (part[i].len > 8 || weft_str_starts(part[i], "0x") ||
            weft_parse_hex64(part[i], &value[i]) < 0 || value[i] > max[i]) {
            return -EINVAL;
        }
    }
    *ret_bdf = (struct weft_bdf){.known = true,
                                 .domain = (uint32_t)value[0],
                                 .bus = (uint8_t)value[1],
                                 .device = (uint8_t)value[2],
                                 .function = (uint8_t)value[3]};
    return 0;
}

bool weft_machine_copy_visible(char *to, size_t size, const char *text, size_t len)
{
    bool changed = len >= size;
    const size_t n = changed ? size - 1 : len;
    for (size_t i = 0; i < n; i++) {
        const bool visible = text[i] > ' ' && text[i] <= '~';
        to[i] = visible ? text[i] : '?';
        changed = changed || !visible;
    }
    to[n] = '\0';
    return changed;
}

void weft_device_set_numa(struct weft_device *d, const char *label, size_t len)
{
    const struct weft_str s = weft_str_trim((struct weft_str){label, len});
    d->numa_label[0] = '\0';
    d->numa_node = -1;
    if (s.len == 0 || weft_str_eq(s, "N/A") || weft_str_eq(s, "-1")) {
        return;
    }
    const size_t kept = s.len < sizeof(d->numa_label) ? s.len : 40;
    const bool changed = weft_machine_copy_visible(d->numa_label, kept + 1, s.data, s.len);
    if (changed) {
        /* unequal labels must stay unequal: an interleaved CPU list may have hundreds of bytes */
        const size_t at = kept < 40 ? kept : 40;
        (void)snprintf(d->numa_label + at, sizeof(d->numa_label) - at, "~%016" PRIx64,
                       weft_hash64(WEFT_HASH_SEED, s.data, s.len));
    }
    uint64_t node = 0;
    if (weft_parse_u64(s, INT32_MAX, &node) == 0) {
        d->numa_node = (int)node;
    }
}

void weft_machine_group_numa(struct weft_machine *m)
{
    int groups = 0;
    for (size_t i = 0; i < m->device_count; i++) {
        struct weft_device *d = &m->devices[i];
        d->numa_group = -1;
        for (size_t j = 0; j < i && d->numa_group < 0; j++) {
            if (strcmp(m->devices[j].numa_label, d->numa_label) == 0) {
                d->numa_group = m->devices[j].numa_group;
            }
        }
        if (d->numa_label[0] == '\0') {
            d->numa_group = -1;
        } else if (d->numa_group < 0) {
            d->numa_group = groups++;
        }
    }
}

static uint8_t known_distance(const struct weft_machine *m, size_t i, size_t j, int distance)
{
    if (distance != WEFT_DISTANCE_UNKNOWN) {
        return (uint8_t)distance;
    }
    const int group = m->devices[i].numa_group;
    return group >= 0 && group == m->devices[j].numa_group ? WEFT_DISTANCE_NODE : WEFT_DISTANCE_SYS;
}

bool weft_machine_set_pair(struct weft_machine *m, size_t i, size_t j, struct weft_reading from_i,
                           struct weft_reading from_j)
{
    const size_t ij = i * m->device_count + j;
    const size_t ji = j * m->device_count + i;
    const uint8_t ti = known_distance(m, i, j, from_i.distance);
    const uint8_t tj = known_distance(m, i, j, from_j.distance);
    m->bandwidth[ij] = m->bandwidth[ji] =
        from_i.bandwidth < from_j.bandwidth ? from_i.bandwidth : from_j.bandwidth;
    m->distance[ij] = m->distance[ji] = ti > tj ? ti : tj;
    return from_i.bandwidth == from_j.bandwidth && from_i.distance == from_j.distance;
}

void weft_machine_set_nic(struct weft_machine *m, size_t device, size_t nic, int distance)
{
    const int node = m->nics[nic].numa_node;
    if (distance == WEFT_DISTANCE_UNKNOWN) {
        distance = node >= 0 && node == m->devices[device].numa_node ? WEFT_DISTANCE_NODE
                                                                     : WEFT_DISTANCE_SYS;
    }
    m->nic_distance[device * m->nic_count + nic] = (uint8_t)distance;
}

enum weft_distance weft_machine_hidden_t(const struct weft_machine *m, size_t i, size_t j,
                                         bool affinities_equal)
{
    enum weft_distance best = affinities_equal ? WEFT_DISTANCE_NODE : WEFT_DISTANCE_SYS;
    for (size_t n = 0; n < m->nic_count; n++) {
        const enum weft_distance ni = weft_machine_n(m, i, n);
        const enum weft_distance nj = weft_machine_n(m, j, n);
        const enum weft_distance through = ni > nj ? ni : nj;
        best = through < best ? through : best;
    }
    return best;
}
