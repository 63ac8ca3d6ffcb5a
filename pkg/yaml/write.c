/* SPDX-License-Identifier: Apache-2.0 */
/* The document tree as block-style YAML, through libyaml's emitter. */
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "pkg/base/buf.h"
#include "pkg/json/json-internal.h"
#include "pkg/yaml/yaml.h"

static int append(void *data, unsigned char *bytes, size_t len)
{
    return weft_buf_append(data, bytes, len) == 0;
}

/* libyaml's initializers want mutable text but only copy it. */
static yaml_char_t *as_yaml(const char *text)
{
    yaml_char_t *p;
    memcpy(&p, &text, sizeof(p));
    return p;
}

static bool emit(yaml_emitter_t *emitter, yaml_event_t *event, int initialized)
{
    return initialized != 0 && yaml_emitter_emit(emitter, event) != 0;
}

static bool emit_scalar(yaml_emitter_t *emitter, const char *text, yaml_scalar_style_t style)
{
    yaml_event_t event;
    return emit(emitter, &event,
                yaml_scalar_event_initialize(&event, NULL, NULL, as_yaml(text), (int)strlen(text),
                                             1, 1, style));
}

/* Keys stay plain where a plain word cannot be misread as another type. */
static yaml_scalar_style_t key_style(const char *key)
{
    static const char *const words[] = {"y",   "n",    "yes",   "no",  "on",
                                        "off", "true", "false", "null"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(words[i], key) == 0) {
            return YAML_DOUBLE_QUOTED_SCALAR_STYLE;
        }
    }
    const size_t safe = strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "0123456789-_./");
    const bool letter_first = (key[0] >= 'a' && key[0] <= 'z') || (key[0] >= 'A' && key[0] <= 'Z');
    return letter_first && key[safe] == '\0' ? YAML_PLAIN_SCALAR_STYLE
                                             : YAML_DOUBLE_QUOTED_SCALAR_STYLE;
}

static bool emit_node(yaml_emitter_t *emitter, const struct weft_json *node);

static bool emit_children(yaml_emitter_t *emitter, const struct weft_json *node)
{
    for (size_t i = 0; i < node->child_count; i++) {
        const struct weft_json *child = node->children[i];
        if (node->type == WEFT_JSON_OBJECT &&
            !emit_scalar(emitter, child->key, key_style(child->key))) {
            return false;
        }
        if (!emit_node(emitter, child)) { /* depth is capped where a document is made */
            return false;
        }
    }
    return true;
}

static bool emit_container(yaml_emitter_t *emitter, const struct weft_json *node)
{
    yaml_event_t event;
    const bool array = node->type == WEFT_JSON_ARRAY;
    const int started =
        array
            ? yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_SEQUENCE_STYLE)
            : yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE);
    if (!emit(emitter, &event, started) || !emit_children(emitter, node)) {
        return false;
    }
    return emit(emitter, &event,
                array ? yaml_sequence_end_event_initialize(&event)
                      : yaml_mapping_end_event_initialize(&event));
}

static bool emit_node(yaml_emitter_t *emitter, const struct weft_json *node)
{
    if (node->type == WEFT_JSON_ARRAY || node->type == WEFT_JSON_OBJECT) {
        return emit_container(emitter, node);
    }
    if (node->type == WEFT_JSON_STRING) {
        return emit_scalar(emitter, node->text, YAML_DOUBLE_QUOTED_SCALAR_STYLE);
    }
    return emit_scalar(emitter, node->type == WEFT_JSON_NULL ? "null" : node->text,
                       YAML_PLAIN_SCALAR_STYLE);
}

static bool emit_document(yaml_emitter_t *emitter, const struct weft_json *node)
{
    yaml_event_t event;
    return emit(emitter, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING)) &&
           emit(emitter, &event,
                yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1)) &&
           emit_node(emitter, node) &&
           emit(emitter, &event, yaml_document_end_event_initialize(&event, 1)) &&
           emit(emitter, &event, yaml_stream_end_event_initialize(&event));
}

void weft_yaml_write(const struct weft_json *node, struct weft_buf *buf)
{
    yaml_emitter_t emitter;
    if (yaml_emitter_initialize(&emitter) == 0) {
        buf->status = buf->status != 0 ? buf->status : -ENOMEM;
        return;
    }
    yaml_emitter_set_output(&emitter, append, buf);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, -1);
    if (!emit_document(&emitter, node) && buf->status == 0) {
        buf->status = -ENOMEM;
    }
    yaml_emitter_delete(&emitter);
}
