// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

const accountingPath = "spec.slurmNodes.accounting"

// Where slurmdbd finds the certificates of an external database, and where it archives what it purges.
const (
	databaseCADir   = "/mnt/slurmdbd-ssl-ca-cert"
	databaseCertDir = "/mnt/slurmdbd-ssl-client-key"
	archiveDir      = "/var/spool/slurmdbd"
)

// What an Accounting accepts as host and user name of a database.
var (
	databaseHost = regexp.MustCompile(`^[0-9A-Za-z._:-]{1,253}$`)
	databaseUser = regexp.MustCompile(`^[0-9A-Za-z_$.@%+-]{1,128}$`)
)

// accounting composes slurmdbd and its database; nil without accounting, or while its database cannot be made.
func (c *composer) accounting() *slinkyv1beta1.Accounting {
	node := &c.spec.SlurmNodes.Accounting
	if !node.Enabled {
		return nil
	}
	out := &slinkyv1beta1.Accounting{ObjectMeta: c.meta(c.cluster.AccountingName(), "accounting")}
	conf := &document{findings: &c.findings, Document: conf.New(conf.Slurmdbd)}
	var disk storage
	switch {
	case node.MariaDBOperator != nil && node.MariaDBOperator.Enabled:
		if out.Spec.StorageConfig = c.mariaDB(node.MariaDBOperator); out.Spec.StorageConfig == nil {
			return nil
		}
	case node.EmbeddedDB != nil && node.EmbeddedDB.Enabled:
		out.Spec.EmbeddedDatabase = embeddedDatabase(node.EmbeddedDB)
	case node.ExternalDB != nil && node.ExternalDB.Enabled:
		out.Spec.StorageConfig = c.externalDatabase(node.ExternalDB)
		c.storageParameters(conf, &disk, node.ExternalDB, out.Spec.StorageConfig.TLS != nil)
	default:
		c.fail(accountingPath, "accounting needs a database: enable embeddedDB, externalDB or mariadbOperator")
		return nil
	}
	c.slurmdbdKeys(conf)
	data, err := conf.Bytes()
	c.failIf(accountingPath, err)
	out.Spec.ExtraConf = string(data)

	container := c.container(node.Slurmdbd, accountingPath+".slurmdbd", withoutCPU)
	pod := c.podSpec(node.SlurmNode, node.HostUsers, node.Slurmdbd, accountingPath)
	disk.addArchive(&container.Resources)
	pod.Volumes, container.VolumeMounts = disk.volumes, disk.mounts
	out.Spec.Slurmdbd = containerOverlay(container)
	out.Spec.Munge = c.accountingMunge(&pod)
	out.Spec.Template = podTemplate(pod, nil)
	out.Spec.Service.Port = node.Slurmdbd.Port
	return out
}

func embeddedDatabase(db *nebiusv1.EmbeddedDB) *slinkyv1beta1.EmbeddedDatabase {
	return &slinkyv1beta1.EmbeddedDatabase{
		MariaDB: containerOverlay(corev1.Container{Image: db.Image, Resources: resources(db.Resources, withoutCPU)}),
		Storage: slinkyv1beta1.DatabaseStorage{Size: db.Storage.Size, StorageClassName: db.Storage.StorageClassName},
	}
}

func (c *composer) externalDatabase(db *nebiusv1.ExternalDB) *slinkyv1beta1.StorageConfig {
	const at = accountingPath + ".externalDB"
	if !databaseHost.MatchString(db.Host) {
		c.fail(at+".host", "must be one host name or IP address")
	}
	user := cmp.Or(db.User, "slurm")
	if !databaseUser.MatchString(user) {
		c.fail(at+".user", "must consist of letters, digits and the characters _ $ . @ %% + -")
	}
	out := &slinkyv1beta1.StorageConfig{Host: db.Host, Port: db.Port, Username: user}
	switch ref := db.PasswordSecretKeyRef; {
	case ref == nil || ref.Name == "":
		if out.TLS = certificates(db.TLS); out.TLS == nil {
			c.fail(at+".passwordSecretKeyRef", "must name a Secret with the password; to log in by a certificate alone, give tls.serverCASecretRef and tls.clientCertSecretRef")
		}
	case ref.Key == "":
		c.fail(at+".passwordSecretKeyRef.key", "must be the key of the password in Secret %s", ref.Name)
	default:
		out.PasswordKeyRef = corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: ref.Name}, Key: ref.Key}
	}
	return out
}

// certificates are those that slurmdbd logs in with instead of a password; nil unless both are given.
func certificates(tls *nebiusv1.ExternalDBTLS) *slinkyv1beta1.StorageTLS {
	if tls == nil || tls.ServerCASecretRef == "" || tls.ClientCertSecretRef == "" {
		return nil
	}
	ca := corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: tls.ServerCASecretRef}, Key: "ca.crt"}
	return &slinkyv1beta1.StorageTLS{
		CARef:                slinkyv1beta1.CertificateReference{SecretKeyRef: &ca},
		ClientCertificateRef: &corev1.LocalObjectReference{Name: tls.ClientCertSecretRef},
	}
}

// storageParameters sets options of the connection and mounts the certificates that they name, unless the Accounting has them.
func (c *composer) storageParameters(d *document, disk *storage, db *nebiusv1.ExternalDB, hasCertificates bool) {
	const at = accountingPath + ".externalDB"
	for _, key := range slices.Sorted(maps.Keys(db.StorageParameters)) {
		if hasCertificates && (key == "SSL_CA" || key == "SSL_CERT" || key == "SSL_KEY") {
			c.ignore(true, at+".storageParameters["+key+"] (beside tls)")
			continue
		}
		d.set("StorageParameters", key+"="+string(db.StorageParameters[key]), at+".storageParameters["+key+"]")
	}
	if db.TLS == nil || hasCertificates {
		return
	}
	if name := db.TLS.ServerCASecretRef; name != "" {
		disk.addSecret("slurmdbd-ssl-ca-cert", name, databaseCADir)
		d.set("StorageParameters", "SSL_CA="+databaseCADir+"/ca.crt", at)
	}
	if name := db.TLS.ClientCertSecretRef; name != "" {
		disk.addSecret("slurmdbd-ssl-client-key", name, databaseCertDir)
		d.set("StorageParameters", "SSL_CERT="+databaseCertDir+"/tls.crt", at)
		d.set("StorageParameters", "SSL_KEY="+databaseCertDir+"/tls.key", at)
	}
}

// addSecret mounts a Secret, readable for the group of the pod.
func (s *storage) addSecret(volume, secret, dir string) {
	s.volumes = append(s.volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: new(int32(0o440))},
	}})
	s.mounts = append(s.mounts, corev1.VolumeMount{Name: volume, MountPath: dir, ReadOnly: true})
}

// addArchive mounts a directory for what slurmdbd purges. Its size may be among the container's resources, where Kubernetes refuses it.
func (s *storage) addArchive(r *corev1.ResourceRequirements) {
	const name = "slurmdbd-spool"
	source := &corev1.EmptyDirVolumeSource{}
	if size, ok := r.Requests[corev1.ResourceStorage]; ok {
		source.SizeLimit = &size
		delete(r.Requests, corev1.ResourceStorage)
		delete(r.Limits, corev1.ResourceStorage)
	}
	s.volumes = append(s.volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: source}})
	s.mounts = append(s.mounts, corev1.VolumeMount{Name: name, MountPath: archiveDir})
}

// slurmdbdKeys are those of spec.slurmNodes.accounting.slurmdbdConfig.
func (c *composer) slurmdbdKeys(d *document) {
	s := &c.spec.SlurmNodes.Accounting.SlurmdbdConfig
	const at = accountingPath + ".slurmdbdConfig."
	d.set("ArchiveDir", archiveDir, at)
	d.text("ArchiveEvents", s.ArchiveEvents, at+"archiveEvents")
	d.text("ArchiveJobs", s.ArchiveJobs, at+"archiveJobs")
	d.text("ArchiveResvs", s.ArchiveResvs, at+"archiveResvs")
	d.text("ArchiveSteps", s.ArchiveSteps, at+"archiveSteps")
	d.text("ArchiveSuspend", s.ArchiveSuspend, at+"archiveSuspend")
	d.text("ArchiveTXN", s.ArchiveTXN, at+"archiveTXN")
	d.text("ArchiveUsage", s.ArchiveUsage, at+"archiveUsage")
	d.text("DebugFlags", s.DebugFlags, at+"debugFlags")
	d.text("DebugLevel", s.DebugLevel, at+"debugLevel")
	d.text("PrivateData", s.PrivateData, at+"privateData")
	d.text("PurgeEventAfter", s.PurgeEventAfter, at+"purgeEventAfter")
	d.text("PurgeJobAfter", s.PurgeJobAfter, at+"purgeJobAfter")
	d.text("PurgeResvAfter", s.PurgeResvAfter, at+"purgeResvAfter")
	d.text("PurgeStepAfter", s.PurgeStepAfter, at+"purgeStepAfter")
	d.text("PurgeSuspendAfter", s.PurgeSuspendAfter, at+"purgeSuspendAfter")
	d.text("PurgeTXNAfter", s.PurgeTXNAfter, at+"purgeTXNAfter")
	d.text("PurgeUsageAfter", s.PurgeUsageAfter, at+"purgeUsageAfter")
	if s.TCPTimeout > 0 {
		d.set("TCPTimeout", strconv.Itoa(int(s.TCPTimeout)), at+"tcpTimeout")
	}
}
