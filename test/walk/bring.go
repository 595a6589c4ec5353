// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import "context"

// Options are how to get to a Kubernetes in which the operator runs.
type Options struct {
	Repository Repository
	Images     Images
	// Kubeconfig leads to a Kubernetes of the user; empty for a local one.
	Kubeconfig string
	// Nodes is the number of nodes that a local Kubernetes has at least.
	Nodes int
	// NodeNames are names with a domain of nodes that a local Kubernetes has in any case.
	NodeNames []string
}

// Bring takes the part of the walk that happens once per machine: it returns a Kubernetes in which the operator runs.
func Bring(ctx context.Context, p *Progress, o Options) (*Kubernetes, error) {
	local := o.Kubeconfig == ""
	err := p.Step(ctx, "Programs: building them where they are not current", func(ctx context.Context) error {
		return BuildPrograms(ctx, o.Repository, p, local)
	})
	if err != nil {
		return nil, err
	}
	k, err := o.start(ctx, p)
	if err != nil {
		return nil, err
	}
	return k, p.Step(ctx, "Operator: installing it with Helm", func(ctx context.Context) error {
		return InstallOperator(ctx, o.Repository, p, k, o.Images)
	})
}

// start brings a Kubernetes that has the images. A local one is compiled and started while Debian's packages are installed in images.
func (o Options) start(ctx context.Context, p *Progress) (k *Kubernetes, err error) {
	if o.Kubeconfig != "" {
		if err := o.Images.Expect(p); err != nil {
			return nil, err
		}
		err = p.Step(ctx, "Kubernetes: that of "+o.Kubeconfig, func(context.Context) error {
			k, err = Connect(o.Kubeconfig)
			return err
		})
		return k, err
	}
	var archives []string
	err = p.Together(ctx, func(ctx context.Context, p *Progress) error {
		return p.Step(ctx, "Kubernetes: a local one, or the one that runs", func(ctx context.Context) (err error) {
			k, err = StartKubernetes(ctx, o.Repository, p, o.Nodes, o.NodeNames...)
			return err
		})
	}, func(ctx context.Context, p *Progress) error {
		return p.Step(ctx, "Images: of Slurm and of the operator", func(ctx context.Context) (err error) {
			archives, err = o.Images.build(ctx, o.Repository, p)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return k, p.Step(ctx, "Loading: the images into the nodes that do not have them", func(ctx context.Context) error {
		return o.Repository.load(ctx, p, archives)
	})
}
