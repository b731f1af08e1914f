package runner

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"os"
	"path"
	"path/filepath"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// tokenVar is the environment variable with the token of a run: a random text that only the run's own processes know. The digest of
// it is in a file while the run lives.
const tokenVar = "RECONCILE_RUN_TOKEN"

func tokenName(key string) string { return path.Base(state.TokenFile(key)) }

// issueToken makes the token of the run of an agent. It appears in no output. A run without an agent acts as no one, and needs none.
func (a *attempt) issueToken() error {
	if a.job.effect.Agent == "" {
		return nil
	}
	a.token = rand.Text()
	a.runner.secrets.hide(a.token)
	return a.writeWork(tokenName(a.job.effect.Key), []byte(digestToken(a.token)))
}

func digestToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// impostor reports whether a process that says it belongs to a run of the tree in dir does not have the token of that run. Of a run that
// has ended, and of one that an earlier version started, there is no token to compare.
func impostor(dir, key, token string) bool {
	if checkKey(key) != nil {
		return key != ""
	}
	want, err := regular.ReadPath(filepath.Join(dir, filepath.FromSlash(state.TokenFile(key))))
	if err != nil {
		return !os.IsNotExist(err)
	}
	return subtle.ConstantTimeCompare(want, []byte(digestToken(token))) != 1
}
