/* SPDX-License-Identifier: Apache-2.0 */
/* Sources that are commands: several subnets, parts, caps, and what is left of a child that is cut
 * off. The planes are written here: h1 and h2 on one switch of each. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/base/str.h"
#include "pkg/fabric/fabric.h"
#include "pkg/loop/loop.h"
#include "pkg/source/source.h"
#include "tests/unit/unit.h"

#define LONG_ENOUGH (10 * WEFT_NS_PER_S)
enum { OUTPUT_MAX = 100000 };

struct bench {
    char dir[200];
    struct weft_loop *loop;
    struct weft_config *config;
    struct weft_sources *sources;
    bool told;
};

static void on_changed(void *data)
{
    ((struct bench *)data)->told = true;
}

/* A plane: the switch's GUID is its number, the hosts' adapters are mlx5_<number>. */
static void put_plane(const struct bench *b, unsigned number, unsigned hosts)
{
    weft_auto(weft_buf_done) struct weft_buf t;
    weft_buf_init(&t, 1 << 16);
    (void)weft_buf_printf(&t, "switchguid=0x%u(%u)\nSwitch 4 \"S-%016u\" # \"plane-%u\"\n", number,
                          number, number, number);
    for (unsigned h = 1; h <= hosts; h++) {
        (void)weft_buf_printf(&t, "[%u] \"H-%015u%u\"[1] # \"h%u mlx5_%u\" lid 1 4xNDR\n", h, h,
                              number, h, number);
    }
    for (unsigned h = 1; h <= hosts; h++) {
        (void)weft_buf_printf(&t,
                              "\ncaguid=0x%u%u\nCa 1 \"H-%015u%u\" # \"h%u mlx5_%u\"\n"
                              "[1] \"S-%016u\"[%u] # lid 1 \"plane-%u\" lid 1 4xNDR\n",
                              h, number, h, number, h, number, number, h, number);
    }
    weft_autofree char *path = weft_asprintf("%s/plane-%u", b->dir, number);
    CHECK_INT(weft_file_replace(path, t.data, t.len, 0600, NULL), 0);
}

static void up(struct bench *b, const char *name)
{
    *b = (struct bench){0};
    (void)snprintf(b->dir, sizeof(b->dir), "%s/command-%s", weft_test_dir(), name);
    (void)mkdir(b->dir, 0700);
    CHECK_INT(weft_loop_new(&b->loop, NULL), 0);
    const struct weft_sources_options options = {
        .loop = b->loop, .output_max = OUTPUT_MAX, .seed = 1, .changed = on_changed, .data = b};
    CHECK_INT(weft_sources_new(&options, &b->sources, NULL), 0);
}

static void down(struct bench *b)
{
    weft_sources_free(b->sources);
    weft_config_free(b->config);
    weft_loop_free(b->loop);
}

/* fields: of an infiniband source; "@" stands for the folder. Waits for the first look's end. */
static void look(struct bench *b, const char *fields)
{
    weft_auto(weft_buf_done) struct weft_buf t;
    weft_buf_init(&t, 1 << 16);
    (void)weft_buf_puts(&t, "apiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\nsources:\n"
                            "- infiniband: {");
    for (const char *c = fields; *c != '\0'; c++) {
        (void)(*c == '@' ? weft_buf_puts(&t, b->dir) : weft_buf_putc(&t, *c));
    }
    (void)weft_buf_puts(&t, "}\n");
    struct weft_config *old = b->config;
    struct weft_error err = {0};
    CHECK_INT(weft_config_parse(t.data, t.len, "config", &b->config, &err), 0);
    CHECK_STR(err.message, "");
    CHECK_INT(weft_sources_configure(b->sources, b->config->sources, 1, &err), 0);
    weft_config_free(old);
    b->told = false;
    CHECK(weft_loop_run_until(b->loop, &b->told, LONG_ENOUGH));
}

static void check_state(const struct bench *b, enum weft_source_state state, const char *part)
{
    const struct weft_source_health *health = weft_sources_health(b->sources, 0);
    CHECK_STR(weft_source_state_name(health->state), weft_source_state_name(state));
    CHECK_CONTAINS(health->error.message, part);
}

static const struct weft_fabric *fabric_of(const struct bench *b)
{
    const struct weft_source_result *result = weft_sources_result(b->sources, 0);
    return result != NULL ? result->fabric : NULL;
}

static void check_fabric(const struct bench *b, size_t switches, size_t hosts, size_t links,
                         bool partial)
{
    const struct weft_fabric *f = fabric_of(b);
    CHECK(f != NULL);
    if (f != NULL) {
        CHECK_INT(f->switch_count, switches);
        CHECK_INT(f->host_count, hosts);
        CHECK_INT(f->link_count, links);
        CHECK_INT(f->partial, partial);
    }
}

/* ---- several subnets ---- */

static void subnets_are_one_fabric(void)
{
    static const char *const ways[] = {"commands: [[cat, @/plane-1], [cat, @/plane-2]]",
                                       "dumps: [@/plane-1, @/plane-2]"};
    struct bench b;
    up(&b, "subnets");
    put_plane(&b, 1, 2);
    put_plane(&b, 2, 2);
    for (size_t i = 0; i < WEFT_ARRAY_LEN(ways); i++) {
        look(&b, ways[i]);
        check_state(&b, WEFT_SOURCE_OK, "");
        check_fabric(&b, 2, 2, 4, false); /* each host has an adapter in each plane */
        const struct weft_fabric *f = fabric_of(&b);
        if (f != NULL && f->host_count == 2) {
            CHECK_STR(f->hosts[0].name, "h1");
            CHECK_INT(f->device_count, 6);
            CHECK(f->links[0].both);
            CHECK_INT(f->links[0].gbps, 400); /* 4xNDR */
        }
    }
    down(&b);
}

/* ---- parts ---- */

static void a_command_that_fails_with_output_gives_a_part(void)
{
    struct bench b;
    up(&b, "part");
    put_plane(&b, 1, 2);
    put_plane(&b, 2, 2);
    look(&b, "command: [sh, -c, \"cat @/plane-1; echo >&2; echo umad timeout >&2; exit 3\"]");
    check_state(&b, WEFT_SOURCE_PARTIAL, "source infiniband: sh: exit status 3: umad timeout");
    check_fabric(&b, 1, 2, 2, true); /* better than nothing */
    look(&b, "commands: [[cat, @/plane-1], [sh, -c, \"kill -9 $$\"], [cat, @/plane-2]]");
    check_state(&b, WEFT_SOURCE_PARTIAL, "sh: ended by signal 9");
    check_fabric(&b, 2, 2, 4, true);
    look(&b, "commands: [[cat, @/plane-1], [/nonexistent/ibnetdiscover]]");
    check_state(&b, WEFT_SOURCE_PARTIAL, "/nonexistent/ibnetdiscover: No such file");
    look(&b, "commands: [[cat, @/plane-1], [\"true\"]]");
    check_state(&b, WEFT_SOURCE_PARTIAL, "true: no output");
    look(&b, "command: [sh, -c, \"cat @/plane-1; echo ibwarn: query failed, DR path 0,1 >&2\"]");
    check_state(&b, WEFT_SOURCE_PARTIAL, "sh: ibwarn: query failed, DR path 0,1");
    look(&b, "command: [sh, -c, \"cat @/plane-1; echo 3 nodes >&2\"]");
    check_state(&b, WEFT_SOURCE_OK, "");
    look(&b, "command: [sh, -c, \"echo no HCA >&2; exit 1\"]");
    check_state(&b, WEFT_SOURCE_FAILED, "sh: exit status 1: no HCA");
    CHECK(fabric_of(&b) == NULL);
    look(&b, "command: [sh, -c, \"echo no HCA >&2\"]");
    check_state(&b, WEFT_SOURCE_FAILED, "sh: no output: no HCA");
    look(&b, "command: [sh, -c, \"head -c 30 @/plane-1; exit 1\"]");
    check_state(&b, WEFT_SOURCE_FAILED, "sh: exit status 1"); /* a record's head is no part */
    down(&b);
}

/* A part never takes the place of a whole scan. */
static void a_part_removes_nothing(void)
{
    struct bench b;
    up(&b, "removes");
    put_plane(&b, 1, 3);
    look(&b, "command: [sh, -c, \"cat @/plane-1; test ! -e @/broken\"], interval: 1s, jitter: 0%");
    check_fabric(&b, 1, 3, 3, false);
    put_plane(&b, 1, 2);
    weft_autofree char *broken = weft_asprintf("%s/broken", b.dir);
    CHECK_INT(weft_file_replace(broken, "", 0, 0600, NULL), 0);
    b.told = false;
    CHECK(weft_loop_run_until(b.loop, &b.told, LONG_ENOUGH));
    check_state(&b, WEFT_SOURCE_STALE, "only a part of the fabric; the one before stays in use");
    check_state(&b, WEFT_SOURCE_STALE, "sh: exit status 1");
    check_fabric(&b, 1, 3, 3, false);
    CHECK_INT(unlink(broken), 0);
    b.told = false;
    CHECK(weft_loop_run_until(b.loop, &b.told, LONG_ENOUGH));
    check_state(&b, WEFT_SOURCE_OK, ""); /* whole again, and smaller: now it counts */
    check_fabric(&b, 1, 2, 2, false);
    down(&b);
}

/* ---- caps ---- */

/* Is the process whose number the command wrote to the folder's file gone? */
static bool is_dead(const struct bench *b, const char *name)
{
    weft_autofree char *path = weft_asprintf("%s/%s", b->dir, name);
    weft_autofree char *text = NULL;
    uint64_t pid = 0;
    CHECK_INT(weft_file_read(path, 100, &text, NULL, NULL), 0);
    CHECK_INT(weft_parse_u64(weft_str_trim(weft_str(text != NULL ? text : "")), INT32_MAX, &pid),
              0);
    char stat_path[64], line[256];
    (void)snprintf(stat_path, sizeof(stat_path), "/proc/%u/stat", (unsigned)pid);
    for (int i = 0; i < 300; i++) {
        FILE *f = fopen(stat_path, "re");
        const bool there = f != NULL && fgets(line, sizeof(line), f) != NULL;
        if (f != NULL) {
            (void)fclose(f);
        }
        const char *state = there ? strrchr(line, ')') : NULL;
        if (state == NULL || strncmp(state, ") Z", 3) == 0) {
            return true;
        }
        (void)usleep(10000);
    }
    return false;
}

static void endless_output_is_cut_at_its_cap(void)
{
    struct bench b;
    up(&b, "endless");
    put_plane(&b, 1, 2);
    look(&b, "command: [sh, -c, \"cat @/plane-1; sleep 60 & echo $! >@/pid; exec yes\"]");
    check_state(&b, WEFT_SOURCE_FAILED, "sh: the output is larger than the cap of 100000 bytes");
    CHECK(fabric_of(&b) == NULL); /* what is cut at any byte is no scan */
    CHECK(is_dead(&b, "pid"));
    look(&b, "commands: [[cat, @/plane-1], [head, -c, 1G, /dev/zero]]");
    check_state(&b, WEFT_SOURCE_PARTIAL, "head: the output is larger than the cap");
    down(&b);
}

static void a_slow_command_is_killed_with_its_group(void)
{
    struct bench b;
    up(&b, "slow");
    const int64_t begin = weft_clock_monotonic(weft_clock_system());
    look(&b, "command: [sh, -c, \"sleep 60 & echo $! >@/pid; echo stuck >&2; wait\"], timeout: 1s");
    check_state(&b, WEFT_SOURCE_FAILED, "sh: killed after its time: stuck");
    CHECK(is_dead(&b, "pid"));
    CHECK(weft_clock_monotonic(weft_clock_system()) - begin < LONG_ENOUGH);
    down(&b);
}

static void a_look_under_way_ends_with_its_source(void)
{
    struct bench b;
    up(&b, "ends");
    look(&b, "command: [\"false\"]");
    b.told = false;
    struct weft_config *old = b.config;
    struct weft_error err = {0};
    static const char text[] = "apiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\nsources:\n"
                               "- infiniband: {command: [sleep, \"60\"]}\n";
    CHECK_INT(weft_config_parse(text, strlen(text), "config", &b.config, &err), 0);
    CHECK_INT(weft_sources_configure(b.sources, b.config->sources, 1, &err), 0);
    weft_config_free(old);
    (void)weft_loop_run_until(b.loop, &b.told, 50 * WEFT_NS_PER_MS);
    CHECK(!weft_sources_ready(b.sources));
    const int64_t begin = weft_clock_monotonic(weft_clock_system());
    down(&b);
    CHECK(weft_clock_monotonic(weft_clock_system()) - begin < LONG_ENOUGH);
}

WEFT_SUITE(source_command, {"subnets are one fabric", subnets_are_one_fabric},
           {"a command that fails with output gives a part",
            a_command_that_fails_with_output_gives_a_part},
           {"a part removes nothing", a_part_removes_nothing},
           {"endless output is cut at its cap", endless_output_is_cut_at_its_cap},
           {"a slow command is killed with its group", a_slow_command_is_killed_with_its_group},
           {"a look under way ends with its source", a_look_under_way_ends_with_its_source})
