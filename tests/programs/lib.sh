# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# Server/client pairs on one host, for the program tests, the bench and the
# demo. Sourced by bash in the guest; needs root, iproute2 and /tmp.
#
# A pair is told apart by where its server can be seen to listen:
#   tcp:PORT  a TCP socket       (ibv_*_pingpong, perftest)
#   cm:PORT   an rdma_cm listener (rping, ucmatose, perftest -R, ...)
# WHERE:dismiss is for a server that does not end by itself: it is told to when the
# client has ended, and its status says nothing.

PROGRAMS_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$PROGRAMS_DIR/../../tools/options.sh"
PAIR_TMP=${PAIR_TMP:-$(mktemp -d /tmp/pair.XXXXXX)}

# die MESSAGE: one line that says what is missing and what to do.
die() { echo "${0##*/}: $*" >&2; exit 1; }

# A process costs a quarter of a second on an emulated CPU: what waits, and what
# reads a report, is done by the shell itself.

# nap SECONDS: sleep, without a process.
exec {nap_fd}<> <(:)
nap() { read -rt "$1" -u $nap_fd || :; }

# within SECONDS COMMAND...: whether the command comes true in time.
within() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		nap 0.05
	done
}

# tcp_listens PORT: straight from /proc, because ss needs sock_diag.
tcp_listens() {
	local hex file table
	printf -v hex ':%04X' "$1"
	for file in /proc/net/tcp /proc/net/tcp6; do
		[ -r $file ] || continue
		table=$(<$file)
		[[ ! $table =~ $hex\ [0-9A-F]+:0000\ 0A\  ]] || return 0
	done
	return 1
}

cm_listens() {
	rdma resource show cm_id | grep -Eq "state LISTEN .*src-addr [^ ]*:$1( |\$)"
}

# listens SPEC PID: wait until the server is there; fails when it died before.
listens() {
	local end=$((SECONDS + ${LISTEN_LIMIT:-30}))
	until "${1%%:*}_listens" "${1#*:}"; do
		kill -0 "$2" 2>/dev/null || return 1
		[ $SECONDS -lt $end ] || return 1
		nap 0.05
	done
}

# pair LIMIT WHERE SERVER CLIENT: run both command lines, each for LIMIT seconds
# at most. The outputs are left in $PAIR_TMP/server and $PAIR_TMP/client. The
# status is 0 only if both ended with 0; PAIR_WHY says what went wrong.
pair() {
	local limit=$1 where=${2%:dismiss} server=$3 client=$4 pid status=0
	PAIR_WHY=
	: >"$PAIR_TMP/client"
	# shellcheck disable=SC2086 # command lines are split on purpose
	timeout -k 2 "$limit" $server >"$PAIR_TMP/server" 2>&1 </dev/null &
	pid=$!
	if listens "$where" $pid; then
		# shellcheck disable=SC2086 # the same
		timeout -k 2 "$limit" $client >"$PAIR_TMP/client" 2>&1 </dev/null || status=$?
		[ $status = 0 ] || PAIR_WHY="client $(why $status "$limit")"
	else
		PAIR_WHY="server does not listen on $where"
	fi
	# A server without its client would only wait for its time limit.
	[ -z "$PAIR_WHY" ] && [ "$where" = "$2" ] || kill $pid 2>/dev/null || :
	status=0
	wait $pid || status=$?
	[ "$where" = "$2" ] || status=0
	[ -n "$PAIR_WHY" ] || [ $status = 0 ] || PAIR_WHY="server $(why $status "$limit")"
	[ -z "$PAIR_WHY" ]
}

# patient_pair: as pair, but again if what failed was the program's own doing, which says
# nothing about what was tested. On a busy host, a virtual CPU may stand still at the
# wrong moment, and one is enough.
patient_pair() {
	local try said FI_OFI_RXM_CM_PROGRESS_INTERVAL	# of lost_farewell, for this pair alone
	unset FI_OFI_RXM_CM_PROGRESS_INTERVAL
	for try in 1 2 3 4; do
		pair "$@" && return
		said=$(<"$PAIR_TMP/client")$(<"$PAIR_TMP/server")
		own_fault "$said" || lost_farewell "$3" || return 1
		echo "# $try: $PAIR_WHY" >&2
	done
	PAIR_WHY="$PAIR_WHY: is the host overloaded?"
	return 1
}

# own_fault OUTPUT: sets PAIR_WHY. With -R, the server listens a second time for the
# connection that is measured, and the client does not wait for that: it is rejected
# because nobody listens (8; UD: 1, IB_SIDR_UNSUPPORTED), by any device, and when it
# wants to try again, it crashes.
own_fault() {
	case $1 in
	*"Correlation coefficient"*) PAIR_WHY="perftest could not calibrate its clock" ;;
	*"CM_EVENT_REJECTED; error: 8."* | *"CM_EVENT_UNREACHABLE; error: 1."*)
		PAIR_WHY="perftest connected before its server listened" ;;
	*) return 1 ;;
	esac
}

# lost_farewell SERVER: sets PAIR_WHY. When libfabric's rxm (all releases up to 2.6.0) hears
# that its peer left, it destroys the queue pair, and only then reads what the completion
# queue still has of it. Like most hardware, vrnic drops that. rxm looks for events if 10 ms
# went by since its last look: a server that was preempted after it had looked at the completion
# queue never sees the client's last message. It looks once in 10 s when it is tried again.
lost_farewell() {
	case $PAIR_WHY:$1 in
	"server did not end"*ofi_rxm*) PAIR_WHY="rxm lost the client's last message" ;;
	*) return 1 ;;
	esac
	export FI_OFI_RXM_CM_PROGRESS_INTERVAL=10000000
}

# ucx_alone: the option without which an ucx_perftest that knows MPI asks for it. Debian 12's
# does not know.
ucx_alone() {
	local said
	said=$(ucx_perftest -h 2>&1) || :
	[[ $said != *" -P "* ]] || echo "-P 0"
}

# fabric_where: of fi_pingpong for datagrams. Before libfabric 2, its server does not end, on
# any device.
fabric_where() {
	case $(fi_info --version 2>/dev/null) in
	*"libfabric: 1."*) echo tcp:47592:dismiss ;;
	*) echo tcp:47592 ;;
	esac
}

why() {
	case $1 in
	124|137) echo "did not end in $2 s" ;;
	13[0-9]|14[0-9]) echo "died of signal $(($1 - 128))" ;;
	*) echo "exited with status $1" ;;
	esac
}

# rocev2_gid DEVICE: index of the GID to use. One with an IPv4 address is
# what an administrator would take; otherwise the first that is there.
rocev2_gid() {
	local dir=/sys/class/infiniband/$1/ports/1 file i type first=
	for file in "$dir"/gid_attrs/types/*; do
		# an unused entry of the table cannot be read
		type=$(cat "$file" 2>/dev/null) || continue
		[ "$type" = "RoCE v2" ] || continue
		i=${file##*/}
		case $(cat "$dir/gids/$i") in
		0000:0000:0000:0000:0000:ffff:*) echo "$i"; return ;;
		esac
		first=${first:-$i}
	done
	[ -n "$first" ] || die "device $1 has no RoCEv2 GID: is its netdev up?"
	echo "$first"
}

need_device() {
	[ -e "/sys/class/infiniband/$1" ] ||
		die "no RDMA device $1: load the module, or set VRNIC_DEV and VRNIC_CM_DEV"
}

# steady_clock: perftest calibrates the cycle counter before each report, and
# prints none when it was preempted at the wrong moments, which a polling peer
# on the same CPU makes likely. See clock.c for most of the cure.
steady_clock() {
	local lib=$PROGRAMS_DIR/../../build/bench/clock.so	# of tools/bench/build
	if [ ! "$lib" -nt "$PROGRAMS_DIR/clock.c" ]; then
		lib=$PAIR_TMP/clock.so
		cc -O2 -shared -fPIC -o "$lib" "$PROGRAMS_DIR/clock.c" ||
			die "cannot compile clock.c: is gcc in the guest root?"
	fi
	perftest_env="env LD_PRELOAD=$lib"
}

# perftest LIMIT PROGRAM DEVICE ADDRESS OPTIONS: a perftest pair for its figures.
# With -R, the device is found by its address.
perftest() {
	local limit=$1 device=$3 address=$4 options=$5 where=tcp:18515 line try
	case " $options " in
	*" -R "*) where=cm:18515 ;;
	esac
	line="${perftest_env:-} $2 -d $device $options"
	for try in 1 2 3 4; do
		patient_pair "$limit" "$where" "$line" "$line $address" || return 1
		# a latency test ends well all the same, with figures of "inf"
		own_fault "$(<"$PAIR_TMP/client")" || return 0
	done
	PAIR_WHY="$PAIR_WHY: is the host overloaded?"
	return 1
}

# diagnose FILE...: outputs as KTAP diagnostics.
diagnose() {
	local file
	for file in "$@"; do
		[ -s "$file" ] || continue
		echo "# ${file##*/}:"
		tail -n 30 "$file" | sed 's/^/#   /'
	done
}
