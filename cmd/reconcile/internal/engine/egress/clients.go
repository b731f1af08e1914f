package egress

import (
	"cmp"
	"os"
	"path/filepath"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/embedhttp"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/vectors/embed"
)

// GitHubToken is the token of the environment, "" if there is none.
func (p Policy) GitHubToken() string {
	return cmp.Or(p.Getenv(TokenVariable), p.Getenv(OtherToken))
}

// GitHub returns a client of a repository as the settings say. Answers are cached below .reconcile/ of the tree in dir;
// dry is given the calls that would change something, nil has them sent.
func (p Policy) GitHub(dir string, s *schemas.GitHubSettings, repo string, dry func(github.Call)) (*github.Client, error) {
	pace := s.Pace.Std()
	if pace == 0 {
		pace = -time.Nanosecond // none, where zero is the default
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

// embeddingsLimit is how many bytes of vectors are kept that an endpoint made, so that none is asked for twice.
const embeddingsLimit = 2 << 30

// Embedder returns what makes vectors as the settings say; nil is the built-in embedder. denied says why the endpoint may
// not be asked; nil: it may, or there is none. warn is called with what the endpoint lacks or refuses.
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
