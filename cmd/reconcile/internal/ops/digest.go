package ops

import (
	"context"
	"time"

	"reconcile.dev/reconcile/controllers"
)

// DigestRequest requests a summary of clarifications.
type DigestRequest struct {
	Since time.Time // those created since; the zero time: all
}

// Digest returns the controllers.Digest of the clarifications that were created since the time of a DigestRequest.
func Digest(ctx context.Context, env Env, q DigestRequest) (controllers.Digest, error) {
	s, t, err := env.load(ctx)
	if err != nil {
		return controllers.Digest{}, typed(err)
	}
	defer s.Close()
	return controllers.NewDigest(t, q.Since, env.Tree.Now()), nil
}
