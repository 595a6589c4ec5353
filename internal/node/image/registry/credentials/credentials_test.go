// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/node/image/registry/credentials"
)

// secret is in every password of these tests, and in no error.
const secret = "s3cr3t"

// job is the environment of a job in tests.
func job(name string) (string, bool) {
	value, set := map[string]string{"TOKEN": secret + "-of-token", "EMPTY": ""}[name]
	return value, set
}

// auth returns the entry of a user in an auth.json.
func auth(user string) string {
	return `{"auth":"` + base64.StdEncoding.EncodeToString([]byte(user+":"+secret)) + `"}`
}

// load writes files and reads them.
func load(t *testing.T, netrc string, authFiles ...string) (*credentials.Store, error) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if text != "" {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	l := credentials.Locations{Netrc: write(".credentials", netrc)}
	for i, text := range authFiles {
		l.AuthFiles = append(l.AuthFiles, write(fmt.Sprint("auth", i, ".json"), text))
	}
	return credentials.Load(l, job)
}

func TestALoginIsFound(t *testing.T) {
	const ngc = "machine nvcr.io login $oauthtoken password s3cr3t-of-ngc\n"
	for name, test := range map[string]struct {
		netrc, host, user string
		authFiles         []string
		want              credentials.Credentials
	}{
		"no file is there": {host: "nvcr.io"},
		"one line": {
			netrc: ngc, host: "nvcr.io", want: credentials.Credentials{User: "$oauthtoken", Password: "s3cr3t-of-ngc"},
		},
		"several lines and tabs": {
			netrc: "machine\tnvcr.io\n\n  login a\n  password\n s3cr3t", host: "nvcr.io", want: credentials.Credentials{User: "a", Password: secret},
		},
		"another host is not meant": {netrc: ngc, host: "nvcr.io.evil.example"},
		"the port does not matter": {
			netrc: ngc, host: "nvcr.io:443", want: credentials.Credentials{User: "$oauthtoken", Password: "s3cr3t-of-ngc"},
		},
		"the port of the file does not matter": {
			netrc: "machine NVCR.io:5000 login a password s3cr3t", host: "nvcr.io", want: credentials.Credentials{User: "a", Password: secret},
		},
		"the first line counts": {
			netrc: "machine h login a password s3cr3t1 machine h login b password s3cr3t2", host: "h",
			want: credentials.Credentials{User: "a", Password: "s3cr3t1"},
		},
		"the user chooses the line": {
			netrc: "machine h login a password s3cr3t1 machine h login b password s3cr3t2", host: "h", user: "b",
			want: credentials.Credentials{User: "b", Password: "s3cr3t2"},
		},
		"a password is a variable": {
			netrc: "machine h login a password $TOKEN", host: "h", want: credentials.Credentials{User: "a", Password: "s3cr3t-of-token"},
		},
		"a password is a variable in braces": {
			netrc: "machine h login a password ${TOKEN}", host: "h", want: credentials.Credentials{User: "a", Password: "s3cr3t-of-token"},
		},
		"a password has a dollar sign inside": {
			netrc: "machine h login a password s3cr3t$TOKEN", host: "h", want: credentials.Credentials{User: "a", Password: "s3cr3t$TOKEN"},
		},
		"a password in quotes": {
			netrc: `machine h login a password "s3cr3t \"x\" y"`, host: "h", want: credentials.Credentials{User: "a", Password: `s3cr3t "x" y`},
		},
		"a password after a comment and a macro": {
			netrc: "# machine h login x password y\nmacdef init\nmachine h login z\n\nmachine h login a password s3cr3t", host: "h",
			want: credentials.Credentials{User: "a", Password: secret},
		},
		"an entry for every host is for none": {netrc: "default login a password s3cr3t", host: "h"},
		"a command of another host does not matter": {
			netrc: "machine g login x password $(gcloud auth print-access-token)\n" + ngc, host: "nvcr.io",
			want: credentials.Credentials{User: "$oauthtoken", Password: "s3cr3t-of-ngc"},
		},
		"NGC's server of tokens stands for NGC": {
			netrc: "machine authn.nvidia.com login a password s3cr3t", host: "nvcr.io", want: credentials.Credentials{User: "a", Password: secret},
		},
		"Docker's server of tokens stands for the Hub": {
			netrc: "machine auth.docker.io login a password s3cr3t", host: "registry-1.docker.io",
			want: credentials.Credentials{User: "a", Password: secret},
		},
		"GitLab stands for its registry": {
			netrc: "machine gitlab.com login a password s3cr3t", host: "registry.gitlab.com",
			want: credentials.Credentials{User: "a", Password: secret},
		},
		"an auth.json": {
			host: "h:5000", authFiles: []string{`{"auths":{"h:5000":` + auth("a") + `}}`},
			want: credentials.Credentials{User: "a", Password: secret},
		},
		"the .credentials file is before an auth.json": {
			netrc: "machine h login a password s3cr3t1", host: "h", authFiles: []string{`{"auths":{"h":` + auth("b") + `}}`},
			want: credentials.Credentials{User: "a", Password: "s3cr3t1"},
		},
		"the first auth.json that has the host counts": {
			host:      "h",
			authFiles: []string{"", `{"auths":{"g":` + auth("a") + `}}`, `{"auths":{"h":` + auth("b") + `}}`, `{"auths":{"h":` + auth("c") + `}}`},
			want:      credentials.Credentials{User: "b", Password: secret},
		},
		"the longest key counts": {
			host: "h", authFiles: []string{`{"auths":{"h":` + auth("a") + `,"h/team":` + auth("b") + `,"h/team/app/x":` + auth("c") + `}}`},
			want: credentials.Credentials{User: "b", Password: secret},
		},
		"docker's key of Docker Hub is a URL": {
			host: "registry-1.docker.io", authFiles: []string{`{"auths":{"https://index.docker.io/v1/":` + auth("a") + `}}`},
			want: credentials.Credentials{User: "a", Password: secret},
		},
		"an identity token": {
			host: "h", authFiles: []string{`{"auths":{"h":{"auth":"PHRva2VuPjo=","identitytoken":"s3cr3t"}}}`},
			want: credentials.Credentials{User: "<token>", IdentityToken: secret},
		},
		"a credential helper gives a hint": {
			host: "h", authFiles: []string{`{"auths":{"h":{}},"credsStore":"desktop"}`},
			want: credentials.Credentials{Hint: "auth0.json leaves logins to a credential helper, which is not run"},
		},
		"a user of an auth.json": {
			host: "h", user: "a", authFiles: []string{`{"auths":{"h/team":` + auth("b") + `,"h":` + auth("a") + `}}`},
			want: credentials.Credentials{User: "a", Password: secret},
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := load(t, test.netrc, test.authFiles...)
			if err != nil {
				t.Fatal(err)
			}
			got, err := store.Find(test.host, "team/app", test.user)
			if got.Hint != "" {
				got.Hint = filepath.Base(got.Hint)
			}
			if err != nil || got != test.want {
				t.Errorf("the login is %q %q %q %q, %v", got.User, got.Password, got.IdentityToken, got.Hint, err)
			}
		})
	}
}

func TestAnErrorHoldsNoPassword(t *testing.T) {
	for name, test := range map[string]struct {
		netrc, auth, user, want string
	}{
		"a command": {
			netrc: "\nmachine h login a password $(echo s3cr3t)",
			want:  "line 2: the password is a command, which is not run: put what it prints into a variable, and write $NAME",
		},
		"a command without an end": {
			netrc: "machine h login a password $(echo s3cr3t", want: "line 1: the password is a command, which is not run",
		},
		"a variable that is not set": {
			netrc: "machine h login a password $s3cr3t", want: "the password is a variable that is not set in the job's environment",
		},
		"a variable that is empty": {
			netrc: "machine h login a password $EMPTY", want: "the password is a variable that is not set in the job's environment",
		},
		"a dollar sign before a text": {
			netrc: "machine h login a password $s3cr3t!",
			want:  "the password begins with a dollar sign, but is no name of a variable: write $NAME or ${NAME}",
		},
		"braces without an end": {
			netrc: "machine h login a password ${s3cr3t", want: "the password begins with a dollar sign, but is no name of a variable",
		},
		"a password of two words": {
			netrc: "machine h login a\npassword x s3cr3t", want: "line 2: a word is none of machine, login and password",
		},
		"a file that begins with a word": {
			netrc: "password s3cr3t", want: `line 1: "password" stands before the first machine: begin the file with "machine HOST"`,
		},
		"a word without a value": {
			netrc: "machine h login a password", want: `line 1: the last word "password" has nothing after it: add its value, or remove it`,
		},
		"no login of the user": {
			netrc: "machine h login a password s3cr3t", user: "b",
			want: `there is no password for the user before the @ at h:5000: add "machine h login USER password PASSWORD" to `,
		},
		"a file that is no JSON": {
			auth: "{s3cr3t", want: `it is no JSON of the form {"auths": {"HOST": {"auth": "…"}}}: log in again with podman or docker`,
		},
		"a login that is not base64": {
			auth: `{"auths":{"h:5000":{"auth":"s3cr3t!"}}}`, want: "the entry of h:5000: auth is not base64: log in again with podman or docker",
		},
		"a login without a colon": {
			auth: `{"auths":{"h:5000":{"auth":"czNjcjN0"}}}`, want: "auth is not USER:PASSWORD in base64: log in again with podman or docker",
		},
		"a file that is too long": {
			netrc: strings.Repeat("#", 1<<20+1), want: "has more than 1048576 bytes, so that it is no file of logins: remove it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := load(t, test.netrc, test.auth)
			if err == nil {
				_, err = store.Find("h:5000", "team/app", test.user)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("the error is\n%v, not\n%s", err, test.want)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

func TestALoginIsNotPrinted(t *testing.T) {
	c := credentials.Credentials{User: "alice", Password: secret, IdentityToken: secret}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x"} {
		for _, value := range []any{c, &c, []credentials.Credentials{c}} {
			if text := fmt.Sprintf(format, value); strings.Contains(text, secret) || strings.Contains(text, "alice") {
				t.Errorf("%s prints %s", format, text)
			}
		}
	}
	if text := fmt.Sprint(credentials.Credentials{}); text != "no login" {
		t.Errorf("nobody's login is printed as %s", text)
	}
}

func TestAFileThatOthersCanReadIsReported(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ".credentials")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode][]string{
		0o600: nil,
		0o640: {"others can read your logins in " + path + ": run chmod 600 " + path},
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		store, err := credentials.Load(credentials.Locations{Netrc: path}, job)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, store.Warnings()); diff != "" {
			t.Errorf("mode %o has other warnings (-want +got):\n%s", mode, diff)
		}
	}
	_, err := credentials.Load(credentials.Locations{Netrc: dir}, job)
	if err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("the error of a directory is %v", err)
	}
}

func TestFilesAreWhereTheProgramsHaveThem(t *testing.T) {
	for name, test := range map[string]struct {
		environment map[string]string
		want        credentials.Locations
	}{
		"with nothing but a home": {
			map[string]string{"XDG_RUNTIME_DIR": ""},
			credentials.Locations{Netrc: "/h/.config/enroot/.credentials", AuthFiles: []string{
				"/h/.config/containers/auth.json", "/h/.docker/config.json",
			}},
		},
		"with every variable": {
			map[string]string{
				"XDG_CONFIG_HOME": "/c", "ENROOT_CONFIG_PATH": "/e", "REGISTRY_AUTH_FILE": "/f.json",
				"XDG_RUNTIME_DIR": "/r", "DOCKER_CONFIG": "/d",
			},
			credentials.Locations{Netrc: "/e/.credentials", AuthFiles: []string{
				"/f.json", "/r/containers/auth.json", "/c/containers/auth.json", "/d/config.json",
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := credentials.Locate("/h", func(name string) (string, bool) { value, set := test.environment[name]; return value, set })
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the files are elsewhere (-want +got):\n%s", diff)
			}
		})
	}
}
