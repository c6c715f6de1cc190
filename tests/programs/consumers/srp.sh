# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2154,SC2034,SC2086
# SRP: ib_srpt serves a disk in memory, ib_srp uses it, and finds it by rdma_cm. Both ends go with the device.

# shellcheck source=lio.sh
. "$PROGRAMS_DIR/consumers/lio.sh"

srp_port=5555

# srp_group: its folder. It has the port's name, which is the first GID: those who come are known by theirs then.
srp_group() {
	local name
	name=0x$(tr -d : <"/sys/class/infiniband/$device/ports/1/gids/0") || return
	group=$lio/srpt/$name/$name
}

# How this initiator is known: by the second half of its first GID.
srp_initiator() { echo "0x0000000000000000$(cut -d: -f5- "/sys/class/infiniband/$device/ports/1/gids/0" | tr -d :)"; }

# srp_serve INITIATOR: the only one that may come.
srp_serve() {
	local group
	need_modules ib_srpt
	srp_group && lio_make_disk || return
	mkdir -p "$group" && lio_share "$group" || return
	mkdir -p "$group/acls/$1/lun_0" && ln -s "$group/lun/lun_0" "$group/acls/$1/lun_0/" || return
	echo $srp_port >$lio/srpt/discovery_auth/rdma_cm_port || return
	echo 1 >"$group/enable"
}

srp_unserve() {
	local group acl
	for group in "$lio"/srpt/0x*/0x*; do
		[ -d "$group" ] || continue
		echo 0 >"$group/enable"
		echo 0 >$lio/srpt/discovery_auth/rdma_cm_port
		for acl in "$group"/acls/*; do
			rm -f "$acl/lun_0/lun_0"
			rmdir "$acl/lun_0" "$acl"
		done
		lio_unshare "$group"
		rmdir "$group" "${group%/*}" || return
	done
	lio_drop_disk
}

srp_guid() { sed s/^0x// /sys/module/ib_srpt/parameters/srpt_service_guid; }

# As long as the old target is being removed, which its disk does not show any more, there is no other one.
srp_add() {
	{ echo "$2" >"$1"; } 2>"$PAIR_TMP/output" || { cat "$PAIR_TMP/output"; return 1; }
}

srp_connect() {
	local guid add=/sys/class/infiniband_srp/srp-$device-1/add_target
	need_modules ib_srp sd_mod
	guid=$(at_server srp_guid) || return
	until_true test -e "$add" || return
	until_true srp_add "$add" "id_ext=$guid,ioc_guid=$guid,dest=$address:$srp_port" || return
	until_true scsi_disk_is_there
}

srp_drop() {
	local port
	for port in /sys/class/srp_remote_ports/*; do
		[ ! -e "$port/delete" ] || echo 1 >"$port/delete"
	done
	until_true scsi_disk_is_gone
}

# Each end goes with its device. The initiator connects to another target only if it has dropped this one.
srp_without() {
	"$1" "$2" || return
	srp_drop || return
	at_server srp_unserve || return
	restore_device "$1"
}

srp_again() {
	at_server srp_serve "$(srp_initiator)" && srp_connect && verified "$disk"
}

srp_end() {
	srp_drop && at_server srp_unserve
}

test_srp() {
	need "srp: there is a server" at_server srp_serve "$(srp_initiator)" || return 0
	need "srp: a connection" srp_connect || return 0
	need "srp: data is what was written" verified "$disk" || return 0
	check "srp: the port goes down and up under load" under_load "$disk" flap_port
	check "srp: data after that" verified "$disk"
	goes_and_comes srp disk
	check "srp: the end" srp_end
}
