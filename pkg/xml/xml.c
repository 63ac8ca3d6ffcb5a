/* SPDX-License-Identifier: Apache-2.0 */
/* The wrapper over expat: its events with a cap on all that grows, and the difference between a
 * text that is wrong and one that only ends too early. */
#include "pkg/xml/xml.h"

#include <errno.h>
#include <expat.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/mem.h"

struct weft_xml {
    XML_Parser parser;
    const char *file;
    const struct weft_xml_handler *handler;
    void *context;
    struct weft_error *err;
    size_t depth, elements;
    int status; /* of the callback that ended the parse, else 0 */
};

unsigned weft_xml_line(const struct weft_xml *x)
{
    return (unsigned)XML_GetCurrentLineNumber(x->parser);
}

int weft_xml_error(const struct weft_xml *x, struct weft_error *err, const char *format, ...)
{
    char message[WEFT_ERROR_MESSAGE_MAX];
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(message, sizeof(message), format, ap);
    va_end(ap);
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s:%u: %s", x->file, weft_xml_line(x),
                        message);
}

/* Ends the parse at the first failure of a callback. */
static void settle(struct weft_xml *x, int rc)
{
    if (rc < 0 && x->status == 0) {
        x->status = rc;
        (void)XML_StopParser(x->parser, XML_FALSE);
    }
}

static int over_cap(const struct weft_xml *x, const char *what, int max)
{
    (void)weft_xml_error(x, x->err, "more than %d %s", max, what);
    if (x->err != NULL) {
        x->err->code = -EFBIG;
    }
    return -EFBIG;
}

static void on_start(void *context, const XML_Char *name, const XML_Char **attrs)
{
    struct weft_xml *x = context;
    if (x->status != 0) {
        return;
    }
    if (++x->depth > WEFT_XML_DEPTH_MAX) {
        settle(x, over_cap(x, "elements inside one another", WEFT_XML_DEPTH_MAX));
        return;
    }
    if (++x->elements > WEFT_XML_ELEMENTS_MAX) {
        settle(x, over_cap(x, "elements", WEFT_XML_ELEMENTS_MAX));
        return;
    }
    settle(x, x->handler->start(x->context, x, name, (const char *const *)attrs, x->err));
}

static void on_end(void *context, const XML_Char *name)
{
    struct weft_xml *x = context;
    if (x->status == 0) {
        x->depth--;
        settle(x, x->handler->end(x->context, x, name, x->err));
    }
}

static void on_text(void *context, const XML_Char *text, int len)
{
    struct weft_xml *x = context;
    if (x->status == 0) {
        const struct weft_str s = {text, (size_t)len};
        settle(x, x->handler->text(x->context, x, s, x->err));
    }
}

static void refuse_entity(struct weft_xml *x, const XML_Char *name)
{
    if (x->status == 0) {
        settle(x, weft_xml_error(x, x->err, "entity '%.40s': entities are not read", name));
    }
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are expat's */
static void on_entity(void *context, const XML_Char *name, int is_parameter, const XML_Char *value,
                      int value_length, const XML_Char *base, const XML_Char *system_id,
                      const XML_Char *public_id, const XML_Char *notation)
{
    (void)is_parameter, (void)value, (void)value_length, (void)base;
    (void)system_id, (void)public_id, (void)notation;
    refuse_entity(context, name);
}

/* A document type that is not read could declare it. */
static void on_skipped(void *context, const XML_Char *name, int is_parameter)
{
    (void)is_parameter;
    refuse_entity(context, name);
}

static void *resize(void *p, size_t size)
{
    return weft_reallocarray(p, size, 1);
}

static int failed(const struct weft_xml *x)
{
    if (x->status != 0) {
        return x->status;
    }
    const enum XML_Error code = XML_GetErrorCode(x->parser);
    if (code == XML_ERROR_NO_MEMORY) {
        return weft_err_nomem(x->err);
    }
    return weft_xml_error(x, x->err, "not well-formed XML: %s", XML_ErrorString(code));
}

static void listen(struct weft_xml *x)
{
    XML_SetUserData(x->parser, x);
    XML_SetElementHandler(x->parser, on_start, on_end);
    if (x->handler->text != NULL) {
        XML_SetCharacterDataHandler(x->parser, on_text);
    }
    XML_SetEntityDeclHandler(x->parser, on_entity);
    XML_SetSkippedEntityHandler(x->parser, on_skipped);
}

/* Is that the only thing wrong: that the text ends? */
static bool ends_early(const struct weft_xml *x)
{
    const enum XML_Error code = XML_GetErrorCode(x->parser);
    return x->status == 0 &&
           (code == XML_ERROR_NO_ELEMENTS || code == XML_ERROR_UNCLOSED_TOKEN ||
            code == XML_ERROR_PARTIAL_CHAR || code == XML_ERROR_UNCLOSED_CDATA_SECTION);
}

int weft_xml_parse(const char *text, size_t len, const char *file,
                   const struct weft_xml_handler *handler, void *context, struct weft_error *err)
{
    static const XML_Memory_Handling_Suite memory = {weft_malloc, resize, weft_free};
    if (len > INT_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s: larger than %d bytes", file,
                            INT_MAX);
    }
    struct weft_xml x = {.file = file, .handler = handler, .context = context, .err = err};
    x.parser = XML_ParserCreate_MM(NULL, &memory, NULL);
    if (x.parser == NULL) {
        return weft_err_nomem(err);
    }
    listen(&x);
    /* not the last piece: what is wrong is an error, what is not finished is not */
    int rc = XML_Parse(x.parser, text, (int)len, 0) == XML_STATUS_OK ? 0 : failed(&x);
    if (rc == 0 && XML_Parse(x.parser, "", 0, 1) != XML_STATUS_OK) {
        rc = ends_early(&x) ? 1 : failed(&x);
    }
    XML_ParserFree(x.parser);
    return rc;
}

const char *weft_xml_attr(const char *const *attrs, const char *name)
{
    for (; attrs[0] != NULL; attrs += 2) {
        if (strcmp(attrs[0], name) == 0) {
            return attrs[1];
        }
    }
    return NULL;
}

int weft_xml_attr_u64(const struct weft_xml *x, const char *const *attrs, const char *name,
                      uint64_t max, uint64_t *ret, struct weft_error *err)
{
    const char *text = weft_xml_attr(attrs, name);
    if (text == NULL || text[0] == '\0') {
        return 0;
    }
    const struct weft_str s = weft_str(text);
    uint64_t value = 0;
    const int rc =
        weft_str_starts(s, "0x") ? weft_parse_hex64(s, &value) : weft_parse_u64(s, max, &value);
    if (rc < 0 || value > max) {
        return weft_xml_error(x, err, "%s=\"%.40s\" is not a whole number from 0 to %" PRIu64, name,
                              text, max);
    }
    *ret = value;
    return 1;
}
