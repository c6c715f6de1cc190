# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# Compiles the plugins, and the program that they watch. Sourced after tools/vm/lib.sh, never run.

# plugin_version: of QEMU's interface for plugins. Each QEMU knows the numbers of some before it.
plugin_version() {
	local major
	major=$(qemu-system-x86_64 --version | sed -n 's/.*version \([0-9]*\).*/\1/p')
	if [ "$major" -ge 9 ]; then echo 2; else echo 1; fi
}

# build_plugin NAME FOLDER: FOLDER/NAME.so and FOLDER/load. The plugin is linked to no library: QEMU
# has brought this machine's.
build_plugin() {
	need_root
	need_host
	need_tool qemu-system-x86_64:qemu-system-x86
	mkdir -p "$2"
	"$VM_DIR/enter" "$("$VM_DIR/rootfs")" "$TOP:/work:ro" "$2:/out" -- sh -ec "
		cd /work/tools/bench/plugins
		cc -O2 -Wall -Wextra -shared -fPIC -nostdlib -DPLUGIN_VERSION=$(plugin_version) \
			-o /out/$1.so $1.c
		cc -O2 -Wall -Wextra -o /out/load load.c -libverbs"
}
