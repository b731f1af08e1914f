package memory

import (
	"time"

	"reconcile.dev/reconcile/schemas"
)

// Weights say what makes an observation relevant; see [score].
type Weights struct{ Recency, Recall, Keyword, Stale float64 }

// NewWeights returns the weights of recency, recall, keyword and stale from the relevance weights of the settings with
// their defaults filled in; one that is missing is 0.
func NewWeights(w schemas.RelevanceWeights) Weights {
	or0 := func(p *float64) float64 {
		if p == nil {
			return 0
		}
		return *p
	}
	return Weights{or0(w.Recency), or0(w.Recall), or0(w.Keyword), or0(w.Stale)}
}

// score returns the score of an observation's relevance, by the weights of its recency, its recall count and its
// overlap with the keywords (agentx-spec, memory pipeline 5.2, phase 3); by default
//
//	0.4 / (1 + days/30) + 0.2 * min(recalls/10, 1) + 0.4 * overlap
//
// where days are the days of 24 hours since it was learned, with their fraction and never negative, and overlap the
// share of the words asked for that its summary has. The caller multiplies that of one that may be stale by w.Stale.
//
// It converts each product, so that no processor fuses it with the sum: the order is the same everywhere.
func score(w Weights, days float64, recalls int, overlap float64) float64 {
	recency := 1 / (1 + max(days, 0)/30)
	return float64(w.Recency*recency) + float64(w.Recall*min(float64(recalls)/10, 1)) + float64(w.Keyword*overlap)
}

// Row has the fields of an observation that decide whether to read it: the index phase.
type Row struct {
	schemas.ObservationIndex         // Tokens is what reading it in full costs
	Score                    float64 `json:"score,omitempty"` // of a search, by BM25
	Stale                    string  `json:"stale,omitempty"` // why it may be stale: "src/db/adapter.go changed since"
	SupersededBy             string  `json:"supersededBy,omitempty"`
	Archived                 bool    `json:"archived,omitempty"`
	RecallCount              int     `json:"recallCount,omitempty"`
	SeenCount                int     `json:"seenCount,omitempty"`
}

// Full is an observation in full.
type Full struct {
	schemas.Observation
	Stale string `json:"stale,omitempty"` // why it may be stale
}

// clock is a time, and the same in milliseconds since 1970, with the rest.
type clock struct {
	time.Time
	milli int64
	rest  time.Duration
}

// since is the age of an observation: time.Time.Sub of the milliseconds, without what that does for times centuries away.
func (c *clock) since(milli int64) time.Duration {
	const near = 1 << 42 // until 2109
	if c.milli < 0 || c.milli >= near || milli < 0 || milli >= near {
		return c.Sub(time.UnixMilli(milli))
	}
	return time.Duration(c.milli-milli)*time.Millisecond + c.rest
}

func keywordMatches(phrase, words []string) bool {
	for i, want := range phrase {
		if want != "*" && want != words[i] {
			return false
		}
	}
	return true
}
