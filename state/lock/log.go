package lock

import (
	"context"
	"log/slog"
	"time"
)

// began is when something began that is logged with its duration; zero when nothing is logged.
func (o Options) began() time.Time {
	if o.Log == nil || !o.Log.Enabled(context.Background(), slog.LevelDebug) {
		return time.Time{}
	}
	return o.Now()
}

// log tells what was done with the lock of a file and how long it took, since what began returned: agentx-spec 12.3.
func (o Options) log(what, path string, since time.Time, err error) {
	if since.IsZero() {
		return
	}
	took := float64(o.Now().Sub(since).Microseconds()) / 1000
	attrs := []slog.Attr{slog.String("filePath", path), slog.String("agent", o.Agent), slog.Float64("durationMs", took)}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	o.Log.LogAttrs(context.Background(), slog.LevelDebug, what, attrs...)
}
