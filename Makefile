# SPDX-License-Identifier: GPL-2.0-only
#
# make              build/mmscope, one static binary (no network, no root)
# make demo         set up what is missing, build, show the difference (7.2 against 7.3)
# make kernels      the kernels vanilla and patched into the cache (kernel/build)
# make check        the same set-up, then all tests; T="unit/options vm" runs some, J=N at once
# make check-debug  the tests that are marked for it, on kernels with lockdep, KASAN and more
# make check-long   tests/long: the kernels that check leaves out, builds in fresh Debian 12
#                   and 13 systems, and more (root, network, hours)
# make cost         docs/results/cost.md, lock_cost.md anew: what observing costs (root, network)
# make table-arraymap   docs/results/arraymap.md anew (four kernels, an hour)
# make study        docs/results/false_alarm.md anew, from the boots that are kept (a minute)
# make study-boots  the same of new boots: 100 of vanilla, kept in tests/data/study (two hours)
# make install      DESTDIR= PREFIX=/usr/local
# make lint         style of all files, shell scripts
#
# V=1 prints commands; NO_INSTALL=1 refuses to install packages; B=DIR builds there.

MAKEFLAGS += --no-builtin-rules --no-print-directory
ifeq ($(MAKELEVEL),0)		# below, the job server of the make above counts
MAKEFLAGS += -j$(shell nproc)
endif
.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := all

VERSION   := 0.1
CC        := gcc
CLANG     ?= clang
BPFTOOL   ?= $(firstword $(wildcard /usr/sbin/bpftool /sbin/bpftool) bpftool)
PKGCONFIG ?= pkg-config
PREFIX    ?= /usr/local
B         ?= build
V         ?= 0
ifeq ($(V),0)
Q   := @
msg  = @printf '  %-8s %s\n' $(1) $(2)
endif

# LINK=static is the product; the tests also build LINK=dynamic, with sanitizers.
LINK      ?= static
SANITIZE  ?=
CFLAGS    ?= -O2 -g
# Rows of tables leave out what they do not need.
WARN      := -Wall -Wextra -Werror -Wmissing-prototypes -Wstrict-prototypes -Wno-unused-parameter \
	     -Wno-missing-field-initializers
C_FLAGS    = -std=gnu11 $(WARN) -D_GNU_SOURCE -DMMSCOPE_VERSION='"$(VERSION)"' -pthread \
	     -Itools -I. -I$(B)/bpf $(CFLAGS) \
	     $(SANITIZE:%=-fsanitize=%) $(SANITIZE:%=-fno-sanitize-recover=all)
ifeq ($(LINK),static)
L_FLAGS    = $(C_FLAGS) $(LDFLAGS) -static
LIBS      := $(shell $(PKGCONFIG) --static --libs libbpf libelf zlib 2>/dev/null) -lyajl_s -lm
else
L_FLAGS    = $(C_FLAGS) $(LDFLAGS)
LIBS      := $(shell $(PKGCONFIG) --libs libbpf libelf zlib yajl 2>/dev/null) -lm
endif

# -mcpu=v3 whatever the compiler's default is: every kernel since 5.12 takes it.
ARCH_BPF  := $(patsubst x86_64,x86,$(patsubst aarch64,arm64,$(shell uname -m)))
MULTIARCH := $(shell gcc -print-multiarch 2>/dev/null)
B_FLAGS   := -target bpf -mcpu=v3 -D__TARGET_ARCH_$(ARCH_BPF) -g -O2 -std=gnu11 -Wall -Werror \
	     -Wno-unused-function -Itools -Ibpf $(MULTIARCH:%=-idirafter /usr/include/%)

SRCS := $(wildcard tools/*.c tools/*/*.c)
OBJS := $(SRCS:%.c=$(B)/%.o)
BPF  := $(patsubst bpf/%.bpf.c,%,$(wildcard bpf/*.bpf.c))
SKEL := $(BPF:%=$(B)/bpf/%.skel.h)
UNIT := $(patsubst tests/%.c,$(B)/%,$(wildcard tests/unit/*.c))
MAN  := $(wildcard docs/*.1)

all: $(B)/mmscope

# The linked file keeps its symbols for debugging; the stripped one is installed.
$(B)/mmscope: $(OBJS)
	$(call msg,LINK,$@)
	$(Q)$(CC) $(L_FLAGS) -o $@ $^ $(LIBS)
	$(Q)strip -o $@.stripped $@
	$(Q)printf '  %-8s %s: %d KiB, %d KiB stripped (as installed)\n' SIZE $@ \
		$$(($$(stat -c %s $@) / 1024)) $$(($$(stat -c %s $@.stripped) / 1024))

$(OBJS): $(B)/%.o: %.c Makefile | $(SKEL) packages
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(C_FLAGS) -MMD -MP -c -o $@ $<

# Embedded by the assembler, which the compiler's dependencies do not see.
$(filter $(B)/tools/vm/%,$(OBJS)): $(wildcard kernel/versions)

$(BPF:%=$(B)/bpf/%.bpf.o): $(B)/bpf/%.bpf.o: bpf/%.bpf.c Makefile | packages
	$(call msg,BPF,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(B_FLAGS) -MMD -MP -MT $@ -c -o $(@:.bpf.o=.tmp.o) $<
	$(Q)$(BPFTOOL) gen object $@ $(@:.bpf.o=.tmp.o)

$(SKEL): %.skel.h: %.bpf.o
	$(call msg,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $(notdir $*) > $@

# Everything but main(), for the unit tests.
$(B)/libmmscope.a: $(filter-out $(B)/tools/mmscope.o,$(OBJS))
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

$(UNIT): $(B)/%: tests/%.c $(B)/libmmscope.a Makefile
	$(call msg,UNIT,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(C_FLAGS) -Itests -MMD -MP -o $@ $< $(L_FLAGS) $(B)/libmmscope.a $(LIBS) -lcmocka

unit: $(UNIT)

# Names what is missing for a build; installs nothing.
packages:
	$(Q)CLANG="$(CLANG)" BPFTOOL="$(BPFTOOL)" tools/setup.sh build --check

demo:
	$(Q)tools/setup.sh demo
	$(Q)$(MAKE) all
	$(Q)MMSCOPE=$(abspath $(B))/mmscope tools/demo.sh

# Three builds of the same sources: the product, one with sanitizers for the
# unit and command line tests, and one all by the newest clang that there is.
NEW_CLANG = $(or $(notdir $(lastword $(sort $(wildcard /usr/bin/clang-[1-9][0-9])))),clang)

check-build:
	$(Q)$(MAKE) all
	$(Q)$(MAKE) all unit B=$(B)/asan LINK=dynamic CFLAGS='-O1 -g -fno-omit-frame-pointer' \
		SANITIZE='address undefined'
	$(Q)$(MAKE) all B=$(B)/clang CC=$(NEW_CLANG) CLANG=$(NEW_CLANG)

kernels: all
	$(Q)tools/setup.sh kernel
	$(Q)for k in vanilla $(if $(wildcard kernel/series/*/*.patch),patched); do \
		MMSCOPE=$(abspath $(B))/mmscope kernel/build $$k$(PLUS) >/dev/null || exit; \
	done

check:
	$(Q)tools/setup.sh test
	$(Q)$(MAKE) check-build
	$(Q)tests/run --build $(B) $(J:%=-j%) $(T)

check-debug:
	$(Q)tools/setup.sh test
	$(Q)$(MAKE) all
	$(Q)tests/run --build $(B) --debug $(J:%=-j%) \
		--command "make check-debug" --results docs/results/debug.md $(T)

check-long:
	$(Q)tools/setup.sh long
	$(Q)$(MAKE) check-build
	$(Q)tests/run --build $(B) $(J:%=-j%) \
		--command "make check-long" --results docs/results/long.md $(or $(T),long)

# Dated, with its kernels; commit what it writes.
table-arraymap: all
	$(Q)tools/setup.sh kernel
	$(Q)MMSCOPE=$(abspath $(B))/mmscope tests/long/arraymap_table.py \
		--output docs/results/arraymap.md

# How often a kernel is called worse than itself: the table, of what is kept of boots.
study:
	$(Q)tools/setup.sh test
	$(Q)tests/long/false_alarm.py --write

study-boots: all
	$(Q)tools/setup.sh kernel
	$(Q)MMSCOPE=$(abspath $(B))/mmscope tests/long/false_alarm.py --record
	$(Q)$(MAKE) study

cost: all
	$(Q)tools/setup.sh long
	$(Q)MMSCOPE=$(abspath $(B))/mmscope tests/long/cost.py --output docs/results/cost.md
	$(Q)MMSCOPE=$(abspath $(B))/mmscope tests/long/lock_cost.py \
		--output docs/results/lock_cost.md

install: all
	$(Q)install -D -m 755 $(B)/mmscope.stripped $(DESTDIR)$(PREFIX)/bin/mmscope
	$(Q)install -d $(DESTDIR)$(PREFIX)/share/man/man1
	$(Q)install -m 644 $(MAN) $(DESTDIR)$(PREFIX)/share/man/man1

lint:
	$(Q)tests/run cli/style
	$(Q)shellcheck -S warning .ci/run kernel/build kernel/source kernel/bisect-* kernel/lib.sh \
		$(wildcard tools/*.sh tests/*/*.sh)

clean:
	$(Q)rm -rf $(B)

.PHONY: all unit packages demo kernels check check-build check-debug check-long table-arraymap \
	study study-boots cost install lint clean
-include $(OBJS:.o=.d) $(UNIT:%=%.d) $(BPF:%=$(B)/bpf/%.tmp.d)
