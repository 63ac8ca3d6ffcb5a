#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The direction of includes, and who may see a third-party header. usage: lint-includes.py FILE..."""
import re
import sys

# a folder of pkg may include itself and folders of a lower rank
RANKS = [["base"], ["json"], ["yaml", "xml", "pb", "loop"], ["web"], ["rpc", "kube", "http"], ["kubelet", "machine", "fabric"],
         ["allocator", "tree", "source"], ["hypernode"], ["apply"]]
RANK = {name: i for i, names in enumerate(RANKS) for name in names}

# header pattern -> the folders that wrap it
THIRD_PARTY = [
    (r"uv\.h$|uv/", ["pkg/loop"]),
    (r"grpc/|grpcpp/|absl/", ["pkg/rpc"]),
    (r"curl/", ["pkg/web", "pkg/kube"]),
    (r"cjson/", ["pkg/json"]),
    (r"yaml\.h$", ["pkg/yaml"]),
    (r"expat", ["pkg/xml"]),
    (r"microhttpd", ["pkg/http"]),
    (r"zlib", ["pkg/machine"]),
    (r"protobuf-c/|.*\.pb-c\.h$", ["pkg/pb", "pkg/kubelet", "pkg/kube"]),
    (r"CUnit/", ["tests/unit"]),
    (r"hwloc", ["tests/unit"]),
]


def folder_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] in ("pkg", "tests") else parts[0]


def finds(path, target):
    folder = folder_of(path)
    if re.match(r"pkg/[^/]+/", target) and folder.startswith("pkg/"):
        own, other = folder.split("/")[1], target.split("/")[1]
        if own != other and RANK.get(other, 99) >= RANK.get(own, -1):
            yield f"{folder} must not include {target}"
    if folder.startswith("pkg/") and re.match(r"(deviceplugin|controller|ctl|tests)/", target):
        yield f"pkg must not include {target}"
    if folder in ("deviceplugin", "controller", "ctl") and re.match(r"(deviceplugin|controller|ctl)/", target) \
            and not target.startswith(folder + "/"):
        yield f"{folder} must not include {target}"
    for pattern, owners in THIRD_PARTY:
        if re.match(pattern, target) and not target.startswith("pkg/") and folder not in owners:
            yield f"<{target}> belongs to {', '.join(owners)}"


def main():
    bad = False
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                match = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)
                for text in finds(path, match.group(1)) if match else ():
                    print(f"{path}:{number}: {text}")
                    bad = True
    sys.exit(bad)


main()
