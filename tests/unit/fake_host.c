/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts for tests, from short texts. */
#include "tests/unit/fake_host.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/buf.h"
#include "pkg/base/str.h"
#include "pkg/machine/host-internal.h"
#include "tests/unit/unit.h"

enum { TEXT_MAX = 1024, VALUE_MAX = 65536 };

static bool add_file(struct weft_host *host, const char *path, const char *text)
{
    return weft_host_add_file(host, path, text, strlen(text)) == 0;
}

static bool add_link(struct weft_host *host, const char *path, const char *target)
{
    return weft_host_add_link(host, path, target) == 0;
}

/* Takes the next word off; a value in double quotes may hold blanks. */
static bool word(struct weft_str *rest, char *text)
{
    *rest = weft_str_trim(*rest);
    size_t n = 0;
    bool quoted = false;
    while (rest->len > 0 && (quoted || rest->data[0] != ' ')) {
        if (rest->data[0] == '"') {
            quoted = !quoted;
        } else if (n + 1 < TEXT_MAX) {
            text[n++] = rest->data[0];
        }
        rest->data++;
        rest->len--;
    }
    text[n] = '\0';
    return n > 0;
}

/* Splits "key=value" in place; NULL if there is no '='. */
static char *value_of(char *text)
{
    char *value = strchr(text, '=');
    if (value != NULL) {
        *value++ = '\0';
    }
    return value;
}

static bool add_drm(struct weft_host *host, const char *chain, const char *names)
{
    struct weft_str rest = weft_str(names);
    struct weft_str name;
    char path[2 * TEXT_MAX];
    while (weft_str_split(&rest, ',', &name)) {
        (void)snprintf(path, sizeof(path), "/sys/devices/%s/drm/%.*s/uevent", chain,
                       WEFT_STR_ARG(name));
        if (!add_file(host, path, "")) {
            return false;
        }
    }
    return true;
}

static bool add_attribute(struct weft_host *host, const char *folder, const char *key,
                          const char *value)
{
    char path[3 * TEXT_MAX];
    char target[2 * TEXT_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, key);
    if (strcmp(key, "driver") == 0) {
        (void)snprintf(target, sizeof(target), "/sys/bus/pci/drivers/%s", value);
        if (!add_link(host, path, target)) {
            return false;
        }
        (void)snprintf(path, sizeof(path), "/sys/bus/pci/drivers/%s/bind", value);
        return add_file(host, path, "");
    }
    if (strcmp(key, "physfn") == 0) {
        (void)snprintf(target, sizeof(target), "../%s", value);
        return add_link(host, path, target);
    }
    (void)snprintf(target, sizeof(target), "%s\n", value);
    return add_file(host, path, target);
}

static bool line_pci(struct weft_host *host, struct weft_str *rest)
{
    char chain[TEXT_MAX];
    char path[2 * TEXT_MAX];
    char target[2 * TEXT_MAX];
    char text[TEXT_MAX];
    if (!word(rest, chain)) {
        return false;
    }
    const char *name = strrchr(chain, '/');
    (void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", name == NULL ? chain : name + 1);
    (void)snprintf(target, sizeof(target), "../../../devices/%s", chain);
    bool ok = add_link(host, path, target);
    (void)snprintf(path, sizeof(path), "/sys/devices/%s", chain);
    ok = ok && add_attribute(host, path, "uevent", "");
    while (ok && word(rest, text)) {
        const char *value = value_of(text);
        if (value == NULL) {
            return false;
        }
        ok = strcmp(text, "drm") == 0 ? add_drm(host, chain, value)
                                      : add_attribute(host, path, text, value);
    }
    return ok;
}

static bool line_class(struct weft_host *host, const char *class, struct weft_str *rest)
{
    char name[TEXT_MAX];
    char chain[TEXT_MAX];
    char path[3 * TEXT_MAX];
    char target[3 * TEXT_MAX];
    char text[TEXT_MAX];
    if (!word(rest, name) || !word(rest, chain)) {
        return false;
    }
    (void)snprintf(path, sizeof(path), "/sys/class/%s/%s", class, name);
    (void)snprintf(target, sizeof(target), "../../devices/%s/%s/%s", chain, class, name);
    bool ok = add_link(host, path, target);
    (void)snprintf(path, sizeof(path), "/sys/devices/%s/%s/%s/device", chain, class, name);
    const char *virtual = strncmp(chain, "virtual", 7) == 0 ? NULL : chain;
    if (virtual != NULL) {
        ok = ok && add_link(host, path, "../..");
    }
    (void)snprintf(path, sizeof(path), "/sys/devices/%s/%s/%s", chain, class, name);
    while (ok && word(rest, text)) {
        const char *value = value_of(text);
        ok = value != NULL && add_attribute(host, path, text, value);
    }
    return ok;
}

static bool line_cpus(struct weft_host *host, struct weft_str *rest)
{
    int range[3];
    char text[TEXT_MAX];
    char path[TEXT_MAX];
    for (size_t i = 0; i < WEFT_ARRAY_LEN(range); i++) {
        int64_t value = 0;
        if (!word(rest, text) || weft_parse_i64(weft_str(text), 0, 4096, &value) < 0) {
            return false;
        }
        range[i] = (int)value;
    }
    (void)snprintf(text, sizeof(text), "%d\n", range[2]);
    bool ok = true;
    for (int cpu = range[0]; ok && cpu <= range[1]; cpu++) {
        (void)snprintf(path, sizeof(path),
                       "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
        ok = add_file(host, path, text);
    }
    return ok;
}

static bool line_node(struct weft_host *host, struct weft_str *rest)
{
    char number[TEXT_MAX];
    char list[TEXT_MAX];
    char path[2 * TEXT_MAX];
    if (!word(rest, number)) {
        return false;
    }
    (void)word(rest, list);
    (void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%s/cpulist", number);
    return add_file(host, path, list);
}

/* The rest of a line as "key value" lines in folder/properties; gpu_id and name are files. */
static bool add_properties(struct weft_host *host, const char *folder, struct weft_str *rest)
{
    char text[TEXT_MAX];
    char path[2 * TEXT_MAX];
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, VALUE_MAX);
    while (word(rest, text)) {
        const char *value = value_of(text);
        if (value == NULL) {
            return false;
        }
        if (strcmp(text, "gpu_id") == 0 || strcmp(text, "name") == 0) {
            if (!add_attribute(host, folder, text, value)) {
                return false;
            }
            continue;
        }
        (void)weft_buf_printf(&buf, "%s %s\n", text, value);
    }
    (void)snprintf(path, sizeof(path), "%s/properties", folder);
    return buf.status == 0 && add_file(host, path, weft_buf_text(&buf));
}

#define KFD_NODES "/sys/devices/virtual/kfd/kfd/topology/nodes"

static bool line_kfd(struct weft_host *host, struct weft_str *rest)
{
    char number[TEXT_MAX];
    char folder[2 * TEXT_MAX];
    if (!word(rest, number) ||
        !add_link(host, "/sys/class/kfd/kfd", "../../devices/virtual/kfd/kfd")) {
        return false;
    }
    (void)snprintf(folder, sizeof(folder), KFD_NODES "/%s", number);
    return add_properties(host, folder, rest);
}

static bool line_link(struct weft_host *host, struct weft_str *rest)
{
    char node[TEXT_MAX];
    char kind[TEXT_MAX];
    char number[TEXT_MAX];
    char folder[4 * TEXT_MAX];
    if (!word(rest, node) || !word(rest, kind) || !word(rest, number)) {
        return false;
    }
    (void)snprintf(folder, sizeof(folder), KFD_NODES "/%s/%s/%s", node, kind, number);
    return add_properties(host, folder, rest);
}

static bool add_pair(struct weft_host *host, int a, int b, struct weft_str properties)
{
    for (int way = 0; way < 2; way++) {
        char folder[TEXT_MAX];
        char text[2 * TEXT_MAX];
        const int from = way == 0 ? a : b;
        const int to = way == 0 ? b : a;
        (void)snprintf(folder, sizeof(folder), KFD_NODES "/%d/io_links/%d", from, to);
        (void)snprintf(text, sizeof(text), "node_from=%d node_to=%d %.*s", from, to,
                       (int)(properties.len < TEXT_MAX ? properties.len : TEXT_MAX),
                       properties.data);
        struct weft_str rest = weft_str(text);
        if (!add_properties(host, folder, &rest)) {
            return false;
        }
    }
    return true;
}

static bool two_numbers(struct weft_str *rest, int *numbers)
{
    for (size_t i = 0; i < 2; i++) {
        char text[TEXT_MAX];
        int64_t value = 0;
        if (!word(rest, text) || weft_parse_i64(weft_str(text), 0, 4096, &value) < 0) {
            return false;
        }
        numbers[i] = (int)value;
    }
    return true;
}

static bool line_pair(struct weft_host *host, struct weft_str *rest)
{
    int n[2];
    return two_numbers(rest, n) && add_pair(host, n[0], n[1], *rest);
}

static bool line_mesh(struct weft_host *host, struct weft_str *rest)
{
    int n[2];
    bool ok = two_numbers(rest, n);
    for (int a = ok ? n[0] : 0; ok && a < n[1]; a++) {
        for (int b = a + 1; ok && b <= n[1]; b++) {
            ok = add_pair(host, a, b, *rest);
        }
    }
    return ok;
}

/* "PATH = TEXT" or "PATH -> TARGET" */
static bool line_entry(struct weft_host *host, const char *line)
{
    char path[TEXT_MAX];
    const size_t len = strcspn(line, " ");
    if (len >= sizeof(path)) {
        return false;
    }
    memcpy(path, line, len);
    path[len] = '\0';
    if (strncmp(line + len, " -> ", 4) == 0) {
        return add_link(host, path, line + len + 4);
    }
    if (strncmp(line + len, " = ", 3) != 0 && strcmp(line + len, " =") != 0) {
        return false;
    }
    weft_auto(weft_buf_done) struct weft_buf text;
    weft_buf_init(&text, VALUE_MAX);
    for (const char *p = line + len + 2 + (line[len + 2] == ' '); *p != '\0'; p++) {
        const bool escape = p[0] == '\\' && p[1] == 'n';
        (void)weft_buf_putc(&text, escape ? '\n' : *p);
        p += escape;
    }
    return text.status == 0 && add_file(host, path, weft_buf_text(&text));
}

static bool read_line(struct weft_host *host, const char *line)
{
    struct weft_str rest = weft_str(line);
    char verb[TEXT_MAX];
    if (line[0] == '/') {
        return line_entry(host, line);
    }
    if (line[0] == '#' || !word(&rest, verb)) {
        return true;
    }
    static const struct {
        const char *verb;
        bool (*read)(struct weft_host *host, struct weft_str *rest);
    } verbs[] = {{"pci", line_pci},   {"cpus", line_cpus}, {"node", line_node}, {"kfd", line_kfd},
                 {"link", line_link}, {"pair", line_pair}, {"mesh", line_mesh}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(verbs); i++) {
        if (strcmp(verb, verbs[i].verb) == 0) {
            return verbs[i].read(host, &rest);
        }
    }
    if (strcmp(verb, "rdma") == 0) {
        return line_class(host, "infiniband", &rest);
    }
    return strcmp(verb, "net") == 0 && line_class(host, "net", &rest);
}

bool fake_host_line(struct weft_host *host, const char *format, ...)
{
    char line[VALUE_MAX];
    va_list ap;
    va_start(ap, format);
    const int n = vsnprintf(line, sizeof(line), format, ap);
    va_end(ap);
    const bool ok = n >= 0 && (size_t)n < sizeof(line) && read_line(host, line);
    if (!ok) {
        (void)fprintf(stderr, "fake host: cannot read: %s\n", line);
        CU_FAIL("line of a fake host");
    }
    return ok;
}

struct weft_host *fake_host_text(const char *text)
{
    weft_auto(weft_host_free) struct weft_host *host = NULL;
    if (weft_host_new_recorded(&host) < 0) {
        CU_FAIL("no memory");
        return NULL;
    }
    struct weft_str rest = weft_str(text);
    struct weft_str line;
    while (weft_str_line(&rest, &line)) {
        if (!fake_host_line(host, "%.*s", WEFT_STR_ARG(line))) {
            return NULL;
        }
    }
    return weft_steal(&host);
}

struct weft_host *fake_host(const char *fixture)
{
    weft_autofree char *text = weft_fixture_text(fixture, NULL);
    struct weft_host *host = text == NULL ? NULL : fake_host_text(text);
    if (host != NULL) {
        weft_host_seal(host);
    }
    return host;
}

static bool make_folders(char *path)
{
    for (char *p = path + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        const bool ok = mkdir(path, 0755) == 0 || errno == EEXIST;
        *p = '/';
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* Not weft_file_replace: nobody needs thousands of attributes to be on the disk. */
static bool write_file(const char *path, const char *bytes, size_t len)
{
    FILE *file = fopen(path, "we");
    const bool ok = file != NULL && fwrite(bytes, 1, len, file) == len;
    return file != NULL && fclose(file) == 0 && ok;
}

static bool write_entry(const struct weft_host_entry *e, const char *dir)
{
    char path[WEFT_HOST_PATH_MAX];
    const int n = snprintf(path, sizeof(path), "%s/%s", dir, e->path);
    if (n < 0 || (size_t)n >= sizeof(path) || !make_folders(path)) {
        return false;
    }
    return e->target != NULL ? symlink(e->target, path) == 0 : write_file(path, e->bytes, e->len);
}

bool fake_host_write(const struct weft_host *host, const char *dir)
{
    bool ok = true;
    for (size_t i = 0; ok && i < host->entry_count; i++) {
        ok = write_entry(&host->entries[i], dir);
    }
    if (!ok) {
        CU_FAIL("fake host cannot be written");
    }
    return ok;
}
