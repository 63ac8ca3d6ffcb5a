/* SPDX-License-Identifier: Apache-2.0 */
/* Health of NVIDIA GPUs on the mock of the driver's library: what each event does to which device,
 * and what makes it healthy again. */
#include <errno.h>
#include <stdio.h>

#include "deviceplugin/health.h"
#include "pkg/base/clock.h"
#include "pkg/machine/discover-nvml.h"
#include "pkg/machine/machine.h"
#include "tests/unit/nvml_world.h"
#include "tests/unit/unit.h"

#define GPU(n) "GPU-0000000" #n "-0000-4000-8000-00000000000" #n
#define LOST "the GPU is lost: it has fallen off the bus or does not answer"
#define MIG(n) "MIG-0000001" #n "-0000-4000-8000-00000000001" #n

/* An open backend on a world, and its last machine. */
struct watched {
    struct nvml_world w;
    struct weft_health_settings settings;
    void *state;
    struct weft_machine *m;
};

static void look(struct watched *t)
{
    weft_machine_free(t->m);
    t->m = NULL;
    CHECK_INT(weft_backend_nvml.enumerate(t->state, &t->m, NULL), 0);
}

static bool is_fault(void *data, uint64_t code)
{
    return weft_health_counts(data, code);
}

static bool up(struct watched *t, const char *fixture, int gpus)
{
    *t = (struct watched){0};
    nvml_world_up(&t->w, fixture, gpus);
    weft_health_settings_init(&t->settings);
    t->w.options.is_fault = is_fault;
    t->w.options.is_fault_data = &t->settings;
    if (!CHECK_INT(weft_backend_nvml.open(&t->w.options, &t->state, NULL), 0)) {
        return false;
    }
    look(t);
    return t->m != NULL;
}

static void down(struct watched *t)
{
    weft_machine_free(t->m);
    weft_backend_nvml.close(t->state);
}

static void tell(struct watched *t, const char *events)
{
    char text[512];
    (void)snprintf(text, sizeof(text), "{\n \"events\": [%s],\n \"driver\"", events);
    nvml_world_edit(&t->w, "{\n \"driver\"", text);
}

/* Events are counted by the mock: one more, after those that were told. */
static void tell_more(struct watched *t, const char *event)
{
    char text[512];
    (void)snprintf(text, sizeof(text), ", %s],\n \"driver\"", event);
    nvml_world_edit(&t->w, "],\n \"driver\"", text);
}

/* The next event; kind -1: there is none. */
static void expect(struct watched *t, int kind, const char *device, uint64_t code,
                   const char *reason)
{
    struct weft_backend_event event = {0};
    struct weft_error err = {0};
    const int rc = weft_backend_nvml.wait(t->state, 20 * WEFT_NS_PER_MS, &event, &err);
    if (!CHECK_INT(rc, kind < 0 ? 0 : 1) || rc < 1) {
        return;
    }
    CHECK_INT(event.kind, kind);
    CHECK_STR(event.device, device);
    CHECK_INT(event.code, code);
    CHECK_CONTAINS(event.reason, reason);
}

static void expect_health(const struct watched *t, size_t device, const char *reason)
{
    if (t->m != NULL && device < t->m->device_count) {
        CHECK_STR(t->m->devices[device].health_reason, reason);
        CHECK_INT(t->m->devices[device].healthy, reason[0] == '\0');
    }
}

static void an_xid_is_the_fault_of_its_gpu_until_the_driver_is_content(void)
{
    struct watched t;
    if (up(&t, "hgx-h100-8.json", 8)) {
        nvml_world_edit(&t.w, "\"minor\": 5,", "\"minor\": 5, \"recovery\": 1,");
        tell(&t, "{\"gpu\": 5, \"type\": 8, \"data\": 95}");
        expect(&t, WEFT_EVENT_UNHEALTHY, GPU(5), 95, "XID 95: uncontained memory error");
        look(&t);
        expect_health(&t, 5, "XID 95: uncontained memory error");
        expect_health(&t, 4, "");
        look(&t);
        expect_health(&t, 5, "XID 95: uncontained memory error"); /* still to be reset */
        nvml_world_edit(&t.w, "\"recovery\": 1,", "\"recovery\": 0,");
        look(&t);
        expect_health(&t, 5, "");
        expect(&t, -1, "", 0, "");
    }
    down(&t);
}

/* Drivers before 560 tell no recovery action. */
static void without_recovery_advice_a_fault_stays_until_a_reset(void)
{
    struct watched t;
    if (up(&t, "dgx1v.json", 8)) {
        tell(&t, "{\"gpu\": 2, \"type\": 8, \"data\": 74}");
        expect(&t, WEFT_EVENT_UNHEALTHY, "GPU-00000102-0000-4000-8000-000000000102", 74, "NVLink");
        look(&t);
        expect_health(&t, 2, "XID 74: NVLink error");
        nvml_world_edit(&t.w, "\"minor\": 2,", "\"minor\": 2, \"life\": 1,"); /* it was reset */
        look(&t);
        expect_health(&t, 2, "");
        tell_more(&t, "{\"gpu\": 2, \"type\": 8, \"data\": 95}");
        expect(&t, WEFT_EVENT_UNHEALTHY, "GPU-00000102-0000-4000-8000-000000000102", 95, "XID 95");
        nvml_world_edit(&t.w, "\"minor\": 2,", "\"minor\": 2, \"lost\": true,");
        look(&t);
        expect_health(&t, 2, LOST);
        nvml_world_edit(&t.w, " \"lost\": true,", ""); /* back from the dead, too */
        look(&t);
        expect_health(&t, 2, "");
        tell_more(&t, "{\"gpu\": 2, \"type\": 8, \"data\": 62}");
        expect(&t, WEFT_EVENT_UNHEALTHY, "GPU-00000102-0000-4000-8000-000000000102", 62, "XID 62");
        look(&t);
        expect_health(&t, 2, "XID 62: internal microcontroller halt");
        weft_backend_nvml.close(t.state); /* the driver was loaded again */
        t.state = NULL;
        CHECK_INT(weft_backend_nvml.open(&t.w.options, &t.state, NULL), 0);
        look(&t);
        expect_health(&t, 2, "");
    }
    down(&t);
}

/* NVIDIA's catalogue asks for no reset after these. */
static void some_faults_need_no_reset(void)
{
    static const int xids[] = {63, 94, 48, 61, 64, 79, 95, 119}; /* the first two */
    for (size_t i = 0; i < WEFT_ARRAY_LEN(xids); i++) {
        struct watched t;
        if (up(&t, "dgx1v.json", 8)) {
            char event[64];
            (void)snprintf(event, sizeof(event), "{\"gpu\": 0, \"type\": 8, \"data\": %d}",
                           xids[i]);
            tell(&t, event);
            expect(&t, WEFT_EVENT_UNHEALTHY, "GPU-00000100-0000-4000-8000-000000000100",
                   (uint64_t)xids[i], "XID");
            look(&t);
            CHECK_INT(t.m != NULL && t.m->devices[0].healthy, i < 2);
        }
        down(&t);
    }
}

static void xids_of_programs_are_notices(void)
{
    static const int ignored[] = {13, 31, 43, 45, 68, 109};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(ignored); i++) {
        struct watched t;
        if (up(&t, "hgx-h100-8.json", 8)) {
            char event[64];
            (void)snprintf(event, sizeof(event), "{\"gpu\": 0, \"type\": 8, \"data\": %d}",
                           ignored[i]);
            tell(&t, event);
            expect(&t, WEFT_EVENT_NOTICE, GPU(0), (uint64_t)ignored[i], "XID");
            look(&t);
            expect_health(&t, 0, "");
        }
        down(&t);
    }
}

static void the_list_of_ignored_xids_can_be_set(void)
{
    struct watched t;
    if (up(&t, "hgx-h100-8.json", 8)) {
        weft_backend_nvml.close(t.state);
        t.state = NULL;
        CHECK_INT(weft_health_set_ignored(&t.settings, "79, 95", NULL), 0);
        CHECK_INT(weft_backend_nvml.open(&t.w.options, &t.state, NULL), 0);
        look(&t);
        tell(&t,
             "{\"gpu\": 0, \"type\": 8, \"data\": 79}, {\"gpu\": 1, \"type\": 8, \"data\": 13}");
        expect(&t, WEFT_EVENT_NOTICE, GPU(0), 79, "XID 79");
        expect(&t, WEFT_EVENT_UNHEALTHY, GPU(1), 13, "XID 13");
    }
    down(&t);
}

static void a_fault_of_nobody_is_everybodys(void)
{
    struct watched t;
    if (up(&t, "hgx-h100-8.json", 8)) {
        nvml_world_edit(&t.w, "\"minor\": 7,", "\"minor\": 7, \"recovery\": 1,");
        tell(&t, "{\"type\": 8, \"data\": 79}");
        expect(&t, WEFT_EVENT_UNHEALTHY, "", 79, "XID 79: GPU has fallen off the bus");
        look(&t);
        for (size_t i = 0; i < 8; i++) {
            expect_health(&t, i, "XID 79: GPU has fallen off the bus");
        }
        nvml_world_edit(&t.w, "\"recovery\": 1,", ""); /* the last of them is content */
        look(&t);
        expect_health(&t, 0, "");
        expect_health(&t, 7, "");
    }
    down(&t);
}

static void a_mig_fault_is_its_instances(void)
{
    struct watched t;
    if (up(&t, "mig-mixed.json", 2)) { /* instances gi 1, 9, 11, each with ci 0; and GPU 1 */
        nvml_world_edit(&t.w, ", \"recovery\": 0", ""); /* this driver cannot say it is over */
        tell(&t, "{\"gpu\": 0, \"type\": 8, \"data\": 95, \"gi\": 9, \"ci\": 0}, "
                 "{\"gpu\": 0, \"type\": 8, \"data\": 95, \"gi\": 1}");
        expect(&t, WEFT_EVENT_UNHEALTHY, MIG(1), 95, "XID 95");
        expect(&t, WEFT_EVENT_UNHEALTHY, MIG(0), 95, "XID 95");
        expect(&t, -1, "", 0, "");
        look(&t);
        expect_health(&t, 0, "XID 95: uncontained memory error");
        expect_health(&t, 1, "XID 95: uncontained memory error");
        expect_health(&t, 2, "");
        expect_health(&t, 3, "");
    }
    down(&t);
}

static void a_fault_of_a_partitioned_gpu_is_all_its_instances(void)
{
    static const char *const rows[] = {
        "{\"gpu\": 0, \"type\": 8, \"data\": 79}",             /* the whole GPU */
        "{\"gpu\": 0, \"type\": 8, \"data\": 79, \"gi\": 77}", /* an instance nobody knows */
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        struct watched t;
        if (up(&t, "mig-mixed.json", 2)) {
            nvml_world_edit(&t.w, ", \"recovery\": 0", "");
            tell(&t, rows[i]);
            expect(&t, WEFT_EVENT_UNHEALTHY, MIG(0), 79, "XID 79");
            expect(&t, WEFT_EVENT_UNHEALTHY, MIG(1), 79, "XID 79");
            expect(&t, WEFT_EVENT_UNHEALTHY, MIG(2), 79, "XID 79");
            look(&t);
            expect_health(&t, 2, "XID 79: GPU has fallen off the bus");
            expect_health(&t, 3, "");
        }
        down(&t);
    }
}

static void a_lost_gpu_stays_with_its_wiring_and_comes_back(void)
{
    struct watched t;
    if (up(&t, "dgx1v.json", 8)) {
        nvml_world_edit(&t.w, "\"minor\": 4,", "\"minor\": 4, \"lost\": true,");
        expect(&t, WEFT_EVENT_CHANGED, "", 0, LOST); /* seen without any event */
        look(&t);
        CHECK_INT(t.m != NULL ? t.m->device_count : 0, 8);
        expect_health(&t, 4, LOST);
        expect_health(&t, 0, "");
        if (t.m != NULL && t.m->device_count == 8) {
            CHECK_STR(t.m->devices[4].id, "GPU-00000104-0000-4000-8000-000000000104");
            CHECK_INT(weft_machine_b(t.m, 0, 4), 2 * 25781);
            CHECK_INT(weft_machine_t(t.m, 4, 5), WEFT_DISTANCE_PIX);
            CHECK_INT(t.m->devices[4].node_count, 1);
        }
        nvml_world_edit(&t.w, " \"lost\": true,", "");
        look(&t);
        expect_health(&t, 4, "");
        CHECK_INT(t.m != NULL ? t.m->device_count : 0, 8);
    }
    down(&t);
}

/* The kernel module still tells the UUID of a GPU that was lost before the plugin started. */
static void a_gpu_lost_from_the_start_is_named_or_left_out(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "hgx-h100-8.json", 8);
    nvml_world_edit(&w, "\"minor\": 4,", "\"minor\": 4, \"lost\": true,");
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m != NULL) {
        CHECK_INT(m->device_count, 7);
        CHECK(nvml_warns(m, "GPU 4 is left out: it tells no UUID: " LOST));
        CHECK_INT(weft_machine_b(m, 0, 6), 18 * 26562);
    }
    static const char *const addresses[] = {"1b", "43", "52", "61", "9d", "c3", "d1", "df"};
    for (int i = 0; i < 8; i++) {
        char path[128], text[128];
        (void)snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/0000:%s:00.0/information",
                       addresses[i]);
        (void)snprintf(text, sizeof(text),
                       "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-0000000%d-0000-4000-8000-"
                       "00000000000%d\nDevice Minor: \t %d\n",
                       i, i, i);
        nvml_world_put(&w, path, text);
    }
    weft_auto(weft_machine_free) struct weft_machine *named = nvml_world_look(&w);
    if (named != NULL && CHECK_INT(named->device_count, 8)) {
        CHECK_STR(named->devices[4].id, GPU(4));
        CHECK_STR(named->devices[4].health_reason, LOST);
        CHECK_INT(named->devices[4].bdf.bus, 0x9d);
        CHECK_INT(weft_machine_b(named, 0, 4), 0); /* nobody ever saw its links */
    }
}

static void the_drivers_advice_decides(void)
{
    static const char *const reasons[] = {
        "",
        "the driver asks for a reset of the GPU",
        "the driver asks for a reboot of the node",
        "the driver asks to drain peer-to-peer work from the GPU",
        "the driver asks to drain and reset the GPU",
        "the driver asks for a recovery of the GPU",
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(reasons); i++) {
        struct watched t;
        if (up(&t, "hgx-h100-8.json", 8)) {
            char action[64];
            (void)snprintf(action, sizeof(action), "\"minor\": 1, \"recovery\": %zu,", i);
            nvml_world_edit(&t.w, "\"minor\": 1,", action);
            if (i > 0) { /* seen without any event */
                expect(&t, WEFT_EVENT_CHANGED, "", 0, "the driver's advice for a GPU changed");
            }
            look(&t);
            expect_health(&t, 1, reasons[i]);
            expect_health(&t, 2, "");
        }
        down(&t);
    }
}

/* An answer that any GPU should give and this one does not. */
static void an_odd_answer_is_a_doubt(void)
{
    struct watched t;
    if (up(&t, "hgx-h100-8.json", 8)) {
        nvml_world_edit(&t.w, "\"minor\": 3,",
                        "\"minor\": 3, \"returns\": {\"nvmlDeviceGetMemoryInfo\": 999},");
        expect(&t, WEFT_EVENT_CHANGED, "", 0, "the driver reports an error of its own");
        look(&t);
        if (t.m != NULL) {
            CHECK(t.m->devices[3].healthy);
            CHECK_INT(t.m->devices[3].state, WEFT_DEVICE_SUSPECT);
            CHECK_STR(t.m->devices[3].health_reason,
                      "asked for its memory: the driver reports an error of its own (NVML 999)");
            CHECK_INT(t.m->devices[2].state, WEFT_DEVICE_PLAIN);
        }
        expect(&t, -1, "", 0, ""); /* known by now */
        nvml_world_edit(&t.w, "{\"nvmlDeviceGetMemoryInfo\": 999}", "{}");
        expect(&t, WEFT_EVENT_CHANGED, "", 0, "");
        look(&t);
        expect_health(&t, 3, "");
        CHECK(t.m == NULL || t.m->devices[3].state == WEFT_DEVICE_PLAIN);
    }
    down(&t);
}

static void memory_that_is_worn_out_is_a_fault(void)
{
    struct watched t;
    if (up(&t, "hgx-h100-8.json", 8)) {
        nvml_world_edit(&t.w, "\"minor\": 1,", "\"minor\": 1, \"rows\": [0, 2, 1, 0],");
        look(&t);
        expect_health(&t, 1, ""); /* NVIDIA: new workloads can be launched */
        CHECK(t.m != NULL &&
              nvml_warns(t.m, GPU(1) ": memory rows are remapped at its next reset"));
        nvml_world_edit(&t.w, "[0, 2, 1, 0]", "[0, 9, 0, 1]");
        look(&t);
        expect_health(&t, 1, "its memory has no spare rows left: it has to be replaced");
        expect_health(&t, 0, "");
    }
    down(&t);
}

/* GPU 5 is at 0000:c3:00.0. */
static void what_the_kernel_says_of_the_function_counts(void)
{
    struct watched t;
    if (up(&t, "hgx-h100-8.json", 8)) {
        look(&t);
        expect_health(&t, 5, ""); /* a sysfs that never had it, as in a virtual machine */
        nvml_world_put(&t.w, "/sys/bus/pci/devices/0000:c3:00.0/current_link_width", "16\n");
        look(&t);
        expect_health(&t, 5, "");
        nvml_world_put(&t.w, "/sys/bus/pci/devices/0000:c3:00.0/current_link_width", "63\n");
        expect(&t, WEFT_EVENT_CHANGED, "", 0, LOST);
        look(&t);
        expect_health(&t, 5, LOST);
        nvml_world_put(&t.w, "/sys/bus/pci/devices/0000:c3:00.0/power_state", "D3cold\n");
        look(&t);
        expect_health(&t, 5, ""); /* it only sleeps */
        char path[300];
        (void)snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/0000:c3:00.0", t.w.root);
        char away[300];
        (void)snprintf(away, sizeof(away), "%s/away", t.w.root);
        CHECK_INT(rename(path, away), 0);
        expect(&t, WEFT_EVENT_CHANGED, "", 0, LOST);
        look(&t);
        expect_health(&t, 5, LOST);
        expect_health(&t, 4, "");
        CHECK_INT(rename(away, path), 0);
        look(&t);
        expect_health(&t, 5, "");
    }
    down(&t);
}

/* The library does not even list it any more: the others' numbers are other ones then. */
static void a_gpu_that_is_not_listed_any_more_stays(void)
{
    struct watched t;
    if (up(&t, "hgx-h100-8.json", 8)) {
        size_t len = 0;
        weft_autofree char *whole = weft_fixture_text("nvml/hgx-h100-8.json", &len);
        const char *begin = whole != NULL ? strstr(whole, "  {\"uuid\": \"" GPU(4)) : NULL;
        const char *end = begin != NULL ? strchr(begin, '\n') : NULL;
        weft_autofree char *line =
            end != NULL ? weft_strndup(begin, (size_t)(end - begin) + 1) : NULL;
        if (!CHECK_INT(line != NULL, 1) || line == NULL) {
            return;
        }
        nvml_world_edit(&t.w, line, "");
        for (int i = 0; i < 2; i++) { /* and goes on staying */
            look(&t);
            CHECK_INT(t.m != NULL ? t.m->device_count : 0, 8);
            if (t.m != NULL && t.m->device_count == 8) {
                CHECK_STR(t.m->devices[7].id, GPU(4)); /* behind the others */
                CHECK_STR(t.m->devices[4].id, GPU(5));
                CHECK_INT(t.m->devices[7].node_count, 1);
            }
            expect_health(&t, 7, LOST);
            expect_health(&t, 4, "");
        }
        weft_autofree char *back = weft_asprintf("\"gpus\": [\n%s", line);
        nvml_world_edit(&t.w, "\"gpus\": [\n", back != NULL ? back : "");
        look(&t);
        CHECK_INT(t.m != NULL ? t.m->device_count : 0, 8);
        for (size_t i = 0; i < 8; i++) {
            expect_health(&t, i, "");
        }
    }
    down(&t);
}

static void changes_and_unavailable_gpus_are_events(void)
{
    struct watched t;
    if (up(&t, "hgx-h100-8.json", 8)) {
        tell(&t, "{\"gpu\": 0, \"type\": 256}, {\"gpu\": 2, \"type\": 16384}, "
                 "{\"gpu\": 0, \"type\": 32768}");
        expect(&t, WEFT_EVENT_CHANGED, "", 0, "MIG instances changed");
        expect(&t, WEFT_EVENT_UNHEALTHY, GPU(2), 0, "the driver says the GPU is unavailable");
        expect(&t, WEFT_EVENT_CHANGED, "", 0, "the driver's advice for a GPU changed");
    }
    down(&t);
}

static void a_wait_that_fails_is_told_apart(void)
{
    struct watched t;
    if (up(&t, "hgx-h100-8.json", 8)) {
        nvml_world_edit(&t.w, "{\n", "{\n \"returns\": {\"nvmlEventSetWait_v2\": 15},\n");
        expect(&t, WEFT_EVENT_CHANGED, "", 0, LOST);
        struct weft_backend_event event;
        CHECK_INT(weft_backend_nvml.wait(t.state, 0, &event, NULL), -ENOTSUP); /* until a look */
        nvml_world_edit(&t.w, "_v2\": 15}", "_v2\": 1}");
        look(&t);
        struct weft_error err = {0};
        CHECK_INT(weft_backend_nvml.wait(t.state, 0, &event, &err), -EIO);
        CHECK_CONTAINS(err.message, "lost its connection to the driver");
    }
    down(&t);
}

/* A wait that always fails is not tried for ever, and health is looked at instead. */
static void waits_that_fail_again_and_again_are_given_up(void)
{
    struct watched t;
    if (up(&t, "hgx-h100-8.json", 8)) {
        nvml_world_edit(&t.w, "{\n", "{\n \"returns\": {\"nvmlEventSetWait_v2\": 999},\n");
        for (int i = 0; i < 4; i++) {
            expect(&t, WEFT_EVENT_CHANGED, "", 0, "the driver reports an error of its own");
            look(&t);
            expect_health(&t, 0, "");
        }
        struct weft_backend_event event;
        CHECK_INT(weft_backend_nvml.wait(t.state, 0, &event, NULL), -ENOTSUP);
        CHECK(t.m != NULL && nvml_warns(t.m, "the driver tells no events"));
    }
    down(&t);
}

static void many_faults_are_remembered_within_bounds(void)
{
    struct watched t;
    if (up(&t, "hgx-h100-8.json", 8)) {
        nvml_world_edit(&t.w, ", \"recovery\": 0", "");
        weft_autofree char *events = weft_calloc(1, 1 << 14);
        size_t len = 0;
        for (int i = 0; events != NULL && i < 100; i++) {
            len += (size_t)snprintf(events + len, (1 << 14) - len,
                                    "%s{\"gpu\": 0, \"type\": 8, \"data\": 95, \"gi\": %d}",
                                    i > 0 ? ", " : "", i);
        }
        weft_autofree char *text =
            weft_asprintf("{\n \"events\": [%s],\n \"driver\"", events != NULL ? events : "");
        nvml_world_edit(&t.w, "{\n \"driver\"", text);
        for (int i = 0; i < 100; i++) {
            expect(&t, WEFT_EVENT_UNHEALTHY, GPU(0), 95, "XID 95");
        }
        look(&t);
        expect_health(&t, 0, "XID 95: uncontained memory error");
    }
    down(&t);
}

WEFT_SUITE(nvml_health,
           {"an XID is the fault of its GPU until the driver is content",
            an_xid_is_the_fault_of_its_gpu_until_the_driver_is_content},
           {"without recovery advice a fault stays until a reset",
            without_recovery_advice_a_fault_stays_until_a_reset},
           {"some faults need no reset", some_faults_need_no_reset},
           {"XIDs of programs are notices", xids_of_programs_are_notices},
           {"the list of ignored XIDs can be set", the_list_of_ignored_xids_can_be_set},
           {"a fault of nobody is everybody's", a_fault_of_nobody_is_everybodys},
           {"a MIG fault is its instance's", a_mig_fault_is_its_instances},
           {"a fault of a partitioned GPU is all its instances'",
            a_fault_of_a_partitioned_gpu_is_all_its_instances},
           {"a lost GPU stays with its wiring and comes back",
            a_lost_gpu_stays_with_its_wiring_and_comes_back},
           {"a GPU lost from the start is named or left out",
            a_gpu_lost_from_the_start_is_named_or_left_out},
           {"the driver's advice decides", the_drivers_advice_decides},
           {"an odd answer is a doubt", an_odd_answer_is_a_doubt},
           {"memory that is worn out is a fault", memory_that_is_worn_out_is_a_fault},
           {"what the kernel says of the function counts",
            what_the_kernel_says_of_the_function_counts},
           {"a GPU that is not listed any more stays", a_gpu_that_is_not_listed_any_more_stays},
           {"changes and unavailable GPUs are events", changes_and_unavailable_gpus_are_events},
           {"a wait that fails is told apart", a_wait_that_fails_is_told_apart},
           {"waits that fail again and again are given up",
            waits_that_fail_again_and_again_are_given_up},
           {"many faults are remembered within bounds", many_faults_are_remembered_within_bounds})
