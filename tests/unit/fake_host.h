/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts for tests, from short texts (tests/fixtures/sysfs, tests/fixtures/kfd). One line each:
 *   PATH = TEXT                a file; \n in TEXT is a new line
 *   PATH -> TARGET             a symbolic link
 *   pci CHAIN key=value ...    a function ("pci0000:00/0000:00:01.0/0000:01:00.0"): its attributes
 *                              and its link in /sys/bus/pci/devices; driver=, physfn= and drm=a,b
 *                              become links and folders
 *   rdma NAME CHAIN key=value  a device of class infiniband below that function
 *   net NAME CHAIN key=value   a device of class net below it
 *   cpus FIRST LAST PACKAGE    CPUs of a package;   node N CPULIST   a NUMA node
 *   kfd N key=value ...        a KFD node: gpu_id and name are files, the rest are its properties
 *   link N KIND K key=value    a link of it: KIND is io_links or p2p_links
 *   pair A B key=value ...     io_links in both directions between two nodes
 *   mesh FIRST LAST key=value  such pairs between all of a range
 * Values with blanks stand in double quotes; '#' begins a comment line. */
#ifndef WEFT_TESTS_UNIT_FAKE_HOST_H
#define WEFT_TESTS_UNIT_FAKE_HOST_H

#include <stdbool.h>

struct weft_host;

/* The host that a fixture describes, sealed; NULL fails the test. The caller frees it. */
struct weft_host *fake_host(const char *fixture);
/* The same, not yet sealed, and from a text. */
struct weft_host *fake_host_text(const char *text);
/* Adds one line; false (and a failed test) if it cannot be read. */
bool fake_host_line(struct weft_host *host, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Writes a sealed host as real files and links below dir. */
bool fake_host_write(const struct weft_host *host, const char *dir);

#endif
