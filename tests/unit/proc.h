/* SPDX-License-Identifier: Apache-2.0 */
/* Programs under test as child processes: what they print, what they are told, how they end. Every
 * wait has a limit; a process that is still there at the end of a test is killed by its pid. */
#ifndef WEFT_TESTS_UNIT_PROC_H
#define WEFT_TESTS_UNIT_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct proc {
    pid_t pid;
    int in, out;    /* its standard input; its standard output and error together */
    char *text;     /* all it printed so far */
    size_t len, at; /* at: what proc_expect has passed */
};

/* $WEFT_BUILD/<name> (build/<name> without it); static storage. */
const char *proc_path(const char *name);
/* argv[0] is a path. false if it cannot be started. */
bool proc_start(struct proc *p, const char *const *argv);
/* Writes a line. */
void proc_send(struct proc *p, const char *line);
/* Waits at most ms for a line that contains part, after the last one that was found. Fails the test
 * and prints all output otherwise. Returns the line (until the next call), or NULL. */
const char *proc_expect_at(const char *file, int line, struct proc *p, const char *part, int ms);
#define proc_expect(p, part) proc_expect_at(__FILE__, __LINE__, (p), (part), 10000)
/* Reads what comes within ms; true if part is in what was not yet passed. */
bool proc_says(struct proc *p, const char *part, int ms);
/* Sends the signal (0: none) and waits for the end, at most ms: the exit code, 1000 + signal, or
 * -1 if it had to be killed. */
int proc_end(struct proc *p, int signum, int ms);

#endif
