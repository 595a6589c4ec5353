// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

func TestFactsOfAKubernetesNode(t *testing.T) {
	conditions := func(all ...corev1.NodeCondition) corev1.NodeStatus { return corev1.NodeStatus{Conditions: all} }
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "fine"}
	silent := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "silence"}
	gpu := corev1.NodeCondition{Type: "GPUFault", Status: corev1.ConditionTrue, Reason: "XID", Message: "48"}
	healthy := corev1.NodeCondition{Type: "GPUFault", Status: corev1.ConditionFalse, Reason: "NoXID"}
	annotated := func(pairs ...string) map[string]string {
		out := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = pairs[i+1]
		}
		return out
	}
	tests := []struct {
		name        string
		annotations map[string]string
		labels      map[string]string
		cordoned    bool
		taint       string
		status      corev1.NodeStatus
		want        workerplan.Host
	}{
		{name: "Kubernetes has not heard of the node yet", want: workerplan.Host{Cordoned: node.No}},
		{name: "the node is ready and cordoned", cordoned: true, status: conditions(ready), want: workerplan.Host{Cordoned: node.Yes, Ready: node.Yes}},
		{name: "cluster-autoscaler takes the node away", taint: "ToBeDeletedByClusterAutoscaler", want: workerplan.Host{Cordoned: node.Yes}},
		{name: "Karpenter takes the node away", taint: "karpenter.sh/disrupted", want: workerplan.Host{Cordoned: node.Yes}},
		{name: "the node has another taint", taint: "maintenance", want: workerplan.Host{Cordoned: node.No}},
		{name: "the node is silent", status: conditions(silent), want: workerplan.Host{Cordoned: node.No, Ready: node.No, CordonReason: "(NodeStatusUnknown: silence)"}},
		{name: "conditions that were asked for say what is wrong", status: conditions(gpu, ready), want: workerplan.Host{Cordoned: node.No, Ready: node.Yes, CordonReason: "(XID: 48)"}},
		{name: "all conditions say what is wrong, in one order", status: conditions(gpu, silent), want: workerplan.Host{Cordoned: node.No, Ready: node.No, CordonReason: "(NodeStatusUnknown: silence); (XID: 48)"}},
		{name: "conditions say nothing when nothing is wrong", status: conditions(healthy, ready), want: workerplan.Host{Cordoned: node.No, Ready: node.Yes}},
		{name: "the annotation says it better than conditions", annotations: annotated(slinkyv1beta1.AnnotationNodeCordonReason, "RMA"), status: conditions(gpu), want: workerplan.Host{Cordoned: node.No, CordonReason: "RMA"}},
		{name: "the topology has its older name too", annotations: annotated(slinkyv1beta1.AnnotationTopologyLine, "a:b"), want: workerplan.Host{Cordoned: node.No, Topology: "a:b", HasTopology: true}},
		{name: "the group that NVLink makes", labels: annotated("topology.nebius.com/nvl-instance-group-id", "rack-7"), want: workerplan.Host{Cordoned: node.No, NVLinkInstanceGroup: "rack-7"}},
		{name: "the topology is empty, and there are features", annotations: annotated(slinkyv1beta1.AnnotationTopologySpec, "", slinkyv1beta1.AnnotationTopologyLine, "a:b", slinkyv1beta1.AnnotationFeatures, "x"),
			want: workerplan.Host{Cordoned: node.No, HasTopology: true, Features: "x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &reconciler{propagated: []string{"Ready", "GPUFault"}}
			tt.want.Name, tt.want.Machine = "n", workerpod.Machine{Node: "n", UID: "u", System: "s"}
			tt.status.NodeInfo.SystemUUID = "s"
			n := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Annotations: tt.annotations, Labels: tt.labels}, Spec: corev1.NodeSpec{Unschedulable: tt.cordoned}, Status: tt.status,
			}
			if tt.taint != "" {
				n.Spec.Taints = []corev1.Taint{{Key: tt.taint, Effect: corev1.TaintEffectNoSchedule}}
			}
			got := r.factsOf(n)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
