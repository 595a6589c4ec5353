// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/node/image/registry/credentials"
)

// TestAnErrorOfTheNetworkIsASentence has the errors that no server on this machine makes.
func TestAnErrorOfTheNetworkIsASentence(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		reason Reason
		want   string
	}{
		"a name that does not exist": {&net.DNSError{Name: "reg.test", IsNotFound: true}, Unreachable,
			"the host name reg.test of image reg.test/a:1 cannot be resolved: check its spelling and the node's DNS"},
		"a storage whose name does not exist": {&hostError{"storage.test", &net.DNSError{Name: "storage.test", IsNotFound: true}}, Unreachable,
			"the host name storage.test of image reg.test/a:1 cannot be resolved: check its spelling and the node's DNS"},
		"a certificate that has expired": {x509.CertificateInvalidError{Reason: x509.Expired}, Untrusted,
			"the certificate of reg.test for image reg.test/a:1 is not trusted, since it has expired or is not valid yet: " +
				"check the node's clock, and ask the registry's administrator"},
		"a certificate for something else": {x509.CertificateInvalidError{Reason: x509.IncompatibleUsage}, Untrusted,
			"the certificate of reg.test for image reg.test/a:1 is not trusted, since it is not valid: ask the registry's administrator"},
		"a certificate that a system does not take": {&tls.CertificateVerificationError{Err: errors.New("x")}, Untrusted,
			"the certificate of reg.test for image reg.test/a:1 is not trusted, since its authority is unknown: " +
				"put the authority's certificate into SSL_CERT_DIR"},
		"an old TLS": {tls.AlertError(70), Untrusted,
			"the certificate of reg.test for image reg.test/a:1 is not trusted, " +
				"since the handshake of TLS is refused: check that it speaks TLS 1.2 or newer"},
		"no TLS": {tls.RecordHeaderError{Msg: "x"}, Untrusted,
			"reg.test does not speak HTTPS for image reg.test/a:1: check the port"},
		"no answer": {&hostError{"reg.test", os.ErrDeadlineExceeded}, Unreachable,
			"reg.test does not answer to requests for image reg.test/a:1: try again later, or check the node's network"},
		"a limit": {&statusError{"reg.test", http.StatusTooManyRequests, 1, time.Hour}, RateLimited,
			"reg.test limits requests and does not hand out image reg.test/a:1 (429): try again in 1h0m0s"},
		"something else": {errors.New("malformed"), Unreachable,
			"the answer of reg.test for image reg.test/a:1 cannot be understood: check that it is a registry"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &source{host: "reg.test", image: "reg.test/a:1", login: credentials.Credentials{Password: "x"}}
			err := s.explain(t.Context(), fmt.Errorf("wrapped: %w", test.err))
			e, is := errors.AsType[*Error](err)
			if !is || e.Reason != test.reason || err.Error() != test.want || !errors.Is(err, test.err) {
				t.Errorf("the error is %+v:\n%v", e, err)
			}
			if again := s.explain(t.Context(), err); !errors.Is(again, err) {
				t.Errorf("an error that is explained becomes %v", again)
			}
		})
	}
}

func TestAJitterKeepsNodesApart(t *testing.T) {
	different := map[time.Duration]bool{}
	for attempt := 1; attempt < 100; attempt++ {
		d := backoff(attempt)
		different[d] = true
		if longest := min(firstDelay<<min(attempt-1, 8), maxDelay); d < longest/2 || d >= longest {
			t.Errorf("attempt %d is followed by a wait of %v", attempt, d)
		}
	}
	if len(different) < 50 {
		t.Errorf("there are only %d waits", len(different))
	}
}

func TestABodyIsSentAgain(t *testing.T) {
	request := func(body io.Reader) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://reg.test", body)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	text := request(http.NoBody)
	text.Body, text.GetBody = io.NopCloser(nil), func() (io.ReadCloser, error) { return http.NoBody, nil }
	if again, err := rewound(text); err != nil || again.Body != http.NoBody {
		t.Errorf("the body is %v, %v", again, err)
	}
	text.GetBody = nil
	if _, err := rewound(text); err == nil {
		t.Error("a body that is gone is sent again")
	}
	if again, err := rewound(request(nil)); err != nil || again == nil {
		t.Errorf("a request without a body is not sent again: %v", err)
	}
}
