package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/controllers/tokens"

	quick "github.com/segmentio/encoding/json"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

var (
	// ErrDamaged is the error of a file that cannot be read. It must be moved aside; see [Salvage] and [Manifest].
	ErrDamaged = errors.New("damaged")
	// ErrNewer is the error of a file that a newer version of the program wrote. It must stay where it is.
	ErrNewer = errors.New("written by a newer version of reconcile; update it")
)

// deepest bounds the nesting of what other programs add to observations.
const deepest = 100

// Parse parses the data of a memory file, an issue file or an archive, and scrubs its observations. Unknown fields are
// skipped; everything else must be as specified: ids well formed and of the issue of the file, times RFC 3339.
// Observations of other programs are returned without secrets, private text and control characters. The errors are
// [ErrDamaged] and [ErrNewer].
func Parse(data []byte) (*schemas.MemoryFile, error) {
	f, err := ParseVerbatim(data)
	if err == nil {
		scrubAll(f.Observations)
	}
	return f, err
}

// ParseVerbatim parses the data of a memory file as [Parse] does, but does not scrub its observations. It is for those
// who look for what must not be there: what other programs wrote is as it stands.
func ParseVerbatim(data []byte) (*schemas.MemoryFile, error) {
	f, _, err := parseFile(data)
	return f, err
}

// parseFile decodes an issue's file of the memory, and its fields as they stand there.
func parseFile(data []byte) (*schemas.MemoryFile, map[string]json.RawMessage, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var fields map[string]json.RawMessage
	f := new(schemas.MemoryFile)
	if !utf8.Valid(data) {
		return nil, nil, fmt.Errorf("%w: it is not valid UTF-8", ErrDamaged)
	}
	if bytes.Contains(data, []byte("\n<<<<<<< ")) || bytes.HasPrefix(data, []byte("<<<<<<< ")) {
		return nil, nil, fmt.Errorf("%w: it holds the conflict markers of a git merge", ErrDamaged)
	}
	if schemas.TooDeep(data) {
		return nil, nil, fmt.Errorf("%w: its values are nested too deep", ErrDamaged)
	}
	if err := readJSON(data, &fields); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrDamaged, state.InJSON(data, err))
	}
	for _, part := range []struct {
		name string
		into any
	}{
		{"version", &f.Version}, {"issueNumber", &f.IssueNumber}, {"updatedAt", &f.UpdatedAt},
		{"observations", &f.Observations}, {"sources", &f.Sources}, {"links", &f.Links},
	} {
		raw, ok := fields[part.name]
		if !ok {
			continue
		}
		if err := readJSON(raw, part.into); err != nil {
			return nil, nil, fmt.Errorf("%w: %s: %w", ErrDamaged, part.name, err)
		}
	}
	return f, fields, checkMemoryFile(f, fields)
}

// readJSON is json.Unmarshal, but faster for well-formed data. Unlike those of the fast decoder, errors do not quote
// data.
func readJSON(data []byte, into any) error {
	if quick.Unmarshal(data, into) == nil {
		return nil
	}
	return json.Unmarshal(data, into)
}

func checkMemoryFile(f *schemas.MemoryFile, fields map[string]json.RawMessage) error {
	switch {
	case f.Version > schemas.MemoryVersion:
		return fmt.Errorf("its version is %d: %w", f.Version, ErrNewer)
	case fields["issueNumber"] == nil || fields["observations"] == nil:
		return fmt.Errorf("%w: it has no issueNumber or no observations", ErrDamaged)
	case f.IssueNumber < 0:
		return fmt.Errorf("%w: its issueNumber is %d", ErrDamaged, f.IssueNumber)
	}
	for i := range f.Observations {
		if err := checkObservation(&f.Observations[i], f.IssueNumber); err != nil {
			return fmt.Errorf("%w: observation %d: %w", ErrDamaged, i+1, err)
		}
	}
	return nil
}

func checkObservation(o *schemas.Observation, issue int) error {
	_, of, _, ok := ParseID(o.ID)
	switch {
	case !ok:
		return fmt.Errorf("its id %.150q does not have the form obs-<agent>-<issue>-<ms>-<6 characters>", o.ID)
	case of != issue || o.IssueNumber != issue:
		return fmt.Errorf("%s is not about issue %d", o.ID, issue)
	}
	return nil
}

// memoryFile is an issue file or an archive with all its content, including unknown fields.
type memoryFile struct {
	schemas.MemoryFile
	extra   extras
	entries []stored
}

// The names of the known fields. An observation's are those of the tags of [schemas.Observation].
var (
	fileFields        = []string{"version", "issueNumber", "updatedAt", "observations", "sources", "links"}
	observationFields = []string{"id", "agent", "issueNumber", "category", "content", "summary", "tokens", "timestamp",
		"sessionId", "source", "anchors", "recallCount", "seenCount", "verifiedAt", "supersededBy", "compacts",
		"archived"}
)

// readFile reads a file of an issue; nil data is one that does not exist.
func readFile(data []byte, issue int) (*memoryFile, error) {
	if data == nil {
		return &memoryFile{MemoryFile: schemas.MemoryFile{Version: schemas.MemoryVersion, IssueNumber: issue}}, nil
	}
	m, fields, err := parseFile(data)
	if err != nil {
		return nil, err
	}
	if m.IssueNumber != issue {
		return nil, fmt.Errorf("%w: its issueNumber is %d, not %d", ErrDamaged, m.IssueNumber, issue)
	}
	f := &memoryFile{MemoryFile: *m, entries: make([]stored, len(m.Observations))}
	for i := range m.Observations {
		f.entries[i].Observation = m.Observations[i]
	}
	if slices.ContainsFunc(m.Observations, func(o schemas.Observation) bool { return foreign(&o) }) {
		if err := f.readForeign(fields["observations"]); err != nil {
			return nil, err
		}
	}
	f.Observations = nil
	f.extra, err = unknown(fields, fileFields)
	return f, err
}

// readForeign reads the unknown fields of foreign observations.
func (f *memoryFile) readForeign(observations []byte) error {
	var raw []json.RawMessage
	if err := readJSON(observations, &raw); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	for i := range f.entries {
		s := &f.entries[i]
		if !foreign(&s.Observation) {
			continue
		}
		var fields map[string]json.RawMessage
		err := readJSON(raw[i], &fields)
		if err == nil {
			s.extra, err = unknown(fields, observationFields)
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrDamaged, s.ID, err)
		}
	}
	return nil
}

// unknown drops the known fields, in any case of letters, as they are read; nil for none left.
func unknown(fields map[string]json.RawMessage, known []string) (extras, error) {
	maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool {
		return slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) })
	})
	if len(fields) == 0 {
		return nil, nil
	}
	for name, raw := range fields {
		if schemas.Depth(raw) > deepest || !json.Valid(raw) {
			return nil, fmt.Errorf("%w: %.100q is no JSON, or nested too deeply", ErrDamaged, name)
		}
	}
	return fields, nil
}

// Observations of other programs stay in an issue file byte by byte, and are not checked when they are written. So
// they are cleaned whenever they leave the file: for the manifest, a search, a recall, a merged observation.

// foreign reports whether another program wrote the observation: it came in with no Observation, and compaction did not
// make it.
func foreign(o *schemas.Observation) bool { return o.Source == "" && len(o.Compacts) == 0 }

// cleanedCopy is an observation as it leaves its file: that of another program without secrets, private text and control
// characters, and without anchors that hold any. The id is as it is, its form has been checked.
func cleanedCopy(o schemas.Observation) schemas.Observation {
	if !foreign(&o) {
		return o
	}
	o.Content = redacted(o.Content)
	for _, text := range []*string{&o.Summary, &o.Agent, &o.Category, &o.SessionID, &o.SupersededBy} {
		*text = flat(redacted(*text))
	}
	o.Anchors = slices.DeleteFunc(slices.Clone(o.Anchors), func(a schemas.Anchor) bool {
		return redacted(a.Path) != a.Path || redacted(a.Digest) != a.Digest
	})
	return o
}

func scrubAll(all []schemas.Observation) {
	for i := range all {
		if foreign(&all[i]) {
			all[i] = cleanedCopy(all[i])
		}
	}
}

// The lines that an observation begins and ends with in a file of our form.
const (
	observationStart = "\n    {\n      "
	observationEnd   = "\n    }"
)

// Find finds the observation with an id in the data of an issue file or archive, without reading the other
// observations. ok is false if it is not found in the place that our form of files implies: then use [Parse].
// Observations of other programs are cleaned as Parse does.
func Find(data []byte, id string) (o *schemas.Observation, ok bool) { return FindNear(data, id, 0) }

// FindNear finds an observation by its id in the data of an issue file or archive, and begins the search near where it
// is expected. It is [Find] with a hint: before is about the share of the observations before the one.
func FindNear(data []byte, id string, before float64) (o *schemas.Observation, ok bool) {
	if _, _, _, ok := ParseID(id); !ok {
		return nil, false
	}
	from := indexNear(data, []byte(`"id": "`+id+`"`), before) - len(observationStart)
	if from < 0 || !bytes.HasPrefix(data[from:], []byte(observationStart)) {
		return nil, false
	}
	size := bytes.Index(data[from+1:], []byte(observationEnd)) // texts in JSON have no line breaks
	if size < 0 {
		return nil, false
	}
	o = new(schemas.Observation)
	if quick.Unmarshal(data[from+1:from+1+size+len(observationEnd)], o) != nil || o.ID != id {
		return nil, false
	}
	*o = cleanedCopy(*o)
	return o, true
}

// indexNear is bytes.Index that looks around a place first, given as a share of the whole. Observations have different
// lengths: for one of a hundred, a twentieth of the whole to both sides is nearly always enough.
func indexNear(data, what []byte, place float64) int {
	n := len(data)
	from := min(max(int((place-0.05)*float64(n)), 0), n)
	to := min(max(int((place+0.1)*float64(n))+len(what), from), n)
	if i := bytes.Index(data[from:to], what); i >= 0 {
		return from + i
	}
	return bytes.Index(data, what)
}

// TakenIn adds the captures that a memory file has taken to all, by name, each with the issue, its digest and its
// links. A capture that two files hold, as a merge of branches can leave it, belongs to the lower issue.
func TakenIn(f *schemas.MemoryFile, all map[string]Taken) {
	for name, digest := range f.Sources {
		if other, ok := all[name]; !ok || f.IssueNumber < other.Issue {
			all[name] = Taken{f.IssueNumber, digest, f.Links[name]}
		}
	}
}

func indexOf(all []schemas.Observation) []schemas.ObservationIndex {
	out := make([]schemas.ObservationIndex, len(all))
	for i := range all {
		out[i] = all[i].Index()
	}
	return out
}

// finish sorts the observations and finds the newest time.
func (f *memoryFile) finish() {
	slices.SortFunc(f.entries, func(a, b stored) int { return compareObservations(a.Observation, b.Observation) })
	for i := range f.entries {
		o := &f.entries[i].Observation
		f.UpdatedAt = laterCapture(laterCapture(f.UpdatedAt, o.Timestamp), o.VerifiedAt)
	}
}

// plain are the observations as they leave the file.
func (f *memoryFile) plain() []schemas.Observation {
	out := make([]schemas.Observation, len(f.entries))
	for i := range f.entries {
		out[i] = f.entries[i].Observation
	}
	scrubAll(out)
	return out
}

// compareObservations is the order of an issue file.
func compareObservations(a, b schemas.Observation) int {
	if c := a.Timestamp.Compare(b.Timestamp.Time); c != 0 {
		return c
	}
	return strings.Compare(a.ID, b.ID)
}

// readAny reads a file of whatever issue it says to be of. Unknown fields are without blanks: so they compare.
func readAny(data []byte) (*memoryFile, error) {
	m, _, err := parseFile(data)
	if err != nil {
		return nil, err
	}
	f, err := readFile(data, m.IssueNumber)
	if err != nil {
		return nil, err
	}
	f.extra = f.extra.compact()
	for i := range f.entries {
		f.entries[i].extra = f.entries[i].extra.compact()
	}
	return f, nil
}

func written(parts []part, of int) (r Recalled) {
	var body strings.Builder
	size, long := 0, false
	for _, p := range parts {
		r.Notes = append(r.Notes, p.Note)
		r.IDs = append(r.IDs, p.ID)
		body.WriteString(p.text)
		size += p.tokens
		long = long || len(p.text) > longLine
	}
	head := recallHead(len(parts), of, size)
	r.Text, r.Tokens = head+body.String(), tokens.Count(head)+size
	if long {
		r.Tokens = tokens.Count(r.Text)
	}
	return r
}

// sourceLine matches a line of [schemas.MemoryFile.Sources]; digests of anchors have the name "digest".
func sourceLine() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^    "([a-z0-9][a-z0-9._-]{0,62})": "(sha256:[0-9a-f]{64})",?\r?$`)
}
