/* SPDX-License-Identifier: Apache-2.0 */
/* The XML events: order and lines, what a cut text is, what is refused, caps. */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/base/mem.h"
#include "pkg/xml/xml.h"
#include "tests/unit/unit.h"

/* Writes down the events: "1<a k=v>", "(text)", "2</a>". */
static int note_start(void *context, const struct weft_xml *x, const char *name,
                      const char *const *attrs, struct weft_error *err)
{
    struct weft_buf *out = context;
    (void)err;
    (void)weft_buf_printf(out, "%u<%s", weft_xml_line(x), name);
    for (; attrs[0] != NULL; attrs += 2) {
        (void)weft_buf_printf(out, " %s=%s", attrs[0], attrs[1]);
    }
    return weft_buf_putc(out, '>');
}

static int note_end(void *context, const struct weft_xml *x, const char *name,
                    struct weft_error *err)
{
    (void)err;
    return weft_buf_printf(context, "%u</%s>", weft_xml_line(x), name);
}

static int note_text(void *context, const struct weft_xml *x, struct weft_str text,
                     struct weft_error *err)
{
    const struct weft_str s = weft_str_trim(text);
    (void)x, (void)err;
    return s.len > 0 ? weft_buf_printf(context, "(%.*s)", WEFT_STR_ARG(s)) : 0;
}

static const struct weft_xml_handler noting = {note_start, note_end, note_text};

static int parse(const char *text, struct weft_buf *out, struct weft_error *err)
{
    weft_buf_init(out, 1U << 20);
    *err = (struct weft_error){0};
    return weft_xml_parse(text, strlen(text), "f", &noting, out, err);
}

static void events_and_lines(void)
{
    weft_auto(weft_buf_done) struct weft_buf out;
    struct weft_error err;
    CHECK_INT(parse("<?xml version=\"1.0\"?>\n<!DOCTYPE a SYSTEM \"x.dtd\">\n<!-- <no/> -->\n"
                    "<a k=\"v&amp;w\">\n<b/>t&lt;</a>\n",
                    &out, &err),
              0);
    CHECK_STR(weft_buf_text(&out), "4<a k=v&w>5<b>5</b>(t)(<)5</a>");
}

static void a_cut_text(void)
{
    static const struct {
        const char *text, *events;
    } cases[] = {
        {"<a>\n<b/>\n", "1<a>2<b>2</b>"},
        {"<a><b k=\"v", "1<a>"},
        {"<a><b></", "1<a>1<b>"},
        {"<a><!-- x", "1<a>"},
        {"<!-- x", ""},
        {"<a>\xc3", "1<a>"},
        {"", ""},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
        weft_auto(weft_buf_done) struct weft_buf out;
        struct weft_error err;
        CHECK_INT(parse(cases[i].text, &out, &err), 1);
        CHECK_STR(weft_buf_text(&out), cases[i].events);
    }
}

static void refused(void)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"<a>\n</b>", "f:2: not well-formed XML: mismatched tag"},
        {"<a k=\"1\" k=\"2\"/>", "f:1: not well-formed XML: duplicate attribute"},
        {"<a/>\n<b/>", "f:2: not well-formed XML: junk after document element"},
        {"plain", "f:1: not well-formed XML"},
        {"<!DOCTYPE a [\n<!ENTITY e \"x\">]><a>&e;</a>", "f:2: entity 'e': entities are not read"},
        {"<!DOCTYPE a [<!ENTITY % p SYSTEM \"/etc/passwd\">]><a/>", "entity 'p'"},
        {"<!DOCTYPE a SYSTEM \"a.dtd\">\n<a>&outer;</a>", "f:2: entity 'outer'"},
        {"<a>&nothere;</a>", "f:1: not well-formed XML: undefined entity"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
        weft_auto(weft_buf_done) struct weft_buf out;
        struct weft_error err;
        CHECK_INT(parse(cases[i].text, &out, &err), -EINVAL);
        CHECK_CONTAINS(err.message, cases[i].message);
    }
}

static void nesting_is_capped(void)
{
    char text[(WEFT_XML_DEPTH_MAX + 1) * 3 + 1] = "";
    weft_auto(weft_buf_done) struct weft_buf out;
    struct weft_error err;
    for (int i = 0; i < WEFT_XML_DEPTH_MAX; i++) {
        memcpy(text + (size_t)i * 3, "<a>", 3);
    }
    CHECK_INT(parse(text, &out, &err), 1);
    weft_buf_done(&out);
    memcpy(text + (size_t)WEFT_XML_DEPTH_MAX * 3, "<a>", 3);
    CHECK_INT(parse(text, &out, &err), -EFBIG);
    CHECK_CONTAINS(err.message, "f:1: more than 128 elements inside one another");
}

static int count_start(void *context, const struct weft_xml *x, const char *name,
                       const char *const *attrs, struct weft_error *err)
{
    uint64_t value = 7;
    (void)name;
    const int rc = weft_xml_attr_u64(x, attrs, "n", 100, &value, err);
    *(int64_t *)context = rc == 1 ? (int64_t)value : -1;
    return rc < 0 ? rc : 0;
}

static int ignore_end(void *context, const struct weft_xml *x, const char *name,
                      struct weft_error *err)
{
    (void)context, (void)x, (void)name, (void)err;
    return 0;
}

static void whole_numbers(void)
{
    static const struct {
        const char *text, *message;
        int64_t value;
    } cases[] = {
        {"<a n=\"100\"/>", "", 100},
        {"<a n=\"0x1f\"/>", "", 31},
        {"<a n=\"\"/>", "", -1},
        {"<a/>", "", -1},
        {"<a n=\"101\"/>", "f:1: n=\"101\" is not a whole number from 0 to 100", -1},
        {"<a n=\"0x65\"/>", "n=\"0x65\" is not", -1},
        {"<a n=\"-1\"/>", "n=\"-1\" is not", -1},
        {"<a n=\"5 \"/>", "is not", -1},
    };
    static const struct weft_xml_handler handler = {count_start, ignore_end, NULL};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
        struct weft_error err = {0};
        int64_t value = 0;
        const int rc =
            weft_xml_parse(cases[i].text, strlen(cases[i].text), "f", &handler, &value, &err);
        CHECK_INT(rc, cases[i].message[0] == '\0' ? 0 : -EINVAL);
        CHECK_CONTAINS(err.message, cases[i].message);
        CHECK_INT(value, cases[i].value);
    }
}

static void out_of_memory(void)
{
    static const char text[] = "<!DOCTYPE a SYSTEM \"x\"><a k=\"v\"><b>some text</b></a>";
    int rc = -ENOMEM;
    for (uint64_t nth = 1; rc == -ENOMEM; nth++) {
        weft_auto(weft_buf_done) struct weft_buf out;
        struct weft_error err;
        (void)weft_mem_fail_after(nth);
        rc = parse(text, &out, &err);
        (void)weft_mem_fail_after(0);
    }
    CHECK_INT(rc, 0);
}

WEFT_SUITE(xml, {"events and lines", events_and_lines}, {"a cut text", a_cut_text},
           {"refused", refused}, {"nesting is capped", nesting_is_capped},
           {"whole numbers", whole_numbers}, {"out of memory", out_of_memory})
