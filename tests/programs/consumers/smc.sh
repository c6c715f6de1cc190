# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2154,SC2034,SC2086
# SMC-R: sockets of TCP that move their data by RDMA. Version 2, with an EID; and with a network's name for the
# interface by which packets to the own host leave.

smc=$PROGRAMS_DIR/consumers/smc.py
smc_port=5556

smc_name() {
	need_modules smc
	"$smc" eid VRNIC.TEST || return
	[ $server != here ] || "$smc" pnet VRNIC lo "$device"
}

smc_listens() { tcp_listens $smc_port; }

# It has an end when nobody comes for an hour, or by smc_unserve.
smc_serve() {
	[ $server = here ] || smc_name || return
	setsid timeout 3600 "$smc" serve "$address" $smc_port >/tmp/smc-server 2>&1 </dev/null &
	until_true smc_listens
}

smc_unserve() {
	pkill -f "smc.py serve"
	[ $server = here ] || smc_forget
}

smc_forget() {
	"$smc" pnet-flush
	"$smc" eid-remove VRNIC.TEST
}

# By RDMA, and not by TCP.
smc_echo() {
	local before now
	before=$(moved_bytes written) || return
	timeout -k 5 $limit "$smc" echo "$address" $smc_port $((8 << 20)) || return
	now=$(moved_bytes written)
	echo "$((now - before)) bytes were written by RDMA"
	[ $((now - before)) -ge $((8 << 20)) ]
}

# The sockets fail with the device. Those that are made without it use TCP.
smc_without() {
	local user
	timeout -k 5 $limit "$smc" echo "$address" $smc_port $((1 << 40)) >"$PAIR_TMP/output" 2>&1 &
	user=$!
	nap 1
	kill -0 $user || { cat "$PAIR_TMP/output"; return 1; }
	without "$@" || return
	until_true gone /proc/$user/fd || return
	[ $server != here ] || "$smc" pnet VRNIC lo "$device"
}

# Until the other end has its device again, connections use TCP.
smc_again() { until_true smc_echo >/dev/null; }

smc_end() {
	at_server smc_unserve
	smc_forget
}

test_smc() {
	local end
	need "smc: names" smc_name || return 0
	need "smc: a server" at_server smc_serve || return 0
	need "smc: data comes back" smc_echo || return 0
	for end in "${ends[@]}"; do
		check "smc: the device $end is deleted under load" smc_without $end delete_device
		check "smc: data comes back after that" smc_again
		check "smc: the module $end goes and comes under load" smc_without $end reload_module
		check "smc: data comes back after that" smc_again
	done
	check "smc: the end" smc_end
}
