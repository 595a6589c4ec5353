# become USER [COMMAND...]: runs a command, or without one the user's login shell, in a login pod as a user: in the jail where there is
# one, and in the user's home. What PAM does for a session of sshd is not done: no home is made, no limits are set.
#
# Environment:
#   COXSWAIN_JAIL   where the jail is mounted; empty for none
set -euo pipefail
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

user=$1
shift
if ! account=$(getent passwd -- "$user"); then
	echo "become: the login pod knows no user $user" >&2
	exit 1
fi
IFS=: read -r name _ uid gid _ home shell <<<"$account"
groups=$(id -G -- "$name")
(($#)) || set -- "${shell:-/bin/sh}" -l
# The user's, and nothing of the container's.
environment=(env --ignore-environment HOME="$home" USER="$name" LOGNAME="$name" SHELL="${shell:-/bin/sh}" TERM="${TERM:-dumb}"
	PATH=/run/coxswain/slurm/bin:/usr/local/bin:/usr/bin:/bin)
command=(sh -c 'cd "$HOME" 2>/dev/null || cd /; exec "$@"' sh "$@")
if [[ -n ${COXSWAIN_JAIL-} ]]; then
	# The container may mount, and nobody who logs in may, not even by a program that runs as root. The numbers have signs, so that
	# chroot looks no names up in the jail.
	exec setpriv --bounding-set=-sys_admin chroot --userspec="+$uid:+$gid" --groups="+${groups// /,+}" "$COXSWAIN_JAIL" "${environment[@]}" "${command[@]}"
fi
exec setpriv --reuid="$uid" --regid="$gid" --groups="${groups// /,}" "${environment[@]}" "${command[@]}"
