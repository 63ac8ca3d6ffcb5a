/* SPDX-License-Identifier: Apache-2.0 */
/* A generated fabric as `ibnetdiscover -p` and as `iblinkinfo` print it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "pkg/base/buf.h"
#include "tests/bench/fabric_gen.h"

/* One end of a cable. */
struct end {
    bool is_switch;
    uint64_t guid;
    size_t lid;
    unsigned port;
    char desc[64];
};

static struct end end_of(const struct gen *g, size_t cable, unsigned which, const uint16_t *ports)
{
    const struct gen_cable *c = &g->cables[cable];
    struct end end = {.is_switch = which == 1 || !c->host, .port = ports[2 * cable + which]};
    if (end.is_switch) {
        const size_t s = which == 1 ? c->b : c->a;
        end.guid = gen_switch_guid(g, s);
        end.lid = s + 1;
        (void)snprintf(end.desc, sizeof(end.desc), "MF0;%s:MQM9700/U1", g->switches[s]);
    } else {
        end.guid = gen_ca_guid(g, c->a, c->rail);
        end.lid = g->switch_count + cable + 1;
        (void)snprintf(end.desc, sizeof(end.desc), "%s mlx5_%u", g->hosts[c->a].name, c->rail);
    }
    return end;
}

void gen_write_ports(const struct gen *g, struct weft_buf *buf)
{
    weft_autofree uint16_t *ports = gen_ports(g);
    for (size_t i = 0; i < 2 * g->cable_count; i++) {
        if (g->cables[i / 2].gone) {
            continue;
        }
        const struct end own = end_of(g, i / 2, i % 2, ports);
        const struct end peer = end_of(g, i / 2, 1 - i % 2, ports);
        (void)weft_buf_printf(buf, "%s %5zu %2u 0x%016" PRIx64 " 4x NDR - ",
                              own.is_switch ? "SW" : "CA", own.lid, own.port, own.guid);
        (void)weft_buf_printf(buf, "%s %5zu %2u 0x%016" PRIx64 " ( '%s' - '%s' )\n",
                              peer.is_switch ? "SW" : "CA", peer.lid, peer.port, peer.guid,
                              own.desc, peer.desc);
    }
}

static void put_row(const struct end *own, const struct end *peer, struct weft_buf *buf)
{
    if (own->is_switch) {
        (void)weft_buf_printf(buf, "       %5zu", own->lid);
    } else {
        (void)weft_buf_printf(buf, "CA: %s:\n      0x%016" PRIx64 " %5zu", own->desc, own->guid,
                              own->lid);
    }
    (void)weft_buf_printf(buf,
                          " %4u[  ] ==( 4X        106.25 Gbps Active/  LinkUp)==>  %5zu %4u[  ] "
                          "\"%s\" ( )\n",
                          own->port, peer->lid, peer->port, peer->desc);
}

/* A LID has 16 bits: only for fabrics of so many ends. */
void gen_write_linkinfo(const struct gen *g, struct weft_buf *buf)
{
    weft_autofree uint16_t *ports = gen_ports(g);
    for (size_t s = 0; s < g->switch_count; s++) {
        (void)weft_buf_printf(buf, "Switch: 0x%016" PRIx64 " MF0;%s:MQM9700/U1:\n",
                              gen_switch_guid(g, s), g->switches[s]);
        for (size_t i = 0; i < 2 * g->cable_count; i++) {
            const struct gen_cable *c = &g->cables[i / 2];
            const struct end own = end_of(g, i / 2, i % 2, ports);
            const struct end peer = end_of(g, i / 2, 1 - i % 2, ports);
            if (!c->gone && own.is_switch && own.lid == s + 1) {
                put_row(&own, &peer, buf);
            }
        }
        (void)weft_buf_printf(
            buf,
            "       %5zu   99[  ] ==(                Down/ Polling)==>             [  ] \"\" "
            "( )\n",
            s + 1);
    }
    for (size_t i = 0; i < g->cable_count; i++) {
        if (g->cables[i].host && !g->cables[i].gone) {
            const struct end own = end_of(g, i, 0, ports);
            const struct end peer = end_of(g, i, 1, ports);
            put_row(&own, &peer, buf);
        }
    }
}
