/* SPDX-License-Identifier: Apache-2.0 */
/* The ibnetdiscover reader: what it makes of good text, what it bears, and what it refuses. */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/fabric/fabric.h"
#include "tests/unit/unit.h"

#define TWO_RACKS "fabric/two-racks.ibnetdiscover.txt"

static struct weft_fabric *parse_n(const char *text, size_t len, struct weft_error *err)
{
    struct weft_fabric *fabric = NULL;
    *err = (struct weft_error){0};
    (void)!weft_parse_ibnetdiscover(text, len, "dump", &fabric, err);
    return fabric;
}

static struct weft_fabric *parse(const char *text)
{
    struct weft_error err = {0};
    struct weft_fabric *fabric = parse_n(text, strlen(text), &err);
    CHECK_STR(err.message, "");
    return fabric;
}

static void check_refused(const char *text, const char *part)
{
    struct weft_error err = {0};
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = parse_n(text, strlen(text), &err);
    CHECK(fabric == NULL);
    CHECK_INT(err.code, -EINVAL);
    CHECK_CONTAINS(err.message, part);
}

/* Everything but lines and warnings, as text. */
static void digest(const struct weft_fabric *f, struct weft_buf *buf)
{
    for (size_t i = 0; i < f->device_count; i++) {
        const struct weft_device *d = &f->devices[i];
        (void)weft_buf_printf(buf, "%d %016llx %016llx %d %s %zu\n", (int)d->kind,
                              (unsigned long long)d->guid, (unsigned long long)d->system_guid,
                              (int)d->role, d->desc, d->host == SIZE_MAX ? 999 : d->host);
    }
    for (size_t i = 0; i < f->link_count; i++) {
        const struct weft_link *l = &f->links[i];
        (void)weft_buf_printf(buf, "%u/%u-%u/%u %u\n", l->a, (unsigned)l->a_port, l->b,
                              (unsigned)l->b_port, l->gbps);
    }
    for (size_t i = 0; i < f->host_count; i++) {
        (void)weft_buf_printf(buf, "%s %s %d\n", f->hosts[i].name, f->hosts[i].full_name,
                              f->hosts[i].mappable);
    }
}

static void check_same(const struct weft_fabric *a, const struct weft_fabric *b)
{
    weft_auto(weft_buf_done) struct weft_buf one;
    weft_auto(weft_buf_done) struct weft_buf two;
    weft_buf_init(&one, 1 << 20);
    weft_buf_init(&two, 1 << 20);
    if (a == NULL || b == NULL) {
        CU_FAIL("no fabric");
        return;
    }
    digest(a, &one);
    digest(b, &two);
    CHECK_STR(weft_buf_text(&one), weft_buf_text(&two));
}

static void a_fabric_of_two_racks(void)
{
    weft_autofree char *text = weft_fixture_text(TWO_RACKS, NULL);
    weft_auto(weft_fabric_free) struct weft_fabric *f = parse(text);
    if (f == NULL) {
        return;
    }
    CHECK_INT(f->switch_count, 6);
    CHECK_INT(f->device_count, 6 + 12 + 4);
    CHECK_INT(f->link_count, 12 + 8 + 4);
    CHECK_INT(f->partial, false);
    CHECK_INT(f->warning_total, 0);
    /* five named hosts; the two adapters with a default description are a host each */
    CHECK_INT(f->host_count, 7);
    CHECK_STR(f->hosts[0].name, "gpu-11");
    CHECK_STR(f->hosts[0].full_name, "gpu-11.example");
    CHECK(f->hosts[4].mappable && !f->hosts[5].mappable);
    CHECK_STR(f->hosts[5].name, "00a1000000001231");
    size_t aggregation = 0;
    for (size_t i = 0; i < f->device_count; i++) {
        aggregation += f->devices[i].role == WEFT_CA_AGGREGATION;
    }
    CHECK_INT(aggregation, 4);
    for (size_t i = 0; i < f->link_count; i++) {
        CHECK_INT(f->links[i].gbps, 400);
        CHECK(f->links[i].both);
    }
    weft_autofree char *name = weft_device_name(&f->devices[0]);
    CHECK_STR(name, "r1-leaf-1");
}

/* ---- text that had a hard life ---- */

static char *changed(const char *text, const char *from, const char *to)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1 << 20);
    const size_t len = strlen(from);
    for (const char *p = text; *p != '\0';) {
        if (strncmp(p, from, len) == 0) {
            (void)weft_buf_puts(&buf, to);
            p += len;
        } else {
            (void)weft_buf_putc(&buf, *p++);
        }
    }
    return weft_buf_steal(&buf);
}

static void line_ends_and_tabs_do_not_matter(void)
{
    weft_autofree char *text = weft_fixture_text(TWO_RACKS, NULL);
    weft_auto(weft_fabric_free) struct weft_fabric *plain = parse(text);
    static const struct {
        const char *from, *to;
    } changes[] = {{"\n", "\r\n"},
                   {"\n", "\r\r\n"},
                   {"\t", " "},
                   {"\t\t", ""},
                   {"Switch\t", "Switch"},
                   {"\n\nvendid", "\nvendid"},
                   {"\n\nvendid", "\n \t\nvendid"},
                   {"]\t\"", "]\""}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(changes); i++) {
        weft_autofree char *other = changed(text, changes[i].from, changes[i].to);
        weft_auto(weft_fabric_free) struct weft_fabric *f = parse(other);
        check_same(plain, f);
    }
}

static void a_missing_last_blank_line_loses_nothing(void)
{
    weft_autofree char *text = weft_fixture_text(TWO_RACKS, NULL);
    weft_auto(weft_fabric_free) struct weft_fabric *plain = parse(text);
    size_t len = strlen(text);
    while (len > 0 && text[len - 1] == '\n') {
        len--;
    }
    struct weft_error err = {0};
    weft_auto(weft_fabric_free) struct weft_fabric *f = parse_n(text, len, &err);
    check_same(plain, f);
}

static void a_terminal_log_around_it_is_ignored(void)
{
    weft_autofree char *text = weft_fixture_text(TWO_RACKS, NULL);
    weft_auto(weft_fabric_free) struct weft_fabric *plain = parse(text);
    weft_autofree char *logged =
        weft_asprintf("=~=~= log 2021.06.15 =~=~=\r\n\r\r\n%s\rufm-1 (config) # ", text);
    weft_auto(weft_fabric_free) struct weft_fabric *f = parse(logged);
    check_same(plain, f);
    CHECK_INT(f != NULL ? f->warning_total : 0, 2);
    CHECK_INT(f != NULL ? f->partial : true, false);
}

static void two_runs_in_one_file_are_their_union(void)
{
    weft_autofree char *text = weft_fixture_text(TWO_RACKS, NULL);
    weft_auto(weft_fabric_free) struct weft_fabric *plain = parse(text);
    weft_autofree char *twice = weft_asprintf("%s%s", text, text);
    weft_auto(weft_fabric_free) struct weft_fabric *f = parse(twice);
    check_same(plain, f);
}

/* Wherever a dump is cut, the result is an error, or says that it is partial, or is complete. */
static void a_cut_dump_is_never_silently_smaller(void)
{
    size_t len = 0;
    weft_autofree char *text = weft_fixture_text(TWO_RACKS, &len);
    weft_auto(weft_fabric_free) struct weft_fabric *plain = parse(text);
    size_t silent = 0;
    size_t complete = 0;
    for (size_t cut = 0; plain != NULL && cut < len; cut++) {
        struct weft_error err = {0};
        weft_auto(weft_fabric_free) struct weft_fabric *f = parse_n(text, cut, &err);
        if (f == NULL || f->partial) {
            continue;
        }
        const bool same = f->device_count == plain->device_count &&
                          f->link_count == plain->link_count && f->host_count == plain->host_count;
        complete += same;
        silent += !same;
    }
    CHECK_INT(silent, 0);
    CHECK(complete > 0); /* cuts within the last line's tail */
}

/* ---- single rules ---- */

#define SWITCH(guid, name)                                                                         \
    "switchguid=0x" guid "(" guid ")\nSwitch\t8 \"S-" guid "\"\t# \"" name "\" base port 0 lid "   \
    "1\n"
#define HOST(guid, sys, desc)                                                                      \
    "\nsysimgguid=0x" sys "\ncaguid=0x" guid "\nCa\t1 \"H-" guid "\"\t# \"" desc "\"\n"

static void a_description_goes_to_the_last_quote(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *f = parse(
        SWITCH("00000000000000a1", "say \"hi\"; a/b # c: d") "[3]\t\"H-00000000000000b1\"[1](b1)\t#"
                                                             " \"node-1 mlx5_0\" lid 4 4xHDR\n");
    if (f != NULL) {
        CHECK_STR(f->devices[0].desc, "say \"hi\"; a/b # c: d");
        CHECK_INT(f->links[0].gbps, 200);
        CHECK_INT(f->links[0].a_port, 3);
        CHECK_INT(f->partial, true); /* the adapter has no record of its own */
        CHECK_INT(f->links[0].both, false);
        CHECK_STR(f->hosts[0].name, "node-1");
    }
}

static void guids_are_numbers(void)
{
    /* the header drops leading zeros, the id has them; ext ports and -f's tail are passed over */
    weft_auto(weft_fabric_free) struct weft_fabric *f = parse(
        "switchguid=0xa1(a1)\nSwitch 8 \"S-00000000000000a1\" # \"sw\" base port 0\n"
        "[1][ext 7] \"H-0c42a10300b9e396\"[2][ext 1](c42a10300b9e396) # \"n1 HCA-1\" lid 4 4xEDR "
        "s=1 w=2 v=3\n\n"
        "caguid=0xc42a10300b9e396\nCa 2 \"H-0c42a10300b9e396\" # \"n1 HCA-1\"\n"
        "[2](c42a10300b9e396) \"S-00000000000000a1\"[1] # lid 4 lmc 0 \"sw\" lid 1 4xEDR\n");
    if (f != NULL) {
        CHECK_INT(f->device_count, 2);
        CHECK_INT(f->link_count, 1);
        CHECK_INT(f->links[0].gbps, 100);
        CHECK_INT(f->links[0].b_port, 2);
        CHECK(f->links[0].both && !f->partial);
        CHECK_INT(f->warning_total, 0);
    }
}

static void rates(void)
{
    static const struct {
        const char *word;
        unsigned gbps;
    } rows[] = {{"1xSDR", 2},  {"4xSDR", 10},   {"4xDDR", 20},  {"4xQDR", 40},  {"4xFDR10", 41},
                {"4xFDR", 56}, {"12xQDR", 120}, {"2xNDR", 200}, {"4xNDR", 400}, {"4xXDR", 800},
                {"4x???", 1},  {"??xHDR", 1},   {"4xWHO", 1},   {"", 1},        {"8xHDR", 400}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        char text[512];
        (void)snprintf(text, sizeof(text),
                       "Switch 8 \"S-00000000000000a1\" # \"sw\" base port 0\n"
                       "[1] \"H-00000000000000b1\"[1](b1) # \"n1 HCA-1\" lid 4 %s\n",
                       rows[i].word);
        weft_auto(weft_fabric_free) struct weft_fabric *f = parse(text);
        if (f != NULL) {
            CHECK_INT(f->links[0].gbps, rows[i].gbps);
        }
    }
}

static void sharp_nodes_share_the_switch_system(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *f = parse("sysimgguid=0xa1\n" SWITCH(
        "00000000000000a2",
        "sw") "[1] \"H-00000000000000b1\"[1](b1) # \"looks-like hca\" lid 4 4xHDR\n"
              "[2] \"H-00000000000000b2\"[1](b2) # \"n2 hca\" lid 4 4xHDR\n"
              "[3] \"H-00000000000000b3\"[1](b3) # \"MF0;skyway-1:MGA100/G1\" lid 4 4xHDR\n" HOST(
                  "00000000000000b1", "a1",
                  "looks-like hca") HOST("00000000000000b2", "b2",
                                         "n2 hca") "[1](b2) \"S-00000000000000a2\"[2] # lid\n");
    if (f != NULL) {
        CHECK_INT(f->devices[1].role, WEFT_CA_AGGREGATION);
        CHECK_INT(f->devices[2].role, WEFT_CA_HOST);
        CHECK_INT(f->devices[3].role, WEFT_CA_GATEWAY);
        CHECK_INT(f->host_count, 1);
    }
}

/* Adapters of several systems, and the hosts they make. */
static const char adapters[] = SWITCH(
    "00000000000000a1",
    "sw") "[1] \"H-00000000000000b1\"[1](b1) # \"n1 mlx5_0\" lid 4 4xHDR\n"
          "[2] \"H-00000000000000b2\"[1](b2) # \"MT4123 ConnectX6   Mellanox Technologies\" lid 4 "
          "4xHDR\n"
          "[3] \"H-00000000000000b3\"[1](b3) # \"twin mlx5_0\" lid 4 4xHDR\n"
          "[4] \"H-00000000000000b4\"[1](b4) # \"twin mlx5_0\" lid 4 4xHDR\n"
          "[5] \"H-00000000000000b5\"[1](b5) # \"localhost mlx5_0\" lid 4 4xHDR\n"
          "[6] \"H-00000000000000b6\"[1](b6) # \"same.a.example mlx5_0\" lid 4 4xHDR\n"
          "[7] \"H-00000000000000b7\"[1](b7) # \"same.b.example mlx5_0\" lid 4 4xHDR\n"
          "[8] \"H-00000000000000b8\"[1](b8) # \"N1 mlx5_1\" lid 4 4xHDR\n" HOST("00000000000000b1",
                                                                                 "c1", "n1 mlx5_0")
              HOST("00000000000000b2", "c1", "MT4123 ConnectX6   Mellanox Technologies")
                  HOST("00000000000000b3", "c3", "twin mlx5_0")
                      HOST("00000000000000b4", "c4", "twin mlx5_0")
                          HOST("00000000000000b5", "c5", "localhost mlx5_0")
                              HOST("00000000000000b6", "c6", "same.a.example mlx5_0")
                                  HOST("00000000000000b7", "c7", "same.b.example mlx5_0")
                                      HOST("00000000000000b8", "c8",
                                           "N1 mlx5_1") "[1] \"S-00000000000000a1\"[8] # lid 1\n";

static const char *host_of(const struct weft_fabric *f, uint64_t guid)
{
    for (size_t i = 0; i < f->device_count; i++) {
        if (f->devices[i].guid == guid && f->devices[i].host != WEFT_FABRIC_NO_HOST) {
            return f->hosts[f->devices[i].host].name;
        }
    }
    return NULL;
}

static void names_group_adapters_only_where_they_are_unique(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *f = parse(adapters);
    if (f == NULL) {
        return;
    }
    /* upper and lower case are one; the sibling on the same card belongs to the named host */
    CHECK_STR(host_of(f, 0xb1), host_of(f, 0xb8));
    CHECK_STR(host_of(f, 0xb1), host_of(f, 0xb2));
    /* two systems say "twin mlx5_0": neither is */
    CHECK_STR(host_of(f, 0xb3), "00000000000000c3");
    CHECK_STR(host_of(f, 0xb4), "00000000000000c4");
    /* a short name that two have goes by the full one */
    CHECK_STR(host_of(f, 0xb6), "same.a.example");
    CHECK_STR(host_of(f, 0xb7), "same.b.example");
    CHECK_STR(host_of(f, 0xb5), "localhost");
    for (size_t h = 0; h < f->host_count; h++) {
        const char *name = f->hosts[h].name;
        const bool unusable = strcmp(name, "localhost") == 0 || name[0] == '0';
        CHECK_INT(f->hosts[h].mappable, !unusable);
    }
}

static void simulator_nets_have_free_ids(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *f =
        parse("# ibsim\nSwitch\t8 \"leaf0\"\n[1]\t\"n0 mlx5_0\"[1]\n[3]\t\"spine\"[3]\n\n"
              "Switch 8 \"spine\"\n[3]\t\"leaf0\"[3]\tw=4\n\nHca\t1 \"n0 mlx5_0\"\n"
              "[1]\t\"leaf0\"[1]\n");
    if (f != NULL) {
        CHECK_INT(f->switch_count, 2);
        CHECK_INT(f->link_count, 2);
        CHECK_INT(f->partial, false);
        CHECK_STR(f->hosts[0].name, "n0");
    }
}

static void a_port_has_one_cable(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *f = parse(SWITCH(
        "00000000000000a1",
        "sw") "[1] \"H-00000000000000b2\"[1](b2) # \"n2 HCA-1\" lid 4 4xHDR\n"
              "[1] \"H-00000000000000b1\"[1](b1) # \"n1 HCA-1\" lid 4 4xHDR\n\n" HOST(
                  "00000000000000b2", "b2", "n2 HCA-1") "[1](b2) \"S-00000000000000a1\"[1] # "
                                                        "lid\n" HOST("00000000000000b1", "b1",
                                                                     "n1 HCA-1") "[1](b1) "
                                                                                 "\"S-"
                                                                                 "00000000000000a1"
                                                                                 "\"[2] # lid\n");
    if (f != NULL) {
        CHECK_INT(f->link_count, 2);
        CHECK_INT(f->links[0].b_port, 1);
        CHECK_STR(f->devices[f->links[0].b].desc, "n2 HCA-1"); /* the one that both ends show */
        CHECK_INT(f->warning_total, 1);
        CHECK_CONTAINS(f->warnings[0], "port 1");
    }
}

/* ---- what is refused ---- */

static void refused_texts(void)
{
    check_refused("", "no switch");
    check_refused("hello\nworld\n", "dump:1: ignored: hello");
    check_refused("# Topology file\n\nvendid=0x2c9\n", "dump:3: the dump ends in the middle");
    check_refused("#\n\nvendid=0x2c9\ndevid=0x1021\ncaguid=0xb1\nCa\t1 \"H-00000000000000b1\"\t# "
                  "\"n1 HCA-1\"\n",
                  "dump:3: the dump ends in the middle");
    check_refused(SWITCH("00000000000000a1", "sw") "\n\n", "no link");
    check_refused(
        SWITCH("00000000000000a1",
               "sw") "[1] \"H-00000000000000b1\"[1](b1) # \"n1 HCA-1\" lid 4 4xHDR\n[2] \"H-0000",
        "dump:4: the dump ends in the middle of this line");
    check_refused("sysimgguid=0x9c05<redacted>\nswitchguid=0x9c05<redacted>(9c05<redacted>)\n"
                  "Switch\t129 \"S-9c05<redacted>\"\t# \"MF0;IB-02:MQM9700/U1\" enhanced port 0\n"
                  "[1]\t\"H-b83f<redacted>\"[1](b83f<redacted>) # \"n5 mlx5_2\" lid 22 2xNDR\n"
                  "...omitted\n",
                  "dump:1: sysimgguid is not hexadecimal");
}

static void bad_lines_are_counted_and_make_it_partial(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *f =
        parse("[9] \"S-00000000000000a1\"[1] # no record\n" SWITCH(
            "00000000000000a1",
            "sw") "[0] \"H-00000000000000b1\"[1](b1) # port 0\n[9999] \"H-00000000000000b1\"[1] # "
                  "port\n"
                  "[1] H-00000000000000b1[1] # no quotes\n[2] \"H-xyz\"[1] # no guid\n"
                  "[4] \"H-00000000000000b1\" # no peer port\n[x] \"H-00000000000000b1\"[1] # no "
                  "port\n"
                  "[5] \"H-00000000000000b1\"[1](b1) # \"n1 HCA-1\" lid 4 4xHDR\n"
                  "ibwarn: [1] mad_rpc: _do_madrpc failed; dport (DR path 0)\n\n");
    if (f != NULL) {
        CHECK_INT(f->link_count, 1);
        CHECK_INT(f->partial, true);
        CHECK_INT(f->warning_total, 9); /* with the adapter that has no record */
        CHECK_CONTAINS(f->warnings[0], "dump:1:");
    }
}

static void warnings_have_a_cap(void)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1 << 20);
    (void)weft_buf_puts(
        &buf, SWITCH("00000000000000a1",
                     "sw") "[1] \"H-00000000000000b1\"[1](b1) # \"n1 HCA-1\" lid 4 4xHDR\n");
    for (int i = 0; i < 1000; i++) {
        (void)weft_buf_puts(&buf, "what is this\n");
    }
    weft_auto(weft_fabric_free) struct weft_fabric *f = parse(weft_buf_text(&buf));
    if (f != NULL) {
        CHECK_INT(f->warning_count, WEFT_FABRIC_WARNINGS_MAX);
        CHECK_INT(f->warning_total, 1001);
    }
}

static void every_failing_allocation_is_an_error(void)
{
    weft_autofree char *text = weft_fixture_text(TWO_RACKS, NULL);
    const size_t len = strlen(text);
    int rc = -ENOMEM;
    uint64_t n = 0;
    while (rc < 0 && n < 100000) {
        struct weft_fabric *fabric = NULL;
        struct weft_error err = {0};
        (void)weft_mem_fail_after(++n);
        rc = weft_parse_ibnetdiscover(text, len, "dump", &fabric, &err);
        (void)weft_mem_fail_after(0);
        if (rc < 0) {
            CHECK_INT(rc, -ENOMEM);
            CHECK(fabric == NULL);
        }
        weft_fabric_free(fabric);
    }
    CHECK_INT(rc, 0);
    CHECK(n > 20);
}

WEFT_SUITE(fabric, {"a_fabric_of_two_racks", a_fabric_of_two_racks},
           {"line_ends_and_tabs_do_not_matter", line_ends_and_tabs_do_not_matter},
           {"a_missing_last_blank_line_loses_nothing", a_missing_last_blank_line_loses_nothing},
           {"a_terminal_log_around_it_is_ignored", a_terminal_log_around_it_is_ignored},
           {"two_runs_in_one_file_are_their_union", two_runs_in_one_file_are_their_union},
           {"a_cut_dump_is_never_silently_smaller", a_cut_dump_is_never_silently_smaller},
           {"a_description_goes_to_the_last_quote", a_description_goes_to_the_last_quote},
           {"guids_are_numbers", guids_are_numbers}, {"rates", rates},
           {"sharp_nodes_share_the_switch_system", sharp_nodes_share_the_switch_system},
           {"names_group_adapters_only_where_they_are_unique",
            names_group_adapters_only_where_they_are_unique},
           {"simulator_nets_have_free_ids", simulator_nets_have_free_ids},
           {"a_port_has_one_cable", a_port_has_one_cable}, {"refused_texts", refused_texts},
           {"bad_lines_are_counted_and_make_it_partial", bad_lines_are_counted_and_make_it_partial},
           {"warnings_have_a_cap", warnings_have_a_cap},
           {"every_failing_allocation_is_an_error", every_failing_allocation_is_an_error})
