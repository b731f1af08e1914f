package ops

import (
	"context"
	"time"

	"reconcile.dev/reconcile/controllers/digest"
)

// DigestRequest requests a summary of clarifications.
type DigestRequest struct {
	Since time.Time // those created since; the zero time: all
}

// Digest returns the digest.Digest of the clarifications that were created since the time of a DigestRequest.
func Digest(ctx context.Context, env Env, q DigestRequest) (digest.Digest, error) {
	s, t, err := env.load(ctx)
	if err != nil {
		return digest.Digest{}, typed(err)
	}
	defer s.Close()
	return digest.New(t, q.Since, env.Tree.Now()), nil
}
