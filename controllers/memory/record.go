package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"unicode/utf8"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// EncodeRecord encodes a memory record, and returns the name of its file, without folder and extension, and the bytes.
// The name is <type>-<issue>-<ms>-<6 digits of a digest of the bytes>: equal records have the same file.
func EncodeRecord(r schemas.MemoryRecord) (name string, data []byte, err error) {
	r.Version = schemas.MemoryVersion
	r.IDs = sortedIDs(r.IDs)
	if r.Type == schemas.RecordRecalls {
		return encodeSum(r)
	}
	if data, err = state.Encode(r); err != nil {
		return "", nil, fmt.Errorf("write a %s record: %w", r.Type, err)
	}
	sum := sha256.Sum256(data)
	return fmt.Sprintf("%s-%d-%d-%s", r.Type, r.Issue, max(r.At.UnixMilli(), 0), hex.EncodeToString(sum[:3])), data, nil
}

// ParseRecord reads a record. A record of an unknown type has no effect and is valid: a newer version wrote it. The
// other errors are [ErrDamaged].
func ParseRecord(data []byte) (schemas.MemoryRecord, error) {
	var r schemas.MemoryRecord
	if !utf8.Valid(data) {
		return r, fmt.Errorf("%w: it is not valid UTF-8", ErrDamaged)
	}
	if schemas.TooDeep(data) {
		return r, fmt.Errorf("%w: its values are nested too deep", ErrDamaged)
	}
	if err := readJSON(data, &r); err != nil {
		return schemas.MemoryRecord{}, fmt.Errorf("%w: %w", ErrDamaged, state.InJSON(data, err))
	}
	switch {
	case r.Type == "":
		return r, fmt.Errorf("%w: it has no type", ErrDamaged)
	case r.Version > schemas.MemoryVersion:
		return r, fmt.Errorf("its version is %d: %w", r.Version, ErrNewer)
	}
	for _, id := range r.IDs {
		if _, _, _, ok := ParseID(id); !ok {
			return r, fmt.Errorf("%w: %.150q is not the id of an observation", ErrDamaged, id)
		}
	}
	if r.Type == schemas.RecordRecalls {
		return r, checkSum(&r)
	}
	r.Recalls = nil
	return r, nil
}
