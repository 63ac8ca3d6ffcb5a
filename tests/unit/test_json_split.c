/* SPDX-License-Identifier: Apache-2.0 */
/* The stream splitter: what it hands out does not depend on how the bytes arrive, and what is no
 * list or no stream of objects is refused with its place. */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/json/split.h"
#include "tests/unit/unit.h"

/* What came out, one piece after the other: "I<text>\n" and "M<text>\n". */
struct seen {
    struct weft_buf out;
    int fail_with; /* the sink's answer to the first item */
};

static int note(struct seen *seen, char kind, const char *text, size_t len)
{
    (void)weft_buf_putc(&seen->out, kind);
    (void)weft_buf_append(&seen->out, text, len);
    return weft_buf_putc(&seen->out, '\n');
}

static int on_item(void *data, const char *text, size_t len, struct weft_error *err)
{
    struct seen *seen = data;
    (void)note(seen, 'I', text, len);
    return seen->fail_with < 0
               ? weft_err_set(err, seen->fail_with, WEFT_ERR_JSON, "the sink has had enough")
               : 0;
}

static int on_metadata(void *data, const char *text, size_t len, struct weft_error *err)
{
    (void)err;
    return note(data, 'M', text, len);
}

/* Feeds text in pieces of chunk bytes and ends the stream; the first error is the result. */
static int split_text(enum weft_json_split_mode mode, const char *text, size_t item_max,
                      size_t chunk, struct seen *seen, struct weft_error *err)
{
    weft_buf_init(&seen->out, 1U << 20);
    const struct weft_json_split_sink sink = {on_item, on_metadata, seen};
    weft_auto(weft_json_split_free) struct weft_json_split *split =
        weft_json_split_new(mode, item_max, &sink);
    if (split == NULL) {
        return -ENOMEM;
    }
    const size_t len = strlen(text);
    for (size_t at = 0; at < len; at += chunk) {
        const size_t n = len - at < chunk ? len - at : chunk;
        /* a heap copy of exact size, so that a sanitizer sees a read past the piece */
        weft_autofree char *piece = weft_memdup(text + at, n);
        if (piece == NULL) {
            return -ENOMEM;
        }
        const int rc = weft_json_split_feed(split, piece, n, err);
        if (rc < 0) {
            CHECK_INT(weft_json_split_feed(split, "", 0, NULL), rc); /* errors stick */
            CHECK_INT(weft_json_split_end(split, NULL), rc);
            return rc;
        }
    }
    return weft_json_split_end(split, err);
}

static void check_split(enum weft_json_split_mode mode, const char *text, const char *expected)
{
    for (size_t chunk = 1; chunk <= strlen(text) + 1; chunk++) {
        struct seen seen = {0};
        struct weft_error err = {0};
        CHECK_INT(split_text(mode, text, 4096, chunk, &seen, &err), 0);
        CHECK_STR(weft_buf_text(&seen.out), expected);
        weft_buf_done(&seen.out);
    }
}

static void check_refused(enum weft_json_split_mode mode, const char *text, int code,
                          const char *message)
{
    for (size_t chunk = 1; chunk <= strlen(text) + 1; chunk += 3) {
        struct seen seen = {0};
        struct weft_error err = {0};
        if (!CHECK_INT(split_text(mode, text, 64, chunk, &seen, &err), code)) {
            (void)fprintf(stderr, "  in %s\n", text);
        }
        CHECK_CONTAINS(err.message, message);
        weft_buf_done(&seen.out);
    }
}

static void test_list(void)
{
    check_split(WEFT_JSON_SPLIT_LIST,
                "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"x\"},"
                "\"items\":[{\"a\":1},{\"b\":[{}]}]}\n",
                "M{\"resourceVersion\":\"7\",\"continue\":\"x\"}\nI{\"a\":1}\nI{\"b\":[{}]}\n");
    /* metadata after items, blanks everywhere, other members of each type */
    check_split(WEFT_JSON_SPLIT_LIST,
                " { \"n\" : -1.5e3 , \"t\":true,\"z\" :null,\"o\":{\"items\":[{\"no\":1}]},"
                "\"l\":[[\"]\"],{}],\r\n\"items\" : [ {\"x\":2} , { } ] ,\t\"metadata\" : { } }  ",
                "I{\"x\":2}\nI{ }\nM{ }\n");
    check_split(WEFT_JSON_SPLIT_LIST, "{\"items\":[],\"metadata\":{}}", "M{}\n");
    check_split(WEFT_JSON_SPLIT_LIST, "{\"items\":null}", "");
    check_split(WEFT_JSON_SPLIT_LIST, "{}", "");
}

static void test_strings(void)
{
    /* brackets, quotes and escapes inside strings, in items and in what is passed over */
    check_split(WEFT_JSON_SPLIT_LIST,
                "{\"s\":\"}],{\\\"items\\\":[\\\\\",\"items\":[{\"k\\\"}\":\"]}\\\\\"},"
                "{\"u\":\"\\u007b\\\\\\\"\"}],\"e\\\"{\":\"\"}",
                "I{\"k\\\"}\":\"]}\\\\\"}\nI{\"u\":\"\\u007b\\\\\\\"\"}\n");
    /* items keys further down belong to their object */
    check_split(WEFT_JSON_SPLIT_LIST,
                "{\"metadata\":{\"items\":[{\"m\":1}]},\"items\":[{\"items\":[{\"i\":1}],"
                "\"metadata\":{}}]}",
                "M{\"items\":[{\"m\":1}]}\nI{\"items\":[{\"i\":1}],\"metadata\":{}}\n");
}

static void test_lines(void)
{
    check_split(WEFT_JSON_SPLIT_LINES,
                "{\"type\":\"ADDED\",\"object\":{\"s\":\"}\\n{\"}}\n{\"type\":\"BOOKMARK\"}\n",
                "I{\"type\":\"ADDED\",\"object\":{\"s\":\"}\\n{\"}}\nI{\"type\":\"BOOKMARK\"}\n");
    check_split(WEFT_JSON_SPLIT_LINES, "{}{}\n\n {}", "I{}\nI{}\nI{}\n");
    check_split(WEFT_JSON_SPLIT_LINES, "", "");
}

static void test_refused(void)
{
    const enum weft_json_split_mode list = WEFT_JSON_SPLIT_LIST;
    check_refused(list, "", -EBADMSG, "cut short");
    check_refused(list, "[]", -EBADMSG, "byte 0: an object was expected");
    check_refused(list, "{\"items\":{}}", -EBADMSG, "byte 9: \"items\" is no array");
    check_refused(list, "{\"items\":nil}", -EBADMSG, "\"items\" is no array");
    check_refused(list, "{\"items\":[1]}", -EBADMSG, "byte 10: an object was expected");
    check_refused(list, "{\"items\":[{}{}]}", -EBADMSG, "byte 12: ',' or ']'");
    check_refused(list, "{\"items\":[{},]}", -EBADMSG, "byte 13: an object was expected");
    check_refused(list, "{\"items\":[{}],}", -EBADMSG, "byte 14: a key was expected");
    check_refused(list, "{\"items\":[],\"items\":[]}", -EBADMSG, "a second \"items\"");
    check_refused(list, "{\"metadata\":[]}", -EBADMSG, "\"metadata\" is no object");
    check_refused(list, "{\"metadata\":{},\"metadata\":{}}", -EBADMSG, "a second \"metadata\"");
    check_refused(list, "{\"a\":}", -EBADMSG, "a value was expected");
    check_refused(list, "{\"a\":+1}", -EBADMSG, "a value was expected");
    check_refused(list, "{\"a\" 1}", -EBADMSG, "byte 5: ':' was expected");
    check_refused(list, "{\"a\":1 2}", -EBADMSG, "byte 7: ',' or '}'");
    check_refused(list, "{\"a\":[1}", -EBADMSG, "brackets that do not match");
    check_refused(list, "{\"items\":[{\"a\":[}]}", -EBADMSG, "brackets that do not match");
    check_refused(list, "{} {}", -EBADMSG, "byte 3: text after the list");
    check_refused(list, "{\"items\":[{\"a\":\"b\"}", -EBADMSG, "cut short");
    check_refused(list, "{\"items\":[{\"a\":\"b\\", -EBADMSG, "cut short");
    check_refused(list, "{\"items\":[]", -EBADMSG, "cut short");
    check_refused(WEFT_JSON_SPLIT_LINES, "{}\n{\"type\":", -EBADMSG, "cut short");
    check_refused(WEFT_JSON_SPLIT_LINES, "{}\n<html>", -EBADMSG, "byte 3: an object was expected");
    check_refused(WEFT_JSON_SPLIT_LINES, "{}]", -EBADMSG, "byte 2: an object was expected");
}

static void test_caps(void)
{
    /* check_refused has a cap of 64 bytes: {"a":"…"} of 64 passes, of 65 does not */
    for (int digits = 56; digits <= 57; digits++) {
        char text[128];
        (void)snprintf(text, sizeof(text), "{\"items\":[{\"a\":\"%0*d\"}]}", digits, 0);
        for (size_t chunk = 1; chunk < sizeof(text); chunk++) {
            struct seen seen = {0};
            struct weft_error err = {0};
            CHECK_INT(split_text(WEFT_JSON_SPLIT_LIST, text, 64, chunk, &seen, &err),
                      digits == 56 ? 0 : -EFBIG);
            CHECK_CONTAINS(err.message, digits == 56 ? "" : "over 64 bytes");
            weft_buf_done(&seen.out);
        }
    }
    /* what is passed over may be of any size */
    char wide[512];
    (void)snprintf(wide, sizeof(wide), "{\"s\":\"%0200d\",\"o\":{\"a\":\"%0200d\"}}", 0, 0);
    check_split(WEFT_JSON_SPLIT_LIST, wide, "");
    (void)snprintf(wide, sizeof(wide), "{\"%0*d\":1}", WEFT_JSON_SPLIT_KEY_MAX + 1, 0);
    check_refused(WEFT_JSON_SPLIT_LIST, wide, -EBADMSG, "a key or number is too long");
}

static void test_depth(void)
{
    const int max = WEFT_JSON_SPLIT_DEPTH_MAX;
    for (int depth = max; depth <= max + 1; depth++) {
        struct weft_buf text;
        weft_buf_init(&text, 1024);
        (void)weft_buf_puts(&text, "{\"a\":");
        for (int i = 1; i < depth; i++) {
            (void)weft_buf_putc(&text, '[');
        }
        for (int i = 1; i < depth; i++) {
            (void)weft_buf_putc(&text, ']');
        }
        (void)weft_buf_putc(&text, '}');
        struct seen seen = {0};
        struct weft_error err = {0};
        CHECK_INT(split_text(WEFT_JSON_SPLIT_LINES, weft_buf_text(&text), 1024, 7, &seen, &err),
                  depth == max ? 0 : -E2BIG);
        CHECK_CONTAINS(err.message, depth == max ? "" : "deeper than 64 levels");
        weft_buf_done(&seen.out);
        weft_buf_done(&text);
    }
}

static void test_sink_and_memory(void)
{
    struct seen seen = {.fail_with = -ECANCELED};
    struct weft_error err = {0};
    CHECK_INT(split_text(WEFT_JSON_SPLIT_LINES, "{\"a\":1}{\"b\":2}", 64, 3, &seen, &err),
              -ECANCELED);
    CHECK_STR(weft_buf_text(&seen.out), "I{\"a\":1}\n");
    CHECK_STR(err.message, "the sink has had enough");
    weft_buf_done(&seen.out);

    /* each allocation that fails is an error, none is a crash or a leak */
    int failures = 0;
    for (uint64_t nth = 1; nth < 20; nth++) {
        struct seen quiet = {0};
        (void)weft_mem_fail_after(nth);
        const int rc =
            split_text(WEFT_JSON_SPLIT_LIST, "{\"items\":[{\"a\":1}]}", 64, 2, &quiet, &err);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || rc == -ENOMEM);
        failures += rc == -ENOMEM;
        weft_buf_done(&quiet.out);
    }
    CHECK(failures > 2);
}

WEFT_SUITE(json_split, {"list", test_list}, {"strings", test_strings}, {"lines", test_lines},
           {"refused", test_refused}, {"caps", test_caps}, {"depth", test_depth},
           {"sink_and_memory", test_sink_and_memory})
