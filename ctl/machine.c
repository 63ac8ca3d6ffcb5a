/* SPDX-License-Identifier: Apache-2.0 */
/* weftctl machine: this machine, or a recorded one, as a table, weft's JSON, DOT or SVG. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/ctl.h"
#include "ctl/machine-view.h"
#include "pkg/base/buf.h"
#include "pkg/machine/discover.h"

const char weft_ctl_machine_help[] =
    "usage: weftctl machine [--machine FILE | --host-root DIR] [-o FORMAT]\n"
    "\n"
    "Shows a machine's accelerators and NICs: how they are wired, what belongs together, what is\n"
    "not well. Without an option it asks the drivers of this machine.\n"
    "\n"
    "  --machine FILE    a recorded machine, recognised by its content: `nvidia-smi topo -m`, "
    "NCCL\n"
    "                    or RCCL topology XML and the like, or weft's JSON; - is standard input\n"
    "  --host-root DIR   where this machine's file system is seen, in a container: /host\n"
    "  -o FORMAT         table (default), json (weft's own, which --machine reads), dot or svg\n"
    "\n"
    "Devices that are interchangeable are shown as one where there are more than eight. Colours\n"
    "only on a terminal, and not with NO_COLOR set. Exit status 0 if the machine could be shown,\n"
    "whatever is wrong with it.\n"
    "\n"
    "  weftctl machine\n"
    "  nvidia-smi topo -m | weftctl machine --machine -\n"
    "  weftctl machine -o json >machine.json\n"
    "  weftctl machine --machine machine.json -o svg >machine.svg\n";

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_DOT, FORMAT_SVG, FORMAT_COUNT };

enum {
    OUTPUT_MAX = 64 << 20, /* bytes; the JSON of the largest machine has about 20 MB */
    WIDTH = 100,           /* columns that a table may take */
};

static int parse_format(const char *text, enum format *ret_format)
{
    static const char *const names[FORMAT_COUNT] = {"table", "json", "dot", "svg"};
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret_format = (enum format)i;
            return 0;
        }
    }
    return -EINVAL;
}

static int put_picture(const struct weft_machine *m, enum format format, bool color,
                       struct weft_buf *buf, struct weft_error *err)
{
    weft_auto(weft_view_free) struct weft_view *view = NULL;
    const struct weft_view_style style = {.color = color, .width = WIDTH};
    const int rc = weft_view_new(m, &view, err);
    if (rc < 0) {
        return rc;
    }
    switch (format) {
    case FORMAT_TABLE:
        weft_view_put_table(view, &style, buf);
        break;
    case FORMAT_DOT:
        weft_view_put_dot(view, buf);
        break;
    case FORMAT_SVG:
        weft_view_put_svg(view, buf);
        break;
    case FORMAT_JSON:
    case FORMAT_COUNT:
        break;
    }
    return 0;
}

static int show(const struct weft_machine *m, enum format format, FILE *out, struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, OUTPUT_MAX);
    const bool color = isatty(fileno(out)) == 1 && getenv("NO_COLOR") == NULL;
    int rc = format == FORMAT_JSON ? weft_machine_write_json(m, &buf)
                                   : put_picture(m, format, color, &buf, err);
    if (buf.status < 0) {
        rc = weft_err_set(err, buf.status, WEFT_ERR_ERRNO, "%s",
                          buf.status == -ENOMEM ? "out of memory" : "the output is too large");
    }
    if (rc == 0) {
        (void)fputs(weft_buf_text(&buf), out);
    }
    return rc;
}

int weft_ctl_machine_to(int argc, char **argv, FILE *out, FILE *err)
{
    const char *file = NULL;
    const char *root = NULL;
    const char *output = "table";
    struct weft_ctl_option options[] = {
        {"--machine", &file, 1, 0}, {"--host-root", &root, 1, 0}, {"--output", &output, 1, 0},
        {"-o", &output, 1, 0},      {NULL, NULL, 0, 0},
    };
    struct weft_error error = {0};
    enum format format = FORMAT_TABLE;
    if (weft_ctl_options(argc, argv, options, &error) < 0) {
        return weft_ctl_wrong_use(err, "machine", error.message);
    }
    if (file != NULL && root != NULL) {
        return weft_ctl_wrong_use(err, "machine",
                                  "--machine FILE and --host-root DIR exclude each other");
    }
    if (parse_format(output, &format) < 0) {
        return weft_ctl_wrong_use(err, "machine", "-o is table, json, dot or svg");
    }
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    const struct weft_backend_options look = {.host_root = root};
    int rc = file != NULL ? weft_machine_load(file, &m, &error)
                          : weft_machine_discover(&look, &m, &error);
    rc = rc < 0 ? rc : show(m, format, out, &error);
    return rc < 0 ? weft_ctl_fail(err, "machine", error.message) : WEFT_CTL_OK;
}

int weft_ctl_machine(int argc, char **argv)
{
    return weft_ctl_machine_to(argc, argv, stdout, stderr);
}
