/* SPDX-License-Identifier: Apache-2.0 */
/* Which error codes count: the lists of people, in the words of NVIDIA's plugin. */
#include <errno.h>

#include "deviceplugin/health.h"
#include "pkg/base/mem.h"
#include "tests/unit/unit.h"

/* Checks each of the codes; ends with 0. */
static void expect(const struct weft_health_settings *s, bool counts, const uint64_t *codes)
{
    for (; *codes != 0; codes++) {
        CHECK_INT(weft_health_counts(s, *codes), counts);
    }
}

#define CODES(...) ((const uint64_t[]){__VA_ARGS__, 0})

static void what_programs_cause_is_ignored(void)
{
    struct weft_health_settings s;
    weft_health_settings_init(&s);
    expect(&s, false, CODES(13, 31, 43, 45, 68, 109));
    expect(&s, true, CODES(1, 48, 79, 94, 95, 119, 4000000000));
    CHECK(weft_health_counts(&s, 0)); /* a lost GPU has no code */
    CHECK_INT(s.flap_count, 3);
}

static void a_list_of_ignored_codes_replaces_the_usual_one(void)
{
    struct weft_health_settings s;
    weft_health_settings_init(&s);
    CHECK_INT(weft_health_set_ignored(&s, "79, 95", NULL), 0);
    expect(&s, false, CODES(79, 95));
    expect(&s, true, CODES(13, 31, 94));
    CHECK_INT(weft_health_set_ignored(&s, "", NULL), 0);
    expect(&s, true, CODES(13, 79));
}

static void disabled_codes_are_ignored_as_well(void)
{
    struct weft_health_settings s;
    weft_health_settings_init(&s);
    CHECK_INT(weft_health_set_disabled(&s, "79,94", NULL), 0);
    expect(&s, false, CODES(13, 31, 79, 94));
    expect(&s, true, CODES(48));
    CHECK_INT(weft_health_set_disabled(&s, "48,XIDs", NULL), 0);
    expect(&s, false, CODES(13, 48, 4711));
    CHECK(weft_health_counts(&s, 0)); /* a lost GPU still counts */
    CHECK(!s.off);
    CHECK_INT(weft_health_set_disabled(&s, "all", NULL), 0);
    CHECK(s.off && !weft_health_counts(&s, 0));
}

static void enabled_codes_win(void)
{
    struct weft_health_settings s;
    weft_health_settings_init(&s);
    CHECK_INT(weft_health_set_disabled(&s, "all", NULL), 0);
    CHECK_INT(weft_health_set_enabled(&s, "13,95", NULL), 0);
    expect(&s, true, CODES(13, 95));
    expect(&s, false, CODES(31, 79));
    CHECK(!weft_health_counts(&s, 0));
    CHECK_INT(weft_health_set_enabled(&s, "xids", NULL), 0);
    expect(&s, true, CODES(31, 79));
    weft_health_settings_init(&s);
    CHECK_INT(weft_health_set_enabled(&s, "ALL", NULL), 0);
    expect(&s, true, CODES(13, 31, 43, 45, 68, 109, 79));
}

static void what_is_no_list_changes_nothing(void)
{
    static const char *const texts[] = {"13,many", "13,,31", "-1", "4294967296", "0x4f", "79;80"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(texts); i++) {
        struct weft_health_settings s, before;
        weft_health_settings_init(&s);
        before = s;
        struct weft_error err = {0};
        CHECK_INT(weft_health_set_ignored(&s, texts[i], &err), -EINVAL);
        CHECK_CONTAINS(err.message, texts[i]);
        CHECK_INT(weft_health_set_disabled(&s, texts[i], &err), -EINVAL);
        CHECK_CONTAINS(err.message, "\"all\" or \"xids\"");
        CHECK_INT(weft_health_set_enabled(&s, texts[i], &err), -EINVAL);
        CHECK(memcmp(&s, &before, sizeof(s)) == 0);
    }
    struct weft_health_settings s;
    weft_health_settings_init(&s);
    CHECK_INT(weft_health_set_ignored(&s, "all", NULL), -EINVAL); /* the flag knows numbers only */
    char many[4 * (WEFT_HEALTH_CODES_MAX + 1) + 1] = "";
    for (size_t i = 0; i <= WEFT_HEALTH_CODES_MAX; i++) {
        (void)snprintf(many + 4 * i, 5, "%03zu,", i + 200);
    }
    CHECK_INT(weft_health_set_ignored(&s, many, NULL), -EINVAL);
    many[4 * WEFT_HEALTH_CODES_MAX - 1] = '\0'; /* one less */
    CHECK_INT(weft_health_set_ignored(&s, many, NULL), 0);
}

WEFT_SUITE(health_settings, {"what programs cause is ignored", what_programs_cause_is_ignored},
           {"a list of ignored codes replaces the usual one",
            a_list_of_ignored_codes_replaces_the_usual_one},
           {"disabled codes are ignored as well", disabled_codes_are_ignored_as_well},
           {"enabled codes win", enabled_codes_win},
           {"what is no list changes nothing", what_is_no_list_changes_nothing})
