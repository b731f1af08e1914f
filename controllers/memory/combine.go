package memory

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/schemas"
)

// Lengths in characters.
const (
	contentLimit = 2000 // of a content (agentx-spec, memory pipeline 6.2)
	summaryLimit = 200  // of a summary that is made: some 50 tokens
	mergedLimit  = 400  // of the summary of a merged observation: it has the words of several
	statedLimit  = 500  // of the summary of an original in a merged content
)

// inherited bounds how often a merged observation counts as seen by what its originals were.
const inherited = 10

// combine makes the observations that represent a group: one, or more if the statements do not fit into one. Originals
// that no longer exist, or that another observation replaced, are ignored; nil if none is left.
//
// A merged observation lists the statements of its originals, shared ones once, decisions first, then by category and
// time; each decision with its id, in full if there is room, else by its summary; the rest by the same rule, after the
// decisions. Its category is decision if there is one in it, else that of all, else compaction-summary. Agent, session
// and time are those of the newest, anchors those of all with the newest digests. Its seen count is the sum of all, up
// to ten, and its recall count the highest one: the fold corrects it, see [Facts.recallsOf].
func combine(group []string, member func(id string) *schemas.Observation) []schemas.Observation {
	var members []*schemas.Observation
	for _, id := range group {
		if o := member(id); o != nil && o.SupersededBy == "" {
			members = append(members, o)
		}
	}
	slices.SortFunc(members, compareStatements)
	var out []schemas.Observation
	for piece := 0; len(members) > 0; piece++ {
		n := fitCount(members)
		out = append(out, combined(members[:n], group, piece))
		members = members[n:]
	}
	return out
}

// compareStatements is the order in which a merged observation tells its originals.
func compareStatements(a, b *schemas.Observation) int {
	return cmp.Or(cmp.Compare(rankOfCategory(a.Category), rankOfCategory(b.Category)),
		strings.Compare(a.Category, b.Category), compareObservations(*a, *b))
}

// rankOfCategory is the place of a category; unknown ones come last.
func rankOfCategory(category string) int {
	all := schemas.Categories()
	if i := slices.Index(all, category); i >= 0 {
		return i
	}
	return len(all)
}

// fitCount is how many of the members, at least one, fit into one content.
func fitCount(members []*schemas.Observation) int {
	size, said := 0, map[[3]string]bool{}
	for n, o := range members {
		key := sayingKey(o)
		if said[key] {
			size += repeatedSize(o)
		} else {
			size += statementSize(o)
		}
		if said[key] = true; n > 0 && size > contentLimit {
			return n
		}
	}
	return len(members)
}

// repeatedSize is the maximum size of an original whose statement equals another one's: that of its id.
func repeatedSize(o *schemas.Observation) int { return len(o.ID) + 2 }

// statementSize bounds the characters that an original takes at least.
func statementSize(o *schemas.Observation) int {
	return utf8.RuneCountInString(statement(o, []string{o.ID}, statedIn(o), false)) + 1
}

// statedIn is the short form of what an original says.
func statedIn(o *schemas.Observation) string {
	if s := flat(o.Summary); s != "" {
		return cutFlat(s, statedLimit)
	}
	return cutFlat(flat(o.Content), statedLimit)
}

// keptInFull is all that an original says, on one line, its summary included.
func keptInFull(o *schemas.Observation) string {
	content, short := flat(o.Content), statedIn(o)
	if short == "" || strings.Contains(content, strings.TrimSuffix(short, ellipsis)) {
		return content
	}
	if strings.ContainsAny(short[len(short)-1:], ".!?") || strings.HasSuffix(short, ellipsis) {
		return short + " " + content
	}
	return short + ": " + content
}

// statement is the line about an original, and about those that say the same: the ids are those of all. plainCategory
// leaves its category out.
func statement(o *schemas.Observation, ids []string, text string, plainCategory bool) string {
	line := "- "
	if !plainCategory {
		line += "[" + cutFlat(flat(o.Category), 40) + "] "
	}
	line += text
	if o.Category == schemas.CategoryDecision {
		line += " (" + strings.Join(ids, ", ") + ")"
	}
	return line
}

// combined merges members that fit into one. group are the ids that name it, also of originals that are gone.
func combined(members []*schemas.Observation, group []string, piece int) schemas.Observation {
	newest := slices.MaxFunc(members, func(a, b *schemas.Observation) int { return compareObservations(*a, *b) })
	out := schemas.Observation{
		Agent: newest.Agent, IssueNumber: newest.IssueNumber, Category: commonCategory(members),
		Timestamp: newest.Timestamp, SessionID: newest.SessionID, Anchors: unitedAnchors(members),
	}
	for _, o := range members {
		out.Compacts = append(out.Compacts, o.ID)
		out.RecallCount = max(out.RecallCount, o.RecallCount)
		out.SeenCount = min(out.SeenCount+o.SeenCount, inherited)
	}
	slices.Sort(out.Compacts)
	out.ID = mergedID(newest, group, piece)
	out.Content = mergedContent(members, out.Category)
	out.Summary = mergedSummary(members)
	return out
}

func commonCategory(members []*schemas.Observation) string {
	common := members[0].Category
	for _, o := range members {
		switch {
		case o.Category == schemas.CategoryDecision:
			return o.Category
		case o.Category != common:
			common = schemas.CategorySummary
		}
	}
	return common
}

// saying is what several members say in the same words.
type saying struct {
	*schemas.Observation
	ids []string
}

// sayingKey is the same for observations that say the same in the same words.
func sayingKey(o *schemas.Observation) [3]string {
	return [3]string{o.Category, flat(o.Content), flat(o.Summary)}
}

// distinctSayings unites members of one category, content and summary, in the order of the first of each.
func distinctSayings(members []*schemas.Observation) []saying {
	var out []saying
	places := map[[3]string]int{}
	for _, o := range members {
		key := sayingKey(o)
		at, again := places[key]
		if !again {
			at = len(out)
			places[key], out = at, append(out, saying{Observation: o})
		}
		out[at].ids = append(out[at].ids, o.ID)
	}
	return out
}

// mergedContent lists each member by its summary, and then, decisions first and newer ones first, in full as far as
// there is room. Shared statements are listed once.
func mergedContent(members []*schemas.Observation, category string) string {
	all := distinctSayings(members)
	lines := make([]string, len(all))
	room := contentLimit
	for i, o := range all {
		lines[i] = statement(o.Observation, o.ids, statedIn(o.Observation), o.Category == category)
		room -= utf8.RuneCountInString(lines[i]) + 1
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(rankOfCategory(all[a].Category), rankOfCategory(all[b].Category)),
			compareObservations(*all[b].Observation, *all[a].Observation))
	})
	for _, i := range order {
		full := statement(all[i].Observation, all[i].ids, keptInFull(all[i].Observation), all[i].Category == category)
		more := utf8.RuneCountInString(full) - utf8.RuneCountInString(lines[i])
		if more <= room {
			lines[i], room = full, room-more
		}
	}
	return strings.Join(lines, "\n")
}

// mergedSummary has the beginning of each member's summary, so that a search finds it by the words of any.
func mergedSummary(members []*schemas.Observation) string {
	all := distinctSayings(members)
	share := max(mergedLimit/len(all)-2, 24)
	parts := make([]string, len(all))
	for i, o := range all {
		parts[i] = cutFlat(statedIn(o.Observation), share)
	}
	return cutFlat(strings.Join(parts, "; "), mergedLimit)
}

// seen is an anchor as it was seen at a time.
type seen struct {
	schemas.Anchor
	at schemas.Stamp
}

// compare tells which of two sightings counts: one with a digest, the later one, the one that sorts last.
func (s seen) compare(other seen) int {
	return cmp.Or(trueFirst(other.Digest != "", s.Digest != ""), s.at.Compare(other.at.Time),
		strings.Compare(s.Digest, other.Digest))
}

const ellipsis = "…"

// joinEqual brings together what says the same in the same words, which takes the room of one.
func joinEqual(units []*unit) {
	firsts := map[[3]string]*unit{}
	for _, u := range units {
		key := sayingKey(u.newest)
		first := firsts[key]
		switch {
		case u.merged:
		case first == nil:
			firsts[key] = u
		default:
			u.group.size = repeatedSize(u.newest)
			if !join(first.group, u.group) {
				u.group.size, firsts[key] = u.size, u
			}
		}
	}
}
