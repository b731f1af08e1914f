// Package memory decides what agents remember. It is pure: conversations, files and records come in as values, and what
// is to be written goes out as bytes.
//
// # What is learned
//
// [Learn] makes entries of a conversation or a summary: [ReadConversation] reads transcripts, compact_text.go sums them up,
// and what it says, without secrets, becomes at most fifty entries of an Observation.
//
// # What the store is
//
// The truth are the Observations under specs/ and the records of what happened to observations later ([EncodeRecord]);
// each writer makes files of its own names, so nothing is lost and nothing conflicts. [NewFacts] says what follows from
// all of that, [Facts.Fold] makes the files of one issue of it, and [Manifest] the index over all. Observations of
// other programs are a part of the truth that stands in the issue files only: they are kept with all their fields. The
// bytes of a file are a function of the truth: a store that grew, capture by capture, is the one that is made anew.
//
//	id.go        the ids of observations
//	file.go      reading issue files and archives; encode.go writes them
//	record.go    the records
//	facts.go     what follows from captures and records for all issues
//	fold.go      the files of one issue
//	grow.go      the same for one more capture, without the rest of the truth
//	salvage.go   what is whole in a damaged file
//	manifest.go  the index; splice.go replaces one issue in it
//
// A capture that was edited after it was accepted changes nothing: for each one, the file of its issue keeps its digest
// and what it said of older observations (links). [TakenIn] collects that from all files, so that an edit that moves a
// capture to another issue is noticed, too.
//
// # What is recalled
//
// score.go has the formula, recall.go chooses by it within a budget and writes the section that agents are told.
// Whether an observation is stale is not stored: it is a relation of its anchors to the files of the moment.
//
// # Compaction
//
// compact.go says what a compaction records, related.go which observations belong together, merge.go what the merged
// one says, due.go when it is time.
package memory
