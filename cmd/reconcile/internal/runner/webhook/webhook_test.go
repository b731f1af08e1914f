package webhook_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/webhook"
	"reconcile.dev/reconcile/state/mutants"
)

// leads is a resolver that has one address for all names.
type leads string

func (to leads) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr(string(to))}, nil
}

func TestSignedRequest(t *testing.T) {
	var got *http.Request
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, "thanks")
	}))
	defer s.Close()
	a, err := webhook.Send(t.Context(), webhook.Request{URL: s.URL + "/x?y=1", Secret: "It's a Secret to Everybody", Delivery: "d1", Body: "Hello, World!", Agent: "r"})
	if err != nil || a.Status != 200 || string(a.Body) != "thanks" {
		t.Fatalf("%+v %v", a, err)
	}
	// The example of GitHub's documentation of its webhooks, which are signed in the same way.
	const want = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	if h := got.Header.Get("Reconcile-Signature-256"); h != want || string(body) != "Hello, World!" {
		t.Errorf("signature %q of %q, want %q", h, body, want)
	}
	if got.Method != "POST" || got.URL.RequestURI() != "/x?y=1" || got.Header.Get("Reconcile-Delivery") != "d1" || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s %v", got.Method, got.URL, got.Header)
	}
	if _, err := webhook.Send(t.Context(), webhook.Request{URL: s.URL}); err != nil || got.Header.Get("Reconcile-Signature-256") != "" {
		t.Errorf("without a secret: %v, signature %q", err, got.Header.Get("Reconcile-Signature-256"))
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	followed := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if followed = followed || r.URL.Path == "/inner"; followed {
			return
		}
		http.Redirect(w, r, "/inner", http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	_, err := webhook.Send(t.Context(), webhook.Request{URL: s.URL + "/secret-path"})
	if err == nil || followed || !strings.Contains(err.Error(), "redirects are not followed") || strings.Contains(err.Error(), "secret-path") {
		t.Errorf("followed=%t %v", followed, err)
	}
}

// TestLocalAddresses: a public name that leads to this machine, to its network or to a carrier's gets nothing, and neither do forms of
// such addresses.
func TestLocalAddresses(t *testing.T) {
	reached := 0
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer s.Close()
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	for _, to := range []string{"127.0.0.1", "::1", "10.1.2.3", "172.16.0.1", "192.168.0.9", "169.254.169.254", "fe80::1", "fd00::1", "0.0.0.0", "::",
		"100.64.0.1", "224.0.0.1", "255.255.255.255", "::ffff:127.0.0.1", "::ffff:10.0.0.1"} {
		_, err := webhook.Send(t.Context(), webhook.Request{URL: "http://hooks.example.com" + port + "/secret-path", Resolver: leads(to)})
		if err == nil || !strings.Contains(err.Error(), "an address of this machine or a private network") || strings.Contains(err.Error(), "secret-path") {
			t.Errorf("%s: %v", to, err)
		}
	}
	if reached > 0 {
		t.Errorf("%d requests arrived", reached)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "hooks.localhost", "build.internal", "BUILD.LAN."} {
		if _, err := webhook.Send(t.Context(), webhook.Request{URL: "http://" + host + port, Resolver: leads("127.0.0.1")}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if reached != 5 {
		t.Errorf("%d requests arrived, want 5", reached)
	}
}

func TestRefusedAddresses(t *testing.T) {
	for _, address := range []string{"", "ftp://example.com/secret-path", "file:///etc/secret-path", "https://name:secret-path@example.com", "https:///secret-path", "http://[::1/secret-path", "gopher://example.com\n"} {
		_, err := webhook.Send(t.Context(), webhook.Request{URL: address})
		if err == nil || strings.Contains(err.Error(), "secret-path") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// TestErrorsHideTheAddress: of an address only the host is in an error, also behind a proxy.
func TestErrorsHideTheAddress(t *testing.T) {
	proxied := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxied = r.URL.Host
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer s.Close()
	proxy, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, err = webhook.Send(t.Context(), webhook.Request{URL: "http://hooks.example.com/secret-path?key=secret-path", Proxy: proxy})
	if err == nil || err.Error() != "hooks.example.com answered 502 Bad Gateway" || proxied != "hooks.example.com" {
		t.Errorf("through %q: %v", proxied, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = webhook.Send(ctx, webhook.Request{URL: s.URL + "/secret-path"}); err == nil || strings.Contains(err.Error(), "secret-path") {
		t.Errorf("%v", err)
	}
}

// faults are those that the tests of this package must notice.
var faults = []mutants.Mutant{
	{"redirects are followed", "webhook.go", "return http.ErrUseLastResponse", "return nil"},
	{"private addresses get requests", "webhook.go", "&& !a.IsPrivate()", ""},
	{"this machine gets requests", "webhook.go", "a.IsGlobalUnicast()", "true"},
	{"a carrier's addresses get requests", "webhook.go", "&& !shared.Contains(a)", ""},
	{"an error has the whole address", "webhook.go", "err = wrapped.Err //", "err = wrapped //"},
	{"the signature is of another text", "webhook.go", "m.Write([]byte(body))", "m.Write([]byte(secret))"},
}

func TestMutants(t *testing.T) {
	mutants.Suite{Mutants: faults}.Run(t)
}
