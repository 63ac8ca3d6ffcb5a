/* SPDX-License-Identifier: Apache-2.0 */
/* Which error codes count, as people say it. */
#include <errno.h>

#include "deviceplugin/health.h"
#include "pkg/base/clock.h"
#include "pkg/base/mem.h"
#include "pkg/base/str.h"

/* XIDs that a program causes, not the GPU: those that NVIDIA's device plugin (v0.20) ignores. */
static const uint64_t ignored_by_default[] = {13, 31, 43, 45, 68, 109};

void weft_health_settings_init(struct weft_health_settings *settings)
{
    *settings = (struct weft_health_settings){.flap_count = 3,
                                              .flap_window_ns = 3600 * WEFT_NS_PER_S,
                                              .flap_recover_ns = 600 * WEFT_NS_PER_S};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(ignored_by_default); i++) {
        settings->ignored.codes[settings->ignored.count++] = ignored_by_default[i];
    }
}

static bool has(const struct weft_health_codes *list, uint64_t code)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->codes[i] == code) {
            return true;
        }
    }
    return false;
}

static int add(struct weft_health_codes *list, struct weft_str text)
{
    uint64_t code = 0;
    if (list->count == WEFT_HEALTH_CODES_MAX ||
        weft_parse_u64(weft_str_trim(text), UINT32_MAX, &code) < 0) {
        return -EINVAL;
    }
    if (!has(list, code)) {
        list->codes[list->count++] = code;
    }
    return 0;
}

/* NVIDIA's words, in any case, stand among the numbers. */
static bool is_word(struct weft_str piece, const char *word)
{
    const struct weft_str text = weft_str_trim(piece);
    bool same = text.len == strlen(word);
    for (size_t i = 0; same && i < text.len; i++) {
        same = (text.data[i] | 0x20) == word[i];
    }
    return same;
}

/* Numbers go to *list; ret_all and ret_xids (both NULL: no words are allowed) tell of the words. */
static int read_list(const char *text, struct weft_health_codes *list, bool *ret_all,
                     bool *ret_xids, struct weft_error *err)
{
    struct weft_str rest = weft_str(text), piece;
    while (rest.len > 0 && weft_str_split(&rest, ',', &piece)) {
        if (ret_all != NULL && is_word(piece, "all")) {
            *ret_all = true;
        } else if (ret_xids != NULL && is_word(piece, "xids")) {
            *ret_xids = true;
        } else if (add(list, piece) < 0) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "\"%.60s\" is no list of error codes: at most %d numbers%s with "
                                "commas between them are allowed",
                                text, (int)WEFT_HEALTH_CODES_MAX,
                                ret_all != NULL ? ", \"all\" or \"xids\"" : "");
        }
    }
    return 0;
}

int weft_health_set_ignored(struct weft_health_settings *settings, const char *text,
                            struct weft_error *err)
{
    struct weft_health_codes list = {.all = settings->ignored.all};
    const int rc = read_list(text, &list, NULL, NULL, err);
    if (rc == 0) {
        settings->ignored = list;
    }
    return rc;
}

int weft_health_set_disabled(struct weft_health_settings *settings, const char *text,
                             struct weft_error *err)
{
    struct weft_health_codes list = settings->ignored;
    bool all = false, xids = false;
    const int rc = read_list(text, &list, &all, &xids, err);
    if (rc == 0) {
        list.all = list.all || all || xids;
        settings->ignored = list;
        settings->off = settings->off || all;
    }
    return rc;
}

int weft_health_set_enabled(struct weft_health_settings *settings, const char *text,
                            struct weft_error *err)
{
    struct weft_health_codes list = settings->counted;
    bool all = false, xids = false;
    const int rc = read_list(text, &list, &all, &xids, err);
    if (rc == 0) {
        list.all = list.all || all || xids;
        settings->counted = list;
    }
    return rc;
}

void weft_health_settings_finish(struct weft_health_settings *settings, int64_t rescan_ns)
{
    if (settings->suspect_ns == 0) {
        settings->suspect_ns = rescan_ns / 3;
    }
    if (settings->recover_ns == 0) {
        settings->recover_ns = rescan_ns;
    }
    if (settings->flap_recover_ns < settings->recover_ns) {
        settings->flap_recover_ns = settings->recover_ns;
    }
    if (settings->flap_count > WEFT_HEALTH_FALLS_MAX) {
        settings->flap_count = WEFT_HEALTH_FALLS_MAX;
    }
}

bool weft_health_counts(const struct weft_health_settings *settings, uint64_t code)
{
    if (code == 0) {
        return !settings->off;
    }
    if (settings->counted.all || has(&settings->counted, code)) {
        return true;
    }
    return !settings->off && !settings->ignored.all && !has(&settings->ignored, code);
}
