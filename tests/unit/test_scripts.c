/* SPDX-License-Identifier: Apache-2.0 */
/* hack/record-machine and hack/sample-fabric: what the scripts write is checked against the C
 * readers and the committed sample, so that neither drifts from the other. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pkg/base/file.h"
#include "pkg/base/mem.h"
#include "pkg/machine/machine.h"
#include "tests/unit/unit.h"

enum { TEST_FILE_MAX = 1 << 20, TEST_PATH_MAX = 512, TEST_GPUS = 4 };

/* Runs argv with envp, standard output into the file; the exit code, or -1. */
static int run(char *const argv[], char *const envp[], const char *output)
{
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return -1;
    }
    pid_t pid = -1;
    int status = 0;
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    int rc = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output, flags, 0600);
    rc = rc != 0 ? rc : posix_spawn(&pid, argv[0], &actions, NULL, argv, envp);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (rc != 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
        return -1;
    }
    return WEXITSTATUS(status);
}

static void write_text(const char *path, const char *text, mode_t mode)
{
    CHECK_INT(weft_file_replace(path, text, strlen(text), mode, NULL), 0);
}

/* Two bridged pairs on two sockets, a NIC beside each pair; the header underlined, the tail of the
 * rows with a doubled tab, as nvidia-smi prints them. */
static const char matrix[] =
    "\t\033[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\033[0m\n"
    "GPU0\t X \tNV4\tNODE\tSYS\tPXB\tSYS\t0-7\t0\t\tN/A\n"
    "GPU1\tNV4\t X \tPHB\tSYS\tPXB\tSYS\t0-7\t0\t\tN/A\n"
    "GPU2\tNODE\tPHB\t X \tNV12\tSYS\tNODE\t8-15\t1\t\tN/A\n"
    "GPU3\tSYS\tSYS\tNV12\t X \tSYS\tPIX\t8-15\t1\t\tN/A\n"
    "NIC0\tPXB\tPXB\tSYS\tSYS\t X \tSYS\t\t\t\t\n"
    "NIC1\tSYS\tSYS\tNODE\tPIX\tSYS\t X \t\t\t\t\n"
    "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n";

static const char tool[] =
    "#!/bin/sh\n"
    "if [ \"$1\" = topo ]; then cat \"$MATRIX\"; exit; fi\n"
    "for i in 0 1 2 3; do echo \"$i, GPU-aaaa-$i, 00000000:${i}B:00.0, NVIDIA H100 80GB\"; done\n";

struct node {
    char dir[TEST_PATH_MAX / 2];
    char matrix[TEST_PATH_MAX];
    char output[TEST_PATH_MAX];
};

/* A folder with the fake tool, sysfs and /dev. */
static void make_node(struct node *n, const char *name, const char *text)
{
    char path[TEST_PATH_MAX + 64];
    snprintf(n->dir, sizeof(n->dir), "%s/%s", weft_test_dir(), name);
    snprintf(n->matrix, sizeof(n->matrix), "%s/matrix", n->dir);
    snprintf(n->output, sizeof(n->output), "%s/machine", n->dir);
    const char *const dirs[] = {"", "/sys", "/sys/bus", "/sys/bus/pci", "/sys/bus/pci/devices"};
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", n->dir, dirs[i]);
        (void)mkdir(path, 0700);
    }
    for (int i = 0; i < TEST_GPUS; i++) {
        snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/0000:%db:00.0", n->dir, i);
        (void)mkdir(path, 0700);
        snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/0000:%db:00.0/numa_node", n->dir, i);
        write_text(path, i < 2 ? "0\n" : "1\n", 0600);
    }
    snprintf(path, sizeof(path), "%s/nvidia-smi", n->dir);
    write_text(path, tool, 0700);
    snprintf(path, sizeof(path), "%s/nvidiactl", n->dir);
    write_text(path, "", 0600);
    write_text(n->matrix, text, 0600);
}

static int record(const struct node *n)
{
    char search[TEST_PATH_MAX], from[TEST_PATH_MAX + 16], sysfs[TEST_PATH_MAX], dev[TEST_PATH_MAX];
    snprintf(search, sizeof(search), "PATH=%s:/usr/bin:/bin", n->dir);
    snprintf(from, sizeof(from), "MATRIX=%s", n->matrix);
    snprintf(sysfs, sizeof(sysfs), "SYSFS=%s/sys", n->dir);
    snprintf(dev, sizeof(dev), "DEV=%s", n->dir);
    char shell[] = "/bin/sh", script[] = "hack/record-machine";
    char *const argv[] = {shell, script, NULL};
    char *const envp[] = {search, from, sysfs, dev, NULL};
    return run(argv, envp, n->output);
}

static void check_same_wiring(const struct weft_machine *a, const struct weft_machine *b)
{
    if (!CHECK_INT(a->device_count, b->device_count) || !CHECK_INT(a->nic_count, b->nic_count)) {
        return;
    }
    for (size_t i = 0; i < a->device_count; i++) {
        for (size_t j = 0; j < a->device_count; j++) {
            CHECK_INT(weft_machine_b(a, i, j), weft_machine_b(b, i, j));
            if (i != j) {
                CHECK_INT(weft_machine_t(a, i, j), weft_machine_t(b, i, j));
            }
        }
        for (size_t n = 0; n < a->nic_count; n++) {
            CHECK_INT(weft_machine_n(a, i, n), weft_machine_n(b, i, n));
            CHECK_STR(a->nics[n].name, b->nics[n].name);
        }
    }
}

static void test_record_machine(void)
{
    struct node n;
    make_node(&n, "record", matrix);
    CHECK_INT(record(&n), 0);
    weft_auto(weft_machine_free) struct weft_machine *recorded = NULL;
    weft_auto(weft_machine_free) struct weft_machine *read = NULL;
    struct weft_error err = {0};
    if (!CHECK_INT(weft_machine_load(n.output, &recorded, &err), 0) ||
        !CHECK_INT(weft_machine_load(n.matrix, &read, &err), 0)) {
        fprintf(stderr, "%s\n", err.message);
        return;
    }
    check_same_wiring(recorded, read);
    /* NV4 between 0 and 1 hides T: NIC0 is at PXB from both, closer than their NUMA node */
    CHECK_INT(weft_machine_t(recorded, 0, 1), WEFT_DISTANCE_PXB);
    CHECK_INT(weft_machine_b(recorded, 2, 3), 300000);
    CHECK_STR(recorded->devices[3].id, "GPU-aaaa-3");
    CHECK_INT(recorded->devices[3].numa_node, 1);
    CHECK_INT(recorded->devices[3].bdf.bus, 0x3b);
    CHECK_STR(recorded->devices[3].model, "NVIDIA H100 80GB");
    CHECK_INT(recorded->devices[3].node_count, 1);
    CHECK_STR(recorded->devices[3].nodes[0], "/dev/nvidia3");
    CHECK_INT(recorded->common_node_count, 1);
    CHECK_STR(recorded->common_nodes[0], "/dev/nvidiactl");
}

static void test_record_refuses(void)
{
    struct node n;
    make_node(&n, "empty", "No devices were found\n");
    CHECK_INT(record(&n), 1);
    make_node(&n, "short", "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV1\t0\nGPU1\tNV1\n");
    CHECK_INT(record(&n), 1);
    make_node(&n, "unknown", "\tGPU0\tGPU9\tCPU Affinity\nGPU0\t X \tNV1\t0\nGPU9\tNV1\t X \t0\n");
    CHECK_INT(record(&n), 1);
    struct stat st = {0};
    CHECK_INT(stat(n.output, &st), 0);
    CHECK_INT(st.st_size, 0);
}

static void test_sample_fabric(void)
{
    char output[TEST_PATH_MAX];
    snprintf(output, sizeof(output), "%s/fabric.txt", weft_test_dir());
    char shell[] = "/bin/sh", script[] = "hack/sample-fabric", path[] = "PATH=/usr/bin:/bin";
    char two[] = "2", four[] = "4", bad[] = "0";
    char *const argv[] = {shell, script, two, two, four, four, two, two, NULL};
    char *const wrong[] = {shell, script, bad, NULL};
    char *const envp[] = {path, NULL};
    CHECK_INT(run(argv, envp, output), 0);
    weft_autofree char *written = NULL;
    weft_autofree char *committed = NULL;
    const char *sample = "manifests/samples/fabric.ibnetdiscover.txt";
    CHECK_INT(weft_file_read(output, TEST_FILE_MAX, &written, NULL, NULL), 0);
    CHECK_INT(weft_file_read(sample, TEST_FILE_MAX, &committed, NULL, NULL), 0);
    CHECK(written && committed && strcmp(written, committed) == 0);
    CHECK_INT(run(wrong, envp, output), 2);
}

WEFT_SUITE(scripts, {"record_machine", test_record_machine},
           {"record_refuses", test_record_refuses}, {"sample_fabric", test_sample_fabric})
