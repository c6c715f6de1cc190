# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# What the tests of vrnic(8) share: checks that are one KTAP line each, and a machine with the module
# installed as modprobe expects it. Sourced by bash in the guest, after lib.sh; needs root. If $installed
# is set, packages have installed vrnic(8), the module and the provider, and those are tested.

if [ -n "${installed:-}" ]; then
	vrnic=/usr/sbin/vrnic
	module=$(modinfo -F filename vrnic)
else
	vrnic=$PROGRAMS_DIR/../../userlib/utils/vrnic
	module=$PROGRAMS_DIR/../../build/${VRNIC_SUITE:-trixie}/${VRNIC_BED:?}/vrnic.ko
fi
modules=/lib/modules/$(uname -r)
said=$PAIR_TMP/said
number=0 failed=0 ended=

# check NAME COMMAND...: one KTAP line.
check() {
	local name=$1; shift
	number=$((number + 1))
	if "$@" >"$said" 2>&1; then
		echo "ok $number $name"
	else
		echo "not ok $number $name"
		sed 's/^/# /' "$said"
		failed=$((failed + 1))
	fi
}

# end_checks: the plan, and the exit status.
end_checks() {
	ended=1
	echo "1..$number"
	[ $failed = 0 ]
}

# finally COMMAND: at the end, and if something fails between two checks, which is a failure, too.
finally() {
	# shellcheck disable=SC2064 # the command as it is now
	trap "early_end; $1 >/dev/null 2>&1" EXIT
}

early_end() { [ -n "$ended" ] || echo "not ok $((number + 1)) there was an end too early"; }

# says TEXT COMMAND...: it fails, and says that.
says() {
	local text=$1; shift
	! "$@" >"$PAIR_TMP/output" 2>&1 || { echo "it is content"; return 1; }
	cat "$PAIR_TMP/output"
	grep -q -e "$text" "$PAIR_TMP/output"
}

# prints TEXT COMMAND...
prints() {
	local text=$1; shift
	"$@" >"$PAIR_TMP/output" 2>&1 || { cat "$PAIR_TMP/output"; return 1; }
	cat "$PAIR_TMP/output"
	grep -q -e "$text" "$PAIR_TMP/output"
}

# rdma_cm over the address that it got.
pings() { pair 30 cm:7174 "rping -s -a $1 -C 3" "rping -c -a $1 -C 3" || { echo "$PAIR_WHY"; return 1; }; }

# As if it had been installed: for modprobe. A user-mode kernel has no folder of modules, by which other tests
# know that all is built in.
made_modules=
install_module() {
	[ -d "$modules" ] || made_modules=1
	mkdir -p "$modules/updates"
	cp "$module" "$modules/updates/"
	depmod -a 2>/dev/null	# a user-mode kernel has no list of what is built in
}

start_over() {
	"$vrnic" down || :
	rmmod vrnic 2>/dev/null || :
	ip link del vrnet0 2>/dev/null || :
}

uninstall_module() {
	[ -z "$made_modules" ] || { rm -r "$modules"; return; }
	rm -f "$modules/updates/vrnic.ko"
	depmod -a || :
}

# As tools/vm/guest/main had it.
restore() {
	start_over
	[ -z "${installed:-}" ] || { rm -rf "$PAIR_TMP"; return; }
	uninstall_module
	insmod "$module"
	ip link add vrnet0 type dummy
	ip link set vrnet0 mtu 9000 up
	ip addr add 192.168.77.1/24 dev vrnet0
	ip addr add fd00:77::1/64 dev vrnet0 nodad
	rdma link add vrnic1 type vrnic netdev vrnet0
	rm -rf "$PAIR_TMP"
}

[ -e "$module" ] || die "$module is not there"
