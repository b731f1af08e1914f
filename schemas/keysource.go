package schemas

import (
	"regexp"
	"strings"
)

// KeySource says where the key of a model's service is. A spec never has the key itself. Exactly one field is set.
type KeySource struct {
	// Env names the variable of reconcile's own environment that has the key: one called RECONCILE_… or …_API_KEY.
	Env string `json:"env,omitempty" jsonschema:"maxLength=200,example=ANTHROPIC_API_KEY"`
	// File is a file with the key and nothing else, which only its owner can read: an absolute path, one that begins with ~/, or
	// one below the root of the tree that git ignores.
	File string `json:"file,omitempty" jsonschema:"maxLength=1000,example=~/.config/reconcile/anthropic.key"`
}

// String is where the key is, in words.
func (k KeySource) String() string {
	if k.File != "" {
		return "the file " + k.File
	}
	return k.Env
}

// check reports a source that is missing or double, and a variable that no tree may name. What stands there by mistake may be
// the key: it is not repeated.
func (k *KeySource) check(at Spot) {
	switch {
	case k == nil:
	case k.Env == "" && k.File == "":
		at.Errorf("missing", "says neither env nor file").Suggest("write env and the name of the variable that has the key")
	case k.Env != "" && k.File != "":
		at.Errorf("conflict", "the key is either in a variable or in a file")
	case k.Env != "" && !isEnvName(k.Env):
		at.At("env").Errorf("bad-env", "this is no name for an environment variable; use letters, digits and _, no digit first").
			Suggest("put the key into a variable, and write the variable's name here")
	case k.Env != "" && !IsKeyVariable(k.Env):
		at.At("env").Errorf("bad-env", "only variables called RECONCILE_… or …_API_KEY can be named").
			Suggest("put the key into one of these")
	case k.File != "":
		k.checkFile(at.At("file"))
	}
}

func (k *KeySource) checkFile(at Spot) {
	if rest, home := strings.CutPrefix(k.File, "~/"); home || isAbsolute(k.File) {
		if rest == "" || strings.Contains("/"+strings.ReplaceAll(k.File, `\`, "/")+"/", "/../") {
			at.Errorf("bad-path", "is not the path of a file without ..")
		}
		checkLine(at, k.File)
		return
	}
	checkPath(at, k.File, writes)
}

// HTTPRunner asks a model at an HTTP endpoint, in this process: one request, or several with tools.
type HTTPRunner struct {
	// BaseURL is the address of the endpoint, as https://api.openai.com/v1 (/chat/completions is below it) or
	// https://api.anthropic.com (/v1/messages is). Other machines than this one need https. Unless it is on this machine and gets
	// no key, or is the provider's own and gets the provider's own variable, each user has to allow it: reconcile allow.
	BaseURL string `json:"baseURL" jsonschema:"minLength=1,maxLength=500,example=https://api.openai.com/v1"`
	// Wire is the protocol: openai (Chat Completions, which most other services and local servers speak, too) or anthropic
	// (Messages). Default openai.
	Wire string `json:"wire,omitempty" jsonschema:"enum=openai,enum=anthropic,default=openai"`
	// Model is the model to ask. Default: that of the agent.
	Model string `json:"model,omitempty" jsonschema:"maxLength=200"`
	// KeyFrom says where the key is. Default: no key is sent.
	KeyFrom *KeySource `json:"keyFrom,omitempty"`
	// Tools says what the model may do: none, read (list, search and read files of its workspace) or write (also write them, in a
	// workspace of its own). Default none: one request.
	Tools string `json:"tools,omitempty" jsonschema:"enum=none,enum=read,enum=write,default=none"`
	// MaxRequests bounds the requests of a turn with tools. Default 30.
	MaxRequests int `json:"maxRequests,omitempty" jsonschema:"minimum=1,maximum=1000,default=30"`
	// MaxTokens bounds the length of each answer of the model, in tokens. Default 8192.
	MaxTokens int `json:"maxTokens,omitempty" jsonschema:"minimum=1,maximum=1000000,default=8192"`
	// Timeout ends a run. Default 10m.
	Timeout *Duration `json:"timeout,omitempty" jsonschema:"default=10m"`
	// Silence ends a turn whose endpoint has sent nothing for that long. Default 5m.
	Silence *Duration `json:"silence,omitempty" jsonschema:"default=5m"`
}

// Protocols of endpoints for models.
const (
	WireOpenAI    = "openai"
	WireAnthropic = "anthropic"
)

// What an HTTP runner's model may do.
const (
	ToolsNone  = "none"
	ToolsRead  = "read"
	ToolsWrite = "write"
)

func (h *HTTPRunner) defaults() {
	orDefault(&h.Wire, WireOpenAI)
	orDefault(&h.Tools, ToolsNone)
	orDefault(&h.MaxRequests, 30)
	orDefault(&h.MaxTokens, 8192)
	orNew(&h.Timeout, DefaultRunTimeout)
	orNew(&h.Silence, DefaultSilence)
}

func (h *HTTPRunner) check(r *Report, model string) {
	at := r.At("runner", "http")
	checkEndpoint(at.At("baseURL"), h.BaseURL)
	checkLine(at.At("model"), h.Model)
	if h.Model == "" && model == "" {
		at.Errorf("missing", "names no model").Suggest("add model: and its name")
	}
	h.KeyFrom.check(at.At("keyFrom"))
	checkTimeout(at.At("timeout"), h.Timeout)
	checkTimeout(at.At("silence"), h.Silence)
}

// checkEndpoint reports an address to which no key may be sent. It may have the key in it by mistake and is not repeated then.
func checkEndpoint(at Spot, address string) {
	if !IsEndpoint(address) {
		at.Errorf("bad-url", "is not an address that begins with https:// (or with http://, on this machine) and has neither a "+
			"user name nor a query in it")
	}
}

// Price is what a model costs, in US dollars for a million tokens.
type Price struct {
	// Input and output are the prices of tokens that are read and written.
	Input  float64 `json:"input" jsonschema:"minimum=0,maximum=1000000"`
	Output float64 `json:"output" jsonschema:"minimum=0,maximum=1000000"`
	// Cached is the price of input that comes from a cache, cacheWrite of input that is written to one. Default: that of input.
	Cached     *float64 `json:"cached,omitempty" jsonschema:"minimum=0,maximum=1000000"`
	CacheWrite *float64 `json:"cacheWrite,omitempty" jsonschema:"minimum=0,maximum=1000000"`
	// Above is the number of tokens of input from which a request has the prices in long.
	Above int64      `json:"above,omitempty" jsonschema:"minimum=1,maximum=1000000000"`
	Long  *LongPrice `json:"long,omitempty"`
}

// LongPrice is the price of requests with more input than a bound.
type LongPrice struct {
	Input      float64  `json:"input" jsonschema:"minimum=0,maximum=1000000"`
	Output     float64  `json:"output" jsonschema:"minimum=0,maximum=1000000"`
	Cached     *float64 `json:"cached,omitempty" jsonschema:"minimum=0,maximum=1000000"`
	CacheWrite *float64 `json:"cacheWrite,omitempty" jsonschema:"minimum=0,maximum=1000000"`
}

// modelPattern is what a price is for: the name of a model, with * for the rest of it.
var modelPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]*\*?$`)

func checkPrices(r *Report, prices map[string]Price) {
	for name, p := range prices {
		at := r.At("prices", name)
		if !modelPattern.MatchString(name) {
			at.Errorf("bad-name", "%q is not the name of a model, or its beginning and *", name)
		}
		if (p.Above > 0) != (p.Long != nil) {
			at.Errorf("missing", "above and long need each other")
		}
	}
}
