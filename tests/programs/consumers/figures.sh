# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2154,SC2034,SC2086
# For tests/programs/kernel --figures: how fast NVMe and NFS are by vrnic, by TCP and by rdma_rxe, one after another
# on one interface of this machine.

declare -A figures=()

# figure WHAT BY VALUE: fails if fio gave no number, or 0.
figure() {
	echo "$1 by $2: '$3'"
	[[ $3 =~ ^[1-9][0-9]*$ ]] || return
	figures[$1:$2]=$3
}

# fio_of FILE FIELD OPTION...: one number of what fio says for machines.
fio_of() {
	local file=$1 field=$2; shift 2
	timeout -k 5 $limit fio --name=figure --filename="$file" --size=24m --direct=1 --ioengine=libaio --minimal \
		--time_based --ramp_time=1 --runtime=5 "$@" | cut -d\; -f"$field"
}

# measure_file WHAT BY FILE: the units are in the names.
measure_file() {
	fio --name=fill --filename="$3" --size=24m --direct=1 --rw=write --bs=1m >/dev/null || return
	figure "$1 read 4 KiB, one at a time (1/s)" "$2" "$(fio_of "$3" 8 --rw=randread --bs=4k --iodepth=1)" &&
	figure "$1 read 4 KiB, 16 at a time (1/s)" "$2" "$(fio_of "$3" 8 --rw=randread --bs=4k --iodepth=16)" &&
	figure "$1 read 1 MiB (KiB/s)" "$2" "$(fio_of "$3" 7 --rw=read --bs=1m --iodepth=4)" &&
	figure "$1 write 1 MiB (KiB/s)" "$2" "$(fio_of "$3" 48 --rw=write --bs=1m --iodepth=4)"
}

measure_nvme() {
	nvme_serve && nvme_connect && measure_file NVMe "$1" "$disk" || return
	nvme_drop && nvme_unserve
}

measure_nfs() {
	nfs_serve && nfs_mount && measure_file NFS "$1" $mounted/data || return
	nfs_end
}

by_vrnic() { measure_nvme vrnic && measure_nfs vrnic; }

# They share a UDP port: one of them at a time.
by_rxe() {
	rmmod vrnic && modprobe rdma_rxe && rdma link add rxe1 type rxe netdev $netdev || return
	device=rxe1 kind=rxe
	measure_nvme rxe && measure_nfs rxe
}

by_tcp() {
	nvme_transport=tcp nfs_options=proto=tcp
	measure_nvme tcp && measure_nfs tcp
}

# print_table: ratios, too.
print_table() {
	local what
	printf '%-40s %10s %10s %10s %8s %8s\n' '' vrnic rxe TCP of-rxe of-TCP
	for what in "${!figures[@]}"; do echo "${what%:*}"; done | sort -u | while read -r what; do
		awk -v what="$what" -v v="${figures[$what:vrnic]:-0}" -v r="${figures[$what:rxe]:-0}" \
			-v t="${figures[$what:tcp]:-0}" 'BEGIN {
			printf "%-40s %10d %10d %10d %8s %8s\n", what, v, r, t,
				r ? sprintf("%.2f", v / r) : "-", t ? sprintf("%.2f", v / t) : "-" }'
	done
}

print_figures() {
	check "vrnic" by_vrnic
	check "TCP" by_tcp
	nvme_transport=rdma nfs_options=proto=rdma,port=20049
	check "rdma_rxe" by_rxe
}
