/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes for tests. */
#include "tests/unit/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pkg/base/clock.h"
#include "pkg/base/mem.h"
#include "tests/unit/unit.h"

enum { TEXT_MAX = 1 << 22 };

extern char **environ;

static int64_t now_ms(void)
{
    return weft_clock_monotonic(weft_clock_system()) / WEFT_NS_PER_MS;
}

const char *proc_path(const char *name)
{
    static char path[512];
    const char *build = getenv("WEFT_BUILD");
    (void)snprintf(path, sizeof(path), "%s/%s", build != NULL ? build : "build", name);
    return path;
}

bool proc_start(struct proc *p, const char *const *argv)
{
    int in[2], out[2];
    *p = (struct proc){.pid = -1, .in = -1, .out = -1};
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0) {
        return false;
    }
    posix_spawn_file_actions_t actions;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, out[1], STDERR_FILENO);
    union {
        const char *const *in;
        char **out;
    } args = {.in = argv};
    const int rc = posix_spawn(&p->pid, argv[0], &actions, NULL, args.out, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(in[0]);
    (void)close(out[1]);
    p->in = in[1];
    p->out = out[0];
    if (rc != 0) {
        (void)fprintf(stderr, "%s: %s\n", argv[0], strerror(rc));
        p->pid = -1;
        CU_FAIL("a program does not start");
    }
    return rc == 0;
}

void proc_send(struct proc *p, const char *line)
{
    char text[4096];
    const int len = snprintf(text, sizeof(text), "%s\n", line);
    CHECK_INT(write(p->in, text, (size_t)len), len);
}

/* Reads what is there, waiting at most ms for something. false at the end of its output. */
static bool read_some(struct proc *p, int ms)
{
    struct pollfd fd = {.fd = p->out, .events = POLLIN};
    if (poll(&fd, 1, ms > 0 ? ms : 0) <= 0) {
        return true;
    }
    char chunk[4096];
    const ssize_t n = read(p->out, chunk, sizeof(chunk));
    if (n <= 0 || p->len + (size_t)n > TEXT_MAX) {
        return n < 0 && errno == EINTR;
    }
    char *text = weft_reallocarray(p->text, p->len + (size_t)n + 1, 1);
    if (text != NULL) {
        p->text = text;
        memcpy(p->text + p->len, chunk, (size_t)n);
        p->len += (size_t)n;
        p->text[p->len] = '\0';
    }
    return true;
}

/* A whole line with part, after p->at. */
static const char *find_line(struct proc *p, const char *part)
{
    static char found[8192];
    for (char *begin = p->text != NULL ? p->text + p->at : NULL; begin != NULL;) {
        char *end = strchr(begin, '\n');
        if (end == NULL) {
            return NULL;
        }
        (void)snprintf(found, sizeof(found), "%.*s", (int)(end - begin), begin);
        if (strstr(found, part) != NULL) {
            p->at = (size_t)(end + 1 - p->text);
            return found;
        }
        begin = end + 1;
    }
    return NULL;
}

const char *proc_expect_at(const char *file, int line, struct proc *p, const char *part, int ms)
{
    const int64_t limit = now_ms() + ms;
    bool more = true;
    const char *found = find_line(p, part);
    while (found == NULL && more && now_ms() < limit) {
        more = read_some(p, (int)(limit - now_ms()));
        found = find_line(p, part);
    }
    if (found == NULL) {
        (void)fprintf(stderr, "%s:%d: no \"%s\" in\n%s\n", file, line, part,
                      p->text != NULL ? p->text + p->at : "");
    }
    (void)CU_assertImplementation(found != NULL, (unsigned)line, part, file, "", CU_FALSE);
    return found;
}

bool proc_says(struct proc *p, const char *part, int ms)
{
    const int64_t limit = now_ms() + ms;
    while (now_ms() < limit && read_some(p, (int)(limit - now_ms()))) {
    }
    return p->text != NULL && strstr(p->text + p->at, part) != NULL;
}

int proc_end(struct proc *p, int signum, int ms)
{
    int status = 0;
    pid_t reaped = 0;
    if (p->pid > 0) {
        if (p->in >= 0) {
            (void)close(p->in);
        }
        (void)kill(p->pid, signum);
        const int64_t limit = now_ms() + ms;
        for (reaped = waitpid(p->pid, &status, WNOHANG); reaped == 0 && now_ms() < limit;
             reaped = waitpid(p->pid, &status, WNOHANG)) {
            (void)read_some(p, 2);
        }
        if (reaped == 0) {
            (void)kill(p->pid, SIGKILL);
            (void)waitpid(p->pid, &status, 0);
        }
        (void)proc_says(p, "", 1);
        (void)close(p->out);
    }
    weft_free(p->text);
    *p = (struct proc){.pid = -1, .in = -1, .out = -1};
    if (reaped <= 0) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
