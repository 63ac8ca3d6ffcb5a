/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs of weftctl share. A verb is one file: it reads its options, calls the library and
 * prints; it decides nothing about fabrics or machines itself. Exit codes: 0 done, 1 a finding or a
 * failure, 2 wrong use, with one line on stderr that says what to do. */
#ifndef WEFT_CTL_CTL_H
#define WEFT_CTL_CTL_H

#include <stddef.h>
#include <stdio.h>

#include "pkg/base/error.h"

enum { WEFT_CTL_OK, WEFT_CTL_FAILED, WEFT_CTL_USAGE };

/* A row of the verb table in main.c. run gets the arguments from the verb's name on. */
struct weft_ctl_verb {
    const char *name;
    const char *summary; /* one line of `weftctl --help` */
    const char *help;    /* what `weftctl help NAME` prints */
    int (*run)(int argc, char **argv);
};

int weft_ctl_alloc(int argc, char **argv);
int weft_ctl_machine(int argc, char **argv);
int weft_ctl_tree(int argc, char **argv);
extern const char weft_ctl_alloc_help[];
extern const char weft_ctl_machine_help[];
extern const char weft_ctl_tree_help[];
int weft_ctl_lint(int argc, char **argv);
extern const char weft_ctl_lint_help[];

int weft_ctl_accept(int argc, char **argv);
int weft_ctl_adopt(int argc, char **argv);
extern const char weft_ctl_adopt_help[];
extern const char weft_ctl_accept_help[];
int weft_ctl_status(int argc, char **argv);
extern const char weft_ctl_status_help[];

/* The verbs with other streams, for tests. */
int weft_ctl_accept_to(int argc, char **argv, FILE *out, FILE *err);
int weft_ctl_adopt_to(int argc, char **argv, FILE *out, FILE *err);
int weft_ctl_alloc_to(int argc, char **argv, FILE *out, FILE *err);
int weft_ctl_machine_to(int argc, char **argv, FILE *out, FILE *err);
int weft_ctl_status_to(int argc, char **argv, FILE *out, FILE *err);
int weft_ctl_tree_to(int argc, char **argv, FILE *out, FILE *err);
int weft_ctl_lint_to(int argc, char **argv, FILE *out, FILE *err);

/* An option that takes a value. values has room for max of them (1 for an option that may stand
 * once); count says how many were given. values NULL: it takes none, and count is 1 if it stands.
 */
struct weft_ctl_option {
    const char *name; /* "--machine", "-o" */
    const char **values;
    size_t max;
    size_t count;
};

/* Reads "--name VALUE", "--name=VALUE" and "-n VALUE" from argv[1] on; the last option has a NULL
 * name. "--" ends the options. Values are borrowed from argv. -EINVAL, with a message for the user,
 * for an unknown option, a missing value, one too many, or an argument that is no option. */
int weft_ctl_options(int argc, char **argv, struct weft_ctl_option *options, struct weft_error *err)
    __attribute__((warn_unused_result));

/* "weftctl VERB: message; see weftctl help VERB" on err; returns WEFT_CTL_USAGE. */
int weft_ctl_wrong_use(FILE *err, const char *verb, const char *message);
/* "weftctl VERB: message" on err; returns WEFT_CTL_FAILED. */
int weft_ctl_fail(FILE *err, const char *verb, const char *message);

#endif
