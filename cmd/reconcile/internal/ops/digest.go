package ops

import (
	"context"
	"time"

	"reconcile.dev/reconcile/controllers"
)

// DigestRequest asks for the clarifications that were created in a time.
type DigestRequest struct {
	Since time.Time // the zero time: all
}

// Digest summarizes the clarifications of a time, up to now.
func Digest(ctx context.Context, env Env, q DigestRequest) (controllers.Digest, error) {
	s, t, err := env.load(ctx)
	if err != nil {
		return controllers.Digest{}, typed(err)
	}
	defer s.Close()
	return controllers.NewDigest(t, q.Since, env.Tree.Now()), nil
}
