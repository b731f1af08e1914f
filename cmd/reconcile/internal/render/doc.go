// Package render formats values for people and programs: tables, JSON and YAML, problems in several formats, pictures of
// graphs, and the live view of a run.
//
// Rules for all output to a terminal: messages of one line have no capitals and no periods; columns are aligned by display
// width; colour never carries a fact alone; and text from a file reaches the terminal only after [Line] or [Text] has made
// its control characters visible.
package render
