package memstore

import "reconcile.dev/reconcile/schemas"

// BeforeEncoding has happens called before a capture is encoded, with the name of its Observation.
func (f *Files) BeforeEncoding(happens func(name string)) {
	encode := f.encode
	f.encode = func(ref schemas.Ref, spec schemas.Spec) ([]byte, error) {
		happens(ref.Name)
		return encode(ref, spec)
	}
}
