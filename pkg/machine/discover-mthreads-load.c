/* SPDX-License-Identifier: Apache-2.0 */
/* Finds, loads and starts Moore Threads' management library. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pkg/base/mem.h"
#include "pkg/machine/discover-mthreads-internal.h"

enum { PATH_TEXT_MAX = 1024 };

/* MUSA's images have the versioned name, older driver packages the plain one only. */
static const char *const names[] = {"libmtml.so.2", "libmtml.so"};
static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                      "/usr/lib64", "/usr/lib", "/usr/local/musa/lib"};

#define SYMBOL(field, parameters, symbol, needed)                                                  \
    {symbol, needed, offsetof(struct weft_mtml, field)},

static const struct {
    const char *symbol;
    bool needed;
    size_t offset;
} symbols[] = {WEFT_MTML_FUNCTIONS(SYMBOL)};

static bool load_path(struct weft_mtml *mtml, const char *path)
{
    weft_backend_enter(mtml->options->watch, "dlopen", 0);
    mtml->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    weft_backend_leave(mtml->options->watch);
    return mtml->handle != NULL;
}

static bool load_below(struct weft_mtml *mtml, const char *root)
{
    for (size_t i = 0; root != NULL && i < WEFT_ARRAY_LEN(folders); i++) {
        for (size_t j = 0; j < WEFT_ARRAY_LEN(names); j++) {
            char path[PATH_TEXT_MAX];
            const int n = snprintf(path, sizeof(path), "%s%s/%s", root, folders[i], names[j]);
            if (n > 0 && n < (int)sizeof(path) && access(path, R_OK) == 0 &&
                load_path(mtml, path)) {
                return true;
            }
        }
    }
    return false;
}

static bool find_library(struct weft_mtml *mtml)
{
    const struct weft_backend_options *o = mtml->options;
    if (o->library != NULL) {
        return load_path(mtml, o->library);
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
        if (load_path(mtml, names[i])) {
            return true;
        }
    }
    return load_below(mtml, o->driver_root) || load_below(mtml, o->host_root);
}

static bool find_symbols(struct weft_mtml *mtml)
{
    for (size_t i = 0; i < WEFT_ARRAY_LEN(symbols); i++) {
        void *symbol = dlsym(mtml->handle, symbols[i].symbol);
        if (symbol == NULL && symbols[i].needed) {
            (void)snprintf(mtml->why_not, sizeof(mtml->why_not), "libmtml.so has no %s",
                           symbols[i].symbol);
            return false;
        }
        memcpy((char *)mtml + symbols[i].offset, &symbol, sizeof(symbol));
    }
    return true;
}

static void drop(struct weft_mtml *mtml)
{
    (void)dlclose(mtml->handle);
    mtml->handle = NULL;
}

void weft_mtml_load(struct weft_mtml *mtml)
{
    if (!find_library(mtml)) {
        (void)snprintf(mtml->why_not, sizeof(mtml->why_not), "libmtml.so was not found");
        return;
    }
    if (!find_symbols(mtml)) {
        drop(mtml);
        return;
    }
    const unsigned code = WEFT_MTML_CALL(mtml, init, &mtml->library);
    if (code != WEFT_MTML_OK) {
        (void)snprintf(mtml->why_not, sizeof(mtml->why_not), "libmtml.so does not start: %s",
                       code == WEFT_MTML_DRIVER_NOT_LOADED ? "the driver is not loaded"
                       : code == WEFT_MTML_NO_PERMISSION   ? "no permission"
                                                           : "an error of the driver");
        drop(mtml);
    }
}

void weft_mtml_unload(struct weft_mtml *mtml)
{
    if (mtml->handle != NULL) {
        (void)WEFT_MTML_CALL(mtml, shut_down, mtml->library);
        drop(mtml);
    }
}
