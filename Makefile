# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The commands of the project; `make help` lists them. What they do is in
# tools/ and tests/. Nothing is compiled on this machine itself except by
# modules_install: everything else happens in the guest's root file system.

SUITE	?= trixie
DESTDIR	?=
KERNEL	?= stock
export DESTDIR

build	:= tools/build --suite $(SUITE)

all:
	$(build) module provider library tests examples

demo:
	$(build) module provider examples
	tools/demo

demo-native:
	tools/demo-native --kernel $(KERNEL)

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

install:
	tools/install provider library headers utils man

modules_install:
	tools/install module

clean:
	tools/clean

help:
	@echo 'make                   compile module, provider, library, tests, examples (build/)'
	@echo 'make demo              boot a machine and show vrnic at work, beside rdma_rxe'
	@echo 'make demo-native       put, get, typed and paced transfers, fences: a program for each'
	@echo 'make check             the whole test suite'
	@echo 'make quick             compile, and run the selftests in user-mode Linux: half a minute;'
	@echo '                       without those that kill and that scribble'
	@echo 'make fuzz TIME=600     garbage in rings and calls, failing allocations, kills: hours; SEED=n repeats'
	@echo 'make coverage          the lines of the module that the tests reach: half an hour'
	@echo 'make bench             latency, message rate, bandwidth; vrnic, rdma_rxe and siw;'
	@echo '                       then over a wire, with TCP beside them: half an hour in all'
	@echo 'make kernels           compile the module against each kernel that Debian has headers for'
	@echo 'make vm                a shell in a machine that has vrnic0'
	@echo 'make lint              checkpatch, sparse, compiler warnings, scripts, spelling, documents'
	@echo 'make install           the provider where libibverbs looks, libvrnic, headers, man pages'
	@echo 'make modules_install   the module for the running kernel'
	@echo 'make clean             remove build/ and what belongs to it in the cache'
	@echo
	@echo 'SUITE=bookworm         compile for, and boot, Debian 12 instead of 13'
	@echo 'KERNEL=uml             demo-native in user-mode Linux'
	@echo 'VRNIC_CACHE=<folder>   where root file systems and kernels are kept (4 to 12 GB)'
	@echo 'DESTDIR=<folder>       install below this folder'

.PHONY: all demo demo-native check quick fuzz coverage bench kernels vm lint install modules_install clean help
