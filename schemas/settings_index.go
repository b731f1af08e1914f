package schemas

import (
	"strings"
)

// IndexSettings says what search indexes, and what makes its vectors.
type IndexSettings struct {
	// Embedder makes vectors of texts: builtin needs neither a network nor a model, openai asks an endpoint that speaks as
	// OpenAI's does (Ollama, llama.cpp and vLLM do, too). Default builtin.
	Embedder string `json:"embedder,omitempty" jsonschema:"enum=builtin,enum=openai,default=builtin"`
	// Endpoint is the address that /embeddings is below, for openai: https://api.openai.com/v1, or
	// http://localhost:11434/v1. Other machines than this one need https. Each user has to allow it: reconcile allow.
	Endpoint string `json:"endpoint,omitempty" jsonschema:"maxLength=500"`
	// Model is the model that the endpoint is asked for.
	Model string `json:"model,omitempty" jsonschema:"maxLength=200"`
	// Dimensions is how many numbers a vector has. With openai it must be what the model gives. Default 768.
	Dimensions int `json:"dimensions,omitempty" jsonschema:"minimum=1,maximum=4096,default=768"`
	// M is how many links a vector gets to near ones, once there are so many vectors that a search follows links instead of
	// comparing with each; twice as many are kept. More find more, and take more memory and time. Default 16.
	M int `json:"m,omitempty" jsonschema:"minimum=2,maximum=128,default=16"`
	// EfConstruction is how many candidates the links of a vector are chosen from when the index is built. Default 144.
	EfConstruction int `json:"efConstruction,omitempty" jsonschema:"minimum=1,maximum=4096,default=144"`
	// EfSearch is how many candidates a search keeps: more find more and take longer. Default: as many as a build measures
	// to be needed to find 95 of 100 of the nearest vectors, at least 64.
	EfSearch int `json:"efSearch,omitempty" jsonschema:"minimum=1,maximum=4096"`
	// EfThorough is the same for a search with --thorough, where it is more than efSearch. Default: as many as it takes to
	// find 99 of 100, at least 192.
	EfThorough int `json:"efThorough,omitempty" jsonschema:"minimum=1,maximum=4096"`
	// APIKeyEnv names the environment variable that holds the key for the endpoint: one called RECONCILE_… or …_API_KEY.
	// Default: no key is sent.
	APIKeyEnv string `json:"apiKeyEnv,omitempty" jsonschema:"maxLength=200"`
	// Batch is how many texts the endpoint is asked for at once. Default 64.
	Batch int `json:"batch,omitempty" jsonschema:"minimum=1,maximum=2048,default=64"`
	// RequestsPerMinute is how many requests the endpoint gets in a minute; 0 means as many as it answers. Default 0.
	RequestsPerMinute int `json:"requestsPerMinute,omitempty" jsonschema:"minimum=0,maximum=100000,default=0"`
	// Exclude lists globs of files that are not indexed, in addition to those that .gitignore names.
	Exclude []string `json:"exclude,omitempty" jsonschema:"maxItems=1000"`
	// MaxFileSize is the largest file that is indexed, in bytes. Default 1 MiB.
	MaxFileSize int `json:"maxFileSize,omitempty" jsonschema:"minimum=1024,maximum=67108864,default=1048576"`
}

// EmbedderOpenAI is the embedder that asks an endpoint.
const EmbedderOpenAI = "openai"

func (x *IndexSettings) defaults() {
	orDefault(&x.Embedder, "builtin")
	orDefault(&x.Dimensions, 768)
	orDefault(&x.M, 16)
	orDefault(&x.EfConstruction, 144)
	orDefault(&x.Batch, 64)
	orDefault(&x.MaxFileSize, 1<<20)
}

func (x *IndexSettings) check(r *Report) {
	checkGlobs(r, x.Exclude, "index", "exclude")
	if x.Endpoint != "" && !IsEndpoint(x.Endpoint) {
		r.At("index", "endpoint").Errorf("bad-url", "%q is not an address that begins with https:// (or with http://, on "+
			"this machine) and has neither a user name nor a query in it", x.Endpoint)
	}
	checkLine(r.At("index", "model"), x.Model)
	if n := x.APIKeyEnv; n != "" && !isEnvName(n) {
		// What stands here by mistake may be the key itself: it is not repeated.
		r.At("index", "apiKeyEnv").Errorf("bad-env", "this is no name for an environment variable; use letters, digits and "+
			"_, no digit first").suggest("put the key into a variable, and write the variable's name here")
	} else if n != "" && !IsKeyVariable(n) {
		r.At("index", "apiKeyEnv").warnf("no-effect", "%s is never sent: only variables called RECONCILE_… or …_API_KEY "+
			"can be named, and search goes by words until then", n).suggest("put the key into RECONCILE_EMBEDDING_KEY, say")
	}
	if x.Embedder != EmbedderOpenAI {
		return
	}
	if x.Endpoint == "" {
		r.At("index", "embedder").Errorf("missing", "openai needs an endpoint").suggest("add endpoint: https://…/v1")
	}
	if strings.TrimSpace(x.Model) == "" {
		r.At("index", "embedder").Errorf("missing", "openai needs a model").suggest("add model: and its name")
	}
}

// IsKeyVariable reports whether settings may name the environment variable as that of a key: it begins with RECONCILE_ or
// ends in _API_KEY. Those of other programs hold secrets that no tree has to do with.
func IsKeyVariable(name string) bool {
	return strings.HasPrefix(name, "RECONCILE_") && name != "RECONCILE_" ||
		strings.HasSuffix(name, "_API_KEY") && name != "_API_KEY"
}
