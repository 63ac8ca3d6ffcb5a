/* SPDX-License-Identifier: Apache-2.0 */
/* weftctl lint: what is wrong or unwise in HyperNodes, whoever wrote them. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/ctl.h"
#include "pkg/apply/folder.h"
#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "pkg/base/mem.h"
#include "pkg/base/str.h"
#include "pkg/hypernode/lint.h"
#include "pkg/hypernode/manifest.h"
#include "pkg/json/json.h"

/* All HyperNodes of a cluster as `kubectl get -o yaml` prints them. */
enum { FILE_MAX_BYTES = 256 << 20, OUTPUT_MAX_BYTES = 64 << 20 };

const char weft_ctl_lint_help[] =
    "usage: weftctl lint FILE… [-o table|json] [--label-prefix PREFIX]\n\n"
    "Says what is wrong or unwise in HyperNodes: two parents, cycles, missing children, tier "
    "order,\n"
    "nodes in two HyperNodes of a tier, uneven depth, selectors that go stale, names that are too\n"
    "long. FILE is YAML or JSON (one object, several documents, or a list), a folder of "
    "manifests,\n"
    "or - for standard input:\n\n"
    "  kubectl get hypernodes -o yaml | weftctl lint -\n\n"
    "The files are taken together as all HyperNodes of one cluster.\n\n"
    "  -o table|json           how to print (table)\n"
    "  --label-prefix PREFIX   prefix of weft's own annotations (weft.dev/)\n"
    "  --                      what follows are files\n\n"
    "Exit status: 0 nothing but notes, 1 warnings, errors, or a file that cannot be read or has "
    "no\n"
    "HyperNode in it (a list of none, as kubectl prints it, is fine), 2 wrong use.\n";

/* Nothing to look at is no clean bill: a `kubectl get` that failed before the pipe, a wrong file.
 */
static int nothing_in(const char *path, struct weft_error *err)
{
    return weft_err_set(err, -ENODATA, WEFT_ERR_CONFIG, "%s: no HyperNode in it",
                        strcmp(path, "-") == 0 ? "standard input" : path);
}

static int read_folder(const char *path, const char *prefix, struct weft_hypernode_set *set,
                       struct weft_error *err)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set found = {0};
    int rc = weft_folder_read(path, prefix, &found, err);
    if (rc == 0 && found.count == 0) {
        return nothing_in(path, err);
    }
    for (size_t i = 0; i < found.count && rc == 0; i++) {
        if (weft_hypernode_set_find(set, found.items[i].name, NULL)) {
            return weft_err_set(err, -EEXIST, WEFT_ERR_CONFIG, "%s: HyperNode %.63s is there twice",
                                path, found.items[i].name);
        }
        rc = weft_hypernode_set_put(set, &found.items[i]) < 0 ? weft_err_nomem(err) : 0;
    }
    return rc;
}

static int read_source(const char *path, const char *prefix, struct weft_hypernode_set *set,
                       struct weft_error *err)
{
    struct stat st;
    if (strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        return read_folder(path, prefix, set, err);
    }
    weft_autofree char *text = NULL;
    size_t len = 0;
    int rc = weft_file_read(path, FILE_MAX_BYTES, &text, &len, err);
    if (rc < 0) {
        return rc;
    }
    const struct weft_manifest_text source = {
        .text = text, .len = len, .name = path, .prefix = prefix};
    struct weft_manifest_counts counts = {0};
    const size_t before = set->count;
    rc = weft_hypernodes_read(&source, set, &counts, err);
    if (rc == 0 && set->count == before && counts.empty_lists == 0) {
        return nothing_in(path, err);
    }
    return rc;
}

static void print_table(const struct weft_lint *lint, size_t count, FILE *out)
{
    size_t by[WEFT_LINT_SEVERITY_COUNT] = {0};
    for (size_t i = 0; i < lint->count; i++) {
        const struct weft_lint_finding *f = &lint->findings[i];
        by[f->severity]++;
        (void)fprintf(out, "%-7s  %-18s  %s: %s\n", weft_lint_severity_name(f->severity), f->kind,
                      f->object, f->text);
    }
    (void)fprintf(out, "%zu HyperNodes: %zu errors, %zu warnings, %zu notes\n", count,
                  by[WEFT_LINT_ERROR], by[WEFT_LINT_WARNING], by[WEFT_LINT_NOTE]);
}

static int print_json(const struct weft_lint *lint, size_t count, FILE *out, struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf buf = {0};
    weft_buf_init(&buf, OUTPUT_MAX_BYTES);
    struct weft_json_writer w;
    weft_json_writer_init(&w, &buf, 2);
    weft_json_open(&w, '{');
    weft_json_kv_int(&w, "hyperNodes", (int64_t)count);
    weft_json_put_key(&w, "findings");
    weft_json_open(&w, '[');
    for (size_t i = 0; i < lint->count; i++) {
        const struct weft_lint_finding *f = &lint->findings[i];
        weft_json_open(&w, '{');
        weft_json_kv_string(&w, "severity", weft_lint_severity_name(f->severity));
        weft_json_kv_string(&w, "kind", f->kind);
        weft_json_kv_string(&w, "object", f->object);
        weft_json_kv_string(&w, "text", f->text);
        weft_json_close(&w, '}');
    }
    weft_json_close(&w, ']');
    weft_json_close(&w, '}');
    if (buf.status < 0) {
        return weft_err_nomem(err);
    }
    (void)fprintf(out, "%s\n", weft_buf_text(&buf));
    return 0;
}

/* Notes alone are no finding. */
static int exit_code(const struct weft_lint *lint)
{
    return lint->count > 0 && lint->findings[0].severity > WEFT_LINT_NOTE ? WEFT_CTL_FAILED
                                                                          : WEFT_CTL_OK;
}

static int lint_files(char **files, size_t count, const char *prefix, bool json, FILE *out,
                      struct weft_error *err)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    for (size_t i = 0; i < count; i++) {
        const int rc = read_source(files[i], prefix, &set, err);
        if (rc < 0) {
            return rc;
        }
    }
    weft_auto(weft_lint_done) struct weft_lint lint = {0};
    int rc = weft_lint_run(&set, &lint, err);
    if (rc == 0 && json) {
        rc = print_json(&lint, set.count, out, err);
    } else if (rc == 0) {
        print_table(&lint, set.count, out);
    }
    return rc < 0 ? rc : exit_code(&lint);
}

/* Sorts argv into files and options; behind "--" all are files. */
static int split_arguments(int argc, char **argv, char **ret_files, char **ret_options)
{
    int files = 0;
    int options = 1;
    ret_options[0] = argv[0];
    bool options_end = false;
    for (int i = 1; i < argc; i++) {
        if (!options_end && strcmp(argv[i], "--") == 0) {
            options_end = true;
            ret_options[options++] = argv[i];
            continue;
        }
        if (options_end || argv[i][0] != '-' || argv[i][1] == '\0') {
            ret_files[files++] = argv[i];
            continue;
        }
        ret_options[options++] = argv[i];
        if (strchr(argv[i], '=') == NULL && i + 1 < argc) {
            ret_options[options++] = argv[++i];
        }
    }
    return files;
}

int weft_ctl_lint_to(int argc, char **argv, FILE *out, FILE *err)
{
    struct weft_error error = {0};
    weft_autofree char **files = (char **)weft_calloc((size_t)argc + 1, sizeof(char *));
    weft_autofree char **rest = (char **)weft_calloc((size_t)argc + 1, sizeof(char *));
    if (files == NULL || rest == NULL) {
        return weft_ctl_fail(err, "lint", "out of memory");
    }
    const int count = split_arguments(argc, argv, files, rest);
    const char *output = "table";
    const char *prefix = "weft.dev/";
    struct weft_ctl_option options[] = {
        {"-o", &output, 1, 0}, {"--label-prefix", &prefix, 1, 0}, {NULL, NULL, 0, 0}};
    if (weft_ctl_options(argc - count, rest, options, &error) < 0) {
        return weft_ctl_wrong_use(err, "lint", error.message);
    }
    if (count == 0) {
        return weft_ctl_wrong_use(err, "lint", "name a file, a folder, or - for standard input");
    }
    if (!weft_label_prefix_valid(prefix)) {
        return weft_ctl_wrong_use(err, "lint",
                                  "--label-prefix must be a DNS subdomain and a slash");
    }
    const bool json = strcmp(output, "json") == 0;
    if (!json && strcmp(output, "table") != 0) {
        return weft_ctl_wrong_use(err, "lint", "-o is table or json");
    }
    const int rc = lint_files(files, (size_t)count, prefix, json, out, &error);
    return rc < 0 ? weft_ctl_fail(err, "lint", error.message) : rc;
}

int weft_ctl_lint(int argc, char **argv)
{
    return weft_ctl_lint_to(argc, argv, stdout, stderr);
}
