package clarify

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	quick "github.com/segmentio/encoding/json"

	"reconcile.dev/reconcile/schemas"
)

// Salvage makes a ledger of what is whole in a damaged one: its records and unknown fields up to the damage, as they
// stand. schemas.LedgerLastID says the highest number that the damaged text may have given; what is asked later is
// numbered from there on. It is nil for a text in which nothing of the issue is to be found. It is pure.
//
// A record counts as whole if it can be read and its id is one of the issue. Where the text ends within a record whose
// id is lost, that is taken to be the next one.
func Salvage(damaged []byte, issue int) []byte {
	f := &file{issue: issue, extra: extras{}}
	lost := f.scrape(bytes.TrimPrefix(damaged, []byte("\ufeff")))
	last := lastSeq(f.extra[schemas.LedgerLastID], issue)
	for i := range f.records {
		last = max(last, LastSeq(issue, f.records[i].ID))
	}
	if lost {
		last++
	}
	if last = max(last, highest(damaged, issue)); last == 0 {
		return nil
	}
	f.extra[schemas.LedgerLastID], _ = marshal(FormatID(issue, last)) // text always marshals
	f.sort()
	data, err := f.encode()
	if err == nil {
		_, err = readFile(data, issue)
	}
	if err != nil {
		return nil // records that are nested too deeply to stand where they stood
	}
	return data
}

// scrape reads the file up to the damage; lost reports whether that is within the list of records.
func (f *file) scrape(damaged []byte) (lost bool) {
	d := json.NewDecoder(bytes.NewReader(damaged))
	if !begins(d, '{') {
		return false
	}
	for d.More() {
		token, err := d.Token()
		name, isName := token.(string)
		if err != nil || !isName {
			return false
		}
		if strings.EqualFold(name, "clarifications") {
			if whole := f.scrapeRecords(d); !whole {
				return true
			}
			continue
		}
		var value json.RawMessage
		if d.Decode(&value) != nil || !sound(value) {
			return false
		}
		if !strings.EqualFold(name, "issueNumber") && depth(value) <= 100 { // indenting grows with the square of it
			f.extra[name] = value
		}
	}
	return false
}

// scrapeRecords reads the list of records; whole is false where it breaks off.
func (f *file) scrapeRecords(d *json.Decoder) (whole bool) {
	if !begins(d, '[') {
		return false
	}
	for d.More() {
		r := record{}
		if d.Decode(&r.raw) != nil {
			return false
		}
		if !sound(r.raw) || quick.Unmarshal(r.raw, &r.Clarification) != nil {
			continue
		}
		if of, _, ok := ParseID(r.ID); ok && of == f.issue {
			f.records = append(f.records, r)
		}
	}
	_, err := d.Token()
	return err == nil
}

// sound reports whether a value can stand in a ledger that is to be read again.
func sound(raw []byte) bool { return utf8.Valid(raw) && !bytes.Contains(raw, []byte("\n<<<<<<< ")) }

// depth is how deeply a value is nested; brackets in texts count, too.
func depth(raw []byte) (deepest int) {
	d := 0
	for _, c := range raw {
		switch c {
		case '[', '{':
			d++
		case ']', '}':
			d--
		}
		deepest = max(deepest, d)
	}
	return deepest
}

func begins(d *json.Decoder, with json.Delim) bool {
	token, err := d.Token()
	return err == nil && token == with
}

// highest is the highest number of an id of the issue that stands anywhere in a text, 0 for none. One after which no
// further one could be given counts as none.
func highest(text []byte, issue int) int {
	const most = 99_999_999 // ids have up to nine digits: enough are left
	last := 0
	for _, m := range regexp.MustCompile(`CLR-`+strconv.Itoa(issue)+`-([0-9]{1,9})`).FindAllSubmatch(text, -1) {
		if seq, err := strconv.Atoi(string(m[1])); err == nil && seq <= most {
			last = max(last, seq)
		}
	}
	return last
}
