# Copies what a daemon writes to its log file to standard output. The file is a FIFO, so that nothing fills a disk; it is
# held open for writing here too, so that a restarted daemon finds a reader and the reader never sees an end of file.
set -eu
trap 'exit 0' TERM INT
rm -f "$SOCKET"
mkfifo -m 0777 "$SOCKET"
exec 3<>"$SOCKET"
cat <&3 &
wait $!
