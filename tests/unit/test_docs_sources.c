/* SPDX-License-Identifier: Apache-2.0 */
/* docs/sources.md says what is: each YAML example is read, each command prints what stands below
 * it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "pkg/base/file.h"
#include "pkg/base/str.h"
#include "pkg/fabric/fabric-file.h"
#include "pkg/source/config.h"
#include "tests/unit/unit.h"

enum { DOC_MAX = 1 << 20, WORDS_MAX = 16 };

static const char page[] = "docs/sources.md";

/* The next fenced block of that kind off *rest, without its fences; false at the end. */
static bool next_block(struct weft_str *rest, const char *kind, struct weft_str *ret_block)
{
    weft_autofree char *fence = weft_asprintf("```%s", kind);
    struct weft_str line = {0};
    while (weft_str_line(rest, &line)) {
        if (!weft_str_eq(line, fence)) {
            continue;
        }
        *ret_block = (struct weft_str){rest->data, 0};
        while (weft_str_line(rest, &line) && !weft_str_eq(line, "```")) {
            ret_block->len = (size_t)(line.data + line.len + 1 - ret_block->data);
        }
        return true;
    }
    return false;
}

static void check_sources(struct weft_str block)
{
    weft_autofree char *text =
        weft_asprintf("apiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\n"
                      "tiers: [nvlink, leaf, spine, core, rack, row]\nsources:\n%.*s",
                      WEFT_STR_ARG(block));
    weft_auto(weft_config_free) struct weft_config *config = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_config_parse(text, strlen(text), page, &config, &err), 0);
    CHECK_STR(err.message, "");
}

static void check_fabric_file(struct weft_str block)
{
    weft_auto(weft_fabric_file_free) struct weft_fabric_file *file = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_parse_fabric_file(block.data, block.len, page, &file, &err), 0);
    CHECK_STR(err.message, "");
}

static void examples_are_read(void)
{
    weft_autofree char *text = NULL;
    size_t sources = 0;
    size_t files = 0;
    CHECK_INT(weft_file_read(page, DOC_MAX, &text, NULL, NULL), 0);
    struct weft_str rest = weft_str(text != NULL ? text : "");
    struct weft_str block = {0};
    while (next_block(&rest, "yaml", &block)) {
        if (weft_str_starts(block, "- ")) {
            sources++;
            check_sources(block);
        } else {
            files++;
            check_fabric_file(block);
        }
    }
    CHECK(sources >= 8 && files == 2);
}

/* "$ weftctl tree …" and what it prints, up to a line "…" if there is one. */
static void check_command(struct weft_str block)
{
    struct weft_str line = {0};
    CHECK(weft_str_line(&block, &line) && weft_str_starts(line, "$ weftctl tree "));
    weft_autofree char *words = weft_strndup(line.data + 2, line.len - 2);
    char *argv[WORDS_MAX + 1] = {0};
    int argc = 0;
    char *save = NULL;
    for (char *w = strtok_r(words, " ", &save); w != NULL && argc < WORDS_MAX;
         w = strtok_r(NULL, " ", &save)) {
        argv[argc++] = w;
    }
    char *output = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&output, &len);
    CHECK_INT(weft_ctl_tree_to(argc - 1, argv + 1, out, stderr), 0);
    (void)fclose(out);
    struct weft_str printed = {output, len};
    struct weft_str got = {0};
    while (weft_str_line(&block, &line) && !weft_str_eq(line, "…")) {
        CHECK(weft_str_line(&printed, &got));
        weft_autofree char *expected = weft_strndup(line.data, line.len);
        weft_autofree char *actual = weft_strndup(got.data, got.len);
        CHECK_STR(actual, expected);
    }
    free(output); /* open_memstream's own */
}

static void commands_print_what_stands_there(void)
{
    weft_autofree char *text = NULL;
    size_t count = 0;
    CHECK_INT(weft_file_read(page, DOC_MAX, &text, NULL, NULL), 0);
    struct weft_str rest = weft_str(text != NULL ? text : "");
    struct weft_str block = {0};
    CHECK_INT(setenv("LC_ALL", "C.UTF-8", 1), 0); /* for the drawing */
    while (next_block(&rest, "console", &block)) {
        count++;
        check_command(block);
    }
    CHECK_INT(unsetenv("LC_ALL"), 0);
    CHECK(count >= 6);
}

WEFT_SUITE(docs_sources, {"examples are read", examples_are_read},
           {"commands print what stands there", commands_print_what_stands_there})
