/* SPDX-License-Identifier: Apache-2.0 */
/* pkg/kube by hand and for the cluster tests: one call or a followed collection against a real API
 * server, one line a happening on stdout.
 *   kubetool KUBECONFIG get|delete PATH [UID [RESOURCE_VERSION]]
 *   kubetool KUBECONFIG create|replace|apply|patch PATH BODY.json
 *   kubetool KUBECONFIG follow PATH metadata|json SECONDS [PAGE_SIZE]      0: a streamed list
 *   kubetool KUBECONFIG lease NAMESPACE NAME IDENTITY SECONDS
 *   kubetool KUBECONFIG event NODE NOTE */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/base/str.h"
#include "pkg/json/json.h"
#include "pkg/kube/client.h"
#include "pkg/kube/config.h"
#include "pkg/kube/event.h"
#include "pkg/kube/lease.h"
#include "pkg/kube/reflector.h"
#include "pkg/loop/loop.h"

struct tool {
    struct weft_loop *loop;
    struct weft_kube_client *client;
    int64_t started_at;
    uint64_t objects, labels;
    bool done;
    int rc;
};

static double seconds_since(int64_t start)
{
    const int64_t ns = weft_clock_monotonic(weft_clock_system()) - start;
    return (double)ns / (double)WEFT_NS_PER_S;
}

static long peak_kb(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss : 0;
}

static double cpu_seconds(void)
{
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* ---- one call ---- */

static void on_done(void *data, const struct weft_kube_result *result)
{
    struct tool *tool = data;
    const struct weft_json *m = weft_json_get(result->body, "metadata");
    const char *version = weft_json_string(weft_json_get(m, "resourceVersion"));
    const char *uid = weft_json_string(weft_json_get(m, "uid"));
    (void)printf("status=%d code=%d reason=%s uid=%s resourceVersion=%s unknown=%d "
                 "retry_after=%lld audit=%s error=%s\n",
                 result->status, result->error.code, result->reason, uid != NULL ? uid : "",
                 version != NULL ? version : "", result->outcome_unknown,
                 (long long)(result->retry_after_ns / WEFT_NS_PER_S), result->error.request_id,
                 result->error.message);
    tool->rc = result->error.code < 0;
    tool->done = true;
}

static int call(struct tool *tool, enum weft_kube_verb verb, int argc, char **argv)
{
    weft_autofree char *body = NULL;
    size_t len = 0;
    struct weft_error err = {0};
    const bool has_body = verb != WEFT_KUBE_GET && verb != WEFT_KUBE_DELETE;
    if (has_body &&
        (argc < 5 || weft_file_read(argv[4], WEFT_KUBE_REQUEST_MAX, &body, &len, &err) < 0)) {
        (void)fprintf(stderr, "body: %s\n", err.message);
        return 2;
    }
    const struct weft_kube_op op = {
        .verb = verb,
        .path = argv[3],
        .body = body,
        .body_len = len,
        .uid = !has_body && argc > 4 ? argv[4] : NULL,
        .resource_version = !has_body && argc > 5 ? argv[5] : NULL,
        .force = true,
        .strict = true,
        .timeout_ns = 10 * WEFT_NS_PER_S,
        .on_done = on_done,
        .data = tool,
    };
    if (weft_kube_submit(tool->client, &op, NULL, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    (void)weft_loop_run_until(tool->loop, &tool->done, 20 * WEFT_NS_PER_S);
    return tool->rc;
}

/* ---- a collection ---- */

static void on_list(void *data)
{
    struct tool *tool = data;
    tool->objects = tool->labels = 0;
    (void)printf("list\n");
}

static void on_object(void *data, enum weft_kube_change change,
                      const struct weft_kube_object *object)
{
    static const char *const names[WEFT_KUBE_CHANGE_COUNT] = {"added", "modified", "deleted"};
    struct tool *tool = data;
    tool->objects++;
    tool->labels += object->meta.label_count;
    if (tool->objects < 200) {
        (void)printf("%s %s uid=%s resourceVersion=%s labels=%zu deleting=%d doc=%d\n",
                     names[change], object->meta.name, object->meta.uid,
                     object->meta.resource_version, object->meta.label_count, object->meta.deleting,
                     object->doc != NULL);
    }
}

static void on_synced(void *data)
{
    struct tool *tool = data;
    struct weft_kube_stats stats;
    weft_kube_client_stats(tool->client, &stats);
    (void)printf("synced objects=%llu labels=%llu seconds=%.3f cpu=%.3f bytes=%llu requests=%llu "
                 "connections=%llu http2=%llu peak_kb=%ld\n",
                 (unsigned long long)tool->objects, (unsigned long long)tool->labels,
                 seconds_since(tool->started_at), cpu_seconds(), (unsigned long long)stats.bytes_in,
                 (unsigned long long)stats.requests, (unsigned long long)stats.connections,
                 (unsigned long long)stats.http2, peak_kb());
    tool->objects = 0; /* of the watch, all but too many are shown again */
}

static void on_error(void *data, const struct weft_error *error, int64_t retry_ns)
{
    (void)data;
    (void)printf("error retry_ms=%lld %s\n", (long long)(retry_ns / WEFT_NS_PER_MS),
                 error->message);
}

static int follow(struct tool *tool, int argc, char **argv)
{
    struct weft_kube_reflector *r = NULL;
    struct weft_error err = {0};
    uint64_t seconds = 0;
    uint64_t page_size = 0;
    if (argc > 6 && weft_parse_u64(weft_str(argv[6]), UINT32_MAX, &page_size) < 0) {
        return 2;
    }
    const struct weft_kube_reflector_options options = {
        .path = argv[3],
        .pages = page_size > 0,
        .page_size = (unsigned)page_size,
        .codec = strcmp(argv[4], "json") == 0 ? WEFT_KUBE_JSON : WEFT_KUBE_METADATA,
        .watcher = {on_list, on_object, on_synced, on_error, tool},
    };
    if (weft_parse_u64(weft_str(argv[5]), 1000000, &seconds) < 0 ||
        weft_kube_reflector_new(tool->client, &options, &r, &err) < 0) {
        (void)fprintf(stderr, "follow: %s\n", err.message);
        return 2;
    }
    (void)weft_loop_run_until(tool->loop, &tool->done, (int64_t)seconds * WEFT_NS_PER_S);
    weft_kube_reflector_free(r);
    return 0;
}

/* ---- a lease, an event ---- */

static void on_acquired(void *data)
{
    struct tool *tool = data;
    (void)printf("acquired %.1f\n", seconds_since(tool->started_at));
}

static void on_lost(void *data)
{
    struct tool *tool = data;
    (void)printf("lost %.1f\n", seconds_since(tool->started_at));
}

static void on_holder(void *data, const char *holder)
{
    struct tool *tool = data;
    (void)printf("holder %s %.1f\n", holder, seconds_since(tool->started_at));
}

static void on_lease_error(void *data, const struct weft_error *error)
{
    on_error(data, error, 0);
}

static void on_released(void *data)
{
    struct tool *tool = data;
    (void)printf("released %.1f\n", seconds_since(tool->started_at));
    tool->done = true;
}

static void on_term(void *data)
{
    struct tool *tool = data;
    tool->done = true;
}

static int hold_lease(struct tool *tool, char **argv)
{
    struct weft_kube_lease *lease = NULL;
    struct weft_error err = {0};
    uint64_t seconds = 0;
    const struct weft_kube_lease_options options = {
        .ns = argv[3],
        .name = argv[4],
        .identity = argv[5],
        .on_acquired = on_acquired,
        .on_lost = on_lost,
        .on_holder = on_holder,
        .on_error = on_lease_error,
        .data = tool,
    };
    if (weft_parse_u64(weft_str(argv[6]), 1000000, &seconds) < 0 ||
        weft_kube_lease_new(tool->client, &options, &lease, &err) < 0) {
        (void)fprintf(stderr, "lease: %s\n", err.message);
        return 2;
    }
    weft_auto(weft_signal_free) struct weft_signal *term = NULL;
    if (weft_signal_new(tool->loop, SIGTERM, on_term, tool, &term, &err) < 0) {
        (void)fprintf(stderr, "lease: %s\n", err.message);
    }
    (void)weft_loop_run_until(tool->loop, &tool->done, (int64_t)seconds * WEFT_NS_PER_S);
    tool->done = false;
    weft_kube_lease_release(lease, on_released);
    (void)weft_loop_run_until(tool->loop, &tool->done, 10 * WEFT_NS_PER_S);
    weft_kube_lease_free(lease);
    return 0;
}

static int post_event(struct tool *tool, char **argv)
{
    struct weft_error err = {0};
    const struct weft_kube_event event = {
        .api_version = "v1",
        .kind = "Node",
        .ns = "",
        .name = argv[3],
        .uid = "",
        .warning = true,
        .reason = "CableOdd",
        .action = "Discover",
        .note = argv[4],
        .controller = "weft.dev/kubetool",
        .instance = "kubetool-0",
        .on_done = on_done,
        .data = tool,
    };
    if (weft_kube_event_post(tool->client, &event, NULL, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    (void)weft_loop_run_until(tool->loop, &tool->done, 20 * WEFT_NS_PER_S);
    return tool->rc;
}

static int run(struct tool *tool, int argc, char **argv)
{
    static const struct {
        const char *name;
        enum weft_kube_verb verb;
    } verbs[] = {{"get", WEFT_KUBE_GET},       {"delete", WEFT_KUBE_DELETE},
                 {"create", WEFT_KUBE_CREATE}, {"replace", WEFT_KUBE_REPLACE},
                 {"apply", WEFT_KUBE_APPLY},   {"patch", WEFT_KUBE_MERGE_PATCH}};
    for (size_t i = 0; argc > 3 && i < WEFT_ARRAY_LEN(verbs); i++) {
        if (strcmp(argv[2], verbs[i].name) == 0) {
            return call(tool, verbs[i].verb, argc, argv);
        }
    }
    if ((argc == 6 || argc == 7) && strcmp(argv[2], "follow") == 0) {
        return follow(tool, argc, argv);
    }
    if (argc == 7 && strcmp(argv[2], "lease") == 0) {
        return hold_lease(tool, argv);
    }
    if (argc == 5 && strcmp(argv[2], "event") == 0) {
        return post_event(tool, argv);
    }
    (void)fprintf(stderr, "usage: kubetool KUBECONFIG VERB ...\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct tool tool = {.started_at = weft_clock_monotonic(weft_clock_system())};
    struct weft_error err = {0};
    struct weft_kube_config *config = NULL;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 3 || weft_kube_config_load(argv[1], NULL, &config, &err) < 0 ||
        weft_loop_new(&tool.loop, &err) < 0) {
        (void)fprintf(stderr, "kubetool: %s\n", err.message);
        return 2;
    }
    int rc = 1;
    if (weft_kube_client_new(tool.loop, config, "kubetool", &tool.client, &err) == 0) {
        rc = run(&tool, argc, argv);
    }
    weft_kube_client_free(tool.client);
    weft_loop_free(tool.loop);
    return rc;
}
