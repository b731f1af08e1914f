package state

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// decode decodes the content of a file.
func (s *Store) decode(a area, p string, data []byte) any {
	s.decoded.Add(1)
	if a == areaSpecs {
		return s.decodeSpec(p, data)
	}
	return s.decodeState(a, p, data)
}

func (s *Store) decodeSpec(p string, data []byte) any {
	d := s.decoder.Decode(p, data)
	b := &specBody{ref: d.Ref, at: d.At, object: d.Object, problems: d.Problems}
	if d.Ref != (schemas.Ref{}) {
		b.refs = d.Refs // an object without a name is not validated again if its references appear
	}
	if b.at.Path == "" {
		b.at.Path = p
	}
	k, ok := s.opts.Kinds.Find(d.Ref.Kind)
	if !ok || k.NewStatus == nil {
		b.ref, b.object, b.refs = schemas.Ref{}, nil, nil // Settings in a wrong place, which the decoder has rejected
	}
	return b
}

// decodeState decodes a status or a record.
func (s *Store) decodeState(a area, p string, data []byte) any {
	switch a {
	case areaStatus:
		if h := s.shapedStatus(p, data); h != nil {
			return h
		}
		return s.decodeStatusFile(p, data, nil)
	case areaRuns:
		key := s.layout().runKey(p)
		if h := s.shapedRun(key, data); h != nil {
			return h
		}
		r, err := decodeRun(key, data, bytes.Clone(data))
		if err != nil {
			return damageOf(err)
		}
		return newLazyRun(key, r)
	case areaLedgers:
		return decodeLedgerFile(p, data)
	case areaCheckpoints:
		return s.layout().decodeCheckpoint(p, data)
	}
	return nil
}

// decodeStatusFile returns the status in the file at p, a *lazyStatus, or what is wrong with it; see [decodeBuffer.decodeStatus] for
// packed.
func (s *Store) decodeStatusFile(p string, data, packed []byte) any {
	_, ref := s.layout().classify(p)
	k, _ := s.opts.Kinds.Find(ref.Kind)
	if k.NewStatus == nil {
		return &damage{text: "nothing of that kind has a status"}
	}
	if err := schemas.CheckName(ref.Name); err != nil {
		return &damage{text: "it is not named like an object: " + err.Error()}
	}
	r := s.decodeBuffer()
	defer s.decodeBuffers.Put(r)
	st, err := r.decodeStatus(k, ref.Name, data, packed)
	if err != nil {
		return damageOf(err)
	}
	return newLazyStatus(st)
}

func (s *Store) shapedStatus(p string, data []byte) *lazyStatus {
	_, ref := s.layout().classify(p)
	of := s.shapes().statuses[ref.Kind]
	if of == nil || schemas.CheckName(ref.Name) != nil {
		return nil
	}
	r := s.decodeBuffer()
	defer s.decodeBuffers.Put(r)
	h := r.shapedStatus(of, ref, data)
	if h != nil {
		h.store, h.path = s, p
	}
	return h
}

// shapedStatus returns the status in data, or nil if data must be decoded to validate it.
func (r *decodeBuffer) shapedStatus(s *shape, ref schemas.Ref, data []byte) *lazyStatus {
	if !r.shape.read(s, data) {
		return nil
	}
	is := &r.shape.shaped
	if is.text(markVersion) != schemas.APIVersion || is.text(markKind) != ref.Kind || is.text(markName) != ref.Name ||
		!is.marked[markStatus].present() {
		return nil
	}
	again := is.packed
	is.packed = bytes.Clone(again)
	h := &lazyStatus{raw: is.packed, packed: true, brief: is.inBrief()}
	h.briefOnce.Do(func() {}) // it is set above
	is.packed = again
	return h
}

func (s *Store) shapedRun(key string, data []byte) *lazyRun {
	r := s.decodeBuffer()
	defer s.decodeBuffers.Put(r)
	return r.shapedRun(s.shapes().run, key, data)
}

// shapedRun returns the record in data, or nil if data must be decoded to validate it.
func (r *decodeBuffer) shapedRun(s *shape, key string, data []byte) *lazyRun {
	if !r.shape.read(s, data) {
		return nil
	}
	is := &r.shape.shaped
	if is.text(markVersion) != schemas.APIVersion || is.text(markKind) != runKind || is.text(markKey) != key || is.text(markOutcome) == "" {
		return nil
	}
	h := &lazyRun{key: key, raw: bytes.Clone(is.packed)}
	for _, t := range []struct {
		has  bool
		mark Traits
	}{{is.marked[markAsks].present(), Asks}, {is.marked[markLearned].present(), Learned}, {is.text(markAgent) != "", OfAgent},
		{is.marked[markOutputs].present(), Outputs}, {is.marked[markMarks].present(), Marks}} {
		if t.has {
			h.has |= t.mark
		}
	}
	return h
}

func (s *Store) decodeBuffer() *decodeBuffer {
	if r, ok := s.decodeBuffers.Get().(*decodeBuffer); ok {
		return r
	}
	return new(decodeBuffer)
}

// locatedProblem makes problems of the findings in a report about an object; data is the text of its file at p.
func locatedProblem(r *schemas.Report, ref schemas.Ref, p string, data []byte) []schemas.Problem {
	var out []schemas.Problem
	for _, f := range r.Findings() {
		field := append([]any{"spec"}, f.Field...)
		at, source := schemas.Locate(p, data, field...)
		at.Path = p
		out = append(out, schemas.Problem{Place: at, Severity: f.Severity, Code: f.Code, Ref: ref,
			Field: fieldPath(field), Message: f.Message, Suggestion: f.Suggestion, Source: source})
	}
	schemas.Discreet(out, string(data))
	return out
}

// fieldPath writes a field as "spec.nodes[2].needs[0]".
func fieldPath(field []any) string {
	var b []byte
	for _, f := range field {
		switch f := f.(type) {
		case int:
			b = fmt.Appendf(b, "[%d]", f)
		case string:
			if len(b) > 0 {
				b = append(b, '.')
			}
			b = append(b, f...)
		}
	}
	return string(b)
}

func bySeenPath(a, b scanEntry) int {
	return cmp.Or(strings.Compare(path.Dir(a.path), path.Dir(b.path)), strings.Compare(a.path, b.path))
}
