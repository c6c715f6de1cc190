# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# The options of all scripts, on this machine and in the guest. The first paragraph of a script's
# head says how it is used, and is printed if it is used wrongly. Sourced, never run.

# head_of_script: the comment behind its licence line.
head_of_script() { sed -n '4,${ /^#/!q; s/^# \{0,1\}//p }' "$0"; }

# usage [WHAT IS WRONG]: ends the script.
usage() {
	[ $# = 0 ] || echo "${0##*/}: $*" >&2
	head_of_script | sed '/^$/,$d; 1s/^/usage: /; 2,$s/^/       /' >&2
	exit 1
}

# parse_options NAMES ARGUMENT...: --name sets the variable `name` to 1, or, if NAMES has
# `name=`, to the argument that follows; --virtual-time sets virtual_time. The options end with
# the first argument that is none, or with a --. They were $parsed arguments, to shift by.
parse_options() {
	local names=" $1 " name; shift
	parsed=$#
	while [ $# -gt 0 ]; do
		name=${1#-} name=${name#-}
		case $1 in
		--) shift; break ;;
		--help) head_of_script; exit 0 ;;
		-*[!a-z-]*) usage "there is no option $1" ;;
		-?*) ;;
		*) break ;;
		esac
		case $names in
		*" $name= "*)
			[ $# -gt 1 ] || usage "$1 needs a value"
			printf -v "${name//-/_}" %s "$2"
			shift 2 ;;
		*" $name "*)
			printf -v "${name//-/_}" 1
			shift ;;
		*) usage "there is no option $1" ;;
		esac
	done
	parsed=$((parsed - $#))
}
