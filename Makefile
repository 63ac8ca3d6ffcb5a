# SPDX-License-Identifier: Apache-2.0
# GNU make. Objects, generated code and programs stay under $(BUILD), so that several builds
# (release, sanitizers, a second compiler) stand side by side:
#   make check                      release build, unit + demo smoke + cluster tests
#   make check SAN=asan             the same under AddressSanitizer + UBSan (SAN=tsan: clang TSan)
# All files of a folder belong to it: adding a source file needs no change here.
VERSION := $(shell sed -n 's/^## \[\([0-9][^]]*\)\].*/\1/p' CHANGELOG.md | head -n 1)
SAN   ?=
BUILD ?= build$(if $(SAN),/$(SAN))
WERROR ?= $(if $(CI),-Werror)
PREFIX ?= /usr/local
DESTDIR ?=

ifeq ($(SAN),tsan)
CC  := clang-14
CXX := clang++-14
SANFLAGS := -fsanitize=thread
export TSAN_OPTIONS := suppressions=$(CURDIR)/tests/tsan.supp $(TSAN_OPTIONS)
else ifeq ($(SAN),asan)
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
endif
ifeq ($(origin CC),default)
CC  := gcc
CXX := g++
endif
IS_CLANG := $(shell $(CC) --version 2>/dev/null | grep -c clang)

WARN := -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes \
	-Wmissing-prototypes -Wold-style-definition -Wundef -Wpointer-arith -Wcast-qual \
	-Wwrite-strings -Wformat=2 -Wnull-dereference -Wswitch-enum -Wvla -Walloca \
	-Wdouble-promotion -Wdate-time -Wunused-macros
ifeq ($(IS_CLANG),0)
# seven warnings and one hardening flag are gcc's own (clang 14 rejects or does not know them)
WARN += -Wcast-align=strict -Wformat-signedness -Wlogical-op -Wduplicated-cond \
	-Wduplicated-branches -Wjump-misses-init -Wimplicit-fallthrough=5
HARDEN_GCC := -ftrivial-auto-var-init=zero
endif
HARDEN := -fno-common -fstack-protector-strong -fstack-clash-protection -fcf-protection -fPIE \
	-ffunction-sections -fdata-sections $(HARDEN_GCC) \
	$(if $(SAN),,-D_FORTIFY_SOURCE=3)
OPT ?= $(if $(SAN),-O1,-O2) -g
CPPFLAGS += -D_GNU_SOURCE -DWEFT_VERSION='"$(VERSION)"' -I. -I$(BUILD)/gen
CFLAGS_ALL := -std=gnu17 $(OPT) $(WARN) $(WERROR) $(HARDEN) $(SANFLAGS) $(CFLAGS)
LDFLAGS_ALL := -pie -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code,--as-needed,--gc-sections \
	$(SANFLAGS) $(LDFLAGS)

# --- what there is -------------------------------------------------------------------------------
PROTOS     := $(wildcard pkg/pb/*.proto)
PB_SRC     := $(PROTOS:pkg/pb/%.proto=$(BUILD)/gen/%.pb-c.c)
PB_OBJ     := $(PB_SRC:.c=.o)
PKG_SRC    := $(wildcard pkg/*/*.c)
PKG_CXX    := $(wildcard pkg/*/*.cc)
PKG_OBJ    := $(PKG_SRC:%.c=$(BUILD)/obj/%.o) $(PKG_CXX:%.cc=$(BUILD)/obj/%.o)
LIB        := $(BUILD)/libweft.a
HEADERS    := $(wildcard pkg/*/*.h deviceplugin/*.h controller/*.h ctl/*.h)

PLUGIN_SRC := $(wildcard deviceplugin/*.c)
CTRL_SRC   := $(wildcard controller/*.c)
CTL_SRC    := $(wildcard ctl/*.c)
PROGRAMS   := $(if $(PLUGIN_SRC),$(BUILD)/bin/weft-device-plugin) \
	$(if $(CTRL_SRC),$(BUILD)/bin/weft-controller) $(if $(CTL_SRC),$(BUILD)/bin/weftctl)
# helpers of tests and the demo: one program a file
FAKES      := $(patsubst tests/fakes/%.c,$(BUILD)/fakes/%,$(wildcard tests/fakes/*.c)) \
	$(BUILD)/fakes/libnvidia-ml.so.1 $(BUILD)/fakes/libmtml.so
# what belongs to fake_<name>, in tests/fakes/<name>/
fake_parts = $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/fakes/$(1)/*.c))
BENCHES    := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(wildcard tests/bench/bench_*.c))

# fabrics made up by benchmarks and unit tests alike
GEN_OBJ    := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/bench/fabric_gen*.c))
UNIT_SRC   := $(wildcard tests/unit/*.c)
UNIT_OBJ   := $(UNIT_SRC:%.c=$(BUILD)/obj/%.o)
# programs' own modules that unit tests reach: all but their main files
UNIT_EXTRA := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out %/main.c,$(PLUGIN_SRC) $(CTRL_SRC) $(CTL_SRC)))
SUITES     := $(patsubst tests/unit/test_%.c,%,$(wildcard tests/unit/test_*.c))
FUZZERS    := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

# --- libraries -----------------------------------------------------------------------------------
# gRPC C core is static (the plugin's memory and start time; ctech.md 1), libc dynamic so that a
# vendor library can be dlopened; the order and the group are what Debian's archives need.
ABSL := $(shell ls /usr/lib/*/libabsl_*.a 2>/dev/null | sed 's,.*/lib\(absl_.*\)\.a,\1,' | \
	grep -vE 'flags|test|leak|scoped_set_env|scoped_mock|mock' | sed 's/^/-l/' | sort -u)
GRPC_LIBS := -Wl,--wrap=gpr_cpu_num_cores,--wrap=gpr_cpu_current_cpu -Wl,-Bstatic \
	-Wl,--start-group -lgrpc_unsecure -lgpr -laddress_sorting -lupb $(ABSL) -lcares -lz \
	-Wl,--end-group -lstdc++ -Wl,-Bdynamic
# gnutls_global_init: takes pkg/http/gnutls-stub.o from the archive before libmicrohttpd asks for it
BASE_LIBS := -Wl,-u,gnutls_global_init -Wl,-Bstatic -lprotobuf-c -luv_a -lyaml -lz -lexpat -lmicrohttpd -Wl,-Bdynamic -lcjson -ldl -lm -lpthread
PLUGIN_LIBS := $(GRPC_LIBS) $(BASE_LIBS)
CTRL_LIBS := -lcurl $(BASE_LIBS)
CTL_LIBS := -lcurl $(BASE_LIBS)
UNIT_LIBS := $(GRPC_LIBS) -lcurl $(BASE_LIBS) -lcunit -lssl -lcrypto -lhwloc

# one short line a step; V=1 shows the whole commands
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' '$(1)' '$(2)')

.PHONY: all check check-run check-long churn unit cluster lint format format-check bench fuzz-smoke fuzz-replay \
	demo demo-run demo-smoke image install uninstall clean help coverage
.DELETE_ON_ERROR:
.SECONDARY:

all: $(PROGRAMS) ## the three programs, in $(BUILD)/bin

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | sort | while IFS='	' read -r t d; do \
		printf '  %-14s %s\n' "$$t" "$$d"; done

# --- compiling -----------------------------------------------------------------------------------
# Recorded so that another compiler or other flags rebuild what they must.
FLAGS_STAMP := $(BUILD)/flags
$(FLAGS_STAMP): FORCE
	@mkdir -p $(@D); echo '$(CC) $(CFLAGS_ALL) $(CPPFLAGS)' | cmp -s - $@ || \
		echo '$(CC) $(CFLAGS_ALL) $(CPPFLAGS)' > $@
.PHONY: FORCE
FORCE:

$(BUILD)/gen/%.pb-c.c $(BUILD)/gen/%.pb-c.h: pkg/pb/%.proto
	@mkdir -p $(@D)
	$(call say,PROTO,$<)
	$(Q)protoc-c --proto_path=pkg/pb --c_out=$(BUILD)/gen $<
$(BUILD)/gen/%.pb-c.o: $(BUILD)/gen/%.pb-c.c $(FLAGS_STAMP)
	$(Q)$(CC) $(CPPFLAGS) $(filter-out -Wcast-qual,$(CFLAGS_ALL)) -MMD -MP -c -o $@ $<
$(BUILD)/obj/%.o: %.c $(FLAGS_STAMP) | $(PB_SRC:.c=.h)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<
$(BUILD)/obj/%.o: %.cc $(FLAGS_STAMP)
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX) $(CPPFLAGS) -std=c++17 $(OPT) -Wall -Wextra $(WERROR) $(HARDEN) $(SANFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/obj/tests/unit/runner.o: $(BUILD)/gen/suites.inc
$(BUILD)/gen/suites.inc: FORCE
	@mkdir -p $(@D); printf 'WEFT_SUITE_ENTRY(%s)\n' $(SUITES) | cmp -s - $@ || \
		printf 'WEFT_SUITE_ENTRY(%s)\n' $(SUITES) > $@

$(LIB): $(PKG_OBJ) $(PB_OBJ)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(AR) rcs $@ $^

comma := ,
define link
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(1) $(2)
endef
$(BUILD)/bin/weft-device-plugin: $(PLUGIN_SRC:%.c=$(BUILD)/obj/%.o) $(LIB)
	$(call link,$^,$(PLUGIN_LIBS))
$(BUILD)/bin/weft-controller: $(CTRL_SRC:%.c=$(BUILD)/obj/%.o) $(LIB)
	$(call link,$^,$(CTRL_LIBS))
$(BUILD)/bin/weftctl: $(CTL_SRC:%.c=$(BUILD)/obj/%.o) $(LIB)
	$(call link,$^,$(CTL_LIBS))
$(BUILD)/fakes/fake_kubelet: $(call fake_parts,kubelet)
$(BUILD)/fakes/starved_plugin: $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out %/main.c,$(PLUGIN_SRC)))
# a vendor library of the tests' own, under the real one's name, so that it is loaded the same way;
# -Bsymbolic: libc has functions of the names that -finstrument-functions calls, and they do nothing
$(BUILD)/fakes/libnvidia-ml.so.1: $(wildcard tests/fakes/nvml/*.[ch] pkg/machine/discover-nvml-*.h) $(FLAGS_STAMP)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -finstrument-functions -Wl,-Bsymbolic -fPIC -shared -o $@ $(filter %.c,$^) -lcjson -lpthread
$(BUILD)/fakes/libmtml.so: $(wildcard tests/fakes/mtml/*.c) pkg/machine/discover-mthreads-internal.h $(FLAGS_STAMP)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -fPIC -shared -o $@ $(filter %.c,$^) -lcjson
$(BUILD)/fakes/%: $(BUILD)/obj/tests/fakes/%.o $(LIB)
	$(call link,$(filter %.o,$^) $(LIB),$(UNIT_LIBS))
$(BUILD)/bench/bench_tree: $(GEN_OBJ)
$(BUILD)/bench/bench_plugin $(BUILD)/bench/bench_plugin_calls: $(BUILD)/obj/tests/bench/plugin_bed.o
$(BUILD)/bench/bench_decide: $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out %/main.c,$(CTRL_SRC)))
$(BUILD)/bench/%: $(BUILD)/obj/tests/bench/%.o $(LIB)
	$(call link,$(filter %.o,$^) $(LIB),$(UNIT_LIBS))
# test_rpc.c makes gRPC's end hang, and threads fail to start
UNIT_WRAP := -Wl,--wrap=grpc_shutdown_blocking,--wrap=pthread_create
$(BUILD)/unit: $(UNIT_OBJ) $(UNIT_EXTRA) $(GEN_OBJ) $(LIB)
	$(call link,$^,$(UNIT_WRAP) $(UNIT_LIBS))

# --- tests ---------------------------------------------------------------------------------------
# set-up first, in a make of its own: what the libraries are called is read when make starts
check: ## set-up, then every test (WEFT_REQUIRE=cluster: a skipped cluster suite fails)
	@hack/setup --all
	+$(Q)$(MAKE) --no-print-directory check-run
check-run: all unit fuzz-replay demo-smoke cluster

unit: $(BUILD)/unit $(FAKES) $(PROGRAMS) ## unit and property tests; SUITE="a b" runs those suites only
	$(Q)WEFT_BUILD=$(BUILD) $(BUILD)/unit $(SUITE)

cluster: all $(FAKES) ## real etcd, kube-apiserver and kubelet
	$(Q)hack/cluster-test $(BUILD)

demo-smoke: all $(FAKES)
	@if [ -x hack/demo ]; then WEFT_BUILD=$(BUILD) hack/demo >$(BUILD)/demo.log 2>&1 || \
		{ cat $(BUILD)/demo.log; exit 1; }; echo "demo: ran"; fi

check-long: ## check in release, ASan+UBSan and TSan builds, plus the fuzz smoke run
	WEFT_LONG=1 $(MAKE) check
	$(MAKE) check SAN=asan
	$(MAKE) unit SAN=tsan
	$(MAKE) churn SAN=asan
	$(MAKE) churn SAN=tsan
	$(MAKE) fuzz-smoke

CHURN_SECONDS ?= 600
churn: $(BUILD)/unit $(FAKES) $(PROGRAMS) ## the plugin through pods, faults and changes for CHURN_SECONDS (600)
	$(Q)WEFT_BUILD=$(BUILD) WEFT_CHURN=$(CHURN_SECONDS) $(BUILD)/unit plugin_churn

# clang's libFuzzer; FUZZ_SECONDS each. The corpora are committed in tests/fuzz/corpus/<name>.
FUZZ_SECONDS ?= 20
FUZZ_FLAGS := -std=gnu17 -O1 -g -ffunction-sections -fsanitize=address,undefined -fno-sanitize-recover=undefined
FUZZ_OBJ := $(PKG_SRC:%.c=$(BUILD)/fuzzobj/%.o) $(PROTOS:pkg/pb/%.proto=$(BUILD)/fuzzobj/gen/%.o)
$(BUILD)/fuzzobj/%.o: %.c | $(PB_SRC:.c=.h)
	@mkdir -p $(@D)
	$(call say,FUZZCC,$<)
	$(Q)clang-14 $(CPPFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<
$(BUILD)/fuzzobj/gen/%.o: $(BUILD)/gen/%.pb-c.c
	@mkdir -p $(@D)
	$(Q)clang-14 $(CPPFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<
$(BUILD)/fuzzobj/libweft.a: $(FUZZ_OBJ)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
# from the archive only what a target needs: none needs gRPC
# what the plugin's own parser needs beside the library
FUZZ_CONFIG := $(filter deviceplugin/options% deviceplugin/respond% deviceplugin/health-settings% \
	deviceplugin/pools%,$(PLUGIN_SRC))
$(BUILD)/fuzz/fuzz_plugin_config: $(FUZZ_CONFIG:%.c=$(BUILD)/fuzzobj/%.o)
$(BUILD)/replay/fuzz_plugin_config: $(FUZZ_CONFIG:%.c=$(BUILD)/obj/%.o)
$(BUILD)/fuzz/fuzz_vgpu: $(BUILD)/fuzzobj/deviceplugin/vgpu.o
$(BUILD)/replay/fuzz_vgpu: $(BUILD)/obj/deviceplugin/vgpu.o
$(BUILD)/fuzz/fuzz_uevent: $(BUILD)/fuzzobj/deviceplugin/uevents.o
$(BUILD)/replay/fuzz_uevent: $(BUILD)/obj/deviceplugin/uevents.o
$(BUILD)/fuzz/fuzz_volcano_config: $(BUILD)/fuzzobj/controller/volcano-config.o
$(BUILD)/replay/fuzz_volcano_config: $(BUILD)/obj/controller/volcano-config.o
$(BUILD)/fuzz/%: $(BUILD)/fuzzobj/tests/fuzz/%.o $(BUILD)/fuzzobj/libweft.a
	@mkdir -p $(@D)
	$(call say,FUZZ,$@)
	$(Q)clang-14 $(FUZZ_FLAGS) -fsanitize=fuzzer -Wl,--gc-sections -o $@ \
		-Wl,--start-group $^ -Wl,--end-group -lcurl -lmicrohttpd -lprotobuf-c -lyaml -lcjson -lexpat -lz -luv -lm -ldl
fuzz-smoke: $(FUZZERS) ## each fuzz target for FUZZ_SECONDS (20) from its committed corpus
	@for f in $(FUZZERS); do n=$$(basename $$f); mkdir -p $(BUILD)/fuzz/work/$$n tests/fuzz/corpus/$$n; \
		echo "fuzz $$n $(FUZZ_SECONDS) s"; \
		$$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
			-artifact_prefix=$(BUILD)/fuzz/work/ $(BUILD)/fuzz/work/$$n tests/fuzz/corpus/$$n \
			>$(BUILD)/fuzz/work/$$n.log 2>&1 || { tail -40 $(BUILD)/fuzz/work/$$n.log; exit 1; }; \
		grep -E 'stat::number_of_executed_units' $(BUILD)/fuzz/work/$$n.log; done
# the committed corpora through the same targets, without libFuzzer: part of every check
REPLAYS := $(FUZZERS:$(BUILD)/fuzz/%=$(BUILD)/replay/%)
$(BUILD)/replay/%: $(BUILD)/obj/tests/fuzz/%.o $(BUILD)/obj/tests/fuzz/replay.o $(LIB)
	$(call link,-Wl$(comma)--start-group $^ -Wl$(comma)--end-group,$(UNIT_LIBS))
fuzz-replay: $(REPLAYS)
	@for f in $(REPLAYS); do $$f tests/fuzz/corpus/$$(basename $$f) || exit 1; done

bench: all $(FAKES) $(BENCHES) ## the figures, "name value unit" a line
	hack/bench $(BUILD)

coverage: ## lcov over the unit tests, in build/coverage
	hack/coverage

# --- gates ---------------------------------------------------------------------------------------
lint: ## format, banned calls, sizes, complexity, include direction, self-contained headers, analysers
	hack/lint $(BUILD)
format: ## rewrite all C in the house format
	git ls-files '*.c' '*.h' '*.cc' | xargs clang-format-14 -i
format-check:
	git ls-files '*.c' '*.h' '*.cc' | xargs clang-format-14 --dry-run -Werror

# --- the rest ------------------------------------------------------------------------------------
demo: ## set-up, then a fabric's tree, its HyperNodes and a device plugin at work; MACHINE=file FABRIC=file for your own
	@hack/setup
	+$(Q)$(MAKE) --no-print-directory demo-run
demo-run: all $(FAKES)
	$(Q)WEFT_BUILD=$(BUILD) MACHINE='$(MACHINE)' FABRIC='$(FABRIC)' hack/demo
image: all ## container images with what the programs need and nothing else (buildah)
	hack/image $(BUILD) $(VERSION)
install: all ## into $(DESTDIR)$(PREFIX)/bin
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(PROGRAMS) $(DESTDIR)$(PREFIX)/bin
	ln -sf weftctl $(DESTDIR)$(PREFIX)/bin/kubectl-weft
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/weft-device-plugin $(DESTDIR)$(PREFIX)/bin/weft-controller \
		$(DESTDIR)$(PREFIX)/bin/weftctl $(DESTDIR)$(PREFIX)/bin/kubectl-weft
clean: ## remove build/
	rm -rf build

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
