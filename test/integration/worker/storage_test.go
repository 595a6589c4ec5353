// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/health/podstorage"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
	"github.com/coxswain-hpc/coxswain/internal/testing/tlsserver"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// kubelet answers for the kubelets of all workers, over HTTPS.
type kubelet struct {
	mu     sync.Mutex
	used   map[string]uint64 // by the UID of the pod
	silent bool
	asked  int
}

func (k *kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	if k.silent || r.URL.Path != "/stats/summary" {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	type object map[string]any
	pods := []object{}
	for uid, used := range k.used {
		pods = append(pods, object{"podRef": object{"uid": uid}, "ephemeral-storage": object{"usedBytes": used}})
	}
	_ = json.NewEncoder(w).Encode(object{"pods": pods})
}

// use sets how many of its 1000 bytes a worker uses from now on.
func (k *kubelet) use(o *operator.Operator, pod string, used uint64) {
	p := operator.Get[corev1.Pod](o, pod)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.used[string(p.UID)] = used
}

// falls sets whether kubelets answer from now on, and returns when every worker has been measured several times since.
func (k *kubelet) falls(t *testing.T, silent bool) {
	t.Helper()
	k.mu.Lock()
	k.silent = silent
	before := k.asked
	k.mu.Unlock()
	apiserver.Eventually(t, func() error {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.asked < before+20 {
			return fmt.Errorf("kubelets were asked %d times since", k.asked-before)
		}
		return nil
	})
}

// startMeasured starts workers with a limit of 1000 bytes, each on a Kubernetes node of its own, and an operator that measures them all
// the time.
func startMeasured(t *testing.T, replicas int) (*operator.Operator, *kubelet) {
	t.Helper()
	k := &kubelet{used: map[string]uint64{}}
	host, port, authority := tlsserver.Serve(t, k)
	o, _ := operator.StartWorkersOn(t, replicas, `slurmd: {resources: {limits: {ephemeral-storage: "1000"}}}, partition: {enabled: true}`)
	for _, name := range operator.WorkerNames(replicas) {
		p := operator.Get[corev1.Pod](o, name)
		before := p.DeepCopy()
		p.Status.HostIP, p.Status.HostIPs = host, []corev1.HostIP{{IP: host}}
		if err := o.User.Status().Patch(t.Context(), p, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		k.use(o, name, 100)
	}
	o.Storage = &podstorage.Options{
		Thresholds: health.StorageThresholds{Drain: 85, Resume: 80}, Interval: 100 * time.Millisecond,
		Kubelet: podstorage.KubeletOptions{Port: port, CAFile: authority, RequestTimeout: 10 * time.Second},
	}
	return o, k
}

// warned waits for a Warning event with a reason, and returns its text.
func warned(t *testing.T, o *operator.Operator, reason string) (note string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		var list eventsv1.EventList
		if err := o.User.List(t.Context(), &list, client.InNamespace(o.Namespace)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Reason == reason && e.Type == corev1.EventTypeWarning {
				note = e.Note
				return nil
			}
		}
		return fmt.Errorf("there is no warning %s among %d events", reason, len(list.Items))
	})
	return note
}

func TestTheEphemeralStorageOfAWorkerIsNearlyUsedUp(t *testing.T) {
	t.Parallel()
	o, k := startMeasured(t, 2)
	o.DrainLimit = health.DrainLimit{Number: 2}
	const drained = "IDLE+DRAIN+DYNAMIC_NORM [user_problem] pod_ephemeral_storage 90 % of its limit used: delete files of the pod outside of the jail, or unused containers"
	o.ExpectNothingWritten(o.Restart)

	k.use(o, "w-0", 930)
	o.ExpectNode("w-0", drained)
	if note := warned(t, o, "HighEphemeralStorageUsage"); !strings.Contains(note, "Slurm node w-0 drains: [user_problem] pod_ephemeral_storage 90 %") {
		t.Errorf("the event says %q", note)
	}
	apiserver.Eventually(t, func() error {
		c := workerpod.Condition(operator.Get[corev1.Pod](o, "w-0"), slinkyv1beta1.PodConditionOutOfService)
		if c == nil || c.Reason != slinkyv1beta1.ReasonEphemeralStorage || !strings.Contains(c.Message, "it is undrained when the pod uses less than 80 %") {
			return fmt.Errorf("the ledger says %+v", c)
		}
		return nil
	})
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool {
		return len(s.OutOfService) == 1 && s.OutOfService[0].Reason == slinkyv1beta1.ReasonEphemeralStorage && s.OutOfService[0].Nodes == "w-0"
	})
	// Another percentage, a kubelet that falls silent, and a restart change nothing.
	o.ExpectNothingWritten(func() { k.use(o, "w-0", 990) })
	o.ExpectNothingWritten(func() { k.falls(t, true) })
	o.ExpectNothingWritten(o.Restart)
	o.ExpectNothingWritten(func() {
		k.use(o, "w-0", 820)
		k.falls(t, false)
	})
	if got := o.NodeState("w-0"); got != drained {
		t.Errorf("between the thresholds it is %s", got)
	}
	k.use(o, "w-0", 700)
	o.ExpectNode("w-0", "IDLE+DYNAMIC_NORM ")
	o.ExpectNoErrors()
}

func TestADrainOfSoperatorForEphemeralStorageIsEnded(t *testing.T) {
	t.Parallel()
	o, k := startMeasured(t, 2)
	for node, reason := range map[string]string{"w-0": "[user_problem] pod_ephemeral_storage 87.31 clean up", "w-1": "[user_problem] boot_disk_full: 95 %"} {
		if err := o.Slurm.Update("root", node, "DRAIN", reason); err != nil {
			t.Fatal(err)
		}
	}
	o.Settle()
	if got := o.NodeState("w-0"); !strings.HasPrefix(got, "IDLE+DRAIN") {
		t.Errorf("an operator that does not measure has made it %s", got)
	}
	o.Restart()
	o.ExpectNode("w-0", "IDLE+DYNAMIC_NORM ")
	k.use(o, "w-1", 990)
	k.falls(t, false)
	o.Settle()
	if got := o.NodeState("w-1"); got != "IDLE+DRAIN+DYNAMIC_NORM [user_problem] boot_disk_full: 95 %" {
		t.Errorf("w-1, which another check has drained, is %s", got)
	}
}

// TestChecksMayNotDrainAllWorkersAtOnce fills the ephemeral storage of all workers: the disruption budget lets one go. A person drains another one
// meanwhile, and maintenance a third, which it does not count.
func TestChecksMayNotDrainAllWorkersAtOnce(t *testing.T) {
	t.Parallel()
	o, k := startMeasured(t, 4)
	if err := o.Slurm.Update("root", "w-3", "DRAIN", "bad disk"); err != nil {
		t.Fatal(err)
	}
	o.Restart()
	k.falls(t, false)
	for _, name := range operator.WorkerNames(4) {
		k.use(o, name, 990)
	}
	const drained = "IDLE+DRAIN+DYNAMIC_NORM [user_problem] pod_ephemeral_storage 95 % of its limit used: delete files of the pod outside of the jail, or unused containers"
	message := operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", slinkyv1beta1.ConditionDrainsByChecksPaused, metav1.ConditionTrue, slinkyv1beta1.ReasonLimitReached)
	out := ""
	apiserver.Eventually(t, func() error {
		out = ""
		for _, name := range operator.WorkerNames(3) {
			if o.NodeState(name) == drained {
				out += name
			}
		}
		if len(out) != len("w-0") {
			return fmt.Errorf("drained are %q", out)
		}
		return nil
	})
	if !strings.Contains(message, "checks have taken 1 of 4 workers out of service, and --max-nodes-drained-by-checks allows 1; ") {
		t.Errorf("the condition says %q", message)
	}
	if note := warned(t, o, slinkyv1beta1.ConditionDrainsByChecksPaused); !strings.Contains(note, "allows 1") {
		t.Errorf("the event says %q", note)
	}
	o.ExpectNothingWritten(func() { k.falls(t, false) })
	if got := o.NodeState("w-3"); got != "IDLE+DRAIN+DYNAMIC_NORM bad disk" {
		t.Errorf("w-3, which a person has drained, is %s", got)
	}
	// A worker that comes back makes room for the next one.
	k.use(o, out, 10)
	o.ExpectNode(out, "IDLE+DYNAMIC_NORM ")
	apiserver.Eventually(t, func() error {
		for _, name := range operator.WorkerNames(3) {
			if name != out && o.NodeState(name) == drained {
				return nil
			}
		}
		return fmt.Errorf("nobody follows %s", out)
	})
	for _, name := range operator.WorkerNames(4) {
		k.use(o, name, 10)
	}
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", slinkyv1beta1.ConditionDrainsByChecksPaused, metav1.ConditionFalse, slinkyv1beta1.ReasonWithinLimit)
	o.ExpectNoErrors()
}
