/* SPDX-License-Identifier: Apache-2.0 */
/* weftctl: the verb table, and nothing of any verb. */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctl/ctl.h"

static const struct weft_ctl_verb verbs[] = {
    {"alloc", "which devices of a machine a request should get, and why", weft_ctl_alloc_help,
     weft_ctl_alloc},
    {"machine", "this machine's accelerators and NICs, or a recorded one's, and how they are wired",
     weft_ctl_machine_help, weft_ctl_machine},
    {"tree", "which nodes are close to which, from fabric dumps and node labels, and what is odd",
     weft_ctl_tree_help, weft_ctl_tree},
    {"status", "what the controller says of itself: sources, counts, held changes, findings",
     weft_ctl_status_help, weft_ctl_status},
    {"accept", "lets a change through that the controller holds back", weft_ctl_accept_help,
     weft_ctl_accept},
    {"adopt", "hands HyperNodes of others over to the controller", weft_ctl_adopt_help,
     weft_ctl_adopt},
    {"lint", "what is wrong or unwise in HyperNodes", weft_ctl_lint_help, weft_ctl_lint},
};
enum { VERB_COUNT = sizeof(verbs) / sizeof(verbs[0]) };

static const struct weft_ctl_verb *find_verb(const char *name)
{
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (strcmp(verbs[i].name, name) == 0) {
            return &verbs[i];
        }
    }
    return NULL;
}

static void print_help(FILE *out)
{
    (void)fputs("usage: weftctl VERB [options]\n\n"
                "Shows, checks and explains a cluster's wiring.\n\n"
                "verbs:\n",
                out);
    for (size_t i = 0; i < VERB_COUNT; i++) {
        (void)fprintf(out, "  %-10s %s\n", verbs[i].name, verbs[i].summary);
    }
    (void)fputs("\n  weftctl help VERB   says more about a verb\n"
                "  weftctl --version   prints the version\n\n"
                "exit status: 0 done, 1 a finding or a failure, 2 wrong use\n",
                out);
}

static int unknown_verb(const char *name)
{
    (void)fprintf(stderr, "weftctl: unknown verb \"%.80s\"; see weftctl --help\n", name);
    return WEFT_CTL_USAGE;
}

static int help(const char *name)
{
    const struct weft_ctl_verb *verb = name != NULL ? find_verb(name) : NULL;
    if (name == NULL) {
        print_help(stdout);
    } else if (verb == NULL) {
        return unknown_verb(name);
    } else {
        (void)fputs(verb->help, stdout);
    }
    return WEFT_CTL_OK;
}

static int is_help(const char *arg)
{
    return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        (void)fputs("weftctl: a verb is needed; see weftctl --help\n", stderr);
        return WEFT_CTL_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        (void)printf("weftctl %s\n", WEFT_VERSION);
        return WEFT_CTL_OK;
    }
    if (is_help(argv[1]) || strcmp(argv[1], "help") == 0) {
        return help(argc > 2 ? argv[2] : NULL);
    }
    const struct weft_ctl_verb *verb = find_verb(argv[1]);
    if (verb == NULL) {
        return unknown_verb(argv[1]);
    }
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (is_help(argv[i])) {
            return help(verb->name);
        }
    }
    return verb->run(argc - 1, argv + 1);
}

/* Has the reader of standard output gone? `weftctl tree X | head -1` is no failure. */
static bool reader_is_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};
    return poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

int main(int argc, char **argv)
{
    (void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    const int rc = run(argc, argv);
    const bool failed = fflush(stdout) != 0 || ferror(stdout) != 0;
    if (failed && reader_is_gone()) {
        return rc;
    }
    if (failed) {
        (void)fputs("weftctl: standard output could not be written\n", stderr);
        return WEFT_CTL_FAILED;
    }
    return rc;
}
