/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the response settings; they are NVIDIA's plugin's. */
#include <errno.h>

#include "deviceplugin/respond.h"
#include "tests/unit/unit.h"

static void test_strategies(void)
{
    static const struct {
        const char *text;
        unsigned bits; /* 0: refused */
    } cases[] = {
        {"envvar", WEFT_RESPOND_ENVVAR},
        {"volume-mounts", WEFT_RESPOND_VOLUME_MOUNTS},
        {"cdi-annotations", WEFT_RESPOND_CDI_ANNOTATIONS},
        {"cdi-cri", WEFT_RESPOND_CDI_CRI},
        {"envvar,cdi-cri", WEFT_RESPOND_ENVVAR | WEFT_RESPOND_CDI_CRI},
        {" cdi-cri , envvar,envvar", WEFT_RESPOND_ENVVAR | WEFT_RESPOND_CDI_CRI},
        {"", 0},
        {",", 0},
        {"envvar,", 0},
        {"envvar,cdi", 0},
        {"ENVVAR", 0},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
        unsigned bits = 0;
        const int rc = weft_respond_parse_strategies(cases[i].text, &bits);
        CHECK_INT(rc, cases[i].bits == 0 ? -EINVAL : 0);
        CHECK_INT(bits, cases[i].bits);
    }
    CHECK_STR(weft_respond_strategy_name(WEFT_RESPOND_CDI_ANNOTATIONS), "cdi-annotations");
}

static void test_ids(void)
{
    enum weft_respond_id id = WEFT_RESPOND_UUID;
    CHECK_INT(weft_respond_parse_id("index", &id), 0);
    CHECK_INT(id, WEFT_RESPOND_INDEX);
    CHECK_INT(weft_respond_parse_id("Index", &id), -EINVAL);
    CHECK_INT(weft_respond_parse_id("uuid", &id), 0);
    CHECK_INT(id, WEFT_RESPOND_UUID);
}

static void test_done(void)
{
    struct weft_respond_settings settings = {.driver_root = weft_strdup("/a"),
                                             .dev_root = weft_strdup("/b"),
                                             .cdi_folder = weft_strdup("/c"),
                                             .cdi_hook = weft_strdup("/d"),
                                             .annotation_prefix = weft_strdup("e/"),
                                             .gds = true};
    weft_respond_settings_done(&settings);
    CHECK(settings.cdi_hook == NULL && !settings.gds);
}

WEFT_SUITE(respond, {"strategies", test_strategies}, {"ids", test_ids}, {"done", test_done})
