/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of each kind of source. Must not look at files: a path may point to what is not there
 * yet. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/clock.h"
#include "pkg/base/str.h"
#include "pkg/json/json.h"
#include "pkg/source/config-internal.h"
#include "pkg/source/source.h"

enum {
    TIERS_MAX = 16,
    PIN_LEN = 8 + 44, /* "sha256//" and 32 bytes in base64 */
    INTERVAL_MIN_S = 1,
    INTERVAL_MAX_S = 24 * 3600,
    PAGE_ROWS_MAX = 100000,
};

/* files are looked at that often where no watch tells of a change: a stat each */
#define FILE_INTERVAL_NS (10 * WEFT_NS_PER_S)
/* a scan by a command or of a UFM server costs the fabric something */
#define SCAN_INTERVAL_NS (300 * WEFT_NS_PER_S)
#define SCAN_TIMEOUT_NS (60 * WEFT_NS_PER_S)
#define JITTER_PERCENT 10U
#define PAGE_ROWS 1000U

void weft_config_source_done(struct weft_config_source *source)
{
    weft_label_levels_done(&source->levels);
    weft_free(source->name);
    weft_free(source->text);
    weft_names_done(&source->files);
    weft_free(source->folder);
    for (size_t i = 0; i < source->command_count; i++) {
        weft_names_done(&source->commands[i]);
    }
    weft_free(source->commands);
    weft_free(source->ufm.url);
    weft_free(source->ufm.credentials);
    weft_free(source->ufm.ca_file);
    weft_free(source->ufm.pin);
    weft_free(source->topology);
    weft_names_done(&source->tiers);
    weft_names_done(&source->exclude_hcas);
    weft_names_done(&source->exclude_switches);
    weft_free(source->node_map);
    weft_free(source->inventory);
    weft_free(source->partitions);
    weft_names_done(&source->compute);
}

/* ---- parts that several kinds have ---- */

static int read_tiers(const struct weft_json *object, struct weft_config_source *source,
                      struct weft_error *err)
{
    const int rc = weft_config_names(object, "tiers", TIERS_MAX, &source->tiers, err);
    return rc <= 0 ? rc
                   : weft_config_check_tiers(weft_json_get(object, "tiers"), &source->tiers, err);
}

static int read_interval(const struct weft_json *object, int64_t fallback_ns,
                         struct weft_config_source *source, struct weft_error *err)
{
    source->interval_ns = fallback_ns;
    source->jitter_percent = JITTER_PERCENT;
    const int rc = weft_config_duration(object, "interval", &source->interval_ns, err);
    if (rc < 0) {
        return rc;
    }
    if (source->interval_ns < INTERVAL_MIN_S * WEFT_NS_PER_S ||
        source->interval_ns > INTERVAL_MAX_S * WEFT_NS_PER_S) {
        return weft_json_error(weft_json_get(object, "interval"), err, "is not between 1s and 24h");
    }
    return weft_config_percent(object, "jitter", &source->jitter_percent, err);
}

static int read_timeout(const struct weft_json *object, struct weft_config_source *source,
                        struct weft_error *err)
{
    source->timeout_ns = SCAN_TIMEOUT_NS;
    const int rc = weft_config_duration(object, "timeout", &source->timeout_ns, err);
    if (rc > 0 && (source->timeout_ns < WEFT_NS_PER_S ||
                   source->timeout_ns > INTERVAL_MAX_S * WEFT_NS_PER_S)) {
        return weft_json_error(weft_json_get(object, "timeout"), err, "is not between 1s and 24h");
    }
    return rc;
}

static int read_mapping(const struct weft_json *object, struct weft_config_source *source,
                        struct weft_error *err)
{
    const int rc = weft_config_text(object, "nodeMap", &source->node_map, err);
    return rc < 0 ? rc : weft_config_text(object, "inventory", &source->inventory, err);
}

/* What of a switch fabric is no evidence. */
static int read_filters(const struct weft_json *object, struct weft_config_source *source,
                        struct weft_error *err)
{
    int rc =
        weft_config_names(object, "excludeHCAs", WEFT_CONFIG_GLOBS_MAX, &source->exclude_hcas, err);
    rc = rc < 0 ? rc : weft_json_get_bool(object, "keepSlowHCAs", &source->keep_slow_hcas, err);
    return rc < 0 ? rc
                  : weft_config_names(object, "excludeSwitches", WEFT_CONFIG_GLOBS_MAX,
                                      &source->exclude_switches, err);
}

/* Which partitions (P_Keys) are the compute network's. */
static int read_partitions(const struct weft_json *object, struct weft_config_source *source,
                           struct weft_error *err)
{
    int rc = weft_config_text(object, "partitions", &source->partitions, err);
    rc = rc < 0 ? rc
                : weft_config_names(object, "computePartitions", WEFT_CONFIG_GLOBS_MAX,
                                    &source->compute, err);
    if (rc >= 0 && (source->partitions != NULL) != (source->compute.count > 0)) {
        return weft_json_error(object, err,
                               "partitions, the path of a partitions.conf, and computePartitions, "
                               "names or P_Keys of it, go together");
    }
    return rc < 0 ? rc : 0;
}

/* A path as "key". 1, 0 or an error. */
static int read_file(const struct weft_json *object, const char *key,
                     struct weft_config_source *source, struct weft_error *err)
{
    weft_autofree char *path = NULL;
    const int rc = weft_config_text(object, key, &path, err);
    if (rc <= 0) {
        return rc;
    }
    const int added = weft_names_add(&source->files, path, err);
    return added < 0 ? added : 1;
}

/* ---- infiniband ---- */

static int read_commands(const struct weft_json *object, struct weft_config_source *source,
                         struct weft_error *err)
{
    const struct weft_json *list = NULL;
    const bool one = weft_json_get(object, "command") != NULL;
    int rc = weft_json_get_array(object, one ? "command" : "commands", &list, err);
    if (rc <= 0) {
        return rc;
    }
    const size_t count = one ? 1 : weft_json_count(list);
    if (count == 0 || count > WEFT_CONFIG_COMMANDS_MAX) {
        return weft_json_error(list, err, "expected 1 to %d commands, each a list of words",
                               (int)WEFT_CONFIG_COMMANDS_MAX);
    }
    source->commands = weft_calloc(count, sizeof(*source->commands));
    if (source->commands == NULL) {
        return weft_err_nomem(err);
    }
    source->command_count = count;
    for (size_t i = 0; rc >= 0 && i < count; i++) {
        const struct weft_json *words = one ? list : weft_json_at(list, i);
        rc = weft_config_words(words, WEFT_CONFIG_ARGS_MAX, &source->commands[i], err);
    }
    return rc < 0 ? rc : 1;
}

static int read_infiniband(const struct weft_json *object, struct weft_config_source *source,
                           struct weft_error *err)
{
    static const char *const keys[] = {
        "dump",    "dumps",       "command",           "commands",
        "tiers",   "excludeHCAs", "keepSlowHCAs",      "excludeSwitches",
        "nodeMap", "inventory",   "interval",          "jitter",
        "timeout", "partitions",  "computePartitions", NULL};
    static const char *const inputs[] = {"dump", "dumps", "command", "commands"};
    int rc = weft_json_only(object, keys, err);
    if (rc < 0) {
        return rc;
    }
    size_t given = 0;
    for (size_t i = 0; i < WEFT_ARRAY_LEN(inputs); i++) {
        given += weft_json_get(object, inputs[i]) != NULL;
    }
    if (given != 1) {
        return weft_json_error(object, err,
                               "expected one of dump, dumps (files with the output of "
                               "ibnetdiscover), command and commands");
    }
    rc = read_file(object, "dump", source, err);
    rc = rc < 0 ? rc
                : weft_config_names(object, "dumps", WEFT_CONFIG_FILES_MAX, &source->files, err);
    rc = rc < 0 ? rc : read_commands(object, source, err);
    if (rc < 0) {
        return rc;
    }
    if (source->command_count == 0 && weft_json_get(object, "timeout") != NULL) {
        return weft_json_error(weft_json_get(object, "timeout"), err, "is for commands only");
    }
    rc = read_interval(object, source->command_count > 0 ? SCAN_INTERVAL_NS : FILE_INTERVAL_NS,
                       source, err);
    rc = rc < 0 ? rc : read_timeout(object, source, err);
    rc = rc < 0 ? rc : read_partitions(object, source, err);
    return rc < 0 ? rc : read_filters(object, source, err);
}

/* ---- ufm ---- */

static bool url_is_usable(const char *url)
{
    struct weft_str rest = weft_str(url);
    if (!weft_str_starts(rest, "https://")) {
        return false;
    }
    const char *host = url + strlen("https://");
    return host[0] != '\0' && host[strcspn(host, "/?#@ \t\r\n\\")] == '\0';
}

static bool pin_is_usable(const char *pin)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    return strncmp(pin, "sha256//", 8) == 0 && strlen(pin) == PIN_LEN &&
           strspn(pin + 8, digits) == PIN_LEN - 8;
}

static int check_ufm(const struct weft_json *object, const struct weft_config_ufm *ufm,
                     struct weft_error *err)
{
    if (ufm->url == NULL) {
        return weft_json_error(object, err, "url, as https://ufm.example.com, is missing");
    }
    if (!url_is_usable(ufm->url)) {
        return weft_json_error(weft_json_get(object, "url"), err,
                               "expected https://HOST or https://HOST:PORT, without user and path");
    }
    if (ufm->credentials == NULL) {
        return weft_json_error(object, err, "credentials, a folder with the files %s, is missing",
                               ufm->auth == WEFT_UFM_TOKEN ? "token" : "username and password");
    }
    if (ufm->pin != NULL && !pin_is_usable(ufm->pin)) {
        return weft_json_error(weft_json_get(object, "pin"), err,
                               "expected sha256//BASE64 of the server's public key");
    }
    return 0;
}

static int read_ufm(const struct weft_json *object, struct weft_config_source *source,
                    struct weft_error *err)
{
    static const char *const keys[] = {"url",
                                       "auth",
                                       "credentials",
                                       "caFile",
                                       "pin",
                                       "pageRows",
                                       "tiers",
                                       "nodeMap",
                                       "inventory",
                                       "excludeHCAs",
                                       "keepSlowHCAs",
                                       "excludeSwitches",
                                       "interval",
                                       "jitter",
                                       "timeout",
                                       "partitions",
                                       "computePartitions",
                                       NULL};
    static const char *const auths[] = {
        [WEFT_UFM_BASIC] = "basic", [WEFT_UFM_TOKEN] = "token", [WEFT_UFM_SESSION] = "session"};
    struct weft_config_ufm *ufm = &source->ufm;
    int auth = WEFT_UFM_BASIC;
    ufm->page_rows = PAGE_ROWS;
    int rc = weft_json_only(object, keys, err);
    rc = rc < 0 ? rc : weft_config_text(object, "url", &ufm->url, err);
    rc = rc < 0 ? rc : weft_config_word(object, "auth", auths, WEFT_ARRAY_LEN(auths), &auth, err);
    ufm->auth = (enum weft_ufm_auth)auth;
    rc = rc < 0 ? rc : weft_config_text(object, "credentials", &ufm->credentials, err);
    rc = rc < 0 ? rc : weft_config_text(object, "caFile", &ufm->ca_file, err);
    rc = rc < 0 ? rc : weft_config_text(object, "pin", &ufm->pin, err);
    rc = rc < 0 ? rc
                : weft_config_unsigned(object, "pageRows", 1, PAGE_ROWS_MAX, &ufm->page_rows, err);
    rc = rc < 0 ? rc : check_ufm(object, ufm, err);
    rc = rc < 0 ? rc : read_interval(object, SCAN_INTERVAL_NS, source, err);
    rc = rc < 0 ? rc : read_timeout(object, source, err);
    rc = rc < 0 ? rc : read_partitions(object, source, err);
    return rc < 0 ? rc : read_filters(object, source, err);
}

/* ---- files ---- */

static int read_lldp(const struct weft_json *object, struct weft_config_source *source,
                     struct weft_error *err)
{
    static const char *const keys[] = {"files",   "folder",          "tiers",
                                       "nodeMap", "inventory",       "interval",
                                       "jitter",  "excludeSwitches", NULL};
    int rc = weft_json_only(object, keys, err);
    rc = rc < 0 ? rc
                : weft_config_names(object, "files", WEFT_CONFIG_FILES_MAX, &source->files, err);
    rc = rc < 0 ? rc : weft_config_text(object, "folder", &source->folder, err);
    if (rc >= 0 && (source->files.count > 0) == (source->folder != NULL)) {
        return weft_json_error(object, err, "expected either files or folder");
    }
    rc = rc < 0 ? rc : read_interval(object, FILE_INTERVAL_NS, source, err);
    return rc < 0 ? rc : read_filters(object, source, err);
}

/* Kinds that read one file and have nothing else to say. */
static int read_one_file(const struct weft_json *object, const char *const *keys,
                         struct weft_config_source *source, struct weft_error *err)
{
    int rc = weft_json_only(object, keys, err);
    rc = rc < 0 ? rc : read_file(object, keys[0], source, err);
    if (rc == 0) {
        return weft_json_error(object, err, "%s, the path of a file, is missing", keys[0]);
    }
    return rc < 0 ? rc : read_interval(object, FILE_INTERVAL_NS, source, err);
}

static int read_slurm(const struct weft_json *object, struct weft_config_source *source,
                      struct weft_error *err)
{
    static const char *const keys[] = {"conf",    "yaml",     "topology", "tiers",
                                       "nodeMap", "interval", "jitter",   NULL};
    int rc = weft_json_only(object, keys, err);
    rc = rc < 0 ? rc : read_file(object, "conf", source, err);
    rc = rc < 0 ? rc : read_file(object, "yaml", source, err);
    if (rc >= 0 && source->files.count != 1) {
        return weft_json_error(object, err,
                               "expected either conf, the path of a topology.conf, or yaml, that "
                               "of a topology.yaml");
    }
    rc = rc < 0 ? rc : weft_config_text(object, "topology", &source->topology, err);
    if (rc > 0 && weft_json_get(object, "yaml") == NULL) {
        return weft_json_error(weft_json_get(object, "topology"), err,
                               "only a topology.yaml has several topologies");
    }
    return rc < 0 ? rc : read_interval(object, FILE_INTERVAL_NS, source, err);
}

/* One list of hosts, or a folder with an answer a host. */
static int read_oci(const struct weft_json *object, struct weft_config_source *source,
                    struct weft_error *err)
{
    static const char *const keys[] = {"file",     "folder", "tiers", "nodeMap",
                                       "interval", "jitter", NULL};
    int rc = weft_json_only(object, keys, err);
    rc = rc < 0 ? rc : read_file(object, "file", source, err);
    rc = rc < 0 ? rc : weft_config_text(object, "folder", &source->folder, err);
    if (rc >= 0 && (source->files.count > 0) == (source->folder != NULL)) {
        return weft_json_error(object, err, "expected either file or folder");
    }
    return rc < 0 ? rc : read_interval(object, FILE_INTERVAL_NS, source, err);
}

static int read_kind(const struct weft_json *object, const struct weft_config *config,
                     struct weft_config_source *source, struct weft_error *err)
{
    static const char *const ptm[] = {"topology",        "tiers",    "nodeMap", "inventory",
                                      "excludeSwitches", "interval", "jitter",  NULL};
    static const char *const answers[] = {"file", "tiers", "nodeMap", "interval", "jitter", NULL};
    static const char *const plan[] = {"path", "interval", "jitter", NULL};
    switch (source->kind) {
    case WEFT_SOURCE_LABELS:
        return weft_config_read_labels(object, config, source, err);
    case WEFT_SOURCE_INFINIBAND:
        return read_infiniband(object, source, err);
    case WEFT_SOURCE_UFM:
        return read_ufm(object, source, err);
    case WEFT_SOURCE_LLDP:
        return read_lldp(object, source, err);
    case WEFT_SOURCE_SLURM:
        return read_slurm(object, source, err);
    case WEFT_SOURCE_PTM:
        return read_one_file(object, ptm, source, err);
    case WEFT_SOURCE_AWS_API:
        return read_one_file(object, answers, source, err);
    case WEFT_SOURCE_OCI_IMDS:
        return read_oci(object, source, err);
    case WEFT_SOURCE_FILE:
    case WEFT_SOURCE_COUNT:
        break;
    }
    return read_one_file(object, plan, source, err);
}

/* ---- a source ---- */

static const char *const kind_names[] = {
    [WEFT_SOURCE_LABELS] = "labels",
    [WEFT_SOURCE_INFINIBAND] = "infiniband",
    [WEFT_SOURCE_UFM] = "ufm",
    [WEFT_SOURCE_LLDP] = "lldp",
    [WEFT_SOURCE_SLURM] = "slurm",
    [WEFT_SOURCE_PTM] = "ptm",
    [WEFT_SOURCE_AWS_API] = "awsApiFile",
    [WEFT_SOURCE_OCI_IMDS] = "ociImds",
    [WEFT_SOURCE_FILE] = "file",
    [WEFT_SOURCE_COUNT] = NULL,
};

const char *weft_source_kind_name(enum weft_source_kind kind)
{
    return kind < WEFT_SOURCE_COUNT ? kind_names[kind] : "";
}

const char *const *weft_source_default_tiers(enum weft_source_kind kind)
{
    static const char *const fabric[] = {"leaf", "spine", "core", NULL};
    static const char *const none[] = {NULL};
    switch (kind) {
    case WEFT_SOURCE_INFINIBAND:
    case WEFT_SOURCE_UFM:
    case WEFT_SOURCE_LLDP:
    case WEFT_SOURCE_SLURM:
    case WEFT_SOURCE_PTM:
    case WEFT_SOURCE_AWS_API:
    case WEFT_SOURCE_OCI_IMDS:
        return fabric;
    case WEFT_SOURCE_LABELS:
    case WEFT_SOURCE_FILE:
    case WEFT_SOURCE_COUNT:
        break;
    }
    return none;
}

int weft_config_read_source(const struct weft_json *item, const struct weft_config *config,
                            struct weft_config_source *source, struct weft_error *err)
{
    int rc = weft_json_only(item, kind_names, err);
    if (rc < 0) {
        return rc;
    }
    const struct weft_json *object = weft_json_at(item, 0);
    if (weft_json_count(item) != 1 || weft_json_type(object) != WEFT_JSON_OBJECT) {
        return weft_json_error(item, err,
                               "a source is exactly one of labels, infiniband, ufm, lldp, slurm, "
                               "ptm, awsApiFile, ociImds and file, with its fields");
    }
    for (int k = 0; k < WEFT_SOURCE_COUNT; k++) {
        if (strcmp(kind_names[k], weft_json_key(object)) == 0) {
            source->kind = (enum weft_source_kind)k;
        }
    }
    rc = read_kind(object, config, source, err);
    rc = rc < 0 ? rc : read_tiers(object, source, err);
    return rc < 0 ? rc : read_mapping(object, source, err);
}
