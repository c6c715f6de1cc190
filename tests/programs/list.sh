# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# A list of programs, to be shown or run, for the program tests. Sourced by bash after
# lib.sh. The script that sources it has the options --list and --quick, calls program and alone for
# each, then list_or_run. `pattern` picks names, and `limit` is how many seconds each may take.

# Parallel arrays: one program, or pair of them, each.
names=() wheres=() proofs=() servers=() clients=()

# program NAME WHERE PROOF SERVER CLIENT: see pair in lib.sh. PROOF is what the
# client prints only after it did its work: a status of 0 alone is not enough.
program() {
	[[ $1 =~ ${pattern:?} ]] || return 0
	names+=("$1") wheres+=("$2") proofs+=("$3") servers+=("$4") clients+=("$5")
}

# alone NAME PROOF COMMAND: a program that needs no server.
alone() { program "$1" alone "$2" "" "$3"; }

# run_alone LIMIT COMMAND: as pair does, without a server.
run_alone() {
	local status=0
	PAIR_WHY=
	: >"$PAIR_TMP/server"
	# shellcheck disable=SC2086 # a command line is split on purpose
	timeout -k 2 "$1" $2 >"$PAIR_TMP/client" 2>&1 </dev/null || status=$?
	[ $status = 0 ] || PAIR_WHY=$(why $status "$1")
	[ $status = 0 ]
}

# run_one INDEX
run_one() {
	case ${wheres[$1]} in
	alone) run_alone "${limit:?}" "${clients[$1]}" ;;
	*) patient_pair "$limit" "${wheres[$1]}" "${servers[$1]}" "${clients[$1]}" ;;
	esac
}

proven() {
	PAIR_WHY="the client's output has no line like '$1'"
	grep -Eq -e "$1" "$PAIR_TMP/client" || [ -z "$1" ]
}

run_all() {
	local i failed=0
	echo "KTAP version 1"
	echo "1..${#names[@]}"
	for i in "${!names[@]}"; do
		if run_one "$i" && proven "${proofs[i]}"; then
			echo "ok $((i + 1)) ${names[i]}"
		else
			echo "not ok $((i + 1)) ${names[i]}"
			echo "# $PAIR_WHY"
			diagnose "$PAIR_TMP/server" "$PAIR_TMP/client"
			failed=$((failed + 1))
		fi
	done
	echo "# $((${#names[@]} - failed)) passed, $failed failed, $SECONDS s"
	[ $failed = 0 ]
}

list_or_run() {
	[ ${#names[@]} -gt 0 ] || die "no program has a name like '$pattern': see --list"
	if [ -n "$list" ]; then
		printf '%s\n' "${names[@]}"
	else
		run_all
	fi
}
