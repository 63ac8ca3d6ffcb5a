/* SPDX-License-Identifier: Apache-2.0 */
/* pkg/json: documents, typed getters, places in errors, the writer. */
#include "pkg/json/json.h"

#include <errno.h>

#include "pkg/base/buf.h"
#include "tests/unit/unit.h"

static int parse(const char *text, struct weft_json **ret_root, struct weft_error *err)
{
    return weft_json_parse(text, strlen(text), "f.json", ret_root, err);
}

static void test_values(void)
{
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    CHECK_INT(parse("{\"a\": [1, -2.5e3, \"x\\n\\u00e9\", true, null, {}],\n"
                    " \"big\": 9007199254740993, \"s\": \"\"}",
                    &root, NULL),
              0);
    const struct weft_json *a = weft_json_get(root, "a");
    CHECK_INT(weft_json_count(a), 6);
    CHECK_INT(weft_json_int(weft_json_at(a, 0), 0), 1);
    CHECK_INT(weft_json_type(weft_json_at(a, 1)), WEFT_JSON_DOUBLE);
    CHECK(weft_json_double(weft_json_at(a, 1), 0) == -2500.0);
    CHECK_STR(weft_json_string(weft_json_at(a, 2)), "x\n\xc3\xa9");
    CHECK(weft_json_bool(weft_json_at(a, 3), false));
    CHECK_INT(weft_json_type(weft_json_at(a, 4)), WEFT_JSON_NULL);
    CHECK_INT(weft_json_type(weft_json_at(a, 5)), WEFT_JSON_OBJECT);
    /* 2^53 + 1: a double would say ...992 */
    CHECK_INT(weft_json_int(weft_json_get(root, "big"), 0), INT64_C(9007199254740993));
    CHECK_INT(weft_json_line(weft_json_get(root, "big")), 2);
    CHECK_STR(weft_json_string(weft_json_get(root, "s")), "");
    CHECK(weft_json_get(weft_json_get(root, "no"), "deeper") == NULL);
}

static void test_lines_follow_values(void)
{
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    CHECK_INT(parse("\n[\n  {\"k,]\": \"a\\\"b\",\n\n  \"n\"\n:\n12},\n false]\n", &root, NULL), 0);
    const struct weft_json *object = weft_json_at(root, 0);
    CHECK_INT(weft_json_line(object), 3);
    CHECK_INT(weft_json_line(weft_json_get(object, "k,]")), 3);
    CHECK_INT(weft_json_line(weft_json_get(object, "n")), 7);
    CHECK_INT(weft_json_int(weft_json_get(object, "n"), 0), 12);
    CHECK_INT(weft_json_line(weft_json_at(root, 1)), 8);
}

static void check_refused(const char *text, const char *part)
{
    struct weft_json *root = NULL;
    struct weft_error err = {0};
    CHECK_INT(parse(text, &root, &err), -EINVAL);
    CHECK(root == NULL);
    CHECK_CONTAINS(err.message, part);
    weft_json_free(root);
}

static void test_refused(void)
{
    check_refused("{\"a\":1,\n\"a\":2}", "f.json:2: a: the field is there twice");
    check_refused("{\"a\":\"x\\u0000y\"}", "NUL");
    check_refused("{\"a\":}", "f.json:1:");
    check_refused("{} x", "text after the document");
    check_refused("\"x\"", "neither an object nor a list");
    check_refused("", "f.json:1:");
    check_refused("[\"\xff\"]", "UTF-8");
    check_refused("{\"a\"\x14:1}", "control character");
    check_refused("[\"a\nb\"]", "f.json:1: a control character");
    char deep[2 * (WEFT_JSON_DEPTH_MAX + 1) + 1];
    memset(deep, '[', WEFT_JSON_DEPTH_MAX + 1);
    memset(deep + WEFT_JSON_DEPTH_MAX + 1, ']', WEFT_JSON_DEPTH_MAX + 1);
    deep[sizeof(deep) - 1] = '\0';
    check_refused(deep, "nested too deeply");
    deep[sizeof(deep) - 2] = '\0'; /* one level less, both sides: the deepest allowed */
    struct weft_json *root = NULL;
    CHECK_INT(parse(deep + 1, &root, NULL), 0);
    weft_json_free(root);
}

static void test_many_keys(void)
{
    weft_auto(weft_buf_done) struct weft_buf text;
    weft_buf_init(&text, 1U << 20);
    (void)weft_buf_putc(&text, '{');
    for (int i = 0; i < 1000; i++) {
        (void)weft_buf_printf(&text, "%s\"k%d\":%d", i > 0 ? "," : "", i, i);
    }
    (void)weft_buf_putc(&text, '}');
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    CHECK_INT(parse(weft_buf_text(&text), &root, NULL), 0);
    CHECK_INT(weft_json_int(weft_json_get(root, "k999"), 0), 999);
    text.data[text.len - 1] = ',';
    (void)weft_buf_puts(&text, "\"k500\":1}");
    check_refused(weft_buf_text(&text), "k500: the field is there twice");
}

static void test_getters(void)
{
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    CHECK_INT(
        parse("{\"o\":{\"n\":7,\"s\":\"t\",\"b\":true,\"l\":[{\"x\":1}],\"z\":null}}", &root, NULL),
        0);
    const struct weft_json *o = NULL;
    CHECK_INT(weft_json_get_object(root, "o", &o, NULL), 1);
    int64_t n = 0;
    const char *s = "";
    bool b = false;
    struct weft_error err = {0};
    CHECK_INT(weft_json_get_int(o, "n", 0, 10, &n, NULL), 1);
    CHECK_INT(n, 7);
    CHECK_INT(weft_json_get_string(o, "s", &s, NULL), 1);
    CHECK_STR(s, "t");
    CHECK_INT(weft_json_get_bool(o, "b", &b, NULL), 1);
    CHECK(b);
    CHECK_INT(weft_json_get_int(o, "z", 0, 10, &n, NULL), 0);
    CHECK_INT(weft_json_get_int(o, "gone", 0, 10, &n, NULL), 0);
    CHECK_INT(weft_json_get_int(o, "n", 0, 6, &n, &err), -EINVAL);
    CHECK_STR(err.message, "f.json:1: o.n: is 7, allowed is 0 to 6");
    CHECK_INT(weft_json_get_string(o, "n", &s, &err), -EINVAL);
    CHECK_STR(err.message, "f.json:1: o.n: is an integer (7), a string is expected");
    const char *const keys[] = {"n", "s", "b", "l", NULL};
    CHECK_INT(weft_json_only(o, keys, &err), -EINVAL);
    CHECK_STR(err.message, "f.json:1: o.z: unknown field, allowed are: n, s, b, l");
    const struct weft_json *x = weft_json_get(weft_json_at(weft_json_get(o, "l"), 0), "x");
    CHECK_INT(weft_json_error(x, &err, "odd"), -EINVAL);
    CHECK_STR(err.message, "f.json:1: o.l[0].x: odd");
}

static void test_writer(void)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 4096);
    struct weft_json_writer w;
    weft_json_writer_init(&w, &buf, 0);
    weft_json_open(&w, '{');
    weft_json_kv_string(&w, "s", "a\"\\\n\x01");
    weft_json_kv_int(&w, "n", -5);
    weft_json_put_key(&w, "l");
    weft_json_open(&w, '[');
    weft_json_put_null(&w);
    weft_json_put_bool(&w, true);
    weft_json_open(&w, '{');
    weft_json_close(&w, '}');
    weft_json_close(&w, ']');
    weft_json_close(&w, '}');
    CHECK_STR(weft_buf_text(&buf),
              "{\"s\":\"a\\\"\\\\\\u000a\\u0001\",\"n\":-5,\"l\":[null,true,{}]}");
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    CHECK_INT(parse(weft_buf_text(&buf), &root, NULL), 0);
    weft_buf_reset(&buf);
    weft_json_writer_init(&w, &buf, 2);
    weft_json_put_node(&w, root);
    CHECK_STR(weft_buf_text(&buf),
              "{\n  \"s\": \"a\\\"\\\\\\u000a\\u0001\",\n  \"n\": -5,\n  \"l\": [\n"
              "    null,\n    true,\n    {}\n  ]\n}");
}

static void test_out_of_memory(void)
{
    /* every allocation fails once: an error, no leak (the sanitizer build looks), no crash */
    for (uint64_t nth = 1;; nth++) {
        struct weft_json *root = NULL;
        (void)weft_mem_fail_after(nth);
        const int rc = parse("{\"a\":[1,{\"b\":\"c\"}],\"d\":true}", &root, NULL);
        (void)weft_mem_fail_after(0);
        weft_json_free(root);
        if (rc == 0) {
            CHECK(nth > 5);
            break;
        }
        CHECK_INT(rc, -ENOMEM);
    }
}

WEFT_SUITE(json, {"values", test_values}, {"lines follow values", test_lines_follow_values},
           {"refused", test_refused}, {"many keys", test_many_keys}, {"getters", test_getters},
           {"writer", test_writer}, {"out of memory", test_out_of_memory})
