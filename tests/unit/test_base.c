/* SPDX-License-Identifier: Apache-2.0 */
/* pkg/base: text, numbers, buffers, maps, files, log lines. */
#include <errno.h>
#include <malloc.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/error.h"
#include "pkg/base/file.h"
#include "pkg/base/log.h"
#include "pkg/base/map.h"
#include "pkg/base/str.h"
#include "tests/unit/unit.h"

static void test_split_and_lines(void)
{
    struct weft_str rest = weft_str("a,,b,");
    struct weft_str piece;
    const char *const expected[] = {"a", "", "b", ""};
    size_t n = 0;
    while (weft_str_split(&rest, ',', &piece)) {
        CHECK(n < 4 && weft_str_eq(piece, expected[n]));
        n++;
    }
    CHECK_INT(n, 4);
    rest = weft_str("x\r\n\ny");
    const char *const lines[] = {"x", "", "y"};
    for (n = 0; weft_str_line(&rest, &piece); n++) {
        CHECK(n < 3 && weft_str_eq(piece, lines[n]));
    }
    CHECK_INT(n, 3);
    rest = weft_str("  one\ttwo ");
    CHECK(weft_str_word(&rest, &piece) && weft_str_eq(piece, "one"));
    CHECK(weft_str_word(&rest, &piece) && weft_str_eq(piece, "two"));
    CHECK(!weft_str_word(&rest, &piece));
    CHECK(weft_str_eq(weft_str_trim(weft_str(" \t a b\r\n")), "a b"));
}

static void test_numbers(void)
{
    int64_t i = 7;
    CHECK_INT(weft_parse_i64(weft_str("-12"), -20, 20, &i), 0);
    CHECK_INT(i, -12);
    CHECK_INT(weft_parse_i64(weft_str("21"), -20, 20, &i), -ERANGE);
    CHECK_INT(i, -12);
    CHECK_INT(weft_parse_i64(weft_str("1x"), 0, 9, &i), -EINVAL);
    CHECK_INT(weft_parse_i64(weft_str(" 1"), 0, 9, &i), -EINVAL);
    CHECK_INT(weft_parse_i64(weft_str(""), 0, 9, &i), -EINVAL);
    CHECK_INT(weft_parse_i64(weft_str("-"), -9, 9, &i), -EINVAL);
    uint64_t u = 0;
    CHECK_INT(weft_parse_u64(weft_str("18446744073709551615"), UINT64_MAX, &u), 0);
    CHECK(u == UINT64_MAX);
    CHECK_INT(weft_parse_u64(weft_str("18446744073709551616"), UINT64_MAX, &u), -ERANGE);
    CHECK_INT(weft_parse_hex64(weft_str("0xc42a1"), &u), 0);
    CHECK(u == 0xc42a1);
    CHECK_INT(weft_parse_hex64(weft_str("FFFFffffFFFFffff"), &u), 0);
    CHECK(u == UINT64_MAX);
    CHECK_INT(weft_parse_hex64(weft_str("9c05<red"), &u), -EINVAL);
    CHECK_INT(weft_parse_duration(weft_str("10m"), &i), 0);
    CHECK_INT(i, 600 * WEFT_NS_PER_S);
    CHECK_INT(weft_parse_duration(weft_str("250ms"), &i), 0);
    CHECK_INT(i, 250 * WEFT_NS_PER_MS);
    CHECK_INT(weft_parse_duration(weft_str("5"), &i), -EINVAL);
    CHECK_INT(weft_parse_duration(weft_str("99999999999999h"), &i), -ERANGE);
}

static void test_natural_order(void)
{
    CHECK(weft_str_natural_cmp("gpu-2", "gpu-10") < 0);
    CHECK(weft_str_natural_cmp("a08", "a8") != 0);
    CHECK(weft_str_natural_cmp("a7", "a08") < 0);
    CHECK(weft_str_natural_cmp("rack", "rack1") < 0);
    CHECK_INT(weft_str_natural_cmp("n1-2", "n1-2"), 0);
    CHECK(weft_str_natural_cmp("99999999999999999999998", "99999999999999999999999") < 0);
}

/* Text is looked at in words of eight bytes where it can be: each place in and across them. */
static void test_utf8_places(void)
{
    for (size_t len = 1; len <= 24; len++) {
        for (size_t at = 0; at < len; at++) {
            char text[25] = "abcdefghijklmnopqrstuvwx";
            CHECK(weft_utf8_valid(text, len));
            text[at] = '\x7f'; /* DEL is a character */
            CHECK(weft_utf8_valid(text, len));
            text[at] = '\0';
            CHECK(!weft_utf8_valid(text, len));
            text[at] = '\x80';
            CHECK(!weft_utf8_valid(text, len));
            text[at] = '\xc3';
            CHECK(!weft_utf8_valid(text, len));
            if (at + 1 < len) {
                text[at + 1] = '\xa9';
                CHECK(weft_utf8_valid(text, len));
            }
        }
    }
}

static void test_hash_in_memory(void)
{
    char text[33] = "GPU-00000000-0000-0000-0000-0000";
    char moved[40];
    memcpy(moved + 3, text, sizeof(text));
    for (size_t len = 0; len < sizeof(text); len++) {
        const uint64_t hash = weft_hash_in_memory(text, len);
        CHECK(hash == weft_hash_in_memory(moved + 3, len)); /* wherever it lies */
        CHECK(hash != weft_hash_in_memory(text, len + 1));
        for (size_t at = 0; at < len; at++) {
            text[at] ^= 1;
            CHECK(hash != weft_hash_in_memory(text, len));
            text[at] ^= 1;
        }
    }
    /* a NUL more is another text */
    CHECK(weft_hash_in_memory("a", 1) != weft_hash_in_memory("a\0", 2));
    CHECK(weft_hash_in_memory("", 0) != weft_hash_in_memory("\0", 1));
}

static void test_text_checks(void)
{
    CHECK(weft_utf8_valid("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10));
    CHECK(!weft_utf8_valid("\xc0\x80", 2));     /* overlong */
    CHECK(!weft_utf8_valid("\xed\xa0\x80", 3)); /* surrogate */
    CHECK(!weft_utf8_valid("\xf4\x90\x80\x80", 4));
    CHECK(!weft_utf8_valid("\xe2\x82", 2));
    CHECK(!weft_utf8_valid("a\0b", 3));
    CHECK(weft_dns_label_valid("a-0"));
    CHECK(!weft_dns_label_valid("-a"));
    CHECK(!weft_dns_label_valid("A"));
    CHECK(!weft_dns_label_valid(""));
    CHECK(weft_dns_subdomain_valid("ip-10-0-0-1.ec2.internal"));
    CHECK(!weft_dns_subdomain_valid("a..b"));
    CHECK(weft_dns_subdomain_valid(/* 64 characters: no label, but a node may be called so */
                                   "a-node-with-a-name-of-exactly-sixty-four-characters-"
                                   "0123456789ab"));
    CHECK(
        !weft_dns_label_valid("a-node-with-a-name-of-exactly-sixty-four-characters-0123456789ab"));
    CHECK(weft_label_prefix_valid("weft.dev/"));
    CHECK(!weft_label_prefix_valid("weft.dev"));
    CHECK(!weft_label_prefix_valid("/"));
    CHECK(!weft_label_prefix_valid("weft..dev/"));
    /* FNV-1a of "" is the seed; the mix is murmur3's: known value of fmix64(0xcbf29ce484222325),
     * computed with Python integers */
    CHECK(weft_hash64(WEFT_HASH_SEED, "", 0) == UINT64_C(0xefd01f60ba992926));
}

static void test_buf(void)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 10);
    CHECK_STR(weft_buf_text(&buf), "");
    CHECK_INT(weft_buf_puts(&buf, "12345"), 0);
    CHECK_INT(weft_buf_printf(&buf, "%d", 67890), 0);
    CHECK_STR(weft_buf_text(&buf), "1234567890");
    CHECK_INT(weft_buf_putc(&buf, 'x'), -EFBIG);
    CHECK_INT(weft_buf_append(&buf, "", 0), -EFBIG); /* sticky */
    CHECK(weft_buf_steal(&buf) == NULL);
    weft_buf_reset(&buf);
    CHECK_INT(weft_buf_puts(&buf, "abc"), 0);
    weft_buf_consume(&buf, 2);
    CHECK_STR(weft_buf_text(&buf), "c");
    weft_autofree char *text = weft_buf_steal(&buf);
    CHECK_STR(text, "c");
    CHECK_INT(buf.len, 0);
}

static void test_map_random(void)
{
    /* against a plain table: 5,000 random puts, removes and look-ups over 500 keys */
    uint64_t seed = 11;
    bool there[500] = {false};
    size_t value[500] = {0};
    size_t count = 0;
    weft_auto(weft_map_free) struct weft_map *map = weft_map_new(400);
    for (int step = 0; step < 5000; step++) {
        const size_t k = (size_t)weft_random_below(&seed, 500);
        char key[16];
        (void)snprintf(key, sizeof(key), "key%zu", k);
        if (weft_random_below(&seed, 3) == 0) {
            CHECK(weft_map_remove(map, key) == there[k]);
            count -= there[k];
            there[k] = false;
        } else {
            const int expected = there[k] ? 1 : count >= 400 ? -EFBIG : 0;
            CHECK_INT(weft_map_put(map, key, (size_t)step), expected);
            if (expected >= 0) {
                count += !there[k];
                there[k] = true;
                value[k] = (size_t)step;
            }
        }
        size_t found = 0;
        const bool has = weft_map_get(map, key, &found);
        CHECK(has == there[k] && (!has || found == value[k]));
        CHECK_INT(weft_map_count(map), count);
    }
    size_t walked = 0;
    const char *key;
    for (size_t pos = 0; weft_map_next(map, &pos, &key, NULL);) {
        walked++;
    }
    CHECK_INT(walked, count);
}

static void test_map_add(void)
{
    weft_auto(weft_map_free) struct weft_map *map = weft_map_new(2);
    size_t value = 0;
    CHECK_INT(weft_map_add(map, "a", 7, &value), 0);
    CHECK_INT(value, 7);
    CHECK_INT(weft_map_add(map, "a", 8, &value), 1);
    CHECK_INT(value, 7);
    CHECK_INT(weft_map_add(map, "b", 9, &value), 0);
    CHECK_INT(weft_map_add(map, "c", 10, &value), -EFBIG);
    CHECK(weft_map_remove(map, "a"));
    CHECK_INT(weft_map_add(map, "a", 11, &value), 0);
    CHECK_INT(value, 11);
}

/* Names come and go for ever in a map of nodes: what is needed for those that went is had back.
 * Keys of all lengths, some longer than a block is. */
static void test_map_turnover(void)
{
    weft_auto(weft_map_free) struct weft_map *map = weft_map_new(64);
    weft_autofree char *long_key = weft_calloc(1, 100001);
    memset(long_key, 'k', 100000);
    CHECK_INT(weft_map_put(map, long_key, 1), 0);
    struct mallinfo2 before = {0};
    for (size_t i = 0; i < 200000; i++) {
        char key[80];
        (void)snprintf(key, sizeof(key), "%0*zu", (int)(1 + i % 70), i);
        CHECK_INT(weft_map_put(map, key, i), 0);
        if (i >= 40) {
            (void)snprintf(key, sizeof(key), "%0*zu", (int)(1 + (i - 40) % 70), i - 40);
            CHECK(weft_map_remove(map, key));
        }
        before = i == 1000 ? mallinfo2() : before;
    }
    CHECK_INT(weft_map_count(map), 41);
    CHECK(mallinfo2().uordblks < before.uordblks + 300000); /* 200,000 keys are 8 MB */
    size_t value = 0;
    CHECK(weft_map_get(map, long_key, &value) && value == 1);
    for (size_t i = 200000 - 40; i < 200000; i++) {
        char key[80];
        (void)snprintf(key, sizeof(key), "%0*zu", (int)(1 + i % 70), i);
        CHECK(weft_map_get(map, key, &value) && value == i);
    }
}

static void test_errors(void)
{
    struct weft_error err = {0};
    CHECK_INT(weft_err_errno(&err, ENOENT, "open %s", "/x"), -ENOENT);
    CHECK_STR(err.message, "open /x: No such file or directory");
    CHECK(!err.retryable);
    CHECK_INT(weft_err_wrap(&err, -ENOENT, "config"), -ENOENT);
    CHECK_STR(err.message, "config: open /x: No such file or directory");
    CHECK_INT(err.domain, WEFT_ERR_ERRNO);
    /* a long message keeps its beginning, at exactly the cap */
    char long_text[400];
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    (void)weft_err_set(&err, -EIO, WEFT_ERR_CONFIG, "%s", long_text);
    CHECK_INT(weft_err_wrap(&err, -EIO, "layer"), -EIO);
    CHECK_INT(strlen(err.message), WEFT_ERROR_MESSAGE_MAX - 1);
    CHECK(strncmp(err.message, "layer: xxx", 10) == 0);
    (void)weft_err_wrap(&err, -EIO, "%s", long_text);
    CHECK_INT(strlen(err.message), WEFT_ERROR_MESSAGE_MAX - 1);
    CHECK_INT(weft_err_errno(&err, ECONNREFUSED, "dial"), -ECONNREFUSED);
    CHECK(err.retryable);
    CHECK_INT(weft_err_set(NULL, -EINVAL, WEFT_ERR_CONFIG, "x"), -EINVAL);
    /* what was found in a file is for a terminal too */
    (void)weft_err_set(&err, -EIO, WEFT_ERR_CONFIG, "found \x1b[2J\r\n\x7f");
    (void)weft_err_wrap(&err, -EIO, "a\x1b");
    CHECK_STR(err.message, "a?: found ?[2J???");
    (void)weft_err_errno(&err, ENOENT, "open \x1b");
    CHECK_STR(err.message, "open ?: No such file or directory");
    char text[] = "a\0b\n\t\x1b\xc3\xa9";
    weft_str_printable(text, sizeof(text) - 1, "\n");
    CHECK_STR(text, "a?b\n??\xc3\xa9");
}

static void test_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        const int saved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        CHECK(saved > STDERR_FILENO);
        CHECK_INT(close(fd), 0);
        const int rc = weft_fd_keep_standard();
        const int flags = fcntl(fd, F_GETFD);
        CHECK_INT(dup2(saved, fd), fd);
        CHECK_INT(close(saved), 0);
        CHECK_INT(rc, 0);
        CHECK_INT(flags, 0);
    }
}

static void test_files(void)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/base-file", weft_test_dir());
    CHECK_INT(weft_file_replace(path, "first", 5, 0644, NULL), 0);
    CHECK_INT(weft_file_replace(path, "second", 6, 0644, NULL), 0);
    weft_autofree char *text = NULL;
    size_t len = 0;
    CHECK_INT(weft_file_read(path, 6, &text, &len, NULL), 0);
    CHECK_STR(text, "second");
    CHECK_INT(len, 6);
    char *over = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_file_read(path, 5, &over, NULL, &err), -EFBIG);
    CHECK_CONTAINS(err.message, "cap of 5 bytes");
    CHECK_INT(weft_file_read("/nonexistent/x", 5, &over, NULL, &err), -ENOENT);
    CHECK_INT(weft_file_replace("/nonexistent/x", "", 0, 0644, &err), -ENOENT);
    char *regular = NULL;
    CHECK_INT(weft_file_read_regular(path, 6, &regular, NULL, NULL), 0);
    CHECK_STR(regular, "second");
    weft_free(regular);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(mkfifo(path, 0600), 0); /* nobody writes: a plain open would wait for ever */
    CHECK_INT(weft_file_read_regular(path, 6, &over, NULL, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "base-file: is no regular file");
    CHECK_INT(unlink(path), 0);
    CHECK_INT(weft_file_read_regular("/dev/zero", 6, &over, NULL, NULL), -EINVAL);
    CHECK_INT(weft_file_read_regular("/nonexistent/x", 6, &over, NULL, NULL), -ENOENT);
    CHECK(over == NULL);
}

enum { REPLACEMENTS = 300 };

static void *replace_often(void *data)
{
    const char *path = data;
    size_t failed = 0;
    for (size_t i = 0; i < REPLACEMENTS; i++) {
        failed += weft_file_replace(path, "0123456789", i % 11, 0644, NULL) < 0;
    }
    return failed > 0 ? data : NULL;
}

/* Two containers with one folder of the host, during an upgrade: each program has the pid 1, so
 * their temporary files had one name. Here two threads, of one pid too. */
static void test_files_of_one_pid(void)
{
    char path[256], held[300];
    (void)snprintf(path, sizeof(path), "%s/base-shared", weft_test_dir());
    (void)snprintf(held, sizeof(held), "%s.tmp-0", path);
    pthread_t other;
    CHECK_INT(pthread_create(&other, NULL, replace_often, path), 0);
    CHECK(replace_often(path) == NULL);
    void *failed = path;
    CHECK_INT(pthread_join(other, &failed), 0);
    CHECK(failed == NULL);
    CHECK(access(held, F_OK) < 0);
    /* one that another process writes is left alone, one of a process that was killed is used */
    CHECK_INT(weft_file_replace(held, "half a fi", 9, 0644, NULL), 0);
    weft_autoclose int fd = open(held, O_RDONLY | O_CLOEXEC);
    CHECK_INT(flock(fd, LOCK_EX), 0);
    CHECK_INT(weft_file_replace(path, "whole", 5, 0644, NULL), 0);
    weft_autofree char *half = NULL;
    CHECK_INT(weft_file_read(held, 20, &half, NULL, NULL), 0);
    CHECK_STR(half, "half a fi");
    CHECK_INT(flock(fd, LOCK_UN), 0);
    CHECK_INT(weft_file_replace(path, "new", 3, 0644, NULL), 0);
    CHECK(access(held, F_OK) < 0);
    weft_autofree char *text = NULL;
    CHECK_INT(weft_file_read(path, 20, &text, NULL, NULL), 0);
    CHECK_STR(text, "new");
}

static void check_log(enum weft_log_format format, const char *expected)
{
    int fds[2];
    CHECK_INT(pipe2(fds, O_CLOEXEC), 0);
    weft_log_setup(WEFT_LOG_INFO, format, fds[1]);
    weft_log(WEFT_LOG_DEBUG, "dropped");
    weft_log(WEFT_LOG_WARN, "two words", WEFT_KV_S("plain", "a"), WEFT_KV_S("odd", "x \"y\"\n"),
             WEFT_KV_I("n", -3));
    weft_log_setup(WEFT_LOG_INFO, WEFT_LOG_LOGFMT, STDERR_FILENO);
    (void)close(fds[1]);
    weft_autofree char *text = NULL;
    CHECK_INT(weft_fd_read(fds[0], 4096, &text, NULL, NULL), 0);
    (void)close(fds[0]);
    CHECK_CONTAINS(text, expected);
    CHECK(text != NULL && strstr(text, "dropped") == NULL);
}

static void test_log(void)
{
    check_log(WEFT_LOG_LOGFMT,
              " level=warn event=\"two words\" plain=a odd=\"x \\\"y\\\"\\u000a\" n=-3\n");
    check_log(WEFT_LOG_JSON, "\"level\":\"warn\",\"event\":\"two words\",\"plain\":\"a\","
                             "\"odd\":\"x \\\"y\\\"\\u000a\",\"n\":-3}\n");
}

/* Nobody reads: 600 lines of over 500 bytes are more than a pipe holds. All calls return; when
 * somebody reads, every line is there or counted, and none is torn. */
static void test_log_nobody_reads(void)
{
    enum { LINES = 600 };
    int fds[2];
    char long_text[501] = {0};
    memset(long_text, 'x', sizeof(long_text) - 1);
    CHECK_INT(pipe2(fds, O_CLOEXEC), 0);
    weft_log_setup(WEFT_LOG_INFO, WEFT_LOG_LOGFMT, fds[1]);
    for (int i = 0; i < LINES; i++) {
        weft_log(WEFT_LOG_INFO, "much", WEFT_KV_S("text", long_text));
    }
    weft_autofree char *first = weft_calloc(1, 1U << 20);
    CHECK(first != NULL && read(fds[0], first, 1U << 20) > 0);
    weft_log(WEFT_LOG_INFO, "last");
    weft_log_setup(WEFT_LOG_INFO, WEFT_LOG_LOGFMT, STDERR_FILENO);
    (void)close(fds[1]);
    weft_autofree char *rest = NULL;
    CHECK_INT(weft_fd_read(fds[0], 1U << 20, &rest, NULL, NULL), 0);
    (void)close(fds[0]);
    unsigned written = 0;
    for (const char *at = first; at != NULL && (at = strstr(at, "event=much")) != NULL; at++) {
        written++;
    }
    CHECK(written > 50 && written < LINES);
    char note[64];
    (void)snprintf(note, sizeof(note), "level=warn event=log-lines-dropped count=%u\n",
                   LINES - written);
    CHECK(rest != NULL && strncmp(rest, note, strlen(note)) == 0);
    CHECK_CONTAINS(rest, "event=last\n");
    CHECK(first != NULL && first[strlen(first) - 1] == '\n');
}

static void test_time_text(void)
{
    char text[WEFT_TIME_TEXT_MAX];
    /* date -u -d @1700000000 */
    CHECK_STR(weft_time_format(INT64_C(1700000000123456789), text), "2023-11-14T22:13:20.123456Z");
}

WEFT_SUITE(base, {"split and lines", test_split_and_lines}, {"numbers", test_numbers},
           {"natural order", test_natural_order}, {"text checks", test_text_checks},
           {"UTF-8 by places", test_utf8_places}, {"hash in memory", test_hash_in_memory},
           {"buffer", test_buf}, {"map against a table", test_map_random},
           {"map: add", test_map_add}, {"map: turnover", test_map_turnover},
           {"errors", test_errors}, {"standard descriptors", test_standard_descriptors},
           {"files", test_files}, {"files of one pid", test_files_of_one_pid},
           {"log lines", test_log}, {"a log that nobody reads", test_log_nobody_reads},
           {"time text", test_time_text})
