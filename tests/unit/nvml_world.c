/* SPDX-License-Identifier: Apache-2.0 */
/* A node with NVIDIA GPUs for the tests. */
#include "tests/unit/nvml_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "pkg/machine/discover-nvml.h"
#include "tests/unit/proc.h"
#include "tests/unit/unit.h"

enum { FILE_MAX = 4 << 20 };

static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
}

void nvml_world_put(struct nvml_world *w, const char *path, const char *text)
{
    char whole[600];
    (void)snprintf(whole, sizeof(whole), "%s%s", w->root, path);
    make_folders(whole);
    CHECK_INT(weft_file_replace(whole, text, strlen(text), 0600, NULL), 0);
}

static void write_file(struct nvml_world *w, const char *text, size_t len)
{
    struct weft_error err = {0};
    CHECK_INT(weft_file_replace(w->file, text, len, 0600, &err), 0);
}

void nvml_world_up(struct nvml_world *w, const char *fixture, int gpus)
{
    static int number;
    *w = (struct nvml_world){0};
    (void)snprintf(w->root, sizeof(w->root), "%s/nvml%d", weft_test_dir(), number++);
    (void)snprintf(w->file, sizeof(w->file), "%s/mock/machine.json", w->root);
    make_folders(w->file);
    char name[128];
    size_t len = 0;
    (void)snprintf(name, sizeof(name), "nvml/%s", fixture);
    char *text = weft_fixture_text(name, &len);
    write_file(w, text != NULL ? text : "", len);
    weft_free(text);
    nvml_world_put(w, "/dev/nvidiactl", "");
    nvml_world_put(w, "/dev/nvidia-uvm", "");
    for (int i = 0; i < gpus; i++) {
        char node[32];
        (void)snprintf(node, sizeof(node), "/dev/nvidia%d", i);
        nvml_world_put(w, node, "");
    }
    CHECK_INT(setenv("WEFT_MOCK_NVML", w->file, 1), 0);
    static char library[512];
    (void)snprintf(library, sizeof(library), "%s", proc_path("fakes/libnvidia-ml.so.1"));
    w->options = (struct weft_backend_options){.host_root = w->root, .library = library};
}

void nvml_world_edit(struct nvml_world *w, const char *from, const char *to)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    CHECK_INT(weft_file_read(w->file, FILE_MAX, &text, &len, NULL), 0);
    const char *at = text != NULL ? strstr(text, from) : NULL;
    if (at == NULL) {
        CU_FAIL("what is to be replaced is not in the mock's file");
        return;
    }
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, FILE_MAX);
    (void)weft_buf_append(&buf, text, (size_t)(at - text));
    (void)weft_buf_puts(&buf, to);
    (void)weft_buf_puts(&buf, at + strlen(from));
    write_file(w, weft_buf_text(&buf), buf.len);
}

/* A name that is spoiled in the library's string table is found by nobody. */
static void spoil(char *bytes, size_t len, const char *function)
{
    const size_t size = strlen(function) + 1;
    bool found = false;
    for (size_t i = 1; i + size <= len; i++) {
        if (bytes[i - 1] == '\0' && memcmp(bytes + i, function, size) == 0) {
            bytes[i] = 'x';
            found = true;
        }
    }
    if (!found) {
        (void)fprintf(stderr, "%s is not in the mock\n", function);
        CU_FAIL("the function to remove is not in the mock");
    }
}

void nvml_world_remove(struct nvml_world *w, const char *const *functions)
{
    static char library[512];
    weft_autofree char *bytes = NULL;
    size_t len = 0;
    CHECK_INT(weft_file_read(w->options.library, FILE_MAX, &bytes, &len, NULL), 0);
    for (size_t i = 0; bytes != NULL && functions[i] != NULL; i++) {
        spoil(bytes, len, functions[i]);
    }
    (void)snprintf(library, sizeof(library), "%s/mock/libnvidia-ml.so.1", w->root);
    CHECK_INT(weft_file_replace(library, bytes, len, 0700, NULL), 0);
    w->options.library = library;
}

struct weft_machine *nvml_world_look(const struct nvml_world *w)
{
    void *state = NULL;
    struct weft_machine *m = NULL;
    struct weft_error err = {0};
    int rc = weft_backend_nvml.open(&w->options, &state, &err);
    rc = rc == 0 ? weft_backend_nvml.enumerate(state, &m, &err) : rc;
    weft_backend_nvml.close(state);
    if (rc < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        CU_FAIL("the mock's machine cannot be looked at");
    }
    return m;
}

bool nvml_warns(const struct weft_machine *m, const char *part)
{
    for (size_t i = 0; i < m->warning_count; i++) {
        if (strstr(m->warnings[i], part) != NULL) {
            return true;
        }
    }
    return false;
}
