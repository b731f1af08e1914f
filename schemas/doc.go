// Package schemas defines the vocabulary: every kind of object in a tree, its defaults, its rules, and the decoding of
// bytes into objects with the positions of all fields.
//
// An object on disk is one YAML or JSON document (workflows also have a TOML form) in the Kubernetes envelope:
//
//	apiVersion: reconcile.dev/v1alpha1
//	kind: Session
//	metadata: {name: health}
//	spec: {…}
//
// A kind is described by a [Kind] value in the file of that kind (session.go has SessionKind). This package has no list
// of them: the table is controllers.Kinds, and callers of the decoder pass the kinds in.
//
// The published JSON Schemas (*.schema.json in this folder, generated from the Go types) define the shape of a
// document; [Spec.Check] checks rules beyond a schema; references and cycles between objects are checked with the whole
// tree, in package state. All three report [Problem] values with a position, all of them at once.
//
// The package does no I/O: its input is bytes and paths, its output values.
package schemas
