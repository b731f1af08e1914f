package clarify

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/schemas"
)

// Salvage makes the ledger of an issue from the intact records and unknown fields of a damaged ledger, up to the damage
// and unchanged. If the text has an id that is higher than theirs, [schemas.LedgerLastID] keeps it: later questions are
// numbered from there on. It returns nil for a text without anything of the issue. It is pure.
//
// A record counts as whole if it is JSON and its id is one of the issue.
func Salvage(damaged []byte, issue int) []byte {
	f := &file{issue: issue, extra: extras{}}
	f.scrape(bytes.TrimPrefix(damaged, []byte("\ufeff")))
	last := max(lastSeq(f.extra[schemas.LedgerLastID], issue), highest(damaged, issue))
	if last == 0 {
		return nil
	}
	f.extra[schemas.LedgerLastID], _ = schemas.Marshal(FormatID(issue, last)) // text always marshals
	f.forgetLast()
	f.sort()
	data, err := f.encode()
	if err == nil {
		_, err = readFile(data, issue)
	}
	if err != nil {
		return nil // records that are nested too deeply to be copied in place
	}
	return data
}

// forgetLast drops the highest assigned number, once a record has it or a higher one.
func (f *file) forgetLast() {
	last := lastSeq(f.extra[schemas.LedgerLastID], f.issue)
	for i := range f.records {
		if LastSeq(f.issue, f.records[i].ID) >= last {
			delete(f.extra, schemas.LedgerLastID)
			return
		}
	}
}

// scrape reads the file up to the damage.
func (f *file) scrape(damaged []byte) {
	d := json.NewDecoder(bytes.NewReader(damaged))
	if !begins(d, '{') {
		return
	}
	for d.More() {
		token, err := d.Token()
		name, isName := token.(string)
		if err != nil || !isName {
			return
		}
		if strings.EqualFold(name, "clarifications") {
			if !f.scrapeRecords(d) {
				return
			}
			continue
		}
		var value json.RawMessage
		if d.Decode(&value) != nil || !sound(value) {
			return
		}
		if !strings.EqualFold(name, "issueNumber") && schemas.Depth(value) <= 100 { // indenting grows with the square of it
			f.extra[name] = value
		}
	}
}

// scrapeRecords reads the list of records; whole is false where it breaks off.
func (f *file) scrapeRecords(d *json.Decoder) (whole bool) {
	if !begins(d, '[') {
		return false
	}
	for d.More() {
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			return false
		}
		if !sound(raw) {
			continue
		}
		r := parseRecord(raw, f.issue)
		if of, _, ok := ParseID(r.ID); ok && of == f.issue {
			f.records = append(f.records, r)
		}
	}
	_, err := d.Token()
	return err == nil
}

// sound reports whether a value can be part of a ledger that must be readable.
func sound(raw []byte) bool { return utf8.Valid(raw) && !bytes.Contains(raw, []byte("\n<<<<<<< ")) }

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
