# SPDX-License-Identifier: GPL-2.0-only
#
# make              build/mmscope, one static binary (no network, no root)
# make demo         set up what is missing, build, show the difference (7.2 against 7.3)
# make check        set up what is missing, build, run all tests
# make install      DESTDIR= PREFIX=/usr/local
# V=1 prints commands; NO_INSTALL=1 refuses to install packages.

MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.SUFFIXES:

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
msg  = @printf '  %-8s %s\n' $(1) $(patsubst $(B)/%,%,$(2))
endif

WARN    := -Wall -Wextra -Werror -Wmissing-prototypes -Wstrict-prototypes -Wno-unused-parameter
CFLAGS  ?= -O2 -g
CFLAGS  += -std=gnu11 $(WARN) -D_GNU_SOURCE -DMMSCOPE_VERSION='"$(VERSION)"' -Itools -I$(B)/bpf -pthread
LDFLAGS ?= -static
LIBS     = $(shell $(PKGCONFIG) --static --libs libbpf libelf) -lyajl_s -lm

ARCH_BPF := $(patsubst x86_64,x86,$(patsubst aarch64,arm64,$(shell uname -m)))
BPFFLAGS := -target bpf -D__TARGET_ARCH_$(ARCH_BPF) -g -O2 -std=gnu11 -Wall -Werror -Wno-unused-function -Itools -Ibpf

SRCS := $(wildcard tools/*.c tools/*/*.c)
OBJS := $(SRCS:%.c=$(B)/%.o)
BPF  := $(patsubst bpf/%.bpf.c,%,$(wildcard bpf/*.bpf.c))
SKEL := $(BPF:%=$(B)/bpf/%.skel.h)

all: $(B)/mmscope

$(B)/mmscope: $(OBJS)
	$(call msg,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(OBJS) $(LIBS)

$(OBJS): $(B)/%.o: %.c | $(SKEL) packages
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

$(B)/bpf/%.bpf.o: bpf/%.bpf.c | packages
	$(call msg,BPF,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPFFLAGS) -MMD -MP -c -o $(@:.bpf.o=.tmp.o) $<
	$(Q)$(BPFTOOL) gen object $@ $(@:.bpf.o=.tmp.o)

$(B)/bpf/%.skel.h: $(B)/bpf/%.bpf.o
	$(call msg,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $* > $@

# Names what is missing for a build; installs nothing.
packages:
	$(Q)tools/setup.sh --build --check

# The same, and installs it.
setup:
	$(Q)tools/setup.sh --all

clean:
	$(Q)rm -rf $(B)

.PHONY: all packages setup clean demo check install
-include $(OBJS:.o=.d) $(BPF:%=$(B)/bpf/%.tmp.d)
