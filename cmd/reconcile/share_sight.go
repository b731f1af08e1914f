package main

import (
	"bytes"
	"encoding/json"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/proc"
	"reconcile.dev/reconcile/state/regular"
)

// sightsPath is where a tree keeps since when the claims of others have been as they are. It may be lost: then they are
// watched once more.
const sightsPath = ".reconcile/claims.json"

// sightsLimit is the size up to which that file is read.
const sightsLimit = 1 << 20

// sights is that file. Its times are durations since the machine was started, which no change of the clock touches; Boot
// tells that it is the same start of the same machine.
type sights struct {
	Boot string  `json:"boot"`
	Seen []sight `json:"seen"`
}

type sight struct {
	Ref   string        `json:"ref"`
	Hash  string        `json:"hash"`
	Since time.Duration `json:"since"`
}

// recall tells the remote what the run before this one saw. Whatever is wrong with it, there is nothing to recall then.
func (s *share) recall() {
	up, ok := uptime()
	fi, err := s.store.Root().Lstat(sightsPath)
	if !ok || err != nil || fi.Size() > sightsLimit {
		return
	}
	data, err := regular.Read(s.store.Root(), sightsPath)
	var was sights
	if err != nil || json.Unmarshal(data, &was) != nil || was.Boot == "" || was.Boot != proc.Self().Tag {
		return
	}
	s.kept, s.since = data, map[string]time.Duration{}
	now := time.Now()
	before := make([]gitrepo.Sighting, len(was.Seen))
	for i, c := range was.Seen {
		s.since[c.Hash] = c.Since
		before[i] = gitrepo.Sighting{Ref: c.Ref, Hash: c.Hash, Since: now.Add(c.Since - up)}
	}
	s.remote.Recall(before)
}

// remember keeps what was seen for the next run. What is there already is not written again. Times are rounded up: who
// takes a claim over must have waited for it.
func (s *share) remember() {
	up, ok := uptime()
	is := sights{Boot: proc.Self().Tag, Seen: []sight{}}
	if !ok || is.Boot == "" {
		return
	}
	now := time.Now()
	for _, c := range s.remote.Sightings() {
		since := s.since[c.Hash]
		if since == 0 {
			since = (up - now.Sub(c.Since)).Truncate(time.Second) + time.Second
		}
		is.Seen = append(is.Seen, sight{c.Ref, c.Hash, since})
	}
	clear(s.since)
	for _, c := range is.Seen {
		s.since[c.Hash] = c.Since
	}
	data, err := json.Marshal(is)
	if err != nil || bytes.Equal(data, s.kept) || len(is.Seen) == 0 && s.kept == nil {
		return
	}
	if durable.Replace(s.store.Root(), ".reconcile/tmp", sightsPath, data) == nil { // else it is watched once more
		s.kept = data
	}
}
