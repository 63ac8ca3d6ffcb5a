#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls that weft's C must not make. usage: lint-banned.py FILE...; prints file:line: text."""
import re
import sys

EVERYWHERE = """strcpy strcat sprintf vsprintf gets strtok atoi atol atoll strtol strtoul strtoll
strtoull alloca system popen basename dirname rand srand random signal localtime gmtime ctime
asctime""".split()
# allocation goes through pkg/base/mem.h, so that a test can make the Nth one fail
ALLOCATION = "malloc calloc realloc reallocarray free strdup strndup asprintf vasprintf".split()
# time is injected (pkg/base/clock.h), waiting is the loop's
TIME = "time sleep usleep nanosleep gettimeofday clock_gettime".split()


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def code_of(text):
    """The text with comments, strings and character constants blanked, lines kept."""
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', blank, text, flags=re.S)


def banned_for(path):
    words = {w: "is banned" for w in EVERYWHERE}
    in_tests = path.startswith("tests/")
    if not in_tests and path != "pkg/base/mem.c":
        words.update({w: "weft_malloc and its family only" for w in ALLOCATION})
    if not in_tests and not path.startswith(("pkg/base/clock", "pkg/loop/")):
        words.update({w: "time comes from pkg/base/clock.h, waiting from pkg/loop" for w in TIME})
    if not in_tests and not path.endswith("/main.c"):
        words.update({w: "only main ends the program" for w in ("exit", "_exit", "quick_exit")})
    return words


def main():
    bad = False
    for path in sys.argv[1:]:
        words = banned_for(path)
        pattern = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(words))
        with open(path, encoding="utf-8") as f:
            code = code_of(f.read())
        for number, line in enumerate(code.split("\n"), 1):
            for match in pattern.finditer(line):
                print(f"{path}:{number}: {match.group(1)}: {words[match.group(1)]}")
                bad = True
    sys.exit(bad)


main()
