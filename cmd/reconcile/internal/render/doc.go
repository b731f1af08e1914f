// Package render turns values into what people and programs read: tables, JSON and YAML, problems in several forms,
// pictures of graphs, and the live view of a run.
//
// Rules for all output to a terminal: no capitals and no periods where a line is a message; columns are aligned by
// display width; colour is an addition, never the only carrier of a fact; and nothing that comes from a file reaches
// the terminal before [Line] or [Text] has made its control characters visible.
package render
