package memory

import "reconcile.dev/reconcile/schemas"

// Row tells of an observation what is needed to decide whether to read it: the index phase.
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
