# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2154,SC2034,SC2086
# NVMe over Fabrics: nvmet-rdma serves a disk in memory, nvme-rdma uses it.

nvmet=/sys/kernel/config/nvmet
nqn=nqn.2026-01.org.vrnic:test
nvme_transport=rdma	# or tcp
controller='' disk=''

# The disk behind the server.
null_blk=/sys/kernel/config/nullb/vrnic

nvme_make_disk() {
	need_modules null_blk
	mkdir $null_blk || return
	echo 32 >$null_blk/size
	echo 1 >$null_blk/memory_backed
	echo 1 >$null_blk/power
	until_true test -b /dev/vrnic
}

nvme_serve() {
	need_modules nvmet-$nvme_transport && nvme_make_disk || return
	mkdir $nvmet/subsystems/$nqn $nvmet/subsystems/$nqn/namespaces/1 || return
	echo 1 >$nvmet/subsystems/$nqn/attr_allow_any_host
	echo -n /dev/vrnic >$nvmet/subsystems/$nqn/namespaces/1/device_path
	echo 1 >$nvmet/subsystems/$nqn/namespaces/1/enable
	mkdir $nvmet/ports/1
	echo ipv4 >$nvmet/ports/1/addr_adrfam
	echo $nvme_transport >$nvmet/ports/1/addr_trtype
	echo "$address" >$nvmet/ports/1/addr_traddr
	echo 4420 >$nvmet/ports/1/addr_trsvcid
	nvme_listen
}

nvme_listen() { ln -s $nvmet/subsystems/$nqn $nvmet/ports/1/subsystems/$nqn; }

nvme_listen_again() {
	rm -f $nvmet/ports/1/subsystems/$nqn
	nvme_listen
}

# Without a device there is no listener, which nvmet would end by locks of its own of whose order lockdep
# complains.
nvme_unserve() {
	[ -d $nvmet/ports/1 ] || return 0
	delete_device || return
	rm -f $nvmet/ports/1/subsystems/$nqn
	rmdir $nvmet/ports/1 $nvmet/subsystems/$nqn/namespaces/1 $nvmet/subsystems/$nqn || return
	echo 0 >$null_blk/power
	rmdir $null_blk || return
	add_device
}

nvme_connect() {
	local fabrics answer=''
	need_modules nvme-$nvme_transport || return
	exec {fabrics}<>/dev/nvme-fabrics
	printf %s "transport=$nvme_transport,traddr=$address,trsvcid=4420,nqn=$nqn,hostnqn=$nqn:host" \
		",hostid=5e3f6e1a-0000-4000-8000-000000000001,nr_io_queues=2,reconnect_delay=1,ctrl_loss_tmo=$limit" \
		>"$PAIR_TMP/options"
	cat "$PAIR_TMP/options" >&$fabrics && read -r answer <&$fabrics || :
	exec {fabrics}>&-
	[[ $answer =~ instance=([0-9]+) ]] || { echo "no connection: $answer"; return 1; }
	controller=/sys/class/nvme/nvme${BASH_REMATCH[1]} disk=/dev/nvme${BASH_REMATCH[1]}n1
	until_true test -b "$disk"
}

nvme_is() { [ "$(cat "$controller/state" 2>&1)" = "$1" ]; }

nvme_drop() {
	[ -e "$controller" ] || return 0
	echo 1 >"$controller/delete_controller"
	until_true gone "$controller"
}

# A reset may not begin before the last one ended.
nvme_reset() {
	local i
	for i in 1 2 3 4 5; do
		echo 1 >"$controller/reset_controller" || return
		until_true nvme_is live || return
	done
}

nvme_is_away() { gone "$controller" || nvme_is connecting || gone "$controller"; }

# A controller goes with its own device, and waits for the server's. The listener goes with its device.
nvme_without() {
	"$1" "$2" || return
	until_true nvme_is_away || return
	restore_device "$1" || return
	[ "$1" != $server ] || at_server nvme_listen_again
}

nvme_is_back() {
	if gone "$controller"; then
		nvme_connect
	else
		nvme_is live && test -b "$disk"
	fi
}

nvme_again() { until_true nvme_is_back && verified "$disk"; }

nvme_end() {
	nvme_drop && at_server nvme_unserve
}

test_nvme() {
	need "nvme: there is a server" at_server nvme_serve || return 0
	need "nvme: a connection" nvme_connect || return 0
	need "nvme: data is what was written" verified "$disk" || return 0
	need "nvme: resets under load" under_load "$disk" nvme_reset || return 0
	need "nvme: data after resets" verified "$disk" || return 0
	check "nvme: the port goes down and up under load" under_load "$disk" flap_port
	check "nvme: data after that" nvme_again
	goes_and_comes nvme disk
	check "nvme: the end" nvme_end
}
