/* SPDX-License-Identifier: Apache-2.0 */
/* One table says of each option under which names it can be given, what is allowed, and where it is
 * kept; flags, environment, both kinds of file, --help and --validate all follow it. */
#ifndef WEFT_DEVICEPLUGIN_OPTIONS_INTERNAL_H
#define WEFT_DEVICEPLUGIN_OPTIONS_INTERNAL_H

#include "deviceplugin/options.h"

struct weft_json;

enum weft_option_kind {
    WEFT_OPTION_TEXT,     /* char *, owned */
    WEFT_OPTION_BOOL,     /* bool */
    WEFT_OPTION_DURATION, /* int64_t, nanoseconds; 0: not given */
    WEFT_OPTION_NUMBER,   /* unsigned */
    WEFT_OPTION_WORD,     /* an enum: the number of the word in words */
    WEFT_OPTION_WORDS,    /* unsigned: a bit for each word */
    WEFT_OPTION_CHANNELS, /* respond's IMEX channels */
    WEFT_OPTION_SOCKET,   /* NVIDIA's way to name the kubelet's folder */
    WEFT_OPTION_IGNORED,  /* NVIDIA's, decides nothing here: a note, unless it says what is so */
};

enum { WEFT_OPTION_NAMES = 3, WEFT_OPTION_KEY_MAX = 64, WEFT_OPTION_TEXT_MAX = 4096 };

struct weft_option {
    const char *flags[WEFT_OPTION_NAMES];     /* ours first; "--driver-root" */
    const char *variables[WEFT_OPTION_NAMES]; /* of the environment, likewise */
    const char *own;                          /* in our file: "log.level"; NULL: not there */
    const char *nvidia; /* in NVIDIA's: "flags.plugin.passDeviceSpecs"; NULL: not there */
    enum weft_option_kind kind;
    bool fixed; /* can be set at a start only */
    size_t offset;
    const char *const *words;         /* of WORD and WORDS, and what IGNORED may say */
    bool (*valid)(const char *value); /* of TEXT; NULL: anything but nothing */
    const char *allowed;              /* for messages: "is not …" */
    const char *fallback;             /* the default, as text; NULL: none. IGNORED: is so anyway */
    const char *help;                 /* of IGNORED: what is so instead */
};

extern const struct weft_option weft_option_table[];
extern const size_t weft_option_count;

/* Checks and sets one. -EINVAL with what is allowed, -ENOMEM. */
int weft_option_set(struct weft_options *options, const struct weft_option *option,
                    const char *value, struct weft_error *err) __attribute__((warn_unused_result));
/* The value as text, as weft_option_set takes it: text (WEFT_OPTION_TEXT_MAX bytes) or what the
 * options hold; NULL where there is none. */
const char *weft_option_text(const struct weft_options *options, const struct weft_option *option,
                             char *text);
/* "1", "t", "true", "True", "0"… as Go's strconv.ParseBool has it. */
bool weft_option_parse_bool(const char *text, bool *ret_value);
/* Adds one sentence; when they are full it is dropped. -ENOMEM. */
int weft_options_note(struct weft_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3), warn_unused_result));
/* The same with the place of the node before it. */
int weft_options_note_at(struct weft_options *options, const struct weft_json *node,
                         const char *format, ...)
    __attribute__((format(printf, 3, 4), warn_unused_result));

/* Sets an option from a node of a file. */
int weft_option_set_node(struct weft_options *options, const struct weft_option *option,
                         const struct weft_json *node, struct weft_error *err)
    __attribute__((warn_unused_result));

/* options-nvidia.c: the whole of NVIDIA's file. */
int weft_options_apply_nvidia(const struct weft_json *root, struct weft_options *options,
                              struct weft_error *err) __attribute__((warn_unused_result));

/* options-resources.c: our file's "renames" and the list of "sharing". 0, -EINVAL, -ENOMEM. */
int weft_options_own_resources(const struct weft_json *root, struct weft_pool_settings *settings,
                               struct weft_error *err) __attribute__((warn_unused_result));
/* NVIDIA's "sharing" and "resources". */
int weft_options_nvidia_resources(const struct weft_json *root, struct weft_options *options,
                                  struct weft_error *err) __attribute__((warn_unused_result));

#endif
