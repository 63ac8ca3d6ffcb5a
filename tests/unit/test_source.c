/* SPDX-License-Identifier: Apache-2.0 */
/* Sources at work: which result counts, what is told of health, when they are looked at. Time is
 * moved by hand; files are the test's own. */
#include "pkg/source/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/base/str.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/labels.h"
#include "pkg/loop/loop.h"
#include "pkg/source/guess.h"
#include "pkg/source/source-internal.h"
#include "tests/unit/unit.h"

#define LONG_ENOUGH (10 * WEFT_NS_PER_S)
#define FOUR_NODES "SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n[3-4]\n"
#define SIX_NODES "SwitchName=s1 Nodes=n[1-3]\nSwitchName=s2 Nodes=n[4-6]\n"
#define HALF "SwitchName=s1 Nodes=n[1-\n"

struct bench {
    char dir[200], path[256];
    int64_t now;
    struct weft_clock clock;
    struct weft_loop *loop;
    struct weft_config *config;
    struct weft_sources *sources;
    unsigned news;
    bool told;
};

static int64_t fake_now(void *data)
{
    return ((struct bench *)data)->now;
}

static void on_changed(void *data)
{
    struct bench *b = data;
    b->news++;
    b->told = true;
}

static void put(const char *path, const char *text)
{
    CHECK_INT(weft_file_replace(path, text, strlen(text), 0600, NULL), 0);
}

static struct weft_config *parse(const char *sources)
{
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    weft_autofree char *text =
        weft_asprintf("apiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\n"
                      "tiers: [leaf, spine, core]\nsources:\n%s",
                      sources);
    CHECK_INT(weft_config_parse(text, strlen(text), "config", &config, &err), 0);
    CHECK_STR(err.message, "");
    return config;
}

static void configure(struct bench *b, const char *sources)
{
    struct weft_config *old = b->config;
    b->config = parse(sources);
    struct weft_error err = {0};
    CHECK_INT(weft_sources_configure(b->sources, b->config->sources, b->config->source_count, &err),
              0);
    weft_config_free(old);
}

/* name: of this test's folder. sources: with one %s for the path of its file. */
static void up(struct bench *b, const char *name, const char *sources)
{
    *b = (struct bench){.now = 1000 * WEFT_NS_PER_S};
    b->clock = (struct weft_clock){.monotonic = fake_now, .realtime = fake_now, .data = b};
    (void)snprintf(b->dir, sizeof(b->dir), "%s/source-%s", weft_test_dir(), name);
    (void)snprintf(b->path, sizeof(b->path), "%s/topology.conf", b->dir);
    (void)mkdir(b->dir, 0700);
    CHECK_INT(weft_loop_new(&b->loop, NULL), 0);
    const struct weft_sources_options options = {
        .loop = b->loop, .clock = &b->clock, .seed = 7, .changed = on_changed, .data = b};
    CHECK_INT(weft_sources_new(&options, &b->sources, NULL), 0);
    weft_autofree char *text = weft_asprintf("%s%s}\n", sources, b->path);
    configure(b, text);
}

static void down(struct bench *b)
{
    weft_sources_free(b->sources);
    weft_config_free(b->config);
    weft_loop_free(b->loop);
}

/* Runs the loop until something new was told. */
static bool wait_news(struct bench *b)
{
    b->told = false;
    return weft_loop_run_until(b->loop, &b->told, LONG_ENOUGH);
}

static size_t nodes_of(const struct bench *b, size_t index)
{
    const struct weft_source_result *result = weft_sources_result(b->sources, index);
    return result != NULL && result->declared != NULL ? result->declared->node_count : 0;
}

static void check_state(const struct bench *b, size_t index, enum weft_source_state state,
                        const char *part)
{
    const struct weft_source_health *health = weft_sources_health(b->sources, index);
    CHECK_STR(weft_source_state_name(health->state), weft_source_state_name(state));
    CHECK_CONTAINS(health->error.message, part);
}

/* ---- files ---- */

/* The loop's thread must not wait for who might write into it. */
static void a_pipe_is_not_waited_for(void)
{
    struct bench b;
    up(&b, "pipe", "- slurm: {conf: ");
    (void)unlink(b.path);
    CHECK_INT(mkfifo(b.path, 0600), 0);
    CHECK(weft_sources_refresh(b.sources));
    check_state(&b, 0, WEFT_SOURCE_FAILED, "topology.conf: is no regular file");
    CHECK_INT(unlink(b.path), 0);
    put(b.path, FOUR_NODES);
    CHECK(weft_sources_refresh(b.sources));
    check_state(&b, 0, WEFT_SOURCE_OK, "");
    down(&b);
}

static void a_file_is_read_when_it_changed(void)
{
    struct bench b;
    up(&b, "changed", "- slurm: {conf: ");
    check_state(&b, 0, WEFT_SOURCE_WAITING, "");
    CHECK(!weft_sources_ready(b.sources));
    put(b.path, FOUR_NODES);
    CHECK(weft_sources_refresh(b.sources));
    check_state(&b, 0, WEFT_SOURCE_OK, "");
    CHECK(weft_sources_ready(b.sources));
    CHECK_INT(nodes_of(&b, 0), 4);
    CHECK(!weft_sources_refresh(b.sources));
    CHECK_INT(weft_sources_health(b.sources, 0)->looks, 1); /* not read again */
    CHECK_INT(weft_sources_health(b.sources, 0)->complete, 1);
    b.now = 1011 * WEFT_NS_PER_S; /* the interval of 10 s and its jitter of 10 % are over */
    weft_sources_tick(b.sources);
    CHECK_INT(weft_sources_health(b.sources, 0)->looks, 1);
    CHECK_INT(weft_sources_health(b.sources, 0)->complete, 2); /* seen, as it was */
    put(b.path, SIX_NODES);
    CHECK(weft_sources_refresh(b.sources));
    CHECK_INT(nodes_of(&b, 0), 6);
    CHECK_INT(weft_sources_health(b.sources, 0)->looks, 2);
    CHECK_INT(b.news, 0); /* the caller knows it from refresh */
    down(&b);
}

static void half_a_file_keeps_the_last_good_one(void)
{
    struct bench b;
    up(&b, "half", "- slurm: {conf: ");
    put(b.path, SIX_NODES);
    CHECK(weft_sources_refresh(b.sources));
    const int64_t good_since = weft_sources_health(b.sources, 0)->since;
    b.now += 60 * WEFT_NS_PER_S;
    put(b.path, HALF);
    CHECK(weft_sources_refresh(b.sources));
    check_state(&b, 0, WEFT_SOURCE_STALE, "source slurm: ");
    check_state(&b, 0, WEFT_SOURCE_STALE, "topology.conf:1");
    CHECK_INT(weft_sources_health(b.sources, 0)->since, good_since + 60 * WEFT_NS_PER_S);
    CHECK_INT(weft_sources_health(b.sources, 0)->failures, 1);
    CHECK_INT(nodes_of(&b, 0), 6);
    CHECK_INT(weft_sources_check(b.sources, NULL), 0);
    CHECK_INT(unlink(b.path), 0);
    CHECK(weft_sources_refresh(b.sources));
    check_state(&b, 0, WEFT_SOURCE_STALE, "No such file");
    CHECK_INT(nodes_of(&b, 0), 6);
    put(b.path, FOUR_NODES);
    CHECK(weft_sources_refresh(b.sources));
    check_state(&b, 0, WEFT_SOURCE_OK, "");
    CHECK_INT(weft_sources_health(b.sources, 0)->error.code, 0);
    CHECK_INT(nodes_of(&b, 0), 4);
    down(&b);
}

static void without_any_good_result_nothing_may_be_decided(void)
{
    struct bench b;
    struct weft_error err = {0};
    up(&b, "never", "- labels: {preset: aws}\n- slurm: {conf: ");
    CHECK_INT(weft_sources_check(b.sources, &err), -ENODATA);
    CHECK_CONTAINS(err.message, "no answer yet");
    CHECK(weft_sources_refresh(b.sources));
    check_state(&b, 1, WEFT_SOURCE_FAILED, "No such file");
    CHECK(weft_sources_ready(b.sources));
    CHECK_INT(weft_sources_check(b.sources, &err), -ENODATA);
    CHECK_CONTAINS(err.message, "source slurm: ");
    check_state(&b, 0, WEFT_SOURCE_OK, ""); /* labels come with the Nodes */
    CHECK(weft_sources_result(b.sources, 0) == NULL);
    down(&b);
}

/* As the kubelet updates a ConfigMap: a new folder, then the swap of one link. */
static void the_swap_of_a_link_is_seen_by_the_watch(void)
{
    struct bench b;
    char old[300], new[300], link[300], temporary[300];
    up(&b, "swap", "- slurm: {conf: ");
    (void)snprintf(old, sizeof(old), "%s/..1", b.dir);
    (void)snprintf(new, sizeof(new), "%s/..2", b.dir);
    (void)snprintf(link, sizeof(link), "%s/..data", b.dir);
    (void)snprintf(temporary, sizeof(temporary), "%s/..data_tmp", b.dir);
    CHECK_INT(mkdir(old, 0700), 0);
    CHECK_INT(mkdir(new, 0700), 0);
    weft_autofree char *file1 = weft_asprintf("%s/topology.conf", old);
    weft_autofree char *file2 = weft_asprintf("%s/topology.conf", new);
    put(file1, FOUR_NODES);
    put(file2, SIX_NODES);
    CHECK_INT(symlink("..1", link), 0);
    CHECK_INT(symlink("..data/topology.conf", b.path), 0);
    CHECK(wait_news(&b)); /* the first look */
    CHECK_INT(nodes_of(&b, 0), 4);
    CHECK_INT(symlink("..2", temporary), 0);
    CHECK_INT(rename(temporary, link), 0);
    CHECK(wait_news(&b)); /* the clock stands still: it is not the interval */
    CHECK_INT(nodes_of(&b, 0), 6);
    down(&b);
}

static void a_folder_of_reports_is_a_source(void)
{
    struct bench b;
    up(&b, "folder", "- slurm: {conf: ");
    weft_autofree char *text = weft_asprintf("- lldp: {folder: %s/none}\n", b.dir);
    configure(&b, text);
    (void)weft_sources_refresh(b.sources);
    check_state(&b, 0, WEFT_SOURCE_FAILED, "source lldp: ");
    check_state(&b, 0, WEFT_SOURCE_FAILED, "/none: No such file");
    weft_autofree char *empty = weft_asprintf("- lldp: {folder: %s}\n", b.dir);
    configure(&b, empty);
    (void)weft_sources_refresh(b.sources);
    check_state(&b, 0, WEFT_SOURCE_FAILED, ": no file *.json");
    down(&b);
}

static void settings_that_stay_keep_their_result(void)
{
    struct bench b;
    up(&b, "stay", "- slurm: {conf: ");
    put(b.path, SIX_NODES);
    CHECK(weft_sources_refresh(b.sources));
    put(b.path, HALF);
    CHECK(weft_sources_refresh(b.sources));
    weft_autofree char *text =
        weft_asprintf("- labels: {preset: aws}\n- slurm: {conf: %s}\n", b.path);
    configure(&b, text); /* another source before it: it is the same one still */
    check_state(&b, 1, WEFT_SOURCE_STALE, "source slurm: ");
    CHECK_INT(nodes_of(&b, 1), 6);
    weft_autofree char *other = weft_asprintf("- slurm: {conf: %s, interval: 20s}\n", b.path);
    configure(&b, other); /* a changed one begins anew */
    check_state(&b, 0, WEFT_SOURCE_WAITING, "");
    CHECK_INT(nodes_of(&b, 0), 0);
    down(&b);
}

/* ---- when ---- */

/* Looks so far of a command that counts them in a file. */
static unsigned runs(const struct bench *b)
{
    weft_autofree char *path = weft_asprintf("%s/runs", b->dir);
    struct stat st;
    return stat(path, &st) == 0 ? (unsigned)st.st_size : 0;
}

static void count_with(struct bench *b, const char *name, const char *script)
{
    up(b, name, "- slurm: {conf: ");
    weft_autofree char *text = weft_asprintf(
        "- infiniband: {command: [sh, -c, \"printf x >>%s/runs; %s\"], interval: 10s, "
        "jitter: 50%%}\n",
        b->dir, script);
    configure(b, text);
}

/* Runs the loop until the look under way has ended. */
static void end_look(struct bench *b)
{
    const struct weft_source *source = b->sources->items[0];
    for (unsigned i = 0; i < 5000 && source->looking; i++) {
        const bool never = false;
        (void)weft_loop_run_until(b->loop, &never, 2 * WEFT_NS_PER_MS);
    }
    CHECK(!source->looking);
}

static void interval_and_jitter_are_kept(void)
{
    struct bench b;
    count_with(&b, "interval", "cat tests/fixtures/fabric/two-racks.ibnetdiscover.txt");
    const struct weft_source *source = b.sources->items[0];
    CHECK(wait_news(&b));
    check_state(&b, 0, WEFT_SOURCE_OK, "");
    CHECK_INT(runs(&b), 1);
    bool differ = false;
    const int64_t first = source->due - b.now;
    for (unsigned i = 2; i < 12; i++) {
        const int64_t wait = source->due - b.now; /* 10 s and up to half of that */
        CHECK(wait >= 10 * WEFT_NS_PER_S && wait < 15 * WEFT_NS_PER_S);
        differ = differ || wait != first;
        b.now = source->due - 1;
        weft_sources_tick(b.sources);
        CHECK(!source->looking);
        b.now += 1;
        weft_sources_tick(b.sources);
        weft_sources_tick(b.sources); /* not twice at once */
        CHECK(source->looking);
        end_look(&b);
        CHECK_INT(runs(&b), i);
    }
    CHECK(differ);
    CHECK_INT(b.news, 1); /* the same output each time is nothing new */
    CHECK_INT(weft_sources_health(b.sources, 0)->complete, 11);
    down(&b);
}

static void a_failing_source_is_asked_ever_more_rarely(void)
{
    struct bench b;
    count_with(&b, "backoff", "exit 1");
    const struct weft_source *source = b.sources->items[0];
    CHECK(wait_news(&b));
    check_state(&b, 0, WEFT_SOURCE_FAILED, "sh: exit status 1");
    int64_t most = 5 * WEFT_NS_PER_S; /* then 10, 20, 40, 60, 60 …: half to all of it */
    for (unsigned i = 2; i < 9; i++) {
        const int64_t wait = source->due - b.now;
        CHECK(wait >= most / 2 && wait <= most);
        most = most * 2 < 60 * WEFT_NS_PER_S ? most * 2 : 60 * WEFT_NS_PER_S;
        b.now = source->due;
        weft_sources_tick(b.sources);
        end_look(&b);
        CHECK_INT(runs(&b), i);
        CHECK_INT(weft_sources_health(b.sources, 0)->failures, i);
    }
    CHECK(b.news <= 2); /* the same failure is told once */
    down(&b);
}

/* ---- which kind a file is ---- */

static void check_kind(const char *text, enum weft_source_kind kind)
{
    enum weft_source_kind found = WEFT_SOURCE_COUNT;
    struct weft_error err = {0};
    CHECK_INT(weft_source_guess(text, strlen(text), "f", &found, &err), 0);
    CHECK_STR(weft_source_kind_name(found), weft_source_kind_name(kind));
}

static void check_no_kind(const char *text, const char *part)
{
    enum weft_source_kind found = WEFT_SOURCE_COUNT;
    struct weft_error err = {0};
    CHECK_INT(weft_source_guess(text, strlen(text), "f", &found, &err), -EINVAL);
    CHECK_CONTAINS(err.message, part);
    CHECK_CONTAINS(err.message, "--from KIND=FILE");
}

static void a_file_tells_its_kind(void)
{
    check_kind("# c\nvendid=0x2c9\nswitchguid=0x1(1)\n", WEFT_SOURCE_INFINIBAND);
    check_kind("CA: host1 mlx5_0:\n", WEFT_SOURCE_INFINIBAND);
    check_kind("# x\nSwitchName=s Nodes=a\n", WEFT_SOURCE_SLURM);
    check_kind("switchname=s nodes=a\n", WEFT_SOURCE_SLURM);
    check_kind("---\n- topology: gpu\n  tree:\n", WEFT_SOURCE_SLURM);
    check_kind("graph G {\n}\n", WEFT_SOURCE_PTM);
    check_kind("apiVersion: weft.dev/v1alpha1\nkind: FabricFile\n", WEFT_SOURCE_FILE);
    check_kind("apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n", WEFT_SOURCE_LABELS);
    check_kind("{\"apiVersion\": \"v1\", \"kind\": \"NodeList\"}", WEFT_SOURCE_LABELS);
    check_kind("\n{ \"lldp\" : {} }", WEFT_SOURCE_LLDP);
    check_kind("{\"Instances\":[{\"NetworkNodes\":[]}]}", WEFT_SOURCE_AWS_API);
    check_kind("{\"customerNetworkBlock\": \"x\"}", WEFT_SOURCE_OCI_IMDS);
    check_kind("[{\"source_guid\": \"1\"}]", WEFT_SOURCE_UFM);
    check_no_kind("", "no kind");
    check_no_kind("hello\n", "no kind");
    check_no_kind("owners:\n    kind: Node\n", "no kind"); /* about something else */
    check_no_kind("{\"a\": \"vendid=0x\"}", "no kind");
    check_no_kind("SwitchName=s Nodes=a\nvendid=0x1\n", "infiniband or slurm");
}

/* ---- memory ---- */

static void every_failing_allocation_is_an_error(void)
{
    struct bench b;
    up(&b, "memory", "- slurm: {conf: ");
    put(b.path, FOUR_NODES);
    weft_autofree char *text = weft_asprintf("- slurm: {conf: %s, interval: 9s}\n", b.path);
    struct weft_config *config = parse(text);
    int rc = -ENOMEM;
    for (uint64_t n = 1; n < 3000; n++) {
        struct weft_sources *sources = NULL;
        const struct weft_sources_options options = {.loop = b.loop, .clock = &b.clock};
        (void)weft_mem_fail_after(n);
        rc = weft_sources_new(&options, &sources, NULL);
        if (rc == 0) {
            rc = weft_sources_configure(sources, config->sources, 1, NULL);
        }
        if (rc == 0) {
            (void)weft_sources_refresh(sources);
            rc = weft_sources_check(sources, NULL);
        }
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || rc == -ENOMEM || rc == -ENODATA);
        if (rc == -ENODATA) { /* it is read again when there is memory */
            (void)weft_sources_refresh(sources);
            CHECK_INT(weft_sources_check(sources, NULL), 0);
        }
        weft_sources_free(sources);
        if (rc == 0) {
            break;
        }
    }
    CHECK_INT(rc, 0);
    weft_config_free(config);
    down(&b);
}

WEFT_SUITE(source, {"a pipe is not waited for", a_pipe_is_not_waited_for},
           {"a file is read when it changed", a_file_is_read_when_it_changed},
           {"half a file keeps the last good one", half_a_file_keeps_the_last_good_one},
           {"without any good result nothing may be decided",
            without_any_good_result_nothing_may_be_decided},
           {"the swap of a link is seen by the watch", the_swap_of_a_link_is_seen_by_the_watch},
           {"a folder of reports is a source", a_folder_of_reports_is_a_source},
           {"settings that stay keep their result", settings_that_stay_keep_their_result},
           {"interval and jitter are kept", interval_and_jitter_are_kept},
           {"a failing source is asked ever more rarely",
            a_failing_source_is_asked_ever_more_rarely},
           {"a file tells its kind", a_file_tells_its_kind},
           {"every failing allocation is an error", every_failing_allocation_is_an_error})
