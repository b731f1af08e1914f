package merge

import (
	"cmp"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// joinMirrors joins two mirror files of one issue.
func joinMirrors(base, a, b []byte) ([]byte, error) {
	read := func(data []byte) (*schemas.MirrorFile, error) {
		f := new(schemas.MirrorFile)
		if err := state.DecodeMirror(data, f); err != nil {
			return nil, err
		}
		return f, f.Check(f.Issue)
	}
	return joinFields(base, a, b, read, state.EncodeMirror)
}

// joinMirrorObjects joins two mirror files of the issue of one object.
func joinMirrorObjects(base, a, b []byte) ([]byte, error) {
	read := func(data []byte) (*schemas.MirrorObject, error) {
		o := new(schemas.MirrorObject)
		return o, state.DecodeMirror(data, o)
	}
	return joinFields(base, a, b, read, func(o *schemas.MirrorObject) ([]byte, error) {
		if o.Issue > 0 {
			o.Intended = schemas.Time{} // one side knows how it ended
		}
		return state.Encode(o)
	})
}

// joinMirrorKeys unites keys. None is ever taken back: comments that it signed would not be known again.
func joinMirrorKeys(_, a, b []byte) ([]byte, error) {
	out := schemas.MirrorKeys{Fresh: true}
	for _, data := range [][]byte{a, b} {
		var k schemas.MirrorKeys
		if err := state.DecodeMirror(data, &k); err != nil {
			return nil, err
		}
		if err := k.Check(); err != nil {
			return nil, err
		}
		out.Version = max(out.Version, k.Version)
		out.Keys = append(out.Keys, k.Keys...)
		out.Fresh = out.Fresh && k.Fresh // one side has signed all that there is with a key that stays
	}
	slices.Sort(out.Keys)
	out.Keys = slices.Compact(out.Keys)
	return state.Encode(&out)
}

func compareMirrored(a, b schemas.MirrorComment) int { return strings.Compare(a.Key, b.Key) }

func compareHandled(a, b schemas.MirrorHandled) int { return cmp.Compare(a.Comment, b.Comment) }

func compareRefused(a, b schemas.RefusedReply) int { return strings.Compare(a.Name, b.Name) }
