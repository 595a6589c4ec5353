# Tells slurmctld to read its configuration again when a file below /etc/slurm changed. The digest of what was loaded
# last is kept beside slurmctld's socket, so that a restart of this container neither misses a change nor repeats one.
set -eu
trap 'exit 0' TERM INT
seen=/run/slurmctld/config.digest

digest() {
	find -L /etc/slurm -type f -not -path '*/..*' -exec sha256sum {} + | sort | sha256sum | cut -d ' ' -f 1
}

# Waits for a change, at most 5 s. The kubelet swaps a symbolic link, which inotify sees at once where it is available.
change() {
	if command -v inotifywait >/dev/null; then
		inotifywait -qq -t 5 -e create,moved_to,delete /etc/slurm || true
	else
		sleep 5
	fi
}

[ -s "$seen" ] || digest >"$seen"
while :; do
	now=$(digest)
	if [ "$now" != "$(cat "$seen")" ]; then
		echo "$(date -Is) configuration changed to $now, running scontrol reconfigure"
		if scontrol reconfigure; then
			echo "$now" >"$seen"
			echo "$(date -Is) slurmctld has read configuration $now"
		else
			echo "$(date -Is) scontrol reconfigure did not succeed, trying again in 2 s" >&2
			sleep 2 &
			wait $!
			continue
		fi
	fi
	change &
	wait $!
done
