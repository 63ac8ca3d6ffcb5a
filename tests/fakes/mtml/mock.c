/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for libmtml.so, loaded by the same dlopen as the real one. It plays the machine of the
 * JSON file that WEFT_MOCK_MTML names, read at each start and each count of devices:
 * {
 *   "init": 1, "count": 2,       codes that mtmlLibraryInit and mtmlLibraryCountDevice return
 *   "driver": "2.7.0",
 *   "gpus": [{
 *     "uuid": "...", "name": "MTT S4000", "bdf": "00000000:3b:00.0", "memory_mib": 49152,
 *     "gpu": "/dev/mtgpu.0", "card": "/dev/dri/card1", "render": "/dev/dri/renderD128",
 *     "pcie": [4, 16, 5, 16],    generation and width now, and at most
 *     "gbps": 320, "links": [[1, "up"], [2, "downgrade"], [3, "down"], [null, "up"]],
 *     "lost": true,              it cannot be opened
 *     "instances": [{"uuid": "...", "profile": "1c.12gb", "memory_mib": 12288, "gpu": "..."}]
 *   }]
 * }
 * What is not there is NOT_SUPPORTED. One thread. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/machine/discover-mthreads-internal.h"

enum { TEXT_MAX = 1 << 16, NO_INSTANCE = -1 };

struct weft_mtml_library {
    int unused;
};
struct weft_mtml_system {
    int unused;
};
struct weft_mtml_device {
    int gpu, instance;
};
struct weft_mtml_memory {
    const struct weft_mtml_device *device;
};

static cJSON *root;
static struct weft_mtml_library the_library;
static struct weft_mtml_system the_system;
static struct weft_mtml_device devices[WEFT_MTML_GPUS_MAX][WEFT_MTML_INSTANCES_MAX + 1];
static struct weft_mtml_memory memories[WEFT_MTML_GPUS_MAX][WEFT_MTML_INSTANCES_MAX + 1];

static void reload(void)
{
    const char *path = getenv("WEFT_MOCK_MTML");
    FILE *file = path == NULL ? NULL : fopen(path, "r");
    static char text[TEXT_MAX];
    const size_t len = file == NULL ? 0 : fread(text, 1, sizeof(text) - 1, file);
    if (file != NULL) {
        (void)fclose(file);
    }
    text[len] = '\0';
    cJSON_Delete(root);
    root = cJSON_Parse(text);
}

static unsigned code_of(const char *key)
{
    const cJSON *code = cJSON_GetObjectItemCaseSensitive(root, key);
    return cJSON_IsNumber(code) ? (unsigned)code->valueint : WEFT_MTML_OK;
}

static const cJSON *json_of(const struct weft_mtml_device *device, const char *key)
{
    const cJSON *gpu =
        cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(root, "gpus"), device->gpu);
    if (device->instance == NO_INSTANCE) {
        return cJSON_GetObjectItemCaseSensitive(gpu, key);
    }
    const cJSON *instances = cJSON_GetObjectItemCaseSensitive(gpu, "instances");
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(instances, device->instance), key);
}

static struct weft_mtml_device *device_at(int gpu, int instance)
{
    struct weft_mtml_device *device = &devices[gpu][instance + 1];
    *device = (struct weft_mtml_device){gpu, instance};
    return device;
}

static unsigned text_of(const struct weft_mtml_device *device, const char *key, char *text,
                        unsigned size)
{
    const cJSON *value = json_of(device, key);
    if (!cJSON_IsString(value)) {
        return WEFT_MTML_NOT_SUPPORTED;
    }
    (void)snprintf(text, size, "%s", value->valuestring);
    return WEFT_MTML_OK;
}

static unsigned count_of(const cJSON *array)
{
    return (unsigned)cJSON_GetArraySize(array);
}

__attribute__((destructor)) static void forget(void)
{
    cJSON_Delete(root);
    root = NULL;
}

#define EXPORT __attribute__((visibility("default")))
#define MTML(field, parameters, symbol, needed)                                                    \
    EXPORT unsigned mock_##field parameters __asm__(symbol);
WEFT_MTML_FUNCTIONS(MTML)

unsigned mock_init(struct weft_mtml_library **library)
{
    reload();
    *library = &the_library;
    return code_of("init");
}

unsigned mock_shut_down(struct weft_mtml_library *library)
{
    forget();
    return library == &the_library ? WEFT_MTML_OK : WEFT_MTML_NOT_SUPPORTED;
}

unsigned mock_count(const struct weft_mtml_library *library, unsigned *count)
{
    (void)library;
    reload();
    *count = count_of(cJSON_GetObjectItemCaseSensitive(root, "gpus"));
    return code_of("count");
}

unsigned mock_device(const struct weft_mtml_library *library, unsigned index,
                     struct weft_mtml_device **device)
{
    (void)library;
    *device = device_at((int)index, NO_INSTANCE);
    return cJSON_IsTrue(json_of(*device, "lost")) ? WEFT_MTML_GPU_IS_LOST : WEFT_MTML_OK;
}

unsigned mock_free_device(struct weft_mtml_device *device)
{
    (void)device;
    return WEFT_MTML_OK;
}

unsigned mock_uuid(const struct weft_mtml_device *device, char *text, unsigned size)
{
    return text_of(device, "uuid", text, size);
}

unsigned mock_name(const struct weft_mtml_device *device, char *text, unsigned size)
{
    return text_of(device, "name", text, size);
}

unsigned mock_gpu_path(const struct weft_mtml_device *device, char *text, unsigned size)
{
    return text_of(device, "gpu", text, size);
}

unsigned mock_card_path(const struct weft_mtml_device *device, char *text, unsigned size)
{
    return text_of(device, "card", text, size);
}

unsigned mock_render_path(const struct weft_mtml_device *device, char *text, unsigned size)
{
    return text_of(device, "render", text, size);
}

unsigned mock_pci(const struct weft_mtml_device *device, struct weft_mtml_pci *pci)
{
    const cJSON *pcie = json_of(device, "pcie");
    uint32_t values[4] = {0};
    for (int i = 0; i < 4 && i < cJSON_GetArraySize(pcie); i++) {
        values[i] = (uint32_t)cJSON_GetArrayItem(pcie, i)->valueint;
    }
    pci->generation = values[0];
    pci->width = values[1];
    pci->max_generation = values[2];
    pci->max_width = values[3];
    return text_of(device, "bdf", pci->address, sizeof(pci->address));
}

unsigned mock_system(const struct weft_mtml_library *library, struct weft_mtml_system **system)
{
    (void)library;
    *system = &the_system;
    return WEFT_MTML_OK;
}

unsigned mock_free_system(struct weft_mtml_system *system)
{
    (void)system;
    return WEFT_MTML_OK;
}

unsigned mock_driver_version(const struct weft_mtml_system *system, char *text, unsigned size)
{
    const cJSON *driver = cJSON_GetObjectItemCaseSensitive(root, "driver");
    (void)system;
    (void)snprintf(text, size, "%s", cJSON_IsString(driver) ? driver->valuestring : "");
    return WEFT_MTML_OK;
}

unsigned mock_memory(const struct weft_mtml_device *device, struct weft_mtml_memory **memory)
{
    *memory = &memories[device->gpu][device->instance + 1];
    (*memory)->device = device;
    return WEFT_MTML_OK;
}

unsigned mock_free_memory(struct weft_mtml_memory *memory)
{
    memory->device = NULL;
    return WEFT_MTML_OK;
}

unsigned mock_memory_total(const struct weft_mtml_memory *memory, uint64_t *bytes)
{
    const cJSON *mib = json_of(memory->device, "memory_mib");
    *bytes = cJSON_IsNumber(mib) ? (uint64_t)mib->valueint << 20 : 0;
    return cJSON_IsNumber(mib) ? WEFT_MTML_OK : WEFT_MTML_NOT_SUPPORTED;
}

unsigned mock_link_spec(const struct weft_mtml_device *device, struct weft_mtml_link_spec *spec)
{
    const cJSON *links = json_of(device, "links");
    const cJSON *gbps = json_of(device, "gbps");
    if (!cJSON_IsArray(links)) {
        return WEFT_MTML_NOT_SUPPORTED;
    }
    *spec =
        (struct weft_mtml_link_spec){.version = 10000,
                                     .gbps = cJSON_IsNumber(gbps) ? (uint32_t)gbps->valueint : 0,
                                     .links = count_of(links)};
    return WEFT_MTML_OK;
}

static const cJSON *link_at(const struct weft_mtml_device *device, unsigned link, int part)
{
    return cJSON_GetArrayItem(cJSON_GetArrayItem(json_of(device, "links"), (int)link), part);
}

unsigned mock_link_state(const struct weft_mtml_device *device, unsigned link, unsigned *state)
{
    const cJSON *text = link_at(device, link, 1);
    const char *word = cJSON_IsString(text) ? text->valuestring : "";
    *state = strcmp(word, "up") == 0          ? WEFT_MTML_LINK_UP
             : strcmp(word, "downgrade") == 0 ? WEFT_MTML_LINK_DOWNGRADE
                                              : WEFT_MTML_LINK_DOWN;
    return WEFT_MTML_OK;
}

unsigned mock_link_remote(const struct weft_mtml_device *device, unsigned link,
                          struct weft_mtml_device **remote)
{
    const cJSON *gpu = link_at(device, link, 0);
    if (!cJSON_IsNumber(gpu)) {
        return WEFT_MTML_NOT_SUPPORTED;
    }
    *remote = device_at(gpu->valueint, NO_INSTANCE);
    return WEFT_MTML_OK;
}

unsigned mock_instance_count(const struct weft_mtml_device *device, unsigned *count)
{
    *count = count_of(json_of(device, "instances"));
    return WEFT_MTML_OK;
}

unsigned mock_instance(const struct weft_mtml_device *device, unsigned index,
                       struct weft_mtml_device **instance)
{
    *instance = device_at(device->gpu, (int)index);
    return WEFT_MTML_OK;
}

unsigned mock_profile(const struct weft_mtml_device *instance, struct weft_mtml_profile *profile)
{
    const cJSON *mib = json_of(instance, "memory_mib");
    profile->memory_mib = cJSON_IsNumber(mib) ? (uint64_t)mib->valueint : 0;
    return text_of(instance, "profile", profile->name, sizeof(profile->name));
}
