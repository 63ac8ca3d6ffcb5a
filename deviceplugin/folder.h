/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about the kubelet's plugin folder: which file is that, does anybody listen there, and
 * which sockets did dead plugins leave. Each call is a few quick system calls on local files.
 * Any thread. */
#ifndef WEFT_DEVICEPLUGIN_FOLDER_H
#define WEFT_DEVICEPLUGIN_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"

enum { WEFT_FOLDER_NAME_MAX = 256 };

/* Which file stands at a path: a socket that was removed and made again is another one. */
struct weft_file_identity {
    bool exists;
    uint64_t device, inode;
    int64_t changed_ns; /* ctime, since the inode may be used again at once */
};

/* Follows no link. A path that cannot be looked at counts as not there. */
struct weft_file_identity weft_file_identify(const char *path);
bool weft_file_same(const struct weft_file_identity *a, const struct weft_file_identity *b);

/* Is there a folder at the path, or behind a link there? */
bool weft_folder_there(const char *path);

/* Does a process accept connections on the unix socket? A connection is made and dropped at once;
 * this does not wait. */
bool weft_socket_alive(const char *path);

/* "nvidia.com/gpu" as a part of a file name: "nvidia.com-gpu". Returns name, which has
 * WEFT_FOLDER_NAME_MAX bytes. */
const char *weft_folder_slug(const char *resource, char *name);
/* A socket name that nobody uses: <slug>-<pid>-<n>.sock with the first free n from *generation on,
 * which is left one past it. Processes in different containers may have equal pids. -errno. */
int weft_folder_free_name(const char *folder, const char *slug, unsigned *generation, char *name,
                          struct weft_error *err) __attribute__((warn_unused_result));
/* Removes sockets named <slug>-<pid>-<n>.sock on which nobody listens any more; others' files are
 * left alone. Returns how many. */
unsigned weft_folder_clean(const char *folder, const char *slug);

/* Is that the file name under which another plugin serves the resource? By the habits of those that
 * are known: nvidia-gpu.sock (NVIDIA's, HAMi's), gpu.intel.com-i915.sock (Intel's), amd.com_gpu
 * (AMD's and what else is made with its library). */
bool weft_folder_is_rival(const char *name, const char *resource);
/* The file name of a living socket like that: into name, which has WEFT_FOLDER_NAME_MAX bytes, or
 * "" there if none is. */
void weft_folder_rival(const char *folder, const char *resource, char *name);
/* The file names of all living sockets but the kubelet's and own, comma separated, as far as they
 * fit into text, which has size bytes. */
void weft_folder_others(const char *folder, const char *own, char *text, size_t size);

#endif
