// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// RevisionData is what makes workers of one NodeSet alike, as JSON with sorted keys. It covers what the user wrote, in
// whatever order, and where slurmctld and the key to it are. It does not cover how this version of the operator renders it.
// So an upgrade of the operator replaces no worker, unless it brings another image and the user has not named one.
func RevisionData(in Input) ([]byte, error) {
	spec := in.NodeSet.Spec
	key := in.Controller.AuthSlurmRef()
	made := struct {
		Template       slinkyv1beta1.PodTemplate
		Slurmd         any
		Logfile        any
		ExtraConf      string
		SSH            slinkyv1beta1.NodeSetSSH
		OrdinalPadding int32
		Oversubscribe  bool
		Image          string
		Endpoint       string
		Key            string
		Claims         any
		Jail           *slinkyv1beta1.Jail `json:",omitempty"`
		Munge          *mungeRevision      `json:",omitempty"`
		PowerSaving    bool                `json:",omitempty"`
		SshdConfig     string              `json:",omitempty"`
	}{
		Template: spec.Template, Slurmd: spec.Slurmd, Logfile: spec.Logfile, ExtraConf: spec.ExtraConf, SSH: spec.SSH,
		OrdinalPadding: spec.OrdinalPadding, Oversubscribe: spec.OversubscribeNode, Image: defaultImage(in),
		Endpoint: in.Controller.Endpoint(), Key: key.Name + "/" + key.Key, Claims: claimNames(in.NodeSet),
		Jail: spec.Jail, Munge: mungeOf(in), PowerSaving: in.NodeSet.SavesPower(), SshdConfig: in.sshdConfigDigest(),
	}
	data, err := json.Marshal(made)
	if err == nil {
		data, err = canonical(data)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding the template of NodeSet %s: %w", in.NodeSet.Name, err)
	}
	return data, nil
}

// mungeRevision is the part of munged that counts for the revision.
type mungeRevision struct {
	Container any
	Key       string
	// Image is the image that counts: none when the user names one.
	Image string
}

func mungeOf(in Input) *mungeRevision {
	munge := in.NodeSet.Spec.Munge
	if munge == nil {
		return nil
	}
	out := &mungeRevision{Container: munge.Container, Key: munge.KeyRef.Name + "/" + munge.KeyRef.Key, Image: in.Images.Munge()}
	if c, err := munge.Container.Decode(); err == nil && c != nil && c.Image != "" {
		out.Image = ""
	}
	return out
}

// RevisionHash is a short digest of RevisionData, another one for each number of collisions.
func RevisionHash(data []byte, collisions int32) string {
	content := map[string][]byte{"template": data}
	if collisions > 0 {
		content["collisions"] = []byte(strconv.Itoa(int(collisions)))
	}
	return label.Digest(content)[:10]
}

// ControllerRevision is the object in which a revision is kept. Its name is N-<hash>.
func ControllerRevision(n *slinkyv1beta1.NodeSet, data []byte, hash string, number int64) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: n.Namespace, Name: n.Name + "-" + hash,
			Labels: label.Merge(Labels(n).Labels(), map[string]string{slinkyv1beta1.LabelRevisionHash: hash}),
		},
		Data:     runtime.RawExtension{Raw: data},
		Revision: number,
	}
}

// Canonical is the data of a stored revision in the form of RevisionData; what cannot be read is returned as it is.
func Canonical(data []byte) []byte {
	if out, err := canonical(data); err == nil {
		return out
	}
	return data
}

// defaultImage is the image that counts for the revision: none when the user names one.
func defaultImage(in Input) string {
	if c, err := in.NodeSet.Spec.Slurmd.Decode(); err == nil && c != nil && c.Image != "" {
		return ""
	}
	return in.Images.Slurmd()
}

// canonical is the data of a revision with sorted keys, also inside of what users wrote, where what is empty is left out. So
// another client that writes the same differently replaces no worker.
func canonical(data []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var plain map[string]any
	if err := decoder.Decode(&plain); err != nil {
		return nil, err
	}
	for _, name := range []string{"Slurmd", "Logfile"} {
		if written, ok := plain[name].(map[string]any); ok {
			if embedded.WithoutEmpty[corev1.Container](written); len(written) == 0 {
				plain[name] = nil
			}
		}
	}
	if ssh, ok := plain["SSH"].(map[string]any); ok {
		if ref, ok := ssh["sssdConfRef"].(map[string]any); ok && (ref["name"] == nil || ref["name"] == "") {
			delete(ssh, "sssdConfRef")
		}
	}
	if munge, ok := plain["Munge"].(map[string]any); ok {
		if written, ok := munge["Container"].(map[string]any); ok {
			if embedded.WithoutEmpty[corev1.Container](written); len(written) == 0 {
				munge["Container"] = nil
			}
		}
	}
	if jail, ok := plain["Jail"].(map[string]any); ok {
		if source, ok := jail["volumeSource"].(map[string]any); ok {
			embedded.WithoutEmpty[corev1.VolumeSource](source)
		}
	}
	template, _ := plain["Template"].(map[string]any)
	metadata, _ := template["metadata"].(map[string]any)
	for key, value := range metadata {
		if written, ok := value.(map[string]any); value == nil || ok && len(written) == 0 {
			delete(metadata, key)
		}
	}
	if len(metadata) == 0 {
		delete(template, "metadata")
	}
	if written, ok := template["spec"].(map[string]any); ok {
		if embedded.WithoutEmpty[corev1.PodSpec](written); len(written) == 0 {
			delete(template, "spec")
		}
	}
	return json.Marshal(plain)
}

func claimNames(n *slinkyv1beta1.NodeSet) []string {
	var names []string
	claims, _ := Claims(n, workerpod.Place{})
	for _, c := range claims {
		names = append(names, c.Labels[claimTemplateLabel]+"-"+n.PodName(0)) // whatever the scaling mode
	}
	return names
}
