# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# Many hosts: network namespaces with a device each, on one bridge. Sourced by bash in the guest.
# `nodes` is how many; node N has the address 192.168.81.N, the interface eth0, whose other end is
# the bridge's portN, and the device nodeN.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

: "${nodes:=}"

bridge=cluster

on_node() { local n=$1; shift; ip netns exec "node$n" "$@"; }

node_up() {
	ip netns add "node$1"
	ip link add "port$1" master $bridge mtu 1500 type veth peer name eth0 netns "node$1"
	ip link set "port$1" up
	on_node "$1" sh -eu -c "
		ip link set lo up
		ip link set eth0 up
		ip addr add 192.168.81.$1/24 dev eth0
		rdma link add node$1 type vrnic netdev eth0"
}

# gid_of N: index of the GID that is the node's address.
gid_of() {
	on_node "$1" "$INTEROP/gid" "node$1" \
		"$(printf '0000:0000:0000:0000:0000:ffff:c0a8:51%02x' "$1")"
}

nodes_up() {
	local n
	ip link add $bridge type bridge
	ip link set $bridge up
	for ((n = 1; n <= nodes; n++)); do
		node_up $n
	done
	for ((n = 1; n <= nodes; n++)); do
		until gid_of $n >/dev/null; do nap 0.05; done
	done
}

# nodes_settle: native contexts use GID 0, whose address is link-local.
nodes_settle() {
	local n
	for ((n = 1; n <= nodes; n++)); do
		while on_node $n ip -6 addr show tentative | grep -q .; do nap 0.2; done
	done
}

nodes_down() {
	local n
	for ((n = 1; n <= nodes; n++)); do
		# at once; with its namespace it would go some time later
		ip link del port$n 2>/dev/null || :
		ip netns del node$n 2>/dev/null || :
	done
	ip link del $bridge 2>/dev/null || :
	rm -rf "$PAIR_TMP"
}
