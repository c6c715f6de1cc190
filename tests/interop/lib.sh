# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# Two hosts with an RDMA device each and a wire between them, for the tests of
# this folder. Sourced by bash in the guest. There are two rigs:
#   veth  two network namespaces of one machine. The rdma_rxe of some kernels (6.12)
#         has its sockets in the initial one, and in no other: if it is both hosts,
#         they share that, and rules see to it that what they send goes over the
#         wire all the same.
#   wire  the machines of tools/vm/pair, both within tests/interop/wired, B
#         with serve; chosen if VRNIC_WIRE_DEV is set. This is A.
# Of each host, a and b: cmd[] runs a command there, dev[] is the device, net[]
# its interface, ip4[] and ip6[] its addresses, type[] its driver.

INTEROP=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$INTEROP/../programs/lib.sh"

declare -A cmd dev net ip4 ip6 type

# load_rxe: it is a module, or built in.
load_rxe() { [ ! -d "/lib/modules/$(uname -r)" ] || modprobe rdma_rxe; }

# at_home TYPE: its devices work in the initial network namespace alone.
at_home() {
	[ "$1" = rxe ] || return 1
	load_rxe
	! grep -q ' rxe_ns_pernet_sk4' /proc/kallsyms
}

# at HOST COMMAND...
at() {
	local host=$1; shift
	# shellcheck disable=SC2086 # a prefix of several words, or of none
	${cmd[$host]} "$@"
}

other() { if [ "$1" = a ]; then echo b; else echo a; fi; }

# one_home: both hosts are in the initial network namespace.
one_home() { [ -n "${type[b]:-}" ] && [ -z "${cmd[a]:-}${cmd[b]:-}" ]; }

# veth_host HOST TYPE N
veth_host() {
	local host=$1
	type[$host]=$2 net[$host]=veth_$host dev[$host]=${2}_$host
	ip4[$host]=192.168.80.$3 ip6[$host]=fd00:80::$3
	if at_home "$2"; then
		cmd[$host]=
	else
		ip netns add "$host"
		cmd[$host]="ip netns exec $host"
		ip link set "${net[$host]}" netns "$host"
		at "$host" ip link set lo up
	fi
	at "$host" ip addr add "${ip4[$host]}/24" dev "${net[$host]}"
	at "$host" ip addr add "${ip6[$host]}/64" dev "${net[$host]}" nodad
	at "$host" ip link set "${net[$host]}" mtu 9000 up
}

# over_the_wire HOST TABLE: what leaves by the interface of this host goes to the
# other one, though its address is one of this machine; IPv4 only.
over_the_wire() {
	local peer
	peer=$(other "$1")
	ip rule add pref 10 oif "${net[$1]}" lookup "$2"
	ip route add "${ip4[$peer]}" dev "${net[$1]}" src "${ip4[$1]}" table "$2"
	ip neigh replace "${ip4[$peer]}" dev "${net[$1]}" nud permanent \
		lladdr "$(cat "/sys/class/net/${net[$peer]}/address")"
	echo 1 >"/proc/sys/net/ipv4/conf/${net[$1]}/accept_local"
	echo 0 >"/proc/sys/net/ipv4/conf/${net[$1]}/rp_filter"
}

# A small kernel has no rules.
has_rules() { ip rule show >/dev/null 2>&1; }

# Without rules, only link-local addresses lead over the wire, as they are looked
# for behind the interface that is named with them.
share_namespace() {
	has_rules || return 0
	ip rule add pref 100 lookup local
	ip rule del pref 0
	echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
	over_the_wire a 1001
	over_the_wire b 1002
}

unshare_namespace() {
	has_rules || return 0
	ip rule del pref 10
	ip rule del pref 10
	ip rule add pref 0 lookup local
	ip rule del pref 100
}

veth_up() {
	ip link add veth_a type veth peer name veth_b
	veth_host a "$1" 1
	veth_host b "$2" 2
	! one_home || share_namespace
	at a rdma link add "${dev[a]}" type "$1" netdev veth_a
	at b rdma link add "${dev[b]}" type "$2" netdev veth_b
}

veth_down() {
	local host
	for host in a b; do
		[ -z "${dev[$host]:-}" ] || at $host rdma link del "${dev[$host]}" 2>/dev/null || :
	done
	at a ip link del veth_a 2>/dev/null || :
	! one_home || unshare_namespace
	for host in a b; do
		[ -z "${cmd[$host]:-}" ] || ip netns del $host
	done
}

wire_up() {
	cmd[a]='' cmd[b]=$INTEROP/on
	net[a]=wire0 net[b]=wire0
	ip4[a]=$VRNIC_WIRE_ADDR ip6[a]=$VRNIC_WIRE_ADDR6
	ip4[b]=$VRNIC_WIRE_PEER ip6[b]=$VRNIC_WIRE_PEER6
	dev[a]=$VRNIC_WIRE_DEV type[a]=$VRNIC_WIRE_TYPE
	dev[b]=$(at b printenv VRNIC_WIRE_DEV) || die "machine B has no device: has it started wired?"
	type[b]=$(at b printenv VRNIC_WIRE_TYPE)
}

# rig_up TYPE_A TYPE_B: of rxe and vrnic. The machines of a pair have theirs.
rig_up() {
	if [ -n "${VRNIC_WIRE_DEV:-}" ]; then
		rig=wire
		wire_up
	else
		rig=veth
		veth_up "$@"
	fi
	rig_ready
}

rig_down() {
	case ${rig:-} in
	veth) veth_down ;;
	wire) "$INTEROP/on" --quit || : ;;
	esac
	rm -rf "$PAIR_TMP"
}

# rig_mtu BYTES: of both interfaces; the devices follow, with the next power of two.
rig_mtu() {
	local host
	for host in a b; do
		at $host ip link set "${net[$host]}" mtu "$1"
	done
}

# gid HOST 4|6|link: index of the RoCEv2 GID that is this address.
gid() {
	local pattern
	# shellcheck disable=SC2086 # four numbers
	case $2 in
	4) pattern=$(printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' ${ip4[$1]//./ }) ;;
	6) pattern='fd00:*' ;;
	link) pattern='fe80:*' ;;
	esac
	at "$1" "$INTEROP/gid" "${dev[$1]}" "$pattern"
}

# rig_ready: addresses become GIDs a little later. And there must be a wire.
rig_ready() {
	local host version end=$((SECONDS + 20))
	for host in a b; do
		for version in 4 6; do
			until gid $host $version >/dev/null; do
				[ $SECONDS -lt $end ] || die "${dev[$host]} has no GID for IPv$version"
				sleep 0.1
			done
		done
	done
	at a ping -q -c 1 -W 5 "${ip4[b]}" >/dev/null || die "host b does not answer"
	at a ping -q -c 1 -W 5 "${ip6[b]}" >/dev/null || die "host b does not answer on IPv6"
}

# rig_settle: native contexts use GID 0, whose address is link-local.
rig_settle() {
	local host
	for host in a b; do
		while at $host ip -6 addr show tentative | grep -q .; do sleep 0.2; done
	done
}

# Where the server of a pair runs, for lib.sh's `listens`.
listener=a
tcp_listens() {
	at $listener cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q "$(printf ':%04X ' "$1").* 0A "
}

cm_listens() {
	at $listener rdma resource show cm_id |
		grep -Eq "state LISTEN .*src-addr [^ ]*:$1( |\$)"
}

# rig_pair LIMIT SERVER-HOST WHERE SERVER CLIENT: as patient_pair, on two hosts.
rig_pair() {
	listener=$2
	patient_pair "$1" "$3" "${cmd[$2]} $4" "${cmd[$(other "$2")]} $5"
}

# steady_clock writes below /tmp, which the hosts of the wire do not share.
rig_clock() {
	local lib=$INTEROP/../../build/bench/clock.so
	[ "$rig" = wire ] || { steady_clock; return; }
	[ "$lib" -nt "$PROGRAMS_DIR/clock.c" ] || die "build/bench/clock.so is not there: run tools/bench/build"
	perftest_env="env LD_PRELOAD=$lib"
}

# counters HOST: lines of "name value".
counters() {
	at "$1" rdma statistic show link "${dev[$1]}/1" |
		sed 's/^link [^ ]* //' | xargs -n 2
}

counter() { counters "$1" | awk -v n="$2" '$1 == n { print $2 }'; }

# What must stand still on a wire that loses nothing.
still='^(duplicate_request|out_of_seq_request|rcvd_seq_err|completer_retry_err|retry_exceeded_err'
still="$still|retry_rnr_exceeded_err|send_err|bad_icrc|icrc_errors?|rx_bad_icrc|retransmits?|retransmissions?"
still="$still|retransmitted_pkts|(ack_)?timeouts?|rcvd_dropped|packet_seq_err|nak_.*|sent_nak.*|rcvd_nak.*|.*_malformed|malformed.*) "

# troubles HOST: those counters, with their values.
troubles() { counters "$1" | grep -E "$still" || :; }

# KTAP for the tests of this folder.
number=0 failed=0

begin_tests() {
	echo "KTAP version 1"
	echo "1..$1"
}

# result NAME COMMAND...: what it prints are diagnostics.
result() {
	local name=$1; shift
	number=$((number + 1))
	if "$@" >"$PAIR_TMP/said" 2>&1; then
		echo "ok $number $name"
	else
		echo "not ok $number $name"
		failed=$((failed + 1))
	fi
	sed 's/^#* */# /' "$PAIR_TMP/said"
}

end_tests() {
	echo "# $((number - failed)) passed, $failed failed, $SECONDS s"
	[ $failed = 0 ]
}
