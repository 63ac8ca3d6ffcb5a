/* SPDX-License-Identifier: Apache-2.0 */
/* The helper program: what it is told, and when it runs. */
#include "pkg/kube/exec.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pkg/base/base64.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/str.h"
#include "pkg/json/json.h"
#include "pkg/kube/config-internal.h"
#include "pkg/loop/loop.h"

enum { EXEC_MAGIC = 0x4b754578 /* "KuEx" */, ENVIRONMENT_MAX = 4096, INFO_MAX = 512 << 10 };

static const int64_t run_timeout_ns = 30 * WEFT_NS_PER_S;
static const int64_t least_pause_ns = 10 * WEFT_NS_PER_S;

struct weft_kube_exec {
    uint32_t magic;
    char *words[WEFT_KUBE_EXEC_WORDS_MAX + 2]; /* argv, NULL-terminated */
    size_t word_count;
    char *variables[WEFT_KUBE_EXEC_WORDS_MAX]; /* "K=V" */
    size_t variable_count;
    char *api_version;
    bool cluster_info;

    struct weft_kube_config *config; /* whose credential it is */
    struct weft_child *child;
    int64_t started_at; /* monotonic; 0 = never */
    int64_t due_at;     /* monotonic; 0 = not by time */
    bool finished;      /* of the run that is waited for */
    int status;
    struct weft_error error;
};

/* ---- reading user.exec ---- */

void weft_kube_exec_free(struct weft_kube_exec *exec)
{
    if (exec == NULL) {
        return;
    }
    weft_child_free(exec->child);
    for (size_t i = 0; i < exec->word_count; i++) {
        weft_free(exec->words[i]);
    }
    for (size_t i = 0; i < exec->variable_count; i++) {
        weft_free(exec->variables[i]);
    }
    weft_free(exec->api_version);
    exec->magic = 0;
    weft_free(exec);
}
WEFT_DEFINE_AUTO(struct weft_kube_exec, weft_kube_exec_free)

static int parse_command(struct weft_kube_exec *exec, const struct weft_json *node, const char *dir,
                         struct weft_error *err)
{
    const char *command = NULL;
    const int rc = weft_json_get_string(node, "command", &command, err);
    if (rc <= 0 || command[0] == '\0') {
        return rc < 0 ? rc : weft_json_error(node, err, "command is missing");
    }
    const bool relative = command[0] != '/' && strchr(command, '/') != NULL && dir != NULL;
    exec->words[0] = relative ? weft_asprintf("%s/%s", dir, command) : weft_strdup(command);
    exec->word_count = 1;
    return exec->words[0] != NULL ? 0 : weft_err_nomem(err);
}

static int parse_arguments(struct weft_kube_exec *exec, const struct weft_json *node,
                           struct weft_error *err)
{
    const struct weft_json *list = NULL;
    const int rc = weft_json_get_array(node, "args", &list, err);
    if (rc <= 0) {
        return rc;
    }
    for (size_t i = 0; i < weft_json_count(list); i++) {
        const char *word = weft_json_string(weft_json_at(list, i));
        if (word == NULL || exec->word_count > WEFT_KUBE_EXEC_WORDS_MAX) {
            return weft_json_error(list, err, "at most %d strings", WEFT_KUBE_EXEC_WORDS_MAX);
        }
        exec->words[exec->word_count] = weft_strdup(word);
        if (exec->words[exec->word_count] == NULL) {
            return weft_err_nomem(err);
        }
        exec->word_count++;
    }
    return 0;
}

static int parse_variables(struct weft_kube_exec *exec, const struct weft_json *node,
                           struct weft_error *err)
{
    const struct weft_json *list = NULL;
    const int rc = weft_json_get_array(node, "env", &list, err);
    if (rc <= 0) {
        return rc;
    }
    for (size_t i = 0; i < weft_json_count(list); i++) {
        const struct weft_json *entry = weft_json_at(list, i);
        const char *name = weft_json_string(weft_json_get(entry, "name"));
        const char *value = weft_json_string(weft_json_get(entry, "value"));
        if (name == NULL || value == NULL || exec->variable_count == WEFT_KUBE_EXEC_WORDS_MAX) {
            return weft_json_error(list, err, "at most %d pairs of name and value",
                                   WEFT_KUBE_EXEC_WORDS_MAX);
        }
        char *line = weft_asprintf("%s=%s", name, value);
        if (line == NULL) {
            return weft_err_nomem(err);
        }
        exec->variables[exec->variable_count++] = line;
    }
    return 0;
}

static int parse_mode(struct weft_kube_exec *exec, const struct weft_json *node,
                      struct weft_error *err)
{
    const char *version = NULL;
    const char *mode = NULL;
    int rc = weft_json_get_string(node, "apiVersion", &version, err);
    rc = rc < 0 ? rc : weft_json_get_string(node, "interactiveMode", &mode, err);
    rc = rc < 0 ? rc : weft_json_get_bool(node, "provideClusterInfo", &exec->cluster_info, err);
    if (rc < 0) {
        return rc;
    }
    if (version == NULL || (strcmp(version, "client.authentication.k8s.io/v1") != 0 &&
                            strcmp(version, "client.authentication.k8s.io/v1beta1") != 0)) {
        return weft_json_error(node, err,
                               "apiVersion must be client.authentication.k8s.io/v1 or "
                               "v1beta1");
    }
    if (mode != NULL && strcmp(mode, "Always") == 0) {
        (void)weft_json_error(node, err, "a helper that must ask a person cannot be used");
        if (err != NULL) {
            err->code = -ENOTSUP;
        }
        return -ENOTSUP;
    }
    exec->api_version = weft_strdup(version);
    return exec->api_version != NULL ? 0 : weft_err_nomem(err);
}

int weft_kube_exec_parse(const struct weft_json *node, const char *dir,
                         struct weft_kube_exec **ret_exec, struct weft_error *err)
{
    weft_auto(weft_kube_exec_free) struct weft_kube_exec *exec = weft_calloc(1, sizeof(*exec));
    if (exec == NULL) {
        return weft_err_nomem(err);
    }
    exec->magic = EXEC_MAGIC;
    int rc = parse_mode(exec, node, err);
    rc = rc < 0 ? rc : parse_command(exec, node, dir, err);
    rc = rc < 0 ? rc : parse_arguments(exec, node, err);
    rc = rc < 0 ? rc : parse_variables(exec, node, err);
    if (rc == 0) {
        *ret_exec = weft_steal(&exec);
    }
    return rc;
}

/* ---- what it prints ---- */

/* RFC 3339 with Z, as Kubernetes writes it; fractions are cut. 0 if it is not that. */
static int64_t parse_time(const char *text)
{
    struct tm tm = {0};
    const char *rest = text != NULL ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    return rest != NULL ? (int64_t)timegm(&tm) * WEFT_NS_PER_S : 0;
}

static int take_certificate(struct weft_kube_config *config, const char *cert, const char *key,
                            struct weft_error *err)
{
    char *copy = weft_strdup(cert);
    if (copy == NULL || weft_secret_set(&config->key, key, strlen(key)) < 0) {
        weft_free(copy);
        return weft_err_nomem(err);
    }
    weft_free(config->cert.bytes);
    config->cert.bytes = copy;
    config->cert.len = strlen(copy);
    return 0;
}

static int take_status(struct weft_kube_config *config, const struct weft_json *status,
                       struct weft_error *err)
{
    const char *token = weft_json_string(weft_json_get(status, "token"));
    const char *cert = weft_json_string(weft_json_get(status, "clientCertificateData"));
    const char *key = weft_json_string(weft_json_get(status, "clientKeyData"));
    if ((token == NULL && cert == NULL) || (cert == NULL) != (key == NULL)) {
        return weft_err_set(err, -EBADMSG, WEFT_ERR_CONFIG,
                            "%s: printed neither a token nor a certificate with its key",
                            config->exec->words[0]);
    }
    int rc = token != NULL ? weft_kube_config_set_token(config, weft_str(token), err) : 0;
    rc = rc < 0 || cert == NULL ? rc : take_certificate(config, cert, key, err);
    return rc < 0 ? rc : 0;
}

int weft_kube_exec_take(struct weft_kube_config *config, const char *text, size_t len,
                        int64_t *ret_expires, struct weft_error *err)
{
    const struct weft_kube_exec *exec = config->exec;
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    /* no message of the parser's: it could quote the credential */
    const bool readable = weft_json_parse(text, len, exec->words[0], &doc, NULL) == 0;
    const char *kind = weft_json_string(weft_json_get(doc, "kind"));
    const char *version = weft_json_string(weft_json_get(doc, "apiVersion"));
    if (!readable || kind == NULL || strcmp(kind, "ExecCredential") != 0 || version == NULL ||
        strcmp(version, exec->api_version) != 0) {
        return weft_err_set(err, -EBADMSG, WEFT_ERR_CONFIG, "%s: printed no ExecCredential of %s",
                            exec->words[0], exec->api_version);
    }
    const struct weft_json *status = weft_json_get(doc, "status");
    const int rc = take_status(config, status, err);
    if (rc == 0) {
        *ret_expires = parse_time(weft_json_string(weft_json_get(status, "expirationTimestamp")));
    }
    return rc;
}

/* ---- running it ---- */

static void put_cluster(struct weft_json_writer *w, const struct weft_kube_config *config)
{
    weft_json_put_key(w, "cluster");
    weft_json_open(w, '{');
    weft_json_kv_string(w, "server", config->server);
    if (config->tls_server_name != NULL) {
        weft_json_kv_string(w, "tls-server-name", config->tls_server_name);
    }
    if (config->insecure) {
        weft_json_kv_bool(w, "insecure-skip-tls-verify", true);
    }
    if (config->ca.bytes != NULL) {
        weft_autofree char *ca = weft_base64_encode(config->ca.bytes, config->ca.len);
        weft_json_kv_string(w, "certificate-authority-data", ca != NULL ? ca : "");
    }
    weft_json_close(w, '}');
}

/* KUBERNETES_EXEC_INFO, as the helper's protocol has it. */
static void put_info(const struct weft_kube_config *config, struct weft_buf *buf)
{
    (void)weft_buf_puts(buf, "KUBERNETES_EXEC_INFO=");
    struct weft_json_writer w;
    weft_json_writer_init(&w, buf, 0);
    weft_json_open(&w, '{');
    weft_json_kv_string(&w, "apiVersion", config->exec->api_version);
    weft_json_kv_string(&w, "kind", "ExecCredential");
    weft_json_put_key(&w, "spec");
    weft_json_open(&w, '{');
    weft_json_kv_bool(&w, "interactive", false);
    if (config->exec->cluster_info) {
        put_cluster(&w, config);
    }
    weft_json_close(&w, '}');
    weft_json_close(&w, '}');
}

static void on_exit_of(void *data, const struct weft_child_result *result)
{
    struct weft_kube_exec *exec = data;
    WEFT_CHECK(exec, EXEC_MAGIC);
    const struct weft_clock *clock = weft_clock_system();
    exec->finished = true;
    exec->status = result->status;
    if (result->status < 0) {
        (void)weft_err_errno(&exec->error, -result->status, "%s", exec->words[0]);
    } else if (result->exit_code != 0) {
        exec->status = weft_err_set(&exec->error, -EACCES, WEFT_ERR_CONFIG, "%s: exit status %d",
                                    exec->words[0], result->exit_code);
    } else {
        int64_t expires = 0;
        exec->status = weft_kube_exec_take(exec->config, result->output, result->output_len,
                                           &expires, &exec->error);
        const int64_t life = expires - weft_clock_realtime(clock);
        exec->due_at = expires == 0 || exec->status < 0
                           ? 0
                           : weft_clock_monotonic(clock) + (life > 0 ? life / 4 * 3 : 0);
    }
    weft_child_free(weft_steal(&exec->child));
}

/* Is this inherited "K=V" one that we set ourselves? Programs differ in which of two they take. */
static bool is_replaced(const char *const *ours, const char *entry)
{
    const size_t len = strcspn(entry, "=");
    while (*ours != NULL && (strncmp(*ours, entry, len) != 0 || (*ours)[len] != '=')) {
        ours++;
    }
    return *ours != NULL;
}

/* Ours, then what is inherited; NULL-terminated. The texts are borrowed. */
static const char **make_environment(const struct weft_kube_exec *exec, const char *info)
{
    size_t inherited = 0;
    while (inherited < ENVIRONMENT_MAX && environ[inherited] != NULL) {
        inherited++;
    }
    const char **env = weft_calloc(exec->variable_count + inherited + 2, sizeof(char *));
    if (env == NULL) {
        return NULL;
    }
    size_t count = 0;
    env[count++] = info;
    for (size_t i = 0; i < exec->variable_count; i++) {
        env[count++] = exec->variables[i];
    }
    for (size_t i = 0; i < inherited; i++) {
        if (!is_replaced(env, environ[i])) {
            env[count++] = environ[i];
        }
    }
    return env;
}

static int start(struct weft_kube_config *config, struct weft_loop *loop, struct weft_error *err)
{
    struct weft_kube_exec *exec = config->exec;
    weft_auto(weft_buf_done) struct weft_buf info;
    weft_buf_init(&info, INFO_MAX);
    put_info(config, &info);
    weft_autofree const char **env = make_environment(exec, weft_buf_text(&info));
    if (env == NULL || info.status < 0) {
        return weft_err_nomem(err);
    }
    const struct weft_child_options options = {
        .argv = (const char *const *)exec->words,
        .env = env,
        .output_max = WEFT_KUBE_EXEC_OUTPUT_MAX,
        .timeout_ns = run_timeout_ns,
    };
    exec->config = config;
    exec->finished = false;
    exec->started_at = weft_clock_monotonic(weft_clock_system());
    return weft_child_new(loop, &options, on_exit_of, exec, &exec->child, err);
}

int weft_kube_exec_run(struct weft_kube_config *config, struct weft_error *err)
{
    struct weft_kube_exec *exec = config->exec;
    weft_auto(weft_loop_free) struct weft_loop *loop = NULL;
    int rc = weft_loop_new(&loop, err);
    rc = rc < 0 ? rc : start(config, loop, err);
    if (rc < 0) {
        return rc;
    }
    (void)weft_loop_run_until(loop, &exec->finished, run_timeout_ns + WEFT_NS_PER_S);
    weft_child_free(weft_steal(&exec->child)); /* before its loop */
    if (!exec->finished) {
        return weft_err_errno(err, ETIMEDOUT, "%s", exec->words[0]);
    }
    if (exec->status < 0 && err != NULL) {
        *err = exec->error;
    }
    return exec->status;
}

bool weft_kube_exec_refresh(struct weft_kube_config *config, struct weft_loop *loop, int64_t now,
                            bool force)
{
    struct weft_kube_exec *exec = config->exec;
    if (exec == NULL) {
        return false;
    }
    WEFT_CHECK(exec, EXEC_MAGIC);
    if (exec->child != NULL) {
        return true;
    }
    const bool due = force || (exec->due_at != 0 && now >= exec->due_at);
    if (!due || (exec->started_at != 0 && now - exec->started_at < least_pause_ns)) {
        return false;
    }
    return start(config, loop, NULL) == 0;
}
