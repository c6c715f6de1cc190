# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The commands of the project; `make help` lists them. What they do is in
# tools/ and tests/. There are two groups. The laboratory compiles and runs everything in
# throw-away machines, with the guest's compiler. The other group compiles with this machine's
# compiler and headers, and installs; it takes no network, and root only to install.

SUITE	?= trixie
KERNEL	?= stock

build	:= tools/build --suite $(SUITE)

all:
	$(build) module provider library tests examples

demo:
	$(build) module provider examples
	tools/demo

demo-native:
	tools/demo-native --kernel $(KERNEL) $(if $(WIRE),--wire)

check:
	tests/check

quick:
	tests/check quick

TIME	?= 600
fuzz:
	tests/fuzz/run $(TIME) $(SEED)

coverage:
	tests/coverage

bench:
	$(build) module provider siw
	tools/bench/run
	tools/bench/wire

kernels:
	tools/kernels

vm:
	tools/vm/run --suite $(SUITE) --shell

lint:
	tools/lint

BUILD	?= build/host
override BUILD := $(abspath $(BUILD))
PARTS	?= library headers utils man provider
export BUILD KVER KDIR RDMA_CORE KEY CERT
export DESTDIR PREFIX LIBDIR INCLUDEDIR SBINDIR MANDIR SYSCONFDIR
export PROVIDERDIR UNITDIR UDEVDIR MODPROBEDIR MODULESDIR
# What packagers give has to be in the environment: tools/host asks the compiler for headers.
export CC

# The + hands make's job server on. It also runs the command under -n, -t and -q, which tools/host
# knows; what installs or deletes has no job for the server, and no +.
module:
	+tools/host module

lib:
	+tools/host library

provider:
	+tools/host provider

sign:
	tools/host sign

install:
	tools/install $(PARTS)

modules_install:
	tools/install module

uninstall:
	tools/install --uninstall library headers utils man provider module

deb:
	tools/deb --suite $(SUITE)

clean:
	tools/clean

help:
	@echo 'For this machine: its compiler and headers, no network, root only to install'
	@echo
	@echo 'make module            the module, for the running kernel, or for KVER=VERSION or KDIR=HEADERS'
	@echo 'make lib               libvrnic'
	@echo 'make provider          the provider; RDMA_CORE=FOLDER or TARBALL is the source of rdma-core'
	@echo 'make sign              sign the module: KEY=FILE CERT=FILE'
	@echo 'make install           what was built: libvrnic, headers, the command vrnic, manual, provider'
	@echo '                       (PARTS="library headers utils man provider" are all of them)'
	@echo 'make modules_install   the module'
	@echo 'make uninstall         remove what these two installed below PREFIX and DESTDIR'
	@echo
	@echo 'BUILD=<folder>         where results go: build/host'
	@echo 'DESTDIR=<folder>       install below this folder'
	@echo 'PREFIX=/usr/local      and LIBDIR, INCLUDEDIR, SBINDIR, MANDIR, SYSCONFDIR, PROVIDERDIR,'
	@echo '                       UNITDIR, UDEVDIR, MODPROBEDIR, MODULESDIR; CC, CFLAGS, CPPFLAGS, LDFLAGS'
	@echo
	@echo 'In a laboratory: root file systems and machines that are made on the way, as root'
	@echo
	@echo 'make                   compile module, provider, library, tests, examples (build/)'
	@echo 'make demo              boot a machine and show vrnic at work, beside rdma_rxe'
	@echo 'make demo-native       put, get, typed and paced transfers, fences: a program for each'
	@echo 'make check             the whole test suite'
	@echo 'make quick             compile, and run the selftests in user-mode Linux: minutes;'
	@echo '                       without those that kill and that scribble'
	@echo 'make fuzz TIME=600     garbage in rings and calls, failing allocations, kills: hours; SEED=n repeats'
	@echo 'make coverage          the lines of the module that the tests reach: half an hour'
	@echo 'make bench             latency, message rate, bandwidth; vrnic, rdma_rxe and siw;'
	@echo '                       then over a wire, with TCP beside them: half an hour in all'
	@echo 'make kernels           compile the module against each kernel that Debian has headers for'
	@echo 'make vm                a shell in a machine that has vrnic0'
	@echo 'make lint              checkpatch, sparse, compiler warnings, scripts, spelling, documents'
	@echo 'make deb               Debian packages, and their source: build/SUITE/deb/'
	@echo 'make clean             remove build/ and what belongs to it in the cache'
	@echo
	@echo 'SUITE=bookworm         for Debian 12 instead of 13; backports and forky are there, too'
	@echo 'KERNEL=uml             demo-native in user-mode Linux'
	@echo 'WIRE=1                 demo-native between two hosts, with packets'
	@echo 'VRNIC_CACHE=<folder>   where root file systems and kernels are kept (4 to 12 GB)'

.PHONY: all demo demo-native check quick fuzz coverage bench kernels vm lint clean help
.PHONY: module lib provider sign install modules_install uninstall deb
