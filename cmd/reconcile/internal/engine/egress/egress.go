// Package egress controls which data leaves this machine: the addresses that the user allows the settings of trees to
// name, and the clients for them.
package egress

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/allowlist"
	"reconcile.dev/reconcile/cmd/reconcile/internal/embedhttp"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/vectors/embed"
)

// The environment variables with GitHub's token: the one of GitHub's workflows, and the one of gh.
const (
	TokenVariable = schemas.GitHubTokenVariable
	OtherToken    = "GH_TOKEN"
)

// Policy decides where this process may send data.
type Policy struct {
	Getenv func(string) string
}

// AllowVariable lists addresses, separated by commas, that this process may send to.
const AllowVariable = "RECONCILE_ALLOW"

// Allowed returns the user's allowlist.
func (p Policy) Allowed() (*allowlist.List, error) {
	dir, err := os.UserConfigDir()
	if err == nil {
		dir = filepath.Join(dir, "reconcile")
	} // without a folder the list is empty and read-only
	return allowlist.Open(dir, p.Getenv(AllowVariable))
}

// DeniedError says why nothing is sent to an address of the settings, and what to do.
type DeniedError struct {
	text     string
	reported atomic.Bool
}

func (e *DeniedError) Error() string { return e.text }

// FirstReport reports whether this is its first call. One denial is the cause of several warnings.
func (e *DeniedError) FirstReport() bool { return !e.reported.Swap(true) }

// Check returns a *DeniedError if the destination is not allowed.
func (p Policy) Check(d schemas.Destination) error {
	if err := CheckVariable(d); err != nil {
		return err
	}
	list, err := p.Allowed()
	if err != nil {
		return err
	}
	if list.Allows(d) || Free(d) {
		return nil
	}
	with := ""
	switch {
	case d.Env != "":
		with = fmt.Sprintf(" with the value of %s", d.Env)
	case d.File != "":
		with = fmt.Sprintf(" with the key in %s", d.File)
	}
	return &DeniedError{text: fmt.Sprintf("%s: %s has %s sent to %s%s, which you have not allowed: nothing is sent; if you trust it, "+
		"run \"reconcile allow\"", cmp.Or(d.In, schemas.SettingsPath), d.Setting, d.What, d.URL, with)}
}

// providers are the addresses of services of models, and the variables that hold their own keys.
var providers = map[string][]string{
	"https://api.anthropic.com":                               {"ANTHROPIC_API_KEY"},
	"https://api.anthropic.com/v1":                            {"ANTHROPIC_API_KEY"},
	"https://api.openai.com/v1":                               {"OPENAI_API_KEY"},
	"https://generativelanguage.googleapis.com":               {"GEMINI_API_KEY", "GOOGLE_API_KEY"},
	"https://generativelanguage.googleapis.com/v1beta/openai": {"GEMINI_API_KEY", "GOOGLE_API_KEY"},
	"https://dashscope-intl.aliyuncs.com/compatible-mode/v1":  {"DASHSCOPE_API_KEY"},
}

// Free reports whether an agent's prompts may be sent to a destination without permission: a service of models that gets its own key
// from the variable that is named for it, and this machine, which gets no key. Another program here could take a key.
func Free(d schemas.Destination) bool {
	switch {
	case !strings.HasPrefix(d.In, "agent/") || d.File != "":
		return false
	case d.Env == "":
		return schemas.IsLocal(d.URL)
	}
	return slices.Contains(providers[d.URL], d.Env)
}

// CheckVariable returns a *DeniedError if a destination would get a variable that settings must not name.
func CheckVariable(d schemas.Destination) error {
	if d.Env == "" || d.Env == schemas.GitHubTokenVariable || schemas.IsKeyVariable(d.Env) {
		return nil
	}
	field := "index.apiKeyEnv"
	if d.In != "" {
		field = "keyFrom.env"
	}
	return &DeniedError{text: fmt.Sprintf("%s: %s names %s, and only variables called RECONCILE_… or …_API_KEY can be "+
		"named: nothing is sent; put the key into one of these", cmp.Or(d.In, schemas.SettingsPath), field, d.Env)}
}

// GitHubToken returns the token for GitHub from the policy's environment variables, or "".
func (p Policy) GitHubToken() string {
	return cmp.Or(p.Getenv(TokenVariable), p.Getenv(OtherToken))
}

// GitHub returns a github.Client for a repository at the address in the settings that the policy allows, with the token
// and the pace. Responses are cached below .reconcile/ of the tree in dir. dry is called with each write instead of
// sending it; nil sends writes.
func (p Policy) GitHub(dir string, s *schemas.GitHubSettings, repo string, dry func(github.Call)) (*github.Client, error) {
	pace := s.Pace.Std()
	if pace == 0 {
		pace = -time.Nanosecond // no pause; zero means the default
	}
	address := p.Getenv("GITHUB_API_URL")
	if d, ok := s.Destination(); ok && d.URL != schemas.CanonicalAddress(address) {
		if err := p.Check(d); err != nil {
			return nil, err
		}
		address = s.BaseURL
	}
	return github.New(github.Options{
		Repo: repo, Token: p.GitHubToken(), BaseURL: address, Pace: pace, Dry: dry,
		Cache: filepath.Join(dir, ".reconcile", "cache", "github"), UserAgent: "reconcile/" + process.ReadBuild().Version,
	})
}

// embeddingsLimit is the size of the cache for vectors of an endpoint, in bytes.
const embeddingsLimit = 2 << 30

// Embedder returns the embed.Embedder of the index settings at an endpoint that the policy allows; nil means the
// built-in one. denied says why the endpoint is not allowed; otherwise nil. warn is called with errors
// of the endpoint.
func (p Policy) Embedder(root *os.Root, x schemas.IndexSettings, warn func(error)) (e embed.Embedder, denied, err error) {
	if x.Embedder != schemas.EmbedderOpenAI {
		return nil, nil, nil
	}
	d, _ := x.Destination()
	key := ""
	if denied = p.Check(d); denied == nil {
		key = p.Getenv(x.APIKeyEnv)
	}
	e, err = embedhttp.New(embedhttp.Options{
		Endpoint: x.Endpoint, Model: x.Model, Dimensions: x.Dimensions, Key: key, Refused: denied, Batch: x.Batch,
		RequestsPerMinute: x.RequestsPerMinute, UserAgent: "reconcile", Warn: warn,
		Cache: embedhttp.NewCache(root, ".reconcile/cache/embeddings", embeddingsLimit),
	})
	return e, denied, err
}
