// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Reservation is a reservation of nodes. When it is written, what is zero is left to Slurm, or stays as it is.
type Reservation struct {
	Name string
	// Start is when it begins, End when it ends.
	Start time.Time
	End   time.Time
	// Nodes is a hostlist expression.
	Nodes string
	// Partition is where nodes are taken from when none are named.
	Partition string
	// Flags are Slurm's words: "MAINT", "IGNORE_JOBS", "SPEC_NODES", "DAILY", "WEEKLY" …; see scontrol(1), "Flags" of
	// reservations.
	Flags []string
	// Users and Accounts are who may use it; Slurm wants at least one of them. Comma separated.
	Users    []string
	Accounts []string
	// Comment is free text. It is only written: slurmrestd does not show it when it lists reservations.
	Comment string
}

// Reservations lists all reservations.
func (c *Client) Reservations(ctx context.Context) ([]Reservation, error) {
	var list []Reservation
	_, err := c.list(ctx, "reservations/", time.Time{}, maxOtherBytes, func(r *reader, _ bool) (errs []slurmError, err error) {
		list, errs, err = decodeDated(r, "reservations", (*reader).reservation)
		return errs, err
	})
	if err != nil {
		return nil, fmt.Errorf("listing Slurm reservations of %s: %w", c, err)
	}
	return list, nil
}

func (r *reader) reservation() Reservation {
	var v Reservation
	for ok := r.open('{'); ok; ok = r.more('{') {
		switch string(r.key()) {
		case "name":
			v.Name = r.text("")
		case "start_time":
			v.Start = r.time()
		case "end_time":
			v.End = r.time()
		case "node_list":
			v.Nodes = r.text("")
		case "partition":
			v.Partition = r.shared()
		case "flags":
			v.Flags = r.list()
		case "users":
			v.Users = split(r.text(""))
		case "accounts":
			v.Accounts = split(r.text(""))
		default:
			r.skip()
		}
	}
	return v
}

// PutReservation makes a reservation, or changes the one of that name; from v0.0.43 (Slurm 25.05) on. Without Nodes a new
// one takes those of the partition. A new one needs a time that is not past, and Users or Accounts.
func (c *Client) PutReservation(ctx context.Context, v Reservation) error {
	fail := func(err error) error {
		return fmt.Errorf("writing Slurm reservation %s of %s: %w", shorten(v.Name, 200), c, err)
	}
	if v.Name == "" {
		return fail(errors.New("it has no name"))
	}
	if err := c.needs(ctx, "v0.0.43", "write reservations"); err != nil {
		return fail(err)
	}
	body := struct {
		Name      string   `json:"name"`
		Start     *number  `json:"start_time,omitempty"`
		End       *number  `json:"end_time,omitempty"`
		Nodes     []string `json:"node_list,omitempty"`
		Partition string   `json:"partition,omitempty"`
		Flags     []string `json:"flags,omitempty"`
		Users     []string `json:"users,omitempty"`
		Accounts  []string `json:"accounts,omitempty"`
		Comment   string   `json:"comment,omitempty"`
	}{
		Name: v.Name, Start: seconds(v.Start), End: seconds(v.End), Partition: v.Partition, Flags: v.Flags, Users: v.Users,
		Accounts: v.Accounts, Comment: v.Comment,
	}
	if v.Nodes != "" {
		body.Nodes = []string{v.Nodes}
	}
	if err := c.write(ctx, http.MethodPost, "reservation", body); err != nil {
		return fail(err)
	}
	return nil
}

// DeleteReservation deletes a reservation, which 24.11 cannot. It is Absent when there is none of that name.
func (c *Client) DeleteReservation(ctx context.Context, name string) error {
	fail := func(err error) error {
		return fmt.Errorf("deleting Slurm reservation %s of %s: %w", shorten(name, 200), c, err)
	}
	if name == "" {
		return fail(errors.New("it has no name"))
	}
	err := c.write(ctx, http.MethodDelete, "reservation/"+url.PathEscape(name), nil)
	if refusal, ok := errors.AsType[*Error](err); ok && refusal.Code == CodeReservation {
		refusal.Kind = Absent // what else can be wrong with a name
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

// number is a number as Slurm writes it.
type number struct {
	Set      bool  `json:"set"`
	Infinite bool  `json:"infinite,omitempty"`
	Number   int64 `json:"number"`
}

// seconds is a time in a message; the zero time is left out.
func seconds(t time.Time) *number {
	if t.IsZero() {
		return nil
	}
	return &number{Set: true, Number: t.Unix()}
}

// split takes a comma separated list apart.
func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}
