/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options: from text, to text. Pure. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "deviceplugin/options-internal.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/str.h"
#include "pkg/http/http.h"
#include "pkg/kubelet/kubelet.h"

enum {
    RESOURCE_NAME_MAX = 63,
    DOMAIN_MAX = 253,
    NUMBER_MAX = 1000,
    IMEX_CHANNEL_MAX = 2047, /* NVIDIA's driver: NVreg_ImexChannelCount, at most 2048 */
    SOCKET_PATH_MAX = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1,
    PLUGIN_DIR_MAX = SOCKET_PATH_MAX - sizeof("/" WEFT_KUBELET_SOCKET) + 1
};

#define DURATION_MIN_NS (10 * WEFT_NS_PER_MS)
#define DURATION_MAX_NS (3600 * WEFT_NS_PER_S)

/* ---- resource names ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* What the kubelet calls a qualified name: words, with - _ . between them. */
static bool name_valid(struct weft_str name)
{
    if (name.len == 0 || name.len > RESOURCE_NAME_MAX || !is_word(name.data[0]) ||
        !is_word(name.data[name.len - 1])) {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.data[i];
        if (!is_word(c) && c != '-' && c != '_' && c != '.') {
            return false;
        }
    }
    return true;
}

bool weft_resource_valid(const char *name)
{
    char domain[DOMAIN_MAX + 1];
    const char *slash = strchr(name, '/');
    if (slash == NULL || slash - name > DOMAIN_MAX) {
        return false;
    }
    memcpy(domain, name, (size_t)(slash - name));
    domain[slash - name] = '\0';
    const struct weft_str d = weft_str(domain);
    return weft_dns_subdomain_valid(domain) && !weft_str_eq(d, "kubernetes.io") &&
           !weft_str_ends(d, ".kubernetes.io") && !weft_str_starts(d, "requests.") &&
           name_valid(weft_str(slash + 1));
}

const char *weft_resource_of_vendor(const char *vendor)
{
    static const char *const resources[][2] = {
        {"amd", "amd.com/gpu"}, {"intel", "gpu.intel.com/i915"}, {"mthreads", "mthreads.com/gpu"}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(resources); i++) {
        if (strcmp(resources[i][0], vendor) == 0) {
            return resources[i][1];
        }
    }
    return "nvidia.com/gpu";
}

/* ---- where a value stands ---- */

static void *field_of(struct weft_options *options, const struct weft_option *option)
{
    return (char *)options + option->offset;
}

static const void *value_of(const struct weft_options *options, const struct weft_option *option)
{
    return (const char *)options + option->offset;
}

/* An enum and an unsigned have the same bytes: the compiler makes enums without negative values
 * unsigned. */
static unsigned unsigned_of(const struct weft_options *options, const struct weft_option *option)
{
    unsigned value = 0;
    memcpy(&value, value_of(options, option), sizeof(value));
    return value;
}

static void set_unsigned(struct weft_options *options, const struct weft_option *option,
                         unsigned value)
{
    memcpy(field_of(options, option), &value, sizeof(value));
}

/* ---- from text ---- */

static int set_text(struct weft_options *options, const struct weft_option *option,
                    const char *value, struct weft_error *err)
{
    char *copy = weft_strdup(value), *before = NULL;
    if (copy == NULL) {
        return weft_err_nomem(err);
    }
    void *field = field_of(options, option);
    memcpy(&before, field, sizeof(before));
    weft_free(before);
    memcpy(field, &copy, sizeof(copy));
    return 0;
}

bool weft_option_parse_bool(const char *text, bool *ret_value)
{
    static const char *const truths[] = {"1", "t", "T", "TRUE", "true", "True"};
    static const char *const lies[] = {"0", "f", "F", "FALSE", "false", "False"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(truths); i++) {
        if (strcmp(text, truths[i]) == 0 || strcmp(text, lies[i]) == 0) {
            *ret_value = strcmp(text, truths[i]) == 0;
            return true;
        }
    }
    return false;
}

/* A time that a person would wait, or have a loop turn. */
static bool parse_duration(const char *value, int64_t *ret_ns)
{
    int64_t ns = 0;
    if (weft_parse_duration(weft_str(value), &ns) < 0 || ns < DURATION_MIN_NS ||
        ns > DURATION_MAX_NS) {
        return false;
    }
    *ret_ns = ns;
    return true;
}

static bool parse_word(const struct weft_option *option, struct weft_str word, unsigned *ret_number)
{
    for (unsigned i = 0; option->words[i] != NULL; i++) {
        if (weft_str_eq(word, option->words[i])) {
            *ret_number = i;
            return true;
        }
    }
    return false;
}

static bool parse_words(const struct weft_option *option, const char *value, unsigned *ret_bits)
{
    struct weft_str rest = weft_str(value), piece;
    unsigned bits = 0, number = 0;
    while (weft_str_split(&rest, ',', &piece)) {
        if (!parse_word(option, weft_str_trim(piece), &number)) {
            return false;
        }
        bits |= 1U << number;
    }
    *ret_bits = bits;
    return bits != 0;
}

static bool set_channels(struct weft_respond_settings *respond, const char *value)
{
    uint32_t channels[WEFT_RESPOND_IMEX_MAX] = {0};
    size_t count = 0;
    struct weft_str rest = weft_str(value), piece;
    while (rest.len > 0 && weft_str_split(&rest, ',', &piece)) {
        uint64_t number = 0;
        if (count == WEFT_RESPOND_IMEX_MAX ||
            weft_parse_u64(weft_str_trim(piece), IMEX_CHANNEL_MAX, &number) < 0) {
            return false;
        }
        channels[count++] = (uint32_t)number;
    }
    memcpy(respond->imex_channels, channels, sizeof(channels));
    respond->imex_channel_count = count;
    return true;
}

/* Kinds that are a few bytes. */
static bool set_small(struct weft_options *options, const struct weft_option *option,
                      const char *value)
{
    unsigned number = 0;
    uint64_t big = 0;
    switch (option->kind) {
    case WEFT_OPTION_BOOL:
        return weft_option_parse_bool(value, field_of(options, option));
    case WEFT_OPTION_DURATION:
        return parse_duration(value, field_of(options, option));
    case WEFT_OPTION_NUMBER:
        if (weft_parse_u64(weft_str(value), NUMBER_MAX, &big) < 0) {
            return false;
        }
        number = (unsigned)big;
        break;
    case WEFT_OPTION_WORD:
        if (!parse_word(option, weft_str(value), &number)) {
            return false;
        }
        break;
    case WEFT_OPTION_WORDS:
        if (!parse_words(option, value, &number)) {
            return false;
        }
        break;
    case WEFT_OPTION_CHANNELS:
        return set_channels(&options->respond, value);
    case WEFT_OPTION_TEXT:
    case WEFT_OPTION_SOCKET:
    case WEFT_OPTION_IGNORED:
        return false;
    }
    set_unsigned(options, option, number);
    return true;
}

static int refuse(const struct weft_option *option, const char *value, struct weft_error *err)
{
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "\"%.100s\" is not %s", value,
                        option->allowed);
}

static int set_plugin_dir(struct weft_options *options, const struct weft_option *option,
                          const char *value, struct weft_error *err)
{
    if (strlen(value) > PLUGIN_DIR_MAX) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%zu bytes are too long for a folder with " WEFT_KUBELET_SOCKET
                            ", at most %zu: a unix socket's path has %zu at most",
                            strlen(value), (size_t)PLUGIN_DIR_MAX, (size_t)SOCKET_PATH_MAX);
    }
    return set_text(options, option, value, err);
}

/* "/var/lib/kubelet/device-plugins/kubelet.sock": its folder. */
static int set_socket(struct weft_options *options, const struct weft_option *option,
                      const char *value, struct weft_error *err)
{
    static const char tail[] = "/" WEFT_KUBELET_SOCKET;
    const size_t len = strlen(value);
    if (len < sizeof(tail) || strcmp(value + len - sizeof(tail) + 1, tail) != 0) {
        return refuse(option, value, err);
    }
    weft_autofree char *folder = weft_strdup(value);
    if (folder == NULL) {
        return weft_err_nomem(err);
    }
    folder[len - sizeof(tail) + 1] = '\0';
    return set_plugin_dir(options, option, folder, err);
}

/* A value that says what is so anyway is nobody's business. */
static int note_ignored(struct weft_options *options, const struct weft_option *option,
                        const char *value, struct weft_error *err)
{
    bool truth = false;
    unsigned number = 0;
    const bool is_bool = option->words != NULL && strcmp(option->words[0], "true") == 0;
    if (is_bool && weft_option_parse_bool(value, &truth)) {
        value = truth ? "true" : "false";
    }
    if (option->words != NULL && !parse_word(option, weft_str(value), &number)) {
        return refuse(option, value, err);
    }
    if (option->fallback != NULL && strcmp(option->fallback, value) == 0) {
        return 0;
    }
    return weft_options_note(options, "\"%.60s\" has no effect: %s", value, option->help) < 0
               ? weft_err_nomem(err)
               : 0;
}

int weft_option_set(struct weft_options *options, const struct weft_option *option,
                    const char *value, struct weft_error *err)
{
    if (!weft_utf8_valid(value, strlen(value))) { /* no log line nor file could say it again */
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "is no UTF-8 text");
    }
    if (option->kind == WEFT_OPTION_IGNORED) {
        return note_ignored(options, option, value, err);
    }
    if (option->kind == WEFT_OPTION_SOCKET) {
        return set_socket(options, option, value, err);
    }
    if (option->kind != WEFT_OPTION_TEXT) {
        return set_small(options, option, value) ? 0 : refuse(option, value, err);
    }
    if (option->valid != NULL ? !option->valid(value) : value[0] == '\0') {
        return refuse(option, value, err);
    }
    if (option->offset == offsetof(struct weft_options, plugin_dir) ||
        option->offset == offsetof(struct weft_options, registry_dir)) {
        return set_plugin_dir(options, option, value, err);
    }
    const int rc = option->offset == offsetof(struct weft_options, listen)
                       ? weft_http_check_listen(value, err)
                       : 0;
    return rc == 0 ? set_text(options, option, value, err) : rc;
}

/* ---- to text ---- */

static const char *duration_text(int64_t ns, char *text)
{
    static const struct {
        int64_t unit;
        const char *name;
    } units[] = {{3600 * WEFT_NS_PER_S, "h"},
                 {60 * WEFT_NS_PER_S, "m"},
                 {WEFT_NS_PER_S, "s"},
                 {WEFT_NS_PER_MS, "ms"}};
    size_t i = 0;
    while (i + 1 < WEFT_ARRAY_LEN(units) && ns % units[i].unit != 0) {
        i++;
    }
    (void)snprintf(text, WEFT_OPTION_TEXT_MAX, "%" PRId64 "%s", ns / units[i].unit, units[i].name);
    return text;
}

static const char *words_text(const struct weft_option *option, unsigned bits, char *text)
{
    size_t len = 0;
    text[0] = '\0';
    for (unsigned i = 0; option->words[i] != NULL; i++) {
        if ((bits >> i & 1) != 0) {
            len += (size_t)snprintf(text + len, WEFT_OPTION_TEXT_MAX - len, "%s%s",
                                    len > 0 ? "," : "", option->words[i]);
        }
    }
    return len > 0 ? text : NULL;
}

static const char *channels_text(const struct weft_respond_settings *respond, char *text)
{
    size_t len = 0;
    for (size_t i = 0; i < respond->imex_channel_count; i++) {
        len += (size_t)snprintf(text + len, WEFT_OPTION_TEXT_MAX - len, "%s%" PRIu32,
                                i > 0 ? "," : "", respond->imex_channels[i]);
    }
    return len > 0 ? text : NULL;
}

const char *weft_option_text(const struct weft_options *options, const struct weft_option *option,
                             char *text)
{
    const void *value = value_of(options, option);
    char *string = NULL;
    int64_t ns = 0;
    switch (option->kind) {
    case WEFT_OPTION_TEXT:
        memcpy(&string, value, sizeof(string));
        return string;
    case WEFT_OPTION_BOOL:
        return *(const bool *)value ? "true" : "false";
    case WEFT_OPTION_DURATION:
        memcpy(&ns, value, sizeof(ns));
        return ns != 0 ? duration_text(ns, text) : NULL;
    case WEFT_OPTION_NUMBER:
        (void)snprintf(text, WEFT_OPTION_TEXT_MAX, "%u", unsigned_of(options, option));
        return text;
    case WEFT_OPTION_WORD:
        return option->words[unsigned_of(options, option)];
    case WEFT_OPTION_WORDS:
        return words_text(option, unsigned_of(options, option), text);
    case WEFT_OPTION_CHANNELS:
        return channels_text(&options->respond, text);
    case WEFT_OPTION_SOCKET:
    case WEFT_OPTION_IGNORED:
        break;
    }
    return NULL;
}

/* ---- notes ---- */

int weft_options_note(struct weft_options *options, const char *format, ...)
{
    if (options->note_count == WEFT_OPTION_NOTES_MAX) {
        return 0;
    }
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    char *note = weft_strdup(text);
    if (note == NULL) {
        return -ENOMEM;
    }
    options->notes[options->note_count++] = note;
    return 0;
}

void weft_options_done(struct weft_options *options)
{
    for (size_t i = 0; i < weft_option_count; i++) {
        const struct weft_option *option = &weft_option_table[i];
        if (option->kind == WEFT_OPTION_TEXT) {
            char *text = NULL;
            void *field = field_of(options, option);
            memcpy(&text, field, sizeof(text));
            weft_free(text);
            memset(field, 0, sizeof(text));
        }
    }
    weft_pool_settings_done(&options->pools);
    weft_respond_settings_done(&options->respond);
    for (size_t i = 0; i < options->note_count; i++) {
        weft_free(options->notes[i]);
    }
    options->note_count = 0;
}

static void swap_texts(void *a, void *b)
{
    char *x = NULL, *y = NULL;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    memcpy(a, &y, sizeof(y));
    memcpy(b, &x, sizeof(x));
}

void weft_options_swap(struct weft_options *a, struct weft_options *b)
{
    const struct weft_options kept = *a;
    *a = *b;
    *b = kept;
    for (size_t i = 0; i < weft_option_count; i++) {
        const struct weft_option *option = &weft_option_table[i];
        if (option->fixed && option->kind == WEFT_OPTION_TEXT) {
            swap_texts(field_of(a, option), field_of(b, option));
        }
    }
}
