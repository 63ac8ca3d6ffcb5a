/* SPDX-License-Identifier: Apache-2.0 */
/* pkg/yaml: the safe part of YAML, in and out. */
#include "pkg/yaml/yaml.h"

#include <errno.h>
#include <time.h>

#include "pkg/base/buf.h"
#include "pkg/json/json.h"
#include "tests/unit/unit.h"

static int parse(const char *text, struct weft_json **ret_root, struct weft_error *err)
{
    return weft_yaml_parse(text, strlen(text), "c.yaml", ret_root, err);
}

static void test_types(void)
{
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    CHECK_INT(parse("a: 12\nb: yes\nc: 0777\nd: 1:20\ne: ~\nf: true\ng: \"5\"\nh: 1.5\n"
                    "i: [x, {y: z}]\nj:\nk: '~'\n",
                    &root, NULL),
              0);
    CHECK_INT(weft_json_int(weft_json_get(root, "a"), 0), 12);
    CHECK_STR(weft_json_string(weft_json_get(root, "b")), "yes");
    CHECK_STR(weft_json_string(weft_json_get(root, "c")), "0777");
    CHECK_STR(weft_json_string(weft_json_get(root, "d")), "1:20");
    CHECK_INT(weft_json_type(weft_json_get(root, "e")), WEFT_JSON_NULL);
    CHECK(weft_json_bool(weft_json_get(root, "f"), false));
    CHECK_STR(weft_json_string(weft_json_get(root, "g")), "5");
    CHECK_INT(weft_json_type(weft_json_get(root, "h")), WEFT_JSON_DOUBLE);
    CHECK_STR(weft_json_string(weft_json_get(weft_json_at(weft_json_get(root, "i"), 1), "y")), "z");
    CHECK_INT(weft_json_type(weft_json_get(root, "j")), WEFT_JSON_NULL);
    CHECK_STR(weft_json_string(weft_json_get(root, "k")), "~");
    CHECK_INT(weft_json_line(weft_json_get(root, "i")), 9);
}

static void test_documents(void)
{
    weft_auto(weft_json_free) struct weft_json *empty = NULL;
    CHECK_INT(parse("# nothing\n", &empty, NULL), 0);
    CHECK_INT(weft_json_type(empty), WEFT_JSON_OBJECT);
    CHECK_INT(weft_json_count(empty), 0);
    struct weft_json *root = NULL;
    struct weft_error err = {0};
    CHECK_INT(parse("a: 1\n---\nb: 2\n", &root, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "one document is expected");
    weft_auto(weft_json_free) struct weft_json *all = NULL;
    const char *two = "a: 1\n---\nb: 2\n";
    CHECK_INT(weft_yaml_parse_all(two, strlen(two), "c.yaml", &all, NULL), 0);
    CHECK_INT(weft_json_count(all), 2);
    CHECK_INT(weft_json_int(weft_json_get(weft_json_at(all, 1), "b"), 0), 2);
}

static void check_refused(const char *text, const char *part)
{
    struct weft_json *root = NULL;
    struct weft_error err = {0};
    CHECK_INT(parse(text, &root, &err), -EINVAL);
    CHECK_CONTAINS(err.message, part);
    weft_json_free(root);
}

static void test_refused(void)
{
    check_refused("a: 1\na: 2\n", "c.yaml:2: the field a is there twice");
    check_refused("a: &x [*x]\n", "anchors");
    check_refused("a: !!int 5\n", "tags");
    check_refused("a: {<<: 1}\n", "merge keys");
    check_refused("a: \"x\\0y\"\n", "NUL");
    check_refused("a: [1\nb: 2\n", "c.yaml:2:");
    check_refused("? [a]\n: b\n", "plain text");
    char deep[200];
    memset(deep, '[', sizeof(deep) - 1);
    deep[sizeof(deep) - 1] = '\0';
    check_refused(deep, "nested too deeply");
}

/* As many keys as a file of the largest size may have are read in the time of a file that is read,
 * not in that of each key against each: the plugin answers the kubelet on the same thread. */
static void test_many_keys(void)
{
    enum { KEYS = 100000 };
    weft_auto(weft_buf_done) struct weft_buf text;
    weft_buf_init(&text, 1U << 21);
    for (int i = 0; i < KEYS; i++) {
        (void)weft_buf_printf(&text, "k%d: 1\n", i);
    }
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    const clock_t start = clock();
    CHECK_INT(parse(weft_buf_text(&text), &root, NULL), 0);
    CHECK((clock() - start) / CLOCKS_PER_SEC < 10); /* a second, with sanitizers a few */
    CHECK_INT(weft_json_count(root), KEYS);
    (void)weft_buf_puts(&text, "k500: 1\n");
    check_refused(weft_buf_text(&text), "c.yaml:100001: the field k500 is there twice");
}

static void test_write_keeps_types(void)
{
    /* strings that YAML readers would take for other types, and a key that needs quotes */
    const char *text =
        "{\"a\":\"no\",\"b\":\"0777\",\"c\":\"~\",\"d\":12,\"e\":[true,\"1e3\",{\"f\":\"x: y\"}],"
        "\"yes\":\"\",\"weft.dev/tier-1\":\"v\",\"g\":[],\"h\":{}}";
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    CHECK_INT(weft_json_parse(text, strlen(text), "t", &root, NULL), 0);
    weft_auto(weft_buf_done) struct weft_buf yaml;
    weft_buf_init(&yaml, 4096);
    weft_yaml_write(root, &yaml);
    CHECK_INT(yaml.status, 0);
    CHECK_STR(weft_buf_text(&yaml),
              "a: \"no\"\nb: \"0777\"\nc: \"~\"\nd: 12\ne:\n- true\n- \"1e3\"\n"
              "- f: \"x: y\"\n\"yes\": \"\"\nweft.dev/tier-1: \"v\"\ng: []\n"
              "h: {}\n");
    weft_auto(weft_json_free) struct weft_json *again = NULL;
    CHECK_INT(parse(weft_buf_text(&yaml), &again, NULL), 0);
    weft_auto(weft_buf_done) struct weft_buf json;
    weft_buf_init(&json, 4096);
    struct weft_json_writer w;
    weft_json_writer_init(&w, &json, 0);
    weft_json_put_node(&w, again);
    CHECK_STR(weft_buf_text(&json), text);
}

static void test_out_of_memory(void)
{
    for (uint64_t nth = 1;; nth++) {
        struct weft_json *root = NULL;
        (void)weft_mem_fail_after(nth);
        const int rc = parse("a: [1, {b: c}]\nd: true\n"
                             "e: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1, k: 1,"
                             " l: 1, m: 1, n: 1, o: 1, p: 1, q: 1, r: 1}\n",
                             &root, NULL);
        (void)weft_mem_fail_after(0);
        weft_json_free(root);
        if (rc == 0) {
            CHECK(nth > 5);
            break;
        }
        CHECK_INT(rc, -ENOMEM);
    }
}

WEFT_SUITE(yaml, {"types", test_types}, {"documents", test_documents}, {"refused", test_refused},
           {"many keys", test_many_keys}, {"write keeps types", test_write_keeps_types},
           {"out of memory", test_out_of_memory})
