#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Devices come and go with `rdma link` and with the interfaces they sit on, and
# follow what happens to those. Needs root, iproute2 and a loaded module.

dev=vrnict0
netdev=vrlink0
number=0
failed=0

# check NAME COMMAND...: one TAP line.
check() {
	name=$1; shift
	number=$((number + 1))
	if said=$("$@" 2>&1); then
		echo "ok $number $name"
	else
		echo "not ok $number $name"
		echo "$said" | sed 's/^/# /'
		failed=1
	fi
}

not() { ! "$@"; }

# eventually COMMAND...: within ten seconds; the core does some things later.
eventually() {
	tries=100
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || { "$@"; return 1; }
		sleep 0.1
	done
}

there() { rdma link show "$dev/1" | grep -q "$dev/1"; }
gone() { not rdma link show "$dev/1"; }
state_is() { rdma link show "$dev/1" | grep -q "state $1 "; }
sits_on() { rdma link show "$dev/1" | grep -q "netdev $1"; }
has_gid() { grep -qs "$1" "/sys/class/infiniband/$dev/ports/1/gids/"*; }
file_says() { [ "$(cat "/sys/class/infiniband/$dev/$1")" = "$2" ]; }
mtu_is() { ibv_devinfo -d "$dev" | grep -q "active_mtu:[[:space:]]*$1 "; }

[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP needs root"; exit 4; }

echo "TAP version 13"
ip link add "$netdev" type dummy && ip link set "$netdev" mtu 9000 up ||
	{ echo "Bail out! no dummy interface"; exit 1; }

check add rdma link add "$dev" type vrnic netdev "$netdev"
check is_there there
check is_active state_is ACTIVE
check has_its_type file_says hca_type vrnic
check has_its_parent file_says parent "$netdev"
check one_device_an_interface not rdma link add vrnict1 type vrnic netdev "$netdev"
check no_such_interface not rdma link add vrnict1 type vrnic netdev vrnone

# Two at a time for the same interface: one of them is there.
race() {
	ip link add vrlink2 type dummy || return 1
	ip link set vrlink2 up
	for _ in 1 2 3 4 5; do
		rdma link add vrnict2 type vrnic netdev vrlink2 2>/dev/null &
		rdma link add vrnict3 type vrnic netdev vrlink2 2>/dev/null
		wait
		[ "$(rdma link show | grep -c "netdev vrlink2")" = 1 ] || return 1
		rdma link del vrnict2 2>/dev/null || rdma link del vrnict3 || return 1
	done
	ip link del vrlink2
}
check two_at_once_make_one race

# The interface goes while a device comes: neither is left. (One would keep the other.)
passing() {
	for _ in 1 2 3 4 5 6 7 8; do
		ip link add vrlink2 type dummy || return 1
		rdma link add vrnict2 type vrnic netdev vrlink2 2>/dev/null &
		timeout 60 ip link del vrlink2 || return 1
		wait
		eventually not rdma link show vrnict2/1 || return 1
	done
}
check interface_goes_while_a_device_comes passing

# An interface goes to another namespace meanwhile: no device is left that has parts in both.
moving() {
	ip netns add vrmove || return 1
	for _ in $(seq 16); do
		ip link add vrlink2 type dummy || return 1
		timeout 60 ip link set vrlink2 netns vrmove &
		rdma link add vrnict2 type vrnic netdev vrlink2 2>/dev/null
		wait
		eventually not rdma link show vrnict2/1 || return 1
		ip -n vrmove link del vrlink2 || return 1
	done
	ip netns del vrmove
}
check interface_moves_while_a_device_comes moving

check address_comes ip addr add 192.168.99.1/24 dev "$netdev"
check address_is_a_gid eventually has_gid 0000:0000:0000:0000:0000:ffff:c0a8:6301
check address_goes ip addr del 192.168.99.1/24 dev "$netdev"
check gid_is_gone eventually not has_gid 0000:0000:0000:0000:0000:ffff:c0a8:6301

# Of lo, the core does not hear: the module tells it. It cannot tell that one went: limits.rst
lo=$(rdma link show | sed -n 's|^link \([^/]*\)/1 .* netdev lo .*|\1|p')
if [ -n "$lo" ]; then
	lo_has_gid() { grep -qs "$1" "/sys/class/infiniband/$lo/ports/1/gids/"*; }
	check address_of_lo_comes ip addr add 127.0.98.1/32 dev lo
	check address_of_lo_is_a_gid eventually lo_has_gid 0000:0000:0000:0000:0000:ffff:7f00:6201
	check address_of_lo_goes ip addr del 127.0.98.1/32 dev lo
fi

check large_mtu mtu_is 4096
ip link set "$netdev" mtu 1500
check mtu_is_followed mtu_is 1024

ip link set "$netdev" down
check down_is_followed eventually state_is DOWN
ip link set "$netdev" name vrlink1
check rename_is_followed sits_on vrlink1
check parent_is_renamed file_says parent vrlink1
ip link set vrlink1 name "$netdev"
ip link set "$netdev" up
check up_is_followed eventually state_is ACTIVE

check delete rdma link del "$dev"
check is_gone gone
check add_again rdma link add "$dev" type vrnic netdev "$netdev"
check interface_goes ip link del "$netdev"
check device_goes_with_it eventually gone

# a process that has a device open keeps the module; nothing happens to it
ibv_rc_pingpong -d "${VRNIC_DEV:-vrnic0}" -g 1 >/dev/null 2>&1 &
holder=$!
in_use() { find "/proc/$holder/fd" -lname '*vrnic-doorbell*' | grep -q .; }
check a_process_opens_the_device eventually in_use
# without it, the module would go, and with it the devices of all tests that follow
if in_use; then
	check unload_in_use_is_refused not rmmod vrnic
	check module_is_still_there test -d /sys/module/vrnic
fi
kill $holder
echo "1..$number"
exit $failed
