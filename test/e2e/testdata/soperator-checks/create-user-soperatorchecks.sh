#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for the script of ActiveCheck create-user-soperatorchecks of Soperator's chart: makes the account of the checks in the jail, where nothing is mounted.

chroot /mnt/jail /bin/bash <<'END'
if ! id soperatorchecks; then
	echo | soperator-createuser soperatorchecks --home /opt/soperator-home/soperatorchecks --gecos ''
fi
key=/opt/soperator-home/soperatorchecks/.ssh/soperatorchecks_id_ecdsa
if [[ ! -e $key ]]; then
	ssh-keygen -t ecdsa -f "$key" -N '' -C soperatorchecks
	cat "$key.pub" >>/opt/soperator-home/soperatorchecks/.ssh/authorized_keys
	chown soperatorchecks: "$key" "$key.pub"
fi
mkdir -p /etc/soperatorchecks
chown soperatorchecks: /etc/soperatorchecks
END
status=$?
sleep 20
exit "$status"
