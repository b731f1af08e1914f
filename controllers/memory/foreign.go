package memory

import (
	"slices"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
)

// What other programs write into an issue file stays there byte by byte, and nobody has looked at it before. So it is
// cleaned whenever it leaves the file: for the manifest, a search, a recall, a merged observation.

// foreign reports whether another program wrote the observation: it came in with no Observation, and compaction did not
// make it.
func foreign(o *schemas.Observation) bool { return o.Source == "" && len(o.Compacts) == 0 }

// scrubbed is an observation as it leaves its file: that of another program without secrets, private text and control
// characters, and without anchors that hold any. The id is as it is, its form has been checked.
func scrubbed(o schemas.Observation) schemas.Observation {
	if !foreign(&o) {
		return o
	}
	o.Content = discreet(o.Content)
	for _, text := range []*string{&o.Summary, &o.Agent, &o.Category, &o.SessionID, &o.SupersededBy} {
		*text = flat(discreet(*text))
	}
	o.Anchors = slices.DeleteFunc(slices.Clone(o.Anchors), func(a schemas.Anchor) bool {
		return discreet(a.Path) != a.Path || discreet(a.Digest) != a.Digest
	})
	return o
}

// discreet is a text that may be shown. Control characters go first: what they tear apart is a secret without them.
func discreet(text string) string { return secrets.Redact(agentio.Plain(text)) }

func scrubAll(all []schemas.Observation) {
	for i := range all {
		if foreign(&all[i]) {
			all[i] = scrubbed(all[i])
		}
	}
}
