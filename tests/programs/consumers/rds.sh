# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2154,SC2034,SC2086
# RDS: reliable datagrams, between two hosts. To its own host RDS does not use the device. It takes its lock of
# transports within the lock of a connection of rdma_cm, and the other way round, which lockdep would report.

rds=$PROGRAMS_DIR/consumers/rds.py
rds_port=5557

rds_serve() {
	need_modules rds_rdma
	setsid timeout 3600 "$rds" serve "$address" $rds_port >/tmp/rds-server 2>&1 </dev/null &
	nap 1
	kill -0 $! || { cat /tmp/rds-server; return 1; }
}

rds_unserve() { pkill -f "rds.py serve"; }

rds_echo() {
	local before now
	need_modules rds_rdma
	before=$(moved_bytes sent) || return
	timeout -k 5 $limit "$rds" echo "$own" "$address" $rds_port 2000 || return
	now=$(moved_bytes sent)
	echo "$((now - before)) bytes were sent by the device"
	[ $((now - before)) -ge $((2000 * 1024)) ]
}

# Datagrams wait for the device.
rds_without() {
	local user status=0
	"$rds" echo "$own" "$address" $rds_port 100 on >"$PAIR_TMP/output" 2>&1 &
	user=$!
	nap 1
	kill -0 $user || { cat "$PAIR_TMP/output"; return 1; }
	without "$@" || status=$?
	kill -INT $user
	until_true gone /proc/$user/fd || { kill -KILL $user; status=1; }
	wait $user || { cat "$PAIR_TMP/output"; return 1; }
	return $status
}

rds_end() {
	at_server rds_unserve
	at_all lockdep_proves 1
}

test_rds() {
	local end
	at_all lockdep_proves 0
	need "rds: a server" at_server rds_serve || return 0
	need "rds: data comes back" rds_echo || return 0
	for end in "${ends[@]}"; do
		check "rds: the device $end is deleted under load" rds_without $end delete_device
		check "rds: data comes back after that" rds_echo
	done
	check "rds: the end" rds_end
}
