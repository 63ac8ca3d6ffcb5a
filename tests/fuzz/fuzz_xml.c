/* SPDX-License-Identifier: Apache-2.0 */
/* The XML events: every start has its end, in order and within the caps, whatever the bytes; what
 * is refused is refused with a reason. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/xml/xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    size_t depth;
    unsigned line;
};

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static int on_start(void *context, const struct weft_xml *xml, const char *name,
                    const char *const *attrs, struct weft_error *err)
{
    struct seen *seen = context;
    uint64_t value = 0;
    require(name[0] != '\0' && weft_xml_line(xml) >= seen->line);
    seen->line = weft_xml_line(xml);
    require(++seen->depth <= WEFT_XML_DEPTH_MAX);
    const int rc = weft_xml_attr_u64(xml, attrs, "n", 1000, &value, err);
    require(value <= 1000);
    return rc < 0 ? rc : 0;
}

static int on_end(void *context, const struct weft_xml *xml, const char *name,
                  struct weft_error *err)
{
    struct seen *seen = context;
    (void)xml, (void)name, (void)err;
    require(seen->depth-- > 0);
    return 0;
}

static int on_text(void *context, const struct weft_xml *xml, struct weft_str text,
                   struct weft_error *err)
{
    (void)xml, (void)err;
    require(((struct seen *)context)->depth > 0 && text.len > 0);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct weft_xml_handler handler = {on_start, on_end, on_text};
    struct seen seen = {0};
    struct weft_error err = {0};
    const int rc = weft_xml_parse((const char *)data, size, "fuzz", &handler, &seen, &err);
    require((rc < 0) == (err.message[0] != '\0'));
    require(rc != 0 || seen.depth == 0);
    return 0;
}
