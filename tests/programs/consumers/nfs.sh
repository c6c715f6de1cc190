# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2154,SC2034,SC2086
# NFS over RDMA: nfsd serves a file system in memory, which is mounted here.

exported=/srv/vrnic mounted=/run/vrnic-mnt nfs_file=/run/vrnic-mnt/data
nfs_options=proto=rdma,port=20049

nfs_serve() {
	need_modules rpcrdma nfsd
	mkdir -p $exported
	mount -t tmpfs -o size=64m tmpfs $exported || return
	[ -e /proc/fs/nfsd/threads ] || mount -t nfsd nfsd /proc/fs/nfsd || return
	echo "$exported *(rw,fsid=0,no_root_squash,insecure,no_subtree_check)" >/etc/exports
	mkdir -p /var/lib/nfs/v4recovery /run/rpc_pipefs
	exportfs -ra || return
	rpc.mountd -N 3 || return
	rpc.nfsd -G 10 -L 10 -N 3 --no-udp --rdma=20049 4 && grep rdma /proc/fs/nfsd/portlist
}

nfs_unserve() {
	mountpoint -q $exported || return 0
	rpc.nfsd 0
	pkill -x rpc.mountd
	exportfs -ua
	umount $exported
}

nfs_mount() {
	need_modules rpcrdma nfs
	mkdir -p $mounted
	timeout -k 5 $limit mount -t nfs -o vers=4.2,$nfs_options,hard "$address:/" $mounted
}

# What was under way waits for the device.
nfs_without() {
	without "$@" || return
	timeout -k 5 $limit dd if=/dev/zero of=$mounted/marker bs=64k count=16 oflag=direct
}

nfs_again() { verified "$nfs_file"; }

nfs_end() {
	! mountpoint -q $mounted || timeout -k 5 $limit umount -f $mounted || return
	at_server nfs_unserve
}

test_nfs() {
	need "nfs: there is a server" at_server nfs_serve || return 0
	need "nfs: a mount" nfs_mount || return 0
	need "nfs: data is what was written" verified $mounted/data || return 0
	check "nfs: the port goes down and up under load" under_load $mounted/data flap_port
	check "nfs: data after that" verified $mounted/data
	goes_and_comes nfs nfs_file
	check "nfs: the end" nfs_end
}
