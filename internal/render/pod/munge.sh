# Runs munged with the key of the mounted Secret, of which it needs a copy: munged takes no key that is somebody else's.
# Options of munged may follow.
set -eu
(umask 077 && rm -f /etc/munge/munge.key && cat /mnt/munge-key/munge.key >/etc/munge/munge.key)
# A socket left by a killed munged would stop the next one.
rm -f /run/munge/munge.socket.2
exec munged --foreground --num-threads="${MUNGE_NUM_THREADS:-10}" --key-file=/etc/munge/munge.key \
	--seed-file=/etc/munge/munged.seed --pid-file=/run/munge/munged.pid --socket=/run/munge/munge.socket.2 \
	--log-file=/dev/stderr "$@"
