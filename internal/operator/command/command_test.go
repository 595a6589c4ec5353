// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"crypto/tls"
	"errors"
	"flag"
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name string
		args []string
		said string
		err  string
	}{
		{name: "a flag", args: []string{"--a=1"}},
		{name: "a flag without effect is said to have none", args: []string{"--zap-devel", "--old=x"}, said: "--old has no effect: because\n--zap-devel has no effect: reasons\n"},
		{name: "an argument that is no flag", args: []string{"go"}, err: `unexpected argument "go": the test takes flags only, see --help`},
		{name: "an unknown flag is told once, without all others", args: []string{"--b"}, err: "flag provided but not defined: -b"},
		{name: "help", args: []string{"--help"}, said: "A test.\n\nUsage: test [flags]\n\n  -a string\n    \ta letter\n  -old value\n    \taccepted without effect: because\n  -zap-devel\n    \taccepted without effect: reasons\n", err: flag.ErrHelp.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var said bytes.Buffer
			p := Program{Name: "test", About: "A test.\n", Ignored: []map[string]string{{"old": "because"}, {"zap-devel": "reasons"}}}
			err := p.Parse(tt.args, &said, func(fs *flag.FlagSet) { fs.String("a", "", "a letter") })
			if err == nil {
				err = errors.New("")
			}
			if err.Error() != tt.err || said.String() != tt.said {
				t.Errorf("%q, want %q; said %q, want %q", err, tt.err, said.String(), tt.said)
			}
		})
	}
}

func TestList(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{{"", nil}, {" , ", nil}, {"a", []string{"a"}}, {" a,b ,,c", []string{"a", "b", "c"}}}
	for _, tt := range tests {
		if got := List(tt.text); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestMetricsAreServedToAuthorizedCallersWithoutHTTP2(t *testing.T) {
	var m Metrics
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	m.Bind(fs, ":8080", "metrics-addr", "metrics-bind-address")
	if err := fs.Parse([]string{"--metrics-bind-address=:9090"}); err != nil {
		t.Fatal(err)
	}
	o := m.Options(false)
	if o.BindAddress != ":9090" || !o.SecureServing || o.FilterProvider == nil || len(o.TLSOpts) != 1 {
		t.Fatalf("%+v", o)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	o.TLSOpts[0](config)
	if !slices.Equal(config.NextProtos, []string{"http/1.1"}) {
		t.Errorf("it speaks %v", config.NextProtos)
	}
	m.Secure = false
	if o := m.Options(true); o.SecureServing || o.FilterProvider != nil || len(o.TLSOpts) != 0 {
		t.Errorf("%+v", o)
	}
}
