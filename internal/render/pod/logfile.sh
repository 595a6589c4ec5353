# Copies what a daemon writes to its log file to standard output. The file is a FIFO, so that nothing fills a disk; it is
# held open for writing here too, so that a restarted daemon finds a reader and the reader never sees an end of file. The
# daemon keeps it open when this container is restarted, so the one that is there is used again.
set -eu
trap 'exit 0' TERM INT
# Users' jobs run beside slurmd: they may not read the log, write into it, or put a file of theirs in its place. Where this
# does not run as root, the daemon may have another user, but the group of the volume.
mode=0660
[ "$(id -u)" != 0 ] || mode=0600
chmod go-w "${SOCKET%/*}" 2>/dev/null || true
[ -p "$SOCKET" ] || { rm -f "$SOCKET" && mkfifo -m "$mode" "$SOCKET"; }
exec 3<>"$SOCKET"
cat <&3 &
wait $!
