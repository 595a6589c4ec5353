# Tells slurmctld to read its configuration again when a file in /etc/slurm changed. The digest of what was loaded last is
# kept beside slurmctld's socket, so that a restart of this container neither misses a change nor repeats one.
set -eu
shopt -s dotglob
export LC_ALL=C
trap 'exit 0' TERM INT
etc=${ETC_SLURM:-/etc/slurm}
run=${RUN_SLURMCTLD:-/run/slurmctld}
last_words=${TERMINATION_LOG:-/dev/termination-log}

# The least time between two reconfigurations, in seconds: a slurmd that is told of the second while it takes up the first may end.
settle=3

# Whether a file in $etc has no part in the configuration.
apart() { [ ! -f "$1" ] || [[ ${1##*/} =~ ^(slurm\.key|slurm\.jwks|jwt\.key|jwks\.json)$ ]]; }

# Sets content to that of all files. It starts no process, as long as nothing changes.
contents() {
	local file text
	content=
	for file in "$etc"/*; do
		apart "$file" || ! mapfile -d '' -t text <"$file" || content+="$file ${text[*]} "
	done
}

# What the files say: the operator computes the digest in the same way, and stamps slurm.conf with it.
digest() {
	cd "$etc"
	for file in *; do
		if apart "$file"; then continue; fi
		if [ "$file" = slurm.conf ]; then
			sed 's/,coxswain_config=[0-9a-f]*$//' "$file" | sha256sum | sed "s/-\$/$file/"
		else
			sha256sum "$file"
		fi
	done | sha256sum | cut -d ' ' -f 1
}

stamp() { sed -n 's/.*,coxswain_config=\([0-9a-f]*\)$/\1/p' "$etc/slurm.conf"; }

# Waits for a change, at most so many seconds. The kubelet swaps a symbolic link, which inotify sees at once where it is
# available.
change() {
	if command -v inotifywait >/dev/null; then
		inotifywait -qq -t "$1" -e create,moved_to,delete "$etc" || true
	else
		sleep "$1"
	fi
}

# In the background, so that a signal is heard meanwhile.
pause() {
	change "$1" &
	wait $! || true
}

load() {
	if words=$(scontrol reconfigure 2>&1); then
		echo "$1" >"$run/config.digest"
		rm -f "$run/config.refused"
		next=$((SECONDS + settle))
		echo "$(date -Is) slurmctld has read configuration $1"
		return
	fi
	case $words in
	*fatal:*)
		# scontrol reads slurm.conf as slurmctld does, and found a mistake in it. What this container writes as it ends is
		# all that it can tell the operator; the kubelet starts it again. It says so once.
		if [ "$1" != "$(cat "$run/config.refused" 2>/dev/null)" ]; then
			echo "$1" >"$run/config.refused"
			printf '%s: %s\n' "$1" "$words" | tee "$last_words" >&2
			exit 1
		fi
		pause 5
		;;
	*)
		echo "$(date -Is) scontrol reconfigure did not succeed, trying again in 2 s: $words" >&2
		pause 2
		;;
	esac
}

incomplete=0 next=0 known=
[ -s "$run/config.digest" ] || digest >"$run/config.digest"
while :; do
	contents
	if [ "$content" = "$known" ]; then
		pause 5
		continue
	fi
	now=$(digest)
	if [ "$now" = "$(cat "$run/config.digest")" ]; then
		incomplete=0 known=$content
	elif [ $SECONDS -lt $next ]; then
		pause $((next - SECONDS))
	elif [ "$now" != "$(stamp)" ] && [ $incomplete -lt 10 ]; then
		# The files come from several ConfigMaps, and not all of them are here.
		incomplete=$((incomplete + 1))
		pause 1
	else
		incomplete=0
		echo "$(date -Is) configuration changed to $now, running scontrol reconfigure"
		load "$now"
	fi
done
