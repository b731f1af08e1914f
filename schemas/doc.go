// Package schemas is the vocabulary: every kind of object that a tree may hold, its defaults, the rules that it must
// keep, and how bytes become one of them without losing where each field stood.
//
// An object on disk is one YAML or JSON document (workflows also have a TOML form) in the Kubernetes envelope:
//
//	apiVersion: reconcile.dev/v1alpha1
//	kind: Session
//	metadata: {name: health}
//	spec: {…}
//
// A kind is described by a [Kind] value that stands in the file of that kind (session.go holds SessionKind). This
// package keeps no list of them: the table is controllers.Kinds, and whoever decodes hands the kinds in.
//
// The published JSON Schemas (*.schema.json in this folder, generated from the Go types) decide the shape of a
// document; [Spec.Check] adds what a schema cannot say; references and cycles between objects are judged where the
// whole tree is known, in package state. All three report [Problem] values with a position, all of them at once.
//
// The package does no I/O: bytes and paths come in, values come out.
package schemas
