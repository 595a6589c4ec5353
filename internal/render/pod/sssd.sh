# Runs SSSD with the mounted sssd.conf, of which it needs a copy: SSSD refuses one that belongs to the group of the pod's volumes. It takes
# no sockets of that group either.
set -u

# trust: LDAP servers are trusted by the mounted authorities, where sssd.conf says nothing else; ldap.conf(5) takes the last value.
trust() {
	mkdir -p /etc/ldap
	for authority in /etc/ldap/ca/*; do
		[ ! -f "$authority" ] || { cat "$authority" && echo; }
	done >/etc/ldap/ca.pem
	[ ! -s /etc/ldap/ca.pem ] || echo 'TLS_CACERT /etc/ldap/ca.pem' >>/etc/ldap/ldap.conf
}

pipes=/var/lib/sss/pipes
# A socket left by a killed SSSD would let the daemon start before this one answers.
rm -f "$pipes/nss"
# shellcheck disable=SC2086 # the options are a list
install -m 0600 /mnt/sssd/sssd.conf /etc/sssd/sssd.conf && trust &&
	chgrp root "$pipes" && chmod 00755 "$pipes" && mkdir -p -m 0750 "$pipes/private" &&
	sssd --interactive --logger=stderr ${SSSD_OPTIONS-}
# The kubelet starts the daemon while this container runs. So SSSD that refuses its configuration does not keep the daemon from starting.
echo "sssd ended with status $?" >&2
sleep 60
exit 1
