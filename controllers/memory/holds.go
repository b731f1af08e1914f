package memory

import (
	"reflect"
	"slices"

	"reconcile.dev/reconcile/schemas"
)

// Holds reports whether what is stored of a capture is exactly what its spec makes, but for what was removed: then it was
// accepted as it is, and another digest that is on record for it is damage, not an edit. stored are observations of its
// issue, in the issue file and the archive; nothing stored of it proves nothing.
func Holds(s Spec, taken Taken, stored []schemas.Observation, removed map[string]bool) bool {
	if taken.Issue != s.Issue {
		return false
	}
	links := linksOf(s)
	if !sameLinks(links, taken.Links) {
		return false
	}
	made := map[string]schemas.Observation{}
	for _, o := range observations(s, nil) {
		made[o.ID] = scrubbed(o)
	}
	found := len(links.Repeats) + len(links.Supersedes)
	for i := range stored {
		o := &stored[i]
		if o.Source != s.Name || len(o.Compacts) > 0 {
			continue
		}
		want, ok := made[o.ID]
		if !ok || !sameStatement(o, &want) {
			return false
		}
		delete(made, o.ID)
		found++
	}
	for id := range made {
		if !removed[id] {
			return false
		}
	}
	return found > 0
}

func sameLinks(a, b schemas.MemoryLinks) bool {
	return slices.Equal(a.Repeats, b.Repeats) &&
		(len(a.Supersedes) == 0 && len(b.Supersedes) == 0 || reflect.DeepEqual(a.Supersedes, b.Supersedes))
}

// sameStatement compares what a capture says, and not what came of it later: of one that was verified the files that it is
// about, and not how these were.
func sameStatement(stored, made *schemas.Observation) bool {
	anchors := slices.Equal(stored.Anchors, made.Anchors)
	if !stored.VerifiedAt.IsZero() {
		anchors = slices.EqualFunc(stored.Anchors, made.Anchors, func(a, b schemas.Anchor) bool { return a.Path == b.Path })
	}
	return anchors && stored.Agent == made.Agent && stored.IssueNumber == made.IssueNumber && stored.Category == made.Category &&
		stored.Content == made.Content && stored.Summary == made.Summary && stored.SessionID == made.SessionID &&
		stored.Timestamp.Equal(made.Timestamp.Time)
}
