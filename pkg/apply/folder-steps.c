/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as numbered files: one a step, a list of them for people, and a script that runs them. */
#include <errno.h>
#include <string.h>

#include "pkg/apply/folder-internal.h"
#include "pkg/base/str.h"
#include "pkg/hypernode/manifest.h"
#include "pkg/hypernode/plan.h"

/* What the steps of one plan share. */
struct numbering {
    const struct weft_plan *plan;
    const char *prefix;
    int width; /* of the numbers, so that names sort */
};

static struct numbering number_steps(const struct weft_plan *plan, const char *prefix)
{
    struct numbering n = {.plan = plan, .prefix = prefix, .width = 3};
    for (size_t limit = 1000; limit <= plan->step_count; limit *= 10) {
        n.width++;
    }
    return n;
}

static char *file_name(const struct numbering *n, size_t step)
{
    const struct weft_step *s = &n->plan->steps[step];
    return weft_asprintf("%0*zu-%s-%s.yaml", n->width, step + 1, weft_step_kind_name(s->kind),
                         s->object.name);
}

/* A delete's manifest names the object and nothing else: applied by mistake it changes nothing. */
static void write_deleted(const struct weft_hypernode *hn, struct weft_buf *buf)
{
    (void)weft_buf_printf(buf,
                          "apiVersion: \"" WEFT_HYPERNODE_API_VERSION "\"\n"
                          "kind: \"HyperNode\"\n"
                          "metadata:\n"
                          "  name: \"%s\"\n",
                          hn->name);
}

static int put_step(struct weft_folder_out *out, const struct numbering *n, size_t step,
                    struct weft_error *err)
{
    const struct weft_step *s = &n->plan->steps[step];
    weft_auto(weft_buf_done) struct weft_buf buf = {0};
    weft_buf_init(&buf, WEFT_FOLDER_FILE_MAX);
    static const char *const how[WEFT_STEP_COUNT] = {
        [WEFT_STEP_RELEASE] = "kubectl replace -f",
        [WEFT_STEP_DELETE] = "kubectl delete -f",
        [WEFT_STEP_CREATE] = "kubectl create -f",
        [WEFT_STEP_CLAIM] = "kubectl replace -f",
    };
    weft_autofree char *file = file_name(n, step);
    if (file == NULL) {
        return weft_err_nomem(err);
    }
    (void)weft_buf_printf(&buf, WEFT_FOLDER_STEP_MARK " %zu of %zu: %s %s\n", step + 1,
                          n->plan->step_count, how[s->kind], file);
    if (s->kind == WEFT_STEP_DELETE) {
        write_deleted(&s->object, &buf);
    } else if (weft_hypernode_write_yaml(&s->object, n->prefix, &buf) == -ENOMEM) {
        return weft_err_nomem(err);
    }
    return weft_folder_put(out, file, &buf, 0644, err);
}

static int put_list(struct weft_folder_out *out, const struct numbering *n, struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf buf = {0};
    weft_buf_init(&buf, WEFT_FOLDER_FILE_MAX);
    (void)weft_buf_printf(
        &buf,
        WEFT_FOLDER_STEP_MARK
        "s from the old HyperNodes to the new: %zu\n"
        "#\n"
        "# Take them in this order, each only after the one before it has succeeded; run.sh does.\n"
        "# Between any two of them Volcano's scheduler goes on: no HyperNode ever has two "
        "parents,\n"
        "# and none is deleted while another lists it. If one fails, run.sh may be run again from\n"
        "# the start. With GitOps, make each step a commit and let it sync before the next.\n",
        n->plan->step_count);
    for (size_t i = 0; i < n->plan->step_count; i++) {
        const struct weft_step *s = &n->plan->steps[i];
        (void)weft_buf_printf(&buf, "%0*zu %-7s %s\n", n->width, i + 1,
                              weft_step_kind_name(s->kind), s->object.name);
    }
    return weft_folder_put(out, WEFT_FOLDER_STEPS_FILE, &buf, 0644, err);
}

static const char script_head[] = WEFT_FOLDER_SCRIPT_MARK
    "s, in order; stops at the first that fails and may then be run again.\n"
    "# KUBECTL=\"kubectl --context X\" runs another kubectl.\n"
    "set -eu\n"
    "cd \"$(dirname \"$0\")\"\n"
    "kubectl=${KUBECTL:-kubectl}\n"
    "update() { $kubectl replace -f \"$1\"; }\n"
    "remove() { $kubectl delete --ignore-not-found -f \"$1\"; }\n"
    "create() {\n"
    "    if $kubectl get -f \"$1\" >/dev/null 2>&1; then update \"$1\"; else $kubectl create -f "
    "\"$1\"; fi\n"
    "}\n";

static int put_script(struct weft_folder_out *out, const struct numbering *n,
                      struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf buf = {0};
    weft_buf_init(&buf, WEFT_FOLDER_FILE_MAX);
    (void)weft_buf_puts(&buf, script_head);
    static const char *const verbs[WEFT_STEP_COUNT] = {
        [WEFT_STEP_RELEASE] = "update",
        [WEFT_STEP_DELETE] = "remove",
        [WEFT_STEP_CREATE] = "create",
        [WEFT_STEP_CLAIM] = "update",
    };
    for (size_t i = 0; i < n->plan->step_count; i++) {
        weft_autofree char *file = file_name(n, i);
        if (file == NULL) {
            return weft_err_nomem(err);
        }
        (void)weft_buf_printf(&buf, "%s %s\n", verbs[n->plan->steps[i].kind], file);
    }
    return weft_folder_put(out, WEFT_FOLDER_SCRIPT_FILE, &buf, 0755, err);
}

static int check_all_free(const char *dir, const struct numbering *n, struct weft_error *err)
{
    /* names go into a script: nothing but what Kubernetes takes as a name may */
    for (size_t i = 0; i < n->plan->step_count; i++) {
        const char *name = n->plan->steps[i].object.name;
        if (!weft_dns_subdomain_valid(name)) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "HyperNode name \"%.63s\" is not valid", name);
        }
    }
    int rc = weft_folder_check_free(dir, WEFT_FOLDER_STEPS_FILE, WEFT_FOLDER_STEP_MARK, err);
    rc = rc == 0
             ? weft_folder_check_free(dir, WEFT_FOLDER_SCRIPT_FILE, WEFT_FOLDER_SCRIPT_MARK, err)
             : rc;
    for (size_t i = 0; i < n->plan->step_count && rc == 0; i++) {
        weft_autofree char *file = file_name(n, i);
        if (file == NULL) {
            return weft_err_nomem(err);
        }
        rc = weft_folder_check_free(dir, file, WEFT_FOLDER_STEP_MARK, err);
    }
    return rc;
}

int weft_folder_write_steps(const char *dir, const struct weft_plan *plan, const char *prefix,
                            struct weft_folder_counts *ret_counts, struct weft_error *err)
{
    struct weft_folder_out out = {.dir = dir};
    const struct numbering n = number_steps(plan, prefix);
    int rc = weft_folder_make(dir, err);
    rc = rc == 0 ? check_all_free(dir, &n, err) : rc;
    rc = rc == 0 ? weft_folder_sweep(&out, WEFT_FOLDER_SCRIPT_MARK, NULL, NULL, err) : rc;
    rc = rc == 0 ? weft_folder_sweep(&out, WEFT_FOLDER_STEP_MARK, NULL, NULL, err) : rc;
    for (size_t i = 0; i < plan->step_count && rc == 0; i++) {
        rc = put_step(&out, &n, i, err);
    }
    /* the script comes last: while it is there, so are all its steps */
    rc = rc == 0 ? put_list(&out, &n, err) : rc;
    rc = rc == 0 ? put_script(&out, &n, err) : rc;
    if (ret_counts != NULL) {
        *ret_counts = out.counts;
    }
    return rc;
}
