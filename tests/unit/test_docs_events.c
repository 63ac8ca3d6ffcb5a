/* SPDX-License-Identifier: Apache-2.0 */
/* What the controller can say is in its page: each Event's reason, each finding and each metric
 * that stands in the sources. */
#include <ctype.h>
#include <glob.h>
#include <stdio.h>

#include "pkg/base/file.h"
#include "pkg/base/mem.h"
#include "tests/unit/unit.h"

enum { FILE_MAX = 1 << 20, WORD_MAX = 80 };

static char *text_of(const char *path)
{
    char *text = NULL;
    size_t len = 0;
    CHECK_INT(weft_file_read(path, FILE_MAX, &text, &len, NULL), 0);
    return text;
}

/* The next literal after at, before the statement ends; NULL if there is none. */
static const char *literal(const char *at, char word[WORD_MAX])
{
    const char *open = strpbrk(at, "\";");
    const char *close = open != NULL && *open == '"' ? strchr(open + 1, '"') : NULL;
    if (close == NULL || close - open > WORD_MAX) {
        return NULL;
    }
    (void)snprintf(word, WORD_MAX, "%.*s", (int)(close - open - 1), open + 1);
    return close + 1;
}

static bool is_word(const char *word, bool camel)
{
    if (camel ? !isupper((unsigned char)word[0]) : !islower((unsigned char)word[0])) {
        return false;
    }
    for (; *word != '\0'; word++) {
        if (!isalnum((unsigned char)*word) && *word != '-' && *word != '_') {
            return false;
        }
    }
    return true;
}

/* The first word of the wanted form after each call in the files; returns how many there are. */
static size_t check(const char *files, const char *call, bool camel, const char *docs)
{
    size_t found = 0;
    glob_t paths = {0};
    CHECK_INT(glob(files, 0, NULL, &paths), 0);
    for (size_t i = 0; i < paths.gl_pathc; i++) {
        weft_autofree char *text = text_of(paths.gl_pathv[i]);
        for (const char *at = text; at != NULL && (at = strstr(at, call)) != NULL;) {
            char word[WORD_MAX] = "";
            char quoted[WORD_MAX + 2];
            const char *next = literal(at + strlen(call), word);
            at += strlen(call);
            while (next != NULL && !is_word(word, camel)) {
                next = literal(next, word);
            }
            if (next != NULL) {
                (void)snprintf(quoted, sizeof(quoted), "`%s", word);
                found++;
                if (strstr(docs, quoted) == NULL) {
                    (void)printf("%s: %s\n", paths.gl_pathv[i], word);
                    CHECK(!"is not in docs/controller.md");
                }
            }
        }
    }
    globfree(&paths);
    return found;
}

static void reasons_findings_and_metrics_are_explained(void)
{
    weft_autofree char *docs = text_of("docs/controller.md");
    CHECK(check("controller/[!r]*.c", "weft_controller_say(", true, docs) >= 5);
    CHECK(check("controller/reload.c", "weft_controller_say(", true, docs) >= 1);
    CHECK(check("controller/report.c", "weft_controller_say(c, true, ", true, docs) >= 1);
    CHECK_INT(check("controller/report.c", " [WEFT_REFUSAL_", true, docs), 4);
    CHECK(check("controller/volcano-config.c", "weft_findings_add(", false, docs) >= 8);
    CHECK(check("pkg/hypernode/plan*.c", "weft_findings_add(", false, docs) >= 6);
    CHECK(check("pkg/hypernode/layout*.c", "weft_findings_add(", false, docs) >= 4);
    CHECK(check("controller/observe.c", "weft_metric_head(", false, docs) >= 8);
    CHECK(check("controller/observe.c", "put_gauge(", false, docs) >= 5);
    CHECK(check("controller/observe.c", "put_counter(", false, docs) >= 10);
}

WEFT_SUITE(docs_events, {"reasons, findings and metrics are explained",
                         reasons_findings_and_metrics_are_explained})
