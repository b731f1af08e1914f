// Package webhook sends signed notifications to addresses that no one has to trust: it follows no redirect, and a name that leads to
// this machine or a private network gets nothing.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
)

// Headers of a request.
const (
	// signatureHeader has sha256= and the HMAC-SHA256 of the body under the secret, in hexadecimal digits.
	signatureHeader = "Reconcile-Signature-256"
	// deliveryHeader has a text that is the same for all attempts to deliver one notification.
	deliveryHeader = "Reconcile-Delivery"
)

// Request is one notification.
type Request struct {
	URL      string
	Secret   string // "": it is not signed
	Delivery string
	Body     string
	Agent    string // the user agent
	// Resolver finds the addresses of a host. Default: the system's.
	Resolver Resolver
	// Proxy is the address of a proxy, which looks names up itself; nil for none.
	Proxy *url.URL
}

// Resolver is the part of a *net.Resolver that finds addresses.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Answer is what the address answered.
type Answer struct {
	Status int
	Body   []byte // its beginning
}

// mostAnswer bounds the part of an answer that is read.
const mostAnswer = 4 << 10

// Send sends a request once. An error never contains the address, which may be a secret, beyond its host.
func Send(ctx context.Context, q Request) (Answer, error) {
	u, err := url.Parse(q.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil {
		return Answer{}, errors.New("the address of the webhook is no URL with https or http")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, q.URL, strings.NewReader(q.Body))
	if err != nil {
		return Answer{}, errors.New("the address of the webhook is no URL with https or http")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", q.Agent)
	req.Header.Set(deliveryHeader, q.Delivery)
	if q.Secret != "" {
		req.Header.Set(signatureHeader, sign(q.Secret, q.Body))
	}
	transport := &http.Transport{DialContext: q.dial(u.Hostname()), ForceAttemptHTTP2: true, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10}
	if q.Proxy != nil {
		transport.Proxy, transport.DialContext = http.ProxyURL(q.Proxy), nil
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err // the rest repeats the address
		}
		return Answer{}, fmt.Errorf("%s cannot be reached: %w", u.Host, err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(res.Body, mostAnswer)) // the status decides
	a := Answer{Status: res.StatusCode, Body: bytes.TrimSpace(body)}
	switch {
	case a.Status >= 300 && a.Status < 400:
		return a, fmt.Errorf("%s answered %s, and redirects are not followed; write the address that it leads to", u.Host, res.Status)
	case a.Status < 200 || a.Status >= 400:
		return a, fmt.Errorf("%s answered %s", u.Host, res.Status)
	}
	return a, nil
}

// sign is the signature of a body.
func sign(secret, body string) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(m.Sum(nil))
}

// dial connects to a host, at the addresses that its name may lead to. The address is checked and used in one step: a name that leads
// elsewhere a moment later changes nothing.
func (q *Request) dial(host string) func(ctx context.Context, network, address string) (net.Conn, error) {
	resolver := q.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		found, err := resolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return nil, err
		}
		var d net.Dialer
		d.Control = func(_, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return checkAddress(host, to.Addr())
		}
		var all error
		for _, a := range found {
			c, err := d.DialContext(ctx, network, net.JoinHostPort(a.Unmap().String(), port))
			if err == nil {
				return c, nil
			}
			all = errors.Join(all, err)
		}
		if all == nil {
			all = errors.New("the name has no address")
		}
		return nil, all
	}
}

// shared is the range of addresses of carriers, which is private, too.
var shared = netip.MustParsePrefix("100.64.0.0/10")

// checkAddress refuses an address of this machine or a private network, unless the host is itself such an address or a name that is
// evidently of one.
func checkAddress(host string, a netip.Addr) error {
	a = a.Unmap().WithZone("")
	public := a.IsGlobalUnicast() && !a.IsPrivate() && !shared.Contains(a)
	if public || isLocalName(host) {
		return nil
	}
	return fmt.Errorf("its name leads to %s, an address of this machine or a private network; write the address itself, or have a command send it", a)
}

// isLocalName reports whether a host is an address, or a name that no public server can have.
func isLocalName(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if !strings.Contains(host, ".") {
		return true
	}
	for _, end := range []string{".localhost", ".local", ".internal", ".lan", ".home.arpa"} {
		if strings.HasSuffix(host, end) {
			return true
		}
	}
	return false
}
