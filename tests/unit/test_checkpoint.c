/* SPDX-License-Identifier: Apache-2.0 */
/* Whose devices the kubelet has, by its checkpoint. */
#include <errno.h>

#include "deviceplugin/checkpoint.h"
#include "pkg/base/mem.h"
#include "tests/unit/unit.h"

static const char text[] =
    "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"u\",\"ContainerName\":\"main\","
    "\"ResourceName\":\"nvidia.com/gpu\",\"DeviceIDs\":{\"-1\":[\"GPU-in-use\"]},"
    "\"AllocResp\":\"Cg==\"}],\"RegisteredDevices\":{\"nvidia.com/gpu\":[\"GPU-a\",\"GPU-b\"],"
    "\"nvidia.com/mig-1g.10gb\":[],\"odd\":[7],\"other\":\"x\"}},\"Checksum\":2}";

static int first_of(const char *resource, char *id, size_t size)
{
    return weft_checkpoint_device(text, sizeof(text) - 1, resource, id, size, NULL);
}

static void registered_devices_are_found(void)
{
    char id[64] = "x", small[5] = "x";
    CHECK_INT(first_of("nvidia.com/gpu", id, sizeof(id)), 0);
    CHECK_STR(id, "GPU-a");
    CHECK_INT(first_of("nvidia.com/mig-1g.10gb", id, sizeof(id)), 0);
    CHECK_STR(id, "");
    CHECK_INT(first_of("amd.com/gpu", id, sizeof(id)), 0);
    CHECK_STR(id, "");
    CHECK_INT(first_of("odd", id, sizeof(id)), 0);
    CHECK_STR(id, "");
    CHECK_INT(first_of("other", id, sizeof(id)), 0);
    CHECK_STR(id, "");
    CHECK_INT(first_of("nvidia.com/gpu", small, sizeof(small)), 0); /* no half of an id */
    CHECK_STR(small, "");
}

static void what_is_no_checkpoint_is_refused(void)
{
    char id[64];
    static const char *const bad[] = {"", "{", "[]", "{}", "{\"Data\":{}}", "{\"Data\":7}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK_INT(weft_checkpoint_device(bad[i], strlen(bad[i]), "r", id, sizeof(id), NULL),
                  -EINVAL);
        CHECK_STR(id, "");
    }
}

static void lack_of_memory_is_an_error(void)
{
    char id[64];
    for (uint64_t n = 1; n < 1000; n++) {
        (void)weft_mem_fail_after(n);
        const int rc = first_of("nvidia.com/gpu", id, sizeof(id));
        (void)weft_mem_fail_after(0);
        if (rc == 0) {
            CHECK(n > 1);
            CHECK_STR(id, "GPU-a");
            return;
        }
        CHECK_INT(rc, -ENOMEM);
    }
    CHECK(false);
}

WEFT_SUITE(checkpoint, {"registered devices are found", registered_devices_are_found},
           {"what is no checkpoint is refused", what_is_no_checkpoint_is_refused},
           {"lack of memory is an error", lack_of_memory_is_an_error})
