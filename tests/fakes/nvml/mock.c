/* SPDX-License-Identifier: Apache-2.0 */
/* The mock's file: read, read again, looked up. */
#include "tests/fakes/nvml/mock.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cJSON *root;
static struct stat seen;
static int watch = -1;
static struct weft_nvml_handle handles[MOCK_LIVES_MAX][MOCK_GPUS_MAX][MOCK_INSTANCES_MAX + 1];

static const char *file(void)
{
    const char *path = getenv("WEFT_MOCK_NVML");
    return path != NULL ? path : "";
}

static char *read_whole(int fd, size_t size)
{
    char *text = malloc(size + 1);
    size_t len = 0;
    while (text != NULL && len < size) {
        const ssize_t n = read(fd, text + len, size - len);
        if (n <= 0) {
            break;
        }
        len += (size_t)n;
    }
    if (text != NULL) {
        text[len] = '\0';
    }
    return text;
}

static bool changed(const struct stat *st)
{
    return st->st_ino != seen.st_ino || st->st_size != seen.st_size ||
           st->st_mtim.tv_sec != seen.st_mtim.tv_sec || st->st_mtim.tv_nsec != seen.st_mtim.tv_nsec;
}

static void reload(void)
{
    struct stat st;
    if (stat(file(), &st) < 0 || !changed(&st)) {
        return;
    }
    const int fd = open(file(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    char *text = fstat(fd, &st) == 0 ? read_whole(fd, (size_t)st.st_size) : NULL;
    cJSON *fresh = text != NULL ? cJSON_Parse(text) : NULL;
    free(text);
    (void)close(fd);
    if (fresh != NULL) {
        cJSON_Delete(root);
        root = fresh;
        seen = st;
    }
}

static const cJSON *member(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* Memory that is held at the end of the program is no leak of a test's. */
__attribute__((destructor)) static void forget(void)
{
    (void)pthread_mutex_lock(&lock); /* a thread may still hang in a call */
    const cJSON *hang = member(member(root, "hang_ms"), "exit");
    const struct timespec time = {.tv_sec = hang != NULL ? hang->valueint / 1000 : 0};
    (void)nanosleep(&time, NULL);
    cJSON_Delete(root);
    root = NULL;
    (void)pthread_mutex_unlock(&lock);
    if (watch >= 0) {
        (void)close(watch);
        watch = -1;
    }
}

const cJSON *mock_root(const char *key)
{
    return member(root, key);
}

int mock_gpu_count(void)
{
    const int count = cJSON_GetArraySize(member(root, "gpus"));
    return count < MOCK_GPUS_MAX ? count : MOCK_GPUS_MAX;
}

static const cJSON *own(const struct weft_nvml_handle *device)
{
    const cJSON *gpu = cJSON_GetArrayItem(member(root, "gpus"), device->gpu);
    return device->instance < 0 ? gpu : cJSON_GetArrayItem(member(gpu, "mig"), device->instance);
}

const cJSON *mock_of(const struct weft_nvml_handle *device, const char *key)
{
    const cJSON *found = member(own(device), key);
    return found != NULL || device->instance >= 0 ? found : member(member(root, "every"), key);
}

struct weft_nvml_handle *mock_handle(int gpu, int instance)
{
    const cJSON *life = member(cJSON_GetArrayItem(member(root, "gpus"), gpu), "life");
    const int number = cJSON_IsNumber(life) ? life->valueint % MOCK_LIVES_MAX : 0;
    struct weft_nvml_handle *handle = &handles[number][gpu][instance + 1];
    *handle = (struct weft_nvml_handle){.gpu = gpu, .instance = instance};
    return handle;
}

int mock_begin(const char *function, const struct weft_nvml_handle *device)
{
    (void)pthread_mutex_lock(&lock);
    reload();
    const cJSON *hang = member(member(root, "hang_ms"), function);
    if (hang != NULL) {
        const struct timespec time = {.tv_sec = hang->valueint / 1000,
                                      .tv_nsec = (long)(hang->valueint % 1000) * 1000000};
        (void)pthread_mutex_unlock(&lock);
        (void)nanosleep(&time, NULL);
        (void)pthread_mutex_lock(&lock);
        reload();
    }
    const cJSON *code = member(member(root, "returns"), function);
    if (code == NULL && device != NULL) {
        const bool lost = cJSON_IsTrue(
            mock_of(&(struct weft_nvml_handle){.gpu = device->gpu, .instance = -1}, "lost"));
        code = member(mock_of(device, "returns"), function);
        if (lost) {
            return mock_end(WEFT_NVML_GPU_IS_LOST);
        }
    }
    if (root == NULL) {
        return mock_end(WEFT_NVML_UNKNOWN);
    }
    return code != NULL && code->valueint != 0 ? mock_end(code->valueint) : 0;
}

int mock_end(int rc)
{
    (void)pthread_mutex_unlock(&lock);
    return rc;
}

void mock_wait_change(int ms)
{
    if (watch < 0) {
        char folder[PATH_MAX];
        (void)snprintf(folder, sizeof(folder), "%s", file());
        char *slash = strrchr(folder, '/');
        if (slash != NULL) {
            *slash = '\0';
        }
        watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        (void)inotify_add_watch(watch, slash != NULL ? folder : ".", IN_MOVED_TO | IN_CLOSE_WRITE);
    }
    struct pollfd fd = {.fd = watch, .events = POLLIN};
    if (poll(&fd, 1, ms) > 0) {
        char events[4096];
        (void)!read(watch, events, sizeof(events));
    }
}

/* ---- values ---- */

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

/* "0000:1b:00.0" */
bool mock_bdf(const cJSON *text, struct weft_nvml_pci *pci)
{
    if (!cJSON_IsString(text)) {
        return false;
    }
    uint32_t part[4] = {0};
    size_t at = 0;
    for (const char *c = text->valuestring; *c != '\0' && at < 4; c++) {
        const int digit = hex_digit(*c);
        if (digit < 0) {
            at++;
        } else {
            part[at] = part[at] * 16 + (uint32_t)digit;
        }
    }
    *pci = (struct weft_nvml_pci){.domain = part[0], .bus = part[1], .device = part[2]};
    (void)snprintf(pci->bus_id, sizeof(pci->bus_id), "%08X:%02X:%02X.0", part[0], part[1], part[2]);
    (void)snprintf(pci->bus_id_legacy, sizeof(pci->bus_id_legacy), "%04X:%02X:%02X.0",
                   part[0] & 0xffff, part[1] & 0xff, part[2] & 0x1f);
    return true;
}

int mock_text(const cJSON *text, char *to, unsigned size)
{
    if (!cJSON_IsString(text)) {
        return WEFT_NVML_NOT_SUPPORTED;
    }
    if (strlen(text->valuestring) >= size) {
        return WEFT_NVML_INSUFFICIENT_SIZE;
    }
    (void)snprintf(to, size, "%s", text->valuestring);
    return WEFT_NVML_OK;
}

int mock_number(const cJSON *number, unsigned *to)
{
    if (!cJSON_IsNumber(number)) {
        return WEFT_NVML_NOT_SUPPORTED;
    }
    *to = (unsigned)number->valueint;
    return WEFT_NVML_OK;
}
