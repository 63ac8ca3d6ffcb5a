/* SPDX-License-Identifier: Apache-2.0 */
/* The claim on a resource: one holder, whatever happens to the file and to the holder. Two claims
 * of one process have two open files, so a flock of the one keeps the other out as another
 * process's would. */
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deviceplugin/claim.h"
#include "pkg/base/file.h"
#include "tests/unit/unit.h"

#define MS WEFT_NS_PER_MS

struct pair {
    char dir[256], file[300];
    struct weft_claim *a, *b;
};

static void up(struct pair *p)
{
    static int number;
    *p = (struct pair){.a = NULL};
    (void)snprintf(p->dir, sizeof(p->dir), "%s/claim%d", weft_test_dir(), number++);
    (void)snprintf(p->file, sizeof(p->file), "%s/.weft-nvidia.com-gpu.lock", p->dir);
    CHECK_INT(mkdir(p->dir, 0700), 0);
    CHECK_INT(weft_claim_new(p->dir, "nvidia.com-gpu", &p->a, NULL), 0);
    CHECK_INT(weft_claim_new(p->dir, "nvidia.com-gpu", &p->b, NULL), 0);
}

static void down(struct pair *p)
{
    weft_claim_free(p->a);
    weft_claim_free(p->b);
}

static void one_holds_and_the_other_is_told_who(void)
{
    struct pair p;
    char pid[32];
    (void)snprintf(pid, sizeof(pid), "pid=%ld host=", (long)getpid());
    up(&p);
    CHECK_STR(weft_claim_name(p.a), ".weft-nvidia.com-gpu.lock");
    CHECK_STR(weft_claim_holder(p.b), "");
    CHECK_INT(weft_claim_check(p.a, 1, NULL), WEFT_CLAIM_HELD);
    CHECK_INT(weft_claim_check(p.b, 1, NULL), WEFT_CLAIM_TAKEN);
    CHECK_CONTAINS(weft_claim_holder(p.b), pid);
    CHECK_INT(weft_claim_check(p.a, 2, NULL), WEFT_CLAIM_HELD);
    weft_claim_free(weft_steal(&p.a));
    CHECK_INT(weft_claim_check(p.b, 3, NULL), WEFT_CLAIM_HELD);
    down(&p);
}

static void another_resource_is_another_claim(void)
{
    struct pair p;
    struct weft_claim *mig = NULL;
    up(&p);
    CHECK_INT(weft_claim_new(p.dir, "nvidia.com-mig-1g.10gb", &mig, NULL), 0);
    CHECK_INT(weft_claim_check(p.a, 1, NULL), WEFT_CLAIM_HELD);
    CHECK_INT(weft_claim_check(mig, 1, NULL), WEFT_CLAIM_HELD);
    weft_claim_free(mig);
    down(&p);
}

static void the_holder_keeps_a_claim_whose_file_goes(void)
{
    struct pair p;
    up(&p);
    CHECK_INT(weft_claim_check(p.a, 0, NULL), WEFT_CLAIM_HELD);
    CHECK_INT(weft_claim_check(p.b, 0, NULL), WEFT_CLAIM_TAKEN);
    CHECK_INT(unlink(p.file), 0);
    CHECK_INT(weft_claim_check(p.b, 100 * MS, NULL), WEFT_CLAIM_TAKEN); /* it waits… */
    CHECK_INT(weft_claim_check(p.b, 400 * MS, NULL), WEFT_CLAIM_TAKEN);
    CHECK_INT(weft_claim_check(p.a, 400 * MS, NULL), WEFT_CLAIM_HELD); /* …for the holder */
    CHECK_INT(weft_claim_check(p.b, 600 * MS, NULL), WEFT_CLAIM_TAKEN);
    weft_claim_free(weft_steal(&p.a));
    CHECK_INT(weft_claim_check(p.b, 700 * MS, NULL), WEFT_CLAIM_HELD);
    down(&p);
}

static void a_holder_that_sleeps_through_it_has_lost(void)
{
    struct pair p;
    up(&p);
    CHECK_INT(weft_claim_check(p.a, 0, NULL), WEFT_CLAIM_HELD);
    CHECK_INT(weft_claim_check(p.b, 0, NULL), WEFT_CLAIM_TAKEN);
    CHECK_INT(unlink(p.file), 0);
    CHECK_INT(weft_claim_check(p.b, 1 * MS, NULL), WEFT_CLAIM_TAKEN);
    CHECK_INT(weft_claim_check(p.b, 401 * MS, NULL), WEFT_CLAIM_HELD);
    CHECK_INT(weft_claim_check(p.a, 500 * MS, NULL), WEFT_CLAIM_TAKEN);
    CHECK_INT(weft_claim_check(p.b, 500 * MS, NULL), WEFT_CLAIM_HELD);
    down(&p);
}

static void a_replaced_file_is_claimed_anew(void)
{
    struct pair p;
    up(&p);
    CHECK_INT(weft_claim_check(p.a, 0, NULL), WEFT_CLAIM_HELD);
    CHECK_INT(weft_file_replace(p.file, "", 0, 0600, NULL), 0); /* another inode */
    CHECK_INT(weft_claim_check(p.a, 1, NULL), WEFT_CLAIM_HELD);
    CHECK_INT(weft_claim_check(p.b, 1, NULL), WEFT_CLAIM_TAKEN);
    down(&p);
}

static void a_killed_holder_gives_it_back(void)
{
    struct pair p;
    up(&p);
    const pid_t child = fork();
    if (child == 0) {
        (void)!weft_claim_check(p.a, 0, NULL);
        (void)pause();
        _exit(0);
    }
    int64_t waited = 0;
    while (access(p.file, F_OK) < 0 && waited++ < 5000) {
        (void)usleep(1000);
    }
    (void)usleep(20000);
    CHECK_INT(weft_claim_check(p.b, 0, NULL), WEFT_CLAIM_TAKEN);
    CHECK_INT(kill(child, SIGKILL), 0);
    CHECK_INT(waitpid(child, NULL, 0), child);
    CHECK_INT(weft_claim_check(p.b, 1, NULL), WEFT_CLAIM_HELD);
    down(&p);
}

static void where_nothing_can_be_locked_nobody_knows(void)
{
    struct pair p;
    struct weft_error err = {0};
    up(&p);
    CHECK_INT(mkdir(p.file, 0700), 0); /* a folder in the way */
    CHECK_INT(weft_claim_check(p.a, 0, &err), WEFT_CLAIM_UNKNOWN);
    CHECK_CONTAINS(err.message, p.file);
    CHECK_INT(rmdir(p.file), 0);
    CHECK_INT(weft_claim_check(p.a, 1, NULL), WEFT_CLAIM_HELD);
    CHECK_INT(unlink(p.file), 0);
    CHECK_INT(rmdir(p.dir), 0);
    CHECK_INT(weft_claim_check(p.a, 2, NULL), WEFT_CLAIM_UNKNOWN);
    down(&p);
}

static void what_stands_in_the_file_is_made_harmless(void)
{
    struct pair p;
    up(&p);
    CHECK_INT(weft_claim_check(p.a, 0, NULL), WEFT_CLAIM_HELD);
    FILE *file = fopen(p.file, "w"); /* the same inode: the lock stays */
    CHECK(file != NULL);
    if (file != NULL) {
        (void)fputs("a\nb\033[2Jc", file);
        (void)fclose(file);
    }
    CHECK_INT(weft_claim_check(p.b, 0, NULL), WEFT_CLAIM_TAKEN);
    CHECK_STR(weft_claim_holder(p.b), "a?b?[2Jc");
    down(&p);
}

WEFT_SUITE(claim, {"one holds and the other is told who", one_holds_and_the_other_is_told_who},
           {"another resource is another claim", another_resource_is_another_claim},
           {"the holder keeps a claim whose file goes", the_holder_keeps_a_claim_whose_file_goes},
           {"a holder that sleeps through it has lost", a_holder_that_sleeps_through_it_has_lost},
           {"a replaced file is claimed anew", a_replaced_file_is_claimed_anew},
           {"a killed holder gives it back", a_killed_holder_gives_it_back},
           {"where nothing can be locked nobody knows", where_nothing_can_be_locked_nobody_knows},
           {"what stands in the file is made harmless", what_stands_in_the_file_is_made_harmless})
