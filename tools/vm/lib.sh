# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# Shared by the programs of tools/vm: where the caches are, what they are keyed
# by, and how to say what went wrong. Sourced, never run.

VM_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
own_top=$(cd "$VM_DIR/../.." && pwd)
# VRNIC_TREE: an older tree of this repository, to be built by these tools
TOP=${VRNIC_TREE:-$own_top}
CACHE=${VRNIC_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vrnic}
. "$own_top/tools/options.sh"

# die MESSAGE: one line that says what is missing and what to do.
die() { echo "${0##*/}: $*" >&2; exit 1; }

# say MESSAGE: progress of a long step, on stderr, because stdout is the
# command's or the path that was asked for.
say() { echo "== $*" >&2; }

# quietly NAME COMMAND...: run with the output in a log; show its end if it fails.
quietly() {
	local log="$CACHE/log/$1"; shift
	mkdir -p "$CACHE/log"
	"$@" >"$log" 2>&1 </dev/null && return
	tail -n 25 "$log" >&2
	die "'$1' failed; the whole log is $log"
}

# mmdebstrap ARGUMENT...: with mounts of its own, which end with it. Those of one that was killed would
# be in the way of the next.
mmdebstrap() { unshare --mount --propagation private -- mmdebstrap "$@"; }

need_root() {
	[ "$(id -u)" = 0 ] ||
		die "needs root to make and enter the guest root file system: run it with sudo"
}

# need_disk MEGABYTES: refuse early rather than leave half a cache behind.
need_disk() {
	local free
	mkdir -p "$CACHE" || die "cannot write to $CACHE: set VRNIC_CACHE to a folder that can be written"
	free=$(df -Pm "$CACHE" | awk 'NR == 2 { print $4 }')
	[ "$free" -ge "$1" ] ||
		die "$CACHE has $free MB free and $1 are needed: free some, or set VRNIC_CACHE to a larger disk"
}

# need_tool COMMAND:PACKAGE...: install the packages whose command is not there.
need_tool() {
	local pair missing=()
	for pair in "$@"; do
		# a function may have the program's name
		type -P "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
	done
	[ ${#missing[@]} = 0 ] && return
	need_root
	command -v apt-get >/dev/null ||
		die "needs ${missing[*]}, and there is no apt-get here: install them by hand"
	need_disk 100	# and a folder for what apt has to say
	say "installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq >/dev/null 2>&1 || true	# an old list may do
	# another build, or the machine's own updates, may have dpkg locked
	apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=600 "${missing[@]}" \
		>/dev/null 2>"$CACHE/apt.err" ||
		die "cannot install ${missing[*]}: is there a network? (apt said: $(tail -n 1 "$CACHE/apt.err"))"
}

# key FILE...: a short name for what something is made from.
key() { cat "$@" | sha256sum | cut -c1-12; }

# locked NAME COMMAND...: two builds of the same cache entry take turns.
locked() {
	local name=$1; shift
	mkdir -p "$CACHE"
	(
		flock -n 9 || { say "waiting for another build of $name"; flock 9; }
		"$@"
	) 9>"$CACHE/.lock-$name"
}

# The distributions that machines and packages are made for, the oldest first.
SUITES="bookworm trixie backports forky"

# known_suite NAME: end, if it is none of them.
known_suite() {
	case " $SUITES " in
	*" $1 "*) ;;
	*) die "unknown suite '$1': there are $SUITES" ;;
	esac
}

# release_of SUITE: backports is trixie with a later kernel.
release_of() {
	case $1 in
	backports) echo trixie ;;
	*) echo "$1" ;;
	esac
}

# rdma_core_of SUITE: what its provider is compiled against. The interface between libibverbs
# and its providers is the same (34) in all versions that have not got a line of their own.
rdma_core_of() {
	case $1 in
	forky) echo 65.0 ;;
	*) echo 56.1 ;;
	esac
}

root_path() { echo "$CACHE/root-$1-$(key "$VM_DIR"/{packages,rootfs,backports})"; }

# in_root ROOT COMMAND...: chroot with /proc and the name service of this machine.
in_root() {
	local root=$1; shift
	unshare --mount --propagation private -- sh -c '
		root=$1; shift
		mount -t proc proc "$root/proc"
		mount --bind /dev "$root/dev"
		exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
			HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"' sh "$root" "$@"
}

# kernel_version ROOT: of the distribution's kernel in it.
kernel_version() {
	local images=("$1"/boot/vmlinuz-*)
	[ -e "${images[0]}" ] || die "no kernel in $1: remove that folder, and run again"
	echo "${images[0]##*/vmlinuz-}"
}

# checkout_key: names what the cache holds for this checkout alone.
checkout_key() { echo "$TOP" | sha256sum | cut -c1-12; }

# need_host: what making roots and kernels takes, on a machine that has nothing.
need_host() { need_tool unshare:util-linux xz:xz-utils mmdebstrap:mmdebstrap; }
