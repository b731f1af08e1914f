package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// The detector of secrets runs the rules of gitleaks. They are read from its module, which is downloaded but is not
// a dependency of this one: nothing of it is linked.
const (
	gitleaksModule = "github.com/zricethezav/gitleaks/v8@v8.30.1"
	gitleaksSum    = "h1:PmEvCfVI7ti9dV3s5aMZUY7sS2GxRvG3yzih7E+cS3w="
	secretRules    = "schemas/secrets/gitleaks.rules"
	secretLicense  = "schemas/secrets/LICENSE-gitleaks"
)

// errNoModule reports that the module is neither in Go's cache nor available for download.
var errNoModule = errors.New(gitleaksModule + " is not in the module cache: run go mod download " + gitleaksModule)

// gitleaksFiles returns the rules in the detector's form, and their licence. The error is errNoModule if the module is
// not available; with offline it is only searched in the cache.
func gitleaksFiles(offline bool) ([]file, error) {
	dir, err := moduleDir(offline)
	if err != nil {
		return nil, err
	}
	src, err := os.ReadFile(filepath.Join(dir, "config", "gitleaks.toml"))
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(filepath.Join(dir, "LICENSE"))
	if err != nil {
		return nil, err
	}
	rules, err := convertRules(src)
	return []file{{secretRules, rules}, {secretLicense, license}}, err
}

// moduleDir finds the module in Go's cache, or downloads it.
func moduleDir(offline bool) (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", gitleaksModule)
	cmd.Dir = os.TempDir() // outside of this module, whose go.sum it is not to change
	if offline {
		cmd.Env = append(os.Environ(), "GOPROXY=off")
	}
	out, err := cmd.Output()
	var m struct{ Dir, Sum string }
	if err != nil || json.Unmarshal(out, &m) != nil || m.Dir == "" {
		return "", errNoModule
	}
	if m.Sum != gitleaksSum {
		return "", fmt.Errorf("%s has the sum %s, want %s", gitleaksModule, m.Sum, gitleaksSum)
	}
	return m.Dir, nil
}

// gitleaksConfig has the used fields of config/gitleaks.toml.
type gitleaksConfig struct {
	Allowlist gitleaksAllow  `toml:"allowlist"`
	Rules     []gitleaksRule `toml:"rules"`
}

type gitleaksRule struct {
	ID          string          `toml:"id"`
	Regex       string          `toml:"regex"`
	Entropy     float64         `toml:"entropy"`
	SecretGroup int             `toml:"secretGroup"`
	Keywords    []string        `toml:"keywords"`
	Allowlists  []gitleaksAllow `toml:"allowlists"`
}

type gitleaksAllow struct {
	Condition   string   `toml:"condition"`
	Paths       []string `toml:"paths"`
	RegexTarget string   `toml:"regexTarget"`
	Regexes     []string `toml:"regexes"`
	StopWords   []string `toml:"stopwords"`
}

// ownRules replace rules of gitleaks; each of ours finds more in text without a known file name.
var ownRules = []string{
	"private-key", "pkcs12-file", "hashicorp-tf-password", "nuget-config-password", "freemius-secret-key",
	"kubernetes-secret-yaml",
}

// nearRules have no literal that begins every match. They run on the text around a keyword: this many bytes before it
// and after. gitleaks runs them on the whole file that has the keyword anywhere, so that every commit in a file that
// mentions Sourcegraph is a secret.
var nearRules = map[string][2]int{
	"azure-ad-client-secret":    {8, 48},
	"facebook-access-token":     {200, 400},
	"sourcegraph-access-token":  {100, 200},
	"hashicorp-tf-api-token":    {24, 96},
	"maxmind-license-key":       {48, 16},
	"microsoft-teams-webhook":   {80, 400},
	"sidekiq-sensitive-url":     {48, 64},
	"curl-auth-header":          {8, 2048},
	"curl-auth-user":            {8, 2048},
	"jwt-base64":                {8, 4096},
	"slack-config-access-token": {8, 256},
	"slack-webhook-url":         {16, 128},
}

// convertRules converts the rules to the form that package secrets reads: lines of fields between tabs.
//
//	pair   id entropy         shortest longest  names  regular expression of the value
//	token  id entropy group   boundary longest  heads  regular expression, anchored at a head
//	near   id entropy group   before   after    words  regular expression
//
// A group of -1 is the whole match, and 0 the first group that matched anything.
//
//	allow  id target          regular expression of text without a secret; the id * means every rule
//	stop   id words that no secret has in it
func convertRules(src []byte) ([]byte, error) {
	var c gitleaksConfig
	if err := toml.Unmarshal(src, &c); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("# Made from " + gitleaksModule + " by cmd/reconcile/internal/tools/gen; LICENSE-gitleaks applies. Do not edit.\n")
	writeAllow(&b, "*", c.Allowlist)
	slices.SortFunc(c.Rules, func(a, b gitleaksRule) int { return cmp.Compare(a.ID, b.ID) })
	for _, r := range c.Rules {
		if slices.Contains(ownRules, r.ID) {
			continue
		}
		if err := writeRule(&b, r); err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.ID, err)
		}
		for _, a := range r.Allowlists {
			if a.Condition != "AND" && len(a.Paths) == 0 { // texts have no path
				writeAllow(&b, r.ID, a)
			}
		}
	}
	return b.Bytes(), nil
}

func writeAllow(b *bytes.Buffer, id string, a gitleaksAllow) {
	target := cmp.Or(a.RegexTarget, "secret")
	for _, re := range a.Regexes {
		fmt.Fprintf(b, "allow\t%s\t%s\t%s\n", id, target, re)
	}
	if len(a.StopWords) > 0 {
		words := slices.Compact(slices.Sorted(slices.Values(a.StopWords)))
		fmt.Fprintf(b, "stop\t%s\t%s\n", id, strings.Join(words, " "))
	}
}

func writeRule(b *bytes.Buffer, r gitleaksRule) error {
	if strings.Contains(r.Regex, "(?P<") {
		r.SecretGroup = -1 // the groups only tell what matched
	}
	if span, ok := nearRules[r.ID]; ok {
		fmt.Fprintf(b, "near\t%s\t%v\t%d\t%d\t%d\t%s\t%s\n", r.ID, r.Entropy, r.SecretGroup, span[0], span[1],
			strings.Join(r.Keywords, " "), r.Regex)
		return nil
	}
	for _, re := range alternatives(r.Regex) {
		if p, ok := parsePair(re); ok {
			if err := p.write(b, r); err != nil {
				return err
			}
			continue
		}
		t, err := parseToken(re)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "token\t%s\t%v\t%d\t%t\t%d\t%s\t%s\n", r.ID, r.Entropy, r.SecretGroup, t.boundary, t.longest,
			strings.Join(t.heads, " "), re)
	}
	return nil
}
