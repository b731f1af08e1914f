package clarify

import (
	"bytes"
	"encoding/json"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// Salvage makes the ledger of an issue from the intact records and unknown fields of a damaged ledger, up to the damage
// and unchanged. If the text has an id that is higher than theirs, [schemas.LedgerLastID] keeps it: later questions are
// numbered from there on. It returns nil for a text without anything of the issue. It is pure.
//
// A record counts as whole if it is JSON and its id is one of the issue.
func Salvage(damaged []byte, issue int) []byte {
	f := &ledgerFile{issue: issue, extra: extras{}}
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

// scrape reads the file up to the damage.
func (f *ledgerFile) scrape(damaged []byte) {
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
		if d.Decode(&value) != nil || !soundRecord(value) {
			return
		}
		if !strings.EqualFold(name, "issueNumber") && schemas.Depth(value) <= 100 { // indenting grows with the square of it
			f.extra[name] = value
		}
	}
}

// scrapeRecords reads the list of records; whole is false where it breaks off.
func (f *ledgerFile) scrapeRecords(d *json.Decoder) (whole bool) {
	if !begins(d, '[') {
		return false
	}
	for d.More() {
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			return false
		}
		if !soundRecord(raw) {
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
