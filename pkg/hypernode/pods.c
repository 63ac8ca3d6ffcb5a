/* SPDX-License-Identifier: Apache-2.0 */
/* Reads pods one at a time, so that a list of 50,000 costs the memory of its text and not of a tree
 * over it. Names are kept once: a gang has many pods, a node as well. */
#include "pkg/hypernode/pods.h"

#include <errno.h>
#include <string.h>

#include "pkg/base/map.h"
#include "pkg/base/str.h"
#include "pkg/json/json.h"
#include "pkg/json/split.h"

struct reader {
    struct weft_pods *pods;
    struct weft_map *ids; /* text to its index in pods->texts */
    const char *file;
    size_t line;      /* of the bytes that are fed */
    size_t item_line; /* of the pod at hand */
    size_t seen;      /* pods of any kind */
};

/* What of a pod matters; borrowed from its document. */
struct pod {
    const char *ns;
    const char *node;
    const char *phase;
    const struct weft_json *labels;
    const struct weft_json *annotations;
    const struct weft_json *owners;
};

/* ---- texts ---- */

static int too_many(const struct reader *r, int rc, struct weft_error *err)
{
    return rc == -ENOMEM
               ? weft_err_nomem(err)
               : weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s:%zu: more than %d pods of gangs",
                              r->file, r->line, (int)WEFT_PLACEMENTS_MAX);
}

static int intern(struct reader *r, const char *text, const char **ret_text)
{
    struct weft_pods *pods = r->pods;
    size_t id = 0;
    if (weft_map_get(r->ids, text, &id)) {
        *ret_text = pods->texts[id];
        return 0;
    }
    void *list = pods->texts;
    int rc = weft_array_reserve(&list, &pods->text_cap, pods->text_count + 1, sizeof(*pods->texts),
                                2 * (size_t)WEFT_PLACEMENTS_MAX);
    pods->texts = list;
    rc = rc < 0 ? rc : weft_map_put(r->ids, text, pods->text_count);
    char *copy = rc < 0 ? NULL : weft_strdup(text);
    if (copy == NULL) {
        return rc < 0 ? rc : -ENOMEM;
    }
    pods->texts[pods->text_count++] = copy;
    *ret_text = copy;
    return 0;
}

static int add(struct reader *r, const char *node, const char *gang)
{
    struct weft_pods *pods = r->pods;
    struct weft_placement placement = {0};
    void *list = pods->items;
    int rc = weft_array_reserve(&list, &pods->cap, pods->count + 1, sizeof(*pods->items),
                                WEFT_PLACEMENTS_MAX);
    pods->items = list;
    rc = rc < 0 ? rc : intern(r, node, &placement.node);
    rc = rc < 0 ? rc : intern(r, gang, &placement.gang);
    if (rc == 0) {
        pods->items[pods->count++] = placement;
    }
    return rc;
}

/* ---- one pod ---- */

static int read_metadata(const struct weft_json *metadata, struct pod *pod, struct weft_error *err)
{
    int rc = weft_json_get_string(metadata, "namespace", &pod->ns, err);
    rc = rc < 0 ? rc : weft_json_get_object(metadata, "labels", &pod->labels, err);
    rc = rc < 0 ? rc : weft_json_get_object(metadata, "annotations", &pod->annotations, err);
    return rc < 0 ? rc : weft_json_get_array(metadata, "ownerReferences", &pod->owners, err);
}

static int read_pod(const struct reader *r, const struct weft_json *object, struct pod *pod,
                    struct weft_error *err)
{
    const char *kind = "Pod";
    const struct weft_json *metadata = NULL;
    const struct weft_json *spec = NULL;
    const struct weft_json *status = NULL;
    int rc = weft_json_get_string(object, "kind", &kind, err);
    if (rc >= 0 && strcmp(kind, "Pod") != 0) {
        return weft_json_error(weft_json_get(object, "kind"), err, "is %.63s, Pod is expected",
                               kind);
    }
    rc = rc < 0 ? rc : weft_json_get_object(object, "metadata", &metadata, err);
    rc = rc < 0 ? rc : weft_json_get_object(object, "spec", &spec, err);
    rc = rc < 0 ? rc : weft_json_get_object(object, "status", &status, err);
    if (rc >= 0 && (metadata == NULL || spec == NULL)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s:%zu: a pod without metadata or spec",
                            r->file, r->item_line);
    }
    rc = rc < 0 ? rc : read_metadata(metadata, pod, err);
    rc = rc < 0 ? rc : weft_json_get_string(spec, "nodeName", &pod->node, err);
    rc = rc < 0 ? rc : weft_json_get_string(status, "phase", &pod->phase, err);
    return rc < 0 ? rc : 0;
}

static bool filled(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* Its pods have nothing to do with each other. */
static bool is_loose(const char *kind)
{
    static const char *const loose[] = {"DaemonSet", "ReplicaSet", "ReplicationController", "Node"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(loose); i++) {
        if (strcmp(loose[i], kind) == 0) {
            return true;
        }
    }
    return false;
}

/* 1 and both names, if an owner controls the pod whose pods belong together; else 0 or -EINVAL. */
static int read_owner(const struct pod *pod, const char **ret_kind, const char **ret_name,
                      struct weft_error *err)
{
    for (size_t i = 0; i < weft_json_count(pod->owners); i++) {
        const struct weft_json *owner = weft_json_at(pod->owners, i);
        const char *kind = NULL;
        const char *name = NULL;
        bool controls = false;
        int rc = weft_json_get_bool(owner, "controller", &controls, err);
        rc = rc < 0 ? rc : weft_json_get_string(owner, "kind", &kind, err);
        rc = rc < 0 ? rc : weft_json_get_string(owner, "name", &name, err);
        if (rc < 0) {
            return rc;
        }
        if (controls && filled(kind) && filled(name) && !is_loose(kind)) {
            *ret_kind = kind;
            *ret_name = name;
            return 1;
        }
    }
    return 0;
}

/* 1 and the gang's name, 0: the pod is in none. Volcano puts the PodGroup's name into an annotation
 * of every pod it schedules, and the job's into a label and an annotation. */
static int gang_of(const struct pod *pod, char **ret_gang, struct weft_error *err)
{
    const char *kind = NULL;
    const char *name = NULL;
    int rc = weft_json_get_string(pod->annotations, "scheduling.k8s.io/group-name", &name, err);
    if (rc >= 0 && !filled(name)) {
        rc = weft_json_get_string(pod->labels, "volcano.sh/job-name", &name, err);
    }
    if (rc >= 0 && !filled(name)) {
        rc = weft_json_get_string(pod->annotations, "volcano.sh/job-name", &name, err);
    }
    if (rc >= 0 && !filled(name)) {
        rc = read_owner(pod, &kind, &name, err);
    }
    if (rc < 0 || !filled(name)) {
        return rc < 0 ? rc : 0;
    }
    const char *ns = filled(pod->ns) ? pod->ns : "default";
    *ret_gang =
        weft_asprintf("%s/%s%s%s", ns, kind != NULL ? kind : "", kind != NULL ? "/" : "", name);
    return *ret_gang != NULL ? 1 : weft_err_nomem(err);
}

static bool ended(const struct pod *pod)
{
    return pod->phase != NULL &&
           (strcmp(pod->phase, "Succeeded") == 0 || strcmp(pod->phase, "Failed") == 0);
}

static int add_pod(struct reader *r, const struct weft_json *object, struct weft_error *err)
{
    struct pod pod = {0};
    weft_autofree char *gang = NULL;
    int rc = read_pod(r, object, &pod, err);
    if (rc < 0 || !filled(pod.node) || ended(&pod)) {
        return rc;
    }
    rc = gang_of(&pod, &gang, err);
    if (rc <= 0) {
        return rc;
    }
    rc = add(r, pod.node, gang);
    return rc < 0 ? too_many(r, rc, err) : 0;
}

int weft_pod_in_gang(const struct weft_json *object)
{
    const struct reader r = {.file = "pods"};
    struct pod pod = {0};
    weft_autofree char *gang = NULL;
    const int rc = read_pod(&r, object, &pod, NULL);
    return rc < 0 || !filled(pod.node) || ended(&pod) ? rc : gang_of(&pod, &gang, NULL);
}

/* ---- the list ---- */

static size_t lines_in(const char *text, size_t len)
{
    size_t lines = 0;
    const char *const end = text + len;
    for (const char *at = text; (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++) {
        lines++;
    }
    return lines;
}

static int read_item(struct reader *r, const char *text, size_t len, struct weft_error *err)
{
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    const int rc = weft_json_parse(text, len, r->file, &root, err);
    return rc < 0 ? rc : add_pod(r, root, err);
}

static int on_item(void *data, const char *text, size_t len, struct weft_error *err)
{
    struct reader *r = data;
    r->seen++;
    r->item_line = r->line - lines_in(text, len); /* r->line: where the pod ends */
    const int rc = read_item(r, text, len, err);
    if (rc != -EINVAL) {
        return rc;
    }
    /* once more below as many empty lines as stand above it, for an error with the file's line;
     * nothing was added */
    const size_t above = r->item_line - 1;
    weft_autofree char *padded = weft_malloc(above + len);
    if (padded == NULL) {
        return weft_err_nomem(err);
    }
    memset(padded, '\n', above);
    memcpy(padded + above, text, len);
    return read_item(r, padded, above + len, err);
}

/* Line by line, so that a pod's line is known when it is given out. */
static int feed_lines(struct reader *r, struct weft_json_split *split, struct weft_str text,
                      struct weft_error *err)
{
    int rc = 0;
    while (rc == 0 && text.len > 0) {
        const char *newline = memchr(text.data, '\n', text.len);
        const size_t len = newline != NULL ? (size_t)(newline - text.data) + 1 : text.len;
        r->line++;
        rc = weft_json_split_feed(split, text.data, len, err);
        text = (struct weft_str){text.data + len, text.len - len};
    }
    return rc < 0 ? rc : weft_json_split_end(split, err);
}

static int read_list(struct reader *r, struct weft_str text, struct weft_error *err)
{
    struct weft_error why = {0};
    const struct weft_json_split_sink sink = {.on_item = on_item, .data = r};
    weft_auto(weft_json_split_free) struct weft_json_split *split =
        weft_json_split_new(WEFT_JSON_SPLIT_LIST, WEFT_PODS_ITEM_MAX, &sink);
    if (split == NULL) {
        return weft_err_nomem(err);
    }
    const int rc = feed_lines(r, split, text, &why);
    if (rc == -ENOMEM) {
        return weft_err_nomem(err);
    }
    if (rc < 0 && why.domain == WEFT_ERR_JSON && rc != -EINVAL) { /* the frame's: no file in it */
        return weft_err_set(err, rc == -EFBIG ? rc : -EINVAL, WEFT_ERR_JSON,
                            "%s:%zu: %s; expected is what `kubectl get pods -A -o json` prints",
                            r->file, r->line, why.message);
    }
    if (rc < 0) {
        return weft_err_set(err, rc, why.domain, "%s", why.message);
    }
    return r->seen > 0 ? 0
                       : weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                      "%s: no Pod in it; expected is what `kubectl get pods "
                                      "-A -o json` prints",
                                      r->file);
}

void weft_pods_done(struct weft_pods *pods)
{
    for (size_t i = 0; i < pods->text_count; i++) {
        weft_free(pods->texts[i]);
    }
    weft_free(pods->texts);
    weft_free(pods->items);
    *pods = (struct weft_pods){0};
}

int weft_pods_parse(const char *text, size_t len, const char *name, struct weft_pods *ret_pods,
                    struct weft_error *err)
{
    weft_auto(weft_pods_done) struct weft_pods pods = {0};
    weft_auto(weft_map_free) struct weft_map *ids = weft_map_new(2 * (size_t)WEFT_PLACEMENTS_MAX);
    struct reader r = {.pods = &pods, .ids = ids, .file = name};
    if (ids == NULL) {
        return weft_err_nomem(err);
    }
    if (len > WEFT_PODS_TEXT_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s: larger than %d MiB", name,
                            (int)(WEFT_PODS_TEXT_MAX >> 20));
    }
    const int rc = read_list(&r, (struct weft_str){text, len}, err);
    if (rc == 0) {
        *ret_pods = pods;
        pods = (struct weft_pods){0};
    }
    return rc;
}
