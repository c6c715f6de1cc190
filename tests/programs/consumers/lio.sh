# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2154,SC2034,SC2086
# The kernel's SCSI target, which iSER and SRP make a disk in memory known by. Sourced by iser.sh and srp.sh.

lio=/sys/kernel/config/target
lio_disk=$lio/core/rd_mcp_0/vrnic
disk=

# lio_make_disk: one of 32 MiB.
lio_make_disk() {
	need_modules target_core_mod
	mkdir -p $lio_disk || return
	echo rd_pages=8192 >$lio_disk/control
	echo 1 >$lio_disk/enable
}

lio_drop_disk() {
	[ ! -d $lio_disk ] || rmdir $lio_disk $lio/core/rd_mcp_0
}

# lio_share GROUP: the portal group has the disk as its LUN 0.
lio_share() {
	mkdir -p "$1/lun/lun_0" && ln -s $lio_disk "$1/lun/lun_0/disk"
}

lio_unshare() {
	rm -f "$1/lun/lun_0/disk"
	rmdir "$1/lun/lun_0"
}

# The initiator's disk: the only one of SCSI that there is.
scsi_disk_is_there() {
	local found=(/sys/block/sd*)
	[ -e "${found[0]}" ] || return 1
	disk=/dev/${found[0]##*/}
	[ -b "$disk" ] && [ "$(cat "${found[0]}/device/state")" = running ]
}

scsi_disk_is_gone() { ! compgen -G '/sys/block/sd*' >/dev/null; }
