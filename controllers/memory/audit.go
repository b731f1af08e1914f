package memory

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
)

// AuditInput is what an audit looks at.
type AuditInput struct {
	Observations []schemas.Observation // all, the archived ones too
	Records      map[string]schemas.MemoryRecord
	// Stale says why an observation may be stale; "" if it is not.
	Stale func(*schemas.Observation) string
	Now   time.Time
	// Unused is how old an observation is before it counts as never recalled.
	Unused time.Duration
	// Since leaves out what was learned or recalled before, except for groups with a newer observation; zero: no
	// limit.
	Since time.Time
}

// Audit is what an audit found. Its lists are sorted by issue, time and id; none is nil.
type Audit struct {
	Observations int `json:"observations"` // that stand: neither archived nor superseded
	// Exact are groups of observations whose contents are the same but for space; Near are groups of others that say
	// the same as the oldest of the group, as capture would notice. Of those that stand.
	Exact []Duplicates `json:"exact"`
	Near  []Duplicates `json:"near"`
	// Stale are those that stand and whose files have changed.
	Stale []Reason `json:"stale"`
	// Superseded are those that were recalled although what replaces them was in the memory.
	Superseded []Reason `json:"supersededButRecalled"`
	// Secrets are those, of all, with a secret or private text in them, and the rule that found it.
	Secrets []Reason `json:"secrets"`
	// Unused are those that stand, are old enough, and were never recalled, nor was another with the same text.
	Unused []string `json:"neverRecalled"`
}

// Duplicates are the ids of observations that say the same.
type Duplicates []string

// Reason is an observation and its problem.
type Reason struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// AuditBounds say how many of each sort an audit allows; negative: any number.
type AuditBounds struct{ Exact, Near, Stale, Superseded, Secrets, Unused int }

// AuditSort is one of the things that an audit looks for.
type AuditSort struct {
	Name, About string
	Found, Most int
	Lines       []string // one for each, for people
}

// Past reports whether the audit found more of this sort than the most that is allowed. A negative Most allows any
// number.
func (s *AuditSort) Past() bool { return s.Most >= 0 && s.Found > s.Most }

// Sorts are the sorts of an audit, with their bounds.
func (a *Audit) Sorts(most AuditBounds) []AuditSort {
	return []AuditSort{
		{"exact", "groups of exact duplicates", len(a.Exact), most.Exact, groupLines(a.Exact)},
		{"near", "groups of near duplicates", len(a.Near), most.Near, groupLines(a.Near)},
		{"stale", "may be stale", len(a.Stale), most.Stale, reasonLines(a.Stale)},
		{"superseded", "recalled though superseded", len(a.Superseded), most.Superseded, reasonLines(a.Superseded)},
		{"secrets", "hold secrets or private text", len(a.Secrets), most.Secrets, reasonLines(a.Secrets)},
		{"unused", "never recalled", len(a.Unused), most.Unused, a.Unused},
	}
}

func groupLines(groups []Duplicates) (out []string) {
	for _, g := range groups {
		out = append(out, strings.Join(g, " "))
	}
	return out
}

func reasonLines(reasons []Reason) (out []string) {
	for _, r := range reasons {
		out = append(out, r.ID+": "+r.Reason)
	}
	return out
}

// NewAudit audits the observations of a memory: it finds exact and near duplicates, stale, superseded and unused
// observations, and those with secrets. It takes time in proportion to its size.
func NewAudit(in AuditInput) Audit {
	all := slices.Clone(in.Observations)
	slices.SortFunc(all, compareObservations)
	standing := slices.DeleteFunc(slices.Clone(all), func(o schemas.Observation) bool {
		return o.Archived || o.SupersededBy != ""
	})
	a := Audit{
		Observations: len(standing), Stale: []Reason{}, Superseded: in.recalledLate(all),
		Secrets: in.withSecrets(all), Unused: in.unused(standing),
	}
	a.Exact, a.Near = duplicates(standing)
	a.Exact, a.Near = in.recent(a.Exact), in.recent(a.Near)
	for i := range standing {
		o := &standing[i]
		if o.Timestamp.Before(in.Since) {
			continue
		}
		if why := in.Stale(o); why != "" {
			a.Stale = append(a.Stale, Reason{o.ID, why})
		}
	}
	return a
}

// unused returns the ids of those that were never recalled. A recall names only one of several with the same text.
func (in *AuditInput) unused(standing []schemas.Observation) []string {
	last, told := lastRecalls(in.Records), map[string]bool{}
	for i := range standing {
		o := &standing[i]
		// The latest recalls are in records, and not yet counted in the issue file.
		if _, recalled := last[o.ID]; recalled || o.RecallCount > 0 {
			told[flat(o.Content)] = true
		}
	}
	out := []string{}
	for i := range standing {
		o := &standing[i]
		if !o.Timestamp.Before(in.Since) && in.Now.Sub(o.Timestamp.Time) >= in.Unused && !told[flat(o.Content)] {
			out = append(out, o.ID)
		}
	}
	return out
}

// lastRecalls says when observations were last recalled.
func lastRecalls(records map[string]schemas.MemoryRecord) map[string]schemas.Stamp {
	last := map[string]schemas.Stamp{}
	for _, r := range Recalls(records) {
		for _, id := range r.IDs {
			if !r.At.Before(last[id].Time) {
				last[id] = r.At
			}
		}
	}
	return last
}

// recent returns the groups with an observation that is not too old.
func (in *AuditInput) recent(groups []Duplicates) []Duplicates {
	return slices.DeleteFunc(groups, func(g Duplicates) bool {
		return !slices.ContainsFunc(g, func(id string) bool {
			_, _, ms, ok := ParseID(id)
			return !ok || !time.UnixMilli(ms).Before(in.Since.Truncate(time.Millisecond))
		})
	})
}

// recalledLate finds superseded observations that were recalled nevertheless. Times prove nothing: the replacement may
// have arrived later than its timestamp, as by a merge of branches. A process that recalled both at once, however, had
// both, and an observation replaces others from the moment it exists; only one that was captured again may have
// replaced others later, and gets the benefit of the doubt.
func (in *AuditInput) recalledLate(all []schemas.Observation) []Reason {
	byID := make(map[string]*schemas.Observation, len(all))
	for i := range all {
		byID[all[i].ID] = &all[i]
	}
	late := map[string]schemas.Stamp{}
	for _, r := range Recalls(in.Records) {
		if r.At.Before(in.Since) {
			continue
		}
		for _, id := range r.IDs {
			if o := byID[id]; o != nil && recordNames(&r, byID, o.SupersededBy) {
				late[id] = laterCapture(late[id], r.At)
			}
		}
	}
	out := []Reason{}
	for i := range all {
		if at, ok := late[all[i].ID]; ok {
			why := "recalled at " + at.String() + " together with " + all[i].SupersededBy + ", which replaces it"
			out = append(out, Reason{all[i].ID, why})
		}
	}
	return out
}

// withSecrets reports the rules, and never the secrets.
func (in *AuditInput) withSecrets(all []schemas.Observation) []Reason {
	out := []Reason{}
	for i := range all {
		o := &all[i]
		if o.Timestamp.Before(in.Since) {
			continue
		}
		var rules []string
		for _, text := range []string{o.Content, o.Summary} {
			for _, f := range secrets.Find(text) {
				rules = append(rules, f.Rule)
			}
			if secrets.StripPrivate(text) != text {
				rules = append(rules, "private text")
			}
		}
		slices.Sort(rules)
		if rules = slices.Compact(rules); len(rules) > 0 {
			out = append(out, Reason{o.ID, strings.Join(rules, ", ")})
		}
	}
	return out
}

// duplicates groups equivalent observations: the first of each content represents all of them.
func duplicates(all []schemas.Observation) (exact, near []Duplicates) {
	equal := map[string]Duplicates{}
	var firsts []*schemas.Observation
	for i := range all {
		content := flat(all[i].Content)
		if equal[content] == nil {
			firsts = append(firsts, &all[i])
		}
		equal[content] = append(equal[content], all[i].ID)
	}
	for _, o := range firsts {
		if group := equal[flat(o.Content)]; len(group) > 1 {
			exact = append(exact, group)
		}
	}
	return orNone(exact), orNone(nearDuplicates(firsts))
}

// nearDuplicates groups observations that say the same as the first of their group. Two sets of pairs with a Dice
// coefficient of nearDuplicate have so much in common that they share one of the rarest pairs of each, if all are put
// in the same order (prefix filtering: Chaudhuri, Ganti and Kaushik, "A primitive operator for similarity joins",
// 2006). So each is compared only with the firsts of groups that have such a pair, and with none that differs in what
// tells apart.
func nearDuplicates(all []*schemas.Observation) []Duplicates {
	likes := make([]likeness, len(all))
	r := new(rarity)
	for i, o := range all {
		likes[i] = newLikeness(o.Content)
		r.count(likes[i].pairs)
	}
	groups := make(map[int]Duplicates)
	firsts := map[probe][]int{}
	for i := range all {
		probes := r.probes(&likes[i])
		if first := matchingDuplicates(likes, i, probes, firsts); first >= 0 {
			if groups[first] == nil {
				groups[first] = Duplicates{all[first].ID}
			}
			groups[first] = append(groups[first], all[i].ID)
			continue
		}
		for _, p := range probes {
			firsts[p] = append(firsts[p], i)
		}
	}
	var out []Duplicates
	for _, first := range slices.Sorted(maps.Keys(groups)) {
		out = append(out, groups[first])
	}
	return out
}

// matchingDuplicates finds the oldest first of a group that says the same; -1 for none.
func matchingDuplicates(likes []likeness, i int, probes []probe, firsts map[probe][]int) int {
	best, seen := -1, map[int]bool{}
	for _, p := range probes {
		for _, first := range firsts[p] {
			if best >= 0 && first > best || seen[first] {
				continue
			}
			seen[first] = true
			if likes[i].same(likes[first]) {
				best = first
			}
		}
	}
	return best
}

// probe is a pair of words, in a content with certain telling words.
type probe struct{ pair, telling uint64 }

// rarity counts in how many contents pairs are; those of equal remainder together, which only has to be the same
// always.
type rarity [1 << 16]uint32

func (r *rarity) of(pair uint64) uint32 { return r[pair%uint64(len(r))] }

func (r *rarity) count(pairs []uint64) {
	for _, p := range pairs {
		r[p%uint64(len(r))]++
	}
}

// probes are the rarest pairs, as many as are needed for contents that say the same to share one. Sets of n and m pairs
// that share c of them have the coefficient 2c/(n+m); at nearDuplicate, as m is not below c,
// n·nearDuplicate/(2-nearDuplicate) are shared at least, and all but one less than that can be left out.
func (r *rarity) probes(l *likeness) []probe {
	pairs := slices.Clone(l.pairs)
	slices.SortFunc(pairs, func(a, b uint64) int { return cmp.Or(cmp.Compare(r.of(a), r.of(b)), cmp.Compare(a, b)) })
	// Rounded down: one more probe, never one less.
	shared := int(float64(len(pairs)) * nearDuplicate / (2 - nearDuplicate))
	telling := xxhash.Sum64String(strings.Join(l.telling, " "))
	out := make([]probe, 0, len(pairs)-shared+1)
	for _, p := range pairs[:min(len(pairs), len(pairs)-shared+1)] {
		out = append(out, probe{p, telling})
	}
	return out
}

func auditColumns(line string) int {
	n := 0
	for _, c := range []byte(line) {
		switch c {
		case ' ':
			n++
		case '\t':
			n += 4 - n%4
		default:
			return n
		}
	}
	return n
}
