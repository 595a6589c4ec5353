// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/cli/redact"
)

func TestText(t *testing.T) {
	const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdW4iOiJhbGljZSJ9.c2lnbmF0dXJl"
	random := base64.StdEncoding.EncodeToString([]byte("\x01\x93\xfa\x02abcdefghijklmnopqrstuvw\xff\xee\x99\x00\x12\x34\x56\x78"))
	for name, tc := range map[string]struct{ in, want string }{
		"a password of slurmdbd.conf":    {"StorageUser=slurm\nStoragePass=hunter2\nStorageLoc=db", "StorageUser=slurm\nStoragePass=[removed]\nStorageLoc=db"},
		"with blanks around":             {"AccountingStoragePass = hunter2", "AccountingStoragePass = [removed]"},
		"a bind password of sssd.conf":   {"ldap_default_authtok = hunter2", "ldap_default_authtok = [removed]"},
		"a field in YAML":                {"  password: hunter2", "  password: [removed]"},
		"a field in JSON":                {`{"dbPassword":"hunter \"2","user":"x"}`, `{"dbPassword":[removed],"user":"x"}`},
		"a field in JSON in JSON":        {`"{\"password\":\"hunter2\",\"user\":\"x\"}"`, `"{\"password\":\"[removed]\",\"user\":\"x\"}"`},
		"a block in YAML":                {"a:\n  password: |\n    hunter2\n  b: c\n", "a:\n  password: [removed]\n  b: c\n"},
		"the field behind stays":         {"secret:\n  defaultMode: 420\n", "secret:\n  defaultMode: 420\n"},
		"an option on two lines":         {"mysql --password \\\n  hunter2", "mysql --password \\\n  [removed]"},
		"a variable":                     {"export SLURM_JWT=abc", "export SLURM_JWT=[removed]"},
		"an option":                      {"mysql --password hunter2 --user=x", "mysql --password [removed] --user=x"},
		"an option with a value":         {"mysql --password=hunter2 x", "mysql --password=[removed] x"},
		"a header":                       {"X-SLURM-USER-TOKEN: abc", "X-SLURM-USER-TOKEN: [removed]"},
		"a token of HTTP":                {"got Authorization: Bearer abcdefgh", "got Authorization: [removed] [removed]"},
		"a web token":                    {"for " + jwt + ".", "for [removed]."},
		"a private key":                  {"a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nb", "a\n[removed]\nb"},
		"a private key that is cut off":  {"a\n-----BEGIN OPENSSH PRIVATE KEY-----\nMII\nMII", "a\n[removed]"},
		"a certificate stays":            {"-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----", "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----"},
		"a password in a URL":            {"mysql://slurm:hunter2@db:3306/x", "mysql://slurm:[removed]@db:3306/x"},
		"a key of a JSON web key":        {`{"keys":[{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMko"}]}`, `{"keys":[{"kty":"oct","k":"[removed]"}]}`},
		"a password in SQL":              {"CREATE USER x IDENTIFIED BY 'hunter2'", "CREATE USER x IDENTIFIED BY [removed]"},
		"what looks random":              {"key " + random, "key [removed]"},
		"a known value":                  {"as slurm with known-value", "as slurm with [removed]"},
		"a known value in base64":        {"as a25vd24tdmFsdWU= and a25vd24tdmFsdWU", "as [removed] and [removed]"},
		"a known value with line breaks": {`"two\nlines of it"`, `"[removed]"`},
		"a digest stays":                 {"sha256:" + strings.Repeat("0a1b2c3d", 8), "sha256:" + strings.Repeat("0a1b2c3d", 8)},
		"the name of a Secret stays":     {"secretName: demo-auth-slurm", "secretName: demo-auth-slurm"},
		"a path stays":                   {"/var/run/secrets/kubernetes.io/serviceaccount/namespace", "/var/run/secrets/kubernetes.io/serviceaccount/namespace"},
		"a line of a log stays":          {"[2026-11-25T12:00:00.000] sched: Allocate JobId=12 NodeList=worker-3 #CPUs=4 Partition=main", "[2026-11-25T12:00:00.000] sched: Allocate JobId=12 NodeList=worker-3 #CPUs=4 Partition=main"},
		"AuthType stays":                 {"AuthType=auth/slurm\nAuthAltTypes=auth/jwt", "AuthType=auth/slurm\nAuthAltTypes=auth/jwt"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := redact.New([]byte("known-value\n"), []byte("two\nlines of it"), []byte("x")).Text(tc.in); got != tc.want {
				t.Errorf("%q became %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}

func TestObject(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"a variable of a container":    {`{"env":[{"name":"DB_PASSWORD","value":"hunter2"},{"name":"HOME","value":"/root"}]}`, `{"env":[{"name":"DB_PASSWORD","value":"[removed]"},{"name":"HOME","value":"/root"}]}`},
		"a reference to a Secret":      {`{"env":[{"name":"DB_PASSWORD","valueFrom":{"secretKeyRef":{"key":"password","name":"db"}}}]}`, `{"env":[{"name":"DB_PASSWORD","valueFrom":{"secretKeyRef":{"key":"password","name":"db"}}}]}`},
		"an option and its value":      {`{"args":["--token","hunter2","--verbose"]}`, `{"args":["--token","[removed]","--verbose"]}`},
		"an option with a value":       {`{"args":["--db-password=hunter2"]}`, `{"args":["--db-password=[removed]"]}`},
		"what kubectl has written":     {`{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"x\":1}"},"managedFields":[1]}}`, `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"[removed]"}}}`},
		"JSON in an annotation":        {`{"metadata":{"annotations":{"x":"[{\"name\":\"A_TOKEN\",\"value\":\"hunter2\"}]"}}}`, `{"metadata":{"annotations":{"x":"[{\"name\":\"A_TOKEN\",\"value\":\"[removed]\"}]"}}}`},
		"a message":                    {`{"status":{"conditions":[{"message":"refused: password=hunter2"}]}}`, `{"status":{"conditions":[{"message":"refused: password=[removed]"}]}}`},
		"a field with a name of words": {`{"spec":{"storagePass":"hunter2","bindPassword":"hunter2","compass":"north","tokenExpirationSeconds":7}}`, `{"spec":{"bindPassword":"[removed]","compass":"north","storagePass":"[removed]","tokenExpirationSeconds":7}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			if err := json.Unmarshal([]byte(tc.in), &object); err != nil {
				t.Fatal(err)
			}
			redact.New().Object(object)
			got, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tc.want {
				t.Errorf("it became %s, want %s", got, tc.want)
			}
		})
	}
}

// A known value is found in any text, and so is a password after its name.
func FuzzText(f *testing.F) {
	f.Add("a ", " b")
	f.Add(`{"x":"`, `"}`)
	f.Add("password=", "\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		const known = "S3cr3t-0f-1t"
		if strings.Contains(before+after, known) {
			return
		}
		r := redact.New([]byte(known))
		if got := r.Text(before + known + after); strings.Contains(got, known) {
			t.Errorf("%q shows the value", got)
		}
		if got := r.Text(before + "\nStoragePass=hunter2-is-it\n" + after); strings.Contains(got, "hunter2-is-it") {
			t.Errorf("%q shows the password", got)
		}
	})
}
