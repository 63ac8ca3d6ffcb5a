/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over a committed corpus folder, in ordinary and sanitizer builds alike. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>

#include "pkg/base/file.h"
#include "pkg/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
    DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
    if (dir == NULL) {
        (void)fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]);
        return 2;
    }
    unsigned count = 0;
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        weft_autofree char *path = weft_asprintf("%s/%s", argv[1], e->d_name);
        weft_autofree char *text = NULL;
        size_t len = 0;
        if (e->d_type == DT_REG && path != NULL &&
            weft_file_read(path, 16U << 20, &text, &len, NULL) == 0) {
            (void)LLVMFuzzerTestOneInput((const uint8_t *)text, len);
            count++;
        }
    }
    (void)closedir(dir);
    (void)printf("%s: %u inputs\n", argv[1], count);
    return count > 0 ? 0 : 1;
}
