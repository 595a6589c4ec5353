// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmdbd

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/overlay"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

// What the embedded database is made of. The user id is that of the official mariadb image.
const (
	mariadbUID     = int64(999)
	mariadbPort    = "mariadb"
	dataVolume     = "data"
	dataDir        = "/var/lib/mysql"
	passwordVolume = "password"
	passwordDir    = "/run/secrets/mariadb"
	passwordFile   = "password"
	mysqldVolume   = "mysqld"
)

// passwordHash on the database's pod is a digest of its password; another one restarts it.
const passwordHash = "coxswain.dev/password-hash"

// DatabaseLabels is the identity of the embedded database's objects.
func DatabaseLabels(a *slinkyv1beta1.Accounting) label.Set {
	return label.Set{Name: slinkyv1beta1.NameMariaDB, Instance: a.Name, Component: "database"}
}

// database adds the embedded MariaDB: a Service and a StatefulSet of one pod with a claim that outlives them.
func database(in Input, out *render.Output) {
	a := in.Accounting
	set := DatabaseLabels(a)
	name := a.DatabaseKey().Name
	out.Add(&corev1.Service{
		ObjectMeta: pod.ObjectMeta(a, name, set),
		Spec: corev1.ServiceSpec{
			Selector: set.Selector(),
			Ports: []corev1.ServicePort{{
				Name: mariadbPort, Protocol: corev1.ProtocolTCP, Port: slinkyv1beta1.DatabasePort, TargetPort: intstr.FromString(mariadbPort),
			}},
		},
	})
	container, err := overlay.Container(databaseContainer(in), a.Spec.EmbeddedDatabase.MariaDB, "spec.embeddedDatabase.mariadb")
	out.Fail("spec.embeddedDatabase.mariadb", err)
	password := *a.DatabasePasswordRef()
	template, err := pod.Template(corev1.PodSpec{
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		SecurityContext:              pod.RestrictedPod(mariadbUID),
		Containers:                   []corev1.Container{container},
		Volumes: []corev1.Volume{
			pod.Projected(passwordVolume, 0o400, pod.SecretItem(password, passwordFile)),
			pod.EmptyDir(mysqldVolume, true),
			pod.Tmp(),
		},
	}, a.Spec.EmbeddedDatabase.Template, set, map[string]string{
		// The database takes its password over when it starts.
		passwordHash: label.Seal(in.SealingKey, map[string][]byte{passwordFile: []byte(in.Password)}),
	}, "spec.embeddedDatabase.template")
	out.Fail("spec.embeddedDatabase.template", err)
	out.Add(&appsv1.StatefulSet{
		ObjectMeta: pod.ObjectMeta(a, name, set, a.Spec.EmbeddedDatabase.Template.Metadata),
		Spec: appsv1.StatefulSetSpec{
			Replicas:             new(databaseReplicas(in)),
			RevisionHistoryLimit: new(int32(0)),
			ServiceName:          name,
			Selector:             &metav1.LabelSelector{MatchLabels: set.Selector()},
			Template:             template,
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: dataVolume, Labels: set.Labels()},
				Spec:       *a.DatabaseClaim(),
			}},
		},
	})
}

func databaseContainer(in Input) corev1.Container {
	storage, _ := in.Accounting.Database()
	return corev1.Container{
		Name:  slinkyv1beta1.NameMariaDB,
		Image: in.Images.MariaDB(),
		// What slurmdbd asks of its database, https://slurm.schedmd.com/accounting.html#mysql-configuration. Snapshot
		// isolation, on by default since MariaDB 11.6, makes slurmdbd's roll-ups fail.
		Args: []string{
			"--innodb-buffer-pool-size=256M", "--innodb-log-file-size=64M", "--innodb-lock-wait-timeout=900",
			"--max-allowed-packet=64M", "--innodb-snapshot-isolation=OFF",
		},
		Env: []corev1.EnvVar{
			{Name: "MARIADB_DATABASE", Value: storage.Database},
			{Name: "MARIADB_USER", Value: storage.Username},
			{Name: "MARIADB_PASSWORD_FILE", Value: passwordDir + "/" + passwordFile},
			{Name: "MARIADB_RANDOM_ROOT_PASSWORD", Value: "yes"},
		},
		Ports:           []corev1.ContainerPort{{Name: mariadbPort, ContainerPort: slinkyv1beta1.DatabasePort, Protocol: corev1.ProtocolTCP}},
		SecurityContext: pod.Restricted(mariadbUID),
		// The first start makes the database files, which takes a while on slow disks.
		StartupProbe:   &corev1.Probe{ProbeHandler: onPort(), TimeoutSeconds: pod.BusySeconds, FailureThreshold: 300, PeriodSeconds: 1},
		LivenessProbe:  &corev1.Probe{ProbeHandler: onPort(), TimeoutSeconds: pod.BusySeconds, FailureThreshold: 6, PeriodSeconds: 10},
		ReadinessProbe: &corev1.Probe{ProbeHandler: onPort(), TimeoutSeconds: pod.BusySeconds, PeriodSeconds: 5},
		VolumeMounts: []corev1.VolumeMount{
			{Name: dataVolume, MountPath: dataDir, SubPath: "mysql"},
			{Name: passwordVolume, MountPath: passwordDir, ReadOnly: true},
			{Name: mysqldVolume, MountPath: "/run/mysqld"},
			pod.TmpMount(),
		},
	}
}

func onPort() corev1.ProbeHandler {
	return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(mariadbPort)}}
}
