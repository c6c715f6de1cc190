# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# With one CPU whose clock counts instructions, a nanosecond for each, the time that a message takes is
# the instructions that both ends and the kernel spend on it. Sourced by guest and wire-guest, which
# have `record` and `say`.

# patient_clock: this clock leaps ahead whenever the guest waits for the host.
patient_clock() {
	limit=1000000
	# shellcheck disable=SC2034 # of tests/programs/lib.sh
	LISTEN_LIMIT=1000000
	echo 0 >/proc/sys/kernel/hung_task_timeout_secs
}

# from_rate RATE: the instructions of a message of which there are RATE millions in a second.
from_rate() { awk -v x="$1" 'BEGIN { print 1000 / x }'; }

from_us() { awk -v x="$1" 'BEGIN { print 1000 * x }'; }

# count_native PROGRAM OPTION...: what tools/bench/native measures; recorded as native_put and the
# like in a stream, native_put_alone one at a time. at: behind the name.
count_native() {
	local what size quantity value
	if ! timeout "$limit" "$@" --seconds 0.05 >"$PAIR_TMP/native"; then
		say "the native operations could not be counted"
		failed="${failed:-} vrnic:native "
		return
	fi
	while IFS=$'\t' read -r what size quantity value; do
		case $quantity in
		us) record vrnic "native_${what}_alone${at:-}" "$size" instructions "$(from_us "$value")" ;;
		Mops) record vrnic "native_$what${at:-}" "$size" instructions "$(from_rate "$value")" ;;
		esac
	done <"$PAIR_TMP/native"
}
