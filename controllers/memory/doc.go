// Package memory decides what agents remember. It is pure: conversations, files and records are its input values, and
// the bytes to write its output.
//
// # What is learned
//
// [Learn] makes entries from a conversation or a summary: [ReadConversation] reads transcripts, compact_text.go
// summarizes them, and the summary, without secrets, becomes at most fifty entries of an Observation.
//
// # What the store is
//
// The source of truth are the Observations under specs/ and the records of later events ([EncodeRecord]); each writer
// makes files with its own names, so nothing is lost and nothing conflicts. [NewFacts] derives the facts from all of
// that, [Facts.Fold] the files of one issue, and [Manifest] the index of all. Observations of other programs are a part
// of the truth that exists in the issue files only: they are kept with all their fields. The bytes of a file are a
// function of the truth: a store that grew, capture by capture, equals a rebuilt one.
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
// A capture that was edited after it was accepted has no effect: for each one, the file of its issue keeps its digest
// and its links to older observations. [TakenIn] collects these from all files, so that an edit that moves a capture to
// another issue is noticed, too.
//
// # What is recalled
//
// score.go has the formula, recall.go selects by it within a budget and writes the section for agents. Staleness of an
// observation is not stored: it compares its anchors with the current files.
//
// # Compaction
//
// compact.go defines the records of compactions, related.go the grouping of observations, merged.go the text of merged
// ones.
package memory
