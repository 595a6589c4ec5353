// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"strings"
	"testing"
)

func FuzzNetrc(f *testing.F) {
	for _, seed := range []string{
		"machine h login a password b", "machine h\n login \"a \\\" b\" password $(x y)\n", "default login a", "macdef x\ny\n\nmachine h", "#",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		machines, err := parseNetrc([]byte(text))
		if err != nil {
			return
		}
		// What was read and is written with quotes is read again as it was. Lines do not end inside of quotes.
		var written strings.Builder
		quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
		for _, m := range machines {
			if strings.ContainsAny(m.name+m.login+m.password, "\n\r") {
				t.Fatalf("%q has a line feed in a word: %+v", text, m)
			}
			written.WriteString(`machine "` + quote.Replace(m.name) + `" login "` + quote.Replace(m.login) + `" `)
			written.WriteString(`password "` + quote.Replace(m.password) + "\"\n")
		}
		again, err := parseNetrc([]byte(written.String()))
		if err != nil || len(again) != len(machines) {
			t.Fatalf("%q is written as %q, which is %+v, %v", text, written.String(), again, err)
		}
		for i, m := range machines {
			if again[i].login != m.login || again[i].password != m.password || again[i].name != withoutPort(m.name) {
				t.Errorf("%q is written as %q, which is %+v", text, written.String(), again[i])
			}
		}
	})
}

func FuzzAuthFile(f *testing.F) {
	f.Add(`{"auths":{"h":{"auth":"YTpi"},"https://index.docker.io/v1/":{"identitytoken":"x"}},"credsStore":"y"}`, "h:5000", "a/b")
	f.Add(`{"auths":{"h/a":{"username":"x","password":"y"}},"credHelpers":{"h":"z"}}`, "h", "a/b")
	f.Fuzz(func(t *testing.T, text, host, repository string) {
		file, err := parseAuthFile([]byte(text))
		if err != nil {
			return
		}
		all, err := file.find(host, repository, "")
		if err != nil || all.Anonymous() {
			return
		}
		if again, err := file.find(host, repository, all.User); err != nil || all.User != "" && again != all {
			t.Errorf("%q has no login of the user that it has: %v", text, err)
		}
	})
}
