package schemas

import "time"

// BreakerSettings says when an agent gets no work for a while, since its runs fail for a reason that is not the work: its service fails,
// refuses the key or the login, or falls silent.
type BreakerSettings struct {
	// Failures is how many runs of an agent fail so in a row before it gets no work; 0: it always does. Default 5.
	Failures *int `json:"failures,omitempty" jsonschema:"minimum=0,maximum=1000,default=5"`
	// Wait is the time until one run is tried again. It doubles with each try that fails, up to an hour. Default 1m.
	Wait *Duration `json:"wait,omitempty" jsonschema:"default=1m"`
}

func (b *BreakerSettings) defaults() {
	orNew(&b.Failures, 5)
	orNew(&b.Wait, Duration(time.Minute))
}
