/* SPDX-License-Identifier: Apache-2.0 */
/* weftctl alloc: what the device plugin would prefer on a recorded machine, and why. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ctl/alloc-print.h"
#include "ctl/ctl.h"
#include "pkg/base/buf.h"
#include "pkg/base/str.h"

const char weft_ctl_alloc_help[] =
    "usage: weftctl alloc --machine FILE --size K [options]\n"
    "\n"
    "Chooses K of the available devices of a machine, as the device plugin does for a pod.\n"
    "\n"
    "  --machine FILE    a recorded machine, as for weftctl machine; - is standard input\n"
    "  --size K          how many devices\n"
    "  --available IDS   the devices to choose from; all if not given\n"
    "  --required IDS    devices that must be among them\n"
    "  --policy NAME     performance (default): the best connected set;\n"
    "                    packed: the set that leaves most groups of devices whole\n"
    "  --explain         show the best other set, too, and what decided between the two\n"
    "  -o FORMAT         table (default) or json\n"
    "\n"
    "IDS are device ids or indices, separated by commas: GPU-5f1c...,GPU-92ab... or 0,1.\n"
    "\n"
    "  weftctl alloc --machine topo.txt --size 2\n"
    "  nvidia-smi topo -m | weftctl alloc --machine - --available 0,1,4,5,6 --size 3 -o json\n";

struct options {
    const char *machine, *available, *required, *size, *policy, *output;
    bool explain;
};

struct id_list {
    size_t *devices;
    size_t count;
    size_t cap;
};

static int read_options(int argc, char **argv, struct options *o, struct weft_error *err)
{
    struct weft_ctl_option table[] = {
        {"--machine", &o->machine, 1, 0},
        {"--available", &o->available, 1, 0},
        {"--required", &o->required, 1, 0},
        {"--size", &o->size, 1, 0},
        {"--policy", &o->policy, 1, 0},
        {"--output", &o->output, 1, 0},
        {"-o", &o->output, 1, 0},
        {"--explain", NULL, 1, 0},
        {NULL, NULL, 0, 0},
    };
    const int rc = weft_ctl_options(argc, argv, table, err);
    if (rc < 0) {
        return rc;
    }
    o->explain = table[7].count > 0;
    if (o->machine == NULL || o->size == NULL) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s is needed",
                            o->machine == NULL ? "--machine FILE" : "--size K");
    }
    if (o->output != NULL && strcmp(o->output, "table") != 0 && strcmp(o->output, "json") != 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "-o is table or json, not \"%.40s\"",
                            o->output);
    }
    return 0;
}

static int read_request(const struct options *o, struct weft_request *request,
                        struct weft_error *err)
{
    if (weft_parse_i64(weft_str(o->size), INT64_MIN, INT64_MAX, &request->size) < 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "--size is a number, not \"%.40s\"",
                            o->size);
    }
    if (o->policy != NULL && weft_policy_parse(o->policy, &request->policy) < 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "--policy is performance or packed, not \"%.40s\"", o->policy);
    }
    return 0;
}

/* Names the id and what is there: an id as an example, and all indices as far as they fit. */
static int unknown_id(const struct weft_machine *m, const char *option, struct weft_str id,
                      struct weft_error *err)
{
    enum { LIST_MAX = 60 };
    weft_auto(weft_buf_done) struct weft_buf there;
    weft_buf_init(&there, LIST_MAX + WEFT_DEVICE_ID_MAX + 40);
    for (size_t i = 0; i < m->device_count && there.len < LIST_MAX; i++) {
        (void)weft_buf_printf(&there, "%s%d", i > 0 ? "," : "are indices ", m->devices[i].index);
    }
    if (m->device_count > 0) {
        (void)weft_buf_printf(&there, "%s (id %s%s)", there.len < LIST_MAX ? "" : "...",
                              m->devices[0].id, m->device_count > 1 ? ", ..." : "");
    }
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s: no device \"%.*s\" in %.50s; there %s",
                        option, (int)(id.len < 40 ? id.len : 40), id.data, m->name,
                        m->device_count > 0 ? weft_buf_text(&there) : "is none");
}

static int add_device(struct id_list *list, size_t device)
{
    void *devices = list->devices;
    const int rc = weft_array_reserve(&devices, &list->cap, list->count + 1, sizeof(*list->devices),
                                      4 * (size_t)WEFT_MACHINE_DEVICES_MAX);
    list->devices = devices;
    if (rc == 0) {
        list->devices[list->count++] = device;
    }
    return rc;
}

/* text NULL: all devices. */
static int read_ids(const struct weft_machine *m, const char *option, const char *text,
                    struct id_list *list, struct weft_error *err)
{
    int rc = 0;
    for (size_t i = 0; text == NULL && rc == 0 && i < m->device_count; i++) {
        rc = add_device(list, i);
    }
    struct weft_str rest = weft_str(text != NULL ? text : "");
    struct weft_str piece;
    while (rc == 0 && rest.len > 0 && weft_str_split(&rest, ',', &piece)) {
        char id[WEFT_DEVICE_ID_MAX] = "";
        piece = weft_str_trim(piece);
        if (piece.len < sizeof(id)) {
            memcpy(id, piece.data, piece.len);
        }
        const size_t device = weft_machine_find(m, id);
        if (device == SIZE_MAX) {
            return unknown_id(m, option, piece, err);
        }
        rc = add_device(list, device);
    }
    if (rc == -EFBIG) {
        return weft_err_set(err, rc, WEFT_ERR_CONFIG, "%s: too many ids", option);
    }
    return rc < 0 ? weft_err_nomem(err) : 0;
}

static int print_answer(const struct weft_alloc_answer *answer, bool json, FILE *out,
                        struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf text;
    weft_buf_init(&text, 1U << 20);
    if (json) {
        weft_alloc_print_json(answer, &text);
    } else {
        weft_alloc_print_table(answer, &text);
    }
    if (text.status < 0) {
        return weft_err_nomem(err);
    }
    (void)fputs(weft_buf_text(&text), out);
    return 0;
}

static int choose(const struct weft_machine *m, const struct weft_request *request,
                  const struct options *o, FILE *out, struct weft_error *err)
{
    weft_auto(weft_allocator_free) struct weft_allocator *a = NULL;
    weft_auto(weft_choice_done) struct weft_choice choice = {0};
    weft_auto(weft_choice_done) struct weft_choice other = {0};
    /* one request: tables would cost more than they save */
    int rc = weft_allocator_new_direct(m, &a, err);
    if (rc == 0 && o->explain) {
        rc = weft_allocator_pick_two(a, request, &choice, &other, err);
    } else if (rc == 0) {
        rc = weft_allocator_pick(a, request, &choice, err);
    }
    if (rc < 0) {
        return rc;
    }
    const struct weft_alloc_answer answer = {
        .machine = m, .request = request, .choice = &choice, .other = o->explain ? &other : NULL};
    const bool json = o->output != NULL && strcmp(o->output, "json") == 0;
    return print_answer(&answer, json, out, err);
}

/* Which of the listed devices are left when unhealthy ones and those not in among (NULL: any) are
 * dropped, each once: allocation.md "The request". Owned; NULL without memory. */
static bool *left_of(const struct weft_machine *m, const struct id_list *list, const bool *among,
                     size_t *ret_count)
{
    bool *left = weft_calloc(m->device_count + 1, sizeof(*left));
    *ret_count = 0;
    for (size_t i = 0; left != NULL && i < list->count; i++) {
        const size_t d = list->devices[i];
        if (m->devices[d].healthy && (among == NULL || among[d]) && !left[d]) {
            left[d] = true;
            (*ret_count)++;
        }
    }
    return left;
}

/* A request that is clipped is answered all the same; a person should know that it was. */
static int note_clipping(const struct weft_machine *m, int64_t size,
                         const struct id_list *available, const struct id_list *required, FILE *err)
{
    size_t available_count = 0;
    size_t required_count = 0;
    weft_autofree bool *from = left_of(m, available, NULL, &available_count);
    weft_autofree bool *musts = from != NULL ? left_of(m, required, from, &required_count) : NULL;
    if (musts == NULL) {
        return -ENOMEM;
    }
    const char *before = "note: --required: not available and left out: ";
    bool dropped = false;
    for (size_t i = 0; i < required->count; i++) {
        if (!from[required->devices[i]]) {
            (void)fprintf(err, "%s%s", dropped ? "," : before, m->devices[required->devices[i]].id);
            dropped = true;
        }
    }
    (void)fputs(dropped ? "\n" : "", err);
    if (size <= 0) {
        (void)fprintf(err, "note: --size %" PRId64 " asks for nothing\n", size);
    } else if ((uint64_t)size > available_count) {
        (void)fprintf(err, "note: --size %" PRId64 " is more than is available: %zu\n", size,
                      available_count);
    } else if ((uint64_t)size < required_count) {
        (void)fprintf(err, "note: --size %" PRId64 " is less than is required: %zu\n", size,
                      required_count);
    }
    return 0;
}

static void id_list_done(struct id_list *list)
{
    weft_free(list->devices);
}
WEFT_DEFINE_AUTO_VALUE(struct id_list, id_list_done)

static int run(const struct options *o, const struct weft_machine *m, struct weft_request *request,
               FILE *out, FILE *err)
{
    struct weft_error error = {0};
    weft_auto(id_list_done) struct id_list available = {0};
    weft_auto(id_list_done) struct id_list required = {0};
    const char *required_text = o->required != NULL ? o->required : "";
    if (read_ids(m, "--available", o->available, &available, &error) < 0 ||
        read_ids(m, "--required", required_text, &required, &error) < 0) {
        return error.code == -ENOMEM ? weft_ctl_fail(err, "alloc", error.message)
                                     : weft_ctl_wrong_use(err, "alloc", error.message);
    }
    request->available = available.devices;
    request->available_count = available.count;
    request->required = required.devices;
    request->required_count = required.count;
    if (note_clipping(m, request->size, &available, &required, err) < 0) {
        return weft_ctl_fail(err, "alloc", "out of memory");
    }
    if (choose(m, request, o, out, &error) < 0) {
        return weft_ctl_fail(err, "alloc", error.message);
    }
    return WEFT_CTL_OK;
}

int weft_ctl_alloc_to(int argc, char **argv, FILE *out, FILE *err)
{
    struct options o = {0};
    struct weft_request request = {0};
    struct weft_error error = {0};
    if (read_options(argc, argv, &o, &error) < 0 || read_request(&o, &request, &error) < 0) {
        return weft_ctl_wrong_use(err, "alloc", error.message);
    }
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    if (weft_machine_load(o.machine, &m, &error) < 0) {
        return weft_ctl_fail(err, "alloc", error.message);
    }
    for (size_t i = 0; i < m->warning_count; i++) {
        (void)fprintf(err, "weftctl alloc: %s: %s\n", m->name, m->warnings[i]);
    }
    return run(&o, m, &request, out, err);
}

int weft_ctl_alloc(int argc, char **argv)
{
    return weft_ctl_alloc_to(argc, argv, stdout, stderr);
}
