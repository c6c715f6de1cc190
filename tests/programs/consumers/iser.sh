# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2154,SC2034,SC2086
# iSER: ib_isert serves a disk in memory, ib_iser uses it. The session belongs to iscsid, which connects again.

# shellcheck source=lio.sh
. "$PROGRAMS_DIR/consumers/lio.sh"

iqn=iqn.2026-01.org.vrnic:test
iser_target=$lio/iscsi/$iqn
iser_group="$iser_target/tpgt_1"
iser_portal="$iser_group/np/"$address:3260

iser_listen() { echo 1 >"$iser_portal/iser"; }

iser_listen_again() {
	echo 0 >"$iser_portal/iser"
	iser_listen
}

iser_serve() {
	need_modules ib_isert
	lio_make_disk && mkdir -p "$iser_group" && lio_share "$iser_group" || return
	echo 0 >"$iser_group/attrib/authentication"
	echo 0 >"$iser_group/attrib/demo_mode_write_protect"
	echo 1 >"$iser_group/attrib/generate_node_acls"
	echo 1 >"$iser_group/attrib/cache_dynamic_acls"
	mkdir "$iser_portal" && iser_listen || return
	echo 1 >"$iser_group/enable"
}

iser_daemon() {
	mkdir -p /etc/iscsi /run/lock/iscsi
	echo InitiatorName=$iqn:host >/etc/iscsi/initiatorname.iscsi
	iscsid
}

iser_admin() { timeout -k 5 $limit iscsiadm -m node -T $iqn -p "$address:3260" "$@"; }

iser_connect() {
	need_modules ib_iser sd_mod
	iser_daemon || return
	iser_admin -I iser -o new || return
	iser_admin -o update -n 'node.session.timeo.replacement_timeout' -v $limit
	iser_admin -I iser --login || return
	until_true scsi_disk_is_there
}

# The listener goes with its device; the session waits for both.
iser_without() {
	without "$@" || return
	[ "$1" != $server ] || at_server iser_listen_again
}

iser_again() { until_true scsi_disk_is_there && verified "$disk"; }

iser_drop() {
	iser_admin --logout || return
	until_true scsi_disk_is_gone || return
	iser_admin -o delete
	pkill -x iscsid
}

iser_unserve() {
	[ -d "$iser_target" ] || return 0
	echo 0 >"$iser_group/enable"
	rmdir "$iser_portal" || return
	lio_unshare "$iser_group"
	rmdir "$iser_group" "$iser_target" || return
	lio_drop_disk
}

iser_end() {
	scsi_disk_is_gone || iser_drop || return
	at_server iser_unserve
}

test_iser() {
	need "iser: there is a server" at_server iser_serve || return 0
	need "iser: a session" iser_connect || return 0
	need "iser: data is what was written" verified "$disk" || return 0
	check "iser: the port goes down and up under load" under_load "$disk" flap_port
	check "iser: data after that" verified "$disk"
	goes_and_comes iser disk
	check "iser: the end" iser_end
}
