package schemas

import (
	"net/netip"
	"net/url"
	"strings"
)

// Destination is an address that settings, or the spec of an agent, have data sent to. A tree may come from anybody, so a user allows a destination
// before anything is sent there.
type Destination struct {
	// Setting is the path of the setting that names the address, as index.endpoint.
	Setting string
	// URL is the address in its canonical form, see [CanonicalAddress].
	URL string
	// Env is the environment variable whose value is sent along as a bearer token; "" if none is.
	Env string
	// File is the file whose content is sent along as a key, as a spec names it; "" if none is.
	File string
	// In is the object that has the setting, as agent/coder; "" is the settings.
	In string
	// What describes in a few words the data that is sent.
	What string
}

// GitHubTokenVariable is the variable that holds the token for GitHub's API.
const GitHubTokenVariable = "GITHUB_TOKEN"

// Destinations returns the destinations to which the settings have data sent, of the index and of GitHub. The git remote and
// GitHub itself are not among them.
func (s *SettingsSpec) Destinations() []Destination {
	var out []Destination
	if d, ok := s.Index.Destination(); ok {
		out = append(out, d)
	}
	if d, ok := s.GitHub.Destination(); ok {
		out = append(out, d)
	}
	return out
}

// Destination returns the endpoint to which the embedder of the index sends the texts of the tree; false if it is the
// built-in one.
func (x *IndexSettings) Destination() (Destination, bool) {
	if x.Embedder != EmbedderOpenAI || x.Endpoint == "" {
		return Destination{}, false
	}
	return Destination{Setting: "index.endpoint", URL: CanonicalAddress(x.Endpoint), Env: x.APIKeyEnv, What: "texts of the tree"}, true
}

// Destination returns the base URL of GitHub's API as a destination of statuses and comments; false if the settings have
// none.
func (g *GitHubSettings) Destination() (Destination, bool) {
	if g.BaseURL == "" {
		return Destination{}, false
	}
	return Destination{Setting: "github.baseURL", URL: CanonicalAddress(g.BaseURL), Env: GitHubTokenVariable,
		What: "statuses and comments"}, true
}

// CanonicalAddress returns an address with scheme and host in lower case and without a slash at its end, so that two
// ways to write it are equal. Other text is returned unchanged.
func CanonicalAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return address
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	return strings.TrimRight(u.String(), "/")
}

func isAddress(s string) bool {
	rest, https := strings.CutPrefix(s, "https://")
	if !https {
		var http bool
		if rest, http = strings.CutPrefix(s, "http://"); !http {
			return false
		}
	}
	return rest != "" && rest[0] != '/' && !strings.ContainsAny(rest, " @\t\n\r\"<>\\")
}

// IsEndpoint reports whether address is a URL to which texts and keys may be sent: https, or http to localhost or a loopback
// address.
func IsEndpoint(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && isLocalHost(u.Hostname())
}

// IsLocal reports whether the host of address is this machine: localhost or a loopback address.
func IsLocal(address string) bool {
	u, err := url.Parse(address)
	return err == nil && isLocalHost(u.Hostname())
}

func isLocalHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}
