/* SPDX-License-Identifier: Apache-2.0 */
/* A generated fabric as ibnetdiscover would print it. */
#include <inttypes.h>
#include <stdlib.h>

#include "pkg/base/buf.h"
#include "tests/bench/fabric_gen.h"

static void put_end(struct weft_buf *buf, bool crlf)
{
    (void)weft_buf_puts(buf, crlf ? "\r\n" : "\n");
}

/* Cables by switch, so that a record needs no walk over all of them. */
struct index {
    size_t *start;
    size_t *cables;
};

static struct index index_cables(const struct gen *g)
{
    struct index index = {.start = weft_calloc(g->switch_count + 2, sizeof(size_t)),
                          .cables = weft_calloc(2 * g->cable_count, sizeof(size_t))};
    if (index.start == NULL || index.cables == NULL) {
        abort();
    }
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < g->cable_count; i++) {
            const struct gen_cable *c = &g->cables[i];
            for (int end = c->host ? 1 : 0; !c->gone && end < 2; end++) {
                const size_t s = end == 0 ? c->a : c->b;
                if (pass == 0) {
                    index.start[s + 2]++;
                } else {
                    index.cables[index.start[s + 1]++] = 2 * i + (size_t)end;
                }
            }
        }
        for (size_t s = 0; pass == 0 && s < g->switch_count; s++) {
            index.start[s + 2] += index.start[s + 1];
        }
    }
    return index;
}

static void put_switch(const struct gen *g, size_t s, const struct index *index,
                       const uint16_t *ports, bool crlf, struct weft_buf *buf)
{
    const uint64_t guid = gen_switch_guid(g, s);
    (void)weft_buf_printf(buf, "vendid=0x2c9%s\ndevid=0xd2f2%s\n", crlf ? "\r" : "",
                          crlf ? "\r" : "");
    (void)weft_buf_printf(buf, "sysimgguid=0x%" PRIx64 "%s\n", guid, crlf ? "\r" : "");
    (void)weft_buf_printf(buf, "switchguid=0x%" PRIx64 "(%" PRIx64 ")%s\n", guid, guid,
                          crlf ? "\r" : "");
    (void)weft_buf_printf(buf,
                          "Switch\t65 \"S-%016" PRIx64 "\"\t\t# \"MF0;%s:MQM9700/U1\" enhanced "
                          "port 0 lid %zu lmc 0",
                          guid, g->switches[s], s + 1);
    put_end(buf, crlf);
    for (size_t k = index->start[s]; k < index->start[s + 1]; k++) {
        const struct gen_cable *c = &g->cables[index->cables[k] / 2];
        const size_t end = index->cables[k] % 2;
        const unsigned own = ports[index->cables[k]];
        const unsigned other = ports[index->cables[k] ^ 1];
        if (c->host) {
            const uint64_t ca = gen_ca_guid(g, c->a, c->rail);
            (void)weft_buf_printf(buf,
                                  "[%u]\t\"H-%016" PRIx64 "\"[1](%" PRIx64 ") \t\t# \"%s mlx5_%u\" "
                                  "lid 9 4xNDR",
                                  own, ca, ca, g->hosts[c->a].name, c->rail);
        } else {
            const size_t peer = end == 0 ? c->b : c->a;
            (void)weft_buf_printf(buf,
                                  "[%u]\t\"S-%016" PRIx64 "\"[%u]\t\t# \"MF0;%s:MQM9700/U1\" lid 5 "
                                  "4xNDR",
                                  own, gen_switch_guid(g, peer), other, g->switches[peer]);
        }
        put_end(buf, crlf);
    }
}

static void put_ca(const struct gen *g, size_t cable, const uint16_t *ports, bool crlf,
                   struct weft_buf *buf)
{
    const struct gen_cable *c = &g->cables[cable];
    const uint64_t guid = gen_ca_guid(g, c->a, c->rail);
    const char *cr = crlf ? "\r" : "";
    (void)weft_buf_printf(buf, "vendid=0x2c9%s\ndevid=0x1021%s\nsysimgguid=0x%" PRIx64 "%s\n", cr,
                          cr, guid, cr);
    (void)weft_buf_printf(buf, "caguid=0x%" PRIx64 "%s\nCa\t1 \"H-%016" PRIx64 "\"\t\t# ", guid, cr,
                          guid);
    (void)weft_buf_printf(buf, "\"%s mlx5_%u\"%s\n", g->hosts[c->a].name, c->rail, cr);
    (void)weft_buf_printf(buf,
                          "[1](%" PRIx64 ") \t\"S-%016" PRIx64 "\"[%u]\t\t# lid 9 lmc 0 "
                          "\"MF0;%s:MQM9700/U1\" lid 5 4xNDR%s\n",
                          guid, gen_switch_guid(g, c->b), (unsigned)ports[2 * cable + 1],
                          g->switches[c->b], cr);
}

void gen_write(struct gen *g, const struct gen_text *how, struct weft_buf *buf)
{
    weft_autofree uint16_t *ports = gen_ports(g);
    struct index index = index_cables(g);
    const size_t total = g->switch_count + g->cable_count;
    weft_autofree size_t *order = weft_calloc(total, sizeof(*order));
    if (order == NULL) {
        abort();
    }
    for (size_t i = 0; i < total; i++) {
        const size_t j = how->shuffle ? gen_below(g, i + 1) : i;
        order[i] = order[j];
        order[j] = i;
    }
    (void)weft_buf_puts(buf, "#\n# Topology file: generated for a test\n#\n\n");
    for (size_t i = 0; i < total; i++) {
        const size_t cable = order[i] - g->switch_count;
        if (order[i] < g->switch_count) {
            put_switch(g, order[i], &index, ports, how->crlf, buf);
        } else if (g->cables[cable].host && !g->cables[cable].gone) {
            put_ca(g, cable, ports, how->crlf, buf);
        } else {
            continue;
        }
        if (!how->no_last_blank || i + 1 < total) {
            put_end(buf, how->crlf);
        }
    }
    weft_free(index.start);
    weft_free(index.cables);
    if (buf->status < 0) {
        abort();
    }
}
