/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for libnvidia-ml.so.1, loaded by the same dlopen as the real one: it plays the machine
 * of the JSON file that WEFT_MOCK_NVML names.
 *
 * Control: the file is looked at before every call, so a test changes the machine by replacing the
 * file, in one step (a new file that is renamed into its place), with what is to be different:
 *
 * - an XID: append to "events": {"gpu": 3, "type": 8, "data": 79}, with "gi" and "ci" of a MIG
 *   instance. A wait for events sees it at once. What stands there when an event set is made is
 *   history; events are counted, so remove none while a set is in use
 * - a fault's end: the GPU's "recovery": 0; 1 while the driver asks for a reset
 * - a lost GPU: the GPU's "lost": true; it is back without that
 * - a GPU in doubt: the GPU's "returns": {"nvmlDeviceGetMemoryInfo": 999}
 * - a GPU removed: take it out of "gpus"
 * - a reset: count the GPU's "life" up: its handle is another one
 * - MIG changed: change the GPU's "mig", and append the event {"gpu": 0, "type": 256}
 * - a hang: "hang_ms": {"nvmlDeviceGetCount_v2": 60000}; calls that began before the file was
 *   replaced sleep on. "exit" is the library's destructor, in whole seconds
 * - no driver: "returns": {"nvmlInit_v2": 9}, and 1 from nvmlEventSetWait_v2 and
 *   nvmlDeviceGetCount_v2 for a process that has the library open
 *
 * {
 *   "driver": "550.54.15", "cuda": 12040,
 *   "returns": {"nvmlInit_v2": 9},          what a function returns instead of doing its work
 *   "hang_ms": {"nvmlDeviceGetUUID": 3000}, how long each call of it takes
 *   "every": {...},                         what holds for each GPU that does not say otherwise
 *   "gpus": [{
 *     "uuid": "GPU-...", "name": "...", "bdf": "0000:1b:00.0", "minor": 0,
 *     "memory_mib": 81559, "capability": [9, 0], "pcie": [5, 16, 5, 16],
 *     "affinity": [0],                      nodes of its memory affinity
 *     "own_node": 2,                        its own memory's node
 *     "links": [[12, "switch"], [6, "switch", "down"], [1, 3], [2, "npu"], [1, "unknown"]],
 *                                           ("none": a number without a link)
 *     "version": 6, "rate": 26562,          of its links
 *     "switch_links": 18, "p2p": [0, 5],    status to each GPU; absent: OK
 *     "fabric": {"cluster": "<32 hex digits>", "clique": 1, "state": 3, "status": 0},
 *     "ancestors": [0, 20, 50],             to each GPU
 *     "mig": [{"uuid": "MIG-...", "name": "... MIG 1g.10gb", "gi": 7, "ci": 0,
 *              "memory_mib": 9856, "slices": [1, 1]}],
 *     "recovery": 0, "event_types": 264, "life": 0,
 *     "rows": [0, 0, 1, 0],                 remapped by corrected and uncorrected errors, pending,
 *                                           failed
 *     "lost": true,                         every question about it returns GPU_IS_LOST
 *     "returns": {"nvmlDeviceGetMemoryInfo": 3}
 *   }],
 *   "events": [{"gpu": 0, "type": 8, "data": 79, "gi": 7, "ci": 0}]
 * }
 * What a GPU does not have is NOT_SUPPORTED. An event is told once, in the order of the list;
 * one without "gpu" names a GPU that nobody knows. Thread-safe. */
#ifndef WEFT_TESTS_FAKES_NVML_MOCK_H
#define WEFT_TESTS_FAKES_NVML_MOCK_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/machine/discover-nvml-api.h"

enum { MOCK_GPUS_MAX = 32, MOCK_INSTANCES_MAX = 8, MOCK_LIVES_MAX = 4 };

/* A handle: a GPU, or an instance of one. */
struct weft_nvml_handle {
    int gpu, instance; /* instance -1: the whole GPU */
};

/* Begins a call: reads the file if it changed, waits as it says. 0 and the lock is held (mock_end),
 * or the code to return. device NULL: not about one. */
int mock_begin(const char *function, const struct weft_nvml_handle *device);
/* Ends a call that was begun; returns rc. */
int mock_end(int rc);
/* With the lock held: a member of the device ("every" too), of the file, or of a fabric... NULL. */
const cJSON *mock_of(const struct weft_nvml_handle *device, const char *key);
const cJSON *mock_root(const char *key);
int mock_gpu_count(void);
struct weft_nvml_handle *mock_handle(int gpu, int instance);
/* Waits for a change of the file, at most ms; without the lock. */
void mock_wait_change(int ms);

bool mock_bdf(const cJSON *text, struct weft_nvml_pci *pci);
int mock_text(const cJSON *text, char *to, unsigned size);
int mock_number(const cJSON *number, unsigned *to);

#endif
