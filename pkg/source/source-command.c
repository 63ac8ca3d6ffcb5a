/* SPDX-License-Identifier: Apache-2.0 */
/* A source that is the output of commands, one a subnet: run one after the other without a shell,
 * each cut off at the cap of its output or with the look's time. A command that fails but has
 * printed something is a scan of a part. */
#include <errno.h>
#include <string.h>

#include "pkg/base/clock.h"
#include "pkg/base/str.h"
#include "pkg/source/source-internal.h"

enum { COMMAND_MAGIC = 0x536f436f /* "SoCo" */, ERRORS_MAX = 4096, ERROR_LINE_MAX = 120 };

struct command {
    uint32_t magic;
    struct weft_source *source;
    struct weft_child *child;
    size_t next;      /* command to run next */
    int64_t deadline; /* monotonic: of the look */
    struct weft_source_texts texts;
    struct weft_error why; /* the first thing that went wrong; code 0: nothing */
    uint64_t stamp;        /* of the outputs that were read last, with the files of names */
    bool seen;
};

static void run_next(struct command *c);

static const char *word(const struct command *c, size_t index)
{
    return c->source->settings->commands[index].items[0];
}

/* For a person: printable, one line. */
static struct weft_str first_line(const char *errors)
{
    struct weft_str rest = weft_str(errors);
    struct weft_str line = {0};
    while (weft_str_line(&rest, &line) && weft_str_trim(line).len == 0) {
    }
    line = weft_str_trim(line);
    for (size_t i = 0; i < line.len; i++) {
        if (line.data[i] < ' ' || line.data[i] > '~' || i >= ERROR_LINE_MAX) {
            line.len = i; /* not for a terminal */
        }
    }
    return line;
}

/* libibumad's tools go on after a switch that did not answer, and end with 0: only standard error
 * says that something is missing. */
static bool complains(const char *errors)
{
    return strcasestr(errors, "timeout") != NULL || strcasestr(errors, "timed out") != NULL ||
           strcasestr(errors, "failed") != NULL;
}

/* What is wrong with how it ended; code 0: nothing. */
static void judge(const char *program, const struct weft_child_result *result, size_t output_max,
                  struct weft_error *err)
{
    const struct weft_str line = first_line(result->errors);
    const char *colon = line.len > 0 ? ": " : "";
    if (result->status == -EFBIG) {
        (void)weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG,
                           "%s: the output is larger than the cap of %zu bytes; it was killed",
                           program, output_max);
    } else if (result->status == -ETIMEDOUT) {
        (void)weft_err_set(err, -ETIMEDOUT, WEFT_ERR_CONFIG, "%s: killed after its time%s%.*s",
                           program, colon, WEFT_STR_ARG(line));
    } else if (result->status < 0) {
        (void)weft_err_errno(err, -result->status, "%s: output", program);
    } else if (result->signal != 0) {
        (void)weft_err_set(err, -EIO, WEFT_ERR_CONFIG, "%s: ended by signal %d%s%.*s", program,
                           result->signal, colon, WEFT_STR_ARG(line));
    } else if (result->exit_code != 0) {
        (void)weft_err_set(err, -EIO, WEFT_ERR_CONFIG, "%s: exit status %d%s%.*s", program,
                           result->exit_code, colon, WEFT_STR_ARG(line));
    } else if (complains(result->errors)) {
        (void)weft_err_set(err, -EIO, WEFT_ERR_CONFIG, "%s: %.*s", program, WEFT_STR_ARG(line));
    }
}

/* ---- the end of a look ---- */

static uint64_t stamp_all(const struct command *c)
{
    const struct weft_config_source *s = c->source->settings;
    uint64_t stamp = weft_hash64(WEFT_HASH_SEED, c->why.message, strlen(c->why.message));
    for (size_t i = 0; i < c->texts.count; i++) {
        stamp = weft_hash64(stamp, c->texts.items[i].text, c->texts.items[i].len);
    }
    stamp = s->node_map != NULL ? weft_source_stamp(stamp, s->node_map) : stamp;
    stamp = s->partitions != NULL ? weft_source_stamp(stamp, s->partitions) : stamp;
    return s->inventory != NULL ? weft_source_stamp(stamp, s->inventory) : stamp;
}

static void finish(struct command *c)
{
    struct weft_source *source = c->source;
    weft_auto(weft_source_result_done) struct weft_source_result result = {0};
    const uint64_t stamp = stamp_all(c);
    if (c->seen && stamp == c->stamp) {
        weft_source_texts_done(&c->texts);
        weft_source_unchanged(source);
        return;
    }
    struct weft_error err = {0};
    int rc = c->texts.count == 0 ? -ENODATA : 0;
    rc = rc == 0 ? weft_source_parse(source->settings, &c->texts, &result, &err) : rc;
    rc = rc == 0 ? weft_source_read_names(source->settings, &result, &err) : rc;
    weft_source_texts_done(&c->texts);
    c->stamp = stamp;
    c->seen = rc == 0 && c->why.code == 0 && !result.partial;
    const struct weft_error why =
        c->why.code != 0 ? c->why : err; /* the cause, not what it led to */
    weft_source_finish(source, rc == 0 ? &result : NULL, &why, 0);
}

/* What it printed is of use if it came to its own end: a cut text may break off anywhere, but that
 * the parser finds. */
static void on_end(void *data, const struct weft_child_result *result)
{
    struct command *c = data;
    WEFT_CHECK(c, COMMAND_MAGIC);
    struct weft_error err = {0};
    const char *program = word(c, c->next - 1);
    judge(program, result, c->source->owner->output_max, &err);
    if (result->status == 0 && result->output_len > 0) {
        char *text = weft_memdup(result->output, result->output_len + 1);
        if (text == NULL ||
            weft_source_texts_add(&c->texts, program, text, result->output_len) < 0) {
            (void)weft_err_nomem(&err);
        }
    } else if (result->status == 0 && err.code == 0) {
        const struct weft_str line = first_line(result->errors);
        (void)weft_err_set(&err, -ENODATA, WEFT_ERR_CONFIG, "%s: no output%s%.*s", program,
                           line.len > 0 ? ": " : "", WEFT_STR_ARG(line));
    }
    if (c->why.code == 0) {
        c->why = err;
    }
    weft_child_free(c->child);
    c->child = NULL;
    run_next(c);
}

/* ---- its beginning ---- */

static void run_next(struct command *c)
{
    const struct weft_config_source *settings = c->source->settings;
    while (c->next < settings->command_count) {
        const struct weft_names *words = &settings->commands[c->next++];
        const char *argv[WEFT_CONFIG_ARGS_MAX + 1] = {0};
        for (size_t i = 0; i < words->count && i < WEFT_CONFIG_ARGS_MAX; i++) {
            argv[i] = words->items[i];
        }
        const int64_t left = c->deadline - weft_source_now(c->source);
        const struct weft_child_options options = {
            .argv = argv,
            .output_max = c->source->owner->output_max,
            .errors_max = ERRORS_MAX,
            .timeout_ns = left > WEFT_NS_PER_MS ? left : WEFT_NS_PER_MS,
            .group = true,
        };
        struct weft_error err = {0};
        if (weft_child_new(c->source->owner->loop, &options, on_end, c, &c->child, &err) == 0) {
            return; /* on_end goes on */
        }
        if (c->why.code == 0) {
            c->why = err;
        }
    }
    finish(c);
}

static void look(struct weft_source *source)
{
    struct command *c = source->state;
    WEFT_CHECK(c, COMMAND_MAGIC);
    c->next = 0;
    c->why = (struct weft_error){0};
    c->deadline = weft_source_now(source) + source->settings->timeout_ns;
    run_next(c);
}

static int start(struct weft_source *source, struct weft_error *err)
{
    struct command *c = weft_calloc(1, sizeof(*c));
    if (c == NULL) {
        return weft_err_nomem(err);
    }
    c->magic = COMMAND_MAGIC;
    c->source = source;
    source->state = c;
    return 0;
}

static void stop(struct weft_source *source)
{
    struct command *c = source->state;
    if (c == NULL) {
        return;
    }
    WEFT_CHECK(c, COMMAND_MAGIC);
    weft_child_free(c->child);
    weft_source_texts_done(&c->texts);
    c->magic = 0;
    weft_free(c);
    source->state = NULL;
}

const struct weft_source_ops weft_source_command_ops = {
    .start = start,
    .look = look,
    .stop = stop,
};
